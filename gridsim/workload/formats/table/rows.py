"""Rows of a table to jobs: what a mapping names of them, screened as those of every log, and what they ask for."""

from __future__ import annotations

import csv
import io
import lzma
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError, UnknownNameError
from gridsim.model.capacity import WHOLE_GPU
from gridsim.model.demand import NO_LIMIT, Demands, WordSets
from gridsim.model.time import MICROSECOND, FloatArray, IntArray
from gridsim.model.workload import LABELS, UNKNOWN, Workload
from gridsim.workload.formats.asked import told
from gridsim.workload.formats.columns import Column, Screen
from gridsim.workload.formats.in_use import MOST_IN_USE, most_of
from gridsim.workload.formats.swf_header import CANCELLED, FIELDS
from gridsim.workload.formats.swf_rows import (
    ALLOCATED,
    ESTIMATE,
    JOB,
    REQUESTED,
    RUNTIME,
    STATUS,
    SUBMIT,
    USER,
    WAIT,
    SwfRows,
)
from gridsim.workload.formats.table.mapping import ColumnRule, TableMapping
from gridsim.workload.formats.table.values import ABSENT, TextCodes, Wrong, numbers, words
from gridsim.workload.problems import SHOWN_LINES, Problems

__all__ = ["TableRows"]

_BLOCK = 1 << 16
"""Rows that become columns together."""

_MOST_DAMAGED = 0.05
"""Share of damaged rows from which on it is the mapping that is wrong."""

_DATED = 1e8
"""Least number of seconds that is taken for one since 1970 (1973) rather than since the start of a trace."""

_CODES = {"completed": 1, "failed": 0, "cancelled": CANCELLED, "killed_walltime": 0, "pending": UNKNOWN}
"""Status codes of SWF."""

_CEILING = 1e-6
"""What a scale may add to a whole number: not rounded up for that."""


class TableRows(SwfRows):
    """Takes rows of a table, makes a workload of them.

    Parameters
    ----------
    path : object
        The table, for what is said of it.
    cores : int or None
        Cores that a job may have at most.
    problems : Problems
        What was found in it.
    mapping : TableMapping
        What its columns are.
    zone : str
        Of times that say none.
    """

    def __init__(self, path: object, cores: int | None, problems: Problems, mapping: TableMapping, zone: str) -> None:
        super().__init__(path, cores, problems)
        self.in_order = not mapping.sort
        self._mapping, self._zone = mapping, zone
        self._side: dict[str, Column] = {}
        self._texts = {label: TextCodes() for label in (*LABELS, "account", "gpu_kind", "features")}
        self._rows = 0
        self._damaged: list[str] = []
        self._damaged_rows = 0
        self._left_out: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()
        self._dated = False

    def read(self, stream: IO[bytes]) -> None:
        """Read all rows.

        Raises
        ------
        InputError
            For a column that is not there, and where more than 5 % of the rows are damaged.
        """
        reader = csv.reader(
            io.TextIOWrapper(stream, "utf-8", errors="replace", newline=""), delimiter=self._mapping.delimiter
        )
        header = list(self._mapping.header) or [name.strip() for name in next(reader, [])]
        for name in self._mapping.named:
            if name not in header:
                raise UnknownNameError(
                    f"column of {self.path}, which the mapping '{self._mapping.name}' names", name, header
                )
        first = 1 if self._mapping.header else 2
        try:
            while block := list(islice(reader, _BLOCK)):
                self._take(block, header, first + self._rows)
                self._rows += len(block)
        except (csv.Error, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            wrong = f"cannot be read on ({error}); expected cells between '{self._mapping.delimiter}'"
            raise InputError(wrong, path=self.path, line=first + self._rows) from error
        self.lines = first - 1 + self._rows
        if self._damaged_rows > _MOST_DAMAGED * self._rows:
            many = f"{self._damaged_rows:,} of {self._rows:,} rows"
            told = f"{many} are not what the mapping '{self._mapping.name}' says: {'; '.join(self._damaged)}"
            raise InputError(told, path=self.path)

    def _take(self, block: list[list[str]], header: Sequence[str], first: int) -> None:
        """Take some rows, of which the first stands on line *first*."""
        lines = np.arange(first, first + len(block))
        whole = np.array([len(row) == len(header) for row in block])
        for row in np.flatnonzero(~whole).tolist():
            self._wrong(first + row, f"has {len(block[row])} cells, the header {len(header)}")
        kept = [row for row, good in zip(block, whole, strict=True) if good]
        lines = lines[whole]
        cells = dict(zip(header, zip(*kept, strict=True), strict=True)) if kept else {}
        if not kept:
            return
        stays = np.ones(len(kept), dtype=np.bool_)
        for name, (column, values) in self._mapping.filters.items():
            out = stays & np.array([cell in values for cell in cells[column]])
            self._left_out[name] += int(np.count_nonzero(out))
            stays &= ~out
        if not stays.any():
            return
        chosen = {
            name: [cell.strip() for cell, good in zip(cells[name], stays, strict=True) if good]
            for name in self._mapping.named
        }
        self._jobs(chosen, lines[stays])

    def _wrong(self, line: int, told: str) -> None:
        self._damaged_rows += 1
        if len(self._damaged) < SHOWN_LINES:
            self._damaged.append(f"row {line}: {told}")
        self.problems.found("damaged-row", [line], value=told)

    # -- one block of jobs ---------------------------------------------------------------------------------------------

    def _jobs(self, cells: dict[str, list[str]], lines: IntArray) -> None:
        wrong: list[Wrong] = []
        n = len(lines)

        def column(name: str) -> FloatArray:
            rule = self._mapping.columns.get(name)
            return np.full(n, np.nan) if rule is None else self._numbers(rule, cells, n, wrong)

        submit, start, end = column("submit"), column("start"), column("end")
        runtime, estimate = column("runtime"), column("estimate")
        amounts = {name: column(name) for name in ("cores", "memory", "gpus", "nodes", "tasks", "exclusive")}
        others = {name: self._numbers(rule, cells, n, wrong) for name, rule in self._mapping.resources.items()}
        side = self._asked(amounts, others, lines)
        side["kinds"], side["features"] = (self._words(name, cells, n) for name in ("gpu_kind", "features"))
        sound = np.ones(n, dtype=np.bool_)
        for each in wrong:
            if sound[each.row]:
                self._wrong(int(lines[each.row]), f"column '{each.column}' is '{each.text}'; expected {each.expected}")
            sound[each.row] = False
        parts = side.pop("parts")
        for row in np.flatnonzero((parts > 0) & sound).tolist():
            self._wrong(
                int(lines[row]),
                f"a task asks for {parts[row] / WHOLE_GPU:g} GPUs; expected a part of one, or whole ones",
            )
        sound &= parts == 0
        runtime, start = self._times(start, end, runtime, np.where(sound, lines, 0))
        table = np.full((n, len(FIELDS)), -1.0)
        table[:, JOB] = len(self._side.get("line", ())) + np.cumsum(sound) - 1
        table[:, SUBMIT] = np.where(np.isnan(submit), -1, submit)
        table[:, WAIT] = np.where(np.isnan(start) | np.isnan(submit), -1, start - submit)
        table[:, RUNTIME] = np.where(np.isnan(runtime), -1, runtime)
        table[:, ESTIMATE] = np.where(np.isnan(estimate), -1, estimate)
        table[:, REQUESTED] = table[:, ALLOCATED] = side.pop("wide")
        status = self._status_codes(cells, n)
        table[:, STATUS] = np.where(np.isnan(runtime), CANCELLED, status)
        for place, label in enumerate(LABELS, USER):
            table[:, place] = self._codes("name" if label == "executable" else label, label, cells, n)
        side |= {
            "line": lines,
            "account": self._codes("account", "account", cells, n),
            "number": self._numbers_of(cells, n),
        }
        self._dated |= bool(np.nanmax(submit, initial=0) >= _DATED)
        for name, values in side.items():
            self._side.setdefault(name, Column(np.int64)).add(values[sound])
        self.add(table[sound], lines[sound])

    def _numbers(self, rule: ColumnRule, cells: dict[str, list[str]], n: int, wrong: list[Wrong]) -> FloatArray:
        texts = cells[rule.column] if rule.column else [rule.value or ""] * n
        return numbers(rule, texts, cells[rule.times] if rule.times else None, self._zone, wrong)

    def _asked(
        self, amounts: dict[str, FloatArray], others: dict[str, FloatArray], lines: IntArray
    ) -> dict[str, IntArray]:
        """What each job asks for, of each task; ``wide``: its cores, ``parts``: thousandths of GPU that cannot be."""
        nodes = np.nan_to_num(amounts["nodes"]).astype(np.int64)
        tasks = np.where(np.isnan(amounts["tasks"]), np.maximum(nodes, 1), np.nan_to_num(amounts["tasks"])).astype(
            np.int64
        )
        tasks = np.maximum(tasks, 1)
        found = {"tasks": tasks, "nodes": nodes, "exclusive": np.nan_to_num(amounts["exclusive"]).astype(np.int64)}
        total = np.zeros(len(lines))
        for name, values in (("cores", amounts["cores"]), ("memory", amounts["memory"]), *others.items()):
            asked = np.maximum(np.nan_to_num(values), 0)
            total += asked
            found[f"each {name}"] = np.ceil(asked / tasks - _CEILING).astype(np.int64)
        gpus = np.rint(np.maximum(np.nan_to_num(amounts["gpus"]), 0) * WHOLE_GPU).astype(np.int64)
        each = -(-gpus // tasks)
        found["gpu"] = each
        found["parts"] = np.where((each > WHOLE_GPU) & (each % WHOLE_GPU != 0), each, 0)
        cores = np.ceil(np.maximum(np.nan_to_num(amounts["cores"]), 0) - _CEILING).astype(np.int64)
        found["plain"] = cores
        # Who asks for something else needs no cores; who asks for nothing at all has no size.
        found["wide"] = np.where((cores < 1) & ((total > 0) | (gpus > 0)), 1, cores)
        return found

    def _times(
        self, start: FloatArray, end: FloatArray, runtime: FloatArray, lines: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Runtimes and starts: of three times that disagree, start and end hold, for they held the machine."""
        span = end - start
        other = (np.abs(span - runtime) > 1) & (lines > 0)
        if other.any():
            rows = np.flatnonzero(other)
            first = rows[0]
            rule = self.problems.found(
                "runtime-not-span",
                lines[rows[:SHOWN_LINES]].tolist(),
                count=len(rows),
                value=f"a runtime of {runtime[first]:g} s, {span[first]:g} s from start to end",
            )
            if rule == "skip":
                runtime = np.where(other, np.nan, runtime)
                return runtime, np.where(other, np.nan, start)
            runtime = np.where(other & (rule == "repair"), span, runtime)
        runtime = np.where(np.isnan(runtime), span, runtime)
        return runtime, np.where(np.isnan(start), end - runtime, start)

    def _status_codes(self, cells: dict[str, list[str]], n: int) -> IntArray:
        rule = self._mapping.columns.get("status")
        if rule is None or not rule.column:
            return np.full(n, UNKNOWN)
        texts = cells[rule.column]
        self._unknown.update(text for text in texts if text not in self._mapping.status and text not in ABSENT)
        codes = [_CODES.get(self._mapping.status.get(text, ""), UNKNOWN) for text in texts]
        return np.array(codes, dtype=np.int64)

    def _codes(self, ours: str, label: str, cells: dict[str, list[str]], n: int) -> IntArray:
        rule = self._mapping.columns.get(ours)
        if rule is None:
            return np.full(n, UNKNOWN)
        texts = cells[rule.column] if rule.column else [rule.value or ""] * n
        return self._texts[label].column(texts)

    def _words(self, name: str, cells: dict[str, list[str]], n: int) -> IntArray:
        """Numbers of sets of words, as texts between bars; 0 for none."""
        rule = self._mapping.columns.get(name)
        if rule is None:
            return np.zeros(n, dtype=np.int64)
        texts = cells[rule.column] if rule.column else [rule.value or ""] * n
        sets = ["|".join(words(text, rule.separator)) for text in texts]
        return np.maximum(self._texts[name].column(sets), 0)

    def _numbers_of(self, cells: dict[str, list[str]], n: int) -> IntArray:
        """Numbers of jobs, -1 where they have none."""
        rule = self._mapping.columns.get("job")
        if rule is None or not rule.column:
            return np.full(n, UNKNOWN)
        return np.array(
            [
                int(text) if text.isascii() and text.isdigit() and len(text) < 18 else UNKNOWN
                for text in cells[rule.column]
            ],
            dtype=np.int64,
        )

    def keep(self, table: FloatArray, numbers: IntArray) -> None:
        screen = Screen(self.problems, numbers, FIELDS)
        early = (table[:, WAIT] < 0) & (table[:, WAIT] != -1) & (table[:, RUNTIME] >= 0) & (table[:, SUBMIT] >= 0)
        rows = screen.find("start-before-submit", early, WAIT, table[:, WAIT])
        table[rows, SUBMIT] += table[rows, WAIT]
        table[rows, WAIT] = 0
        super().keep(table[screen.keep], numbers[screen.keep])

    # -- all jobs ------------------------------------------------------------------------------------------------------

    def nothing(self) -> str:
        found = ", ".join(f"{problem.count} {problem.kind}" for problem in self.problems)
        return f"no usable job among {self._rows:,} rows{f' ({found})' if found else ''}; expected at least one"

    def workload(self, sha256: str) -> Workload:
        """All jobs that were kept."""
        workload = super().workload(sha256)
        rows = workload.job
        side = {name: column.close()[rows] for name, column in self._side.items()}
        demands = self._demands(side)
        job = side["number"] if _names_jobs(side["number"]) else side["line"] - (1 if self._mapping.header else 2) + 1
        origin = int(workload.submit[0]) // MICROSECOND
        labels: dict[str, npt.NDArray[Any]] = {**workload.labels, "account": side["account"]}
        labels = {label: values for label, values in labels.items() if (values != UNKNOWN).any()}
        clock = {"clock": {"origin": origin, "zone": self._zone}} if self._dated else {}
        workload = replace(
            workload,
            job=job,
            cores=workload.cores if demands is None else demands.cores,
            labels=labels,
            names={label: self._texts[label].names for label in labels},
            demands=demands,
        )
        workload = replace(
            workload,
            submit=workload.submit - origin * MICROSECOND,
            cores_stated=self.machine or most_of(workload),
        )
        return workload.with_provenance(
            format="table",
            mapping=self._mapping.name,
            cores_from="given" if self.machine else MOST_IN_USE,
            header={"UnixStartTime": [str(origin)]} if self._dated else {},
            **clock,
            origin_shift=f"{origin} s becomes 0 s",
            left_out=dict(self._left_out),
            damaged=list(self._damaged),
            statuses_unknown=dict(self._unknown),
            problems=self.problems.to_json(),
            **({} if demands is None else {"demands": told(demands)}),
        )

    def _demands(self, side: dict[str, IntArray]) -> Demands | None:
        """What the jobs ask for; None where the mapping knows of cores alone."""
        told = {"memory", "gpus", "nodes", "tasks", "gpu_kind", "features", "exclusive"} & {*self._mapping.columns}
        if not told and not self._mapping.resources:
            return None
        none = np.zeros(len(side["tasks"]), dtype=np.int64)
        each = {name.removeprefix("each "): values for name, values in side.items() if name.startswith("each ")}
        nodes = side["nodes"]
        return Demands(
            plain=none,
            tasks=side["tasks"],
            each={name: values for name, values in each.items() if values.any()},
            gpu=side["gpu"],
            gpu_kinds=_sets(side["kinds"], self._texts["gpu_kind"]),
            features=_sets(side["features"], self._texts["features"]),
            partitions=WordSets(none, ((),)),
            min_nodes=np.clip(nodes, 1, side["tasks"]),
            max_nodes=np.where(nodes > 0, nodes, NO_LIMIT),
            tasks_per_node=none,
            exclusive=side["exclusive"] > 0,
            pools={},
        )


def _sets(numbers: IntArray, codes: TextCodes) -> WordSets:
    return WordSets(numbers, tuple(tuple(filter(None, text.split("|"))) for text in codes.names))


def _names_jobs(number: IntArray) -> bool:
    """Whether the jobs have numbers of their own: job arrays repeat them."""
    return bool((number > 0).all()) and len(np.unique(number)) == len(number)
