"""Slurm sites from slurm.conf and from the output of sacctmgr and sshare."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gridsim.errors import InputError
from gridsim.model.site import PARENT, Node, Site, TresLimits
from gridsim.model.site_file import (
    SiteClock,
    expanded,
    minutes,
    read_associations,
    read_groups,
    read_qos,
    read_reservations,
    read_site,
    read_slurm_conf,
)
from gridsim.model.time import NEVER

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


def test_unmodelled_requests_are_counted(tmp_path: Path) -> None:
    ignored = read_slurm_conf(written(tmp_path, CONF)).ignored
    assert ignored == {"SchedulerParameters bf_made_up": 1, "TopologyPlugin": 1}


def test_an_included_file_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "nodes.conf").write_text("NodeName=n[1-2] CPUs=4\n")
    path = tmp_path / "slurm.conf"
    path.write_text("Include nodes.conf\nPartitionName=all Nodes=ALL\n")
    assert read_slurm_conf(path).cores == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NodeName=n1 CPUs=four\nPartitionName=a Nodes=n1\n", "line 1, field 'CPUs': is 'four'"),
        ("NodeName=n1\nPartitionName=a Nodes=n2\n", "line 2, field 'Nodes': is 'n2'"),
        ("NodeName=n1\nPartitionName=a Nodes=n1 MaxTime=soon\n", "line 2, field 'MaxTime': is 'soon'"),
        ("NodeName=n[3-1]\nPartitionName=a Nodes=ALL\n", "line 1, field 'NodeName': '3-1' is not a range"),
        ("SchedulerParameters=bf_window=day\nNodeName=n1\nPartitionName=a Nodes=n1\n", "bf_window': is 'day'"),
        ("PartitionName=a Nodes=ALL\n", "has no node"),
        ("NodeName=n1\n", "has no partition"),
        ("just words\n", "line 1: 'just words' is not Key=Value"),
        ("NodeName=n1\nPartitionName=a Nodes=n1 MaxCPUsPerNode=0\n", "line 2, field 'MaxCPUsPerNode': is '0'"),
        ("NodeName=n1\nPartitionName=a Nodes=n1 LLN=maybe\n", "line 2, field 'LLN': is 'maybe'; expected YES or NO"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused_by_line_and_field(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_slurm_conf(written(tmp_path, text))
    assert message in str(caught.value)


def test_rules_of_partitions_on_nodes_and_groups_are_read(tmp_path: Path) -> None:
    text = "SelectTypeParameters=CR_Core,CR_LLN\nNodeName=n1 CPUs=8\n"
    text += "PartitionName=a Nodes=n1 MaxCPUsPerNode=6 AllowGroups=phys,chem\nPartitionName=b Nodes=n1 LLN=YES\n"
    text += "PartitionName=c Nodes=n1 MaxCPUsPerNode=UNLIMITED LLN=no AllowGroups=ALL\n"
    conf = written(tmp_path, text)
    site = read_site(conf)
    message = [(part.node_cores, part.least_loaded, part.groups) for part in site.partitions]
    assert message == [(6, False, ("phys", "chem")), (0, True, ()), (0, False, ())]
    assert (site.least_loaded, site.members, site.ignored) == (True, None, {"PartitionName AllowGroups": 1})
    groups = tmp_path / "groups"
    groups.write_text("# of the system\nphys:x:1001:ann,bob\nempty:x:7:\n\ncy : chem users\nann : users\n")
    known = read_site(conf, groups=groups)
    assert known.ignored == {}
    assert known.members == {
        "phys": {"ann", "bob"},
        "empty": frozenset(),
        "chem": {"cy"},
        "users": {"cy", "ann"},
    }


@pytest.mark.parametrize("line", ["phys", "phys:x:number:ann", "a b : c"])
def test_groups_of_neither_form_are_refused_by_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "groups"
    path.write_text(f"bio:x:1:ann\n{line}\n")
    with pytest.raises(InputError, match=r"groups line 2, field 'group': .* is not a group; expected group:x:number"):
        read_groups(path)


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


def test_a_dump_has_the_tree_of_accounts_and_their_permissions(tmp_path: Path) -> None:
    found, ignored = read_associations(written(tmp_path, DUMP))
    root, bio, lab, ann = found
    assert (root.account, bio.parent, bio.shares, bio.group_jobs) == ("root", "root", 40, 9)
    assert (lab.parent, lab.shares) == ("bio", PARENT)
    assert (ann.account, ann.user, ann.shares, ann.most_jobs, ann.most_submitted) == ("lab", "ann", 3, 6, 60)
    assert (ann.most_cores, ann.most_nodes) == (8, 2)
    assert (ann.tres, ignored) == (TresLimits(job=(("gres/gpu", 1),)), {})


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
    assert (high.tres, low.tres, ignored) == (TresLimits(group_minutes=(("cpu", 9),)), TresLimits(), {})


def test_limits_of_resources_are_read_under_all_their_names(tmp_path: Path) -> None:
    # sacctmgr(1), "SPECIFICATIONS FOR QOS"; memory in MiB, negative for none, old names as in resource_limits.html.
    text = "Name|Priority|Flags|GrpTRES|MaxTRESPerNode|MinTRES|GrpTRESRunMins|MaxTRESMinsPerJob|MaxNodesPU|MaxTRESPA\n"
    text += "a|1|NoDecay|mem=2G,license/x=3,node=-1|gres/gpu:a100=2|cpu=4|mem=5|billing=60|7|cpu=8,gres/gpu=1\n"
    ((found,), ignored) = read_qos(written(tmp_path, text))
    assert found.tres == TresLimits(
        group=(("mem", 2048), ("license/x", 3)),
        node=(("gres/gpu:a100", 2),),
        least=(("cpu", 4),),
        group_run_minutes=(("mem", 5),),
        job_minutes=(("billing", 60),),
        user=(("node", 7),),
        account=(("gres/gpu", 1),),
    )
    assert (found.account_cores, found.decays, ignored) == (8, False, {})
    with pytest.raises(InputError, match=r"line 2.*grptres.*is 'cpu=2G'"):
        read_qos(written(tmp_path, "Name|Priority|GrpTRES\na|1|cpu=2G\n"))


def test_the_action_at_a_used_up_limit_is_read(tmp_path: Path) -> None:
    text = "AccountingStorageEnforce=associations,limits,safe\nPriorityUsageResetPeriod=MONTHLY\n"
    site = read_slurm_conf(written(tmp_path, text + "NodeName=n1\nPartitionName=a Nodes=n1\n"))
    assert (site.safe, site.enforce, site.priority.reset) == (True, True, "MONTHLY")


@pytest.mark.parametrize(
    ("enforce", "expected"), [("associations", True), ("limits", True), ("qos", True), ("nosteps", False)]
)
def test_limits_and_qos_enforce_associations_too(tmp_path: Path, enforce: str, expected: bool) -> None:
    text = f"AccountingStorageEnforce={enforce}\nNodeName=n1\nPartitionName=a Nodes=n1\n"
    assert read_slurm_conf(written(tmp_path, text)).associations_only is expected


def test_every_form_of_a_real_cluster_gives_one_tree(run_a: Path) -> None:
    logs = run_a / "logs"
    site = read_site(run_a / "config/slurm.conf", assoc=logs / "sacctmgr_dump.cfg", qos=logs / "sacctmgr_qos.txt")
    assert (site.cores, len(site.partitions), site.ignored) == (32, 3, {})
    dumped = set(site.associations)
    assert dumped == set(read_associations(logs / "sacctmgr_assoc_tree.txt")[0])
    shares = {(each.account, each.user, each.parent, each.shares) for each in dumped}
    for name in ("sshare_alP.txt", "sacctmgr_account.txt"):
        found = read_associations(logs / name)[0]
        assert {(each.account, each.user, each.parent, each.shares) for each in found} == shares
    with pytest.raises(InputError, match="does not contain the hierarchy of accounts"):
        read_associations(logs / "sacctmgr_assoc.txt")


def test_a_site_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(InputError, match="'gone' is not a partition"):
        Site.of(nodes=1, cores=1, default_partition="gone")


UNEQUAL = """
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PreemptExemptTime=00:01:00
JobRequeue=0
SchedulerParameters=preempt_reorder_count=3,preempt_youngest_first,bf_max_job_array_resv=5,bf_min_age_reserve=60
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1000
MaxMemPerNode=60000
NodeName=thin[1-2] CPUs=16 RealMemory=64000 CoreSpecCount=2 MemSpecLimit=4000 Features=intel,ib
NodeName=fat CPUs=32 RealMemory=512000 Weight=10 Gres=gpu:a100:2(S:0-1),gpu:a100:1(S:2),bandwidth:5 CpuSpecList=0-1,7
PartitionName=low Nodes=ALL Default=YES GraceTime=30 PreemptMode=CANCEL AllowAccounts=bio,phys DenyQos=long State=DRAIN
PartitionName=high Nodes=fat PriorityTier=5 PreemptMode=SUSPEND,GANG DenyAccounts=guest MinNodes=2 ReqResv=YES
PartitionName=own Nodes=fat DefMemPerNode=9000 MaxMemPerNode=UNLIMITED
"""


def test_unequal_nodes_memory_and_preemption_are_read(tmp_path: Path) -> None:
    site = read_slurm_conf(written(tmp_path, UNEQUAL))
    thin, _, fat = site.nodes
    assert (thin.cores, thin.memory, thin.features, thin.gpus) == (14, 60000, ("intel", "ib"), 0)
    assert (fat.cores, fat.memory, fat.weight, fat.gpus) == (29, 512000, 10, 3)
    assert (fat.gpu_kind, fat.other) == ("a100", (("bandwidth", 5),))
    assert (site.default_core_memory, site.default_memory, site.most_memory) == (1000, 0, 60000)
    rules = site.preemption
    assert (rules.kind, rules.mode, rules.exempt, rules.requeue) == ("partition", "REQUEUE", 60 * SECOND, False)
    assert (rules.reorder, rules.youngest_first, rules.strict_order) == (3, True, False)
    assert (site.scheduling.array_reserves, site.scheduling.least_age) == (5, 60 * SECOND)
    low, high, own = site.partitions
    assert (low.grace, low.preempt, low.state) == (30 * SECOND, "CANCEL", "DRAIN")
    assert "bio" in low.accounts
    assert "chem" not in low.accounts
    assert "long" not in low.levels
    assert (high.preempt, high.tier, high.least_nodes, high.needs_reservation) == ("SUSPEND", 5, 2, True)
    assert "guest" not in high.accounts
    assert "bio" in high.accounts
    assert (own.default_memory, own.default_core_memory, own.most_memory) == (9000, None, None)
    assert site.ignored == {"NodeName Gres bandwidth": 1}


def test_a_site_is_a_machine_of_nodes_with_licences_as_pools(tmp_path: Path) -> None:
    text = UNEQUAL + "Licenses=matlab:20,ansys@server:4,idl\nNodeName=old Gres=gpu\n"
    site = read_slurm_conf(written(tmp_path, text))
    thin, fat, old = site.groups()
    assert (thin.names, thin.capacity) == (("thin1", "thin2"), {"cores": 14, "memory": 60000})
    assert (thin.features, thin.partitions, thin.weight) == (("intel", "ib"), ("low",), 1)
    assert fat.capacity == {"cores": 29, "memory": 512000, "bandwidth": 5}
    assert (fat.gpus, fat.gpu_kind, fat.partitions, fat.weight) == (3, "a100", ("low", "high", "own"), 10)
    assert (old.gpus, old.gpu_kind) == (1, "gpu")
    capacity = site.capacity()
    assert capacity.pools == {"matlab": 20, "ansys@server": 4, "idl": 1}
    assert (capacity.cores, capacity.total("memory"), capacity.total("gpu")) == (58, 632001, 4000)


@pytest.mark.parametrize(
    ("text", "line", "field", "message"),
    [
        (
            "NodeName=n Gres=gpu:a100:2,gpu:t4:1",
            1,
            "Gres",
            "GPUs of one type per node; this node has the types a100 and t4",
        ),
        ("NodeName=n\nLicenses=matlab:many", 2, "Licenses", "is 'matlab:many'; expected a name and a number"),
    ],
)
def test_resources_of_a_site_that_cannot_be_are_refused(
    tmp_path: Path, text: str, line: int, field: str, message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_slurm_conf(written(tmp_path, f"{text}\nPartitionName=all Nodes=ALL\n"))
    assert (error.value.line, error.value.field) == (line, field)


def test_gang_is_reported_as_not_modelled_unless_it_only_resumes_suspended_jobs(tmp_path: Path) -> None:
    text = "PreemptType=preempt/qos\nPreemptMode={}\nMaxBatchRequeue=3\nNodeName=n1\nPartitionName=a Nodes=n1\n"
    for mode, found, ignored in (("SUSPEND,GANG", "SUSPEND", {}), ("GANG", "OFF", {"PreemptMode GANG": 1})):
        site = read_slurm_conf(written(tmp_path, text.format(mode)))
        assert (site.preemption.kind, site.preemption.mode, site.preemption.most_requeues) == ("qos", found, 3)
        assert site.ignored == ignored


def test_qos_say_whom_they_preempt_and_how(tmp_path: Path) -> None:
    text = "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode\n"
    text += "a|9|00:00:00|b,c|00:05:00|cluster\nb|5|00:00:20|||requeue,within\nc|1|00:00:00||-1|OFF\n"
    (a, b, c), ignored = read_qos(written(tmp_path, text))
    assert (a.preempts, a.exempt, a.mode, a.grace) == (("b", "c"), 300 * SECOND, "", 0)
    assert (b.mode, b.within, b.grace, b.exempt) == ("REQUEUE", True, 20 * SECOND, None)
    assert (c.mode, c.exempt) == ("", None)
    assert not ignored


RESERVED = """ReservationName=maint StartTime=2026-11-21T08:00:00 EndTime=2026-11-21T10:00:00 Duration=02:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=16 Features=(null) PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES,DAILY
   TRES=cpu=16
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)

ReservationName=course StartTime=2026-11-21T09:00:00 EndTime=2026-11-21T11:00:00 Duration=02:00:00
   Nodes=n[3-4] NodeCnt=2 CoreCnt=6 Features=(null) PartitionName=all Flags=PURGE_COMP=00:10:00,REPLACE_DOWN
     NodeName=n3 CoreIDs=0-3
     NodeName=n4 CoreIDs=0,2
   TRES=cpu=6
   Users=-bob,-eve Groups=(null) Accounts=bio Licenses=matlab:2 State=INACTIVE BurstBuffer=(null) Watts=n/a
"""


def _nodes() -> tuple[Node, ...]:
    return Site.of(nodes=4, cores=8).nodes


def test_reservations_are_read_in_lines_and_in_one_line_each(tmp_path: Path) -> None:
    clock = SiteClock(epoch=1_795_237_200, timezone="Europe/Berlin")  # 06:00 in Berlin
    found, ignored = read_reservations(written(tmp_path, RESERVED), _nodes(), clock)
    maint, course = found
    assert (maint.name, maint.nodes, maint.start, maint.end) == ("maint", ("n1", "n2"), 7200 * SECOND, 14400 * SECOND)
    assert (maint.period, maint.overlaps, maint.cores) == (86_400 * SECOND, True, ())
    assert course.cores == (("n3", 4), ("n4", 2))
    assert course.idle == 600 * SECOND
    assert course.admits("ann", "bio")
    assert not course.admits("bob", "bio")
    assert not course.admits("ann", "phys")
    assert ignored == {"Reservation Flags REPLACE_DOWN": 1, "Reservation licenses": 1}
    one_line = "\n\n".join(" ".join(part.split()) for part in RESERVED.split("\n\n"))
    assert read_reservations(written(tmp_path, one_line), _nodes(), clock)[0] == found


@pytest.mark.parametrize(
    "header",
    [
        "Name|TimeStart|TimeEnd|NodeName|Flags|TRES",  # output of Slurm 22.05.8 for the one below
        "Name|Start|End|NodeNames|Flags|TRES",
    ],
)
def test_reservations_are_read_from_the_accounting_database(tmp_path: Path, header: str) -> None:
    text = f"{header}\nr|1970-01-01T00:10:00|1970-01-01T00:20:00|n[2-3]|OVERLAP|cpu=16\n"
    ((found,), ignored) = read_reservations(written(tmp_path, text), _nodes(), SiteClock(0, "UTC"))
    assert not ignored
    assert (found.nodes, found.start, found.end, found.overlaps) == (("n2", "n3"), 600 * SECOND, 1200 * SECOND, True)
    with pytest.raises(InputError, match="has no nodes"):
        read_reservations(
            written(tmp_path, "Cluster|Name|TRES|TimeStart|TimeEnd|UnusedWall\nc|r|cpu=1|0|9|0\n"),
            _nodes(),
            SiteClock(0),
        )
    for empty in ("No reservations in the system\n", "Cluster|Name|TRES|TimeStart|TimeEnd|UnusedWall\n"):
        assert read_reservations(written(tmp_path, empty), _nodes(), SiteClock())[0] == ()


def test_unknown_users_of_a_reservation_in_the_database_are_reported(tmp_path: Path) -> None:
    text = "Name|TimeStart|TimeEnd|NodeName|Flags|Assocs\nr|1970-01-01T00:10:00|1970-01-01T00:20:00|n2||4,5\n"
    _, ignored = read_reservations(written(tmp_path, text), _nodes(), SiteClock(0, "UTC"))
    assert ignored == {"Reservation associations": 1}


def test_limits_are_read_under_the_printed_and_the_requested_names_of_sacctmgr(tmp_path: Path) -> None:
    asked = "Name|Priority|MaxJobsPerUser|MaxSubmitJobsPerUser|MaxTRESPerUser|MaxWallDurationPerJob|MaxTRESPerJob"
    printed = "Name|Priority|MaxJobsPU|MaxSubmitPU|MaxTRESPU|MaxWall|MaxTRES"
    older = "Name|Priority|MaxJobs|MaxSubmit|MaxCPUsPU|MaxWall|MaxCPUs"
    found = [read_qos(written(tmp_path, f"{header}\na|1|2|3|cpu=4|5|cpu=6\n")) for header in (asked, printed)]
    found.append(read_qos(written(tmp_path, f"{older}\na|1|2|3|4|5|6\n")))
    for (level,), ignored in found:
        assert (level.user_jobs, level.user_submitted, level.user_cores, level.most_cores) == (2, 3, 4, 6)
        assert level.longest == 300 * SECOND
        assert not ignored


def test_columns_of_accounts_that_are_headed_otherwise_than_requested_are_no_slips(tmp_path: Path) -> None:
    text = "Account|Descr|Org|Cluster|ParentName|User|Share|GrpCPUs|MaxCPUs|MaxNodes|QOS|Def QOS|Def Acct|Admin\n"
    text += "bio|biology|uni|mini|root||40||||normal||bio|None\n"
    text += "bio|biology|uni|mini||dave|1|9|8|7|low,normal|low|bio|None\n"
    found, ignored = read_associations(written(tmp_path, text))
    dave = found[-1]
    assert (dave.group_cores, dave.most_cores, dave.most_nodes, dave.default_qos) == (9, 8, 7, "low")
    assert not ignored


def test_associations_of_several_clusters_are_refused(tmp_path: Path) -> None:
    text = "Cluster|Account|User|Share\none|root||1\none| bio||2\ntwo|root||1\ntwo| bio||3\n"
    with pytest.raises(InputError, match=r"lists 2 clusters \(one, two\); expected one: sacctmgr"):
        read_associations(written(tmp_path, text))


def test_a_reservation_of_working_days_is_one_a_day_that_comes_every_week(tmp_path: Path) -> None:
    text = RESERVED.partition("\n\n")[0].replace("DAILY", "WEEKDAY")  # a Saturday
    found, _ = read_reservations(
        written(tmp_path, text), _nodes(), SiteClock(epoch=1_795_244_400, timezone="Europe/Berlin")
    )
    assert [each.start // (86_400 * SECOND) for each in found] == [2, 3, 4, 5, 6]
    assert {each.period for each in found} == {7 * 86_400 * SECOND}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("n[1-2]", "n[1-9]"), "the site has no node 'n5'"),
        (("2026-11-21T08:00:00", "soon"), "is 'soon'; expected a date"),
        (("StartTime=2026-11-21T08:00:00 ", ""), "is missing for reservation 'maint'"),
        (("ReservationName=maint", "reserved for ever\nReservationName=maint"), "is not Key=Value"),
    ],
)
def test_reservations_that_cannot_be_are_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        read_reservations(written(tmp_path, RESERVED.replace(*change, 1)), _nodes(), SiteClock(epoch=0))


def test_dates_need_an_epoch_and_a_zone_that_there_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give epoch, the Unix time of second 0"):
        read_reservations(written(tmp_path, RESERVED), _nodes(), SiteClock())
    with pytest.raises(InputError, match="expected a zone such as Europe/Berlin"):
        read_reservations(written(tmp_path, RESERVED), _nodes(), SiteClock(0, "Atlantis"))
    with pytest.raises(InputError, match="but the site's time zone is unknown; give it, such as --timezone"):
        read_reservations(written(tmp_path, RESERVED), _nodes(), SiteClock(epoch=0))
    there = read_reservations(written(tmp_path, RESERVED), _nodes(), SiteClock(0, "America/Chicago"))[0][0].start
    assert there - read_reservations(written(tmp_path, RESERVED), _nodes(), SiteClock(0, "UTC"))[0][0].start == (
        6 * 3600 * SECOND
    )
