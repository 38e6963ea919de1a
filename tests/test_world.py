"""What a run is made of: its clock, how far it goes, and processes of a user's own beside it."""

from __future__ import annotations

import collections.abc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator
from simpy import Event, Resource

import gridsim as gs
from gridsim.errors import InputError, PolicyError
from gridsim.model.tasks import Tasks
from gridsim.model.time import NEVER
from gridsim.options import Run
from gridsim.policy.protocols import Quote
from gridsim.policy.queue import ClusterView
from gridsim.record import Record
from gridsim.world import World

Process = collections.abc.Generator[Event, Any, None]


class Idle:
    """A scheduler that never starts anything."""

    def setup(self, cluster: ClusterView, rng: Generator) -> None: ...

    def settled(self, now: int) -> None: ...

    def quote(self, request: int, now: int) -> Quote | None:
        return Quote(request)

    def commit(self, quote: Quote, now: int) -> None: ...

    def dispatch(self, now: int) -> tuple[int, ...]:
        return ()

    def wake(self, now: int) -> int:
        return NEVER


def jobs(**columns: Any) -> gs.Workload:
    given: dict[str, Any] = {"submit": [0, 1, 2], "runtime": [10, 10, 5], "cores": [2, 4, 2]} | columns
    return gs.Workload.from_columns(**given)


def world(workload: gs.Workload | None = None, policy: Any = "easy", **options: Any) -> World:
    return World(workload or jobs(), gs.Platform.single(4), policy, Run(**options))


def same(one: Record, other: Record) -> bool:
    names = ("start_us", "end_us", "status", "cluster")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def names(record: Record) -> list[str]:
    found: list[str] = record.status_names.tolist()
    return found


@pytest.mark.parametrize("instant", ["batched", "per-event"])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "mrt"])
def test_step_by_step_is_the_run_at_once(policy: str, instant: str) -> None:
    workload = gs.default_workload(jobs=60, seed=3)
    platform = gs.Platform.single(256)
    one = World(workload, platform, policy, Run(instant=instant))  # type: ignore[arg-type]
    instants = []
    while (now := one.step()) is not None:
        instants.append(now)
    assert instants == sorted(set(instants))
    assert one.now == instants[-1]
    assert same(one.record(), gs.simulate(workload, platform=platform, policy=policy, instant=instant).record)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 60), max_size=4))
def test_a_run_in_parts_is_the_run_at_once(stops: list[int]) -> None:
    one = world(policy="conservative")
    for stop in sorted(stops):
        one.run(until=stop)
        assert one.now <= max(stop, 0)
    one.run()
    assert same(one.record(), gs.simulate(jobs(), platform=gs.Platform.single(4), policy="conservative").record)


def test_what_happens_at_the_last_instant_is_left() -> None:
    one = world()
    one.run(until=10)
    assert names(one.record()) == ["running", "waiting", "completed"]
    assert one.step() == 10
    assert names(one.record()) == ["completed", "running", "completed"]


def test_a_record_that_was_taken_does_not_change_as_the_run_goes_on() -> None:
    one = world()
    one.run(until=5)
    early = one.record()
    one.run()
    assert names(early) == ["running", "waiting", "running"]
    assert not early.ran.any()
    assert names(one.record()) == ["completed"] * 3


def test_jobs_that_have_not_come_are_not_told_of() -> None:
    one = world()
    one.run(until=2)
    assert one.record().workload.job.tolist() == [1, 2]


def test_cores_that_running_jobs_hold_count_until_the_run_stands_still() -> None:
    one = world()
    one.run(until=6)
    start, end, cores = one.record().holds()
    assert ((start / 1e6).tolist(), (end / 1e6).tolist()) == ([0.0, 2.0], [6.0, 6.0])
    assert cores.tolist() == [2, 2]
    numbers = one.result().metrics()
    assert (numbers["running"], numbers["waiting"], numbers["submitted"], numbers["completed"]) == (2, 1, 3, 0)
    assert "running" not in gs.simulate(jobs(), platform=gs.Platform.single(4)).metrics()


def test_a_dag_job_between_two_of_its_tasks_runs() -> None:
    chain = Tasks.from_edges(counts=[2], runtime=[5, 5], cores=[1, 1], edges=[(0, 1)])
    tasks = gs.Workload.from_tasks(chain, submit=[0])
    one = World(tasks, gs.Platform.single(1), "fcfs")
    one.run(until=7)
    found = one.record()
    assert names(found) == ["running"]
    assert found.tasks is not None
    assert found.tasks.status.tolist() == [0, 6]
    one.run()
    assert names(one.record()) == ["completed"]


def test_users_who_react_are_told_of_as_far_as_they_came() -> None:
    from gridsim.scenario import transformed

    workload = transformed(jobs(labels={"user": [1, 1, 1]}, submit=[0, 100, 200]), ["react?reference=easy"], cores=4)
    one = world(workload)
    one.run(until=50)
    assert len(one.record()) == 1
    one.run()
    assert len(one.record()) == 3


def test_an_unfinished_dag_or_a_second_record_leaves_the_world_as_it_is() -> None:
    one = world()
    one.run(until=3)
    assert same(one.record(), one.record())


@pytest.mark.parametrize("instant", ["batched", "per-event"])
def test_processes_of_a_user_come_after_ends_and_arrivals_and_before_the_pass(instant: str) -> None:
    one = world(jobs(submit=[0, 10], runtime=[10, 5], cores=[4, 4]), instant=instant)
    seen = []

    def look() -> Process:
        yield one.timeout(10)
        seen.append((one.clusters[0].free, one.clusters[0].offered, names(one.record())))

    one.env.process(look())
    one.run()
    # One decision each event: the job that came at 10 had been looked at before the first one's end.
    assert seen[0][0] == (4 if instant == "batched" else 0)
    assert seen[0][2] == (["completed", "waiting"] if instant == "batched" else ["completed", "running"])
    assert one.record().start.tolist() == [0, 10]


def test_at_the_first_instant_too() -> None:
    one, seen = world(), []

    def look() -> Process:
        seen.append(names(one.record()))
        yield one.timeout(0)
        seen.append(names(one.record()))

    one.env.process(look())
    one.run(until=1)
    assert seen == [["waiting"], ["waiting"]]


def test_simpy_s_own_resources_work_beside_it() -> None:
    one, log = world(), []
    crew = Resource(one.env, 1)

    def worker(name: str) -> Process:
        with crew.request() as turn:
            yield turn
            yield one.timeout(3)
            log.append((name, one.now))

    one.env.process(worker("a"))
    one.env.process(worker("b"))
    one.run()
    assert log == [("a", 3.0), ("b", 6.0)]
    assert same(one.record(), gs.simulate(jobs(), platform=gs.Platform.single(4)).record)


def test_the_clock_counts_whole_microseconds() -> None:
    one = world()
    with pytest.raises(PolicyError, match=r"an event in 0\.5 microseconds; .*world\.timeout takes seconds"):
        one.env.timeout(0.5)
    for seconds in (-1, float("inf"), float("nan")):
        with pytest.raises(PolicyError, match="expected a number of seconds from 0"):
            one.timeout(seconds)
    one.timeout(2.5e-6)
    one.env.timeout(7.0)  # whole
    assert one.step() == 0
    assert isinstance(one.env.now, int)


def test_simpy_s_own_run_takes_an_event_or_whole_microseconds() -> None:
    one = world()
    one.env.run(until=one.timeout(4, "done"))
    assert one.now == 4
    one.env.run(until=6_000_000)
    assert one.now == 6


def test_jobs_that_are_left_waiting_for_ever_are_an_error_at_the_end_and_not_before() -> None:
    one = world(policy=Idle())
    one.run(until=100)
    assert names(one.record()) == ["waiting"] * 3
    with pytest.raises(PolicyError, match="left 3 jobs waiting for ever, job 1 first"):
        one.run()


def test_limits_that_change_jobs_are_not_a_world_s() -> None:
    with pytest.raises(InputError, match=r"gridsim\.simulate does that"):
        world(limits="clip")
