"""Accounting logs of PBS and Torque: jobs from their records, and jobs with incomplete records."""

from __future__ import annotations

import gzip
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.platform import machine_cores
from gridsim.model.time import seconds
from gridsim.model.workload import Workload
from gridsim.workload.formats.pbs import looks_like_pbs, read_pbs
from gridsim.workload.formats.pbs_record import duration, fields_of, got, requested_cores
from gridsim.workload.formats.stream import first_bytes
from gridsim.workload.formats.swf import read_swf
from gridsim.workload.formats.swf_writer import write_swf
from gridsim.workload.read import format_of, read_workload
from gridsim.workload.synthetic.lublin import Lublin

T = 1_700_000_000
ZONE = 3600  # local time is one hour ahead of UTC


def stamp(instant: float) -> str:
    return time.strftime("%m/%d/%Y %H:%M:%S", time.gmtime(instant + ZONE))


def record(kind: str, instant: float, job: object = 1, text: str = "") -> str:
    name = job if isinstance(job, str) else f"{job}.server"
    return f"{stamp(T + instant)};{kind};{name};{text}"


def about(submit: float = 0, start: float | None = 10, **more: object) -> str:
    """Return fields that start and end records share."""
    values: dict[str, object] = {
        "user": "ada",
        "group": "math",
        "jobname": "engine",
        "queue": "batch",
        "ctime": T + submit,
        "qtime": T + submit,
        "etime": T + submit,
        "start": None if start is None else T + start,
        "exec_host": "n1/0+n1/1",
        "Resource_List.nodes": "1:ppn=2",
        "Resource_List.walltime": "00:10:00",
    }
    values |= {key.replace("__", "."): value for key, value in more.items()}
    return " ".join(f"{key}={value}" for key, value in values.items() if value is not None)


def start(job: object = 1, submit: float = 0, start: float = 10, **more: object) -> str:
    return record("S", start, job, about(submit, start, **more))


def end(job: object = 1, submit: float = 0, start: float | None = 10, end: float = 70, **more: object) -> str:
    text = about(submit, start, **{"session": 7, "end": T + end, "Exit_status": 0, **more})
    return record("E", end, job, text)


@pytest.fixture
def log(tmp_path: Path):
    """Write lines to a file and read them."""

    def reading(*lines: str, **options: Any) -> Workload:
        path = tmp_path / "20231114"
        path.write_bytes(("\n".join(lines) + "\n").encode("latin-1"))
        return read_pbs(path, **options)

    return reading


def found(workload: Workload) -> dict[str, tuple[int, list[int]]]:
    return {entry["kind"]: (entry["count"], entry["first_lines"]) for entry in workload.provenance["problems"]}


def label(workload: Workload, name: str) -> list[str]:
    return [workload.names[name][code] if code >= 0 else "" for code in workload.labels[name].tolist()]


# Contents of an end record


def test_each_field_lands_in_its_column(log):
    workload = log(
        record("Q", 0, text="queue=batch"), start(), end(account="grant7", resources_used__walltime="00:01:00")
    )
    assert workload.job.tolist() == [1]
    times = (workload.submit, workload.runtime, workload.estimate)
    assert [seconds(int(column[0])) for column in times] == [0, 60, 600]
    assert workload.cores.tolist() == [2]
    assert {name: label(workload, name)[0] for name in workload.labels} == {
        "user": "ada",
        "group": "math",
        "executable": "engine",
        "queue": "batch",
        "account": "grant7",
    }
    assert {name: column.tolist() for name, column in workload.logged.items()} == {
        "wait": [10],
        "status": [1],
        "allocated": [2],
    }
    assert found(workload) == {}
    assert workload.provenance["records"] == {"E": 1, "Q": 1, "S": 1}
    workload.check()


def test_time_0_is_the_first_submit_and_its_date_is_kept(log, tmp_path):
    workload = log(end(2, submit=50, start=60), end(1, submit=20, start=30, end=90))
    assert seconds(workload.submit).tolist() == [0, 30]
    assert workload.job.tolist() == [1, 2]
    assert workload.provenance["header"] == {"UnixStartTime": [str(T + 20)]}
    assert workload.provenance["origin_shift"] == "time 0 is 2023-11-14 22:13:40 UTC"
    write_swf(workload, tmp_path / "out.swf")
    assert read_swf(tmp_path / "out.swf").provenance["header"]["UnixStartTime"] == [str(T + 20)]


@pytest.mark.parametrize(
    ("times", "submit"),
    [
        ({"etime": T + 30}, 30),
        ({"etime": 0}, 20),
        ({"etime": None}, 20),
        ({"etime": 0, "qtime": 0}, 10),
    ],
)
def test_a_job_is_submitted_when_it_became_eligible(log, times, submit):
    values = {"ctime": T + 10, "qtime": T + 20, **times}
    workload = log(end(9, start=5), end(start=40, end=100, **values))
    assert int(workload.provenance["header"]["UnixStartTime"][0]) == T
    assert seconds(workload.submit).tolist() == [0, submit]
    assert workload.logged["wait"].tolist()[1] == 40 - submit


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("Resource_List.nodes=2:ppn=8", 16),
        ("Resource_List.nodes=2:ppn=8:fat+1:ppn=4#shared Resource_List.ncpus=1", 20),
        ("Resource_List.nodes=node7:ppn=3+10node:ppn=2", 5),
        ("Resource_List.nodes=3", 3),
        ("Resource_List.nodes=1 Resource_List.ncpus=8", 8),
        ("Resource_List.procs=12 Resource_List.nodect=2", 12),
        ("Resource_List.ncpus=4", 4),
        ("Resource_List.select=2:ncpus=8:mem=1gb+1:ncpus=4 Resource_List.ncpus=20 Resource_List.nodes=9", 20),
        ("Resource_List.select=ncpus=6:ompthreads=1", 6),
        ("Resource_List.select=4 Resource_List.ncpus=4", 4),
        ("Resource_List.select=1:ncpus=0 Resource_List.ncpus=0", 0),
        ("Resource_List.mem=1gb", -1),
    ],
)
def test_cores_that_were_requested(text, cores):
    assert requested_cores(fields_of(text.encode())) == cores


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("exec_host=n1/0+n1/1+n-2/0", 3),
        ("exec_host=n1/0-7+n2/0-3,6", 13),
        ("exec_host=n1/0*8+n2/0", 9),
        ("exec_host=n1/0*8 exec_vnode=(n1:ncpus=8:mem=2gb+n1b:ncpus=2)+(n2:ncpus=1)", 11),
        ("exec_host=n1/0 total_execution_slots=24", 24),
        ("resources_used.ncpus=5", 5),
        ("", -1),
    ],
)
def test_cores_that_were_given(text, cores):
    assert got(fields_of(text.encode())) == cores


def test_a_job_without_a_request_needs_what_it_got(log):
    workload = log(end(Resource_List__nodes=None, exec_host="n1/0-3"))
    assert workload.cores.tolist() == [4]
    assert workload.provenance["cores_field"] == {"requested": 0, "allocated": 1}


@pytest.mark.parametrize(
    ("text", "value"), [("90", 90), ("01:30", 90), ("100:00:01", 360_001), ("2:00:00:05", 172_805), ("00:00:01.25", 1)]
)
def test_durations(text, value):
    assert duration(text.encode()) == value


@pytest.mark.parametrize("text", ["", "a", "-5", "1:2:3:4:5", "1::2", "1.x", "9" * 70, "１"])
def test_texts_that_are_not_durations(text):
    assert np.isnan(duration(text.encode()))


def test_values_may_hold_blanks_and_the_first_of_a_key_counts(log):
    workload = log(
        end(1, jobname='"my job user=eve"', account="'a \"b'"),
        end(2, jobname="no quotes here", comment='"user=eve queue=none"', submit=1, end=71),
    )
    assert label(workload, "executable") == ["my job user=eve", "no quotes here"]
    assert label(workload, "user") == ["ada", "ada"]
    assert label(workload, "account") == ['a "b', ""]


def test_the_default_project_is_no_account(log):
    assert "account" not in log(end(project="_pbs_project_default")).labels
    assert label(log(end(project="wing")), "account") == ["wing"]


def test_a_name_in_any_encoding_is_kept(log):
    assert label(log(end(user="zo\xeb")), "user") == ["zo\xeb"]


@pytest.mark.parametrize(("code", "status"), [(0, 1), (1, 0), (271, 0), (-1, 0), (None, -1)])
def test_the_exit_says_the_status(log, code, status):
    assert log(end(Exit_status=code)).logged["status"].tolist() == [status]


def test_a_deleted_job_that_ran_is_a_cancelled_one(log):
    workload = log(start(), record("D", 60, text="requestor=ada@login"), end(Exit_status=271))
    assert workload.logged["status"].tolist() == [5]
    assert seconds(workload.runtime).tolist() == [60]


def test_an_end_without_a_start_takes_that_of_the_record_of_the_start(log):
    bare = record("E", 70, text=f"user=ada end={T + 70} Exit_status=0")
    workload = log(start(), bare)
    assert (seconds(workload.runtime).tolist(), workload.cores.tolist()) == ([60], [2])


def test_the_machine_has_the_peak_number_of_cores_in_use_by_default(log):
    lines = [end(1), end(2, start=60, end=80), end(3, start=70, end=90, Resource_List__nodes="1:ppn=5")]
    workload = log(*lines)
    assert workload.cores_stated == 7  # jobs 2 and 3, after job 1 had ended
    assert machine_cores(workload) == (7, "most cores in use at once")
    assert log(*lines, cores=64).cores_stated == 64
    assert machine_cores(log(*lines), 64) == (64, "given")
    assert log(*REQUEUED).cores_stated == 4  # from its last start


# Jobs with several end records, or none


REQUEUED = (record("Q", 0), start(), record("R", 40), start(start=55), end(start=55, end=100), end(2, end=80))


def test_a_requeued_job_is_one_that_was_first_and_runs_as_long_as_its_last_run(log):
    workload = log(*REQUEUED)
    assert seconds(workload.submit).tolist() == [0, 0]
    assert seconds(workload.runtime).tolist() == [45, 70]
    assert workload.logged["wait"].tolist() == [10, 10]
    assert (workload.logged_start / 1e6).tolist() == [10, 10]
    assert (workload.logged_end / 1e6).tolist() == [100, 80]
    assert workload.logged["runs"].tolist() == [2, 1]
    assert workload.logged["lost"].tolist() == [2 * 30, 0]
    assert found(workload) == {"earlier-run": (1, [2])}
    assert (workload.provenance["jobs_read"], workload.provenance["jobs_kept"]) == (2, 2)


def test_a_requeued_job_that_continues_runs_as_long_as_all_its_runs(log):
    workload = log(*REQUEUED, rules={"earlier-run": "sum"})
    assert seconds(workload.runtime).tolist() == [75, 70]
    assert (workload.logged_end / 1e6).tolist() == [100, 80]


def test_a_requeued_job_without_its_earlier_runs_counts_from_its_requeue(log):
    workload = log(*REQUEUED, rules={"earlier-run": "skip"})
    assert seconds(workload.submit).tolist() == [0, 40]
    assert seconds(workload.runtime).tolist() == [70, 45]
    assert workload.logged["wait"].tolist() == [10, 15]
    assert workload.provenance["jobs_read"] == 2


def test_a_run_before_the_requeue_may_be_a_job_too(log):
    workload = log(*REQUEUED, rules={"earlier-run": "keep"})
    assert seconds(workload.submit).tolist() == [0, 0, 40]
    assert sorted(seconds(workload.runtime).tolist()) == [30, 45, 70]
    assert (workload.provenance["jobs_read"], workload.provenance["jobs_kept"]) == (3, 3)


def test_the_end_of_a_requeued_run_is_its_time(log):
    workload = log(
        *(start(start=10), record("R", 44, text=about(end=T + 40)), start(start=55), end(start=55, end=99), end(2)),
        rules={"earlier-run": "skip"},
    )
    assert seconds(workload.submit).tolist() == [0, 40]


def test_a_start_that_failed_is_an_earlier_run(log):
    workload = log(start(start=10), start(start=12), end(start=12))
    assert found(workload) == {"earlier-run": (1, [1])}
    assert seconds(workload.submit).tolist() == [0]


def test_a_repeated_start_is_one(log):
    assert found(log(start(), start(), end())) == {}


def test_a_job_deleted_before_its_start_never_ran(log):
    workload = log(record("Q", 0, 5), record("D", 9, 5), record("A", 9, 6), end())
    assert found(workload) == {"never-ran": (2, [2, 3])}
    assert workload.provenance["jobs_read"] == 3


def test_an_end_without_any_start_never_ran(log):
    assert found(log(end(2, start=None, Exit_status=271), end())) == {"never-ran": (1, [1])}


def test_jobs_that_wait_where_the_log_ends_are_named(log):
    workload = log(record("Q", 0, 5), start(7), record("R", 50, 7), end())
    assert len(workload) == 1
    assert found(workload) == {"still-waiting": (2, [1, 3]), "earlier-run": (1, [2])}


def test_a_job_that_runs_where_the_log_ends_ends_there(log):
    workload = log(start(6, start=20), end(end=75))
    assert workload.job.tolist() == [1, 6]
    assert seconds(workload.runtime).tolist() == [65, 55]
    assert workload.logged["status"].tolist() == [1, -1]
    assert found(workload) == {"still-running": (1, [1])}
    assert len(log(start(6, start=20), end(end=75), rules={"still-running": "skip"})) == 1


def test_a_job_far_beyond_its_limit_lost_its_end(log):
    lines = [start(6), end(end=2000, Resource_List__walltime="01:00:00")]
    assert found(log(*lines)) == {"runaway": (1, [1])}
    assert seconds(log(*lines, rules={"runaway": "repair"}).runtime).tolist() == [1990, 600]


def test_a_job_whose_end_was_lost_ends_with_its_deletion(log):
    workload = log(start(6, start=20), record("D", 50, 6), end())
    assert seconds(workload.runtime).tolist() == [60, 30]
    assert workload.logged["status"].tolist() == [1, 5]


@pytest.mark.parametrize(("rule", "submits"), [("repair", [0, 30]), ("keep", [0, 10]), ("skip", [0])])
def test_a_job_that_was_held_is_counted(log, rule, submits):
    held = end(2, start=40, end=90, qtime=T + 10, etime=T + 30)
    workload = log(end(), held, rules={"late-eligible": rule})
    assert seconds(workload.submit).tolist() == submits
    assert found(workload) == {"late-eligible": (1, [2])}
    assert workload.provenance["jobs_read"] == 2


def test_elements_of_arrays_are_jobs_and_the_array_is_none(log):
    workload = log(
        record("Q", 0, "7[].server"),
        end("7[2].server", end=70),
        end("7[1].server", end=80),
        end("9-3.server", submit=5, end=90),
        end(8, submit=5),
        record("E", 99, "7[].server", about()),
    )
    assert found(workload) == {"array-parent": (1, [1])}
    assert workload.job.tolist() == [10, 11, 8, 12]
    assert workload.logged["array"].tolist() == [7, 7, -1, 9]
    assert workload.logged["element"].tolist() == [1, 2, -1, 3]


def test_the_same_run_twice_is_one(log):
    assert found(log(end(), end(2), end())) == {"repeated-line": (1, [3])}


def test_a_number_of_two_servers_or_used_again_names_two_jobs(log):
    workload = log(end(), end("1.other"), end(start=200, end=260, submit=190), end(2, submit=5))
    assert workload.job.tolist() == [1, 3, 2, 4]
    assert found(workload)["duplicate-job"][0] == 2


def test_equal_submits_stay_in_the_order_of_job_numbers(log):
    assert log(end(3, end=50), end(1, end=60), end(2, end=70)).job.tolist() == [1, 2, 3]


# Damaged and impossible records


def test_lines_that_are_no_records_are_counted(log):
    workload = log("", "garbage", end(), record("Q", 0, "license"), end()[:15], f"{stamp(T)};E")
    assert found(workload) == {"not-a-record": (4, [2, 4, 5, 6])}
    with pytest.raises(InputError, match="line 1: not-a-record: found 'garbage'"):
        log("garbage", end(), rules={"not-a-record": "error"})


def test_records_of_other_things_are_counted_by_type(log):
    workload = log(f"{stamp(T)};L;license;floating", f"{stamp(T)};B;R5.server;owner=ada", end())
    assert workload.provenance["records"] == {"B": 1, "E": 1, "L": 1}
    assert found(workload) == {}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"etime": "soon"}, "submit time"),
        ({"Resource_List__nodes": "2:ppn=x"}, "requested processors"),
        ({"Resource_List__walltime": "ever"}, "requested time"),
        ({"Resource_List__nodes": "9999999999:ppn=9"}, "requested processors"),
        ({"Resource_List__walltime": "9" * 12}, "requested time"),
    ],
)
def test_a_value_that_is_no_number_leaves_the_job_out(log, fields, field):
    lines = [end(2, **fields), end()]
    assert found(log(*lines)) == {"not-a-number": (1, [1])}
    with pytest.raises(InputError, match=rf"line 1, field '{field}': not-a-number: found .*"):
        log(*lines, rules={"not-a-number": "error"})


def test_a_start_before_the_submit_moves_the_submit(log):
    workload = log(end(start=10, submit=0), end(2, submit=40, start=30, end=90))
    assert seconds(workload.submit).tolist() == [0, 30]
    assert workload.logged["wait"].tolist() == [10, 0]
    assert found(workload) == {"start-before-submit": (1, [2])}


def test_the_rules_of_all_logs_hold(log):
    workload = log(
        end(1, end=2000),
        end(2, Resource_List__walltime=None),
        end(3, start=70),
        end(4, end=5),
        end(5, Resource_List__nodes="4:ppn=4"),
        cores=8,
    )
    assert {kind: count for kind, (count, _) in found(workload).items()} == {
        "over-estimate": 1,
        "missing-estimate": 1,
        "zero-runtime": 1,
        "negative-runtime": 1,
        "too-wide": 1,
    }


def test_a_log_in_which_nothing_ended_is_refused(log):
    with pytest.raises(InputError, match=r"no job that ran among 2 lines \(1 never-ran\)"):
        log(record("Q", 0), record("D", 5))


# Files


def test_the_days_of_a_folder_are_one_log(tmp_path):
    days = tmp_path / "accounting"
    days.mkdir()
    (days / "20231114").write_text(record("Q", 0) + "\n" + start() + "\n")
    (days / "20231115.gz").write_bytes(gzip.compress((end(end=90) + "\n" + "cut off").encode()))
    (days / "20231116").write_text("")
    (days / "20231117").write_text(end(2) + "\n")
    workload = read_workload(days)
    assert workload.job.tolist() == [1, 2]
    assert found(workload) == {"not-a-record": (1, [4])}
    assert (workload.provenance["format"], workload.provenance["files"], workload.provenance["lines"]) == ("pbs", 3, 5)
    again = read_workload([days / "20231114", days / "20231115.gz", days / "20231117"])
    assert again.provenance["sha256"] == workload.provenance["sha256"]
    assert again.provenance["source"] == f"{days / '20231114'} and 2 more"


def test_a_folder_without_files_is_refused(tmp_path):
    with pytest.raises(InputError, match="folder without files"):
        read_pbs(tmp_path)


def test_the_format_is_recognised_by_the_content_of_the_file(tmp_path):
    (tmp_path / "log").write_text("\ngarbage\n" + start() + "\n")
    assert looks_like_pbs(first_bytes(tmp_path / "log"))
    eighteen = end(**{f"x{place}": place for place in range(3)})
    assert len(eighteen.split()) == 18
    (tmp_path / "eighteen").write_text(eighteen + "\n")
    assert format_of(tmp_path / "eighteen", {}) == "pbs"


@pytest.mark.parametrize("source", ["generated", pytest.param("others", marks=pytest.mark.others)])
def test_logs_in_other_formats_are_not_taken_for_one_of_pbs(tmp_path, others, source):
    if source == "generated":
        write_swf(Lublin(jobs=20, cores=16).generate(1), tmp_path / "log.swf.gz")
        (tmp_path / "trace.gwf").write_text("WorkflowID, JobID, SubmitTime, RunTime, NProcs, ReqNProcs, Dependencies\n")
        paths = list(tmp_path.iterdir())
    else:
        paths = [*others("swf").glob("*.gz"), *others("gwf").glob("*.gwf")]
    assert len(paths) > 1
    assert not any(looks_like_pbs(first_bytes(path)) for path in paths)


def test_jobs_that_ended_are_kept_as_columns_only(tmp_path):
    path = tmp_path / "log"
    lines = []
    for job in range(1, 9_001):
        lines += [record("Q", job, job), start(job, job, job + 1), end(job, job, job + 1, job + 60)]
    path.write_text("\n".join(lines) + "\n")
    workload = read_pbs(path)
    assert len(workload) == 9_000
    assert workload.provenance["lines"] == 27_000
    assert found(workload) == {}


# Arbitrary input


LINES = st.sampled_from(
    [
        record("Q", 0),
        start(),
        record("R", 40),
        start(start=50),
        end(start=50),
        end(2),
        record("D", 5, 3),
        record("Q", 0, "7[].s"),
        end("7[1].s"),
        record("C", 30),
        record("T", 35, text=about()),
        record("L", 0, "license", "x"),
        end(9, end=8),
        end(10, comment='"a b'),
    ]
)


def read_or_nothing(path: Path, rules: dict[str, str]) -> Workload | None:
    """Return the workload, or None without usable rows."""
    try:
        return read_pbs(path, rules=rules)
    except InputError as error:
        if "no job that ran" not in str(error):
            raise
        return None


def accounted(workload: Workload, content: bytes) -> None:
    """Assert that every line and every job is counted."""
    entries = {entry["kind"]: entry for entry in workload.provenance["problems"]}
    filled = [line for line in content.split(b"\n") if line.strip()]
    counted = sum(workload.provenance["records"].values()) + entries.get("not-a-record", {"count": 0})["count"]
    assert counted == len(filled)
    out = sum(
        entry["count"]
        for kind, entry in entries.items()
        if entry["rule"] == "skip" and kind not in ("not-a-record", "array-parent")
    )
    assert workload.provenance["jobs_read"] == len(workload) + out == workload.provenance["jobs_kept"] + out


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINES, min_size=1, max_size=20), cut=st.integers(0, 40), seed=st.integers(0, 999), data=st.data())
def test_any_text_of_a_log_is_read_or_counted(tmp_path, lines, cut, seed, data):
    draw = random.Random(seed)
    draw.shuffle(lines)
    content = bytearray("\n".join(lines).encode("latin-1"))
    for _ in range(data.draw(st.integers(0, 4))):  # some bytes are replaced
        content[draw.randrange(len(content))] = draw.randrange(1, 256)
    content = content[: len(content) - cut] or bytearray(b"x")
    path = tmp_path / "log"
    path.write_bytes(content)
    rules = data.draw(
        st.sampled_from([{}, {"still-running": "skip", "zero-runtime": "repair"}, {"earlier-run": "keep"}])
    )
    workload = read_or_nothing(path, rules)
    if workload is not None:
        accounted(workload, bytes(content))
        workload.check()
        assert (np.diff(workload.submit) >= 0).all()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.binary(max_size=60).map(lambda text: text.replace(b"\n", b"").replace(b"\0", b"")), max_size=8)
)
def test_hostile_fields_do_no_harm(tmp_path, texts):
    content = b"\n".join([*(end(5).encode() + b" " + text for text in texts), *texts, end(77, start=12).encode()])
    path = tmp_path / "log"
    path.write_bytes(content)
    accounted(read_pbs(path), content)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "text",
    [
        "a" * 500_000,
        "a " * 250_000,
        " " * 500_000,
        "=" * 500_000,
        'k="' * 160_000,
        "k='x\" " * 80_000,
        "Resource_List.select=" + "1:ncpus=1+" * 50_000,
        "Resource_List.walltime=" + "1:" * 200_000,
        "ctime=" + "9" * 400_000,
    ],
    ids=lambda text: text[:24],
)
def test_a_long_line_takes_no_long_time(log, text):
    began = time.process_time()
    log(end(5) + " x " + text, end())
    assert time.process_time() - began < 5
