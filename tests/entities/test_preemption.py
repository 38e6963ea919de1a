"""Runs that are stopped for others: what predictors learn from them, and decisions that stop a run twice."""

from __future__ import annotations

from typing import Any

import pytest

import gridsim as gs
from gridsim.errors import PolicyError
from gridsim.policy.preemption import Requeue
from gridsim.policy.protocols import Decision, Stop
from gridsim.policy.scheduler.backfilling import Backfilling

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
