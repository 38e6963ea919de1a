"""Files of a live state, and its jobs: ``squeue --json``, ``scontrol -o show job`` and ``squeue -o``."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridsim.errors import InputError
from gridsim.files import DAMAGED, decoded, parse_json, read_toml, unpacked
from gridsim.model.cluster_state import ClusterState, RunningJob, WaitingJob
from gridsim.model.job_id import fields_of
from gridsim.model.site.parameters import CPU, GPUS, LICENCE, MEMORY, licences_requested
from gridsim.model.site_file.conf import generic_resources
from gridsim.model.site_file.reservations import Record, SiteClock
from gridsim.model.site_file.syntax import integer, minutes, named_values, records
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.schema import ANY, check
from gridsim.workload.formats.sacct import document, values
from gridsim.workload.problems import Problems

KEYS: Mapping[str, Mapping[str, str]] = read_toml(Path(__file__).with_name("keys.toml"))
"""Keys of `scontrol` for the columns of ``squeue``, ``sinfo`` and ``squeue_json``, and words."""

WORDS: Mapping[str, Any] = KEYS["words"]
_NAMES = {key.lower(): name for name, key in KEYS["squeue_json"].items()}
_DEPENDENCY = re.compile(r"(\w+)(?::([^(),?]*))?(?:\((\w+)\))?")
_MOST_TASKS = 200_000
"""Largest number of waiting tasks of one array."""


class Line(Record):
    """Values of a record by the keys of `scontrol`; errors contain the key of the file, and the job."""

    def __init__(self, path: Path, number: int, words: Mapping[str, str], clock: SiteClock):
        super().__init__(path, number, words, clock)
        self.job = words.get("JobId", "")
        self.spelled |= _NAMES if ".json" in path.suffixes else {}
        first, *flags = words.get("JobState", "").split(",")  # a flag decides whether a job holds nodes or is held
        self.state = next((flag for flag in flags if flag in (*WORDS["running"], *WORDS["waiting"])), first)

    def key(self, key: str) -> str:
        """Return the key of the file for a key of `scontrol`."""
        return self.spelled.get(key.lower(), key)

    def wrong(self, key: str, value: str, expected: str) -> InputError:
        message = f"is '{value[:60]}'{f' for job {self.job[:20]}' if self.job else ''}; expected {expected}"
        return InputError(message, path=self.path, line=self.number, field=self.key(key))

    def count(self, key: str, text: str | None = None) -> int:
        """Return a number, or the least of a range such as 1-4, of a key or of a *text* in it; 0 if it is empty."""
        text = self.text(key) if text is None else text
        return self.read(key, text.partition("-")[0] or "0", integer, "a whole number from 0")

    def split(self, key: str) -> tuple[str, ...]:
        """Return the names in a list with commas; the default partition has a ``*``."""
        return tuple(name.rstrip("*") for name in self.text(key).split(",") if name)

    def hosts(self, key: str) -> tuple[str, ...]:
        return tuple(self.names(self.key(key), self.text(key)))

    def gpus(self) -> dict[str, int]:
        """Return the GPUs by type in ``Gres``, of a node or of each node of a job."""
        return dict(+generic_resources(self, re.sub("gres[:/]", "", self.text("Gres")))[0])

    def time(self, key: str) -> int:
        """Return a Unix time, s; 0 if it is unknown."""
        if (text := self.text(key)).upper() in WORDS["unknown"]:
            return 0
        return max(self.clock.instant(text, field=self.key(key), path=self.path, line=self.number) // MICROSECOND, 0)

    def seconds(self, key: str) -> int | None:
        """Return a length of time, s; None for no limit, and if it is unknown."""
        if (text := self.text(key)).upper() in WORDS["unknown"]:
            return None
        found = self.read(key, text, minutes, "a time such as 1-00:00:00 or UNLIMITED")
        return found // MICROSECOND if found < NEVER else None


def text_of(folder: Path, name: str) -> tuple[Path, str]:
    """Return a file of the folder, which may be compressed with gzip or xz, and its text; empty if there is none."""
    paths = [folder / f"{name}{suffix}" for suffix in ("", ".gz", ".xz")]
    path = next(filter(Path.is_file, paths), paths[0])
    try:
        text = decoded(unpacked(path.read_bytes()), path, "replace") if path.is_file() else ""
    except DAMAGED as error:
        raise InputError(f"cannot be read, or is damaged ({error}); copy it again", path=path) from error
    if text and not text.endswith("\n") and not name.endswith(".json"):
        raise InputError("was cut: its last line has no end; collect it again", path=path, line=text.count("\n") + 1)
    return path, text


def job_lines(folder: Path, clock: SiteClock) -> tuple[Path, list[Line]]:
    """Return the first of the three lists that the folder has, and its jobs.

    Raises
    ------
    InputError
        For a folder without such a list, and for a list that was cut or has other contents.
    """
    lists = {"squeue.json": _document, "scontrol_job.txt": _shown, "squeue.txt": _printed}
    for name, read in lists.items():
        path, text = text_of(folder, name)
        if path.is_file():
            return path, list(read(path, text, clock))
    raise InputError(f"has no list of jobs; expected {', '.join(lists)}", path=folder)


def _document(path: Path, text: str, clock: SiteClock) -> Iterator[Line]:
    data = text.encode()
    content = parse_json(data, path, "the whole output of squeue --json")
    check(content, {"jobs": [{"job_id": ANY}]}, path=path, data=data)
    for line, job in document.Document(io.BytesIO(data), path).entries():
        words: dict[str, str] = {}
        for name, key in KEYS["squeue_json"].items():
            words[key] = _text(job.get(name)) or words.get(key, "")
        yield Line(path, line, words, clock)


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


def _shown(path: Path, text: str, clock: SiteClock) -> Iterator[Line]:
    text = _NAME.sub(lambda found: found[1] + "\n" * found[0].count("\n") + found[2], text)
    for line in shown(path, text, clock, "JobId", "-a -o show job"):
        tres, user = line.text("TRES"), line.text("UserId").partition("(")[0]
        line.rest = {"alloctres": tres, "reqtres": tres} | line.rest | {"userid": user}
        yield line


def shown(path: Path, text: str, clock: SiteClock, first: str, command: str) -> Iterator[Line]:
    """Yield the records of the output of `scontrol`, which begin with a key; of a repeated key, the first counts."""
    for number, pairs in records(path, text.split("\n"), first, f"scontrol {command}"):
        yield Line(path, number, dict(reversed(pairs)), clock)


def split_lines(path: Path, text: str, clock: SiteClock, command: str) -> Iterator[Line]:
    """Yield the lines of a list with the columns of a command; the last column can contain delimiters."""
    keys = KEYS[command].values()
    for number, line in enumerate(text.split("\n"), start=1):
        cells = line.split("|", len(keys) - 1)
        if len(cells) < len(keys) and line.strip():
            message = f"has {len(cells)} fields; expected {len(keys)} ({command} -h -o '{'|'.join(KEYS[command])}')"
            raise InputError(message, path=path, line=number)
        texts = ("" if cell.strip() in ("(null)", "N/A") else cell.strip() for cell in cells)
        if line.strip():
            yield Line(path, number, dict(zip(keys, texts, strict=True)), clock)


def _printed(path: Path, text: str, clock: SiteClock) -> Iterator[Line]:
    """Yield the lines of `squeue`, with its resources per node or core as a list for the whole job."""
    for line in split_lines(path, text, clock, "squeue"):
        nodes = line.count("NumNodes")
        memory, unit = values.memory(line.text("MinMemory").encode())
        amounts = {"cpu": line.text("NumCPUs")}
        amounts |= {"mem": f"{memory * (line.count('NumCPUs') if unit == b'c' else nodes)}M"} if memory > 0 else {}
        amounts |= {f"gres/gpu:{kind}".rstrip(":"): str(count * nodes) for kind, count in line.gpus().items()}
        listed = ",".join(f"{name}={amount}" for name, amount in amounts.items())
        begin = line.text("StartTime" if line.text("Reason") == "BeginTime" else "SubmitTime")
        line.rest |= {"alloctres": listed, "reqtres": listed, "eligibletime": begin}
        yield line


def newest_time(lines: Iterable[Line]) -> int:
    """Return the latest past time in a list (Unix time, s); 0 if there is none."""
    found = [0]
    for line in lines:
        own = "StartTime" if line.state in WORDS["running"] else "EndTime" if line.state not in WORDS["waiting"] else ""
        found += [line.time(key) for key in ("SubmitTime", "SuspendTime", "LastSchedEval", own)]
    return max(found)


def jobs_at(moment: int, lines: Iterable[Line], problems: Problems) -> ClusterState:
    """Return the state at a moment (Unix time, s) with its jobs; a note names those without a needed field."""
    running, waiting, skipped = list[RunningJob](), list[WaitingJob](), list[str]()
    left_out = Counter[str]()
    for line in lines:
        if line.state not in values.STATES:
            raise line.wrong("JobState", line.state, "a state such as RUNNING or PENDING")
        runs = line.state in WORDS["running"]
        if not runs and line.state not in WORDS["waiting"]:
            left_out[line.state] += 1
            continue
        facts = _facts(line, runs=runs)
        needed = {"NumCPUs": facts["cores"], "UserId": facts["user"], "Partition": facts["partition"]}
        needed |= {"NodeList": line.text("NodeList"), "StartTime": line.time("StartTime")} if runs else {}
        if lacking := [key for key, value in needed.items() if not value]:
            value = f"no value for job {line.job}"
            problems.found("missing-field", [line.number or 1], value=value, field=line.key(lacking[0]))
            skipped.append(line.job)
        elif runs:
            running.append(_running(line, facts, moment))
        else:
            waiting += _waiting(line, facts, moment)
    for name, times in Counter(job.job for job in (*running, *waiting)).items():
        if times > 1 or fields_of(name) is None:
            message = f"is '{name[:40]}'; expected a job number that occurs once in the list"
            raise InputError(message, path=problems.source, field="JobId")
    running.sort(key=lambda job: (job.start, fields_of(job.job)))
    waiting.sort(key=lambda job: (-job.priority, job.submit))
    note = f"{len(skipped)} jobs without a needed field are left out: {', '.join(skipped[:5])}"
    notes = (note,) if skipped else ()
    return ClusterState(moment, tuple(running), tuple(waiting), left_out=dict(left_out), notes=notes)


def _facts(line: Line, *, runs: bool) -> dict[str, Any]:
    """Return the fields that running and waiting jobs have."""
    key = "AllocTRES" if runs else "ReqTRES"
    amounts = dict(named_values(line.text(key)))
    counts = {name: line.count(key, n) for name, n in amounts.items() if name.startswith((CPU, GPUS, LICENCE))}
    memory = values.memory(amounts.get(MEMORY, "0").encode())[0]
    if memory < 0:
        raise line.wrong(key, line.text(key), "an amount of memory such as mem=62.50G")
    gpus = {name.removeprefix(GPUS).lstrip(":"): n for name, n in counts.items() if name.startswith(GPUS) and n}
    licences = {name.removeprefix(LICENCE): n for name, n in counts.items() if name.startswith(LICENCE) and n}
    return {
        **{key.lower().removesuffix("id"): line.text(key) for key in _TEXTS},
        "limit": line.seconds("TimeLimit") or None,
        "cores": counts.get(CPU) or line.count("NumCPUs"),
        "memory": memory,
        "gpus": {kind: n for kind, n in gpus.items() if kind} or gpus,
        "licences": licences or licences_requested(line.text("Licenses")[:1000]),
        "nodes": max(line.count("NumNodes"), 1),
    }


_TEXTS = ("UserId", "Account", "Partition", "QOS", "Features", "Reservation")


def _tasks(line: Line) -> tuple[int | None, list[int], int | None]:
    """Return the number of the array, its tasks, and its throttle; None and no tasks for another job."""
    listed, _, throttle = line.text("ArrayTaskId").partition("%")
    array, parts = line.count("ArrayJobId"), document.task_list(listed)
    if not array or not listed:
        return None, [], None
    ranges = values.task_ranges(parts)
    if len(ranges) != parts.count(b",") + 1 or not 0 < sum(map(len, ranges)) <= _MOST_TASKS:
        expected = f"up to {_MOST_TASKS:,} tasks such as 4-12%3; with SLURM_BITSTR_LEN=0, Slurm prints the whole list"
        raise line.wrong("ArrayTaskId", listed, expected)
    at_once = line.count("ArrayTaskThrottle", throttle or None)
    return array, sorted({task for each in ranges for task in each}), at_once or None


def _running(line: Line, facts: dict[str, Any], moment: int) -> RunningJob:
    array, tasks, _ = _tasks(line)
    start, suspended, stopped = line.time("StartTime"), line.time("SuspendTime"), line.state == "SUSPENDED"
    elapsed, used = moment - start, line.seconds("TimeUsed")
    if suspended:
        elapsed = line.count("SecsPreSuspend") + (0 if stopped else moment - suspended)
    elif used is not None and (stopped or elapsed > used + 60):
        elapsed = used  # squeue prints no suspensions, but a time without them
    facts |= {"on": line.hosts("NodeList"), "job": f"{array}_{tasks[0]}" if tasks else line.job}
    return RunningJob(start=start, elapsed=max(elapsed, 0), stopped=stopped, **facts)


def _waiting(line: Line, facts: dict[str, Any], moment: int) -> list[WaitingJob]:
    """Return the job, or the tasks of its array."""
    array, tasks, throttle = _tasks(line)
    eligible = line.time("EligibleTime")
    reason = line.state if line.state in WORDS["held"] else line.text("Reason")
    priority = line.count("Priority", line.text("Priority") or "1")
    after, any_one, cannot = _dependencies(line)
    rules = {
        "held": priority == 0 or reason in WORDS["held"],
        "never": reason in WORDS["never"] or cannot,
        "after": bool(after),
        "not before": eligible > moment,
        "queued": True,
    }
    facts |= {"kind": next(kind for kind, applies in rules.items() if applies), "reason": reason, "priority": priority}
    facts |= {"submit": line.time("SubmitTime"), "slurm_start": line.time("StartTime") or None}
    facts |= {"eligible": eligible if eligible > moment else None, "after": after, "any_one": any_one}
    facts |= {"required": line.hosts("ReqNodeList"), "excluded": line.hosts("ExcNodeList")}
    job = WaitingJob(job=line.job, array=array, throttle=throttle, **facts)
    return [replace(job, job=f"{array}_{task}") for task in tasks] or [job]


def _dependencies(line: Line) -> tuple[tuple[tuple[str, str, str], ...], bool, bool]:
    """Return the unfulfilled dependencies, whether one of them is enough, and whether they cannot be fulfilled."""
    text = line.text("Dependency")
    found: list[tuple[str, str, str]] = []
    for part in filter(None, re.split("[,?]", text)):
        if (match := _DEPENDENCY.fullmatch(part)) is None:
            raise line.wrong("Dependency", text, "dependencies such as afterok:100(unfulfilled)")
        found += [(match[1], job, match[3] or "unfulfilled") for job in (match[2] or "").split(":")]
    any_one, states = "?" in text, [state for _, _, state in found]
    after = () if any_one and "fulfilled" in states else tuple(each for each in found if each[2] == "unfulfilled")
    failed = [state == "failed" for state in states]
    return after, any_one, bool(failed) and (all if any_one else any)(failed)
