"""Deadlines from a reference schedule, and tolerances."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.workload.transform.deadlines import Deadlines, Tolerance, by_number, requested_deadlines
from gridsim.workload.transform.duplicate import Duplicate

SUBMIT, RUNTIME, RESPONSE = (np.array(values) * MICROSECOND for values in ([0, 2, 4], [20, 10, 6], [20, 28, 32]))


@pytest.mark.parametrize(
    ("stringency", "deadlines"), [(0, [20, 30, 36]), (0.2, [20, 25, 30]), (0.5, [20, 16, 20]), (1, [20, 12, 10])]
)
def test_stringency_shortens_the_response_of_the_reference(stringency: float, deadlines: list[int]) -> None:
    found = requested_deadlines(SUBMIT, RUNTIME, RESPONSE, stringency)
    assert (found // MICROSECOND).tolist() == deadlines


def test_decimal_stringencies_are_exact() -> None:
    # In floats (1 - 0.9) * 10 is above 0.9999999999999998 and 1 - 0.7 above 0.30000000000000004.
    response = np.array([10, 100]) * MICROSECOND
    runtime = np.full(2, MICROSECOND)
    assert (requested_deadlines(runtime * 0, runtime, response, 0.7) // MICROSECOND).tolist() == [3, 30]


def test_times_of_three_centuries_do_not_overflow() -> None:
    response = np.array([285 * 365 * 86400]) * MICROSECOND
    found = requested_deadlines(response * 0, response * 0, response, 0.123456)
    assert int(found[0]) // MICROSECOND == -(-(10**6 - 123456) * 285 * 365 * 86400 // 10**6)


def test_the_ceiling_is_in_ticks() -> None:
    response = np.array([MICROSECOND])
    assert requested_deadlines(response * 0, response * 0, response, 0.3, tick=0.25).tolist() == [750_000]


@pytest.mark.parametrize("stringency", [-0.1, 1.5, float("nan")])
def test_stringencies_beyond_0_and_1_are_refused(stringency: float) -> None:
    with pytest.raises(InputError, match="stringency"):
        requested_deadlines(SUBMIT, RUNTIME, RESPONSE, stringency)


# -- the transform -----------------------------------------------------------------------------------------------------

REFERENCE = Record.from_rows(
    [
        {"submit": 0, "start": 0, "end": 20},
        {"submit": 2, "start": 20, "end": 30},
        {"submit": 4, "start": 30, "end": 36},
    ]
)


def served(workload: Workload, response: int = 1000) -> Record:
    """Return a schedule in which every job has the same response, s."""
    end = workload.submit + response * MICROSECOND
    n = len(workload)
    return Record(workload, end - workload.runtime, end, np.zeros(n, np.int8), np.zeros(n, np.int16), cores=9)


def log(jobs: int, **columns: Any) -> Workload:
    numbers = np.arange(1, jobs + 1)
    return Workload.from_columns(submit=10 * numbers, runtime=numbers, cores=numbers % 4 + 1, **columns)


def flagged(workload: Workload, fraction: float, seed: int = 1) -> set[int]:
    """Return the numbers of the jobs with a deadline."""
    made = Deadlines(fraction=fraction).apply(workload, np.random.default_rng(seed), served(workload))
    return set(made.job[made.deadline < NEVER].tolist())


@pytest.mark.parametrize(("stringency", "deadlines"), [(0, [20, 30, 36]), (0.2, [20, 25, 30]), (1, [20, 12, 10])])
def test_deadlines_request_a_part_of_the_response_in_the_reference(stringency: float, deadlines: list[int]) -> None:
    made = Deadlines(stringency).apply(REFERENCE.workload, np.random.default_rng(1), REFERENCE)
    assert (made.deadline // MICROSECOND).tolist() == deadlines
    assert made.tolerance is None
    made.check()


def test_no_job_requests_less_than_the_estimate_can_guarantee() -> None:
    workload = log(3, estimate=[1, 5000, 400])
    made = Deadlines(0.5).apply(workload, np.random.default_rng(1), served(workload))
    assert ((made.deadline - made.submit) // MICROSECOND).tolist() == [500, 5000, 500]
    made.check()


def test_ceilings_are_in_ticks_of_the_workload() -> None:
    workload = log(1).with_provenance(tick=0.25)
    made = Deadlines(0.3).apply(workload, np.random.default_rng(1), served(workload, response=2))
    assert (made.deadline - made.submit).tolist() == [1_500_000]


@given(jobs=st.integers(1, 60), pair=st.tuples(st.floats(0, 1), st.floats(0, 1)), seed=st.integers(0, 99))
def test_the_jobs_of_a_smaller_fraction_are_among_those_of_a_larger(
    jobs: int, pair: tuple[float, float], seed: int
) -> None:
    low, high = (flagged(log(jobs), fraction, seed) for fraction in sorted(pair))
    assert low <= high


@given(jobs=st.integers(1, 40), seed=st.integers(0, 99), fraction=st.floats(0, 1))
def test_a_job_is_flagged_at_every_load_or_at_none(jobs: int, seed: int, fraction: float) -> None:
    base, more, most = (Duplicate(load).apply(log(jobs), np.random.default_rng(seed)) for load in (1.0, 1.4, 1.6))
    found = [flagged(workload, fraction, seed) for workload in (base, more, most)]
    assert found[0] == found[2] & set(base.job.tolist())
    assert found[1] == found[2] & set(more.job.tolist())


def test_all_jobs_or_none_where_the_fraction_says_so_and_the_share_between() -> None:
    assert len(flagged(log(200), 1.0)) == 200
    assert len(flagged(log(200), 0.0)) == 0
    assert abs(len(flagged(log(5000), 0.2)) - 1000) < 100


def test_tolerances_do_not_depend_on_the_fraction_nor_flags_on_the_tolerance() -> None:
    workload = log(100)
    reference = served(workload)
    made = [
        Deadlines(fraction=fraction, tolerance=3, random_tolerance=random).apply(
            workload, np.random.default_rng(4), reference
        )
        for fraction, random in ((0.2, True), (0.8, True), (0.8, False))
    ]
    few, many, fixed = (workload.tolerance for workload in made)
    assert few is not None
    assert many is not None
    assert fixed is not None
    assert few.tolist() == many.tolist()
    assert len(set(few.tolist())) > 50
    assert set(fixed.tolist()) == {3.0}
    assert made[1].deadline.tolist() == made[2].deadline.tolist()


def test_jobs_that_did_not_run_in_the_reference_have_none() -> None:
    reference = Record.from_rows(
        [{"submit": 0, "start": 0, "end": 9}, {"submit": 1, "start": None, "end": None, "runtime": 5}]
    )
    made = Deadlines(0).apply(reference.workload, np.random.default_rng(1), reference)
    assert made.deadline.tolist() == [9 * MICROSECOND, NEVER]
    assert made.provenance["transforms"][0]["did_not_run"] == 1


def test_changes_are_reported() -> None:
    made = Deadlines(0.5, fraction=0, tolerance=2).apply(REFERENCE.workload, np.random.default_rng(1), REFERENCE)
    assert json.loads(json.dumps(made.provenance["transforms"])) == [
        {
            "transform": "deadlines",
            "stringency": 0.5,
            "fraction": 0,
            "tolerance": 2,
            "random_tolerance": False,
            "reference": "easy",
            "reference_cores": 1,
            "with_deadline": 0,
            "did_not_run": 0,
        }
    ]


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ({"job": [1, 2, 4]}, "job 3 differs in job"),
        ({"submit": [0, 2, 5]}, "job 3 differs in submit"),
        ({"runtime": [20, 11, 6]}, "job 2 differs in runtime"),
        ({"cores": [2, 1, 1]}, "job 1 differs in cores"),
    ],
)
def test_a_reference_record_of_another_log_is_refused(column: dict[str, list[int]], told: str) -> None:
    columns: dict[str, Any] = {"submit": [0, 2, 4], "runtime": [20, 10, 6], "cores": [1, 1, 1], **column}
    with pytest.raises(InputError, match="the reference record is of another log: job") as caught:
        Deadlines().apply(REFERENCE.workload, np.random.default_rng(1), served(Workload.from_columns(**columns)))
    assert told in str(caught.value)


def test_a_reference_record_of_more_jobs_is_refused() -> None:
    with pytest.raises(InputError, match="record is of another log: it has 5 jobs, but the workload has 3"):
        Deadlines().apply(REFERENCE.workload, np.random.default_rng(1), served(log(5)))


def test_deadlines_are_not_given_twice() -> None:
    workload = log(2, deadline=[1000, np.inf])
    with pytest.raises(InputError, match="the workload has deadlines already"):
        Deadlines().apply(workload, np.random.default_rng(1), served(workload))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"stringency": -0.1}, "field 'stringency': is -0.1; expected 0 to 1"),
        ({"stringency": float("nan")}, "field 'stringency': is nan; expected 0 to 1"),
        ({"fraction": 1.5}, "field 'fraction': is 1.5; expected 0 to 1"),
        ({"tolerance": 0.9}, "field 'tolerance': is 0.9; expected 1 (none) or more"),
    ],
)
def test_impossible_parameters_are_refused(fields: dict[str, float], told: str) -> None:
    with pytest.raises(InputError) as caught:
        Deadlines(**fields)  # type: ignore[arg-type]
    assert str(caught.value) == told


def equal_jobs(jobs: int) -> Workload:
    return Workload.from_columns(submit=np.arange(jobs), runtime=np.ones(jobs), cores=np.ones(jobs, dtype=int))


def drawn(factor: float, jobs: int, *, random: bool = True) -> np.ndarray:
    tolerance = Tolerance(factor, random).apply(equal_jobs(jobs), np.random.default_rng(2)).tolerance
    assert tolerance is not None
    return tolerance


def test_a_fixed_tolerance_is_that_of_all_jobs() -> None:
    assert drawn(2.5, 3, random=False).tolist() == [2.5] * 3


def test_random_tolerances_are_uniform_up_to_twice_the_factor_and_not_below_one() -> None:
    found = drawn(2, 10_000)
    assert found.min() == 1
    assert 3.99 < found.max() < 4
    assert abs(np.mean(found == 1) - 0.25) < 0.02
    assert abs(found[found > 1].mean() - 2.5) < 0.05


def test_a_larger_factor_makes_no_job_less_tolerant() -> None:
    assert (drawn(3, 500) >= drawn(2, 500)).all()


@given(first=st.integers(1, 50), more=st.integers(0, 50), seed=st.integers(0, 9))
def test_a_job_draws_the_same_whatever_others_there_are(first: int, more: int, seed: int) -> None:
    few, many = (
        by_number(np.arange(1, jobs + 1), np.random.default_rng(seed)).tolist() for jobs in (first, first + more)
    )
    assert many[:first] == few


@pytest.mark.parametrize("numbers", [[-1, 2], [1, 1 << 40]])
def test_numbers_that_cannot_be_drawn_by_are_refused(numbers: list[int]) -> None:
    with pytest.raises(InputError, match="field 'job': job number"):
        by_number(np.array(numbers), np.random.default_rng(1))


@pytest.mark.parametrize("factor", [0.5, float("nan"), float("inf")])
def test_tolerances_below_one_are_refused(factor: float) -> None:
    with pytest.raises(InputError, match=r"field 'factor': is .*; expected 1"):
        Tolerance(factor)


def test_provenance_contains_the_tolerance() -> None:
    made = Tolerance(3, random=True).apply(equal_jobs(2), np.random.default_rng(1))
    assert made.provenance["transforms"] == [{"transform": "tolerance", "factor": 3, "random": True}]
