"""One run from workload to record."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from gridsim.errors import InputError, PolicyError
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.workload import Workload
from gridsim.policy.ordering import Random, ShortestEstimate
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.record import Status
from gridsim.simulation import Run, run, simulate

JOBS = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[3, 2, 1], cores_stated=4)
POLICIES = ["fcfs", "easy", "conservative", "first-fit", "depth", "wfp3", "easy?ordering=random"]


@pytest.mark.parametrize(("policy", "starts"), [("fcfs", [0, 10, 10]), ("easy", [0, 10, 2]), ("sjf", [0, 10, 2])])
def test_three_jobs_on_four_cores_start_when_they_must(policy: str, starts: list[int]) -> None:
    assert simulate(JOBS, policy=policy).record.start.tolist() == starts


def test_the_machine_is_what_the_workload_states_unless_one_is_given() -> None:
    assert simulate(JOBS).platform.cores == 4
    assert simulate(JOBS, platform=Platform.single(6)).record.start.tolist() == [0, 1, 2]


def test_a_workload_that_does_not_state_its_machine_needs_one() -> None:
    jobs = Workload.from_columns(submit=[0], runtime=[1], cores=[1])
    with pytest.raises(InputError, match="does not state the size of its machine"):
        simulate(jobs)


def test_rigid_jobs_are_spread_over_the_clusters_of_a_tree() -> None:
    platform = Platform(RouterSpec("root", (ClusterSpec("a", 4), ClusterSpec("b", 4))))
    record = simulate(JOBS, platform=platform).record
    assert (record.start.tolist(), record.cluster.tolist()) == ([0, 1, 2], [0, 1, 1])


def test_a_rigid_job_wider_than_every_cluster_of_a_tree_is_rejected() -> None:
    platform = Platform(RouterSpec("root", (ClusterSpec("a", 2), ClusterSpec("b", 2))))
    assert simulate(JOBS, platform=platform).record.status.tolist() == [
        Status.rejected,
        Status.completed,
        Status.completed,
    ]


@pytest.mark.parametrize("policy", POLICIES)
def test_without_jobs_nothing_happens(policy: str) -> None:
    jobs = Workload.from_columns(submit=[], runtime=[], cores=[])
    result = simulate(jobs, platform=Platform.single(4), policy=policy)
    assert len(result.record) == 0
    assert result.metrics()["submitted"] == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_wider_jobs_than_the_machine_are_rejected_and_counted(policy: str) -> None:
    jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[5, 5, 5], cores=[5, 4, 9])
    result = simulate(jobs, platform=Platform.single(4), policy=policy)
    assert result.record.status.tolist() == [Status.rejected, Status.completed, Status.rejected]
    metrics = result.metrics()
    assert (metrics["submitted"], metrics["completed"], metrics["rejected"]) == (3, 1, 2)


def test_a_simulation_need_not_start_at_zero() -> None:
    jobs = Workload.from_columns(submit=[1e9, 1e9 + 0.25], runtime=[10.5, 1], cores=[4, 1])
    assert (simulate(jobs, platform=Platform.single(4), policy="fcfs").record.start - 1e9).tolist() == [0, 10.5]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"overrun": "forgive"}, "field 'overrun': is 'forgive'; expected one of kill, extend"),
        ({"instant": "later"}, "field 'instant': is 'later'; expected one of batched, per-event"),
        ({"seed": -1}, "field 'seed': is -1; expected a whole number from 0"),
        ({"seed": "x"}, "field 'seed': is 'x'; expected a whole number from 0"),
        ({"tick": 0}, "field 'tick': is 0; expected a number from 1e-06"),
        ({"tick": 1e-9}, "field 'tick'"),
        ({"tick": float("nan")}, "field 'tick'"),
        ({"tick": "1"}, "field 'tick': is '1'; expected a number from 1e-06"),
    ],
)
def test_an_option_that_is_none_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        simulate(JOBS, **options)


def test_a_policy_object_can_be_used_again_and_is_not_changed() -> None:
    scheduler = Backfilling(ordering=Random())
    before = dict(vars(scheduler))
    once, again = (run(JOBS, Platform.single(4), scheduler).start.tolist() for _ in range(2))
    assert once == again
    assert vars(scheduler) == before


def test_a_policy_is_a_text_an_ordering_or_a_scheduler() -> None:
    texts = {
        simulate(JOBS, policy=policy).policy
        for policy in ("sjf", ShortestEstimate(), "backfilling?ordering=sjf&reserve=strict")
    }
    assert texts == {"Backfilling(ordering=ShortestEstimate(), reserve=Strict())"}


def test_a_policy_without_a_repr_is_reported_without_its_address() -> None:
    class Plain:
        def rank(self, queue: Any, now: float) -> Any:
            return queue.cores

    told = simulate(JOBS, policy=Plain()).policy
    assert "Plain object" in told
    assert " at 0x" not in told


def test_another_policy_meets_the_same_jobs() -> None:
    first, second = (simulate(JOBS, policy=policy) for policy in ("fcfs", "easy"))
    assert first.workload is second.workload is JOBS


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_does_not_change_its_workload(policy: str) -> None:
    before = {name: column.copy() for name, column in JOBS.columns()}
    simulate(JOBS, policy=policy)
    for name, column in JOBS.columns():
        np.testing.assert_array_equal(column, before[name])


def test_progress_is_reported_and_an_interrupt_is_passed_on() -> None:
    n = 5000
    jobs = Workload.from_columns(submit=np.arange(n), runtime=np.ones(n), cores=1)
    told: list[int] = []
    simulate(jobs, platform=Platform.single(4), engine="simpy", progress=told.append)
    assert told == [2048, 4096, 5000]

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(jobs, platform=Platform.single(4), progress=interrupt)


def test_an_error_of_a_plug_in_is_reported_with_the_policy_and_the_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("class Broken:\n    def rank(self, queue, now):\n        return queue.widths\n")
    told = r"Broken object> failed in rank in line 3 of .*broken.py: AttributeError: 'Queue' object has"
    with pytest.raises(PolicyError, match=told):
        simulate(JOBS, policy=f"{path}:Broken")


def test_an_error_in_the_setup_of_a_plug_in_is_reported_too() -> None:
    class Broken:
        def setup(self, rng: Any) -> None:
            raise ZeroDivisionError("no")

        def rank(self, queue: Any, now: float) -> Any:
            return queue.cores

    with pytest.raises(PolicyError, match=r"failed in setup.*: ZeroDivisionError: no"):
        simulate(JOBS, policy=Broken())


def test_options_may_come_together_and_each_on_its_own() -> None:
    options = Run(overrun="extend", seed=5)
    assert simulate(JOBS, options=options).options == simulate(JOBS, overrun="extend", seed=5).options
    assert simulate(JOBS, options=options, seed=0).options["seed"] == 0
    left_out = {"partitions": None, "until": None, "failures": None}
    assert simulate(JOBS).options | left_out == {**asdict(Run()), "tick": 1.0}
    assert simulate(JOBS, partitions="pooled").options["partitions"] == "pooled"
    assert Run().seed == 1


def test_options_are_those_that_the_result_reports() -> None:
    result = simulate(JOBS, overrun="extend", instant="per-event", seed=3, tick=2.0)
    told = {"overrun": "extend", "instant": "per-event", "seed": 3, "tick": 2.0}
    assert result.options == {
        **told,
        "balancer": "expected-queue",
        "split": "task",
        "limits": "refuse",
        "engine": "auto",
    }
    assert Run(**result.options) == Run("extend", "per-event", 3, 2.0)


def test_options_may_come_together_and_be_changed_one_by_one() -> None:
    together = Run(overrun="extend", balancer="round-robin", split="kind-group")
    result = simulate(JOBS, options=together, tick=2.0, balancer="random")
    assert Run(**result.options) == Run("extend", tick=2.0, balancer="random", split="kind-group")


def test_the_tick_is_that_of_the_workload_unless_one_is_given() -> None:
    jobs = Workload.from_columns(submit=[0.0], runtime=[1.5], cores=1, provenance={"tick": 0.001})
    platform = Platform.single(1)
    assert simulate(jobs, platform=platform).options["tick"] == 0.001
    assert simulate(jobs, platform=platform, tick=2.0).options["tick"] == 2.0
    plain = Workload.from_columns(submit=[0.0], runtime=[1.5], cores=1)
    assert simulate(plain, platform=platform).options["tick"] == 1.0


def test_a_job_cancelled_while_waiting_never_arrives_at_a_policy_without_support_for_it() -> None:
    jobs = Workload.from_columns(
        submit=[0, 1, 2], runtime=[10, 1, 10], cores=[4, 4, 4], labels={"withdrawn": [-1, 5, -1]}, cores_stated=4
    )
    for policy in ("fcfs", "easy", "conservative"):
        for instant in ("batched", "per-event"):
            record = simulate(jobs, policy=policy, instant=instant).record
            assert record.status.tolist() == [Status.completed, Status.cancelled, Status.completed]
            assert record.start[[0, 2]].tolist() == [0, 10]
            assert np.isnan(record.start[1])


class Curious(Backfilling):
    """Wants to know when second 0 was."""

    epoch: float | None = None
    heard: ClassVar[list[float | None]] = []

    def setup(self, *args: Any) -> None:
        self.heard.append(self.epoch)
        super().setup(*args)


def test_a_policy_that_needs_the_begin_of_the_log_gets_it() -> None:
    jobs = Workload.from_columns(submit=[0], runtime=[1], cores=[1], cores_stated=4)
    dated = jobs.with_provenance(header={"UnixStartTime": ["1000"]}, transforms=[{"shift": 7}])
    asked, given = Curious(), Curious()
    given.epoch = 5.0
    exact = Workload.from_columns(submit=[0.25], runtime=[1], cores=[1], cores_stated=4, provenance=dated.provenance)
    for workload, policy in ((exact, asked), (dated, asked), (jobs, asked), (dated, given)):
        simulate(workload, policy=policy)
    assert Curious.heard == [1007.0, 1007.5, None, 5.0]  # in whole seconds, half a second later on average
    assert asked.epoch is None  # as it was
