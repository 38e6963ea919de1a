"""Limits of resources at once and over time, and licences.

Sources: sacctmgr(1) (``GrpTRES``, ``MaxTRESPerUser``, ``MaxTRESPerNode``, ``MinTRES``, ``MaxTRESMinsPerJob``,
``GrpTRESMins``, ``GrpTRESRunMins``, ``NoDecay``, ``UsageFactor``), resource_limits.html, slurm.conf(5)
(``AccountingStorageEnforce``, ``PriorityUsageResetPeriod``, ``Licenses``), licenses.html; reasons are from
job_reason_codes.html.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gridsim.model.site import Association, Node, Priority, Qos, Site, SitePartition, TresLimits
from gridsim.model.workload import Workload
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.record import Record, Status
from gridsim.simulation import simulate
from tests.policy.slurm.running import QUICK, SECOND, Watched, nodes, run

MINUTE = 60 * SECOND
EVERY = Priority(age=1, period=SECOND, half_life=0)


def site(limits: TresLimits | None = None, count: int = 2, **more: Any) -> Site:
    """Return a site with nodes of 4 cores, 1000 MiB and 2 GPUs, and limits of account *phys*."""
    machines = nodes(count, gpus=2)
    parts = (SitePartition("all", tuple(node.name for node in machines)),)
    accounts = (Association("phys", parent="root", tres=limits or TresLimits()), Association("phys", "ann"))
    given: dict[str, Any] = {"associations": accounts, "priority": EVERY, "memory": True, "default_memory": 10}
    return Site(machines, parts, "all", scheduling=QUICK, **given | more)


def jobs(at: Site, **columns: Any) -> tuple[Record, Watched]:
    """Return jobs of ann, a second apart."""
    count = len(next(iter(columns.values())))
    given = {"submit": list(range(count)), "runtime": [10] * count, "cores": [1] * count}
    return run(at, **given | {"user": ["ann"] * count, "account": ["phys"] * count} | columns)


def reasons(scheduler: Watched, job: int) -> list[str]:
    told = scheduler.reasons()
    return [told.words[word] for row, word in zip(told.job.tolist(), told.word.tolist(), strict=True) if row == job]


@pytest.mark.parametrize(
    ("limit", "asked", "word"),
    [
        (("mem", 500), {"memory_mb": [300, 300]}, "AssocGrpMemLimit"),
        (("node", 1), {"nodes": [1, 1]}, "AssocGrpNodeLimit"),
        (("gres/gpu", 3), {"gpus": [2, 2]}, "AssocGrpGRES"),
        (("billing", 7), {"cores": [4, 4]}, "AssocGrpBilling"),
    ],
)
def test_a_group_holds_so_much_at_once(limit: tuple[str, int], asked: dict[str, list[int]], word: str) -> None:
    assert jobs(site(), **asked)[0].start.tolist() == [0, 1]
    record, scheduler = jobs(site(TresLimits(group=(limit,))), **asked)
    assert record.start.tolist() == [0, 10]
    assert word in reasons(scheduler, 1)


def test_a_job_counts_with_all_that_its_whole_nodes_have() -> None:
    limits = TresLimits(group=(("gres/gpu", 2),))
    assert jobs(site(limits), gpus=[0, 2], exclusive=[1, 0])[0].start.tolist() == [0, 10]


def test_each_user_and_each_account_of_a_qos_holds_so_much() -> None:
    def starts(tres: TresLimits) -> list[float]:
        at = site(qos=(Qos("normal", tres=tres),), associations=())
        whose = {"user": ["ann", "ann", "bob"], "account": ["phys"] * 3}
        return jobs(at, gpus=[1, 1, 1], **whose)[0].start.tolist()  # type: ignore[no-any-return]

    assert starts(TresLimits(user=(("gres/gpu", 1),))) == [0, 10, 2]
    assert starts(TresLimits(account=(("gres/gpu", 1),))) == [0, 10, 20]


@pytest.mark.parametrize(
    ("limits", "fine", "asked", "word"),
    [
        (TresLimits(job=(("mem", 100),)), {"memory_mb": 100}, {"memory_mb": 101}, "QOSMaxMemoryPerJob"),
        (TresLimits(job=(("node", 1),)), {"nodes": 1}, {"nodes": 2}, "QOSMaxNodePerJobLimit"),
        (TresLimits(node=(("gres/gpu", 1),)), {"gpus": 1, "nodes": 2}, {"gpus": 2}, "QOSMaxGRESPerNode"),
        (TresLimits(least=(("cpu", 2),)), {"cores": 2}, {"cores": 1}, "QOSMinCpuNotSatisfied"),
        (TresLimits(least=(("gres/gpu", 1),)), {"gpus": 1}, {"gpus": 0}, "QOSMinGRES"),
        (TresLimits(job_minutes=(("cpu", 4),)), {"cores": 4}, {"cores": 5}, "QOSMaxCpuMinutesPerJobLimit"),
    ],
)
def test_a_job_above_or_below_limits_of_one_job_is_refused(
    limits: TresLimits, fine: dict[str, int], asked: dict[str, int], word: str
) -> None:
    at = site(qos=(Qos("normal", tres=limits),))
    columns = {"cores": [4, 4]} | {name: [fine.get(name, -1), asked.get(name, -1)] for name in fine | asked}
    record, scheduler = jobs(at, runtime=[60, 60], **columns)
    assert record.status.tolist() == [Status.completed, Status.unadmitted]
    assert reasons(scheduler, 1) == [word]


def test_no_job_starts_while_a_budget_is_used_up() -> None:
    # Ten core-minutes: the first job has used them after 150 s. The second one starts before; the third never starts.
    at = site(TresLimits(group_minutes=(("cpu", 10),)), priority=replace(EVERY, oldest=SECOND))
    record, scheduler = jobs(at, submit=[0, 10, 160], runtime=[200] * 3, cores=[4, 4, 4])
    assert record.start[:2].tolist() == [0, 10]
    assert record.status.tolist() == [Status.completed, Status.completed, Status.cancelled]
    assert "AssocGrpCPUMinutesLimit" in reasons(scheduler, 2)


def test_with_safe_only_what_can_run_to_its_end_starts() -> None:
    limits = TresLimits(group_minutes=(("cpu", 10),))
    columns: dict[str, Any] = {"cores": [4, 2], "runtime": [60, 60], "estimate": [120, 120]}
    assert jobs(site(limits), **columns)[0].start.tolist() == [0, 1]
    # 8 core-minutes are reserved for the first job; after it ends with 4 used, the other one's 4 fit.
    assert jobs(site(limits, safe=True), **columns)[0].start.tolist() == [0, 60]


def test_a_budget_comes_back_as_use_is_forgotten_unless_the_qos_does_not_decay() -> None:
    # 4 cores for 60 s are 4 core-minutes, and with a half-life of 30 s less than 2 a minute later.
    limits = TresLimits(group_minutes=(("cpu", 2),))
    order = replace(EVERY, half_life=30 * SECOND, oldest=SECOND)
    at = site(qos=(Qos("normal", tres=limits),), priority=order)
    columns: dict[str, Any] = {"cores": [4, 1], "submit": [0, 60], "runtime": [60, 1]}
    record, _ = jobs(at, **columns)
    assert record.status.tolist() == [Status.completed, Status.completed]
    # The integral of 4 × 2^(-t/30 s) over 60 s is 129.8 core-seconds; it falls below 120 after 3.4 s.
    assert record.start[1] in (64, 65)
    kept = replace(at, qos=(Qos("normal", tres=limits, decays=False),))
    assert jobs(kept, **columns)[0].status.tolist() == [Status.completed, Status.cancelled]


def test_use_counts_as_the_qos_says() -> None:
    limits = TresLimits(group_minutes=(("cpu", 4),))
    for factor, found in ((1.0, Status.cancelled), (0.5, Status.completed)):
        at = site(qos=(Qos("normal", tres=limits, usage_factor=factor),), priority=replace(EVERY, oldest=SECOND))
        record, _ = jobs(at, cores=[4, 1], submit=[0, 61], runtime=[60, 1])
        assert record.status.tolist() == [Status.completed, found]


def test_use_that_users_bring_with_them_counts() -> None:
    at = site(TresLimits(group_minutes=(("cpu", 10),)), priority=replace(EVERY, oldest=SECOND))
    used = (at.associations[0], replace(at.associations[1], usage=599.0))
    assert jobs(replace(at, associations=used), cores=[1])[0].start.tolist() == [0]
    used = (at.associations[0], replace(at.associations[1], usage=600.0))
    assert jobs(replace(at, associations=used), cores=[1])[0].status.tolist() == [Status.cancelled]


def test_running_jobs_hold_their_limit_for_the_remaining_time() -> None:
    # Six core-minutes: 4 of the first job. The other one's 4 fit when less than 2 of those remain, half a minute later.
    limits = TresLimits(group_run_minutes=(("cpu", 6),))
    record, scheduler = jobs(site(limits), cores=[4, 4], runtime=[60, 60])
    assert record.start.tolist() == [0, 30]
    assert "AssocGrpCPURunMinutesLimit" in reasons(scheduler, 1)


@pytest.mark.parametrize(("period", "hours"), [("DAILY", 12), ("WEEKLY", 2 * 24 + 12), ("MONTHLY", 30 * 24 + 12)])
def test_use_begins_again_at_the_beginning_of_a_period(period: Any, hours: int) -> None:
    # The clock starts on Thursday, 1 January 1970, at noon; weeks begin on Sundays.
    order = Priority(age=1, period=30 * MINUTE, half_life=0, oldest=MINUTE, reset=period)
    at = site(TresLimits(group_minutes=(("cpu", 1),)), priority=order)
    made = Workload.from_columns(
        submit=[0, 61], runtime=[60, 5], cores=[4, 4], labels={"user": [0, 0], "account": [0, 0]}
    )
    made = replace(made, names={"user": ("ann",), "account": ("phys",)})
    record = simulate(made, platform=at.platform(), policy=Slurm(site=at, boot=0.0, epoch=43_200)).record
    assert hours * 3600 <= record.start[1] <= hours * 3600 + 60
    record = simulate(made, platform=at.platform(), policy=Slurm(site=at, boot=0.0)).record
    assert record.status.tolist() == [Status.completed, Status.cancelled]


def test_resets_at_unknown_times_are_reported() -> None:
    at = site(priority=replace(EVERY, reset="WEEKLY"))
    assert [each.text for each in Slurm(site=at).notices] == ["PriorityUsageResetPeriod"]
    assert not Slurm(site=at, epoch=0, timezone="UTC").notices
    assert "(UTC" in Slurm(site=at, epoch=0).notices[0].text


def test_jobs_wait_for_licences_and_let_others_pass() -> None:
    at = site(licences={"matlab": 3})
    record, scheduler = jobs(at, licenses=["matlab:2", "matlab=2", "", "matlab"])
    assert record.start.tolist() == [0, 10, 2, 3]
    assert "Licenses" in reasons(scheduler, 1)
    # They do so even if other jobs are blocked by limits (assoc_limit_stop).
    stop = replace(at, scheduling=replace(QUICK, stop_at_limit=True))
    assert jobs(stop, licenses=["matlab:2", "matlab:2", "", "matlab"])[0].start.tolist() == [0, 10, 2, 3]


def test_more_licences_than_there_are_are_refused() -> None:
    # Remote licences are not in slurm.conf (licenses.html), so their number is unknown.
    record, scheduler = jobs(site(licences={"matlab": 3}), licenses=["matlab:4", "ansys@far:9", "matlab:3"])
    assert record.status.tolist() == [Status.unadmitted, Status.completed, Status.completed]
    assert reasons(scheduler, 0) == ["Licenses"]


def test_no_limit_holds_where_the_site_enforces_none() -> None:
    at = site(TresLimits(group=(("mem", 1),), group_minutes=(("cpu", 0),)), enforce=False, licences={"a": 1})
    assert jobs(at, licenses=["a", "a"])[0].start.tolist() == [0, 10]


def test_gpus_are_of_the_type_that_is_requested() -> None:
    # gres.html: "--gres=gpu:kepler:2". A file without a GPU type does not define the type of its nodes.
    kinds = ("a100", "v100", "gpu")
    machines = tuple(Node(f"n{place}", 4, 1000, gpus=2, gpu_kind=kind) for place, kind in enumerate(kinds))

    def where(count: int, wanted: list[str]) -> list[list[str]]:
        parts = (SitePartition("all", tuple(node.name for node in machines[:count])),)
        at = Site(machines[:count], parts, "all", scheduling=QUICK)
        size = len(wanted)
        columns: dict[str, Any] = {
            "submit": [0] * size,
            "runtime": [10] * size,
            "cores": [1] * size,
            "gpus": [2] * size,
        }
        _, scheduler = run(at, **columns, gpu_type=wanted)
        return [sorted(scheduler.nodes_of(row)) for row in range(size)]

    assert where(2, ["v100", "a100", ""]) == [["n1"], ["n0"], ["n0"]]
    assert where(3, ["v100", "v100"]) == [["n1"], ["n2"]]
    assert where(2, ["h100", "a100"])[1] == ["n0"]


def test_a_limit_of_a_type_counts_jobs_on_such_gpus() -> None:
    # resource_limits.html: a limit on a type does not block a job that names no type, but its allocation counts.
    at = site(TresLimits(group=(("gres/gpu:a100", 2),)))
    typed = replace(at, nodes=tuple(replace(node, gpu_kind="a100") for node in at.nodes))
    assert jobs(typed, gpus=[2, 1], gpu_type=["a100", "a100"])[0].start.tolist() == [0, 10]
    assert jobs(typed, gpus=[2, 1], gpu_type=["a100", ""])[0].start.tolist() == [0, 1]
    assert jobs(typed, gpus=[2, 1], gpu_type=["", "a100"])[0].start.tolist() == [0, 10]
