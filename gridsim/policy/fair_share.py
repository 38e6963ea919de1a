"""Fair share: whoever uses least of what it is entitled to comes first."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from gridsim.errors import InputError
from gridsim.model.shares import ShareTree
from gridsim.model.time import FloatArray, IntArray
from gridsim.policy.protocols import Changes
from gridsim.policy.queue import ClusterView, Ledger, Queue

__all__ = ["FairShare"]


@dataclass
class FairShare:
    """Smallest use over entitlement of the job's share first; ties by job order.

    Parameters
    ----------
    scope : {"cluster", "grid"}
        Where use is counted: on the cluster that decides, or on all of them.
    combine : {"product", "leaf", "fair-tree"}
        Ratios along the path multiplied, the leaf's alone, or compared level by level from the top.
    reeval : {"start", "pass"}
        Whether use counts what was started earlier in the same pass.
    usage : {"running", "decayed"}
        Cores in use now, or core-seconds that lose half their weight every *half_life*.
    half_life : float
        Seconds.

    Notes
    -----
    Grid spec, section 10. All ratios are exact except decayed ones. Not free of starvation: a wide task on a small share
    can wait for ever.
    """

    scope: Literal["cluster", "grid"] = "cluster"
    combine: Literal["product", "leaf", "fair-tree"] = "product"
    reeval: Literal["start", "pass"] = "start"
    usage: Literal["running", "decayed"] = "running"
    half_life: float = 604_800.0
    source: ClassVar[str] = "Burkimsher, Bate, Indrusiak; Slurm Fair Tree"
    _nodes: list[list[int]] = field(init=False, repr=False, compare=False, default_factory=list)

    @property
    def changes(self) -> Changes:
        """Every start changes the order, unless use is taken as the pass begins."""
        return self.reeval

    def keep(self, cluster: ClusterView) -> Ledger:
        """Begin a run: the ledger in which the scheduler notes every start and end by leaf of the share tree.

        Raises
        ------
        InputError
            When the jobs name no shares, or one that is no leaf of the tree.
        """
        paths = cluster.requests.names.get("share")
        if paths is None or "share" not in cluster.requests.labels:
            raise InputError("fair share needs jobs with a share; the workload names none", field="share")
        tree = cluster.shares or ShareTree.equal(tuple(paths))
        self._prepare(tree, tuple(paths))
        half_life = self.half_life if self.usage == "decayed" else None
        if self.scope == "grid" and cluster.ledger is not None:
            cluster.ledger.half_life = half_life
            cluster.ledger.open(len(paths))
            self._ledger = cluster.ledger
        else:
            self._ledger = Ledger(cluster.cores, half_life)
            self._ledger.open(len(paths))
        return self._ledger

    def _prepare(self, tree: ShareTree, paths: tuple[str, ...]) -> None:
        """For each leaf, the nodes of its path; for each node, its leaves and its constant factor."""
        names = list(dict.fromkeys(node for path in paths for node in tree.path(path)))
        self._nodes = [[names.index(node) for node in tree.path(path)] for path in paths]
        self._below = np.array([[node in tree.path(path) for path in paths] for node in names])
        self._fraction = [tree.fraction(node) for node in names]
        self._part = [tree.entitlement(node) for node in names]

    def rank(self, queue: Queue, now: float) -> FloatArray:
        order = self._order(round(now * 1e6))
        return order[queue.label("share")]

    def _order(self, now: int) -> FloatArray:
        """Place of each leaf, equal ones equal."""
        use = self._use(now)
        keys: list[Any] = [self._key(nodes, use) for nodes in self._nodes]
        place = {key: float(index) for index, key in enumerate(sorted(set(keys)))}
        return np.array([place[key] for key in keys])

    def _use(self, now: int) -> list[Fraction] | list[float]:
        """Use of each node: cores in use at or below it over those of the scope, or its part of all decayed use."""
        if self.usage == "decayed":
            self._ledger.decay(now)
            total = float(self._ledger.used.sum())
            used = (self._below @ self._ledger.used).tolist()
            return [value / total if total else 0.0 for value in used]
        running = (self._below @ self._ledger.running).tolist()
        return [Fraction(value, self._ledger.cores) for value in running]

    def _key(self, nodes: list[int], use: list[Any]) -> Any:
        if self.combine == "leaf":
            return use[nodes[-1]] / self._part[nodes[-1]]
        if self.combine == "product":
            return math.prod(use[node] / self._part[node] for node in nodes)
        above = [1, *(use[node] for node in nodes[:-1])]
        return tuple(
            (use[node] / parent if parent else 0) / self._fraction[node]
            for node, parent in zip(nodes, above, strict=True)
        )
