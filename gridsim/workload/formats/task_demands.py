"""Conversion of the logged totals and limits of a whole job to demands per task, for all readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.capacity import WHOLE_GPU
from gridsim.model.demand import NO_LIMIT, Demands, WordSets
from gridsim.model.time import IntArray

GPU_TYPES = "gpu_types"
"""Logged column, and its names: types of the GPUs that each job used, separated by bars."""


def demands_of(
    *,
    cores: IntArray,
    memory: IntArray | None = None,
    gpus: IntArray | None = None,
    others: Mapping[str, IntArray] | None = None,
    pools: Mapping[str, IntArray] | None = None,
    unit: IntArray | None = None,
    tasks: IntArray | None = None,
    nodes: IntArray | None = None,
    most_nodes: IntArray | None = None,
    cores_per_node: IntArray | None = None,
    exclusive: npt.NDArray[np.bool_] | None = None,
    gpu_kinds: Sequence[Sequence[str]] | None = None,
    features: Sequence[Sequence[str]] | None = None,
) -> Demands:
    """Return the demands of jobs with known totals; numbers below 1 are unknown.

    Parameters
    ----------
    cores : (n,) int64
        Cores of the whole job.
    memory : (n,) int64, optional
        Memory of the whole job, MiB.
    gpus : (n,) int64, optional
        Whole GPUs of the job.
    others : mapping of str to (n,) int64, optional
        Totals of other node resources.
    pools : mapping of str to (n,) int64, optional
        Totals of pool resources.
    unit : (n,) int64, optional
        Cores per task, all on one node; 1 where it does not divide the cores.
    tasks : (n,) int64, optional
        Number of tasks, used where it is known and divides the cores.
    nodes, most_nodes : (n,) int64, optional
        Minimum and maximum number of nodes; without a maximum, the minimum is the exact number.
    cores_per_node : (n,) int64, optional
        Largest number of cores on one node.
    exclusive : (n,) bool, optional
        Whether the job uses its nodes exclusively.
    gpu_kinds, features : sequence of sequence of str, optional
        GPU types and features that nodes must have, per job.

    Returns
    -------
    Demands
        Demands, one per job. The number of tasks of a job with GPUs is the greatest common divisor of its amounts.
    """
    n = len(cores)
    none = np.zeros(n, dtype=np.int64)

    def known(column: IntArray | None) -> IntArray:
        return none if column is None else np.maximum(column, 0)

    counted = {name: known(column) for name, column in (others or {}).items()}
    gpu = known(gpus)
    count = _tasks_of(cores, gpu, counted, np.maximum(known(unit), 1), tasks)
    each = {"cores": cores // count, **{name: -(-column // count) for name, column in counted.items()}}
    if memory is not None:
        each["memory"] = -(-known(memory) // count)
    least = np.clip(known(nodes), 1, count)
    most = np.where(known(most_nodes) > 0, np.maximum(known(most_nodes), least), known(nodes))
    per_node = np.where(known(cores_per_node) > 0, known(cores_per_node) // np.maximum(each["cores"], 1), NO_LIMIT)
    no_words = WordSets.none(n)
    return Demands(
        plain=none,
        tasks=count,
        each={name: column for name, column in each.items() if name == "cores" or column.any()},
        gpu=gpu // count * WHOLE_GPU,
        gpu_kinds=WordSets.made(gpu_kinds) if gpu_kinds else no_words,
        features=WordSets.made(features) if features else no_words,
        partitions=no_words,
        min_nodes=least,
        max_nodes=np.where(most > 0, np.maximum(most, least), NO_LIMIT),
        tasks_per_node=np.where(known(cores_per_node) > 0, np.maximum(per_node, 1), NO_LIMIT),
        exclusive=np.zeros(n, dtype=np.bool_) if exclusive is None else exclusive,
        pools={name: known(column) for name, column in (pools or {}).items() if known(column).any()},
    )


def _tasks_of(
    cores: IntArray, gpu: IntArray, counted: Mapping[str, IntArray], unit: IntArray, tasks: IntArray | None
) -> IntArray:
    """Return the number of tasks of each job: the given one, else the greatest common divisor of its amounts."""
    count: IntArray = np.where(cores % unit == 0, cores // unit, cores)
    whole = np.maximum.reduce([gpu, *counted.values()]) > 0
    divided = np.gcd.reduce([cores, gpu, *counted.values()])  # gcd(0, n) is n
    count = np.where(whole, divided, count)
    if tasks is not None:
        fits = (tasks > 0) & (cores % np.maximum(tasks, 1) == 0) & (gpu % np.maximum(tasks, 1) == 0)
        count = np.where(fits, tasks, count)
    return np.maximum(count, 1)


def demand_facts(demands: Demands, **more: Any) -> dict[str, Any]:
    """Return the facts on demands for `run.json`: the resources, and further values of the reader."""
    names = [*demands.each, *(["gpu"] if demands.gpu.any() else []), *demands.pools]
    return {"resources": names, **{name: value for name, value in more.items() if value}}
