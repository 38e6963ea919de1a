"""Sizes of moldable jobs on machines of nodes: a size has its number of tasks, and all other demands are per task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsim as gs
from gridsim.model.capacity import NodeGroup
from gridsim.model.demand import Demand, Demands
from gridsim.model.moldable import Moldable
from gridsim.model.platform import Platform
from gridsim.model.speedup import Downey, Linear
from gridsim.model.workload import Workload
from gridsim.questions.quote import quote
from gridsim.record import Record
from gridsim.testing.invariants import violations
from tests.oracles.machine.random_machines import draw_jobs, draw_machine
from tests.oracles.machine.translated import asked_of, platform_of, workload_of
from tests.oracles.strategies import workloads

CORES = 8
CHOOSING = [
    "moldable-greedy",
    "moldable-submit",
    "planned?partition=greedy(choices=3)&compress=arrival",
    "qops?partition=greedy",
    "fqops?partition=fair-share(wf=2)&kill_restart=true",
    "msb?partition=greedy(choices=4,grid=linear)&unadmitted=best-effort",
    "moldable-start",
    "moldable-combined",
    "moldable?partition=greedy(choices=all)&reserve=first-fit&backfill=now",
    "moldable?partition=greedy(choices=4)&reserve=category&promise_order=queue",
]
FIXED = ["fcfs", "easy", "conservative", "qops", "moldable?partition=rigid"]
QUICK = "relaxation=1.5&artificial_floor=9"


def simulate(workload: Workload, policy: str, platform: Platform, **options: Any) -> Record:
    if policy.startswith(("qops", "fqops", "msb")):
        policy += ("&" if "?" in policy else "?") + QUICK
    return gs.simulate(workload, platform=platform, policy=policy, **options).record


def moldable_schedule(workload: Workload, rng: np.random.Generator, *, named: bool = False) -> Workload:
    """Return the jobs with ranges around their requests and two speedup laws; some list their permitted sizes."""
    n, cores = len(workload), workload.cores
    low = np.maximum(1, cores - rng.integers(0, 3, n))
    high = cores + rng.integers(0, 5, n)
    laws = [Linear(), Downey(parallelism=6, sigma=1)]
    sizes = [np.unique(rng.integers(1, 12, 3)) if named and rng.random() < 0.4 else [] for _ in range(n)]
    for row, some in enumerate(sizes):
        if len(some):
            low[row], high[row] = some[0], some[-1]
    made = Moldable.of(cores, low, high, laws, rng.integers(0, 2, n), sizes=sizes if named else None)
    return replace(workload, moldable=made)


def told(record: Record) -> list[Any]:
    return [record.start_us.tolist(), record.end_us.tolist(), record.status.tolist(), record.given.tolist()]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("policy", [*CHOOSING, *FIXED])
@settings(max_examples=12)
@given(workload=workloads(cores=CORES, deadlines=True, largest=12), seed=st.integers(0, 99), named=st.booleans())
def test_one_node_of_all_cores_is_the_pool(policy: str, workload: Workload, seed: int, named: bool) -> None:
    rng = np.random.default_rng([53, seed])
    jobs = moldable_schedule(workload, rng, named=named)
    node = Platform.of_nodes([NodeGroup(group="n", capacity={"cores": CORES, "memory": 999})])
    asked = [Demand(tasks=cores, each={"cores": 1, "memory": 3}) for cores in jobs.cores.tolist()]
    pool = simulate(jobs, policy, Platform.single(CORES))
    assert told(simulate(jobs, policy, node)) == told(pool)  # plain cores
    assert told(simulate(replace(jobs, demands=Demands.of(asked)), policy, node)) == told(pool)


def test_a_size_has_as_many_tasks_and_memory_for_each() -> None:
    # Tasks of 2 cores and 4 MiB; the memory of a node holds two tasks, so 8 of 12 cores are the widest size.
    nodes = Platform.of_nodes([NodeGroup(group="n", count=2, capacity={"cores": 6, "memory": 8}, gpus=2)])
    one = Demand(tasks=1, each={"cores": 2, "memory": 4}, gpu=500)
    jobs = Workload.from_columns(submit=[0, 0, 0], runtime=[120, 120, 120], demands=Demands.of([one] * 3))
    jobs = replace(jobs, moldable=Moldable.of(jobs.cores, [1, 3, 1], [12, 12, 3], [Linear()]))
    result = gs.simulate(jobs, platform=nodes, policy="moldable-greedy")
    assert result.jobs["cores_used"].tolist() == [8, 8, 2]
    assert result.jobs["start"].tolist() == [0, 30, 60]
    held = result.allocations
    assert held["tasks"].tolist() == [2, 2, 2, 2, 1]
    assert held["memory"].tolist() == [8, 8, 8, 8, 4]
    assert held["gpus"].tolist() == ["0:1000", "0:1000", "0:1000", "0:1000", "0:500"]


def test_a_job_none_of_whose_sizes_has_a_place_is_rejected_and_one_with_smaller_sizes_runs() -> None:
    nodes = Platform.of_nodes([NodeGroup(group="n", count=2, capacity={"cores": 4, "memory": 8})], {"solver": 1})
    wide = Demand(tasks=4, each={"cores": 2, "memory": 8}, pools={"solver": 1})  # two have memory
    never = Demand(tasks=2, each={"cores": 2, "memory": 9})
    apart = Demand(tasks=4, each={"cores": 1, "memory": 1}, min_nodes=2, tasks_per_node=2)
    jobs = Workload.from_columns(submit=[0, 0, 1], runtime=[10, 10, 10], demands=Demands.of([wide, never, apart]))
    jobs = replace(jobs, moldable=Moldable.of(jobs.cores, [2, 2, 1], [8, 8, 8], [Linear()]))
    result = gs.simulate(jobs, platform=nodes, policy="planned?partition=greedy(choices=all)")
    assert result.jobs["status"].tolist() == ["completed", "rejected", "completed"]
    assert result.jobs["reason"].tolist() == ["", "task", ""]
    assert result.jobs["cores_used"].tolist()[::2] == [4, 4]
    fixed = gs.simulate(jobs, platform=nodes, policy="conservative")
    assert fixed.jobs["status"].tolist() == ["rejected", "rejected", "completed"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", CHOOSING)
def test_sizes_are_whole_tasks_at_places_that_there_are(policy: str) -> None:
    rng = np.random.default_rng([59, CHOOSING.index(policy)])
    sizes = 0
    for number in range(8):
        machine = draw_machine(rng)
        drawn = [job for job in draw_jobs(rng, machine, 12) if asked_of(job.demand).total("cores")]
        platform, workload = platform_of(machine), workload_of(drawn)
        slack = rng.choice((0, 2, 5, 13), len(workload)) * 10**6
        jobs = moldable_schedule(replace(workload, deadline=workload.submit + workload.estimate + slack), rng)
        record = simulate(jobs, policy, platform, overrun="extend" if number % 2 else "kill")
        assert violations(record, platform=platform, overrun="extend" if number % 2 else "kill") == []
        demands, held = jobs.demands, record.allocations
        assert demands is not None
        assert held is not None
        tasks = np.bincount(held.job, weights=held.tasks * (held.run == 1), minlength=len(jobs)).astype(int)
        each = np.where(demands.plain > 0, 1, demands.each.get("cores", np.zeros(len(jobs), dtype=int)))
        of_tasks = record.ran & (tasks > 0) & (each > 0) & (record.kills == 0)
        assert (tasks * each == record.given)[of_tasks].all()
        sizes += int((record.given != jobs.cores)[of_tasks].sum())
    assert sizes > 0


NARROW = [
    Platform.single(8),
    Platform.of_nodes([NodeGroup(group="n", count=2, capacity={"cores": 4})]),
]


@pytest.mark.parametrize("platform", NARROW, ids=["pool", "nodes"])
def test_a_job_below_its_requested_width_waits_behind_all_promises_at_the_width_with_the_first_end(
    platform: Platform,
) -> None:
    columns: dict[str, Any] = {"submit": [0, 0, 1], "runtime": [100] * 3, "cores": [12, 4, 6]}
    jobs = Workload.from_columns(**columns, deadline=[101, 102, 102], tolerance=[1, 1, 1])
    jobs = replace(jobs, moldable=Moldable.of(jobs.cores, 2, 12, [Linear()]))
    found = gs.simulate(jobs, platform=platform, policy="qops?partition=greedy&unadmitted=best-effort").jobs
    assert found["cores_used"].tolist() == [8, 4, 6]  # no 12 are free; 6 are
    assert found["start"].tolist() == [100, 0, 250]
    assert np.isnan(found["granted"]).tolist() == [True, False, True]
    # The same if a later deadline is offered and the user declines: the size is that of the offer.
    found = gs.simulate(jobs, platform=platform, policy="fqops?partition=greedy&unadmitted=best-effort").jobs
    assert found["offer"].tolist()[0] == 150
    assert found["cores_used"].tolist()[0] == 8
    assert np.isnan(found["granted"]).tolist()[0]
    dropped = gs.simulate(jobs, platform=platform, policy="qops?partition=greedy").jobs
    assert dropped["status"].tolist() == ["unadmitted", "completed", "unadmitted"]


def test_one_more_job_is_offered_a_start_among_jobs_of_several_sizes() -> None:
    node = Platform.of_nodes([NodeGroup(group="n", capacity={"cores": CORES, "memory": 999})])
    jobs = Workload.from_columns(submit=range(0, 60, 5), runtime=[50] * 12, cores=[3] * 12)
    jobs = replace(jobs, moldable=Moldable.of(jobs.cores, 2, 6, [Linear()]))
    for policy in ("moldable-greedy", "qops?partition=greedy", "easy"):
        asked: dict[str, Any] = {"cores": 2, "walltime": 30, "policies": [policy]}
        pool = quote(jobs, platform=Platform.single(CORES), **asked)
        assert pool.answers[0].start == quote(jobs, platform=node, **asked).answers[0].start >= pool.at


def test_a_job_of_no_cores_keeps_its_size() -> None:
    nodes = Platform.of_nodes([NodeGroup(group="n", count=2, capacity={"cores": 8}, gpus=2)])
    demands = Demands.of([Demand(tasks=1, each={}, gpu=1000), Demand(tasks=2, each={"cores": 2}, gpu=500)])
    jobs = Workload.from_columns(submit=[0, 1], runtime=[60, 60], demands=demands)
    jobs = replace(jobs, moldable=Moldable.of(jobs.cores, [1, 2], 8, [Linear()]))
    result = gs.simulate(jobs, platform=nodes, policy="moldable-greedy")
    assert result.jobs["cores_used"].tolist() == [0, 8]
    assert result.jobs["end"].tolist() == [60, 31]
    assert violations(result.record, platform=nodes) == []
    held = result.record.allocations
    assert held is not None
    fewer = replace(held, tasks=np.where(held.job == 1, 1, held.tasks))
    found = violations(replace(result.record, allocations=fewer), platform=nodes)
    assert "wrong-tasks" in [each.kind for each in found]


@pytest.mark.parametrize("policy", ["moldable-greedy", "moldable-start", "moldable?partition=rigid"])
def test_no_jobs_arrive(policy: str) -> None:
    none = workload_of([])
    jobs = replace(none, moldable=Moldable.of(none.cores, 1, 2, [Linear()]))
    assert len(simulate(jobs, policy, NARROW[1])) == 0


def test_a_job_that_would_have_its_best_size_later_starts_now_only_where_that_is_wanted() -> None:
    # Two nodes of 4; job 1 leaves 2 cores of the first and the whole second until 10 s. Tasks of 2 cores, half a GPU.
    nodes = Platform.of_nodes([NodeGroup(group="n", count=2, capacity={"cores": 4}, gpus=1)])
    first = Demand(tasks=1, each={"cores": 2}, gpu=1000)
    tasks = Demand(tasks=2, each={"cores": 2}, gpu=500)
    jobs = Workload.from_columns(submit=[0, 1], runtime=[10, 100], demands=Demands.of([first, tasks]))
    jobs = replace(jobs, moldable=Moldable.of(jobs.cores, [2, 2], [2, 8], [Linear()]))
    sizes = "moldable?partition=greedy(choices=all)&reserve=first-fit&backfill="
    best, now = (gs.simulate(jobs, platform=nodes, policy=sizes + when) for when in ("best", "now"))
    assert (best.jobs["start"][1], best.jobs["cores_used"][1], best.jobs["end"][1]) == (10, 8, 60)
    assert (now.jobs["start"][1], now.jobs["cores_used"][1], now.jobs["end"][1]) == (1, 4, 101)
    assert now.allocations["node"].tolist() == ["n-0", "n-1"]  # the GPU of the first is taken
    assert now.allocations["gpus"].tolist() == ["0:1000", "0:1000"]
