"""Requested, promised, met and rejected deadlines, and utilisation without lost work."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gridsim.metrics.charges import category_slowdowns, resource_charge
from gridsim.metrics.deadlines import (
    OUTCOMES,
    broken,
    by_group,
    concerns_deadlines,
    deadline_metrics,
    missed,
    outcomes,
    refused,
    taken,
    terciles,
)
from gridsim.metrics.summary import DEADLINE_METRICS, GRID_METRICS, METRICS, metrics
from gridsim.metrics.utilisation import (
    mean_queue_length,
    queue_length,
    useful_utilisation,
    utilisation,
    waiting_area,
)
from gridsim.model.workload import Workload
from gridsim.record import Record, Status
from gridsim.testing.admission_oracle import admitted

NEVER = math.inf

Promised = Callable[..., Record]


@pytest.fixture
def plain() -> Record:
    """Six jobs on four cores: four that ran, one rejected, one that can never run on the machine."""
    return Record.from_rows(
        [
            {"submit": 0, "start": 0, "end": 10, "cores": 2},
            {"submit": 0, "start": 30, "end": 40, "cores": 2},
            {"submit": 0, "start": 0, "end": 20, "cores": 1},
            {"submit": 0, "start": 40, "end": 60, "cores": 4},
            {"submit": 0, "start": None, "end": None, "cores": 3, "runtime": 10, "status": Status.unadmitted},
            {"submit": 0, "start": None, "end": None, "cores": 9, "runtime": 10},
        ],
        cores=4,
    )


@pytest.fixture
def record(plain: Record, promised: Promised) -> Record:
    """Job 1 was promised its requested deadline; job 2 accepted a later deadline and was killed at 15 s, after 5 s;
    job 3 requested none and was promised one; job 4 rejected an offer and ran without a deadline; job 5 rejected an
    offer and did not run.
    """
    return promised(
        plain,
        asked=[10, 20, NEVER, 50, 50, 20],
        granted=[10, 45, 86400, NEVER, NEVER, NEVER],
        offers=[NEVER, 45, NEVER, 70, 80, NEVER],
        killed=[(1, 10, 15)],
        doublings=[0, 0, 3, 0, 0, 0],
    )


def test_numbers_by_hand(record: Record) -> None:
    numbers = deadline_metrics(record)
    expected = {
        "deadline_jobs": 5, "deadline_area": 20 + 20 + 80 + 30 + 90,
        "deadline_unadmitted": 2, "deadline_unadmitted_share": 2 / 5,
        "deadline_unadmitted_area": 110, "deadline_unadmitted_area_share": 110 / 240,
        "deadline_guaranteed": 2, "deadline_guaranteed_share": 2 / 5,
        "deadline_guaranteed_area": 40, "deadline_guaranteed_area_share": 40 / 240,
        "deadline_met": 1, "deadline_met_share": 1 / 5, "deadline_met_area": 20, "deadline_met_area_share": 20 / 240,
        "deadline_missed": 2, "deadline_missed_share": 2 / 3,
        "promises_made": 3, "promises_broken": 0, "offers_made": 3, "offers_taken": 1, "doublings": 3,
        "kills": 1, "lost_area": 10,
        "non_deadline_jobs": 1, "non_deadline_response_mean": 20, "non_deadline_slowdown_mean": 1,
        "non_deadline_bounded_slowdown_mean": 1,
        "resource_charge": 20 + 20 + 20 + 80, "qos_charge": math.nan,
    }  # fmt: skip
    assert numbers == pytest.approx(expected, nan_ok=True)
    assert list(numbers) == list(expected)


def test_the_qos_charge_needs_a_reference(record: Record, plain: Record) -> None:
    numbers = deadline_metrics(record, slowdowns=category_slowdowns(plain))
    # Time class 3 (10 s) of two cores: slowdowns 1 and 4. Requested: 10 s and 45 s over 10 s.
    assert numbers["qos_charge"] == pytest.approx(2.5 / 1 + 2.5 / 4.5)


def test_without_promises_deadlines_are_met_or_missed(plain: Record, promised: Promised) -> None:
    record = promised(plain.select(slice(0, 4)), asked=[10, 20, NEVER, 60])
    numbers = deadline_metrics(record)
    assert (numbers["deadline_met"], numbers["deadline_missed"], numbers["deadline_guaranteed"]) == (2, 1, 0)
    assert (numbers["promises_made"], numbers["deadline_unadmitted"], numbers["kills"]) == (0, 0, 0)
    assert refused(record).tolist() == [False] * 4


def test_a_job_without_a_promise_is_refused_even_where_it_runs(record: Record) -> None:
    assert refused(record).tolist() == [False, False, False, True, True, False]
    assert outcomes(record) == dict(zip(OUTCOMES, (1, 1, 0, 1, 2), strict=True))
    assert sum(outcomes(record, slice(1, 4)).values()) == 2


def test_a_later_deadline_is_missed_as_asked_but_no_broken_promise(record: Record) -> None:
    assert missed(record)[1]
    assert taken(record)[1]
    assert not broken(record).any()


def test_a_promise_is_broken_by_what_the_policy_says_or_by_its_end(plain: Record, promised: Promised) -> None:
    never = [NEVER] * 6
    record = promised(plain, asked=never, granted=[9, 50, 50, NEVER, NEVER, NEVER], broken=[2, 3])
    assert broken(record).tolist() == [True, False, True, False, False, False]


def test_a_job_that_is_killed_waits_again(record: Record) -> None:
    assert queue_length(record).at(np.array([5.0, 12.0, 20.0, 30.0, 40.0])).tolist() == [2, 1, 2, 1, 0]
    assert queue_length(record).max() == 2
    assert mean_queue_length(record, 0, 60) == pytest.approx((10 + 15 + 40) / 60)
    assert waiting_area(record) == 2 * (10 + 15) + 4 * 40


def test_several_runs_cut_short_leave_the_waits_between_them(plain: Record, promised: Promised) -> None:
    never = [NEVER] * 6
    record = promised(plain, asked=never, granted=never, killed=[(3, 2, 4), (1, 5, 9), (3, 10, 15), (1, 20, 21)])
    assert waiting_area(record) == 2 * (30 - 5) + 4 * (40 - 7)
    assert mean_queue_length(record, 3, 12) == pytest.approx(((9 - 4) + (9 - 1 - 2)) / 9)


def test_lost_work_is_busy_and_not_useful(record: Record) -> None:
    assert utilisation(record) == pytest.approx((20 + 20 + 20 + 80 + 10) / 240)
    assert useful_utilisation(record) == pytest.approx(140 / 240)
    assert useful_utilisation(record, 10, 20) == pytest.approx(utilisation(record, 10, 20) - 10 / 40)


def test_metrics_report_deadlines_only_where_there_are_some(record: Record, plain: Record, promised: Promised) -> None:
    assert list(metrics(plain)) == list(METRICS)
    assert list(metrics(plain, deadlines=True)) == [*METRICS, *DEADLINE_METRICS]
    told = metrics(record)
    assert list(told) == [*METRICS, *DEADLINE_METRICS]
    assert all(type(value) is float for value in told.values())
    assert told["useful_utilisation"] < told["utilisation"]
    assert not concerns_deadlines(plain)
    assert concerns_deadlines(promised(plain, asked=[NEVER] * 6, granted=[NEVER] * 6))


def test_names_of_metrics_are_unique_and_described() -> None:
    assert not set(METRICS) & set(DEADLINE_METRICS)
    assert not set(GRID_METRICS) & set(DEADLINE_METRICS)
    assert all(it.better in ("lower", "higher", None) and it.description for it in DEADLINE_METRICS.values())


def test_cuts_count_the_jobs_that_they_leave(promised: Promised) -> None:
    rows = [{"submit": t, "start": t + 5, "end": t + 15, "cores": 1} for t in (0, 10, 20, 30)]
    record = promised(Record.from_rows(rows), asked=[15, 20, 35, 99], granted=[15, NEVER, 35, 99], killed=[(0, 1, 3)])
    told = metrics(record, warmup=5, cooldown=5)
    assert (told["deadline_jobs"], told["deadline_met"], told["deadline_guaranteed"]) == (2, 1, 1)
    assert told["kills"] == 0
    assert metrics(record)["kills"] == 1


def test_terciles_are_thirds_of_the_jobs(plain: Record) -> None:
    groups = terciles(plain, "area")
    assert [groups.names[row] for row in groups.index] == [
        "lightest third", "lightest third", "middle third", "heaviest third", "middle third", "heaviest third",
    ]  # fmt: skip
    assert terciles(plain, "runtime").names == ("shortest third", "middle third", "longest third")


def test_groups_add_up_to_all(record: Record) -> None:
    groups = by_group(record, terciles(record, "area"))
    everything = deadline_metrics(record)
    for name in ("deadline_jobs", "deadline_unadmitted", "deadline_met", "kills", "lost_area", "resource_charge"):
        assert sum(numbers[name] for numbers in groups.values()) == everything[name]
    assert list(by_group(record, terciles(record, "area"), rows=[0, 3])) == ["lightest third", "heaviest third"]


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    n = draw(st.integers(1, 12))
    submit = np.array(draw(st.lists(st.integers(0, 20), min_size=n, max_size=n)))
    runtime = np.array(draw(st.lists(st.integers(1, 20), min_size=n, max_size=n)))
    slack = np.array(draw(st.lists(st.sampled_from([0, 5, 80]), min_size=n, max_size=n)))  # tight or loose: kills
    asks = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    return Workload.from_columns(
        submit=submit,
        runtime=runtime,
        cores=draw(st.lists(st.integers(1, 5), min_size=n, max_size=n)),
        deadline=np.where(asks, submit + runtime + slack, np.inf),
        tolerance=np.full(n, 3.0),
    )


@given(workloads(), st.sampled_from(["qops", "msb", "fqops"]), st.booleans())
def test_every_job_is_accounted_for_whoever_decides(workload: Workload, algorithm: str, kill: bool) -> None:
    terms = {"artificial_floor": 30.0, "artificial_fallback": "reject"}
    restart = {"kill_restart": kill} if algorithm == "fqops" else {}
    record = admitted(workload, 4, algorithm, **terms, **restart)  # type: ignore[arg-type]
    told = metrics(record, slowdowns=category_slowdowns(replace(record, promises=None)))
    parts = ("completed", "killed_walltime", "rejected", "unadmitted")
    assert sum(told[name] for name in parts) == told["submitted"] == len(workload)
    assert sum(outcomes(record).values()) == told["deadline_jobs"] == len(workload) - told["non_deadline_jobs"]
    assert told["deadline_guaranteed"] == outcomes(record)["guaranteed"] + outcomes(record)["guaranteed later"]
    assert told["promises_broken"] == 0
    assert told["offers_taken"] <= told["offers_made"]
    if record.ran.any():
        area = (told["utilisation"] - told["useful_utilisation"]) * told["makespan"] * record.cores
        assert area == pytest.approx(told["lost_area"], abs=1e-6)


KILLED = Workload.from_columns(submit=[0, 2], runtime=[10, 5], cores=[4, 4], deadline=[100, 7])
"""The second job can keep its deadline only if the first one is killed."""


@given(workloads())
@example(KILLED)
def test_charges_never_count_lost_work(workload: Workload) -> None:
    record = admitted(workload, 4, "fqops", kill_restart=True)
    assert workload is not KILLED or record.lost.tolist() == [8, 0]
    assert resource_charge(record) == pytest.approx(np.where(record.ran, workload.area, 0.0))
    assert queue_length(record).values.min(initial=0) >= 0
    waited = float((workload.cores * np.nan_to_num(record.wait)).sum())
    assert waiting_area(record) == pytest.approx(waited - record.lost.sum())
