"""A run over blocks of jobs has the same record as a run with all jobs in memory."""

from __future__ import annotations

import errno
import gc
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim import streaming, tables
from gridsim.errors import InputError
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.scenario import Scenario
from gridsim.simulation import Run, run, simulate
from gridsim.streaming import ended_jobs, why_not_streamed
from gridsim.tables import read_table, write_table
from gridsim.workload.blocks import split_between_instants
from gridsim.workload.formats.parquet_jobs import ParquetJobs
from gridsim.workload.read import read_workload
from gridsim.workload.synthetic.lublin import Lublin, LublinBlocks

POLICIES = (
    "easy",
    "fcfs",
    "first-fit",
    "depth?k=3",
    "easy?ordering=sjf",
    "fcfs?ordering=laf",
    "wfp3",
    "easy?ordering=xfactor",
    "easy?backfill_order=shortest",
    "conservative",
    "conservative?compress=arrival&compress_at=every",
)
MODES = [(instant, overrun) for instant in ("batched", "per-event") for overrun in ("kill", "extend")]
LOGS = (
    "CTC-SP2-1996-3.1-cln",
    "NASA-iPSC-1993-3.1-cln",
    "SDSC-BLUE-2000-4.2-cln",
    "SDSC-SP2-1998-4.2-cln",
    "lublin_256",
)


@pytest.fixture(autouse=True, scope="module")
def what_was_there_before() -> Iterator[None]:
    """Freeze existing objects for the collector once, instead of in each of hundreds of runs, at 0.1 s each."""
    gc.collect()
    gc.freeze()
    with mock.patch("gc.unfreeze"):
        yield


def blocks_of(workload: Workload, size: int) -> Iterator[Workload]:
    return (workload.select(slice(first, first + size)) for first in range(0, len(workload), size))


def check_same(workload: Workload, cores: int, policy: str, options: Run, size: int) -> None:
    """Each job is reported once, with the same start, end and status as in a run with all jobs in memory."""
    whole: Record = run(workload, Platform.single(cores), policy, options)
    found: dict[str, Any] = {name: np.full(len(workload), -7) for name in ("start_us", "end_us", "status", "job")}
    for (rows, record), _ in ended_jobs(blocks_of(workload, size), Platform.single(cores), policy, options):
        for name, column in found.items():
            assert (column[rows] == -7).all()
            column[rows] = record.workload.job if name == "job" else getattr(record, name)
    for name, column in found.items():
        known = whole.workload.job if name == "job" else getattr(whole, name)
        assert column.tobytes() == known.astype(np.int64).tobytes(), (policy, options, size, name)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    jobs = draw(st.integers(1, 30))
    columns = [st.integers(0, 12), st.integers(1, 9), st.integers(1, 9), st.integers(1, 7)]
    submit, runtime, estimate, cores = (draw(st.lists(it, min_size=jobs, max_size=jobs)) for it in columns)
    return Workload.from_columns(submit=np.cumsum(submit), runtime=runtime, estimate=estimate, cores=cores)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=max(6, settings.default.max_examples // 2))  # type: ignore[union-attr]  # a window costs 0.1 s
@given(workload=workloads(), mode=st.sampled_from(MODES), size=st.integers(1, 9))
def test_any_blocks_make_the_record_of_the_whole(
    policy: str, workload: Workload, mode: tuple[Any, Any], size: int
) -> None:
    check_same(workload, 5, policy, Run(engine="compiled", instant=mode[0], overrun=mode[1]), size)


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_a_generated_workload_in_which_jobs_exceed_their_estimates(policy: str) -> None:
    drawn = Lublin(jobs=1500, load=0.9, cores=128, estimates="multiples").generate(seed=1)
    longer = drawn.runtime / 1e6 * np.random.default_rng(1).choice([1, 1, 8], len(drawn))
    given_: dict[str, Any] = {"submit": drawn.submit / 1e6, "estimate": drawn.estimate / 1e6, "cores": drawn.cores}
    workload = Workload.from_columns(runtime=longer, **given_)
    for instant, overrun in MODES:  # on 100 cores, so that some are too wide
        check_same(workload, 100, policy, Run(engine="compiled", instant=instant, overrun=overrun), 113)


@pytest.mark.parametrize(
    "log", ["generated", *(pytest.param(name, marks=[pytest.mark.others, pytest.mark.long]) for name in LOGS)]
)
def test_a_log_in_blocks_makes_the_record_of_the_whole(log: str, others: Callable[[str], Path]) -> None:
    drawn = log == "generated"
    workload = Lublin(jobs=1500, load=0.9).generate(seed=2) if drawn else read_workload(others(f"swf/{log}.swf.gz"))
    workload = workload.select(slice(0, 4000))
    cores = int(workload.cores_stated or workload.cores.max())
    for policy, (instant, overrun) in zip(("easy", "fcfs", "easy?ordering=sjf", "conservative"), MODES, strict=True):
        check_same(workload, cores, policy, Run(engine="compiled", instant=instant, overrun=overrun), 517)


def test_progress_counts_all_jobs() -> None:
    workload = Lublin(jobs=1000, cores=64, estimates="multiples").generate(seed=1)
    told: list[int] = []
    for _ in ended_jobs(blocks_of(workload, 300), Platform.single(64), "easy", Run(), progress=told.append):
        pass
    assert told == sorted(told)
    assert told[-1] <= 1000


def test_jobs_are_reported_when_they_are_over_and_not_all_at_the_end() -> None:
    workload = Lublin(jobs=3000, cores=64, load=0.5, estimates="multiples").generate(seed=1)
    ended = ended_jobs(blocks_of(workload, 300), Platform.single(64), "easy", Run())
    counts = [len(found.rows) for found, _ in ended]
    assert len(counts) >= 10
    assert sum(counts) == 3000
    assert max(counts) < 600


def test_blocks_share_no_instant() -> None:
    workload = Workload.from_columns(submit=[0, 1, 1, 1, 2, 2], runtime=[1] * 6, cores=1)
    found = [(block.submit // 1_000_000, more) for block, more in split_between_instants(blocks_of(workload, 2))]
    assert [(column.tolist(), more) for column, more in found] == [([0], True), ([1, 1, 1], True), ([2, 2], False)]


def test_a_job_that_precedes_the_one_above_it_is_named() -> None:
    workload = Workload.from_columns(submit=[0, 4, 9], runtime=[1] * 3, cores=1, provenance={"source": "some.parquet"})
    turned = [workload.select([0]), workload.select([2]), workload.select([1])]
    with pytest.raises(InputError, match="is 4 s, and 9 s in the row above") as told:
        list(split_between_instants(turned))
    assert (told.value.path, told.value.line, told.value.field) == ("some.parquet", 3, "submit")


@pytest.mark.parametrize(
    ("policy", "options", "why"),
    [
        ("easy++", Run(), "sorts or predicts by more than the request of each job"),
        ("easy?ordering=random", Run(), "sorts or predicts by more than the request of each job"),
        ("easy", Run(engine="simpy"), "simpy is requested"),
        ("easy", Run(until=5.0), "it pauses before its end"),
        ("easy", Run(limits="clip"), "jobs above a time limit are changed"),
    ],
)
def test_options_that_need_all_jobs_are_refused_with_a_reason(policy: str, options: Run, why: str) -> None:
    assert why in why_not_streamed(policy, options)
    with pytest.raises(InputError, match="leave out --stream"):
        next(ended_jobs([], Platform.single(4), policy, options))


# -- result directories ------------------------------------------------------------------------------------------------

SCENARIO = Scenario(model="lublin?jobs=400&cores=64&load=0.9&estimates=multiples&users=5", policy="easy")


def small(scenario: Scenario, block: int = 60) -> LublinBlocks:
    return LublinBlocks(Lublin(400, 64, 0.9, estimates="multiples", users=5), scenario.options.seed, block=block)


def check_folders(one: Path, other: Path) -> None:
    """The same tables and numbers."""
    found, known = read_table(one), read_table(other)
    assert list(found) == list(known)
    for name, column in known.items():
        assert found[name].dtype == column.dtype
        assert found[name].tolist() == column.tolist() or column.dtype.kind == "f", name
        if column.dtype.kind == "f":
            assert found[name].tobytes() == column.tobytes(), name
    assert (one / "metrics.json").read_bytes() == (other / "metrics.json").read_bytes()


@pytest.mark.parquet
@pytest.mark.parametrize("block", [7, 60, 1000])
def test_the_folder_is_that_of_a_run_that_holds_all_jobs(tmp_path: Path, block: int) -> None:
    scenario = replace(SCENARIO, label="today", metrics=["wait_mean"])
    told: list[int] = []
    found = scenario.stream(tmp_path / "streamed", small(scenario, block), progress=told.append)
    scenario.run().write(tmp_path / "whole", table="parquet")
    check_folders(tmp_path / "streamed", tmp_path / "whole")
    assert found.simulated
    assert found.metrics == json.loads((tmp_path / "streamed" / "metrics.json").read_text())
    assert sorted(path.name for path in (tmp_path / "streamed").iterdir()) == [
        "jobs.parquet",
        "metrics.json",
        "run.json",
    ]
    run_json = json.loads((tmp_path / "streamed" / "run.json").read_text())
    assert (run_json["label"], run_json["policy"]) == ("today", "Backfilling(ordering=Fifo(), reserve=Easy())")


@pytest.mark.long
@pytest.mark.parquet
def test_the_table_of_a_run_is_a_log_that_streams(tmp_path: Path) -> None:
    SCENARIO.stream(tmp_path / "first")
    again = Scenario(file=str(tmp_path / "first" / "jobs.parquet"), cores=64, policy="conservative")
    again.stream(tmp_path / "second", ParquetJobs(tmp_path / "first" / "jobs.parquet", block=50))
    replace(SCENARIO, policy="conservative").run().write(tmp_path / "whole", table="parquet")
    check_folders(tmp_path / "second", tmp_path / "whole")


@pytest.mark.long
@pytest.mark.parquet
def test_a_record_that_exists_is_not_simulated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = SCENARIO.stream(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(streaming, "ended_jobs", None)
        assert SCENARIO.stream(tmp_path) == (first.metrics, False)
        (tmp_path / "metrics.json").unlink()  # stopped before the numbers, which are computed from the record
        assert SCENARIO.stream(tmp_path) == (first.metrics, False)
        asked = replace(SCENARIO, metrics=["wait_mean"])
        assert not asked.stream(tmp_path).simulated
        assert json.loads((tmp_path / "run.json").read_text())["measures"] == ["wait_mean"]
    for other in (
        replace(SCENARIO, policy="fcfs"),
        replace(SCENARIO, options=Run(overrun="extend")),
        replace(SCENARIO, cores=63),
    ):
        assert other.stream(tmp_path).simulated
    assert SCENARIO.stream(tmp_path) == (first.metrics, True)


@pytest.mark.long
@pytest.mark.parquet
def test_a_table_that_is_not_whole_is_never_taken_for_the_record(tmp_path: Path) -> None:
    SCENARIO.stream(tmp_path)
    known = (tmp_path / "jobs.parquet").read_bytes()
    write_table(tmp_path / "jobs.parquet", {"job": np.arange(3)})
    assert SCENARIO.stream(tmp_path).simulated
    assert (tmp_path / "jobs.parquet").read_bytes() == known


def first_told(folder: Path) -> int:
    """The first job number that a restarted run reports."""
    told: list[int] = []
    SCENARIO.stream(folder, small(SCENARIO, 20), progress=told.append)
    return told[0]


@pytest.mark.long
@pytest.mark.parquet
def test_a_run_that_is_stopped_leaves_nothing_that_looks_done(tmp_path: Path) -> None:
    replace(SCENARIO, policy="fcfs").stream(tmp_path)
    old = (tmp_path / "jobs.parquet").read_bytes()

    def stop(jobs: int) -> None:
        if jobs > 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SCENARIO.stream(tmp_path, small(SCENARIO, 20), progress=stop)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [".jobs.parquet.parts", "jobs.parquet"]  # the latter of the earlier run; nothing says of which
    assert (tmp_path / "jobs.parquet").read_bytes() == old
    (tmp_path / ".jobs.parquet.parts" / "state").write_bytes(b"damaged")
    told: list[int] = []
    assert SCENARIO.stream(tmp_path, small(SCENARIO, 20), progress=told.append).simulated
    assert told[0] == first_told(tmp_path / "other")  # from the start
    assert not (tmp_path / ".jobs.parquet.parts").exists()


@pytest.mark.parquet
@pytest.mark.sampled(4)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_that_is_interrupted_continues_where_it_was(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_PART", 90)
    scenario = replace(SCENARIO, policy=policy)
    told: list[int] = []

    def stop(jobs: int, after: int) -> None:
        told.append(jobs)
        if jobs > after:
            raise KeyboardInterrupt

    for block, after in ((20, 150), (33, 300)):  # twice, in blocks of other sizes
        with pytest.raises(KeyboardInterrupt):
            scenario.stream(tmp_path / "streamed", small(scenario, block), progress=partial(stop, after=after))
    told.clear()
    assert scenario.stream(tmp_path / "streamed", small(scenario, 20), progress=told.append).simulated
    assert min(told) > 250
    scenario.run().write(tmp_path / "whole", table="parquet")
    check_folders(tmp_path / "streamed", tmp_path / "whole")
    assert not (tmp_path / "streamed" / ".jobs.parquet.parts").exists()


@pytest.mark.parquet
def test_a_refused_run_keeps_the_parts_of_an_interrupted_one(tmp_path: Path) -> None:
    def stop(jobs: int) -> None:
        if jobs > 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SCENARIO.stream(tmp_path, small(SCENARIO, 20), progress=stop)
    before = {path.name: path.read_bytes() for path in (tmp_path / ".jobs.parquet.parts").iterdir()}
    with pytest.raises(InputError, match="cannot be simulated block by block"):
        replace(SCENARIO, policy="easy++").stream(tmp_path)
    assert {path.name: path.read_bytes() for path in (tmp_path / ".jobs.parquet.parts").iterdir()} == before
    told: list[int] = []
    SCENARIO.stream(tmp_path, small(SCENARIO, 20), progress=told.append)
    assert min(told) > 250


@pytest.mark.parquet
def test_an_interrupted_run_says_that_it_continues_only_where_it_can(tmp_path: Path) -> None:
    def stop(jobs: int, after: int) -> None:
        if jobs > after:
            raise KeyboardInterrupt

    for block, after, told in ((1000, 0, ()), (20, 300, ("the same command continues from here",))):
        with pytest.raises(KeyboardInterrupt) as found:
            SCENARIO.stream(tmp_path / str(after), small(SCENARIO, block), progress=partial(stop, after=after))
        assert found.value.args == told


@pytest.mark.parquet
def test_parts_of_another_run_are_not_continued(tmp_path: Path) -> None:
    def stop(jobs: int) -> None:
        if jobs > 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace(SCENARIO, policy="fcfs").stream(tmp_path / "streamed", small(SCENARIO, 20), progress=stop)
    SCENARIO.stream(tmp_path / "streamed", small(SCENARIO, 20))
    SCENARIO.run().write(tmp_path / "whole", table="parquet")
    check_folders(tmp_path / "streamed", tmp_path / "whole")


@pytest.mark.long
@pytest.mark.parquet
def test_a_full_disk_is_one_error_that_names_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = tables._write_parquet
    monkeypatch.setattr(tables, "_PART", 90)
    with monkeypatch.context() as patched:
        full = lambda path: path if path.name == "000000.parquet" else Path("/dev/full")  # noqa: E731
        patched.setattr(tables, "_write_parquet", lambda path, columns: write(full(path), columns))
        with pytest.raises(OSError, match="No space left on device") as found:
            SCENARIO.stream(tmp_path, small(SCENARIO, 20))
    assert (found.value.errno, found.value.filename) == (errno.ENOSPC, str(tmp_path / "jobs.parquet"))
    told: list[int] = []
    assert SCENARIO.stream(tmp_path, small(SCENARIO, 20), progress=told.append).simulated
    assert min(told, default=400) > first_told(tmp_path / "other")  # from its checkpoint


@pytest.mark.parquet
def test_a_folder_stays_as_it_is_where_nothing_can_be_streamed(tmp_path: Path) -> None:
    SCENARIO.stream(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    tree = Platform(RouterSpec("root", (ClusterSpec("a", 64), ClusterSpec("b", 64))))
    for scenario, told in (
        (replace(SCENARIO, policy="easy++"), "cannot be simulated block by block: .* sorts or predicts by more"),
        (replace(SCENARIO, platform=tree), "cannot be simulated block by block: the platform has 2 clusters"),
        (replace(SCENARIO, charges=["core-hours"]), "needs a whole record; leave it out, or --stream"),
        (replace(SCENARIO, transforms=["slice?jobs=5"]), "needs the whole workload"),
        (replace(SCENARIO, model="lublin?jobs=5"), "needs all jobs at once"),
        (replace(SCENARIO, model=None, file="log.swf"), "--stream needs one .parquet file"),
    ):
        with pytest.raises(InputError, match=told):
            scenario.stream(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.long
@pytest.mark.parquet
def test_a_job_that_starves_does_not_hold_back_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First-fit delays the wide job to the end: the others are written as they end, and sorted at the end."""
    monkeypatch.setattr(tables, "_MOST_HELD", 40)
    monkeypatch.setattr(tables, "_PART", 20)
    n = 300
    wide = np.arange(n) == 3
    columns = {"submit": np.arange(n) - (np.arange(n) >= 3), "runtime": np.full(n, 1.5), "cores": np.where(wide, 2, 1)}
    write_table(tmp_path / "log.parquet", columns)
    scenario = Scenario(file=str(tmp_path / "log.parquet"), cores=2, policy="first-fit")
    scenario.stream(tmp_path / "streamed", ParquetJobs(tmp_path / "log.parquet", block=11))
    table = read_table(tmp_path / "streamed")
    assert table["job"].tolist() == list(range(1, n + 1))
    assert table["start"][3] == n - 2 + 1.5
    known = simulate(Workload.from_columns(**columns), platform=Platform.single(2), policy="first-fit")
    assert table["start"].tolist() == known.record.start.tolist()
