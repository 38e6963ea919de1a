"""Nodes, reservations, licences and time limits of partitions of a live state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridsim.errors import InputError
from gridsim.model.capacity import GPU
from gridsim.model.cluster_state import NodeState, RunningJob, StateNode, StateReservation
from gridsim.model.site_file import SiteClock, minutes, read_slurm_conf
from gridsim.model.site_file.conf import generic_resources
from gridsim.model.site_file.reservations import PERIODS, reservation_records
from gridsim.model.site_file.syntax import ConfLine
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.workload.formats.stream import packed_file
from gridsim.workload.problems import Problems
from gridsim.workload.slurm_state.job_lists import lines_of, show_records, split_lines

_DOWN = ("DOWN", "FAIL", "ERROR", "FUTURE", "UNK", "NOT_RESPONDING", "NO_RESPOND")


def _shown(folder: Path, name: str, first: str, command: str) -> Iterator[ConfLine]:
    """Yield the records of a file with the output of `scontrol`; none if there is no such file."""
    if (path := packed_file(folder, name)) is not None:
        for number, words in show_records(path, lines_of(path), first, f"scontrol show {command}"):
            yield ConfLine(path, number, words)


def read_nodes(folder: Path) -> tuple[StateNode, ...]:
    """Return the nodes in ``scontrol_node.txt``, else in ``sinfo.txt``, which has a line for each partition."""
    found = {}
    for line in _shown(folder, "scontrol_node.txt", "NodeName", "node"):
        node = _node(line)
        if node.node in found:
            raise line.wrong("NodeName", node.node, "a name that occurs once")
        found[node.node] = node
    if not found and (path := packed_file(folder, "sinfo.txt")) is not None:
        for number, words in split_lines(path, "sinfo"):
            node = _node(ConfLine(path, number, words))
            others = found[node.node].partitions if node.node in found else ()
            found[node.node] = replace(node, partitions=tuple(dict.fromkeys((*others, *node.partitions))))
    if not found:
        raise InputError("has no nodes; expected scontrol_node.txt or sinfo.txt with a node", path=folder)
    return tuple(found.values())


def _node(line: ConfLine) -> StateNode:
    name, state, written = line.text("NodeName"), line.text("State"), line.text("CPUTot")
    cores = line.number_of("CPUEfctv", ConfLine(line.path, line.number, {"CPUTot": written}).number_of("CPUTot", 0))
    memory, weight = line.number_of("RealMemory", 0) - line.number_of("MemSpecLimit", 0), line.number_of("Weight", 1)
    if not name or not state or cores < 1 or min(memory, weight) < 0:
        raise line.wrong("NodeName", name, "a node with a name, a state, cores, memory and weight")
    gpus: dict[str, int] = {}
    for resource, kind, count in generic_resources(line, line.text("Gres")):
        if resource == GPU and count:
            gpus[kind] = gpus.get(kind, 0) + count
    features, partitions = _names(line, "AvailableFeatures"), _names(line, "Partitions")
    amounts = {"cores": cores, "memory": memory, "weight": weight}
    return StateNode(node=name, gpus=gpus, features=features, partitions=partitions, state=_state(state), **amounts)


def _names(line: ConfLine, key: str) -> tuple[str, ...]:
    return tuple(name.rstrip("*") for name in line.text(key).split(",") if name)


def _state(text: str) -> NodeState:
    """Return the state of a node for jobs.

    Examples
    --------
    >>> _state("MIXED+DRAIN"), _state("IDLE*"), _state("drained"), _state("IDLE+CLOUD+POWERED_DOWN")
    ('no new jobs', 'down', 'no new jobs', 'up')
    """
    words = text.upper().split("+")
    if "*" in text or any(word.startswith(_DOWN) for word in words):
        return "down"
    return "no new jobs" if any(word.startswith("DRAIN") for word in words) else "up"


def with_running(
    nodes: tuple[StateNode, ...], running: tuple[RunningJob, ...], problems: Problems
) -> tuple[tuple[StateNode, ...], list[str]]:
    """Return the nodes with at least what the running jobs hold of each, and notes on those that have less.

    Of a job on several nodes, a node holds at least what the others cannot hold, and one core.
    """
    found, notes = {node.node: node for node in nodes}, []
    for key, least in (("cores", 1), ("memory", 0), ("gpus", 0)):
        there = {name: _amount(getattr(node, key)) for name, node in found.items()}
        held = dict.fromkeys(there, 0)
        for job in running:
            if unknown := [name for name in job.on if name not in found]:
                message = f"is {unknown[0]} for job {job.job}; expected a node of the list of nodes"
                raise InputError(message, path=problems.source, field="NodeList")
            beyond = _amount(getattr(job, key)) - sum(there[name] for name in job.on)
            for name in () if job.stopped else job.on:
                held[name] += max(beyond + there[name], least)
        for name in (name for name in there if held[name] > there[name]):
            value = f"{held[name]} {key} in use by running jobs on node {name}, which has {there[name]}"
            problems.found("overfull", [], count=1, value=value)
            notes.append(f"node {name} is enlarged: {value}")
            node, more = found[name], held[name] - there[name]
            gpus = {**node.gpus, "": node.gpus.get("", 0) + more * (key == "gpus")} if key == "gpus" else node.gpus
            cores, memory = node.cores + more * (key == "cores"), node.memory + more * (key == "memory")
            found[name] = replace(node, cores=cores, memory=memory, gpus=gpus)
    return tuple(found.values()), notes


def _amount(value: Any) -> int:
    return value if isinstance(value, int) else sum(value.values())


def read_reservations(folder: Path, clock: SiteClock) -> tuple[tuple[StateReservation, ...], list[str]]:
    """Return the reservations of nodes in ``scontrol_reservation.txt``, and notes on those that are repeated."""
    found: list[StateReservation] = []
    notes: list[str] = []
    path = packed_file(folder, "scontrol_reservation.txt")
    for number, words in reservation_records(path, lines_of(path)) if path else ():
        line = ConfLine(path, number, words)
        name, nodes = line.text("ReservationName"), tuple(line.names("Nodes", line.text("Nodes")))
        flags = {flag.partition("=")[0] for flag in line.text("Flags").upper().split(",")}
        start, end = (_time(line, key, clock) for key in ("StartTime", "EndTime"))
        if not nodes:
            continue
        if flags & {*PERIODS, "TIME_FLOAT"}:
            notes.append(f"reservation {name} is repeated or has a floating start; only its next time is in the state")
        users, accounts, cores = _names(line, "Users"), _names(line, "Accounts"), line.number_of("CoreCnt", 0)
        more = {"end": end if end > start else None, "cores": cores if cores > 0 else None}
        known = {"name": name, "start": start, "nodes": nodes, "users": users, "accounts": accounts}
        found.append(StateReservation(**known, **more, maintenance="MAINT" in flags))  # type: ignore[arg-type]
    return tuple(found), notes


def _time(line: ConfLine, key: str, clock: SiteClock) -> int:
    """Return a Unix time, s; 0 if it is unknown."""
    text = line.text(key)
    if text.upper() in ("", "UNKNOWN", "NONE"):
        return 0
    return max(clock.instant(text, field=key, path=line.path, line=line.number) // MICROSECOND, 0)


def read_licences(folder: Path) -> dict[str, dict[str, int]]:
    """Return the licences in ``scontrol_licenses.txt``: total and used, by name."""
    lines = _shown(folder, "scontrol_licenses.txt", "LicenseName", "licenses")
    return {
        line.text("LicenseName"): {key: max(line.number_of(key, 0), 0) for key in ("total", "used")} for line in lines
    }


def read_limits(folder: Path) -> dict[str, int]:
    """Return ``DefaultTime``, else ``MaxTime``, of the partitions that have one, s; empty without a file of them."""
    lines = _shown(folder, "scontrol_partition.txt", "PartitionName", "partition")
    keys = ("DefaultTime", "MaxTime")
    found = {line.text("PartitionName"): [line.time_of(key, NEVER, minutes) for key in keys] for line in lines}
    if not found and (path := folder / "slurm.conf").is_file():
        found = {each.name: [each.default_time, each.longest] for each in read_slurm_conf(path).partitions}
    chosen = {name: default if default < NEVER else longest for name, (default, longest) in found.items()}
    return {name: limit // MICROSECOND for name, limit in chosen.items() if limit < NEVER}
