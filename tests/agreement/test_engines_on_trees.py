"""The compiled engine, the SimPy engine and an oracle make the same records of DAG jobs on trees of clusters.

The oracle compares runs of up to 150 tasks, and the first jobs of larger workloads. It does not cover decayed fair
share (sums of floats), links that slow one another, predictions, and balancers that compare quotes of plans.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsim as gs
from gridsim.engine import tree_loop
from gridsim.engine.tree_setup import CompiledTreeRun
from gridsim.errors import InputError
from gridsim.machine.njit import is_kept
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.testing.conformance import CASES, check
from gridsim.workload.synthetic.grid import Grid
from tests.oracles.strategies import grids, workloads
from tests.oracles.translated import grid_compared

INSTANTS, OVERRUNS = ("batched", "per-event"), ("kill", "extend")
MOST = 150
"""Number of tasks above which the oracle is slow."""
POLICIES = (
    *("fifo-job", "fifo-task", "lrtf", "srtf?rank_of=exclusive", "p-slr", "random", "random?hold=false"),
    *("fair-share?combine=leaf", "fair-share?combine=leaf&reeval=pass"),
    *("easy", "first-fit", "depth?k=2&ordering=srtf", "easy?ordering=lrtf", "first-fit?ordering=fifo-task"),
    *("wfp3", "easy?ordering=p-slr", "first-fit?ordering=xfactor&backfill_order=sjf", "easy?backfill_order=wfp3"),
    *("depth?k=2&ordering=fifo-task&backfill_order=smallest-area", "easy?ordering=random"),
)
IN_PYTHON = (
    *("p-slr-sf", "first-fit?ordering=p-slr-sf", "fair-share", "fair-share?combine=fair-tree", "fair-share?scope=grid"),
    *("easy?ordering=fair-share", "first-fit?ordering=fair-share(combine=fair-tree,reeval=pass)"),
)
"""Policies that only the SimPy engine runs for jobs with shares of two levels."""
BALANCERS = (
    *("expected-queue", "expected-queue?work=queued&include_candidate=true", "expected-queue?advertise=any"),
    *("round-robin", "random", "random?weighted=true", "power-of-two", "least-utilised", "data-local"),
    *("power-of-two?balancer=expected-queue(work=queued)", "data-local?balancer=expected-queue(advertise=any)"),
    *("expected-queue?work=remaining", "power-of-two?balancer=expected-queue(work=remaining)"),
)
BALANCERS_IN_PYTHON = (
    *("earliest-start", "power-of-two?balancer=round-robin", "power-of-two?balancer=data-local"),
    *("data-local?balancer=random(weighted=true)", "data-local?balancer=least-utilised"),
)
"""Balancers that only the SimPy engine runs for DAG jobs."""
GOLDEN = sorted((CASES / "grid-dag").glob("s*.json"))


def assert_same(workload: Workload, platform: Platform, policy: Any, **options: Any) -> None:
    one, other = (
        gs.simulate(workload, platform=platform, policy=policy, engine=engine, **options).record
        for engine in ("simpy", "compiled")
    )
    for holder in ("tasks", None):
        ours, theirs = (record if holder is None else getattr(record, holder) for record in (one, other))
        if ours is None:
            assert theirs is None
            continue
        for name in type(ours).__slots__:
            left, right = getattr(ours, name), getattr(theirs, name)
            if isinstance(left, np.ndarray):
                assert (left.dtype, left.tolist()) == (right.dtype, right.tolist()), name
            elif name not in ("workload", "tasks"):
                assert left == right, name
    few = first_of(workload)
    if len(few) < len(workload):
        one = gs.simulate(few, platform=platform, policy=policy, engine="simpy", **options).record
    assert grid_compared(one, few, platform, policy, **options)


def first_of(workload: Workload) -> Workload:
    """Return the first jobs with at most `MOST` tasks together, at least one job."""
    ends = np.arange(1, len(workload) + 1) if workload.tasks is None else workload.tasks.first[1:]
    return workload.select(slice(0, max(1, int(np.searchsorted(ends, MOST, side="right")))))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("policy", POLICIES)
@given(
    grid=grids(largest=8),
    late=st.lists(st.sampled_from((0, 0, 0, 0, -3, -1, 2)), min_size=40, max_size=40),
    balancer=st.sampled_from(BALANCERS),
    instant=st.sampled_from(INSTANTS),
    overrun=st.sampled_from(OVERRUNS),
    split=st.sampled_from(("task", "kind-group")),
    tick=st.sampled_from((None, None, 0.25, 2.0)),
)
@settings(max_examples=2 * settings.default.max_examples)  # type: ignore[union-attr]
def test_small_grids_full_of_ties(
    policy: str, grid: tuple[Workload, Platform], late: list[int], tick: float | None, **options: Any
) -> None:
    workload, platform = grid
    tasks = workload.tasks
    assert tasks is not None
    estimate = np.maximum(tasks.runtime + np.array(late)[: len(tasks)] * 10**6, 10**6)
    assert_same(replace(workload, tasks=replace(tasks, estimate=estimate)), platform, policy, tick=tick, **options)


@pytest.mark.parametrize("policy", IN_PYTHON)
@given(
    grid=grids(largest=8),
    balancer=st.sampled_from((*BALANCERS, *BALANCERS_IN_PYTHON)),
    overrun=st.sampled_from(OVERRUNS),
    split=st.sampled_from(("task", "kind-group")),
)
@settings(max_examples=settings.default.max_examples // 2)  # type: ignore[union-attr]
def test_runs_that_only_the_simpy_engine_supports(policy: str, grid: tuple[Workload, Platform], **options: Any) -> None:
    workload, platform = grid
    record = gs.simulate(workload, platform=platform, policy=policy, engine="simpy", **options).record
    assert grid_compared(record, workload, platform, policy, **options)


@pytest.mark.parametrize("policy", ["fcfs", "easy", "p-slr", "random", "sjf", "first-fit", "easy?ordering=wfp3"])
@given(
    workload=workloads(cores=8, largest=20),
    sizes=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    balancer=st.sampled_from((*BALANCERS, "earliest-start", "earliest-start")),
    instant=st.sampled_from(INSTANTS),
    overrun=st.sampled_from(OVERRUNS),
)
def test_rigid_jobs_on_trees(policy: str, workload: Workload, sizes: list[int], **options: Any) -> None:
    first, *others = [ClusterSpec(f"c{number}", cores) for number, cores in enumerate(sizes)]
    below = (RouterSpec("site", tuple(others)),) if others else ()
    assert_same(workload, Platform(RouterSpec("root", (first, *below))), policy, **options)


@pytest.mark.parametrize("balancer", ["earliest-start", "expected-queue?work=remaining"])
@pytest.mark.parametrize("runtime", [20, 12])
def test_a_job_that_exceeds_the_estimate_has_none_of_it_left(balancer: str, runtime: int) -> None:
    # At 11 the first job runs, although its estimate was 10; its remaining run time is unknown.
    jobs = Workload.from_columns(submit=[0, 11], runtime=[runtime, 5], estimate=[10, 5], cores=[2, 1])
    platform = Platform(RouterSpec("root", (ClusterSpec("first", 2), ClusterSpec("second", 1))))
    options = {"balancer": balancer, "overrun": "extend", "tick": 4.0}
    assert gs.simulate(jobs, platform=platform, policy="easy", **options).record.cluster.tolist() == [0, 0]
    assert_same(jobs, platform, "easy", **options)


@pytest.mark.parametrize("balancer", ["earliest-start", "expected-queue?work=remaining"])
@pytest.mark.parametrize("overrun", OVERRUNS)
def test_long_queues_on_unequal_clusters(balancer: str, overrun: str) -> None:
    rng = np.random.default_rng(5)
    runtime = rng.integers(1, 90, 300)
    estimate, submit = np.maximum(1, runtime + rng.integers(-9, 60, 300)), np.sort(rng.integers(0, 900, 300))
    jobs = Workload.from_columns(submit=submit, runtime=runtime, estimate=estimate, cores=rng.integers(1, 14, 300))
    first, *others = [ClusterSpec(f"c{cores}", cores) for cores in (12, 4, 9, 6)]
    platform = Platform(RouterSpec("root", (first, RouterSpec("site", tuple(others)))))
    for instant in INSTANTS:
        for policy in ("easy", "sjf"):
            assert_same(jobs, platform, policy, balancer=balancer, instant=instant, overrun=overrun)


@pytest.mark.parametrize("policy", ["random", "random?hold=false", "fair-share", "fair-share?reeval=pass"])
@given(
    workload=workloads(cores=8, largest=20, users=True),
    instant=st.sampled_from(INSTANTS),
    overrun=st.sampled_from(OVERRUNS),
)
def test_one_cluster_whose_next_job_is_selected_after_each_start(
    policy: str, workload: Workload, **options: Any
) -> None:
    share = workload.labels["user"] + 1
    shared = replace(workload, labels={"share": share}, names={"share": ("/a", "/b", "/c", "/d")})
    assert_same(shared, Platform.single(7), policy, **options)


@pytest.mark.long
@pytest.mark.parametrize("transfer", ["each", "all"])
def test_files_on_a_tree_of_three_levels(transfer: Any) -> None:
    leaves = [ClusterSpec(f"c{number}", 30, "Kind2" if number == 3 else "Kind1") for number in range(5)]
    site = RouterSpec("site", (leaves[1], RouterSpec("room", (leaves[2], leaves[3]))))
    network = Network(transfer="files", bandwidth=1000.0, delay_levels_power=2, transfer_start=transfer)
    platform = Platform(RouterSpec("root", (leaves[0], site, leaves[4])), network=network)
    workload = Grid(kind="chain", jobs=40, total=10**6, cores=150, load=1.2).generate(3)
    tasks = workload.tasks
    assert tasks is not None
    volume = np.random.default_rng(1).choice([0.0, 1.0, 5e4, 3e6], len(tasks.edge_to))
    shipped = replace(workload, tasks=replace(tasks, volume=volume))
    for instant in INSTANTS:
        for balancer in ("expected-queue", "data-local"):
            assert_same(shipped, platform, "p-slr", instant=instant, balancer=balancer)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["uni-ind", "prob", "chain"])
@pytest.mark.parametrize("instant", INSTANTS)
def test_a_loaded_grid_with_long_queues(kind: Any, instant: str) -> None:
    workload = Grid(kind=kind, jobs=60 if kind == "chain" else 400, total=10**7, cores=80, load=1.2).generate(1)
    clusters = [ClusterSpec(f"c{number}", 20, "Kind1" if number < 3 else "Kind2") for number in range(4)]
    platform = Platform(RouterSpec("root", tuple(clusters)), network=Network(ccr="1/5"))
    for policy in ("p-slr", "random", "fair-share", "fifo-task", "srtf", "easy"):
        assert_same(workload, platform, policy, instant=instant)


def scripted(numbers: Iterable[int]) -> Any:
    """Return a generator of random numbers that draws the numbers of a case."""
    drawn = iter(numbers)
    return SimpleNamespace(integers=lambda n: next(drawn))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_cases(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulation, refused = importlib.import_module("gridsim.simulation"), []
    usual = simulation.run

    def both(workload: Workload, platform: Platform, policy: Any, options: gs.Run) -> Record:
        try:
            record = usual(workload, platform, policy, replace(options, engine="compiled"))
        except InputError as error:
            refused.append(error.message)
            record = usual(workload, platform, policy, options)
        how: dict[str, Any] = {"balancer": options.balancer, "split": options.split}
        if "draws" in case:
            policy = policy._scheduler
            how["draws"] = [scripted(case["draws"].get(cluster.name, ())) for cluster in platform.clusters()]
        assert grid_compared(record, workload, platform, policy, **how)
        return record

    monkeypatch.setattr(simulation, "run", both)
    case = json.loads(path.read_bytes())
    outcome = check(case)
    assert (outcome.status, outcome.messages) == ("passed", ())
    options = case.get("options", {})
    in_python = [
        "draws" in case,
        case["policy"] == "fair-share" and (options.get("fit", "strict") != "strict" or bool(case.get("share_tree"))),
        case["policy"] == "p-slr-sf" or (case["policy"] == "p-slr" and options.get("fit", "strict") != "strict"),
        options.get("network", "ccr") != "ccr",
    ]
    assert bool(refused) <= any(in_python), refused


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"balancer": "earliest-start"}, "EarliestStart.* reads the queue, and the workload has DAG jobs"),
        ({"balancer": "power-of-two?balancer=round-robin"}, "PowerOfTwo.* is evaluated in Python"),
        ({"policy": "easy++"}, "Recent.* has no compiled scheduling cycle for DAG jobs"),
        (
            {"policy": "easy?backfill_order=random"},
            "Random.* has no compiled scheduling cycle",
        ),
        ({"policy": "p-slr-sf"}, "called again after each start"),
        ({"policy": "fair-share?scope=grid"}, "depends on the usage of each share"),
        ({"policy": "fair-share?usage=decayed"}, "depends on the usage of each share"),
    ],
)
def test_unsupported_features_are_refused_by_name(how: dict[str, Any], why: str) -> None:
    workload = Grid(kind="prob", jobs=5, total=10**4, cores=80).generate(1)
    clusters = (ClusterSpec("a", 40, "Kind1"), ClusterSpec("b", 40, "Kind1"), ClusterSpec("c", 40, "Kind2"))
    given = {"platform": Platform(RouterSpec("root", clusters)), "policy": "p-slr"} | how
    with pytest.raises(InputError, match=why):
        gs.simulate(workload, engine="compiled", **given)
    gs.simulate(workload, **given)


@pytest.mark.parametrize("kind", ["shared", "fifo"])
def test_links_that_slow_one_another_are_refused(kind: Any) -> None:
    workload = Grid(kind="prob", jobs=5, total=10**4, cores=80).generate(1)
    clusters = (ClusterSpec("a", 40, "Kind1"), ClusterSpec("b", 40, "Kind2"))
    platform = Platform(RouterSpec("root", clusters), network=Network(kind=kind, ccr="1/5"))
    with pytest.raises(InputError, match=f"links are {kind}, and transfers slow one another"):
        gs.simulate(workload, platform=platform, policy="p-slr", engine="compiled")


@pytest.mark.parametrize(("factor", "ccr"), [(10**7, "0"), (2, "5000000")])
def test_a_number_that_64_bits_cannot_hold_is_refused(factor: int, ccr: str) -> None:
    workload = Grid(kind="prob", jobs=5, total=10**5, cores=80).generate(1)
    tasks = workload.tasks
    assert tasks is not None
    longer = replace(tasks, runtime=tasks.runtime * factor // 2, estimate=tasks.estimate * factor // 2)
    clusters = (ClusterSpec("a", 40, "Kind1"), ClusterSpec("b", 40, "Kind2"))
    platform = Platform(RouterSpec("root", clusters), network=Network(ccr=ccr))
    with pytest.raises(InputError, match="add up to more than the calendar has"):
        gs.simulate(replace(workload, tasks=longer), platform=platform, policy="p-slr", engine="compiled")


def test_auto_takes_it_once_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[CompiledTreeRun] = []
    usual = CompiledTreeRun._fill_in

    def fill_in(self: CompiledTreeRun) -> None:
        ran.append(self)
        usual(self)

    monkeypatch.setattr(CompiledTreeRun, "_fill_in", fill_in)
    workload = Grid(kind="prob", jobs=5, total=10**4, cores=80).generate(1)
    clusters = (ClusterSpec("a", 40, "Kind1"), ClusterSpec("b", 40, "Kind2"))
    platform = Platform(RouterSpec("root", clusters))
    gs.simulate(workload, platform=platform, policy="p-slr", engine="compiled")
    assert is_kept(tree_loop.strict_lines)
    gs.simulate(workload, platform=platform, policy="p-slr")
    assert len(ran) == 2


def test_progress_is_reported_slice_by_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("gridsim.engine.setup"), "_SLICE", 0.0)
    workload = Grid(kind="prob", jobs=200, total=10**6, cores=80).generate(1)
    clusters = (ClusterSpec("a", 40, "Kind1"), ClusterSpec("b", 40, "Kind2"))
    told: list[int] = []
    gs.simulate(
        workload,
        platform=Platform(RouterSpec("root", clusters)),
        policy="p-slr",
        engine="compiled",
        progress=told.append,
    )
    assert told == sorted(told)
    assert len(told) > 2
    assert told[-1] == 200
