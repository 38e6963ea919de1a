"""DAG jobs: a task is offered when its predecessors are done and its data have arrived."""

from __future__ import annotations

from typing import Any

import pytest

from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.record import TaskRecord
from gridsim.simulation import Run, run

SECOND = 10**6


def two_kinds(**network: Any) -> Platform:
    return Platform(
        RouterSpec("root", (ClusterSpec("a", 4, "A"), ClusterSpec("b", 4, "B"))), network=Network(**network)
    )


def times(tasks: Tasks, platform: Platform, policy: str = "fifo-job", submit: Any = (0,), **options: Any) -> TaskRecord:
    record = run(Workload.from_tasks(tasks, submit=list(submit)), platform, policy, Run(**options))
    assert record.tasks is not None
    return record.tasks


def ready(tasks: Tasks, platform: Platform, **options: Any) -> list[int]:
    return list(times(tasks, platform, **options).ready_us // SECOND)


# 0 (A, 4) and 1 (A, 10) -> 2 (B)
JOIN = Tasks.from_edges(
    counts=[3], runtime=[4, 10, 1], cores=1, kind=[0, 0, 1], kinds=("A", "B"), edges=[(0, 2), (1, 2)]
)


def test_a_task_is_ready_when_the_last_of_its_data_has_come() -> None:
    assert ready(JOIN, two_kinds()) == [0, 0, 10]
    assert ready(JOIN, two_kinds(ccr="1/5")) == [0, 0, 12]
    assert ready(JOIN, two_kinds(ccr="3")) == [0, 0, 40]


def test_transfers_start_at_each_end_or_all_together_at_the_last_one() -> None:
    late = Tasks.from_edges(
        counts=[3], runtime=[10, 11, 1], cores=1, kind=[0, 1, 1], kinds=("A", "B"), edges=[(0, 2), (1, 2)]
    )
    # the data of 0 need 5; 1 runs where its successor does
    assert ready(late, two_kinds(ccr="1/2"))[2] == 15
    assert ready(late, two_kinds(ccr="1/2", transfer_start="all"))[2] == 16


@pytest.mark.parametrize("start", ["each", "all"])
def test_data_for_the_same_cluster_are_there_at_once(start: str) -> None:
    chain = Tasks.from_edges(counts=[3], runtime=[3, 2, 1], cores=1, edges=[(0, 1), (1, 2)])
    assert ready(chain, Platform(Platform.single(1).root, network=Network(ccr="9", transfer_start=start))) == [0, 3, 5]  # type: ignore[arg-type]


def test_a_job_continues_while_parts_of_it_wait() -> None:
    # 0 -> 1 -> 3 and 0 -> 2 on two cores, of which another job holds one until 20
    tasks = Tasks.from_edges(counts=[1, 4], runtime=[20, 2, 3, 4, 1], cores=1, edges=[(1, 2), (1, 3), (2, 4)])
    found = times(tasks, Platform.single(2), submit=(0, 0))
    assert (found.ready_us // SECOND).tolist() == [0, 0, 2, 2, 5]
    assert (found.start_us // SECOND).tolist() == [0, 0, 2, 5, 9]


def test_ends_and_data_of_an_instant_come_before_its_one_decision() -> None:
    # 0 and 1 end at 5; their successors 2 (short) and 3 (long) are ready in one decision, as is the newly arrived job.
    tasks = Tasks.from_edges(counts=[4, 1], runtime=[5, 5, 1, 9, 4], cores=[1, 1, 2, 2, 2], edges=[(0, 2), (1, 3)])
    found = times(tasks, Platform.single(2), "lrtf", submit=(0, 5))
    assert (found.start_us // SECOND).tolist() == [0, 0, 18, 5, 14]


def test_independent_tasks_are_a_job_without_edges() -> None:
    tasks = Tasks.from_edges(counts=[3], runtime=[3, 2, 1], cores=2, edges=[])
    record = run(Workload.from_tasks(tasks, submit=[7]), Platform.single(4), "fifo-job")
    assert (record.start.tolist(), record.end.tolist()) == ([7], [10])


def test_a_repeated_edge_is_one_edge() -> None:
    tasks = Tasks.from_edges(counts=[2], runtime=[3, 2], cores=1, edges=[(0, 1), (0, 1)])
    assert ready(tasks, Platform.single(1)) == [0, 3]


def test_a_task_that_is_killed_at_its_estimate_lets_its_job_continue_and_is_reported() -> None:
    tasks = Tasks.from_edges(counts=[2], runtime=[9, 2], estimate=[4, 2], cores=1, edges=[(0, 1)])
    killed = times(tasks, Platform.single(1))
    assert (killed.end_us // SECOND).tolist() == [4, 6]
    assert killed.status.tolist() == [1, 0]
    extended = times(tasks, Platform.single(1), overrun="extend")
    assert (extended.end_us // SECOND).tolist() == [9, 11]


def test_data_are_as_much_as_the_files_of_the_workload_say() -> None:
    tasks = Tasks.from_edges(
        counts=[3],
        runtime=[4, 1, 1],
        cores=1,
        kind=[0, 1, 1],
        kinds=("A", "B"),
        edges=[(0, 1), (0, 2)],
        volume=[2500.0, 0.0],
    )
    # An empty file needs a slot, but no time.
    for kind, empty in (("ccr", 4), ("shared", 4), ("fifo", 7)):
        assert ready(tasks, two_kinds(kind=kind, transfer="files", bandwidth=1000.0)) == [0, 7, empty]


def test_decisions_after_every_event_know_of_lives_too() -> None:
    found = times(JOIN, two_kinds(ccr="1/5"), instant="per-event")
    assert (found.start_us // SECOND).tolist() == [0, 0, 12]
