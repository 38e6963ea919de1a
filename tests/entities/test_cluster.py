"""The cluster: calls of the scheduler, their order, rejected decisions, and pieces of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from gridsim import registry
from gridsim.entities.cluster import Piece
from gridsim.errors import PolicyError
from gridsim.model.platform import Platform
from gridsim.model.tasks import Tasks
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.policy.protocols import NOTHING, Decision, Offer, Quote, Start, Stop, starts_of
from gridsim.policy.queue import ClusterView, Requests
from gridsim.record import Record, Status
from gridsim.simulation import Run, run

SECOND = 1_000_000


class Told:
    """A scheduler that starts each waiting job when its cores are free, and records its notifications (in seconds)."""

    def __init__(self) -> None:
        self.log: list[tuple[Any, ...]] = []

    def __deepcopy__(self, memo: Any) -> Told:
        return self  # so that the log of the run is this one

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        self.cluster, self.free, self.waiting = cluster, cluster.cores, list[int]()

    def ended(self, request: int, now: int) -> None:
        self.log.append(("ended", request, now // SECOND))
        self.free += int(self.cluster.requests.cores[request])

    def overran(self, request: int, expected_end: int, now: int) -> None:
        self.log.append(("overran", request, expected_end // SECOND, now // SECOND))

    def settled(self, now: int) -> None:
        self.log.append(("settled", now // SECOND))

    def quote(self, request: int, now: int) -> Quote | None:
        self.log.append(("quote", request, now // SECOND))
        return Quote(request)

    def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
        self.waiting.append(quote.request)
        return ()

    def dispatch(self, now: int) -> Decision:
        self.log.append(("dispatch", now // SECOND))
        started = []
        for request in list(self.waiting):
            need = int(self.cluster.requests.cores[request])
            if need <= self.free:
                self.free -= need
                self.waiting.remove(request)
                started.append(request)
        return Decision(starts_of(started))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def simulate(rows: Sequence[tuple[int, ...]], scheduler: Any, cores: int = 4, **options: Any) -> Record:
    workload = Workload.from_columns(
        submit=[row[0] for row in rows],
        runtime=[row[1] for row in rows],
        cores=[row[2] for row in rows],
        estimate=[row[3] if len(row) > 3 else row[1] for row in rows],
        job=[100 + index for index in range(len(rows))],
    )
    return run(workload, Platform.single(cores), scheduler, Run(**options))


# -- the order of one instant ----------------------------------------------------------------------------------------


def test_batched_reports_all_ends_then_all_arrivals_before_one_cycle() -> None:
    scheduler = Told()
    simulate([(0, 10, 2), (0, 10, 2), (10, 5, 2), (10, 5, 2)], scheduler)
    assert scheduler.log == [
        ("quote", 0, 0),
        ("quote", 1, 0),
        ("dispatch", 0),
        ("ended", 0, 10),
        ("ended", 1, 10),
        ("settled", 10),
        ("quote", 2, 10),
        ("quote", 3, 10),
        ("dispatch", 10),
        ("ended", 2, 15),
        ("ended", 3, 15),
        ("settled", 15),
        ("dispatch", 15),
    ]


def test_per_event_reports_each_arrival_then_each_end_in_order_of_starting_with_a_cycle_after_each() -> None:
    scheduler = Told()
    # The second starts at 0; the first arrives with it, but exceeds the cores then free and starts at 4.
    simulate([(0, 4, 3), (0, 9, 2), (1, 5, 2), (9, 1, 1)], scheduler, instant="per-event")
    assert scheduler.log == [
        ("quote", 0, 0),
        ("dispatch", 0),
        ("quote", 1, 0),
        ("dispatch", 0),
        ("quote", 2, 1),
        ("dispatch", 1),
        ("ended", 0, 4),
        ("settled", 4),
        ("dispatch", 4),
        ("quote", 3, 9),
        ("dispatch", 9),
        ("ended", 2, 9),
        ("settled", 9),
        ("dispatch", 9),
        ("ended", 3, 10),
        ("settled", 10),
        ("dispatch", 10),
        ("ended", 1, 13),
        ("settled", 13),
        ("dispatch", 13),
    ]


def test_per_event_ends_jobs_in_the_order_in_which_they_started() -> None:
    """The second job waits for the first until 4, the third starts at 0; both end at 9."""
    scheduler = Told()
    record = simulate([(0, 4, 3), (0, 5, 2), (0, 9, 1)], scheduler, instant="per-event")
    assert record.start.tolist() == [0, 4, 0]
    assert [entry for entry in scheduler.log if entry[0] == "ended"] == [
        ("ended", 0, 4),
        ("ended", 2, 9),
        ("ended", 1, 9),
    ]


def test_an_overrun_is_reported_with_an_expected_end_that_doubles_away() -> None:
    scheduler = Told()
    simulate([(0, 20, 1, 4)], scheduler, overrun="extend")
    assert [entry for entry in scheduler.log if entry[0] == "overran"] == [
        ("overran", 0, 5, 4),
        ("overran", 0, 6, 5),
        ("overran", 0, 8, 6),
        ("overran", 0, 12, 8),
        ("overran", 0, 20, 12),
    ]


@pytest.mark.parametrize("instant", ["batched", "per-event"])
def test_a_job_that_ends_when_it_is_expected_to_is_no_overrun(instant: str) -> None:
    scheduler = Told()
    simulate([(0, 5, 1, 4)], scheduler, overrun="extend", instant=instant)
    assert [entry for entry in scheduler.log if entry[0] == "overran"] == [("overran", 0, 5, 4)]


@pytest.mark.parametrize("instant", ["batched", "per-event"])
def test_overruns_of_an_instant_are_reported_before_its_arrivals(instant: str) -> None:
    scheduler = Told()
    simulate([(0, 9, 1, 4), (4, 1, 1)], scheduler, overrun="extend", instant=instant)
    log = scheduler.log
    assert log.index(("overran", 0, 5, 4)) < log.index(("settled", 4)) < log.index(("quote", 1, 4))


# -- rejected decisions ----------------------------------------------------------------------------------------------


def test_a_job_wider_than_the_machine_is_rejected_without_a_query() -> None:
    scheduler = Told()
    record = simulate([(0, 10, 5), (1, 10, 4)], scheduler)
    assert record.status.tolist() == [Status.rejected, Status.completed]
    assert record.start_us.tolist() == [NEVER, SECOND]
    assert ("quote", 0, 0) not in scheduler.log


def test_a_job_that_the_scheduler_does_not_take_is_unadmitted() -> None:
    class Picky(Told):
        def quote(self, request: int, now: int) -> Quote | None:
            return None if request == 0 else Quote(request)

    assert simulate([(0, 10, 1), (1, 10, 1)], Picky()).status.tolist() == [Status.unadmitted, Status.completed]


class Starts(Told):
    """Starts a given request at the first decision, and waiting requests afterwards."""

    def __init__(self, *requests: Any) -> None:
        super().__init__()
        self.requests = requests

    def dispatch(self, now: int) -> Decision:
        first, self.requests = self.requests, ()
        return Decision(starts_of(first)) if first else super().dispatch(now)


@pytest.mark.parametrize("instant", ["batched", "per-event"])
@pytest.mark.parametrize(
    ("requests", "told"),
    [
        ((0, 0), r"starts request 0 at 0.0 s, but it is running already"),
        ((1,), r"starts request 1 at 0.0 s, but it has not arrived"),
        ((-1,), r"starts -1 at 0.0 s, which is not a request"),
        ((0.0,), r"starts 0.0 at 0.0 s, which is not a request"),
        ((7,), r"starts 7 at 0.0 s, which is not a request"),
        (("0",), r"starts '0' at 0.0 s, which is not a request"),
    ],
)
def test_an_impossible_start_is_refused_by_the_name_of_its_policy(
    requests: tuple[Any, ...], told: str, instant: str
) -> None:
    with pytest.raises(PolicyError, match=told) as caught:
        simulate([(0, 10, 1), (5, 10, 1)], Starts(*requests), instant=instant)
    assert str(caught.value).startswith("Starts()")


def test_a_job_that_has_ended_cannot_start_again() -> None:
    class Again(Told):
        def dispatch(self, now: int) -> Decision:
            return Decision([Start(0)]) if now == 10 * SECOND else super().dispatch(now)

    with pytest.raises(PolicyError, match="but it has ended"):
        simulate([(0, 10, 1)], Again())


class Everyone(Told):
    """Starts each waiting request, even without free cores."""

    def dispatch(self, now: int) -> Decision:
        started, self.waiting = self.waiting, []
        return Decision(starts_of(started))


def test_more_cores_than_there_are_cannot_be_taken() -> None:
    with pytest.raises(PolicyError, match=r"starts request 1 \(2 cores\) at 1.0 s, but only 1 of 4 cores are free"):
        simulate([(0, 10, 3), (1, 10, 2)], Everyone())


def test_in_per_event_mode_cores_are_lent_inside_an_instant_and_not_beyond_it() -> None:
    assert simulate([(0, 10, 4), (10, 5, 4)], Everyone(), instant="per-event").start.tolist() == [0, 10]
    with pytest.raises(PolicyError, match=r"has 1 more cores in use at 1.0 s than the 4 of the machine"):
        simulate([(0, 10, 3), (1, 10, 2)], Everyone(), instant="per-event")


def test_a_scheduler_that_leaves_jobs_waiting_is_refused() -> None:
    class Idle(Told):
        def dispatch(self, now: int) -> Decision:
            return NOTHING

    with pytest.raises(PolicyError, match=r"Idle\(\) never started 2 jobs, job 100 first"):
        simulate([(0, 10, 1), (1, 10, 1)], Idle())


def test_a_scheduler_is_woken_at_its_requested_time() -> None:
    class Later(Told):
        """Starts waiting requests at 25, although no event happens then."""

        def dispatch(self, now: int) -> Decision:
            return super().dispatch(now) if now >= 25 * SECOND else Decision(wake=25 * SECOND)

    assert simulate([(0, 10, 1), (1, 10, 1)], Later()).start.tolist() == [25, 25]


def test_a_scheduler_cannot_be_woken_in_the_past() -> None:
    class Hasty(Told):
        def dispatch(self, now: int) -> Decision:
            return Decision(wake=now)

    with pytest.raises(PolicyError, match=r"requested a wake-up at 0.0 s, which is not after now"):
        simulate([(0, 10, 1)], Hasty())


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        ([0], r"decides \[0\] at 0.0 s; expected a Decision"),
        (Decision([0]), r"starts 0 \(not a Start\) at 0.0 s, which is not a request"),  # type: ignore[list-item]
        (Decision([Start(0, 3)]), r"starts request 0 on 3 cores at 0.0 s; it can run on 1"),
        (Decision(stops=[Stop(0, "requeue")]), r"kills request 0 at 0.0 s, which is not running"),
        (
            Decision(stops=[Stop(0, "suspend")]),
            r"then='suspend', which is not supported; expected requeue or cancel, or a grace",
        ),
        (Decision(stops=[Stop(0, "checkpoint", grace=0)]), r"kills request 0 at 0.0 s, which is not running"),
        (
            Decision(stops=[Stop(0, "suspend", grace=0)]),
            r"then='suspend', which is not supported; expected requeue, ch",
        ),
        (Decision(stops=[Stop(0, "stop", grace=0)]), r"then='stop', which is not supported"),  # type: ignore[arg-type]
        (Decision(stops=[Stop(0, "requeue", 9, 0)]), r"preempts jobs for 9, which is not a request"),
        (Decision(stops=[Stop(0, "requeue", grace=-1)]), r"grace=-1; expected whole microseconds from 0"),
        (Decision(stops=[Stop(0, "requeue", grace=2.5)]), r"grace=2.5; expected whole"),  # type: ignore[arg-type]
        (Decision(withdrawals=[1]), r"withdraws request 1, which is not waiting"),
        (Decision(withdrawals=[-2]), r"withdraws -2, which is not a request"),
        (Decision(withdrawals=["0"]), r"withdraws '0', which is not a request"),  # type: ignore[list-item]
        (Decision(stops=[0]), r"stops 0 at 0.0 s; expected a Stop"),  # type: ignore[list-item]
        (Decision(stops=[Stop(-1, "requeue")]), r"stops -1, which is not a request"),
        (Decision(stops=[Stop(0, "requeue", 9)]), r"preempts jobs for 9, which is not a request"),
        (Decision(5), r"decides starts=5; expected a list or tuple"),  # type: ignore[arg-type]
        (Decision(wake=2.5), r"requested a wake-up at 2.5; expected whole microseconds"),  # type: ignore[arg-type]
        (Decision(wake=float("nan")), r"requested a wake-up at nan"),  # type: ignore[arg-type]
    ],
)
def test_a_decision_that_cannot_be_carried_out_is_refused(decision: Any, message: str) -> None:
    class Wrong(Told):
        def dispatch(self, now: int) -> Decision:
            return decision  # type: ignore[no-any-return]

    with pytest.raises(PolicyError, match=message):
        simulate([(0, 10, 1), (5, 10, 1)], Wrong())


@pytest.mark.parametrize(
    "quote",
    ["yes", Quote(0, "now"), Quote(0, Offer(1.5)), Quote(0, Offer(0, granted=float("nan")))],  # type: ignore[arg-type]
)
def test_a_quote_that_is_none_is_refused(quote: Any) -> None:
    class Wrong(Told):
        def quote(self, request: int, now: int) -> Any:
            return quote

    with pytest.raises(PolicyError, match=r"Wrong\(\) answered request 0 at 0.0 s with .*; expected None or a Quote"):
        simulate([(0, 10, 1)], Wrong())


def test_a_size_is_that_of_the_start_and_requests_are_read_only() -> None:
    class Wider(Told):
        """Starts the moldable job on 3 cores."""

        def dispatch(self, now: int) -> Decision:
            if not self.waiting:
                return NOTHING
            return Decision([Start(self.waiting.pop(0), 3)])

    jobs = Workload.from_columns(submit=[0], runtime=[10], cores=[2], estimate=[20], cores_stated=4)
    law = registry.make("transform", "moldable?range_factor=2&sigma=1")
    moldable = law.apply(jobs, np.random.default_rng(1))
    scheduler = Wider()
    record = run(moldable, Platform.single(4), scheduler)
    assert record.given.tolist() == [3]
    assert record.end[0] < 10
    assert scheduler.cluster.requests.cores.tolist() == [2]
    for column in (scheduler.cluster.requests.cores, scheduler.cluster.requests.estimate):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


@pytest.mark.parametrize(
    ("then", "status", "end"), [("requeue", Status.completed, 20), ("cancel", Status.cancelled, 4)]
)
def test_a_job_preempted_for_an_admitted_request_stops_before_the_next_arrival(
    then: Any, status: Status, end: float
) -> None:
    class Impatient(Told):
        """Each arriving request takes the cores of the previous one."""

        def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
            super().commit(quote, now)
            if not quote.request:
                return ()
            self.free += 3
            if then == "requeue":
                self.waiting.append(0)
            return [Stop(0, then, quote.request)]

    record = simulate([(0, 10, 3), (4, 6, 3)], Impatient())
    assert record.start[1] == 4
    assert record.status.tolist() == [status, Status.completed]
    assert record.end[0] == end


# -- kill and extend -------------------------------------------------------------------------------------------------


def test_a_job_above_its_walltime_is_killed_there() -> None:
    record = simulate([(0, 10, 1, 6), (0, 6, 1, 6)], Told())
    assert record.end.tolist() == [6, 6]
    assert record.status.tolist() == [Status.killed_walltime, Status.completed]


def test_a_job_above_its_walltime_continues_where_it_is_extended() -> None:
    record = simulate([(0, 10, 1, 6), (0, 6, 1, 6)], Told(), overrun="extend")
    assert record.end.tolist() == [10, 6]
    assert record.status.tolist() == [Status.completed, Status.completed]


TASKS = Tasks.from_edges(
    counts=[4], runtime=[2, 3, 4, 5], cores=[1, 6, 2, 3], kind=[1, 0, 1, 0], kinds=("A", "B"), edges=[]
)
REQUESTS = Requests(Workload.from_tasks(TASKS, submit=[0]))


def delay(rows: Sequence[int], cluster: Any) -> int:
    return sum(rows) * int(cluster)


def piece(rows: Sequence[int] = range(4)) -> Piece:
    return Piece(rows, REQUESTS, delay)


def test_kinds_arrive_in_order_of_first_appearance_with_their_widest_task() -> None:
    assert piece().kinds == ("B", "A")
    assert piece().widest == {"B": 2, "A": 6}


def test_work_is_cores_times_estimates() -> None:
    assert piece().work == (2 * 1 + 3 * 6 + 4 * 2 + 5 * 3) * 10**6


def test_a_piece_is_divided_by_kind_and_by_task() -> None:
    assert list(piece().of_kind("A").requests) == [1, 3]
    assert piece().of_kind("A").widest == {"A": 6}
    assert list(piece().alone(2).requests) == [2]


def test_delays_are_those_of_its_tasks() -> None:
    assert piece().delay_to(2) == 12
    assert piece().of_kind("B").delay_to(2) == 4


def test_a_rigid_job_is_a_piece_of_one_task_of_any_kind() -> None:
    rigid = Requests(Workload.from_columns(submit=[0, 0], runtime=[1, 2], cores=[3, 4]))
    assert Piece((1,), rigid, delay).widest == {"any": 4}
