"""Conversion of table rows to jobs by a mapping, with the same screening as in all logs, and their demands."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.capacity import WHOLE_GPU
from gridsim.model.demand import NO_LIMIT, Demands, WordSets
from gridsim.model.time import MICROSECOND, FloatArray, IntArray
from gridsim.model.workload import LABELS, UNKNOWN, USUAL, Workload
from gridsim.workload.formats.columns import MOST_IN_USE, Column, Screen, most_of
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
from gridsim.workload.formats.table.cells import Cells, JoinedTable, TableFile
from gridsim.workload.formats.table.mapping import TableMapping
from gridsim.workload.formats.table.values import ABSENT, AMOUNTS, TextCodes, facts_of, split_cell, texts_of
from gridsim.workload.formats.task_demands import demand_facts
from gridsim.workload.problems import SHOWN_LINES, Problems

_MOST_DAMAGED = 0.05
"""Share of damaged rows above which the mapping is assumed to be wrong."""

_DATED = 1e8
"""Smallest number of seconds that counts from 1970 (1973) instead of from the start of a trace."""

_CODES = {"completed": 1, "failed": 0, "cancelled": CANCELLED, "killed_walltime": 0, "pending": UNKNOWN}
"""Status codes of SWF."""

_ASKED = {"memory", "gpus", "nodes", "tasks", "gpu_kind", "features", "exclusive"}
"""Columns of a mapping that make a job request more than plain cores."""

_MORE = ("account", "reservation")
_OF_ALL = ("line", *_MORE, "number", *USUAL)
"""Columns of plain-core jobs that are kept in addition to the fields of SWF."""

_ENDLESS = -2.0
"""Placeholder estimate of a job without a limit, until the rule for such jobs sets another one."""

_NO_LIMIT = 365 * 86_400
"""Estimate of such a job, s."""

_LONGEST_NUMBER = 18
"""Number of digits above which a value is a name instead of a job number."""

_CEILING = 1e-6
"""Excess of a scaled number over an integer that is not rounded up."""


class TableRows(SwfRows):
    """Collector of table rows that builds a workload.

    Parameters
    ----------
    path : object
        The table, for error messages.
    cores : int or None
        Largest number of cores of a job.
    problems : Problems
        Counts of problems.
    mapping : TableMapping
        Meaning of its columns.
    zone : str
        Time zone of times without one.
    joins : sequence of JoinedTable
        Further tables of the mapping.
    """

    def __init__(
        self,
        path: object,
        cores: int | None,
        problems: Problems,
        mapping: TableMapping,
        zone: str,
        joins: Sequence[JoinedTable] = (),
    ) -> None:
        super().__init__(path, cores, problems)
        self.in_order = not mapping.sort
        self._mapping, self._zone, self._joins = mapping, zone, joins
        self._side: dict[str, Column] = {}
        self._texts = {label: TextCodes() for label in (*LABELS, *_MORE, "gpu_kind", "features")}
        self._rows = 0
        self._damaged: list[str] = []
        self._damaged_rows = 0
        self._left_out: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()
        self._dated = False
        self._asks = bool(_ASKED & mapping.columns.keys() or mapping.resources)

    def read(self, path: str | os.PathLike[str]) -> str:
        """Read all rows of a file, after those of previous files; return its checksum.

        Raises
        ------
        InputError
            If a column is missing, or if more than 5 % of the rows are damaged.
        """
        file = TableFile(path, self._mapping)
        before = self.lines
        self.problems.begin(path, before)
        for block in file.blocks():
            self._take(block, file, before)
        self._rows += file.rows
        self.lines = before + file.first - 1 + file.rows
        return file.sha256

    def refuse_damage(self) -> None:
        """Raise if there are so many damaged rows that the mapping is assumed to be wrong."""
        if self._damaged_rows > _MOST_DAMAGED * self._rows:
            many = f"{self._damaged_rows:,} of {self._rows:,} rows"
            message = f"{many} do not match the mapping '{self._mapping.name}': {'; '.join(self._damaged)}"
            raise InputError(message, path=self.path)

    def _take(self, block: Cells, file: TableFile, before: int) -> None:
        """Add a block of rows; *before* is the number of lines in previous files."""
        for line, width in block.ragged:
            self._wrong(before + line, f"has {width} cells, the header {file.width}")
        cells, lines = dict(block.columns), block.lines + before
        if self._mapping.filters:
            stays = self._filtered(cells, len(lines))
            lines = lines[stays]
            cells = {name: [it for it, good in zip(texts, stays, strict=True) if good] for name, texts in cells.items()}
        if not len(lines):
            return
        for table in self._joins:
            cells |= table.columns(cells[table.table.key])
        self._jobs(cells, lines)

    def _filtered(self, cells: Mapping[str, Sequence[str]], n: int) -> npt.NDArray[np.bool_]:
        """Return the rows that no filter excludes."""
        stays = np.ones(n, dtype=np.bool_)
        for name, (column, values) in self._mapping.filters.items():
            out = stays & np.array([cell in values for cell in cells[column]], dtype=np.bool_)
            self._left_out[name] += int(np.count_nonzero(out))
            stays &= ~out
        return stays

    def _wrong(self, line: int, problem: str) -> None:
        self._damaged_rows += 1
        if len(self._damaged) < SHOWN_LINES:
            self._damaged.append(f"row {line}: {problem}")
        self.problems.found("damaged-row", [line], value=problem)

    # -- one block of jobs ---------------------------------------------------------------------------------------------

    def _jobs(self, cells: dict[str, Sequence[str]], lines: IntArray) -> None:
        n = len(lines)
        facts = facts_of(self._mapping, cells, n, self._zone)
        side = self._requests(facts.amounts, lines)
        side["kinds"], side["features"] = (self._string_sets(name, cells, n) for name in ("gpu_kind", "features"))
        sound = np.ones(n, dtype=np.bool_)
        for each in facts.wrong:
            if sound[each.row]:
                self._wrong(int(lines[each.row]), f"column '{each.column}' is '{each.text}'; expected {each.expected}")
            sound[each.row] = False
        parts = side.pop("parts")
        for row in np.flatnonzero((parts > 0) & sound).tolist():
            self._wrong(
                int(lines[row]),
                f"a task requests {parts[row] / WHOLE_GPU:g} GPUs; expected a fraction of one GPU, or whole GPUs",
            )
        sound &= parts == 0
        submit = facts.submit
        runtime, start = self._times(facts.start, facts.end, facts.runtime, np.where(sound, lines, 0))
        estimate = np.where(np.isinf(facts.estimate), _ENDLESS, np.maximum(facts.estimate, -1))
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
            **{label: self._codes(label, label, cells, n) for label in _MORE},
            "number": self._numbers_of(cells, n),
            **{name: _classes(facts.amounts.get(name), usual, n) for name, usual in USUAL.items()},
        }
        self._dated |= bool(np.nanmax(submit, initial=0) >= _DATED)
        for name, values in side.items() if self._asks else ((it, side[it]) for it in _OF_ALL):
            self._side.setdefault(name, Column(np.int64)).add(values[sound])
        self.add(table[sound], lines[sound])

    def _requests(self, totals: Mapping[str, FloatArray], lines: IntArray) -> dict[str, IntArray]:
        """Return the demands of each job per task; ``wide``: its cores, ``parts``: invalid thousandths of a GPU."""
        amounts = {**dict.fromkeys(AMOUNTS, np.full(len(lines), np.nan)), **totals}
        others = {name: amounts[name] for name in self._mapping.resources}
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
        # A job that requests another resource needs no cores; a job without any request has no size.
        found["wide"] = np.where((cores < 1) & ((total > 0) | (gpus > 0)), 1, cores)
        return found

    def _times(
        self, start: FloatArray, end: FloatArray, runtime: FloatArray, lines: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return run times and starts; if the three times disagree, start and end are used (the allocation)."""
        span = end - start
        other = (np.abs(span - runtime) > 1) & (lines > 0)
        if other.any():
            rows = np.flatnonzero(other)
            first = rows[0]
            rule = self.problems.found(
                "runtime-not-span",
                lines[rows[:SHOWN_LINES]].tolist(),
                count=len(rows),
                value=f"a run time of {runtime[first]:g} s, {span[first]:g} s from start to end",
            )
            if rule == "skip":
                runtime = np.where(other, np.nan, runtime)
                return runtime, np.where(other, np.nan, start)
            runtime = np.where(other & (rule == "repair"), span, runtime)
        runtime = np.where(np.isnan(runtime), span, runtime)
        return runtime, np.where(np.isnan(start), end - runtime, start)

    def _status_codes(self, cells: Mapping[str, Sequence[str]], n: int) -> IntArray:
        rule = self._mapping.columns.get("status")
        texts = texts_of(self._mapping, "status", cells, n)
        if rule is None or texts is None or not rule.column:
            return np.full(n, UNKNOWN)
        counted = Counter(texts)
        codes = {text: _CODES.get(self._mapping.status.get(text, ""), UNKNOWN) for text in counted}
        self._unknown.update(
            {text: count for text, count in counted.items() if text not in self._mapping.status and text not in ABSENT}
        )
        return np.fromiter(map(codes.__getitem__, texts), dtype=np.int64, count=n)

    def _codes(self, ours: str, label: str, cells: Mapping[str, Sequence[str]], n: int) -> IntArray:
        texts = texts_of(self._mapping, ours, cells, n)
        return np.full(n, UNKNOWN) if texts is None else self._texts[label].column(texts)

    def _string_sets(self, name: str, cells: Mapping[str, Sequence[str]], n: int) -> IntArray:
        """Return numbers of sets of words, as texts between bars; 0 for none."""
        texts = texts_of(self._mapping, name, cells, n)
        if texts is None:
            return np.zeros(n, dtype=np.int64)
        separator = self._mapping.columns[name].separator
        sets = {text: "|".join(split_cell(text, separator)) for text in set(texts)}
        return np.maximum(self._texts[name].column([sets[text] for text in texts]), 0)

    def _numbers_of(self, cells: Mapping[str, Sequence[str]], n: int) -> IntArray:
        """Return job numbers, -1 where missing."""
        rule = self._mapping.columns.get("job")
        texts = texts_of(self._mapping, "job", cells, n)
        if rule is None or texts is None or not rule.column:
            return np.full(n, UNKNOWN)
        together = "".join(texts)
        if together.isascii() and together.isdigit() and all(texts) and max(map(len, texts)) < _LONGEST_NUMBER:
            return np.fromiter(map(int, texts), dtype=np.int64, count=n)
        return np.array([int(text) if _number(text) else UNKNOWN for text in texts], dtype=np.int64)

    def keep(self, table: FloatArray, numbers: IntArray) -> None:
        screen = Screen(self.problems, numbers, FIELDS)
        early = (table[:, WAIT] < 0) & (table[:, WAIT] != -1) & (table[:, RUNTIME] >= 0) & (table[:, SUBMIT] >= 0)
        rows = screen.find("start-before-submit", early, WAIT, table[:, WAIT])
        table[rows, SUBMIT] += table[rows, WAIT]
        table[rows, WAIT] = 0
        rows = screen.find("unlimited", table[:, ESTIMATE] == _ENDLESS, ESTIMATE, lambda _: "no limit")
        table[rows, ESTIMATE] = np.maximum(_NO_LIMIT, table[rows, RUNTIME])
        super().keep(table[screen.keep], numbers[screen.keep])

    # -- all jobs ------------------------------------------------------------------------------------------------------

    def nothing(self) -> str:
        found = ", ".join(f"{problem.count} {problem.kind}" for problem in self.problems)
        return f"no usable job among {self._rows:,} rows{f' ({found})' if found else ''}; expected at least one"

    def workload(self, sha256: str) -> Workload:
        """Return the workload of all jobs that were kept."""
        workload = super().workload(sha256)
        rows = workload.job
        side = {name: column.close()[rows] for name, column in self._side.items()}
        demands = self._demands(side)
        above = 1 if self._mapping.delimiter and not self._mapping.header else 0  # header line
        job = side["number"] if _names_jobs(side["number"]) else side["line"] - above
        origin = int(workload.submit[0]) // MICROSECOND
        labels: dict[str, npt.NDArray[Any]] = {**workload.labels, **{label: side[label] for label in _MORE}}
        labels = {label: values for label, values in labels.items() if (values != UNKNOWN).any()}
        own = {name: side[name] for name in USUAL if name in self._mapping.columns}
        clock = {"clock": {"origin": origin, "zone": self._zone}} if self._dated else {}
        workload = replace(
            workload,
            job=job,
            cores=workload.cores if demands is None else demands.cores,
            labels=labels | own,
            names={label: self._texts[label].names for label in labels},
            demands=demands,
        )
        workload = replace(
            workload, submit=workload.submit - origin * MICROSECOND, cores_stated=self.machine or most_of(workload)
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
            **({"unverified": self._mapping.unverified} if self._mapping.unverified else {}),
            **({"not_joined": {it.table.name: it.missing for it in self._joins}} if self._joins else {}),
            problems=self.problems.to_json(),
            **({} if demands is None else {"demands": demand_facts(demands)}),
        )

    def _demands(self, side: dict[str, IntArray]) -> Demands | None:
        """Return the demands of the jobs; None if the mapping contains only cores."""
        if not self._asks:
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


def _classes(column: FloatArray | None, usual: int, n: int) -> IntArray:
    """Return the priority classes of jobs, or whether they are preemptible, with the usual value where missing."""
    return np.full(n, usual) if column is None else np.nan_to_num(column, nan=usual).astype(np.int64)


def _sets(numbers: IntArray, codes: TextCodes) -> WordSets:
    return WordSets(numbers, tuple(tuple(filter(None, text.split("|"))) for text in codes.names))


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < _LONGEST_NUMBER


def _names_jobs(number: IntArray) -> bool:
    """Return whether the jobs have unique numbers; job arrays repeat them."""
    return bool((number > 0).all()) and len(np.unique(number)) == len(number)
