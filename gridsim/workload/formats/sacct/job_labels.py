"""Requests of jobs, as labels for policies: nodes, memory, arrays, dependencies.

`gridsim.model.site.LABELS` defines the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.time import IntArray
from gridsim.model.workload import UNKNOWN
from gridsim.workload.formats.sacct.values import A_CORE, ABSENT, BoolArray

_SPREAD = 2
"""Ratio of allocated to requested cores up to which a job need not have whole nodes: the threads of its cores."""


def needs(
    columns: Mapping[str, npt.NDArray[Any]], rows: IntArray, start: IntArray, end: IntArray
) -> dict[str, IntArray]:
    """Return the labels of jobs that the log has data for.

    Parameters
    ----------
    columns : mapping of str to array
        Columns of the log (`gridsim.workload.formats.sacct.rows.Parser`).
    rows : (n,) int64
        Rows of the jobs.
    start, end : (n,) int64
        Start and end of the jobs, s; `ABSENT` if missing.

    Notes
    -----
    ``ReqTRES`` contains the minimum number of nodes, which is 1 without a request. A job that had one node therefore
    counts as one that requested one (with ``--cpus-per-task`` it could not have had more). A job that had several
    nodes without a request, or has not started, counts as one without a request for a number. Without ``ReqTRES``,
    several nodes count as requested if the job had them whole.

    Memory is per core if ``ReqMem`` or the submit line is (``--mem-per-cpu``), else per node. Without either, the
    number is that of the job, which may have been spread over more nodes than ``ReqTRES`` contains. The memory that
    the job had on each node is a separate label.

    GPUs are the allocated ones, divided by the nodes; without an allocation in the log, those of the submit line.

    The throttle of an array is in submit lines and in the rows of waiting tasks. Without either, if tasks waited for
    it (``Reason`` is JobArrayTaskLimit), it is the largest number of tasks that ran at one time.
    """

    def column(name: str) -> IntArray:
        if name not in columns:
            return np.full(len(rows), ABSENT, dtype=np.int64)
        return columns[name][rows].astype(np.int64)

    allocated, requested = column("allocated"), column("requested")
    given = np.where(start == ABSENT, ABSENT, column("nodes"))  # the minimum number for a waiting job
    whole = _uses_full_nodes(given, allocated, column("partition"))
    said = np.minimum(column("least_nodes"), np.maximum(requested, 1))  # Slurm reduces it to the number of tasks
    found = _nodes(column("asked_nodes"), given, whole, said)
    alone = (column("alone") > 0) | (
        (allocated > requested) & (requested > 0) & (whole | (allocated > _SPREAD * requested))
    )
    array = np.where(column("task") != ABSENT, column("base"), UNKNOWN)
    gpus = column("gpus")
    asked_nodes = column("asked_nodes" if "asked_nodes" in columns else "nodes")
    memory = (column("asked_memory"), column("asked_memory_of"), column("memory_of"), column("memory"))
    found |= _memory(*memory, asked_nodes, given, requested)
    found |= {
        "exclusive": np.where(alone, 1, UNKNOWN),
        "gpus": np.where((gpus > 0) & (given > 0), -(-gpus // np.maximum(given, 1)), _gpus(column, given, requested)),
        "cores_per_task": column("per_task"),
        "tasks_per_node": _tasks_per_node(column("per_node"), column("per_task"), given, allocated),
        "array": array,
        "array_limit": _array_limit(array, _throttles(columns), column("limited") > 0, start, end),
    }
    return {name: values for name, values in found.items() if (values != UNKNOWN).any()}


def _gpus(column: Callable[[str], IntArray], given: IntArray, cores: IntArray) -> IntArray:
    """Return the GPUs per node in submit lines, given per node, per task or in total, for the known number of nodes."""
    nodes = np.maximum(np.where(given > 0, given, np.maximum(column("asked_nodes"), column("least_nodes"))), 1)
    tasks = np.maximum(cores, 1) // np.maximum(column("per_task"), 1)
    together = np.where(column("task_gpus") > 0, column("task_gpus") * tasks, column("all_gpus"))
    found = np.where(together > 0, -(-together // nodes), UNKNOWN)
    return np.where(column("node_gpus") > 0, column("node_gpus"), found)


def _uses_full_nodes(nodes: IntArray, cores: IntArray, partition: IntArray) -> BoolArray:
    """Return whether jobs had the largest number of cores per node of all jobs in their partition."""
    each = np.where((nodes > 0) & (cores > 0), cores / np.maximum(nodes, 1), 0.0)
    most = np.zeros(int(partition.max(initial=0)) + 2)
    np.maximum.at(most, partition, each)
    whole: BoolArray = (each > 0) & (each == most[partition])
    return whole


def _nodes(asked: IntArray, given: IntArray, whole: BoolArray, said: IntArray) -> dict[str, IntArray]:
    """Return the minimum and maximum numbers of nodes."""
    one = given == 1
    where_unknown = np.where(one | (whole & (given > 0)), given, UNKNOWN)
    nodes = np.where(asked > 1, asked, np.where(asked == 1, np.where(one, 1, UNKNOWN), where_unknown))
    nodes = np.where((nodes == UNKNOWN) & (said > 0), said, nodes)
    return {"nodes": nodes, "nodes_most": np.where((asked > 1) & (given > asked), given, UNKNOWN)}


def _tasks_per_node(said: IntArray, per_task: IntArray, given: IntArray, allocated: IntArray) -> IntArray:
    """Return the tasks per node; unknown where whole nodes gave the job more cores than its tasks could use."""
    usable = said * np.maximum(per_task, 1) * np.maximum(given, 1)
    return np.where((said > 0) & (given > 0) & (allocated > usable), UNKNOWN, said)


def _memory(
    asked: IntArray, what: IntArray, said: IntArray, had: IntArray, nodes: IntArray, given: IntArray, cores: IntArray
) -> dict[str, IntArray]:
    """Return MiB per node or per core. Since 21.08, the log has the total, without a mark."""
    together = what <= 0
    granted = np.where((had > 0) & (given > 0), -(-had // np.maximum(given, 1)), UNKNOWN)
    on_cores = (what == A_CORE) | (together & (said == A_CORE))
    of_node, of_core = (-(-asked // np.where(together, np.maximum(count, 1), 1)) for count in (nodes, cores))
    return {
        "memory_mb": np.where(on_cores, UNKNOWN, np.where(asked != ABSENT, of_node, granted)),
        "memory_granted_mb": np.where(together & (said == ABSENT) & (granted < of_node), granted, UNKNOWN),
        "memory_core_mb": np.where((asked != ABSENT) & on_cores, of_core, UNKNOWN),
    }


def _throttles(columns: Mapping[str, npt.NDArray[Any]]) -> tuple[IntArray, IntArray]:
    """Return the arrays with a throttle in any row, including waiting tasks, in order; and the throttles."""
    if "throttle" not in columns or "base" not in columns:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    rows = np.flatnonzero(columns["throttle"] > 0)
    arrays, place = np.unique(columns["base"][rows], return_inverse=True)
    limits = np.zeros(len(arrays), dtype=np.int64)
    np.maximum.at(limits, place.reshape(-1), columns["throttle"][rows])
    return arrays, limits


def _array_limit(
    array: IntArray, said: tuple[IntArray, IntArray], limited: BoolArray, start: IntArray, end: IntArray
) -> IntArray:
    """Return the number of tasks of each job's array that may run at one time."""
    inside = array != UNKNOWN
    if not inside.any() or not (limited.any() or len(said[0])):
        return np.full(len(array), UNKNOWN, dtype=np.int64)
    arrays, place = np.unique(array, return_inverse=True)
    place = place.reshape(-1)
    waited = np.zeros(len(arrays), dtype=bool)
    np.logical_or.at(waited, place, limited)
    ran = inside & (start != ABSENT) & (end > start)
    most = _most_at_once(place[ran], start[ran], end[ran], len(arrays))
    limit = np.where(waited & (most > 0), most, UNKNOWN)
    stated = np.isin(arrays, said[0])
    limit[stated] = said[1][np.searchsorted(said[0], arrays[stated])]
    return np.where(inside, limit[place], UNKNOWN)


def _most_at_once(group: IntArray, start: IntArray, end: IntArray, groups: int) -> IntArray:
    """Return the largest number of tasks per group at one time; ends precede starts in the same second."""
    most = np.zeros(groups, dtype=np.int64)
    both, times = np.concatenate((group, group)), np.concatenate((end, start))
    change = np.repeat([-1, 1], len(group))
    order = np.lexsort((change, times, both))
    np.maximum.at(most, both[order], np.cumsum(change[order]))  # the sum over each group is 0
    return most
