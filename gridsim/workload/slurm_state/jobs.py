"""Running and waiting jobs of a state, from the lines of a list of jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from gridsim.errors import InputError
from gridsim.model.cluster_state import RunningJob, WaitingJob
from gridsim.model.job_id import fields_of
from gridsim.model.site.parameters import CPU, GPUS, LICENCE, MEMORY, licences_requested
from gridsim.model.site_file.syntax import named_values
from gridsim.workload.formats.sacct import values
from gridsim.workload.formats.sacct.document import task_list
from gridsim.workload.problems import Problems
from gridsim.workload.slurm_state.job_lists import HELD, RUNNING, WAITING, JobLine

_HELD_REASONS = ("JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue")
_NEVER_REASONS = ("DependencyNeverSatisfied", "BadConstraints", "PartitionDown", "InvalidAccount", "InvalidQOS")
_DEPENDENCY = re.compile(r"(\w+)(?::([^(),?]*))?(?:\((\w+)\))?")
_MOST_TASKS = 200_000
"""Largest number of waiting tasks of one array."""


def newest_time(lines: Iterable[JobLine]) -> int:
    """Return the latest past time in a list (Unix time, s); 0 if there is none."""
    found = [0]
    for line in lines:
        ended = line.state not in (*RUNNING, *WAITING)
        past = ["StartTime"] * (line.state in RUNNING) + ["EndTime"] * ended
        found += [line.time(key) for key in ("SubmitTime", "SuspendTime", "LastSchedEval", *past)]
    return max(found)


def jobs_at(
    moment: int, lines: Iterable[JobLine], problems: Problems
) -> tuple[tuple[RunningJob, ...], tuple[WaitingJob, ...], list[str]]:
    """Return the running and the waiting jobs of the state at a moment (Unix time, s), and jobs that lack a field."""
    running: list[RunningJob] = []
    waiting: list[WaitingJob] = []
    skipped: list[str] = []
    for line in lines:
        if line.state not in (*RUNNING, *WAITING):
            continue
        if key := _missing(line):
            value = f"no value for job {line.job}"
            problems.found("missing-field", [line.number or 1], value=value, field=line.key(key))
            skipped.append(line.job)
        elif line.state in RUNNING:
            running.append(_running(line, moment))
        else:
            waiting += _waiting(line, moment)
    ids: set[str] = set()
    for job in (*running, *waiting):
        if job.job in ids or fields_of(job.job) is None:
            message = f"is '{job.job[:40]}'; expected a job number that occurs once in the list"
            raise InputError(message, path=problems.source, field="JobId")
        ids.add(job.job)
    running.sort(key=lambda job: (job.start, fields_of(job.job)))
    waiting.sort(key=lambda job: (-job.priority, job.submit))
    return tuple(running), tuple(waiting), skipped


def _missing(line: JobLine) -> str:
    """Return the key of a needed field that has no value; empty if all have one."""
    cores = dict(named_values(_resources(line))).get(CPU) or line.value("NumCPUs")
    needed = {"NumCPUs": cores.strip("0"), **{key: line.value(key) for key in ("UserId", "Partition")}}
    needed |= {"NodeList": line.value("NodeList")} if line.state in RUNNING else {}
    return next((key for key, text in needed.items() if not text), "")


def _resources(line: JobLine) -> str:
    return line.value("AllocTRES" if line.state in RUNNING else "ReqTRES")


def _facts(line: JobLine) -> dict[str, Any]:
    """Return the fields that running and waiting jobs have."""
    listed = _resources(line)
    amounts = dict(named_values(listed))
    memory = values.memory(amounts.get(MEMORY, "0").encode())[0]
    if memory < 0:
        raise line.wrong("ReqTRES", listed, "an amount of memory such as mem=62.50G")
    gpus = {name.removeprefix(GPUS).lstrip(":"): text for name, text in amounts.items() if name.startswith(GPUS)}
    typed = {kind: text for kind, text in gpus.items() if kind}
    licences = {name.removeprefix(LICENCE): text for name, text in amounts.items() if name.startswith(LICENCE)}
    if not licences and (text := line.value("Licenses")):
        licences = {name: str(count) for name, count in licences_requested(text[:1000]).items()}
    text = line.value("TimeLimit").upper()
    limit = values.ABSENT if text == "NOT_SET" else values.limit(text.encode())
    if limit == values.INVALID:
        raise line.wrong("TimeLimit", text, "a time limit such as 1-00:00:00 or UNLIMITED")
    return {
        **{key.lower().removesuffix("id"): line.value(key) for key in _TEXTS},
        "limit": limit if limit > 0 else None,
        "cores": line.count("NumCPUs", amounts.get(CPU) or line.value("NumCPUs").partition("-")[0]),
        "memory": memory,
        "gpus": {kind: n for kind, text in (typed or gpus).items() if (n := line.count("ReqTRES", text))},
        "licences": {name: n for name, text in licences.items() if (n := line.count("Licenses", text))},
        "nodes": max(line.count("NumNodes", line.value("NumNodes").partition("-")[0]), 1),
    }


_TEXTS = ("UserId", "Account", "Partition", "QOS", "Features", "Reservation")


def _tasks(line: JobLine) -> tuple[int | None, list[int], int | None]:
    """Return the number of the array, its tasks, and its throttle; None without tasks for another job."""
    text = line.value("ArrayTaskId")
    listed, _, throttle = text.partition("%")
    array = line.count("ArrayJobId")
    if not array or not listed:
        return None, [], None
    ranges = values.task_ranges(parts := task_list(listed))
    if len(ranges) != parts.count(b",") + 1 or not 0 < sum(map(len, ranges)) <= _MOST_TASKS:
        expected = f"up to {_MOST_TASKS:,} tasks such as 4-12%3; with SLURM_BITSTR_LEN=0, Slurm prints the whole list"
        raise line.wrong("ArrayTaskId", text, expected)
    at_once = line.count("ArrayTaskThrottle", throttle or None)
    return array, sorted({task for each in ranges for task in each}), at_once or None


def _running(line: JobLine, moment: int) -> RunningJob:
    array, tasks, _ = _tasks(line)
    start, suspended, stopped = line.time("StartTime"), line.time("SuspendTime"), line.state == "SUSPENDED"
    if not start:
        raise line.wrong("StartTime", line.value("StartTime"), "the start of a running job")
    elapsed = moment - start
    if suspended:
        elapsed = line.count("SecsPreSuspend") + (0 if stopped else moment - suspended)
    elif (used := values.duration(line.value("TimeUsed").encode())) >= 0 and (stopped or elapsed > used + 60):
        elapsed = used  # squeue prints no suspensions, but a time without them
    on = tuple(line.names("NodeList", line.value("NodeList")))
    job = f"{array}_{tasks[0]}" if tasks else line.job
    return RunningJob(job=job, start=start, elapsed=max(elapsed, 0), stopped=stopped, on=on, **_facts(line))


def _waiting(line: JobLine, moment: int) -> list[WaitingJob]:
    """Return the job, or the tasks of its array."""
    array, tasks, throttle = _tasks(line)
    eligible, start = line.time("EligibleTime"), line.time("StartTime")
    reason = line.state if line.state in HELD else line.value("Reason")
    priority = line.count("Priority", line.value("Priority") or "1")
    after, any_one, cannot = _dependencies(line)
    rules = {
        "held": priority == 0 or line.state in HELD or reason in _HELD_REASONS,
        "never": reason in _NEVER_REASONS or cannot,
        "after": bool(after),
        "not before": eligible > moment,
    }
    facts = _facts(line) | {"reason": reason, "priority": priority, "submit": line.time("SubmitTime")}
    facts |= {"kind": next((kind for kind, applies in rules.items() if applies), "queued")}
    facts |= {"eligible": eligible if eligible > moment else None, "slurm_start": start or None}
    facts |= {"after": after, "any_one": any_one, "array": array, "throttle": throttle}
    required, excluded = (tuple(line.names(key, line.value(key))) for key in ("ReqNodeList", "ExcNodeList"))
    job = WaitingJob(job=line.job, required=required, excluded=excluded, **facts)
    return [replace(job, job=f"{array}_{task}") for task in tasks] or [job]


def _dependencies(line: JobLine) -> tuple[tuple[tuple[str, str, str], ...], bool, bool]:
    """Return the unfulfilled dependencies, whether one of them is enough, and whether they cannot be fulfilled."""
    text = line.value("Dependency")
    found: list[tuple[str, str, str]] = []
    for part in filter(None, re.split("[,?]", text)):
        if (match := _DEPENDENCY.fullmatch(part)) is None:
            raise line.wrong("Dependency", text, "dependencies such as afterok:100(unfulfilled)")
        found += [(match[1], job, match[3] or "unfulfilled") for job in (match[2] or "").split(":")]
    any_one, states = "?" in text, [state for _, _, state in found]
    after = () if any_one and "fulfilled" in states else tuple(each for each in found if each[2] == "unfulfilled")
    failed = [state == "failed" for state in states]
    return after, any_one, bool(failed) and (all if any_one else any)(failed)
