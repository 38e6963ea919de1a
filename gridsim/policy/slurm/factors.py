"""Slurm's multifactor priority: a weighted sum of factors from 0 to 1, made anew every ``PriorityCalcPeriod``.

Sources: slurm.schedmd.com/priority_multifactor.html (factors) and slurm.conf(5) (weights, ``PriorityFavorSmall``,
``PriorityFlags``, ``PriorityMaxAge``). Checked against what ``sprio`` printed on a real cluster.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gridsim.model.site import Priority
from gridsim.model.time import FloatArray, IntArray

MINUTE = 60_000_000


class Factors(NamedTuple):
    """Factors of requests, each from 0 to 1, their nice values, and the weighted sum of the factors of resources."""

    age: FloatArray
    fair_share: FloatArray
    size: FloatArray
    partition: FloatArray
    qos: FloatArray
    nice: IntArray
    tres: FloatArray


def age_factor(waited: IntArray, priority: Priority) -> FloatArray:
    """Time waited since a request could run, over ``PriorityMaxAge``; whole microseconds."""
    factor: FloatArray = np.clip(waited / max(priority.oldest, 1), 0.0, 1.0)
    return factor


def size_factor(
    cores: IntArray, nodes: IntArray, limit: IntArray, *, all_cores: int, all_nodes: int, priority: Priority
) -> FloatArray:
    """Mean of a request's part of the nodes and of its part of the cores; large ones first unless small are favoured.

    With ``SMALL_RELATIVE_TO_TIME`` cores over minutes of the limit, over all cores. A request that names no number of
    nodes counts as one of one node.

    Examples
    --------
    >>> one = np.array([1])
    >>> size_factor(4 * one, one, one, all_cores=32, all_nodes=8, priority=Priority())
    array([0.125])
    """
    if priority.relative_size:
        factor = cores / np.maximum(limit / MINUTE, 1.0) / all_cores
        factor = np.minimum(factor, 1.0)
    else:
        factor = (np.maximum(nodes, 1) / all_nodes + cores / all_cores) / 2
    result: FloatArray = np.clip(1.0 - factor if priority.favor_small else factor, 0.0, 1.0)
    return result


def weighted_sum(factors: Factors, priority: Priority) -> IntArray:
    """Weighted sums, less nice values, as whole numbers from 1."""
    whole: IntArray = np.floor(_total(factors, priority) + 1e-6).astype(np.int64)
    result: IntArray = np.maximum(whole - factors.nice, 1)
    return result


def weighted_of_one(factors: Any, priority: Priority) -> int:
    """The same of a single request, whose factors are numbers: a tenth of the time.

    Examples
    --------
    >>> weighted_of_one(Factors(0.5, 1.0, 0.0, 0.0, 0.0, 3, 0.0), Priority(age=100, fair_share=7))
    54
    """
    total: float = _total(factors, priority)
    return max(math.floor(total + 1e-6) - int(factors.nice), 1)


def _total(factors: Factors, priority: Priority) -> Any:
    return (
        priority.age * factors.age
        + priority.fair_share * factors.fair_share
        + priority.size * factors.size
        + priority.partition * factors.partition
        + priority.qos * factors.qos
        + factors.tres
    )
