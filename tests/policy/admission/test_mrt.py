"""The search for any order finds what the one does that looks for the place of every job left at each vertex."""

from __future__ import annotations

import numpy as np
import pytest

from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.policy.admission import dynamic, mrt
from gridsim.policy.admission.plan import Plan
from gridsim.policy.ordering import LeastLaxity
from gridsim.policy.queue import Requests

RUNNING, WAITING, NEW, CORES = 12, 60, 25, 32


def loaded(seed: int) -> tuple[Plan, int]:
    """A plan with long queue, whose promises leave each some slack."""
    rng = np.random.default_rng(seed)
    n = RUNNING + WAITING + NEW
    estimate, cores = rng.integers(1, 90, n), rng.integers(1, 12, n)
    requests = Requests(Workload.from_columns(submit=np.arange(n), runtime=estimate, cores=cores))
    plan = Plan(requests, CORES)
    now = int(requests.submit[-1])
    for row in range(RUNNING):
        if plan.earliest(row, 0) == 0:
            plan.reserve(row, 0)
    plan.due(0)
    for row in range(RUNNING, RUNNING + WAITING):
        start = plan.earliest(row, now)
        plan.reserve(row, start)
        end = start + int(requests.estimate[row])
        plan.granted[row] = NEVER if rng.random() < 0.1 else end + int(rng.uniform(0, 0.5) * (end - now))
    return plan, now


@pytest.mark.parametrize("window", [WAITING + 1, 4])
@pytest.mark.parametrize("hole_filling", [True, False])
def test_both_searches_find_the_same(hole_filling: bool, window: int) -> None:
    taken = refused = 0
    for seed in range(4):
        plan, now = loaded(seed)
        for row in range(RUNNING + WAITING, RUNNING + WAITING + NEW):
            deadline = int(plan.requests.submit[row]) + int(plan.estimate[row]) + 8_000_000 * (row % 40)
            for backtracks in (0, 10):
                one, other = (plan.search(row, deadline, now) for _ in range(2))
                keys = plan.ranks(LeastLaxity(), one, now)
                order = plan.requests.in_order(one.rows, keys)
                found, starts = mrt.depth_first(tuple(one), order, backtracks, window, hole_filling)
                how = (backtracks, window, hole_filling, 0.0)
                expected, theirs = dynamic.depth_first(tuple(other), keys, *how)
                assert found == expected
                if found:
                    assert starts.tolist() == theirs.tolist()
                taken, refused = taken + found, refused + (not found)
    assert min(taken, refused) > 20
