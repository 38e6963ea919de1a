"""Jobs, machine and windows of a run that starts from the state of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gridsim.entities.beginning import Beginning, Condition
from gridsim.errors import InputError
from gridsim.model.capacity import NodeGroup
from gridsim.model.cluster_state import ClusterState, RunningJob, StateJob, WaitingJob
from gridsim.model.failures import Failures
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.time import MICROSECOND, IntArray, seconds
from gridsim.model.windows import Window
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.policy.protocols import Placement

LEAST_LEFT = 30 * MICROSECOND
"""Remaining limit of a job that has reached or exceeded its limit (Slurm checks limits about every 30 s)."""

_LABELS = ("user", "account", "partition", "qos")


@dataclass(frozen=True)
class StartingPoint:
    """A state as the input of a run, in which time 0 is the moment of the state.

    Attributes
    ----------
    jobs : Workload
        Running jobs, by start, then waiting ones in the order of the queue. Submit times are negative, except of jobs
        that enter the queue later; run times are the limits.
    beginning : Beginning
        Running jobs in place, and dependencies.
    platform : Platform
        One pool of cores; with windows one node for each core.
    windows : tuple of Window
        Nodes without new jobs, and reservations.
    ids : tuple of str
        Ids of the jobs.
    left_out : mapping of str to str
        Jobs without a forecast, with the reason.
    notes : tuple of str
        What is not modelled.
    """

    jobs: Workload
    beginning: Beginning
    platform: Platform
    windows: tuple[Window, ...]
    ids: tuple[str, ...]
    left_out: dict[str, str]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, state: ClusterState, default_limit: int | None = None) -> StartingPoint:
        """Return the starting point of a state; jobs without a limit have *default_limit* (s), or the longest one.

        Raises
        ------
        InputError
            If running jobs hold more cores than the machine has, or no job has a limit.
        """
        running = [job for job in state.running if not job.stopped]
        waiting = [job for job in state.waiting if job.kind not in ("held", "never")]
        jobs: list[RunningJob | WaitingJob] = [*running, *waiting]
        limits = [job.limit or default_limit or _longest(state) for job in jobs]
        windows = _windows(state)
        platform, places = _machine(state, running, on_nodes=bool(windows))
        conditions = {row: _conditions(job, row, jobs) for row, job in enumerate(jobs)}
        beginning = Beginning(
            [(job.elapsed * MICROSECOND, place) for job, place in zip(running, places, strict=True)],
            after={row: found for row, found in conditions.items() if found},
            any_one=frozenset(row for row, job in enumerate(jobs) if isinstance(job, WaitingJob) and job.any_one),
            throttles=_throttles(jobs),
        )
        left_out = {job.job: _why(job) for job in state.waiting if job.kind in ("held", "never")}
        stopped = len(state.running) - len(running)
        notes = [*state.notes, "nodes, features and partitions are ignored: the machine is one pool of cores"]
        notes += [f"{stopped} suspended jobs hold no cores; when they continue is not modelled"] * bool(stopped)
        return cls(
            _workload(state, jobs, limits, len(running)),
            beginning,
            platform,
            windows,
            tuple(job.job for job in jobs),
            left_out,
            tuple(notes),
        )

    def with_windows(self, failures: Failures | None) -> Failures:
        """Return failures with the windows of the state in addition."""
        failures = failures or Failures()
        return replace(failures, windows=(*failures.windows, *self.windows))

    def after(self, past: Workload, at: int) -> tuple[Workload, IntArray]:
        """Return the jobs behind those of a log, at its moment *at* (s), by submission, and their rows.

        Names of users and other labels are those of the log, followed by new ones.
        """
        labels, names = {}, {}
        for label in _LABELS:
            own = self.jobs.names[label]
            known = dict.fromkeys([*(past.names.get(label) or ()), *own])
            numbers = np.array([list(known).index(name) for name in own], dtype=np.int64)[self.jobs.labels[label]]
            column = past.labels.get(label, np.full(len(past), UNKNOWN, dtype=np.int64))
            labels[label], names[label] = np.concatenate([column, numbers]), tuple(known)
        columns = ("runtime", "estimate", "cores", "deadline")
        found: dict[str, Any] = {
            name: np.concatenate([getattr(past, name), getattr(self.jobs, name)]) for name in columns
        }
        submit = np.concatenate([past.submit, np.minimum(self.jobs.submit, 0) + at * MICROSECOND])
        order = np.argsort(submit, kind="stable")
        found |= {"submit": submit, "job": np.arange(1, len(submit) + 1), "labels": labels, "logged": {}}
        whole = replace(self.jobs, **found, names=names, provenance=past.provenance or self.jobs.provenance)
        return whole.select(order), np.argsort(order)[len(past) :]


def _longest(state: ClusterState) -> int:
    """Return the longest limit of the jobs of a state."""
    known = [job.limit for job in (*state.running, *state.waiting) if job.limit]
    if not known:
        raise InputError("has no job with a time limit; expected one", field="limit")
    return max(known)


def _workload(state: ClusterState, jobs: Sequence[StateJob], limits: Sequence[int], running: int) -> Workload:
    submit = np.zeros(len(jobs), dtype=np.int64)
    for row, job in enumerate(jobs):
        if isinstance(job, WaitingJob):
            submit[row] = max((job.eligible or state.at) - state.at, 0) or min(job.submit - state.at, 0)
        elif isinstance(job, RunningJob):
            submit[row] = -job.elapsed
    limit = np.array(limits, dtype=np.int64) * MICROSECOND
    limit[:running] = with_time_left(limit[:running], -submit[:running] * MICROSECOND)
    names = {label: tuple(sorted({getattr(job, label) for job in jobs})) for label in _LABELS}
    labels = {label: np.array([names[label].index(getattr(job, label)) for job in jobs]) for label in _LABELS}
    found = Workload.from_columns(
        submit=np.zeros(len(jobs)),
        runtime=seconds(limit),
        cores=[max(job.cores, 1) for job in jobs],
        labels=labels,
        provenance={"clock": {"origin": state.at, "zone": "epoch"}},
    )
    return replace(found, submit=submit * MICROSECOND, names=names)


def with_time_left(limit: IntArray, elapsed: IntArray) -> IntArray:
    """Return limits of running jobs, where those that are reached or exceeded leave 30 s, whole microseconds."""
    return np.where(limit > elapsed, limit, elapsed + LEAST_LEFT)


def _why(job: WaitingJob) -> str:
    """Return why a job has no forecast."""
    return "held; starts after its release at the earliest" if job.kind == "held" else job.reason


def _conditions(job: StateJob, row: int, jobs: Sequence[StateJob]) -> list[Condition]:
    """Return the dependencies of a job with the rows of the jobs that it waits for."""
    if not isinstance(job, WaitingJob):
        return []
    found: list[Condition] = []
    for kind, name, _ in job.after:
        number, task = name.rstrip("*"), job.job.partition("_")[2]
        if kind == "singleton":
            rows = [other for other in range(row) if jobs[other].user == job.user]
            found += [("afterany", tuple(rows))] * bool(rows)
            continue
        wanted = {f"{number}_{task}"} if kind == "aftercorr" and task else {number}
        rows = [other for other, it in enumerate(jobs) if it.job in wanted or it.job.partition("_")[0] in wanted]
        found.append((kind, tuple(rows)))
    return found


def _throttles(jobs: Sequence[StateJob]) -> dict[int, tuple[int, int]]:
    """Return the array and the throttle of each task of an array with one, running ones too."""
    most = {job.array: job.throttle for job in jobs if isinstance(job, WaitingJob) and job.array and job.throttle}
    found = {}
    for row, job in enumerate(jobs):
        number = job.job.partition("_")[0]
        if number.isdigit() and (throttle := most.get(int(number))):
            found[row] = (int(number), throttle)
    return found


def _windows(state: ClusterState) -> tuple[Window, ...]:
    """Return the windows: nodes without new jobs, and reservations, with the names of cores as nodes."""
    cores = {node.node: [f"{node.node}.{core}" for core in range(node.cores)] for node in state.nodes}
    found = [Window(cores[it.node], 0, kind="drain") for it in state.nodes if it.state == "no new jobs"]
    for one in state.reservations:
        present = [it for name in one.nodes for it in cores.get(name, ())]
        held = present if one.cores is None else present[: one.cores]
        known = {it.node for it in state.nodes if it.state == "down"}
        held = [name for name in held if name.rpartition(".")[0] not in known]
        if held and (one.end is None or one.end > state.at):
            end = np.inf if one.end is None else one.end - state.at
            begin, how = float(max(one.start - state.at, 0)), "requeue" if one.maintenance else "wait"
            found.append(Window(held, begin, float(end), announced=0, at_begin=how, id=one.name))  # type: ignore[arg-type]
    return tuple(found)


def _machine(
    state: ClusterState, running: Sequence[RunningJob], *, on_nodes: bool
) -> tuple[Platform, list[Placement | None]]:
    """Return the machine, without nodes that are down, and the places of the running jobs."""
    nodes = [node for node in state.nodes if node.state != "down"]
    cores, held = sum(node.cores for node in nodes), sum(job.cores for job in running)
    if held > cores:
        message = f"has running jobs on {held} cores, but nodes with {cores}; expected no more than the nodes have"
        raise InputError(message, field="nodes")
    if not on_nodes:
        return Platform.single(cores), [None] * len(running)
    names = [f"{node.node}.{core}" for node in nodes for core in range(node.cores)]
    group = NodeGroup(group="cores", count=cores, capacity={"cores": 1}, names=tuple(names))
    free: dict[str, list[int]] = {node.node: [] for node in nodes}
    for number, name in enumerate(names):
        free[name.rpartition(".")[0]].append(number)
    places: list[Placement | None] = []
    for job in running:
        own = [name for name in job.on if name in free]
        taken: list[int] = []
        for left, name in zip(range(len(own), 0, -1), own, strict=True):
            many = min(-(-(job.cores - len(taken)) // left), len(free[name]))
            taken += [free[name].pop(0) for _ in range(many)]
        for cores_left in free.values():  # the list of its nodes is incomplete
            taken += [cores_left.pop(0) for _ in range(min(job.cores - len(taken), len(cores_left)))]
        places.append(Placement(taken, {"cores": [1] * len(taken)}, (), [1] * len(taken)))
    cluster: Any = ClusterSpec("cluster", cores, nodes=(group,))
    return Platform(RouterSpec("cluster-root", (cluster,))), places
