"""Failures of nodes and windows: gridsim and a second implementation, which visits every second, make the same runs."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace

import pytest

import gridsim as gs
from gridsim.metrics.availability import runs_of, spent_in_runs
from gridsim.model import windows as windows_of
from gridsim.model.failures import Failures
from gridsim.options import Run
from gridsim.record import Record
from tests.oracles.failures import Job, Machine, Reservation, Simulation, Window

POLICIES = ("fcfs", "first-fit", "easy", "depth", "conservative")
LAST = 1500
"""A second after the end of every run."""


def drawn(
    rng: random.Random, most: int = 9
) -> tuple[list[tuple[int, int]], list[Job], list[tuple[list[int], int, float]]]:
    nodes = [(rng.randint(1, 4), rng.choice((0, 4, 8))) for _ in range(rng.randint(1, 4))]
    jobs: list[Job] = []
    for number in range(1, rng.randint(2, most)):
        runtime = rng.randint(1, 20)
        tasks = rng.randint(1, len(nodes) + 1)
        jobs.append(
            {
                "id": number,
                "submit": rng.randint(0, 25),
                "estimate": rng.choice((runtime, runtime + rng.randint(0, 15), max(1, runtime - 2))),
                "runtime": runtime,
                "tasks": tasks,
                "cores": rng.randint(1, 2),
                "memory": rng.choice((0, 0, 1, 4)),
                "most": rng.choice((1, tasks)),
            }
        )
    failures = []
    for _ in range(rng.randint(0, 5)):
        down = rng.randint(0, 45)
        hit = rng.sample(range(len(nodes)), rng.randint(1, len(nodes)))
        failures.append((hit, down, float(down + rng.choice((1, 5, rng.randint(1, 40))))))
    return nodes, jobs, failures


def simulated(nodes: list[tuple[int, int]], jobs: list[Job], policy: str, options: Failures, instant: str) -> Record:
    """Return the record of jobs, which may have users, reservations, classes and checkpoints."""
    machine = gs.Platform.of_nodes(
        [
            gs.NodeGroup(group=str(at), count=1, capacity={"cores": cores, "memory": memory}, names=(str(at),))
            for at, (cores, memory) in enumerate(nodes)
        ]
    )
    jobs = sorted(jobs, key=lambda job: (job["submit"], job["id"]))
    each = [{"cores": job["cores"], "memory": job["memory"]} for job in jobs]
    asked = [
        gs.Demand(tasks=job["tasks"], each=one, tasks_per_node=job["most"]) for job, one in zip(jobs, each, strict=True)
    ]
    named = {
        name: [names.index(job[name]) if job.get(name) else -1 for job in jobs]
        for name, names in _NAMES.items()
        if any(job.get(name) for job in jobs)
    }
    numbers = {label: [job[name] for job in jobs] for label, name in _NUMBERS.items() if all(name in it for it in jobs)}
    workload = gs.Workload.from_columns(
        job=[job["id"] for job in jobs],
        submit=[job["submit"] for job in jobs],
        runtime=[job["runtime"] for job in jobs],
        estimate=[job["estimate"] for job in jobs],
        demands=gs.Demands.of(asked),
        labels={**named, **numbers},
    )
    workload = replace(workload, names={name: _NAMES[name] for name in named})
    return gs.simulate(workload, platform=machine, policy=policy, options=Run(failures=options, instant=instant)).record


def runs_in(record: Record) -> list[tuple[int, int, int, str, dict[int, int], int]]:
    """Return the runs of a record as a second implementation has them: the last number is the suspended time."""
    held = record.allocations
    assert held is not None
    places: dict[tuple[int, int], dict[int, int]] = {}
    for row, run, node, tasks in zip(
        held.job.tolist(), held.run.tolist(), held.node.tolist(), held.tasks.tolist(), strict=True
    ):
        places.setdefault((row, run), {})[node] = tasks
    rows, starts, ends, reasons, _ = runs_of(record)
    suspended = spent_in_runs(record).suspended
    seen, found = Counter[int](), []
    for row, start, end, reason, asleep in zip(
        rows.tolist(), starts.tolist(), ends.tolist(), reasons, suspended.tolist(), strict=True
    ):
        if end > start:
            seen[row] += 1
            times = start // 10**6, end // 10**6
            found.append((int(record.workload.job[row]), *times, reason, places[row, seen[row]], asleep // 10**6))
    return found


def _found(
    nodes: list[tuple[int, int]], jobs: list[Job], policy: str, options: Failures, instant: str = "batched"
) -> tuple[list[tuple[int, int, int, str, dict[int, int]]], dict[int, str]]:
    """Runs, and the statuses of jobs."""
    record = simulated(nodes, jobs, policy, options, instant)
    runs = [run[:5] for run in runs_in(record)]
    return runs, dict(zip(record.workload.job.tolist(), record.status_names.tolist(), strict=True))


_NAMES = {"reservation": ("a", "b", "c"), "user": ("ann", "bob")}
_NUMBERS = {
    "priority": "priority",
    "checkpoint_interval": "interval",
    "checkpoint_cost": "cost",
    "restart_cost": "restart",
}


def _cases(count: int, first: int = 0) -> list[int]:
    return list(range(first, first + count))


def _windows(rng: random.Random, nodes: int) -> list[Window]:
    found = []
    for _ in range(rng.choice((0, 0, 1, 2, 3))):
        begin, length = rng.randint(0, 45), rng.randint(1, 30)
        announced = max(0, begin - rng.choice((0, 5, 30)))
        deleted = rng.choice((float("inf"), float("inf"), announced + rng.randint(1, begin + length - announced)))
        hit = rng.sample(range(nodes), rng.randint(1, nodes))
        found.append(Window(hit, begin, begin + length, announced, deleted, rng.random() < 0.6))
    return found


def _reservations(rng: random.Random, nodes: list[tuple[int, int]], jobs: list[Job]) -> list[Reservation]:
    """Reservations of which none has cores of another one, and jobs that name them, or unknown ones."""
    found: list[Reservation] = []
    for _ in range(rng.randint(1, 4)):
        begin, length = rng.randint(0, 30), rng.randint(10, 60)
        announced = max(0, begin - rng.choice((0, 10, 40)))
        deleted = rng.choice((math.inf, math.inf, math.inf, announced + rng.randint(1, begin + length - announced)))
        where = sorted(rng.sample(range(len(nodes)), rng.randint((len(nodes) + 1) // 2, len(nodes))))
        users = rng.choice((["ann"], ["ann"], ["ann", "bob"]))
        cores = rng.choice((None, None, 1, 2))
        stops = rng.random() < 0.2
        it = Reservation(rng.choice("ab"), where, cores, users, begin, begin + length, announced, deleted, stops)
        if all(it.name != other.name or it.announced != other.announced for other in found):
            found.append(it)
    for at, it in enumerate(found):
        later = [other.announced for other in found if other.name == it.name and other.announced > it.announced]
        found[at] = it._replace(deleted=min([it.deleted, *later]))
    kept: list[Reservation] = []
    for it in found:
        known = [other for other in kept if other.announced < it.over and it.announced < other.over]
        there = [other for other in known if other.begin < it.end and it.begin < other.end]
        sizes = [it.size(nodes[node])[0] + max([0, *_others(node, nodes, there)]) for node in it.nodes]
        if all(size <= nodes[node][0] for size, node in zip(sizes, it.nodes, strict=True)) and it.over > it.announced:
            kept.append(it)
    for job in jobs:
        names = [it.name for it in kept] * 3
        job["user"], job["reservation"] = (
            rng.choice(("ann",) * 6 + ("bob",)),
            rng.choice((None, None, None, *names, "c")),
        )
        if job["reservation"] and rng.random() < 0.8:
            job["memory"], job["tasks"] = 0, rng.randint(1, len(nodes))
    return kept


def _others(node: int, nodes: list[tuple[int, int]], there: list[Reservation]) -> list[int]:
    return [other.size(nodes[node])[0] for other in there if node in other.nodes]


def _compare(seed: int, *, reserve: bool = False) -> None:
    rng = random.Random(seed)
    nodes, jobs, failures = drawn(rng, 20 if reserve else 9)
    windows = _windows(rng, len(nodes))
    reservations = _reservations(rng, nodes, jobs) if reserve else []
    behind, delay, announced, k = rng.random() < 0.3, rng.choice((0, 0, 3)), rng.random() < 0.5, rng.randint(0, 3)
    options = Failures(
        [([str(node) for node in hit], down, up) for hit, down, up in failures],
        windows=[
            windows_of.Window(
                [str(node) for node in it.nodes],
                it.begin,
                it.end,
                announced=it.announced,
                at_begin="requeue" if it.stops else "wait",
                deleted=it.deleted,
            )
            for it in windows
        ]
        + [
            windows_of.Window(
                [str(node) for node in it.nodes],
                it.begin,
                it.end,
                "reservation",
                it.announced,
                "requeue" if it.stops else None,
                it.deleted,
                it.name,
                it.users,
                node_cores=it.cores,
            )
            for it in reservations
        ],
        repair="announced" if announced else "unknown",
        requeue="behind" if behind else "original",
        requeue_delay=delay,
    )
    for policy in POLICIES:
        fits = [job for job in jobs if Machine(nodes, [], False).place(job, 0, 0, []) is not None]
        machine = Machine(nodes, failures, announced, windows, reservations)
        oracle = Simulation(machine, fits, policy, k=k, behind=behind, delay=delay)
        expected = [run for run in oracle.run(LAST) if run[2] > run[1]]
        found, statuses = _found(nodes, jobs, f"depth?k={k}" if policy == "depth" else policy, options)
        place = {job["id"]: at for at, job in enumerate(sorted(jobs, key=lambda job: (job["submit"], job["id"])))}
        expected.sort(key=lambda run: (place[run[0]], run[1]))
        assert found == expected, (seed, policy)
        small = {job["id"] for job in jobs} - {job["id"] for job in fits}
        assert {job for job, status in statuses.items() if status == "rejected"} == oracle.rejected | small
        assert {job for job, status in statuses.items() if status == "cancelled"} == oracle.cancelled


@pytest.mark.parametrize("seed", [*_cases(300), 402])
def test_runs_are_those_of_a_second_implementation(seed: int) -> None:
    _compare(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_more_runs_are_those_of_a_second_implementation(part: int) -> None:
    for seed in _cases(485, 300 + 485 * part):
        _compare(seed)


@pytest.mark.parametrize("part", range(8))
def test_runs_with_reservations_are_those_of_a_second_implementation(part: int) -> None:
    for seed in _cases(15, 20_000 + 15 * part):
        _compare(seed, reserve=True)


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_more_runs_with_reservations_are_those_of_a_second_implementation(part: int) -> None:
    for seed in _cases(150, 21_000 + 150 * part):
        _compare(seed, reserve=True)


@pytest.mark.parametrize("instant", ["batched", "per-event"])
def test_failures_that_hit_nothing_change_nothing(instant: str) -> None:
    for seed in range(40):
        nodes, jobs, _ = drawn(random.Random(seed))
        for policy in POLICIES:
            without = _found(nodes, jobs, policy, Failures(), instant)
            late = Failures([([str(node) for node in range(len(nodes))], LAST, math.inf)])
            assert _found(nodes, jobs, policy, late, instant) == without
