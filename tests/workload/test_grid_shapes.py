"""Shapes of DAG jobs: published ranges, and graphs with the properties of their names."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from gridsim.model.tasks import Tasks
from gridsim.workload.synthetic.grid import BlockRanges, DagShapes, blocks, erdos_renyi, single


def rng(seed=1):
    return np.random.default_rng(seed)


def edges(shapes: DagShapes) -> np.ndarray:
    one = np.repeat(np.arange(len(shapes.edge_first) - 1), np.diff(shapes.edge_first))
    return np.stack([one, shapes.edge_to], axis=1)


def as_tasks(shapes: DagShapes) -> Tasks:
    count = int(shapes.counts.sum())
    return Tasks.from_edges(counts=shapes.counts, runtime=np.ones(count), cores=1, edges=edges(shapes))


CHAIN = BlockRanges(blocks=(1, 3), width=(1, 5), length=(3, 15))


@pytest.mark.parametrize("shapes", [single(50), erdos_renyi(200, 20, 0.3, rng()), blocks(100, CHAIN, rng())])
def test_shapes_are_what_the_checked_constructor_makes_of_their_edges(shapes):
    checked = as_tasks(shapes)
    assert checked.edge_first.tolist() == shapes.edge_first.tolist()
    assert checked.edge_to.tolist() == shapes.edge_to.tolist()


def test_a_block_is_chains_between_a_fork_and_a_join():
    shapes = blocks(1, BlockRanges((1, 1), (2, 2), (3, 3)), rng())
    assert edges(shapes).tolist() == [[0, 1], [0, 4], [1, 2], [2, 3], [3, 7], [4, 5], [5, 6], [6, 7]]


def test_a_join_precedes_the_next_fork():
    shapes = blocks(1, BlockRanges((2, 2), (1, 1), (1, 1)), rng())
    assert edges(shapes).tolist() == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]


def test_a_length_that_counts_fork_and_join_makes_chains_shorter_by_two():
    shapes = blocks(1, BlockRanges((1, 1), (1, 1), (3, 3), ends=2), rng())
    assert edges(shapes).tolist() == [[0, 1], [1, 2]]


def test_block_jobs_have_one_beginning_and_one_end_and_widths_within_the_range():
    tasks = as_tasks(blocks(60, CHAIN, rng(2)))
    for job in range(tasks.jobs):
        graph = tasks.graph(job)
        assert nx.is_weakly_connected(graph)
        assert [node for node, degree in graph.in_degree() if not degree] == [0]
        assert [node for node, degree in graph.out_degree() if not degree] == [len(graph) - 1]
        assert max(degree for _, degree in graph.out_degree()) <= 5
        levels = nx.dag_longest_path_length(graph) + 1
        assert 5 <= levels <= 3 * 17
        assert len(graph) <= CHAIN.most_tasks == 231


def test_block_counts_widths_and_lengths_are_uniform():
    fan = blocks(20_000, BlockRanges((1, 1), (1, 10), (3, 15)), rng(3))
    assert fan.counts.mean() == pytest.approx(51.5, rel=0.02)
    assert fan.counts.min() == 5
    assert fan.counts.max() == 152
    chain = blocks(20_000, CHAIN, rng(4))
    assert chain.counts.mean() == pytest.approx(58.0, rel=0.02)
    assert len(chain.edge_to) / 20_000 == pytest.approx(61.0, rel=0.02)


def test_each_pair_is_an_edge_with_the_probability():
    shapes = erdos_renyi(5_000, 20, 0.3, rng(5))
    pairs = int((shapes.counts * (shapes.counts - 1) // 2).sum())
    assert np.bincount(shapes.counts)[1:] == pytest.approx(np.full(20, 250), abs=80)
    assert len(shapes.edge_to) / pairs == pytest.approx(0.3, abs=0.005)
    assert (edges(shapes)[:, 0] < edges(shapes)[:, 1]).all()


@pytest.mark.parametrize("shapes", [erdos_renyi(300, 20, 0.3, rng(6)), blocks(300, CHAIN, rng(6))])
def test_longest_chains_are_the_same_by_level_by_task_and_by_networkx(shapes):
    tasks = as_tasks(shapes)
    generator = rng(7)
    times, transfers = generator.integers(1, 99, len(tasks)), generator.integers(0, 99, len(tasks.edge_to))
    by_level = tasks._chains_by_level(times, transfers, len(tasks))
    assert by_level is not None
    assert (
        by_level.tolist() == tasks._chains_by_task(times, transfers).tolist() == tasks.chains(times, transfers).tolist()
    )
    for job in range(3):
        begin, end = tasks.first[job : job + 2]
        graph = nx.DiGraph()
        for row in range(begin, end):
            for edge in range(tasks.edge_first[row], tasks.edge_first[row + 1]):
                graph.add_edge(row, int(tasks.edge_to[edge]), weight=int(times[row] + transfers[edge]))
            graph.add_edge(row, "end", weight=int(times[row]))
        assert nx.dag_longest_path_length(graph) == by_level[begin:end].max()


def test_a_chain_that_is_too_deep_for_levels_is_taken_task_by_task():
    count = 1_000
    deep = Tasks.from_edges(
        counts=[count], runtime=np.ones(count), cores=1, edges=[(row, row + 1) for row in range(count - 1)]
    )
    assert deep._chains_by_level(deep.runtime, np.zeros(count - 1, dtype=np.int64), 5) is None
    assert deep.chains(np.ones(count, dtype=np.int64)).tolist() == list(range(count, 0, -1))
