"""Slurm sites from slurm.conf and from what sacctmgr and sshare print."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsim.errors import InputError
from gridsim.model.site import PARENT, Site, needs_as_labels
from gridsim.model.site_file import expanded, minutes, read_associations, read_qos, read_site, read_slurm_conf
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload

SECOND = 1_000_000

CONF = """
# a small site
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=60,bf_window=2880,bf_resolution=300,bf_max_job_test=1000,bf_continue,\\
default_queue_depth=50,bf_made_up=3
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=5000
PriorityDecayHalfLife=7-0
PriorityCalcPeriod=5
PriorityMaxAge=1-12:30:00
PriorityFavorSmall=YES
PriorityFlags=SMALL_RELATIVE_TO_TIME,NO_FAIR_TREE
AccountingStorageEnforce=associations,limits
TopologyPlugin=topology/tree
NodeName=DEFAULT RealMemory=64000
NodeName=thin[01-03] Sockets=2 CoresPerSocket=8 ThreadsPerCore=2
NodeName=fat1,fat2 CPUs=64 RealMemory=512000 Weight=10 Gres=gpu:4
PartitionName=batch Nodes=ALL Default=YES MaxTime=1-0 PriorityTier=2
PartitionName=fat Nodes=fat[1-2] MaxTime=UNLIMITED OverSubscribe=EXCLUSIVE PriorityJobFactor=5 MaxNodes=2
"""

DUMP = """# a comment
Cluster - 'mini':Fairshare=1:QOS='normal'
Parent - 'root'
Account - 'bio':Description='the dept':Fairshare=40:GrpJobs=9
Parent - 'bio'
Account - 'lab':Fairshare=parent
Parent - 'lab'
User - 'ann':DefaultAccount='lab':Fairshare=3:MaxJobs=6:MaxSubmitJobs=60:MaxTRESPerJob=cpu=8,node=2,gres/gpu=1
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "file"
    path.write_text(text)
    return path


def test_nodes_partitions_and_parameters_are_read(tmp_path: Path) -> None:
    site = read_slurm_conf(written(tmp_path, CONF))
    assert [(node.name, node.cores, node.memory, node.weight) for node in site.nodes] == [
        ("thin01", 32, 64000, 1),
        ("thin02", 32, 64000, 1),
        ("thin03", 32, 64000, 1),
        ("fat1", 64, 512000, 10),
        ("fat2", 64, 512000, 10),
    ]
    batch, fat = site.partitions
    assert (site.default_partition, batch.longest, batch.tier) == ("batch", 86_400 * SECOND, 2)
    assert (fat.nodes, fat.longest, fat.exclusive, fat.job_factor, fat.most_nodes) == (
        ("fat1", "fat2"),
        NEVER,
        True,
        5,
        2,
    )
    look = site.scheduling
    assert (look.interval, look.window, look.resolution) == (60 * SECOND, 2880 * 60 * SECOND, 300 * SECOND)
    assert (look.tests, look.queue_depth, look.full_interval) == (1000, 50, 60 * SECOND)
    order = site.priority
    assert (order.age, order.fair_share, order.size) == (1000, 5000, 0)
    assert (order.half_life, order.period, order.oldest) == (
        7 * 86_400 * SECOND,
        300 * SECOND,
        (36 * 3600 + 1800) * SECOND,
    )
    assert (order.favor_small, order.relative_size, order.fair_tree, site.memory) == (True, True, False, True)


def test_what_is_not_modelled_is_counted(tmp_path: Path) -> None:
    ignored = read_slurm_conf(written(tmp_path, CONF)).ignored
    assert ignored == {"SchedulerParameters bf_made_up": 1, "topologyplugin": 1, "NodeName gres": 1}


def test_an_included_file_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "nodes.conf").write_text("NodeName=n[1-2] CPUs=4\n")
    path = tmp_path / "slurm.conf"
    path.write_text("Include nodes.conf\nPartitionName=all Nodes=ALL\n")
    assert read_slurm_conf(path).cores == 8


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("NodeName=n1 CPUs=four\nPartitionName=a Nodes=n1\n", "line 1, field 'CPUs': is 'four'"),
        ("NodeName=n1\nPartitionName=a Nodes=n2\n", "line 2, field 'Nodes': is 'n2'"),
        ("NodeName=n1\nPartitionName=a Nodes=n1 MaxTime=soon\n", "line 2, field 'MaxTime': is 'soon'"),
        ("NodeName=n[3-1]\nPartitionName=a Nodes=ALL\n", "line 1, field 'NodeName': '3-1' is no range"),
        ("SchedulerParameters=bf_window=day\nNodeName=n1\nPartitionName=a Nodes=n1\n", "bf_window': is 'day'"),
        ("PartitionName=a Nodes=ALL\n", "names no node"),
        ("NodeName=n1\n", "names no partition"),
        ("just words\n", "line 1: 'just words' is no Key=Value"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused_by_line_and_field(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        read_slurm_conf(written(tmp_path, text))
    assert told in str(caught.value)


def test_names_and_times_are_read_as_slurm_writes_them() -> None:
    assert expanded("a[9-11],b") == ["a9", "a10", "a11", "b"]
    assert minutes("UNLIMITED") == NEVER
    assert [minutes(text) // SECOND for text in ("90", "1:30", "1:00:00", "1-0", "1-00:00:05")] == [
        5400,
        90,
        3600,
        86_400,
        86_405,
    ]


def test_a_dump_says_who_is_below_whom_and_who_may_do_what(tmp_path: Path) -> None:
    found, ignored = read_associations(written(tmp_path, DUMP))
    root, bio, lab, ann = found
    assert (root.account, bio.parent, bio.shares, bio.group_jobs) == ("root", "root", 40, 9)
    assert (lab.parent, lab.shares) == ("bio", PARENT)
    assert (ann.account, ann.user, ann.shares, ann.most_jobs, ann.most_submitted) == ("lab", "ann", 3, 6, 60)
    assert (ann.most_cores, ann.most_nodes) == (8, 2)
    assert ignored == {"maxtresperjob gres/gpu": 1}


def test_a_list_by_depth_and_one_with_parents_say_the_same(tmp_path: Path) -> None:
    tree = "Account|User|Share|MaxJobs\nroot||1|\n bio||40|\n  lab||2|\n   lab|ann|1|6\n phys||60|\n  phys|bob|1|\n"
    flat = "Account|User|ParentName|Share|MaxJobs\nroot|||1|\nbio||root|40|\nlab||bio|2|\nlab|ann||1|6\n"
    flat += "phys||root|60|\nphys|bob||1|\n"
    assert read_associations(written(tmp_path, tree))[0] == read_associations(written(tmp_path, flat))[0]


def test_a_list_without_parents_is_refused_with_what_would_do(tmp_path: Path) -> None:
    flat = "Account|User|Share\nroot||1\nbio||40\nlab||2\nlab|ann|1\n"
    with pytest.raises(InputError, match="sacctmgr dump"):
        read_associations(written(tmp_path, flat))


def test_shares_and_usage_are_read_from_sshare(tmp_path: Path) -> None:
    text = (
        "Account|User|RawShares|NormShares|RawUsage|FairShare\nroot|||0|90|\n bio||40|0.4|90|\n  bio|ann|3|1.0|90|0.5\n"
    )
    conf = written(tmp_path, "NodeName=n1 CPUs=2\nPartitionName=a Nodes=n1\n")
    path = tmp_path / "sshare"
    path.write_text(text)
    site = read_site(conf, assoc=path)
    assert [(each.account, each.user, each.shares, each.usage) for each in site.associations] == [
        ("root", "", 1, 90.0),
        ("bio", "", 40, 90.0),
        ("bio", "ann", 3, 90.0),
    ]


def test_qos_have_priorities_and_limits(tmp_path: Path) -> None:
    text = "Name|Priority|PreemptMode|Preempt|UsageFactor|MaxWall|MaxTRESPU|MaxJobsPU|GrpTRESMins\n"
    text += "high|100|cluster|low|2.0|1-00:00:00|cpu=8|4|cpu=9\nlow|0|requeue||1.0||||\n"
    (high, low), ignored = read_qos(written(tmp_path, text))
    assert (high.priority, high.preempts, high.usage_factor, high.longest) == (100, ("low",), 2.0, 86_400 * SECOND)
    assert (high.user_cores, high.user_jobs, low.mode) == (8, 4, "REQUEUE")
    assert ignored == {"QOS grptresmins": 1}


def test_every_form_of_a_real_cluster_gives_one_tree(shared: Path) -> None:
    folder = shared / "data" / "slurm" / "run-a"
    if not folder.is_dir():
        pytest.skip("no Slurm data")
    logs = folder / "logs"
    site = read_site(folder / "config/slurm.conf", assoc=logs / "sacctmgr_dump.cfg", qos=logs / "sacctmgr_qos.txt")
    assert (site.cores, len(site.partitions), site.ignored) == (32, 3, {})
    dumped = set(site.associations)
    assert dumped == set(read_associations(logs / "sacctmgr_assoc_tree.txt")[0])
    shares = {(each.account, each.user, each.parent, each.shares) for each in dumped}
    for name in ("sshare_alP.txt", "sacctmgr_account.txt"):
        found = read_associations(logs / name)[0]
        assert {(each.account, each.user, each.parent, each.shares) for each in found} == shares
    with pytest.raises(InputError, match="does not say which account is below which"):
        read_associations(logs / "sacctmgr_assoc.txt")


def test_a_site_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(InputError, match="'gone' is no partition"):
        Site.of(nodes=1, cores=1, default_partition="gone")


def test_needs_of_a_log_become_labels_and_never_replace_them() -> None:
    log = Workload.from_columns(
        submit=[0, 1],
        runtime=[9, 9],
        cores=[8, 8],
        labels={"nodes": [4, 4]},
        logged={"nodes": [2, 2], "memory": [3000, float("nan")]},
    )
    labels = needs_as_labels(log).labels
    assert labels["nodes"].tolist() == [4, 4]
    assert labels["memory_mb"].tolist() == [750, -1]
