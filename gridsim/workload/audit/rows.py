"""Rows of a log for the audit, read once or twice: jobs that ran, excluded rows with reasons, and repeated names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.capacity import WHOLE_GPU
from gridsim.model.time import NEVER, FloatArray, IntArray, seconds
from gridsim.model.workload import Workload
from gridsim.workload.formats.columns import Column
from gridsim.workload.formats.stream import Paths, files_of, name_of_all
from gridsim.workload.formats.table.cells import Cells, TableFile, joined
from gridsim.workload.formats.table.mapping import TableMapping
from gridsim.workload.formats.table.values import AMOUNTS, Facts, facts_of, split_cell, texts_of
from gridsim.workload.formats.task_demands import GPU_TYPES
from gridsim.workload.problems import SHOWN_LINES

MOST = 1 << 20
"""Largest number of rows with repeated names that are examined; the report states if there are more."""

_BITS = 27


def keys_of(names: Sequence[Any]) -> IntArray:
    """Return 64-bit numbers for names, equal for equal names in this process."""
    return np.fromiter(map(hash, names), dtype=np.int64, count=len(names))


class Seen:
    """Set of names that may have occurred before, without false negatives and with few false positives.

    Attributes
    ----------
    full : bool
        Whether more than `MOST` such names were found; only the first are kept.
    """

    def __init__(self) -> None:
        self._bits = np.zeros(1 << (_BITS - 3), dtype=np.uint8)
        self._again = Column(np.int64)
        self.full = False

    def add(self, keys: IntArray) -> None:
        """Add names in their order."""
        distinct, count = np.unique(keys, return_counts=True)
        slot = distinct & ((1 << _BITS) - 1)
        place, bit = slot >> 3, np.left_shift(1, slot & 7).astype(np.uint8)
        found = distinct[(count > 1) | ((self._bits[place] & bit) > 0)]
        np.bitwise_or.at(self._bits, place, bit)
        self.full |= len(self._again) + len(found) > MOST
        self._again.add(found[: max(MOST - len(self._again), 0)])

    def names(self) -> IntArray:
        """Return all names that may occur twice, in ascending order."""
        return np.unique(self._again.close())


class Busy:
    """Rows of names with their times of usage."""

    def __init__(self) -> None:
        self._columns = [Column(np.int64), Column(np.float64), Column(np.float64)]
        self.full = False

    def add(self, keys: IntArray, start: FloatArray, end: FloatArray) -> None:
        """Add rows."""
        left = max(MOST - len(self._columns[0]), 0)
        self.full |= len(keys) > left
        for column, values in zip(self._columns, (keys, start, end), strict=True):
            column.add(values[:left])

    def found(self) -> dict[str, int]:
        """Return the number of repeated names (``names``), of their rows (``rows``), and of overlaps (``overlaps``).

        An overlap is a row that begins before an earlier row of the same name ends.

        Examples
        --------
        >>> busy = Busy()
        >>> busy.add(np.array([7, 7, 7, 8]), np.array([0.0, 5.0, 9.0, 0.0]), np.array([9.0, 6.0, 12.0, 5.0]))
        >>> busy.found()
        {'names': 1, 'rows': 3, 'overlaps': 1}
        """
        keys, start, end = (column.close() for column in self._columns)
        order = np.lexsort((start, keys))
        keys, start, end = keys[order], start[order], end[order]
        begins = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
        counts = np.diff(np.append(begins, len(keys)))
        overlaps = 0
        several = counts > 1
        for begin, count in zip(begins[several].tolist(), counts[several].tolist(), strict=True):
            first, last = start[begin + 1 : begin + count], end[begin : begin + count - 1]
            overlaps += int(np.count_nonzero(first < _latest(last)))
        return {"names": int(several.sum()), "rows": int(counts[several].sum()), "overlaps": overlaps}


def _latest(ends: FloatArray) -> npt.NDArray[np.float64]:
    """Return the running maximum of the known ends."""
    return np.fmax.accumulate(ends)


_MOST_DAMAGED = 0.05
_BAR = "|"
_Mask = npt.NDArray[np.bool_]
T = TypeVar("T")


class Block(NamedTuple):
    """A block of rows, with NaN for missing values.

    Attributes
    ----------
    ran : (n,) bool
        Whether a row is of a job that ran; other rows are requests only.
    submit, start, end, runtime, limit : (n,) float64
        s.
    amounts : mapping of str to (n,) float64
        Requested amounts of the whole job; fractional cores are not rounded.
    nodes : (n,) float64
        Number of requested nodes.
    kinds : sequence of str or None
        GPU types that a job can use, separated by bars.
    held_kinds : sequence of str or None
        The same, or the types that it used if it requested none; None for *kinds*.
    ids : (n,) int64 or None
        Numbers of the job names (`keys_of`).
    node_lists : sequence of str or None
        Nodes that they used exclusively, separated by bars.
    """

    ran: _Mask
    submit: FloatArray
    start: FloatArray
    end: FloatArray
    runtime: FloatArray
    limit: FloatArray
    amounts: Mapping[str, FloatArray]
    nodes: FloatArray
    kinds: Sequence[str] | None = None
    held_kinds: Sequence[str] | None = None
    ids: IntArray | None = None
    node_lists: Sequence[str] | None = None


@dataclass
class Tally:
    """Number of rows read, number excluded by reason, and anomalies in the others.

    Attributes
    ----------
    damaged : list of str
        First damaged rows.
    not_span : int
        Number of rows with a run time other than the time from start to end.
    """

    read: int = 0
    kept: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    not_span: int = 0
    runtimes_logged: int = 0


class Rows(Protocol):
    """A source of rows."""

    name: str

    def blocks(self, tally: Tally) -> Iterator[Block]:
        """Yield all rows, and count them in *tally*."""
        ...


class TableRows:
    """Rows of a table, with the columns of its mapping.

    Parameters
    ----------
    paths : path or sequence of paths
        File of the table, or several files.
    mapping : TableMapping
        Meaning of its columns.
    zone : str, optional
        Time zone of times without one; by default that of the mapping.
    """

    def __init__(self, paths: Paths, mapping: TableMapping, zone: str | None = None) -> None:
        self._files = files_of(paths, "tables")
        self.name = name_of_all(paths, self._files)
        self._mapping, self._zone = mapping, zone or mapping.timezone
        self._joins = joined(mapping, self._files[0])

    def blocks(self, tally: Tally) -> Iterator[Block]:
        """Yield all rows, and count them in *tally*.

        Raises
        ------
        InputError
            If more than 5 % of the rows are damaged, because the mapping is then probably wrong.
        """
        for path in self._files:
            file = TableFile(path, self._mapping)
            for cells in file.blocks():
                yield from self._taken(cells, file, tally)
        if tally.left_out["damaged"] > _MOST_DAMAGED * tally.read:
            many = f"{tally.left_out['damaged']:,} of {tally.read:,} rows"
            message = f"{many} do not match the mapping '{self._mapping.name}': {'; '.join(tally.damaged)}"
            raise InputError(message, path=self.name)

    def _taken(self, block: Cells, file: TableFile, tally: Tally) -> Iterator[Block]:
        tally.read += len(block.lines) + len(block.ragged)
        for line, width in block.ragged:
            _damaged(tally, f"row {line}: has {width} cells, the header {file.width}")
        cells, lines = dict(block.columns), block.lines
        stays = np.ones(len(lines), dtype=np.bool_)
        for name, (column, values) in self._mapping.filters.items():
            out = stays & np.array([cell in values for cell in cells[column]], dtype=np.bool_)
            tally.left_out[name] += int(np.count_nonzero(out))
            stays &= ~out
        for table in self._joins:
            cells |= table.columns(cells[table.table.key])
        n = len(lines)
        if not n:
            return
        facts = facts_of(self._mapping, cells, n, self._zone)
        sound = stays.copy()
        for each in facts.wrong:
            if sound[each.row]:
                problem = f"column '{each.column}' is '{each.text}'; expected {each.expected}"
                _damaged(tally, f"row {lines[each.row]}: {problem}")
            sound[each.row] = False
        yield self._block(facts, cells, sound, tally)

    def _block(self, facts: Facts, cells: Mapping[str, Sequence[str]], sound: _Mask, tally: Tally) -> Block:
        n = len(sound)
        span = facts.end - facts.start
        runtime = np.where(np.isnan(span), facts.runtime, span)
        pending = self._pending(cells, n)
        ran = sound.copy()
        for reason, out in (
            ("no submit time", np.isnan(facts.submit)),
            ("never ran", np.isnan(runtime) | pending),
            ("ends before it starts", runtime < 0),
        ):
            out = ran & out
            tally.left_out[reason] += int(np.count_nonzero(out))
            ran &= ~out
        tally.kept += int(np.count_nonzero(ran))
        told = ran & ~np.isnan(facts.runtime) & ~np.isnan(span)
        tally.runtimes_logged += int(np.count_nonzero(told))
        tally.not_span += int(np.count_nonzero(told & (np.abs(span - facts.runtime) > 1)))
        start = np.where(np.isnan(facts.start), facts.end - runtime, facts.start)
        amounts = {name: np.maximum(np.nan_to_num(it), 0) for name, it in facts.amounts.items() if name not in _SHAPES}
        nodes = facts.amounts.get("nodes", np.full(n, np.nan))
        if "nodes" in self._mapping.capacity or "exclusive" in facts.amounts:
            amounts["nodes"] = np.nan_to_num(nodes)
        lists = [texts_of(self._mapping, name, cells, n) for name in ("job", "name", "node_list")]
        ids = lists[0] if lists[0] is not None else lists[1]
        return Block(
            ran[sound],
            facts.submit[sound],
            start[sound],
            (start + runtime)[sound],
            runtime[sound],
            facts.estimate[sound],
            amounts={name: column[sound] for name, column in amounts.items()},
            nodes=nodes[sound],
            kinds=only(self._kinds(cells, n), sound),
            ids=None if ids is None else keys_of(ids)[sound],
            node_lists=only(lists[2], sound),
        )

    def _pending(self, cells: Mapping[str, Sequence[str]], n: int) -> _Mask:
        texts = texts_of(self._mapping, "status", cells, n)
        waiting = {word for word, meaning in self._mapping.status.items() if meaning == "pending"}
        if texts is None or not waiting:
            return np.zeros(n, dtype=np.bool_)
        return np.array([text in waiting for text in texts], dtype=np.bool_)

    def _kinds(self, cells: Mapping[str, Sequence[str]], n: int) -> Sequence[str] | None:
        texts = texts_of(self._mapping, "gpu_kind", cells, n)
        if texts is None:
            return None
        separator = self._mapping.columns["gpu_kind"].separator
        found = {text: _BAR.join(split_cell(text, separator)) for text in set(texts)}
        return [found[text] for text in texts]


_SHAPES = {"nodes", "tasks", "exclusive"} & {*AMOUNTS}


def only(texts: Sequence[T] | None, rows: _Mask) -> Sequence[T] | None:
    """Return the texts of the selected rows."""
    if texts is None or rows.all():
        return texts
    return [text for text, stays in zip(texts, rows.tolist(), strict=True) if stays]


def _damaged(tally: Tally, told: str) -> None:
    tally.left_out["damaged"] += 1
    if len(tally.damaged) < SHOWN_LINES:
        tally.damaged.append(told)


class LogRows:
    """Jobs of a log as its reader returned them."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self.name = str(workload.provenance.get("source", ""))

    def blocks(self, tally: Tally) -> Iterator[Block]:
        """Yield all jobs, and count them in *tally*."""
        log, n = self._workload, len(self._workload)
        tally.read += log.provenance.get("jobs_read", n)
        tally.kept += n
        tally.left_out["by the rules for damaged lines"] += tally.read - n
        started = log.logged_start
        submit, runtime = seconds(log.submit), seconds(log.runtime)
        start = np.full(n, np.nan) if started is None else np.where(started >= NEVER, np.nan, started / 1e6)
        amounts = {"cores": log.cores.astype(np.float64)}
        nodes = np.full(n, np.nan)
        kinds = held = None
        if (asked := log.demands) is not None:
            amounts |= {name: asked.total(name).astype(np.float64) for name in asked.each if name != "cores"}
            if asked.gpu.any():
                amounts["gpus"] = asked.total("gpu") / WHOLE_GPU
                texts = [_BAR.join(it) for it in asked.gpu_kinds.sets]
                kinds = held = [texts[place] for place in asked.gpu_kinds.of.tolist()]
                if GPU_TYPES in log.logged:
                    had, names = log.logged[GPU_TYPES].tolist(), log.names[GPU_TYPES]
                    held = [kind or (names[code] if code > 0 else "") for kind, code in zip(kinds, had, strict=True)]
            nodes = np.where(asked.min_nodes == asked.max_nodes, asked.min_nodes, np.nan)
        ran, limit = np.ones(n, dtype=np.bool_), seconds(log.estimate)
        yield Block(ran, submit, start, start + runtime, runtime, limit, amounts, nodes, kinds, held, log.job)
