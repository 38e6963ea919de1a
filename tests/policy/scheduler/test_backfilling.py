"""The backfilling scheduler: cases for calculation by hand, and the order of its queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.policy.ordering import Fifo
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.queue import Queue
from gridsim.policy.reservation import Easy
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.simulation import Run, run

Row = tuple[int, ...]  # submit, runtime, cores, and the estimate if it differs from the runtime


def workload(rows: Sequence[Row]) -> Workload:
    return Workload.from_columns(
        submit=[row[0] for row in rows],
        runtime=[row[1] for row in rows],
        cores=[row[2] for row in rows],
        estimate=[row[3] if len(row) > 3 else row[1] for row in rows],
    )


def starts(rows: Sequence[Row], policy: Any, cores: int = 4, **options: Any) -> list[float]:
    return list(run(workload(rows), Platform.single(cores), policy, Run(**options)).start)


# -- backfilling ahead of a blocked first job ------------------------------------------------------------------------

BLOCKED_HEAD = [(0, 10, 3), (1, 10, 2), (2, 5, 1)]


def test_strict_lets_no_job_pass_a_blocked_head() -> None:
    assert starts(BLOCKED_HEAD, "fcfs") == [0, 10, 10]


@pytest.mark.parametrize("policy", ["easy", "first-fit", "depth", "conservative"])
def test_a_short_narrow_job_passes_where_it_delays_no_job(policy: str) -> None:
    assert starts(BLOCKED_HEAD, policy) == [0, 10, 2]


def test_easy_holds_back_what_would_delay_the_first_job() -> None:
    rows = [(0, 10, 3), (1, 10, 4), (2, 20, 1)]
    assert starts(rows, "easy") == [0, 10, 20]
    assert starts(rows, "first-fit") == [0, 22, 2]


def test_a_wide_job_can_starve_under_first_fit() -> None:
    rows = [(0, 10, 2), (1, 10, 4), *((5 * index, 10, 2) for index in range(1, 8))]
    assert starts(rows, "first-fit")[1] == 45
    assert starts(rows, "easy")[1] == 10


def test_a_long_job_passes_on_cores_that_the_first_job_will_not_need() -> None:
    rows = [(0, 10, 3), (1, 10, 3), (2, 100, 1)]
    assert starts(rows, "easy") == [0, 10, 2]


def test_the_extra_cores_are_used_up_by_those_that_pass() -> None:
    # At 10 the first job takes 3 of 6 cores; 3 are extra. Two long jobs of 1 and 2 cores start; none is left for a
    # third.
    rows = [(0, 10, 2), (0, 10, 1), (1, 10, 4), (2, 50, 1), (3, 50, 1), (4, 50, 1)]
    assert starts(rows, "easy", cores=6) == [0, 0, 10, 2, 3, 20]


def test_all_jobs_that_end_at_the_shadow_time_count_for_the_extra_cores() -> None:
    # Both running jobs end at 10. The first of them frees the two cores of the first queued job. Its extra cores are
    # two only if the second end counts as well.
    rows = [(0, 10, 1), (0, 10, 2), (1, 5, 2), (2, 100, 1)]
    assert starts(rows, "easy") == [0, 0, 10, 2]


def test_a_job_that_ends_at_the_shadow_time_delays_no_job() -> None:
    assert starts([(0, 10, 3), (1, 10, 4), (2, 8, 1)], "easy") == [0, 10, 2]
    assert starts([(0, 10, 3), (1, 10, 4), (2, 9, 1)], "easy") == [0, 10, 20]


def test_easy_may_delay_the_second_in_the_queue_and_depth_two_does_not() -> None:
    rows = [(0, 10, 2), (1, 10, 3), (2, 5, 4), (3, 25, 1)]
    assert starts(rows, "easy") == [0, 10, 28, 3]
    assert starts(rows, "depth?k=2") == [0, 10, 20, 25]
    assert starts(rows, "conservative") == [0, 10, 20, 25]


def test_a_reservation_of_easy_is_no_promise() -> None:
    # The long job starts given the shadow time 100. The running job ends at 10, and the first queued job must wait.
    rows = [(0, 10, 3, 100), (1, 10, 4), (2, 50, 1)]
    assert starts(rows, "easy") == [0, 52, 2]


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_job_that_arrives_later_is_promised_nothing_before_it_arrived(engine: Any) -> None:
    # At 2 the third job cannot run for 9 s with the reservation of the second at 10; since 1 it could have. The last
    # one starts ahead of both.
    rows = [(0, 10, 2), (1, 10, 4), (2, 9, 2), (3, 1, 1)]
    assert starts(rows, "depth?k=2", engine=engine) == [0, 10, 20, 3]


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_job_that_precedes_the_first_job_takes_its_promise(engine: Any) -> None:
    # Under sjf the third job is first from 2 on, and the last one may run until 10 on the cores that it leaves.
    rows = [(0, 10, 2), (1, 10, 4), (2, 5, 3), (3, 9, 1)]
    assert starts(rows, "easy?ordering=sjf", engine=engine) == [0, 15, 10, 3]
    assert starts(rows, "easy", engine=engine) == [0, 10, 20, 20]


def test_depth_zero_is_first_fit() -> None:
    rows = [(0, 10, 3), (1, 10, 4), (2, 20, 1)]
    assert starts(rows, "depth?k=0") == starts(rows, "first-fit")


rows_of_jobs = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 12), st.integers(1, 4), st.integers(1, 15)), min_size=1, max_size=14
)
quiet = settings(deadline=None, max_examples=60)


@pytest.mark.long
@quiet
@given(rows_of_jobs)
def test_a_depth_of_one_is_easy(rows: Sequence[Row]) -> None:
    assert starts(rows, "depth?k=1") == starts(rows, "easy")


@pytest.mark.long
@quiet
@given(rows_of_jobs)
def test_without_waiting_jobs_every_rule_is_the_same(rows: Sequence[Row]) -> None:
    policies = ("fcfs", "easy", "first-fit", "depth", "conservative", "random", "easy?ordering=wfp3")
    for policy in policies:
        assert starts(rows, policy, cores=100) == sorted(row[0] for row in rows)


@pytest.mark.long
@quiet
@given(rows_of_jobs, st.sampled_from(["fifo", "sjf", "ljf", "saf", "laf", "narrowest", "widest"]))
def test_a_static_ordering_gives_the_same_when_evaluated_at_each_cycle(rows: Sequence[Row], name: str) -> None:
    class Again:
        """The same ranks, computed in each scheduling cycle or after each start."""

        def __init__(self, changes: str) -> None:
            self.changes, self.ordering = changes, make_policy(name).ordering

        def rank(self, queue: Queue, now: float) -> Any:
            return self.ordering.rank(queue, now)

    for reserve in (Easy(), make_policy("fcfs").reserve, make_policy("depth?k=2").reserve):
        once = starts(rows, Backfilling(make_policy(name).ordering, reserve))
        assert once == starts(rows, Backfilling(Again("pass"), reserve))
        assert once == starts(rows, Backfilling(Again("start"), reserve))


# -- the order of the queue ------------------------------------------------------------------------------------------

KEYS: dict[str, Any] = {
    "fifo": lambda job, now: 0,
    "sjf": lambda job, now: job.estimate,
    "ljf": lambda job, now: -job.estimate,
    "narrowest": lambda job, now: job.cores,
    "widest": lambda job, now: -job.cores,
    "saf": lambda job, now: job.cores * job.estimate,
    "laf": lambda job, now: -job.cores * job.estimate,
    "edf": lambda job, now: job.deadline,
    "llf": lambda job, now: job.deadline - job.estimate,
    "xfactor": lambda job, now: -Fraction(now - job.submit, job.estimate),
}


@pytest.mark.long
@dataclass(frozen=True)
class Job:
    row: int
    submit: int
    estimate: int
    cores: int
    deadline: float


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 40),
            st.integers(1, 8),
            st.integers(3, 5),
            st.one_of(st.integers(50, 60), st.just(float("inf"))),
        ),
        min_size=1,
        max_size=16,
    ),
    st.sampled_from(sorted(KEYS)),
)
def test_one_after_the_other_jobs_start_as_sorted_would_have_them(rows: list[Any], name: str) -> None:
    """No two jobs fit the machine together: whenever it is free, the submitted job with the least key starts."""
    jobs = [Job(row, *columns) for row, columns in enumerate(sorted(rows, key=lambda row: row[0]))]
    expected = [0] * len(jobs)
    left, now = list(jobs), 0
    while left:
        now = max(now, min(job.submit for job in left))
        come = [job for job in left if job.submit <= now]
        first = min((KEYS[name](job, now), job.row) for job in come)[1]
        expected[first] = now
        now += jobs[first].estimate
        left.remove(jobs[first])
    made = Workload.from_columns(
        submit=[job.submit for job in jobs],
        runtime=[job.estimate for job in jobs],
        cores=[job.cores for job in jobs],
        deadline=[job.deadline for job in jobs],
    )
    assert run(made, Platform.single(5), name).start.tolist() == expected


# -- orderings that change -------------------------------------------------------------------------------------------


@dataclass
class LastFirst:
    """Last come, first served: a complete policy in a few lines."""

    def rank(self, queue: Queue, now: float) -> Any:
        return -queue.submit


def test_an_ordering_that_declares_no_changes_is_evaluated_at_each_cycle() -> None:
    assert starts([(0, 10, 4), (1, 1, 4), (2, 1, 4), (3, 1, 4)], LastFirst()) == [0, 12, 11, 10]


@dataclass
class Turning:
    """Longest first if an even number of cores is free, else shortest first; alternates with each start."""

    changes: ClassVar[str] = "start"
    asked: ClassVar[list[int]] = []

    def rank(self, queue: Queue, now: float) -> Any:
        self.asked.append(len(queue))
        return queue.estimate if queue.state["free"] % 2 else -queue.estimate


def test_an_ordering_that_changes_with_every_start_is_evaluated_after_each() -> None:
    """Four cores free: the longest first; three: the shortest; two: the longest; one: the shortest."""
    Turning.asked.clear()
    rows = [(0, 10, 1), (0, 20, 1), (0, 30, 1), (0, 40, 1), (0, 50, 1)]
    assert starts(rows, Turning()) == [0, 0, 10, 0, 0]
    assert Turning.asked[:4] == [5, 4, 3, 2]


def test_orderings_get_the_free_cores() -> None:
    seen: list[tuple[int, int]] = []

    class Spy(LastFirst):
        def rank(self, queue: Queue, now: float) -> Any:
            seen.append((queue.state["free"], queue.state["total"]))
            return super().rank(queue, now)

    starts([(0, 10, 1), (1, 1, 2)], Spy())
    assert seen == [(4, 4), (3, 4)]


def test_a_subclass_of_fifo_with_another_rank_is_no_fifo() -> None:
    class Narrowest(Fifo):
        def rank(self, queue: Queue, now: float) -> Any:
            return queue.cores

    rows = [(0, 10, 4), (1, 1, 4), (2, 1, 1)]
    assert starts(rows, Narrowest()) == [0, 11, 10]


# -- kill and extend -------------------------------------------------------------------------------------------------


def test_a_job_is_killed_at_its_walltime_and_the_next_starts_there() -> None:
    record = run(workload([(0, 20, 4, 10), (1, 5, 4)]), Platform.single(4), "easy")
    assert record.end.tolist() == [10, 15]
    assert record.status.tolist() == [1, 0]


def test_a_job_that_is_extended_runs_to_its_end_and_the_next_waits_for_it() -> None:
    record = run(workload([(0, 20, 4, 10), (1, 5, 4)]), Platform.single(4), "easy", Run(overrun="extend"))
    assert record.end.tolist() == [20, 25]
    assert record.status.tolist() == [0, 0]


def test_an_overrun_moves_the_shadow_time() -> None:
    # The running job continues after 10; its expected ends are 11, 12, 14, 18 and 26. A job of 3 s starts ahead of the
    # first one once the shadow time is 3 s away: at 11 it is 1 s, at 12 it is 2 s, at 14 it is 4 s.
    rows = [(0, 20, 3, 10), (1, 5, 4), (8, 3, 1)]
    assert starts(rows, "easy") == [0, 10, 15]
    assert starts(rows, "easy", overrun="extend") == [0, 20, 14]


def test_the_tick_is_the_first_overrun_assumed() -> None:
    rows = [(0, 20, 3, 10), (1, 5, 4), (8, 3, 1)]
    assert starts(rows, "easy", overrun="extend", tick=3) == [0, 20, 10]


# -- the order of one instant ----------------------------------------------------------------------------------------


def test_batched_lets_all_that_ends_at_an_instant_go_before_it_decides() -> None:
    # Both running jobs end at 10, the second one early. In one batch the first queued job starts. After the first end
    # alone two cores are free, the first queued job is expected at 20, and the third job starts ahead of it.
    rows = [(0, 10, 2), (0, 10, 2, 20), (1, 5, 4), (2, 5, 2)]
    assert starts(rows, "easy") == [0, 0, 10, 15]
    assert starts(rows, "easy", instant="per-event") == [0, 0, 15, 10]


def test_per_event_decides_after_each_arrival_and_counts_cores_that_come_free_now() -> None:
    # At 10 the running job ends as estimated, and two jobs arrive. The cycle after the first arrival counts its cores
    # as free and starts that job; a single decision for both starts the shorter one first.
    rows = [(0, 10, 4), (10, 2, 4), (10, 1, 4)]
    assert starts(rows, "sjf") == [0, 11, 10]
    assert starts(rows, "sjf", instant="per-event") == [0, 10, 12]


def test_per_event_does_not_count_the_cores_of_a_job_that_is_seen_to_continue() -> None:
    rows = [(0, 20, 4, 10), (10, 5, 4)]
    assert starts(rows, "easy", instant="per-event", overrun="extend") == [0, 20]
    assert starts(rows, "conservative", instant="per-event", overrun="extend") == [0, 20]


@pytest.mark.long
@quiet
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=12))
def test_where_no_two_things_happen_at_once_the_order_of_an_instant_does_not_matter(
    rows: list[tuple[int, int]],
) -> None:
    """Ends fall on distinct instants: the microseconds of each runtime are a different power of two."""
    made = Workload.from_columns(
        submit=[5 * index for index in range(len(rows))],
        runtime=[runtime * 7 + 2**index * 1e-6 for index, (runtime, _) in enumerate(rows)],
        cores=[cores for _, cores in rows],
    )
    platform = Platform.single(4)
    for policy in ("fcfs", "easy", "conservative"):
        batched, one_by_one = (
            run(made, platform, policy, Run(instant=instant)) for instant in ("batched", "per-event")
        )
        assert batched.start_us.tolist() == one_by_one.start_us.tolist()


# -- parameters ------------------------------------------------------------------------------------------------------


def test_the_repr_is_the_composition_and_a_run_does_not_change_it() -> None:
    scheduler = make_policy("easy?ordering=sjf")
    starts(BLOCKED_HEAD, scheduler)
    assert repr(scheduler) == "Backfilling(ordering=ShortestEstimate(), reserve=Easy())"
    assert scheduler == make_policy("backfilling?ordering=sjf&reserve=easy")
