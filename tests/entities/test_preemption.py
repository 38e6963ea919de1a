"""Runs that are stopped for others: what predictors learn from them, and decisions that stop a run twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.errors import PolicyError
from gridsim.metrics.availability import lost_core_seconds
from gridsim.metrics.resources import share_held
from gridsim.model.checkpoints import Checkpoints
from gridsim.model.failures import Failures
from gridsim.model.tasks import Tasks
from gridsim.model.time import NEVER
from gridsim.options import Run
from gridsim.policy.preemption import Requeue
from gridsim.policy.protocols import Decision, Stop
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.record import Status
from gridsim.report.gantt import pack
from gridsim.report.gantt_rows import by_node
from gridsim.testing.invariants import violations

SECOND = 1_000_000


def _workload() -> gs.Workload:
    """Job 2 stops job 1 from 50 to 70 s; user 1 submits job 3 while job 1 is stopped, and job 4 at its end."""
    return gs.Workload.from_columns(
        submit=[0, 50, 60, 400],
        runtime=[100, 20, 10, 10],
        estimate=[300, 20, 300, 300],
        cores=[4, 4, 1, 1],
        labels={"user": [1, 2, 1, 1], "priority": [0, 1, 0, 0]},
    )


@pytest.mark.parametrize("scheduler", ["easy", "conservative"])
@pytest.mark.parametrize("mode", ["requeue", "suspend", "cancel"])
def test_a_predictor_learns_whole_runs_only(scheduler: str, mode: str) -> None:
    spec = f"{scheduler}?predict=recent(n=1)&preempt={mode}"
    record = gs.simulate(_workload(), platform=gs.Platform.single(4), policy=spec).record
    assert record.predictions is not None
    learnt = record.predictions.prediction_us.tolist()
    assert learnt[2] == 300 * SECOND  # no run of user 1 was complete
    # Job 3 ended last; without job 1, which was cancelled, its own run time is the only one.
    assert learnt[3] == (10 if record.end_us[2] > record.end_us[0] or mode == "cancel" else 100) * SECOND


@pytest.mark.parametrize("mode", ["requeue", "suspend"])
def test_the_whole_run_time_of_a_stopped_job_is_learnt(mode: str) -> None:
    log = gs.Workload.from_columns(
        submit=[0, 50, 400],
        runtime=[100, 20, 10],
        estimate=[300, 20, 300],
        cores=[4, 4, 1],
        labels={"user": [1, 2, 1], "priority": [0, 1, 0]},
    )
    spec = f"easy?predict=recent(n=1)&preempt={mode}"
    record = gs.simulate(log, platform=gs.Platform.single(4), policy=spec).record
    assert record.predictions is not None
    assert record.predictions.prediction_us[2] == 100 * SECOND


def test_a_run_cannot_be_stopped_twice() -> None:
    class Twice(Backfilling):
        def dispatch(self, now: int) -> Decision:
            found = super().dispatch(now)
            stops = [Stop(0, "requeue", grace=0)] * 2 if now == 5 * SECOND else []
            return found._replace(stops=stops)

    log: Any = gs.Workload.from_columns(submit=[0, 5], runtime=[10, 10], cores=[1, 1])
    machine = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=1, capacity={"cores": 2})])
    with pytest.raises(PolicyError, match=r"kills request 0 at 5.0 s, which is not running"):
        gs.simulate(log, platform=machine, policy=Twice())


def test_decisions_of_a_user_defined_scheduler_are_checked_and_carried_out_under_preemption() -> None:
    class Stopping(Backfilling):
        """Stops a request that does not exist; its other decisions are those of its base class."""

        def dispatch(self, now: int) -> Decision:
            return super().dispatch(now)._replace(stops=[Stop(-5, "requeue")])

    scheduler = Stopping(preempt=Requeue())
    with pytest.raises(PolicyError, match=r"stops -5, which is not a request"):
        gs.simulate(_workload(), platform=gs.Platform.single(4), policy=scheduler)


def _as_tasks(jobs: gs.Workload) -> gs.Workload:
    """The same jobs, each as a DAG job of one task."""
    counts = [1] * len(jobs)
    runtime, estimate = jobs.runtime / SECOND, jobs.estimate / SECOND
    tasks = Tasks.from_edges(counts=counts, runtime=runtime, estimate=estimate, cores=jobs.cores, edges=[])
    more = {"labels": jobs.labels, "demands": jobs.demands}
    return gs.Workload.from_tasks(tasks, submit=jobs.submit / SECOND, job=jobs.job, **more)


@pytest.mark.parametrize("mode", ["requeue", "suspend", "cancel", "checkpoint(grace=2)"])
def test_a_task_has_the_record_of_a_separate_job(mode: str) -> None:
    machine = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=3, capacity={"cores": 4, "memory": 8}, gpus=2)])
    stopped = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n, runtime = 14, rng.integers(2, 40, 14)
        demands = [
            gs.Demand(
                tasks=int(rng.integers(1, 4)), each={"cores": int(rng.integers(1, 4))}, gpu=int(rng.choice([0, 500]))
            )
            for _ in range(n)
        ]
        jobs = gs.Workload.from_columns(
            submit=np.sort(rng.integers(0, 80, n)),
            runtime=runtime,
            estimate=runtime + rng.integers(0, 9, n),
            demands=gs.Demands.of(demands),
            labels={"priority": rng.integers(0, 3, n), "checkpoint_interval": np.full(n, 5)},
        )
        failures = Failures([(["n-0"], 30, 50)] if seed % 2 else [], checkpoints=Checkpoints(None, restart=1))
        for policy in ("easy", "conservative"):
            how = {"platform": machine, "policy": f"{policy}?preempt={mode}", "options": Run(failures=failures)}
            rigid, single = gs.simulate(jobs, **how), gs.simulate(_as_tasks(jobs), **how)
            for name in ("runs", "allocations", "suspensions"):
                columns = getattr(single, name)
                assert set(columns.pop("task", ["0"])) == {"0"}
                assert {key: list(map(str, it)) for key, it in columns.items()} == {
                    key: list(map(str, it)) for key, it in getattr(rigid, name).items()
                }
            for name in ("runs", "restarts", "preemptions", "status"):
                assert single.tasks[name].tolist() == rigid.jobs[name].tolist()
            numbers = [each.metrics() for each in (rigid, single)]
            for name in ("preempted_runs", "preempted_jobs", "preempted_core_hours", "lost_core_hours", "utilisation"):
                assert numbers[0][name] == pytest.approx(numbers[1][name], nan_ok=True), name
            assert single.record.holds()[2].sum() == rigid.record.holds()[2].sum()
            assert violations(single.record, platform=machine) == []
            assert violations(rigid.record, platform=machine) == []
            _law(single)
            stopped += int(single.tasks["preemptions"].sum())
    assert stopped > 20


def _law(result: Any) -> None:
    """For completed tasks without suspension: runs = 1 + restarts + preemptions + saves, as the tables state them."""
    tasks, runs = result.tasks, result.runs
    asleep = result.record.interruptions.suspended
    for row in range(len(tasks["job"])):
        own = runs["job"] == tasks["job"][row]
        if tasks["status"][row] == "completed" and (asleep is None or row not in asleep[0]):
            saves = int((runs["reason"][own] == "saved").sum())
            assert own.sum() == tasks["runs"][row] == 1 + tasks["restarts"][row] + tasks["preemptions"][row] + saves
            assert runs["run"][own].tolist() == list(range(1, own.sum() + 1))


@pytest.mark.parametrize("as_tasks", [False, True])
def test_a_job_that_is_suspended_when_a_run_is_stopped_holds_no_cores(as_tasks: bool) -> None:
    jobs, each = _workload(), [{"cores": 4, "memory": 4}, {"cores": 4}, {"cores": 1}, {"cores": 1}]
    jobs = replace(jobs, demands=gs.Demands.of([gs.Demand(tasks=1, each=it) for it in each]))
    machine = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=1, capacity={"cores": 4, "memory": 8})])
    how: Any = {"platform": machine, "policy": "easy?preempt=suspend"}
    result = gs.simulate(_as_tasks(jobs) if as_tasks else jobs, **how, options=Run(until=65))
    record = result.record
    start, end, cores = record.holds()
    assert sorted(zip(start.tolist(), end.tolist(), cores.tolist(), strict=True)) == [
        (0, 50 * SECOND, 4),
        (50 * SECOND, 65 * SECOND, 4),
    ]
    assert record.interruptions is not None
    assert record.interruptions.suspended is not None
    assert record.interruptions.suspended.T.tolist() == [[0, 0, 50 * SECOND, 65 * SECOND, 1]]
    assert result.metrics()["suspended_hours"] == 15 / 3600
    held = result.allocations
    assert list(zip(held["job"].tolist(), held["run"].tolist(), held["cores"].tolist(), strict=True)) == [
        (1, 1, 4), (1, 1, 0), (2, 1, 4),
    ]  # fmt: skip
    assert held["end"][:2].tolist() == pytest.approx([50, np.nan], nan_ok=True)
    if not as_tasks:
        assert result.jobs["status"].tolist() == ["waiting", "running", "waiting"]
        assert result.jobs["suspended"].tolist() == [15, 0, 0]
        drawn = {axis.resource: axis.held["easy"].earlier for axis in by_node({"easy": record.in_stretches})}
        assert np.array(drawn["cores"]).T.tolist() == [[0, 0, 1, 0, 50 * SECOND]]
        assert np.array(drawn["memory"]).T.tolist() == [
            [0, 0, 1, 0, 50 * SECOND],
            [0, 0, 1, 50 * SECOND, 65 * SECOND],
        ]
        assert pack({"easy": record})["suspended"]


def test_lost_work_of_a_stopped_run_is_not_negative() -> None:
    record = gs.simulate(
        _workload(), platform=gs.Platform.single(4), policy="easy?preempt=suspend", options=Run(until=75)
    ).record
    assert record.status_names.tolist() == ["running", "completed", "waiting"]
    assert lost_core_seconds(record).tolist() == [0, 0, 0]


def test_what_a_suspended_run_keeps_is_in_its_allocations() -> None:
    machine = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=1, capacity={"cores": 4, "memory": 8}, gpus=1)])
    demands = [
        gs.Demand(tasks=1, each={"cores": 4, "memory": 4}, gpu=500),
        gs.Demand(tasks=1, each={"cores": 4, "memory": 3}),
    ]
    jobs = gs.Workload.from_columns(
        submit=[0, 50], runtime=[100, 20], demands=gs.Demands.of(demands), labels={"priority": [0, 1]}
    )
    result = gs.simulate(jobs, platform=machine, policy="conservative?preempt=suspend")
    names = ("job", "run", "cores", "memory", "gpus", "start", "end")
    rows = zip(*(result.allocations[name].tolist() for name in names), strict=True)
    assert list(rows) == [
        (1, 1, 4, 4, "0:500", 0, 50),
        (1, 1, 0, 4, "0:500", 50, 70),
        (1, 1, 4, 4, "0:500", 70, 120),
        (2, 1, 4, 3, "", 50, 70),
    ]
    assert violations(result.record, platform=machine) == []
    # 4 of 8 MiB for 120 s, and 3 of them for 20 s.
    assert share_held(result.record, "memory") == pytest.approx((4 * 120 + 3 * 20) / (8 * 120))
    assert share_held(result.record, "cores") == 1


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_a_stopped_run_holds_the_cores_of_the_complete_one_until_it_is_stopped(policy: str) -> None:
    machine = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=3, capacity={"cores": 4, "memory": 8})])
    asleep = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        each = [{"cores": int(rng.integers(1, 4)), "memory": int(rng.integers(0, 3))} for _ in range(14)]
        jobs = gs.Workload.from_columns(
            submit=np.sort(rng.integers(0, 80, 14)),
            runtime=rng.integers(2, 40, 14),
            demands=gs.Demands.of([gs.Demand(tasks=int(rng.integers(1, 4)), each=it) for it in each]),
            labels={"priority": rng.integers(0, 3, 14)},
        )
        until = int(rng.integers(20, 90))
        for workload in (jobs, _as_tasks(jobs)):
            how: Any = {"platform": machine, "policy": f"{policy}?preempt=suspend"}
            stopped = gs.simulate(workload, **how, options=Run(until=until)).record
            runs = [each.holds() for each in (stopped, gs.simulate(workload, **how).record)]
            for now in range(0, until * SECOND, SECOND):
                used = [int(cores[(start <= now) & (end > now)].sum()) for start, end, cores in runs]
                assert used[0] == used[1] <= 12
            assert (runs[0][1] <= until * SECOND).all()
            assert lost_core_seconds(stopped).min() >= 0
            started = stopped.start_us if stopped.tasks is None else stopped.tasks.start_us
            status = stopped.status if stopped.tasks is None else stopped.tasks.status
            asleep += int(((started < NEVER) & (status == Status.waiting)).sum())
    assert asleep > 3  # jobs that are suspended when the run is stopped
