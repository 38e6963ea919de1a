"""One engine for all campaigns: stored results after exceptions, deaths and kills."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gridsim.campaign import run as engine
from gridsim.campaign.run import Finished, Made, Progress, progress_of, run_campaign
from gridsim.campaign.store import Shard, Store
from gridsim.campaign.sweep import Sweep
from gridsim.cli import main
from gridsim.errors import InputError


@dataclass(frozen=True)
class Number:
    """A unit."""

    value: int

    @property
    def file(self) -> str:
        return f"{self.value // 100}/{self.value}.json"

    def __str__(self) -> str:
        return f"number {self.value}"


@dataclass
class Numbers:
    """A campaign whose units do nothing; bad units raise."""

    many: int = 10
    together: int = 5
    bad: tuple[int, ...] = ()
    met: list[int] = field(default_factory=list)

    may_change: ClassVar[Sequence[str]] = ("many",)

    def identity(self, data: Path | None) -> Mapping[str, Any]:
        return {"numbers": "squares", "many": self.many}

    def groups(self) -> Iterator[list[Number]]:
        for first in range(0, self.many, self.together):
            yield [Number(value) for value in range(first, min(first + self.together, self.many))]

    def made(self, unit: Number, data: Path | None = None) -> Made:
        self.met.append(unit.value)
        if unit.value in self.bad:
            raise ValueError(f"{unit.value} is\nbad")
        return Made(str(unit.value**2).encode())


class Told:
    """Messages received by a driver."""

    def __init__(self) -> None:
        self.done: list[Finished] = []
        self.at: list[Progress] = []

    def __call__(self, done: Finished, at: Progress) -> None:
        self.done.append(done)
        self.at.append(at)


def values(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / "runs").rglob("*.json")}


SQUARES = {f"{value}.json": str(value**2) for value in range(10)}


# What is kept


def test_each_unit_is_kept_before_the_next_one_begins_in_one_process(tmp_path: Path) -> None:
    campaign = Numbers()
    kept: list[bool] = []

    def told(done: Finished, at: Progress) -> None:
        kept.append(campaign.met == list(range(len(kept) + 1)) and Store(tmp_path).has(done.unit.file))

    run_campaign(campaign, tmp_path, listener=told)
    assert kept == [True] * 10
    assert values(tmp_path) == SQUARES


def test_only_what_is_missing_is_run(tmp_path: Path) -> None:
    run_campaign(Numbers(4), tmp_path)
    more = Numbers(10)
    summary = run_campaign(more, tmp_path)
    assert more.met == [4, 5, 6, 7, 8, 9]
    assert (summary.units, summary.failed) == (6, 0)
    assert values(tmp_path) == SQUARES


def test_where_nothing_is_to_do_nothing_is_written(tmp_path: Path) -> None:
    run_campaign(Numbers(), tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"}
    assert run_campaign(Numbers(), tmp_path).units == 0
    assert before == {path: path.stat().st_mtime_ns for path in before}


@pytest.mark.long
@pytest.mark.parametrize("pieces", [1.0, 0.0])
def test_workers_that_send_back_a_part_of_their_units_get_the_rest_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: float
) -> None:
    monkeypatch.setattr(engine, "_ENOUGH", pieces)
    campaign = Numbers(100, together=50)
    with ThreadPoolExecutor(2) as executor:
        summary = run_campaign(campaign, tmp_path, executor=executor)
    assert summary.units == 100
    assert sorted(campaign.met) == list(range(100))
    assert len(values(tmp_path)) == 100


def test_progress_counts_down(tmp_path: Path) -> None:
    told = Told()
    run_campaign(Numbers(5, bad=(2,)), tmp_path, listener=told)
    assert told.at == [Progress(1, 0, 4), Progress(2, 0, 3), Progress(2, 1, 2), Progress(3, 1, 1), Progress(4, 1, 0)]
    assert progress_of(Numbers(7, bad=(2,)), Store(tmp_path)) == Progress(4, 1, 2)


# What raises


def test_a_unit_that_raises_is_kept_with_its_traceback_and_stops_no_other(tmp_path: Path) -> None:
    told = Told()
    summary = run_campaign(Numbers(bad=(3,)), tmp_path, listener=told)
    assert (summary.units, summary.failed) == (9, 1)
    failure = Store(tmp_path).failure(Number(3).file)
    assert (failure.unit, failure.error) == ("number 3", "ValueError: 3 is bad")
    assert "in made" in failure.traceback
    assert [done.failure for done in told.done if done.failure] == [failure]


def test_failed_runs_are_repeated_only_when_requested(tmp_path: Path) -> None:
    run_campaign(Numbers(bad=(3, 4)), tmp_path)
    again = Numbers()
    assert run_campaign(again, tmp_path).units == 0
    assert again.met == []
    run_campaign(again, tmp_path, retry_failed=True)
    assert again.met == [3, 4]
    assert values(tmp_path) == SQUARES
    assert not list((tmp_path / "failed").iterdir())


@pytest.mark.parametrize("error", [SystemExit(3), MemoryError(), type("Mute", (Exception,), {"__str__": None})()])
def test_the_other_units_finish_after_any_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    made = Numbers.made

    def raising(self: Numbers, unit: Number, data: Path | None = None) -> Made:
        if unit.value == 3:
            raise error
        return made(self, unit, data)

    monkeypatch.setattr(Numbers, "made", raising)
    assert run_campaign(Numbers(), tmp_path).failed == 1
    assert len(values(tmp_path)) == 9


def test_fewer_than_one_worker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 workers"):
        run_campaign(Numbers(), tmp_path, workers=0)


# Executors that misbehave


class Broken(Executor):
    """Run submitted calls immediately; *fault* may raise instead."""

    _max_workers = 2

    def __init__(self) -> None:
        self.submitted: list[list[int]] = []

    def fault(self, units: list[int]) -> BaseException | None:
        return None

    def submit(self, work: Any, /, *args: Any, **_: Any) -> Future[Any]:
        units = [unit.value for unit in args[-1]]
        self.submitted.append(units)
        future: Future[Any] = Future()
        fault = self.fault(units)
        if fault is None:
            future.set_result(work(*args))
        else:
            future.set_exception(fault)
        return future


def test_where_units_fail_together_only_the_one_to_blame_fails_in_the_end(tmp_path: Path) -> None:
    class Poisoned(Broken):
        def fault(self, units: list[int]) -> BaseException | None:
            return RuntimeError("cannot be sent back") if 7 in units else None

    executor = Poisoned()
    summary = run_campaign(Numbers(100, together=50), tmp_path, executor=executor)
    assert (summary.units, summary.failed) == (99, 1)
    assert [7] in executor.submitted
    assert len(executor.submitted[0]) > 1
    assert Store(tmp_path).failure(Number(7).file).error == "RuntimeError: cannot be sent back"


def test_a_pool_that_broke_says_so_and_what_is_done_is_kept(tmp_path: Path) -> None:
    class Breaks(Broken):
        def fault(self, units: list[int]) -> BaseException | None:
            return BrokenProcessPool("a worker died") if len(self.submitted) > 3 else None

    with pytest.raises(InputError, match="start again with a new executor: finished runs are kept"):
        run_campaign(Numbers(100, together=50), tmp_path, executor=Breaks())
    some = len(values(tmp_path))
    assert some > 0
    assert run_campaign(Numbers(100, together=50), tmp_path).units == 100 - some


def test_an_executor_that_was_shut_down_is_reported(tmp_path: Path) -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    summary = run_campaign(Numbers(3), tmp_path, executor=executor)
    assert summary.failed == 3
    assert "after shutdown" in Store(tmp_path).failure(Number(0).file).error


@pytest.mark.long
def test_the_driver_holds_few_of_many_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Live(Number):
        pass

    @dataclass
    class Many(Numbers):
        living: ClassVar[weakref.WeakSet[Number]] = weakref.WeakSet()

        def groups(self) -> Iterator[list[Number]]:
            for group in super().groups():
                own: list[Number] = [Live(unit.value) for unit in group]
                self.living.update(own)
                yield own

    most = 0

    def told(done: Finished, at: Progress) -> None:
        nonlocal most
        most = max(most, len(Many.living))

    monkeypatch.setattr("os.fsync", lambda _: None)  # 2,000 files need no disk here
    with ThreadPoolExecutor(2) as executor:
        assert run_campaign(Many(2000, together=20), tmp_path, executor=executor, listener=told).units == 2000
    assert 0 < most <= 2 * 2 * 16 + 2 * 20


# A full disk


def test_a_full_disk_names_the_file_and_leaves_the_store_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = Counter[str]()

    def full(_: int) -> None:
        calls["fsync"] += 1
        if calls["fsync"] == 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space left") as caught:
            run_campaign(Numbers(), tmp_path)
    assert caught.value.filename == str(tmp_path / "runs" / "0" / "3.json")
    assert values(tmp_path) == {name: SQUARES[name] for name in ("0.json", "1.json", "2.json")}
    assert not list(tmp_path.rglob(".*"))
    assert run_campaign(Numbers(), tmp_path).units == 7
    assert values(tmp_path) == SQUARES


# Parts


@pytest.mark.parametrize(("many", "together"), [(1, 1), (7, 2), (10, 5), (12, 12), (13, 4)])
@pytest.mark.parametrize("parts", [1, 2, 3, 5, 20])
def test_each_unit_is_in_exactly_one_part(many: int, together: int, parts: int) -> None:
    campaign = Numbers(many, together)
    found = [
        unit.value
        for number in range(1, parts + 1)
        for group in engine._groups(campaign, Shard(number, parts))
        for unit in group
    ]
    assert sorted(found) == list(range(many))


def test_parts_share_a_store(tmp_path: Path) -> None:
    for number in (3, 1, 2):
        run_campaign(Numbers(together=2), tmp_path, shard=Shard(number, 3))
    assert values(tmp_path) == SQUARES
    assert sorted(path.name for path in tmp_path.glob("journal*")) == [f"journal-{n}-of-3.jsonl" for n in (1, 2, 3)]


# Sweeps: the same bytes however they are run


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the plain sweep by one process."""
    folder = tmp_path_factory.mktemp("expected")
    (folder / "campaign.toml").write_text(RECIPE)
    assert main(["sweep", str(folder / "campaign.toml"), "--workers", "1", "--out", str(folder / "results")]) == 0
    return folder / "results"


RECIPE = """
records = true
policy = "{scheduler}"
[workload]
model = "lublin?jobs=30"
[factors]
scheduler = ["fcfs", "easy", "conservative"]
seed = [1, 2, 3]
"""


def swept(place: Any, *words: str, out: str = "campaign-results") -> int:
    place.write(RECIPE)
    return main(["sweep", "campaign.toml", "--out", out, *words])


def test_two_workers_make_the_same(place: Any, expected: Path, contents: Any) -> None:
    assert swept(place, "--workers", "2") == 0
    assert contents(place.folder / "campaign-results") == contents(expected)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_any_executor_makes_the_same(place: Any, expected: Path, kind: str) -> None:
    def executor() -> Executor:
        if kind == "threads":
            return ThreadPoolExecutor(3)
        return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("forkserver"))

    sweep = Sweep.from_toml(place.write(RECIPE))
    with executor() as own:
        assert run_campaign(sweep, place.folder / "store", executor=own).units == 9
        assert own.submit(len, "open").result() == 4  # it is the caller's to close
    assert place.runs("store") == place_runs(expected)


def place_runs(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in (store / "runs").rglob("*.json")}


def test_three_parts_in_separate_folders_merge_to_the_same(place: Any, expected: Path, contents: Any) -> None:
    for number in (1, 2, 3):
        assert swept(place, "--workers", "1", "--shard", f"{number}/3", out=f"part-{number}") == 0
        assert 0 < len(place.runs(f"part-{number}")) < 9
    assert main(["sweep", "merge", "part-1", "part-2", "part-3", "--out", "whole"]) == 0
    assert contents(place.folder / "whole") == contents(expected)
    records = {path.relative_to(expected) for path in (expected / "records").rglob("*.csv")}
    assert len(records) == 9
    for record in records:
        assert (place.folder / "whole" / record).read_bytes() == (expected / record).read_bytes()


def test_parts_in_one_folder_make_the_same(place: Any, expected: Path, contents: Any) -> None:
    for number in (2, 3, 1):
        assert swept(place, "--workers", "1", "--shard", f"{number}/3") == 0
    assert swept(place) == 0
    assert place.run_twice() == []
    assert contents(place.folder / "campaign-results") == contents(expected)


# Sweeps: processes that are killed


def half_done(place: Any, wait_until: Any, *words: str) -> Any:
    """A driver with two of its six runs finished, and two in progress."""
    place.gated(6, opened=(0, 1))
    driver = place.start("sweep", "campaign.toml", "--workers", "2", *words)
    wait_until(lambda: place.done() == 2 and len(place.met()) == 4, "two runs, and two at their gates")
    return driver


def completes(place: Any, contents: Any, left: int) -> None:
    """An interrupted sweep is finished without duplicates, with the same result as an uninterrupted one."""
    place.open()
    kept = place.runs()
    finished = {
        name: path.stat().st_mtime_ns
        for name in kept
        for path in [place.folder / "campaign-results" / name]
        if not path.name.startswith(".")
    }
    assert len(finished) == 6 - left
    assert main(["sweep", "campaign.toml", "--workers", "1"]) == 0
    assert {name: (place.folder / "campaign-results" / name).stat().st_mtime_ns for name in finished} == finished
    assert place.run_twice() == []
    assert main(["sweep", "campaign.toml", "--workers", "1", "--out", "at-once"]) == 0
    assert contents(place.folder / "campaign-results") == contents(place.folder / "at-once")


@pytest.mark.long
def test_a_driver_that_is_killed_leaves_a_whole_store_and_no_orphans(
    place: Any, wait_until: Any, is_alive: Any, contents: Any
) -> None:
    driver = half_done(place, wait_until)
    workers = set(place.met().values())
    assert all(is_alive(pid) for pid in workers)
    driver.kill()
    wait_until(lambda: not any(is_alive(pid) for pid in workers), "the workers to end")
    (place.folder / "campaign-results" / "runs" / "00").mkdir(exist_ok=True)
    (place.folder / "campaign-results" / "runs" / "00" / ".00ff.json.x1y2z3").write_text("half-wri")
    assert Store(place.folder / "campaign-results").driver() is None  # regardless of the content of its lock file
    completes(place, contents, left=4)


@pytest.mark.long
def test_an_interrupted_driver_says_so_and_leaves_no_orphans(
    place: Any, wait_until: Any, is_alive: Any, contents: Any
) -> None:
    driver = half_done(place, wait_until)
    workers = set(place.met().values())
    os.killpg(driver.process.pid, signal.SIGINT)  # as a terminal does: every process gets the signal
    code, _, told = driver.end()
    assert code == 130
    assert "interrupted" in told
    assert "Traceback" not in told
    wait_until(lambda: not any(is_alive(pid) for pid in workers), "the workers to end")
    completes(place, contents, left=4)


@pytest.mark.long
def test_a_driver_without_workers_that_is_interrupted_keeps_what_is_done(
    place: Any, wait_until: Any, contents: Any
) -> None:
    place.gated(6, opened=(0, 1))
    driver = place.start("sweep", "campaign.toml", "--workers", "1")
    wait_until(lambda: 2 in place.met(), "the third run")
    os.killpg(driver.process.pid, signal.SIGINT)
    assert driver.end()[0] == 130
    completes(place, contents, left=4)


@pytest.mark.long
def test_a_worker_that_is_killed_is_replaced_and_nothing_fails(place: Any, wait_until: Any, contents: Any) -> None:
    driver = half_done(place, wait_until)
    met = place.met()
    os.kill(met[2], signal.SIGKILL)
    place.open()
    code, told, _ = driver.end()
    assert code == 0
    assert "6 of 6 runs finished, 0 failed, 0 to do" in told
    completes(place, contents, left=0)


def test_a_unit_that_kills_its_worker_fails_alone(place: Any, contents: Any) -> None:
    place.bad("Kills")
    assert main(["sweep", "campaign.toml", "--workers", "2"]) == 1
    store = Store(place.folder / "campaign-results")
    assert len(place.runs()) == 3
    (path,) = (store.folder / "failed").iterdir()
    assert "its worker died 2 times while it ran" in store.failure(path.name).error
    assert place.run_twice() == []


@pytest.mark.long
def test_a_limit_on_the_size_of_files_ends_the_driver_and_not_the_store(place: Any, contents: Any) -> None:
    place.write(RECIPE.replace("records = true", ""))
    driver = place.start("sweep", "campaign.toml", "--workers", "1", prefix=("prlimit", "--fsize=1000"))
    code, _, told = driver.end()
    assert code == 2
    assert "File too large" in told
    assert "gridsim: error: campaign-results/" in told  # runs/, or failed/ when kernels had to be compiled and cached
    assert place.runs() == {}
    assert main(["sweep", "campaign.toml", "--workers", "1"]) == 0
    assert len(place.runs()) == 9


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_disk_that_is_full_ends_the_driver_and_not_the_store(place: Any, contents: Any) -> None:
    disk = place.folder / "disk"
    disk.mkdir()
    if os.system(f"mount -t tmpfs -o size=64k tmpfs {disk} 2>/dev/null"):
        pytest.skip("mounting is not allowed here")
    try:
        assert swept(place, "--workers", "1", out="disk/store") == 2
        some = len(place.runs("disk/store"))
        assert 0 < some < 9
        assert not list(disk.rglob(".*"))
        os.system(f"mount -o remount,size=4m {disk}")
        assert swept(place, "--workers", "1", out="disk/store") == 0
        assert place.run_twice("disk/store") == []
        assert swept(place, "--workers", "1") == 0
        assert contents(place.folder / "disk/store") == contents(place.folder / "campaign-results")
    finally:
        os.system(f"umount {disk}")


# Sweeps: two drivers


@pytest.mark.long
def test_a_second_driver_is_refused_and_the_first_is_not_disturbed(place: Any, wait_until: Any, contents: Any) -> None:
    first = half_done(place, wait_until)
    second = place.start("sweep", "campaign.toml", "--workers", "2")
    part = place.start("sweep", "campaign.toml", "--workers", "1", "--shard", "1/2")
    for other in (second, part):
        code, _, told = other.end()
        assert code == 2
        assert f"campaign-results: is in use by process {first.process.pid} on " in told
    place.open()
    assert first.end()[0] == 0
    completes(place, contents, left=0)


@pytest.mark.long
def test_drivers_of_different_parts_work_side_by_side_and_of_the_same_part_not(
    place: Any, wait_until: Any, contents: Any
) -> None:
    place.gated(6)
    words = ("sweep", "campaign.toml", "--workers", "1", "--shard")
    first, other = place.start(*words, "1/2"), place.start(*words, "2/2")
    wait_until(lambda: len(place.met()) == 2, "a run of each part")
    told = Store(place.folder / "campaign-results").driver()
    assert told is not None
    assert all(str(driver.process.pid) in told for driver in (first, other))
    assert main([*words, "1/2"]) == 2
    assert main(["sweep", "campaign.toml", "--workers", "1"]) == 2
    place.open()
    assert [driver.end()[0] for driver in (first, other)] == [0, 0]
    completes(place, contents, left=0)
