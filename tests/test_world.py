"""Components of a run: its clock, its end, and additional custom processes."""

from __future__ import annotations

import collections.abc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator
from simpy import Event, Resource

import gridsim as gs
from gridsim.errors import InputError, PolicyError
from gridsim.model.moldable import Moldable
from gridsim.model.platform import ClusterSpec, RouterSpec
from gridsim.model.speedup import Amdahl, Downey, Linear, Speedup, fitted
from gridsim.model.tasks import Job, Task, Tasks
from gridsim.options import Run
from gridsim.policy.protocols import Decision, Quote, Stop
from gridsim.policy.queue import ClusterView
from gridsim.record import Record, Status
from gridsim.scenario import transformed
from gridsim.testing.invariants import assert_valid
from gridsim.world import World

Process = collections.abc.Generator[Event, Any, None]


class Idle:
    """A scheduler that never starts anything."""

    def setup(self, cluster: ClusterView, rng: Generator) -> None: ...

    def settled(self, now: int) -> None: ...

    def quote(self, request: int, now: int) -> Quote | None:
        return Quote(request)

    def commit(self, quote: Quote, now: int) -> tuple[Stop, ...]:
        return ()

    def dispatch(self, now: int) -> Decision:
        return Decision()


def jobs(**columns: Any) -> gs.Workload:
    given: dict[str, Any] = {"submit": [0, 1, 2], "runtime": [10, 10, 5], "cores": [2, 4, 2]} | columns
    return gs.Workload.from_columns(**given)


def _chain() -> gs.Workload:
    chain = Tasks.from_edges(counts=[2], runtime=[5, 5], cores=[1, 1], edges=[(0, 1)])
    return gs.Workload.from_tasks(chain, submit=[0])


def reacting() -> gs.Workload:
    return transformed(jobs(labels={"user": [1, 1, 1]}, submit=[0, 100, 200]), ["react?reference=easy"], cores=4)


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


def test_events_of_the_last_instant_are_left() -> None:
    one = world()
    one.run(until=10)
    assert names(one.record()) == ["running", "waiting", "completed"]
    assert one.step() == 10
    assert names(one.record()) == ["completed", "running", "completed"]


def test_a_record_that_was_taken_does_not_change_as_the_run_continues() -> None:
    one = world()
    one.run(until=5)
    early = one.record()
    one.run()
    assert names(early) == ["running", "waiting", "running"]
    assert not early.ran.any()
    assert names(one.record()) == ["completed"] * 3


def test_jobs_that_have_not_arrived_are_not_reported() -> None:
    one = world()
    one.run(until=2)
    assert one.record().workload.job.tolist() == [1, 2]


def test_cores_that_running_jobs_hold_count_until_the_run_stops() -> None:
    one = world()
    one.run(until=6)
    start, end, cores = one.record().holds()
    assert ((start / 1e6).tolist(), (end / 1e6).tolist()) == ([0.0, 2.0], [6.0, 6.0])
    assert cores.tolist() == [2, 2]
    numbers = one.result().metrics()
    assert (numbers["running"], numbers["waiting"], numbers["submitted"], numbers["completed"]) == (2, 1, 3, 0)
    assert "running" not in gs.simulate(jobs(), platform=gs.Platform.single(4)).metrics()


def test_a_dag_job_between_two_of_its_tasks_runs() -> None:
    one = World(_chain(), gs.Platform.single(1), "fcfs")
    one.run(until=7)
    found = one.record()
    assert names(found) == ["running"]
    assert found.tasks is not None
    assert found.tasks.status.tolist() == [0, 6]
    one.run()
    assert names(one.record()) == ["completed"]


def test_users_that_react_are_reported_as_far_as_they_arrived() -> None:
    one = world(reacting())
    one.run(until=50)
    assert len(one.record()) == 1
    one.run()
    assert len(one.record()) == 3


def test_an_unfinished_dag_or_a_second_record_leaves_the_world_as_it_is() -> None:
    one = world()
    one.run(until=3)
    assert same(one.record(), one.record())


@pytest.mark.parametrize("instant", ["batched", "per-event"])
def test_processes_of_a_user_run_after_ends_and_arrivals_and_before_the_cycle(instant: str) -> None:
    one = world(jobs(submit=[0, 10], runtime=[10, 5], cores=[4, 4]), instant=instant)
    seen = []

    def look() -> Process:
        yield one.timeout(10)
        seen.append((one.clusters[0].free, one.clusters[0].offered, names(one.record())))

    one.env.process(look())
    one.run()
    # One decision per event: the job that arrived at 10 was considered before the end of the first one.
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


def test_simpy_s_own_resources_work_with_it() -> None:
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


def test_jobs_that_are_left_waiting_without_end_are_an_error_at_the_end_and_not_before() -> None:
    one = world(policy=Idle())
    one.run(until=100)
    assert names(one.record()) == ["waiting"] * 3
    with pytest.raises(PolicyError, match="never started 3 jobs, job 1 first"):
        one.run()


def test_limits_that_change_jobs_are_not_a_world_s() -> None:
    with pytest.raises(InputError, match=r"gridsim.simulate"):
        world(limits="clip")


def submitted_and_seen(one: World, *given: Any) -> list[tuple[str, float, Any]]:
    """Events received by a process that submits each job after the previous one has ended."""
    heard: list[tuple[str, float, Any]] = []

    def user() -> Process:
        for after, job in given:
            yield one.timeout(after)
            made = one.submit(job)
            began = yield made.started | made.ended
            heard.append(("first", one.now, list(began.values())))
            status = yield made.ended
            heard.append(("ended", one.now, status))

    one.env.process(user())
    one.run()
    return heard


@pytest.mark.parametrize("instant", ["batched", "per-event"])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "sjf", "easy?ordering=xfactor", "conservative", "mrt"])
def test_jobs_that_are_submitted_on_the_way_are_scheduled_as_those_of_a_workload(policy: str, instant: str) -> None:
    columns: dict[str, Any] = {"submit": [0, 1, 2, 9], "runtime": [10, 10, 5, 3], "cores": [2, 4, 2, 1]}
    every = gs.Workload.from_columns(**columns)
    first = gs.Workload.from_columns(**{name: column[:2] for name, column in columns.items()})
    one = World(first, gs.Platform.single(4), policy, Run(instant=instant))  # type: ignore[arg-type]

    def user() -> Process:
        yield one.timeout(2)
        one.submit({"cores": 2, "runtime": 5})
        yield one.timeout(7)
        one.submit(Task(1, 3, 3))

    one.env.process(user())
    one.run()
    found = one.record()
    assert found.workload.job.tolist() == [1, 2, 3, 4]
    assert found.workload.submit.tolist() == every.submit.tolist()
    expected = gs.simulate(every, platform=gs.Platform.single(4), policy=policy, instant=instant).record  # type: ignore[arg-type]
    assert same(found, expected)
    assert_valid(found)


def test_a_user_at_a_terminal_hears_when_jobs_start_and_end() -> None:
    heard = submitted_and_seen(world(), (3, {"cores": 4, "runtime": 2}), (1, {"cores": 1, "runtime": 1}))
    assert heard == [
        *(("first", 20.0, [20.0]), ("ended", 22.0, Status.completed)),
        *(("first", 23.0, [23.0]), ("ended", 24.0, Status.completed)),
    ]


def test_a_job_that_is_rejected_ends_without_a_start() -> None:
    heard = submitted_and_seen(world(), (3, {"cores": 5, "runtime": 2}))
    assert heard == [("first", 3.0, [Status.rejected]), ("ended", 3.0, Status.rejected)]


def test_a_job_may_end_at_its_estimate_and_have_a_deadline() -> None:
    one = world(policy="mrt")
    job = {"cores": 1, "runtime": 9, "estimate": 4, "deadline": 4}
    assert submitted_and_seen(one, (0, job))[-1] == ("ended", 4.0, Status.killed_walltime)
    found = one.record()
    assert found.promises is not None
    assert found.promises.granted_us[found.workload.job == 4].tolist() == [4_000_000]


def test_submitted_jobs_have_labels_by_number_or_name() -> None:
    one = world(replace(jobs(labels={"user": [0, 1, 0]}), names={"user": ("ann", "bob")}))
    one.submit({"cores": 1, "runtime": 1, "user": "bob"})
    one.submit(Job(7, 0.0, (Task(1, 1, 1),), user=0))
    one.submit({"cores": 1, "runtime": 1})
    one.run()
    found = one.record().workload
    assert dict(zip(found.job.tolist(), found.labels["user"].tolist(), strict=True))[4] == 1
    assert sorted(found.labels["user"].tolist()) == [-1, 0, 0, 0, 1, 1]


def test_submissions_do_not_change_the_given_workload() -> None:
    given = jobs()
    one = world(given)
    one.submit({"cores": 1, "runtime": 1})
    one.run()
    assert len(given) == 3
    assert same(
        gs.simulate(given, platform=gs.Platform.single(4)).record,
        gs.simulate(jobs(), platform=gs.Platform.single(4)).record,
    )


@pytest.mark.parametrize(
    ("job", "told"),
    [
        ({"cores": 1}, "has no runtime"),
        ({"cores": 1, "runtime": 1, "usr": 3}, "has 'usr', which no job of the workload has"),
        ({"cores": 1, "runtime": 1, "user": "eve"}, "has user 'eve', which no job of the workload has"),
        ({"cores": 0, "runtime": 1}, "at least 1 core"),
        (Job(1, 0.0, (Task(1, 1, 1), Task(1, 1, 1))), "has 2 tasks"),
    ],
)
def test_an_invalid_job_is_refused(job: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        world(jobs(labels={"user": [0, 1, 0]})).submit(job)


def test_a_job_that_cannot_be_submitted_says_why() -> None:
    job = {"cores": 1, "runtime": 1}
    one = World(jobs(), gs.Platform.single(4), "easy", max_jobs=1)
    one.submit(job)
    for closed, told in (
        (one, r"1 jobs have been submitted; World\(…, max_jobs=…\)"),
        (World(jobs(), gs.Platform.single(4), "easy", max_jobs=0), "no rows are reserved for jobs"),
        (World(_chain(), gs.Platform.single(4), "fcfs"), "DAG jobs"),
        (World(reacting(), gs.Platform.single(4), "fcfs"), "reacting users"),
        (World(_of_sizes()[0], NODES, "moldable-base"), "on machines of nodes"),
    ):
        with pytest.raises(PolicyError, match=told):
            closed.submit(job)


LAWS: list[Speedup] = [Linear(), Amdahl(0.1), *(fitted(Downey(sigma=1), size) for size in range(1, 17))]


def _of_sizes(n: int = 40, cores: int = 16) -> tuple[gs.Workload, list[Speedup]]:
    """Jobs of all kinds, with their laws: of ranges, of named sizes, and of one size; some come at the same time."""
    rng = np.random.default_rng(3)
    asked, runtime = rng.integers(1, cores + 1, n), rng.integers(1, 400, n)
    rigid = rng.random(n) < 0.2
    least = np.where(rigid, asked, rng.integers(1, asked + 1))
    most = np.where(rigid, asked, rng.integers(asked, cores + 1))
    law = np.where(rigid, 0, np.where(rng.random(n) < 0.5, 1, most + 1))
    sizes = [[] if rng.random() < 0.7 or one else sorted({int(a), cores}) for a, one in zip(asked, rigid, strict=True)]
    workload = gs.Workload.from_columns(
        submit=np.sort(rng.integers(0, 2000, n)),
        runtime=runtime,
        estimate=np.maximum(1, runtime + rng.integers(-30, 200, n)),
        cores=asked,
        moldable=Moldable.of(asked, least, most, LAWS, law, sizes=sizes),
    )
    return workload, [LAWS[one] for one in law]


def _submitted(workload: gs.Workload, laws: list[Speedup], known: int, policy: str, **options: Any) -> Record:
    """The record when a custom process submits all jobs except the first ones during the run."""
    one = World(
        workload.select(slice(0, known)), gs.Platform.single(16), policy, Run(**options), max_jobs=len(workload)
    )
    heard: list[tuple[str, float]] = []

    def told(what: str, event: Any) -> Process:
        yield event
        heard.append((what, one.now))

    def user() -> Process:
        for row in range(known, len(workload)):
            wait = workload.submit[row] / 1e6 - one.now
            if wait:
                yield one.timeout(wait)
            made = one.submit(_as_mapping(workload, row, laws[row]))
            one.env.process(told("started", made.started))
            one.env.process(told("ended", made.ended))

    one.env.process(user())
    one.run()
    found = one.record()
    ran = found.status_names[known:] != "rejected"
    assert sorted(at for what, at in heard if what == "started") == sorted(found.start[known:][ran])
    assert len(heard) == ran.sum() + len(workload) - known
    return found


def _as_mapping(workload: gs.Workload, row: int, law: Speedup) -> dict[str, Any]:
    seconds = {name: getattr(workload, name)[row] / 1e6 for name in ("runtime", "estimate")}
    job, ranges = {"cores": int(workload.cores[row])} | seconds, workload.moldable
    assert ranges is not None
    if law is LAWS[0]:
        return job
    job |= {"speedup": law, "minimum": ranges.minimum[row], "maximum": ranges.maximum[row]}
    assert ranges.size_first is not None
    assert ranges.sizes is not None
    named = ranges.sizes[slice(*ranges.size_first[row : row + 2])].tolist()
    return job | {"sizes": named} if named else job


POLICIES_OF_SIZES = (
    *("moldable-greedy", "moldable-submit", "moldable-base", "moldable-start", "moldable-combined"),
    *("moldable-base?ordering=sjf", "moldable-start?reserve=category&scope=remaining", "moldable?partition=rigid"),
    "guaranteed?admission=conservative&partition=greedy",
)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("how", [("batched", "kill"), ("per-event", "extend")], ids="-".join)
@pytest.mark.parametrize("policy", POLICIES_OF_SIZES)
@pytest.mark.parametrize("known", [0, 17])
def test_jobs_of_several_sizes_that_are_submitted_on_the_way_are_scheduled_as_those_of_a_workload(
    policy: str, how: tuple[str, str], known: int
) -> None:
    workload, laws = _of_sizes()
    options: dict[str, Any] = {"instant": how[0], "overrun": how[1]}
    expected = gs.simulate(workload, platform=gs.Platform.single(16), policy=policy, **options).record
    found = _submitted(workload, laws, known, policy, **options)
    assert found.cores_used is not None
    assert expected.cores_used is not None
    assert same(found, expected)
    assert found.cores_used.tolist() == expected.cores_used.tolist()
    assert found.workload.moldable is not None
    assert found.workload.moldable.weight.tolist() == workload.moldable.weight.tolist()  # type: ignore[union-attr]
    assert_valid(found, overrun=how[1])


def test_jobs_of_several_sizes_may_come_where_those_of_the_workload_have_one() -> None:
    alone, together = (World(jobs(), gs.Platform.single(8), "moldable-base") for _ in range(2))
    alone.run()
    assert alone.record().cores_used is None
    made = together.submit({"cores": 1, "runtime": 100, "speedup": "linear", "minimum": 2, "maximum": 4})
    rigid = together.submit({"cores": 3, "runtime": 10})
    together.run()
    found = together.record()
    rows = [found.workload.job.tolist().index(job) for job in (made.job, rigid.job)]
    assert found.cores_used is not None
    assert found.cores_used[rows].tolist() == [4, 3]
    assert (found.end - found.start)[rows].tolist() == [25, 10]
    assert_valid(found)


@pytest.mark.parametrize(
    ("policy", "job", "told"),
    [
        ("easy", {"speedup": "linear"}, "has several sizes, and the policy does not choose sizes"),
        ("moldable-base", {"minimum": 1}, "has minimum and no speedup; expected a law"),
        ("moldable-base", {"speedup": "linear", "minimum": 4, "maximum": 2}, "has the range 4 to 2"),
        ("moldable-base", {"speedup": "liner"}, "liner"),
    ],
)
def test_sizes_that_cannot_be_are_refused(policy: str, job: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        world(policy=policy).submit({"cores": 2, "runtime": 5} | job)


@pytest.mark.parametrize("instant", ["batched", "per-event"])
@pytest.mark.parametrize("partition", ["greedy(choices=all)", "fair-share", "rigid"])
def test_cores_that_a_process_holds_are_a_running_job_where_sizes_are_chosen(partition: str, instant: str) -> None:
    """The same as a log with a job of one size in its place that starts at once."""
    policy = f"moldable?reserve=first-fit&partition={partition}"
    columns: dict[str, Any] = {"submit": [0, 2, 3, 4], "runtime": [5, 20, 4, 3], "cores": [1, 3, 4, 1]}
    least, most = np.array([1, 3, 2, 1]), np.array([1, 3, 6, 6])
    every = gs.Workload.from_columns(**columns, moldable=Moldable.of(columns["cores"], least, most, [Linear()]))
    platform, options = gs.Platform.single(6), Run(instant=instant)  # type: ignore[arg-type]
    one = World(every.select(np.array([0, 2, 3])), platform, policy, options)

    def crew() -> Process:
        yield one.timeout(2)
        yield one.machines["cluster"].request(3, until=22)

    one.env.process(crew())
    one.run()
    expected = gs.simulate(every, platform=platform, policy=policy, options=options).record
    found = one.record()
    assert found.start.tolist() == [expected.start[row] for row in (0, 2, 3)]
    assert found.end.tolist() == [expected.end[row] for row in (0, 2, 3)]
    assert one.clusters[0].free == 6


@pytest.mark.parametrize("instant", ["batched", "per-event"])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "first-fit", "sjf"])
def test_cores_that_a_process_holds_are_a_running_job_to_the_scheduler(policy: str, instant: str) -> None:
    """The same as a log with a job in its place that starts at once."""
    columns: dict[str, Any] = {"submit": [0, 2, 3, 4], "runtime": [5, 20, 4, 3], "cores": [1, 3, 4, 1]}
    platform, options = gs.Platform.single(4), Run(instant=instant)  # type: ignore[arg-type]
    others = {name: [column[0], *column[2:]] for name, column in columns.items()}
    one = World(gs.Workload.from_columns(**others), platform, policy, options)

    def crew() -> Process:
        yield one.timeout(2)
        held = yield one.machines["cluster"].request(3, until=22)
        assert held.holds

    one.env.process(crew())
    one.run()
    every = gs.Workload.from_columns(**columns)
    expected = gs.simulate(every, platform=platform, policy=policy, options=options).record
    assert len(one.record()) == 3
    assert one.record().start.tolist() == [expected.start[row] for row in (0, 2, 3)]
    assert one.clusters[0].free == 4


def test_cores_may_be_released_early_and_jobs_start_then() -> None:
    one = world(jobs(submit=[1], runtime=[5], cores=[4]))

    def crew() -> Process:
        with one.machines["cluster"].request(2, until=100) as held:
            yield held
            yield one.timeout(7)
            yield one.machines["cluster"].release(held)

    one.env.process(crew())
    one.run(until=50)
    assert names(one.record()) == ["completed"]
    one.run()
    assert one.record().start.tolist() == [7]


def test_a_job_that_requests_cores_waits_until_they_are_idle_and_precedes_the_cycle() -> None:
    one, log = world(), list[float]()

    def crew() -> Process:
        yield one.timeout(1)
        yield one.machines["cluster"].request(3, until=30)
        log.append(one.now)

    one.env.process(crew())
    one.run()
    assert log == [10]  # the job of four cores has waited since 1, and continues to wait
    assert one.record().start.tolist() == [0, 30, 2]


def test_waits_for_cores_beyond_the_requested_time_are_reported() -> None:
    one = world()

    def crew() -> Process:
        yield one.timeout(1)
        with pytest.raises(PolicyError, match=r"no 3 cores were idle before 5\.0 s"):
            yield one.machines["cluster"].request(3, until=5)
        assert one.now == 7  # some resources are released

    process = one.env.process(crew())
    one.run()
    assert process.processed


@pytest.mark.parametrize(
    ("policy", "cores", "until", "told"),
    [
        ("conservative", 1, 5, "keeps promises, which it would have to break"),
        ("mrt", 1, 5, "keeps promises, which it would have to break"),
        ("moldable-base", 1, 5, "keeps promises, which it would have to break"),
        ("easy", 5, 5, "5 cores are requested, but the machine has 4"),
        ("easy", 1, 0, "expected a time after 0.0 s"),
        ("easy", 1, float("inf"), "expected a time after 0.0 s"),
    ],
)
def test_cores_that_cannot_be_held_say_why(policy: str, cores: int, until: float, told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        world(policy=policy).machines["cluster"].request(cores, until=until)


def test_shares_apply_to_jobs_and_not_to_cores_held_by_a_process() -> None:
    one = world(replace(jobs(labels={"share": [0, 0, 0]}), names={"share": ("/ann",)}))
    with pytest.raises(InputError, match="has no share"):
        one.submit({"cores": 1, "runtime": 1})
    made = one.submit({"cores": 1, "runtime": 1, "share": "/ann"})
    one.machines["cluster"].request(1, until=30)
    one.run()
    assert made.ended.value == Status.completed
    assert len(one.record()) == 4


# -- machines of nodes -----------------------------------------------------------------------------------------------

NODES = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=4, capacity={"cores": 4, "memory": 100}, gpus=1)])


def on_nodes(policy: Any = "easy", **options: Any) -> World:
    return World(jobs(cores=[8, 4, 8], submit=[0, 60, 120], runtime=[600, 300, 900]), NODES, policy, Run(**options))


@pytest.mark.parametrize("instant", ["batched", "per-event"])
@pytest.mark.parametrize(
    ("nodes", "at", "where"),
    [
        (1, 100, [3]),  # jobs are on the first two until 600, on the third until 360
        (2, 360, [2, 3]),  # before the scheduling cycle that would start the third job there
        (["n-0"], 600, [0]),
        ([3, "n-0"], 1260, [0, 3]),  # the third job is on the last two from 360 on
    ],
)
def test_a_crew_waits_for_whole_nodes_that_are_idle(nodes: Any, at: float, where: list[int], instant: str) -> None:
    one, seen = on_nodes(instant=instant), list[tuple[Any, ...]]()

    def crew() -> Process:
        yield one.timeout(100)
        with one.machines["cluster"].request(nodes=nodes, until=3000) as held:
            yield held
            seen.append((one.now, held.placement.node, held.cores))
            yield one.timeout(400)
            yield one.machines["cluster"].release(held)
            assert held.placement is None

    one.env.process(crew())
    one.run()
    assert seen == [(at, where, 4 * len(where))]
    assert one.clusters[0].free == 16
    assert_valid(one.record())


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"nodes": 5}, "5 nodes are requested, but the machine has 4"),
        ({"nodes": 0}, "0 nodes are requested, but the machine has 4"),
        ({"nodes": ["n-9"]}, "node 'n-9' is requested, but none of the 4 nodes"),
        ({"nodes": [4]}, "node 4 is requested, but none of the 4 nodes"),
        ({"nodes": [0, "n-0"]}, "expected one or more, each once"),
        ({"nodes": []}, "expected one or more, each once"),
        ({"nodes": 1, "cores": 1}, "expected one of them"),
        ({}, "expected one of them"),
    ],
)
def test_nodes_that_are_none_are_refused(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        on_nodes().machines["cluster"].request(**asked, until=50)


def test_nodes_can_be_held_on_machines_with_nodes_and_under_schedulers_without_guarantees() -> None:
    with pytest.raises(PolicyError, match="4 cores without nodes"):
        world().machines["cluster"].request(nodes=1, until=5)
    with pytest.raises(PolicyError, match=r"nodes cannot be held .* keeps promises"):
        on_nodes("conservative").machines["cluster"].request(nodes=1, until=5)


def test_waits_for_nodes_beyond_the_requested_time_are_reported() -> None:
    one = on_nodes()

    def crew() -> Process:
        yield one.timeout(1)
        with pytest.raises(PolicyError, match=r"no 3 nodes were idle before 70\.0 s"):
            yield one.machines["cluster"].request(nodes=3, until=70)

    process = one.env.process(crew())
    one.run()
    assert process.processed


def test_a_submitted_job_requests_what_nodes_have() -> None:
    one = on_nodes()
    two = one.submit({"demand": gs.Demand(tasks=2, each={"cores": 1}, gpu=1000, tasks_per_node=1), "runtime": 5})
    never = one.submit({"demand": gs.Demand(tasks=1, each={"disk": 1}), "runtime": 5})
    plain = one.submit({"cores": 3, "runtime": 5})
    one.run(until=1)
    assert (two.ended.triggered, never.ended.value, plain.ended.triggered) == (False, Status.rejected, False)
    one.run()
    found = one.record()
    assert found.reason is not None
    assert dict(zip(found.workload.job.tolist(), found.reason.tolist(), strict=True))[never.job] == "task"
    assert found.workload.demands is not None
    assert found.workload.demands[found.workload.job.tolist().index(two.job)].gpu == 1000
    assert found.workload.cores.tolist() == [8, 2, 0, 3, 4, 8]
    assert_valid(found)


def test_on_one_pool_of_cores_only_cores_are_requested() -> None:
    made = world().submit({"demand": gs.Demand(cores=2), "runtime": 5})
    assert made.job == 4
    with pytest.raises(InputError, match="requests more than cores, but the machine is one pool of cores"):
        world().submit({"demand": gs.Demand(tasks=2, each={"cores": 1}), "runtime": 5})


def test_a_job_of_a_partition_goes_to_its_nodes() -> None:
    groups = [gs.NodeGroup(group=name, capacity={"cores": 4}, partitions=(name,)) for name in ("a", "b")]
    given = replace(jobs(labels={"partition": [0, 1, 0]}), names={"partition": ("a", "b")})
    one = World(given, gs.Platform.of_nodes(groups), "easy")
    one.submit({"cores": 1, "runtime": 1, "partition": "b"})
    one.run()
    found = one.record()
    assert found.allocations is not None
    assert found.allocations.node[found.allocations.job == found.workload.job.tolist().index(4)].tolist() == [1]


@pytest.mark.parametrize("policy", ["easy++", "easy"])
def test_no_job_predicts_how_long_a_crew_stays(policy: str) -> None:
    one = world(jobs(labels={"user": [1, 1, 1]}), policy)
    one.machines["cluster"].request(1, until=100)
    one.run()
    assert names(one.record()) == ["completed"] * 3


def test_a_job_goes_to_the_partition_that_it_names_where_these_are_kept_apart() -> None:
    given = replace(jobs(labels={"partition": [0, 1, 2]}), names={"partition": ("a", "b", "a,b")})
    parts = gs.Platform(RouterSpec("parts", (ClusterSpec("a", 4), ClusterSpec("b", 4))), by="partition")
    one = World(given, parts, "easy")
    made = [one.submit({"cores": 1, "runtime": 1, "partition": name}) for name in ("b", "a", "a,b")]
    one.run()
    found = one.record()
    where = dict(zip(found.workload.job.tolist(), found.cluster.tolist(), strict=True))
    assert [where[job.job] for job in made[:2]] == [1, 0]
    assert names(found) == ["completed"] * 6
    with pytest.raises(InputError, match="has no partition"):
        World(given, parts, "easy").submit({"cores": 1, "runtime": 1})
    later = gs.Workload.from_columns(submit=[0], runtime=[1], cores=[1], labels={"partition": [0]})
    other = World(replace(later, names={"partition": ("a", "b")}), parts, "easy")
    assert other.machines["b"].request(2, until=5).holds
    other.submit({"cores": 4, "runtime": 1, "partition": "b"})
    other.run()
    assert other.record().start.tolist() == [0, 5]


def test_dates_are_in_the_zone_of_the_site_for_all_callers() -> None:
    mini = Path(__file__).resolve().parents[1] / "docs" / "examples" / "mini"
    site, log = f"slurm?conf={mini}/slurm.conf&timezone=Europe/Berlin", mini / "sacct.txt"
    jobs = gs.read_workload(log)
    assert jobs.provenance["clock"]["zone"] == "epoch"
    few = jobs.select(np.arange(len(jobs)) < 20)
    machine = gs.simulate(few, policy=site)
    compared = gs.compare(few, ["easy", site], shake=0)
    found = [
        World(few, machine.platform, site).workload,
        machine.workload,
        *(record.workload for record in compared.records.values()),
        gs.Scenario(file=str(log), policy=site).load(),
    ]
    assert {workload.provenance["clock"]["zone"] for workload in found} == {"Europe/Berlin"}
    calendar = gs.quote(few, at=10, cores=1, walltime=60, policies=[site]).calendar
    assert calendar is not None
    assert calendar.zone_name == "Europe/Berlin"
