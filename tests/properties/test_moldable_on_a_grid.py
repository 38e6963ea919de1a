"""Moldable tasks of DAG jobs, and moldable jobs with deadlines, on a grid: each cluster chooses sizes separately."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.moldable import Moldable
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.speedup import Amdahl, Downey, Linear, Speedup
from gridsim.model.tasks import Tasks
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.policy.queue import Queue
from gridsim.policy.scheduler.moldable_scheduler import MoldableBackfilling
from gridsim.record import Record
from gridsim.simulation import Run, run
from gridsim.testing.invariants import violations
from gridsim.workload.transform.moldable import MoldableJobs
from tests.oracles.strategies import grids, workloads

Grid = tuple[Workload, Platform]
SECOND = 10**6
SIZED = [
    "moldable-greedy",
    "moldable-submit",
    "moldable-start",
    "moldable-base?choices=all",
    "moldable-combined?first=2",
    "moldable?backfill=now&promise_order=queue&reserve=xfactor(k=1.5,others=category(first=2))",
    *(
        f"moldable?ordering={name}&reserve=easy"
        for name in ("fifo-task", "fifo-job", "p-slr", "p-slr-sf", "srtf", "lrtf", "random")
    ),
]
AS_ASKED = ["easy", "conservative", "fcfs", "moldable?partition=rigid", "backfilling?ordering=p-slr&reserve=strict"]
BALANCERS = ["expected-queue", "round-robin", "random", "earliest-start", "data-local", "least-utilised"]


@st.composite
def moldable_grids(draw: st.DrawFn, *, asked_fits: bool = False) -> Grid:
    """Draw DAG jobs whose tasks may have sizes other than the requested ones, sometimes with wrong estimates.

    Parameters
    ----------
    asked_fits : bool
        Whether some cluster is as wide as each request; otherwise only the least number of cores certainly fits.
    """
    workload, platform = draw(grids(networks=("ccr", "ccr", "shared"), largest=5))
    tasks = workload.tasks
    assert tasks is not None
    n = len(tasks)
    widest = {
        kind: max(it.cores for it in platform.clusters() if it.kind == kind)
        for kind in {it.kind for it in platform.clusters()}
    }
    most = [widest[tasks.kinds[kind]] for kind in tasks.kind]
    low = np.array([draw(st.integers(1, limit)) for limit in most])
    high = low + np.array(draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)))
    cores = tasks.cores if asked_fits else tasks.cores + draw(st.sampled_from((0, 0, 3)))
    laws: list[Speedup] = [Linear(), Amdahl(serial=0.2), Downey(parallelism=4, sigma=1), Downey(3, 0.5)]
    law = draw(st.sampled_from(laws))
    wrong = np.array(draw(st.lists(st.sampled_from((0, 0, 0, 2, 7, -2)), min_size=n, max_size=n))) * SECOND
    estimate = np.maximum(tasks.runtime + wrong, SECOND)
    changed = replace(tasks, cores=cores, estimate=estimate)
    again = Workload.from_tasks(changed, submit=workload.submit / SECOND, labels=workload.labels, names=workload.names)
    return replace(again, moldable=Moldable.of(cores, low, high, [law])), platform


def simulate(grid: Grid, policy: str, **options: Any) -> Record:
    return run(*grid, policy, Run(**options))


def told(record: Record) -> list[Any]:
    times = record.tasks
    assert times is not None
    return [times.start_us.tolist(), times.end_us.tolist(), times.cluster.tolist(), record.given.tolist()]


def assert_possible(record: Record, platform: Platform, overrun: Any) -> None:
    """Assert that every task has one size within its cluster, the matching run time, and starts after its inputs."""
    assert violations(record, platform=platform, overrun=overrun) == []
    tasks, times, moldable = record.workload.tasks, record.tasks, record.workload.moldable
    assert tasks is not None
    assert times is not None
    assert moldable is not None
    sizes = record.given
    width = np.array([cluster.cores for cluster in platform.clusters()])[times.cluster]
    assert (sizes <= width).all()
    in_range = (moldable.minimum <= sizes) & (sizes <= moldable.maximum)
    assert (in_range | (sizes == tasks.cores)).all()
    runtime, estimate = (moldable.times_on(sizes, column, tasks.cores) for column in (tasks.runtime, tasks.estimate))
    held = runtime if overrun == "extend" else np.minimum(runtime, estimate)
    assert (np.abs(times.end_us - times.start_us - held) <= 1).all(), "to the microsecond"
    assert (times.start_us >= times.ready_us).all()
    assert (times.ready_us >= record.workload.submit[tasks.job_rows()]).all()
    if platform.network.kind == "ccr":
        assert (times.ready_us >= arrivals(record, platform)).all()


def arrivals(record: Record, platform: Platform) -> list[int]:
    """Return when the last data of the predecessors of each task arrive, from the inputs alone; 0 for none."""
    tasks, times, network = record.workload.tasks, record.tasks, platform.network
    assert tasks is not None
    assert times is not None
    names, levels = [cluster.name for cluster in platform.clusters()], platform.levels()
    last = [0] * len(tasks)
    for before in range(len(tasks)):
        for task in tasks.successors(before).tolist():
            height = levels[names[times.cluster[before]], names[times.cluster[task]]]
            power = height**network.delay_levels_power if network.delay_levels_power is not None else 1
            # The output of a task does not depend on its number of cores.
            delay = ceil(Fraction(network.ccr) * int(tasks.runtime[before]) / SECOND * power) if height else 0
            last[task] = max(last[task], int(times.end_us[before]) + delay * SECOND)
    return last


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", SIZED)
@given(
    grid=moldable_grids(),
    overrun=st.sampled_from(["kill", "extend"]),
    instant=st.sampled_from(["batched", "per-event"]),
    balancer=st.sampled_from(BALANCERS),
    split=st.sampled_from(["task", "kind-group"]),
)
@settings(max_examples=10)
def test_sizes_are_possible_where_tasks_were_placed_and_the_same_again(
    policy: str, grid: Grid, overrun: Any, instant: Any, balancer: str, split: Any
) -> None:
    options = {"overrun": overrun, "instant": instant, "balancer": balancer, "split": split, "seed": 3}
    record = simulate(grid, policy, **options)
    assert_possible(record, grid[1], overrun)
    assert told(simulate(grid, policy, **options)) == told(record)


@pytest.mark.parametrize("policy", AS_ASKED)
@given(grid=moldable_grids(asked_fits=True), overrun=st.sampled_from(["kill", "extend"]))
@settings(max_examples=10)
def test_schedulers_without_sizes_give_every_task_its_request_like_rigid_ones(
    policy: str, grid: Grid, overrun: Any
) -> None:
    record = simulate(grid, policy, overrun=overrun)
    assert_possible(record, grid[1], overrun)
    if policy.startswith("moldable"):
        return
    rigid = simulate((replace(grid[0], moldable=None), grid[1]), policy, overrun=overrun)
    assert told(rigid) == told(record)


@given(grid=grids())
@settings(max_examples=25)
def test_ranges_of_one_size_are_rigid_tasks_under_easy(grid: Grid) -> None:
    """In an order in which no later task becomes first, a reservation is kept; others select the first task again."""
    workload, platform = grid
    tasks = workload.tasks
    assert tasks is not None
    fixed = replace(workload, moldable=Moldable.of(tasks.cores, tasks.cores, tasks.cores, [Linear()]))
    rigid = run(workload, platform, "backfilling?ordering=fifo-task&reserve=easy")
    assert told(run(fixed, platform, "moldable?ordering=fifo-task&reserve=easy")) == told(rigid)


def two(cores: tuple[int, int], low: int, high: int, asked: int) -> Grid:
    """Return one task on two clusters."""
    tasks = Tasks.from_edges(counts=[1], runtime=[12], cores=[asked], kind=[0], kinds=("any",), edges=[])
    workload = replace(Workload.from_tasks(tasks, submit=[0]), moldable=Moldable.of([asked], low, high, [Linear()]))
    return workload, Platform(
        RouterSpec("root", tuple(ClusterSpec(f"c{it}", size, "any") for it, size in enumerate(cores)))
    )


@pytest.mark.parametrize(("policy", "cores"), [("moldable-greedy", 4), ("moldable-base", 3)])
def test_a_size_is_limited_to_the_cluster_of_the_task(policy: str, cores: int) -> None:
    """Six requested cores, two to eight allowed, four available: all four, or nine tenths of them."""
    record = simulate(two((4, 4), low=2, high=8, asked=6), policy)
    assert record.given.tolist() == [cores]
    assert record.end.tolist() == [12 * 6 / cores]


def test_the_earliest_start_behind_a_task_that_requests_more_than_there_is_can_be_reported() -> None:
    """A task of at most three cores waits for two busy clusters of two cores; a fourth task arrives after it."""
    tasks = Tasks.from_edges(
        counts=[1] * 4, runtime=[9] * 4, cores=[2, 2, 3, 2], kind=[0] * 4, kinds=("any",), edges=[]
    )
    workload = Workload.from_tasks(tasks, submit=[0, 0, 1, 2])
    workload = replace(workload, moldable=Moldable.of([2, 2, 3, 2], [2, 2, 1, 2], [2, 2, 3, 2], [Linear()]))
    platform = Platform(RouterSpec("root", (ClusterSpec("c0", 2, "any"), ClusterSpec("c1", 2, "any"))))
    record = run(workload, platform, "moldable-start", Run(balancer="earliest-start"))
    assert_possible(record, platform, "kill")


@pytest.mark.parametrize("policy", AS_ASKED)
def test_a_task_of_which_only_the_least_size_fits_goes_where_its_request_does(policy: str) -> None:
    record = simulate(two((4, 8), low=2, high=8, asked=6), policy, balancer="round-robin")
    assert (record.given.tolist(), record.tasks and record.tasks.cluster.tolist()) == ([6], [1])


@pytest.mark.parametrize("policy", AS_ASKED)
def test_a_task_that_only_a_chosen_size_could_run_is_refused_by_those_who_choose_none(policy: str) -> None:
    with pytest.raises(InputError, match="needs 6 cores of kind 'any'; the widest cluster of that kind has 4"):
        simulate(two((4, 4), low=2, high=8, asked=6), policy)


def test_a_task_has_waited_since_it_was_ready_not_since_its_job_arrived() -> None:
    """Two cores, shortest first: the second task, ready at 10 s, has waited too long (10 s) only after 20 s."""
    tasks = Tasks.from_edges(
        counts=[2, 1, 1, 1, 1],
        runtime=[10, 10, 9, 6, 8, 8],
        cores=[2, 2, 1, 1, 1, 1],
        kind=[0] * 6,
        kinds=("any",),
        edges=[(0, 1)],
    )
    rigid = Workload.from_tasks(tasks, submit=[0, 1, 2, 11, 12])
    workload = replace(rigid, moldable=Moldable.of(tasks.cores, tasks.cores, tasks.cores, [Linear()]))
    platform = Platform(RouterSpec("root", (ClusterSpec("c", 2, "any"),)))
    record = run(workload, platform, "moldable?reserve=xfactor(k=1.5,others=first-fit)&ordering=sjf")
    assert record.tasks is not None
    assert (record.tasks.start_us / SECOND).tolist() == [0, 27, 10, 10, 16, 19]


@given(grid=grids(), factor=st.sampled_from((1.0, 1.5, 2.0, 100.0)), sigma=st.sampled_from((0.0, 1.0, 2.0)))
@settings(max_examples=25)
def test_one_rule_gives_every_task_a_range_up_to_the_widest_cluster(grid: Grid, factor: float, sigma: float) -> None:
    workload, platform = grid
    tasks = workload.tasks
    assert tasks is not None
    made = MoldableJobs(range_factor=factor, sigma=sigma, cores=platform.widest).apply(workload)
    assert made.moldable is not None
    assert len(made.moldable) == len(tasks)
    assert (made.moldable.minimum <= tasks.cores).all()
    assert (made.moldable.maximum <= platform.widest).all()
    assert (made.moldable.maximum[tasks.cores == 1] == 1).all(), "sequential tasks stay sequential"
    assert_possible(simulate((made, platform), "moldable-combined"), platform, "kill")


@st.composite
def promising(draw: st.DrawFn) -> Workload:
    """Draw moldable jobs of one task, some with deadlines; some request more than one cluster has."""
    workload = draw(workloads(cores=8, deadlines=True, largest=10))
    n = len(workload)
    low = np.array(draw(st.lists(st.integers(1, 8), min_size=n, max_size=n)))
    high = low + np.array(draw(st.lists(st.integers(0, 7), min_size=n, max_size=n)))
    return replace(workload, moldable=Moldable.of(workload.cores, low, high, [Downey(parallelism=8, sigma=1)]))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("balancer", ["earliest-guarantee", "cheapest-guarantee", "expected-queue"])
@pytest.mark.parametrize("policy", ["qops?partition=greedy", "msb?partition=fair-share(wf=2)", "qops"])
@given(workload=promising(), overrun=st.sampled_from(["kill", "extend"]))
@settings(max_examples=10)
def test_promises_of_several_clusters_to_moldable_jobs_are_kept(
    policy: str, balancer: str, workload: Workload, overrun: Any
) -> None:
    platform = Platform(RouterSpec("root", (ClusterSpec("a", 4), ClusterSpec("b", 8, rate=1.5))))
    record, again = (run(workload, platform, policy, Run(balancer=balancer, overrun=overrun)) for _ in range(2))
    assert violations(record, platform=platform, overrun=overrun) == []
    assert record.start_us.tolist() == again.start_us.tolist()
    assert record.given.tolist() == again.given.tolist()
    assert record.promises is not None
    if overrun == "kill":
        promised = record.promises.granted_us < NEVER
        assert (record.end_us[promised] <= record.promises.granted_us[promised]).all()
    if "partition" not in policy:
        assert (record.given == workload.cores).all()


def test_the_cheapest_guarantee_is_that_of_the_size_on_which_it_would_be_kept() -> None:
    """Until 15 s: b can use one core for 15 s (15 core-seconds, higher price), a six cores for the last 5 s (30)."""
    rigid = Workload.from_columns(submit=[0, 0], runtime=[10, 6], cores=[8, 4], deadline=[10, 15])
    workload = replace(rigid, moldable=Moldable.of([8, 4], [8, 1], [8, 8], [Amdahl(serial=0.2)]))
    platform = Platform(RouterSpec("root", (ClusterSpec("a", 8, rate=1.0), ClusterSpec("b", 4, rate=1.2))))
    record = run(workload, platform, "qops?partition=greedy", Run(balancer="cheapest-guarantee"))
    assert (record.cluster.tolist(), record.given.tolist()) == ([0, 1], [8, 1])
    assert record.end.tolist() == [10, 15]


def test_delays_are_those_of_the_data_whatever_the_size_of_the_sender() -> None:
    tasks = Tasks.from_edges(
        counts=[2], runtime=[10, 1], cores=[2, 1], kind=[0, 1], kinds=("cpu", "gpu"), edges=[(0, 1)]
    )
    workload = replace(Workload.from_tasks(tasks, submit=[0]), moldable=Moldable.of([2, 1], [1, 1], [4, 1], [Linear()]))
    platform = Platform(
        RouterSpec("root", (ClusterSpec("c", 4, "cpu"), ClusterSpec("g", 1, "gpu"))), network=Network(ccr="1/2")
    )
    record = run(workload, platform, "moldable-greedy")
    assert record.tasks is not None
    assert record.given.tolist() == [4, 1]
    assert record.tasks.end_us.tolist() == [5 * SECOND, 11 * SECOND], "5 s on four cores, 5 s of data, 1 s"


class Watching:
    """First come, first served; records the messages of the cluster."""

    seen: ClassVar[list[dict[str, float]]] = []

    def rank(self, queue: Queue, now: float) -> Any:
        self.seen.append(dict(queue.state))
        return queue.ready


def test_orderings_get_free_cores_and_the_tick() -> None:
    Watching.seen.clear()
    tasks = Tasks.from_edges(counts=[1, 1], runtime=[5, 5], cores=[3, 3], kind=[0, 0], kinds=("any",), edges=[])
    workload = Workload.from_tasks(tasks, submit=[0, 1])
    workload = replace(workload, moldable=Moldable.of([3, 3], 3, 3, [Linear()]))
    platform = Platform(RouterSpec("root", (ClusterSpec("a", 4, "any"),)))
    run(workload, platform, MoldableBackfilling(ordering=Watching()), Run(tick=0.5))
    assert [(it["free"], it["total"], it["tick"]) for it in Watching.seen] == [(4, 4, 0.5), (1, 4, 0.5), (4, 4, 0.5)]


def test_an_ordering_that_ranks_after_every_start_is_refused() -> None:
    grid = two((4, 4), low=2, high=3, asked=3)
    with pytest.raises(InputError, match="re-ranks after every start, but sizes are chosen once per cycle"):
        simulate(grid, "moldable?ordering=fair-share")
