"""Load by expansion, and exact estimates."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.tasks import Tasks
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import Workload
from gridsim.testing.conformance import CASES, check
from gridsim.workload.transform.estimates import ExactEstimates
from gridsim.workload.transform.expand import Expand

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


def test_what_was_done_is_told() -> None:
    assert json.loads(json.dumps(Expand(1.2).apply(LOG).provenance["transforms"])) == [
        {"transform": "expand", "load": 1.2}
    ]


def test_a_workload_with_deadlines_is_refused() -> None:
    log = Workload.from_columns(submit=[0], runtime=[1], cores=[1], deadline=[9])
    with pytest.raises(InputError, match="field 'deadline': the workload has deadlines; expand first"):
        Expand(1.2).apply(log)


@pytest.mark.parametrize("load", [0, -1, float("nan"), float("inf"), 1e9])
def test_loads_that_are_none_are_refused(load: float) -> None:
    with pytest.raises(InputError, match=r"field 'load': a load of .*; expected one above 0"):
        Expand(load)


def test_times_that_nobody_can_count_are_refused() -> None:
    log = Workload.from_columns(submit=[0], runtime=[NEVER // MICROSECOND // 100], cores=[1])
    with pytest.raises(InputError, match="longer than gridsim can count"):
        Expand(101).apply(log)


def test_jobs_of_several_tasks_are_refused() -> None:
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
