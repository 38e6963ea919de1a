"""The compiled engine and the SimPy engine make the same records on machines of nodes and of several pools."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.errors import InputError
from gridsim.model.allocations import Allocations
from gridsim.model.demand import Demands, WordSets
from gridsim.model.workload import Workload
from gridsim.policy.ordering import Random
from gridsim.policy.prediction import Clairvoyant
from gridsim.policy.presets import PRESETS
from gridsim.policy.protocols import Nodes
from gridsim.policy.reservation import Depth
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.policy.scheduler.plan_based import Planned
from gridsim.record import Predictions
from gridsim.testing.conformance import CASES, check, read_cases
from tests.oracles.machine.compared import policy_of
from tests.oracles.machine.listed import MOST, compared
from tests.oracles.machine.parts import Machine
from tests.oracles.machine.random_machines import draw_jobs, draw_machine, draw_rule
from tests.oracles.machine.rules import RULES, Rule
from tests.oracles.machine.translated import platform_of, workload_of

pytestmark = pytest.mark.long

POLICIES = ("fcfs", "first-fit", "easy", "depth", "conservative")
ORDERS = ("fifo", "sjf", "p-slr", "largest-cores")
AT_EACH_PASS = (
    *("wfp3", "easy?ordering=xfactor", "first-fit?ordering=random", "depth?k=2&ordering=unicef", "fcfs?ordering=wfp3"),
    *("easy++", "sjbf", "easy++?ordering=wfp3&correct=double", "first-fit?predict=average&correct=added"),
    *("fcfs?predict=similar(n=1)&correct=double", "easy?predict=clairvoyant&ordering=p-slr"),
    *("easy?backfill_order=xfactor", "easy?ordering=p-slr&backfill_order=random", "sjbf?backfill_order=p-slr"),
)
BEHIND = ("queue", "sjf", "smallest-area")
PLANS = ("conservative", "conservative?ordering=sjf&placement=pack", "conservative?compress=arrival&placement=pack")
REFUSED = ("msb", "mrt", "qops", "fqops", *(name for name in PRESETS if name.startswith("moldable")))
"""Presets whose compiled loops support only one pool of cores."""

MACHINES = 40


def assert_same(
    workload: Workload, platform: gs.Platform, policy: Any, rule: Rule | None = None, **options: Any
) -> None:
    one, other = (
        gs.simulate(workload, platform=platform, policy=policy, engine=engine, **options).record
        for engine in ("simpy", "compiled")
    )
    for field in fields(one):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(ours, np.ndarray):
            assert (ours.dtype, ours.tolist()) == (theirs.dtype, theirs.tolist()), field.name
        elif isinstance(ours, Allocations):
            assert_same_places(ours, theirs)
        elif isinstance(ours, Predictions):
            assert ours.prediction_us.tolist() == theirs.prediction_us.tolist()
            assert ours.corrections.tolist() == theirs.corrections.tolist()
        elif field.name not in ("workload", "capacity"):
            assert ours == theirs, field.name
    assert compared(one, workload, platform, policy, rule, **options) or len(workload) > MOST


def assert_same_places(one: Allocations, other: Allocations) -> None:
    assert one.nodes == other.nodes
    assert list(one.amounts) == list(other.amounts)
    columns = [field.name for field in fields(Allocations) if field.name not in ("nodes", "amounts")]
    pairs = [(getattr(one, name), getattr(other, name)) for name in columns]
    pairs += [(one.amounts[name], other.amounts[name]) for name in one.amounts]
    for ours, theirs in pairs:
        if ours is None or theirs is None:  # a column of runs that were interrupted, which no schedule here has
            assert ours is theirs
        else:
            assert (ours.dtype, ours.tolist()) == (theirs.dtype, theirs.tolist())


@dataclass
class Fullest:
    """A placement rule in a plain file; it is called in Python for each task."""

    def scores(self, task: Any, nodes: Nodes) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.asarray(nodes.free["cores"], dtype=np.float64)


@pytest.mark.parametrize("policy", POLICIES)
def test_drawn_machines(policy: str) -> None:
    rng = np.random.default_rng([31, POLICIES.index(policy)])
    for number in range(MACHINES):
        machine = draw_machine(rng)
        rule = draw_rule(rng, machine, RULES[number % len(RULES)])
        options: dict[str, Any] = {"k": int(rng.integers(0, 4))} if policy == "depth" else {}
        order = str(rng.choice(ORDERS))
        if policy == "conservative":
            order, options = "fifo", {"compress": ("planned", "arrival", "planned", "none")[number // 4 % 4]}
        asked = policy_of(policy, rule, order=order, **options)
        if policy not in ("fcfs", "conservative"):
            asked.parameters["backfill_order"] = str(rng.choice(BEHIND))
        if options.get("compress") == "arrival" and number % 8 > 4:
            asked.parameters["ordering"] = str(rng.choice(("sjf", "largest-cores")))
        workload, platform = workload_of(draw_jobs(rng, machine, most=14)), platform_of(machine)
        instant, overrun = ("batched", "per-event")[number % 2], ("kill", "extend")[number // 2 % 2]
        assert_same(workload, platform, asked, rule, instant=instant, overrun=overrun)


def of_users(workload: Workload, rng: np.random.Generator) -> Workload:
    """Return the same jobs with a few users; some jobs exceed their requests."""
    least = np.maximum(workload.estimate + rng.choice((0, 0, -2, -5), len(workload)) * 10**6, 10**6)
    return replace(workload, labels={"user": rng.integers(-1, 2, len(workload))}, estimate=least)


@pytest.mark.parametrize("policy", AT_EACH_PASS)
def test_orders_of_each_cycle_and_predictions(policy: str) -> None:
    rng = np.random.default_rng([54, AT_EACH_PASS.index(policy)])
    for number in range(MACHINES // 2):
        machine = draw_machine(rng) if number % 4 else Machine((), {"cores": 2 + number % 7, "licence": 1 + number % 3})
        workload = of_users(workload_of(draw_jobs(rng, machine, most=18)), rng)
        instant, overrun = ("batched", "per-event")[number % 2], ("kill", "extend")[number // 2 % 2]
        assert_same(workload, platform_of(machine), policy, instant=instant, overrun=overrun)


@pytest.mark.parametrize("policy", ["first-fit", "conservative"])
def test_predictions_longer_than_the_assumed_overrun(policy: str) -> None:
    # The second job is predicted to run 4, 8, 16 s; after its request of 10 s, it is assumed to run 11, 12, 14 s.
    jobs = Workload.from_columns(
        submit=[0, 4, 5],
        runtime=[4, 14, 1],
        estimate=[10, 10, 10],
        cores=[4, 4, 4],
        labels={"user": np.zeros(3, dtype=np.int64)},
    )
    platform = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=1, capacity={"cores": 4})])
    asked = f"{policy}?predict=similar(n=1)&correct=double(cap=False)"
    for engine in ("simpy", "auto" if policy == "conservative" else "compiled"):
        options: dict[str, Any] = {"overrun": "extend", "tick": 1.0, "engine": engine}
        record = gs.simulate(jobs, platform=platform, policy=asked, **options).record
        assert (record.start_us // 10**6).tolist() == [0, 4, 18]


@pytest.mark.parametrize(
    "policy",
    [*POLICIES, "easy?ordering=p-slr", "p-slr", "first-fit?backfill_order=sjf", "conservative?compress_at=every"],
)
def test_machines_of_several_pools_without_nodes(policy: str) -> None:
    rng = np.random.default_rng([32, len(policy)])
    for number in range(MACHINES // 2):
        machine = Machine((), {"cores": 2 + number % 7, "licence": 1 + number % 4, "burst": 1 + number % 5})
        workload, platform = workload_of(draw_jobs(rng, machine, most=16)), platform_of(machine)
        instant, overrun = ("batched", "per-event")[number % 2], ("kill", "extend")[number // 2 % 2]
        assert_same(workload, platform, policy, instant=instant, overrun=overrun)


def site(jobs: int) -> tuple[Workload, gs.Platform]:
    """Return nodes of 64 cores with memory and GPUs, and a pool; their jobs exceed the free capacity."""
    rng = np.random.default_rng(3)
    group = gs.NodeGroup(group="n", count=40, capacity={"cores": 64, "memory": 262_144}, gpus=4)
    cores, none = rng.choice([1, 2, 4, 8, 16, 32, 64], jobs), np.zeros(jobs, dtype=np.int64)
    words = WordSets(none, ((),))
    runtime = np.clip(rng.lognormal(7, 1.5, jobs).astype(int), 1, 86_400)
    demands = Demands(
        plain=none,
        tasks=rng.choice([1, 1, 1, 2, 4, 8, 16, 41], jobs),  # 41 whole nodes are more than the machine has
        each={"cores": cores, "memory": np.minimum(cores * rng.choice([1024, 4096, 8192], jobs), 262_144)},
        gpu=np.where(rng.random(jobs) < 0.25, rng.choice([200, 500, 1000, 2000, 4000], jobs), 0),
        gpu_kinds=words,
        features=words,
        partitions=words,
        min_nodes=none + 1,
        max_nodes=none,
        tasks_per_node=none,
        exclusive=rng.random(jobs) < 0.05,
        pools={"licence": rng.integers(0, 3, jobs)},
    )
    workload = Workload.from_columns(
        submit=np.sort(rng.uniform(0, runtime.sum() / 40, jobs)).astype(int),
        runtime=runtime,
        estimate=np.maximum(1, runtime * rng.uniform(0.7, 4, jobs)).astype(int),
        demands=demands,
    )
    return workload, gs.Platform.of_nodes([group], {"licence": 12})


@pytest.mark.parametrize("instant", ["batched", "per-event"])
@pytest.mark.parametrize("overrun", ["kill", "extend"])
@pytest.mark.parametrize(
    "policy",
    [
        *("easy", "fcfs?ordering=p-slr", "depth?k=3&placement=pack&backfill_order=sjf", *PLANS),
        *("easy++?ordering=wfp3", "sjbf?placement=pack&backfill_order=xfactor"),
    ],
)
def test_a_loaded_site_with_memory_gpus_and_licences(policy: str, overrun: str, instant: str) -> None:
    workload, platform = site(400)
    workload = replace(workload, labels={"user": np.arange(400) % 7})
    assert_same(workload, platform, policy, overrun=overrun, instant=instant)


def test_a_rule_in_python_is_called_for_the_same_tasks() -> None:
    workload, platform = site(60)
    drawn = Backfilling(placement=Fullest(), ordering=Random(), predict=Clairvoyant())
    ranked = Backfilling(reserve=Depth(k=3), backfill_order=Random(), placement=Fullest())
    for policy in (Backfilling(placement=Fullest()), Planned(placement=Fullest()), drawn, ranked):
        assert_same(workload, platform, policy, overrun="extend")


def test_selection_after_each_start_on_nodes_uses_simpy_with_a_note() -> None:
    workload, platform = site(5)
    with pytest.raises(InputError, match=r"compiled cannot run this: Random.*on a machine of nodes"):
        gs.simulate(workload, platform=platform, policy="random", engine="compiled")


@pytest.mark.parametrize("policy", PRESETS)
def test_accepted_cases_are_the_same_on_nodes(policy: str) -> None:
    rng = np.random.default_rng(53)
    machine = draw_machine(rng)
    workload = workload_of(draw_jobs(rng, machine, 14))
    workload = replace(workload, deadline=workload.submit + 2 * workload.estimate)
    if policy in REFUSED:
        with pytest.raises(InputError, match=r"compiled cannot run this: .*nodes or several pools"):
            gs.simulate(workload, platform=platform_of(machine), policy=policy, engine="compiled")
    else:
        assert_same(workload, platform_of(machine), policy)


def test_the_worked_cases_of_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate, played = gs.simulate, 0

    def compiled(*given: Any, **options: Any) -> Any:
        return simulate(*given, **options, engine="compiled")

    monkeypatch.setattr("gridsim.simulation.simulate", compiled)
    for path, case in read_cases([CASES / "machine"]):
        played += len(case.get("runs", ()))
        outcome = check(case)
        assert (path.stem, outcome.status, outcome.messages) == (path.stem, "passed", ())
    assert played >= 40


@pytest.mark.parametrize("behind", ["sjf", "smallest-area", "xfactor", "p-slr", "shortest"])
@pytest.mark.parametrize("policy", ["easy", "first-fit", "depth?k=2", "easy++"])
def test_an_order_behind_the_protected_on_one_node_is_that_of_as_many_cores(policy: str, behind: str) -> None:
    rng = np.random.default_rng(8)
    asked = f"{policy}{'&' if '?' in policy else '?'}backfill_order={behind}"
    for _ in range(4):
        runtime = rng.integers(1, 40, 60)
        workload = Workload.from_columns(
            submit=np.sort(rng.integers(0, 300, 60)),
            runtime=runtime,
            estimate=runtime + rng.integers(0, 40, 60),
            cores=rng.integers(1, 7, 60),
        )
        node = gs.NodeGroup(group="n", count=1, capacity={"cores": 8})
        one, other = (
            gs.simulate(workload, platform=platform, policy=asked).record
            for platform in (gs.Platform.single(8), gs.Platform.of_nodes([node]))
        )
        assert one.start_us.tolist() == other.start_us.tolist()
