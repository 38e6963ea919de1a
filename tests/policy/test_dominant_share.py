"""Dominant resource fairness: the example of its paper on a machine of pools, and the order of users."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gridsim.model.demand import Demand, Demands
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.policy.dominant_share import DominantShare
from gridsim.policy.queue import Queue, Requests
from gridsim.simulation import simulate


def queue(asked: list[Demand], users: list[int], running: int, totals: dict[str, int]) -> Queue:
    """Return requests of users, the first *running* of which run."""
    n = len(asked)
    jobs = Workload.from_columns(submit=[0] * n, runtime=[5] * n, demands=Demands.of(asked), labels={"user": users})
    requests = Requests(jobs)
    runs = Queue(requests, np.arange(running))
    return Queue(requests, np.arange(running, n), {"totals": totals, "running": runs})


A, B = Demand(tasks=1, each={"cores": 1, "memory": 4}), Demand(tasks=1, each={"cores": 3, "memory": 1})


def test_shares_are_those_of_the_paper() -> None:
    # Section 4.1: 9 cores, 18 GB; three tasks of A and two of B run: shares 12/18 and 6/9.
    seen = queue([A, A, A, B, B, A, B], [1, 1, 1, 2, 2, 1, 2], 5, {"cores": 9, "memory": 18})
    assert DominantShare().rank(seen, 0.0).tolist() == pytest.approx([2 / 3, 2 / 3])
    assert seen.demand("memory").tolist() == [4, 1]
    assert seen.running.demand("cores").tolist() == [1, 1, 1, 3, 3]


def test_users_without_running_jobs_are_first_and_unused_resources_do_not_count() -> None:
    seen = queue([A, A, B, Demand(cores=2)], [1, 1, 2, -1], 1, {"cores": 9, "memory": 0})
    assert DominantShare().rank(seen, 0.0).tolist() == pytest.approx([1 / 9, 0, 0])


def test_the_order_follows_every_start() -> None:
    # All arrive at once, without backfilling. Shares in ninths, A before B if they are equal: A, B, A, A, A.
    jobs = Workload.from_columns(
        submit=[0] * 10, runtime=[100] * 10, cores=[1] * 5 + [3] * 5, labels={"user": [1] * 5 + [2] * 5}
    )
    started = simulate(jobs, platform=Platform.single(9), policy="drf").record.start == 0
    assert (started[:5].sum(), started[5:].sum()) == (4, 1)


@pytest.mark.parametrize("policy", ["easy?ordering=drf", "conservative?ordering=drf", "moldable?ordering=drf", "drf"])
def test_it_is_an_ordering_like_others(policy: Any) -> None:
    jobs = Workload.from_columns(
        submit=[0, 1, 2, 3], runtime=[5] * 4, cores=[4, 4, 4, 4], labels={"account": [1, 1, 1, 2], "user": [1] * 4}
    )
    record = simulate(jobs, platform=Platform.single(4), policy=policy).record
    assert record.start.tolist() == [0, 5, 10, 15]  # no user runs jobs when the next one starts


def test_the_owner_of_a_job_can_be_another_label() -> None:
    jobs = Workload.from_columns(
        submit=[0, 0, 1, 2],
        runtime=[99, 5, 5, 5],
        cores=[4] * 4,
        labels={"account": [1, 2, 1, 2], "user": [1, 2, 2, 1]},
    )
    for by, starts in (("account", [0, 0, 10, 5]), ("user", [0, 0, 5, 10])):
        record = simulate(jobs, platform=Platform.single(8), policy=f"easy?ordering=drf(by={by})").record
        assert record.start.tolist() == starts


def test_all_resources_of_a_machine_count() -> None:
    # The same example as a run, on a machine of pools: with 9 cores and 18 of memory A gets three tasks, B two.
    asked = [Demand(cores=1, pools={"memory": 4})] * 5 + [Demand(cores=3, pools={"memory": 1})] * 5
    jobs = Workload.from_columns(
        submit=[0] * 10, runtime=[100] * 10, demands=Demands.of(asked), labels={"user": [1] * 5 + [2] * 5}
    )
    machine = Platform.of_nodes([], {"cores": 9, "memory": 18})
    started = simulate(jobs, platform=machine, policy="easy?ordering=drf").record.start == 0
    assert (started[:5].sum(), started[5:].sum()) == (3, 2)
