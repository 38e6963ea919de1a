"""Conversion of machines and jobs between gridsim's model and the second implementation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gridsim.model.allocations import POOLS, Allocations
from gridsim.model.capacity import GPU, Capacity, NodeGroup
from gridsim.model.demand import NO_LIMIT, Demands
from gridsim.model.demand import Demand as Asked
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, NEVER, IntArray, seconds
from gridsim.model.workload import Workload
from gridsim.record import Record, Status
from tests.oracles.machine.parts import WHOLE, Demand, Machine, Node, Place
from tests.oracles.machine.schedule import Job

__all__ = [
    "asked_of",
    "demand_of",
    "jobs_of",
    "machine_of",
    "machine_of_capacity",
    "platform_of",
    "record_of",
    "schedule_of",
    "workload_of",
]


def machine_of(platform: Platform) -> Machine:
    """Return nodes and pools of a platform of one cluster."""
    (cluster,) = platform.clusters()
    capacity = cluster.capacity
    return Machine((), {"cores": cluster.cores}) if capacity is None else machine_of_capacity(capacity)


def machine_of_capacity(capacity: Capacity) -> Machine:
    """Return nodes and pools of columns."""
    return Machine([_node(capacity, number) for number in range(len(capacity.nodes))], dict(capacity.pools))


def _node(capacity: Capacity, number: int) -> Node:
    return Node(
        {name: int(column[number]) for name, column in capacity.amounts.items()},
        int(capacity.gpus[number]),
        capacity.gpu_kind[number] if capacity.gpu_kind else GPU,
        frozenset(capacity.features[number]) if capacity.features else frozenset(),
        frozenset(capacity.partitions[number]) if capacity.partitions else frozenset(),
        capacity.weight[number] if capacity.weight else 1,
    )


def demand_of(asked: Asked) -> Demand:
    """Convert one demand of the model."""
    return Demand(
        cores=asked.cores,
        tasks=asked.tasks,
        each=dict(asked.each),
        gpu=asked.gpu,
        gpu_kinds=frozenset(asked.gpu_kinds) or None,
        min_nodes=asked.min_nodes,
        max_nodes=None if asked.max_nodes == NO_LIMIT else asked.max_nodes,
        tasks_per_node=None if asked.tasks_per_node == NO_LIMIT else asked.tasks_per_node,
        exclusive=asked.exclusive,
        features=frozenset(asked.features),
        partitions=frozenset(asked.partitions),
        pools=dict(asked.pools),
    )


def jobs_of(workload: Workload) -> list[Job]:
    """Return jobs of a workload, in whole microseconds; equal submit times keep the order of rows."""
    demands = workload.demands or Demands.plain_cores(workload.cores)
    columns = (workload.submit, workload.estimate, workload.runtime)
    times = zip(*(column.tolist() for column in columns), strict=True)
    return [
        Job(row, submit, estimate, runtime, demand_of(demands[row]))
        for row, (submit, estimate, runtime) in enumerate(times)
    ]


def platform_of(machine: Machine) -> Platform:
    """Return the platform of a machine, with one group per node; node names are their numbers."""
    groups = [
        NodeGroup(
            group=str(number),
            capacity=dict(node.capacity),
            gpus=node.gpus,
            gpu_kind=node.gpu_kind,
            features=tuple(sorted(node.features)),
            partitions=tuple(sorted(node.partitions)),
            weight=node.weight,
        )
        for number, node in enumerate(machine.nodes)
    ]
    return Platform.of_nodes(groups, dict(machine.pools))


def asked_of(demand: Demand) -> Asked:
    """Convert a demand to the model."""
    return Asked(
        cores=demand.cores,
        tasks=demand.tasks,
        each=dict(demand.each),
        gpu=demand.gpu,
        gpu_kinds=tuple(sorted(demand.gpu_kinds or ())),
        min_nodes=demand.min_nodes,
        max_nodes=NO_LIMIT if demand.max_nodes is None else demand.max_nodes,
        tasks_per_node=NO_LIMIT if demand.tasks_per_node is None else demand.tasks_per_node,
        exclusive=demand.exclusive,
        features=tuple(sorted(demand.features)),
        partitions=tuple(sorted(demand.partitions)),
        pools=dict(demand.pools),
    )


def schedule_of(record: Record, platform: Platform) -> list[Job]:
    """Convert the jobs of a record to the second implementation, in row order, one run each."""
    jobs, held = jobs_of(record.workload), record.allocations
    machine = machine_of(platform)
    for job in jobs:
        job.demand = job.demand.on(machine)
        job.start, job.end = int(record.start_us[job.number]), int(record.end_us[job.number])
        job.expected = NEVER if job.start >= NEVER else job.start + job.estimate
        job.status = Status(int(record.status[job.number])).name
        job.reason = None if record.reason is None else str(record.reason[job.number]) or None
    if held is None:
        return jobs
    shares: dict[int, list[tuple[int, int]]] = {}
    for row, gpu, share in zip(held.gpu_row.tolist(), held.gpu.tolist(), held.gpu_share.tolist(), strict=True):
        shares.setdefault(row, []).append((gpu, share))
    pieces = zip(held.job.tolist(), held.node.tolist(), held.tasks.tolist(), strict=True)
    for row, (number, node, tasks) in enumerate(pieces):
        if node != POOLS:
            jobs[number].places += _places(jobs[number].demand, node, tasks, shares.get(row, []))
    return jobs


def _places(demand: Demand, node: int, tasks: int, shares: list[tuple[int, int]]) -> list[Place]:
    """Return tasks on a node with GPUs for each; tasks are equal, so any split with the same sum is valid."""
    each = min(demand.gpu, WHOLE) or 1
    gpus = [gpu for gpu, share in shares for _ in range(share // each)]
    count = max(1, demand.gpu // WHOLE) if demand.gpu else 0
    return [(node, tuple(gpus[task * count : (task + 1) * count])) for task in range(tasks)]


def record_of(workload: Workload, platform: Platform, jobs: Sequence[Job]) -> Record:
    """Return the record of a schedule of the jobs of a workload (`jobs_of`), with the places of each job."""
    machine, (cluster,) = machine_of(platform), platform.clusters()
    times = np.array([[job.start, job.end] for job in jobs], dtype=np.int64).reshape(-1, 2)
    rows = [(job, node, tasks) for job in jobs for node, tasks in job.nodes().items()]
    shares = [
        (row, gpu, held) for row, (job, node, _) in enumerate(rows) for gpu, held in job.gpus().get(node, {}).items()
    ]
    gpus = np.array(shares, dtype=np.int64).reshape(-1, 3)

    def column(values: Iterable[int]) -> IntArray:
        return np.array(list(values), dtype=np.int64)

    held = Allocations(
        nodes=() if cluster.capacity is None else cluster.capacity.nodes,
        job=column(job.number for job, _, _ in rows),
        run=column(1 for _ in rows),
        node=column(node for _, node, _ in rows),
        tasks=column(tasks for _, _, tasks in rows),
        amounts={
            name: column(tasks * job.demand.each.get(name, 0) for job, _, tasks in rows) for name in machine.resources
        },
        start_us=column(job.start for job, _, _ in rows),
        end_us=column(job.end for job, _, _ in rows),
        gpu_row=gpus[:, 0],
        gpu=gpus[:, 1],
        gpu_share=gpus[:, 2],
    )
    return Record(
        workload=workload,
        start_us=times[:, 0],
        end_us=times[:, 1],
        status=np.array([Status[job.status] for job in jobs], dtype=np.int8),
        cluster=np.zeros(len(jobs), dtype=np.int16),
        cores=cluster.cores,
        allocations=held if machine.nodes else None,
        capacity=cluster.capacity,
    )


def workload_of(jobs: Sequence[Job], unit: int = MICROSECOND) -> Workload:
    """Return a workload of jobs by submit time and number; a unit of their times is *unit* microseconds."""
    ordered = sorted(jobs, key=lambda job: (job.submit, job.number))

    def column(name: str) -> object:
        return seconds(np.array([getattr(job, name) for job in ordered], dtype=np.int64) * unit)

    return Workload.from_columns(
        job=[job.number for job in ordered],
        submit=column("submit"),
        runtime=column("runtime"),
        estimate=column("estimate"),
        demands=Demands.of([asked_of(job.demand) for job in ordered]),
    )
