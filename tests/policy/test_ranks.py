"""Upward ranks: calculated by hand, and compared with longest paths of networkx."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import networkx as nx
import pytest
from hypothesis import given, settings

from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.policy.dag_ordering import unavoidable_delays, upward_ranks
from gridsim.simulation import Run, run
from tests.oracles.strategies import grids

SECOND = 10**6


def platform(ccr: str = "1/5", power: int | None = None) -> Platform:
    """Return a platform with kind A below the root, and kinds A and B below a site."""
    site = RouterSpec("site", (ClusterSpec("a2", 2, "A"), ClusterSpec("b", 4, "B")))
    network = Network(ccr=ccr, delay_levels_power=power)
    return Platform(RouterSpec("root", (ClusterSpec("a1", 8, "A"), site)), network=network)


def ranks(tasks: Tasks, machine: Platform) -> list[int]:
    return [int(rank) // SECOND for rank in upward_ranks(tasks, machine, SECOND)]


# 0 (A) -> 1 (B) -> 3 (A), 0 -> 2 (A) -> 3
DIAMOND = Tasks.from_edges(
    counts=[4],
    runtime=[6, 3, 9, 2],
    cores=[1, 1, 1, 1],
    kind=[0, 1, 0, 0],
    kinds=("A", "B"),
    edges=[(0, 1), (0, 2), (1, 3), (2, 3)],
)


def test_a_rank_counts_the_task_and_the_longest_way_to_the_end_of_the_job() -> None:
    assert ranks(DIAMOND, platform("0")) == [17, 5, 11, 2]


def test_transfers_between_kinds_are_unavoidable_and_rounded_up() -> None:
    # 0 -> 1 takes ceil(1.2) = 2, 1 -> 3 ceil(0.6) = 1; 0 -> 2 and 2 -> 3 none
    assert (unavoidable_delays(DIAMOND, platform(), SECOND) // SECOND).tolist() == [2, 0, 1, 0]
    assert ranks(DIAMOND, platform()) == [17, 6, 11, 2]
    assert ranks(DIAMOND, platform("2")) == [6 + 12 + 3 + 6 + 2, 3 + 6 + 2, 11, 2]


def test_with_levels_the_nearest_clusters_that_are_wide_enough_count() -> None:
    # A and B meet below the site: one level. A task of 5 cores fits only the cluster below the root: two levels.
    narrow = Tasks.from_edges(counts=[2], runtime=[10, 1], cores=[2, 1], kind=[0, 1], kinds=("A", "B"), edges=[(0, 1)])
    wide = Tasks.from_edges(counts=[2], runtime=[10, 1], cores=[5, 1], kind=[0, 1], kinds=("A", "B"), edges=[(0, 1)])
    assert unavoidable_delays(narrow, platform(power=2), SECOND).tolist() == [2 * SECOND]
    assert unavoidable_delays(wide, platform(power=2), SECOND).tolist() == [8 * SECOND]
    assert unavoidable_delays(wide, platform(), SECOND).tolist() == [2 * SECOND]


def test_delays_are_rounded_up_to_whole_ticks() -> None:
    short = Tasks.from_edges(counts=[2], runtime=[0.007, 1], cores=1, kind=[0, 1], kinds=("A", "B"), edges=[(0, 1)])
    assert unavoidable_delays(short, platform(), 1000).tolist() == [2000]
    assert unavoidable_delays(short, platform(), SECOND).tolist() == [SECOND]


def test_ranks_are_made_of_estimates() -> None:
    tasks = Tasks.from_edges(counts=[2], runtime=[1, 1], estimate=[4, 3], cores=1, edges=[(0, 1)])
    assert ranks(tasks, Platform.single(1)) == [7, 3]


@given(grid=grids())
@settings(max_examples=40)
def test_ranks_are_longest_paths(grid: tuple[Workload, Platform]) -> None:
    workload, machine = grid
    tasks = workload.tasks
    assert tasks is not None
    levels = machine.levels()
    able = [
        [
            cluster.name
            for cluster in machine.clusters()
            if cluster.kind == tasks.kinds[tasks.kind[row]] and cluster.cores >= tasks.cores[row]
        ]
        for row in range(len(tasks))
    ]
    graph: nx.DiGraph[object] = nx.DiGraph()
    for row in range(len(tasks)):
        graph.add_edge(row, (row, "done"), time=int(tasks.runtime[row]) // SECOND)
        for successor in tasks.successors(row).tolist():
            height = min(levels[one, other] for one in able[row] for other in able[successor])
            power = machine.network.delay_levels_power
            volume = Fraction(machine.network.ccr) * int(tasks.runtime[row]) / SECOND
            delay = 0 if tasks.kind[row] == tasks.kind[successor] else ceil(volume * (height**power if power else 1))
            graph.add_edge((row, "done"), successor, time=delay)
    for row, rank in enumerate(ranks(tasks, machine)):
        below = graph.subgraph({row, *nx.descendants(graph, row)})
        assert rank == nx.dag_longest_path_length(below, weight="time")


def test_the_critical_path_that_is_reported_is_that_of_the_true_runtimes() -> None:
    tasks = Tasks.from_edges(
        counts=[2], runtime=[4, 2], estimate=[10, 1], cores=1, kind=[0, 1], kinds=("A", "B"), edges=[(0, 1)]
    )
    jobs = Workload.from_tasks(tasks, submit=[0])
    record = run(jobs, platform("1/2"), "fifo-job", Run(overrun="extend"))
    assert record.critical_path is not None
    assert record.rank is not None
    assert (record.critical_path // SECOND).tolist() == [4 + 2 + 2]
    assert (record.rank // SECOND).tolist() == [10 + 5 + 1, 1]
    assert record.response.tolist() == [8]


@pytest.mark.parametrize("overrun", ["kill", "extend"])
def test_no_job_takes_less_than_its_critical_path_whatever_the_estimates(overrun: str) -> None:
    tasks = Tasks.from_edges(counts=[3], runtime=[4, 6, 2], estimate=[2, 9, 1], cores=1, edges=[(0, 1), (1, 2)])
    jobs = Workload.from_tasks(tasks, submit=[0])
    record = run(jobs, Platform.single(1), "fifo-job", Run(overrun=overrun))  # type: ignore[arg-type]
    assert record.critical_path is not None
    assert record.end_us.tolist() == record.critical_path.tolist() == [(9 if overrun == "kill" else 12) * SECOND]
