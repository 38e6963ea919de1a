"""The search for any order finds the same result as a search that places every remaining job at each vertex."""

from __future__ import annotations

import numpy as np
import pytest

from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.policy.admission.mrt import depth_first
from gridsim.policy.admission.plan import Plan
from gridsim.policy.ordering import LeastLaxity
from gridsim.policy.queue import Requests

RUNNING, WAITING, NEW, CORES = 12, 60, 25, 32


def loaded(seed: int) -> tuple[Plan, int]:
    """Return a plan with a long queue whose guarantees leave some slack to each job."""
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
                search = plan.search(row, deadline, now)
                keys = plan.ranks(LeastLaxity(), search, now)
                order = plan.requests.in_order(search.rows, keys)
                how = backtracks, window, not hole_filling
                one = search.run(depth_first, order.copy(), keys, *how, False, 0.0)
                other = search.run(depth_first, order, keys, *how, True, 0.0)
                assert (one is None) == (other is None)
                if one is not None:
                    assert one.start == other.start
                    assert [column.tolist() for column in one.arrangement[:2]] == [
                        column.tolist() for column in other.arrangement[:2]
                    ]
                taken, refused = taken + (one is not None), refused + (one is None)
    assert min(taken, refused) > 20
