"""The verb `validate`: a schedule beside its workload."""

from __future__ import annotations

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
    assert validate(log.parent / "out", log) == 1


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
    assert validate(log.parent / "out", log, "--cores", 8) == 0
    assert "8 cores (given)" in capsys.readouterr().out


def test_small_differences_are_told_to_be_none_by_the_tolerance(log: Path) -> None:
    path = log.parent / "rounded.csv"
    path.write_text("job,start,end\n1,0,10.0004\n2,10,20\n3,2,7\n")
    assert validate(path, log) == 1
    assert validate(path, log, "--tolerance", "0.001") == 0


def test_what_cannot_be_read_is_exit_code_2(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log.parent / "theirs.csv"
    path.write_text("job,start,end\n1,0,ten\n")
    assert validate(path, log) == 2
    assert "theirs.csv line 2, field 'end': 'ten' is not a time" in capsys.readouterr().err
    assert validate(path, log.parent / "nowhere.swf") == 2
    assert validate(path, log, "--columns", "begin=start") == 2
