"""Invariants of allocations: each run is complete, and no resource is used twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.allocations import Allocations
from gridsim.model.capacity import WHOLE_GPU, Capacity
from gridsim.model.time import NEVER, IntArray, seconds
from gridsim.model.windows import PlannedWindow
from gridsim.testing.violation import Violation, marked

Mask = npt.NDArray[np.bool_]


class Runs(NamedTuple):
    """Runs of jobs: job number, start, end and cores; whole microseconds."""

    job: IntArray
    start: IntArray
    end: IntArray
    cores: IntArray


class Failed(NamedTuple):
    """Failures of whole nodes: name of the node, begin and end, whole microseconds; those of a node do not overlap."""

    node: tuple[str, ...]
    down: IntArray
    up: IntArray


def misplaced(
    held: Allocations,
    runs: Runs | None,
    capacity: Capacity | None,
    tolerance: int,
    limit: int,
    awake: Allocations | None = None,
) -> Iterator[Violation]:
    """Yield violations of pieces.

    Parameters
    ----------
    held : Allocations
        Pieces, with job numbers instead of rows.
    runs : Runs or None
        All runs; None if unknown.
    capacity : Capacity or None
        Nodes of the machine; if unknown, only the 1000 thousandths of each GPU are checked.
    tolerance : int
        Tolerance of times, microseconds.
    limit : int
        Largest number of listed jobs of each kind.
    awake : Allocations, optional
        Pieces of all *runs*, which are stretches between suspensions; by default *held*.
    """
    checks = _Checks(held, tolerance, limit)
    if runs is not None:
        yield from _Checks(held if awake is None else awake, tolerance, limit).runs(runs)
    if capacity is not None:
        yield from checks.nodes(capacity)
    yield from checks.gpus()


def on_failed_nodes(held: Allocations, failures: Failed, tolerance: int, limit: int) -> Iterator[Violation]:
    """Yield the violation of the pieces of runs on failed nodes; other parameters are those of `misplaced`."""
    number = {name: index for index, name in enumerate(held.nodes)}
    node = np.array([number.get(name, -1) for name in failures.node], dtype=np.int64)
    bad = np.zeros(len(held), dtype=np.bool_)
    by_node = np.argsort(held.node, kind="stable")
    for one in np.unique(node[node >= 0]).tolist():
        first, last = np.searchsorted(held.node[by_node], (one, one + 1))
        rows, mine = by_node[first:last], np.flatnonzero(node == one)
        mine = mine[np.argsort(failures.down[mine], kind="stable")]  # they do not overlap
        before = np.searchsorted(failures.down[mine], held.end_us[rows] - tolerance) - 1
        bad[rows] = (before >= 0) & (failures.up[mine][before] > held.start_us[rows] + tolerance)
    yield from marked(
        "on-absent-node", bad, held.job, held.start_us, limit, lambda row: f"on {held.nodes[held.node[row]]}"
    )


def outside_reservations(
    held: Allocations,
    named: npt.NDArray[np.str_],
    windows: Sequence[PlannedWindow],
    capacity: Capacity,
    tolerance: int,
    limit: int,
    *,
    kill: bool,
) -> Iterator[Violation]:
    """Yield violations of reservations.

    Parameters
    ----------
    named : (n,) str
        The reservation that the job of each piece names; empty for none.
    windows : sequence of PlannedWindow
        The reservations.
    kill : bool
        Whether jobs end at their walltimes; otherwise their ends are unknown to a scheduler, and are not checked.
    """
    names, start, end = np.array([*held.nodes, ""])[held.node], held.start_us, held.end_us
    inside = np.zeros(len(held), dtype=np.bool_)
    place = {name: at for at, name in enumerate(capacity.nodes)}
    at_node = np.array([*(place.get(name, -1) for name in held.nodes), -1])[held.node]  # unknown nodes are reported
    for window in windows:
        there = np.isin(names, window.nodes)
        mine = there & (named == window.id) & (start >= window.begin - tolerance) & (start < window.over)
        inside |= mine & ((end <= window.end + tolerance) | (not kill))
    member = np.isin(named, [window.id for window in windows])
    yield from marked("outside-reservation", member & ~inside, held.job, start, limit)
    for window in windows if kill else ():
        others = np.isin(names, window.nodes) & (named != window.id) & (start >= window.announced)  # earlier ones stay
        rows = np.flatnonzero(others & (at_node >= 0) & (start < window.over) & (end > window.begin))
        if not len(rows):
            continue
        most = capacity.amounts["cores"] - (window.node_cores or NEVER)
        holds = (held.job[rows], np.maximum(start[rows], window.begin), np.minimum(end[rows], window.over))
        amount = np.maximum(held.amounts["cores"][rows], window.node_cores is None)
        labels = [f"cores of node {name} outside of reservation {window.id}" for name in capacity.nodes]
        used = (holds, at_node[rows], amount, np.maximum(most, 0))
        yield from oversubscribed("reserved-node", *used, labels, tolerance, limit)


class _Checks:
    def __init__(self, held: Allocations, tolerance: int, limit: int) -> None:
        self.held, self.tolerance, self.limit = held, tolerance, limit

    def found(
        self, kind: str, bad: Mask, job: IntArray, start: IntArray, detail: Callable[[int], str] | None = None
    ) -> Iterator[Violation]:
        """Yield the violation of the rows in *bad*, if there are any."""
        return marked(kind, bad, job, start, self.limit, detail)

    # -- runs --------------------------------------------------------------------------------------------------------

    def runs(self, runs: Runs) -> Iterator[Violation]:
        """Check that the pieces of each run add up to its cores, over exactly its time."""
        held = self.held
        runs = Runs(*(column[np.lexsort((runs.start, runs.job))] for column in runs))
        run = _run_of_each(held, runs)
        known = run >= 0
        yield from self.found("unknown-run", ~known, held.job, held.start_us)
        at = run[known]
        pieces = np.bincount(at, minlength=len(runs.job))
        # Jobs that request only pools have no nodes.
        yield from self.found("missing-pieces", (pieces == 0) & (runs.cores > 0), runs.job, runs.start)
        odd = np.abs(held.start_us[known] - runs.start[at]) > self.tolerance
        odd |= np.abs(held.end_us[known] - runs.end[at]) > self.tolerance
        wrong: Mask = np.bincount(at[odd], minlength=len(pieces)) > 0
        cores: IntArray = np.zeros(len(pieces), dtype=np.int64)
        np.add.at(cores, at, held.amounts["cores"][known])
        alone = np.bincount(at[~undisturbed(held.node, held.start_us, held.end_us)[known]], minlength=len(pieces)) == 0
        # An exclusive job holds all cores of its nodes; a node is held by at least one core.
        more = (cores > runs.cores) & ~alone & (cores > pieces)
        wrong |= (pieces > 0) & ((cores < runs.cores) | more)

        def detail(row: int) -> str:
            if cores[row] < runs.cores[row] or more[row]:
                return f"{cores[row]} of {runs.cores[row]} cores"
            return f"not allocated from {seconds(int(runs.start[row])):.15g} s to {seconds(int(runs.end[row])):.15g} s"

        yield from self.found("wrong-pieces", wrong, runs.job, runs.start, detail)

    # -- the machine -------------------------------------------------------------------------------------------------

    def nodes(self, capacity: Capacity) -> Iterator[Violation]:
        """Check that nodes and GPUs exist, and that no resource of a node is held twice."""
        held = self.held
        place = {name: number for number, name in enumerate(capacity.nodes)}
        where: IntArray = np.array([*(place.get(name, -1) for name in held.nodes), -1], dtype=np.int64)
        node = where[held.node]
        absent = (held.node >= 0) & (node < 0)
        gpus = np.append(capacity.gpus, 0)[node[held.gpu_row]]
        absent[held.gpu_row[held.gpu >= gpus]] = True

        def detail(row: int) -> str:
            name = held.nodes[held.node[row]] if held.node[row] >= 0 else "the pools"
            return f"node {name}" if node[row] < 0 else f"GPU {held.gpu[held.gpu_row == row].max()} of node {name}"

        yield from self.found("unknown-node", absent, held.job, held.start_us, detail)
        there = np.flatnonzero(node >= 0)
        for name, amount in held.amounts.items():
            size = capacity.amounts.get(name)
            if size is not None:
                names = [f"{name} of node {each}" for each in capacity.nodes]
                yield from self._over("node-oversubscribed", there, node[there], amount[there], size, names)

    def gpus(self) -> Iterator[Violation]:
        """Check that no GPU has more than 1000 thousandths."""
        held = self.held
        if not len(held.gpu):
            return
        node, gpu = held.node[held.gpu_row], held.gpu
        pairs, key = np.unique(np.stack([node, gpu], axis=1), axis=0, return_inverse=True)
        names = [f"thousandths of GPU {gpu} of node {(*held.nodes, '')[node]}" for node, gpu in pairs.tolist()]
        size: IntArray = np.full(len(pairs), WHOLE_GPU)
        yield from self._over("gpu-oversubscribed", held.gpu_row, key.reshape(-1), held.gpu_share, size, names)

    def _over(
        self, kind: str, rows: IntArray, key: IntArray, amount: IntArray, size: IntArray, names: list[str]
    ) -> Iterator[Violation]:
        held = self.held
        holds = (held.job[rows], held.start_us[rows], held.end_us[rows])
        yield from oversubscribed(kind, holds, key, amount, size, names, self.tolerance, self.limit)


def _run_of_each(held: Allocations, runs: Runs) -> IntArray:
    """Return the row of *runs* (by job and start) of each piece; -1 if there is none."""
    numbers, first, count = np.unique(runs.job, return_index=True, return_counts=True)
    if not len(numbers):
        return np.full(len(held), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(numbers, held.job), len(numbers) - 1)
    known = (numbers[place] == held.job) & (held.run >= 1) & (held.run <= count[place])
    return np.where(known, first[place] + held.run - 1, -1)


def oversubscribed(
    kind: str,
    holds: tuple[IntArray, IntArray, IntArray],
    key: IntArray,
    amount: IntArray,
    size: IntArray,
    names: Sequence[str],
    tolerance: int,
    limit: int,
) -> Iterator[Violation]:
    """Yield periods in which use exceeds capacity; intervals are half open.

    Parameters
    ----------
    kind : str
        Kind of the violation.
    holds : tuple of (k,) int64
        Job numbers, and starts and ends of their holds, whole microseconds.
    key, amount : (k,) int64
        Index of the held resource, and the amount.
    size : (s,) int64
        Capacity of each resource.
    names : sequence of str
        Names of the resources.
    tolerance : int
        Tolerance of times, microseconds.
    limit : int
        Largest number of listed jobs.
    """
    job, start = holds[0], holds[1] + tolerance
    end = np.maximum(holds[2], start)
    of, instants = np.concatenate([key, key]), np.concatenate([start, end])
    order = np.lexsort((instants, of))
    of, instants, change = of[order], instants[order], np.concatenate([amount, -amount])[order]
    if not len(of):
        return
    first = np.flatnonzero(np.r_[True, (of[1:] != of[:-1]) | (instants[1:] != instants[:-1])])
    of, instants = of[first], instants[first]
    used = np.cumsum(np.add.reduceat(change, first))  # all use of one resource is released by its last end
    over = used > size[of]
    begins = np.flatnonzero(over & ~np.r_[False, over[:-1] & (of[1:] == of[:-1])])
    if not len(begins):
        return
    shown = begins[np.argsort(instants[begins], kind="stable")][:limit]
    straws = [job[(key == of[at]) & (start == instants[at])][:1] for at in shown]
    at = shown[0]
    detail = f"{used[at]:,} of {size[of[at]]:,} {names[of[at]]} in use"
    when = tuple(seconds(int(instant) - tolerance) for instant in instants[shown])
    yield Violation(kind, len(begins), tuple(np.concatenate(straws).tolist()), when, detail)


def undisturbed(node: IntArray, start: IntArray, end: IntArray) -> Mask:
    """Return which pieces have their node exclusively from start to end; no piece with a node below 0 does."""
    found: Mask = np.zeros(len(node), dtype=np.bool_)
    rows = np.flatnonzero(node >= 0)
    rows = rows[np.lexsort((start[rows], node[rows]))]
    if not len(rows):
        return found
    node, start, end = node[rows], start[rows], end[rows]
    ends, rank = np.unique(end, return_inverse=True)
    latest = np.maximum.accumulate(node * len(ends) + rank.reshape(-1)) % len(ends)  # end on its node so far, by rank
    same = node[1:] == node[:-1]
    before = np.r_[True, ~same | (ends[latest[:-1]] <= start[1:])]
    after = np.r_[~same | (end[:-1] <= start[1:]), True]
    found[rows] = before & after
    return found
