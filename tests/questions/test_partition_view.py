"""Free cores count on the eligible nodes or cluster of a job, and reasons of waits have the scheduler's names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.errors import InputError
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.site import Allowed, Node, Qos, Scheduling, Site, SitePartition
from gridsim.model.workload import Workload
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.questions.calibrate import calibrate
from gridsim.questions.explain import explain
from gridsim.questions.schedules import JobSchedule, read_schedules
from gridsim.report.explain_text import sentences
from gridsim.report.validation import why
from gridsim.result import Result

SECOND = 1_000_000
QUICK = Scheduling(interval=30 * SECOND, resolution=1, full_interval=5 * SECOND, batch_delay=0, queue_depth=500)
NODES = tuple(Node(f"n{number}", 4, 1000) for number in range(1, 19))
LONG, GPU = tuple(node.name for node in NODES[:16]), tuple(node.name for node in NODES[16:])
SITE = Site(
    NODES,
    (
        SitePartition("long", LONG, longest=4 * 86_400 * SECOND),
        SitePartition("gpu", GPU, accounts=Allowed(never=("bio",))),
    ),
    "long",
    scheduling=QUICK,
    qos=(Qos("normal", user_jobs=1),),
)
NAMES = {"partition": ("", "long", "gpu"), "user": ("", "ann", "bob", "eve"), "account": ("", "phys", "bio")}


def jobs(**more: Any) -> Workload:
    """The gpu partition is full from 0 to 100, all 64 cores of the other one are free.

    2 and 3 wait for it, 3 also for another job of its user; 4 exceeds the time limit; 5 is not allowed; 6 is too wide.
    """
    log = Workload.from_columns(
        submit=[0, 1, 2, 3, 4, 5],
        runtime=[100, 10, 10, 10, 10, 10],
        estimate=[100, 10, 10, 365 * 86_400, 10, 10],
        cores=[8, 8, 1, 1, 1, 400],
        labels={"partition": [2, 2, 2, 1, 2, 1], "user": [1, 2, 1, 3, 3, 3], "account": [1, 1, 1, 1, 2, 1]},
        **more,
    )
    return replace(log, names=NAMES)


@pytest.fixture(scope="module")
def replayed() -> Result:
    return gs.simulate(jobs(), platform=SITE.platform(), policy=Slurm(site=SITE, boot=0.0))


def told(result: Result, job: int, label: str = "slurm") -> str:
    return " ".join(sentences(explain(JobSchedule.of(result.record, result.platform), job), label))


def test_a_full_partition_is_not_reported_as_free(replayed: Result) -> None:
    said = told(replayed, 2)
    assert "requested 8 cores of 8 eligible (the machine has 72)" in said
    assert "At its submission, 0 cores were free on eligible nodes." in said
    assert "Reasons for its wait: 1 min 39 s Resources (eligible nodes had too few free resources)." in said
    assert "there were enough" not in said


def test_limits_and_waits_for_the_next_cycle_have_these_names(replayed: Result) -> None:
    # Job 1 of the same user ends at 100; the backfill cycle is at 120, when job 2 has also ended.
    said = told(replayed, 3)
    assert "1 min 38 s QOSMaxJobsPerUserLimit (a limit of the site)" in said
    slow = replace(SITE, scheduling=replace(QUICK, queue_depth=1))
    log = Workload.from_columns(submit=[0, 1, 2], runtime=[100, 9, 9], cores=[4, 72, 4], labels={})
    late = gs.simulate(
        log, platform=slow.platform(), policy=Slurm(site=Site.of(nodes=18, cores=4, scheduling=QUICK), boot=0.0)
    )
    assert "Reasons for its wait: 28 s until the next scheduling cycle." in told(late, 3)


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (4, "unadmitted because 365 d is above MaxTime 4 d of partition long"),
        (5, "unadmitted because account bio is not allowed by AllowAccounts of partition gpu"),
        (6, "rejected: needs 400 cores, the machine has 72"),
    ],
)
def test_a_job_that_never_ran_is_reported_with_its_reason(replayed: Result, job: int, why: str) -> None:
    assert f"did not run under slurm ({why})" in told(replayed, job)


@pytest.mark.parametrize("table", ["csv", pytest.param("parquet", marks=pytest.mark.parquet)])
def test_a_folder_reports_the_same(replayed: Result, table: str, tmp_path: Path) -> None:
    replayed.write(tmp_path, table=table)
    (read,) = read_schedules(tmp_path).values()
    for job in replayed.workload.job.tolist():
        assert " ".join(sentences(explain(read, job), "slurm")) == told(replayed, job)
    assert (tmp_path / "reasons.csv").read_text().startswith("job,reason,from,until\n")


def test_a_damaged_file_of_reasons_is_refused(replayed: Result, tmp_path: Path) -> None:
    replayed.write(tmp_path)
    (tmp_path / "reasons.csv").write_text("job,reason,from,until\n99,Priority,0,1\n")
    with pytest.raises(InputError, match="has job 99, which is not in"):
        read_schedules(tmp_path)
    (tmp_path / "reasons.csv").write_text("job,why\n1,Priority\n")
    with pytest.raises(InputError, match=r"reasons\.csv, field 'reason': is missing"):
        read_schedules(tmp_path)


def test_a_run_of_another_policy_leaves_no_reasons_behind(replayed: Result, tmp_path: Path) -> None:
    replayed.write(tmp_path)
    gs.simulate(jobs(), platform=SITE.platform(), policy="easy").write(tmp_path)
    assert not (tmp_path / "reasons.csv").exists()
    assert not (tmp_path / "refused.csv").exists()


def test_a_policy_that_pools_partitions_says_so() -> None:
    pooled = gs.simulate(jobs(), platform=SITE.platform(), policy="easy")
    assert "64 cores were free in all partitions, which this policy treats as one pool" in told(pooled, 2, "easy")


def test_capacity_on_several_clusters_is_that_of_the_one_where_the_job_ran(tmp_path: Path) -> None:
    grid = Platform(RouterSpec("root", (ClusterSpec("a", 8), ClusterSpec("b", 4))))
    log = Workload.from_columns(submit=[0, 1, 2, 3], runtime=[50, 60, 9, 9], cores=[8, 4, 8, 1])
    result = gs.simulate(log, platform=grid, policy="fcfs", balancer="earliest-start")
    said = told(result, 3, "fcfs")
    assert said.startswith("Job 3 requested 8 cores of 8 in a (the machine has 12)")
    assert "0 cores were free in a; until its start, there were never enough free cores for it" in said
    assert "While it waited, the job with the most core-hours there was job 1 (8 cores, 100 %)" in said
    result.write(tmp_path)
    (read,) = read_schedules(tmp_path).values()
    assert " ".join(sentences(explain(read, 3), "fcfs")) == said


def test_the_largest_disagreements_look_at_the_nodes_of_the_job() -> None:
    log = jobs(logged={"wait": np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])})
    found = calibrate(log, {"site": Slurm(site=SITE, boot=0.0)}, platform=SITE.platform())
    assert found.apart[0][0].job in (2, 3)
    assert {waiting.scope for _, waiting in found.apart} == {"nodes"}
    replays = [" ".join(lines) for lines in why(found)]
    assert "eligible" in replays[0]
    assert not any("there were enough" in replay for replay in replays)
