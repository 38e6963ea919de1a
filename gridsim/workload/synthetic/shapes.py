"""Shapes of DAG jobs: independent tasks, Erdős-Rényi graphs, blocks of parallel chains between a fork and a join."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.model.time import IntArray

__all__ = ["BlockRanges", "DagShapes", "blocks", "erdos_renyi", "single"]


class DagShapes(NamedTuple):
    """Graphs of all jobs: tasks of each job, and edges between rows of tasks, all from a lower to a higher row."""

    counts: IntArray
    edge_first: IntArray
    edge_to: IntArray


class BlockRanges(NamedTuple):
    """Ranges, inclusive, from which a job of blocks is drawn: how many, how many chains in each, how long they are."""

    blocks: tuple[int, int]
    width: tuple[int, int]
    length: tuple[int, int]
    ends: int = 0
    """How many of the fork and the join the length counts."""

    @property
    def most_tasks(self) -> int:
        """Tasks of the largest job."""
        return self.blocks[1] * (self.width[1] * (self.length[1] - self.ends) + 2)


def single(jobs: int) -> DagShapes:
    """One task a job."""
    return DagShapes(np.ones(jobs, dtype=np.int64), np.zeros(jobs + 1, dtype=np.int64), np.empty(0, dtype=np.int64))


def erdos_renyi(jobs: int, most: int, probability: float, rng: np.random.Generator) -> DagShapes:
    """Jobs of 1 to *most* tasks, uniformly; each pair of tasks is an edge, from the lower index, with *probability*."""
    counts = rng.integers(1, most + 1, jobs)
    one, other = np.triu_indices(most, 1)
    taken = rng.random((jobs, len(one))) < probability
    job, pair = np.nonzero(taken & (other < counts[:, None]))
    first = np.cumsum(counts) - counts
    return _shapes(counts, first[job] + one[pair], first[job] + other[pair])


def blocks(jobs: int, block: BlockRanges, rng: np.random.Generator) -> DagShapes:
    """Jobs of blocks one after the other; each block, with its own width and length, is a fork, chains and a join.

    Tasks of a block are in the order fork, first chain from its beginning, second chain, …, join.
    """
    number = rng.integers(block.blocks[0], block.blocks[1] + 1, jobs)
    total = int(number.sum())
    width = rng.integers(block.width[0], block.width[1] + 1, total)
    length = rng.integers(block.length[0], block.length[1] + 1, total) - block.ends
    size = width * length + 2
    fork = np.cumsum(size) - size
    join = fork + size - 1
    last_block = np.cumsum(number) - 1
    counts = np.add.reduceat(size, last_block + 1 - number)

    leaving = np.ones(int(size.sum()), dtype=np.int64)
    leaving[fork] = width
    leaving[join[last_block]] = 0
    edge_first = np.concatenate([[0], np.cumsum(leaving)])
    edge_to = np.repeat(np.arange(1, len(leaving) + 1), leaving)  # the next task of a chain, or fork
    chain = np.arange(int(width.sum())) - np.repeat(np.cumsum(width) - width, width)
    begin = np.repeat(fork, width) + 1 + chain * np.repeat(length, width)
    edge_to[np.repeat(edge_first[fork], width) + chain] = begin
    edge_to[edge_first[begin + np.repeat(length, width) - 1]] = np.repeat(join, width)
    return DagShapes(counts, edge_first, edge_to)


def _shapes(counts: IntArray, one: IntArray, other: IntArray) -> DagShapes:
    """Shapes from edges sorted by their first task, then by their second."""
    leaving = np.bincount(one, minlength=int(counts.sum()))
    return DagShapes(counts, np.concatenate([[0], np.cumsum(leaving)]).astype(np.int64), other)
