"""Typical tasks of a workload: what fragmentation is measured against (specification of machines, 3.6)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from gridsim.model.capacity import WHOLE_GPU
from gridsim.model.demand import ANY, Demands
from gridsim.model.time import IntArray

__all__ = ["POPULARITY", "TypicalTasks", "typical_tasks"]

POPULARITY = 0.95
"""Part of all tasks that the typical ones are together at least (Weng et al., USENIX ATC 2023)."""


class TypicalTasks(NamedTuple):
    """The most frequent tasks of a workload, those of which there are most first.

    Attributes
    ----------
    resources : tuple of str
        Names of the columns of *each*.
    each : (m, r) int64
        Amounts of resources of a node.
    gpu : (m,) int64
        Thousandths of GPU.
    gpu_kinds : tuple of tuple of str
        Kinds that are accepted; empty for any.
    counts : (m,) int64
        How many tasks there are of each.
    """

    resources: tuple[str, ...]
    each: IntArray
    gpu: IntArray
    gpu_kinds: tuple[tuple[str, ...], ...]
    counts: IntArray


def typical_tasks(
    demands: Demands, resources: Sequence[str] | None = None, popularity: float = POPULARITY
) -> TypicalTasks:
    """The fewest distinct tasks that make up a part of all tasks of jobs on nodes.

    Parameters
    ----------
    demands : Demands
        Of all jobs; plain cores are tasks of one core.
    resources : sequence of str, optional
        Resources by which tasks are told apart; all but ``memory`` where left out.
    popularity : float
        The part.

    Returns
    -------
    TypicalTasks
        By number of tasks downwards; ties by the larger amounts, in alphabetical order of their names, then GPUs.

    Examples
    --------
    >>> from gridsim.model.demand import Demand
    >>> jobs = [Demand(tasks=1, each={"cores": 4}, gpu=500), Demand(cores=3)]
    >>> found = typical_tasks(Demands.of(jobs))
    >>> found.each.tolist(), found.gpu.tolist(), found.counts.tolist()
    ([[1], [4]], [0, 500], [3, 1])
    """
    kept = {*demands.each, *(("cores",) if (demands.plain > 0).any() else ())}
    names = tuple(sorted(kept - {"memory"} if resources is None else set(resources)))
    none = np.zeros(len(demands), dtype=np.int64)
    plain = demands.plain > 0
    tasks = np.where(plain, demands.plain, demands.tasks)
    amounts = [np.where(plain & (name == "cores"), 1, demands.each.get(name, none)) for name in names]
    kinds = np.where(demands.gpu > 0, demands.gpu_kinds.of, demands.gpu_kinds.sets.index(ANY))
    columns = np.stack([*amounts, np.minimum(demands.gpu, WHOLE_GPU), demands.gpu, kinds, tasks], axis=1)[tasks > 0]
    shapes, same = np.unique(columns[:, :-1], axis=0, return_inverse=True)
    count = np.zeros(len(shapes), dtype=np.int64)
    np.add.at(count, same.reshape(-1), columns[:, -1])
    words = [demands.gpu_kinds.sets[place] for place in shapes[:, -1].tolist()]
    order = sorted(
        range(len(shapes)), key=lambda row: (count[row], shapes[row, :-1].tolist(), words[row]), reverse=True
    )
    part = Fraction(str(popularity))
    enough = np.cumsum(count[order]) * part.denominator >= count.sum() * part.numerator
    chosen = order[: int(np.argmax(enough)) + 1] if len(order) else []
    return TypicalTasks(
        names, shapes[chosen, : len(names)], shapes[chosen, -2], tuple(words[row] for row in chosen), count[chosen]
    )
