"""Properties of every schedule of DAG jobs on a grid (grid spec, section 16)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.simulation import Run, run
from gridsim.testing.invariants import violations
from tests.oracles.strategies import grids

Grid = tuple[Workload, Platform]

POLICIES = ["random", "fifo-task", "fifo-job", "fair-share", "lrtf", "srtf", "p-slr", "p-slr-sf"]
FITS = ["strict", "first-fit", "easy"]
BALANCERS = [
    "expected-queue",
    "expected-queue?work=remaining&include_candidate=true",
    "expected-queue?work=queued&advertise=any",
    "round-robin",
    "random",
    "random?weighted=true",
    "power-of-two",
    "least-utilised",
    "earliest-start",
    "data-local",
]
SECOND = 10**6


def schedule(grid: Grid, policy: str, fit: str = "strict", **options: Any) -> Record:
    return run(*grid, f"backfilling?ordering={policy}&reserve={fit}", Run(**options))


def starts(record: Record) -> list[int]:
    assert record.tasks is not None
    found: list[int] = record.tasks.start_us.tolist()
    return found


def ready_by_hand(record: Record, platform: Platform) -> list[int]:
    """Return when each task could run, from the inputs and the ends of its predecessors (fixed delays)."""
    tasks, times, network = record.workload.tasks, record.tasks, platform.network
    assert tasks is not None
    assert times is not None
    names, levels = [cluster.name for cluster in platform.clusters()], platform.levels()
    ready = [int(record.workload.submit[job]) // SECOND for job in tasks.job_rows()]
    into: list[list[tuple[int, int]]] = [[] for _ in ready]
    for before in range(len(tasks)):
        for task in tasks.successors(before).tolist():
            height = levels[names[times.cluster[before]], names[times.cluster[task]]]
            power = height**network.delay_levels_power if network.delay_levels_power is not None else 1
            delay = ceil(Fraction(network.ccr) * int(tasks.runtime[before]) / SECOND * power) if height else 0
            into[task].append((int(times.end_us[before]) // SECOND, delay))
    for task, arrivals in enumerate(into):
        if arrivals and network.transfer_start == "all":
            arrivals = [(max(end for end, _ in arrivals), max(delay for _, delay in arrivals))]
        ready[task] = max([ready[task], *(end + delay for end, delay in arrivals)])
    return [instant * SECOND for instant in ready]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("policy", POLICIES)
@given(grid=grids())
@settings(max_examples=15)
def test_schedules_are_possible_and_their_tasks_ready_when_the_inputs_say(policy: str, fit: str, grid: Grid) -> None:
    workload, platform = grid
    record = schedule(grid, policy, fit)
    assert violations(record, platform=platform) == []
    assert record.tasks is not None
    assert workload.tasks is not None
    assert record.tasks.ready_us.tolist() == ready_by_hand(record, platform)
    held = record.tasks.end_us - record.tasks.start_us
    assert (held * workload.tasks.cores).sum() == (workload.tasks.runtime * workload.tasks.cores).sum()
    assert record.critical_path is not None
    assert ((record.end_us - workload.submit) >= record.critical_path).all()


@pytest.mark.parametrize("balancer", BALANCERS)
@given(grid=grids(networks=("ccr", "shared", "fifo")), split=st.sampled_from(["task", "kind-group"]))
@settings(max_examples=15)
def test_every_balancer_and_network_gives_a_possible_schedule_and_the_same_one_again(
    balancer: str, grid: Grid, split: Any
) -> None:
    record = schedule(grid, "p-slr", balancer=balancer, split=split, seed=3)
    assert violations(record, platform=grid[1]) == []
    assert starts(record) == starts(schedule(grid, "p-slr", balancer=balancer, split=split, seed=3))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", POLICIES)
@given(grid=grids())
@settings(max_examples=10)
def test_the_same_run_gives_the_same_schedule(policy: str, grid: Grid) -> None:
    for fit in FITS:
        assert starts(schedule(grid, policy, fit, seed=1)) == starts(schedule(grid, policy, fit, seed=1))


def keys(record: Record, policy: str) -> list[tuple[int, ...]]:
    tasks, times, rank = record.workload.tasks, record.tasks, record.rank
    assert tasks is not None
    assert times is not None
    assert rank is not None
    rows = zip(tasks.job_rows().tolist(), times.ready_us.tolist(), rank.tolist(), strict=True)
    key: Any = {
        "fifo-job": lambda job, ready, rank: (job, ready),
        "fifo-task": lambda job, ready, rank: (ready, job),
        "lrtf": lambda job, ready, rank: (-rank, job, ready),
        "srtf": lambda job, ready, rank: (rank, job, ready),
    }[policy]
    return [(*key(*row), index) for index, row in enumerate(rows)]


@pytest.mark.parametrize("policy", ["fifo-job", "fifo-task", "lrtf", "srtf"])
@given(grid=grids(largest=10))
def test_no_job_starts_while_an_earlier_keyed_ready_task_of_its_cluster_waits(policy: str, grid: Grid) -> None:
    record = schedule(grid, policy)
    times, key = record.tasks, keys(record, policy)
    assert times is not None
    for one in range(len(key)):
        for other in range(len(key)):
            if times.cluster[one] == times.cluster[other] and key[one] < key[other]:
                passed = times.ready_us[one] <= times.start_us[other] < times.start_us[one]
                assert not passed, (one, other)


def scaled(workload: Workload, factor: int) -> Workload:
    tasks = workload.tasks
    assert tasks is not None
    longer = replace(tasks, runtime=tasks.runtime * factor, estimate=tasks.estimate * factor)
    return Workload.from_tasks(
        longer, submit=workload.submit * factor / 1e6, labels=workload.labels, names=workload.names
    )


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "random"])
@given(grid=grids(ccr=("0", "1", "3")), factor=st.sampled_from([2, 3, 60]))
@settings(max_examples=15)
def test_scaling_all_times_and_the_lateness_scales_the_schedule(policy: str, grid: Grid, factor: int) -> None:
    workload, platform = grid
    late = f"({'lateness=' + str(factor)})" if policy.startswith("p-slr") else ""
    once = [start * factor for start in starts(schedule(grid, policy))]
    assert starts(schedule((scaled(workload, factor), platform), policy + late)) == once


@given(grid=grids(most_tasks=1, largest=15), length=st.integers(1, 9))
def test_p_slr_is_fifo_where_all_jobs_are_one_task_of_one_length(grid: Grid, length: int) -> None:
    workload, platform = grid
    tasks = workload.tasks
    assert tasks is not None
    same = replace(tasks, runtime=tasks.runtime * 0 + length * SECOND, estimate=tasks.runtime * 0 + length * SECOND)
    equal = Workload.from_tasks(same, submit=workload.submit / 1e6), platform
    for fit in FITS:
        assert starts(schedule(equal, "p-slr", fit)) == starts(schedule(equal, "fifo-job", fit))


@given(grid=grids(), share=st.sampled_from(["fair-share", "fair-share(combine=fair-tree)", "fair-share(scope=grid)"]))
def test_fair_share_with_one_leaf_is_fifo(grid: Grid, share: str) -> None:
    workload, platform = grid
    alone = replace(workload, labels={"share": workload.labels["share"] * 0}, names={"share": ("/all",)}), platform
    for fit in FITS:
        assert starts(schedule(alone, share, fit)) == starts(schedule(alone, "fifo-job", fit))


def with_network(grid: Grid, **words: Any) -> Grid:
    network = grid[1].network
    return grid[0], replace(grid[1], network=Network(ccr=network.ccr, transfer_start=network.transfer_start, **words))


@pytest.mark.parametrize("policy", ["fifo-job", "lrtf", "p-slr"])
@given(grid=grids())
@settings(max_examples=25)
def test_links_of_huge_capacity_and_many_slots_are_fixed_delays(policy: str, grid: Grid) -> None:
    expected = starts(schedule(with_network(grid), policy))
    for words in ({"kind": "shared", "capacity": "1000000"}, {"kind": "fifo", "slots": 1000}):
        assert starts(schedule(with_network(grid, **words), policy)) == expected


# -- shared links against a plain simulation of the fluid --------------------------------------------------------------

Transfer = tuple[int, tuple[str, ...], Fraction]  # start, links, volume


def rates(paths: dict[int, tuple[str, ...]], capacity: Fraction, cap: Fraction) -> dict[int, Fraction]:
    """Return max-min fair rates by filling: all rates grow equally until a link is full or the cap is reached."""
    level, fixed = Fraction(0), dict[int, Fraction]()
    while len(fixed) < len(paths):
        room = {}
        for link in {link for path in paths.values() for link in path}:
            growing = sum(link in path for number, path in paths.items() if number not in fixed)
            if growing:
                used = sum(
                    (fixed[number] for number, path in paths.items() if number in fixed and link in path), Fraction(0)
                )
                room[link] = (capacity - used) / growing
        level = min([cap, *room.values()])
        full = {link for link, share in room.items() if share == level}
        for number, path in paths.items():
            if number not in fixed and (level == cap or full.intersection(path)):
                fixed[number] = level
    return fixed


def deliveries(transfers: list[Transfer], capacity: Fraction, cap: Fraction) -> list[int]:
    """Return the tick of completion of each transfer, rounded up."""
    now, left, done = Fraction(0), dict[int, Fraction](), dict[int, Fraction]()
    coming = sorted(range(len(transfers)), key=lambda number: transfers[number][0])
    while coming or left:
        flow = rates({number: transfers[number][1] for number in left}, capacity, cap)
        ends = [now + left[number] / flow[number] for number in left]
        then = min([*ends, *(Fraction(transfers[number][0]) for number in coming[:1])])
        left = {number: volume - flow[number] * (then - now) for number, volume in left.items()}
        now = then
        done |= {number: now for number, volume in left.items() if volume == 0}
        left = {number: volume for number, volume in left.items() if volume > 0}
        while coming and transfers[coming[0]][0] == now:
            number = coming.pop(0)
            left[number] = transfers[number][2]
    return [ceil(done[number]) for number in range(len(transfers))]


LINKS = {  # links of the tree below, from source to target
    (0, 1): ("c0 up", "c1 down"),
    (1, 0): ("c1 up", "c0 down"),
    (0, 2): ("c0 up", "site down", "c2 down"),
    (0, 3): ("c0 up", "site down", "c3 down"),
    (1, 2): ("c1 up", "site down", "c2 down"),
    (1, 3): ("c1 up", "site down", "c3 down"),
    (2, 3): ("c2 up", "c3 down"),
    (2, 0): ("c2 up", "site up", "c0 down"),
    (3, 0): ("c3 up", "site up", "c0 down"),
    (3, 1): ("c3 up", "site up", "c1 down"),
}


def tree(network: Network) -> Platform:
    c0, c1, c2, c3 = (ClusterSpec(f"c{number}", 1000, f"K{number}") for number in range(4))
    return Platform(RouterSpec("root", (c0, c1, RouterSpec("site", (c2, c3)))), network=network)


def pairs(rows: list[tuple[int, int, tuple[int, int]]]) -> Workload:
    """Return one job per row: a task on one cluster with data for a task on another."""
    tasks = Tasks.from_edges(
        counts=[2] * len(rows),
        runtime=[length for _, runtime, _ in rows for length in (runtime, 1)],
        cores=1,
        kind=[kind for *_, kinds in rows for kind in kinds],
        kinds=("K0", "K1", "K2", "K3"),
        edges=[(2 * job, 2 * job + 1) for job in range(len(rows))],
    )
    return Workload.from_tasks(tasks, submit=[submit for submit, *_ in rows])


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 8), st.integers(1, 12), st.sampled_from(sorted(LINKS))), min_size=1, max_size=9
    ),
    ccr=st.sampled_from(["1", "1/3", "2/7"]),
    capacity=st.sampled_from(["1", "1/2", "5/3"]),
    cap=st.sampled_from(["1", "2", "1/4"]),
)
@settings(max_examples=60)
def test_shared_links_deliver_when_a_plain_simulation_of_the_fluid_does(
    rows: list[tuple[int, int, tuple[int, int]]], ccr: str, capacity: str, cap: str
) -> None:
    rows.sort(key=lambda row: row[0])
    network = Network(kind="shared", ccr=ccr, capacity=capacity, transfer_rate_cap=cap)
    record = run(pairs(rows), tree(network), "fifo-job")
    transfers = [(submit + runtime, LINKS[kinds], Fraction(ccr) * runtime) for submit, runtime, kinds in rows]
    assert record.tasks is not None
    found = (record.tasks.ready_us[1::2] // SECOND).tolist()
    assert found == deliveries(transfers, Fraction(capacity), Fraction(cap))


UNCONTENDED = [("1/5", 1), ("1/5", 5), ("2/7", 9), ("3", 4)]


@pytest.mark.parametrize(("ccr", "runtime"), UNCONTENDED)
def test_an_uncontended_transfer_takes_its_volume_rounded_up(ccr: str, runtime: int) -> None:
    for kind in ("shared", "fifo", "ccr"):
        record = run(pairs([(2, runtime, (0, 3))]), tree(Network(kind=kind, ccr=ccr)), "fifo-job")
        assert record.tasks is not None
        assert record.tasks.ready_us[1] // SECOND == 2 + runtime + ceil(Fraction(ccr) * runtime)
