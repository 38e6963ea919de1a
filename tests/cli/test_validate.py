"""The verb `validate`: a schedule and its workload."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import gridsim as gs
from gridsim.cli import main

LOG = """\
; Version: 2.2
; MaxProcs: 4
1 0 -1 10 3 -1 -1 3 10 -1 1 1 -1 -1 -1 -1 -1 -1
2 1 -1 10 4 -1 -1 4 20 -1 1 1 -1 -1 -1 -1 -1 -1
3 2 -1 9 1 -1 -1 1 5 -1 1 1 -1 -1 -1 -1 -1 -1
"""

LONG = """\
; MaxProcs: 8
1 0 -1 39600 8 -1 -1 8 43200 -1 1 1 -1 -1 -1 -1 -1 -1
2 60 -1 3600 8 -1 -1 8 7200 -1 1 1 -1 -1 -1 -1 -1 -1
3 120 -1 50000 4 -1 -1 4 43200 -1 1 2 -1 -1 -1 -1 -1 -1
4 180 -1 600 4 -1 -1 4 43200 -1 1 2 -1 -1 -1 -1 -1 -1
5 240 -1 5400 4 -1 -1 4 3600 -1 1 2 -1 -1 -1 -1 -1 -1
"""


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """Two nodes of four cores with a time limit of four hours; three of five jobs request twelve."""
    (tmp_path / "slurm.conf").write_text(
        "NodeName=n[1-2] CPUs=4\nPartitionName=all Nodes=n[1-2] Default=YES MaxTime=04:00:00\n"
    )
    path = tmp_path / "long.swf"
    path.write_text(LONG)
    return path


def limited(log: Path, *words: str) -> Path:
    out = log.parent / "out"
    policy = f"site=slurm?conf={log.parent}/slurm.conf"
    assert main(["compare", str(log), "--policy", policy, "--out", str(out), "--no-page", *words]) == 0
    return next(found.parent for found in out.glob("**/jobs.csv"))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    path.write_text(LOG)
    return path


def validate(*words: object) -> int:
    return main(["validate", *map(str, words)])


@pytest.mark.parametrize("overrun", ["kill", "extend"])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_our_results_are_valid(policy: str, overrun: str, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gs.simulate(gs.read_workload(log), policy=policy, overrun=overrun).write(log.parent / "out")  # type: ignore[arg-type]
    assert validate(log.parent / "out", log, "--overrun", overrun) == 0
    out = capsys.readouterr().out
    assert "3 jobs; machine: 4 cores (MaxProcs)" in out
    assert out.splitlines()[-1].startswith("valid: none of ")


def test_the_rule_for_overruns_matters(log: Path) -> None:
    gs.simulate(gs.read_workload(log), policy="fcfs", overrun="extend").write(log.parent / "out")
    assert validate(log.parent / "out", log) == 0, "a result directory says its own"
    assert validate(log.parent / "out", log, "--overrun", "kill") == 1


def test_violations_are_named_with_jobs_and_instants(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log.parent / "theirs.csv"
    path.write_text("number,begin,finish\n1,0,10\n2,9,19\n3,2,7\n")
    assert validate(path, log, "--columns", "job=number") == 1
    out = capsys.readouterr().out
    assert "violated  oversubscribed: 1 (jobs 2): 7 of 4 cores in use; first at 9 s" in out
    assert out.splitlines()[-1] == "1 violation found"


def test_json_holds_the_violations(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log.parent / "theirs.csv"
    path.write_text("job,start,end\n1,0,10\n2,10,20\n")
    assert validate(path, log, "--json") == 1
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["jobs"], facts["cores"], facts["cores_from"]) == (2, 3, 4, "MaxProcs")
    assert [(found["kind"], found["jobs"]) for found in facts["violations"]] == [("missing-job", [3])]


def test_the_machine_may_be_given(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gs.simulate(gs.read_workload(log), policy="easy").write(log.parent / "out")
    assert validate(log.parent / "out", log, "--machine", 8) == 0
    assert "8 cores (given)" in capsys.readouterr().out


def test_differences_below_the_tolerance_are_reported_as_none(log: Path) -> None:
    path = log.parent / "rounded.csv"
    path.write_text("job,start,end\n1,0,10.0004\n2,10,20\n3,2,7\n")
    assert validate(path, log) == 1
    assert validate(path, log, "--tolerance", "0.001") == 0


def test_unreadable_input_is_exit_code_2(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log.parent / "theirs.csv"
    path.write_text("job,start,end\n1,0,ten\n")
    assert validate(path, log) == 2
    assert "theirs.csv line 2, field 'end': 'ten' is not a time" in capsys.readouterr().err
    assert validate(path, log.parent / "nowhere.swf") == 2
    assert validate(path, log, "--columns", "begin=start") == 2


@pytest.mark.sampled(4)
@pytest.mark.parametrize("overrun", ["kill", "extend"])
@pytest.mark.parametrize("limits", ["refuse", "clip", "split"])
def test_results_of_jobs_above_a_limit_are_valid_alone_and_with_their_log(
    limits: str, overrun: str, long: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = limited(long, "--limits", limits, "--overrun", overrun)
    assert (folder / "pieces.csv").is_file() == (limits == "split")
    capsys.readouterr()
    assert validate(folder) == 0, capsys.readouterr().out
    assert validate(folder, long) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        ({"job": 0, "start": -4000.0}, "two-runs-at-once"),  # starts before its job was submitted
        ({"job": 1, "start": -4000.0}, "two-runs-at-once"),  # the two pieces before the last one overlap
        ({"job": 1, "end": 4000.0}, "two-runs-at-once"),  # longer than the limit
        ({"job": 1, "end": -400.0}, "wrong-end"),  # the pieces do not add up to the job
        ({"job": 1, "gone": 1.0}, "two-runs-at-once"),
    ],
)
def test_a_damaged_chain_is_found(
    damage: dict[str, float], kind: str, long: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = limited(long, "--limits", "split")
    rows = list(csv.DictReader((folder / "pieces.csv").open()))
    row = [row for row in rows if row["job"] == "1"][int(damage.pop("job"))]
    if damage.pop("gone", 0):
        rows.remove(row)
    row |= {name: str(float(row[name]) + by) for name, by in damage.items()}
    with (folder / "pieces.csv").open("w") as file:
        written = csv.DictWriter(file, list(row))
        written.writeheader()
        written.writerows(rows)
    capsys.readouterr()
    assert validate(folder) == 1
    assert f"violated  {kind}: 1 (jobs 1)" in capsys.readouterr().out


def test_a_clipped_job_that_ran_on_is_found(long: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = limited(long, "--limits", "clip", "--overrun", "extend")
    rows = list(csv.DictReader((folder / "jobs.csv").open()))
    assert rows[0]["status"] == "killed_walltime"
    rows[0] |= {"end": str(float(rows[0]["end"]) + 60)}
    with (folder / "jobs.csv").open("w") as file:
        written = csv.DictWriter(file, list(rows[0]))
        written.writeheader()
        written.writerows(rows)
    capsys.readouterr()
    assert validate(folder) == 1
    assert "violated  wrong-end: 1 (jobs 1)" in capsys.readouterr().out
