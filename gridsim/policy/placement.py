"""Placement rules: where the tasks of a request go on a machine of nodes (specification of machines, 3.5 and 3.6).

Whether a request can be placed never depends on the rule. A rule is asked for each task: the node of the lowest score
that may be taken is taken, ties to the lower number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from gridsim.errors import InputError
from gridsim.machine.demand_classes import DemandClasses
from gridsim.machine.placing import (
    FINE,
    FIRST_NODE,
    FRAGMENTS,
    PACK,
    PRODUCT_HIGH,
    PRODUCT_LOW,
    SPREAD,
    WEIGHT,
    Rule,
    fragments,
)
from gridsim.model.capacity import WHOLE_GPU, Capacity
from gridsim.model.demand import Demands, typical_tasks
from gridsim.model.time import FloatArray, IntArray
from gridsim.policy.protocols import Nodes
from gridsim.schema import Number, read_json


@dataclass
class First:
    """The lowest-numbered node that has room."""

    def columns(self, asked: DemandClasses) -> Rule:
        """What the compiled placement scores by."""
        return _rule(asked, FIRST_NODE)


@dataclass
class Weight:
    """The lightest node, as Slurm uses the weights of nodes."""

    def columns(self, asked: DemandClasses) -> Rule:
        """What the compiled placement scores by."""
        return _rule(asked, WEIGHT)


@dataclass
class Pack:
    """Best fit: the node with the least left, over all resources as parts of the largest node.

    Parameters
    ----------
    resources : str or sequence of str
        Which count, ``gpu`` among them, separated by ``+``; all where left out.
    whole : bool
        Whether scores are cut to a hundred steps, as in the published program of the reference.
    """

    resources: str | Sequence[str] = ""
    whole: bool = False
    source: ClassVar[str] = "Weng et al., USENIX ATC 2023"

    def columns(self, asked: DemandClasses) -> Rule:
        """What the compiled placement scores by."""
        return _rule(asked, PACK, self.resources, self.whole)


@dataclass
class Spread:
    """Worst fit: the node with the most left, over all resources as parts of the largest node.

    Parameters
    ----------
    resources : str or sequence of str
        Which count, ``gpu`` among them, separated by ``+``; all where left out.
    whole : bool
        Whether scores are cut to a hundred steps.
    """

    resources: str | Sequence[str] = ""
    whole: bool = False

    def columns(self, asked: DemandClasses) -> Rule:
        """What the compiled placement scores by."""
        return _rule(asked, SPREAD, self.resources, self.whole)


@dataclass
class DotProduct:
    """Alignment: what is left of each resource times what the task asks for, as parts of the largest node.

    Parameters
    ----------
    align : {"high", "low"}
        Whether the highest product wins, as in Tetris, or the lowest, as in the program of Weng et al.
    resources : str or sequence of str
        Which count, ``gpu`` among them, separated by ``+``; all where left out.
    whole : bool
        Whether scores are cut to a hundred steps.
    """

    align: Literal["high", "low"] = "high"
    resources: str | Sequence[str] = ""
    whole: bool = False
    source: ClassVar[str] = "Grandl et al., SIGCOMM 2014"

    def __post_init__(self) -> None:
        if self.align not in ("high", "low"):
            raise ValueError(f"align is {self.align!r}; high or low is needed")

    def columns(self, asked: DemandClasses) -> Rule:
        """What the compiled placement scores by."""
        kind = PRODUCT_HIGH if self.align == "high" else PRODUCT_LOW
        return _rule(asked, kind, self.resources, self.whole, products=True)


_AMOUNT = Number(0, 2**53, whole=True)
_TYPICAL = [{"each?": {str: _AMOUNT}, "gpu?": _AMOUNT, "gpu_kinds?": [str], "count?": Number(1, 10**9, whole=True)}]
"""Schema of a file of typical tasks."""


@dataclass
class Fragmentation:
    """The node where the task makes least of the idle GPUs useless to typical tasks.

    Parameters
    ----------
    typical : str or sequence of mappings
        Typical tasks: ``each`` (amounts by resource), ``gpu`` (thousandths), ``gpu_kinds`` and ``count``; a JSON file
        with a list of such; ``workload`` for the most frequent ones of the jobs themselves.
    popularity : float
        Part of the workload's tasks that its most frequent demands have together at least.
    resources : str or sequence of str
        Which resources the workload's demands are told apart by, separated by ``+``; all but memory where left out.
    whole : bool
        Whether scores are cut to a hundred steps, as in the published program.
    """

    typical: str | Sequence[Mapping[str, Any]] = "workload"
    popularity: float = 0.95
    resources: str | Sequence[str] = ""
    whole: bool = False
    source: ClassVar[str] = "Weng et al., USENIX ATC 2023"

    def __post_init__(self) -> None:
        if not 0 < self.popularity <= 1:
            raise ValueError(f"popularity is {self.popularity!r}; a part above 0, at most 1, is needed")

    def columns(self, asked: DemandClasses) -> Rule:
        """What the compiled placement scores by."""
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
    """Any node that may be taken, and any GPU with room, each as likely as the others."""

    def setup(self, rng: Generator) -> None:
        """Draw from a stream of this run."""
        self._rng = rng

    def scores(self, task: Mapping[str, int], nodes: Nodes) -> FloatArray:
        """0 for the node that was drawn, 1 for the others."""
        able = np.flatnonzero(nodes.able)
        found = np.ones(len(nodes.able))
        found[able[self._rng.integers(len(able))]] = 0.0
        return found

    def gpu(self, free: IntArray, share: int) -> int:
        """One of the GPUs with room."""
        able = np.flatnonzero(free >= share)
        return int(able[self._rng.integers(len(able))])


# -- what compiled placement scores by -------------------------------------------------------------------------------


def _named(resources: str | Sequence[str]) -> tuple[str, ...]:
    return (
        tuple(resources.replace(",", "+").split("+")) if isinstance(resources, str) and resources else tuple(resources)
    )


def _rule(
    asked: DemandClasses, kind: int, resources: str | Sequence[str] = "", whole: bool = False, *, products: bool = False
) -> Rule:
    """Weights that make parts of the largest node of what is free, as whole numbers where these are small enough.

    Raises
    ------
    InputError
        When a resource is named that no node has.
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
        unit = FINE
    return Rule(
        what=np.array([kind, whole, max(1, kept), unit, 0], dtype=np.int64),
        weights=np.array([unit // part if part and exact else 0 for part in parts], dtype=np.int64),
        ratios=np.array([0.0 if exact or not part else FINE / part for part in parts]),
        nodes=np.array(asked.capacity.weight or [1] * len(columns.nodes), dtype=np.int64),
        typical=np.zeros((0, len(names) + 1), dtype=np.int64),
        accepts=np.zeros((0, len(columns.nodes)), dtype=np.int64),
        known=np.zeros((0, len(columns.nodes), 1), dtype=np.int64),
    )


def fragments_of(
    capacity: Capacity, typical: Sequence[Mapping[str, Any]], free: Mapping[str, int], gpus: Sequence[int]
) -> int:
    """Idle thousandths of GPU of the first node that are of no use to typical tasks, times their counts (3.6).

    Parameters
    ----------
    typical : sequence of mappings
        As `Fragmentation` takes them.
    free : mapping of str to int
        What is free of each resource of the node.
    gpus : sequence of int
        Thousandths free of each of its GPUs.
    """
    asked = DemandClasses(capacity, Demands.plain_cores(np.zeros(0, dtype=np.int64)))
    rule = _fragmentation(asked, typical, whole=False)
    low: IntArray = np.array([*(free.get(name, 0) for name in asked.columns.resources), *gpus, 0], dtype=np.int64)
    return int(fragments(low, rule, 0))


_KNOWN = 1 << 22
"""Most numbers that scores are kept in."""


def _fragmentation(asked: DemandClasses, typical: Sequence[Mapping[str, Any]], whole: bool) -> Rule:
    """Typical tasks as columns.

    Raises
    ------
    InputError
        For one that asks for a resource which no node has.
    """
    columns, capacity = asked.columns, asked.capacity
    rows, accepts = [], []
    kinds = capacity.gpu_kind or ("",) * len(columns.nodes)
    for task in typical:
        each = task.get("each", {})
        rows.append([*(each.get(name, 0) for name in columns.resources), task.get("gpu", 0), task.get("count", 1)])
        for name in set(each) - set(columns.resources):
            raise InputError(f"a typical task asks for {name}, which no node has", field="typical")
        accepted = task.get("gpu_kinds", ())
        accepts.append([not accepted or kind in accepted for kind in kinds])
    found = _rule(asked, FRAGMENTS)
    counts = sum(row[-1] for row in rows)
    nodes, width = asked.empty.shape
    tasks = int(asked.classes.shape[:, -1].max(initial=-1)) + 1
    kept = min(tasks, _KNOWN // max(1, nodes * (width + 1)))
    return found._replace(
        what=np.array([FRAGMENTS, whole, 1, 1, max(1, counts)], dtype=np.int64),
        typical=np.array(rows, dtype=np.int64).reshape(len(rows), len(columns.resources) + 2),
        accepts=np.array(accepts, dtype=np.int64).reshape(len(rows), nodes),
        known=np.full((kept, nodes, width + 1), -1, dtype=np.int64),
    )


def _frequent(asked: DemandClasses, named: Sequence[str], popularity: float) -> list[dict[str, Any]]:
    """The most frequent task demands of the jobs, as few as make that part of all tasks (R23)."""
    names = [name for name in asked.columns.resources if (name in named if named else name != "memory")]
    found = typical_tasks(asked.demands, names, popularity)
    rows = zip(found.each.tolist(), found.gpu.tolist(), found.gpu_kinds, found.counts.tolist(), strict=True)
    return [
        {"each": dict(zip(found.resources, each, strict=True)), "gpu": gpu, "gpu_kinds": kinds, "count": count}
        for each, gpu, kinds, count in rows
    ]
