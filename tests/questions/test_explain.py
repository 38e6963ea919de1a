"""Explanation of the wait of one job from a schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridsim as gs
from gridsim.errors import InputError
from gridsim.files import parse_json
from gridsim.model.dates import Calendar
from gridsim.model.platform import Platform
from gridsim.questions.explain import Explanation, explain, waits
from gridsim.questions.result_folders import recorded
from gridsim.questions.schedules import CutRuns, JobSchedule, read_schedules
from gridsim.record import Record
from gridsim.report.explain_text import from_log, sentences
from gridsim.run_folder import read_run
from gridsim.scenario import Scenario


def schedule(*rows: tuple[int, float, float, float], machine: int = 4) -> JobSchedule:
    """Rows of cores, submit, start, end; jobs are numbered from 1."""
    cores, *times = zip(*rows, strict=True)
    submit, start, end = (np.array(column, dtype=float) for column in times)
    status = np.where(np.isnan(start), "unadmitted", "completed")
    users = np.array([f"u{number}" for number in range(1, len(rows) + 1)])
    return JobSchedule(
        np.arange(1, len(rows) + 1), np.array(cores), submit, start, end, end - start, status, users, machine
    )


NAN = float("nan")


def test_time_without_free_cores_and_time_kept_for_others_are_distinguished() -> None:
    # Job 2 requests all cores and starts at 10; job 3 could run in parallel with job 1, but is behind job 2.
    found = explain(schedule((2, 0, 0, 10), (4, 1, 10, 15), (2, 2, 15, 16)), 3)
    assert (found.short, found.enough, found.free) == (5.0, 8.0, 2)
    assert [(one.job, one.share) for one in found.first] == [(2, 1.0)]
    assert (found.ahead, found.ahead_work) == (1, 20.0)
    assert [one.job for one in found.freeing] == [2]


def test_those_that_arrived_later_and_started_earlier_are_counted() -> None:
    found = explain(schedule((3, 0, 0, 10), (4, 1, 12, 15), (1, 2, 2, 12), (1, 3, 13, 14)), 2)
    assert (found.passed, found.passed_work) == (1, 10.0)
    assert [one.job for one in found.passing] == [3]
    assert [one.job for one in found.holders] == [1, 3]
    assert sum(one.share for one in found.holders) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("passing", "told"), [(1, "started first (0.0025 core-hours, job 2 of user u2)"), (3, ", the largest part by job ")]
)
def test_the_largest_job_that_passed_is_not_called_most_of_the_work(passing: int, told: str) -> None:
    later = [(1, 1 + job, 2 + job, 11 + job) for job in range(passing)]
    (line,) = [it for it in sentences(explain(schedule((4, 0, 20, 30), *later), 1), "easy") if "later job" in it]
    assert told in line


def test_a_job_that_started_at_once_has_nothing_to_explain() -> None:
    found = explain(schedule((1, 0, 0, 10), (1, 1, 1, 2)), 2)
    assert (found.wait, found.short, found.enough, found.holders, found.freeing) == (0.0, 0.0, 0.0, (), ())
    assert sentences(found, "easy") == [
        "Job 2 of user u2 requested 1 core of 4 for 1 s, and started at once under easy: 3 cores were free."
    ]


@pytest.mark.parametrize(
    ("start", "logged", "reason", "told"),
    [
        (900, 855, "", "waited 14 min 15 s; the simulation gives 15 min, which agrees."),
        (900, 855, "Licenses", "(reason Licenses); the simulation gives 15 min, but for another reason, so the"),
        (30, 20, "Licenses", "waited 20 s (reason Licenses); the simulation gives 30 s, which agrees."),
        (
            0,
            50,
            "",
            "waited 50 s; the simulation gives 0 s, so the explanation below is not that of the recorded wait.",
        ),
        (
            50,
            10,
            "",
            "waited 10 s; the simulation gives 50 s, so the explanation below is not that of the recorded wait.",
        ),
        (
            30,
            NAN,
            "",
            "did not start; the simulation gives 30 s, so the explanation below is not that of the recorded wait.",
        ),
        (
            NAN,
            30,
            "",
            "waited 30 s; the simulation does not start it, so the explanation below is not that of the recorded wait.",
        ),
        (NAN, NAN, "", "did not start; the simulation does not start it, which agrees."),
    ],
)
def test_the_wait_in_the_log_is_compared_with_the_simulated_one(
    start: float, logged: float, reason: str, told: str
) -> None:
    there = schedule((1, 0, start, start + 9))
    assert from_log(explain(there, 1)) == []
    there = there._replace(logged_start=np.array([logged]), logged_reason=np.array([reason]))
    (found,) = from_log(explain(there, 1))
    assert found.startswith("In the log, this job")
    assert told in found


def test_a_job_that_did_not_run_says_so() -> None:
    (told,) = sentences(explain(schedule((1, 0, 0, 10), (4, 1, NAN, NAN)), 2), "qops")
    assert "did not run under qops (unadmitted)" in told


def test_instants_are_reported_as_dates_where_the_log_has_them() -> None:
    dated = schedule((4, 0, 0, 74), (4, 14, 74, 84), (1, 100, 100, 101), (9, 3700, NAN, NAN))
    dated = dated._replace(calendar=Calendar(1_795_244_026))
    assert [sentences(explain(dated, job), "easy")[1] for job in (2, 3, 4)] == [
        "It was submitted at 2026-11-21 06:54 and started at 2026-11-21 06:55.",
        "It was submitted and started at 2026-11-21 06:55:26.",
        "It was submitted at 2026-11-21 07:55:26.",
    ]
    soon = schedule((1, 14.2, 14.7, 20))._replace(calendar=dated.calendar)
    assert (
        sentences(explain(soon, 1), "easy")[1]
        == "It was submitted at 2026-11-21 06:54 and started within the same second."
    )
    told = explain(dated, 2).to_dict()
    assert (told["submitted"], told["started"]) == ("2026-11-21 06:54", "2026-11-21 06:55")
    bare = explain(dated._replace(calendar=None), 2)
    assert (bare.submitted, bare.started) == ("", "")
    assert "submitted at" not in " ".join(sentences(bare, "easy"))


def test_the_first_job_changes_at_each_start() -> None:
    # Two wide jobs wait in sequence while job 4 could run: 2 is first until 10, then 3 until 20.
    found = explain(schedule((2, 0, 0, 10), (3, 1, 10, 20), (3, 2, 20, 30), (1, 3, 30, 31)), 4)
    assert [(one.job, round(one.share * found.enough)) for one in found.first] == [(3, 10), (2, 7)]
    assert found.enough == 27.0


def requeued() -> gs.Result:
    """Job 2 runs from 0 to 4, is preempted by a job with a deadline, and restarts."""
    log = gs.Workload.from_columns(
        submit=[0, 0, 4], runtime=[10, 10, 6], cores=[2, 2, 2], deadline=[40, 40, 10], restartable=[False, True, False]
    )
    return gs.simulate(log, platform=Platform.single(4), policy="fqops?kill_restart=true")


def test_runs_that_were_cut_short_are_no_wait() -> None:
    # Job 2 has all cores from 2 to 5 and is preempted by job 3; until 2, and from 5 to 9, too few cores are free.
    lost = CutRuns(np.array([1]), np.array([2.0]), np.array([5.0]))
    found = explain(schedule((2, 0, 0, 2), (4, 0, 9, 19), (4, 5, 5, 9))._replace(cut=lost), 2)
    assert (found.wait, found.cut, found.lost, found.short, found.enough) == (6.0, 1, 3.0, 6.0, 0.0)
    lines = sentences(found, "today")
    assert lines[0].endswith("and waited 6 s under today, in addition to 3 s in 1 run stopped for other jobs.")
    assert "Its last run started 9 s after submission; the following sentences cover the time until then." in lines
    # Only the interval from 2 to 3 was reserved for others: the run itself does not count as reserved cores.
    held = explain(
        schedule((2, 0, 0, 2), (4, 0, 9, 19), (4, 5, 5, 9))._replace(cut=lost._replace(start=np.array([3.0]))), 2
    )
    assert (held.wait, held.short, held.enough) == (7.0, 6.0, 1.0)


def test_runs_that_were_cut_short_are_read_from_a_folder(tmp_path: Path) -> None:
    result = requeued()
    assert result.record.kills.tolist() == [0, 1, 0]
    result.write(tmp_path)
    (read,) = read_schedules(tmp_path).values()
    mine, theirs = explain(JobSchedule.of(result.record), 2), explain(read, 2)
    assert (mine.cut, mine.lost) == (1, 4.0)
    assert mine.to_dict() == {**theirs.to_dict(), "status": mine.status}
    assert mine.wait == result.record.wait[1] - 4.0
    assert mine.short + mine.enough == mine.wait
    assert waits({"a": read}, 2)["a"][1] == mine.wait
    (tmp_path / "killed_runs.csv").write_text("job,start\n2,0\n")
    with pytest.raises(
        InputError, match=r"killed_runs\.csv, field 'end': is missing; expected the columns job, start, end"
    ):
        read_schedules(tmp_path)


def test_an_unknown_job_is_refused_with_the_numbers_there_are() -> None:
    with pytest.raises(InputError, match="there is no job 9; numbers go from 1 to 1"):
        explain(schedule((1, 0, 0, 10)), 9)


@given(st.integers(0, 10_000), st.sampled_from(["fcfs", "easy", "conservative"]))
def test_the_parts_of_a_wait_add_up(seed: int, policy: str) -> None:
    rng = np.random.default_rng(seed)
    log = gs.Workload.from_columns(
        submit=np.sort(rng.integers(0, 30, 12)), runtime=rng.integers(1, 20, 12), cores=rng.integers(1, 5, 12)
    )
    record = gs.simulate(log, platform=Platform.single(4), policy=policy).record
    one = schedule(*zip(log.cores.tolist(), record.submit, record.start, record.end, strict=True))
    for row, job in enumerate(one.job.tolist()):
        found = explain(one, job)
        assert found.short + found.enough == pytest.approx(found.wait)
        assert found.free == _free(one, row)
        assert found.enough == pytest.approx(_enough(one, row))
        if policy == "fcfs":
            assert found.passed == 0


def _free(one: JobSchedule, row: int) -> int:
    others = np.arange(len(one.job)) != row
    runs = others & (one.start <= one.submit[row]) & (one.end > one.submit[row])
    return int(one.machine - one.cores[runs].sum())


def _enough(one: JobSchedule, row: int) -> float:
    """Second by second: all times are whole."""
    seconds = 0
    for at in range(int(one.submit[row]), int(one.start[row])):
        held = one.cores[(one.start <= at) & (one.end > at)].sum()
        seconds += one.machine - held >= one.cores[row]
    return float(seconds)


@pytest.mark.parametrize("table", ["csv", pytest.param("parquet", marks=pytest.mark.parquet)])
def test_result_directories_are_read_back(tmp_path: Path, table: str) -> None:
    result = Scenario(model="lublin?jobs=40&cores=16&load=1&users=3", cores=16, policy="easy").run()
    result.write(tmp_path, table=table)
    (one,) = read_schedules(tmp_path).values()
    np.testing.assert_array_equal(one.start, result.record.start)
    np.testing.assert_array_equal(one.cores, result.workload.cores)
    assert one.machine == 16
    found = explain(one, one.longest())
    assert isinstance(found, Explanation)
    assert found.wait == pytest.approx(np.nanmax(result.record.wait))
    assert waits({"easy": one}, found.job) == {"easy": (found.start, found.wait)}


def test_the_description_of_a_run_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Scenario(model="lublin?jobs=4&cores=16", cores=16, policy="easy").run().write(tmp_path)
    parsed: list[object] = []

    def parse(data: bytes, path: object, expected: str) -> Any:
        parsed.append(path)
        return parse_json(data, path, expected)

    monkeypatch.setattr("gridsim.schema.parse_json", parse)
    for read in (read_run, read_schedules, lambda folder: recorded([str(folder)])):
        parsed.clear()
        read(tmp_path)
        assert parsed.count(tmp_path / "run.json") == 1


def test_a_folder_that_is_no_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no run\.json"):
        read_schedules(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("run.json", b"[]", r"run\.json line 1: is \[\]; expected an object"),
        ("run.json", b'{"folders": 3, "versions": {}}', r"run\.json line 1, field 'folders': is 3; expected an object"),
        (
            "run.json",
            b'{"folders": {}, "versions": {}}',
            r"run\.json, field 'folders': is empty; expected the folders of policies",
        ),
        ("run.json", b'{"workload": {},\n "policy": 4}', r"run\.json line 1, field 'platform': is missing"),
        ("jobs.csv", b"job,cores,submit,start\n1,1,0,soon\n", r"jobs\.csv line 2, field 'start': is 'soon'"),
        ("jobs.csv", b"job,status\n1,gone\n", r"jobs\.csv line 2, field 'status': is 'gone'; expected one of"),
        ("jobs.csv", b"job,cores\n1,1\n", r"jobs\.csv, field 'submit': is missing"),
        ("names.csv", b"label,number,name\nuser,x,y\n", r"names\.csv line 2: .*expected label, number and name"),
        ("names.csv", b"\xff", r"names\.csv line 1: is not UTF-8"),
    ],
)
def test_a_result_that_is_damaged_is_refused(file: str, content: bytes, message: str, tmp_path: Path) -> None:
    Scenario(model="lublin?jobs=4&cores=16", cores=16, policy="easy").run().write(tmp_path)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_schedules(tmp_path)


def test_one_free_core_is_one() -> None:
    rows = [{"submit": 0, "start": 0, "end": 9, "cores": 3}, {"submit": 1, "start": 1, "end": 2, "cores": 1}]
    (told,) = sentences(explain(JobSchedule.of(Record.from_rows(rows, cores=4)), 2), "easy")
    assert told.endswith("started at once under easy: 1 core was free.")
