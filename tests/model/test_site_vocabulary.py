"""Keywords of a site's files: supported, ignored, and unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsim.model.site import vocabulary
from gridsim.model.site.vocabulary import Effect, Notice, known, matters, notices
from gridsim.model.site_file import parameters, read_associations, read_qos, read_slurm_conf

MACHINE = "NodeName=n1 CPUs=4\nPartitionName=a Nodes=n1\n"


def found(folder: Path, text: str) -> tuple[Notice, ...]:
    path = folder / "slurm.conf"
    path.write_text(text)
    return read_slurm_conf(path).notices


def test_a_misspelt_key_is_reported_with_the_nearest_one(tmp_path: Path) -> None:
    (one,) = found(tmp_path, "PriorityWeigthAge=1000\n" + MACHINE)
    assert (one.text, one.unknown, one.nearest) == ("PriorityWeigthAge", True, "PriorityWeightAge")


def test_a_misspelt_parameter_of_the_scheduler_is_reported_with_the_nearest_one(tmp_path: Path) -> None:
    (one,) = found(tmp_path, "SchedulerParameters=bf_windwo=1,bf_continue,Bf_Interval=60\n" + MACHINE)
    assert (one.text, one.unknown, one.nearest) == ("SchedulerParameters bf_windwo", True, "bf_window")


@pytest.mark.parametrize(
    ("line", "text", "nearest"),
    [
        (
            "PreemptType=preempt/partition_pri\n" + MACHINE,
            "PreemptType preempt/partition_pri",
            "preempt/partition_prio",
        ),
        ("SchedulerType=sched/backfil\n" + MACHINE, "SchedulerType sched/backfil", "sched/backfill"),
        ("PriorityFlags=FAIRTREE\n" + MACHINE, "PriorityFlags FAIRTREE", "FAIR_TREE"),
        ("NodeName=n1 RealMemroy=5\nPartitionName=a Nodes=n1\n", "NodeName RealMemroy", "RealMemory"),
        ("NodeName=n1\nPartitionName=a Nodes=n1 MaxTimes=5\n", "PartitionName MaxTimes", "MaxTime"),
    ],
)
def test_slips_in_values_nodes_and_partitions_are_unknown_too(
    tmp_path: Path, line: str, text: str, nearest: str
) -> None:
    (one,) = found(tmp_path, line)
    assert (one.text, one.unknown, one.nearest) == (text, True, nearest)


def test_the_largest_effects_are_first_after_unknown_ones(tmp_path: Path) -> None:
    text = "CompleteWait=32\nDefMemPerGPU=3\nOverTimeLimit=10\nPriorityWeightAssoc=9\nZzz=1\n" + MACHINE
    told = found(tmp_path, text)
    assert [it.text for it in told] == ["Zzz", "PriorityWeightAssoc", "OverTimeLimit", "DefMemPerGPU", "CompleteWait"]
    assert [it.effect for it in told[1:]] == [Effect.order, Effect.limits, Effect.resources, Effect.little]


def test_ports_and_paths_and_settings_that_say_nothing_are_quiet(tmp_path: Path) -> None:
    text = "SlurmctldPort=6817\nStateSaveLocation=/var/spool\nOverTimeLimit=0\nTopologyPlugin=topology/default\n"
    text += "PriorityWeightAssoc=0\nSchedulerParameters=bf_continue,max_rpc_cnt=150,bf_yield_interval=100\n"
    text += "NodeName=DEFAULT Port=7000 TmpDisk=9\n" + MACHINE.replace("Nodes=n1", "Nodes=n1 Hidden=NO LLN=NO")
    assert found(tmp_path, text) == ()


def test_lines_of_nodes_that_are_down_are_reported_and_are_no_keys(tmp_path: Path) -> None:
    assert [it.text for it in found(tmp_path, "DownNodes=n1 State=DOWN Reason=fan\n" + MACHINE)] == ["DownNodes"]


def test_limits_of_the_accounting_database_that_are_not_modelled_are_reported_as_limits(tmp_path: Path) -> None:
    qos, assoc = tmp_path / "qos", tmp_path / "assoc"
    qos.write_text("Name|Priority|Flags|GrpTRESMins|GrpWall|MaxTRES\na|1|DenyOnLimit,Relative|cpu=5|9|bb/cray=1\n")
    assoc.write_text("Account|User|ParentName|Share|GrpWall|MaxWal\nroot||||60|\nbio||root|1|60|5\n")
    told = notices(read_qos(qos)[1] | read_associations(assoc)[1])
    assert [(it.text, it.unknown, it.count) for it in told] == [
        ("association maxwal", True, 1),
        ("QOS Flags Relative", False, 1),
        ("QOS GrpWall", False, 1),
        ("QOS MaxTRES bb/cray", False, 1),
        ("association GrpWall", False, 2),
    ]
    assert {it.effect for it in told[1:]} == {Effect.limits}


def test_keywords_that_the_reader_uses_are_listed_as_modelled() -> None:
    for section, names in (
        ("SchedulerParameters", [*parameters._SCHEDULING, *parameters._FLAGS]),
        ("", parameters._WEIGHTS),
        ("PriorityFlags", parameters._PRIORITY_FLAGS),
        ("PreemptParameters", parameters._OF_PREEMPTION),
        ("PreemptType", parameters._KINDS),
    ):
        for name in names:
            word = known(section, name)
            assert word is not None, (section, name)
            assert word.followed, (section, name)


def test_no_word_is_in_two_groups_of_a_section() -> None:
    for table in vocabulary._sections().values():
        for word in table.values():
            assert not (word.followed and word.effect < Effect.none)
    assert matters("", "DefMemPerGPU", "1")
