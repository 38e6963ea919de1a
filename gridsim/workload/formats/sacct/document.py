"""Streaming reader of `sacct --json`: one job at a time, without holding the whole document in memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from typing import IO, Any

from gridsim.errors import InputError
from gridsim.files import DAMAGED
from gridsim.workload.formats.sacct.fields import refusal
from gridsim.workload.formats.sacct.text import UNIT, Form

_BLOCK = 1 << 20
_LONGEST = 1 << 26
_SPACE = re.compile(r"[ \t\r\n]*")
_BETWEEN = re.compile(r"[ \t\r\n,]*")

COLUMNS: Mapping[str, str] = {
    "JobID": "identity",
    "JobIDRaw": "identity",
    "JobName": "free",
    "User": "word",
    "Group": "word",
    "Account": "word",
    "Partition": "word",
    "QOS": "word",
    "Cluster": "word",
    "Submit": "time",
    "Eligible": "time",
    "Start": "time",
    "End": "time",
    "ElapsedRaw": "count",
    "Suspended": "length",
    "TimelimitRaw": "minutes",
    "State": "state",
    "NNodes": "number",
    "ReqCPUS": "count",
    "AllocCPUS": "count",
    "AllocTRES": "tres",
    "ReqTRES": "tres",
    "ReqMem": "number",
    "Reason": "word",
    "Constraints": "free",
    "Reservation": "word",
    "ArrayTaskThrottle": "count",
    "Restarts": "number",
    "Priority": "number",
    "SubmitLine": "free",
}
"""Columns to which a job of the document is converted, as in printed output."""

HEADER = Form(tuple(COLUMNS), tuple(COLUMNS.values()), UNIT, UNIT, (), b"")


def looks_like_document(beginning: bytes) -> bool:
    """Return whether the beginning of a JSON document is that of Slurm's accounting."""
    text = beginning.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not text.startswith(b"{"):
        return False
    if re.match(rb'\{\s*"jobs"\s*:\s*\[', text):
        return True
    return (
        re.match(rb'\{\s*"meta"\s*:', text) is not None
        and re.search(rb'(?i)"slurm"|openapi|data_parser', text) is not None
    )


class _Cut(Exception):
    """Raised if the document ends within a value."""


class Document:
    """Reader of the jobs of a document from a stream; its line numbers continue after those of other files.

    Attributes
    ----------
    lines : int
        Number of lines read.
    cut : int or None
        Line of the job at which the document ends or becomes invalid.
    """

    def __init__(self, stream: IO[bytes], path: object, before: int = 0) -> None:
        self._stream, self._path = stream, path
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._decoder = json.JSONDecoder()
        self._text, self._at, self._ended = "", 0, False
        self.lines = before + 1
        self.cut: int | None = None

    def jobs(self) -> Iterator[tuple[int, Mapping[str, bytes] | None]]:
        """Yield the line and the texts of each job; None for an entry that is not a job."""
        for line, value in self.entries():
            if isinstance(value, dict) and "submit_time" in value and "time" not in value:
                raise refusal("is the output of squeue --json, which lists only jobs that have not ended", self._path)
            yield line, texts(value) if isinstance(value, dict) else None

    def entries(self) -> Iterator[tuple[int, Any]]:
        """Yield the line and the value of each entry of the list of jobs."""
        if not self._enter():
            message = 'has no "jobs" at the top level; expected the output of sacct --json'
            raise InputError(message, path=self._path, line=self.lines)
        while True:
            self._skip(_BETWEEN)
            if self._peek() in ("]", ""):
                if not self._peek():
                    self.cut = self.lines
                return
            line = self.lines
            try:
                value = self._value()
            except (_Cut, ValueError, RecursionError):
                self.cut = line
                return
            yield line, value

    def _enter(self) -> bool:
        """Skip to the first entry of the list of jobs."""
        self._skip(_SPACE)
        if self._peek() != "{":
            return False
        self._at += 1
        while True:
            self._skip(_BETWEEN)
            try:
                if self._peek() != '"':
                    return False
                key = self._value()
                self._skip(_SPACE)
                if self._peek() != ":":
                    return False
                self._at += 1
                self._skip(_SPACE)
                if key == "jobs" and self._peek() == "[":
                    self._at += 1
                    return True
                self._value()
            except (_Cut, ValueError, RecursionError):
                return False

    def _more(self) -> bool:
        if self._ended:
            return False
        try:
            data = self._stream.read(_BLOCK)
        except DAMAGED as error:
            message = f"the compressed data is truncated or damaged ({error}); copy the file again"
            raise InputError(message, path=self._path, line=self.lines) from error
        self._ended = not data
        self._text = self._text[self._at :] + self._decode.decode(data, final=self._ended)
        self._at = 0
        return True

    def _peek(self) -> str:
        while self._at >= len(self._text):
            if not self._more():
                return ""
        return self._text[self._at]

    def _skip(self, what: re.Pattern[str]) -> None:
        while self._peek():
            match = what.match(self._text, self._at)
            end = match.end() if match else self._at
            self.lines += self._text.count("\n", self._at, end)
            self._text, self._at = (self._text, end) if end < len(self._text) else ("", 0)
            if self._text:
                return

    def _value(self) -> Any:
        """Return the value at the current position."""
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except ValueError:
                if len(self._text) - self._at > _LONGEST or not self._more():
                    raise _Cut from None
                continue
            self.lines += self._text.count("\n", self._at, end)
            self._at = end
            return value

    def rest(self) -> int:
        """Read to the end; return the number of lines."""
        begun = self.lines
        while True:
            self.lines += self._text.count("\n", self._at)
            self._text, self._at = "", 0
            if not self._more():
                return self.lines - begun + 1


def number(value: Any) -> int | None:
    """Return a number of Slurm's JSON: plain, or with flags for unset and infinite; None if unset, -1 if infinite.

    Examples
    --------
    >>> number(5), number({"set": True, "infinite": False, "number": 5}), number({"set": False, "number": 0})
    (5, 5, None)
    """
    if isinstance(value, Mapping):
        if value.get("infinite") is True:
            return -1
        return number(value.get("number")) if value.get("set", True) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        return None
    return int(value)


def _part(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> bytes:
    return value.encode("utf-8", "replace").replace(b"\0", b"") if isinstance(value, str) else b""


def _count(value: Any) -> bytes:
    found = number(value)
    return b"" if found is None or found < 0 else b"%d" % found


def _state(value: Any) -> bytes:
    """Return the state of a job; newer versions have a list of the state and flags."""
    if isinstance(value, list):
        value = next((word for word in value if isinstance(word, str)), "")
    return _text(value)


def _limit(value: Any) -> bytes:
    """Return the minutes of a limit; a missing value means no limit."""
    found = number(value)
    return b"UNLIMITED" if found is None or found < 0 else b"%d" % found


def _tres(value: Any) -> bytes:
    parts = [part for part in value if isinstance(part, Mapping)] if isinstance(value, list) else []
    words = []
    for part in parts:
        name, count = _text(part.get("type")), _count(part.get("count"))
        if name and count:
            more = _text(part.get("name"))
            words.append(name + (b"/" + more if more else b"") + b"=" + count + (b"M" if name == b"mem" else b""))
    return b",".join(words)


def _memory(required: Any, requested: bytes) -> bytes:
    """Return requested memory as older versions print it, per node or core; if unmarked, it is derived from the total.

    Examples
    --------
    >>> _memory({"memory_per_cpu": {"set": True, "number": 500}}, b""), _memory({"memory": 1800}, b"cpu=4,mem=7200M")
    (b'500Mc', b'1800Mc')
    >>> _memory({"memory": 8000}, b"cpu=4,mem=16000M,node=2"), _memory({"memory": 8000}, b"cpu=1,mem=8000M,node=1")
    (b'8000Mn', b'8000M')
    """
    core, node, either = (number(_part(required, name)) for name in ("memory_per_cpu", "memory_per_node", "memory"))
    if core or node:
        return b"%dMc" % core if core else b"%dMn" % (node or 0)
    found = [_counted(name, requested) for name in (b"cpu", b"mem", b"node")]
    cores, sum_of_all, nodes = (int(text) if 0 < len(text) < 18 else 0 for text in found)
    if not either or not sum_of_all:
        return b""
    of_cores, of_nodes = either * cores == sum_of_all, either * max(nodes, 1) == sum_of_all
    if of_cores == of_nodes:
        return b"%dM" % sum_of_all if of_cores else b""
    return b"%dM" % either + (b"c" if of_cores else b"n")


def _counted(name: bytes, tres: bytes) -> bytes:
    """Return the digits of one kind of resource; empty if it is not in the list."""
    found = re.search(rb"(?:^|,)" + name + rb"=(\d+)", tres)
    return found[1] if found else b""


def _identity(job: Mapping[str, Any]) -> bytes:
    """Return the JobID as printed by `sacct`: array and task, or heterogeneous job and component."""
    own = _count(job.get("job_id"))
    array, group = _count(_part(job, "array", "job_id")), _count(_part(job, "het", "job_id"))
    several = _part(job, "array", "task")
    if array not in (b"", b"0"):
        task = _count(_part(job, "array", "task_id"))
        if task and not (isinstance(several, str) and several and task == b"0"):
            return array + b"_" + task
        if isinstance(several, str) and several:
            return array + b"_[" + task_list(several) + b"]"
    if group not in (b"", b"0"):
        return group + b"+" + (_count(_part(job, "het", "job_offset")) or b"0")
    return own


_MOST_TASKS = 1 << 22


def task_list(text: str) -> bytes:
    """Return the tasks of a list, which may be a bit mask in hexadecimal digits.

    Examples
    --------
    >>> task_list("0x1554"), task_list("4-12%3")
    (b'2,4,6,8,10,12', b'4-12%3')
    """
    if not text.startswith("0x"):
        return text.encode("ascii", "replace").replace(b"]", b"").replace(b" ", b"")
    try:
        mask = int(text[2 : 2 + _MOST_TASKS // 4], 16)
    except ValueError:
        return b"0"
    bits = bin(mask)[:1:-1]
    return b",".join(b"%d" % place for place, bit in enumerate(bits) if bit == "1")


def texts(job: Mapping[str, Any]) -> Mapping[str, bytes] | None:
    """Return the texts of the columns for one job; None if the entry is not a job."""
    time = job.get("time")
    if not isinstance(time, Mapping) or not _count(job.get("job_id")):
        return None
    allocated, requested = _tres(_part(job, "tres", "allocated")), _tres(_part(job, "tres", "requested"))
    asked = _count(_part(job, "required", "CPUs"))
    if asked in (b"", b"0"):
        asked = _counted(b"cpu", requested) or asked
    return {
        "JobID": _identity(job),
        "JobIDRaw": _count(job.get("job_id")),
        "JobName": _text(job.get("name")),
        "User": _text(job.get("user")) or _text(_part(job, "association", "user")),
        "Group": _text(job.get("group")),
        "Account": _text(job.get("account")),
        "Partition": _text(job.get("partition")),
        "QOS": _text(job.get("qos")),
        "Cluster": _text(job.get("cluster")),
        "Submit": _count(time.get("submission")) or b"Unknown",
        "Eligible": _count(time.get("eligible")) or b"Unknown",
        "Start": _count(time.get("start")) or b"Unknown",
        "End": _count(time.get("end")) or b"Unknown",
        "ElapsedRaw": _count(time.get("elapsed")),
        "Suspended": _clock(time.get("suspended")),
        "TimelimitRaw": _limit(time.get("limit")),
        "State": _state(_part(job, "state", "current")),
        "NNodes": _count(job.get("allocation_nodes")),
        "ReqCPUS": asked,
        "AllocCPUS": _counted(b"cpu", allocated) or asked,
        "AllocTRES": allocated,
        "ReqTRES": requested,
        "ReqMem": _memory(job.get("required"), requested),
        "Reason": _text(_part(job, "state", "reason")),
        "Constraints": _text(job.get("constraints")),
        "Reservation": _text(_part(job, "reservation", "name")),
        "ArrayTaskThrottle": _count(_part(job, "array", "limits", "max", "running", "tasks")),
        "Restarts": _count(job.get("restart_cnt")),
        "Priority": _count(job.get("priority")),
        "SubmitLine": _text(job.get("submit_line")),
    }


def _clock(value: Any) -> bytes:
    found = number(value) or 0
    return b"%d:%02d:%02d" % (max(found, 0) // 3600, max(found, 0) // 60 % 60, max(found, 0) % 60)
