"""Laws of runs with failures, windows, checkpoints and preemption under Slurm's scheduler."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsim as gs
from gridsim.model.site import Node, Preemption, Site, SitePartition
from gridsim.options import Run
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.result import Result
from tests.policy.slurm.running import QUICK
from tests.properties.test_availability import Case, cases, check, check_nothing_happens


class OnSlurm(Case):
    """A case whose machine is a site with two partitions, and whose jobs have Slurm's labels."""

    def run(self, policy: Any, **options: Any) -> Result:
        given: Any = {"failures": self.failures, "instant": self.instant, **options}
        return gs.simulate(self.workload, platform=self.platform, policy=policy, options=Run(**given))


@st.composite
def sites(draw: st.DrawFn) -> tuple[OnSlurm, Slurm]:
    """Draw a case, and the scheduler of its site."""
    case = draw(cases())
    (cluster,) = case.platform.clusters()
    capacity, given = cluster.capacity, case.workload
    assert capacity is not None
    assert given.demands is not None
    memory = capacity.amounts.get("memory", np.full(len(capacity.nodes), 8))
    columns = (capacity.nodes, *(column.tolist() for column in (capacity.amounts["cores"], memory, capacity.gpus)))
    nodes = tuple(Node(*each[:3], gpus=each[3]) for each in zip(*columns, strict=True))
    mode = draw(st.sampled_from(("OFF", "REQUEUE", "SUSPEND")))
    parts = (SitePartition("low", capacity.nodes), SitePartition("high", capacity.nodes, tier=2, preempt="OFF"))
    requeue = mode != "OFF" or draw(st.booleans())  # preempted jobs that may not be requeued are cancelled
    rules = Preemption("partition", mode, requeue=requeue, most_requeues=draw(st.integers(0, 3)))
    site = Site(nodes, parts, "low", scheduling=QUICK, preemption=rules, memory="memory" in capacity.amounts)
    one, count = st.sampled_from, len(given)
    rows = range(count)
    labels = {name: column for name, column in given.labels.items() if name not in ("priority", "preemptible")}
    labels["partition"] = (given.labels["priority"] > 0).astype(np.int64)
    labels["gpus"] = np.array([draw(one((0, 0, 1, 2))) if capacity.gpus.any() else 0 for _ in rows])
    labels["memory_mb"] = np.array([draw(one((1, 1, 4))) for _ in rows])
    labels["requeue"] = np.array([draw(one((-1, -1, 1, int(requeue)))) for _ in rows])
    failures = case.failures and replace(case.failures, spares=0)
    times: Any = {name: getattr(given, name) / 10**6 for name in ("submit", "runtime", "estimate")}
    workload = gs.Workload.from_columns(**times, cores=given.cores, labels=labels)
    workload = replace(workload, names={"partition": ("low", "high")})
    return OnSlurm(site.on_nodes(), workload, failures, case.preempt, case.instant), Slurm(site=site, boot=0.0)


@settings(max_examples=40)
@given(made=sites())
def test_laws_of_failures_windows_and_checkpoints(made: tuple[OnSlurm, Slurm]) -> None:
    check(*made)


@pytest.mark.long
@settings(max_examples=600)
@given(made=sites())
def test_laws_of_failures_windows_and_checkpoints_on_more_machines(made: tuple[OnSlurm, Slurm]) -> None:
    check(*made)


@settings(max_examples=10)
@given(made=sites())
def test_options_without_an_effect_change_no_file(made: tuple[OnSlurm, Slurm]) -> None:
    case, slurm = made
    assert slurm.site is not None  # a table of runs is also written if jobs are preempted
    check_nothing_happens(case, Slurm(site=replace(slurm.site, preemption=Preemption()), boot=0.0))
