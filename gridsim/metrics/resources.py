"""Allocated resources of a machine: nodes, GPUs and pools.

An exclusive job holds all resources of its nodes and uses the resources that its tasks request. GPUs are counted in
thousandths, and all shares are fractions.
"""

from __future__ import annotations

import numpy as np

from gridsim.metrics.utilisation import Steps, interval_us, overlap, steps
from gridsim.model.capacity import GPU, WHOLE_GPU
from gridsim.model.demand import Demands
from gridsim.model.time import NEVER, IntArray
from gridsim.record import Record, Requested

Held = tuple[IntArray, IntArray, IntArray]
"""Intervals (begin and end, whole microseconds), and the amount held in each."""


def concerns_resources(record: Record) -> bool:
    """Return whether the machine has nodes or pools that the record covers."""
    return record.capacity is not None


def node_demands(record: Record) -> Demands:
    """Return the requests of jobs (of tasks for DAG jobs); plain cores if there are none."""
    return record.workload.demands or Demands.plain_cores(record.workload.requested[0])


def runs(record: Record) -> tuple[IntArray, IntArray, IntArray]:
    """Return begin and end of all runs of jobs (of tasks for DAG jobs), whole microseconds, and the row of each."""
    start, end = record.start_us, record.end_us
    if record.tasks is not None:
        start, end = record.tasks.start_us, record.tasks.end_us
    row = np.flatnonzero(start < NEVER)
    start, end = start[row], end[row]
    job, began, ended = record.earlier_runs()
    if len(job):
        row, start, end = np.append(row, job), np.append(start, began), np.append(end, ended)
    return start, end if record.until_us is None else np.minimum(end, record.until_us), row


def held(record: Record, resource: str, *, used: bool = False) -> Held:
    """Return the amounts of a resource held by each piece.

    Parameters
    ----------
    resource : str
        Resource of nodes or pool, or ``gpu`` (in thousandths).
    used : bool
        Count only requests of tasks, not all resources of the nodes of exclusive jobs.
    """
    capacity, pieces = record.capacity, record.allocations
    asked: Requested | Demands = record.requested or node_demands(record)
    total = asked.total(resource)
    assert capacity is not None
    if resource in capacity.pools:
        start, end, row = runs(record)
        of_pool = total if isinstance(asked, Requested) or not capacity.nodes else asked.pools.get(resource)
        return start, end, np.zeros(len(row), dtype=np.int64) if of_pool is None else of_pool[row]
    if pieces is None:
        return tuple(np.zeros(0, dtype=np.int64) for _ in range(3))  # type: ignore[return-value]
    end = pieces.end_us if record.until_us is None else np.minimum(pieces.end_us, record.until_us)
    if resource == GPU:
        amount: IntArray = np.zeros(len(pieces), dtype=np.int64)
        np.add.at(amount, pieces.gpu_row, pieces.gpu_share)
        most = capacity.gpus * WHOLE_GPU
    else:
        amount = pieces.amounts.get(resource, np.zeros(len(pieces), dtype=np.int64))
        most = capacity.amounts[resource]
    whole_nodes = asked.exclusive[pieces.job] & ~(pieces.asleep & (resource == "cores"))
    if used and total is not None and whole_nodes.any():
        by_task = total[pieces.job] * pieces.tasks // np.maximum(asked.tasks[pieces.job], 1)
        amount = np.where(whole_nodes, by_task, amount)
    elif not used:
        amount = np.where(whole_nodes, most[pieces.node], amount)
    return pieces.start_us, end, amount


def allocated(record: Record, resource: str) -> Steps:
    """Return the allocated amount of a resource over time.

    Exclusive jobs hold whole nodes; parameters as in `held`.
    """
    return steps(*held(record, resource))


def share_held(
    record: Record, resource: str, start: float | None = None, end: float | None = None, *, used: bool = False
) -> float:
    """Return the held share of a resource in ``[start, end)``; a fraction, NaN for an empty interval.

    Parameters
    ----------
    resource, used
        As in `held`.
    start, end : float, optional
        The interval, s; by default from the first submission to the last end.

    Examples
    --------
    >>> import gridsim as gs
    >>> alone = gs.Demands.of([gs.Demand(tasks=1, each={"cores": 1}, exclusive=True)])
    >>> jobs = gs.Workload.from_columns(submit=[0], runtime=[9], demands=alone)
    >>> machine = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=2, capacity={"cores": 4})])
    >>> record = gs.simulate(jobs, platform=machine, policy="easy").record
    >>> share_held(record, "cores"), share_held(record, "cores", used=True)
    (0.5, 0.125)
    """
    assert record.capacity is not None
    low, high = interval_us(record, start, end)
    total = record.capacity.total(resource)
    if high <= low or total <= 0:
        return float("nan")
    begin, until, amount = held(record, resource, used=used)
    shared = overlap(begin, until, low, high)
    return float(np.multiply(shared, amount, dtype=np.float64).sum() / (high - low) / total)


def only_arrivals(record: Record) -> bool:
    """Return whether a run stops before any job has ended; metrics are then values at the last arrival, not means."""
    return record.until_us is not None and not record.ran.any()
