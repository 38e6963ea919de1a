"""Failures, maintenance windows and drains under Slurm's scheduler; the schedules are computed by hand."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gridsim as gs
from gridsim.cli import main
from gridsim.errors import InputError
from gridsim.metrics.availability import runs_of
from gridsim.model.failures import FailureModel, Failures
from gridsim.model.site import Allowed, Preemption, Reservation, Site, SitePartition
from gridsim.model.windows import Window
from gridsim.options import Run
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.record import Record
from gridsim.testing.invariants import violations
from tests.policy.slurm.running import QUICK, SECOND, nodes

TWO = Site.of(nodes=2, cores=4, scheduling=QUICK)
FULL = {"submit": [0, 0, 1], "runtime": [100, 100, 50], "cores": [4, 4, 4]}


def _run(
    failures: Failures | None, site: Site = TWO, *, names: Any = None, instant: Any = "batched", **columns: Any
) -> Record:
    """Return the checked record of jobs on a site; its platform is a pool of cores, the nodes are the policy's."""
    labels = {name: columns.pop(name) for name in list(columns) if name not in ("submit", "runtime", "estimate")}
    cores = labels.pop("cores")
    workload = replace(gs.Workload.from_columns(**columns, cores=cores, labels=labels), names=names or {})
    options = Run(failures=failures, instant=instant)
    record = gs.simulate(workload, platform=site.platform(), policy=Slurm(site=site, boot=0.0), options=options).record
    assert not violations(record, capacity=site.capacity())
    return record


def _runs(record: Record) -> list[tuple[int, float, float, str]]:
    row, start, end, reason, _ = runs_of(record)
    return [*zip(row.tolist(), (start / 1e6).tolist(), (end / 1e6).tolist(), reason, strict=True)]


def _places(record: Record) -> list[tuple[int, str, int]]:
    """Return job, node and begin of each allocation, s."""
    held = record.allocations
    assert held is not None
    rows = zip(held.job.tolist(), held.node.tolist(), held.start_us.tolist(), strict=True)
    return [(job, held.nodes[node], start // SECOND) for job, node, start in rows]


@pytest.mark.parametrize("instant", ["batched", "per-event"])
def test_an_interrupted_job_runs_again_121_s_later_behind_jobs_submitted_before(instant: Any) -> None:
    record = _run(Failures([(["n1"], 10, 20)]), **FULL, instant=instant)
    assert _runs(record) == [
        (0, 0, 10, "failure"),
        (0, 131, 231, "completed"),
        (1, 0, 100, "completed"),
        (2, 20, 70, "completed"),
    ]
    assert sorted(_places(record)) == [(0, "n1", 0), (0, "n1", 131), (1, "n2", 0), (2, "n1", 20)]
    found = record.reasons
    assert found is not None
    why = [(found.words[code], at // SECOND) for code, at in zip(found.word, found.since_us, strict=True)]
    assert ("BeginTime", 10) in why
    # Its place is that of a job submitted at 10 s: a job of 5 s on both nodes, which waits, comes first.
    columns = {"submit": [0, 5], "runtime": [200, 50], "cores": [4, 8], "estimate": [200, 50]}
    assert _runs(_run(Failures([(["n1"], 10, 20)]), **columns))[1:] == [
        (0, 131, 331, "completed"),
        (1, 20, 70, "completed"),
    ]


def test_a_job_that_may_not_be_requeued_fails() -> None:
    site = replace(TWO, preemption=Preemption(requeue=False))
    again, over = "completed", "failed"
    for where, label, status in ((TWO, 0, over), (site, -1, over), (site, 1, again), (TWO, -1, again)):
        record = _run(Failures([(["n1"], 10, 20)]), where, **FULL, requeue=[label, -1, -1])
        assert record.status_names.tolist() == [status, "completed", "completed"]
        assert record.end[0] == (10 if status == "failed" else 231)
    # An option of the job itself has precedence, and one of the run holds for all jobs.
    record = _run(Failures([(["n1"], 10, 20)]), site, **FULL, on_failure=[0, -1, -1])
    assert record.status_names[0] == "completed"
    assert _run(Failures([(["n1"], 10, 20)], on_failure="cancel"), **FULL).status_names[0] == "failed"


def test_what_depends_on_a_failed_job_starts_and_what_depends_on_a_requeued_one_waits() -> None:
    columns = {"submit": [0, 1], "runtime": [100, 10], "cores": [4, 4], "after": [-1, 1]}
    assert _run(Failures([(["n1"], 10, 20)]), **columns, requeue=[0, -1]).start.tolist() == [0, 10]
    assert _run(Failures([(["n1"], 10, 20)]), **columns, requeue=[1, -1]).start.tolist() == [131, 231]


def test_a_job_fails_after_the_most_requeues() -> None:
    often = [(["n1", "n2"], 200 * at, 200 * at + 1) for at in range(1, 9)]
    columns = {"submit": [150], "runtime": [1000], "cores": [4]}
    record = _run(Failures(often), **columns)  # the default of MaxBatchRequeue is 5
    assert [(start, end) for _, start, end, _ in _runs(record)] == [
        (150, 200),
        *((200 * at + 121, 200 * at + 200) for at in range(1, 6)),
    ]
    assert record.status_names.tolist() == ["failed"]
    site = replace(TWO, preemption=Preemption(most_requeues=1))
    assert _run(Failures(often), site, **columns).end.tolist() == [400]
    assert _run(Failures(often, max_restarts=0), site, **columns).end.tolist() == [200]
    assert _run(Failures(often), site, **columns, max_restarts=[2]).end.tolist() == [600]


def test_jobs_end_before_an_announced_window_or_start_after_it() -> None:
    window = Failures(windows=[Window(["n1", "n2"], 50, 200, announced=0)])
    columns = {"submit": [0, 0, 1], "runtime": [30, 30, 30], "cores": [4, 4, 4], "estimate": [51, 50, 49]}
    assert _run(window, **columns).start.tolist() == [200, 0, 1]
    # Of one node: the job runs on the other one, which backfill plans too.
    window = Failures(windows=[Window(["n1"], 50, 200, announced=0)])
    columns = {"submit": [0, 1, 2], "runtime": [60, 60, 40], "cores": [4, 4, 4], "estimate": [60, 60, 40]}
    record = _run(window, **columns)
    assert [place for place in _places(record) if place[0] != 1] == [(0, "n2", 0), (2, "n1", 2)]
    assert record.start.tolist() == [0, 60, 2]


def test_running_jobs_are_interrupted_by_maintenance_and_not_by_a_drain() -> None:
    columns = {"submit": [0, 30], "runtime": [100, 10], "cores": [4, 8]}
    record = _run(Failures(windows=[Window(["n1"], 20, 60)]), **columns)
    assert _runs(record) == [(0, 0, 20, "maintenance"), (0, 141, 241, "completed"), (1, 60, 70, "completed")]
    record = _run(Failures(windows=[Window(["n1"], 20, 60, "drain")]), **columns)
    assert _runs(record) == [(0, 0, 100, "completed"), (1, 100, 110, "completed")]


def test_a_job_that_fits_at_no_known_time_does_not_block_others() -> None:
    columns = {"submit": [20, 30, 31], "runtime": [50, 40, 10], "cores": [8, 4, 4]}
    record = _run(Failures([(["n1"], 10, 500)]), **columns)
    assert record.start.tolist() == [500, 30, 70]
    found = record.reasons
    assert found is not None
    assert [found.words[code] for code in found.word[found.job == 0]] == ["ReqNodeNotAvail"]
    # If the end of the repair is known, it is planned then, and delays others: of 470 s the last would reach into it.
    record = _run(Failures([(["n1"], 10, 500)], repair="announced"), **columns, estimate=[50, 40, 460])
    assert record.start.tolist() == [500, 30, 550]


def test_without_a_repair_it_waits_and_no_job_is_cancelled() -> None:
    site = replace(TWO, priority=replace(TWO.priority, oldest=SECOND))
    columns = {"submit": [0, 20], "runtime": [100, 40], "cores": [8, 4]}
    record = _run(Failures([(["n1"], 10, math.inf)]), site, **columns)
    assert record.status_names.tolist() == ["waiting", "completed"]
    assert _runs(record) == [(0, 0, 10, "failure"), (1, 20, 60, "completed")]
    # Down nodes are no reason to reject a job, but a job that fits on no nodes is rejected.
    record = _run(Failures([(["n1", "n2"], 10, 30)]), submit=[20, 20], runtime=[10, 10], cores=[8, 9])
    assert record.status_names.tolist() == ["completed", "rejected"]
    assert record.start[0] == 30


def test_failures_occur_while_an_interrupted_job_waits_for_its_begin_time() -> None:
    # At 100 s nothing runs, and the job may start again at 131 s.
    record = _run(Failures([(["n1"], 10, 20), (["n1"], 100, 300)]), submit=[0], runtime=[50], cores=[4])
    assert _places(record) == [(0, "n1", 0), (0, "n2", 131)]
    record = _run(Failures(models=[FailureModel(mtbf=300.0, mttr=10.0)]), submit=[0], runtime=[2000], cores=[4])
    assert len(_runs(record)) == 6  # five requeues; most failures occur while it waits
    assert record.status_names.tolist() == ["failed"]


def test_a_gpu_fails_and_the_node_stays() -> None:
    site = replace(TWO, nodes=nodes(1, gpus=2), partitions=(SitePartition("batch", ("n1",)),))
    columns = {"submit": [0, 0, 20], "runtime": [100, 100, 50], "cores": [1, 1, 2], "gpus": [1, 1, 1]}
    record = _run(Failures([(["n1:0"], 10, 110)]), site, **columns)
    assert _runs(record) == [
        (0, 0, 10, "failure"),
        (0, 131, 231, "completed"),
        (1, 0, 100, "completed"),
        (2, 100, 150, "completed"),
    ]
    held = record.allocations
    assert held is not None
    rows = zip(held.job[held.gpu_row].tolist(), held.gpu.tolist(), held.start_us[held.gpu_row].tolist(), strict=True)
    assert [(job, gpu) for job, gpu, start in rows if start == 0 or job == 2] == [(0, 0), (1, 1), (2, 1)]


@pytest.mark.parametrize("instant", ["batched", "per-event"])
def test_a_gpu_may_fail_when_its_job_ends(instant: Any) -> None:
    site = replace(TWO, nodes=nodes(1, gpus=2), partitions=(SitePartition("batch", ("n1",)),))
    columns = {"submit": [0, 1, 1], "runtime": [10, 20, 20], "cores": [1, 1, 1], "gpus": [1, 2, 1]}
    record = _run(Failures([(["n1:0"], 10, 40)]), site, **columns, instant=instant)
    assert record.status_names.tolist() == ["completed"] * 3
    assert record.start.tolist() == [0, 40, 10]


def test_a_job_of_whole_nodes_gets_the_gpus_that_are_present_and_all_are_free_after_it() -> None:
    site = replace(TWO, nodes=nodes(1, gpus=2), partitions=(SitePartition("batch", ("n1",)),))
    columns = {"submit": [5, 6, 6], "runtime": [30, 10, 10], "cores": [4, 1, 1], "gpus": [0, 1, 2]}
    record = _run(Failures([(["n1:1"], 1, 20)]), site, **columns, exclusive=[1, 0, 0])
    assert record.start.tolist() == [5, 35, 45]
    held = record.allocations
    assert held is not None
    gpus = [(int(held.job[row]), int(gpu)) for row, gpu in zip(held.gpu_row, held.gpu, strict=True)]
    assert gpus == [(0, 0), (1, 0), (2, 0), (2, 1)]
    # Two GPUs are needed: it waits, and does not block others.
    columns = {"submit": [5, 6], "runtime": [30, 100], "cores": [4, 1], "gpus": [2, 1]}
    assert _run(Failures([(["n1:1"], 1, 20)]), site, **columns).start.tolist() == [106, 6]


def test_reservations_of_the_site_apply_together_with_windows() -> None:
    booked = Reservation("booked", ("n1",), 50 * SECOND, 100 * SECOND, users=Allowed(("ann",)))
    site = replace(TWO, reservations=(booked,))
    jobs = {"submit": [0, 0, 45], "runtime": [60, 60, 20], "cores": [4, 4, 4], "estimate": [60, 60, 20]}
    labels = {"user": [0, 0, 0], "reservation": [-1, -1, 0]}
    names = {"user": ("ann",), "reservation": ("booked",)}
    assert _run(Failures(), site, **jobs, **labels, names=names).start.tolist() == [0, 60, 50]
    # n2 fails: the first job has no node before 70 s, and the member waits until 70 s, when n1 is back.
    failures = Failures([(["n1"], 40, 70), (["n2"], 5, 300)])
    record = _run(failures, site, **jobs, **labels, names=names)
    assert [run for run in _runs(record) if run[0] == 2] == [(2, 70, 90, "completed")]
    # A member that is interrupted, and could end only after the reservation, is cancelled.
    failures = Failures([(["n1"], 60, 61)], windows=[Window(["n2"], 1000, 1001)])
    record = _run(failures, site, **jobs, **labels, names=names)
    assert record.status_names.tolist() == ["completed", "completed", "cancelled"]


SUSPEND = Preemption("partition", "SUSPEND")
ONE = {"submit": [0, 10], "runtime": [100, 30], "cores": [4, 4], "partition": [0, 1]}


def _tiers(count: int = 1, preemption: Preemption = SUSPEND, **more: Any) -> Site:
    """Return a site with nodes of two partitions, the second of which may preempt the first."""
    names = tuple(node.name for node in nodes(count))
    parts = (SitePartition("low", names), SitePartition("high", names, tier=5, preempt="OFF"))
    return Site(nodes(count, **more), parts, "low", scheduling=QUICK, preemption=preemption, memory=bool(more))


def _paused(site: Site, failures: Failures | None = None, **columns: Any) -> tuple[Record, list[tuple[int, ...]]]:
    """Return the record of jobs of two partitions, and job, begin, end (s) and preemptor of each suspension."""
    record = _run(failures, site, names={"partition": ("low", "high")}, **columns)
    assert record.interruptions is not None
    found = record.interruptions.suspended
    rows = [] if found is None else sorted(found.T.tolist())
    return record, [(job, begin // SECOND, end // SECOND, by) for job, _, begin, end, by in rows]


@pytest.mark.parametrize("instant", ["batched", "per-event"])
def test_a_suspended_job_continues_when_its_cores_are_free(instant: Any) -> None:
    record, paused = _paused(_tiers(), **ONE, instant=instant)
    assert (record.start.tolist(), record.end.tolist()) == ([0, 10], [130, 40])
    assert paused == [(0, 10, 40, 1)]
    # Its walltime does not advance while it is suspended, and its planned end moves: a job of both nodes starts later.
    record, _ = _paused(_tiers(), **ONE, estimate=[60, 30], instant=instant)
    assert record.end.tolist() == [90, 40]
    assert record.status_names.tolist() == ["killed_walltime", "completed"]
    columns = {"submit": [0, 0, 10, 41, 51, 51], "runtime": [100, 20, 30, 10, 80, 78], "cores": [4, 4, 8, 8, 4, 4]}
    record, _ = _paused(_tiers(2), **columns, partition=[0, 0, 1, 0, 0, 0], instant=instant)
    assert record.start.tolist() == [0, 0, 10, 130, 140, 51]


def test_two_jobs_are_suspended_for_one_and_one_for_two() -> None:
    columns = {"submit": [0, 0, 10], "runtime": [100, 100, 30], "cores": [2, 2, 4], "partition": [0, 0, 1]}
    record, paused = _paused(_tiers(), **columns)
    assert (record.end.tolist(), paused) == ([130, 130, 40], [(0, 10, 40, 2), (1, 10, 40, 2)])
    # The second one arrives while the first runs: when that ends, the suspended job does not start in between.
    columns = {"submit": [0, 10, 20], "runtime": [100, 30, 20], "cores": [4, 4, 4], "partition": [0, 1, 1]}
    record, paused = _paused(_tiers(), **columns)
    assert (record.start.tolist(), record.end.tolist()) == ([0, 10, 40], [150, 40, 60])
    assert paused == [(0, 10, 60, 1)]


def test_cores_that_the_preemptor_leaves_free_are_for_all() -> None:
    columns = {"submit": [0, 10, 12], "runtime": [100, 30, 50], "cores": [4, 2, 2], "partition": [0, 1, 0]}
    record, paused = _paused(_tiers(), **columns)
    assert record.start.tolist() == [0, 10, 12]
    assert paused == [(0, 10, 62, 1)]


def test_a_suspended_job_keeps_memory_and_gpus() -> None:
    for memory, start in ((200, 10), (201, 100)):
        record, paused = _paused(_tiers(memory=1000), **ONE, memory_mb=[800, memory])
        assert (record.start[1], len(paused)) == (start, int(start == 10))
    for gpus, start in ((1, 10), (2, 100)):
        record, paused = _paused(_tiers(gpus=2), **ONE, memory_mb=[1, 1], gpus=[1, gpus])
        assert (record.start[1], len(paused)) == (start, int(start == 10))
        held = record.allocations
        assert held is not None
        pairs = zip(held.job[held.gpu_row].tolist(), held.gpu.tolist(), strict=True)
        assert {gpu for job, gpu in pairs if job == 1} == ({1} if gpus == 1 else {0, 1})
    # A node with a suspended job is not idle, so no job is suspended for one of whole nodes.
    record, paused = _paused(_tiers(), **ONE, exclusive=[0, 1])
    assert (record.start[1], paused) == (100, [])


def test_a_failure_hits_a_suspended_job_and_a_drain_keeps_it_out() -> None:
    record, paused = _paused(_tiers(), Failures([(["n1"], 20, 30)]), **ONE)
    assert paused == [(0, 10, 20, 1)]
    assert _runs(record) == [
        (0, 0, 20, "failure"),
        (0, 171, 271, "completed"),
        (1, 10, 20, "failure"),
        (1, 141, 171, "completed"),
    ]
    drain = Failures(windows=[Window(["n1"], 20, 80, "drain")])
    record, paused = _paused(_tiers(), drain, **ONE)
    assert (paused, record.end.tolist()) == ([(0, 10, 80, 1)], [170, 40])


def test_a_gpu_returns_to_a_node_whose_only_job_is_suspended() -> None:
    # The job of the whole node has GPU 0 alone, is suspended from 10 s to 40 s, and GPU 1 returns at 20 s.
    failures = Failures([(["n1:1"], 0, 20)])
    columns = {"submit": [1, 10, 11, 11], "runtime": [50, 30, 10, 10], "cores": [4, 4, 2, 2]}
    site = _tiers(gpus=2)
    record, paused = _paused(
        site, failures, **columns, memory_mb=[1] * 4, partition=[0, 1, 0, 0], exclusive=[1, 0, 0, 0], gpus=[0, 0, 2, 1]
    )
    assert paused == [(0, 10, 40, 1)]
    assert record.start.tolist() == [1, 10, 81, 91]


def test_jobs_submitted_during_the_run_see_absent_nodes_and_gpus() -> None:
    site = replace(TWO, nodes=nodes(2, gpus=2), partitions=(SitePartition("batch", ("n1", "n2")),))
    first = gs.Workload.from_columns(submit=[0], runtime=[5], cores=[8], labels={"gpus": [0]})
    world = gs.World(first, site.platform(), Slurm(site=site, boot=0.0), Run(failures=Failures()))
    world.run(until=10)
    world.fail(["n1", "n2:0"], 100)
    for gpus in (1, 2):
        world.submit({"cores": 1, "runtime": 20, "gpus": gpus})
    world.run()
    assert world.record().start.tolist() == [0, 10, 100]


def test_what_is_not_supported_is_an_error() -> None:
    jobs = {"submit": [0], "runtime": [10], "cores": [4]}
    with pytest.raises(InputError, match=r"not supported by Slurm"):
        _run(Failures(spares=1), **jobs)
    window = Window(["n1"], 10, 20, "reservation", id="booked", users=["ann"])
    booked = Reservation("booked", ("n1",), 10 * SECOND, 20 * SECOND, users=Allowed(("ann",)))
    assert _run(Failures(windows=[window]), replace(TWO, reservations=(booked,)), **jobs).start.tolist() == [0]
    with pytest.raises(InputError, match="slurm, which has those of its parameter reservations"):
        _run(Failures(windows=[window]), **jobs)


def test_a_site_is_simulated_with_failures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "slurm.conf").write_text(
        "SelectType=select/cons_tres\nMaxBatchRequeue=0\nNodeName=n[1-2] CPUs=4\nPartitionName=a Nodes=ALL\n"
    )
    rows = [f"{job} {job} -1 100 4 -1 -1 4 100 -1 1 1 1 -1 -1 -1 -1 -1\n" for job in (1, 2, 3)]
    (tmp_path / "log.swf").write_text("".join(rows))
    (tmp_path / "down.csv").write_text("node,down,up\nn1,10,20\nn2,10,20\n")
    asked = ["compare", str(tmp_path / "log.swf"), "--site", str(tmp_path / "slurm.conf"), "--no-page"]
    assert main([*asked, "--failures", str(tmp_path / "down.csv"), "--out", str(tmp_path / "out")]) == 0
    assert "failures: 1 failure of" in capsys.readouterr().out
    ends = {}
    for policy in ("site", "easy"):
        rows = csv.DictReader((tmp_path / "out" / policy / "jobs.csv").open())
        ends[policy] = [(float(row["end"]), row["status"]) for row in rows]
    # Times count from the first submission, 1 s; EASY starts the interrupted jobs again before the third one.
    assert ends["site"] == [(10, "failed"), (10, "failed"), (120, "completed")]
    assert ends["easy"] == [(120, "completed"), (120, "completed"), (220, "completed")]
