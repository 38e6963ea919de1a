"""Rules of sites: nodes by name and kind, least loaded nodes, cores of nodes by partition, groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gridsim.model.site import Association, Node, Site, SitePartition
from gridsim.model.workload import Workload
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.record import Record, Status
from gridsim.simulation import simulate
from tests.policy.slurm.running import QUICK, Watched, nodes, run


def site_of(*machines: Node, **parts: Any) -> Site:
    names = tuple(node.name for node in machines)
    return Site(machines, (SitePartition("all", names, **parts),), "all", scheduling=QUICK)


def racks(*features: str, cores: int = 4) -> tuple[Node, ...]:
    return tuple(Node(f"n{row}", cores, features=tuple(each.split())) for row, each in enumerate(features, start=1))


def why(record: Record, row: int) -> tuple[str, object]:
    assert record.reasons is not None
    found = record.reasons.refused[row]
    return found.reason, found.requested


def held(site: Site, **columns: Any) -> list[dict[str, int]]:
    """Return cores by node of jobs that are submitted together and all start at once."""
    count = len(columns["cores"])
    record, slurm = run(site, submit=[0] * count, runtime=[9] * count, **columns)
    assert record.start.tolist() == [0] * count
    return [slurm.nodes_of(row) for row in range(count)]


# -- brackets --------------------------------------------------------------------------------------------------------


def test_all_nodes_of_a_job_are_of_one_of_the_kinds_in_brackets() -> None:
    site = site_of(*racks("a", "b", "b", "a"))
    assert held(site, cores=[8], constraint=["[a|b]"]) == [{"n1": 4, "n4": 4}]
    assert held(site, cores=[1, 8], constraint=["a&a", "[a|b]"])[1] == {"n2": 4, "n3": 4}
    assert held(site, cores=[8], constraint=["a|b"]) == [{"n1": 4, "n2": 4}]


def test_brackets_with_numbers_take_so_many_nodes_of_each_kind() -> None:
    site = site_of(*racks("a", "a", "b", "b", "b", "c"))
    assert held(site, cores=[3], constraint=["[a*1&b*2]"]) == [{"n1": 1, "n3": 1, "n4": 1}]
    assert held(site, cores=[11], constraint=["[b*1&a*2]"]) == [{"n3": 4, "n1": 4, "n2": 3}]
    record, _ = run(site, submit=[0, 0], runtime=[9, 9], cores=[13, 3], constraint=["[a*1&b*2]", "[a*3]"])
    assert record.status.tolist() == [Status.unadmitted] * 2  # three nodes have 12 cores; a has two nodes
    assert [why(record, row)[0] for row in range(2)] == ["PartitionConfig", "BadConstraints"]


def test_the_widest_nodes_of_a_kind_are_taken_where_the_first_have_too_few_cores() -> None:
    machines = (Node("n1", 2, features=("a",)), Node("n2", 8, features=("a",)), Node("n3", 4, features=("b",)))
    assert held(site_of(*machines), cores=[9], constraint=["[a*1&b*1]"]) == [{"n2": 8, "n3": 1}]


def test_nodes_of_two_kinds_are_left_to_the_later_kind_that_needs_them() -> None:
    site = site_of(*racks("a b", "", "a"))
    assert held(site, cores=[2], constraint=["[a*1&b*1]"]) == [{"n3": 1, "n1": 1}]
    assert held(site, cores=[2], constraint=["[b*1&a*1]"]) == [{"n1": 1, "n3": 1}]


def test_a_number_without_brackets_leaves_the_other_nodes_open() -> None:
    site = site_of(*racks("", "gpu", "", "gpu"))
    assert held(site, cores=[3], nodes=[3], constraint=["gpu*1"]) == [{"n2": 1, "n3": 1, "n4": 1}]
    assert held(site, cores=[6], constraint=["gpu*1"]) == [{"n2": 4, "n1": 2}]
    assert held(site, cores=[2], constraint=["gpu*1"]) == [{"n2": 2}]


def test_jobs_wait_for_the_kinds_that_they_requested() -> None:
    columns: dict[str, Any] = {"cores": [1, 2, 1], "exclusive": [1, -1, -1], "constraint": ["b", "[a*1&b*1]", ""]}
    record, slurm = run(site_of(*racks("a", "b")), submit=[0, 1, 2], runtime=[10, 5, 3], **columns)
    assert record.start.tolist() == [0, 10, 2]  # the third one ends before
    assert slurm.nodes_of(1) == {"n1": 1, "n2": 1}


def test_an_invalid_constraint_is_rejected() -> None:
    record, _ = run(site_of(*racks("a")), submit=[0], runtime=[1], cores=[1], constraint=["[a*1&b"])
    assert why(record, 0) == ("BadConstraints", "an invalid constraint")


# -- nodes by name ---------------------------------------------------------------------------------------------------


def test_nodes_that_are_named_are_taken_and_others_with_them_as_it_takes() -> None:
    site = site_of(*nodes(4))
    names = ["n[3-4]", "n4", "n4"]
    assert held(site, cores=[2], nodelist=names[:1]) == [{"n3": 1, "n4": 1}]
    assert held(site, cores=[1], nodelist=names[:1]) == [{"n3": 1, "n4": 1}]
    assert held(site, cores=[10], nodelist=names[1:2]) == [{"n4": 4, "n1": 4, "n2": 2}]
    assert held(site, cores=[2], nodes=[2], nodelist=names[2:]) == [{"n4": 1, "n1": 1}]


def test_a_job_waits_for_the_node_that_it_names_and_others_pass() -> None:
    columns: dict[str, Any] = {"cores": [4, 2, 1], "nodelist": ["n2", "n2", ""]}
    record, _ = run(site_of(*nodes(2)), submit=[0, 1, 2], runtime=[10, 5, 3], **columns)
    assert record.start.tolist() == [0, 10, 2]


def test_nodes_that_are_excluded_are_left_alone() -> None:
    assert held(site_of(*nodes(3)), cores=[6], exclude=["n[1]"]) == [{"n2": 4, "n3": 2}]
    record, _ = run(site_of(*nodes(2)), submit=[0, 1], runtime=[10, 5], cores=[1, 5], exclude=["n1", "n2"])
    assert record.status[1] == Status.unadmitted


@pytest.mark.parametrize("names", ["n9", "n[1", "m1", "n1,n3"])
def test_a_job_that_names_a_node_that_is_not_there_is_rejected(names: str) -> None:
    site = site_of(*nodes(3))
    site = replace(site, partitions=(replace(site.partitions[0], nodes=("n1", "n2")),))
    record, _ = run(site, submit=[0], runtime=[1], cores=[1], nodelist=[names])
    assert why(record, 0) == ("ReqNodeNotAvail", "all nodes that it requires")


def test_named_nodes_count_among_those_of_a_kind() -> None:
    site = site_of(*racks("a", "a", "b", "b"))
    got = held(site, cores=[3], constraint=["[a*1&b*2]"], nodelist=["n2,n4"])
    assert got == [{"n2": 1, "n4": 1, "n3": 1}]


# -- least loaded nodes ----------------------------------------------------------------------------------------------


def test_jobs_are_placed_on_the_nodes_with_most_idle_cores() -> None:
    apart, together = site_of(*nodes(3), least_loaded=True), site_of(*nodes(3))
    assert [list(each) for each in held(apart, cores=[2, 1, 1, 1])] == [["n1"], ["n2"], ["n3"], ["n2"]]
    assert [list(each) for each in held(together, cores=[2, 1, 1, 1])] == [["n1"], ["n1"], ["n1"], ["n2"]]
    everywhere = replace(together, least_loaded=True)
    assert held(everywhere, cores=[2, 1, 6])[2] == {"n3": 4, "n2": 2}


def test_weight_comes_before_idle_cores_and_all_idle_cores_count() -> None:
    machines = (Node("n1", 8, weight=2), Node("n2", 4), Node("n3", 2))
    assert held(site_of(*machines, least_loaded=True), cores=[2, 2])[1] == {"n2": 2}
    # One task per node: if it could have one core of each, the node with most idle cores is first.
    got = held(site_of(*nodes(2), least_loaded=True), cores=[1, 1, 2], tasks_per_node=[1, -1, 1])
    assert got[:2] == [{"n1": 1}, {"n2": 1}]
    columns: dict[str, Any] = {"cores": [3, 1], "nodes": [-1, 1], "tasks_per_node": [-1, 1]}
    assert held(site_of(*nodes(2), least_loaded=True), **columns)[1] == {"n2": 1}


def test_nodes_that_are_idle_later_count_for_a_waiting_job() -> None:
    site = site_of(*nodes(2), least_loaded=True)
    columns: dict[str, Any] = {"cores": [4, 4, 1], "estimate": [10, 20, 5]}
    record, slurm = run(site, submit=[0, 0, 1], runtime=[10, 20, 5], **columns)
    assert record.start.tolist() == [0, 0, 10]
    assert slurm.nodes_of(2) == {"n1": 1}


# -- cores of a node by partition ------------------------------------------------------------------------------------


def shared(cap: int, **more: Any) -> Site:
    machines = nodes(2, cores=8)
    names = tuple(node.name for node in machines)
    parts = (SitePartition("cpu", names, node_cores=cap, **more), SitePartition("gpu", names))
    return Site(machines, parts, "cpu", scheduling=QUICK)


def test_jobs_of_a_partition_together_have_no_more_cores_of_a_node() -> None:
    columns: dict[str, Any] = {"cores": [4, 6, 2, 6], "partition": ["cpu", "cpu", "cpu", "gpu"]}
    record, slurm = run(shared(5), submit=[0, 1, 2, 3], runtime=[10, 10, 10, 4], **columns)
    assert record.start.tolist() == [0, 1, 10, 3]
    assert [slurm.nodes_of(row) for row in range(4)] == [{"n1": 4}, {"n1": 1, "n2": 5}, {"n1": 2}, {"n2": 3, "n1": 3}]


def test_the_plan_knows_when_the_partition_has_cores_again() -> None:
    columns: dict[str, Any] = {"cores": [5, 5, 10, 1], "estimate": [10, 20, 5, 8], "partition": ["cpu"] * 4}
    record, _ = run(shared(5), submit=[0, 0, 1, 2], runtime=[10, 20, 5, 8], **columns)
    assert record.start.tolist() == [0, 0, 20, 10]


def test_more_than_the_partition_has_of_its_nodes_is_rejected() -> None:
    record, _ = run(shared(5), submit=[0, 0], runtime=[1, 1], cores=[11, 6], nodes=[-1, 1])
    assert record.reasons is not None
    assert [record.reasons.refused[row].rule for row in range(2)] == ["MaxCPUsPerNode of partition cpu"] * 2


def test_a_node_alone_holds_no_more_cores_that_count() -> None:
    record, slurm = run(shared(5), submit=[0, 0], runtime=[9, 9], cores=[10, 6], exclusive=[1, 1])
    assert record.start.tolist() == [0, 9]
    assert slurm.nodes_of(0) == {"n1": 8, "n2": 8}


# -- groups ----------------------------------------------------------------------------------------------------------


def test_users_of_other_groups_are_rejected_where_groups_are_known() -> None:
    site = site_of(*nodes(1), groups=("phys", "chem"))
    columns: dict[str, Any] = {"submit": [0] * 4, "runtime": [1] * 4, "cores": [1] * 4}
    users = ["ann", "bob", "root", ""]
    record, _ = run(site, **columns, user=users)
    assert record.status.tolist() == [0] * 4
    known = replace(site, members={"chem": frozenset(["ann"]), "bio": frozenset(["bob"])})
    record, _ = run(known, **columns, user=users)
    assert record.status.tolist() == [0, Status.unadmitted, 0, Status.unadmitted]
    assert why(record, 1) == ("PartitionConfig", "user bob, by its groups")


def test_the_second_partition_takes_whom_the_first_does_not() -> None:
    machines = nodes(1)
    parts = (SitePartition("a", ("n1",), groups=("x",)), SitePartition("b", ("n1",)))
    site = Site(machines, parts, "a", scheduling=QUICK, members={})
    record, slurm = run(site, submit=[0], runtime=[1], cores=[1], user=["ann"], partition=["a,b"])
    assert record.start.tolist() == [0]
    assert isinstance(slurm, Watched)
    assert slurm.partition_of(0) == "b"


def test_users_without_an_association_are_rejected_where_associations_are_enforced_and_known() -> None:
    site = replace(site_of(*nodes(1)), associations_only=True)
    known = replace(site, associations=(Association("phys", parent="root"), Association("phys", "ann")))
    columns: dict[str, Any] = {"submit": [0] * 5, "runtime": [5] * 5, "cores": [1] * 5}
    columns |= {"user": ["ann", "ann", "bob", "root", "ann"], "account": ["phys", "bio", "phys", "root", ""]}
    record, _ = run(known, **columns)
    assert record.ran.tolist() == [True, False, False, True, True]
    assert why(record, 1) == ("InvalidAccount", "user ann in account bio")
    assert why(record, 2) == ("InvalidAccount", "user bob in account phys")
    for other in (site, replace(known, associations_only=False)):  # no file of associations; not enforced
        assert run(other, **columns)[0].ran.all()


def test_users_that_the_log_only_numbers_are_not_compared_with_associations() -> None:
    known = (Association("phys", parent="root"), Association("phys", "ann"))
    site = replace(site_of(*nodes(1)), associations_only=True, associations=known)
    log = Workload.from_columns(submit=[0], runtime=[5], cores=[1], labels={"user": [7], "account": [3]})
    assert simulate(log, platform=site.platform(), policy=Slurm(site=site)).record.ran.all()
