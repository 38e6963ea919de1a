"""Preemption as in preempt.html: which jobs are preempted, in which order, when, and with which effect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.site import Association, Preemption, Priority, Qos, Site, SitePartition
from gridsim.record import Status
from tests.policy.slurm.running import QUICK, SECOND, nodes, run

NAMES = tuple(node.name for node in nodes(3))


def tiers(count: int, preemption: Preemption, *, cores: int = 4, low: dict[str, Any] | None = None) -> Site:
    """Return a site with nodes of two partitions, the second of which may preempt the first."""
    names = NAMES[:count]
    parts = (SitePartition("low", names, **(low or {})), SitePartition("high", names, tier=5, preempt="OFF"))
    return Site(nodes(count, cores), parts, "low", scheduling=QUICK, preemption=preemption)


def levels(count: int, preemption: Preemption, qos: tuple[Qos, ...]) -> Site:
    return replace(Site.of(nodes=count, cores=4, scheduling=QUICK, preemption=preemption), qos=qos)


ONE = {"submit": [0, 10], "runtime": [100, 30], "cores": [4, 4], "partition": ["low", "high"]}


def test_a_requeued_job_keeps_its_number_and_begins_again_two_minutes_later() -> None:
    record, _ = run(tiers(1, Preemption("partition", "REQUEUE")), **ONE)
    assert record.start.tolist() == [131, 10]
    assert record.end.tolist() == [231, 40]
    assert record.kills.tolist() == [1, 0]
    assert record.lost.tolist() == [40, 0]
    assert record.status.tolist() == [Status.completed, Status.completed]


def test_a_cancelled_job_ends_where_it_was_stopped() -> None:
    record, _ = run(tiers(1, Preemption("partition", "CANCEL")), **ONE)
    assert record.start.tolist() == [0, 10]
    assert record.end.tolist() == [10, 40]
    assert record.status.tolist() == [Status.cancelled, Status.completed]


def test_a_job_that_may_not_be_requeued_is_cancelled_and_the_site_has_a_default() -> None:
    site = tiers(1, Preemption("partition", "REQUEUE"))
    for label, default, status in ((0, True, 4), (1, False, 0), (-1, False, 4), (-1, True, 0)):
        changed = replace(site, preemption=replace(site.preemption, requeue=default))
        record, _ = run(changed, **ONE, requeue=[label, -1])
        assert record.status[0] == status


def test_grace_lets_a_cancelled_job_run_on_and_the_other_one_waits_for_it() -> None:
    site = tiers(1, Preemption("partition", "CANCEL"), low={"grace": 15 * SECOND})
    record, _ = run(site, **ONE)
    assert (record.end[0], record.start[1]) == (25, 25)
    # A job that ends within its grace period has completed.
    record, _ = run(site, **ONE | {"runtime": [20, 30]})
    assert (record.end[0], record.start[1], record.status[0]) == (20, 20, Status.completed)
    # preempt.html: "this option is only honored if PreemptMode=CANCEL".
    record, _ = run(replace(site, preemption=Preemption("partition", "REQUEUE")), **ONE)
    assert record.start[1] == 10


def test_during_a_grace_period_no_other_job_is_preempted() -> None:
    site = tiers(2, Preemption("partition", "CANCEL"), low={"grace": 15 * SECOND})
    record, slurm = run(
        site, submit=[0, 0, 10], runtime=[100, 100, 30], cores=[4, 4, 4], partition=["low", "low", "high"]
    )
    assert record.start[2] == 25
    assert len(slurm.ended_at) == 1


def test_a_partition_without_preemption_and_one_of_the_same_tier_are_left_alone() -> None:
    site = tiers(1, Preemption("partition", "REQUEUE"), low={"preempt": "OFF"})
    assert run(site, **ONE)[0].start.tolist() == [0, 100]
    site = tiers(1, Preemption("partition", "REQUEUE"), low={"tier": 5})
    assert run(site, **ONE)[0].start.tolist() == [0, 100]


def test_a_partitions_own_mode_comes_before_that_of_the_site() -> None:
    site = tiers(1, Preemption("partition", "REQUEUE"), low={"preempt": "CANCEL"})
    assert run(site, **ONE)[0].status[0] == Status.cancelled


def test_nothing_is_preempted_where_there_is_capacity() -> None:
    record, slurm = run(tiers(2, Preemption("partition", "REQUEUE")), **ONE)
    assert record.start.tolist() == [0, 10]
    assert not slurm.ended_at


def test_nothing_is_preempted_that_would_not_help() -> None:
    site = tiers(2, Preemption("partition", "REQUEUE"))
    # The second one of the higher partition leaves too few cores, whichever other jobs are preempted.
    record, slurm = run(
        site, submit=[0, 0, 5], runtime=[50, 50, 20], cores=[4, 4, 8], partition=["low", "high", "high"]
    )
    assert record.start.tolist() == [0, 0, 50]
    assert [at for _, at, _ in slurm.ended_at] == []


def test_smaller_jobs_go_first_and_the_candidates_are_put_in_another_order_once() -> None:
    # preempt.html: "to start an 8 node job, the ordered preemption candidates may be 2 node, 4 node and 8 node".
    many = nodes(14, 1)
    names = tuple(node.name for node in many)
    parts = (SitePartition("low", names), SitePartition("high", names, tier=5))
    site = Site(many, parts, "low", scheduling=QUICK, preemption=Preemption("partition", "REQUEUE"))
    columns = {
        "submit": [0, 0, 0, 10],
        "runtime": [100, 100, 100, 30],
        "cores": [2, 4, 8, 8],
        "nodes": [2, 4, 8, 8],
        "partition": ["low", "low", "low", "high"],
    }
    _, slurm = run(site, **columns)
    assert [request for request, _, _ in slurm.ended_at] == [2]
    strict = replace(site, preemption=replace(site.preemption, strict_order=True))
    _, slurm = run(strict, **columns)
    assert sorted(request for request, _, _ in slurm.ended_at) == [0, 1, 2]


def test_the_youngest_goes_first_where_the_site_says_so() -> None:
    columns = {
        "submit": [0, 1, 10],
        "runtime": [100, 100, 30],
        "cores": [2, 4, 2],
        "nodes": [1, 2, 1],
        "partition": ["low", "low", "high"],
    }
    for youngest, gone in ((False, 0), (True, 1)):
        site = tiers(2, Preemption("partition", "REQUEUE", youngest_first=youngest), cores=3)
        _, slurm = run(site, **columns)
        assert [request for request, _, _ in slurm.ended_at][:1] == [gone]


def test_a_job_is_exempt_until_it_has_run_for_long_enough() -> None:
    site = tiers(1, Preemption("partition", "REQUEUE", exempt=60 * SECOND))
    assert run(site, **ONE)[0].start[1] == 60
    own = replace(site, qos=(Qos("normal", exempt=20 * SECOND),))
    assert run(own, **ONE, qos=["normal", "normal"])[0].start[1] == 20
    none = replace(site, qos=(Qos("normal", exempt=0),))
    assert run(none, **ONE, qos=["normal", "normal"])[0].start[1] == 10


def test_a_qos_preempts_those_that_it_names_the_lowest_priority_first() -> None:
    qos = (
        Qos("urgent", 5, preempts=("cheap", "plain")),
        Qos("plain", 9),
        Qos("cheap", 1, mode="CANCEL"),
        Qos("own", 2),
    )
    site = levels(3, Preemption("qos", "REQUEUE"), qos)
    record, slurm = run(
        site,
        submit=[0, 0, 0, 10],
        runtime=[100, 100, 100, 30],
        cores=[4, 4, 4, 4],
        qos=["plain", "own", "cheap", "urgent"],
    )
    assert slurm.ended_at == [(2, 10, False)]
    assert record.start[3] == 10
    # Priority does not define which jobs may preempt (sacctmgr(1)).
    record, slurm = run(
        site, submit=[0, 0, 0, 10], runtime=[100] * 4, cores=[4] * 4, qos=["own", "own", "own", "plain"]
    )
    assert not slurm.ended_at


def test_the_grace_of_a_qos_holds_for_requeued_jobs_too() -> None:
    qos = (Qos("urgent", 5, preempts=("cheap",)), Qos("cheap", 1, grace=7 * SECOND))
    record, _ = run(
        levels(1, Preemption("qos", "REQUEUE"), qos),
        submit=[0, 10],
        runtime=[50, 30],
        cores=[4, 4],
        qos=["cheap", "urgent"],
    )
    assert record.start.tolist() == [17 + 121, 17]


def test_a_qos_can_be_suspended() -> None:
    qos = (Qos("urgent", 5, preempts=("cheap",)), Qos("cheap", 1, mode="SUSPEND"))
    record, _ = run(
        levels(1, Preemption("qos", "REQUEUE"), qos),
        submit=[0, 10],
        runtime=[50, 30],
        cores=[4, 4],
        qos=["cheap", "urgent"],
    )
    assert record.start.tolist() == [0, 10]
    assert record.end.tolist() == [80, 40]


def test_backfill_preempts_for_a_lower_job_and_reserves_the_whole_nodes_for_the_cycle() -> None:
    parts = (SitePartition("low", NAMES[:2]), SitePartition("high", NAMES[:2], tier=5))
    # Only backfill examines jobs after the first waiting one of "high", which needs both nodes; one is not available.
    backfill = replace(QUICK, full_interval=1000 * SECOND)
    site = Site(nodes(2), parts, "low", scheduling=backfill, preemption=Preemption("partition", "REQUEUE"))
    record, slurm = run(
        site,
        submit=[0, 0, 1, 2, 3],
        runtime=[100, 100, 50, 30, 30],
        cores=[4, 4, 8, 1, 3],
        partition=["high", "low", "high", "high", "low"],
        estimate=[100, 100, 50, 30, 30],
    )
    assert record.start[0] == 0
    assert slurm.ended_at[0][:2] == (1, 2)
    assert record.promises is not None
    assert record.promises.killed_by.tolist() == [3]
    assert record.start[3] == 3  # in a later backfill cycle
    # The whole node is reserved for the preemptor in that cycle; the next cycle sees the cores that it leaves free.
    assert record.start[4] == 3


def test_requeued_jobs_leave_their_limits_and_are_charged_for_their_use() -> None:
    people = (Association("root", "ann", most_jobs=1), Association("root", "bob"))
    site = replace(tiers(1, Preemption("partition", "REQUEUE")), associations=people)
    record, slurm = run(
        site,
        submit=[0, 10, 20],
        runtime=[100, 30, 10],
        cores=[4, 4, 4],
        partition=["low", "high", "low"],
        user=["ann", "bob", "ann"],
    )
    assert record.start.tolist() == [131, 10, 40]
    leaf = slurm._priorities.leaf[0]
    assert slurm._priorities.shares.used[leaf] == pytest.approx(4 * (10 + 100 + 10), rel=0.01)


def test_a_job_that_may_preempt_another_one_precedes_it_whatever_the_tiers() -> None:
    # A real Slurm 22.05 had this result (tests/published/slurm-queues), although both "can preempt".
    parts = (SitePartition("low", NAMES[:1]), SitePartition("high", NAMES[:1], tier=5))
    qos = (Qos("top", preempts=("middle", "least")), Qos("middle", preempts=("least",)), Qos("least"))
    site = Site(nodes(1), parts, "low", scheduling=QUICK, preemption=Preemption("qos", "REQUEUE"), qos=qos)
    record, _ = run(
        site,
        submit=[0, 1, 2, 3],
        runtime=[20, 5, 5, 5],
        cores=[4] * 4,
        partition=["low", "high", "high", "low"],
        qos=["top", "middle", "least", "top"],
    )
    assert record.start.tolist() == [0, 25, 30, 20]


@pytest.mark.long
def test_an_endless_run_is_an_error() -> None:
    # A job that needs both nodes keeps no freed node (bf_min_prio_reserve): each of the other jobs is restarted before
    # the grace period of the other one is over.
    qos = (
        Qos("urgent", preempts=("plain", "long")),
        Qos("plain", grace=50 * SECOND),
        Qos("long", grace=60 * SECOND),
    )
    site = levels(2, Preemption("qos", "REQUEUE", delay=2 * SECOND), qos)
    site = replace(site, scheduling=replace(QUICK, least_priority=1 << 40))
    jobs = {"submit": [0, 0, 10], "runtime": [1000, 1000, 50], "cores": [4, 4, 8], "job": [11, 12, 13]}
    with pytest.raises(InputError, match=r"preempts jobs 11, 12 in an endless loop: 1000 times"):
        run(site, **jobs, qos=["plain", "long", "urgent"])


def test_a_job_that_is_preempted_by_one_job_after_the_other_may_be_so_any_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gridsim.policy.slurm.preemption.ENDLESS", 1)
    site = tiers(1, Preemption("partition", "REQUEUE"))
    columns = {"submit": [0, 10, 200], "runtime": [100, 30, 30], "cores": [4] * 3, "partition": ["low", "high", "high"]}
    assert run(site, **columns)[0].kills.tolist() == [2, 0, 0]


@st.composite
def mixed(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(2, 16))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    runtime = column(st.integers(1, 80))
    return {
        "submit": sorted(column(st.integers(0, 60))),
        "runtime": runtime,
        "estimate": [max(1, time + draw(st.integers(-5, 30))) for time in runtime],
        "cores": column(st.integers(1, 10)),
        "memory_mb": column(st.sampled_from([-1, 100, 500])),
        "partition": column(st.sampled_from(["low", "mid", "high", "low,high"])),
        "qos": column(st.sampled_from(["a", "b", "c"])),
        "user": column(st.sampled_from(["ann", "bob"])),
        "requeue": column(st.sampled_from([-1, 0])),
    }


FOR_EVER: dict[str, Any] = {
    "submit": [2, 7, 16, 26, 31, 41, 46, 47, 54, 60],
    "runtime": [77, 57, 43, 61, 41, 68, 26, 9, 46, 30],
    "estimate": [100, 83, 58, 74, 43, 93, 44, 25, 51, 34],
    "cores": [9, 4, 3, 3, 7, 10, 1, 6, 10, 3],
    "memory_mb": [100, -1, 500, 500, 500, 100, -1, 100, 500, 100],
    "partition": ["low,high", "low,high", "mid", "mid", "low,high", "mid", "mid", "low,high", "low", "low"],
    "qos": ["a", "b", "a", "a", "b", "b", "b", "a", "a", "a"],
    "user": ["bob", "ann", "bob", "ann", "ann", "ann", "bob", "ann", "bob", "bob"],
    "requeue": [-1, -1, -1, 0, -1, -1, 0, 0, -1, 0],
}
"""Regression: jobs preempted one another endlessly if the queue order ignored preemption."""


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@example(FOR_EVER, "qos", 9, 12, True)
@given(mixed(), st.sampled_from(["partition", "qos"]), st.sampled_from([0, 9]), st.sampled_from([0, 12]), st.booleans())
def test_only_those_give_way_that_may_and_every_job_ends_once(
    columns: dict[str, Any], kind: Any, grace: int, exempt: int, strict: bool
) -> None:
    parts = (
        SitePartition("low", NAMES[:3], preempt="CANCEL", grace=grace * SECOND),
        SitePartition("mid", NAMES[1:3], tier=2),
        SitePartition("high", NAMES[:2], tier=3),
    )
    qos = (
        Qos("a", 9, preempts=("b", "c")),
        Qos("b", 5, preempts=("c",), grace=grace * SECOND),
        Qos("c", 1, mode="CANCEL"),
    )
    rules = Preemption(kind, "REQUEUE", exempt=exempt * SECOND, strict_order=strict, delay=20 * SECOND)
    site = Site(
        nodes(3), parts, "low", scheduling=QUICK, preemption=rules, qos=qos, memory=True, default_core_memory=50
    )
    record, slurm = run(site, **columns)
    tier = {part.name: part.tier for part in parts}
    began: dict[int, float] = {}
    partition: dict[int, str] = {}
    events = [(at, 1, row) for row in slurm.begun for at in [row[1]]]
    stops = [(at, 0, (request, again)) for request, at, again in slurm.ended_at]
    for at, begins, what in sorted([*stops, *events], key=lambda each: each[:2]):
        if begins:
            began[what[0]], partition[what[0]] = at, what[3]
            continue
        request, again = what
        assert at - began[request] >= exempt
        may = columns["requeue"][request] != 0
        if kind == "partition":
            assert any(
                tier[name] > tier[partition[request]] for names in columns["partition"] for name in names.split(",")
            )
            assert again == (may and partition[request] != "low")
        else:
            assert columns["qos"][request] != "a"
            assert again == (may and columns["qos"][request] != "c")
    cancelled = {request for request, _, again in slurm.ended_at if not again}
    assert set(np.flatnonzero(record.status == Status.cancelled).tolist()) == cancelled
    again = [request for request, _, anew in slurm.ended_at if anew]
    assert record.kills.tolist() == [again.count(row) for row in range(len(record))]
    for request in set(again) - cancelled:
        assert record.status[request] == Status.completed


def test_grace_that_ends_as_priorities_are_made_is_over_after_that() -> None:
    # A cycle at 5.25, as a job on the other node ends, gives job 0 grace until 20.25, when priorities are recalculated.
    # By then job 2 has reached the largest age (12 s), and job 4 is ahead of it.
    parts = (
        SitePartition("low", ("n1",), grace=15 * SECOND),
        SitePartition("high", ("n1",), tier=5, preempt="OFF"),
        SitePartition("other", ("n2",)),
    )
    order = Priority(age=1000, oldest=12 * SECOND, period=10 * SECOND)
    site = Site(nodes(2), parts, "low", scheduling=QUICK, preemption=Preemption("partition", "CANCEL"), priority=order)
    columns: dict[str, Any] = {
        "submit": [0, 0, 3, 5.2, 9],
        "runtime": [100, 5.25, 10, 30, 30],
        "estimate": [100, 10, 10, 30, 30],
        "cores": [4, 4, 2, 2, 2],
        "partition": ["low", "other", "low", "high", "low"],
        "priority_nice": [0, 0, 200, 0, 0],
    }
    record, _ = run(site, **columns)
    assert record.end[0] == 20.25
    assert record.start[[3, 4]].tolist() == [20.25, 20.25]
    assert record.start[2] > 50
