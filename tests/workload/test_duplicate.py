"""Load by duplication (copied jobs, their arrivals, their other columns) and by longer jobs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.tasks import Tasks
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import Workload
from gridsim.testing.conformance import CASES, check
from gridsim.workload.transform.duplicate import Duplicate, Expand
from gridsim.workload.transform.estimates import ExactEstimates


def log(jobs: int = 5, **columns: Any) -> Workload:
    """Return jobs; number k has k seconds and k cores, and is submitted at 10 k."""
    numbers = np.arange(1, jobs + 1)
    return Workload.from_columns(submit=10 * numbers, runtime=numbers, cores=numbers, **columns)


def rows(workload: Workload) -> list[tuple[int, ...]]:
    columns = (workload.job, workload.submit, workload.runtime, workload.cores, workload.deadline)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


loads = st.integers(100, 450).map(lambda percent: percent / 100)


@given(jobs=st.integers(1, 30), seed=st.integers(0, 99), pair=st.tuples(loads, loads), arrival=st.booleans())
def test_a_higher_load_contains_a_lower_one(jobs: int, seed: int, pair: tuple[float, float], arrival: bool) -> None:
    method: Any = "same" if arrival else "random"
    low, high = (rows(Duplicate(load, method).apply(log(jobs), rng(seed))) for load in sorted(pair))
    assert set(low) <= set(high)
    assert set(rows(log(jobs))) <= set(low)


@given(jobs=st.integers(1, 30), seed=st.integers(0, 99), load=loads)
def test_no_job_is_copied_twice_before_every_job_is_once(jobs: int, seed: int, load: float) -> None:
    copied = np.bincount(Duplicate(load).apply(log(jobs), rng(seed)).runtime // MICROSECOND, minlength=jobs + 1)[1:]
    assert copied.max() - copied.min() <= 1


@pytest.mark.parametrize(("jobs", "load", "copies"), [(5, 1.1, 1), (5, 1.08, 0), (5, 1.3, 2), (10, 1.45, 5), (3, 3, 6)])
def test_the_number_of_copies_is_rounded_halves_up(jobs: int, load: float, copies: int) -> None:
    assert len(Duplicate(load).apply(log(jobs), rng())) == jobs + copies


def test_a_load_of_one_is_the_same_workload() -> None:
    assert rows(Duplicate(1.0).apply(log(), rng())) == rows(log())


@given(seed=st.integers(0, 99), jobs=st.integers(2, 20))
def test_rows_are_sorted_by_submit_and_number_and_new_numbers_follow_the_old(seed: int, jobs: int) -> None:
    made = Duplicate(1.7).apply(log(jobs), rng(seed))
    keys = list(zip(made.submit.tolist(), made.job.tolist(), strict=True))
    assert keys == sorted(keys)
    assert sorted(made.job.tolist()) == list(range(1, len(made) + 1))
    made.check()


def test_random_arrivals_are_whole_ticks_between_the_first_and_the_last_submit_both_included() -> None:
    workload = Workload.from_columns(submit=[7, 7, 7, 10] * 20, runtime=[1] * 80, cores=[1] * 80)
    made = Duplicate(2.0).apply(workload, rng())
    assert set((made.submit[made.job > 80] // MICROSECOND).tolist()) == {7, 8, 9, 10}
    fine = Duplicate(2.0).apply(workload.with_provenance(tick=0.5), rng())
    assert set((fine.submit * 2 // MICROSECOND).tolist()) == {14, 15, 16, 17, 18, 19, 20}


def test_a_copy_has_everything_of_its_original() -> None:
    made = Duplicate(2.0).apply(
        log(
            deadline=[110, np.inf, 130, 140, 150],
            tolerance=[1, 2, 3, 4, 5],
            restartable=[True, False, True, False, True],
            labels={"user": [11, 12, 13, 14, 15]},
            logged={"wait": np.arange(5.0)},
            cores_stated=8,
        ),
        rng(),
    )
    for original in range(1, 6):
        first, second = np.flatnonzero(made.cores == original)
        for column in (made.runtime, made.estimate, made.tolerance, made.restartable, made.labels["user"]):
            assert column is not None
            assert column[first] == column[second]
        responses = (made.deadline - made.submit)[[first, second]]
        assert responses[0] == responses[1] or original == 2
    assert (made.deadline[made.cores == 2] == NEVER).all()
    assert made.cores_stated == 8
    assert made.logged == {}


def test_a_copy_that_arrives_with_its_original_has_the_same_deadline() -> None:
    made = Duplicate(2.0, "same").apply(log(deadline=[110, 120, 130, 140, 150]), rng())
    assert (made.submit // MICROSECOND).tolist() == [10, 10, 20, 20, 30, 30, 40, 40, 50, 50]
    assert (made.deadline // MICROSECOND).tolist() == [110, 110, 120, 120, 130, 130, 140, 140, 150, 150]


def test_both_ways_to_arrive_copy_the_same_jobs() -> None:
    same, random = (Duplicate(1.4, method).apply(log(50), rng(3)) for method in ("same", "random"))
    assert sorted(same.runtime) == sorted(random.runtime)


def test_changes_are_reported() -> None:
    told = json.loads(json.dumps(Duplicate(1.4).apply(log(), rng()).provenance["transforms"]))
    assert told == [{"transform": "duplicate", "load": 1.4, "arrival": "random", "copies": 2, "jobs": 7}]


@pytest.mark.parametrize("load", [0.9, -1, float("nan"), float("inf"), 1e9])
def test_loads_below_one_and_beyond_measure_are_refused(load: float) -> None:
    with pytest.raises(InputError, match=r"field 'load': is .*; expected 1 to 1000 times"):
        Duplicate(load)


def test_another_way_to_arrive_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'random'"):
        Duplicate(1.2, "ramdom")  # type: ignore[arg-type]


def test_dag_jobs_are_refused() -> None:
    tasks = Tasks.from_edges(counts=[2], runtime=[1, 1], cores=[1, 1], edges=[(0, 1)])
    with pytest.raises(InputError, match="only rigid jobs can be duplicated"):
        Duplicate(1.2).apply(Workload.from_tasks(tasks, submit=[0]), rng())


LOG = Workload.from_columns(
    submit=[0, 5, 9], runtime=[100, 7, 1], estimate=[150, 7, 3], cores=[4, 2, 1], cores_stated=4
)
CASE: dict[str, Any] = {
    "kind": "load_expansion",
    "jobs": [{"id": 3, "submit": 0, "cores": 1, "runtime": 5}, {"id": 1, "submit": 4, "cores": 2, "runtime": 1}],
    "expected": [{"load": 1.5, "runtimes": [8, 2]}, {"load": 1, "runtimes": [5, 1]}],
}


def test_runtimes_and_estimates_grow_and_submits_stay() -> None:
    made = Expand(1.5).apply(LOG)
    assert (made.runtime // MICROSECOND).tolist() == [150, 11, 2]
    assert (made.estimate // MICROSECOND).tolist() == [225, 11, 5]
    assert (made.submit // MICROSECOND).tolist() == [0, 5, 9]
    assert made.cores.tolist() == [4, 2, 1]


def test_decimal_loads_are_exact() -> None:
    # In floats 1.1 * 15 + 0.5 is 17.0 and 1.15 * 10 is below 11.5.
    log = Workload.from_columns(submit=[0, 0], runtime=[15, 10], cores=[1, 1])
    assert (Expand(1.1).apply(log).runtime // MICROSECOND).tolist() == [17, 11]
    assert (Expand(1.15).apply(log).runtime // MICROSECOND).tolist() == [17, 12]


def test_a_load_below_one_shortens_to_a_second_at_the_least() -> None:
    assert (Expand(0.1).apply(LOG).runtime // MICROSECOND).tolist() == [10, 1, 1]


def test_provenance_contains_the_expansion() -> None:
    assert json.loads(json.dumps(Expand(1.2).apply(LOG).provenance["transforms"])) == [
        {"transform": "expand", "load": 1.2}
    ]


def test_a_workload_with_deadlines_is_refused() -> None:
    log = Workload.from_columns(submit=[0], runtime=[1], cores=[1], deadline=[9])
    with pytest.raises(InputError, match="field 'deadline': the workload has deadlines; apply expand before"):
        Expand(1.2).apply(log)


@pytest.mark.parametrize("load", [0, -1, float("nan"), float("inf"), 1e9])
def test_loads_that_are_none_are_refused(load: float) -> None:
    with pytest.raises(InputError, match=r"field 'load': is .*; expected more than 0"):
        Expand(load)


def test_times_that_no_job_can_count_are_refused() -> None:
    log = Workload.from_columns(submit=[0], runtime=[NEVER // MICROSECOND // 100], cores=[1])
    with pytest.raises(InputError, match="exceeds the largest time"):
        Expand(101).apply(log)


def test_dag_jobs_cannot_be_expanded() -> None:
    tasks = Tasks.from_edges(counts=[2], runtime=[1, 1], cores=[1, 1], edges=[(0, 1)])
    with pytest.raises(InputError, match="only rigid jobs can be expanded"):
        Expand(1.2).apply(Workload.from_tasks(tasks, submit=[0]))


def test_a_conformance_case_passes() -> None:
    outcome = check(CASE)
    assert (outcome.status, outcome.passed) == ("passed", 2)


def test_a_conformance_case_with_a_wrong_number_fails() -> None:
    wrong = {**CASE, "expected": [{"load": 1.5, "runtimes": [7, 2]}]}
    assert check(wrong).status == "failed"


def test_a_conformance_case_with_more_than_is_compared_is_not_passed() -> None:
    more = {**CASE, "expected": [{"load": 1.5, "runtimes": [8, 2], "work": 9}]}
    assert check(more).status == "unsupported"


def test_the_specified_case_of_expansion_passes() -> None:
    path = CASES / "deadline-admission" / "19-load-expansion.json"
    outcome = check(json.loads(path.read_text()))
    assert (outcome.status, outcome.passed) == ("passed", 5)


# -- estimates ---------------------------------------------------------------------------------------------------------


def test_exact_estimates_are_the_runtimes() -> None:
    made = ExactEstimates().apply(LOG)
    assert made.estimate.tolist() == made.runtime.tolist() == LOG.runtime.tolist()
    assert made.provenance["transforms"] == [{"transform": "exact-estimates", "changed": 2}]
    assert LOG.estimate.tolist() != LOG.runtime.tolist()


def test_exact_estimates_reach_the_tasks() -> None:
    tasks = Tasks.from_edges(counts=[2], runtime=[1, 2], cores=[1, 1], edges=[(0, 1)], estimate=[5, 5])
    made = ExactEstimates().apply(Workload.from_tasks(tasks, submit=[0]))
    assert made.tasks is not None
    np.testing.assert_array_equal(made.tasks.estimate, tasks.runtime)
    assert made.estimate.tolist() == [3 * MICROSECOND]


def test_a_deadline_that_an_exact_estimate_cannot_meet_is_refused() -> None:
    log = Workload.from_columns(submit=[0], runtime=[9], estimate=[5], cores=[1], deadline=[6])
    with pytest.raises(InputError, match=r"field 'deadline': job 1 has 6\.0; expected a deadline at submit"):
        ExactEstimates().apply(log)
