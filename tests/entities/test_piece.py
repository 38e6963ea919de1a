"""Pieces of jobs: the interface for routers and balancers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gridsim.entities.piece import Piece
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.policy.queue import Requests

TASKS = Tasks.from_edges(
    counts=[4], runtime=[2, 3, 4, 5], cores=[1, 6, 2, 3], kind=[1, 0, 1, 0], kinds=("A", "B"), edges=[]
)
REQUESTS = Requests(Workload.from_tasks(TASKS, submit=[0]))


def delay(rows: Sequence[int], cluster: Any) -> int:
    return sum(rows) * int(cluster)


def piece(rows: Sequence[int] = range(4)) -> Piece:
    return Piece(rows, REQUESTS, delay)


def test_kinds_arrive_in_order_of_first_appearance_with_their_widest_task() -> None:
    assert piece().kinds == ("B", "A")
    assert piece().widest == {"B": 2, "A": 6}


def test_work_is_cores_times_estimates() -> None:
    assert piece().work == (2 * 1 + 3 * 6 + 4 * 2 + 5 * 3) * 10**6


def test_a_piece_is_divided_by_kind_and_by_task() -> None:
    assert list(piece().of_kind("A").requests) == [1, 3]
    assert piece().of_kind("A").widest == {"A": 6}
    assert list(piece().alone(2).requests) == [2]


def test_delays_are_those_of_its_tasks() -> None:
    assert piece().delay_to(2) == 12
    assert piece().of_kind("B").delay_to(2) == 4


def test_a_rigid_job_is_a_piece_of_one_task_of_any_kind() -> None:
    rigid = Requests(Workload.from_columns(submit=[0, 0], runtime=[1, 2], cores=[3, 4]))
    assert Piece((1,), rigid, delay).widest == {"any": 4}
