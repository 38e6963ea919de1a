"""Searches for guarantees on nodes: runs of requests are placed as if one after the other."""

from __future__ import annotations

import numpy as np
import pytest

import gridsim as gs
from gridsim.machine.demand_classes import DemandClasses
from gridsim.model.demand import Demands
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.policy.admission.plan import Plan, Search
from gridsim.policy.admission.trial import LATE
from gridsim.policy.admission.trial_on_nodes import NodeTrial
from gridsim.policy.placement import First, Pack, Random
from gridsim.policy.placement_bridge import PlacementLog, holdings_of
from gridsim.policy.queue import ClusterView, Requests


def searched(rule: object, jobs: int = 60) -> Search:
    """Return a search on three nodes of four cores; all jobs but the last are planned one after the other."""
    rng = np.random.default_rng(7)
    tasks, estimate = rng.integers(1, 7, jobs), rng.integers(1, 40, jobs)
    workload = gs.Workload.from_columns(submit=np.zeros(jobs), runtime=estimate, cores=tasks)
    platform = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=3, capacity={"cores": 4})])
    requests = Requests(workload)
    (cluster,) = platform.clusters()
    assert cluster.capacity is not None
    view = ClusterView(cluster.cores, requests, demands=DemandClasses(cluster.capacity, Demands.plain_cores(tasks)))
    laid = PlacementLog(holdings_of(view, rule, np.random.default_rng(1)))
    plan = Plan(requests, cluster.cores, placement_log=laid)
    for row in range(jobs - 1):
        plan.reserve(row, plan.earliest(row, 0))
    return plan.search(jobs - 1, NEVER, 0)


def empty(search: Search) -> NodeTrial:
    """Return a trial without a place for any waiting request."""
    trial = NodeTrial(search)
    trial.keep_first(0)
    return trial


@pytest.mark.parametrize("rule", [First(), Pack(), Random()], ids=lambda it: type(it).__name__)
def test_a_run_of_requests_lies_as_one_after_the_other_does(rule: object) -> None:
    search = searched(rule)
    order = np.random.default_rng(2).permutation(len(search.rows))
    trial, slow = empty(search), empty(search).holdings
    assert trial.place_all(order, False, -1, np.inf) == len(order)
    for row, estimate in zip(search.rows[order].tolist(), search.estimate[order].tolist(), strict=True):
        start = slow.first_place(row, estimate, 0)
        slow.put(row, start, start + estimate, promise=True)
    assert all(trial.holdings.is_same_hold(slow, row) for row in search.rows[order])
    assert trial.starts[order].tolist() == slow.floor[8][1, search.rows[order]].tolist()


def test_a_run_ends_before_who_would_be_late_or_dear() -> None:
    search = searched(First())
    order = np.arange(len(search.rows))
    trial = empty(search)
    trial.place_all(order, False, -1, np.inf)
    starts = trial.starts.copy()
    late = int(np.argmax(starts > 20 * MICROSECOND))
    search.due[late] = int(starts[late] + search.estimate[late]) - 1
    again = empty(search)
    assert (again.place_all(order, False, -1, np.inf), again.state[LATE]) == (late, True)
    dear = empty(search)
    waits = np.cumsum(starts)
    count = dear.place_all(order[:late], False, 1, float(waits[late - 2]))
    assert (count, dear.state[LATE]) == (int(np.argmax(waits >= waits[late - 2])), False)


def test_a_job_that_is_put_back_lies_where_the_plan_has_it() -> None:
    search = searched(First())
    trial = empty(search)
    for job in range(len(search.rows) - 1):
        trial.keep(job, True)
    assert trial.count_unmoved(np.arange(len(search.rows) - 1)) == len(search.rows) - 1
    trial.take_off(np.array([0]))
    assert trial.count_unmoved(np.arange(len(search.rows) - 1)) == 0
