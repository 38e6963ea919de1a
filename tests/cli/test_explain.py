"""Commands of ``gridsim explain``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gridsim.cli import main

SITE = Path(__file__).resolve().parents[2] / "scenarios" / "examples" / "site.swf"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    assert main(["compare", str(SITE), "--policy", "fcfs", "--policy", "easy", "--no-page", "--out", str(folder)]) == 0
    return folder


def test_the_longest_wait_is_explained_and_reported_for_each_policy(
    compared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(compared)]) == 0
    output = capsys.readouterr().out
    assert "waited 2 d 5 h" in output.replace("\n", " ")
    assert "starts after" in output
    assert "\n easy " in output


def test_json_holds_the_same(compared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(compared), "387", "--policy", "easy", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["job"] == 387
    assert output["policy"] == "easy"
    assert output["wait"] == output["policies"]["easy"]["wait"]
    assert output["short"] + output["enough"] == pytest.approx(output["wait"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["99999"], "there is no job 99999; numbers go from 1 to"),
        (["38_7"], "there is no job 38_7: these jobs have only numbers"),  # Python's int("38_7") returns 387
        (["38-7"], "'38-7' is not a job; expected a job as sacct names it"),
        (["1", "--policy", "easi"], "did you mean 'easy'?"),
    ],
)
def test_missing_parts_are_named(
    compared: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(compared), *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


ARRAYS = """JobID|JobIDRaw|User|Submit|Start|End|Timelimit|State|AllocCPUS
387|387|ann|2026-11-21T06:00:00|2026-11-21T06:00:00|2026-11-21T06:10:00|00:20:00|COMPLETED|4
38_7|388|bob|2026-11-21T06:00:01|2026-11-21T06:10:00|2026-11-21T06:20:00|00:20:00|COMPLETED|3
38_8|389|bob|2026-11-21T06:00:01|2026-11-21T06:10:00|2026-11-21T06:20:00|00:20:00|COMPLETED|1
40+0|40|bob|2026-11-21T06:00:02|2026-11-21T06:20:00|2026-11-21T06:30:00|00:20:00|COMPLETED|1
40+1|41|bob|2026-11-21T06:00:02|2026-11-21T06:20:00|2026-11-21T06:30:00|00:20:00|COMPLETED|1
"""


@pytest.mark.parametrize("table", ["csv", pytest.param("parquet", marks=pytest.mark.parquet)])
@pytest.mark.parametrize(
    ("asked", "number", "said"),
    [
        ("38_7", 388, "Job 38_7 (number 388) of user bob"),
        ("38_[8].batch", 389, "Job 38_8 (number 389)"),
        ("40+1.0", 41, "Job 40+1 (number 41)"),
        ("387", 387, "Job 387 of user ann"),
    ],
)
def test_a_job_is_selected_by_the_id_that_its_user_knows(
    asked: str, number: int, said: str, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "sacct.txt"
    log.write_text(ARRAYS)
    words = ["compare", str(log), "--machine", "4", "--policy", "fcfs", "--no-page", "--table", table]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert main(["explain", str(tmp_path / "out"), asked]) == 0
    first, second = " ".join(capsys.readouterr().out.split()).split(". ")[:2]
    assert first.startswith("In the log, this job waited ")
    assert second.startswith(said)
    assert main(["explain", str(tmp_path / "out"), asked, "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["job"], output["id"]) == (number, said.split()[1])


LOGGED = """JobID|JobIDRaw|User|Submit|Start|End|Timelimit|State|AllocCPUS|Reason
1|1|ann|2026-11-21T06:00:00|2026-11-21T06:00:00|2026-11-21T06:10:00|00:20:00|COMPLETED|3|None
2|2|bob|2026-11-21T06:00:01|2026-11-21T06:14:16|2026-11-21T06:24:16|00:20:00|COMPLETED|4|Licenses
3|3|bob|2026-11-21T06:00:02|2026-11-21T06:00:02|2026-11-21T06:05:02|00:08:00|COMPLETED|1|None
4|4|bob|2026-11-21T06:00:03|Unknown|2026-11-21T06:00:04|00:20:00|CANCELLED|1|None
"""
"""Job 3 was backfilled ahead of job 2, which arrival order does not allow."""


@pytest.mark.parametrize(
    ("words", "job", "output"),
    [
        (
            [],
            "3",
            "In the log, this job waited 0 s; the simulation gives 0 s, which agrees. Job 3 of user bob requested",
        ),
        ([], "1", "In the log, this job waited 0 s; the simulation gives 0 s, which agrees."),
        (
            ["--own", "fcfs"],
            "3",
            "In the log, this job waited 0 s; the simulation gives 19 min 58 s, so the explanation below is not that "
            "of the recorded wait.",
        ),
        (
            ["--own", "fcfs"],
            "2",
            "In the log, this job waited 14 min 15 s (reason Licenses); the simulation gives 9 min 59 s, so the "
            "explanation below is not that of the recorded wait.",
        ),
    ],
)
def test_the_answer_begins_with_the_wait_in_the_log_under_the_own_or_the_nearest_policy(
    words: list[str], job: str, output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, out = tmp_path / "sacct.txt", str(tmp_path / "out")
    log.write_text(LOGGED)
    policies = ["--policy", "fcfs", "--policy", "easy", *words]
    assert main(["compare", str(log), "--machine", "4", *policies, "--no-page", "--out", out]) == 0
    capsys.readouterr()
    assert main(["explain", out, job]) == 0
    assert " ".join(capsys.readouterr().out.split()).startswith(output)
    assert main(["explain", out, job, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["policy"] == ("fcfs" if words else "easy")
    assert found["logged_reason"] == ("Licenses" if job == "2" else "")


def test_a_folder_whose_own_policy_is_missing_is_refused(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(compared, tmp_path / "copy")
    run = json.loads((tmp_path / "copy" / "run.json").read_text())
    (tmp_path / "copy" / "run.json").write_text(json.dumps({**run, "own": "today"}))
    assert main(["explain", str(tmp_path / "copy")]) == 2
    assert "field 'own': is 'today'; expected one of fcfs, easy" in " ".join(capsys.readouterr().err.split())
