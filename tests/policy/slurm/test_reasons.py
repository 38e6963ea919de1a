"""Reasons of waiting under Slurm: each reason with its start and end, calculated by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.model.site import (
    Allowed,
    Association,
    Preemption,
    Priority,
    Qos,
    Reservation,
    Scheduling,
    Site,
    SitePartition,
)
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.policy.queue import Requests
from gridsim.policy.slurm.entry_columns import demands_of
from gridsim.policy.slurm.limits import limits_of
from gridsim.policy.slurm.queue_entries import Owner
from gridsim.policy.slurm.reasons import OVER, WORDS, Diary
from gridsim.record import Reasons, Record

from .running import QUICK, SECOND, nodes, run


def told(record: Record) -> dict[int, list[tuple[str, float, float]]]:
    """Return reason, start and end in s, by row."""
    reasons = record.reasons
    assert reasons is not None
    found: dict[int, list[tuple[str, float, float]]] = {}
    for job, word, since, until in zip(reasons.job, reasons.word, reasons.since_us, reasons.until_us, strict=True):
        span = (reasons.words[word], since / SECOND, float("inf") if until >= NEVER else until / SECOND)
        found.setdefault(int(job), []).append(span)
    return found


def reasons_of(record: Record) -> Reasons:
    assert record.reasons is not None
    return record.reasons


def test_the_first_of_a_partition_waits_for_resources_and_those_behind_for_priority() -> None:
    site = Site.of(nodes=2, cores=4, scheduling=QUICK)
    record, _ = run(site, submit=[0, 1, 2], runtime=[100, 10, 200], cores=[4, 8, 4])
    assert record.start.tolist() == [0, 100, 110]
    assert told(record) == {1: [("Resources", 1, 100)], 2: [("Priority", 2, 100), ("Resources", 100, 110)]}


def test_a_wait_for_the_next_cycle_is_no_wait_for_others() -> None:
    # Backfill runs every 30 s: job 2 fits from 2 on together with job 0, and ends before job 1 can start.
    slow = replace(QUICK, interval=30 * SECOND)
    record, _ = run(Site.of(nodes=2, cores=4, scheduling=slow), submit=[0, 1, 2], runtime=[100, 9, 9], cores=[4, 8, 4])
    assert record.start.tolist() == [0, 100, 30]
    assert told(record)[2] == [("None", 2, 30)]


def test_capacity_in_another_partition_is_none() -> None:
    two = nodes(4)
    parts = (SitePartition("long", ("n1", "n2")), SitePartition("short", ("n3", "n4")))
    site = Site(two, parts, "long", scheduling=QUICK)
    record, _ = run(site, submit=[0, 1], runtime=[50, 50], cores=[8, 4], partition=["long", "long"])
    assert told(record) == {1: [("Resources", 1, 50)]}
    reasons = reasons_of(record)
    assert reasons.eligible.tolist() == [8, 8]
    assert reasons.free.tolist() == [8, 0]


RARE = Scheduling(interval=3600 * SECOND)


def shared(count: int, scheduling: Scheduling = RARE, tier: int = 2, preempts: bool = False) -> Site:
    """Return a site with nodes of partition *low*; the last two also belong to *high*."""
    every = nodes(count)
    names = tuple(node.name for node in every)
    parts = (SitePartition("low", names), SitePartition("high", names[-2:], tier=tier))
    preemption = Preemption("partition", "REQUEUE") if preempts else Preemption()
    return Site(every, parts, "low", scheduling=scheduling, priority=Priority(kind="basic"), preemption=preemption)


@pytest.mark.parametrize("tier", [1, 2])
@pytest.mark.parametrize("scheduling", [RARE, Scheduling(interval=30 * SECOND)], ids=["rare", "often"])
@pytest.mark.parametrize(("least", "reason"), [(3, "Resources"), (-1, "ReqNodeNotAvail")])
def test_a_job_that_lacks_only_nodes_of_a_blocked_partition_blocks_nothing(
    tier: int, scheduling: Scheduling, least: int, reason: str
) -> None:
    record, scheduler = run(
        shared(3, scheduling, tier),
        submit=[0, 10, 20, 31],
        runtime=[600, 600, 600, 60],
        cores=[8, 8, 12, 2],
        nodes=[-1, -1, least, -1],
        partition=["high", "high", "low", "low"],
    )
    assert record.start.tolist() == [0, 600, 1200, 31]
    assert scheduler.nodes_of(3) == {"n1": 2}
    assert told(record)[2][0] == (reason, 20, 600 if least < 0 else 1200)


@pytest.mark.parametrize(
    ("alone", "whole", "preempts", "blocks"),
    [(1, -1, False, True), (-1, 1, False, True), (-1, -1, False, False), (1, -1, True, False), (-1, 1, True, False)],
)
def test_a_node_that_is_closed_to_a_job_makes_it_block_its_partition_without_preemption(
    alone: int, whole: int, preempts: bool, blocks: bool
) -> None:
    # Job 0 holds n1, n3 and n4 are reserved for job 2, and job 3 needs all four nodes; job 4 would fit on n2.
    record, _ = run(
        shared(4, preempts=preempts),
        submit=[0, 5, 10, 20, 30],
        runtime=[1000, 600, 600, 600, 60],
        cores=[2, 8, 8, 16, 2],
        exclusive=[alone, -1, -1, whole, -1],
        partition=["low", "high", "high", "low", "low"],
    )
    assert record.start[:3].tolist() == [0, 5, 605]
    assert (record.start[4] > 600) == blocks
    assert told(record)[3][0][0] == ("Resources" if blocks else "ReqNodeNotAvail")


def test_nodes_without_memory_gpus_or_a_feature_are_not_counted_as_free() -> None:
    kinds = (*nodes(1, features=("fast",), gpus=2), *(replace(each, name="n2") for each in nodes(1)))
    site = Site.of(nodes=1, cores=4)
    site = Site(kinds, (SitePartition("batch", ("n1", "n2")),), "batch", scheduling=QUICK, memory=True)
    columns: dict[str, Any] = {"submit": [0, 1, 2], "runtime": [50, 50, 50], "cores": [1, 1, 1]}
    record, _ = run(site, **columns, memory_mb=[900, 200, 900], gpus=[2, 2, -1], constraint=["fast", "", ""])
    assert reasons_of(record).eligible.tolist() == [4, 4, 8]
    assert reasons_of(record).free.tolist() == [4, 0, 4]
    assert record.start.tolist() == [0, 50, 2]


def test_a_limit_is_reported_by_its_reason_while_it_holds() -> None:
    levels = (Qos("normal", user_jobs=1),)
    site = Site.of(nodes=1, cores=4, scheduling=QUICK, qos=levels)
    record, _ = run(site, submit=[0, 1, 2], runtime=[10, 10, 30], cores=[1, 1, 4], user=["a", "a", "b"])
    assert record.start.tolist() == [0, 10, 20]
    assert told(record)[1] == [("QOSMaxJobsPerUserLimit", 1, 10)]
    assert told(record)[2] == [("Resources", 2, 20)]


def test_every_limit_has_the_word_of_slurm() -> None:
    own = Association("phys", user="a", most_jobs=1, group_cores=9)
    level = Qos("low", group_jobs=1, group_cores=9, user_jobs=1, user_cores=9, account_jobs=1, account_cores=9)
    site = Site.of(nodes=1, cores=4, associations=(Association("phys", group_jobs=1, group_cores=9), own), qos=(level,))
    owners = [Owner("phys", "a", "low", array=3, array_limit=2)]
    requests = Requests(Workload.from_columns(submit=[0], runtime=[1], cores=[1]))
    limits, *_ = limits_of(site, owners, requests, demands_of(requests, site, owners))
    words = {WORDS[code] for code in (*limits.jobs_code, *limits.cores_code)}
    assert words == {
        "JobArrayTaskLimit",
        "AssocMaxJobsLimit",
        "AssocGrpCpuLimit",
        "AssocGrpJobsLimit",
        "QOSGrpJobsLimit",
        "QOSGrpCpuLimit",
        "QOSMaxJobsPerUserLimit",
        "QOSMaxCpuPerUserLimit",
        "MaxJobsPerAccount",
        "MaxCpuPerAccount",
    }


def test_begin_times_and_dependencies_are_reported_until_they_are_reached() -> None:
    site = Site.of(nodes=1, cores=4, scheduling=QUICK)
    record, _ = run(
        site, submit=[0, 1, 2], runtime=[20, 5, 5], cores=[1, 1, 1], job=[1, 2, 3], begin=[-1, 9, -1], after=[-1, -1, 1]
    )
    assert told(record) == {1: [("BeginTime", 1, 10)], 2: [("Dependency", 2, 20)]}


def test_nodes_that_are_kept_for_a_reservation_are_not_available() -> None:
    kept = Reservation("maint", ("n1",), 30 * SECOND, 60 * SECOND, flags=frozenset(["MAINT"]))
    site = Site.of(nodes=1, cores=4, scheduling=QUICK, reservations=(kept,))
    record, _ = run(site, submit=[0], runtime=[50], cores=[4])
    assert record.start.tolist() == [60]
    assert told(record) == {0: [("ReqNodeNotAvail", 0, 60)]}
    assert reasons_of(record).eligible.tolist() == [4]
    assert reasons_of(record).free.tolist() == [0]


def test_a_job_waits_for_the_reservation_that_it_requests() -> None:
    own = Reservation("course", ("n1",), 30 * SECOND, 90 * SECOND, users=Allowed(("ann",)))
    site = Site.of(nodes=2, cores=4, scheduling=QUICK, reservations=(own,))
    record, _ = run(site, submit=[0], runtime=[50], cores=[4], user=["ann"], reservation=["course"])
    assert record.start.tolist() == [30]
    assert told(record) == {0: [("Reservation", 0, 30)]}
    assert reasons_of(record).eligible.tolist() == [4]


def test_partitions_that_share_no_node_are_separate_pools() -> None:
    parts = (
        SitePartition("long", ("n1", "n2")),
        SitePartition("debug", ("n2",)),
        SitePartition("gpu", ("n3",)),
    )
    site = Site(nodes(3), parts, "long", scheduling=QUICK)
    record, _ = run(site, submit=[0, 0, 0], runtime=[9, 9, 9], cores=[1, 1, 1], partition=["long", "debug", "gpu"])
    assert reasons_of(record).pool.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("columns", "parts", "expected"),
    [
        ({"estimate": [400.0]}, {"longest": 100 * SECOND}, ("PartitionTimeLimit", 400, 100, "s", "MaxTime")),
        ({"cores": [9]}, {}, ("PartitionConfig", 9, 8, "cores", "nodes")),
        ({"nodes": [2], "cores": [2]}, {"most_nodes": 1}, ("PartitionNodeLimit", 2, 1, "nodes", "MaxNodes")),
        (
            {"account": ["x"]},
            {"accounts": Allowed(("y",))},
            ("AccountNotAllowed", "account x", None, "", "AllowAccounts"),
        ),
        ({"constraint": ["gpu"]}, {}, ("BadConstraints", "the requested features", None, "", "nodes")),
        ({}, {"state": "DOWN"}, ("PartitionDown", "a job while partition p is DOWN", None, "", "State")),
    ],
)
def test_a_rejected_job_has_the_rule_of_its_rejection(
    columns: dict[str, Any], parts: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    more = nodes(3)
    other = SitePartition("other", ("n3",))
    site = Site(more, (SitePartition("p", ("n1", "n2"), **parts), other), "p", scheduling=QUICK)
    record, _ = run(site, **({"submit": [0], "runtime": [50], "cores": [1]} | columns))
    reasons = reasons_of(record)
    why = reasons.refused[0]
    assert (*why[:4], why.rule) == (*expected[:4], f"{expected[4]} of partition p")
    assert told(record) == {0: [(why.reason, 0, float("inf"))]}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (
            {"qos": (Qos("normal", user_cores=2),)},
            ("QOSMaxCpuPerUserLimit", 3, 2, "cores", "MaxTRESPerUser of QOS normal"),
        ),
        ({"qos": (Qos("normal", group_cores=2),)}, ("QOSGrpCpuLimit", 3, 2, "cores", "GrpTRES of QOS normal")),
        (
            {"qos": (Qos("normal", account_cores=2),)},
            ("MaxCpuPerAccount", 3, 2, "cores", "MaxTRESPerAccount of QOS normal"),
        ),
        (
            {"qos": (Qos("normal", user_jobs=0),)},
            ("QOSMaxJobsPerUserLimit", 1, 0, "jobs", "MaxJobsPerUser of QOS normal"),
        ),
        (
            {"associations": (Association("phys", group_cores=2), Association("phys", user="a"))},
            ("AssocGrpCpuLimit", 3, 2, "cores", "GrpTRES of account phys"),
        ),
        (
            {"associations": (Association("phys"), Association("phys", user="a", group_cores=2))},
            ("AssocGrpCpuLimit", 3, 2, "cores", "GrpTRES of user a in account phys"),
        ),
        (
            {"associations": (Association("phys"), Association("phys", user="a", most_jobs=0))},
            ("AssocMaxJobsLimit", 1, 0, "jobs", "MaxJobs of user a in account phys"),
        ),
    ],
)
def test_a_limit_that_holds_on_an_empty_machine_is_reported_with_its_owner(
    parts: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    site = Site.of(nodes=1, cores=4, scheduling=QUICK, **parts)
    record, _ = run(site, submit=[0], runtime=[5], cores=[3], user=["a"], account=["phys"])
    assert reasons_of(record).refused[0] == expected


def test_a_limit_on_submissions_is_reported_with_how_many_there_were() -> None:
    site = Site.of(nodes=1, cores=4, scheduling=QUICK, qos=(Qos("normal", user_submitted=1, longest=60 * SECOND),))
    columns: dict[str, Any] = {"runtime": [9, 9, 9], "cores": [1, 1, 1], "user": ["a", "a", "b"]}
    record, _ = run(site, submit=[0, 1, 2], **columns, estimate=[9, 9, 99])
    refused = reasons_of(record).refused
    assert refused[1] == ("QOSMaxSubmitJobPerUserLimit", 2, 1, "jobs", "MaxSubmitJobsPerUser of user a")
    assert refused[2] == ("QOSMaxWallDurationPerJobLimit", 99, 60, "s", "MaxWall of QOS normal")


def test_reasons_of_some_jobs_keep_to_their_jobs() -> None:
    site = Site.of(nodes=2, cores=4, scheduling=QUICK)
    record, _ = run(site, submit=[0, 1, 2, 3], runtime=[100, 10, 200, 9], cores=[4, 8, 4, 1])
    part = record.select(np.array([3, 2]))
    assert told(part)[1] == told(record)[2]
    assert reasons_of(part).eligible.tolist() == [8, 8]
    assert told(record.select(slice(0, 1))) == {}


def test_a_word_that_is_put_down_late_replaces_later_ones() -> None:
    diary = Diary(2, 2)
    for request, word, at in ((0, 5, 0), (1, 6, 1), (0, 7, 4), (0, 5, 2), (0, OVER, 9), (1, OVER, 1)):
        diary.say(request, word, at)
    assert [column.tolist() for column in diary.spans()] == [[0], [5], [0], [9]]


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_the_words_of_a_wait_fill_it_without_a_gap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    levels = (Qos("normal", user_jobs=2, group_cores=7),)
    parts = (SitePartition("p", ("n1", "n2")), SitePartition("q", ("n2", "n3"), tier=2))
    scheduling = replace(QUICK, interval=7 * SECOND, batch_delay=3 * SECOND)
    site = Site(nodes(3), parts, "p", scheduling=scheduling, qos=levels)
    record, _ = run(
        site,
        submit=np.sort(rng.integers(0, 40, n)),
        runtime=rng.integers(1, 30, n),
        cores=rng.integers(1, 7, n),
        user=rng.choice(["a", "b"], n).tolist(),
        partition=rng.choice(["p", "q", "p,q"], n).tolist(),
    )
    for row in range(n):
        spans = told(record).get(row, [])
        if record.ran[row]:
            assert sum(until - since for _, since, until in spans) == pytest.approx(record.wait[row])
            edges = [record.submit[row], *(until for *_, until in spans)]
            assert [since for _, since, _ in spans] == edges[:-1]
            assert edges[-1] == record.start[row]
