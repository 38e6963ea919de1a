"""Anonymised `sacct` logs: the columns that gridsim reads, with pseudonyms for names and no other text.

The output is generated field by field from the parsed values, so no other content is copied. Lines that could not be
parsed, steps, and unknown columns are left out. Submit lines are regenerated from the parsed options.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from gridsim.errors import InputError
from gridsim.files import write_atomically
from gridsim.model.job_id import SEVERAL
from gridsim.model.time import IntArray
from gridsim.model.workload import UNKNOWN
from gridsim.workload.anonymise import check_key, pseudonym
from gridsim.workload.formats.sacct import taken
from gridsim.workload.formats.sacct.clock import Zone, on_one_clock
from gridsim.workload.formats.sacct.rows import NAMED
from gridsim.workload.formats.sacct.screening import SacctIntake
from gridsim.workload.formats.sacct.values import (
    A_CORE,
    A_NODE,
    ABSENT,
    PARTITION,
    STATES,
    UNLIMITED,
    SacctColumns,
    task_ranges,
)
from gridsim.workload.formats.stream import Paths, compressing, files_of, name_of_all
from gridsim.workload.problems import Problems

SHIFTED = 946_684_800
"""First submission of a log with shifted times: 2000-01-01 00:00, so that every reader accepts them as times."""

_OPTIONS = {
    "throttle": "--array=0%{}",
    "per_task": "--cpus-per-task={}",
    "per_node": "--ntasks-per-node={}",
    "least_nodes": "--nodes={}",
    "all_gpus": "--gpus={}",
    "node_gpus": "--gpus-per-node={}",
    "task_gpus": "--gpus-per-task={}",
}
_WORDS = {
    "alone": {1: "--exclusive"},
    "memory_of": {A_CORE: "--mem-per-cpu=1", A_NODE: "--mem=1"},
    "requeue": {0: "--no-requeue", 1: "--requeue"},
}
"""Columns filled from submit lines, with the equivalent options."""


def anonymise_sacct(
    path: Paths, output: str | os.PathLike[str], key: bytes, *, shift: bool = False, timezone: str | None = None
) -> tuple[int, Problems]:
    """Write a `sacct` log without names; requested node names are left out.

    Parameters
    ----------
    output : path
        Output file, with ``|`` between fields; compressed if its name ends in ``.gz`` or ``.xz``.
    key : bytes
        Key of the pseudonyms (`gridsim.workload.anonymise`); they are the same as in other formats.
    shift : bool
        Shift times so that the first submission is at `SHIFTED`, and remove the original date.
    timezone : str, optional
        Time zone of local times; with it, times are written as seconds since 1970.

    Returns
    -------
    lines : int
        Number of lines written, one per run of a job.
    problems : Problems
        Problems of the log, whose lines could not be written.
    """
    check_key(key)
    files = files_of(path, "the output of sacct")
    problems = Problems(source=name_of_all(path, files))
    intake = SacctIntake(problems.source, problems)
    for file in files:
        problems.begin(file, intake.lines)
        taken(intake, file)
    lines = SacctColumns({name: column.close() for name, column in intake.columns.items()})
    if not lines.rows:
        raise InputError("contains no readable job", path=problems.source)
    clock = on_one_clock(lines, None if timezone is None else Zone(timezone), problems.source)
    fields = dict(_Writer(intake, lines, key, local=clock == "local", shift=shift).fields())
    header = "|".join(fields) + "\n"

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file, compressing(file, Path(output).suffix) as stream:
            stream.write(header.encode())
            for row in range(lines.rows):
                stream.write(("|".join(field(row) for field in fields.values()) + "\n").encode())

    write_atomically(Path(output), write)
    return lines.rows, problems


class _Writer:
    """Texts of the fields of each row."""

    def __init__(self, intake: SacctIntake, lines: SacctColumns, key: bytes, *, local: bool, shift: bool) -> None:
        self._intake, self._lines, self._key, self._local = intake, lines, key, local
        submit = lines.column("submit")
        known = submit[submit != ABSENT]
        first = int(known.min()) if shift and len(known) else SHIFTED
        self._later = SHIFTED - first
        self._after: dict[int, list[int]] = defaultdict(list)
        for row, awaited in intake.edges:
            self._after[row].append(awaited)

    def fields(self) -> Iterator[tuple[str, Callable[[int], str]]]:
        """Yield the names of the columns, and the functions that return their texts."""
        there = self._lines
        if "base" in there:
            yield "JobID", self._identity()
        if "raw" in there:
            yield "JobIDRaw", self._number("raw")
        for label, name in NAMED.items():
            if label in there or f"said_{label}" in there:
                yield name, self._name(label)
        for name in ("Submit", "Eligible", "Start", "End"):
            if name.lower() in there:
                yield name, self._instant(name.lower())
        for name, column in (("ElapsedRaw", "elapsed"), ("NNodes", "nodes"), ("ReqCPUS", "requested")):
            if column in there:
                yield name, self._number(column)
        for name, column in (("AllocCPUS", "allocated"), ("Priority", "priority"), ("Restarts", "restarts")):
            if column in there:
                yield name, self._number(column)
        for name, column in (("Suspended", "suspended"), ("Timelimit", "limit")):
            if column in there:
                yield name, self._length(column)
        if "state" in there:
            yield "State", lambda row: STATES[int(there.columns["state"][row])]
        yield from self._resources()
        yield "SubmitLine", self._submit_line

    def _resources(self) -> Iterator[tuple[str, Callable[[int], str]]]:
        there = self._lines
        if "memory" in there or "gpus" in there:
            yield "AllocTRES", self._tres({"mem": ("memory", "M"), "gres/gpu": ("gpus", "")})
        if "asked_nodes" in there:
            yield "ReqTRES", self._tres({"node": ("asked_nodes", "")})
        if "asked_memory" in there:
            of = there.column("asked_memory_of", 0)
            asked, suffix = self._number("asked_memory"), {A_NODE: "Mn", A_CORE: "Mc"}
            yield "ReqMem", lambda row: asked(row) and asked(row) + suffix.get(int(of[row]), "M")
        if "limited" in there:
            limited = there.columns["limited"]
            yield "Reason", lambda row: "JobArrayTaskLimit" if limited[row] > 0 else "None"

    def _identity(self) -> Callable[[int], str]:
        base, task, part = (self._lines.column(name) for name in ("base", "task", "part"))
        which, lists = self._lines.column("list"), tuple(self._intake.parser.lists)

        def text(row: int) -> str:
            several = f"_{task[row]}" if task[row] >= 0 else ""
            if task[row] == SEVERAL:
                parts = [f"{each[0]}-{each[-1]}:{each.step}" for each in task_ranges(lists[which[row]]) if each]
                several = f"_[{','.join(parts)}]" if parts else "_*"
            return f"{base[row]}{several}" + (f"+{part[row]}" if part[row] >= 0 else "")

        return text

    def _number(self, column: str) -> Callable[[int], str]:
        values: IntArray = self._lines.columns[column]
        return lambda row: "" if values[row] < 0 else str(int(values[row]))

    def _instant(self, column: str) -> Callable[[int], str]:
        values = self._lines.columns[column]

        def text(row: int) -> str:
            if values[row] == ABSENT:
                return "Unknown"
            moved = int(values[row]) + self._later
            return str(np.datetime64(moved, "s")) if self._local else str(moved)

        return text

    def _length(self, column: str) -> Callable[[int], str]:
        values, words = self._lines.columns[column], {UNLIMITED: "UNLIMITED", PARTITION: "Partition_Limit", ABSENT: ""}

        def text(row: int) -> str:
            length = int(values[row])
            if length in words:
                return words[length]
            return f"{length // 86400}-{length // 3600 % 24:02d}:{length // 60 % 60:02d}:{length % 60:02d}"

        return text

    def _name(self, label: str) -> Callable[[int], str]:
        codes, column = self._intake.parser.codes[label], self._lines.column(label, UNKNOWN)
        if f"said_{label}" in self._lines:
            column = np.where(column == UNKNOWN, self._lines.column(f"said_{label}"), column)
        names = {
            number: pseudonym(self._key, label, name.decode("utf-8", "replace"))
            for name, number in codes.items()
            if name
        }
        if len(set(names.values())) < len(names):
            raise InputError(f"two names of {label} would get the same pseudonym; use another key", field=label)
        return lambda row: names.get(int(column[row]), "")

    def _tres(self, parts: Mapping[str, tuple[str, str]]) -> Callable[[int], str]:
        known = [
            (name, self._lines.columns[column], unit) for name, (column, unit) in parts.items() if column in self._lines
        ]
        return lambda row: ",".join(f"{name}={column[row]}{unit}" for name, column, unit in known if column[row] >= 0)

    def _submit_line(self, row: int) -> str:
        awaited = ":".join(map(str, self._after.get(row, ())))
        words = [f"--dependency=afterany:{awaited}"] if awaited else []
        for column, text in _OPTIONS.items():
            if column in self._lines and self._lines.columns[column][row] > 0:
                words.append(text.format(self._lines.columns[column][row]))
        for column, texts in _WORDS.items():
            if column in self._lines and int(self._lines.columns[column][row]) in texts:
                words.append(texts[int(self._lines.columns[column][row])])
        return " ".join(["sbatch", *words]) if words else ""
