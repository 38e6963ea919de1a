"""One violation of every kind about requests of nodes and pools, inserted into a valid schedule and detected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gridsim.model.allocations import Allocations
from gridsim.model.capacity import NodeGroup
from gridsim.model.demand import Demand, Demands
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.record import Record, Status
from gridsim.testing.demand_checks import reasons
from gridsim.testing.invariants import Schedule, violations, violations_of
from gridsim.testing.violation import DEMAND_KINDS
from tests.oracles.machine.free_capacity import reason
from tests.oracles.machine.random_machines import draw_demand, draw_jobs, draw_machine, draw_rule
from tests.oracles.machine.rules import Rule
from tests.oracles.machine.schedule import schedule
from tests.oracles.machine.translated import asked_of, jobs_of, machine_of, platform_of, record_of, workload_of

MACHINE = Platform.of_nodes(
    [
        NodeGroup(group="thin", count=2, capacity={"cores": 4, "memory": 8}, features=("fast",)),
        NodeGroup(group="gpu", count=2, capacity={"cores": 8, "memory": 16}, gpus=2, gpu_kind="A", partitions=("g",)),
        NodeGroup(group="old", capacity={"cores": 8, "memory": 16}, gpus=2, gpu_kind="B"),
    ],
    {"licence": 2},
)
ONE = {"cores": 1, "memory": 2}
JOBS = Workload.from_columns(
    job=[11, 12, 13, 14, 15, 16, 17],
    submit=[0, 0, 0, 0, 1, 2, 3],
    runtime=[10] * 7,
    estimate=[12] * 7,
    demands=Demands.of(
        [
            Demand(tasks=3, each=ONE, min_nodes=2, max_nodes=2, tasks_per_node=2, features=("fast",)),
            Demand(tasks=2, each=ONE, gpu=500, gpu_kinds=("A",), partitions=("g",)),
            Demand(tasks=1, each={"cores": 4}, gpu=2000),
            Demand(pools={"licence": 2}),
            Demand(tasks=1, each={"memory": 1}, exclusive=True),
            Demand(tasks=1, each=ONE, pools={"licence": 1}),
            Demand(tasks=1, each={"cores": 9}),
        ]
    ),
)
"""On nodes 0 and 1; 2; 3; none; 4; 0 at 10 s, when the licences are free. The last one can never run."""


def sound() -> Record:
    return record_of(JOBS, MACHINE, schedule(machine_of(MACHINE), jobs_of(JOBS), "easy"))


def test_a_sound_schedule_is_valid() -> None:
    record = sound()
    assert record.allocations is not None
    assert record.allocations.node.tolist() == [0, 1, 2, 3, 4, 0]
    assert violations(record, platform=MACHINE) == []


def moved(row: int, node: int) -> Callable[[Allocations], Allocations]:
    return changed("node", row, node)


def changed(name: str, row: int, value: int) -> Callable[[Allocations], Allocations]:
    def change(held: Allocations) -> Allocations:
        column = held.amounts[name] if name in held.amounts else getattr(held, name)
        new = column.copy()
        new[row] = value
        return (
            replace(held, amounts={**held.amounts, name: new}) if name in held.amounts else replace(held, **{name: new})
        )

    return change


def both(*changes: Callable[[Allocations], Allocations]) -> Callable[[Allocations], Allocations]:
    def change(held: Allocations) -> Allocations:
        for each in changes:
            held = each(held)
        return held

    return change


WRONG: list[tuple[str, Callable[[Allocations], Allocations], int, str]] = [
    ("wrong-tasks", both(changed("tasks", 0, 1), changed("cores", 0, 1), changed("memory", 0, 2)), 11, "2 of 3 tasks"),
    ("wrong-tasks", moved(1, 0), 11, "on 1 nodes instead of 2 to 2"),
    ("wrong-tasks", both(changed("tasks", 0, 3), changed("tasks", 1, 0)), 11, "3 tasks on node thin-0 instead of"),
    ("wrong-node", moved(1, 2), 11, "requested features fast; node gpu-0 has none"),
    ("wrong-node", moved(2, 4), 12, "requested partitions g; node old has none"),
    ("wrong-amounts", changed("memory", 0, 1), 11, "1 memory of node thin-0 allocated instead of 4"),
    ("wrong-gpus", changed("gpu_share", 0, 500), 12, "500 thousandths of GPU of node gpu-0 allocated instead of 1000"),
    ("not-alone", moved(4, 2), 15, "a node of an exclusive job was also used by another job"),
]


@pytest.mark.parametrize(("kind", "change", "job", "detail"), WRONG, ids=[f"{it[0]}-{it[2]}-{it[3]}" for it in WRONG])
def test_every_kind_is_found_where_it_is_planted(
    kind: str, change: Callable[[Allocations], Allocations], job: int, detail: str
) -> None:
    record = sound()
    assert record.allocations is not None
    found = violations(replace(record, allocations=change(record.allocations)), platform=MACHINE)
    (told,) = [each for each in found if each.kind == kind]
    assert told.jobs[0] == job
    assert detail in str(told)


def test_a_task_has_a_kind_of_gpu_that_it_accepts() -> None:
    machine = replace_group("B", partitions=("g",))
    record = sound()
    assert record.allocations is not None
    found = violations(replace(record, allocations=moved(2, 4)(record.allocations)), platform=machine)
    assert "requested GPUs A; node old has B" in str(found)


def replace_group(kind: str, **changes: Any) -> Platform:
    (cluster,) = MACHINE.clusters()
    groups = [replace(group, **changes) if group.gpu_kind == kind else group for group in cluster.nodes]
    return Platform.of_nodes(groups, cluster.pools)


def test_shares_of_a_task_are_not_split() -> None:
    record = sound()
    held = record.allocations
    assert held is not None
    assert held.gpu_share.tolist() == [1000, 1000, 1000]
    shares = np.array([300, 700, 1000, 1000])
    split = replace(held, gpu_row=np.array([2, 2, 3, 3]), gpu=np.array([0, 1, 0, 1]), gpu_share=shares)
    (told,) = violations(replace(record, allocations=split), platform=MACHINE)
    assert str(told).startswith(
        "wrong-gpus: 1 (jobs 12): shares of 300, 700 thousandths on node gpu-0; tasks request 500"
    )


def test_no_more_of_a_pool_is_held_than_there_is() -> None:
    record = sound()
    start, end = record.start_us.copy(), record.end_us.copy()
    held = record.allocations
    assert held is not None
    start[5], end[5] = start[5] - 3_000_000, end[5] - 3_000_000
    places = replace(held, start_us=np.where(held.job == 5, start[5], held.start_us))
    places = replace(places, end_us=np.where(held.job == 5, end[5], held.end_us))
    found = violations(replace(record, start_us=start, end_us=end, allocations=places), platform=MACHINE)
    assert [str(each) for each in found if each.kind == "pool-oversubscribed"] == [
        "pool-oversubscribed: 1 (jobs 16): 3 of 2 licence in use; first at 7 s"
    ]


def test_a_job_is_rejected_if_and_only_if_the_empty_machine_cannot_hold_it() -> None:
    record = sound()
    start, end, status = record.start_us.copy(), record.end_us.copy(), record.status.copy()
    start[4], end[4], status[4] = NEVER, NEVER, Status.rejected
    start[6], end[6], status[6] = 30_000_000, 40_000_000, Status.completed
    found = violations(replace(record, start_us=start, end_us=end, status=status, allocations=None), platform=MACHINE)
    told = {each.kind: str(each) for each in found}
    assert "(jobs 15)" in told["rejected-fits"]
    assert told["cannot-be-held"] == "cannot-be-held: 1 (jobs 17): task; first at 30 s"


def test_tasks_of_no_cores_are_somewhere_too() -> None:
    record = sound()
    held = record.allocations
    assert held is not None
    found = violations(replace(record, allocations=held.taken(np.flatnonzero(held.job != 4))), platform=MACHINE)
    assert [(each.kind, each.jobs) for each in found] == [("missing-pieces", (15,))]


def test_schedules_of_other_programs_are_held_against_demands_too() -> None:
    record = sound()
    told = replace(Schedule.of(record), source="other")
    (cluster,) = MACHINE.clusters()
    other = replace(told, allocations=None if told.allocations is None else moved(1, 0)(told.allocations))
    assert violations_of(told, JOBS, cores=cluster.cores, capacity=cluster.capacity) == []
    found = violations_of(other, JOBS, cores=cluster.cores, capacity=cluster.capacity)
    assert [each.kind for each in found] == ["wrong-tasks"]


def test_each_kind_has_its_case_here() -> None:
    assert {it[0] for it in WRONG} | {"pool-oversubscribed", "cannot-be-held", "wrong-gpus"} == set(DEMAND_KINDS)


@pytest.mark.parametrize("policy", ["fcfs", "first-fit", "easy", "depth", "conservative"])
def test_schedules_of_the_second_implementation_are_valid(policy: str) -> None:
    rng = np.random.default_rng(7)
    for _ in range(40):
        machine = draw_machine(rng)
        workload, rule = workload_of(draw_jobs(rng, machine)), draw_rule(rng, machine)
        platform = platform_of(machine)
        jobs = schedule(machine, jobs_of(workload), policy, rule, k=2)
        assert violations(record_of(workload, platform, jobs), platform=platform) == []


def test_a_pool_of_cores_needs_no_pieces() -> None:
    platform = Platform.of_nodes([], {"cores": 8, "licence": 1})
    workload = Workload.from_columns(
        submit=[0, 0], runtime=[5, 5], demands=Demands.of([Demand(cores=8), Demand(pools={"cores": 1, "licence": 1})])
    )
    record = record_of(workload, platform, schedule(machine_of(platform), jobs_of(workload), "easy", Rule()))
    assert record.start.tolist() == [0, 5]
    assert violations(record, platform=platform) == []
    early = replace(record, start_us=record.start_us * 0, end_us=np.full(2, 5_000_000))
    assert [each.kind for each in violations(early, platform=platform)] == ["oversubscribed", "pool-oversubscribed"]


@pytest.mark.long
def test_reasons_of_demands_that_never_fit_equal_those_of_the_second_implementation() -> None:
    rng, found = np.random.default_rng(5), Counter[str]()
    for _ in range(300):
        larger = draw_machine(rng)
        demands = [draw_demand(rng, larger) for _ in range(4)]
        machine = replace(larger, pools={name: amount // 2 for name, amount in larger.pools.items()})
        (cluster,) = platform_of(machine).clusters()
        asked = Demands.of([asked_of(demand) for demand in demands])
        assert cluster.capacity is not None
        told = reasons(asked, np.arange(len(demands)), cluster.capacity).tolist()
        assert told == [reason(machine, demand.on(machine)) or "" for demand in demands], (machine, demands)
        found.update(why.partition(":")[0] for why in told)
    assert set(found) == {"", "pool", "features", "gpu-kind", "task", "tasks", "nodes"}
