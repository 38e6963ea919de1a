"""Demands of jobs and capacity of machines: errors of the specification of machines, sections 2.3 and 2.4."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.model.capacity import Capacity
from gridsim.model.platform import ClusterSpec


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"tasks": 1, "each": {"cores": 1}, "gpu": 1500}, "gpu"),
        ({"tasks": 1, "each": {"cores": -1}}, "each.cores"),
        ({"tasks": 1, "each": {"gpu": 1}}, "each.gpu"),
        ({"cores": 2, "tasks": 1, "each": {"cores": 1}}, "tasks"),
        ({"each": {"cores": 1}}, "tasks"),
        ({"gpu": 500}, "tasks"),
        ({"tasks": 2}, "each"),
        ({"tasks": 2, "each": {"cores": 0}}, "each"),
        ({}, "cores"),
        ({"pools": {"licence": 0}}, "cores"),
        ({"pools": {"licence": -1}}, "pools.licence"),
        ({"tasks": 2, "each": {"cores": 1}, "min_nodes": 3}, "min_nodes"),
        ({"tasks": 4, "each": {"cores": 1}, "min_nodes": 3, "max_nodes": 2}, "min_nodes"),
        ({"tasks": 4, "each": {"cores": 1}, "min_nodes": 0}, "min_nodes"),
        ({"cores": 2, "min_nodes": 3}, "min_nodes"),
        ({"cores": -2}, "cores"),
    ],
)
def test_an_invalid_demand_names_its_field(asked: dict[str, Any], field: str) -> None:
    with pytest.raises(gs.InputError) as error:
        gs.Demand(**asked)
    assert error.value.field == field


def test_a_column_names_the_job() -> None:
    demands = gs.Demands.plain_cores(np.array([1, 0]))
    with pytest.raises(gs.InputError, match="job 7 has 0 cores and nothing else"):
        demands.check(np.array([3, 7]))


def test_columns_return_the_requested_amounts() -> None:
    asked = [
        gs.Demand(cores=3),
        gs.Demand(tasks=2, each={"cores": 4, "memory": 100}, gpu=1000, gpu_kinds=("b", "a"), features=("fast",)),
        gs.Demand(tasks=1, each={"memory": 5}, exclusive=True, partitions=("p",), pools={"licence": 2}),
        gs.Demand(tasks=9, each={"cores": 1}, min_nodes=2, max_nodes=3, tasks_per_node=4),
        gs.Demand(pools={"cores": 2, "memory": 7}),
    ]
    demands = gs.Demands.of(asked)
    assert [demands[row].pools for row in range(5)] == [it.pools for it in asked]
    assert demands[1].gpu_kinds == ("a", "b")
    assert [demands[row] == asked[row] for row in (0, 2, 3, 4)] == [True] * 4
    assert demands.cores.tolist() == [3, 8, 0, 9, 2]
    assert demands.total("memory").tolist() == [0, 200, 5, 0, 7]
    assert demands.total("gpu").tolist() == [0, 2000, 0, 0, 0]
    backwards = demands.select(np.arange(4, -1, -1))
    assert [backwards[row] == demands[4 - row] for row in range(5)] == [True] * 5


def test_a_workload_keeps_demands_with_its_jobs() -> None:
    demands = gs.Demands.of([gs.Demand(cores=2), gs.Demand(tasks=1, each={"memory": 5})])
    jobs = gs.Workload.from_columns(submit=[9, 3], runtime=[1, 1], demands=demands)
    assert jobs.cores.tolist() == [0, 2]
    assert jobs.demands is not None
    assert jobs.demands[0].each == {"memory": 5}
    with pytest.raises(gs.InputError, match="demands 2; expected the same"):
        gs.Workload.from_columns(submit=[0, 0], runtime=[1, 1], cores=[3, 0], demands=demands)
    with pytest.raises(gs.InputError, match="expected cores, or demands"):
        gs.Workload.from_columns(submit=[0], runtime=[1])


THIN = gs.NodeGroup(group="thin", count=2, capacity={"cores": 4, "memory": 100})
FAT = gs.NodeGroup(group="fat", capacity={"cores": 8}, gpus=2, gpu_kind="a", weight=3, features=("fast",))


def test_capacity_numbers_nodes_over_all_groups() -> None:
    capacity = Capacity.of([THIN, FAT], {"licence": 3})
    assert capacity.nodes == ("thin-0", "thin-1", "fat")
    assert capacity.amounts["memory"].tolist() == [100, 100, 0]
    assert (capacity.gpus.tolist(), capacity.weight) == ([0, 0, 2], (1, 1, 3))
    assert (capacity.cores, capacity.total("gpu"), capacity.total("licence")) == (16, 2000, 3)
    assert capacity.resources == ("cores", "memory", "gpu", "licence")


@pytest.mark.parametrize(
    ("made", "field"),
    [
        (lambda: Capacity.of([THIN], {"memory": 1}), "pools.memory"),
        (lambda: Capacity.of([THIN], {"gpu": 1}), "pools.gpu"),
        (lambda: Capacity.of([THIN], {"licence": -1}), "pools.licence"),
        (lambda: Capacity.of([THIN, THIN]), "nodes"),
        (lambda: gs.NodeGroup(group="a", capacity={"gpu": 1}), "capacity"),
        (lambda: gs.NodeGroup(group="a", capacity={"cores": -1}), "capacity.cores"),
        (lambda: gs.NodeGroup(group="a", count=0, capacity={"cores": 1}), "count"),
        (lambda: gs.NodeGroup(group="a", capacity={"cores": 1}, gpus=-1), "gpus"),
        (lambda: gs.NodeGroup(group="a", capacity={"cores": 1}, names=("a", "b")), "names"),
        (lambda: ClusterSpec("c", 9, nodes=(THIN,)), "cores"),
    ],
)
def test_an_invalid_machine_names_its_field(made: Any, field: str) -> None:
    with pytest.raises(gs.InputError) as error:
        made()
    assert error.value.field == field


def test_a_machine_of_pools_has_no_nodes() -> None:
    (cluster,) = gs.Platform.of_nodes((), {"cores": 8, "memory": 100}).clusters()
    assert (cluster.cores, cluster.nodes, dict(cluster.pools)) == (8, (), {"memory": 100})
    assert cluster.capacity is not None
    assert cluster.capacity.pools == {"cores": 8, "memory": 100}
    assert ClusterSpec("c", 8).capacity is None
