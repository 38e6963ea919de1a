"""Running and waiting jobs of a state, from the lines of a list of jobs."""

from __future__ import annotations

import re
from collections import Counter
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
from gridsim.workload.slurm_state.job_lists import WORDS, Line

_DEPENDENCY = re.compile(r"(\w+)(?::([^(),?]*))?(?:\((\w+)\))?")
_MOST_TASKS = 200_000
"""Largest number of waiting tasks of one array."""


def newest_time(lines: Iterable[Line]) -> int:
    """Return the latest past time in a list (Unix time, s); 0 if there is none."""
    found = [0]
    for line in lines:
        own = "StartTime" if line.state in WORDS["running"] else "EndTime" if line.state not in WORDS["waiting"] else ""
        found += [line.time(key) for key in ("SubmitTime", "SuspendTime", "LastSchedEval", own)]
    return max(found)


def jobs_at(
    moment: int, lines: Iterable[Line], problems: Problems
) -> tuple[tuple[RunningJob, ...], tuple[WaitingJob, ...], list[str]]:
    """Return the running and the waiting jobs of the state at a moment (Unix time, s), and jobs that lack a field."""
    running: list[RunningJob] = []
    waiting: list[WaitingJob] = []
    skipped: list[str] = []
    for line in lines:
        runs = line.state in WORDS["running"]
        if not runs and line.state not in WORDS["waiting"]:
            continue
        facts = _facts(line, runs=runs)
        needed = {"NumCPUs": facts["cores"], "UserId": facts["user"], "Partition": facts["partition"]}
        needed |= {"NodeList": line.text("NodeList")} if runs else {}
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
    return tuple(running), tuple(waiting), skipped


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
    array, parts = line.count("ArrayJobId"), task_list(listed)
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
    if not start:
        raise line.wrong("StartTime", line.text("StartTime"), "the start of a running job")
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
