"""Users who react, in a run: submit times of jobs, and all other times relative to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.metrics.compare import paired
from gridsim.metrics.responsiveness import backfilled_share
from gridsim.metrics.summary import cut, metrics
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import Workload
from gridsim.policy.protocols import Decision, Quote, Stop, starts_of
from gridsim.record import Record, Status
from gridsim.scenario import transformed
from gridsim.simulation import Run, run, state_at
from gridsim.testing import assert_valid
from gridsim.testing.invariants import violations
from gridsim.workload.transform.react import React

POLICIES = (
    "fcfs",
    "easy",
    "conservative",
    "easy?ordering=sjf",
    "easy?ordering=wfp3",
    "easy?ordering=edf",
    "easy?ordering=p-slr",
    "p-slr",
    "p-slr-sf",
    "planned?compress=arrival",
    "moldable-greedy",
    "moldable?partition=rigid&reserve=xfactor(k=2)",
    "multifactor",
)


@dataclass
class Replay:
    """Starts every job at its logged start."""

    starts: Any = None
    source: ClassVar[str] = "a test"
    _waiting: list[int] = field(default_factory=list, repr=False, compare=False)

    def setup(self, cluster: Any, rng: Any) -> None:
        self._waiting = []

    def quote(self, request: int, now: int) -> Quote:
        return Quote(request)

    def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
        self._waiting.append(quote.request)
        return ()

    def ended(self, request: int, now: int) -> None: ...
    def overran(self, request: int, expected_end: int, now: int) -> None: ...
    def settled(self, now: int) -> None: ...

    def dispatch(self, now: int) -> Decision:
        due = [request for request in self._waiting if self.starts[request] <= now]
        self._waiting = [request for request in self._waiting if self.starts[request] > now]
        later = min((int(self.starts[request]) for request in self._waiting), default=NEVER)
        return Decision(starts_of(due), wake=later)


def log(*jobs: tuple[float, float, int, int, float], **more: Any) -> Workload:
    """Return jobs (submit, runtime, cores, user, logged wait)."""
    submit, runtime, cores, user, wait = (list(column) for column in zip(*jobs, strict=True))
    return Workload.from_columns(
        submit=submit, runtime=runtime, cores=cores, labels={"user": user}, logged={"wait": wait}, **more
    )


def reacting(workload: Workload, **option: Any) -> Workload:
    return React(**option).apply(workload)


def submits(record: Record) -> list[float]:
    return record.submit.tolist()


TWO_USERS = log(
    (0, 10, 4, 1, 0),
    (1, 10, 4, 2, 9),
    (12, 5, 4, 1, 8),  # 2 s after the end of the first, while the job of user 2 runs
    (25, 5, 1, 2, 0),  # 5 s after its own end
)


def test_a_faster_system_gets_the_next_job_sooner():
    record = run(reacting(TWO_USERS), Platform.single(8), "fcfs")
    assert submits(record) == [0, 1, 12, 16]
    assert record.logged_submit_us is not None
    assert (record.logged_submit_us / MICROSECOND).tolist() == [0, 1, 12, 25]
    assert record.wait.tolist() == [0, 0, 0, 0]


def test_a_slower_system_gets_it_later():
    workload = log((0, 10, 1, 1, 0), (0, 10, 1, 2, 0), (12, 5, 1, 1, 0), (13, 1, 1, 2, 0))
    record = run(reacting(workload), Platform.single(1), "fcfs")
    assert submits(record) == [0, 0, 12, 23]
    assert record.wait.tolist() == [0, 10, 8, 2]
    assert record.response.tolist() == [10, 20, 13, 3]


def test_a_session_comes_at_its_own_time_or_when_the_user_has_what_went_before():
    workload = log((0, 10, 1, 1, 0), (100, 5, 1, 1, 0), (103, 5, 1, 1, 0))
    assert submits(run(reacting(workload, think=20), Platform.single(1), "fcfs")) == [0, 100, 103]
    slow = replace(workload, runtime=workload.runtime * 50, estimate=workload.estimate * 50)
    late = run(replace(slow, reactions=reacting(workload, think=20).reactions), Platform.single(1), "fcfs")
    assert submits(late) == [0, 500, 503]


def test_batches_of_a_user_are_in_the_order_of_the_log():
    """The third depends on no new job, but cannot precede the second, which waits for the first."""
    workload = log((0, 10, 1, 1, 0), (12, 500, 1, 1, 0), (200, 5, 1, 1, 0))
    slow = replace(workload, runtime=workload.runtime * 50, estimate=workload.estimate * 50)
    record = run(replace(slow, reactions=reacting(workload, gap=60).reactions), Platform.single(3), "fcfs")
    assert submits(record) == [0, 502, 502]


def test_a_job_that_is_rejected_is_answered_at_once():
    workload = reacting(log((0, 10, 8, 1, 0), (15, 5, 1, 1, 0)))
    record = run(workload, Platform.single(4), "fcfs")
    assert record.status.tolist() == [Status.rejected, Status.completed]
    assert submits(record) == [0, 5]
    assert_valid(record)


def test_a_job_that_is_not_admitted_is_answered_at_once():
    workload = log((0, 10, 4, 1, 0), (1, 10, 4, 2, 9), (22, 5, 1, 2, 0), deadline=[10, 11, 60])
    record = run(reacting(workload), Platform.single(4), "qops")
    assert record.status.tolist() == [Status.completed, Status.unadmitted, Status.completed]
    assert submits(record) == [0, 1, 3]
    assert record.workload.deadline[2] == 41 * MICROSECOND
    assert_valid(record)


def test_jobs_named_by_the_log_are_waited_for_whatever_their_user():
    """Job 3 is submitted 4 s after the end of job 1, of another user; job 4, as before, 3 s after its user's jobs."""
    workload = log((0, 10, 1, 1, 0), (0, 20, 1, 2, 0), (14, 5, 1, 2, 0), (23, 5, 1, 2, 0))
    said = {"preceding": np.array([-1, -1, 1, -1]), "think": np.array([np.nan, np.nan, 4, np.nan])}
    workload = replace(workload, logged={**workload.logged, **said})
    slow = replace(workload, runtime=workload.runtime * [3, 1, 1, 1], estimate=workload.estimate * [3, 1, 1, 1])
    record = run(replace(slow, reactions=reacting(workload).reactions), Platform.single(4), "fcfs")
    assert submits(record) == [0, 0, 34, 42]
    assert violations(record) == []


def test_jobs_that_end_on_arrival_block_no_job_without_end():
    workload = log((0, 10, 1, 1, 0), (12, 10, 1, 1, 0), (12, 5, 1, 1, 0))
    workload = replace(workload, logged={**workload.logged, "held": np.array([10.0, 0.0, 5.0])})
    assert submits(run(reacting(workload), Platform.single(4), "fcfs")) == [0, 12, 22]


def test_the_record_has_the_workload_that_was_given():
    deadline = np.array([50 * MICROSECOND, NEVER, NEVER, 60 * MICROSECOND])
    workload = reacting(replace(TWO_USERS, deadline=deadline))
    record = run(workload, Platform.single(8), "fcfs")
    assert record.workload.submit[3] != workload.submit[3]
    assert record.workload_given.submit.tolist() == workload.submit.tolist()
    assert record.workload_given.deadline.tolist() == workload.deadline.tolist()
    assert run(TWO_USERS, Platform.single(8), "fcfs").workload_given is TWO_USERS


def test_first_come_is_who_comes_first_in_this_run():
    """Job 3 of the log is submitted after job 4 here, and is behind it in the queue."""
    workload = log((0, 10, 2, 1, 0), (1, 10, 2, 2, 0), (11, 3, 1, 1, 0), (12, 3, 2, 3, 0))
    slow = replace(workload, runtime=workload.runtime * [2, 2, 1, 1], estimate=workload.estimate * [2, 2, 1, 1])
    workload = replace(slow, reactions=reacting(workload).reactions)
    record = run(workload, Platform.single(2), "fcfs")
    assert submits(record) == [0, 1, 21, 12]
    assert record.start.tolist() == [0, 20, 43, 40]
    assert backfilled_share(record) == 0


def test_a_think_time_of_nothing_comes_in_the_instant_of_the_end():
    workload = reacting(log((0, 10, 1, 1, 0), (10, 5, 1, 1, 0)))
    for instant in ("batched", "per-event"):
        record = run(workload, Platform.single(1), "easy", Run(instant=instant))
        assert record.start.tolist() == [0, 10]


def crowd(seed: int, jobs: int = 60, users: int = 6) -> Workload:
    """Return a log with the schedule of EASY on 8 cores, with users."""
    rng = np.random.default_rng(seed)
    workload = Workload.from_columns(
        submit=np.sort(rng.integers(0, 40 * jobs, jobs)),
        runtime=rng.integers(1, 200, jobs),
        cores=rng.integers(1, 9, jobs),
        labels={"user": rng.integers(0, users, jobs)},
    )
    estimate = workload.runtime * rng.choice([1, 2, 5], jobs)
    return replace(workload, estimate=estimate, logged={"wait": run(workload, Platform.single(8), "easy").wait})


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["batched", "per-event"]))
def test_replaying_the_logs_own_schedule_gives_the_submits_of_the_log(seed, instant):
    workload = reacting(crowd(seed))
    assert workload.logged_start is not None
    record = run(workload, Platform.single(8), Replay(workload.logged_start), Run(overrun="extend", instant=instant))
    assert record.workload.submit.tolist() == workload.submit.tolist()
    assert record.end_us.tolist() == workload.logged_end.tolist()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("instant", ["batched", "per-event"])
def test_every_policy_serves_users_who_react(policy, instant):
    if instant == "per-event" and policy.startswith("moldable"):
        pytest.skip("one decision an instant")
    workload = reacting(crowd(3))
    record = run(workload, Platform.single(8), policy, Run(instant=instant))
    assert violations(record) == []
    again = run(workload, Platform.single(8), policy, Run(instant=instant))
    assert np.array_equal(record.start_us, again.start_us)
    assert np.array_equal(record.workload.submit, again.workload.submit)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["fcfs", "easy", "conservative"]))
def test_jobs_arrive_when_the_rule_states_by_what_happened(seed, policy):
    workload = reacting(crowd(seed))
    record = run(workload, Platform.single(5), policy)  # jobs that are too wide are rejected
    assert workload.reactions is not None
    over = np.where(record.ran, record.end_us, record.workload.submit)
    due = workload.reactions.submits(workload.labels["user"], workload.submit, over)
    assert np.array_equal(record.workload.submit, due)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_on_a_machine_without_waits_no_job_arrives_later_than_in_the_log(seed):
    workload = reacting(crowd(seed))
    record = run(workload, Platform.single(10_000), "easy")
    assert (record.wait == 0).all()
    assert (record.workload.submit <= workload.submit).all()


@pytest.mark.parametrize("policy", [*POLICIES, "qops", "msb", "mrt", "fair-tree", "random"])
def test_a_run_is_that_of_a_fixed_log_with_the_same_submits(policy):
    """A policy depends only on submit times, whatever determines them; job order is submission order."""
    for seed in range(3):
        record = run(reacting(crowd(seed)), Platform.single(8), policy)
        order = np.lexsort((np.arange(len(record)), record.workload.submit))
        fixed = run(replace(record.workload, reactions=None).select(order), Platform.single(8), policy)
        assert np.array_equal(fixed.start_us, record.start_us[order])


def test_a_grid_of_clusters_serves_them_too():
    platform = Platform(RouterSpec("root", (ClusterSpec("a", 8), ClusterSpec("b", 8))))
    for balancer in ("expected-queue", "earliest-start"):
        record = run(reacting(crowd(5)), platform, "easy", Run(balancer=balancer))
        assert violations(record, platform=platform) == []


def test_dag_jobs_are_refused():
    tasks = Tasks.from_edges(counts=[2], runtime=[2, 3], cores=[1, 1], edges=[(0, 1)])
    workload = Workload.from_tasks(tasks, submit=[5], labels={"user": [1]})
    with pytest.raises(InputError, match="workflows"):
        reacting(workload)
    with pytest.raises(InputError, match="workflows"):
        run(replace(workload, reactions=reacting(TWO_USERS).reactions), Platform.single(4), "easy")


def test_quotes_at_a_moment_of_the_log_are_for_the_recorded_state():
    moment = state_at(reacting(TWO_USERS), Platform.single(8), "easy", 20 * MICROSECOND, cores=1, estimate=MICROSECOND)
    assert moment.workload.submit[:3].tolist() == TWO_USERS.submit[:3].tolist()


def test_ends_that_the_log_does_not_state_are_from_a_reference_where_one_is_requested():
    bare = replace(crowd(4), logged={})
    found = transformed(bare, ["react?reference=easy"], cores=8)
    record = run(found, Platform.single(8), "easy")
    assert record.workload.submit.tolist() == bare.submit.tolist()


def test_records_of_the_same_users_are_compared_and_cut_by_job():
    workload = reacting(crowd(6, jobs=400))
    records = {policy: run(workload, Platform.single(8), policy) for policy in ("fcfs", "easy")}
    assert paired(records, metric="wait")[0].jobs == 400
    kept = [cut(record, warmup=1000, cooldown=500).tolist() for record in records.values()]
    assert kept[0] == kept[1]
    assert metrics(records["easy"])["makespan"] == pytest.approx(
        records["easy"].end.max() - records["easy"].submit.min()
    )


def test_without_the_option_the_record_does_not_mention_it():
    record = run(crowd(7), Platform.single(8), "easy")
    assert record.logged_submit_us is None
