"""Preemption: gridsim and a second implementation, which visits every second, make the same runs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gridsim.errors import PolicyError
from gridsim.model.checkpoints import Checkpoints
from gridsim.model.failures import Failures
from tests.agreement.test_failures import drawn, runs_in, simulated
from tests.oracles.failures import Machine
from tests.oracles.preemption import Job, Rules, Simulation

POLICIES = ("fcfs", "first-fit", "easy", "depth?k=2", "conservative")
LAST = 4000


def _drawn(rng: random.Random) -> tuple[list[tuple[int, int]], list[Job], list[Any]]:
    nodes, jobs, failures = drawn(rng, 10)
    for job in jobs:
        saves = rng.random() < 0.5
        job |= {"priority": rng.choice((-1, 0, 0, 1, 2)), "interval": rng.randint(2, 6) if saves else 0}
        job |= {name: rng.randint(0, 2) if saves else 0 for name in ("cost", "restart")}
    return nodes, jobs, failures if rng.random() < 0.5 else []


def _found(
    nodes: list[tuple[int, int]], jobs: list[Job], failures: list[Any], policy: str, **how: Any
) -> list[tuple[int, int, int, str, dict[int, int], int]]:
    trace = [([str(node) for node in hit], down, up) for hit, down, up in failures]
    options = Failures(trace, checkpoints=Checkpoints(None), **how)
    return runs_in(simulated(nodes, jobs, policy, options, "batched"))


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


@pytest.mark.parametrize("seed", [*range(100), 949, 1431, 1726])  # the last had found faults
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
