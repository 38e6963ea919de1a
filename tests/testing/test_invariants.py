"""One violation of every kind, inserted into a valid schedule and detected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.errors import CheckFailed, InputError
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.record import Record, Status
from gridsim.simulation import run, simulate
from gridsim.testing.invariants import Schedule, assert_valid, violations, violations_of
from gridsim.testing.schedule_reader import read_jobs, read_schedule
from gridsim.testing.violation import KINDS, TASK_KINDS, USER_KINDS, Violation
from gridsim.workload.transform.react import React

SECOND = 1_000_000

JOBS = Workload.from_columns(
    job=[11, 12, 13, 14], submit=[0, 1, 2, 3], runtime=[10, 10, 5, 9], estimate=[10, 20, 5, 6], cores=[3, 4, 1, 2]
)
"""Job 14 reaches its estimate."""


def sound() -> Schedule:
    return Schedule(
        job=JOBS.job.copy(),
        start=np.array([0, 10, 2, 20]) * SECOND,
        end=np.array([10, 20, 7, 26]) * SECOND,
        submit=JOBS.submit.copy(),
        wait=np.array([0, 9, 0, 17]) * SECOND,
        granted=np.array([10 * SECOND, NEVER, 7 * SECOND, NEVER]),
        cores=JOBS.cores.copy(),
        status=np.array([Status.completed] * 3 + [Status.killed_walltime], dtype=np.int64),
    )


def changed(column: str, row: int, value: Any) -> Schedule:
    schedule = sound()
    getattr(schedule, column)[row] = value
    return schedule


def rows(order: list[int]) -> Schedule:
    schedule = sound()
    columns = ("job", "start", "end", "submit", "wait", "granted", "cores", "status")
    return replace(schedule, **{name: getattr(schedule, name)[order] for name in columns})


def rejected() -> Schedule:
    schedule = changed("status", 3, int(Status.rejected))
    schedule.start[3] = schedule.end[3] = schedule.wait[3] = NEVER  # type: ignore[index]
    return schedule


def promised_and_refused() -> Schedule:
    schedule = changed("status", 2, int(Status.unadmitted))
    schedule.start[2] = schedule.end[2] = schedule.wait[2] = NEVER  # type: ignore[index]
    return schedule


def cut_short(job: int, start: int, end: int) -> Schedule:
    """A run of a job before its last one, s."""
    times = np.array([start, end]) * SECOND
    return replace(sound(), cut_job=np.array([job]), cut_start=times[:1], cut_end=times[1:])


PLANTED: dict[str, tuple[Schedule, int]] = {
    "unknown-job": (changed("job", 3, 99), 99),
    "duplicate-job": (rows([0, 1, 2, 3, 2]), 13),
    "missing-job": (rows([0, 1, 2]), 14),
    "no-outcome": (changed("end", 3, NEVER), 14),
    "negative-time": (changed("start", 0, -1), 11),
    "ends-before-start": (changed("end", 3, 19 * SECOND), 14),
    "starts-before-submit": (changed("start", 2, 1 * SECOND), 13),
    "wrong-submit": (changed("submit", 1, 2 * SECOND), 12),
    "wrong-wait": (changed("wait", 1, 8 * SECOND), 12),
    "wrong-end": (changed("end", 2, 8 * SECOND), 13),
    "wrong-cores": (changed("cores", 2, 0), 13),
    "too-wide": (changed("cores", 1, 5), 12),
    "oversubscribed": (changed("start", 3, 19 * SECOND), 14),
    "wrong-status": (changed("status", 3, int(Status.completed)), 14),
    "rejected-fits": (rejected(), 14),
    "deadline-missed": (changed("granted", 2, 7 * SECOND - 1), 13),
    "promised-yet-refused": (promised_and_refused(), 13),
    "two-runs-at-once": (cut_short(14, 19, 21), 14),
}


def found(schedule: Schedule, **options: Any) -> dict[str, Violation]:
    return {violation.kind: violation for violation in violations_of(schedule, JOBS, cores=4, **options)}


def test_a_sound_schedule_has_no_violation() -> None:
    assert violations_of(sound(), JOBS, cores=4) == []
    assert violations_of(rows([3, 1, 0, 2]), JOBS, cores=4) == []


def test_a_violation_of_every_kind_is_planted() -> None:
    assert set(PLANTED) == set(KINDS)


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_violation_is_found_with_its_job(kind: str) -> None:
    schedule, job = PLANTED[kind]
    violation = found(schedule)[kind]
    assert (violation.count, violation.jobs) == (1, (job,))
    assert kind in str(violation)


@pytest.mark.parametrize(
    ("job", "start", "end"),
    [(12, 0, 5), (12, 5, 5), (14, 11, 18), (99, 11, 12)],  # too early, no time, longer than requested, unknown
)
def test_runs_cut_short_are_runs_of_a_job_that_waits_again(job: int, start: int, end: int) -> None:
    assert "two-runs-at-once" in found(cut_short(job, start, end))


def test_where_jobs_exceed_their_estimates_so_may_runs_cut_short() -> None:
    assert "two-runs-at-once" not in found(cut_short(14, 10, 19), overrun="extend")
    assert "two-runs-at-once" in found(cut_short(14, 10, 20), overrun="extend"), "it runs 9 s"


def test_runs_cut_short_hold_cores() -> None:
    assert found(cut_short(14, 7, 10))["oversubscribed"].instants == (7.0,)
    assert "oversubscribed" not in found(cut_short(13, 9, 10)), "one core is free"


def test_a_promise_that_an_overrun_broke_is_excused_where_overruns_are_allowed() -> None:
    late = changed("granted", 2, 6 * SECOND)
    excused = replace(late, broken=np.array([False, False, True, False]))
    assert "deadline-missed" in found(late, overrun="extend")
    assert "deadline-missed" not in found(excused, overrun="extend")
    assert "deadline-missed" in found(excused, overrun="kill"), "nobody outlives an estimate there"


def test_each_kind_is_found_by_itself_where_it_can_be_alone() -> None:
    alone = {"wrong-submit": {"wrong-wait"}, "wrong-wait": set(), "deadline-missed": set(), "wrong-status": set()}
    for kind, attached in alone.items():
        assert set(found(PLANTED[kind][0])) == {kind, *attached}


def test_cores_released_at_an_instant_can_be_used_at_it() -> None:
    assert "oversubscribed" not in found(sound())
    violation = found(changed("end", 0, 10 * SECOND + 1))["oversubscribed"]
    assert violation.instants == (10.0,)
    assert violation.detail.startswith("7 of 4 cores")


def test_every_stretch_of_oversubscription_is_counted_with_its_peak() -> None:
    record = Record.from_rows(
        [{"submit": at, "start": at, "end": at + 2, "cores": 3} for at in (0, 1, 10, 11, 11, 20)], cores=5
    )
    (violation,) = violations(record)
    assert (violation.count, violation.instants) == (2, (1.0, 11.0))
    assert "at most 9" in violation.detail


def test_differences_within_the_tolerance_are_none() -> None:
    schedule = changed("end", 0, 10 * SECOND + 900)
    assert {"wrong-end", "oversubscribed", "deadline-missed"} == set(found(schedule))
    assert found(schedule, tolerance=0.001) == {}


@pytest.mark.parametrize(("since", "wrong"), [(0, True), (1_700_000_000, True), (4_000_000_000, False)])
def test_a_microsecond_that_floats_of_late_seconds_lose_is_no_violation(since: int, wrong: bool) -> None:
    shift = since * SECOND
    jobs = replace(JOBS, submit=JOBS.submit + shift)
    schedule = changed("end", 1, 20 * SECOND + 1)
    times = {name: getattr(schedule, name) for name in ("start", "end", "submit", "granted")}
    late = replace(schedule, **{name: np.where(it < NEVER, it + shift, it) for name, it in times.items()})
    assert ("wrong-end" in [each.kind for each in violations_of(late, jobs, cores=4)]) == wrong


def test_a_result_folder_of_late_instants_is_valid(tmp_path: Path) -> None:
    dice = np.random.default_rng(1)
    jobs = Workload.from_columns(
        submit=4.4e9 + np.sort(dice.integers(0, 10**9, 100)) / 1e6,
        runtime=dice.integers(1, 10**8, 100) / 1e6,
        cores=dice.integers(1, 5, 100),
    )
    simulate(jobs, platform=Platform.single(4), policy="easy").write(tmp_path)
    assert violations_of(read_schedule(tmp_path), read_jobs(tmp_path), cores=4) == []


def test_extended_jobs_run_for_their_runtime() -> None:
    schedule = sound()
    schedule.end[3] = 29 * SECOND
    schedule.status[3] = Status.completed  # type: ignore[index]
    assert found(schedule, overrun="extend") == {}
    assert set(found(schedule)) == {"wrong-end", "wrong-status"}


def test_a_cancelled_job_may_end_early_but_not_late() -> None:
    schedule = changed("status", 1, int(Status.cancelled))
    schedule.end[1] = 12 * SECOND
    assert found(schedule) == {}
    schedule.end[1] = 21 * SECOND
    assert "wrong-end" in found(schedule)


def test_a_completed_job_without_times_contradicts_itself() -> None:
    schedule = changed("start", 1, NEVER)
    schedule.end[1] = schedule.wait[1] = NEVER  # type: ignore[index]
    assert found(schedule)["wrong-status"].detail == "completed, but it did not run"


def test_clusters_are_checked_one_by_one() -> None:
    platform = Platform(RouterSpec("root", (ClusterSpec("a", 2), ClusterSpec("b", 2))))
    record = Record.from_rows([{"submit": 0, "start": 0, "end": 5, "cores": 2} for _ in range(2)], cores=4)
    assert [violation.kind for violation in violations(record, platform=platform)] == ["oversubscribed"]
    record.cluster[1] = 1
    assert violations(record, platform=platform) == []


def test_promised_deadlines_of_a_record_are_checked() -> None:
    record = Record.from_rows([{"submit": 0, "start": 0, "end": 5, "cores": 2}])
    assert violations(record, granted=[5.0]) == []
    assert violations(record, granted=[4.0])[0].kind == "deadline-missed"
    assert violations(record, granted=[float("nan")]) == []


def test_assert_valid_names_every_violation() -> None:
    record = Record.from_rows([{"submit": 3, "start": 0, "end": 5, "cores": 2}])
    with pytest.raises(CheckFailed, match=r"starts-before-submit: 1 .jobs 1.: starts at 0 s, submitted at 3 s"):
        assert_valid(record)


def test_a_workload_whose_numbers_are_not_unique_cannot_be_matched() -> None:
    jobs = Workload.from_columns(submit=[0, 1], runtime=[1, 1], cores=[1, 1])
    twice = replace(jobs, job=np.array([1, 1]))
    with pytest.raises(InputError, match="job 1 twice"):
        violations_of(sound(), twice, cores=4)


def test_violations_are_reported_in_json_types() -> None:
    (violation,) = found(changed("wait", 1, 8 * SECOND)).values()
    assert violation.to_json() == {
        "kind": "wrong-wait",
        "meaning": KINDS["wrong-wait"],
        "count": 1,
        "jobs": [12],
        "instants": [10.0],
        "detail": "8 s instead of 9 s",
    }


# -- tasks of DAG jobs -------------------------------------------------------------------------------------------------

# Job 1: 0 (A, 4 s) -> 1 (B, 6 s), whose data need 1 s; job 2: one task of B.
GRAPHS = Workload.from_tasks(
    Tasks.from_edges(
        counts=[2, 1],
        runtime=[4, 6, 3],
        cores=[2, 1, 2],
        kind=[0, 1, 1],
        kinds=("A", "B"),
        edges=[(0, 1)],
    ),
    submit=[0, 8],
)
GRID = Platform(RouterSpec("root", (ClusterSpec("a", 2, "A"), ClusterSpec("b", 2, "B"))), network=Network(ccr="1/4"))


def planted(column: str, row: int, value: int) -> list[Violation]:
    """Violations found when one value of the tasks' columns is changed."""
    record = run(GRAPHS, GRID, "fifo-job")
    assert violations(record, platform=GRID) == []
    assert record.tasks is not None
    values = getattr(record.tasks, column).copy()
    values[row] = value
    return violations(replace(record, tasks=replace(record.tasks, **{column: values})), platform=GRID)


@pytest.mark.parametrize(
    ("column", "row", "value", "kinds"),
    [
        ("cluster", 0, 1, {"wrong-kind"}),
        ("cluster", 1, 0, {"wrong-kind"}),
        ("start_us", 1, 4 * SECOND, {"starts-before-ready", "wrong-end"}),
        ("start_us", 2, 10 * SECOND, {"oversubscribed", "wrong-end"}),
        ("start_us", 2, 7 * SECOND, {"oversubscribed", "starts-before-ready", "starts-before-submit", "wrong-end"}),
        ("ready_us", 1, 6 * SECOND, {"starts-before-ready"}),
        ("end_us", 0, 5 * SECOND, {"starts-before-ready", "wrong-end"}),
        ("end_us", 2, 15 * SECOND, {"wrong-end"}),
        ("status", 2, Status.killed_walltime, {"wrong-status"}),
    ],
)
def test_a_violation_of_a_task_is_found(column: str, row: int, value: int, kinds: set[str]) -> None:
    assert {violation.kind for violation in planted(column, row, value)} == kinds


def test_a_task_that_starts_before_its_data_are_there_names_its_job_and_instant() -> None:
    (early,) = [one for one in planted("start_us", 1, 4 * SECOND) if one.kind == "starts-before-ready"]
    assert (early.count, early.jobs, early.instants) == (1, (1,), (4.0,))
    assert TASK_KINDS["starts-before-ready"] in str(early)
    assert early.to_json()["meaning"] == TASK_KINDS["starts-before-ready"]


def test_without_the_platform_precedence_is_checked_and_delays_are_not() -> None:
    record = run(GRAPHS, GRID, "fifo-job")
    assert record.tasks is not None
    early = np.array([0, SECOND, 0])
    sooner = replace(
        record,
        tasks=replace(
            record.tasks,
            start_us=record.tasks.start_us - early,
            end_us=record.tasks.end_us - early,
            ready_us=record.tasks.ready_us - early,
        ),
    )
    assert violations(sooner) == []
    assert [one.kind for one in violations(sooner, platform=GRID)] == ["starts-before-ready"]


def test_a_job_that_takes_less_than_its_critical_path_is_found() -> None:
    record = run(GRAPHS, GRID, "fifo-job")
    found = violations(replace(record, end_us=record.end_us - SECOND), platform=GRID)
    assert [(one.kind, one.jobs) for one in found] == [("below-critical-path", (1,))]


def test_kinds_of_tasks_are_not_those_of_schedules_from_elsewhere() -> None:
    assert not set(TASK_KINDS) & set(KINDS)


def test_a_job_that_did_not_come_when_its_user_was_to_react_is_found() -> None:
    log = Workload.from_columns(
        submit=[0, 15], runtime=[10, 10], cores=[1, 1], labels={"user": [7, 7]}, logged={"wait": [2, 0]}
    )
    record = run(React().apply(log), Platform.single(1), "easy")
    assert violations(record) == []
    early = replace(record, workload=replace(record.workload, submit=record.workload.submit - [0, 1]))
    (violation,) = violations(early)
    assert (violation.kind, violation.jobs) == ("wrong-reaction", (2,))
    assert violation.kind in USER_KINDS
    assert USER_KINDS[violation.kind] in str(violation)
