"""Estimates with errors."""

from __future__ import annotations

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.tasks import Tasks
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.scenario import transformed
from gridsim.workload.transform.estimates import ExactEstimates, NoisyEstimates

SECOND = 1_000_000


def log(jobs: int, runtime: float = 3600, deadline: float = float("inf")) -> Workload:
    submit = np.arange(jobs)
    return Workload.from_columns(
        submit=submit,
        runtime=np.full(jobs, runtime),
        cores=np.ones(jobs, dtype=int),
        deadline=submit + deadline,
    )


def noisy(workload: Workload, spread: float) -> Workload:
    return NoisyEstimates(spread).apply(workload, np.random.default_rng(7))


def test_errors_are_lognormal_with_median_one_and_the_spread_requested() -> None:
    error = np.log(noisy(log(20_000), 0.5).estimate / (3600 * SECOND))
    assert abs(np.median(error)) < 0.015
    assert abs(error.std() - 0.5) < 0.01
    assert abs(np.mean(np.abs(error) < 0.5) - 0.683) < 0.015


def test_without_spread_estimates_are_exact() -> None:
    workload = log(50)
    assert noisy(workload, 0).estimate.tolist() == ExactEstimates().apply(workload).estimate.tolist()


def test_a_job_keeps_its_error_at_another_spread_and_with_other_jobs() -> None:
    once, twice = (np.log(noisy(log(300), spread).estimate / (3600 * SECOND)) for spread in (0.3, 0.6))
    assert np.allclose(twice, 2 * once, atol=0.002)  # except for rounding to seconds
    both = log(300)
    assert noisy(both.select(np.arange(100, 200)), 0.3).estimate.tolist() == noisy(both, 0.3).estimate[100:200].tolist()


def test_estimates_are_whole_seconds_and_one_at_least() -> None:
    estimates = noisy(log(2_000, runtime=1), 1.5).estimate
    assert estimates.min() == SECOND
    assert (estimates % SECOND == 0).all()


def test_a_deadline_that_cannot_be_requested_any_more_moves_to_the_estimated_end_and_others_stay() -> None:
    workload = log(500, deadline=4_000)
    changed = noisy(workload, 0.5)
    assert changed.deadline.tolist() == np.maximum(workload.deadline, workload.submit + changed.estimate).tolist()
    moved = int((changed.deadline > workload.deadline).sum())
    told = changed.provenance["transforms"][-1]
    assert 0 < moved == told["deadlines_moved"] < 500
    assert told["too_short"] == (changed.estimate < changed.runtime).sum()
    assert (noisy(log(20), 0.5).deadline == NEVER).all()


def test_the_name_is_registered_and_draws_from_the_seed_of_the_scenario() -> None:
    once, again = (transformed(log(20), ["noisy-estimates?spread=0.4"]).estimate.tolist() for _ in range(2))
    assert once == again


@pytest.mark.parametrize("spread", [-0.1, float("nan"), float("inf"), 5.5])
def test_a_spread_that_is_none_is_refused(spread: float) -> None:
    with pytest.raises(InputError, match=f"is {spread}; expected 0"):
        NoisyEstimates(spread)


def test_dag_jobs_are_refused() -> None:
    tasks = Tasks.from_edges(counts=[2], runtime=[1, 1], cores=[1, 1], kind=[0, 0], kinds=("any",), edges=[])
    with pytest.raises(InputError, match="workflows"):
        noisy(Workload.from_tasks(tasks, submit=[0]), 0.1)
