"""What policies can do, declared or seen; schedulers of the earlier form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import gridsim as gs
from gridsim.model.streams import stream
from gridsim.model.time import NEVER
from gridsim.policy.capabilities import Earlier, adapted, capabilities_of
from gridsim.policy.protocols import Offer, Quote, Start, Stop
from gridsim.policy.queue import ClusterView, Requests
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.record import Record, Status
from gridsim.testing import check_scheduler

SECOND = 1_000_000


@dataclass
class Plain:
    """Starts whoever fits in the order of coming, in the earlier form."""

    def setup(self, cluster: Any, rng: Any) -> None:
        self.need, self.free, self.waiting = cluster.requests.cores, cluster.cores, list[int]()

    def quote(self, request: int, now: int) -> Any:
        return Quote(request)

    def commit(self, quote: Any, now: int) -> None:
        self.waiting.append(quote.request)

    def ended(self, request: int, now: int) -> None:
        self.free += int(self.need[request])

    def overran(self, request: int, expected_end: int, now: int) -> None: ...

    def settled(self, now: int) -> None: ...

    def dispatch(self, now: int) -> Sequence[int]:
        started = []
        while self.waiting and self.need[self.waiting[0]] <= self.free:
            started.append(self.waiting.pop(0))
            self.free -= int(self.need[started[-1]])
        return started

    def wake(self, now: int) -> int:
        return NEVER


class Sleeper(Plain):
    """Starts nobody before 5 s."""

    def dispatch(self, now: int) -> Sequence[int]:
        return super().dispatch(now) if now >= 5 * SECOND else ()

    def wake(self, now: int) -> int:
        return 5 * SECOND if now < 5 * SECOND else NEVER


class Pushy(Plain):
    """The request that comes last stops the one before it, which waits again or (*again* false) is over."""

    again = True

    def setup(self, cluster: Any, rng: Any) -> None:
        super().setup(cluster, rng)
        self.running: list[int] = []
        self.out: list[tuple[int, bool, int]] = []

    def dispatch(self, now: int) -> Sequence[int]:
        if self.waiting and self.running and self.waiting[0] > self.running[0]:
            victim = self.running.pop()
            self.free += int(self.need[victim])
            self.out = [(victim, self.again, self.waiting[0])]
            if self.again:
                self.waiting.append(victim)
        self.running += (started := super().dispatch(now))
        return started

    def stopped(self) -> Sequence[tuple[int, bool, int]]:
        out, self.out = self.out, []
        return out


class Kills(Plain):
    """The same by an offer."""

    def quote(self, request: int, now: int) -> Any:
        return Quote(request, Offer(now, kills=(0,) if request else ()))

    def commit(self, quote: Any, now: int) -> None:
        super().commit(quote, now)
        for victim in quote.offer.kills:
            self.free += int(self.need[victim])
            self.waiting.append(victim)


class Leaving(Plain):
    """Nobody stays beyond 3 s in the queue."""

    def leaving(self, now: int) -> Sequence[int]:
        gone, self.waiting = (self.waiting, []) if now >= 3 * SECOND else ([], self.waiting)
        return gone


def run(scheduler: Any, **more: Any) -> Record:
    jobs = gs.Workload.from_columns(submit=[0, 1], runtime=[8, 4], cores=[4, 4], **more)
    with pytest.warns(DeprecationWarning, match="dispatch is to return a Decision"):
        return gs.simulate(jobs, platform=gs.Platform.single(4), policy=scheduler).record


@pytest.mark.parametrize(
    ("scheduler", "starts"), [(Plain, [0, 8]), (Sleeper, [5, 13]), (Pushy, [5, 1]), (Kills, [5, 1])]
)
def test_schedulers_of_the_earlier_form_decide_as_they_did(scheduler: Any, starts: list[float]) -> None:
    record = run(scheduler())
    assert record.start.tolist() == starts
    assert record.kills.tolist() == [int(starts[0] > starts[1]), 0]


def test_who_is_stopped_for_good_and_who_leaves_is_cancelled() -> None:
    pushy = Pushy()
    pushy.again = False
    record = run(pushy)
    assert record.status.tolist() == [Status.cancelled, Status.completed]
    assert record.end.tolist() == [1, 5]
    assert capabilities_of(Leaving()).withdraws
    record = run(Leaving())
    assert record.status.tolist() == [Status.completed, Status.cancelled]


def test_the_earlier_form_keeps_its_name_and_its_other_methods() -> None:
    with pytest.warns(DeprecationWarning, match=r"Kills\(\) has wake"):
        found = adapted(Kills())
    assert isinstance(found, Earlier)
    assert repr(found) == "Kills()"
    assert found.overran(0, 1, 1) is None
    jobs = gs.Workload.from_columns(submit=[0, 1], runtime=[8, 4], cores=[4, 4])
    found.setup(ClusterView(4, Requests(jobs)), stream(0))
    assert list(found.commit(Quote(1, Offer(0, kills=(0,))), 0)) == [Stop(0, "requeue", 1)]
    assert found.dispatch(0).starts == [Start(1), Start(0)]
    with pytest.raises(AttributeError):
        found.nothing_like_it  # noqa: B018


@pytest.mark.filterwarnings("ignore:.*dispatch is to return:DeprecationWarning")
def test_the_earlier_form_passes_the_check_of_schedulers() -> None:
    check_scheduler(Plain, workloads=2)


def test_a_scheduler_that_answers_decisions_stays_itself() -> None:
    scheduler = Backfilling()
    assert adapted(scheduler) is scheduler
