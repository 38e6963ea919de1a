"""Routers: able children, selected children, the split of a piece; the inbox at the root."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from simpy import Environment

from gridsim.entities.clock import BATCHED, PriorityEvent
from gridsim.entities.cluster import Piece
from gridsim.entities.router import Root, Router
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.policy.queue import Requests
from gridsim.simulation import Run, run
from tests.oracles.strategies import grids

SECOND = 10**6


class Leaf:
    """Replacement for a cluster that records its pieces."""

    demands = None  # of nodes and pools
    all_absent = False

    def __init__(self, kind: str, cores: int) -> None:
        self.kind, self.cores, self.placed = kind, cores, list[list[int]]()

    def leaves(self) -> Sequence[Leaf]:
        return (self,)

    def can_run(self, kind: str, cores: int) -> bool:
        return kind == self.kind and cores <= self.cores

    def able(self, piece: Piece) -> bool:
        return all(self.can_run(kind, cores) for kind, cores in piece.widest.items())

    def place(self, piece: Piece) -> None:
        self.placed.append(list(piece.requests))


class First:
    """Selects the first able child and records the number of able children."""

    def __init__(self) -> None:
        self.asked = list[int]()

    def pick(self, piece: Piece, children: Sequence[Any], now: int) -> int:
        self.asked.append(len(children))
        return 0


def router(*children: Any, balancer: Any = None, split: Any = "task") -> Router:
    return Router(Environment(), children, balancer or First(), split=split)


def piece(*rows: tuple[str, int]) -> Piece:
    kinds = tuple(dict.fromkeys(kind for kind, _ in rows))
    tasks = Tasks.from_edges(
        counts=[len(rows)],
        runtime=[1] * len(rows),
        cores=[cores for _, cores in rows],
        kind=[kinds.index(kind) for kind, _ in rows],
        kinds=kinds,
        edges=[],
    )
    requests = Requests(Workload.from_tasks(tasks, submit=[0]))
    return Piece(range(len(rows)), requests, lambda rows, cluster: 0)


def test_a_piece_goes_whole_to_a_child_that_holds_all_of_it() -> None:
    narrow, wide, other = Leaf("A", 2), Leaf("A", 8), Leaf("B", 8)
    router(narrow, wide, other).place(piece(("A", 4), ("A", 1)))
    assert (narrow.placed, wide.placed, other.placed) == ([], [[0, 1]], [])


def test_the_balancer_is_queried_only_where_several_children_are_able() -> None:
    first, leaves = First(), [Leaf("A", 2), Leaf("A", 8), Leaf("A", 8)]
    one = router(*leaves, balancer=first)
    one.place(piece(("A", 4)))
    one.place(piece(("A", 1)))
    assert first.asked == [2, 3]
    router(Leaf("A", 2), Leaf("A", 8), balancer=first).place(piece(("A", 4)))
    assert first.asked == [2, 3]


def test_a_router_is_able_where_for_every_task_some_cluster_below_is() -> None:
    below = router(Leaf("A", 2), Leaf("B", 8))
    assert below.able(piece(("A", 2), ("B", 8)))
    assert not below.able(piece(("A", 4)))  # the widest cluster is of another kind
    assert not below.able(piece(("C", 1)))


def test_a_piece_that_none_can_hold_is_split_task_by_task() -> None:
    a, b = Leaf("A", 4), Leaf("B", 4)
    router(a, b).place(piece(("A", 1), ("B", 2), ("A", 3)))
    assert (a.placed, b.placed) == ([[0], [2]], [[1]])


def test_or_kind_by_kind_staying_together_where_a_cluster_holds_them_all() -> None:
    a, b = Leaf("A", 4), Leaf("B", 4)
    router(a, b, split="kind-group").place(piece(("B", 1), ("A", 2), ("B", 3)))
    assert (a.placed, b.placed) == ([[1]], [[0, 2]])


def test_a_group_that_fits_no_child_whole_is_split_task_by_task() -> None:
    class Last:
        def pick(self, piece: Piece, children: Sequence[Any], now: int) -> int:
            return len(children) - 1

    low, high, other = Leaf("A", 2), Leaf("A", 4), Leaf("B", 1)
    below = router(low, high, balancer=Last(), split="kind-group")
    router(below, other, split="kind-group").place(piece(("A", 4), ("A", 1), ("B", 1)))
    assert (low.placed, high.placed, other.placed) == ([], [[0, 1]], [[2]])


def test_a_subtree_that_holds_a_mixed_piece_gets_it_whole_and_splits_it_below() -> None:
    a, b, alone = Leaf("A", 4), Leaf("B", 4), Leaf("A", 9)
    router(alone, router(a, b)).place(piece(("A", 1), ("B", 1)))
    assert (alone.placed, a.placed, b.placed) == ([], [[0]], [[1]])


def test_the_root_admits_in_job_order_and_closes_the_clusters_when_all_are_in() -> None:
    env, log = Environment(), list[Any]()

    class Closing:
        dirty = True

        def close(self) -> None:
            log.append("close")

    root = Root(env, [Closing()], log.append)  # type: ignore[list-item]
    arrival = PriorityEvent(env, 5, BATCHED.arrival)
    root.expect(arrival)
    root.inbox.extend([3, 1, 2])
    env.run()
    assert log == [3, 1, 2, "close"]
    assert not root.inbox


def test_every_routing_sees_the_ones_before_it_in_the_same_instant() -> None:
    platform = Platform(RouterSpec("root", (ClusterSpec("a", 1), ClusterSpec("b", 1))))
    workload = Workload.from_columns(submit=[0, 0, 0], runtime=[9, 2, 5], cores=1)
    record = run(workload, platform, "fcfs")
    assert record.cluster.tolist() == [0, 1, 1]
    assert record.start.tolist() == [0, 0, 2]


def test_a_job_that_ends_in_an_instant_is_no_load_for_the_arrivals_of_that_instant() -> None:
    platform = Platform(RouterSpec("root", (ClusterSpec("a", 1), ClusterSpec("b", 1))))
    workload = Workload.from_columns(submit=[0, 0, 5], runtime=[5, 9, 1], cores=1)
    assert run(workload, platform, "fcfs").cluster.tolist() == [0, 1, 0]


@pytest.mark.parametrize("split", ["task", "kind-group"])
@given(grid=grids())
def test_every_task_is_placed_where_it_can_run(split: Any, grid: tuple[Workload, Platform]) -> None:
    workload, platform = grid
    tasks, record = workload.tasks, run(workload, platform, "fifo-job", Run(split=split))
    assert tasks is not None
    assert record.tasks is not None
    clusters = list(platform.clusters())
    for row, index in enumerate(record.tasks.cluster.tolist()):
        assert clusters[index].kind == tasks.kinds[tasks.kind[row]]
        assert clusters[index].cores >= tasks.cores[row]
