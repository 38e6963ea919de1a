"""Demands of jobs and where they fit: memory, unequal nodes, features, GPUs, tasks, several partitions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gridsim as gs
from gridsim.errors import InputError
from gridsim.model.site import Allowed, Node, Priority, Qos, Site, SitePartition
from gridsim.record import Status
from tests.policy.slurm.running import QUICK, SECOND, nodes, run

OF_PARTITION = {"state", "accounts", "levels", "least_nodes", "most_nodes"}


def one(*machines: Node, **more: Any) -> Site:
    """Return a site of these nodes in one partition; partition options are passed to the partition."""
    names = tuple(node.name for node in machines)
    own = {name: more.pop(name) for name in OF_PARTITION & set(more)}
    return Site(machines, (SitePartition("all", names, **own),), "all", scheduling=QUICK, **more)


def starts(site: Site, **columns: Any) -> list[float]:
    found: list[float] = run(site, runtime=[10] * len(columns["submit"]), **columns)[0].start.tolist()
    return found


def test_a_job_that_requests_no_memory_gets_the_sites_default_or_all_of_a_node() -> None:
    two = {"submit": [0, 1], "cores": [2, 2]}
    assert starts(one(*nodes(1), memory=True), **two) == [0, 10]
    assert starts(one(*nodes(1), memory=True, default_core_memory=250), **two) == [0, 1]
    assert starts(one(*nodes(1), memory=True, default_core_memory=251), **two) == [0, 10]
    assert starts(one(*nodes(1), memory=True, default_memory=500), **two) == [0, 1]
    # The partition's default has precedence over the site's.
    site = one(*nodes(1), memory=True, default_core_memory=100)
    part = replace(site.partitions[0], default_memory=501)
    assert starts(replace(site, partitions=(part,)), **two) == [0, 10]


def test_memory_is_requested_by_node_by_core_or_all_of_it() -> None:
    site = one(*nodes(1), memory=True, default_core_memory=1)
    assert starts(site, submit=[0, 1, 2], cores=[1, 1, 1], memory_mb=[600, 600, 400]) == [0, 10, 10]
    assert starts(site, submit=[0, 1], cores=[2, 2], memory_core_mb=[300, 250]) == [0, 10]
    assert starts(site, submit=[0, 1], cores=[1, 1], memory_mb=[0, 1]) == [0, 10]


def test_the_default_per_core_for_all_cores_is_recognised_as_a_default() -> None:
    # The log has 2000 MiB for a job of 8 cores without a request; nodes of 1000 MiB can hold its halves.
    site = one(*nodes(2), memory=True, default_core_memory=250)
    record, slurm = run(site, submit=[0, 1], runtime=[5, 5], cores=[8, 6], memory_mb=[2000, 1501])
    assert slurm.nodes_of(0) == {"n1": 4, "n2": 4}
    assert record.status.tolist() == [Status.completed, Status.unadmitted]  # no node has 1501 MiB
    record, slurm = run(site, submit=[0], runtime=[5], cores=[8], nodes=[2], memory_mb=[1000])
    assert slurm.nodes_of(0) == {"n1": 4, "n2": 4}


def test_memory_that_no_node_has_is_what_the_job_had_on_each_of_its_nodes() -> None:
    columns: dict[str, Any] = {"submit": [0, 0], "runtime": [10, 10], "cores": [4, 4], "memory_granted_mb": [500, 500]}
    record, slurm = run(one(*nodes(2), memory=True), **columns, memory_mb=[1000, 1001])
    assert record.start.tolist() == [0, 0]
    assert [slurm._demands["memory"][row] for row in (0, 1)] == [1000, 500]
    small = SitePartition("small", ("n1",))
    site = Site((*nodes(1), Node("n2", 4, 2000)), (small,), "small", scheduling=QUICK, memory=True)
    assert run(site, **columns, memory_mb=[1001, 1001])[0].start.tolist() == [0, 10]


def test_a_job_is_spread_where_its_memory_is() -> None:
    _, slurm = run(one(*nodes(2), memory=True), submit=[0], runtime=[10], cores=[4], memory_core_mb=[400])
    assert slurm.nodes_of(0) == {"n1": 2, "n2": 2}


def test_fat_nodes_are_for_those_that_need_them() -> None:
    machines = (Node("fat", 8, 4000, weight=9), *nodes(2))
    site = one(*machines, memory=True)
    _, slurm = run(site, submit=[0, 1, 2, 3], runtime=[50] * 4, cores=[1, 1, 1, 1], memory_mb=[900, 900, 900, 2000])
    assert [set(slurm.nodes_of(row)) for row in range(4)] == [{"n1"}, {"n2"}, {"fat"}, {"fat"}]
    # "… jobs will be allocated the nodes with the lowest weight" (slurm.conf): a heavy one only for what is left.
    _, slurm = run(site, submit=[0], runtime=[10], cores=[10], memory_mb=[10])
    assert slurm.nodes_of(0) == {"n1": 4, "n2": 4, "fat": 2}


def test_more_memory_than_the_partition_allows_is_refused() -> None:
    site = one(*nodes(1), memory=True, most_memory=500)
    record, _ = run(site, submit=[0, 0], runtime=[5, 5], cores=[1, 1], memory_mb=[500, 501])
    assert record.status.tolist() == [Status.completed, Status.unadmitted]
    own = replace(site, most_memory=0, partitions=(replace(site.partitions[0], most_memory=100),))
    record, _ = run(own, submit=[0, 0], runtime=[5, 5], cores=[1, 1], memory_mb=[100, 101])
    assert record.status.tolist() == [Status.completed, Status.unadmitted]


def test_cores_are_taken_node_by_node_with_a_task_for_each_of_the_others() -> None:
    # cpu_management.html, example 6: 8 tasks of 2 cores on 3 nodes of 8 cores get 8, 6 and 2 of them.
    _, slurm = run(one(*nodes(3, 8)), submit=[0], runtime=[9], cores=[16], nodes=[3], cores_per_task=[2])
    assert slurm.nodes_of(0) == {"n1": 8, "n2": 6, "n3": 2}
    # Example 3: one task a node.
    _, slurm = run(
        one(*nodes(3, 8)), submit=[0], runtime=[9], cores=[9], nodes=[3], cores_per_task=[3], tasks_per_node=[1]
    )
    assert slurm.nodes_of(0) == {"n1": 3, "n2": 3, "n3": 3}


def test_a_task_lies_on_one_node() -> None:
    # sbatch(1), --cpus-per-task: 4 tasks of 3 cores take four nodes of four cores.
    _, slurm = run(one(*nodes(4)), submit=[0], runtime=[9], cores=[12], cores_per_task=[3])
    assert slurm.nodes_of(0) == {"n1": 3, "n2": 3, "n3": 3, "n4": 3}


def test_of_unequal_nodes_so_many_are_taken_as_hold_the_job() -> None:
    machines = (Node("a", 2), Node("b", 8), Node("c", 2), Node("d", 8))
    _, slurm = run(one(*machines), submit=[0, 1], runtime=[9, 9], cores=[14, 3], nodes=[2, 1])
    assert slurm.nodes_of(0) == {"b": 8, "d": 6}
    _, slurm = run(one(*machines), submit=[0], runtime=[9], cores=[8], nodes=[2])
    assert sum(slurm.nodes_of(0).values()) == 8
    assert len(slurm.nodes_of(0)) == 2


def test_as_many_nodes_as_there_are_of_a_range() -> None:
    record, slurm = run(one(*nodes(4)), submit=[0, 1], runtime=[50, 9], cores=[4, 8], nodes=[1, 2], nodes_most=[-1, 6])
    assert set(slurm.nodes_of(1)) == {"n2", "n3", "n4"}
    assert record.start.tolist() == [0, 1]


def test_node_limits_of_a_partition_are_above_those_of_a_job() -> None:
    _, slurm = run(one(*nodes(4), least_nodes=2), submit=[0], runtime=[9], cores=[2])
    assert len(slurm.nodes_of(0)) == 2
    record, _ = run(one(*nodes(4), most_nodes=2), submit=[0, 0], runtime=[9, 9], cores=[3, 12], nodes=[3, 0])
    assert record.status.tolist() == [Status.unadmitted, Status.unadmitted]


def test_features_are_requested_with_and_and_or() -> None:
    machines = (*nodes(1, features=("intel",)), Node("x1", 4, features=("amd", "gpu")))
    columns = {"submit": [0, 0, 0, 0], "cores": [1] * 4, "constraint": ["amd&gpu", "intel", "intel|amd", "sparc"]}
    record, slurm = run(one(*machines), runtime=[9] * 4, **columns)
    assert [set(slurm.nodes_of(row)) for row in range(2)] == [{"x1"}, {"n1"}]
    assert record.status.tolist() == [0, 0, 0, Status.unadmitted]


def test_gpus_are_counted_by_node() -> None:
    machines = (Node("g1", 8, gpus=2), *nodes(1))
    record, slurm = run(one(*machines), submit=[0, 1, 2, 3], runtime=[20] * 4, cores=[1] * 4, gpus=[1, 1, 1, 3])
    assert record.start[:3].tolist() == [0, 1, 20]
    assert set(slurm.nodes_of(0)) == {"g1"}
    assert record.status[3] == Status.unadmitted


@pytest.mark.parametrize("state", ["DOWN", "DRAIN", "INACTIVE"])
def test_a_partition_that_is_not_up_takes_no_job(state: str) -> None:
    record, _ = run(one(*nodes(1), state=state), submit=[0], runtime=[5], cores=[1])
    assert record.status.tolist() == [Status.unadmitted]


def test_a_partition_states_which_users_may_use_it() -> None:
    columns = {"submit": [0] * 3, "runtime": [5] * 3, "cores": [1] * 3, "account": ["bio", "phys", "bio"]}
    columns["qos"] = ["normal", "normal", "long"]
    qos = (Qos("normal"), Qos("long"))
    site = one(*nodes(1), accounts=Allowed(only=("bio",)), levels=Allowed(never=("long",)), qos=qos)
    record, _ = run(site, **columns)
    assert record.status.tolist() == [Status.completed, Status.unadmitted, Status.unadmitted]
    record, _ = run(one(*nodes(1), accounts=Allowed(never=("phys",)), qos=qos), **columns)
    assert record.status.tolist() == [Status.completed, Status.unadmitted, Status.completed]


def test_of_several_partitions_the_one_that_starts_the_job_first_is_taken() -> None:
    parts = (SitePartition("a", ("n1",)), SitePartition("b", ("n2",)))
    site = Site(nodes(2), parts, "a", scheduling=QUICK)
    record, slurm = run(
        site,
        submit=[0, 1, 2],
        runtime=[50, 20, 10],
        cores=[4, 4, 4],
        partition=["a", "a,b", "b,a"],
    )
    assert record.start.tolist() == [0, 1, 21]
    assert [slurm.partition_of(row) for row in range(3)] == ["a", "b", "b"]
    # One available partition suffices.
    closed = replace(site, partitions=(replace(parts[0], state="DOWN"), parts[1]))
    record, _ = run(closed, submit=[0, 0], runtime=[5, 5], cores=[1, 1], partition=["a,b", "a"])
    assert record.status.tolist() == [Status.completed, Status.unadmitted]


def test_a_job_that_no_limit_will_ever_let_start_is_refused() -> None:
    site = one(*nodes(1), qos=(Qos("normal", user_cores=2),))
    record, _ = run(site, submit=[0, 0], runtime=[5, 5], cores=[2, 3])
    assert record.status.tolist() == [Status.completed, Status.unadmitted]


def test_whole_nodes_count_in_the_size_of_a_job_as_the_smallest_that_hold_it() -> None:
    order = Priority(size=1000, period=SECOND)
    site = one(Node("fat", 12, 4000), *nodes(2), memory=True, priority=order)
    columns = {"submit": [0], "runtime": [10], "exclusive": [1], "nodes": [1]}
    found = []
    for cores, memory in ((3, 10), (5, 10), (3, 2000)):
        _, slurm = run(site, cores=[cores], memory_mb=[memory], **columns)
        found.append(int(slurm._priorities.priority[0]))
    # (one node of 3, 4 or 12 cores of 20) / 2
    assert found == [266, 466, 466]


def test_a_reservation_of_backfill_keeps_one_resolution_clear() -> None:
    site = replace(one(*nodes(1)), scheduling=replace(QUICK, resolution=60 * SECOND))
    columns = {"submit": [0, 1, 2], "cores": [2, 4, 2]}
    for limit, begins in ((237, 2), (250, 2), (298, 310)):
        record, _ = run(site, runtime=[300, 10, 100], estimate=[300, 10, limit], **columns)
        assert record.start.tolist() == [0, 300, begins]


@pytest.mark.parametrize(
    "label", ["partition", "user", "account", "qos", "reservation", "constraint", "nodelist", "licenses"]
)
def test_a_label_beyond_its_names_is_an_input_error(label: str) -> None:
    jobs = gs.Workload.from_columns(submit=[0, 1], runtime=[5, 5], cores=[1, 1], job=[7, 8], labels={label: [0, 3]})
    jobs = replace(jobs, names={label: ("batch",)})
    site = Path(__file__).resolve().parents[3] / "docs" / "examples" / "gpus" / "slurm.conf"
    with pytest.raises(InputError, match="job 8 has number 3; expected the number of a name, below 1") as caught:
        gs.simulate(jobs, policy=f"slurm?conf={site}")
    assert caught.value.field == label
