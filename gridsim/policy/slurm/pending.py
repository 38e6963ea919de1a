"""Pending requests: those in the queue, those that enter it later, and those that leave it without a start.

Sources: sbatch(1), ``--dependency``, ``--begin`` and ``--reservation``; reservations.html ("when a reservation ends the
reservation request will be removed from any pending jobs submitted to the reservation and will be put into a held
state"; ``NO_HOLD_JOBS_AFTER``).
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from gridsim.model.site import Site
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.queue import Requests
from gridsim.policy.slurm.entry_columns import SECOND, rows_of_numbers
from gridsim.policy.slurm.nodes import Bytes, Demands
from gridsim.policy.slurm.priorities import Priorities
from gridsim.policy.slurm.queue_entries import Entries, label_of
from gridsim.policy.slurm.reasons import BEGIN_TIME, DEPENDENCY, NONE, NOT_AVAILABLE, OVER, Diary
from gridsim.policy.slurm.reservation_times import ReservationTimes
from gridsim.policy.slurm.reservations import Reservations, seen_all
from gridsim.policy.slurm.submit_checks import SubmitChecks
from gridsim.policy.slurm.timing import Timing

RECORDED_WAIT = "recorded_wait_us"
"""Label: wait in a log, microseconds after the submission. Jobs with this label start after it, without a decision.

The first job without it finds the queue and the machine in the state of the log; from then on the policy decides.
"""


class IdleTime:
    """Time since the last change of the queue; *reservations* are those of a *site*."""

    def __init__(self, site: Site, reservations: Reservations) -> None:
        # The order can change until all entries have reached the maximum age.
        self._ages = max(site.priority.oldest, site.scheduling.least_age)
        self.reservations, self._since = reservations, 0
        self._soon = self._ages - 2 * max(site.scheduling.interval, site.scheduling.full_interval)

    def broken(self, now: int, *, briefly: bool = False) -> None:
        """Record a change of the queue, or an early end of a reservation; *briefly*: it matters to the next cycles."""
        self._since = max(self._since, now - self._soon) if briefly else now

    def lasts(self, now: int) -> bool:
        """Return whether cycles can find nothing new without running jobs and submissions."""
        return now >= seen_all(self._since, self.reservations) + self._ages


class Pending:
    """The waiting requests of a run.

    Parameters
    ----------
    requests, entries, demands
        The requests, their entries, and the demands of these.
    busy : (r,) uint8
        Running requests.
    priorities : Priorities
        Priorities of eligible entries, and the queue order.
    intake, bookings, timing, diary, stillness
        Submission limits, reservation times, cycle times, wait reasons, and loop guard; notified of changes of the
        queue.
    cores : int
        Cores of the site.
        Of the site.

    Attributes
    ----------
    order : (k,) int64
        Queue entries in order.
    follows_log : bool
        Whether requests start after their `RECORDED_WAIT`.
    """

    def __init__(
        self,
        requests: Requests,
        entries: Entries,
        demands: Demands,
        busy: Bytes,
        priorities: Priorities,
        intake: SubmitChecks,
        bookings: ReservationTimes,
        timing: Timing,
        diary: Diary,
        stillness: IdleTime,
        cores: int,
    ) -> None:
        self._bookings, self._timing = bookings, timing
        self._diary, self._stillness, self._cores = diary, stillness, cores
        self.order: IntArray = np.zeros(0, dtype=np.int64)
        self.resume(requests, entries, demands, busy, priorities, intake)
        # If submit times depend on this run, arrivals are not known in advance.
        self._reacts = requests.moves and not requests.spare
        self._absent = False
        self._over, self._taken = np.zeros(len(requests), dtype=bool), np.zeros(len(requests), dtype=bool)
        self._choices: dict[int, list[int]] = {}  # entries of requests that do not have exactly their own one
        self._reserved: dict[int, list[int]] = defaultdict(list)  # waiting requests by reservation
        self._followers: dict[int, list[int]] = defaultdict(list)
        self._later: list[tuple[int, int]] = []  # when each becomes eligible
        self._leaves: list[tuple[int, int]] = []  # when each is cancelled
        self._coming: list[tuple[int, int, int]] = []  # submission of requests that others depend on

    def resume(
        self,
        requests: Requests,
        entries: Entries,
        demands: Demands,
        busy: Bytes,
        priorities: Priorities,
        intake: SubmitChecks,
    ) -> None:
        """Use these objects from now on; earlier requests keep their entries among the new, larger number."""
        self._requests, self._entries, self._demands, self._busy = requests, entries, demands, busy
        self._priorities, self._intake = priorities, intake
        self._after, self._begin = label_of(requests, "after"), label_of(requests, "begin")
        self._withdrawn, self._recorded = label_of(requests, "withdrawn"), label_of(requests, RECORDED_WAIT)
        self.follows_log = bool((self._recorded >= 0).any())
        self._row_of = rows_of_numbers(requests) if (self._after >= 0).any() else {}
        self._books = bool((demands["reservation"] >= 0).any())

    # -- submission ---------------------------------------------------------------------------------------------------

    def add(self, request: int, entries: Sequence[int], now: int) -> None:
        """Add a submitted request, to start in one of some entries; it enters the queue when it becomes eligible."""
        self._intake.take(request, entries)
        self._taken[request] = True
        if tuple(entries) != (request,):
            self._choices[request] = list(entries)
        for reservation in self._requested_reservations(request):
            self._bookings.ask(reservation, now)
            self._reserved[reservation].append(request)
        if self._withdrawn[request] >= 0:
            heapq.heappush(self._leaves, (now + int(self._withdrawn[request]) * SECOND, request))
        if self.follows_log:
            heapq.heappush(self._later, (now + int(self._recorded[request]), request))
        else:
            self._release(request, now)

    def leave_log(self, request: int, now: int) -> None:
        """At the first request without a recorded wait, add all requests that are waiting in the log to the queue."""
        if not self.follows_log or self._recorded[request] >= 0:
            return
        self.follows_log = False
        waiting, self._later = self._later, []
        for _, other in waiting:
            if not self._over[other]:
                self._release(other, now, int(self._requests.submit[other]))

    def requeue(self, request: int, now: int, at: int) -> None:
        """Let a request become eligible, possibly again, at an instant; without its reservation it is cancelled."""
        self._diary.say(request, BEGIN_TIME, now)
        if self._books and not any(self._intake.could(entry, now) for entry in self.chosen(request)):
            heapq.heappush(self._leaves, (now, request))
        heapq.heappush(self._later, (at, request))

    def join_due(self, now: int) -> None:
        """Add requests to the queue whose begin time has been reached."""
        while self._later and self._later[0][0] <= now:
            request = heapq.heappop(self._later)[1]
            if not self._over[request]:
                self._join(request, now)
                self._timing.wake(now)

    def _release(self, request: int, now: int, since: int | None = None) -> None:
        """Add a request to the queue, unless a dependency or begin time holds it back; its age counts from *since*."""
        on = self._row_of.get(int(self._after[request]), -1) if self._after[request] >= 0 else -1
        due = int(self._requests.submit[request]) + int(self._begin[request]) * SECOND
        if on >= 0 and not self._over[on] and on != request and not self._refused(on, request):
            self._followers[on].append(request)
            if not self._taken[on] and not self._reacts:
                last = -1 if self._requests.cores[on] > self._cores else on  # requests that are too wide get no quote
                heapq.heappush(self._coming, (int(self._requests.submit[on]), last, on))
            self._diary.say(request, DEPENDENCY, now)
        elif self._begin[request] > 0 and due > now:
            self.requeue(request, now, due)
        else:
            self._join(request, now, since)
            self._timing.submitted(now)

    def _refused(self, on: int, request: int) -> bool:
        """Return whether an earlier request was rejected, so that dependencies on it are void."""
        return on < request and not self._taken[on] and not self._reacts

    def release_dependants(self, now: int, last: int) -> None:
        """Release requests that depend on a rejected one; *last* is the last request submitted so far."""
        while self._coming and self._coming[0][:2] <= (now, last):
            on = heapq.heappop(self._coming)[2]
            if self._taken[on]:
                continue
            self._over[on] = True
            for follower in self._followers.pop(on, ()):
                if not self._over[follower]:
                    self._release(follower, now)

    def _join(self, request: int, now: int, since: int | None = None) -> None:
        """Make a request eligible *now*; its age counts from now or from an earlier instant."""
        self.calculate(now)
        self._diary.say(request, NONE, now)
        for entry in self.chosen(request):
            if not self._entries.waits[entry]:
                self._enter(entry, now, now if since is None else since)

    def _enter(self, entry: int, now: int, since: int) -> None:
        since = max(since, self._bookings.begins(int(self._demands["reservation"][entry])))
        self._priorities.eligible(entry, since)
        self._priorities.rank_one(entry, now)
        order, place = self.order, self._priorities.place(self.order, entry)
        self.order = np.concatenate([order[:place], [entry], order[place:]])
        self._stillness.broken(now)
        self._timing.changed()

    def calculate(self, now: int) -> None:
        """Recalculate priorities if a period has ended."""
        if now < self._priorities.next_calculation():
            return
        held = self._priorities.forgets()
        boundary = self._priorities.calculate(now)
        if held and not self._priorities.forgets():
            self._stillness.broken(now)
        if boundary is not None and len(self.order):
            self._priorities.rank(self.order, boundary)
            self.order = self._priorities.order(self.order)
            self._timing.changed(boundary)

    def ordered(self, now: int) -> IntArray:
        """Return the queue in the order for a scheduling cycle, without entries that absent nodes hold back."""
        if self._priorities.circular:
            self.order = self._priorities.order(self.order)
        if not self._absent:
            return self.order
        placeable = [self._intake.placeable(entry, now) for entry in self.order.tolist()]
        for request in self._demands["request"][self.order[~np.array(placeable, dtype=bool)]].tolist():
            if self._diary.reasons.code[request] != NOT_AVAILABLE:
                self._diary.say(request, NOT_AVAILABLE, now)
        return self.order[placeable]

    def see(self, seen: Reservations, now: int, *, absent: bool) -> None:
        """Use reservations with absent nodes from now on."""
        booked = self._bookings.reservations
        booked = booked._replace(rows=seen.rows[: len(booked.rows)])  # both see changes of the same rows
        self._bookings.reservations = self._stillness.reservations = booked
        self._intake.see(booked, seen)
        self._absent = absent
        self._stillness.broken(now, briefly=True)

    # -- leaving ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Remove running requests from the queue."""
        self.order = self.order[self._busy[self._demands["request"][self.order]] == 0]

    def done(self, request: int, now: int) -> None:
        """Record that a request has ended; requests that depend on it may become eligible."""
        self._over[request] = True
        self._stillness.broken(now)
        self._intake.give(request)
        for reservation in self._requested_reservations(request):
            self._bookings.leave(reservation, now)
        for follower in self._followers.pop(request, ()):
            if not self._over[follower]:
                self._release(follower, now)

    def lose(self, now: int) -> list[int]:
        """Return requests that leave the queue because they can never run from *now* on."""
        return [request for request in self._lost(now) if self._drop(request, now)]

    def lose_first(self, now: int) -> list[int]:
        """Remove the first request of a queue that cannot change any more: no cycle will ever start it.

        In Slurm it would stay until an administrator acts. Requests behind it may start afterwards. While nodes are
        absent, it stays.
        """
        if self._absent or not self.still(now) or not len(self.order):
            return []
        request = int(self._demands["request"][self.ordered(now)[0]])
        return [request] if self._drop(request, now) else []

    def still(self, now: int) -> bool:
        """Return whether no cycle can find anything new without further ends and submissions."""
        return (
            not self._later
            and not self._leaves
            and not self._coming
            and self._stillness.lasts(now)
            and not self._priorities.forgets()
        )

    def cancel(self, now: int) -> list[int]:
        """Return the waiting requests that their users cancel by *now*."""
        found = []
        while self._leaves and self._leaves[0][0] <= now:
            request = heapq.heappop(self._leaves)[1]
            if self._drop(request, now):
                found.append(request)
        return found

    def _waits(self, request: int) -> bool:
        return not self._over[request] and not self._busy[request]

    def _drop(self, request: int, now: int) -> bool:
        """Remove a request from the queue for good, if it is waiting."""
        if not self._waits(request):
            return False
        self.order = self.order[self._demands["request"][self.order] != request]
        self._diary.say(request, OVER, now)
        self.done(request, now)
        self._timing.freed(now)
        return True

    def _lost(self, now: int) -> list[int]:
        """Return requests without any usable nodes after a reservation begins or ends.

        In Slurm they would be held until an administrator acts. If the reservation has ``NO_HOLD_JOBS_AFTER``,
        requests continue without it.
        """
        if now < self._bookings.change:
            return []
        lost = []
        self._intake.placeable_kinds.clear()
        for reservation in self._bookings.turn(now):
            self._stillness.broken(now)
            for request in self._reserved.pop(reservation, ()):
                if self._waits(request) and not self._without(request, reservation, now):
                    lost.append(request)
        self._timing.freed(now)
        for entry in self.order.tolist():
            request = int(self._demands["request"][entry])
            if request not in lost and not any(self._intake.could(each, now) for each in self.chosen(request)):
                lost.append(request)
        return lost

    def _without(self, request: int, reservation: int, now: int) -> bool:
        """Remove a reservation from a request; return whether any entry is left in which it could start."""
        before = self.chosen(request)
        left = [entry for entry in before if self._demands["reservation"][entry] != reservation]
        self._choices[request] = left
        self._bookings.leave(reservation, now)
        queued = np.isin(self.order, before)
        inside = self.order[queued]
        self.order = self.order[~queued | (self._demands["reservation"][self.order] != reservation)]
        if left and all(self._entries.waits[entry] for entry in left):
            self._entries.waits[left] = False
            for entry in left if len(inside) else ():  # otherwise it enters the queue at its begin time
                self._enter(entry, now, now)
        return bool(left)

    def chosen(self, request: int) -> list[int]:
        """Return the entries in which a request could start."""
        return self._choices.get(request, [request])

    def _requested_reservations(self, request: int) -> set[int]:
        if not self._books:
            return set()
        return {int(row) for row in self._demands["reservation"][self.chosen(request)] if row >= 0}

    # -- next instant -------------------------------------------------------------------------------------------------

    def next(self) -> int:
        """Return the next instant at which the queue changes without other events."""
        times = [each[0][0] for each in (self._later, self._leaves) if each]
        if self.follows_log:
            return min(times, default=NEVER)
        if self._coming:
            times.append(self._coming[0][0])
        if len(self.order):
            times.append(self._priorities.next_calculation())
        if len(self.order) or self._bookings.wanted:
            times.append(self._bookings.change)
        return min(times, default=NEVER)
