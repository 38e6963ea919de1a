"""Names of users, accounts and partitions: in a result folder, and in the explanation of a job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import gridsim as gs
from gridsim.cli import main
from gridsim.errors import InputError
from gridsim.questions.explain import explain
from gridsim.questions.schedules import JobSchedule, read_schedules
from gridsim.report.explain_text import sentences
from gridsim.result import Result
from gridsim.tables import NAMES, read_names

HOSTILE = '<script>alert(1)</script>,"\n=2+2'


def named() -> Result:
    """Four cores: ann's wide job waits behind bob's while two narrow jobs of bob and one of ann overtake it."""
    jobs = gs.Workload.from_columns(
        submit=[0, 1, 2, 3, 4],
        runtime=[100, 100, 10, 10, 10],
        cores=[3, 4, 1, 1, 1],
        labels={"user": [2, 1, 2, 2, 1], "account": [1, 2, 1, 1, 2], "partition": [1, 1, 1, 1, 1], "qos": [-1] * 5},
    )
    names = {
        "user": ("", "ann", "bob"),
        "account": ("", HOSTILE, "physics"),
        "partition": ("", "long"),
        "qos": ("", "low"),
    }
    dates = {"clock": {"origin": 1_795_244_026, "zone": "UTC"}}
    return gs.simulate(replace(jobs, names=names, provenance=dates), platform=gs.Platform.single(4), policy="easy")


def test_a_folder_reports_names_as_the_record_does(tmp_path: Path) -> None:
    result = named()
    result.write(tmp_path)
    (schedule,) = read_schedules(tmp_path).values()
    for job in result.workload.job.tolist():
        mine, theirs = explain(JobSchedule.of(result.record), job), explain(schedule, job)
        assert sentences(mine, "easy") == sentences(theirs, "easy")
    assert read_names(tmp_path)["account"] == {1: HOSTILE, 2: "physics"}
    assert "qos" not in read_names(tmp_path)
    assert "account,partition,qos" in (tmp_path / "jobs.csv").read_text().partition("\n")[0]


def test_a_job_that_passed_is_reported_by_name(tmp_path: Path) -> None:
    named().write(tmp_path)
    (schedule,) = read_schedules(tmp_path).values()
    told = " ".join(sentences(explain(schedule, 2), "easy"))
    assert told.startswith("Job 2 of user ann (account physics, partition long) requested 4 cores of 4")
    assert "): 2 of user bob and 1 of the same user." in told
    assert "It was submitted at 2026-11-21 06:53:47 and started at 2026-11-21 06:55:26." in told


def test_a_log_of_numbers_stays_one(tmp_path: Path) -> None:
    result = named()
    bare = replace(result.record, workload=replace(result.workload, names={}))
    (tmp_path / NAMES).write_text("left by an earlier run")
    replace(result, record=bare).write(tmp_path)
    assert not (tmp_path / NAMES).exists()
    (schedule,) = read_schedules(tmp_path).values()
    assert sentences(explain(schedule, 2), "easy")[0].startswith("Job 2 of user 1 requested")
    assert "account" not in (tmp_path / "jobs.csv").read_text().partition("\n")[0]


def test_a_damaged_file_of_names_is_refused(tmp_path: Path) -> None:
    named().write(tmp_path)
    (tmp_path / NAMES).write_text("label,number,name\nuser,x,ann\n")
    with pytest.raises(InputError, match="expected label, number and name"):
        read_schedules(tmp_path)


def test_a_log_of_slurm_is_explained_by_name(run_a: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = run_a / "logs" / "sacct_P_X.txt.gz"
    words = ["compare", str(log), "--machine", "32", "--policy", "fcfs", "--policy", "easy", "--no-page"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["explain", str(tmp_path), "--policy", "easy"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "(account " in told
    assert "of user 1" not in told
