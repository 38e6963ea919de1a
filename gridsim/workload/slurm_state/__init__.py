"""Live state of a Slurm cluster, from a folder with the output of its commands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridsim.errors import InputError
from gridsim.model.cluster_state import ClusterState, NodeState, RunningJob, StateNode, StateReservation
from gridsim.model.site_file.reservations import PERIODS, SiteClock
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.workload.formats.sacct.fields import COMMAND
from gridsim.workload.problems import Problems
from gridsim.workload.slurm_state import job_lists
from gridsim.workload.slurm_state.job_lists import WORDS, Line, text_of


def print_collect() -> str:
    """Return the script that collects the files of `read_slurm_state` in a folder."""
    script = Path(__file__).with_name("collect.sh").read_text(encoding="utf-8")
    history = COMMAND.replace("-S 2026-01-01 -E now", '-S "now-${weeks}weeks" -E now')
    for command in ("squeue", "sinfo"):
        script = script.replace(f"@{command}@", "|".join(job_lists.KEYS[command]))
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
    path, lines = job_lists.job_lines(folder, clock)
    problems = Problems(rules, source=path)
    moment, notes = _moment(folder, job_lists.newest_time(lines))
    state = job_lists.jobs_at(moment, lines, problems)
    limits = _limits(folder, clock)
    waiting = (replace(job, limit=job.limit or limits.get(job.partition.partition(",")[0])) for job in state.waiting)
    nodes, enlarged = _with_running(_nodes(folder, clock), state.running, problems)
    reservations, repeated = _reservations(folder, clock)
    others: dict[str, Any] = {"reservations": reservations, "licences": _licences(folder, clock)}
    others |= {"notes": (*notes, *state.notes, *enlarged, *repeated)}
    return replace(state, waiting=tuple(waiting), nodes=nodes, **others)


def _moment(folder: Path, newest: int) -> tuple[int, list[str]]:
    """Return the moment of the state (Unix time, s), and notes on it."""
    path, text = text_of(folder, "now")
    if not text and newest:
        return newest, ["there is no file 'now': the moment of the state is the newest time in the list of jobs"]
    if not re.fullmatch("[0-9]{1,11}", text.strip()):
        raise InputError(f"is '{text.strip()[:60]}'; expected the output of date +%s", path=path, line=1)
    away = abs(int(text) - newest) if newest else 0
    return int(text), [f"'now' is {away / 60:.0f} min from the newest time in the list of jobs"] if away > 600 else []


def _records(folder: Path, name: str, first: str, clock: SiteClock) -> Iterator[Line]:
    """Yield the records of a file with the output of ``scontrol show``; none if there is no such file."""
    return job_lists.shown(*text_of(folder, f"scontrol_{name}.txt"), clock, first, f"show {name}")


def _nodes(folder: Path, clock: SiteClock) -> tuple[StateNode, ...]:
    """Return the nodes in ``scontrol_node.txt``, else in ``sinfo.txt``, which has a line for each partition."""
    found: dict[str, StateNode] = {}
    lines = list(_records(folder, "node", "NodeName", clock))
    for line in lines or job_lists.split_lines(*text_of(folder, "sinfo.txt"), clock, "sinfo"):
        node = _node(line)
        others = found[node.node].partitions if node.node in found else ()
        found[node.node] = replace(node, partitions=tuple(dict.fromkeys((*others, *node.partitions))))
    if not found:
        raise InputError("has no nodes; expected scontrol_node.txt or sinfo.txt with a node", path=folder)
    return tuple(found.values())


def _node(line: Line) -> StateNode:
    name, words = line.text("NodeName"), line.text("State").upper()
    cores = line.count("CPUEfctv") or line.count("CPUTot")
    if not name or not words or not cores:
        raise line.wrong("NodeName", name, "a node with a name, a state and cores")
    down = "*" in words or any(word.startswith(tuple(WORDS["down"])) for word in words.split("+"))
    state: NodeState = "down" if down else "no new jobs" if "DRAIN" in words else "up"
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
