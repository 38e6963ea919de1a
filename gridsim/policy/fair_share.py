"""Fair share: jobs of the share with the lowest use relative to its entitlement first."""

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
from gridsim.policy.usage import UsageTree


@dataclass
class FairShare:
    """Smallest use over entitlement of the job's share first; ties by job order.

    Parameters
    ----------
    scope : {"cluster", "grid"}
        Scope of usage: the cluster that schedules, or all clusters.
    combine : {"product", "leaf", "fair-tree"}
        Ratios along the path multiplied, the leaf's ratio alone, or ratios compared level by level from the top.
    reeval : {"start", "pass"}
        Whether usage includes jobs started earlier in the same scheduling cycle.
    usage : {"running", "decayed"}
        Cores in use now, or core-seconds whose weight halves every *half_life*.
    half_life : float
        Seconds.

    Notes
    -----
    Grid spec, section 10. All ratios are exact except decayed ones. Not free of starvation: a wide task of a small
    share can wait indefinitely.
    """

    scope: Literal["cluster", "grid"] = "cluster"
    combine: Literal["product", "leaf", "fair-tree"] = "product"
    reeval: Literal["start", "pass"] = "start"
    usage: Literal["running", "decayed"] = "running"
    half_life: float = 604_800.0
    group: ClassVar[str] = "share"
    source: ClassVar[str] = "Burkimsher, Bate, Indrusiak; Slurm Fair Tree"
    _nodes: list[list[int]] = field(init=False, repr=False, compare=False, default_factory=list)
    _column: IntArray | None = field(init=False, repr=False, compare=False, default=None)

    @property
    def changes(self) -> Changes:
        """``start`` if every start changes the order, ``pass`` if usage is evaluated at the beginning of a cycle."""
        return self.reeval

    def keep(self, cluster: ClusterView) -> Ledger:
        """Return the ledger of a new run, in which the scheduler records starts and ends by leaf of the share tree.

        Raises
        ------
        InputError
            If the jobs have no shares, or a share that is no leaf of the tree.
        """
        paths = cluster.requests.names.get("share")
        if paths is None or "share" not in cluster.requests.labels:
            raise InputError("fair share needs jobs with a share; the workload has none", field="share")
        share = cluster.requests.labels["share"]
        nameless = np.flatnonzero((share < 0) | (share >= len(paths)))
        if len(nameless):
            job = int(cluster.requests.job[nameless[0]]) + 1
            raise InputError(f"fair share needs jobs with a share; the job in row {job} has none", field="share")
        tree = cluster.shares or ShareTree.equal(tuple(paths))
        grid = self.scope == "grid" and cluster.ledger is not None
        self._ledger_cores = cluster.ledger.cores if grid and cluster.ledger is not None else cluster.cores
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
        """Compute the tree, the nodes on the path of each leaf, and the fraction of each node."""
        names = list(dict.fromkeys(node for path in paths for node in tree.path(path)))
        self._nodes = [[names.index(node) for node in tree.path(path)] for path in paths]
        self._fraction = [tree.fraction(node) for node in names]
        above = [names.index(parent) if (parent := node.rpartition("/")[0]) else -1 for node in names]
        self._tree = UsageTree(self._nodes, above, np.array(self._fraction, dtype=np.float64))
        part = [tree.entitlement(node) for node in names]
        counted = [nodes[-1:] if self.combine == "leaf" else nodes for nodes in self._nodes]
        # Cores in use over those of the scope over the entitlement, multiplied along the path, with a common
        # denominator.
        weights = [
            1 / math.prod((part[node] * self._ledger_cores for node in nodes), start=Fraction(1)) for nodes in counted
        ]
        common = math.lcm(*(weight.denominator for weight in weights))
        self._weights = [int(weight * common) for weight in weights]
        # If only leaves count, their keys are products that a column holds exactly.
        single = self.usage == "running" and self.combine != "fair-tree" and all(len(nodes) == 1 for nodes in counted)
        exact = max(self._weights) * self._ledger_cores < 1 << 62
        self._column = np.array(self._weights, dtype=np.int64) if single and exact else None
        self._counted = counted
        self._parts = part

    @property
    def column(self) -> IntArray | None:
        """Factor of the cores in use of each leaf, if the product is the whole key; available after `keep`.

        None if other clusters count too.
        """
        return self._column if self.scope == "cluster" else None

    def rank(self, queue: Queue, now: float) -> FloatArray:
        _, place = np.unique(self.places(round(now * 1e6)), return_inverse=True)  # floats hold these exactly
        ranks: FloatArray = place[queue.label(self.group)].astype(np.float64)
        return ranks

    def places(self, now: int) -> IntArray:
        """Return the rank of each leaf at this instant (whole microseconds), equal for ties."""
        if self._column is not None:
            return self._ledger.running * self._column
        keys = self._keys(now)
        place = {key: index for index, key in enumerate(sorted(set(keys)))}
        return np.array([place[key] for key in keys])

    def _keys(self, now: int) -> list[Any]:
        """Return the sort keys of the leaves; exact unless usage decays."""
        if self.usage == "decayed":
            self._ledger.decay(now)
            used = self._ledger.used
            if self.combine == "fair-tree":
                return list(self._tree.places(used))
            parts = (self._tree.usage(used) / (float(used.sum()) or 1.0)).tolist()
            return [math.prod(parts[node] / float(self._parts[node]) for node in nodes) for nodes in self._counted]
        use = self._tree.usage(self._ledger.running).tolist()
        if self.combine == "fair-tree":
            return [self._by_level(nodes, use) for nodes in self._nodes]
        counted = zip(self._counted, self._weights, strict=True)
        return [math.prod(use[node] for node in nodes) * weight for nodes, weight in counted]

    def _by_level(self, nodes: list[int], use: list[int]) -> tuple[Fraction, ...]:
        """Return the use of each node within its parent over its shares among siblings, from the top; 0 / 0 is 0."""
        first = sum(use[node] for node in {path[0] for path in self._nodes})
        above = [first, *(use[node] for node in nodes[:-1])]
        return tuple(
            Fraction(use[node], parent or 1) / self._fraction[node] for node, parent in zip(nodes, above, strict=True)
        )
