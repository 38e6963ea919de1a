"""The audit itself: one or two iterations over the rows, which count their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.time import FloatArray, IntArray
from gridsim.workload.audit.rows import Block, Busy, Rows, Seen, Tally, keys_of, only
from gridsim.workload.audit.usage import Bins, Machine, Steps, Usage

KEPT = 1 << 18
"""Largest number of rows kept in memory, for exact peaks; for more rows only means of bins are known."""

_BEYOND = 1.01
"""Ratio of run time to limit above which a job exceeded its limit."""

_LOST = 1e-9
"""Share of an area that rounding errors may amount to."""

_MORE = 1 + 1e-9
_BAR = "|"


class Infeasible(NamedTuple):
    """Jobs that request more than exists.

    Attributes
    ----------
    resource : str
        Resource of which they request too much; ``gpu_kind`` for a missing GPU type.
    of : str
        ``machine``, or ``node`` if the largest node has less.
    jobs : int
        Number of jobs.
    most : float
        Largest request of one job.
    capacity : float
        Existing amount.
    """

    resource: str
    of: str
    jobs: int
    most: float
    capacity: float


class Demand(NamedTuple):
    """Demand for a resource, or for a GPU type.

    Attributes
    ----------
    resource, kind : str
        Resource and its type *kind*; empty for all types.
    capacity : float
        Capacity of the machine; NaN if unknown.
    requested : float
        Total request of all jobs, including those that never ran.
    ran, unwaited : Usage or None
        Usage as recorded, and usage if no job waited; None if no starts are known.
    rows : (float, float)
        Sum of amount times run time over the rows, for both of them.
    """

    resource: str
    kind: str
    capacity: float
    requested: float
    ran: Usage | None
    unwaited: Usage | None
    rows: tuple[float, float]

    @property
    def conserved(self) -> bool:
        """Return whether the areas under both step functions equal those of the rows."""
        pairs = zip((self.ran, self.unwaited), self.rows, strict=True)
        return all(use is None or abs(use.area - area) <= _LOST * max(abs(area), 1) for use, area in pairs)


@dataclass
class Audit:
    """Result of an audit.

    Attributes
    ----------
    name : str
        Name of the file.
    tally : Tally
        Counts of rows.
    early : int
        Number of rows that start before they are submitted.
    limits, over : int
        Number of rows with a limit, and number of rows that exceeded it by more than 1 %.
    zero : int
        Number of rows with a run time of 0.
    ids : dict
        Job names that occur several times (``names``, ``rows``, ``overlaps``); None if jobs have no names.
    nodes : dict or None
        The same for nodes that jobs used exclusively.
    partly : bool
        Whether only some of the repeated names were examined.
    infeasible : list of Infeasible
        Jobs that can never run on the machine.
    demands : list of Demand
        By resource.
    span : dict of str to (float, float)
        First and last time of ``ran`` and ``unwaited``, s.
    median : float
        Median run time, s; NaN if there are too many rows.
    exact : bool
        Whether peaks are exact; otherwise they are peaks of means of bins.
    """

    name: str
    tally: Tally
    early: int = 0
    limits: int = 0
    over: int = 0
    zero: int = 0
    ids: dict[str, int] | None = None
    nodes: dict[str, int] | None = None
    partly: bool = False
    infeasible: list[Infeasible] = field(default_factory=list)
    demands: list[Demand] = field(default_factory=list)
    span: dict[str, tuple[float, float]] = field(default_factory=dict)
    median: float = float("nan")
    exact: bool = True

    @property
    def rows_conserved(self) -> bool:
        """Return whether each row was kept, or excluded for a reason."""
        return self.tally.read == self.tally.kept + sum(self.tally.left_out.values())

    @property
    def conserved(self) -> bool:
        """Return whether all rows and all amounts are accounted for."""
        return self.rows_conserved and all(it.conserved for it in self.demands)


def audit(rows: Rows, machine: Machine) -> Audit:
    """Audit *rows* against the capacity of the *machine*.

    Raises
    ------
    InputError
        If no row is of a job that ran.

    Notes
    -----
    Rows are read once if they fit in memory (`KEPT`), otherwise twice: first for their time range, then into bins.

    References
    ----------
    Specification of methods, section 10.
    """
    tally, first = Tally(), _First(machine)
    for block in rows.blocks(tally):
        first.add(block)
    if not tally.kept:
        left = ", ".join(f"{count} {reason}" for reason, count in tally.left_out.items() if count)
        raise InputError(f"no usable job among {tally.read:,} rows ({left}); expected at least one", path=rows.name)
    exact = first.kept is not None
    again: Iterable[Block] = first.kept if first.kept is not None else rows.blocks(Tally())
    found = first.audit(rows.name, tally)
    second = _Second(first, exact)
    for block in again:
        second.add(block)
    second.finish(found, machine)
    return found


_Key = tuple[str, str]
_VIEWS = ("ran", "unwaited")


class _First:
    """First iteration over the rows."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.kept: list[Block] | None = []
        self._rows = 0
        self.seen: Seen | None = None
        self.span = dict.fromkeys(_VIEWS, (np.inf, -np.inf))
        self.requested: dict[_Key, float] = {}
        self.areas: dict[str, dict[_Key, float]] = {view: {} for view in _VIEWS}
        self._counts = {"early": 0, "limits": 0, "over": 0, "zero": 0}
        self._infeasible: dict[tuple[str, str], Infeasible] = {}

    def add(self, block: Block) -> None:
        for key, amount in _parts(block):
            self.requested[key] = self.requested.get(key, 0.0) + float(amount.sum())
        self._check(block)
        block = _of_those_that_ran(block)
        self._count(block)
        for view, start, end in _views(block):
            known = ~np.isnan(start)
            if known.any():
                low, high = self.span[view]
                self.span[view] = min(low, float(start[known].min())), max(high, float(end[known].max()))
            areas = self.areas[view]
            for key, amount in _parts(block):
                areas[key] = areas.get(key, 0.0) + float((amount * block.runtime)[known].sum())
        self._rows += len(block.ran)
        if block.ids is not None:
            self.seen = self.seen or Seen()
            self.seen.add(block.ids)
        if self.kept is not None:
            self.kept = [*self.kept, block] if self._rows <= KEPT else None

    def _count(self, block: Block) -> None:
        limited = ~np.isnan(block.limit) & (block.limit > 0)
        for name, found in (
            ("early", block.start < block.submit),
            ("limits", limited),
            ("over", limited & (block.runtime > _BEYOND * block.limit)),
            ("zero", block.runtime == 0),
        ):
            self._counts[name] += int(np.count_nonzero(found))

    def _check(self, block: Block) -> None:
        """Count jobs that can never run on the machine, including jobs that never ran."""
        machine = self._machine
        alone = block.nodes == 1
        for name, amount in block.amounts.items():
            for of, capacities, among in (("machine", machine.totals, None), ("node", machine.largest, alone)):
                if name not in capacities or name == "nodes":
                    continue
                over = amount > capacities[name] * _MORE
                self._found(name, of, over if among is None else over & among, amount, capacities[name])
        if "nodes" in machine.totals:
            self._found("nodes", "machine", block.nodes > machine.totals["nodes"], block.nodes, machine.totals["nodes"])
        if block.kinds is not None and machine.kinds and "gpus" in block.amounts:
            gpus = block.amounts["gpus"]
            have = {text: sum(machine.kinds.get(it, 0.0) for it in text.split(_BAR)) for text in set(block.kinds)}
            there = np.array([have[text] if text else np.inf for text in block.kinds])
            self._found("gpu_kind", "machine", (gpus > there * _MORE) & (gpus > 0), gpus, 0.0)

    def _found(self, name: str, of: str, over: npt.NDArray[np.bool_], amount: FloatArray, capacity: float) -> None:
        if over.any():
            before = self._infeasible.get((name, of)) or Infeasible(name, of, 0, 0.0, capacity)
            most = max(before.most, float(amount[over].max()))
            self._infeasible[name, of] = before._replace(jobs=before.jobs + int(np.count_nonzero(over)), most=most)

    def audit(self, name: str, tally: Tally) -> Audit:
        """Return the results of the first iteration."""
        span = {view: it for view, it in self.span.items() if np.isfinite(it[0])}
        return Audit(
            name,
            tally,
            infeasible=[*self._infeasible.values()],
            span=span,
            exact=self.kept is not None,
            early=self._counts["early"],
            limits=self._counts["limits"],
            over=self._counts["over"],
            zero=self._counts["zero"],
        )


class _Second:
    """Second iteration over the rows, or evaluation of the rows kept in memory."""

    def __init__(self, first: _First, exact: bool) -> None:
        self._first, self._exact = first, exact
        self._repeated = None if first.seen is None else first.seen.names()
        self._ids, self._nodes = Busy(), Busy()
        self._names_nodes = False
        self._bins = {
            view: {key: Bins(*first.span[view]) for key in first.areas[view] if np.isfinite(first.span[view][0])}
            for view in _VIEWS
        }
        self._blocks: list[Block] = []

    def add(self, block: Block) -> None:
        block = block if self._exact else _of_those_that_ran(block)
        self._twice(block)
        if self._exact:
            self._blocks.append(block)
            return
        for view, start, end in _views(block):
            known = ~np.isnan(start)
            for key, amount in _parts(block):
                self._bins[view][key].add(start[known], end[known], amount[known])

    def _twice(self, block: Block) -> None:
        if block.ids is not None and self._repeated is not None and len(self._repeated):
            places = np.searchsorted(self._repeated, block.ids)
            again = self._repeated[np.minimum(places, len(self._repeated) - 1)] == block.ids
            self._ids.add(block.ids[again], block.start[again], block.end[again])
        if block.node_lists is not None:
            self._names_nodes = True
            names = [text.split(_BAR) for text in block.node_lists]
            rows: IntArray = np.repeat(np.arange(len(names)), [len(it) for it in names])
            keys = keys_of([name for it in names for name in it])
            self._nodes.add(keys, block.start[rows], block.end[rows])

    def finish(self, found: Audit, machine: Machine) -> None:
        """Add the results to the audit."""
        found.ids = None if self._repeated is None else self._ids.found()
        found.nodes = self._nodes.found() if self._names_nodes else None
        seen = self._first.seen
        found.partly = self._ids.full or self._nodes.full or (seen is not None and seen.full)
        uses = self._steps(machine) if self._exact else self._means(machine)
        if self._exact:
            found.median = float(np.median(np.concatenate([block.runtime for block in self._blocks])))
        for key, asked in sorted(self._first.requested.items(), key=_order):
            areas = (self._first.areas["ran"].get(key, 0.0), self._first.areas["unwaited"].get(key, 0.0))
            ran, unwaited = uses["ran"].get(key), uses["unwaited"].get(key)
            found.demands.append(Demand(*key, _capacity(machine, key), asked, ran, unwaited, areas))

    def _means(self, machine: Machine) -> dict[str, dict[_Key, Usage]]:
        return {
            view: {key: it.usage(_limit(machine, key)) for key, it in bins.items()} for view, bins in self._bins.items()
        }

    def _steps(self, machine: Machine) -> dict[str, dict[_Key, Usage]]:
        """Return exact steps of the rows kept in memory."""
        uses: dict[str, dict[_Key, Usage]] = {view: {} for view in _VIEWS}
        for view in _VIEWS:
            start, end = (np.concatenate(times) for times in zip(*_of_view(self._blocks, view), strict=True))
            known = ~np.isnan(start)
            if not known.any():
                continue
            steps = Steps(start[known], end[known])
            by_block = [dict(_parts(block)) for block in self._blocks]
            for key in self._first.areas[view]:
                amount = [
                    parts.get(key, np.zeros(len(block.ran)))
                    for parts, block in zip(by_block, self._blocks, strict=True)
                ]
                uses[view][key] = steps.usage(np.concatenate(amount)[known], _limit(machine, key))
        return uses


def _of_those_that_ran(block: Block) -> Block:
    rows = block.ran

    def chosen(column: Any) -> Any:
        if isinstance(column, dict):
            return {name: amounts[rows] for name, amounts in column.items()}
        return column[rows] if isinstance(column, np.ndarray) else only(column, rows)

    return block if rows.all() else Block(*map(chosen, block))


def _views(block: Block) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Yield the times of usage: as recorded, and if no job waited."""
    yield "ran", block.start, block.start + block.runtime
    yield "unwaited", block.submit, block.submit + block.runtime


def _of_view(blocks: Iterable[Block], view: str) -> Iterator[tuple[FloatArray, FloatArray]]:
    for block in blocks:
        yield from ((start, end) for name, start, end in _views(block) if name == view)


def _parts(block: Block) -> Iterator[tuple[_Key, FloatArray]]:
    """Yield amounts by resource, and GPUs by type for jobs that used or request one type only."""
    for name, amount in block.amounts.items():
        yield (name, ""), amount
    known = block.held_kinds or block.kinds
    if known is None or "gpus" not in block.amounts:
        return
    kinds = np.array(known)
    for kind in np.unique(kinds).tolist():
        if kind and _BAR not in kind:
            yield ("gpus", kind), np.where(kinds == kind, block.amounts["gpus"], 0.0)


def _capacity(machine: Machine, key: _Key) -> float:
    resource, kind = key
    return (machine.kinds if kind else machine.totals).get(kind or resource, float("nan"))


def _limit(machine: Machine, key: _Key) -> float:
    capacity = _capacity(machine, key)
    return np.inf if np.isnan(capacity) else capacity


_FIRST = ("cores", "memory", "gpus")


def _order(entry: tuple[_Key, float]) -> tuple[int, str, str]:
    (resource, kind), _ = entry
    return (_FIRST.index(resource) if resource in _FIRST else len(_FIRST), resource, kind)
