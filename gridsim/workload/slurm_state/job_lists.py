"""Lists of jobs: ``squeue --json``, ``scontrol -o show job`` and ``squeue -o``, with the keys of `scontrol`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gridsim.errors import InputError
from gridsim.files import DAMAGED, read_toml
from gridsim.model.site_file import SiteClock
from gridsim.model.site_file.syntax import ConfLine, integer, records
from gridsim.model.time import MICROSECOND
from gridsim.workload.formats.sacct import document, values
from gridsim.workload.formats.sacct.submit_lines import gpus_of
from gridsim.workload.formats.stream import opened, packed_file

KEYS: Mapping[str, Mapping[str, str]] = read_toml(Path(__file__).with_name("keys.toml"))
"""Keys of `scontrol` for the columns of ``squeue``, ``sinfo`` and ``squeue_json``."""

RUNNING = ("RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "POWER_UP_NODE")
HELD = ("RESV_DEL_HOLD", "REQUEUE_HOLD", "SPECIAL_EXIT")
WAITING = ("PENDING", "REQUEUED", *HELD)


class JobLine(ConfLine):
    """Values of a job by the keys of `scontrol`; errors contain the job and the key of the file.

    Attributes
    ----------
    state : str
        State of the job: a flag that decides whether it holds nodes or is held, else the base state.
    """

    def __init__(self, path: Path, line: int, words: Mapping[str, str], clock: SiteClock, keys: Mapping[str, str]):
        super().__init__(path, line, words)
        self._clock, self._keys, self.job = clock, keys, words["JobId"]
        first, *flags = words["JobState"].split(",")
        self.state = next((flag for flag in flags if flag in (*RUNNING, *HELD, "REQUEUED")), first)
        if self.state not in values.STATES:
            raise self.wrong("JobState", self.state, "a state such as RUNNING or PENDING")

    def value(self, key: str) -> str:
        return self.rest.get(key.lower(), "")

    def key(self, key: str) -> str:
        """Return the key of the file for a key of `scontrol`."""
        return self._keys.get(key, key)

    def wrong(self, key: str, value: str, expected: str) -> InputError:
        message = f"is '{value[:60]}' for job {self.job[:20]}; expected {expected}"
        return InputError(message, path=self.path, line=self.number, field=self.key(key))

    def count(self, key: str, text: str | None = None) -> int:
        """Return a whole number from 0: that of a key, or of a text that belongs to it; 0 if it is empty."""
        text = self.value(key) if text is None else text
        try:
            if text and not (text.isascii() and text.isdigit()):
                raise ValueError(text)
            return integer(text or "0")
        except ValueError as error:
            raise self.wrong(key, text, "a whole number from 0") from error

    def time(self, key: str) -> int:
        """Return a Unix time, s; 0 if it is unknown."""
        if (text := self.value(key)) in ("", "0", "Unknown", "None", "NONE"):
            return 0
        found = self._clock.instant(text, field=self.key(key), path=self.path, line=self.number) // MICROSECOND
        if found < 0:
            raise self.wrong(key, text, "a time since 1970")
        return found


def job_lines(folder: Path, clock: SiteClock) -> tuple[Path, list[JobLine]]:
    """Return the first of the three lists that the folder has, and its jobs.

    Raises
    ------
    InputError
        For a folder without such a list, and for a list that was cut or has other contents.
    """
    for name, read in (("squeue.json", _document), ("scontrol_job.txt", _shown), ("squeue.txt", _printed)):
        if (path := packed_file(folder, name)) is not None:
            keys = {key: name for name, key in KEYS["squeue_json"].items()} if read is _document else {}
            return path, [JobLine(path, number, words, clock, keys) for number, words in read(path)]
    raise InputError("has no list of jobs; expected squeue.json, scontrol_job.txt or squeue.txt", path=folder)


def lines_of(path: Path) -> list[str]:
    """Return the lines of a text, which may be empty; raise `InputError` if it was cut within a line."""
    if not path.stat().st_size:
        return []
    with opened(path) as (stream, _):
        try:
            *lines, last = stream.read().decode("utf-8", "replace").split("\n")
        except DAMAGED as error:
            raise InputError(f"the compressed data is truncated or damaged ({error})", path=path) from error
    if last:
        raise InputError("was cut: its last line has no end; collect it again", path=path, line=len(lines) + 1)
    return [line.removesuffix("\r") for line in lines]


_Lines = Iterator[tuple[int, dict[str, str]]]


def _document(path: Path) -> _Lines:
    with opened(path) as (stream, _):
        jobs = document.Document(stream, path, command="squeue --json")
        for line, job in jobs.entries():
            entry = job if isinstance(job, dict) else {}
            lacking = [key for key in ("job_id", "job_state", "submit_time") if key not in entry]
            if lacking:
                message = f"is an entry without '{lacking[0]}'; expected a job of squeue --json"
                raise InputError(message, path=path, line=line)
            words = {key: _text(entry.get(name)) for name, key in KEYS["squeue_json"].items()}
            words["ArrayTaskId"] = words["ArrayTaskId"] or _text(entry.get("array_task_id"))
            if words["TimeLimit"] not in ("", "UNLIMITED"):
                words["TimeLimit"] += ":00"  # minutes and seconds
            yield line, words
        if jobs.cut is not None or not jobs.is_closed():
            message = "was cut, or has more than one document; expected the whole output of squeue --json"
            raise InputError(message, path=path, line=jobs.cut or jobs.lines)


def _text(value: Any) -> str:
    """Return a value of the document as text: empty if it is unset, ``UNLIMITED`` for an infinite number."""
    if isinstance(value, Mapping):
        found = document.number(value)
        return "" if found is None else "UNLIMITED" if found < 0 else str(found)
    if isinstance(value, list):
        return ",".join(each for each in value if isinstance(each, str))
    return "" if value is None else str(value).encode("utf-8", "replace").decode()


_NAME = re.compile(r"^(JobId=\d+ (?:Array\S+ )*)JobName=.*?( UserId=\S+\(\d+\) GroupId=)", re.DOTALL | re.MULTILINE)
"""Name of a job, which can contain blanks, line ends and ``=``."""


def _shown(path: Path) -> _Lines:
    text = _NAME.sub(lambda found: found[1] + "\n" * found[0].count("\n") + found[2], "\n".join(lines_of(path)))
    for line, words in show_records(path, text.split("\n"), "JobId", "scontrol -a -o show job"):
        for key in ("JobId", "UserId", "JobState", "SubmitTime", "NumCPUs"):
            if key not in words:
                message = "is missing; the list was cut, or is not the output of scontrol -a -o show job"
                raise InputError(message, path=path, line=line, field=key)
        tres = words.get("TRES", "")
        yield line, {"AllocTRES": tres, "ReqTRES": tres} | words | {"UserId": words["UserId"].partition("(")[0]}


def show_records(path: Path, lines: list[str], first: str, command: str) -> _Lines:
    """Yield the records of the output of `scontrol`; of a repeated key, the first value counts."""
    return ((line, dict(reversed(pairs))) for line, pairs in records(path, lines, first, command))


def columns_of(command: str) -> str:
    """Return the format of a command for which `KEYS` has a table."""
    return "|".join(KEYS[command])


def split_lines(path: Path, command: str, free: int = 0) -> _Lines:
    """Yield the lines of a list with these columns; after *free* delimiters the rest is split once."""
    keys = KEYS[command].values()
    for number, line in enumerate(lines_of(path), start=1):
        cells = line.split("|", free or -1)
        cells = [*cells[:-1], *cells[-1].split("|", 1)] if free else cells
        if len(cells) != len(keys) and line.strip():
            message = f"has {len(cells)} fields; expected {len(keys)} ({command} -h -o '{columns_of(command)}')"
            raise InputError(message, path=path, line=number)
        texts = ("" if cell.strip() in ("(null)", "N/A") else cell.strip() for cell in cells)
        if line.strip():
            yield number, dict(zip(keys, texts, strict=True))


def _printed(path: Path) -> _Lines:
    """Yield the lines of `squeue`, with its resources per node or core as a list for the whole job."""
    for line, words in split_lines(path, "squeue", len(KEYS["squeue"]) - 2):
        cores, nodes = (int(words[key]) if re.fullmatch("[0-9]{1,9}", words[key]) else 1 for key in _COUNTS)
        memory, unit = values.memory(words["MinMemory"].encode())
        gpus, kind = gpus_of(words["Gres"].encode())
        gpu = "gres/gpu" + (":" + kind.decode() if kind else "")
        listed = f"cpu={words['NumCPUs']}" + (f",mem={memory * (cores if unit == b'c' else nodes)}M") * (memory > 0)
        listed += f",{gpu}={gpus * nodes}" * (gpus > 0)
        begin = words["StartTime"] if words["Reason"] == "BeginTime" else words["SubmitTime"]
        yield line, words | {"AllocTRES": listed, "ReqTRES": listed, "EligibleTime": begin}


_COUNTS = ("NumCPUs", "NumNodes")
