"""Quotes on a grid: which clusters give quotes, how often, and that quotes leave the state unchanged."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from numpy.random import Generator

from gridsim.errors import InputError, PolicyError
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.policy.protocols import Decision, Offer, Quote, Stop, starts_of
from gridsim.policy.queue import ClusterView
from gridsim.record import Record, Status
from gridsim.simulation import Run, run

SECOND = 1_000_000
PAIR = Platform(RouterSpec("root", (ClusterSpec("a", 4), ClusterSpec("b", 4))))
SITES = Platform(
    RouterSpec(
        "root",
        (
            ClusterSpec("home", 2),
            RouterSpec("near", (ClusterSpec("left", 4), ClusterSpec("right", 8))),
            RouterSpec("far", (ClusterSpec("only", 8),)),
        ),
    )
)


def jobs(*rows: tuple[int, int, int, float], tolerance: float | None = None) -> Workload:
    """Return jobs with exact estimates: submit, runtime, cores, deadline."""
    submit, runtime, cores, deadline = zip(*rows, strict=True)
    return Workload.from_columns(
        submit=submit,
        runtime=runtime,
        cores=cores,
        deadline=deadline,
        tolerance=None if tolerance is None else [tolerance] * len(rows),
    )


def simulated(workload: Workload, platform: Platform, policy: Any = "qops", how: Any = "earliest-guarantee") -> Record:
    return run(workload, platform, policy, Run(balancer=how))


class Asked:
    """A scheduler that offers a start at once, or nothing on clusters of *refusing* cores, and records the requests."""

    plan = None

    def __init__(self, refusing: int = 0) -> None:
        self.refusing, self.log = refusing, list[tuple[str, int, int]]()

    def __deepcopy__(self, memo: Any) -> Asked:
        return copy.copy(self)  # so that the log stays the same object

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        self.index, self.cores, self.waiting = cluster.index, cluster.cores, list[int]()

    def quote(self, request: int, now: int) -> Quote | None:
        self.log.append(("quote", self.index, request))
        return None if self.cores == self.refusing else Quote(request, Offer(now))

    def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
        self.log.append(("commit", self.index, quote.request))
        self.waiting.append(quote.request)
        return ()

    def ended(self, request: int, now: int) -> None: ...

    def settled(self, now: int) -> None: ...

    def dispatch(self, now: int) -> Decision:
        started, self.waiting = self.waiting, []
        return Decision(starts_of(started))


def test_every_able_cluster_of_the_whole_tree_is_evaluated_once_in_tree_order() -> None:
    scheduler = Asked()
    simulated(jobs((0, 5, 3, 50)), SITES, scheduler)
    assert scheduler.log == [("quote", 1, 0), ("quote", 2, 0), ("quote", 3, 0), ("commit", 1, 0)]


def test_a_single_eligible_cluster_is_queried_once() -> None:
    scheduler = Asked()
    simulated(jobs((0, 5, 2, 50)), Platform(RouterSpec("root", (ClusterSpec("a", 1), ClusterSpec("b", 2)))), scheduler)
    assert scheduler.log == [("quote", 1, 0), ("commit", 1, 0)]


def test_a_cluster_that_refuses_is_passed_over() -> None:
    scheduler = Asked(refusing=4)
    record = simulated(jobs((0, 5, 3, 50)), SITES, scheduler)
    assert scheduler.log[-1] == ("commit", 2, 0)
    assert record.status.tolist() == [Status.completed]


def test_a_job_that_every_cluster_refuses_is_unadmitted_and_one_that_none_can_hold_is_rejected() -> None:
    scheduler = Asked(refusing=4)
    record = simulated(jobs((0, 5, 3, 50), (0, 5, 5, 50)), PAIR, scheduler)
    assert scheduler.log == [("quote", 0, 0), ("quote", 1, 0)]
    assert record.status.tolist() == [Status.unadmitted, Status.rejected]


def test_requests_beyond_one_cluster_are_shared_out() -> None:
    # Each of three jobs needs a whole cluster at once; the third could only end at 20.
    record = simulated(jobs((0, 10, 4, 10), (0, 10, 4, 10), (0, 10, 4, 19)), PAIR)
    assert record.status.tolist() == [Status.completed, Status.completed, Status.unadmitted]
    assert record.cluster[:2].tolist() == [0, 1]


def test_where_both_grant_the_deadline_the_earlier_start_decides() -> None:
    record = simulated(jobs((0, 10, 4, 10), (1, 3, 2, 60), (1, 3, 3, 60)), PAIR)
    assert record.cluster.tolist() == [0, 1, 1]
    assert record.start.tolist() == [0, 1, 4]


@pytest.mark.parametrize(("tolerance", "status"), [(1.0, Status.unadmitted), (2.0, Status.completed)])
def test_the_earliest_offer_of_all_is_put_to_the_user(tolerance: float, status: Status) -> None:
    # PriorityEvent 1, a is busy until 30 and b until 20; the job requests an end by 16.
    rows = (0, 30, 4, 30.0), (0, 20, 4, 20.0), (1, 10, 4, 16.0)
    record = simulated(jobs(*rows, tolerance=tolerance), PAIR, "fqops")
    assert record.promises is not None
    assert record.promises.offer_us[2] == 30 * SECOND  # 29 after its submission; 15 were requested
    assert record.status[2] == status
    if status == Status.completed:
        assert (record.cluster[2], record.end[2]) == (1, 30)


def test_the_cheaper_cluster_is_taken_as_long_as_its_promise_is_early_enough() -> None:
    platform = Platform(RouterSpec("root", (ClusterSpec("dear", 4, rate=2.0), ClusterSpec("cheap", 4, rate=0.5))))
    rows = (0, 10, 4, 50.0), (0, 10, 4, 50.0), (0, 10, 4, 50.0), (0, 10, 4, 29.0)
    record = simulated(jobs(*rows), platform, how="cheapest-guarantee")
    assert record.cluster.tolist() == [1, 1, 1, 1]  # the fourth starts ahead of the third
    assert simulated(jobs(*rows, (1, 10, 4, 15.0)), platform, how="cheapest-guarantee").cluster[4] == 0
    assert set(simulated(jobs(*rows), platform).cluster.tolist()) == {0, 1}


@pytest.mark.parametrize("policy", ["qops", "conservative"])
def test_jobs_without_deadlines_go_where_they_would_start_first(policy: str) -> None:
    rows = (0, 10, 4), (1, 20, 4), (2, 5, 4), (3, 5, 4), (4, 1, 4), (5, 1, 4)
    record = simulated(jobs(*((*row, float("inf")) for row in rows)), PAIR, policy)
    assert record.cluster.tolist() == [0, 1, 0, 0, 0, 0]
    assert record.start.tolist() == [0, 1, 10, 15, 20, 21]  # the last one also on b at 21: the first of equal ones


@pytest.mark.parametrize("how", ["expected-queue", "expected-queue?work=queued"])
def test_a_job_that_is_rejected_is_no_load(how: str) -> None:
    # The second cannot end by 15 after the first; a load of its 40 core-seconds would send the third to b.
    rows = (0, 10, 4, 10.0), (0, 20, 1, 20.0), (1, 10, 3, 11.0), (11, 1, 4, 12.0), (11, 1, 4, 12.0)
    record = simulated(jobs(*rows), PAIR, how=how)
    assert record.cluster[record.ran].tolist()[:2] == [0, 1]
    refused = jobs((0, 9, 4, 9.0), (0, 9, 4, 9.0), (0, 9, 4, 9.0), (10, 1, 1, 99.0))
    record = simulated(refused, PAIR, how=how)
    assert record.status.tolist()[2:] == [Status.unadmitted, Status.completed]
    assert record.cluster[3] == 0


@pytest.mark.parametrize(
    "how", ["earliest-guarantee", "cheapest-guarantee", "power-of-two(balancer=earliest-guarantee)"]
)
@pytest.mark.parametrize("platform", [PAIR, Platform.single(4)])
def test_policies_without_plans_have_nothing_to_compare(how: str, platform: Platform) -> None:
    with pytest.raises(
        InputError, match=r"Backfilling\(.*\) has no plan; give a policy with a plan, such as qops"
    ) as error:
        simulated(jobs((0, 1, 1, 9)), platform, "easy", how)
    assert error.value.field == "balancer"


def test_dag_jobs_have_no_quotes_to_compare() -> None:
    tasks = Tasks.from_edges(counts=[2], runtime=[1, 1], cores=[1, 1], kind=[0, 0], kinds=("any",), edges=[(0, 1)])
    with pytest.raises(InputError, match="compares quotes for jobs of one task; the workload has DAG jobs"):
        simulated(Workload.from_tasks(tasks, submit=[0]), PAIR, "conservative")


def test_a_scheduler_that_has_a_plan_and_quotes_nothing_is_reported() -> None:
    class Silent(Asked):
        def quote(self, request: int, now: int) -> Quote | None:
            return Quote(request)

    with pytest.raises(PolicyError, match="quotes no start"):
        simulated(jobs((0, 1, 1, 9)), PAIR, Silent())
