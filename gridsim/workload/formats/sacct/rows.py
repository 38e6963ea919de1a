"""Conversion of text columns to numeric columns: the values of each line, before interpretation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.workload import UNKNOWN
from gridsim.workload.formats.sacct import values
from gridsim.workload.formats.sacct.submit_lines import TEXTS, throttle
from gridsim.workload.formats.sacct.text import Cells
from gridsim.workload.formats.sacct.values import ABSENT, INVALID, BoolArray, Lookup

NAMED: Mapping[str, str] = {
    "user": "User",
    "group": "Group",
    "account": "Account",
    "partition": "Partition",
    "qos": "QOS",
    "executable": "JobName",
    "reservation": "Reservation",
    "constraint": "Constraints",
    "cluster": "Cluster",
}
"""Labels and the columns that they come from."""

_MOST_NAMES = 1 << 17
_LONGEST = 9 * 10**9  # 285 years, as for every log
_MOST_CORES = 2**31 - 1


class Codes(dict[bytes, int]):
    """Numbers of names, from 1 in the order of first occurrence; `UNKNOWN` for an empty one."""

    def __init__(self) -> None:
        super().__init__({b"": UNKNOWN})
        self.overflown = False

    def __missing__(self, name: bytes) -> int:
        if len(self) > _MOST_NAMES:
            self.overflown = True
            return UNKNOWN
        number = self[name] = len(self)
        return number

    def names(self) -> tuple[str, ...]:
        """Names by number; the name of 0 is unused."""
        return ("", *(name.decode("utf-8", "replace") for name in self if name))

    def not_utf_8(self) -> list[int]:
        """Return the numbers of names that are not UTF-8."""
        return [number for name, number in self.items() if name.decode("utf-8", "ignore").encode() != name]


def _size(text: bytes) -> int:
    """Return an integer; an invalid value is `ABSENT`, because it is no reason to reject a line."""
    return int(text) if text.isdigit() and len(text) < 10 and int(text) <= _MOST_CORES else ABSENT


def _of_tres(part: bytes, value: Callable[[bytes], int]) -> Lookup:
    return Lookup(lambda text: value(values.tres(text).get(part, b"")))


def _gpus(text: bytes) -> int:
    parts = values.tres(text)
    if b"gres/gpu" in parts:
        return _size(parts[b"gres/gpu"])
    return sum(max(_size(count), 0) for name, count in parts.items() if name.startswith(b"gres/gpu:"))


def _besides(text: bytes) -> bytes:
    """Return the generic resources with their types, and the licences, of a list of resources."""
    return b",".join(sorted(part for part in text.split(b",") if part.startswith((b"gres/", b"license/"))))


def _gpu_types(text: bytes) -> bytes:
    """Return the GPU types in a list of resources, separated by bars."""
    return b"|".join(name.removeprefix(b"gres/gpu:") for name in values.tres(text) if name.startswith(b"gres/gpu:"))


def _memory(text: bytes) -> int:
    return values.memory(text)[0]


class Parser:
    """Parser of the columns of one form of the log; it keeps the names, and the `lists` of tasks.

    Columns are ``base, task, part, tasks`` (identity), ``raw``, the times ``submit, eligible, start, end`` and
    ``elapsed, suspended, limit`` in seconds, ``state``, ``allocated``, ``requested``, ``nodes``, ``asked_nodes``,
    ``memory`` (MiB), ``asked_memory`` (MiB; per node if ``asked_memory_of`` is 1, per core for 2, else total),
    ``gpus``, ``priority``, ``restarts``, ``throttle`` of a line of waiting tasks, ``limited`` (by it), ``reason`` (of
    `reasons`), ``list`` (of `lists`), ``asked_gpus``, ``more`` (of `more`: generic resources and licences),
    ``gpu_types`` (of `gpu_types`: allocated types) and the labels of `NAMED`. The numbers of texts in submit lines are
    in `said`, by label.
    """

    def __init__(self) -> None:
        self.codes: dict[str, Codes] = {label: Codes() for label in NAMED}
        self.said = {label: self.codes[label] if label in NAMED else Codes() for label in TEXTS}
        self.lists: dict[bytes, int] = {}
        self._lengths, self._limits, self._minutes = map(Lookup, (values.duration, values.limit, values.minutes))
        self._states, self._sizes = Lookup(values.state), Lookup(_size)
        self._tres = {"cpu": _of_tres(b"cpu", _size), "mem": _of_tres(b"mem", _memory), "gpus": Lookup(_gpus)}
        self._tres["node"] = _of_tres(b"node", _size)
        self._limited = Lookup(lambda text: int(text == b"JobArrayTaskLimit"))
        self.reasons = Codes()
        self._reasons = Lookup(lambda text: self.reasons[b"" if text == b"None" else text])
        self.more = Codes()
        self._more = Lookup(lambda text: self.more[_besides(text)])
        self.gpu_types = Codes()
        self._gpu_types = Lookup(lambda text: self.gpu_types[_gpu_types(text)])
        self._request = Lookup(lambda text: INVALID if (pair := values.memory(text))[0] < 0 else _packed(*pair))

    def steps(self, cells: Cells) -> BoolArray:
        """Return which lines are steps of a job, which have a dot in their number."""
        texts = cells["JobID" if "JobID" in cells else "JobIDRaw"]
        letters = np.ascontiguousarray(texts).view(np.uint8).reshape(len(texts), -1)
        steps: BoolArray = (letters == ord(".")).any(axis=1) & (letters[:, 0] >= ord("0")) & (letters[:, 0] <= ord("9"))
        return steps

    def read(self, cells: Cells, only: BoolArray) -> tuple[dict[str, npt.NDArray[Any]], BoolArray]:
        """Return the columns of numbers, and which of the lines *only* have valid values in each column."""
        columns: dict[str, npt.NDArray[Any]] = {}
        valid = only & self._identities(cells, columns)
        absolute = np.zeros(len(cells), dtype=bool)
        local = np.zeros(len(cells), dtype=bool)
        for name in ("Submit", "Eligible", "Start", "End"):
            if name in cells:
                instants, sound, since = values.times(cells[name])
                columns[name.lower()] = instants
                valid &= sound
                absolute |= since
                local |= (instants != ABSENT) & ~since
        valid &= ~(absolute & local)
        columns["absolute"] = absolute.astype(np.int8)
        for sound in (self._durations(cells, columns), self._sizes_of(cells, columns)):
            valid &= sound
        if "State" in cells:
            columns["state"] = self._states.column(cells["State"]).astype(np.int8)
            valid &= columns["state"] != INVALID
        return columns, valid

    def _identities(self, cells: Cells, columns: dict[str, npt.NDArray[Any]]) -> BoolArray:
        n = len(cells)
        valid = np.ones(n, dtype=bool)
        if "JobIDRaw" in cells:
            columns["raw"], valid = values.counts(cells["JobIDRaw"])
            valid &= columns["raw"] != ABSENT
        if "JobID" not in cells:
            return valid
        texts = cells["JobID"]
        base, plain = values.counts(texts)
        plain &= base != ABSENT
        task, part, tasks = np.full(n, ABSENT), np.full(n, ABSENT), np.ones(n, dtype=np.int64)
        at_once, which = np.full(n, ABSENT), np.full(n, ABSENT)
        for row in np.flatnonzero(~plain):
            found = values.identity(bytes(texts[row]))
            if found is None or found[4]:
                valid[row] = False
                continue
            base[row], task[row], part[row], several, _ = found
            if several:
                tasks[row], at_once[row] = values.task_count(several), throttle(several)
                which[row] = self.lists.setdefault(several, len(self.lists))
        columns |= {"base": base, "task": task, "part": part.astype(np.int32), "tasks": tasks.astype(np.int32)}
        if (which != ABSENT).any():
            columns["list"] = which
        if "ArrayTaskThrottle" in cells:
            said, _ = values.counts(cells["ArrayTaskThrottle"])
            at_once = np.where((said > 0) & (said <= _MOST_CORES), said, at_once)
        if (at_once != ABSENT).any():
            columns["throttle"] = at_once.astype(np.int32)
        return valid

    def _durations(self, cells: Cells, columns: dict[str, npt.NDArray[Any]]) -> BoolArray:
        valid = np.ones(len(cells), dtype=bool)
        if "ElapsedRaw" in cells:
            columns["elapsed"], valid = values.counts(cells["ElapsedRaw"])
            valid &= columns["elapsed"] < _LONGEST
        elif "Elapsed" in cells:
            columns["elapsed"] = self._lengths.column(cells["Elapsed"])
        if "Suspended" in cells:
            columns["suspended"] = self._lengths.column(cells["Suspended"])
        if "TimelimitRaw" in cells:
            columns["limit"] = self._minutes.column(cells["TimelimitRaw"])
        elif "Timelimit" in cells:
            columns["limit"] = self._limits.column(cells["Timelimit"])
        for name in ("elapsed", "suspended", "limit"):
            if name in columns:
                valid &= columns[name] != INVALID
        return valid

    def _sizes_of(self, cells: Cells, columns: dict[str, npt.NDArray[Any]]) -> BoolArray:
        valid = np.ones(len(cells), dtype=bool)
        for column, names, tres in (
            ("allocated", ("AllocCPUS", "NCPUS"), "AllocTRES"),
            ("requested", ("ReqCPUS",), "ReqTRES"),
        ):
            name = next((name for name in names if name in cells), None)
            if name is not None:
                columns[column], sound = values.counts(cells[name])
                valid &= sound & (columns[column] <= _MOST_CORES)
            elif tres in cells:
                columns[column] = self._tres["cpu"].column(cells[tres])
        name = next((name for name in ("NNodes", "AllocNodes") if name in cells), None)
        if name is not None:
            columns["nodes"] = self._sizes.column(cells[name]).astype(np.int32)
        if "ReqTRES" in cells:
            columns["asked_nodes"] = self._tres["node"].column(cells["ReqTRES"]).astype(np.int32)
        elif "ReqNodes" in cells:
            columns["asked_nodes"] = self._sizes.column(cells["ReqNodes"]).astype(np.int32)
        if (asked := next((name for name in ("ReqTRES", "AllocTRES") if name in cells), None)) is not None:
            columns["more"] = self._more.column(cells[asked]).astype(np.int32)
        if "ReqTRES" in cells:
            columns["asked_gpus"] = self._tres["gpus"].column(cells["ReqTRES"]).astype(np.int32)
        if "Reason" in cells:
            columns["limited"] = self._limited.column(cells["Reason"]).astype(np.int8)
            columns["reason"] = self._reasons.column(cells["Reason"]).astype(np.int32)
        if "Restarts" in cells:
            columns["restarts"] = self._sizes.column(cells["Restarts"]).astype(np.int32)
        if "Priority" in cells:
            columns["priority"] = self._sizes.column(cells["Priority"])
        self._memories(cells, columns)
        return valid

    def _memories(self, cells: Cells, columns: dict[str, npt.NDArray[Any]]) -> None:
        """Set memory in MiB: the allocated amount, else the requested one per node or per core times their number."""
        memory = np.full(len(cells), ABSENT, dtype=np.int64)
        if "AllocTRES" in cells:
            allocated = cells["AllocTRES"]
            memory = self._tres["mem"].column(allocated)
            columns["gpus"] = self._tres["gpus"].column(allocated).astype(np.int32)
            columns["gpu_types"] = self._gpu_types.column(allocated).astype(np.int32)
        if "ReqMem" in cells:
            asked = self._request.column(cells["ReqMem"])
            each, what = asked // 4, asked % 4
            number = each
            nodes, cores = columns.get("nodes"), columns.get("allocated", columns.get("requested"))
            for code, times in ((values.A_NODE, nodes), (values.A_CORE, cores)):
                if times is not None:
                    number = np.where(what == code, number * np.maximum(times, 1), number)
            known = (memory == ABSENT) & (asked != INVALID)
            memory = np.where(known, number, memory)
            columns["asked_memory"] = np.where(asked != INVALID, each, ABSENT)
            columns["asked_memory_of"] = what.astype(np.int8)
        if "AllocTRES" in cells or "ReqMem" in cells:
            columns["memory"] = memory

    def labels(self, cells: Cells) -> dict[str, npt.NDArray[Any]]:
        """Return the numbers of the names of users, accounts and so on."""
        return {
            label: np.fromiter(
                map(self.codes[label].__getitem__, cells[column].tolist()), dtype=np.int32, count=len(cells)
            )
            for label, column in NAMED.items()
            if column in cells
        }


def _packed(number: int, what: bytes) -> int:
    """Return an amount of memory and its unit (job, node or core) as one number."""
    return min(number, 2**50) * 4 + {b"": 0, b"n": values.A_NODE, b"c": values.A_CORE}[what]
