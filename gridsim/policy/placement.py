"""Placement rules: choice of the nodes for the tasks of a request.

The feasibility of a request does not depend on the rule. The rule scores the nodes for each task, and the task is
placed on the feasible node with the lowest score; ties go to the lower number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from gridsim.errors import InputError
from gridsim.machine import placing
from gridsim.machine.demand_classes import DemandClasses
from gridsim.model.capacity import WHOLE_GPU, Capacity
from gridsim.model.demand import Demands, typical_tasks
from gridsim.model.time import FloatArray, IntArray
from gridsim.policy.protocols import Nodes
from gridsim.schema import Number, read_json


@dataclass
class First:
    """The lowest-numbered node with enough free capacity."""

    def columns(self, asked: DemandClasses) -> placing.Rule:
        """Return the parameters for compiled placement."""
        return _rule(asked, placing.FIRST_NODE)


@dataclass
class Weight:
    """The node with the lowest weight, as in Slurm."""

    def columns(self, asked: DemandClasses) -> placing.Rule:
        """Return the parameters for compiled placement."""
        return _rule(asked, placing.WEIGHT)


@dataclass
class Pack:
    """Best fit: the node with the least free capacity left, summed over resources as fractions of the largest node.

    Parameters
    ----------
    resources : str or sequence of str
        Resources that count, separated by ``+``, possibly ``gpu``; all if omitted.
    whole : bool
        Whether scores are truncated to a hundred steps, as in the published program of the reference.
    """

    resources: str | Sequence[str] = ""
    whole: bool = False
    source: ClassVar[str] = "Weng et al., USENIX ATC 2023"

    def columns(self, asked: DemandClasses) -> placing.Rule:
        """Return the parameters for compiled placement."""
        return _rule(asked, placing.PACK, self.resources, self.whole)


@dataclass
class Spread:
    """Worst fit: the node with the most free capacity left, summed over resources as fractions of the largest node.

    Parameters
    ----------
    resources : str or sequence of str
        Resources that count, separated by ``+``, possibly ``gpu``; all if omitted.
    whole : bool
        Whether scores are truncated to a hundred steps.
    """

    resources: str | Sequence[str] = ""
    whole: bool = False

    def columns(self, asked: DemandClasses) -> placing.Rule:
        """Return the parameters for compiled placement."""
        return _rule(asked, placing.SPREAD, self.resources, self.whole)


@dataclass
class DotProduct:
    """Alignment: the dot product of free capacity and the task's demand, as fractions of the largest node.

    Parameters
    ----------
    align : {"high", "low"}
        Whether the highest product wins, as in Tetris, or the lowest, as in the program of Weng et al.
    resources : str or sequence of str
        Resources that count, separated by ``+``, possibly ``gpu``; all if omitted.
    whole : bool
        Whether scores are truncated to a hundred steps.
    """

    align: Literal["high", "low"] = "high"
    resources: str | Sequence[str] = ""
    whole: bool = False
    source: ClassVar[str] = "Grandl et al., SIGCOMM 2014"

    def __post_init__(self) -> None:
        if self.align not in ("high", "low"):
            raise ValueError(f"align is {self.align!r}; high or low is needed")

    def columns(self, asked: DemandClasses) -> placing.Rule:
        """Return the parameters for compiled placement."""
        kind = placing.PRODUCT_HIGH if self.align == "high" else placing.PRODUCT_LOW
        return _rule(asked, kind, self.resources, self.whole, products=True)


_AMOUNT = Number(0, 2**53, whole=True)
_TYPICAL = [{"each?": {str: _AMOUNT}, "gpu?": _AMOUNT, "gpu_kinds?": [str], "count?": Number(1, 10**9, whole=True)}]
"""Schema of a file of typical tasks."""


@dataclass
class Fragmentation:
    """The node on which the task makes the fewest idle GPUs useless to typical tasks.

    Parameters
    ----------
    typical : str or sequence of mappings
        Typical tasks: ``each`` (amounts by resource), ``gpu`` (thousandths), ``gpu_kinds`` and ``count``; a JSON file
        with a list of such tasks; or ``workload`` for the most frequent ones of the jobs themselves.
    popularity : float
        Minimum fraction of the workload's tasks that the most frequent demands cover together.
    resources : str or sequence of str
        Resources by which the workload's demands are distinguished, separated by ``+``; all but memory if omitted.
    whole : bool
        Whether scores are truncated to a hundred steps, as in the published program.
    """

    typical: str | Sequence[Mapping[str, Any]] = "workload"
    popularity: float = 0.95
    resources: str | Sequence[str] = ""
    whole: bool = False
    source: ClassVar[str] = "Weng et al., USENIX ATC 2023"

    def __post_init__(self) -> None:
        if not 0 < self.popularity <= 1:
            raise ValueError(f"popularity is {self.popularity!r}; a fraction above 0, at most 1, is needed")

    def columns(self, asked: DemandClasses) -> placing.Rule:
        """Return the parameters for compiled placement."""
        typical = self.typical
        if typical == "workload":
            typical = _frequent(asked, _named(self.resources), self.popularity)
        elif isinstance(typical, str):
            try:
                return _fragmentation(asked, read_json(typical, _TYPICAL, "a list of typical tasks"), self.whole)
            except InputError as error:
                raise InputError(error.message, path=typical, line=error.line, field=error.field) from error
        return _fragmentation(asked, typical, self.whole)


@dataclass
class Random:
    """A random feasible node, and a random GPU with enough free capacity, both uniform."""

    def setup(self, rng: Generator) -> None:
        """Store the random stream of this run."""
        self._rng = rng

    def scores(self, task: Mapping[str, int], nodes: Nodes) -> FloatArray:
        """Return 0 for the drawn node, 1 for the others."""
        able = np.flatnonzero(nodes.able)
        found = np.ones(len(nodes.able))
        found[able[self._rng.integers(len(able))]] = 0.0
        return found

    def gpu(self, free: IntArray, share: int) -> int:
        """Return a random GPU with enough free capacity."""
        able = np.flatnonzero(free >= share)
        return int(able[self._rng.integers(len(able))])


# -- parameters for compiled placement -------------------------------------------------------------------------------


def _named(resources: str | Sequence[str]) -> tuple[str, ...]:
    return (
        tuple(resources.replace(",", "+").split("+")) if isinstance(resources, str) and resources else tuple(resources)
    )


def _rule(
    asked: DemandClasses, kind: int, resources: str | Sequence[str] = "", whole: bool = False, *, products: bool = False
) -> placing.Rule:
    """Return weights that turn free amounts into fractions of the largest node, as integers if these are small enough.

    Raises
    ------
    InputError
        If no node has a named resource.
    """
    columns, named = asked.columns, _named(resources)
    names = (*columns.resources, "gpu")
    most = [*columns.nodes.max(axis=0, initial=0).tolist(), int(columns.gpus.max(initial=0)) * WHOLE_GPU]
    for name in named:
        if len(columns.nodes) and name not in names:
            raise InputError(f"nodes have no {name}; they have {', '.join(names)}", field="resources")
    counts = [amount if not named or name in named else 0 for name, amount in zip(names, most, strict=True)]
    parts = [amount * amount if products else amount for amount in counts]
    unit = math.lcm(*(part for part in parts if part)) if any(parts) else 1
    kept = sum(part > 0 for part in parts)
    exact = 200 * max(1, kept) * unit < 2**62
    if not exact:
        unit = placing.FINE
    return placing.Rule(
        what=np.array([kind, whole, max(1, kept), unit, 0], dtype=np.int64),
        weights=np.array([unit // part if part and exact else 0 for part in parts], dtype=np.int64),
        ratios=np.array([0.0 if exact or not part else placing.FINE / part for part in parts]),
        nodes=np.array(asked.capacity.weight or [1] * len(columns.nodes), dtype=np.int64),
        typical=np.zeros((0, len(names) + 1), dtype=np.int64),
        accepts=np.zeros((0, len(columns.nodes)), dtype=np.int64),
        known=np.zeros((0, len(columns.nodes), 1), dtype=np.int64),
    )


def fragments_of(
    capacity: Capacity, typical: Sequence[Mapping[str, Any]], free: Mapping[str, int], gpus: Sequence[int]
) -> int:
    """Return the idle thousandths of GPU of the first node that are useless to typical tasks, weighted (3.6).

    Parameters
    ----------
    typical : sequence of mappings
        As for `Fragmentation`.
    free : mapping of str to int
        Free amount of each resource of the node.
    gpus : sequence of int
        Free thousandths of each of its GPUs.
    """
    asked = DemandClasses(capacity, Demands.plain_cores(np.zeros(0, dtype=np.int64)))
    rule = _fragmentation(asked, typical, whole=False)
    low: IntArray = np.array([*(free.get(name, 0) for name in asked.columns.resources), *gpus, 0], dtype=np.int64)
    return int(placing.fragments(low, rule, 0))


_KNOWN = 1 << 22
"""Maximum number of cached scores."""


def _fragmentation(asked: DemandClasses, typical: Sequence[Mapping[str, Any]], whole: bool) -> placing.Rule:
    """Return the parameters for typical tasks.

    Raises
    ------
    InputError
        If a task requests a resource that no node has.
    """
    columns, capacity = asked.columns, asked.capacity
    rows, accepts = [], []
    kinds = capacity.gpu_kind or ("",) * len(columns.nodes)
    for task in typical:
        each = task.get("each", {})
        rows.append([*(each.get(name, 0) for name in columns.resources), task.get("gpu", 0), task.get("count", 1)])
        for name in set(each) - set(columns.resources):
            raise InputError(f"a typical task requests {name}, which no node has", field="typical")
        accepted = task.get("gpu_kinds", ())
        accepts.append([not accepted or kind in accepted for kind in kinds])
    found = _rule(asked, placing.FRAGMENTS)
    counts = sum(row[-1] for row in rows)
    nodes, width = asked.empty.shape
    tasks = int(asked.classes.shape[:, -1].max(initial=-1)) + 1
    kept = min(tasks, _KNOWN // max(1, nodes * (width + 1)))
    return found._replace(
        what=np.array([placing.FRAGMENTS, whole, 1, 1, max(1, counts)], dtype=np.int64),
        typical=np.array(rows, dtype=np.int64).reshape(len(rows), len(columns.resources) + 2),
        accepts=np.array(accepts, dtype=np.int64).reshape(len(rows), nodes),
        known=np.full((kept, nodes, width + 1), -1, dtype=np.int64),
    )


def _frequent(asked: DemandClasses, named: Sequence[str], popularity: float) -> list[dict[str, Any]]:
    """Return the most frequent task demands of the jobs, the fewest that cover that fraction of all tasks (R23)."""
    names = [name for name in asked.columns.resources if (name in named if named else name != "memory")]
    found = typical_tasks(asked.demands, names, popularity)
    rows = zip(found.each.tolist(), found.gpu.tolist(), found.gpu_kinds, found.counts.tolist(), strict=True)
    return [
        {"each": dict(zip(found.resources, each, strict=True)), "gpu": gpu, "gpu_kinds": kinds, "count": count}
        for each, gpu, kinds, count in rows
    ]
