"""From what logs say of a whole job to what each of its tasks asks for: readers come here with totals and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.capacity import WHOLE_GPU
from gridsim.model.demand import NO_LIMIT, Demands, WordSets
from gridsim.model.time import IntArray

GPU_TYPES = "gpu_types"
"""Logged column, and its names: types of the GPUs that each job had, between bars."""


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
    """Demands of jobs of which totals are known; a number below 1 is one that nobody knows.

    Parameters
    ----------
    cores : (n,) int64
        Of the whole job.
    memory : (n,) int64, optional
        MiB of the whole job.
    gpus : (n,) int64, optional
        Whole GPUs of the job.
    others : mapping of str to (n,) int64, optional
        What else it has of nodes in all.
    pools : mapping of str to (n,) int64, optional
        What it has of pools.
    unit : (n,) int64, optional
        Cores of a task, which all lie on one node; 1 where they do not divide the cores.
    tasks : (n,) int64, optional
        Tasks, where they are known and divide the cores.
    nodes, most_nodes : (n,) int64, optional
        Least and most nodes; without a most, the least is the number.
    cores_per_node : (n,) int64, optional
        Most cores on one node.
    exclusive : (n,) bool, optional
        Whether it has its nodes alone.
    gpu_kinds, features : sequence of sequence of str, optional
        Words that nodes must have, of each job.

    Returns
    -------
    Demands
        One a job; tasks of jobs with GPUs are as many as cores and GPUs can be divided into alike, at most one a GPU.
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
    nobody = WordSets.none(n)
    return Demands(
        plain=none,
        tasks=count,
        each={name: column for name, column in each.items() if name == "cores" or column.any()},
        gpu=gpu // count * WHOLE_GPU,
        gpu_kinds=WordSets.made(gpu_kinds) if gpu_kinds else nobody,
        features=WordSets.made(features) if features else nobody,
        partitions=nobody,
        min_nodes=least,
        max_nodes=np.where(most > 0, np.maximum(most, least), NO_LIMIT),
        tasks_per_node=np.where(known(cores_per_node) > 0, np.maximum(per_node, 1), NO_LIMIT),
        exclusive=np.zeros(n, dtype=np.bool_) if exclusive is None else exclusive,
        pools={name: known(column) for name, column in (pools or {}).items() if known(column).any()},
    )


def _tasks_of(
    cores: IntArray, gpu: IntArray, counted: Mapping[str, IntArray], unit: IntArray, tasks: IntArray | None
) -> IntArray:
    """How many tasks each job has: as many as it says, else as its cores and what else is counted divide into alike."""
    count: IntArray = np.where(cores % unit == 0, cores // unit, cores)
    whole = np.maximum.reduce([gpu, *counted.values()]) > 0
    divided = np.gcd.reduce([cores, gpu, *counted.values()])  # nothing of a resource divides by anything
    count = np.where(whole, divided, count)
    if tasks is not None:
        fits = (tasks > 0) & (cores % np.maximum(tasks, 1) == 0) & (gpu % np.maximum(tasks, 1) == 0)
        count = np.where(fits, tasks, count)
    return np.maximum(count, 1)


def told(demands: Demands, **more: Any) -> dict[str, Any]:
    """What `run.json` says of demands that come from a log: which resources, and what else the reader tells."""
    names = [*demands.each, *(["gpu"] if demands.gpu.any() else []), *demands.pools]
    return {"resources": names, **{name: value for name, value in more.items() if value}}
