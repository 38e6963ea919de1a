"""Jobs above a time limit: rejected, clipped to the limit, or split into a chain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.entities.walltime_limit import limited_jobs
from gridsim.errors import InputError
from gridsim.metrics.availability import runs_of, spent_in_runs
from gridsim.metrics.utilisation import busy_cores, queue_length
from gridsim.model.checkpoints import Checkpoints
from gridsim.model.failures import Failures
from gridsim.model.platform import Platform
from gridsim.model.site import Association, Preemption, Qos, Site, SitePartition
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.record import Record, Status
from gridsim.scenario import transformed
from gridsim.simulation import simulate
from gridsim.testing.invariants import assert_valid
from gridsim.testing.schedule_reader import validate
from tests.policy.slurm.running import QUICK, SECOND, nodes

HOUR = 3600


def site(longest: int = NEVER, count: int = 2, **more: Any) -> Site:
    names = tuple(f"n{number}" for number in range(1, count + 1))
    part = SitePartition("batch", names, longest=longest)
    return Site(nodes(count), (part,), "batch", scheduling=QUICK, **more)


def jobs(**columns: Any) -> Workload:
    labels = {name: columns.pop(name) for name in [*columns] if name in ("user", "after", "withdrawn", "partition")}
    return Workload.from_columns(**columns, labels=labels)


def ran(workload: Workload, where: Site, limits: Any, **options: Any) -> Record:
    found = simulate(workload, policy=Slurm(site=where), limits=limits, **options).record
    assert_valid(found, capacity=where.capacity())
    return found


LONG = {"submit": [0, 1], "runtime": [10 * HOUR, HOUR], "estimate": [12 * HOUR, 2 * HOUR], "cores": [8, 8]}


def test_a_job_above_the_limit_is_rejected_clipped_or_split() -> None:
    where = site(4 * HOUR * SECOND)
    refused, clipped, split = (ran(jobs(**LONG), where, how) for how in ("refuse", "clip", "split"))
    assert refused.status.tolist() == [Status.unadmitted, Status.completed]
    assert clipped.status.tolist() == [Status.killed_walltime, Status.completed]
    assert clipped.held.tolist() == [4 * HOUR, HOUR]
    assert clipped.workload.estimate.tolist() == [4 * HOUR * SECOND, 2 * HOUR * SECOND]
    assert clipped.workload.runtime.tolist() == jobs(**LONG).runtime.tolist()
    assert split.status.tolist() == [Status.completed] * 2
    assert split.held.tolist() == [10 * HOUR, HOUR]
    assert split.beyond is not None
    assert split.beyond.pieces.tolist() == [2, 0]


def test_each_piece_is_submitted_when_the_one_before_has_ended_and_the_response_spans_the_chain() -> None:
    split = ran(jobs(**LONG), site(4 * HOUR * SECOND), "split")
    assert split.beyond is not None
    # The other job was ahead in the queue when the first piece ended.
    assert split.start[1] == pytest.approx(4 * HOUR, abs=2)
    first = int(split.beyond.start_us[1]) / SECOND
    assert first == pytest.approx(5 * HOUR, abs=4)
    assert split.response[0] == pytest.approx(11 * HOUR, abs=10)
    assert split.wait[0] == pytest.approx(HOUR, abs=10)
    assert split.response[0] == split.wait[0] + split.held[0]


def test_the_cores_of_a_chain_are_held_by_its_pieces_and_not_between_them() -> None:
    split = ran(jobs(**LONG), site(4 * HOUR * SECOND), "split")
    busy = busy_cores(split)
    assert busy.max(0.0, 12.0 * HOUR) == 8
    assert split.area.tolist() == [8 * 10 * HOUR, 8 * HOUR]
    start, end, cores = split.holds()
    assert float(((end - start) * cores).sum()) == 8 * 11 * HOUR * SECOND
    assert queue_length(split).at(4.5 * HOUR) == 1  # the second piece waits for the other job


def test_a_job_within_the_limit_is_as_it_was_and_without_a_limit_nothing_changes() -> None:
    for how in ("clip", "split"):
        same = ran(jobs(**LONG), site(), how)
        assert same.beyond is None
        assert same.start_us.tolist() == ran(jobs(**LONG), site(), "refuse").start_us.tolist()


def test_a_job_that_exceeds_what_it_requested_is_killed_in_its_last_piece() -> None:
    workload = jobs(submit=[0], runtime=[10 * HOUR], estimate=[5 * HOUR], cores=[1])
    found = ran(workload, site(2 * HOUR * SECOND), "split")
    assert (found.status[0], found.held[0]) == (Status.killed_walltime, 5 * HOUR)


def test_a_job_that_depends_on_a_job_waits_for_its_last_piece() -> None:
    workload = jobs(submit=[0, 1], runtime=[10 * HOUR, 60], cores=[1, 1], job=[5, 6], after=[-1, 5])
    found = ran(workload, site(4 * HOUR * SECOND), "split")
    assert found.start_us[1] >= found.end_us[0]


def test_users_who_react_wait_for_the_last_piece() -> None:
    workload = jobs(submit=[0, 11 * HOUR], runtime=[10 * HOUR, 60], cores=[1, 1], user=[1, 1])
    reacting = transformed(workload, ["react?reference=easy"], cores=8)
    found = ran(reacting, site(4 * HOUR * SECOND), "split")
    assert found.logged_submit_us is not None
    assert found.workload.submit[1] >= found.end_us[0]


def test_a_chain_that_is_refused_at_once_has_no_further_pieces() -> None:
    where = site(4 * HOUR * SECOND, associations=(Association("root", "ann", most_cores=4),))
    workload = replace(jobs(**LONG, user=[0, 0]), names={"user": ("ann",)})
    found = ran(workload, where, "split")
    assert found.status.tolist() == [Status.unadmitted] * 2
    assert not found.ran.any()


def test_a_chain_that_is_cancelled_on_the_way_ends_there() -> None:
    names = ("n1",)
    parts = (
        SitePartition("low", names, longest=2 * HOUR * SECOND),
        SitePartition("high", names, tier=5, preempt="OFF"),
    )
    where = Site(nodes(1), parts, "low", scheduling=QUICK, preemption=Preemption("partition", "CANCEL"))
    workload = replace(
        jobs(submit=[0, 3 * HOUR], runtime=[10 * HOUR, 60], cores=[4, 4], partition=[0, 1]),
        names={"partition": ("low", "high")},
    )
    found = ran(workload, where, "split")
    assert found.status.tolist() == [Status.cancelled, Status.completed]
    assert found.end[0] == pytest.approx(3 * HOUR, abs=1)
    assert found.beyond is not None
    assert found.beyond.pieces.tolist() == [1, 0]
    assert found.promises is not None
    assert found.promises.cancelled_by.tolist() == [1, NEVER]


def test_the_limit_is_that_of_the_partition_that_allows_most_and_of_qos_and_accounts() -> None:
    parts = (
        SitePartition("short", ("n1",), longest=HOUR * SECOND),
        SitePartition("long", ("n1",), longest=9 * SECOND * HOUR),
    )
    where = Site(
        nodes(1), parts, "short", scheduling=QUICK, qos=(Qos("quick", longest=60 * SECOND),),
        associations=(Association("root", "ann", longest=2 * HOUR * SECOND),),
    )  # fmt: skip
    workload = Workload.from_columns(
        submit=[0] * 4, runtime=[60] * 4, cores=[1] * 4,
        labels={"partition": [0, 1, 1, 1], "qos": [-1, -1, 0, -1], "user": [-1, -1, -1, 0]},
    )  # fmt: skip
    workload = replace(workload, names={"partition": ("short", "short,long"), "qos": ("quick",), "user": ("ann",)})
    found = Slurm(site=where).longest(workload)
    assert (found // SECOND).tolist() == [HOUR, 9 * HOUR, 60, 2 * HOUR]
    assert Slurm(site=replace(where, enforce=False)).longest(workload)[2] == 9 * HOUR * SECOND


def test_textbook_policies_have_no_limit() -> None:
    found = simulate(jobs(**LONG), policy="easy", limits="split", platform=Platform.single(8)).record
    assert found.beyond is None
    assert found.ran.all()


def test_a_limit_that_makes_thousands_of_pieces_is_refused() -> None:
    workload = jobs(submit=[0], runtime=[10 * HOUR], cores=[1])
    with pytest.raises(InputError, match="36000 pieces"):
        limited_jobs(workload, np.array([SECOND]), "split")
    with pytest.raises(InputError, match="neither clipped nor split"):
        limited_jobs(workload, np.array([0]), "clip")


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_pieces_are_no_longer_than_the_limit_and_make_the_whole_job(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    numbers = st.lists(st.integers(1, 40), min_size=n, max_size=n)
    runtime, estimate = data.draw(numbers), data.draw(numbers)
    limit = data.draw(st.integers(1, 20))
    workload = Workload.from_columns(submit=list(range(n)), runtime=runtime, estimate=estimate, cores=[1] * n)
    found = limited_jobs(workload, np.full(n, limit * SECOND), "split")
    if found is None:
        assert max(estimate) <= limit
        return
    asked = found.pieces
    assert (asked.estimate <= limit * SECOND).all()
    assert (asked.estimate > 0).all()
    work = np.minimum(asked.runtime, asked.estimate)
    assert (np.add.reduceat(work, found.first) == np.minimum(workload.runtime, workload.estimate)).all()
    ran(workload, site(limit * SECOND, count=3), "split")


@pytest.mark.parametrize("limits", ["clip", "split"])
def test_schedules_above_limits_are_valid_where_jobs_exceed_their_estimates(limits: Any) -> None:
    columns: dict[str, Any] = LONG | {"runtime": [14 * HOUR, 3 * HOUR]}
    where = site(4 * HOUR * SECOND)
    found = simulate(jobs(**columns), policy=Slurm(site=where), limits=limits, overrun="extend").record
    assert_valid(found, overrun="extend")
    assert found.held.tolist() == [(4 if limits == "clip" else 14) * HOUR, 3 * HOUR]


def test_each_piece_of_a_chain_is_a_run_of_the_job_on_its_nodes() -> None:
    split = ran(jobs(**LONG), site(4 * HOUR * SECOND), "split")
    held = split.allocations
    assert held is not None
    runs = {
        (job, run): (start, end)
        for job, run, start, end in zip(
            held.job.tolist(), held.run.tolist(), held.start_us.tolist(), held.end_us.tolist(), strict=True
        )
    }
    assert split.beyond is not None
    for job in range(len(split)):
        spans = [span for (of, _), span in sorted(runs.items()) if of == job]
        assert spans[-1] == (split.start_us[job], split.end_us[job])
        earlier = split.beyond.job == job
        assert spans[:-1] == list(zip(split.beyond.start_us[earlier], split.beyond.end_us[earlier], strict=True))


def test_the_runs_of_a_chain_keep_their_checkpoints(tmp_path: Path) -> None:
    where = site(4 * HOUR * SECOND)
    plain = ran(jobs(**LONG), where, "split")
    free = Failures(checkpoints=Checkpoints(interval=HOUR, cost=0))
    options = Run(limits="split", failures=free)
    result = simulate(jobs(**LONG), policy=Slurm(site=where), options=options)
    found = result.record
    assert found.start_us.tolist() == plain.start_us.tolist()  # a free checkpoint changes no schedule
    assert found.wait.tolist() == plain.wait.tolist()
    row, start, end, reason, _ = runs_of(found)
    assert row.tolist() == [0, 0, 0, 1]
    assert reason == ["piece", "piece", "completed", "completed"]
    spent = spent_in_runs(found)
    assert (spent.kept // SECOND).tolist() == [4 * HOUR, 4 * HOUR, 2 * HOUR, HOUR]
    assert spent.checkpoints.tolist() == [3, 3, 1, 0]
    assert (end - start).tolist() == (spent.restart + spent.kept + spent.checkpoint + spent.lost).tolist()
    costly = Failures(checkpoints=Checkpoints(interval=HOUR, cost=60))
    result.write(tmp_path / "out")
    assert validate(tmp_path / "out") == []
    result = simulate(jobs(**LONG), policy=Slurm(site=where), options=replace(options, failures=costly))
    assert result.runs["lost"].tolist() == [HOUR - 180, HOUR - 180, 0, 0]  # the limit cuts the fourth hour of a piece
    assert result.jobs["lost_core_seconds"].tolist()[1] == 0
