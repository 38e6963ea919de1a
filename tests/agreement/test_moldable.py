"""Moldable jobs: the fast strategies make the same schedules as the second implementation, which is itself checked.

The module has differential tests of the strategies that choose sizes, and checks of every schedule against section 12
of the specification.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.model.moldable import Moldable
from gridsim.model.platform import Platform
from gridsim.model.speedup import Amdahl, Downey, Linear, Speedup, Table, fitted
from gridsim.model.time import NEVER, IntArray
from gridsim.model.workload import Workload
from gridsim.record import Record, Status
from gridsim.simulation import run
from gridsim.testing.moldable_oracle import (
    Algorithm,
    AtStart,
    Claim,
    Rules,
    largest,
    limit,
    machine_of,
    moldable_schedule,
)
from gridsim.testing.oracle import Interval, Job, fits, play, schedule

CORES = 10

FAST = {
    "conservative": "conservative",
    "submit-greedy": "moldable-greedy",
    "submit-fair-share": "moldable-submit",
    "aggressive-fair-share": "moldable-start",
}
"""Names of the fast policies."""

CHOOSING: tuple[Algorithm, ...] = ("submit-greedy", "submit-fair-share", "aggressive-fair-share")
FAIR: tuple[Algorithm, ...] = ("submit-fair-share", "aggressive-fair-share")


# -- strategies ------------------------------------------------------------------------------------------------------

LAWS: tuple[Speedup, ...] = (
    Linear(),
    Linear(),
    Amdahl(0.1),
    Downey(sigma=0),
    Downey(sigma=1),
    Downey(parallelism=3.5, sigma=0.5),
    Downey(parallelism=6, sigma=2),
    Table([(2, 100), (4, 55), (6, 60), (8, 31)]),
)


@st.composite
def moldables(
    draw: st.DrawFn,
    *,
    least: int = 3,
    most: int = 10,
    exact: bool = False,
    rigid: bool = False,
    named: bool = False,
    laws: tuple[Speedup, ...] = LAWS,
    unit: float = 1.0,
) -> Workload:
    """Draw jobs with ranges of every kind; many arrive at once, and some end before their estimates.

    Parameters
    ----------
    exact : bool
        Whether estimates are the runtimes.
    rigid : bool
        Whether every job runs only at its requested size.
    named : bool
        Whether some jobs list their sizes.
    unit : float
        Unit of all times, s.
    """
    job = st.tuples(
        st.sampled_from((0, 0, 0, 1, 2, 5, 9)),  # gap to the previous job
        st.sampled_from((1, 3, 6, 12, 12, 20, 36, 60)),
        st.sampled_from((0,) if exact else (0, 0, 0, 1, 5, 20)),  # estimate minus runtime
        st.one_of(st.just(1), st.just(CORES), st.integers(1, CORES)),
        st.sampled_from((0, 0, 1, 3, CORES)) if not rigid else st.just(0),  # below the requested size
        st.sampled_from((0, 1, 3, CORES, CORES)) if not rigid else st.just(0),  # above it
        st.sampled_from(laws),
        st.one_of(st.just(()), st.sets(st.integers(1, CORES), min_size=1)) if named else st.just(()),
    )
    gap, runtime, beyond, cores, below, above, law, sizes = zip(
        *draw(st.lists(job, min_size=least, max_size=most)), strict=True
    )
    minimum = np.maximum(1, np.subtract(cores, below))
    maximum = np.minimum(CORES, np.add(cores, above))
    return Workload.from_columns(
        submit=np.cumsum(gap) * unit,
        runtime=np.multiply(runtime, unit),
        estimate=np.add(runtime, beyond) * unit,
        cores=cores,
        moldable=Moldable.of(
            cores,
            minimum,
            maximum,
            [fitted(one, int(end)) for one, end in zip(law, maximum, strict=True)],
            np.arange(len(cores)),
            sizes=[sorted(chosen) for chosen in sizes] if named else None,
        ),
    )


SIZES: dict[str, st.SearchStrategy[Any]] = {
    "choices": st.sampled_from((12, 2, 3, 4, 5, "all")),
    "grid": st.sampled_from(("geometric", "geometric", "linear")),
}
SHARES = SIZES | {
    "wf": st.sampled_from((1, 2, 1.5, 4)),
    "gap": st.sampled_from((0.9, 0.9, 0.5, 1)),
    "weight": st.sampled_from(("linear", "sqrt", "sqrt-parallel", "equal")),
    "scope": st.sampled_from(("system", "remaining", "queued")),
}
READINGS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "conservative": {},
    "submit-greedy": SIZES,
    "submit-fair-share": SHARES,
    "aggressive-fair-share": SHARES
    | {
        "head": st.sampled_from((True, True, False)),
        "category": st.sampled_from(
            (None, {"count": 10, "first": 100, "ratio": 3}, {"count": 4, "first": 6, "ratio": 2})
        ),
        "xfactor": st.sampled_from((None, 4, 1.25, 2)),
        "backfill": st.sampled_from(("best", "best", "now")),
        "promise_order": st.sampled_from(("acquired", "acquired", "queue")),
    },
}
"""Parameters of each algorithm, including all interpretations of the specification."""


def readings(algorithm: str, **fixed: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Draw parameters of an algorithm; given parameters stay unchanged."""
    return st.fixed_dictionaries(
        READINGS[algorithm] | {name: st.just(value) for name, value in fixed.items() if name in READINGS[algorithm]}
    )


# -- the fast strategies ---------------------------------------------------------------------------------------------


def lanes(parameters: Mapping[str, Any]) -> str:
    """Return the reservation rule of the lanes."""
    category, k = parameters["category"], parameters["xfactor"]
    rule = "easy" if parameters["head"] else "first-fit"
    if category is not None:
        rule = "category(" + "&".join(f"{name}={value}" for name, value in category.items()) + ")"
    return rule if k is None else f"xfactor(k={k}&others={rule})"


def spec(algorithm: str, parameters: Mapping[str, Any]) -> str:
    stated = {name: value for name, value in parameters.items() if name not in ("head", "category", "xfactor")}
    if algorithm == "aggressive-fair-share":
        stated["reserve"] = lanes(parameters)
    return FAST[algorithm] + "?" * bool(stated) + "&".join(f"{name}={value}" for name, value in stated.items())


def assert_same(workload: Workload, algorithm: Algorithm, parameters: Mapping[str, Any], cores: int = CORES) -> None:
    slow = moldable_schedule(workload, cores, algorithm, **parameters)
    policy = spec(algorithm, parameters)
    fast = run(workload, Platform.single(cores), policy)
    for name in ("status", "start_us", "end_us", "given"):
        assert getattr(fast, name).tolist() == getattr(slow, name).tolist(), (name, policy)


@pytest.mark.parametrize("algorithm", READINGS)
@given(data=st.data(), workload=moldables())
def test_every_reading(algorithm: Algorithm, data: st.DataObject, workload: Workload) -> None:
    assert_same(workload, algorithm, data.draw(readings(algorithm)))


@pytest.mark.parametrize("algorithm", CHOOSING)
@given(data=st.data(), workload=moldables(named=True))
def test_every_reading_with_named_sizes(algorithm: Algorithm, data: st.DataObject, workload: Workload) -> None:
    assert_same(workload, algorithm, data.draw(readings(algorithm)))


@given(data=st.data(), workload=moldables(least=8, most=16, exact=True, laws=(Linear(),)))
def test_many_ties_among_many_promises(data: st.DataObject, workload: Workload) -> None:
    lanes = {"category": {"count": 6, "first": 6, "ratio": 2}, "xfactor": 1.25}
    assert_same(workload, "aggressive-fair-share", data.draw(readings("aggressive-fair-share", **lanes)))


@pytest.mark.parametrize("algorithm", READINGS)
@given(data=st.data(), workload=moldables())
def test_a_machine_that_some_jobs_do_not_fit(algorithm: Algorithm, data: st.DataObject, workload: Workload) -> None:
    """A job whose least size fits can run under size selection, whatever its request."""
    assert_same(workload, algorithm, data.draw(readings(algorithm)), cores=CORES - 3)


@pytest.mark.parametrize("algorithm", CHOOSING)
def test_a_half_microsecond_is_rounded_equally_in_runtimes_and_estimates(algorithm: Algorithm) -> None:
    """On 8 cores the job takes 2.7890625 s; float products give a smaller or larger number."""
    ranges = Moldable.of([7], [8], [8], [Amdahl(0.1)])
    workload = Workload.from_columns(submit=[0], runtime=[3], cores=[7], moldable=ranges)
    fixed: dict[str, Any] = {"choices": 12, "head": True, "category": None, "xfactor": None}
    parameters = {name: value for name, value in fixed.items() if name in READINGS[algorithm]}
    record = run(workload, Platform.single(CORES), spec(algorithm, parameters))
    assert record.status.tolist() == [Status.completed]
    assert record.end_us.tolist() == moldable_schedule(workload, CORES, algorithm, **parameters).end_us.tolist()


# -- properties of every schedule: section 12 ------------------------------------------------------------------------


def drawn(data: st.DataObject, algorithm: Algorithm, workload: Workload, **fixed: Any) -> tuple[Record, dict[str, Any]]:
    parameters = data.draw(readings(algorithm, **fixed))
    return moldable_schedule(workload, CORES, algorithm, **parameters), parameters


@pytest.mark.parametrize("algorithm", READINGS)
@given(data=st.data(), workload=moldables(named=True))
def test_jobs_keep_a_size_of_their_range_for_just_as_long_as_it_takes(
    algorithm: Algorithm, data: st.DataObject, workload: Workload
) -> None:
    record, _ = drawn(data, algorithm, workload)
    moldable = workload.moldable
    assert moldable is not None
    assert moldable.size_first is not None
    assert moldable.sizes is not None
    cores = record.given
    assert record.ran.all()
    assert (record.start_us >= workload.submit).all()
    assert np.abs(record.end_us - record.start_us - times(workload, cores, workload.runtime)).max() <= 1
    for instant in record.start_us:
        assert cores[(record.start_us <= instant) & (instant < record.end_us)].sum() <= CORES
    if algorithm == "conservative":
        assert (cores == workload.cores).all()
        return
    assert ((moldable.minimum <= cores) & (cores <= moldable.maximum)).all()
    for row, (begin, end) in enumerate(pairwise(moldable.size_first.tolist())):
        assert begin == end or cores[row] in moldable.sizes[begin:end]


def times(workload: Workload, cores: IntArray, given: IntArray) -> IntArray:
    assert workload.moldable is not None
    return workload.moldable.times_on(cores, given, workload.cores)


@pytest.mark.parametrize("algorithm", FAIR)
@given(data=st.data(), workload=moldables())
def test_no_job_gets_more_than_its_fair_share(algorithm: Algorithm, data: st.DataObject, workload: Workload) -> None:
    record, parameters = drawn(data, algorithm, workload)
    moldable, cores, rules = workload.moldable, record.given, Rules(**parameters)
    assert moldable is not None
    expected = record.start_us + times(workload, cores, workload.estimate)

    def claim(row: int, left: Fraction = Fraction(1)) -> Claim:
        weight = Fraction(float(moldable.weight[row])) * int(workload.estimate[row])
        return Claim(weight * left, int(moldable.minimum[row]), int(moldable.maximum[row]))

    def claims(own: int, now: int) -> Iterator[Claim]:
        """Return the jobs that share the machine when the size of the row is chosen."""
        arriving = algorithm == "submit-fair-share"
        for row in range(len(workload)):
            there = row <= own if arriving else workload.submit[row] <= now
            if not there or record.end_us[row] <= now:
                continue
            if record.start_us[row] >= now or rules.scope == "system":
                yield claim(row)
            elif rules.scope == "remaining":
                length = int(expected[row] - record.start_us[row])
                yield claim(row, Fraction(int(expected[row]) - now, length))

    chosen = workload.submit if algorithm == "submit-fair-share" else record.start_us
    for row, now in enumerate(chosen.tolist()):
        own = claim(row)
        assert cores[row] <= largest(own, limit(own, claims(row, now), CORES, rules))


@given(data=st.data(), workload=moldables(least=6, most=14))
def test_promises_leave_capacity_for_each_other_and_every_lane_is_used(data: st.DataObject, workload: Workload) -> None:
    rules = Rules(**data.draw(readings("aggressive-fair-share")))
    _, machine = machine_of(workload, CORES, "aggressive-fair-share", rules)
    assert isinstance(machine, AtStart)
    before: list[Job] = []

    def watch(now: int, plan: Mapping[int, int]) -> None:
        held = [(job.start, job.expected, job.cores) for job in machine.running]
        places = [(job.planned, job.planned + job.estimate, job.cores) for job in machine.holders]
        assert all(start > now for start, _, _ in places)
        assert_fit(held + places, now)
        assert {job for job in machine.waiting if job.planned < NEVER} == set(machine.holders)
        assert len(set(machine.holders.values())) == len(machine.holders)
        unpromised = [job for job in machine.waiting if job not in machine.holders]
        assert all(machine.lane(job) in {None, *machine.holders.values()} for job in unpromised)
        assert machine.running or not machine.waiting
        kept = [job for job in before if job in machine.holders]
        assert list(machine.holders)[: len(kept)] == kept
        before[:] = machine.holders

    play(machine, "batched", watch)


def assert_fit(intervals: list[Interval], now: int) -> None:
    for index, (begin, end, cores) in enumerate(intervals):
        others = intervals[:index] + intervals[index + 1 :]
        assert fits(others, CORES, cores, max(begin, now), end)


@pytest.mark.parametrize("algorithm", ["conservative", "submit-greedy", "submit-fair-share"])
@given(data=st.data(), workload=moldables())
def test_no_promise_made_at_submit_moves_later(algorithm: Algorithm, data: st.DataObject, workload: Workload) -> None:
    promised: dict[int, int] = {}

    def watch(now: int, plan: Mapping[int, int]) -> None:
        assert all(now < start <= promised.get(job, start) for job, start in plan.items())
        promised.update(plan)

    record = moldable_schedule(workload, CORES, algorithm, watch=watch, **data.draw(readings(algorithm)))
    started = dict(zip(workload.job.tolist(), record.start_us.tolist(), strict=True))
    assert all(started[job] <= start for job, start in promised.items())


@pytest.mark.parametrize("algorithm", CHOOSING)
@given(data=st.data(), workload=moldables(least=1, most=1))
def test_alone_a_job_takes_all_that_it_may(algorithm: Algorithm, data: st.DataObject, workload: Workload) -> None:
    record, _ = drawn(data, algorithm, workload, wf=1, gap=0.9)
    moldable = workload.moldable
    assert moldable is not None
    share = CORES if algorithm == "submit-greedy" else math.floor(0.9 * CORES)
    assert record.given.tolist() == [min(moldable.maximum[0], max(share, moldable.minimum[0]))]
    assert record.start_us.tolist() == workload.submit.tolist()


@given(data=st.data(), workload=moldables(rigid=True))
def test_rigid_jobs_with_one_promise_are_backfilled_as_by_easy(data: st.DataObject, workload: Workload) -> None:
    record, _ = drawn(data, "aggressive-fair-share", workload, head=True, category=None, xfactor=None)
    assert record.start_us.tolist() == schedule(workload, CORES, "easy").start_us.tolist()


@pytest.mark.parametrize("algorithm", ["submit-greedy", "submit-fair-share"])
@given(data=st.data(), workload=moldables(rigid=True))
def test_rigid_jobs_promised_at_submit_are_backfilled_conservatively(
    algorithm: Algorithm, data: st.DataObject, workload: Workload
) -> None:
    record, _ = drawn(data, algorithm, workload)
    assert record.start_us.tolist() == schedule(workload, CORES, "conservative").start_us.tolist()


@given(data=st.data(), workload=moldables(rigid=True, laws=(Linear(),)))
def test_a_workload_without_ranges_is_one_of_rigid_jobs(data: st.DataObject, workload: Workload) -> None:
    ranges, parameters = drawn(data, "aggressive-fair-share", workload)
    without = moldable_schedule(replace(workload, moldable=None), CORES, "aggressive-fair-share", **parameters)
    assert ranges.start_us.tolist() == without.start_us.tolist()
    assert ranges.given.tolist() == without.given.tolist() == workload.cores.tolist()


@given(workload=moldables())
def test_ranges_mean_nothing_to_the_rigid_baseline(workload: Workload) -> None:
    record = moldable_schedule(workload, CORES, "conservative")
    assert record.start_us.tolist() == schedule(workload, CORES, "conservative").start_us.tolist()


@pytest.mark.parametrize("algorithm", READINGS)
@given(data=st.data(), workload=moldables(laws=(Linear(),), unit=2520.0))
def test_a_longer_second_makes_no_other_schedule(algorithm: Algorithm, data: st.DataObject, workload: Workload) -> None:
    """Every number of cores divides every runtime, so nothing is rounded."""
    category = data.draw(st.sampled_from((None, {"count": 5, "first": 30_000, "ratio": 3})))
    record, parameters = drawn(data, algorithm, workload, category=category)
    if category is not None and "category" in parameters:
        parameters["category"] = category | {"first": 3 * 30_000}
    columns = {name: 3 * getattr(workload, name) for name in ("submit", "runtime", "estimate")}
    slower = moldable_schedule(replace(workload, **columns), CORES, algorithm, **parameters)
    assert slower.start_us.tolist() == (3 * record.start_us).tolist()
    assert slower.given.tolist() == record.given.tolist()
