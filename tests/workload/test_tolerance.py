"""Tolerances of users."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.workload import Workload
from gridsim.workload.transform.tolerance import Tolerance, by_number


def log(jobs: int) -> Workload:
    return Workload.from_columns(submit=np.arange(jobs), runtime=np.ones(jobs), cores=np.ones(jobs, dtype=int))


def drawn(factor: float, jobs: int, *, random: bool = True) -> np.ndarray:
    tolerance = Tolerance(factor, random).apply(log(jobs), np.random.default_rng(2)).tolerance
    assert tolerance is not None
    return tolerance


def test_a_fixed_tolerance_is_that_of_everybody() -> None:
    assert drawn(2.5, 3, random=False).tolist() == [2.5] * 3


def test_random_tolerances_are_uniform_up_to_twice_the_factor_and_not_below_one() -> None:
    found = drawn(2, 10_000)
    assert found.min() == 1
    assert 3.99 < found.max() < 4
    assert abs(np.mean(found == 1) - 0.25) < 0.02
    assert abs(found[found > 1].mean() - 2.5) < 0.05


def test_a_larger_factor_makes_nobody_less_tolerant() -> None:
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
    with pytest.raises(InputError, match=r"field 'factor': a tolerance of .*; expected 1"):
        Tolerance(factor)


def test_what_was_done_is_told() -> None:
    made = Tolerance(3, random=True).apply(log(2), np.random.default_rng(1))
    assert made.provenance["transforms"] == [{"transform": "tolerance", "factor": 3, "random": True}]
