"""Small random machines of nodes and jobs with demands for them; full of ties and corner cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.random import Generator

from tests.oracles.machine.free_capacity import reason
from tests.oracles.machine.parts import Demand, Machine, Node
from tests.oracles.machine.rules import RULES, Rule, Typical
from tests.oracles.machine.schedule import Job

__all__ = ["draw_jobs", "draw_machine", "draw_rule", "smallest"]


_POSSIBLE = 0.9
"""Largest number of attempts to draw a feasible demand."""


def _one(rng: Generator, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def _some(rng: Generator, names: Sequence[str], share: float) -> frozenset[str]:
    return frozenset(name for name in names if rng.random() < share)


def draw_machine(rng: Generator) -> Machine:
    """Draw one to five nodes in groups: cores, sometimes memory, disks, two kinds of GPUs, features, partitions."""
    memory, disk, gpus = rng.random() < 0.6, rng.random() < 0.15, rng.random() < 0.6
    parted, featured = rng.random() < 0.25, rng.random() < 0.5
    nodes: list[Node] = []
    while len(nodes) < int(rng.integers(1, 5)):
        capacity = {"cores": int(rng.integers(1, 9))}
        if memory:
            capacity["memory"] = int(_one(rng, (4, 8, 16)))
        if disk:
            capacity["disk"] = int(rng.integers(0, 4))
        group = Node(
            capacity,
            gpus=int(rng.integers(0, 4)) if gpus else 0,
            gpu_kind=_one(rng, ("A", "B")),
            features=_some(rng, ("fast", "big"), 0.5) if featured else frozenset(),
            partitions=_some(rng, ("long", "short"), 0.6) if parted else frozenset(),
            weight=int(rng.integers(1, 4)),
        )
        nodes += [group] * int(rng.integers(1, 3))
    pools = {name: int(rng.integers(1, 5)) for name in ("licence", "burst") if rng.random() < 0.3}
    return Machine(nodes, pools)


def draw_jobs(rng: Generator, machine: Machine, most: int = 10) -> list[Job]:
    """Draw jobs that arrive in bursts; some end early, some are killed at their estimates, a few can never run."""
    jobs, now = [], 0
    count = int(rng.integers(3, most + 1))
    numbers = rng.permutation(count) + 1  # Jobs with equal submit times are not in file order.
    for number in numbers.tolist():
        now += int(_one(rng, (0, 0, 0, 1, 1, 2, 4)))
        estimate = int(_one(rng, (1, 2, 3, 5, 8, 12)))
        runtime = max(1, estimate + int(_one(rng, (0, 0, 0, -1, -2, -4, -7, 3))))
        jobs.append(Job(number, now, estimate, runtime, draw_demand(rng, machine)))
    return jobs


def draw_demand(rng: Generator, machine: Machine) -> Demand:
    """Draw a demand that the machine can usually hold."""
    drawn = _draw_demand(rng, machine)
    while reason(machine, drawn.on(machine)) is not None and rng.random() < _POSSIBLE:
        drawn = _draw_demand(rng, machine)
    return drawn


def _draw_demand(rng: Generator, machine: Machine) -> Demand:
    """Draw plain cores, only pools, or tasks with any resources of the machine, and limits on nodes."""
    pools = {name: int(rng.integers(1, most + 1)) for name, most in machine.pools.items() if rng.random() < 0.4}
    if not machine.nodes:
        return Demand(cores=0 if pools and rng.random() < 0.5 else int(rng.integers(1, 4)), pools=pools)
    if rng.random() < 0.15:
        return Demand(cores=int(rng.integers(1, 13)), pools=pools)
    if pools and rng.random() < 0.15:
        return Demand(pools=pools)
    each = {name: int(rng.integers(0, 1 + machine.largest(name) // 2)) for name in machine.resources}
    each["cores"] = int(_one(rng, (0, 1, 1, 2, 3, 4, machine.largest("cores"))))
    gpu, kinds = 0, None
    if machine.largest("gpu") and rng.random() < 0.5:
        gpu = int(_one(rng, (200, 300, 500, 500, 700, 1000, 1000, 2000)))
        kinds = _one(rng, (None, None, frozenset("A"), frozenset("AB")))
    if gpu == 0 and not any(each.values()):
        each["cores"] = 1
    tasks = int(_one(rng, (1, 1, 1, 2, 2, 3, 4, 5)))
    most = int(rng.integers(1, tasks + 1)) if rng.random() < 0.2 else None
    return Demand(
        tasks=tasks,
        each=each,
        gpu=gpu,
        gpu_kinds=kinds,
        min_nodes=int(rng.integers(1, 1 + (tasks if most is None else most))) if rng.random() < 0.2 else 1,
        max_nodes=most,
        tasks_per_node=int(rng.integers(1, tasks + 1)) if rng.random() < 0.2 else None,
        exclusive=bool(rng.random() < 0.15),
        features=_some(rng, ("fast", "big"), 0.3) if any(node.features for node in machine.nodes) else frozenset(),
        partitions=_some(rng, ("long", "short"), 0.4)
        if any(node.partitions for node in machine.nodes)
        else frozenset(),
        pools=pools,
    )


def draw_rule(rng: Generator, machine: Machine, name: str | None = None) -> Rule:
    """Draw a placement rule and its parameters."""
    name = _one(rng, RULES) if name is None else name
    resources = None
    if rng.random() < 0.3:
        names = [name for name in (*machine.resources, "gpu") if machine.largest(name)]
        resources = tuple(each for each in names if rng.random() < 0.6) or None
    typical = tuple(_draw_typical(rng) for _ in range(int(rng.integers(1, 5))))
    return Rule(name, _one(rng, ("high", "low")), resources, typical)


def _draw_typical(rng: Generator) -> Typical:
    gpu = int(_one(rng, (0, 300, 500, 1000, 2000)))
    each = {"cores": int(rng.integers(0 if gpu else 1, 4))}
    kinds = _one(rng, (None, None, frozenset("B"))) if gpu else None
    return Typical(Demand(tasks=1, each=each, gpu=gpu, gpu_kinds=kinds), int(rng.integers(1, 6)))


def smallest(jobs: Sequence[Job], fails: Callable[[Sequence[Job]], bool]) -> list[Job]:
    """Remove jobs from a failing case while it still fails."""
    kept, place = list(jobs), 0
    while place < len(kept):
        fewer = [*kept[:place], *kept[place + 1 :]]
        if fewer and fails(fewer):
            kept = fewer
        else:
            place += 1
    return kept
