"""The reader for `sacct` output: each special case in a short log, and damage of every kind."""

from __future__ import annotations

import csv
import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.time import NEVER
from gridsim.workload.formats.sacct import COMMAND, looks_like_sacct, read_sacct
from gridsim.workload.formats.sacct.screening import SacctIntake
from gridsim.workload.problems import Problems
from gridsim.workload.read import read_workload

COLUMNS = (
    "JobID JobIDRaw JobName User Account Partition QOS Submit Eligible Start End ElapsedRaw TimelimitRaw State "
    + ("NNodes ReqCPUS AllocCPUS")
)
NAMES = COLUMNS.split()


def clock(seconds: int | str, day: str = "2026-01-05") -> str:
    """Return local time for seconds after midnight; leave words unchanged."""
    if isinstance(seconds, str):
        return seconds
    return f"{day}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def job(number: Any = 1, **more: Any) -> dict[str, str]:
    """Return a job that was submitted at 100 s and ran for 10 s from 105 s on."""
    values: dict[str, Any] = {
        "JobID": number,
        "JobIDRaw": number,
        "JobName": "run",
        "User": "ann",
        "Account": "physics",
        "Partition": "batch",
        "QOS": "normal",
        "Submit": 100,
        "Eligible": 100,
        "Start": 105,
        "End": 115,
        "ElapsedRaw": 10,
        "TimelimitRaw": 5,
        "State": "COMPLETED",
        "NNodes": 1,
        "ReqCPUS": 2,
        "AllocCPUS": 4,
        **more,
    }
    times = ("Submit", "Eligible", "Start", "End")
    return {name: clock(value) if name in times else str(value) for name, value in values.items()}


def text(*jobs: dict[str, str], names: list[str] | None = None, delimiter: str = "|") -> str:
    names = names or list(dict.fromkeys(name for entry in jobs for name in entry))
    rows = [names, *([entry.get(name, "") for name in names] for entry in jobs)]
    return "".join(delimiter.join(row) + "\n" for row in rows)


@pytest.fixture
def log(tmp_path):
    """Write jobs as lines, or a text as it is, and read them."""

    def reading(*jobs: Any, names: list[str] | None = None, delimiter: str = "|", **options: Any):
        path = tmp_path / "sacct.txt"
        content = jobs[0] if isinstance(jobs[0], str) else text(*jobs, names=names, delimiter=delimiter)
        path.write_text(content)
        return read_sacct(path, **options)

    return reading


def found(workload) -> dict[str, int]:
    return {entry["kind"]: entry["count"] for entry in workload.provenance["problems"]}


def names_of(workload, label: str) -> list[str]:
    return [workload.names[label][number] for number in workload.labels[label]]


# Forms


def test_a_job_is_what_its_line_states(log):
    workload = log(job(7), job(8, Submit=101, Eligible=101))
    assert workload.job.tolist() == [7, 8]
    assert (workload.submit / 1e6).tolist() == [0, 1]
    assert (workload.runtime / 1e6).tolist() == [10, 10]
    assert (workload.estimate / 1e6).tolist() == [300, 300]
    assert workload.cores.tolist() == [4, 4]
    assert workload.logged["wait"].tolist() == [5, 4]
    assert names_of(workload, "user") == ["ann", "ann"]
    assert not found(workload)
    workload.check()


@pytest.mark.parametrize("delimiter", ["|", "\x1f", ";", "\t", "::", "^", "~"])
def test_the_delimiter_is_found_in_the_header(log, delimiter):
    workload = log(job(7), job(8, JobName="two words"), delimiter=delimiter)
    assert workload.job.tolist() == [7, 8]
    assert names_of(workload, "executable") == ["run", "two words"]


def test_columns_may_be_in_any_order_with_others_between(log):
    workload = log(job(7, Colour="red", Comment="x|y"), names=["Colour", *NAMES[::-1], "Comment"])
    assert workload.job.tolist() == [7]
    assert workload.cores.tolist() == [4]


def test_a_delimiter_at_the_end_of_each_line_is_none(log):
    assert log(text(job(7)).replace("\n", "|\n")).job.tolist() == [7]


def test_windows_line_ends_and_a_byte_order_mark_do_not_matter(log):
    assert log("\ufeff" + text(job(7), job(8)).replace("\n", "\r\n")).job.tolist() == [7, 8]


def test_two_logs_may_be_in_one_file_each_with_its_header(log):
    workload = log(text(job(7)) + text(job(8), names=NAMES[::-1]))
    assert workload.job.tolist() == [7, 8]
    assert workload.provenance["comments"] == 2


def test_a_table_is_cut_by_its_ruler(log):
    widths = {"JobID": 12, "JobName": 9, "User": 9, "Submit": 19, "Start": 19, "End": 19, "Timelimit": 10, "State": 10}
    widths |= {"AllocCPUS": 10}
    row = job("41_3", JobName="a_long_n+", Timelimit="00:05:00", State="CANCELLED+")
    lines = [
        " ".join(f"{name:>{width}}" for name, width in widths.items()) + " ",
        " ".join("-" * width for width in widths.values()) + " ",
        " ".join(f"{row[name]:>{width}}" for name, width in widths.items()) + " ",
    ]
    workload = log("\n".join(lines) + "\n")
    assert (workload.runtime / 1e6).tolist() == [10]
    assert workload.logged["status"].tolist() == [5]
    assert "1 full names (tables truncate them; use sacct -P)" in workload.provenance["missing"]


def test_a_compressed_log_is_recognised(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(text(job(7)).encode()))
    assert read_workload(path).provenance["format"] == "sacct"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("JobID|JobName|State\n1|x|COMPLETED\n", "no column Submit"),
        (text(job(7)).split("\n")[1] + "\n", "no header line"),
        ("JOBID PARTITION NAME USER ST TIME NODES\n 7 batch x ann R 0:00 1\n", "squeue"),
        ("JobId=7 JobName=x UserId=ann(1)\n", "scontrol"),
        (text(job(7)).replace("2026-01-05T00:01:40", "Mon 05 Jan 2026 00:"), "not a readable time"),
        (text(job(7, End=120), job(8, Start=130, End=120, ElapsedRaw=0)), "sacct -T"),
    ],
)
def test_a_form_that_carries_too_little_says_why_and_how(tmp_path, content, reason):
    path = tmp_path / "log"
    path.write_text(content)
    with pytest.raises(InputError, match=reason) as caught:
        read_workload(path)
    assert COMMAND in str(caught.value)


def test_the_command_requests_what_is_read(log):
    names = COMMAND.partition("-o ")[2].partition(" ")[0].split(",")
    workload = log(job(7, SubmitLine="sbatch x", AllocTRES="cpu=4,mem=8G"), names=names, delimiter="\x1f")
    assert workload.provenance["missing"] == ["time zone (local times are used unchanged; give --timezone)"]
    assert workload.logged["memory"].tolist() == [8192]


def test_other_formats_are_not_taken_for_it():
    assert not looks_like_sacct(b"; Version: 2.2\n1 0 0 1 1 -1 -1 1 1 -1 1 1 1 1 1 1 -1 -1\n")
    assert not looks_like_sacct(b"WorkflowID, JobID, SubmitTime, RunTime, NProcs\n")
    assert not looks_like_sacct(b'{"name": "a workflow", "workflow": {"specification": {"tasks": []}}}')
    assert not looks_like_sacct(b"")


# Names


@pytest.mark.parametrize("name", ["fit|lr=0.1", "a|b|c|d", "|", "new\nline", "new|li\nne|", "x\n\ny", "7|8\n9|10"])
def test_a_name_may_hold_delimiters_and_line_breaks(log, name):
    workload = log(job(7), job(8, JobName=name), job(9))
    assert workload.job.tolist() == [7, 8, 9]
    assert names_of(workload, "executable")[1] == name
    assert found(workload) == {"delimiter-in-name": 1}


def test_a_name_in_the_last_column_may_continue_in_the_next_line(log):
    names = [name for name in NAMES if name != "JobName"] + ["JobName"]
    workload = log(job(7), job(8, JobName="new\nline"), job(9), names=names)
    assert workload.job.tolist() == [7, 8, 9]
    assert names_of(workload, "executable") == ["run", "new\nline", "run"]


def test_a_name_in_the_first_column_may_begin_in_the_line_above(log):
    names = ["JobName"] + [name for name in NAMES if name != "JobName"]
    workload = log(job(7), job(8, JobName="new\nline"), job(9), names=names)
    assert workload.job.tolist() == [7, 8, 9]
    assert found(workload) == {"delimiter-in-name": 1}


def test_a_delimiter_in_the_name_is_in_the_submit_line_too(log):
    jobs = [job(k, JobName=f"a|{k}", SubmitLine=f"sbatch --job-name=a|{k} x") for k in range(7, 10)]
    workload = log(*jobs)
    assert workload.job.tolist() == [7, 8, 9]
    assert names_of(workload, "executable") == ["a|7", "a|8", "a|9"]


def test_commas_between_columns_are_distinguished_from_those_in_them(log):
    tres = {"ReqTRES": "billing=4,cpu=4,mem=8G,node=1", "AllocTRES": "billing=4,cpu=4,mem=2G,node=1"}
    workload = log(job(7, **tres), job("8_[1,3]", State="PENDING", Start="Unknown", **tres), delimiter=",")
    assert workload.job.tolist() == [7]
    assert workload.logged["memory"].tolist() == [2048]


@pytest.mark.long
def test_a_record_over_the_edge_of_a_block_is_one(tmp_path):
    path = tmp_path / "log"
    path.write_text(text(*(job(k, JobName=f"a\nb|{k}" if k % 3 else "plain") for k in range(1, 9000))))
    assert path.stat().st_size > 1 << 20
    workload = read_sacct(path)
    assert workload.job.tolist() == list(range(1, 9000))
    assert set(names_of(workload, "executable")) == {"plain", *(f"a\nb|{k}" for k in range(1, 9000) if k % 3)}


# Rows


def test_steps_are_no_jobs(log):
    step = {"User": "", "Partition": "", "QOS": "", "TimelimitRaw": "", "State": "CANCELLED"}
    workload = log(job(7), job("7.batch", **step), job("7.0", JobName="a|b", **step), job("7.extern", **step), job(8))
    assert workload.job.tolist() == [7, 8]
    assert workload.provenance["steps"] == 3


def test_tasks_of_an_array_are_jobs_with_distinct_numbers(log):
    workload = log(job("40_1", JobIDRaw=41), job("40_2", JobIDRaw=42), job("40_3", JobIDRaw=40))
    assert workload.job.tolist() == [41, 42, 40]
    assert workload.logged["array_job"].tolist() == [40, 40, 40]
    assert workload.logged["array_task"].tolist() == [1, 2, 3]


def test_tasks_without_a_raw_number_get_one_above_all_others(log):
    names = [name for name in NAMES if name != "JobIDRaw"]
    workload = log(job("40_1"), job("40_2"), job(50), names=names)
    assert workload.job.tolist() == [51, 52, 50]
    assert "duplicate-job" not in found(workload)


def test_waiting_tasks_are_one_line_and_no_jobs(log):
    waiting = job("40_[4-12%3]", JobIDRaw=40, State="PENDING", Eligible="Unknown", Start="Unknown", End="Unknown")
    cancelled = job("50_[2,4]", JobIDRaw=50, State="CANCELLED by 7", Start="None", ElapsedRaw=0)
    workload = log(job(7), waiting, cancelled)
    assert workload.job.tolist() == [7]
    assert found(workload) == {"still-waiting": 1, "never-ran": 1}


def requeued() -> list[dict[str, str]]:
    last = job(7, Submit=115, Eligible=236, Start=240, End=250)
    return [job(7, State="REQUEUED"), last]


def test_a_requeued_job_is_one_that_was_first_and_runs_as_long_as_its_last_run(log):
    first = job(7, Eligible=102, State="PREEMPTED")
    workload = log(first, job(7, Submit=115, Eligible=236, Start=240, End=265, ElapsedRaw=25), job(8))
    assert workload.job.tolist() == [8, 7]
    assert (workload.submit / 1e6).tolist() == [0, 2]
    assert (workload.runtime / 1e6).tolist() == [10, 25]
    assert workload.logged["wait"].tolist() == [5, 3]
    assert (workload.logged_start / 1e6).tolist() == [5, 5]
    assert (workload.logged_end / 1e6).tolist() == [15, 165]
    assert workload.logged["before_eligible"].tolist() == [0, 2]
    assert workload.logged["runs"].tolist() == [1, 2]
    assert workload.logged["preempted"].tolist() == [0, 1]
    assert workload.logged["lost"].tolist() == [0, 40]  # core-seconds
    assert found(workload) == {"earlier-run": 1, "late-eligible": 1}
    assert (workload.provenance["jobs_read"], workload.provenance["jobs_kept"]) == (2, 2)


def test_a_requeued_job_that_continues_where_it_was_left_runs_as_long_as_all_its_runs(log):
    workload = log(*requeued(), rules={"earlier-run": "sum"})
    assert (workload.runtime / 1e6).tolist() == [20]
    assert (workload.logged_end / 1e6).tolist() == [150]


def test_the_last_run_of_a_requeued_job_counts_alone_where_it_is_requested(log):
    workload = log(*requeued(), rules={"earlier-run": "skip"})
    alone = log(requeued()[1])
    assert workload.provenance["jobs_read"] == 1
    assert workload.logged["wait"].tolist() == alone.logged["wait"].tolist() == [4]
    assert workload.logged["before_eligible"].tolist() == [136]  # since the first submit
    assert alone.logged["before_eligible"].tolist() == [121]


def test_earlier_runs_can_be_kept_as_jobs_and_are_counted_as_such(log):
    workload = log(*requeued(), rules={"earlier-run": "keep"})
    assert workload.job.tolist() == [8, 7]
    assert (workload.runtime / 1e6).tolist() == [10, 10]
    assert (workload.provenance["jobs_read"], workload.provenance["jobs_kept"]) == (2, 2)
    assert workload.provenance["states"] == {"COMPLETED": 1, "REQUEUED": 1}


def test_a_job_whose_last_run_was_ended_too_has_the_longest_run_to_do(log):
    runs = [
        job(7, Submit=100, Start=105, End=145, ElapsedRaw=40, State="PREEMPTED"),
        job(7, Submit=145, Eligible=266, Start=270, End=280, ElapsedRaw=10, State="PREEMPTED"),
    ]
    workload = log(*runs)
    assert (workload.runtime / 1e6).tolist() == [40]
    assert workload.logged["preempted"].tolist() == [2]
    assert (workload.logged_end / 1e6).tolist() == [180]
    assert found(workload) == {"earlier-run": 1, "ended-by-system": 1}


def test_requeuing_is_allowed_by_the_request_or_the_outcome(log):
    again = [job(7, State="PREEMPTED"), job(7, Submit=115, Eligible=236, Start=240, End=250)]
    workload = log(*again, job(8, State="PREEMPTED"), job(9))
    assert dict(zip(workload.job.tolist(), workload.labels["requeue"].tolist(), strict=True)) == {7: 1, 8: 0, 9: -1}
    asked = [job(7, SubmitLine="sbatch --no-requeue"), job(8, SubmitLine="sbatch --requeue"), job(9, SubmitLine="")]
    assert log(*asked).labels["requeue"].tolist() == [0, 1, -1]
    assert "requeue" not in log(job(7), job(8)).labels


def test_a_job_that_was_cancelled_while_it_waited_to_run_again_did_run(log):
    waited = job(7, Submit=115, Eligible=236, Start="None", End=300, ElapsedRaw=0, State="CANCELLED by 7")
    workload = log(job(7, State="PREEMPTED"), waited, rules={"never-ran": "keep"})
    assert "withdrawn" not in workload.labels
    assert (workload.runtime / 1e6).tolist() == [10]
    assert workload.logged["wait"].tolist() == [5]
    assert (workload.logged_end / 1e6).tolist() == [15]
    assert workload.logged["status"].tolist() == [5]


def test_a_job_that_waits_to_run_again_waits_since_it_was_requeued(log):
    waits = job(7, Submit=115, Eligible=236, Start="Unknown", End="Unknown", ElapsedRaw=0, State="PENDING")
    lines = (job(7, State="PREEMPTED"), waits, job(8))
    workload = log(*lines, rules={"still-waiting": "repair"})
    assert workload.job.tolist() == [8, 7]
    assert (workload.submit / 1e6).tolist() == [0, 136]
    assert np.isnan(workload.logged["wait"][1])
    assert log(*lines).job.tolist() == [8]


def test_a_requeued_job_that_runs_still_runs_since_its_last_start(log):
    runs = job(7, Submit=115, Eligible=236, Start=240, End="Unknown", ElapsedRaw=30, State="RUNNING")
    workload = log(job(7, State="PREEMPTED"), runs, job(8))
    row = workload.job.tolist().index(7)
    assert workload.logged["last_wait"][row] == 140
    assert (workload.runtime / 1e6)[row] == 30
    assert workload.logged_end[row] == NEVER


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"State": "COMPLETED"}, {}),  # scrontab
        ({"State": "TIMEOUT"}, {}),  # requeued by its user
        ({"State": "PREEMPTED"}, {"User": "bob"}),
        ({"State": "PREEMPTED", "Submit": 0, "Eligible": 0, "Start": 5, "End": 10}, {"day": "2026-01-07"}),
    ],
)
def test_a_number_that_is_used_again_is_another_job(log, earlier, later):
    day = later.pop("day", "2026-01-05")
    again = job(7, Submit=115, Eligible=115, Start=120, End=130, **later)
    again |= {name: again[name].replace("2026-01-05", day) for name in ("Submit", "Eligible", "Start", "End")}
    workload = log(job(7, **earlier), again)
    assert workload.job.tolist() == [7, 8]
    assert "earlier-run" not in found(workload)
    assert found(workload)["duplicate-job"] == 1
    assert "runs" not in workload.logged


def test_without_the_earlier_runs_first_submits_are_said_not_to_be_known(log):
    jobs = [job(number, Submit=number, Eligible=number) for number in range(10, 40)]
    told = log(*jobs).provenance["missing"]
    assert not any("first submits" in entry for entry in told)
    late = job(20, Submit=90, Eligible=211, Start=220, End=230)
    told = log(*jobs[:10], late, *jobs[11:]).provenance["missing"]
    assert any("first submit times of 1 requeued job" in entry for entry in told)
    earlier = job(20, Submit=20, Eligible=20, Start=80, End=90, State="PREEMPTED")
    told = log(*jobs[:10], earlier, late, *jobs[11:]).provenance["missing"]
    assert not any("first submits" in entry for entry in told)
    told = log(job(7, Restarts=2), job(8, Restarts=0)).provenance["missing"]
    assert any("first submit times of 1 requeued job" in entry for entry in told)


def test_numbers_that_begin_again_are_no_requeues(log):
    before = [job(number, Submit=number, Eligible=number) for number in range(50, 80)]
    after = [job(number, Submit=80 + number, Eligible=80 + number) for number in range(1, 20)]
    assert not any("first submits" in entry for entry in log(*before, *after).provenance["missing"])


def test_a_run_that_two_windows_show_is_one(log):
    running = job(7, State="RUNNING", End="Unknown", ElapsedRaw=3)
    workload = log(text(running, job(8)) + text(job(7), job(8)))
    assert workload.job.tolist() == [7, 8]
    assert (workload.runtime / 1e6).tolist() == [10, 10]
    assert found(workload) == {"repeated-line": 2}


def test_a_name_that_is_not_utf_8_is_reported_with_its_line(tmp_path):
    path = tmp_path / "sacct.txt"
    jobs = [job(7), job(8, User="J?RG"), job(9, User="JÖRG"), job(10, User="J!RG", JobName="r?n")]
    path.write_bytes(text(*jobs).encode().replace(b"?", b"\xd6").replace(b"!", b"\xf6"))
    workload = read_sacct(path)
    told = next(entry for entry in workload.provenance["problems"] if entry["kind"] == "not-utf-8")
    assert (told["count"], told["first_lines"], told["rule"]) == (2, [3, 5], "keep")
    assert names_of(workload, "user") == ["ann", "J\ufffdRG", "JÖRG", "J\ufffdRG"]
    assert len(set(workload.labels["user"].tolist())) == 4
    assert read_sacct(path, rules={"not-utf-8": "skip"}).job.tolist() == [7, 9]
    with pytest.raises(InputError, match="line 3: not-utf-8: found job 8, User; expected names in UTF-8"):
        read_sacct(path, rules={"not-utf-8": "error"})


def test_parts_of_a_heterogeneous_job_are_kept_or_made_one(log):
    parts = [job("7+0", JobIDRaw=7), job("7+1", JobIDRaw=8, AllocCPUS=2)]
    assert log(*parts).cores.tolist() == [4, 2]
    assert log(*parts, rules={"part-of-job": "repair"}).cores.tolist() == [6]


# Times and states


def test_a_job_is_submitted_when_it_became_eligible(log):
    late = job(8, Eligible=160, Start=165, End=175)
    workload = log(job(7), late)
    assert (workload.submit / 1e6).tolist() == [0, 60]
    assert workload.logged["before_eligible"].tolist() == [0, 60]
    assert (workload.logged_start / 1e6).tolist() == [5, 65]
    assert (log(job(7), late, rules={"late-eligible": "keep"}).submit / 1e6).tolist() == [0, 0]


def test_suspended_time_is_no_runtime_but_held(log):
    workload = log(job(7, ElapsedRaw=7))
    assert (workload.runtime / 1e6).tolist() == [7]
    assert (workload.logged_end / 1e6).tolist() == [15]
    assert found(workload) == {"suspended": 1}


def test_a_running_job_ends_when_the_log_was_written(log):
    workload = log(job(7, State="RUNNING", End="Unknown", ElapsedRaw=200), job(8))
    assert (workload.runtime / 1e6).tolist() == [200, 10]
    assert workload.logged["status"].tolist() == [-1, 1]
    assert workload.logged_end.tolist()[0] == NEVER


def test_a_runaway_job_is_left_out(log):
    runaway = job(7, State="RUNNING", End="Unknown", ElapsedRaw=901)
    assert log(runaway, job(8)).job.tolist() == [8]
    repaired = log(runaway, job(8), rules={"runaway": "repair"})
    assert (repaired.runtime / 1e6).tolist() == [300, 10]


@pytest.mark.parametrize(
    ("state", "status", "kinds"),
    [
        ("COMPLETED", 1, set()),
        ("FAILED", 0, set()),
        ("TIMEOUT", 0, set()),
        ("OUT_OF_MEMORY", 0, set()),
        ("CANCELLED by 1001", 5, set()),
        ("NODE_FAIL", 0, {"ended-by-system"}),
        ("PREEMPTED", 0, {"ended-by-system"}),
        ("BOOT_FAIL", 0, {"ended-by-system"}),
    ],
)
def test_states_become_status_codes(log, state, status, kinds):
    workload = log(job(7, State=state))
    assert workload.logged["status"].tolist() == [status]
    assert set(found(workload)) == kinds


def test_jobs_that_never_started_are_excluded_and_counted(log):
    workload = log(
        job(7),
        job(8, State="CANCELLED by 0", Start="None", ElapsedRaw=0),
        job(9, State="CANCELLED", Start=115, End=115, ElapsedRaw=0),
        job(10, State="PENDING", Start="Unknown", End="Unknown", ElapsedRaw=0),
    )
    assert workload.job.tolist() == [7]
    assert found(workload) == {"never-ran": 2, "still-waiting": 1}


def test_limits_that_are_words_become_numbers(log):
    workload = log(
        job(7, TimelimitRaw="UNLIMITED"),
        job(8, TimelimitRaw="Partition_Limit"),
        job(9, TimelimitRaw=""),
        job(10, TimelimitRaw=30),
    )
    assert (workload.estimate / 1e6).tolist() == [365 * 86400, 1800, 10, 1800]
    assert found(workload) == {"unlimited": 1, "partition-limit": 1, "missing-estimate": 1}


def test_a_job_over_its_limit_is_kept(log):
    assert found(log(job(7, End=415, ElapsedRaw=310))) == {"over-estimate": 1}


def test_cores_come_from_wherever_the_log_has_them(log):
    fields = {name: value for name, value in job(7).items() if name not in ("AllocCPUS", "ReqCPUS")}
    assert log({**fields, "NCPUS": "3"}).cores.tolist() == [3]
    assert log({**fields, "AllocTRES": "billing=9,cpu=5,node=1"}).cores.tolist() == [5]
    assert log({**fields, "ReqTRES": "cpu=6"}).cores.tolist() == [6]
    assert log({**fields, "AllocCPUS": "0", "ReqCPUS": "8"}).cores.tolist() == [8]


@pytest.mark.parametrize(
    ("more", "memory"),
    [
        ({"ReqMem": "62.50G"}, 64000),
        ({"ReqMem": "2000Mn", "NNodes": "3"}, 6000),
        ({"ReqMem": "1Gc"}, 4096),
        ({"ReqMem": "1G", "AllocTRES": "cpu=4,mem=3G,gres/gpu=2"}, 3072),
    ],
)
def test_memory_is_that_of_the_whole_job(log, more, memory):
    assert log(job(7, **more)).logged["memory"].tolist() == [memory]


def test_the_machine_is_as_large_as_the_most_in_use_at_once(log):
    workload = log(job(7), job(8, Start=110, End=120), job(9, Start=115, End=125))
    assert workload.cores_stated == 8
    assert workload.provenance["cores_from"] == "most cores in use at once"
    assert log(job(7), cores=64).cores_stated == 64


# Dependencies


def chain() -> list[dict[str, str]]:
    second = {"Submit": 101, "Eligible": 115, "Start": 116, "End": 126, "SubmitLine": "sbatch --dependency=afterok:7 x"}
    return [job(7, SubmitLine="sbatch x"), job(8, **second), job(9, SubmitLine="sbatch -d singleton x")]


def test_a_job_knows_the_one_it_waited_for(log):
    workload = log(*chain())
    assert dict(zip(workload.job.tolist(), workload.logged["after"].tolist(), strict=True)) == {7: -1, 9: -1, 8: 7}
    assert found(workload) == {"late-eligible": 1, "dependent": 1}


def test_a_chain_can_become_one_job_of_several_tasks(log):
    workload = log(*chain(), rules={"dependent": "repair"})
    assert workload.job.tolist() == [7, 9]
    assert workload.tasks is not None
    assert np.diff(workload.tasks.first).tolist() == [2, 1]
    assert workload.tasks.names == ("7", "8", "9")
    assert workload.tasks.successors(0).tolist() == [1]
    workload.check()


def test_a_job_after_an_array_waits_for_its_last_task(log):
    after = job(50, Eligible=130, Start=131, End=141, SubmitLine="sbatch --dependency=afterany:40 x")
    tasks = [job("40_1", JobIDRaw=41, SubmitLine=""), job("40_2", JobIDRaw=40, Start=120, End=130, SubmitLine="")]
    assert log(*tasks, after).logged["after"].tolist() == [-1, -1, 40]


# The clock


def test_without_a_zone_times_are_unchanged_and_this_is_reported(log):
    workload = log(job(7))
    assert workload.provenance["clock"]["zone"] == "local"
    assert "UnixStartTime" not in workload.provenance["header"]
    assert any("time zone" in entry for entry in workload.provenance["missing"])


def test_with_a_zone_the_origin_is_an_instant(log):
    workload = log(job(7), timezone="America/Chicago")
    assert workload.provenance["header"]["UnixStartTime"] == [str(1767571200 + 6 * 3600 + 100)]


def test_seconds_since_1970_need_no_zone(log):
    epoch = {"Submit": "1795244026", "Eligible": "1795244026", "Start": "1795244027", "End": "1795244037"}
    workload = log({**job(7), **epoch})
    assert workload.provenance["clock"] == {"origin": 1795244026, "zone": "epoch"}
    with pytest.raises(InputError, match="--timezone"):
        log({**job(7), **epoch}, job(8))


def autumn(number: int, submit: str, start: str, end: str, elapsed: int) -> dict[str, str]:
    day = "2026-10-25T"
    times = {"Submit": day + submit, "Eligible": day + submit, "Start": day + start, "End": day + end}
    return {**job(number, ElapsedRaw=elapsed), **times}


def test_the_repeated_hour_is_resolved_by_order_and_elapsed_time(log):
    workload = log(
        autumn(1, "01:50:00", "01:50:00", "02:10:00", 1200),
        autumn(2, "02:40:00", "02:45:00", "02:10:00", 1500),  # across the change of the clock
        autumn(3, "02:05:00", "02:06:00", "02:16:00", 600),  # the second occurrence of that hour
        autumn(4, "02:50:00", "03:10:00", "03:20:00", 600),
        timezone="Europe/Berlin",
    )
    assert (workload.submit / 1e6).tolist() == [0, 3000, 4500, 7200]
    assert workload.logged["wait"].tolist() == [0, 300, 60, 1200]
    assert (workload.runtime / 1e6).tolist() == [1200, 1500, 600, 600]
    assert not {"clock-change", "suspended"} & set(found(workload))


def test_a_clock_change_shows_without_a_zone(log):
    assert "clock-change" in found(log(autumn(2, "02:40:00", "02:45:00", "03:10:00", 5100)))


def test_an_unknown_zone_is_refused(log):
    with pytest.raises(InputError, match="not in"):
        log(job(7), timezone="Mars/Olympus")


# JSON


def entry(number: int = 7, **more: Any) -> dict[str, Any]:
    times = {"submission": 1795244026, "eligible": 1795244026, "start": 1795244031, "end": 1795244041, "elapsed": 10}
    return {
        "job_id": number,
        "name": "a|b\n",
        "user": "ann",
        "account": "physics",
        "partition": "batch",
        "qos": "normal",
        "time": {**times, "suspended": 0, "limit": 5},
        "state": {"current": "COMPLETED"},
        "required": {"CPUs": 2},
        "array": {"job_id": 0, "task": None, "task_id": None},
        "het": {"job_id": 0, "job_offset": None},
        "tres": {"allocated": [{"type": "cpu", "count": 4}, {"type": "mem", "count": 100}], "requested": []},
        **more,
    }


def document(*entries: Any, before: dict[str, Any] | None = None) -> str:
    return json.dumps({**({"meta": {"slurm": {}}} if before is None else before), "jobs": list(entries)}, indent=1)


def test_the_document_has_the_same_jobs(log):
    workload = log(document(entry(7), entry(8)))
    assert workload.job.tolist() == [7, 8]
    assert workload.logged["wait"].tolist() == [5, 5]
    assert workload.cores.tolist() == [4, 4]
    assert names_of(workload, "executable") == ["a|b\n", "a|b\n"]
    assert workload.logged["memory"].tolist() == [100, 100]


def test_numbers_of_newer_versions_are_read(log):
    def wrapped(number: int, **more: Any) -> dict[str, Any]:
        return {"set": True, "infinite": False, "number": number, **more}

    times = {**entry()["time"], "limit": {"set": False, "infinite": True, "number": 0}}
    array = {"job_id": 40, "task": "", "task_id": wrapped(3)}
    workload = log(document(entry(7, time=times, state={"current": ["TIMEOUT"]}, array=array), before={}))
    assert workload.logged["array_task"].tolist() == [3]
    assert workload.logged["status"].tolist() == [0]
    assert found(workload) == {"unlimited": 1}


def test_waiting_tasks_of_a_document_are_a_bit_mask(log):
    waiting = entry(9, array={"job_id": 9, "task": "0x1554", "task_id": None}, state={"current": "CANCELLED"})
    waiting["time"] = {**waiting["time"], "start": 0}
    assert found(log(document(entry(7), waiting))) == {"never-ran": 1}


def test_entries_that_are_no_jobs_are_counted(log):
    workload = log(document(5, entry(7), None, {"time": 3}, entry(-1), [entry(8)]))
    assert workload.job.tolist() == [7]
    assert found(workload) == {"unreadable-line": 5}


def test_a_truncated_document_gives_the_jobs_before_its_end(log):
    content = document(entry(7), entry(8), entry(9))
    workload = log(content[: content.index('"job_id": 9') + 30])
    assert workload.job.tolist() == [7, 8]
    assert set(found(workload)) == {"unreadable-line"}


# Damage


def test_lines_that_fit_no_column_are_counted_with_their_numbers(log):
    lines = text(job(7), job(8), job(9)).split("\n")
    workload = log("\n".join([*lines[:2], "garbage", lines[2][:50], lines[3], "8|x|y", ""]))
    assert workload.job.tolist() == [7, 9]
    problem = next(entry for entry in workload.provenance["problems"] if entry["kind"] == "unreadable-line")
    assert problem["count"] == 3
    assert problem["first_lines"] == [3, 4, 6]


@pytest.mark.parametrize(
    "wrong",
    [
        {"ElapsedRaw": "99999999999999"},
        {"AllocCPUS": "99999999999"},
        {"AllocCPUS": "-4"},
        {"State": "what"},
        {"Submit": "2026-02-30T00:00:00"},
        {"TimelimitRaw": "1e9"},
        {"JobID": "seven"},
    ],
)
def test_a_value_that_cannot_be_leaves_the_line_out(log, wrong):
    workload = log(job(7), {**job(8), **wrong})
    assert workload.job.tolist() == [7]
    assert found(workload) == {"unreadable-line": 1}


def test_a_log_without_a_job_that_ran_says_what_there_was(log):
    with pytest.raises(InputError, match=r"no usable job.*1 still-waiting"):
        log(job(7, State="PENDING", Start="Unknown", End="Unknown", ElapsedRaw=0))


def test_text_of_a_hostile_log_stays_text(log):
    hostile = ["$(rm -rf x)", "<script>alert(1)</script>", "__import__('os')", "%s%n", "../../etc"]
    workload = log(*(job(k, User=name, JobName=name) for k, name in enumerate(hostile, 1)))
    assert names_of(workload, "executable") == hostile
    assert workload.provenance["jobs_kept"] == len(hostile)


SOUND = text(
    *(
        job(k, JobName=("a|b" if k % 4 == 0 else "new\nline" if k % 5 == 0 else f"n{k}"), SubmitLine="sbatch x")
        for k in range(1, 20)
    ),
    job("30_[1-4]", State="PENDING", Start="Unknown", End="Unknown"),
    job("7.batch", User=""),
).encode()


def accounted(content: bytes) -> None:
    """Assert that every line is a row, a problem, or counted as neither, and that only `InputError` is raised."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        path.write_bytes(content)
        try:
            workload = read_workload(path, format="sacct")
        except InputError:
            workload = None
        if workload is not None:
            workload.check()
    if b"\0" in content or content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return
    problems = Problems()
    intake = SacctIntake("log", problems)
    try:
        half = content.rfind(b"\n", 0, len(content) // 2) + 1
        for part, first in ((content[:half], 1), (content[half:], 1 + content.count(b"\n", 0, half))):
            if part:
                intake.take(first, part)
        intake.finish()
    except InputError:
        return
    kept = len(intake.columns["number"]) if "number" in intake.columns else 0
    others = intake.comments + intake.blank + intake.steps + intake.joined + problems["unreadable-line"].count
    assert kept + others == intake.lines


@given(st.integers(0, len(SOUND)), st.integers(0, len(SOUND)))
def test_a_log_that_was_cut_loses_no_line_uncounted(first, second):
    accounted(SOUND[:first])
    accounted(SOUND[: min(first, second)] + SOUND[max(first, second) :])


@given(st.permutations(SOUND.split(b"\n")[1:]))
def test_lines_in_any_order_are_all_counted(lines):
    accounted(b"\n".join([SOUND.split(b"\n")[0], *lines]))


_PIECES = st.sampled_from(
    [
        *(b"|", b"\n", b"\r\n", b"", b"Unknown", b"7_[1-", b"]", b"\xff\xfe", b"\xe2\x82", b"JobID|", b".", b"+", b" "),
        *(b"999999999999999", b"JobID|Submit|Start|End|NCPUS\n", b"UNLIMITED", b"-1", b"{", b"\x1b[31m", b"0"),
    ]
)


@pytest.mark.long
@given(st.lists(st.tuples(st.integers(0, len(SOUND)), st.integers(0, 12), st.one_of(_PIECES, st.binary(max_size=6)))))
def test_damage_anywhere_is_counted_or_refused(edits):
    content = SOUND
    for place, length, piece in edits[:8]:
        content = content[:place] + piece + content[place + length :]
    accounted(content)


_KEYS = ["job_id", "time", "start", "array", "task", "set", "number", "tres", "state", "current", "submission"]
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(_VALUES, st.integers(0, 3000))
def test_any_document_is_read_or_refused(value, cut):
    accounted(document(entry(7), value, {**entry(8), **(value if isinstance(value, dict) else {})}).encode())
    accounted(document(entry(7), value, entry(9)).encode()[:cut])


# A real log


POOR = {"sacct_minimal_X.txt.gz", "sacct_wide_table_X.txt.gz"}
_TEXTS = (
    "ALL_X ALL_steps P_X P_X_duplicates P_X_wide P_steps chicago_X epoch_X jobname_last_X noconvert p_lower_X units_G"
)
WHOLE = (
    *("sacct.json.gz", "sacct_comma_X.csv.gz", "sacct_unitsep_X.txt.gz"),
    *(f"sacct_{form}.txt.gz" for form in _TEXTS.split()),
    *sorted(POOR),
)
"""Forms of the whole log with enough columns; the last two have neither eligible times nor suspensions."""
LATER = {41512, 41514, 41515, 41516}
"""Jobs that were running when the log was written, but not when the schedule was."""


ALL_RUNS = {"sacct_P_X_duplicates.txt.gz", "sacct.json.gz"}
"""Forms with every run of a job."""


def schedule(run_a: Path, *, whole: bool = False) -> dict[str, dict[str, str]]:
    """Return the last run of each job, by `sacct` id and by raw number; *whole*: since its first submission."""
    with (run_a / "schedule.csv").open(newline="") as file:
        rows = [row | {"first": row["start"]} for row in csv.DictReader(file)]
    if whole:
        first = {row["jobid_raw"]: row for row in reversed(rows)}
        rows = [row | {name: first[row["jobid_raw"]][name] for name in ("eligible", "first")} for row in rows]
    return {row["jobid_raw"]: row for row in rows} | {row["jobid"]: row for row in rows}


def called(workload, row: int) -> str:
    task, part = (workload.logged[name][row] for name in ("array_task", "het_part"))
    base = workload.logged["array_job"][row]
    return f"{base}_{task}" if task >= 0 else f"{base}+{part}" if part >= 0 else str(workload.job[row])


@pytest.mark.parametrize("form", WHOLE)
def test_every_form_of_a_real_log_has_the_jobs_of_its_schedule(run_a, form):
    workload = read_workload(run_a / "logs" / form)
    workload.check()
    truth = schedule(run_a, whole=form in ALL_RUNS)
    assert workload.provenance["jobs_read"] == 314
    assert len(workload) == 306
    assert workload.cores_stated == 32
    for row in range(len(workload)):
        name = str(workload.job[row]) if form == "sacct_minimal_X.txt.gz" else called(workload, row)
        want = truth[name]
        eligible = int(want["submit" if form in POOR else "eligible"]) - 1795244026
        wait, runtime = int(want["first"]) - 1795244026 - eligible, int(want["elapsed"])
        last = int(want["start"]) - int(want["first"])
        assert workload.submit[row] == eligible * 1_000_000, name
        assert workload.logged["wait"][row] == wait, name
        if int(want["jobid_raw"]) not in LATER and not (form in POOR and name == "41499"):
            assert workload.runtime[row] == runtime * 1_000_000, name
            held = int(want["end"]) - int(want["start"])
            assert workload.logged_end is not None
            assert workload.logged_end[row] - workload.submit[row] == (wait + last + held) * 1_000_000, name
        assert workload.cores[row] == int(want["alloc_cpus"]), name
        minutes = 365 * 24 * 60 if want["limit_min"] == "UNLIMITED" else int(want["limit_min"])
        assert workload.estimate[row] == minutes * 60_000_000, name
        for label in ("user", "account", "partition"):
            assert workload.names[label][workload.labels[label][row]] == want[label], name


def test_forms_that_carry_too_little_are_refused_with_the_command(run_a):
    logs = run_a / "logs"
    poor = "default default_X long_X noheader_X customtime_X window_truncated_X"
    for path in [logs / f"sacct_{form}.txt.gz" for form in poor.split()] + [
        logs / "squeue.txt.gz",
        logs / "squeue.json.gz",
    ]:
        with pytest.raises(InputError) as caught:
            read_workload(path)
        assert COMMAND in str(caught.value), path


def test_edges_of_a_real_log_are_read(run_a):
    workload = read_workload(run_a / "logs" / "sacct_P_X_wide.txt.gz")
    after = dict(zip(workload.job.tolist(), workload.logged["after"].tolist(), strict=True))
    assert after[41294] == 41293
    assert after[41494] == 41491
    chains = read_workload(run_a / "logs" / "sacct_P_X_wide.txt.gz", rules={"dependent": "repair"})
    assert chains.tasks is not None
    assert len(chains.tasks) == 306
    chains.check()


def test_with_a_zone_a_local_log_is_the_one_of_seconds(run_a):
    logs = run_a / "logs"
    local = read_workload(logs / "sacct_chicago_X.txt.gz", timezone="America/Chicago")
    assert local.provenance["clock"]["origin"] == 1795244026
    seconds = read_workload(logs / "sacct_epoch_X.txt.gz")
    assert np.array_equal(local.submit, seconds.submit)
    assert local.provenance["header"]["UnixStartTime"] == seconds.provenance["header"]["UnixStartTime"]


# Several files


@pytest.fixture
def months(tmp_path):
    """Return two logs: in January job 8 runs and a line is damaged; February has its end and another column order."""
    january, february = tmp_path / "jan.txt", tmp_path / "feb.txt"
    running = job(8, Submit=101, Eligible=101, State="RUNNING", End="Unknown", ElapsedRaw=3)
    january.write_text(text(job(7), running) + "damaged\n")
    ended = job(8, Submit=101, Eligible=101)
    short = job(9, Submit=200, Eligible=200, Start=205, End=205, ElapsedRaw=0)
    february.write_text(text(ended, short, names=NAMES[::-1]))
    return [january, february]


def test_several_files_are_one_log_in_which_a_job_that_is_in_two_counts_once(months):
    for files in (months, months[::-1]):
        workload = read_workload(files)
        assert workload.job.tolist() == [7, 8]
        assert (workload.runtime / 1e6).tolist() == [10, 10]
        assert workload.provenance["files"] == 2
    assert workload.provenance["source"] == f"{months[1]} and 1 more"


def test_errors_in_several_files_are_reported_with_the_file_and_its_line(months):
    january, february = months
    told = {entry["kind"]: entry["first_places"] for entry in read_workload(months).provenance["problems"]}
    assert told["unreadable-line"] == [f"{january}:4"]
    assert told["repeated-line"] == [f"{january}:3"]
    assert told["zero-runtime"] == [f"{february}:3"]
    with pytest.raises(InputError) as caught:
        read_workload(months, rules={"zero-runtime": "error"})
    assert (caught.value.path, caught.value.line) == (february, 3)


def test_documents_and_lines_may_be_one_log(months, tmp_path):
    third = tmp_path / "march.json"
    third.write_text(document(entry(11)))
    assert 11 in read_workload([*months, third], timezone="Europe/Berlin").job


def test_a_file_of_another_format_among_several_is_refused(months, tmp_path):
    other = tmp_path / "old.swf"
    other.write_text("; Version: 2.2\n1 0 0 1 1 -1 -1 1 1 -1 1 1 1 -1 -1 -1 -1 -1\n")
    with pytest.raises(InputError, match="has the format 'swf', the first file 'sacct'"):
        read_workload([*months, other])


def test_a_header_that_lacks_columns_is_reported_with_its_own_file(months):
    months[1].write_text("JobID|State\n7|COMPLETED\n")
    with pytest.raises(InputError) as caught:
        read_workload(months)
    assert caught.value.path == months[1]
