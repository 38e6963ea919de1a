"""What jobs held of the resources of a machine: of its nodes, of GPUs, of pools (specification of machines, 5.3).

A job that has its nodes to itself holds all that they have; what its tasks ask for is what it uses. GPUs are counted
in thousandths, and all shares are fractions.
"""

from __future__ import annotations

import numpy as np

from gridsim.metrics.utilisation import Steps, interval_us, overlap, steps
from gridsim.model.capacity import GPU, WHOLE_GPU
from gridsim.model.demand import Demands
from gridsim.model.time import NEVER, IntArray
from gridsim.record import Record, Requested

Held = tuple[IntArray, IntArray, IntArray]
"""When something was held, from and until in whole microseconds, and how much of it."""


def concerns_resources(record: Record) -> bool:
    """Whether the machine has nodes or pools that the record tells of."""
    return record.capacity is not None


def asked_of_nodes(record: Record) -> Demands:
    """What jobs (of DAG jobs, tasks) ask for, where nothing is said plain cores."""
    return record.workload.demands or Demands.plain_cores(record.workload.asked[0])


def runs(record: Record) -> tuple[IntArray, IntArray, IntArray]:
    """All runs of jobs, of DAG jobs of tasks: from and until in whole microseconds, and the row of each."""
    start, end = record.start_us, record.end_us
    if record.tasks is not None:
        start, end = record.tasks.start_us, record.tasks.end_us
    row = np.flatnonzero(start < NEVER)
    start, end = start[row], end[row]
    if record.tasks is None:
        job, began, ended = record.earlier_runs()
        row, start, end = np.append(row, job), np.append(start, began), np.append(end, ended)
    return start, end if record.until_us is None else np.minimum(end, record.until_us), row


def held(record: Record, resource: str, *, used: bool = False) -> Held:
    """What was held of a resource, piece by piece.

    Parameters
    ----------
    resource : str
        Of the nodes, of the pools, or ``gpu`` (in thousandths).
    used : bool
        Only what tasks ask for: of an exclusive job not all that its nodes have.
    """
    capacity, pieces = record.capacity, record.allocations
    asked: Requested | Demands = record.requested or asked_of_nodes(record)
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
    whole_nodes = asked.exclusive[pieces.job]
    if used and total is not None and whole_nodes.any():
        by_task = total[pieces.job] * pieces.tasks // np.maximum(asked.tasks[pieces.job], 1)
        amount = np.where(whole_nodes, by_task, amount)
    elif not used:
        amount = np.where(whole_nodes, most[pieces.node], amount)
    return pieces.start_us, end, amount


def allocated(record: Record, resource: str) -> Steps:
    """What was held of a resource over time, an exclusive job holding whole nodes; parameters as in `held`."""
    return steps(*held(record, resource))


def share_held(
    record: Record, resource: str, start: float | None = None, end: float | None = None, *, used: bool = False
) -> float:
    """What was held of a resource over what there was of it in ``[start, end)``; a fraction, NaN for an empty interval.

    Parameters
    ----------
    resource, used
        As in `held`.
    start, end : float, optional
        The interval, s; from the first submit to the last end where left out.

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
    """Whether a run was told of before anything had ended: numbers are then those at the last arrival, not means."""
    return record.until_us is not None and not record.ran.any()
