"""Nodes, reservations, licences and time limits of partitions of a live state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gridsim.errors import InputError
from gridsim.model.cluster_state import RunningJob, StateNode, StateReservation
from gridsim.model.site_file import SiteClock
from gridsim.model.site_file.conf import generic_resources
from gridsim.model.site_file.reservations import PERIODS
from gridsim.workload.problems import Problems
from gridsim.workload.slurm_state.job_lists import WORDS, Line, shown, split_lines, text_of


def _records(folder: Path, name: str, first: str, clock: SiteClock) -> Iterator[Line]:
    """Yield the records of a file with the output of ``scontrol show``; none if there is no such file."""
    return shown(*text_of(folder, f"scontrol_{name}.txt"), clock, first, f"show {name}")


def read_nodes(folder: Path, clock: SiteClock) -> tuple[StateNode, ...]:
    """Return the nodes in ``scontrol_node.txt``, else in ``sinfo.txt``, which has a line for each partition."""
    lines = list(_records(folder, "node", "NodeName", clock))
    found: dict[str, StateNode] = {}
    for line in lines or split_lines(*text_of(folder, "sinfo.txt"), clock, "sinfo"):
        node = _node(line)
        if lines and node.node in found:
            raise line.wrong("NodeName", node.node, "a name that occurs once")
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
    begins = [word.startswith(tuple(WORDS["down"])) for word in words.split("+")]
    state = "down" if "*" in words or any(begins) else "no new jobs" if "DRAIN" in words else "up"
    gpus, _ = generic_resources(line, line.text("Gres"))
    return StateNode(
        node=name,
        cores=cores,
        memory=max(line.count("RealMemory") - line.count("MemSpecLimit"), 0),
        gpus=dict(+gpus),
        features=line.split("AvailableFeatures"),
        partitions=line.split("Partitions"),
        weight=line.count("Weight", line.text("Weight") or "1"),
        state=state,  # type: ignore[arg-type]
    )


def with_running(
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


def read_reservations(folder: Path, clock: SiteClock) -> tuple[tuple[StateReservation, ...], list[str]]:
    """Return the reservations of nodes in ``scontrol_reservation.txt``, and notes on those that are repeated."""
    found: list[StateReservation] = []
    notes: list[str] = []
    for line in _records(folder, "reservation", "ReservationName", clock):
        name, nodes, start, end = (
            line.text("ReservationName"),
            line.hosts("Nodes"),
            line.time("StartTime"),
            line.time("EndTime"),
        )
        flags = {flag.partition("=")[0] for flag in line.split("Flags")}
        if nodes and flags & {*PERIODS, "TIME_FLOAT"}:
            notes.append(f"reservation {name} is repeated or has a floating start; only its next time is in the state")
        one = StateReservation(
            name=name,
            start=start,
            end=end if end > start else None,
            nodes=nodes,
            cores=line.count("CoreCnt") or None,
            users=line.split("Users"),
            accounts=line.split("Accounts"),
            maintenance="MAINT" in flags,
        )
        found += [one] * bool(nodes)
    return tuple(found), notes


def read_licences(folder: Path, clock: SiteClock) -> dict[str, dict[str, int]]:
    """Return the licences in ``scontrol_licenses.txt``: total and used, by name."""
    lines = _records(folder, "licenses", "LicenseName", clock)
    return {line.text("LicenseName"): {key: line.count(key) for key in ("total", "used")} for line in lines}


def read_limits(folder: Path, clock: SiteClock) -> dict[str, int | None]:
    """Return ``DefaultTime``, else ``MaxTime``, of the partitions, s; None for no limit."""
    lines = _records(folder, "partition", "PartitionName", clock)
    return {line.text("PartitionName"): line.seconds("DefaultTime") or line.seconds("MaxTime") for line in lines}
