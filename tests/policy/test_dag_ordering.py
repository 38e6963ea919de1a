"""Orderings of tasks of DAG jobs: keys calculated by hand, and the order of starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gridsim import registry
from gridsim.model.platform import Platform
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.policy.dag_ordering import upward_ranks
from gridsim.policy.queue import Queue, Requests
from gridsim.simulation import Run, run

SECOND = 10**6

# Job 1: 4 -> 3 (critical path 7); job 2, submitted at 2: one task of 5.
TASKS = Tasks.from_edges(counts=[2, 1], runtime=[4, 3, 5], cores=1, edges=[(0, 1)])
JOBS = Workload.from_tasks(TASKS, submit=[0, 2])


def queue(workload: Workload = JOBS, rows: list[int] | None = None, tick: float = 1.0) -> Queue:
    assert workload.tasks is not None
    ranks = upward_ranks(workload.tasks, Platform.single(99), round(tick * SECOND))
    requests = Requests(workload, rank=ranks)
    requests.ready[:] = [0, 4 * SECOND, 2 * SECOND][: len(requests)]
    return Queue(requests, np.arange(len(requests)) if rows is None else np.array(rows), {"tick": tick})


def ranked(name: str, now: float, **words: Any) -> list[float]:
    return list(registry.make("ordering", name).rank(queue(**words), now))


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [
        ("fifo-task", [0, 4, 2]),
        ("lrtf", [-7, -3, -5]),
        ("srtf", [7, 3, 5]),
        ("lrtf?rank_of=exclusive", [-3, 0, 0]),
        ("srtf?rank_of=exclusive", [3, 0, 0]),
        ("p-slr", [-(10 + 7 + 1) / 7, -(10 + 3 + 1) / 7, -(8 + 5 + 1) / 5]),
        ("p-slr?lateness=0", [-17 / 7, -13 / 7, -13 / 5]),
        # waits of 10 and 8 over the longest critical path, 7: each is first once
        ("p-slr-sf", [-(18 / 7 + 1), -(14 / 7 + 1), -(14 / 5 + 1)]),
    ],
)
def test_the_formula_is_the_one_of_its_name(name: str, by_hand: list[float]) -> None:
    assert ranked(name, 10.0) == pytest.approx(by_hand, rel=1e-15)


@pytest.mark.parametrize(
    ("alias", "name"),
    [("lrtf", "longest-remaining"), ("srtf", "shortest-remaining"), ("projected-slr", "p-slr")],
)
def test_an_ordering_is_found_by_its_other_names(alias: str, name: str) -> None:
    assert registry.find("ordering", alias) is registry.find("ordering", name)


def test_lines_of_p_slr_are_whole_microseconds() -> None:
    ahead, slope = registry.make("ordering", "p-slr").lines(queue(), SECOND)
    assert (ahead / SECOND).tolist() == [8, 4, 4]
    assert (slope / SECOND).tolist() == [7, 7, 5]


def test_lateness_is_counted_in_ticks() -> None:
    ahead, _ = registry.make("ordering", "p-slr?lateness=3").lines(queue(), 1000)
    assert ahead[0] == 7 * SECOND + 3000
    for name in ("p-slr", "p-slr-sf"):
        assert ranked(name, 0.0, rows=[0], tick=0.001)[0] == pytest.approx(-7.001 / 7, rel=1e-15)


def test_equal_exclusive_ranks_stay_equal_in_parts_of_a_second() -> None:
    tasks = Tasks.from_edges(counts=[2, 2], runtime=[0.1, 0.2, 0.7, 0.2], cores=1, edges=[(0, 1), (2, 3)])
    jobs = Workload.from_tasks(tasks, submit=[0, 0])
    ranks = registry.make("ordering", "srtf?rank_of=exclusive").rank(
        Queue(Requests(jobs, rank=upward_ranks(tasks, Platform.single(1), SECOND)), np.arange(4)), 0.0
    )
    assert ranks[0] == ranks[2] == 0.2


def test_a_turn_comes_at_its_instant_in_parts_of_a_second() -> None:
    tasks = Tasks.from_edges(counts=[1], runtime=[0.1], cores=1, edges=[])
    jobs = Workload.from_tasks(tasks, submit=[0.1])
    one = Queue(Requests(jobs, rank=tasks.runtime), np.arange(1))
    ordering = registry.make("ordering", "p-slr-sf")
    # a wait of 0.6 s equals six critical paths of 0.1 s, although (0.7 - 0.1) / 0.1 is less in floats
    assert ordering.rank(one, 0.7)[0] == pytest.approx(-((0.6 + 0.1 + 1) / 0.1 + 6**2), rel=1e-12)
    assert ordering.rank(one, 0.699999)[0] == pytest.approx(-((0.599999 + 0.1 + 1) / 0.1 + 5**2), rel=1e-12)


# -- order of starts: another job holds the only core until 10 ---------------------------------------------------------

HELD = Tasks.from_edges(counts=[1, 2, 1, 1], runtime=[10, 4, 3, 5, 2], cores=1, edges=[(1, 2)])
HELD_JOBS = Workload.from_tasks(HELD, submit=[0, 1, 2, 3])


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("fifo-job", [0, 1, 2, 3, 4]),
        ("fifo-task", [0, 1, 3, 4, 2]),
        ("lrtf", [0, 1, 3, 2, 4]),
        ("srtf", [0, 4, 3, 1, 2]),
        ("p-slr", [0, 4, 3, 1, 2]),
        ("p-slr-sf", [0, 4, 3, 1, 2]),
    ],
)
def test_tasks_start_in_the_order_of_the_policy(policy: str, order: list[int]) -> None:
    times = run(HELD_JOBS, Platform.single(1), policy).tasks
    assert times is not None
    assert np.argsort(times.start_us).tolist() == order


def test_orderings_see_estimates_and_never_true_runtimes() -> None:
    tasks = Tasks.from_edges(counts=[1, 1, 1], runtime=[5, 1, 9], estimate=[5, 8, 2], cores=1, edges=[])
    jobs = Workload.from_tasks(tasks, submit=[0, 1, 1])
    times = run(jobs, Platform.single(1), "srtf", Run(overrun="extend")).tasks
    assert times is not None
    assert (times.start_us // SECOND).tolist() == [0, 14, 5]


def test_p_slr_lets_the_shorter_of_two_jobs_that_arrive_together_go_first() -> None:
    jobs = Workload.from_tasks(Tasks.from_edges(counts=[1, 1], runtime=[9, 3], cores=1, edges=[]), submit=[0, 0])
    assert run(jobs, Platform.single(1), "p-slr").start.tolist() == [3, 0]
    assert run(jobs, Platform.single(1), "p-slr?lateness=0").start.tolist() == [0, 9]
