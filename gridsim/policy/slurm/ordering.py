"""Slurm's priorities as orderings, to combine them with other rules: ``backfilling?ordering=multifactor``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gridsim.model.site import Node, Priority, Site, SitePartition
from gridsim.model.site_file import read_site
from gridsim.model.time import FloatArray, IntArray
from gridsim.policy.protocols import Changes
from gridsim.policy.queue import ClusterView, Ledger, Queue
from gridsim.policy.slurm.entry_columns import SECOND, demands_of
from gridsim.policy.slurm.priorities import Priorities
from gridsim.policy.slurm.queue_entries import owners_of
from gridsim.policy.slurm.tres import Bills

NOWHERE: IntArray = np.zeros(0, dtype=np.int64)
"""Empty list of nodes, which an ordering does not know."""


class _Leaves(Ledger):
    """A ledger that notifies the priorities of starts and ends. Its leaves are requests, which identify them."""

    def __init__(self, cores: int, priorities: Priorities, bills: Bills) -> None:
        super().__init__(cores)
        self._priorities, self._bills = priorities, bills

    def change(self, leaf: int, cores: int, now: int) -> None:
        if cores > 0:
            self._priorities.began(leaf, self._bills.of(leaf, NOWHERE, np.array([cores])), now)
        else:
            self._priorities.ended(leaf, now)


@dataclass
class _ByPriority:
    """Highest priority first, ties by job order; priorities are computed once per ``PriorityCalcPeriod``."""

    changes: ClassVar[Changes] = "pass"

    def _site(self, cluster: ClusterView) -> Site:
        raise NotImplementedError

    def keep(self, cluster: ClusterView) -> Ledger:
        """Return the ledger of a new run, in which the scheduler records starts and ends by request."""
        requests, site = cluster.requests, self._site(cluster)
        owners = owners_of(requests, site)
        demands = demands_of(requests, site, owners)
        self._priorities = Priorities(requests, site, owners, demands, 0)
        self._seen = np.zeros(len(requests), dtype=bool)
        rows: IntArray = np.arange(len(requests), dtype=np.int64)
        # Each request is its own leaf, so that the priorities can identify it.
        requests.labels = {**requests.labels, "share": rows}
        return _Leaves(cluster.cores, self._priorities, Bills(requests, site, demands))

    def rank(self, queue: Queue, now: float) -> FloatArray:
        instant, rows = round(now * SECOND), queue.rows
        boundary = self._priorities.calculate(instant)
        if boundary is not None:
            self._priorities.rank(rows, boundary)
        new = rows[~self._seen[rows]]
        if len(new):
            self._priorities.since[new] = queue.requests.ready[new]
            self._priorities.rank(new, instant)
            self._seen[new] = True
        return -self._priorities.priority[rows].astype(np.float64)


@dataclass
class Multifactor(_ByPriority):
    """Slurm's multifactor priority of a site: weighted age, fair share, size, partition, QOS, minus the nice value.

    Parameters
    ----------
    conf : str or None
        The site's ``slurm.conf``; if omitted, equal shares, weights of 1000 for age and size, and 10,000 for fair
        share.
    assoc, qos, usage : str or None
        As for the scheduler ``slurm``.
    """

    conf: str | None = None
    assoc: str | None = None
    qos: str | None = None
    usage: str | None = None
    source: ClassVar[str] = "slurm.schedmd.com: priority_multifactor"

    def __post_init__(self) -> None:
        self._read = None
        if self.conf is not None:
            self._read = read_site(self.conf, assoc=self.assoc, qos=self.qos, usage=self.usage)

    def _site(self, cluster: ClusterView) -> Site:
        return self._read or _plain(cluster, Priority(age=1000, fair_share=10_000, size=1000))


@dataclass
class FairTree(_ByPriority):
    """Slurm's Fair Tree alone: users by level fair share of decayed usage; equal shares, accounts and users by label.

    Parameters
    ----------
    half_life, period : float
        ``PriorityDecayHalfLife`` and ``PriorityCalcPeriod``, s.
    """

    half_life: float = 604_800.0
    period: float = 300.0
    source: ClassVar[str] = "slurm.schedmd.com: fair_tree"

    def __post_init__(self) -> None:
        if not self.half_life > 0 or not self.period > 0:
            raise ValueError(f"half_life is {self.half_life}, period {self.period}; seconds above 0 are needed")

    def _site(self, cluster: ClusterView) -> Site:
        half_life, period = round(self.half_life * SECOND), round(self.period * SECOND)
        return _plain(cluster, Priority(fair_share=1 << 30, half_life=half_life, period=period))


def _plain(cluster: ClusterView, priority: Priority) -> Site:
    """Return a site with one node, the partitions that the jobs name, and no associations."""
    names = cluster.requests.names.get("partition")
    if names is None:
        column = cluster.requests.labels.get("partition", np.zeros(0, dtype=np.int64))
        names = tuple(str(code) for code in np.unique(column).tolist() if code >= 0)
    found = dict.fromkeys(["all", *(one for name in names for one in name.split(","))])
    partitions = tuple(SitePartition(name, ("all",)) for name in found if name)
    return Site((Node("all", cluster.cores),), partitions, "all", priority=priority)
