"""Guaranteed deadlines on machines of nodes: the fast searches and the second implementation agree job by job."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import Workload
from gridsim.registry import Spec
from tests.oracles.machine.admission import admitted
from tests.oracles.machine.compared import policy_of
from tests.oracles.machine.random_machines import draw_jobs, draw_machine, draw_rule
from tests.oracles.machine.rules import RULES
from tests.oracles.machine.translated import platform_of, workload_of

pytestmark = pytest.mark.long

MACHINES = {"usual": 12, "search": 200, "thorough": 2000}[os.environ.get("GRIDSIM_HYPOTHESIS", "usual")]
"""Random machines of each algorithm."""

ALGORITHMS: dict[str, dict[str, tuple[Any, ...]]] = {
    "msb": {"order": ("ast", "ast", "edf", "llf"), "price": ("slack", "wait", "work_wait", "slowdown", "disturbance")},
    "mrt": {
        "heuristic": ("llf", "edf", "edf+est"),
        "backtracks": (0, 2, 10),
        "window": (None, None, 2),
        "hole_filling": (True, True, False),
    },
    "qops": {
        "heuristic": ("llf", "edf", "fcfs"),
        "k_factor": (0, 1, 2, 5),
        "slots": ("first-feasible", "first-feasible", "first-slot-only", "best"),
        "insertion": ("first", "sorted"),
        "append_slot": (True, True, False),
    },
    "fqops": {"slack_factor": (1, 1, 1.2, 2), "retry_count": (10, 3, 0), "kill_restart": (True, True, False)},
}
OF_ALL: dict[str, tuple[Any, ...]] = {
    "compress": ("planned", "planned", "planned", "arrival", "none"),
    "unadmitted": ("drop", "drop", "best-effort"),
    "artificial_fallback": ("loosen", "loosen", "reject"),
    "relaxation": (1, 1.5, 2),
    "artificial_floor": (5, 12),
}


def with_deadlines(rng: np.random.Generator, workload: Workload) -> Workload:
    """Draw jobs with tight deadlines or none, users with and without tolerance, and jobs that must not be stopped."""
    n = len(workload)
    slack = np.array([rng.choice((0, 1, 2, 3, 5, 8, 13, 21)) for _ in range(n)]) * MICROSECOND
    deadline = np.where(rng.random(n) < 0.2, NEVER, workload.submit + workload.estimate + slack)
    tolerance = rng.choice((1.0, 1.3, 2.0, 4.0, 10.0), n)
    return replace(workload, deadline=deadline, tolerance=tolerance, restartable=rng.random(n) < 0.7)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_both_make_the_same_plans_with_the_same_places(algorithm: str) -> None:
    rng = np.random.default_rng([41, list(ALGORITHMS).index(algorithm)])
    moved = 0
    for number in range(MACHINES):
        machine = draw_machine(rng)
        platform, rule = platform_of(machine), draw_rule(rng, machine, RULES[number % len(RULES)])
        workload = with_deadlines(rng, workload_of(draw_jobs(rng, machine, 12)))
        given = {
            name: values[int(rng.integers(len(values)))] for name, values in (ALGORITHMS[algorithm] | OF_ALL).items()
        }
        given = {name: value for name, value in given.items() if value is not None}
        overrun: Any = "extend" if rng.random() < 0.3 else "kill"
        spelled = {name: value if value != "fcfs" else "fifo" for name, value in given.items()}
        placement = policy_of("easy", rule).parameters["placement"]
        result = gs.simulate(
            workload, platform=platform, policy=Spec(algorithm, spelled | {"placement": placement}), overrun=overrun
        )
        slow = admitted(workload, platform, algorithm, rule, overrun=overrun, **given)
        record, case = result.record, (number, given, overrun)
        assert record.promises is not None
        assert record.start_us.tolist() == slow.start, case
        assert record.end_us.tolist() == slow.end, case
        for name in ("granted_us", "offer_us", "doublings", "broken", "killed"):
            assert getattr(record.promises, name).tolist() == getattr(slow.promises, name).tolist(), (name, case)
        assert nodes_of(result) == slow.nodes, case
        moved += len(slow.promises.killed) + int((record.promises.granted_us < NEVER).sum())
    assert moved > 2 * MACHINES


def nodes_of(result: gs.Result) -> list[dict[int, int]]:
    """Return the tasks of each job on each node in its last run."""
    held = result.record.allocations
    found: list[dict[int, int]] = [{} for _ in range(len(result.record))]
    if held is None:
        return found
    columns = [column.tolist() for column in (held.job, held.run, held.node, held.tasks)]
    for row, run, node, tasks in zip(*columns, strict=True):
        if tasks > 0 and run == int(held.run[held.job == row].max()):
            found[row][node] = tasks
    return found
