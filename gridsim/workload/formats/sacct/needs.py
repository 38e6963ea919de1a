"""What jobs asked for, as the labels that a policy may look at: nodes, memory, arrays, whom they wait for.

`gridsim.model.site.LABELS` says what each label means.
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
"""Times as many cores as were asked for that a job may have without having whole nodes: the threads of its cores."""


def needs(
    columns: Mapping[str, npt.NDArray[Any]], rows: IntArray, start: IntArray, end: IntArray
) -> dict[str, IntArray]:
    """Labels of jobs, as far as the log says anything.

    Parameters
    ----------
    columns : mapping of str to array
        Columns of the log (`gridsim.workload.formats.sacct.rows.Parser`).
    rows : (n,) int64
        Rows of the jobs.
    start, end : (n,) int64
        Of the jobs, s; `ABSENT` where there is none.

    Notes
    -----
    ``ReqTRES`` counts the least nodes: 1 where nobody asked for a number. So a job that had one node counts as one that
    wanted one (with ``--cpus-per-task`` it could not have had more), and one that had several without asking for them,
    or has not started, as one that takes what there is. Without ``ReqTRES`` several nodes count as wanted where the job
    had them whole.

    Memory is of a core where ``ReqMem`` or the submit line says so (``--mem-per-cpu``), else of a node. Without either
    the number is that of the job, and may have been spread over more nodes than ``ReqTRES`` counts: the memory that the
    job had on each node is a label of its own.

    GPUs are those that the job had, over its nodes; where the log says none, those of the submit line.

    The throttle of an array is in submit lines and in the rows of waiting tasks. Where neither is there and tasks
    waited for it (``Reason`` is JobArrayTaskLimit), it is the most that ever ran at once.
    """

    def column(name: str) -> IntArray:
        if name not in columns:
            return np.full(len(rows), ABSENT, dtype=np.int64)
        return columns[name][rows].astype(np.int64)

    allocated, requested = column("allocated"), column("requested")
    given = np.where(start == ABSENT, ABSENT, column("nodes"))  # of a job that waits it is the least number
    whole = _whole(given, allocated, column("partition"))
    said = np.minimum(column("least_nodes"), np.maximum(requested, 1))  # Slurm lowers it to the number of tasks
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
        "array_limit": _throttles(array, _said(columns), column("limited") > 0, start, end),
    }
    return {name: values for name, values in found.items() if (values != UNKNOWN).any()}


def _gpus(column: Callable[[str], IntArray], given: IntArray, cores: IntArray) -> IntArray:
    """GPUs on each node as submit lines say them: of a node, of a task or in all, over the nodes given or asked for."""
    nodes = np.maximum(np.where(given > 0, given, np.maximum(column("asked_nodes"), column("least_nodes"))), 1)
    tasks = np.maximum(cores, 1) // np.maximum(column("per_task"), 1)
    together = np.where(column("task_gpus") > 0, column("task_gpus") * tasks, column("all_gpus"))
    found = np.where(together > 0, -(-together // nodes), UNKNOWN)
    return np.where(column("node_gpus") > 0, column("node_gpus"), found)


def _whole(nodes: IntArray, cores: IntArray, partition: IntArray) -> BoolArray:
    """Whether jobs had as many cores of each node as anybody had of one in that partition."""
    each = np.where((nodes > 0) & (cores > 0), cores / np.maximum(nodes, 1), 0.0)
    most = np.zeros(int(partition.max(initial=0)) + 2)
    np.maximum.at(most, partition, each)
    whole: BoolArray = (each > 0) & (each == most[partition])
    return whole


def _nodes(asked: IntArray, given: IntArray, whole: BoolArray, said: IntArray) -> dict[str, IntArray]:
    """Least and most nodes."""
    one = given == 1
    where_unknown = np.where(one | (whole & (given > 0)), given, UNKNOWN)
    nodes = np.where(asked > 1, asked, np.where(asked == 1, np.where(one, 1, UNKNOWN), where_unknown))
    nodes = np.where((nodes == UNKNOWN) & (said > 0), said, nodes)
    return {"nodes": nodes, "nodes_most": np.where((asked > 1) & (given > asked), given, UNKNOWN)}


def _tasks_per_node(said: IntArray, per_task: IntArray, given: IntArray, allocated: IntArray) -> IntArray:
    """Tasks of a node; unknown where whole nodes gave the job more cores than its tasks could use."""
    usable = said * np.maximum(per_task, 1) * np.maximum(given, 1)
    return np.where((said > 0) & (given > 0) & (allocated > usable), UNKNOWN, said)


def _memory(
    asked: IntArray, what: IntArray, said: IntArray, had: IntArray, nodes: IntArray, given: IntArray, cores: IntArray
) -> dict[str, IntArray]:
    """MiB on each node, or on each core. Since 21.08 the log's number is for all of them together, and does not say."""
    together = what <= 0
    granted = np.where((had > 0) & (given > 0), -(-had // np.maximum(given, 1)), UNKNOWN)
    on_cores = (what == A_CORE) | (together & (said == A_CORE))
    of_node, of_core = (-(-asked // np.where(together, np.maximum(count, 1), 1)) for count in (nodes, cores))
    return {
        "memory_mb": np.where(on_cores, UNKNOWN, np.where(asked != ABSENT, of_node, granted)),
        "memory_granted_mb": np.where(together & (said == ABSENT) & (granted < of_node), granted, UNKNOWN),
        "memory_core_mb": np.where((asked != ABSENT) & on_cores, of_core, UNKNOWN),
    }


def _said(columns: Mapping[str, npt.NDArray[Any]]) -> tuple[IntArray, IntArray]:
    """Arrays of which some row says a throttle, those of tasks that still wait too, in order; and the throttles."""
    if "throttle" not in columns or "base" not in columns:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    rows = np.flatnonzero(columns["throttle"] > 0)
    arrays, place = np.unique(columns["base"][rows], return_inverse=True)
    limits = np.zeros(len(arrays), dtype=np.int64)
    np.maximum.at(limits, place.reshape(-1), columns["throttle"][rows])
    return arrays, limits


def _throttles(
    array: IntArray, said: tuple[IntArray, IntArray], limited: BoolArray, start: IntArray, end: IntArray
) -> IntArray:
    """How many tasks of the array of each job may run at once."""
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
    """Most of each group between start and end at one time; what ends in a second is gone before what starts in it."""
    most = np.zeros(groups, dtype=np.int64)
    both, times = np.concatenate((group, group)), np.concatenate((end, start))
    change = np.repeat([-1, 1], len(group))
    order = np.lexsort((change, times, both))
    np.maximum.at(most, both[order], np.cumsum(change[order]))  # every group leaves the sum as it was
    return most
