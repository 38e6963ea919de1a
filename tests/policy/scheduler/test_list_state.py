"""State arrays of scheduling cycles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.policy.queue import ClusterView, Ledger, Requests
from gridsim.policy.reservation import Easy, FirstFit, Strict
from gridsim.policy.scheduler.list_cycle import PLACE
from gridsim.policy.scheduler.list_state import ListState
from gridsim.simulation import Run, run

SECOND = 10**6
JOBS = Workload.from_columns(submit=[0, 0, 0, 0], runtime=[4, 3, 2, 1], cores=[2, 3, 1, 1])


def state(rule: object = None, jobs: Workload = JOBS, cores: int = 4) -> ListState:
    made = ListState(ClusterView(cores, Requests(jobs)), rule or Strict())
    made.set_places(np.arange(len(jobs)), np.zeros(len(jobs)))
    return made


def test_a_cycle_starts_what_fits_in_queue_order_and_stops_at_the_first_that_does_not() -> None:
    one = state()
    for request in range(4):
        one.joined(request, 0)
    assert list(one.run_list_cycle(0)) == [0]
    assert one.available(0) == 2
    one.ended(0, 4 * SECOND)
    assert list(one.run_list_cycle(4 * SECOND)) == [1, 2]


def test_first_fit_passes_the_first_job() -> None:
    one = state(FirstFit())
    for request in range(4):
        one.joined(request, 0)
    assert list(one.run_list_cycle(0)) == [0, 2, 3]
    one.take_in()
    assert one.rows().tolist() == [1]


def test_easy_lets_pass_what_does_not_delay_the_first_job() -> None:
    jobs = Workload.from_columns(submit=[0, 0, 0, 0], runtime=[4, 3, 5, 4], cores=[3, 4, 1, 1])
    one = state(Easy(), jobs)
    for request in range(4):
        one.joined(request, 0)
    assert list(one.run_list_cycle(0)) == [0, 3]


def test_at_most_as_many_start_as_are_requested() -> None:
    one = state(FirstFit())
    for request in range(4):
        one.joined(request, 0)
    assert list(one.run_list_cycle(0, 1)) == [0]
    assert list(one.run_list_cycle(0, 1)) == [2]


def test_ranks_may_arrive_in_any_order_of_joining() -> None:
    one = state(FirstFit())
    one.set_places(np.arange(4), np.array([4.0, -1.0, 0.0, -0.0]))
    for request in (0, 1, 2, 3):
        one.joined(request, 0)
    one.take_in()
    assert one.rows().tolist() == [1, 2, 3, 0]


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=12))
def test_places_are_in_the_order_of_the_ranks_whatever_their_sign(ranks: list[float]) -> None:
    n = len(ranks)
    one = state(jobs=Workload.from_columns(submit=[0] * n, runtime=[1] * n, cores=[1] * n))
    one.set_places(np.arange(n), np.array(ranks))
    places = one.table[PLACE].tolist()
    for row in range(n - 1):
        assert (places[row] < places[row + 1]) == (ranks[row] < ranks[row + 1])
        assert (places[row] == places[row + 1]) == (ranks[row] == ranks[row + 1])


def test_tasks_of_equal_rank_wait_by_job_then_ready_time_then_index() -> None:
    tasks = Tasks.from_edges(counts=[3, 1], runtime=[1] * 4, cores=[1] * 4, edges=[])
    one = state(jobs=Workload.from_tasks(tasks, submit=[0, 0]))
    for request, ready in ((3, 0), (2, 5), (1, 7), (0, 7)):
        one.requests.ready[request] = ready * SECOND
        one.joined(request, ready * SECOND)
    one.take_in()
    assert one.rows().tolist() == [2, 0, 1, 3]
    assert one.rows_in_job_order().tolist() == [2, 0, 1, 3]


def test_the_ledger_hears_of_every_start_and_end() -> None:
    jobs = Workload.from_columns(submit=[0, 0], runtime=[4, 3], cores=[2, 1], labels={"share": [1, 0]})
    ledger = Ledger(4)
    ledger.open(2)
    one = ListState(ClusterView(4, Requests(jobs)), Strict(), ledger)
    one.joined(0, 0)
    one.joined(1, 0)
    one.run_list_cycle(0)
    assert ledger.running.tolist() == [1, 2]
    one.ended(0, 4 * SECOND)
    assert ledger.running.tolist() == [1, 0]


def test_an_overrun_leaves_arrivals_to_the_next_cycle() -> None:
    one = state()
    one.joined(0, 0)
    one.run_list_cycle(0)
    one.joined(3, 2 * SECOND)
    one.overran(0, 9 * SECOND, SECOND)
    assert one.arrivals().tolist() == [3]
    assert list(one.run_list_cycle(2 * SECOND)) == [3]


@pytest.mark.parametrize("policy", ["p-slr", "fifo-job", "fifo-task", "lrtf", "p-slr-sf", "random"])
def test_a_task_whose_data_come_just_before_an_overrun_is_not_lost(policy: str) -> None:
    # The data of 0 reach 1 at 4; the other job, started at 3, exceeds its estimate then.
    tasks = Tasks.from_edges(
        counts=[2, 1],
        runtime=[2, 1, 9],
        estimate=[2, 1, 1],
        cores=1,
        kind=[0, 1, 1],
        kinds=("A", "B"),
        edges=[(0, 1)],
    )
    root = RouterSpec("root", (ClusterSpec("a", 1, "A"), ClusterSpec("b", 2, "B")))
    jobs = Workload.from_tasks(tasks, submit=[0, 3])
    record = run(jobs, Platform(root, network=Network(ccr="1")), policy, Run(overrun="extend"))
    assert record.tasks is not None
    assert (record.tasks.start_us // SECOND).tolist() == [0, 4, 3]
