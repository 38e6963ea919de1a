"""Preemption: gridsim and a second implementation, which visits every second, make the same runs."""

from __future__ import annotations

import random
from typing import Any

import pytest

import gridsim as gs
from gridsim.errors import PolicyError
from gridsim.metrics.availability import runs_of, spent_in_runs
from gridsim.model.checkpoints import Checkpoints
from gridsim.model.failures import Failures
from gridsim.options import Run
from tests.oracles.failures import Machine
from tests.oracles.preemption import Job, Rules, Simulation

POLICIES = ("fcfs", "first-fit", "easy", "depth?k=2", "conservative")
LAST = 4000


def _drawn(rng: random.Random, *, memory: bool = True) -> tuple[list[tuple[int, int]], list[Job], list[Any]]:
    nodes = [(rng.randint(1, 4), rng.choice((0, 4, 8)) if memory else 0) for _ in range(rng.randint(1, 4))]
    jobs: list[Job] = []
    for number in range(1, rng.randint(3, 10)):
        runtime, saves = rng.randint(1, 20), rng.random() < 0.5
        tasks = rng.randint(1, len(nodes) + 1)
        jobs.append(
            {
                "id": number,
                "submit": rng.randint(0, 25),
                "estimate": rng.choice((runtime, runtime + rng.randint(0, 15), max(1, runtime - 2))),
                "runtime": runtime,
                "tasks": tasks,
                "cores": rng.randint(1, 2),
                "memory": rng.choice((0, 0, 1, 4)) if memory else 0,
                "most": rng.choice((1, tasks)),
                "priority": rng.choice((-1, 0, 0, 1, 2)),
                "interval": rng.randint(2, 6) if saves else 0,
                "cost": rng.randint(0, 2) if saves else 0,
                "restart": rng.randint(0, 2) if saves else 0,
            }
        )
    failures = []
    for _ in range(rng.choice((0, 0, 1, 3))):
        down = rng.randint(0, 45)
        hit = rng.sample(range(len(nodes)), rng.randint(1, len(nodes)))
        failures.append((hit, down, float(down + rng.choice((1, 5, rng.randint(1, 40))))))
    return nodes, jobs, failures


def _found(
    nodes: list[tuple[int, int]], jobs: list[Job], failures: list[Any], policy: str, **how: Any
) -> list[tuple[int, int, int, str, dict[int, int], int]]:
    machine = gs.Platform.of_nodes(
        [
            gs.NodeGroup(group=str(at), count=1, capacity={"cores": cores, "memory": memory}, names=(str(at),))
            for at, (cores, memory) in enumerate(nodes)
        ]
    )
    each = [{"cores": job["cores"], "memory": job["memory"]} for job in jobs]
    asked = [
        gs.Demand(tasks=job["tasks"], each=one, tasks_per_node=job["most"]) for job, one in zip(jobs, each, strict=True)
    ]
    names = {"checkpoint_interval": "interval", "checkpoint_cost": "cost", "restart_cost": "restart"}
    workload = gs.Workload.from_columns(
        job=[job["id"] for job in jobs],
        submit=[job["submit"] for job in jobs],
        runtime=[job["runtime"] for job in jobs],
        estimate=[job["estimate"] for job in jobs],
        demands=gs.Demands.of(asked),
        labels={
            "priority": [job["priority"] for job in jobs],
            **{label: [job[name] for job in jobs] for label, name in names.items()},
        },
    )
    trace = [([str(node) for node in hit], down, up) for hit, down, up in failures]
    options = Failures(trace, checkpoints=Checkpoints(None), **how)
    record = gs.simulate(workload, platform=machine, policy=policy, options=Run(failures=options)).record
    held = record.allocations
    assert held is not None
    places: dict[tuple[int, int], dict[int, int]] = {}
    for row, run, node, tasks in zip(
        held.job.tolist(), held.run.tolist(), held.node.tolist(), held.tasks.tolist(), strict=True
    ):
        places.setdefault((row, run), {})[node] = tasks
    rows, starts, ends, reasons, _ = runs_of(record)
    suspended = spent_in_runs(record).suspended
    seen: dict[int, int] = {}
    found = []
    for row, start, end, reason, asleep in zip(
        rows.tolist(), starts.tolist(), ends.tolist(), reasons, suspended.tolist(), strict=True
    ):
        if end > start:
            seen[row] = seen.get(row, 0) + 1
            times = start // 10**6, end // 10**6
            found.append((int(workload.job[row]), *times, reason, places[row, seen[row]], asleep // 10**6))
    return found


def _compare(seed: int) -> None:
    rng = random.Random(seed)
    nodes, jobs, failures = _drawn(rng)
    mode = rng.choice(("requeue", "checkpoint", "cancel", "suspend", "suspend"))
    rules = Rules(
        mode,
        rng.choice(("youngest", "least-lost", "checkpointed")),
        0 if mode == "suspend" else rng.choice((0, 0, 2, 5)),
        rng.choice((1, 2, 3)),
        rng.choice((0, 0, 4)),
    )
    announced, behind = rng.random() < 0.5, rng.random() < 0.3
    jobs = sorted(jobs, key=lambda job: (job["submit"], job["id"]))
    machine = Machine(nodes, failures, announced)
    fits = [job for job in jobs if Machine(nodes, [], False).place(job, 0, 0, []) is not None]
    preempt = f"{mode}(victims={rules.victims},grace={rules.grace},max={rules.most},min_run={rules.min_run})"
    for policy in POLICIES:
        name = policy.partition("?")[0]
        oracle = Simulation(machine, fits, name, rules, k=2, behind=behind)
        expected = [run for run in oracle.run(LAST) if run[2] > run[1]]
        spec = f"{policy}{'&' if '?' in policy else '?'}preempt={preempt}"
        how: dict[str, Any] = {
            "repair": "announced" if announced else "unknown",
            "requeue": "behind" if behind else "original",
        }
        place = {job["id"]: at for at, job in enumerate(jobs)}
        expected.sort(key=lambda run: (place[run[0]], run[1]))
        if oracle.left_over:  # a suspended job keeps the memory that the first of the queue waits for
            with pytest.raises(PolicyError, match="never started"):
                _found(nodes, jobs, failures, spec, **how)
            continue
        assert _found(nodes, jobs, failures, spec, **how) == expected, (seed, spec)


@pytest.mark.parametrize("seed", range(100))
def test_runs_are_those_of_a_second_implementation(seed: int) -> None:
    _compare(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_more_runs_are_those_of_a_second_implementation(part: int) -> None:
    for seed in range(100 + 100 * part, 200 + 100 * part):
        _compare(seed)


def test_one_class_changes_nothing() -> None:
    for seed in range(30):
        nodes, jobs, failures = _drawn(random.Random(seed))
        jobs = sorted(({**job, "priority": 1} for job in jobs), key=lambda job: (job["submit"], job["id"]))
        for policy in POLICIES:
            spec = f"{policy}{'&' if '?' in policy else '?'}preempt=requeue"
            assert _found(nodes, jobs, failures, spec) == _found(nodes, jobs, failures, policy)
