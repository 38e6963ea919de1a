"""Runs whose scheduler is told in Python what happens, and asked what it decides: the calendar plays all the rest.

No event of SimPy happens, and nothing is looked at job by job but what the scheduler has to know. What a cluster would
do when it is woken is done here, in the same order: passes that were asked for come though others were asked for since.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from gridsim.calendar import events
from gridsim.calendar.engine import Calendar, Setup
from gridsim.calendar.events import ASKING, NOW, OVER, RUNG, begin, cut_short, next_step
from gridsim.entities.cluster import Cluster
from gridsim.entities.outcome import DONE
from gridsim.model.time import NEVER, IntArray
from gridsim.model.workload import Workload
from gridsim.policy.protocols import NOTHING, Passes, Stop, name_of
from gridsim.profile.compiled import whole
from gridsim.record import Status

__all__ = ["ToldCalendar", "told", "why_not"]

NOTES = range(9)
WAKE, STARTS, STOPS, ENDED, LATE, FIRST, LAST, DECIDES, RANG = NOTES
"""Notes of a step: when the scheduler is asked though nothing happens; how many start and make room after the step
before; how many ended, and are seen to go on; which arrivals; whether a pass comes after it, and whether one was asked
for at the end of the instant."""


@whole
def told(work, events, passes):  # type: ignore[no-untyped-def]
    """Carry out what was decided after a step, and go on to the next one that somebody has to know of.

    *passes* are room for who starts, stops and has ended, and the notes of the step.
    """
    jobs, come, refused, ends, looks, late, numbers = events
    moves, notes = passes
    for k in range(notes[STOPS]):
        cut_short(moves[1, k], jobs, ends, looks, numbers)
    if not begin(numbers[NOW], moves[0], notes[STARTS], jobs, ends, looks, numbers):
        work = 0
    notes[STARTS] = notes[STOPS] = numbers[ASKING] = 0
    while work > 0:
        work -= 1
        notes[RANG] = numbers[RUNG]
        step = next_step(notes[WAKE], moves[2], jobs, come, refused, ends, looks, late, numbers)
        if numbers[OVER]:
            break
        if step.decides or step.late:
            notes[ENDED], notes[LATE], notes[FIRST], notes[LAST] = step.ended, step.late, step.first, step.last
            notes[DECIDES], numbers[ASKING] = step.decides, 1
            break


class ToldCalendar(Calendar):
    """The same for a scheduler that is told of each end and each arrival (`Capabilities.told`).

    Parameters
    ----------
    run : Setup
        The run.
    """

    def __init__(self, run: Setup) -> None:
        self._moves: IntArray = np.zeros((3, len(run.requests) + 1), dtype=np.int64)
        self._notes: IntArray = np.zeros(len(NOTES), dtype=np.int64)
        self._notes[WAKE] = self._wake_at = NEVER
        self._wakes: list[int] = []  # passes asked for, though nothing happens, none of which is taken back
        self._forgotten: list[int] = []  # when SimPy would still look at runs that were cut short
        self._batched, self._unsettled = run.batched, False
        self._last_come = int(run.requests.submit.max(initial=0))
        self._away: list[int] = []
        self._withdrawn: list[int] = []
        self._cancelled: list[tuple[int, int, int]] = []
        super().__init__(run)

    def _handed_over(self) -> Passes:
        return Passes("told", (self._moves, self._notes), self._tell)

    def _tell(self, now: int) -> None:
        """Tell the scheduler of a step, and note what it decides after it."""
        notes: list[int] = self._notes.tolist()
        scheduler, dirty = self._cluster.scheduler, False
        if notes[ENDED]:
            if self._unsettled and not self._batched:
                self._settle(now)
            for row in self._moves[2, : notes[ENDED]].tolist():
                self._outcome.placed.end(row, now)
                scheduler.ended(row, now)
            dirty = self._unsettled = True
        for row, until in self._events.late[:, : notes[LATE]].T.tolist():
            scheduler.overran(row, until, now)
            dirty = self._unsettled = True
        for row in self._events.come[1, notes[FIRST] : notes[LAST]].tolist():
            dirty |= self._arrive(row, now)
        happened = notes[ENDED] or notes[LATE] or notes[LAST] > notes[FIRST]
        if self._batched:
            if self._woken(now, dirty) or dirty:
                self._decide(now)
        elif notes[DECIDES]:
            numbers = self._events.numbers
            if not happened and not numbers[events.RUNG] and self._wakes and self._wakes[0] <= now:
                # What was asked for at the end of the instant comes behind it.
                numbers[events.RUNG] = notes[RANG]
                self._woken(now, bool(notes[RANG]))
            self._decide(now)
        self._notes[WAKE] = self._wakes[0] if self._wakes else NEVER

    def _arrive(self, row: int, now: int) -> bool:
        """A request comes; whether the scheduler takes it in."""
        if self._unsettled:
            self._settle(now)
        scheduler = self._cluster.scheduler
        quote = scheduler.quote(row, now)
        if quote is None:
            self._away.append(row)
            return False
        self._stop(scheduler.commit(quote, now), now)
        return True

    def _settle(self, now: int) -> None:
        self._unsettled = False
        self._cluster.scheduler.settled(now)

    def _woken(self, now: int, others: bool) -> bool:
        """Whether passes were asked for; who is alone is told so, where there are no *others* that happen now."""
        woken = 0
        while self._wakes and self._wakes[0] <= now and (self._batched or not woken):
            heapq.heappop(self._wakes)
            woken += 1
        if woken and self._wake_at <= now:
            self._wake_at = NEVER
        if woken == 1 and not others and not self._wakes and self._is_quiet(now):
            self._cluster.scheduler.alone(now)  # type: ignore[attr-defined]  # it says that it wants to know
        return woken > 0

    def _is_quiet(self, now: int) -> bool:
        """Whether nothing is to happen any more."""
        numbers = self._events.numbers
        late = any(at > now for at in self._forgotten)
        return not (numbers[events.ENDS] or numbers[events.LOOKS] or self._last_come > now or late)

    def _decide(self, now: int) -> None:
        if self._unsettled:
            self._settle(now)
        decision = self._cluster.scheduler.dispatch(now)
        if decision is NOTHING:
            return
        starts, stops, withdrawals, wake = decision
        self._withdrawn.extend(withdrawals)
        self._stop(stops, now)
        if starts:
            begin = self._outcome.placed.begin
            for request, _, placement in starts:
                if placement is not None:
                    begin(request, placement, 0, now)
            self._moves[0, : len(starts)] = [start.request for start in starts]
            self._notes[STARTS] = len(starts)
        if wake < self._wake_at:
            self._wake_at = wake
            heapq.heappush(self._wakes, wake)

    def _stop(self, stops: Sequence[Stop], now: int) -> None:
        """Note who makes room for whom."""
        for request, then, by in stops:
            began = int(self._events.jobs[events.START, request])
            if then == "cancel":
                self._cancelled.append((request, began, now))
                self._outcome.cancelled_by[request] = by
            else:
                self._outcome.cut.append((request, began, now, by))
            self._outcome.placed.end(request, now)
            self._forgotten += self._expected(request)
            self._moves[1, self._notes[STOPS]] = request
            self._notes[STOPS] += 1

    def _expected(self, request: int) -> list[int]:
        """When something was expected of a request that runs."""
        numbers = self._events.numbers
        heaps = (self._events.ends, numbers[events.ENDS]), (self._events.looks, numbers[events.LOOKS])
        return [int(at) for heap, size in heaps for at in heap[0, :size][heap[2, :size] == request]]

    def _fill_in(self) -> None:
        super()._fill_in()
        outcome = self._outcome
        outcome.status[self._away], outcome.status[self._withdrawn] = Status.unadmitted, Status.cancelled
        for row, began, ended in self._cancelled:
            outcome.start[row], outcome.end[row], outcome.status[row] = began, ended, Status.cancelled
        for row in [*self._away, *self._withdrawn, *(row for row, _, _ in self._cancelled)]:
            outcome.state[row] = DONE


def why_not(workload: Workload, clusters: Sequence[Cluster]) -> str:
    """What of a run with such a scheduler the calendar does not know; empty where it knows everything."""
    name = name_of(clusters[0].scheduler)
    if workload.tasks is not None or len(clusters) > 1:
        return f"{name} decides for several clusters, or for jobs of several tasks"
    if workload.moldable is not None:
        return f"{name} decides for jobs of several sizes"
    if clusters[0].asked is not None:
        return f"{name} decides for nodes or pools that the machine has, and not it"
    return ""
