"""The plan of one cluster: places, compression, and complete replanning."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.errors import PolicyError
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.policy.admission.plan import Conservative, Plan
from gridsim.policy.protocols import Offer, PlannedStarts
from gridsim.policy.queue import Requests

SECOND = 1_000_000
CORES = 4


def plan_of(*jobs: tuple[int, int]) -> Plan:
    """Return a plan for requests of (cores, estimate), none of them planned."""
    workload = Workload.from_columns(
        submit=[0] * len(jobs), runtime=[estimate for _, estimate in jobs], cores=[cores for cores, _ in jobs]
    )
    return Plan(Requests(workload), CORES)


def enter(plan: Plan, request: int, now: int = 0) -> int:
    """Guarantee the earliest place of a request; return it in seconds."""
    start = plan.earliest(request, now * SECOND)
    plan.reserve(request, start)
    return start // SECOND


def test_requests_are_placed_one_after_the_other_and_ordered_by_start() -> None:
    plan = plan_of((3, 10), (4, 10), (1, 8), (1, 30))
    assert [enter(plan, request) for request in range(4)] == [0, 10, 0, 20]
    assert plan.order().tolist() == [0, 2, 1, 3]
    assert len(plan) == 4
    assert plan.next_start() == 0


def test_a_place_is_found_without_being_taken() -> None:
    plan = plan_of((4, 10), (4, 10))
    assert plan.earliest(1, 0) == 0
    assert plan.earliest(1, 0) == 0
    assert Conservative().plan(1, NEVER, plan, 0) == Offer(0)
    assert Conservative().plan(1, 9 * SECOND, plan, 0) is None, "a deadline that its earliest place does not keep"
    assert len(plan) == 0
    assert plan.next_start() == NEVER


def test_due_jobs_run_until_their_estimates() -> None:
    plan = plan_of((3, 10), (4, 10), (1, 8))
    for request in range(3):
        enter(plan, request)
    assert list(plan.due(0)) == [0, 2]
    assert list(plan.due(0)) == []
    assert plan.running().tolist() == [2, 0], "by expected end"
    assert plan.expected_ends().tolist() == [8 * SECOND, 10 * SECOND]
    assert plan.next_start() == 10 * SECOND


def test_capacity_released_by_an_early_end_can_be_used() -> None:
    plan = plan_of((4, 10), (4, 5))
    enter(plan, 0)
    plan.due(0)
    assert plan.earliest(1, 3 * SECOND) == 10 * SECOND
    assert plan.ended(0, 3 * SECOND) == 10 * SECOND
    assert plan.earliest(1, 3 * SECOND) == 3 * SECOND
    assert not len(plan.running())


@pytest.mark.parametrize(
    ("order", "planned"),
    [([1, 3, 2], {1: 2, 2: 12, 3: 2}), ([1, 2, 3], {1: 2, 2: 20, 3: 2}), ([], {1: 10, 2: 20, 3: 10})],
)
def test_each_request_of_the_order_moves_while_all_others_stay(order: list[int], planned: dict[int, int]) -> None:
    plan = plan_of((4, 10), (3, 10), (4, 10), (1, 10))
    for request in range(4):
        enter(plan, request)
    plan.due(0)
    plan.ended(0, 2 * SECOND)
    places = np.array([plan.order().tolist().index(request) for request in order], dtype=np.int64)
    plan.compress(places, 2 * SECOND)
    assert {request: start // SECOND for request, start in plan.starts().items()} == planned


def test_a_new_plan_respects_jobs_that_run_longer() -> None:
    plan = plan_of((4, 10), (3, 10), (4, 10))
    for request in range(3):
        enter(plan, request)
    plan.due(0)
    plan.expect(0, 13 * SECOND)
    plan.replan(10 * SECOND)
    assert {request: start // SECOND for request, start in plan.starts().items()} == {1: 13, 2: 23}


@pytest.mark.parametrize("copied", [copy.deepcopy, Plan.copy])
def test_a_copy_is_independent(copied: Callable[[Plan], Plan]) -> None:
    plan = plan_of((4, 10), (4, 10), (4, 10))
    enter(plan, 0)
    plan.due(0)
    twin = copied(plan)
    enter(twin, 1)
    twin.ended(0, SECOND)
    assert len(plan) == 0
    assert plan.running().tolist() == [0]
    assert plan.earliest(2, SECOND) == 10 * SECOND


def test_a_running_request_can_be_thought_away() -> None:
    plan = plan_of((4, 10), (4, 10), (4, 7))
    for request in (0, 1):
        enter(plan, request)
    plan.due(0)
    without = plan.without(0, 3 * SECOND)
    assert (without.earliest(2, 3 * SECOND), plan.earliest(2, 3 * SECOND)) == (3 * SECOND, 20 * SECOND)
    assert without.starts() == plan.starts() == {1: 10 * SECOND}, "the waiting ones stay where they are"


def test_an_arrangement_is_adopted_whole() -> None:
    plan = plan_of((4, 10), (2, 10), (2, 5))
    enter(plan, 0)
    plan.due(0)
    enter(plan, 1)
    plan.adopt(PlannedStarts(np.array([2, 1]), np.array([10 * SECOND, 12 * SECOND])), SECOND)
    assert plan.starts() == {2: 10 * SECOND, 1: 12 * SECOND}
    assert plan.earliest(0, SECOND) == 22 * SECOND
    alone = plan.search(0, NEVER, SECOND)
    assert alone.free[: alone.size].tolist() == [0, 4], "the running ones alone"


def test_places_are_not_used_up_by_those_that_have_left() -> None:
    plan = plan_of(*[(4, 1)] * 300)
    for request in range(300):
        enter(plan, request, request)
        assert list(plan.due(request * SECOND)) == [request]
        plan.ended(request, (request + 1) * SECOND)
    assert len(plan.waiting) == 64


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(1, CORES), st.integers(1, 12), st.integers(1, 12)),
        min_size=1,
        max_size=16,
    )
)
def test_compression_up_to_the_frontier_is_full_compression_is_list_scheduling(
    rows: list[tuple[int, int, int, int]],
) -> None:
    """(arrival, cores, runtime, estimate): at each early end, four methods give the same plan.

    Each request moves to its earliest place in planned order; the same within the released blocks only; the same,
    starting from the result for a request of equal size; and all are placed again in that order (specification of
    the deadline family, 3.4).
    """
    rows = sorted(rows)
    plan = plan_of(*((cores, estimate) for _, cores, _, estimate in rows))
    ends: dict[int, int] = {}
    coming = list(range(len(rows)))
    now = 0
    while coming or ends or len(plan):
        instants = [rows[coming[0]][0] * SECOND] if coming else []
        now = min([*instants, *ends.values(), plan.next_start()])
        gone = [request for request, end in ends.items() if end == now]
        frontier = 0
        for request in gone:
            del ends[request]
            frontier = max(frontier, plan.ended(request, now))
        if frontier > now and len(plan):
            full, bounded, anew = copy.deepcopy(plan), copy.deepcopy(plan), copy.deepcopy(plan)
            order = np.arange(len(plan))
            plan.compress(order, now, frontier)
            full.compress(order, now, NEVER)
            bounded.compress(order, now, frontier, again=True)
            anew.replan(now)
            assert plan.starts() == full.starts() == bounded.starts() == anew.starts()
            assert plan.order().tolist() == full.order().tolist() == bounded.order().tolist()
            again = copy.deepcopy(plan)
            again.compress(order, now, NEVER)
            assert again.starts() == plan.starts(), "one pass suffices"
        while coming and rows[coming[0]][0] * SECOND == now:
            enter(plan, coming.pop(0), now // SECOND)
        for request in plan.due(now):
            _, _, runtime, estimate = rows[request]
            ends[request] = now + min(runtime, estimate) * SECOND


@pytest.mark.parametrize("request_", [-1, 2, 10**9])
def test_a_request_that_is_no_row_is_rejected_before_a_compiled_function_uses_it(request_: int) -> None:
    plan = plan_of((2, 10), (2, 10))
    for act in (plan.earliest, plan.ended, plan.give_back, lambda row, now: plan.search(row, NEVER, now)):
        with pytest.raises(PolicyError, match="expected a row of Requests"):
            act(request_, 0)
    with pytest.raises(PolicyError, match="expected a row of Requests"):
        plan.reserve(request_, 0)
    assert len(plan) == 0


def test_places_of_a_compression_may_be_named_several_times() -> None:
    plan = plan_of((4, 10), (4, 10))
    enter(plan, 0)
    plan.reserve(1, 30 * SECOND)
    plan.compress(np.array([0, 1] * 100), 0)
    assert plan.planned_starts().tolist() == [0, 10 * SECOND]
