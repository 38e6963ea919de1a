"""Quotes: the search for the earliest deadline, and the effect of an offer on waiting jobs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, NEVER, to_us
from gridsim.model.workload import Workload
from gridsim.policy.admission.quoting import (
    Guarantee,
    asking,
    disturbance,
    earliest_guarantee,
    keeps_deadlines,
    keeps_starts,
    killing,
    lost_work,
    search,
)
from gridsim.policy.protocols import Offer
from gridsim.simulation import Moment, state_at

SECOND = MICROSECOND


def at_five(policy: str, *, cores: int, walltime: float, estimates: tuple[float, ...] = (100, 40, 30)) -> Moment:
    """Return four cores at second 5: job 1 runs since 0 on three, and job 2 (four) and job 3 (two) wait."""
    workload = Workload.from_columns(submit=[0, 1, 2], runtime=estimates, cores=[3, 4, 2])
    return state_at(workload, Platform.single(4), policy, to_us(5), cores=cores, estimate=to_us(walltime))


def accepting(*, from_second: int, refusing: tuple[int, ...] = ()) -> tuple[list[int], object]:
    """Return a predicate that is true from a second on, with exceptions, and the seconds that were queried."""
    asked: list[int] = []

    def ask(deadline: int) -> Offer | None:
        asked.append(deadline // SECOND)
        return Offer(0, granted=deadline) if asked[-1] >= from_second and asked[-1] not in refusing else None

    return asked, ask


# -- the search --------------------------------------------------------------------------------------------------------


@given(first=some.integers(11, 5000), appended=some.integers(10, 5000))
def test_a_monotone_admission_is_searched_to_the_last_second(first: int, appended: int) -> None:
    _, ask = accepting(from_second=first)
    found = search(ask, 0, 10 * SECOND, appended * SECOND, SECOND)  # type: ignore[arg-type]
    assert found is not None
    assert (found.deadline, found.refused) == (first * SECOND, (first - 1) * SECOND)
    assert found.offer.granted == found.deadline


def test_the_tightest_deadline_is_requested_first_and_no_other_if_it_works() -> None:
    asked, ask = accepting(from_second=0)
    assert search(ask, 0, 10 * SECOND, 90 * SECOND, SECOND) == Guarantee(10 * SECOND, Offer(0, granted=10 * SECOND))  # type: ignore[arg-type]
    assert asked == [10]


def test_one_that_refuses_the_appended_job_is_requested_twice_the_response() -> None:
    asked, ask = accepting(from_second=70)
    found = search(ask, 5 * SECOND, 10 * SECOND, 25 * SECOND, SECOND)  # type: ignore[arg-type]
    assert asked[:4] == [10, 25, 45, 85]
    assert found is not None
    assert found.deadline == 70 * SECOND


def test_refusals_of_the_search_are_reported_where_admission_is_not_monotone() -> None:
    _, ask = accepting(from_second=20, refusing=(30,))
    found = search(ask, 0, 10 * SECOND, 50 * SECOND, SECOND)  # type: ignore[arg-type]
    assert found is not None
    assert (found.deadline, found.refused) == (31 * SECOND, 30 * SECOND)


def test_one_that_never_accepts_ends_the_search() -> None:
    assert search(lambda deadline: None, 0, 10 * SECOND, 50 * SECOND, SECOND) is None


def test_a_later_offer_is_the_answer() -> None:
    found = search(lambda deadline: Offer(0, granted=77 * SECOND), 0, 10 * SECOND, 50 * SECOND, SECOND)
    assert found is not None
    assert (found.deadline, found.refused) == (77 * SECOND, None)


# -- schedulers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "starts", "deadlines"), [("easy", False, False), ("conservative", True, False), ("qops", True, True)]
)
def test_promises_of_a_scheduler_are_known(policy: str, starts: bool, deadlines: bool) -> None:
    scheduler = at_five(policy, cores=1, walltime=10).cluster.scheduler
    assert (keeps_starts(scheduler), keeps_deadlines(scheduler)) == (starts, deadlines)


def test_conservative_promises_the_earliest_hole() -> None:
    moment = at_five("conservative", cores=1, walltime=95)
    found = earliest_guarantee(moment.cluster.scheduler, moment.job, moment.now)
    assert found is not None
    assert (found.deadline, found.offer.start) == (100 * SECOND, 5 * SECOND)
    moment = at_five("conservative", cores=1, walltime=96)  # one second too long for the free cores next to job 1
    found = earliest_guarantee(moment.cluster.scheduler, moment.job, moment.now)
    assert found is not None
    assert found.offer.start == 140 * SECOND


@pytest.mark.parametrize("policy", ["msb", "mrt", "qops"])
def test_deadlines_let_a_job_pass_others_that_have_time(policy: str) -> None:
    moment = at_five(policy, cores=4, walltime=20)
    scheduler = moment.cluster.scheduler
    found = earliest_guarantee(scheduler, moment.job, moment.now)
    assert found is not None
    assert (found.deadline, found.refused) == (120 * SECOND, 119 * SECOND)
    change = disturbance(scheduler.plan, found.offer)  # type: ignore[attr-defined]
    assert change.delay == 20 * SECOND
    assert change.request in (1, 2)


def test_asking_changes_nothing() -> None:
    moment = at_five("qops", cores=4, walltime=20)
    scheduler = moment.cluster.scheduler
    before = scheduler.plan.starts()  # type: ignore[attr-defined]
    earliest_guarantee(scheduler, moment.job, moment.now)
    asking(killing(scheduler), moment.job, moment.now)(to_us(25))
    assert scheduler.plan.starts() == before  # type: ignore[attr-defined]
    assert scheduler.plan.requests.deadline[moment.job] == NEVER  # type: ignore[attr-defined]


def test_a_tighter_deadline_kills_the_job_with_the_least_to_lose() -> None:
    moment = at_five("qops", cores=4, walltime=20)
    scheduler = moment.cluster.scheduler
    assert asking(scheduler, moment.job, moment.now)(to_us(25)) is None
    offer = asking(killing(scheduler), moment.job, moment.now)(to_us(25))
    assert offer is not None
    assert (offer.kills, offer.start, offer.granted) == ((0,), to_us(5), to_us(25))
    assert lost_work(scheduler.plan, offer, moment.now) == 3 * to_us(5)  # type: ignore[attr-defined]


def test_waiting_behind_all_promises_is_no_promise() -> None:
    policy = "qops?unadmitted=best-effort&artificial_fallback=reject&artificial_floor=0&relaxation=1"
    moment = at_five(policy, cores=4, walltime=20)
    assert asking(moment.cluster.scheduler, moment.job, moment.now)(to_us(25)) is None


def test_an_offer_that_moves_no_job_disturbs_no_job() -> None:
    moment = at_five("qops", cores=1, walltime=10)
    scheduler = moment.cluster.scheduler
    found = earliest_guarantee(scheduler, moment.job, moment.now)
    assert found is not None
    assert disturbance(scheduler.plan, found.offer) == (0, 0, 0, None)  # type: ignore[attr-defined]


# -- the instant of a quote --------------------------------------------------------------------------------------------


def test_a_moment_has_the_running_and_the_waiting_jobs() -> None:
    moment = at_five("easy", cores=1, walltime=10)
    assert (moment.running.tolist(), moment.waiting.tolist(), moment.job) == ([0], [1, 2], 3)
    assert moment.cluster.free == 1


def test_jobs_continue_as_estimated_but_have_ended_when_they_ended() -> None:
    workload = Workload.from_columns(submit=[0, 1, 9], runtime=[2, 10, 5], estimate=[50, 60, 70], cores=[4, 4, 1])
    moment = state_at(workload, Platform.single(4), "easy", to_us(5), cores=2, estimate=to_us(20))
    assert moment.workload.job.tolist() == [1, 2, 3]  # the last is the quoted request; later requests are not known
    np.testing.assert_array_equal(moment.as_estimated().runtime // SECOND, [2, 60, 20])
