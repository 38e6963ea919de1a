"""The second implementation of guaranteed deadlines: the specified cases, and invariants of every run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from gridsim.errors import InputError
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import Workload
from gridsim.record import Record, Status
from gridsim.testing.admission_oracle import admitted
from gridsim.testing.conformance import CASES
from gridsim.testing.oracle import schedule

SCHEDULES = [
    "01-fcfs-easy-conservative",
    "02-easy-shadow-and-extra",
    "03-easy-early-completion",
    "04-conservative-compression",
    "05-msb-fails-qops-reorders",
    "06-msb-prices",
    "07-qops-k-factor",
    "08-qops-slots",
    "09-mrt-backtracking",
    "09b-mrt-hole-filling",
    "10-admission-compression",
    "11-fqops-feedback",
    "11b-fqops-no-tolerance",
    "11c-fqops-more-tolerance",
    "12-kill-and-restart",
    "12b-kill-refused",
    "13-mixed-artificial-deadlines",
    "14-walltime",
    "15-simultaneous",
    "16-packed-zero-slack",
    "20-heuristics",
]
"""Specified cases of kind ``schedule``."""

FAMILY = CASES / "deadline-admission"
BASELINES = ("fcfs", "easy", "conservative")


def workload_of(case: Mapping[str, Any]) -> Workload:
    jobs = sorted(case["jobs"], key=lambda job: (job["submit"], job["id"]))
    return Workload.from_columns(
        job=[job["id"] for job in jobs],
        **{name: [job[name] for job in jobs] for name in ("submit", "runtime", "estimate", "cores")},
        deadline=[float("inf") if job.get("deadline") is None else job["deadline"] for job in jobs],
        # A tolerance below 1 behaves like 1 (section 7.2), and workloads contain 1.
        tolerance=[max(1.0, job.get("tolerance", 1.0)) for job in jobs],
        restartable=[job.get("restartable", True) for job in jobs],
    )


def second(instant: int) -> float | None:
    return None if instant >= NEVER else instant / MICROSECOND


def found(record: Record) -> dict[int, dict[str, Any]]:
    rows = {}
    for row, number in enumerate(record.workload.job.tolist()):
        rows[number] = {
            "id": number,
            "status": Status(record.status[row]).name,
            "start": second(record.start_us[row]),
            "end": second(record.end_us[row]),
        }
        if record.promises is not None:
            rows[number] |= {
                "granted": second(record.promises.granted_us[row]),
                "offer": second(record.promises.offer_us[row]),
                "kills": record.kills[row],
                "lost_core_seconds": record.lost[row],
                "artificial_doublings": record.promises.doublings[row],
                "guarantee_broken": record.promises.broken[row],
            }
    return rows


def test_no_specified_case_is_left_out() -> None:
    kinds = {path.stem: json.loads(path.read_text())["kind"] for path in FAMILY.glob("*.json")}
    assert [name for name in sorted(kinds) if kinds[name] == "schedule"] == SCHEDULES


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_oracle_passes_the_specified_case(name: str) -> None:
    case = json.loads((FAMILY / f"{name}.json").read_text())
    workload, cores = workload_of(case), case["platform"]["cores"]
    for run in case["runs"]:
        plans: dict[int, dict[str, int]] = {}

        def watch(now: int, plan: Mapping[int, int], plans: dict[int, dict[str, int]] = plans) -> None:
            plans[now // MICROSECOND] = {str(job): start // MICROSECOND for job, start in plan.items()}

        make = schedule if run["algorithm"] in BASELINES else admitted
        record = make(workload, cores, run["algorithm"], watch=watch, **run["parameters"])
        rows, expected = found(record), run["expected"]
        assert len(expected["jobs"]) == len(rows)
        for job in expected["jobs"]:
            assert {word: rows[job["id"]][word] for word in job} == job, run
        assert [moment["time"] for moment in expected["timeline"]] == sorted(plans)
        for moment in expected["timeline"]:
            assert moment.get("plan", plans[moment["time"]]) == plans[moment["time"]], run


def test_an_algorithm_that_it_does_not_know_is_refused() -> None:
    with pytest.raises(InputError, match="has no algorithm 'hope'"):
        admitted(Workload.from_columns(submit=[0], runtime=[1], cores=[1]), 1, "hope")  # type: ignore[arg-type]


def jobs(*rows: tuple[float, float, float, float | None], **columns: Any) -> Workload:
    """Jobs of four cores: submit, estimate, runtime, deadline."""
    submit, estimate, runtime, deadline = zip(*rows, strict=True)
    due = [float("inf") if given is None else given for given in deadline]
    return Workload.from_columns(submit=submit, estimate=estimate, runtime=runtime, cores=4, deadline=due, **columns)


def test_the_earliest_deadline_is_offered_with_slack_to_users_that_may_take_it() -> None:
    for tolerance, slack_factor, offer, status in [
        (2.0, 1, 15, "completed"),
        (2.0, 1.3, 20, "completed"),  # 1.3 times 15 is 19.5
        (1.25, 1, 15, "completed"),
        (1.24, 1, 15, "unadmitted"),
    ]:
        workload = jobs((0, 10, 10, 10), (0, 5, 5, 12), tolerance=tolerance)
        row = found(admitted(workload, 4, "fqops", slack_factor=slack_factor))[2]
        assert (row["offer"], row["status"]) == (offer, status)
        assert row["granted"] == (offer if status == "completed" else None)


def test_a_killed_job_loses_its_work_and_keeps_its_promise() -> None:
    workload = jobs((0, 20, 20, 60), (5, 5, 5, 10))
    row = found(admitted(workload, 4, "fqops", kill_restart=True))[1]
    assert (row["start"], row["end"], row["granted"]) == (10, 30, 60)
    assert (row["kills"], row["lost_core_seconds"]) == (1, 20)
    never = found(admitted(workload, 4, "fqops", kill_restart=True, max_kills=0))[2]
    assert never["status"] == "unadmitted"


def test_an_artificial_deadline_is_doubled_until_it_can_be_met() -> None:
    workload = jobs((0, 10, 10, 10), (0, 5, 5, None))
    options: dict[str, Any] = {"relaxation": 1, "artificial_floor": 2}
    row = found(admitted(workload, 4, "mrt", **options))[2]
    assert (row["granted"], row["artificial_doublings"], row["end"]) == (20, 2, 15)
    rejected = found(admitted(workload, 4, "mrt", artificial_fallback="reject", **options))[2]
    assert rejected["status"] == "unadmitted"


def test_a_promise_that_an_overrun_makes_impossible_is_marked_and_binds_no_job() -> None:
    workload = jobs((0, 10, 14, 10), (1, 10, 10, 20), (12, 5, 5, 40))
    rows = found(admitted(workload, 4, "mrt", overrun="extend"))
    assert [rows[number]["guarantee_broken"] for number in (1, 2, 3)] == [False, True, False]
    assert [rows[number]["end"] for number in (1, 2, 3)] == [14, 24, 29]


def test_a_job_without_a_promise_never_delays_one_with_a_promise() -> None:
    workload = jobs((0, 10, 10, 10), (1, 10, 10, 11), (2, 10, 10, 40))
    rows = found(admitted(workload, 4, "qops", unadmitted="best-effort"))
    assert [rows[number]["start"] for number in (1, 2, 3)] == [0, 20, 10]
    assert rows[2]["granted"] is None
