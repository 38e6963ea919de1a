"""Partitions and clusters of jobs are separate pools if possible; otherwise a message names the reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gridsim as gs
from gridsim.errors import InputError
from gridsim.model.partitions import CLUSTER, PARTITION, job_clusters
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.site import Node, Site, SitePartition
from gridsim.model.tasks import Tasks
from gridsim.policy.pools import in_pools, resized, seen_by, with_nodes_of
from gridsim.policy.presets import policy
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.policy.site_policy import SiteChange
from gridsim.questions.changes import site_changes
from gridsim.scenario import transformed

NAMES = ("", "a", "b", "a,b", "c")


def log(*partitions: int, cores: int = 1, label: str = PARTITION, **more: Any) -> gs.Workload:
    """Return a job of 10 s each second, with these numbers of `NAMES`."""
    n = len(partitions)
    jobs = gs.Workload.from_columns(
        submit=range(n), runtime=[10] * n, cores=[cores] * n, labels={label: partitions}, **more
    )
    return replace(jobs, names={label: NAMES})


def site(**nodes: tuple[str, ...]) -> Site:
    """Return nodes n1 to n6 of 4 cores in partitions; jobs without a partition use the first one."""
    parts = tuple(SitePartition(name, members) for name, members in nodes.items())
    return Site(tuple(Node(f"n{number}", 4) for number in range(1, 7)), parts, next(iter(nodes)))


APART = site(a=("n1", "n2"), b=("n3", "n4", "n5"))


def sizes(platform: Platform) -> dict[str, int]:
    return {cluster.name: cluster.cores for cluster in platform.clusters()}


def test_partitions_of_a_site_that_share_no_node_are_pools() -> None:
    found = in_pools(log(1, 2, 1), Platform.single(24), [policy("easy"), Slurm(site=APART)])
    assert found.by == PARTITION
    assert sizes(found) == {"a": 8, "b": 12, "(no partition)": 4}
    assert found.cores == 24


def test_partitions_that_share_a_node_are_one_pool_and_it_is_said_why() -> None:
    shared = site(a=("n1", "n2"), b=("n2", "n3"))
    found = in_pools(log(1, 2), Platform.single(24), [Slurm(site=shared)])
    assert sizes(found) == {"cluster": 24}
    assert found.pooled == "a and b share nodes (n2)"
    with pytest.raises(InputError, match=r"partitions cannot be separate: a and b share nodes \(n2\)"):
        in_pools(log(1, 2), Platform.single(24), [Slurm(site=shared)], "apart")


def test_a_partition_that_no_job_names_may_share_nodes() -> None:
    everywhere = site(a=("n1", "n2"), b=("n3",), all=("n1", "n2", "n3", "n4", "n5", "n6"))
    found = in_pools(log(1, 2), Platform.single(24), [Slurm(site=everywhere)])
    assert sizes(found) == {"a": 8, "b": 4, "(no partition)": 12}


def test_sizes_that_no_job_has_are_reported() -> None:
    assert in_pools(log(1, 2), Platform.single(24)).pooled.startswith("the number of cores of each is unknown")
    assert (
        in_pools(log(1, 2), Platform.single(24), [Slurm(site=APART)], "pooled").pooled
        == "because of --partitions pooled"
    )
    assert in_pools(log(1, 4), Platform.single(24), [Slurm(site=APART)]).pooled.startswith("'c' is not a partition")
    assert in_pools(log(1, 2), Platform.single(32), [Slurm(site=APART)]).pooled.startswith("they have 24 cores")


def test_a_log_of_one_partition_or_none_is_what_it_was() -> None:
    for jobs in (log(1, 1), gs.Workload.from_columns(submit=[0], runtime=[1], cores=[1])):
        platform = Platform.single(24)
        assert in_pools(jobs, platform) is platform
    with pytest.raises(InputError, match="the jobs have none"):
        in_pools(gs.Workload.from_columns(submit=[0], runtime=[1], cores=[1]), Platform.single(24), asked="apart")


def test_clusters_of_a_platform_that_are_named_like_the_partitions_are_these() -> None:
    grid = Platform(RouterSpec("root", (ClusterSpec("a", 4), ClusterSpec("b", 4))))
    assert in_pools(log(1, 2, 1), grid).by == PARTITION
    assert in_pools(log(1, 4), grid).pooled == "partition 'c' is not a cluster of the platform"
    assert in_pools(log(1, 2, -1), grid).pooled == "1 job names none"
    numbered = Platform(RouterSpec("root", (ClusterSpec("1", 4), ClusterSpec("2", 4))))
    assert in_pools(replace(log(1, 2), names={}), numbered).by == PARTITION


def test_jobs_run_where_their_partition_is_and_the_default_takes_the_others() -> None:
    platform = Platform.apart({"a": 4, "b": 4}, PARTITION, default="b")
    result = gs.simulate(log(1, 1, 2, -1, cores=3), platform=platform, policy="fcfs")
    assert result.jobs["cluster"].tolist() == ["a", "a", "b", "b"]
    assert result.record.start.tolist() == [0, 10, 2, 12]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "qops", "sjf", "depth?k=2"])
def test_a_partition_is_scheduled_as_a_separate_machine(policy: str) -> None:
    jobs = log(*(1, 2, 2, 1, 2, 1, 1, 2) * 4, cores=2)
    apart = gs.simulate(jobs, platform=Platform.apart({"a": 4, "b": 6}, PARTITION), policy=policy).record
    for number, cores in ((1, 4), (2, 6)):
        rows = jobs.labels[PARTITION] == number
        alone = gs.simulate(jobs.select(rows), platform=Platform.single(cores), policy=policy).record
        assert apart.start_us[rows].tolist() == alone.start_us.tolist()


def test_a_job_that_is_too_wide_for_its_partition_is_rejected() -> None:
    result = gs.simulate(log(1, 2, cores=6), platform=Platform.apart({"a": 4, "b": 8}, PARTITION), policy="easy")
    assert result.jobs["status"].tolist() == ["rejected", "completed"]


def test_of_several_partitions_the_balancer_picks_one() -> None:
    platform = Platform.apart({"a": 4, "b": 4, "c": 4}, PARTITION)
    result = gs.simulate(log(1, 3, 3, cores=4), platform=platform, policy="fcfs")
    assert result.jobs["cluster"].tolist() == ["a", "b", "a"]


def test_users_who_react_submit_to_their_partitions() -> None:
    jobs = log(1, 2, 1, 2, cores=3)
    jobs = replace(jobs, labels={**jobs.labels, "user": jobs.labels[PARTITION]}, logged={"wait": [0.0] * 4})
    reacting = transformed(jobs, ["react"], cores=8)
    result = gs.simulate(reacting, platform=Platform.apart({"a": 4, "b": 4}, PARTITION), policy="easy")
    assert result.jobs["cluster"].tolist() == ["a", "b", "a", "b"]


def test_jobs_without_a_cluster_and_dag_jobs_are_refused() -> None:
    platform = Platform.apart({"a": 4, "b": 4}, PARTITION)
    with pytest.raises(InputError, match="job 2 has the partition 'c'; the platform has a, b"):
        job_clusters(log(1, 4), platform)
    with pytest.raises(InputError, match="job 1 has no partition"):
        job_clusters(log(-1), platform)
    tasks = Tasks.from_edges(counts=[2], runtime=[1, 1], cores=[1, 1], edges=[(0, 1)])
    with pytest.raises(InputError, match="DAG jobs"):
        gs.simulate(gs.Workload.from_tasks(tasks, submit=[0]), platform=platform, policy="fifo-job")


def test_a_policy_that_knows_its_site_keeps_partitions_itself() -> None:
    jobs = log(1, 2, 1, cores=4)
    found = gs.compare(jobs, {"easy": "easy", "site": Slurm(site=APART)})
    assert found.platform_of("easy").by == PARTITION
    assert sizes(found.platform_of("site")) == {"cluster": 24}
    assert {record.cores for record in found.records.values()} == {24}
    assert not [it for it in found.sentences() if "Partitions are not simulated" in it or "ran no job" in it]
    several = Platform.apart({"a": 12, "b": 12}, CLUSTER)
    with pytest.raises(InputError, match="has one site, the jobs are of several"):
        seen_by(Slurm(site=APART), several)


def test_clusters_of_one_log_are_pools_as_large_as_they_were_ever_in_use() -> None:
    told = [{"name": "a", "cores": 4}, {"name": "b", "cores": 2}]
    jobs = log(1, 2, 2, label=CLUSTER, cores=2, cores_stated=6, provenance={"clusters": told})
    result = gs.simulate(jobs, policy="fcfs")
    assert sizes(result.platform) == {"a": 4, "b": 2}
    assert result.jobs["cluster"].tolist() == ["a", "b", "b"]
    assert result.record.start.tolist() == [0, 1, 11]
    with pytest.raises(InputError, match="the jobs belong to the clusters a, b; give a --platform"):
        gs.simulate(jobs, platform=Platform.single(8), policy="fcfs")


CONF = """ClusterName=small
NodeName=n[1-2] CPUs=4 RealMemory=100
NodeName=g1 CPUs=2 RealMemory=100
PartitionName=a Nodes=n[1-2] Default=YES
PartitionName=b Nodes=g1
"""


def test_a_site_file_gives_its_pools(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(CONF)
    made = policy(f"slurm?conf={tmp_path / 'slurm.conf'}")
    assert sizes(in_pools(log(1, 2), made.machine(), [made])) == {"a": 8, "b": 2}


def test_pools_grow_evenly_or_by_the_nodes_of_the_site() -> None:
    apart = Platform.apart({"a": 8, "b": 12, "(no partition)": 4}, PARTITION, default="a")
    assert sizes(resized(apart, 36)) == {"a": 12, "b": 18, "(no partition)": 6}
    assert sizes(resized(apart, 25)) == {"a": 8, "b": 13, "(no partition)": 4}
    assert sizes(resized(apart, 32, [Slurm(site=APART)])) == {"a": 16, "b": 12, "(no partition)": 4}
    assert resized(apart, 36).default == "a"
    grid = Platform(RouterSpec("root", (ClusterSpec("a", 4), ClusterSpec("b", 4))))
    with pytest.raises(InputError, match="more cores for a machine of several clusters: not modelled"):
        resized(grid, 10)
    assert resized(Platform.single(4), 8) == Platform.single(8)


def test_nodes_are_added_to_a_group_or_to_the_largest() -> None:
    thin = gs.NodeGroup(group="thin", count=4, capacity={"cores": 8, "memory": 64})
    fat = gs.NodeGroup(group="fat", count=2, capacity={"cores": 16, "memory": 512}, gpus=2)
    platform = Platform.of_nodes([thin, fat])

    def counts(text: str) -> list[int]:
        (cluster,) = with_nodes_of(platform, text).clusters()
        assert cluster.capacity is not None
        assert cluster.capacity.cores == cluster.cores
        return [group.count for group in cluster.nodes]

    assert (counts("+2"), counts("fat:+1"), counts("thin:-3")) == ([6, 2], [4, 3], [1, 2])
    with pytest.raises(InputError, match="'gpu' is not a group of nodes; expected one of thin, fat"):
        counts("gpu:+1")
    with pytest.raises(InputError, match="2 nodes fewer; group 'fat' has 2"):
        counts("fat:-2")
    with pytest.raises(InputError, match="'some' is not a number of nodes"):
        counts("some")
    with pytest.raises(InputError, match="a machine without nodes"):
        with_nodes_of(Platform.single(8), "+1")


def test_nodes_of_a_platform_are_a_change_under_any_policy() -> None:
    machine = Platform.of_nodes([gs.NodeGroup(group="thin", count=4, capacity={"cores": 8})])
    (found,) = site_changes(log(1), machine, [SiteChange(add_nodes="thin:+2")], policy("easy"))
    assert (found.label, found.platform.cores, found.policy) == ("2 more nodes of thin (+50 % cores)", 48, None)


def test_pools_of_a_platform_are_a_change_and_limits_are_not() -> None:
    machine = Platform.of_nodes([gs.NodeGroup(group="thin", count=4, capacity={"cores": 8})], {"matlab": 2})
    (found,) = site_changes(log(1), machine, [SiteChange(add_pool="matlab:3")], policy("easy"))
    assert (found.label, found.pools, found.platform.cores) == ("5 matlab (+150 %)", (("matlab", 3),), 32)
    assert next(found.platform.clusters()).pools == {"matlab": 5}
    for change, message in (
        (SiteChange(add_pool="matlap:1"), "unknown pool or licence 'matlap'; did you mean 'matlab'"),
        (SiteChange(add_pool="matlab:-3"), "3 fewer of matlab; the machine has 2"),
        (SiteChange(add_pool="matlab"), "'matlab' is not a number of pool units"),
        (SiteChange(set_limit="qos.low.GrpJobs=1"), "sets a limit of a Slurm site"),
    ):
        with pytest.raises(InputError, match=message):
            site_changes(log(1), machine, [change], policy("easy"))
