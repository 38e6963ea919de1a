"""Allocations in the record under Slurm: tasks, memory, GPUs by number, whole nodes, several runs."""

from __future__ import annotations

from typing import Any

from gridsim.model.site import Preemption, Site, SitePartition
from gridsim.record import Record
from tests.policy.slurm.running import QUICK, SECOND, nodes, run

Row = tuple[Any, ...]


def told(record: Record, *names: str) -> list[Row]:
    """Return rows of job, run, node and further columns."""
    held = record.allocations
    assert held is not None
    columns: dict[str, Any] = {"tasks": held.tasks, "gpus": held.gpu_texts(), **held.amounts}
    columns |= {"start": held.start_us // SECOND, "end": held.end_us // SECOND}
    node = [held.nodes[place] for place in held.node]
    picked = [[int(each) if name != "gpus" else each for each in columns[name]] for name in names]
    return list(zip(held.job.tolist(), held.run.tolist(), node, *picked, strict=True))


def one(site_nodes: Any, **more: Any) -> Site:
    names = tuple(node.name for node in site_nodes)
    return Site(site_nodes, (SitePartition("all", names),), "all", scheduling=QUICK, **more)


def test_tasks_cores_and_memory_of_each_node() -> None:
    site = one(nodes(2), memory=True)
    columns: dict[str, Any] = {"submit": [0, 20], "runtime": [10, 10], "cores": [6, 4], "cores_per_task": [2, 1]}
    record, _ = run(site, **columns, memory_core_mb=[100, -1], memory_mb=[-1, 0])
    assert told(record, "tasks", "cores", "memory", "start", "end") == [
        (0, 1, "n1", 2, 4, 400, 0, 10),
        (0, 1, "n2", 1, 2, 200, 0, 10),
        (1, 1, "n1", 4, 4, 1000, 20, 30),
    ]


def test_sites_that_count_no_memory_report_none() -> None:
    record, _ = run(one(nodes(1)), submit=[0], runtime=[5], cores=[2], memory_mb=[500])
    assert record.allocations is not None
    assert set(record.allocations.amounts) == {"cores"}


def test_gpus_are_those_with_the_lowest_numbers_that_are_free() -> None:
    columns: dict[str, Any] = {"submit": [0, 1, 2, 11], "runtime": [10, 30, 30, 5], "cores": [1] * 4}
    record, _ = run(one(nodes(1, gpus=4)), **columns, gpus=[2, 1, 0, 3])
    assert told(record, "gpus", "start") == [
        (0, 1, "n1", "0:1000 1:1000", 0),
        (1, 1, "n1", "2:1000", 1),
        (2, 1, "n1", "", 2),
        (3, 1, "n1", "0:1000 1:1000 3:1000", 11),
    ]


def test_whole_nodes_have_all_cores_and_gpus_and_the_tasks_that_were_requested() -> None:
    columns: dict[str, Any] = {"submit": [0, 0], "runtime": [10, 10], "cores": [5, 1], "nodes": [3, 0]}
    record, _ = run(one(nodes(3, gpus=1)), **columns, exclusive=[1, 0], gpus=[0, 1])
    whole = "0:1000"
    assert told(record, "tasks", "cores", "gpus", "start")[:3] == [
        (0, 1, "n1", 3, 4, whole, 0),
        (0, 1, "n2", 1, 4, whole, 0),
        (0, 1, "n3", 1, 4, whole, 0),
    ]
    assert told(record, "gpus", "start")[3] == (1, 1, "n1", whole, 10)


def test_a_run_that_was_preempted_has_its_own_rows_and_its_gpus_are_free_again() -> None:
    machines = nodes(1, gpus=1)
    partitions = (SitePartition("low", ("n1",)), SitePartition("high", ("n1",), tier=2))
    site = Site(machines, partitions, "low", scheduling=QUICK, preemption=Preemption(kind="partition", mode="REQUEUE"))
    columns: dict[str, Any] = {"submit": [0, 20], "runtime": [50, 10], "cores": [4, 4]}
    record, _ = run(site, **columns, partition=["low", "high"], gpus=[1, 1])
    rows = told(record, "gpus", "start", "end")
    assert [row[:4] for row in rows] == [(0, 1, "n1", "0:1000"), (0, 2, "n1", "0:1000"), (1, 1, "n1", "0:1000")]
    assert rows[0][4:] == (0, 20)
    assert rows[2][4:] == (20, 30)
    assert rows[1][5] - rows[1][4] == 50
