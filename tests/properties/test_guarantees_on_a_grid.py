"""Guarantees of several clusters hold with later arrivals; quotes do not change clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.workload import Workload
from gridsim.record import Record, Status
from gridsim.simulation import Run, run
from gridsim.testing.invariants import violations
from tests.oracles.strategies import workloads

POLICIES = [
    "qops",
    "msb?price=wait",
    "mrt",
    "fqops?slack_factor=1.2",
    "fqops?kill_restart=true&k_factor=2",
    "qops?artificial_floor=0&artificial_fallback=reject",
    "qops?unadmitted=best-effort",
    "conservative",
]
BALANCERS = ["earliest-guarantee", "cheapest-guarantee"]
INSTANTS = st.sampled_from(["batched", "per-event"])
OVERRUNS = st.sampled_from(["kill", "extend"])


@st.composite
def platforms(draw: st.DrawFn) -> Platform:
    """Draw two to four clusters at different prices, below one router or two levels of routers."""
    cores = draw(st.lists(st.sampled_from((2, 4, 8, 8)), min_size=2, max_size=4))
    clusters = [
        ClusterSpec(f"c{number}", count, rate=draw(st.sampled_from((1.0, 1.0, 0.5, 2.5))))
        for number, count in enumerate(cores)
    ]
    split = draw(st.integers(0, len(clusters) - 1))
    below = RouterSpec("site", tuple(clusters[split:]))
    return Platform(RouterSpec("root", (*clusters[:split], below) if draw(st.booleans()) else tuple(clusters)))


@st.composite
def users(draw: st.DrawFn) -> Workload:
    """Draw jobs, some with deadlines, whose users may be patient."""
    workload = draw(workloads(cores=8, deadlines=True))
    factors = st.lists(st.sampled_from((1.0, 1.0, 1.5, 4.0)), min_size=len(workload), max_size=len(workload))
    return replace(workload, tolerance=np.array(draw(factors)))


def told(record: Record) -> list[Any]:
    promised = [] if record.promises is None else [record.promises.granted_us.tolist(), record.kills.tolist()]
    return [record.start_us.tolist(), record.end_us.tolist(), record.status.tolist(), *promised]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("balancer", BALANCERS)
@given(workload=users(), platform=platforms(), instant=INSTANTS, overrun=OVERRUNS)
def test_no_promise_is_missed_and_clusters_that_were_only_asked_are_as_if_they_were_not(
    policy: str, balancer: str, workload: Workload, platform: Platform, instant: Any, overrun: Any
) -> None:
    options = Run(balancer=balancer, instant=instant, overrun=overrun)
    record = run(workload, platform, policy, options)
    assert told(run(workload, platform, policy, options)) == told(record)
    promises_hold(record, overrun)
    refused = record.status == Status.unadmitted
    assert np.array_equal(record.status == Status.rejected, workload.cores > platform.widest)
    assert not (record.ran & refused).any()
    for index, cluster in enumerate(platform.clusters()):
        # The jobs of one cluster and the jobs that all rejected, on that cluster alone: equal places and rejections.
        there = record.ran & (record.cluster == index)
        rows = np.flatnonzero((there | refused) & (workload.cores <= cluster.cores))
        alone = run(workload.select(rows), Platform.single(cluster.cores), policy, options)
        assert violations(alone, overrun=overrun) == []
        assert alone.start_us[there[rows]].tolist() == record.start_us[there].tolist()
        assert alone.end_us[there[rows]].tolist() == record.end_us[there].tolist()
        assert (alone.status[refused[rows]] == Status.unadmitted).all()


def promises_hold(record: Record, overrun: str) -> None:
    if record.promises is None:
        return
    outlived = record.workload.runtime > record.workload.estimate
    if overrun == "kill" or not outlived.any():
        assert not record.promises.broken.any()
        assert (record.end_us <= record.promises.granted_us)[record.ran].all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("balancer", BALANCERS)
@given(workload=users(), instant=INSTANTS)
def test_with_one_cluster_a_grid_is_that_cluster(policy: str, balancer: str, workload: Workload, instant: Any) -> None:
    below = RouterSpec("site", (ClusterSpec("c", 8), ClusterSpec("too-narrow-for-any", 1, kind="other")))
    alone = run(workload, Platform.single(8), policy, Run(instant=instant))
    grid = run(workload, Platform(RouterSpec("root", (below,))), policy, Run(instant=instant, balancer=balancer))
    single = run(workload, Platform.single(8), policy, Run(instant=instant, balancer=balancer))
    assert told(grid) == told(single) == told(alone)
