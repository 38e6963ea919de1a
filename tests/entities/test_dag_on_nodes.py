"""Tasks of DAG jobs on machines of nodes: each is a separate job with a separate demand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.model.capacity import Capacity, NodeGroup
from gridsim.model.demand import Demand, Demands
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.testing.allocation_checks import misplaced
from gridsim.testing.invariants import violations
from tests.oracles.machine.compared import policy_of
from tests.oracles.machine.parts import Machine
from tests.oracles.machine.random_machines import draw_jobs, draw_machine, draw_rule
from tests.oracles.machine.rules import RULES
from tests.oracles.machine.schedule import Job
from tests.oracles.machine.translated import asked_of, platform_of, workload_of

POLICIES = ("fcfs", "first-fit", "easy", "depth", "conservative")
SECOND = 10**6


def small(cores: int, memory: int, **more: Any) -> Demand:
    return Demand(tasks=1, each={"cores": cores, "memory": memory}, **more)


def dag(counts: Sequence[int], runtime: Sequence[float], demands: Sequence[Demand], **more: Any) -> Workload:
    tasks = Tasks.from_edges(
        counts=list(counts),
        runtime=list(runtime),
        cores=Demands.of(demands).cores,
        edges=more.pop("edges", []),
        **{name: more.pop(name) for name in ("kind", "kinds", "estimate") if name in more},
    )
    return Workload.from_tasks(tasks, demands=Demands.of(demands), **more)


def two_nodes(memory: int = 10) -> Platform:
    return Platform.of_nodes([NodeGroup(group="n", count=2, capacity={"cores": 4, "memory": memory})])


def run(workload: Workload, platform: Platform, policy: Any = "easy", **options: Any) -> Record:
    return gs.simulate(workload, platform=platform, policy=policy, **options).record


def starts(record: Record) -> list[int]:
    assert record.tasks is not None
    return [int(start) // SECOND for start in record.tasks.start_us]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_task_waits_for_memory_on_one_node(policy: str) -> None:
    # 0 -> 1, 2, 3: the second step has cores for all tasks, and memory for two with the size of a node
    asked = [small(1, 1), small(1, 10), small(1, 10), small(1, 10)]
    record = run(dag([4], [2, 5, 5, 5], asked, submit=[0], edges=[(0, 1), (0, 2), (0, 3)]), two_nodes(), policy)
    assert starts(record) == [0, 2, 2, 7]
    assert violations(record, platform=two_nodes()) == []


def with_cores(rng: np.random.Generator, machine: Machine, most: int = 10) -> list[Job]:
    """Return jobs that request at least one core, as every task of a DAG does."""
    return [job for job in draw_jobs(rng, machine, most) if asked_of(job.demand).total("cores")]


def one_by_one(jobs: Sequence[Job]) -> Workload:
    """Return the same jobs, each as a DAG of one task."""
    plain = workload_of(jobs)
    tasks = Tasks.from_edges(
        counts=[1] * len(plain),
        runtime=plain.runtime / 1e6,
        estimate=plain.estimate / 1e6,
        cores=plain.cores,
        edges=[],
    )
    return Workload.from_tasks(tasks, submit=plain.submit / 1e6, job=plain.job, demands=plain.demands)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_task_is_a_separate_job(policy: str) -> None:
    rng = np.random.default_rng([29, POLICIES.index(policy)])
    for number in range(12):
        machine = draw_machine(rng)
        jobs, rule = with_cores(rng, machine), draw_rule(rng, machine, RULES[number % len(RULES)])
        platform, spec = platform_of(machine), policy_of(policy, rule)
        rigid, single = (run(each, platform, spec) for each in (workload_of(jobs), one_by_one(jobs)))
        assert single.start_us.tolist() == rigid.start_us.tolist()
        assert single.status.tolist() == rigid.status.tolist()
        assert single.reason is not None
        assert rigid.reason is not None
        assert single.reason.tolist() == rigid.reason.tolist()
        assert single.allocations is not None
        assert rigid.allocations is not None
        assert single.allocations.node.tolist() == rigid.allocations.node.tolist()
        assert single.allocations.gpu_texts() == rigid.allocations.gpu_texts()


def drawn_dag(rng: np.random.Generator, machine: Machine) -> Workload:
    """Draw jobs of one to four tasks with edges from earlier tasks to later ones."""
    tasks = with_cores(rng, machine, 12)
    counts: list[int] = []
    while sum(counts) < len(tasks):
        counts.append(min(int(rng.integers(1, 5)), len(tasks) - sum(counts)))
    first = np.cumsum([0, *counts])
    job = np.repeat(np.arange(len(counts)), counts)
    edges = [
        (one, other)
        for one in range(len(tasks))
        for other in range(one + 1, len(tasks))
        if job[one] == job[other] and rng.random() < 0.5
    ]
    return dag(
        counts,
        [task.runtime for task in tasks],
        [asked_of(task.demand) for task in tasks],
        estimate=[task.estimate for task in tasks],
        submit=[tasks[at].submit for at in first[:-1]],
        edges=edges,
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("overrun", ["kill", "extend"])
@pytest.mark.parametrize("policy", [*POLICIES, "lrtf", "p-slr"])
def test_no_node_is_held_twice_and_no_task_starts_before_its_data(policy: str, overrun: Any) -> None:
    rng = np.random.default_rng(31)
    for _ in range(12):
        machine = draw_machine(rng)
        workload, platform = drawn_dag(rng, machine), platform_of(machine)
        record = run(workload, platform, policy, overrun=overrun)
        assert violations(record, platform=platform, overrun=overrun) == []
        again = run(workload, platform, policy, overrun=overrun)
        assert again.start_us.tobytes() == record.start_us.tobytes()


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_a_job_is_rejected_for_the_first_of_its_tasks_that_no_node_can_hold(policy: str) -> None:
    asked = [small(1, 1), small(1, 11), small(1, 1, features=("fast",)), small(1, 1)]
    workload = dag([3, 1], [2, 5, 5, 5], asked, submit=[0, 1], edges=[(0, 1), (0, 2)])
    result = gs.simulate(workload, platform=two_nodes(), policy=policy)
    assert result.jobs["status"].tolist() == ["rejected", "completed"]
    assert result.jobs["reason"].tolist() == ["task", ""]
    assert result.tasks["status"].tolist() == ["rejected", "rejected", "rejected", "completed"]
    assert np.isnan(result.tasks["start"][:3]).all()
    assert violations(result.record, platform=two_nodes()) == []


def grid() -> Platform:
    """Return two clusters of one kind, with little and with more memory, and one of another; transfers take 1/5."""

    def cluster(name: str, kind: str, count: int, cores: int, memory: int, gpus: int = 0) -> ClusterSpec:
        groups = (NodeGroup(group="n", count=count, capacity={"cores": cores, "memory": memory}, gpus=gpus),)
        return ClusterSpec(name, count * cores, kind, nodes=groups)

    children = (
        cluster("north", "cpu", 2, 2, 4),
        cluster("south", "cpu", 1, 4, 16),
        cluster("fast", "gpu", 1, 2, 8, gpus=1),
    )
    return Platform(RouterSpec("grid", children), network=Network(ccr="1/5"))


def test_tasks_go_to_the_clusters_that_can_hold_them_and_their_data_follow() -> None:
    # 0 and 1 fit on every cluster of their kind, and use one cluster each; 2 has enough memory only in the south; 3 has
    # half a GPU in the third cluster.
    asked = [small(1, 1), small(1, 1), small(1, 9), small(1, 1, gpu=500)]
    kinds = {"kind": [0, 0, 0, 1], "kinds": ("cpu", "gpu")}
    workload = dag([4], [10, 10, 10, 10], asked, submit=[0], edges=[(0, 1), (0, 2), (2, 3)], **kinds)
    result = gs.simulate(workload, platform=grid(), policy="easy")
    # transfers to the south (data of 0) and to the GPU (data of 2) take 2 s each
    assert result.tasks["cluster"].tolist() == ["north", "south", "south", "fast"]
    assert result.tasks["ready"].tolist() == [0, 12, 12, 24]
    held = dict(zip(result.allocations["task"].tolist(), result.allocations["node"].tolist(), strict=True))
    assert {task: node.partition("/")[0] for task, node in held.items()} == {
        "0": "north",
        "1": "south",
        "2": "south",
        "3": "fast",
    }
    assert result.allocations["gpus"].tolist()[-1] == "0:500"


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "p-slr"])
def test_nodes_of_several_clusters_are_not_held_twice(policy: str) -> None:
    rng = np.random.default_rng(37)
    platform = grid()
    groups = [(cluster.name, cluster.capacity) for cluster in platform.clusters()]
    parts = [
        NodeGroup(
            group=f"{name}/{node}",
            capacity={each: int(column[at]) for each, column in capacity.amounts.items()},
            gpus=int(capacity.gpus[at]),
        )
        for name, capacity in groups
        if capacity is not None
        for at, node in enumerate(capacity.nodes)
    ]
    together = Capacity.of(parts)
    for _ in range(12):
        n = int(rng.integers(4, 12))
        kind = (rng.random(n) < 0.3).astype(int).tolist()
        asked = [small(1, int(rng.integers(1, 9)), gpu=500 if each and rng.random() < 0.5 else 0) for each in kind]
        edges = [(one, one + 1) for one in range(n - 1) if rng.random() < 0.4]
        times = rng.integers(1, 9, n).tolist()
        workload = dag([n], times, asked, submit=[0], edges=edges, kind=kind, kinds=("cpu", "gpu"))
        record = run(workload, platform, policy, balancer="least-utilised")
        assert record.ran.all()
        assert violations(record, platform=platform) == []
        assert record.allocations is not None
        assert list(misplaced(record.allocations, None, together, 0, 5)) == []


def test_memory_of_a_workflow_counts_on_nodes(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    workflow = {
        "name": "three",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {"tasks": [{"name": it, "id": it, "parents": [], "children": []} for it in names]},
            "execution": {
                "makespanInSeconds": 10,
                "tasks": [
                    {"id": it, "runtimeInSeconds": 10, "coreCount": 1, "memoryInBytes": 6 * 2**20} for it in names
                ],
            },
        },
    }
    path = tmp_path / "three.json"
    path.write_text(json.dumps(workflow))
    result = gs.simulate(gs.read_workload(path), platform=two_nodes(), policy="easy")
    assert result.tasks["start"].tolist() == [0, 0, 10]
    assert result.tasks["each_memory"].tolist() == [6, 6, 6]
    poor = gs.simulate(gs.read_workload(path), platform=two_nodes(memory=5), policy="easy")
    assert (poor.jobs["status"].tolist(), poor.jobs["reason"].tolist()) == (["rejected"], ["task"])
