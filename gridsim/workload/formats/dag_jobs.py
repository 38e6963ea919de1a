"""Shared code of the readers of DAG jobs: conversion of graphs to one workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.model.decimal_numbers import shown
from gridsim.model.demand import Demands
from gridsim.model.tasks import ANY_KIND, Tasks
from gridsim.model.time import NEVER, IntArray, seconds, to_us
from gridsim.model.workload import Workload
from gridsim.workload.formats.task_demands import demand_facts, demands_of

Submit = float | Sequence[float]
"""Submit time of all workflows (s), or one for each; with more times than workflows, the workflows repeat in turn."""


@dataclass(slots=True)
class Graph:
    """One DAG job as read: tasks in order, edges between their indices, and bytes along each edge if known."""

    name: str
    tasks: list[str] = field(default_factory=list)
    runtime: list[float] = field(default_factory=list)
    cores: list[int] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    volume: list[float] | None = None
    memory: list[int] = field(default_factory=list)
    """Memory of each task, MiB, 0 if unknown; empty if no task has a value."""


def check_tick(tick: float) -> int:
    """Return a tick in whole microseconds."""
    length = to_us(float(tick))
    if not 1 <= length < to_us(1e6):
        raise InputError(f"is {tick:g} s; expected at least a microsecond", field="tick")
    return length


def in_ticks(runtime: Sequence[float], tick: float) -> tuple[list[float], list[int]]:
    """Return run times rounded to whole ticks, s, and the indices of those that were raised from 0 to one tick.

    Examples
    --------
    >>> in_ticks([1.2345678, 0.0002, 0.5], 0.001)
    ([1.235, 0.001, 0.5], [1])
    """
    length = check_tick(tick)
    ticks = (to_us(np.asarray(runtime, dtype=np.float64)) + length // 2) // length
    return seconds(np.maximum(ticks, 1) * length).tolist(), np.flatnonzero(ticks == 0).tolist()


def cycle(edges: Sequence[tuple[int, int]], count: int) -> list[int]:
    """Return the indices of *count* tasks that form a cycle, in its order; empty without a cycle."""
    parents: list[list[int]] = [[] for _ in range(count)]
    children: list[list[int]] = [[] for _ in range(count)]
    for parent, child in edges:
        parents[child].append(parent)
        children[parent].append(child)
    missing = list(map(len, parents))
    ready = [place for place, number in enumerate(missing) if not number]
    for place in ready:  # grows during the iteration
        for child in children[place]:
            missing[child] -= 1
            if not missing[child]:
                ready.append(child)
    if len(ready) == count:
        return []
    walked = [next(place for place, number in enumerate(missing) if number)]
    while walked[-1] not in walked[:-1]:  # each remaining task has a remaining parent
        walked.append(next(parent for parent in parents[walked[-1]] if missing[parent]))
    return walked[: walked.index(walked[-1]) : -1]


def assembled(
    graphs: Sequence[Graph],
    *,
    submit: Submit,
    provenance: dict[str, Any],
    path: object,
    cores: int | None = None,
    cores_field: str = "cores",
) -> Workload:
    """Return a workload of DAG jobs: one per graph in their order, or one per submit time.

    Jobs have the label ``executable``, whose ``names`` are the names of the graphs.
    """
    which, times = _arrivals(submit, len(graphs))
    chosen = [graphs[place] for place in which]
    if cores is not None:
        _check_width(graphs, cores, path, cores_field)
    kinds = tuple(dict.fromkeys(kind for graph in graphs for kind in graph.kinds)) or (ANY_KIND,)
    counts = np.array([len(graph.tasks) for graph in chosen], dtype=np.int64)
    first = np.cumsum(counts) - counts
    edges = [np.array(graph.edges, dtype=np.int64).reshape(-1, 2) for graph in chosen]
    tasks = Tasks.from_edges(
        counts=counts,
        runtime=np.array([runtime for graph in chosen for runtime in graph.runtime]),
        cores=[cores for graph in chosen for cores in graph.cores],
        kind=[kinds.index(kind) for graph in chosen for kind in graph.kinds],
        kinds=kinds,
        edges=np.concatenate([pairs + begin for pairs, begin in zip(edges, first, strict=True)]),
        names=[name for graph in chosen for name in graph.tasks],
        volume=_volumes(chosen),
        jobs=[graph.name for graph in chosen],
        path=path,
    )
    names = tuple(dict.fromkeys(graph.name for graph in graphs))
    demands = _demands(chosen, tasks)
    if demands is not None:
        provenance = {**provenance, "demands": demand_facts(demands)}
    return Workload.from_tasks(
        tasks,
        submit=times,
        labels={"executable": [names.index(graph.name) for graph in chosen]},
        names={"executable": names},
        provenance={
            **provenance,
            "jobs_read": len(chosen),
            "jobs_kept": len(chosen),
            "tasks": len(tasks),
            "edges": len(tasks.edge_to),
            "statuses": {},
        },
        demands=demands,
    )


def _demands(graphs: Sequence[Graph], tasks: Tasks) -> Demands | None:
    """Return the demands of tasks, each on one node; None if no graph has demands other than cores."""
    memory = [mib for graph in graphs for mib in graph.memory or [0] * len(graph.tasks)]
    if not any(memory):
        return None
    return demands_of(cores=tasks.cores, memory=np.array(memory, dtype=np.int64), unit=tasks.cores)


def _arrivals(submit: Submit, count: int) -> tuple[IntArray, Any]:
    """Return the graph of each job and its submit time."""
    times = np.asarray(submit)
    if times.ndim == 0:
        times = np.full(count, times)
    if times.ndim != 1 or len(times) < count:
        raise InputError(
            f"{times.size} submit times for {count} workflows; expected one time for all workflows, or one for each",
            field="submit",
        )
    micro = to_us(times)
    bad = (micro < 0) | (micro >= NEVER)
    if bad.any():
        raise InputError(f"has {shown(times[bad][0])}; expected submit times from 0 s", field="submit")
    return np.arange(len(times)) % count, times


def _volumes(graphs: Sequence[Graph]) -> list[float] | None:
    """Return the bytes along every edge; None unless all graphs with edges have them."""
    if any(graph.volume is None for graph in graphs if graph.edges):
        return None
    return [volume for graph in graphs for volume in graph.volume or ()] or None


def _check_width(graphs: Sequence[Graph], cores: int, path: object, field: str) -> None:
    for graph in graphs:
        for task, wanted in zip(graph.tasks, graph.cores, strict=True):
            if wanted > cores:
                raise InputError(
                    f"job {graph.name} task {task} needs {wanted} cores; the machine has {cores}, and "
                    "a task that others depend on cannot be left out: expected a larger machine (--machine)",
                    path=path,
                    field=field,
                )
