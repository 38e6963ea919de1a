"""``gridsim sweep``, end to end."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gridsim.campaign.store import Store
from gridsim.cli import main, terminal

LOG = """; MaxProcs: 4
1 0 -1 10 3 -1 -1 3 10 -1 1 3 1 -1 -1 -1 -1 -1
2 1 -1 10 2 -1 -1 2 10 -1 1 3 1 -1 -1 -1 -1 -1
3 2 -1 5 1 -1 -1 1 5 -1 1 4 1 -1 -1 -1 -1 -1
"""

RECIPE = """
[workload]
model = "lublin?jobs=20"

[factors]
policy = ["fcfs", "easy"]
seed = {first = 1, last = 3}
"""

PICKY = '''"""First come, first served, not for all."""
from dataclasses import dataclass


@dataclass
class Picky:
    """Refuses one number."""

    number: int = 0

    def rank(self, queue, now):
        if self.number == 1:
            raise RuntimeError("not number 1")
        return queue.submit
'''

WAITING = '''"""First come, first served, when it may."""
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Waiting:
    """Waits for a file next to it."""

    number: int = 0

    def rank(self, queue, now):
        until = time.monotonic() + 300
        while self.number == 1 and not Path("go").exists() and time.monotonic() < until:
            time.sleep(0.01)
        return queue.submit
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sweep(*words: str, text: str | None = RECIPE) -> int:
    if text is not None:
        Path("campaign.toml").write_text(text)
    return main(["sweep", "campaign.toml", "--workers", "1", *words])


def numbered(plugin: str, name: str) -> str:
    """A recipe with three policies from a plain file."""
    Path("mine.py").write_text(plugin)
    return f"""
policy = "easy?ordering=mine.py:{name}(number={{number}})"
[workload]
model = "lublin?jobs=20"
[factors]
number = [0, 1, 2]
"""


def table(store: str = "campaign-results") -> list[dict[str, str]]:
    with (Path(store) / "runs.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_sweep_writes_a_row_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep() == 0
    output = capsys.readouterr()
    assert "6 of 6 runs finished, 0 failed, 0 to do\n" in output.out
    assert output.out.endswith("Written: campaign-results/\n")
    assert [(row["policy"], row["seed"], row["status"]) for row in table()] == [
        (policy, seed, "finished") for seed in "123" for policy in ("fcfs", "easy")
    ]
    assert all(float(row["completed"]) == 20 for row in table())


def test_a_finished_sweep_is_not_touched(capsys: pytest.CaptureFixture[str]) -> None:
    def times() -> dict[Path, int]:
        files = [path for path in Path("campaign-results").rglob("*") if path.is_file() and path.name != "lock"]
        return {path: path.stat().st_mtime_ns for path in files}

    sweep()
    before = times()
    assert sweep() == 0
    assert times() == before
    assert sweep("--status") == 0
    assert times() == before
    assert "6 of 6 runs finished" in capsys.readouterr().out


@pytest.mark.long
def test_tables_that_were_deleted_are_written_again() -> None:
    sweep()
    before = table()
    (Path("campaign-results") / "runs.csv").unlink()
    assert sweep() == 0
    assert table() == before


@pytest.mark.long
def test_a_sweep_that_grew_keeps_its_finished_runs() -> None:
    sweep()
    before = {path: path.stat().st_mtime_ns for path in Path("campaign-results/runs").rglob("*.json")}
    grown = RECIPE.replace('"easy"]', '"easy", "conservative"]').replace("last = 3", "last = 4")
    assert sweep(text='exclude = [{policy = "fcfs", seed = 4}]\n' + grown) == 0
    assert len(table()) == 11
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert sweep(text=RECIPE) == 0
    assert len(table()) == 6


# Progress


def test_plain_lines_report_how_far_it_is_and_how_long_it_will_take(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "_PAUSE", 0.0)
    assert sweep(text=numbered(PICKY, "Picky")) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "1 of 3 runs"  # no estimate yet
    assert lines[1].startswith("failed: number 1: PolicyError: ")
    assert lines[1].endswith("mine.py: RuntimeError: not number 1")
    assert lines[2].startswith("2 of 3 runs, 1 failed, about ")
    assert lines[2].endswith(" left")
    assert lines[3] == "3 of 3 runs, 1 failed"


def test_many_failures_are_only_counted(capsys: pytest.CaptureFixture[str]) -> None:
    text = numbered(PICKY.replace("== 1", ">= 0"), "Picky").replace("[factors]", "[factors]\nseed = [1, 2, 3, 4, 5]")
    assert sweep(text=text) == 1
    output = capsys.readouterr()
    assert output.err.count("failed: seed") == 10
    assert "further failures are only counted" in output.err
    assert output.err.splitlines()[-1] == "15 of 15 runs, 15 failed"
    assert output.out.count("failed: seed") == 10
    assert "… and 5 more in campaign-results/failed" in output.out
    assert {row["status"] for row in table()} == {"failed"}


def test_status_before_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep("--status") == 0
    assert capsys.readouterr().out.startswith("0 of 6 runs finished, 0 failed, 6 to do\n")
    assert not Path("campaign-results").exists()
    assert sweep("--shard", "1/2") == 0
    capsys.readouterr()
    assert sweep("--status", "--json") == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["finished"], output["failed"], output["left"], output["total"]) == (4, 0, 2, 6)
    assert output["driver"] is None
    assert output["cpu"] > 0


@pytest.mark.long
def test_status_while_another_process_works(capsys: pytest.CaptureFixture[str]) -> None:
    Path("campaign.toml").write_text(numbered(WAITING, "Waiting"))
    words = [sys.executable, "-m", "gridsim", "sweep", "campaign.toml", "--workers", "1"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver:
        try:
            until = time.monotonic() + 300
            while not list(Path().glob("campaign-results/runs/*/*.json")):
                assert time.monotonic() < until
                time.sleep(0.02)
            assert sweep("--status", text=None) == 0
            output = capsys.readouterr().out
            assert output.startswith("1 of 3 runs finished, 0 failed, 2 to do\n")
            assert f"worked on by process {driver.pid} on " in output
            assert sweep(text=None) == 2
            assert f"is in use by process {driver.pid} on " in capsys.readouterr().err
        finally:
            Path("go").touch()
        assert driver.wait(300) == 0


def test_json_alone_is_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep("--json", text=numbered(PICKY, "Picky")) == 1
    output = json.loads(capsys.readouterr().out)
    assert (output["finished"], output["failed"], output["left"]) == (2, 1, 0)
    (failure,) = output["failures"]
    assert failure["unit"] == "number 1"
    assert failure["error"].endswith("RuntimeError: not number 1")
    assert "mine.py" in failure["traceback"]


# What fails


def test_a_run_that_fails_is_reported_and_run_again_when_requested(capsys: pytest.CaptureFixture[str]) -> None:
    text = numbered(PICKY, "Picky")
    for words, output in [
        ((), "failed: number"),
        ((), "gridsim sweep --retry-failed"),
        (("--retry-failed",), "1 failed"),
    ]:
        assert sweep(*words, text=text) == 1
        assert output in capsys.readouterr().out
    journal = [json.loads(line) for line in Path("campaign-results/journal.jsonl").read_text().splitlines()]
    assert len(journal) == 4
    assert sum("error" in entry for entry in journal) == 2


def test_a_policy_that_was_mended_is_run_again_and_the_old_failure_is_forgotten(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sweep(text=numbered(PICKY, "Picky"))
    capsys.readouterr()
    assert sweep(text=numbered(PICKY.replace("self.number == 1", "False"), "Picky")) == 0
    output = capsys.readouterr()
    assert "mine.py has changed: all its runs are repeated" in output.err
    assert "3 of 3 runs finished, 0 failed, 0 to do\n" in output.out
    assert "failed:" not in output.out
    assert [row["status"] for row in table()] == ["finished"] * 3


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def change(path: Path) -> None:
    output = json.loads(path.read_text())
    output["metrics"]["wait_mean"] += 1000.0
    path.write_text(json.dumps(output, indent=1) + "\n")


@pytest.mark.parametrize("damage", [cut, empty, change])
@pytest.mark.parametrize("tables", ["are there", "were deleted"])
def test_a_damaged_result_is_computed_again_and_that_is_said(
    damage: Callable[[Path], None], tables: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep()
    before = contents(Path("campaign-results"))
    damaged = sorted(Path("campaign-results/runs").rglob("*.json"))[3]
    damage(damaged)
    if tables == "were deleted":
        (Path("campaign-results") / "runs.csv").unlink()
    capsys.readouterr()
    assert sweep("--status") == 0
    output = capsys.readouterr()
    assert "5 of 6 runs finished, 0 failed, 1 to do" in output.out
    assert "1 damaged result; the next call runs them again" in output.err
    with pytest.warns(UserWarning, match=f"1 damaged result discarded, which run again: {damaged}"):
        assert sweep() == 0
    assert contents(Path("campaign-results")) == before


def contents(store: Path) -> dict[str, bytes]:
    """All files of a store except those that contain creation times."""
    own = [path for path in store.rglob("*") if path.is_file() and not path.name.startswith(("journal", "lock"))]
    return {str(path): path.read_bytes() for path in own}


@pytest.mark.long
def test_damaged_records_are_computed_again() -> None:
    text = "records = true\n" + RECIPE
    sweep(text=text)
    before = contents(Path("campaign-results"))
    one, other = sorted(Path("campaign-results/records").iterdir())[:2]
    (one / "jobs.csv").unlink()
    cut(other / "metrics.json")
    with pytest.warns(UserWarning, match="2 damaged results discarded"):
        assert sweep(text=text) == 0
    assert contents(Path("campaign-results")) == before


@pytest.mark.sampled(4)
@pytest.mark.parametrize("damage", [cut, empty, Path.unlink])
@pytest.mark.parametrize("name", ["runs.csv", "comparisons.csv", "means.csv", "comparisons.html", "tables.json"])
def test_a_table_that_is_damaged_or_was_deleted_is_written_again(damage: Callable[[Path], None], name: str) -> None:
    sweep()
    before = contents(Path("campaign-results"))
    damage(Path("campaign-results") / name)
    assert sweep() == 0
    assert contents(Path("campaign-results")) == before


@pytest.mark.long
def test_tables_of_falsified_results_are_made_again() -> None:
    """Results of an earlier version, which did not verify them."""
    sweep()
    before = contents(Path("campaign-results"))
    changed = sorted(Path("campaign-results/runs").rglob("*.json"))[0]
    change(changed)
    (Path("campaign-results") / "checksums.jsonl").unlink()
    with pytest.warns(UserWarning, match="6 results of an earlier version without checksums"):
        assert sweep() == 0
    assert contents(Path("campaign-results")) != before
    changed.unlink()
    assert sweep() == 0
    assert contents(Path("campaign-results")) == before


def test_a_store_of_an_earlier_version_continues_without_its_torn_results() -> None:
    sweep()
    before = contents(Path("campaign-results"))
    files = sorted(Path("campaign-results/runs").rglob("*.json"))
    times = [path.stat().st_mtime_ns for path in files]
    (Path("campaign-results") / "checksums.jsonl").unlink()
    cut(files[2])
    with pytest.warns(UserWarning, match="earlier version|damaged") as caught:
        assert sweep() == 0
    assert "5 results of an earlier version without checksums" in str(caught[0].message)
    assert f"1 damaged result discarded, which run again: {files[2]}" in str(caught[1].message)
    assert contents(Path("campaign-results")) == before
    assert [path.stat().st_mtime_ns == time for path, time in zip(files, times, strict=True)] == [
        True,
        True,
        False,
        True,
        True,
        True,
    ]


def test_a_damaged_index_costs_runs_and_no_truth() -> None:
    sweep()
    before = contents(Path("campaign-results"))
    index = Path("campaign-results/checksums.jsonl")
    index.write_bytes(index.read_bytes()[:-30] + b"\xff[1]\n[[\n")
    with pytest.warns(UserWarning, match="1 damaged result discarded"):
        assert sweep() == 0
    assert contents(Path("campaign-results")) == before


# What does not fit


def refused(capsys: pytest.CaptureFixture[str], *words: str, text: str | None = RECIPE) -> str:
    runs = sorted(Path("campaign-results").rglob("*"))
    capsys.readouterr()
    assert sweep(*words, text=text) == 2
    output = capsys.readouterr().err
    assert output.startswith("gridsim: error: ")
    assert sorted(Path("campaign-results").rglob("*")) == runs
    return output


@pytest.mark.parametrize("words", [(), ("--status",)])
def test_a_log_that_changed_is_noticed(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    Path("log.swf").write_text(LOG)
    text = '[workload]\nfile = "log.swf"\n[factors]\npolicy = ["fcfs"]\n'
    assert sweep(text=text) == 0
    Path("log.swf").write_text(LOG.replace("10", "11"))
    output = refused(capsys, *words, text=text)
    assert "log.swf: has changed since results were made from it (SHA-256 " in output
    Path("log.swf").write_text(LOG)
    assert sweep(text=text) == 0


def test_results_of_something_else_are_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep()
    assert "campaign-results: holds results of another sweep" in refused(
        capsys, text=RECIPE.replace("jobs=20", "jobs=30")
    )
    note = Path("campaign-results/campaign.json")
    text = note.read_text()
    note.write_text(text.replace('"version": "', '"version": "9.'))
    assert "campaign.json, field 'version': the folder has results of \"9." in refused(capsys)
    note.write_text(text[:50])
    assert "campaign.json line 4: is not valid JSON" in refused(capsys)
    note.unlink()
    Store("campaign-results").claim({"version": json.loads(text)["version"], "loads": [0.5, 1.0]})  # of a paper
    assert "campaign.json, field 'loads': the folder has results of [0.5, 1.0], not null" in refused(capsys)


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (("--workers", "0"), "0 workers; expected at least 1"),
        (("--dask", "tcp://127.0.0.1:9"), "leave out one of them"),
        (("--shard", "4/3"), "'4/3' is not a part"),
        (("--out", "campaign.toml"), "campaign.toml/campaign.json: Not a directory"),
    ],
)
def test_bad_words_are_refused(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], output: str) -> None:
    assert output in refused(capsys, *words)


def test_one_campaign_at_a_time_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "campaign.toml", "more.toml"]) == 2
    assert "'more.toml' is one argument too many; give one campaign" in capsys.readouterr().err


# Parts


@pytest.mark.long
def test_parts_are_merged(capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        assert sweep("--shard", f"{number}/2", "--out", f"part-{number}") == 0
        assert not Path(f"part-{number}/runs.csv").exists()
    assert main(["sweep", "merge", "part-2", "--out", "whole"]) == 1
    assert "2 of 6 runs finished, 0 failed, 4 to do" in capsys.readouterr().out
    for _ in range(2):  # the second call has nothing to do
        assert main(["sweep", "merge", "part-1", "part-2", "--out", "whole"]) == 0
    output = capsys.readouterr()
    assert "part-1: 4 results copied" in output.err
    assert "part-1: 0 results copied" in output.err
    sweep()
    assert table("whole") == table()


@pytest.mark.long
def test_damaged_results_are_not_merged(capsys: pytest.CaptureFixture[str]) -> None:
    for part in (1, 2):
        sweep("--shard", f"{part}/2", "--out", f"part-{part}")
    damaged = sorted(Path("part-1/runs").rglob("*.json"))[0]
    whole = damaged.read_bytes()
    change(damaged)
    words = ["sweep", "merge", "part-1", "part-2", "--out", "whole"]
    with pytest.warns(UserWarning, match=f"{damaged} is damaged and was not copied"):
        assert main(words) == 1
    assert [row["status"] for row in table("whole")].count("missing") == 1
    damaged.write_bytes(whole)
    assert main(words) == 0
    sweep()
    assert table("whole") == table()
    assert Path("whole/checksums.jsonl").read_bytes() == Path("campaign-results/checksums.jsonl").read_bytes()


@pytest.mark.long
def test_stores_that_cannot_be_merged_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    sweep("--out", "one")
    sweep("--out", "other", text=RECIPE.replace("last = 3", "last = 4"))
    capsys.readouterr()
    for words, output in [
        (["one"], "expected gridsim sweep merge STORE [STORE ...] --out DIR"),
        (["--out", "whole"], "expected gridsim sweep merge"),
        (["none", "--out", "whole"], "none: holds no results of a sweep"),
        (["one", "other", "--out", "whole"], "field 'sweep': the folder has results of"),
    ]:
        assert main(["sweep", "merge", *words]) == 2
        assert output in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    def full(_: int) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        assert sweep() == 2
    output = capsys.readouterr().err
    assert "gridsim: error: campaign-results/runs/" in output
    assert output.endswith(".json: No space left on device\n")
    assert sweep() == 0


def test_resampled_users_of_a_short_log_are_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep("--resample", "2") == 0
    assert "single users dominate" in " ".join(capsys.readouterr().out.split())
