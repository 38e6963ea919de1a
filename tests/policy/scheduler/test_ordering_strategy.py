"""Ordering strategies: each way to evaluate an ordering gives the order of its ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from gridsim.errors import PolicyError
from gridsim.model.platform import Platform
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.policy.dag_ordering import FifoTask, ProjectedSlr, ShortestRemaining
from gridsim.policy.queue import Queue
from gridsim.policy.reservation import Easy, FirstFit, Strict
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.simulation import run
from tests.oracles.strategies import grids, workloads

RULES = [Strict(), FirstFit(), Easy()]


def starts(workload: Workload, platform: Platform, ordering: Any, rule: Any) -> list[int]:
    record = run(workload, platform, Backfilling(ordering=ordering, reserve=rule))
    return list(record.start_us if record.tasks is None else record.tasks.start_us)


@pytest.mark.long
@dataclass
class Asked:
    """Shortest remaining first, evaluated as often as *changes* defines."""

    changes: str

    def rank(self, queue: Queue, now: float) -> Any:
        return queue.rank


@dataclass
class Picked:
    """The same ordering, with requests selected one by one."""

    changes: str = "pass"

    def reset(self) -> None: ...

    def pick(self, queue: Queue, now: float) -> int:
        return int(np.argmin(queue.rank))

    def rank(self, queue: Queue, now: float) -> Any:
        return queue.rank


@dataclass
class Lines:
    """The same ordering as linear priorities whose order is constant."""

    changes: str = "linear"

    def lines(self, queue: Queue, tick: int) -> tuple[Any, Any]:
        return 10**9 - queue.requests.rank[queue.rows], np.ones(len(queue), dtype=np.int64)

    def rank(self, queue: Queue, now: float) -> Any:
        return queue.rank


@pytest.mark.parametrize("rule", RULES)
@given(grid=grids(largest=8))
@settings(max_examples=20)
def test_every_way_of_asking_gives_the_same_schedule(rule: Any, grid: tuple[Workload, Platform]) -> None:
    expected = starts(*grid, ShortestRemaining(), rule)
    for other in (Asked("static"), Asked("pass"), Asked("start"), Picked(), Lines()):
        assert starts(*grid, other, rule) == expected, other


@dataclass
class Ready:
    """By ready time, evaluated in each scheduling cycle."""

    def rank(self, queue: Queue, now: float) -> Any:
        return queue.ready


@pytest.mark.parametrize("rule", RULES)
@given(grid=grids(largest=8))
@settings(max_examples=20)
def test_ready_times_are_known_when_a_request_joins(rule: Any, grid: tuple[Workload, Platform]) -> None:
    assert starts(*grid, FifoTask(), rule) == starts(*grid, Ready(), rule)


@dataclass
class Projected:
    """P-SLR in floats, evaluated after each start; exact for small integers except for ties."""

    changes: str = "start"

    def rank(self, queue: Queue, now: float) -> Any:
        requests, rows = queue.requests, queue.rows
        return -(round(now * 1e6) + requests.rank[rows] + 10**6 - requests.submit[rows]) / requests.critical_path[rows]


@pytest.mark.parametrize("rule", RULES)
@given(grid=grids(largest=10))
@settings(max_examples=20)
def test_p_slr_along_lines_is_that_of_its_formula(rule: Any, grid: tuple[Workload, Platform]) -> None:
    assert starts(*grid, ProjectedSlr(), rule) == starts(*grid, Projected(), rule)


@pytest.mark.long
@given(workload=workloads(cores=8, estimates="exact"))
@settings(max_examples=20)
def test_rigid_jobs_are_dags_of_one_task(workload: Workload) -> None:
    tasks = Tasks.from_edges(counts=[1] * len(workload), runtime=workload.runtime / 1e6, cores=workload.cores, edges=[])
    graphs = Workload.from_tasks(tasks, submit=workload.submit / 1e6)
    for policy in ("fcfs", "easy", "first-fit", "p-slr", "srtf", "fifo-task", "conservative"):
        machine = Platform.single(8)
        assert run(workload, machine, policy).start_us.tolist() == run(graphs, machine, policy).start_us.tolist()


@pytest.mark.parametrize("policy", ["fcfs", "p-slr", "easy?ordering=p-slr", "fifo-task", "random", "p-slr-sf"])
def test_no_requests_are_no_trouble(policy: str) -> None:
    nothing = Workload.from_columns(submit=[], runtime=[], cores=[])
    assert len(run(nothing, Platform.single(4), policy)) == 0


def test_a_pick_beyond_the_queue_is_refused() -> None:
    class Beyond:
        def reset(self) -> None: ...

        def pick(self, queue: Queue, now: float) -> int:
            return len(queue)

    jobs = Workload.from_columns(submit=[0], runtime=[1], cores=[1])
    with pytest.raises(PolicyError, match="picked number 1 of 1 requests"):
        run(jobs, Platform.single(1), Beyond())
