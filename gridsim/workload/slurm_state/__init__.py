"""Live state of a Slurm cluster, from a folder with the output of its commands."""

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
from gridsim.model.cluster_state import ClusterState, RunningJob, StateNode, StateReservation, WaitingJob
from gridsim.model.job_id import fields_of
from gridsim.model.site.parameters import CPU, GPUS, LICENCE, MEMORY, licences_requested
from gridsim.model.site_file.conf import generic_resources
from gridsim.model.site_file.reservations import PERIODS, Record, SiteClock
from gridsim.model.site_file.syntax import integer, minutes, named_values, records
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.schema import ANY, check
from gridsim.workload.formats.sacct import document, fields, values
from gridsim.workload.problems import Problems

_KEYS: Mapping[str, Mapping[str, str]] = read_toml(Path(__file__).with_name("keys.toml"))
"""Keys of `scontrol` for the columns of ``squeue``, ``sinfo`` and ``squeue_json``, and words."""

_WORDS: Mapping[str, Any] = _KEYS["words"]
_NAMES = {key.lower(): name for name, key in _KEYS["squeue_json"].items()}
_DEPENDENCY = re.compile(r"(\w+)(?::([^(),?]*))?(?:\((\w+)\))?")
_MOST_TASKS = 200_000
"""Largest number of waiting tasks of one array."""


def print_collect() -> str:
    """Return the script that collects the files of `read_slurm_state` in a folder."""
    script = Path(__file__).with_name("collect.sh").read_text(encoding="utf-8")
    history = fields.COMMAND.replace("-S 2026-01-01 -E now", '-S "now-${weeks}weeks" -E now')
    for command in ("squeue", "sinfo"):
        script = script.replace(f"@{command}@", "|".join(_KEYS[command]))
    return script.replace("@sacct@", history)


def read_slurm_state(
    folder: str | Path, *, timezone: str | None = None, rules: Mapping[str, str] | None = None
) -> ClusterState:
    """Return the state of a Slurm cluster.

    Parameters
    ----------
    folder : path
        Folder with the files that the script of `print_collect` writes; each may be compressed (gzip or xz). Needed are
        a list of jobs (``squeue.json``, ``scontrol_job.txt`` or ``squeue.txt``, in this order) and of nodes
        (``scontrol_node.txt``, or ``sinfo.txt``).
    timezone : str, optional
        Zone of times without one, such as ``Europe/Berlin``. Not needed for Unix times.
    rules : mapping of str to str, optional
        Rules for the kinds ``missing-field`` and ``overfull`` (`gridsim.workload.problems`).

    Returns
    -------
    ClusterState
        The state; its `notes` contain what was assumed or left out.

    Raises
    ------
    InputError
        With file, line and job, for missing files, damaged lists and impossible values.
    """
    folder, clock = Path(folder), SiteClock(0, timezone)
    clock.zone()
    path, lines = _job_lines(folder, clock)
    problems = Problems(rules, source=path)
    moment, notes = _moment(folder, _newest_time(lines))
    state = _jobs_at(moment, lines, problems)
    limits = _limits(folder, clock)
    waiting = (replace(job, limit=job.limit or limits.get(job.partition.partition(",")[0])) for job in state.waiting)
    nodes, enlarged = _with_running(_nodes(folder, clock), state.running, problems)
    reservations, repeated = _reservations(folder, clock)
    others: dict[str, Any] = {"reservations": reservations, "licences": _licences(folder, clock)}
    others |= {"notes": (*notes, *state.notes, *enlarged, *repeated)}
    return replace(state, waiting=tuple(waiting), nodes=nodes, **others)


def _moment(folder: Path, newest: int) -> tuple[int, list[str]]:
    """Return the moment of the state (Unix time, s), and notes on it."""
    path, text = _text_of(folder, "now")
    if not text and newest:
        return newest, ["there is no file 'now': the moment of the state is the newest time in the list of jobs"]
    if not re.fullmatch("[0-9]{1,11}", text.strip()):
        raise InputError(f"is '{text.strip()[:60]}'; expected the output of date +%s", path=path, line=1)
    away = abs(int(text) - newest) if newest else 0
    return int(text), [f"'now' is {away / 60:.0f} min from the newest time in the list of jobs"] if away > 600 else []


def check_history(state: ClusterState, history: Workload, path: object = None) -> None:
    """Raise `InputError` if a log has no user of the state, because it is that of another cluster.

    Parameters
    ----------
    state : ClusterState
        The state.
    history : Workload
        The log; without names of users it is not checked.
    path : path, optional
        File of the log, for the error.
    """
    users = {job.user for job in (*state.running, *state.waiting)}
    names = history.names.get("user", ())
    logged = {names[code] for code in set(history.labels.get("user", ())) if UNKNOWN < code < len(names)}
    if users and logged and users.isdisjoint(logged):
        shown = [", ".join(sorted(each)[:3]) for each in (users, logged)]
        message = f"has users such as {shown[1]}, but none of the state's ({shown[0]}); expected the same cluster"
        raise InputError(message, path=path, field="User")


# -- files and records -------------------------------------------------------------------------------------------------


class _Line(Record):
    """Values of a record by the keys of `scontrol`; errors contain the key of the file, and the job."""

    def __init__(self, path: Path, number: int, words: Mapping[str, str], clock: SiteClock):
        super().__init__(path, number, words, clock)
        self.job = words.get("JobId", "")
        self.spelled |= _NAMES if ".json" in path.suffixes else {}
        first, *flags = words.get("JobState", "").split(",")  # a flag decides whether a job holds nodes or is held
        self.state = next((flag for flag in flags if flag in (*_WORDS["running"], *_WORDS["waiting"])), first)
        self.runs, self.waits = (self.state in _WORDS[kind] for kind in ("running", "waiting"))

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
        if (text := self.text(key)).upper() in _WORDS["unknown"]:
            return 0
        return max(self.clock.instant(text, field=self.key(key), path=self.path, line=self.number) // MICROSECOND, 0)

    def seconds(self, key: str) -> int | None:
        """Return a length of time, s; None for no limit, and if it is unknown."""
        if (text := self.text(key)).upper() in _WORDS["unknown"]:
            return None
        found = self.read(key, text, minutes, "a time such as 1-00:00:00 or UNLIMITED")
        return found // MICROSECOND if found < NEVER else None


def _text_of(folder: Path, name: str) -> tuple[Path, str]:
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


def _job_lines(folder: Path, clock: SiteClock) -> tuple[Path, list[_Line]]:
    """Return the first of the three lists that the folder has, and its jobs.

    Raises
    ------
    InputError
        For a folder without such a list, and for a list that was cut or has other contents.
    """
    lists = {"squeue.json": _document, "scontrol_job.txt": _shown, "squeue.txt": _printed}
    for name, read in lists.items():
        path, text = _text_of(folder, name)
        if path.is_file():
            if read is _shown and not text.strip():
                raise InputError("is empty, so it was cut: an empty list is 'No jobs in the system'", path=path)
            return path, list(read(path, text, clock))
    what = "has no list of jobs" if folder.is_dir() else "is a file" if folder.exists() else "folder does not exist"
    raise InputError(f"{what}; expected a folder with {' or '.join(lists)}", path=folder)


def _document(path: Path, text: str, clock: SiteClock) -> Iterator[_Line]:
    data = text.encode()
    content = parse_json(data, path, "the whole output of squeue --json")
    check(content, {"jobs": [{"job_id": ANY}]}, path=path, data=data)
    for line, job in document.Document(io.BytesIO(data), path).entries():
        words: dict[str, str] = {}
        for name, key in _KEYS["squeue_json"].items():
            words[key] = _text(job.get(name)) or words.get(key, "")
        yield _Line(path, line, words, clock)


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


def _shown(path: Path, text: str, clock: SiteClock) -> Iterator[_Line]:
    text = _NAME.sub(lambda found: found[1] + "\n" * found[0].count("\n") + found[2], text)
    for line in _records_of(path, text, clock, "JobId", "-a -o show job"):
        tres, user = line.text("TRES"), line.text("UserId").partition("(")[0]
        line.rest = {"alloctres": tres, "reqtres": tres} | line.rest | {"userid": user}
        yield line


def _records_of(path: Path, text: str, clock: SiteClock, first: str, command: str) -> Iterator[_Line]:
    """Yield the records of the output of `scontrol`, which begin with a key; of a repeated key, the first counts."""
    for number, pairs in records(path, text.split("\n"), first, f"scontrol {command}"):
        yield _Line(path, number, dict(reversed(pairs)), clock)


def _split_lines(path: Path, text: str, clock: SiteClock, command: str) -> Iterator[_Line]:
    """Yield the lines of a list with the columns of a command; the last column can contain delimiters."""
    keys = _KEYS[command].values()
    for number, line in enumerate(text.split("\n"), start=1):
        cells = line.split("|", len(keys) - 1)
        if len(cells) < len(keys) and line.strip():
            message = f"has {len(cells)} fields; expected {len(keys)} ({command} -h -o '{'|'.join(_KEYS[command])}')"
            raise InputError(message, path=path, line=number)
        texts = ("" if cell.strip() in ("(null)", "N/A") else cell.strip() for cell in cells)
        if line.strip():
            yield _Line(path, number, dict(zip(keys, texts, strict=True)), clock)


def _printed(path: Path, text: str, clock: SiteClock) -> Iterator[_Line]:
    """Yield the lines of `squeue`, with its resources per node or core as a list for the whole job."""
    for line in _split_lines(path, text, clock, "squeue"):
        nodes = line.count("NumNodes")
        memory, unit = values.memory(line.text("MinMemory").encode())
        amounts = {"cpu": line.text("NumCPUs")}
        amounts |= {"mem": f"{memory * (line.count('NumCPUs') if unit == b'c' else nodes)}M"} if memory > 0 else {}
        amounts |= {f"gres/gpu:{kind}".rstrip(":"): str(count * nodes) for kind, count in line.gpus().items()}
        listed = ",".join(f"{name}={amount}" for name, amount in amounts.items())
        begin = line.text("StartTime" if line.text("Reason") == "BeginTime" else "SubmitTime")
        line.rest |= {"alloctres": listed, "reqtres": listed, "eligibletime": begin}
        yield line


# -- jobs --------------------------------------------------------------------------------------------------------------


def _newest_time(lines: Iterable[_Line]) -> int:
    """Return the latest past time in a list (Unix time, s); 0 if there is none."""
    found = [0]
    for line in lines:
        own = [] if line.waits else ["StartTime" if line.runs else "EndTime"]
        found += [line.time(key) for key in ("SubmitTime", "SuspendTime", "LastSchedEval", *own)]
    return max(found)


def _jobs_at(moment: int, lines: Iterable[_Line], problems: Problems) -> ClusterState:
    """Return the state at a moment (Unix time, s) with its jobs; a note names those without a needed field."""
    running, waiting, skipped = list[RunningJob](), list[WaitingJob](), list[str]()
    left_out = Counter[str]()
    for line in lines:
        if line.state not in values.STATES:
            raise line.wrong("JobState", line.state, "a state such as RUNNING or PENDING")
        if not line.runs and not line.waits:
            left_out[line.state] += 1
            continue
        facts = _facts(line)
        needed = {"NumCPUs": facts["cores"], "UserId": facts["user"], "Partition": facts["partition"]}
        needed |= {"NodeList": line.text("NodeList"), "StartTime": line.time("StartTime")} if line.runs else {}
        if lacking := [key for key, value in needed.items() if not value]:
            value = f"no value for job {line.job}"
            problems.found("missing-field", [line.number or 1], value=value, field=line.key(lacking[0]))
            skipped.append(line.job)
        elif line.runs:
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
    notes = (note,) * bool(skipped)
    return ClusterState(moment, tuple(running), tuple(waiting), left_out=dict(left_out), notes=notes)


def _facts(line: _Line) -> dict[str, Any]:
    """Return the fields that running and waiting jobs have."""
    key = "AllocTRES" if line.runs else "ReqTRES"
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


def _tasks(line: _Line) -> tuple[int | None, list[int], int | None]:
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


def _running(line: _Line, facts: dict[str, Any], moment: int) -> RunningJob:
    array, tasks, _ = _tasks(line)
    start, suspended, stopped = line.time("StartTime"), line.time("SuspendTime"), line.state == "SUSPENDED"
    elapsed, used = moment - start, line.seconds("TimeUsed")
    if suspended:
        elapsed = line.count("SecsPreSuspend") + (0 if stopped else moment - suspended)
    elif used is not None and (stopped or elapsed > used + 60):
        elapsed = used  # squeue prints no suspensions, but a time without them
    facts |= {"on": line.hosts("NodeList"), "job": f"{array}_{tasks[0]}" if tasks else line.job}
    return RunningJob(start=start, elapsed=max(elapsed, 0), stopped=stopped, **facts)


def _waiting(line: _Line, facts: dict[str, Any], moment: int) -> list[WaitingJob]:
    """Return the job, or the tasks of its array."""
    array, tasks, throttle = _tasks(line)
    eligible = line.time("EligibleTime")
    reason = line.state if line.state in _WORDS["held"] else line.text("Reason")
    priority = line.count("Priority", line.text("Priority") or "1")
    after, any_one, cannot = _dependencies(line)
    rules = {
        "held": priority == 0 or reason in _WORDS["held"],
        "never": reason in _WORDS["never"] or cannot,
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


def _dependencies(line: _Line) -> tuple[tuple[tuple[str, str, str], ...], bool, bool]:
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


# -- machine -----------------------------------------------------------------------------------------------------------


def _records(folder: Path, name: str, first: str, clock: SiteClock) -> Iterator[_Line]:
    """Yield the records of a file with the output of ``scontrol show``; none if there is no such file."""
    return _records_of(*_text_of(folder, f"scontrol_{name}.txt"), clock, first, f"show {name}")


def _nodes(folder: Path, clock: SiteClock) -> tuple[StateNode, ...]:
    """Return the nodes in ``scontrol_node.txt``, else in ``sinfo.txt``, which has a line for each partition."""
    found: dict[str, StateNode] = {}
    lines = list(_records(folder, "node", "NodeName", clock))
    for line in lines or _split_lines(*_text_of(folder, "sinfo.txt"), clock, "sinfo"):
        node = _node(line)
        others = found[node.node].partitions if node.node in found else ()
        found[node.node] = replace(node, partitions=tuple(dict.fromkeys((*others, *node.partitions))))
    if not found:
        raise InputError("has no nodes; expected scontrol_node.txt or sinfo.txt with a node", path=folder)
    return tuple(found.values())


def _node(line: _Line) -> StateNode:
    name, words = line.text("NodeName"), line.text("State").upper()
    cores = line.count("CPUEfctv") or line.count("CPUTot")
    if not name or not words or not cores:
        raise line.wrong("NodeName", name, "a node with a name, a state and cores")
    down = "*" in words or any(word.startswith(tuple(_WORDS["down"])) for word in words.split("+"))
    state = "down" if down else "no new jobs" if "DRAIN" in words else "up"
    memory = max(line.count("RealMemory") - line.count("MemSpecLimit"), 0)
    known = {"node": name, "cores": cores, "memory": memory, "weight": line.count("Weight", line.text("Weight") or "1")}
    names = {"features": line.split("AvailableFeatures"), "partitions": line.split("Partitions")}
    return StateNode(**known, **names, gpus=line.gpus(), state=state)  # type: ignore[arg-type]


def _with_running(
    nodes: tuple[StateNode, ...], running: tuple[RunningJob, ...], problems: Problems
) -> tuple[tuple[StateNode, ...], list[str]]:
    """Return the nodes with at least the cores that running jobs hold of each, and notes on those that have less.

    Of a job on several nodes, a node holds at least what the others cannot hold, and one core.
    """
    there, held, notes = {node.node: node.cores for node in nodes}, Counter[str](), []
    for job in running:
        if unknown := [name for name in job.on if name not in there]:
            message = f"is {unknown[0]} for job {job.job}; expected a node of the list of nodes"
            raise InputError(message, path=problems.source, field="NodeList")
        beyond = job.cores - sum(there[name] for name in job.on)
        for name in () if job.stopped else job.on:
            held[name] += max(beyond + there[name], 1)
    for name in (name for name in there if held[name] > there[name]):
        value = f"{held[name]} cores in use by running jobs on node {name}, which has {there[name]}"
        problems.found("overfull", [], count=1, value=value)
        notes.append(f"node {name} is enlarged: {value}")
    return tuple(replace(node, cores=max(node.cores, held[node.node])) for node in nodes), notes


def _reservations(folder: Path, clock: SiteClock) -> tuple[tuple[StateReservation, ...], list[str]]:
    """Return the reservations of nodes in ``scontrol_reservation.txt``, and notes on those that are repeated."""
    found, notes = list[StateReservation](), list[str]()
    for line in _records(folder, "reservation", "ReservationName", clock):
        name, nodes, cores = line.text("ReservationName"), line.hosts("Nodes"), line.count("CoreCnt") or None
        start, end = line.time("StartTime"), line.time("EndTime")
        flags = {flag.partition("=")[0] for flag in line.split("Flags")}
        if not nodes:
            continue
        if flags & {*PERIODS, "TIME_FLOAT"}:
            notes.append(f"reservation {name} is repeated or has a floating start; only its next time is in the state")
        known = {"name": name, "start": start, "end": end if end > start else None, "nodes": nodes, "cores": cores}
        known |= {"users": line.split("Users"), "accounts": line.split("Accounts"), "maintenance": "MAINT" in flags}
        found.append(StateReservation(**known))  # type: ignore[arg-type]
    return tuple(found), notes


def _licences(folder: Path, clock: SiteClock) -> dict[str, dict[str, int]]:
    """Return the licences in ``scontrol_licenses.txt``: total and used, by name."""
    lines = _records(folder, "licenses", "LicenseName", clock)
    return {line.text("LicenseName"): {key: line.count(key) for key in ("total", "used")} for line in lines}


def _limits(folder: Path, clock: SiteClock) -> dict[str, int | None]:
    """Return ``DefaultTime``, else ``MaxTime``, of the partitions, s; None for no limit."""
    lines = _records(folder, "partition", "PartitionName", clock)
    return {line.text("PartitionName"): line.seconds("DefaultTime") or line.seconds("MaxTime") for line in lines}
