"""Upward ranks: the longest remaining path of each task, itself and unavoidable transfers included; once per job."""

from __future__ import annotations

import numpy as np

from gridsim.model.platform import ClusterSpec, Platform
from gridsim.model.tasks import Tasks
from gridsim.model.time import IntArray


def upward_ranks(tasks: Tasks, platform: Platform, tick: int) -> IntArray:
    """Return the upward rank of every task, whole microseconds (grid spec, section 6).

    Parameters
    ----------
    tick : int
        Delays are rounded up to whole ticks; whole microseconds.

    Notes
    -----
    Execution times are the estimates, since policies do not know true run times. Delays that depend on the placement
    of tasks of the same kind are avoidable and not counted.
    """
    global _last  # cached, since the policies of a comparison have the same tasks
    if _last is None or _last[0] is not tasks or _last[1:3] != (platform, tick):
        _last = (tasks, platform, tick, tasks.chains(tasks.estimate, unavoidable_delays(tasks, platform, tick)))
    return _last[3].copy()


_last: tuple[Tasks, Platform, int, IntArray] | None = None


def unavoidable_delays(tasks: Tasks, platform: Platform, tick: int) -> IntArray:
    """Return the least delay of each edge over the clusters that can run its tasks; 0 if both have the same kind."""
    delays: IntArray = np.zeros(len(tasks.edge_to), dtype=np.int64)
    network = platform.network
    if network.free:
        return delays
    source = np.repeat(np.arange(len(tasks)), np.diff(tasks.edge_first))
    crossing = np.flatnonzero(tasks.kind[source] != tasks.kind[tasks.edge_to])
    if not len(crossing):
        return delays
    levels = np.array(_least_levels(tasks, platform, source[crossing], tasks.edge_to[crossing]))
    runtime = tasks.estimate[source[crossing]]
    for height in np.unique(levels).tolist():
        here = levels == height
        sent = None if tasks.volume is None else tasks.volume[crossing[here]]
        delays[crossing[here]] = network.delays(runtime[here], height, tick, sent)
    return delays


def _least_levels(tasks: Tasks, platform: Platform, source: IntArray, target: IntArray) -> list[int]:
    """Return the fewest levels between a cluster that can run one task and one that can run the other."""
    if platform.network.delay_levels_power is None:
        return [1] * len(source)
    clusters, between = list(platform.clusters()), platform.levels()

    def able(row: int) -> list[ClusterSpec]:
        kind, cores = tasks.kinds[tasks.kind[row]], tasks.cores[row]
        return [cluster for cluster in clusters if cluster.kind == kind and cluster.cores >= cores]

    return [
        min(between[one.name, other.name] for one in able(row) for other in able(to))
        for row, to in zip(source.tolist(), target.tolist(), strict=True)
    ]
