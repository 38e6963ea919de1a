"""Workloads with slightly shifted submit times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.scenario import transformed
from gridsim.workload.transform.shake import Shake

SECOND = 1_000_000


def log(submits: list[int], **more: object) -> Workload:
    n = len(submits)
    columns = {"runtime": np.arange(1, n + 1), "cores": np.ones(n, dtype=int), **more}
    return Workload.from_columns(submit=np.sort(submits), **columns)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 500), min_size=1, max_size=30), st.integers(0, 100), st.integers(0, 5))
def test_each_job_moves_by_its_own_draw_and_nothing_else_does(submits: list[int], by: int, seed: int) -> None:
    given_jobs = log(submits, deadline=np.sort(submits) + 1000.0)
    shaken = Shake(by).apply(given_jobs, np.random.default_rng(seed))
    draws = np.random.default_rng(seed).integers(-by, by, size=len(submits), endpoint=True)
    wanted = np.maximum(np.sort(submits) + draws, 0)
    order = sorted(range(len(submits)), key=lambda row: (wanted[row], row))
    assert shaken.submit.tolist() == (wanted[order] * SECOND).tolist()
    assert shaken.job.tolist() == given_jobs.job[order].tolist()
    assert shaken.runtime.tolist() == given_jobs.runtime[order].tolist()
    assert (shaken.deadline - shaken.submit == 1000 * SECOND).all()


def test_by_nothing_is_the_workload_itself() -> None:
    given_jobs = log([0, 5, 5, 9])
    shaken = Shake(0).apply(given_jobs, np.random.default_rng(1))
    for (name, mine), (_, theirs) in zip(shaken.columns(), given_jobs.columns(), strict=True):
        assert mine.tolist() == theirs.tolist(), name
    assert (shaken.deadline == NEVER).all()


def test_moves_are_whole_seconds_uniform_on_both_sides() -> None:
    given_jobs = log([10_000] * 20_000)
    moves = (Shake(5).apply(given_jobs, np.random.default_rng(2)).submit - 10_000 * SECOND) // SECOND
    counts = np.bincount(moves + 5, minlength=11)
    assert len(counts) == 11
    assert counts.min() > 1600
    assert counts.max() < 2050


@pytest.mark.parametrize("where", ["labels", "logged"])
def test_a_job_after_another_one_stays_after_it(where: str) -> None:
    rows = np.arange(200)
    named = np.where(rows % 2, rows, -1)  # each second job depends on the previous one
    more = {"labels": {"after": named}} if where == "labels" else {"logged": {"preceding": named}}
    given_jobs = log([2 * (row // 2) + row % 2 for row in rows.tolist()], **more)
    shaken = Shake(60).apply(given_jobs, np.random.default_rng(3))
    place = {job: row for row, job in enumerate(shaken.job.tolist())}
    for job, before in zip(given_jobs.job.tolist(), named.tolist(), strict=True):
        if before > 0:
            assert place[before] < place[job]
            assert shaken.submit[place[before]] <= shaken.submit[place[job]]


def test_the_name_is_registered_and_draws_from_the_seed_of_the_scenario() -> None:
    once, again = (transformed(log([5, 6, 7]), ["shake?by=100"]).submit.tolist() for _ in range(2))
    assert once == again


@pytest.mark.parametrize("by", [-1, 604_801])
def test_invalid_shifts_are_refused(by: int) -> None:
    with pytest.raises(InputError, match=f"is {by}; expected whole seconds from 0"):
        Shake(by)
