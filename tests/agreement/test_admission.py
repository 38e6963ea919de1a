"""Guaranteed deadlines: the fast admissions and the second implementation, which meets deadlines, make equal schedules.

The module has differential tests of `msb`, `mrt`, `qops` and `fqops`, and tests of the second implementation alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import Workload
from gridsim.record import Promises, Record, Status
from gridsim.simulation import Run, run
from gridsim.testing.admission_oracle import PRICES, RANKS, Plan, View, admitted, mrt, msb, qops
from gridsim.testing.oracle import Interval, Job, fits, jobs_of

CORES = 4
INFINITE = 10**6
"""More backtracks than there are orders of a few jobs."""


# -- strategies ------------------------------------------------------------------------------------------------------


@st.composite
def demands(
    draw: st.DrawFn, *, least: int = 5, largest: int = 12, overruns: bool = False, tolerances: tuple[float, ...] = ()
) -> Workload:
    """Draw jobs with tight deadlines and jobs without; many arrive at once, and some end before their estimates."""
    job = st.tuples(
        st.sampled_from((0, 0, 0, 1, 1, 2, 4, 7)),  # gap to the previous job
        st.integers(1, 9),
        st.sampled_from((0, 0, 0, 1, 3, 6) + (-1, -3) * overruns),  # estimate minus runtime
        st.one_of(st.just(1), st.just(CORES), st.integers(1, CORES)),
        st.sampled_from((0, 1, 2, 3, 5, 8, 13, 21, None, None)),  # slack
        st.sampled_from(tolerances or (1.0, 1.3, 2.0, 2.0, 4.0, 10.0)),
        st.sampled_from((True, True, False)),
    )
    gap, runtime, beyond, cores, slack, tolerance, restartable = zip(
        *draw(st.lists(job, min_size=least, max_size=largest)), strict=True
    )
    submit = np.cumsum(gap)
    estimate = np.maximum(1, np.add(runtime, beyond))
    extra = np.array([np.inf if given is None else given for given in slack])
    return Workload.from_columns(
        submit=submit,
        runtime=runtime,
        estimate=estimate,
        cores=cores,
        deadline=submit + estimate + extra,
        tolerance=tolerance,
        restartable=restartable,
    )


AFTER = {
    "relaxation": st.sampled_from((1, 1.5, 2, 5)),
    "artificial_floor": st.sampled_from((5, 12, 30)),
    "artificial_fallback": st.sampled_from(("loosen", "loosen", "reject")),
    "compress": st.sampled_from(("planned", "planned", "arrival", "none")),
}
"""Parameters of every algorithm."""

QOPS = {
    "heuristic": st.sampled_from(list(RANKS)),
    "k_factor": st.sampled_from((0, 1, 2, 5)),
    "slots": st.sampled_from(("first-feasible", "first-feasible", "first-slot-only")),
    "insertion": st.sampled_from(("first", "sorted")),
    "append_slot": st.booleans(),
}

READINGS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "msb": {"price": st.sampled_from(list(PRICES)), "order": st.sampled_from(("ast", "ast", *RANKS))},
    "mrt": {
        "heuristic": st.sampled_from((*RANKS, "edf+est")),
        "backtracks": st.sampled_from((0, 1, 2, 10)),
        "window": st.sampled_from((None, None, 1, 2)),
        "hole_filling": st.booleans(),
        "weight": st.sampled_from((1, 0.1, 2.5)),
    },
    "qops": QOPS,
    "fqops": QOPS
    | {
        "retry_count": st.sampled_from((0, 1, 2, 10)),
        "slack_factor": st.sampled_from((1, 1.1, 1.3, 2)),
        "kill_restart": st.booleans(),
    },
}
"""Parameters of each algorithm, including all interpretations of the specification."""


def readings(algorithm: str, **fixed: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Draw parameters of an algorithm; given parameters stay unchanged."""
    free = {**READINGS[algorithm], **AFTER}
    return st.fixed_dictionaries(free | {name: st.just(value) for name, value in fixed.items()})


def spec(algorithm: str, parameters: Mapping[str, Any]) -> str:
    dynamic = parameters.get("heuristic") == "edf+est"
    stated = {name: value for name, value in parameters.items() if name != "weight" or dynamic}
    return algorithm + "?" + "&".join(f"{name}={_spelled(value)}" for name, value in stated.items())


def _spelled(value: Any) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


# -- the fast admissions ---------------------------------------------------------------------------------------------


def columns(record: Record) -> dict[str, list[Any]]:
    assert record.promises is not None
    return {
        "status": [Status(code).name for code in record.status],
        "start": record.start_us.tolist(),
        "end": record.end_us.tolist(),
        "granted": record.promises.granted_us.tolist(),
        "offer": record.promises.offer_us.tolist(),
        "doublings": record.promises.doublings.tolist(),
        "broken": record.promises.broken.tolist(),
        "kills": record.kills.tolist(),
        "lost": record.lost.tolist(),
    }


def assert_same(
    workload: Workload, algorithm: str, parameters: Mapping[str, Any], cores: int = CORES, **options: Any
) -> Record:
    slow = columns(admitted(workload, cores, algorithm, **parameters, **options))  # type: ignore[arg-type]
    policy = spec(algorithm, parameters)
    asks_python = parameters.get("heuristic") == "edf+est"
    for engine in ("simpy",) if asks_python else ("simpy", "compiled"):
        record = run(workload, Platform.single(cores), policy, Run(engine=engine, **options))  # type: ignore[arg-type]
        fast = columns(record)
        for name, expected in slow.items():
            assert fast[name] == expected, (engine, name, policy)
    return record


@pytest.mark.parametrize("algorithm", READINGS)
@given(data=st.data(), workload=demands())
def test_every_reading_within_estimates(algorithm: str, data: st.DataObject, workload: Workload) -> None:
    assert_same(workload, algorithm, data.draw(readings(algorithm)))


@pytest.mark.parametrize("algorithm", READINGS)
@pytest.mark.parametrize("overrun", ["kill", "extend"])
@given(data=st.data(), workload=demands(overruns=True))
def test_every_reading_when_jobs_exceed_their_estimates(
    overrun: str, algorithm: str, data: st.DataObject, workload: Workload
) -> None:
    assert_same(workload, algorithm, data.draw(readings(algorithm)), overrun=overrun)


@given(data=st.data(), workload=demands(largest=14))
def test_kill_and_restart(data: st.DataObject, workload: Workload) -> None:
    parameters = data.draw(readings("fqops", kill_restart=True, compress="planned", slots="first-feasible"))
    assert_same(workload, "fqops", parameters)


@pytest.mark.parametrize(("algorithm", "parameters"), [("msb", {}), ("msb", {"price": "wait"}), ("mrt", {"window": 5})])
def test_long_queues(algorithm: str, parameters: dict[str, Any]) -> None:
    rng, jobs = np.random.default_rng(17), 40
    submit, runtime = np.sort(rng.integers(0, 20, jobs)), rng.integers(1, 30, jobs)
    estimate = runtime + rng.integers(0, 20, jobs)
    workload = Workload.from_columns(
        submit=submit,
        runtime=runtime,
        estimate=estimate,
        cores=rng.integers(1, 9, jobs),
        deadline=submit + estimate + np.where(rng.random(jobs) < 0.2, np.inf, rng.integers(0, 200, jobs)),
    )
    record = assert_same(workload, algorithm, parameters | {"artificial_floor": 100}, cores=16)
    assert 3 < (record.status == Status.unadmitted).sum() < 25


# -- guarantees of the second implementation -------------------------------------------------------------------------

Moments = list[tuple[int, dict[int, int]]]
"""Record of instants and of the plans after them, by row of the job."""


def watched(workload: Workload, algorithm: str, parameters: Mapping[str, Any]) -> tuple[Record, Promises, Moments]:
    moments: Moments = []
    row = {number: row for row, number in enumerate(workload.job.tolist())}

    def watch(now: int, plan: Mapping[int, int]) -> None:
        moments.append((now, {row[number]: start for number, start in plan.items()}))

    record = admitted(workload, CORES, algorithm, watch=watch, **parameters)  # type: ignore[arg-type]
    assert record.promises is not None
    return record, record.promises, moments


def runs(record: Record) -> list[tuple[int, int, int]]:
    """Return row, start and end of every run, including runs cut short."""
    assert record.promises is not None
    cut = record.promises
    whole = [(row, start, end) for row, (start, end) in enumerate(zip(record.start_us, record.end_us, strict=True))]
    return [
        *((row, start, end) for row, start, end in whole if start < NEVER),
        *zip(cut.killed, cut.killed_start_us, cut.killed_end_us, strict=True),
    ]


def intervals(record: Record, now: int, plan: Mapping[int, int]) -> dict[int, Interval]:
    """Return the allocations of running and waiting jobs from an instant on, as far as the machine knows then."""
    jobs = record.workload
    running = {row: int(start) for row, start, end in runs(record) if start <= now < end}
    return {
        row: (start, start + int(jobs.estimate[row]), int(jobs.cores[row])) for row, start in (running | plan).items()
    }


@pytest.mark.parametrize("algorithm", READINGS)
@given(data=st.data(), workload=demands())
def test_every_promise_is_kept_and_every_plan_keeps_it(algorithm: str, data: st.DataObject, workload: Workload) -> None:
    record, promises, moments = watched(workload, algorithm, data.draw(readings(algorithm)))
    admitted_jobs = promises.granted_us < NEVER
    assert (record.status == np.where(admitted_jobs, Status.completed, Status.unadmitted)).all()
    assert (record.end_us <= promises.granted_us)[admitted_jobs].all()
    assert not promises.broken.any()
    for now, plan in moments:
        assert all(
            start > now and start + workload.estimate[row] <= promises.granted_us[row] for row, start in plan.items()
        )
        held = intervals(record, now, plan)
        for row, (begin, end, cores) in held.items():
            others = [interval for other, interval in held.items() if other != row]
            assert fits(others, CORES, cores, max(begin, now), end)


@pytest.mark.parametrize("algorithm", READINGS)
@given(data=st.data(), workload=demands())
def test_no_job_could_start_earlier_than_planned(algorithm: str, data: st.DataObject, workload: Workload) -> None:
    fixed = {"compress": "planned"} | ({"hole_filling": True} if algorithm == "mrt" else {})
    record, _, moments = watched(workload, algorithm, data.draw(readings(algorithm, **fixed)))
    for now, plan in moments:
        held = intervals(record, now, plan)
        for row, start in plan.items():
            others = [interval for other, interval in held.items() if other != row]
            places = {now, *(end for _, end, _ in others if now < end)}
            length, cores = int(workload.estimate[row]), int(workload.cores[row])
            assert not any(fits(others, CORES, cores, place, place + length) for place in places if place < start)


@pytest.mark.parametrize("algorithm", READINGS)
@given(data=st.data(), workload=demands())
def test_only_an_admission_moves_anyone_later(algorithm: str, data: st.DataObject, workload: Workload) -> None:
    record, promises, moments = watched(workload, algorithm, data.draw(readings(algorithm)))
    taken = set(workload.submit[promises.granted_us < NEVER].tolist())
    early = {end for row, start, end in runs(record) if end < start + workload.estimate[row]}
    for (_, before), (now, after) in pairwise(moments):
        if now in taken:
            continue
        assert all(start <= before[row] for row, start in after.items())
        if now not in early:
            assert after == {row: start for row, start in before.items() if start > now}


@given(data=st.data(), workload=demands())
def test_granted_is_the_requested_deadline_or_an_offer_within_the_tolerance(
    data: st.DataObject, workload: Workload
) -> None:
    record, promises, _ = watched(workload, "fqops", data.draw(readings("fqops", append_slot=True)))
    asked = workload.deadline < NEVER
    offered = promises.offer_us < NEVER
    assert workload.tolerance is not None
    assert not (offered & ~asked).any()
    assert (promises.offer_us > workload.deadline)[offered].all()
    within = promises.offer_us - workload.submit <= workload.tolerance * (workload.deadline - workload.submit) + 1e-3
    assert (within == (record.status == Status.completed))[offered].all()
    granted = np.where(offered, promises.offer_us, workload.deadline)
    assert (promises.granted_us == granted)[asked & (promises.granted_us < NEVER)].all()


@given(data=st.data(), workload=demands())
def test_a_killed_job_begins_again_later_and_keeps_its_promise(data: st.DataObject, workload: Workload) -> None:
    fixed = {"kill_restart": True, "slots": "first-feasible", "append_slot": True, "k_factor": 5}
    record, promises, _ = watched(workload, "fqops", data.draw(readings("fqops", **fixed)))
    assert workload.restartable is not None
    assert workload.restartable[promises.killed].all()
    assert (promises.killed_start_us < promises.killed_end_us).all()
    assert (record.start_us[promises.killed] >= promises.killed_end_us).all()
    assert (record.end_us <= promises.granted_us)[promises.killed].all()


@given(data=st.data(), workload=demands(tolerances=(1.0, 1.1, 1.3)))
def test_a_tolerance_up_to_the_slack_factor_is_plain_qops(data: st.DataObject, workload: Workload) -> None:
    fixed = {"slots": "first-feasible", "append_slot": True}
    parameters = data.draw(readings("fqops", slack_factor=1.3, kill_restart=False, **fixed))
    feedback = columns(admitted(workload, CORES, "fqops", **parameters))
    plain = columns(admitted(workload, CORES, "qops", **{name: parameters[name] for name in {**QOPS, **AFTER}}))
    assert feedback | {"offer": plain["offer"]} == plain


@pytest.mark.parametrize("algorithm", READINGS)
@given(data=st.data(), workload=demands(overruns=True))
def test_at_worst_the_overrunning_cost_promises(algorithm: str, data: st.DataObject, workload: Workload) -> None:
    """An unmarked job that meets its own estimate ends in time, and no core is allocated twice."""
    parameters = data.draw(readings(algorithm))
    record = admitted(workload, CORES, algorithm, overrun="extend", **parameters)  # type: ignore[arg-type]
    assert record.promises is not None
    promises = record.promises
    own_fault = workload.runtime > workload.estimate
    late = record.ran & (record.end_us > promises.granted_us)
    assert not (late & ~own_fault & ~promises.broken).any()
    if not own_fault.any():
        assert not promises.broken.any()
    start, end, cores = record.holds()
    assert all(cores[(start <= instant) & (instant < end)].sum() <= CORES for instant in start)


@pytest.mark.parametrize("algorithm", READINGS)
@given(data=st.data(), workload=demands())
def test_best_effort_rejects_no_job(algorithm: str, data: st.DataObject, workload: Workload) -> None:
    parameters = data.draw(readings(algorithm))
    record = admitted(workload, CORES, algorithm, unadmitted="best-effort", **parameters)  # type: ignore[arg-type]
    assert record.promises is not None
    assert (record.status == Status.completed).all()
    assert (record.end_us <= record.promises.granted_us).all()


# -- one decision of the second implementation -----------------------------------------------------------------------


@st.composite
def decisions(draw: st.DrawFn, *, largest: int = 9) -> tuple[View, Job]:
    """Draw a machine, a plan made by QoPS, and an additional job."""
    *jobs, newcomer = jobs_of(draw(demands(least=2, largest=largest)))
    for job in [*jobs, newcomer]:
        job.granted = (min(job.deadline, job.submit + job.estimate + 60 * MICROSECOND)) - job.submit
        job.submit = 0
    held: list[Interval] = [(-MICROSECOND, draw(st.integers(1, 6)) * MICROSECOND, draw(st.integers(1, CORES)))]
    plan: Plan = {}
    for job in jobs:
        plan = qops(View(0, CORES, held, plan), job) or plan
    return View(0, CORES, held, plan), newcomer


def listed(view: View, order: tuple[Job, ...]) -> Plan | None:
    """Return the list schedule of an order, or None if a job misses its deadline."""
    plan: Plan = {}
    for job in order:
        plan[job] = view.earliest(job, plan)
        if plan[job] + job.estimate > job.granted:
            return None
    return plan


@given(decision=decisions())
def test_any_job_that_fits_behind_the_plan_is_admitted_by_qops_and_by_msb(decision: tuple[View, Job]) -> None:
    view, job = decision
    assume(view.earliest(job, view.plan) + job.estimate <= job.granted)
    for heuristic in RANKS:
        assert qops(view, job, heuristic=heuristic, k_factor=0)
        assert qops(view, job, heuristic=heuristic, insertion="sorted")
    assert all(msb(view, job, price=price) for price in PRICES)


@given(decision=decisions(), heuristic=st.sampled_from(list(RANKS)), insertion=st.sampled_from(("first", "sorted")))
def test_qops_with_more_patience_takes_no_fewer(decision: tuple[View, Job], heuristic: str, insertion: str) -> None:
    view, job = decision
    options: dict[str, Any] = {"heuristic": heuristic, "insertion": insertion, "append_slot": False}
    answers = [qops(view, job, k_factor=k_factor, **options) is not None for k_factor in range(8)]
    assert answers == sorted(answers)
    first = qops(view, job, slots="first-slot-only", **options)
    any_slot = qops(view, job, **options)
    assert first is None or any_slot == first
    assert (qops(view, job, slots="best", **options) is None) == (any_slot is None)


@given(
    decision=decisions(),
    heuristic=st.sampled_from((*RANKS, "edf+est")),
    window=st.sampled_from((None, 1, 2)),
    hole_filling=st.booleans(),
)
def test_mrt_with_more_backtracks_finds_the_same_plan(
    decision: tuple[View, Job], heuristic: str, window: int | None, hole_filling: bool
) -> None:
    view, job = decision
    options: dict[str, Any] = {"heuristic": heuristic, "window": window, "hole_filling": hole_filling}
    plans = [mrt(view, job, backtracks=limit, **options) for limit in (0, 1, 2, 5, 20)]
    for fewer, more in pairwise(plans):
        assert fewer is None or fewer == more


@given(decision=decisions(largest=5), heuristic=st.sampled_from((*RANKS, "edf+est")))
@settings(max_examples=max(12, settings.default.max_examples // 2))  # type: ignore[union-attr]
def test_unlimited_mrt_takes_whoever_any_order_can_take(decision: tuple[View, Job], heuristic: str) -> None:
    view, job = decision
    jobs = [*view.plan, job]
    possible = any(listed(view, order) is not None for order in permutations(jobs))
    assert (mrt(view, job, heuristic=heuristic, backtracks=INFINITE) is not None) == possible
    assert (mrt(view, job, heuristic=heuristic, backtracks=INFINITE, window=1) is not None) == possible
    for plan in [qops(view, job), qops(view, job, insertion="sorted"), msb(view, job), msb(view, job, order="edf")]:
        assert plan is None or (possible and set(plan) == set(jobs))
        # The order determines a left-shifted plan.
        assert plan is None or listed(view, tuple(sorted(plan, key=lambda job: (plan[job], job.row)))) == plan


@given(decision=decisions())
def test_a_decision_changes_nothing_by_itself(decision: tuple[View, Job]) -> None:
    view, job = decision
    before = dict(view.plan)
    asked = job.granted
    for decide in (msb, mrt, qops):
        decide(view, job)
    assert view.plan == before
    assert job.granted == asked
