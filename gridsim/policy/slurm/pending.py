"""Pending requests: those in the queue, those that come into it later, and those that leave it without a start.

Sources: sbatch(1), ``--dependency``, ``--begin`` and ``--reservation``; reservations.html ("when a reservation ends the
reservation request will be removed from any pending jobs submitted to the reservation and will be put into a held
state"; ``NO_HOLD_JOBS_AFTER``).
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from gridsim.model.time import NEVER, IntArray
from gridsim.policy.queue import Requests
from gridsim.policy.slurm.bookings import Bookings
from gridsim.policy.slurm.entries import Entries, label_of
from gridsim.policy.slurm.intake import Intake
from gridsim.policy.slurm.needs import SECOND, rows_of_numbers
from gridsim.policy.slurm.nodes import Bytes, Demands
from gridsim.policy.slurm.priorities import Priorities
from gridsim.policy.slurm.reasons import BEGIN_TIME, DEPENDENCY, NONE, OVER, Diary
from gridsim.policy.slurm.repeats import Stillness
from gridsim.policy.slurm.timing import Timing

RECORDED_WAIT = "recorded_wait_us"
"""Label: the wait in a log, microseconds after the submission. Jobs with this label start after it, without a decision.

The first job without it finds the queue and the machine of the log; from then on the policy decides.
"""


class Pending:
    """The waiting requests of a run.

    Parameters
    ----------
    requests, entries, demands
        The requests, their entries, and what these ask for.
    busy : (r,) uint8
        Which requests run.
    priorities : Priorities
        Told when entries can run; puts them in order.
    intake, bookings, timing, diary, stillness
        Told who is over, who asks for which reservation, that there is something to look at, why requests wait, and
        when somebody came or left.
    cores : int
        Of the site.

    Attributes
    ----------
    order : (k,) int64
        The queue: entries, the first one first.
    follows_log : bool
        Whether requests start as their `RECORDED_WAIT` says.
    """

    def __init__(
        self,
        requests: Requests,
        entries: Entries,
        demands: Demands,
        busy: Bytes,
        priorities: Priorities,
        intake: Intake,
        bookings: Bookings,
        timing: Timing,
        diary: Diary,
        stillness: Stillness,
        cores: int,
    ) -> None:
        self._bookings, self._timing = bookings, timing
        self._diary, self._stillness, self._cores = diary, stillness, cores
        self.order: IntArray = np.zeros(0, dtype=np.int64)
        self.go_on(requests, entries, demands, busy, priorities, intake)
        # Where users react, nobody knows who comes when.
        self._reacts = requests.moves and not requests.room
        self._over, self._taken = np.zeros(len(requests), dtype=bool), np.zeros(len(requests), dtype=bool)
        self._choices: dict[int, list[int]] = {}  # entries of requests that have not one, their own
        self._reserved: dict[int, list[int]] = defaultdict(list)  # waiting requests by reservation
        self._followers: dict[int, list[int]] = defaultdict(list)
        self._later: list[tuple[int, int]] = []  # when each can run
        self._leaves: list[tuple[int, int]] = []  # when each is cancelled
        self._coming: list[tuple[int, int, int]] = []  # when requests come that others wait for

    def go_on(
        self,
        requests: Requests,
        entries: Entries,
        demands: Demands,
        busy: Bytes,
        priorities: Priorities,
        intake: Intake,
    ) -> None:
        """Work on these from now on: of more requests, where those that were have kept their entries."""
        self._requests, self._entries, self._demands, self._busy = requests, entries, demands, busy
        self._priorities, self._intake = priorities, intake
        self._after, self._begin = label_of(requests, "after"), label_of(requests, "begin")
        self._withdrawn, self._recorded = label_of(requests, "withdrawn"), label_of(requests, RECORDED_WAIT)
        self.follows_log = bool((self._recorded >= 0).any())
        self._row_of = rows_of_numbers(requests) if (self._after >= 0).any() else {}
        self._books = bool((demands["reservation"] >= 0).any())

    # -- coming -------------------------------------------------------------------------------------------------------

    def come(self, request: int, entries: Sequence[int], now: int) -> None:
        """A request was submitted, to start in one of some entries: it joins the queue, now or when it can run."""
        self._intake.take(request, entries)
        self._taken[request] = True
        if tuple(entries) != (request,):
            self._choices[request] = list(entries)
        for reservation in self._asked_for(request):
            self._bookings.ask(reservation, now)
            self._reserved[reservation].append(request)
        if self._withdrawn[request] >= 0:
            heapq.heappush(self._leaves, (now + int(self._withdrawn[request]) * SECOND, request))
        if self.follows_log:
            heapq.heappush(self._later, (now + int(self._recorded[request]), request))
        else:
            self._release(request, now)

    def leave_log(self, request: int, now: int) -> None:
        """From the first request without a recorded wait on, those that wait in the log join the queue."""
        if not self.follows_log or self._recorded[request] >= 0:
            return
        self.follows_log = False
        waiting, self._later = self._later, []
        for _, other in waiting:
            if not self._over[other]:
                self._release(other, now, int(self._requests.submit[other]))

    def come_back(self, request: int, now: int, at: int) -> None:
        """A request can run, or run again, from an instant on."""
        self._diary.say(request, BEGIN_TIME, now)
        heapq.heappush(self._later, (at, request))

    def join_due(self, now: int) -> None:
        """Requests join whose time has come."""
        while self._later and self._later[0][0] <= now:
            request = heapq.heappop(self._later)[1]
            if not self._over[request]:
                self._join(request, now)
                self._timing.wake(now)

    def _release(self, request: int, now: int, since: int | None = None) -> None:
        """A request joins the queue, unless it waits for another one or for a time; it grows older from *since* on."""
        on = self._row_of.get(int(self._after[request]), -1) if self._after[request] >= 0 else -1
        due = int(self._requests.submit[request]) + int(self._begin[request]) * SECOND
        if on >= 0 and not self._over[on] and on != request and not self._refused(on, request):
            self._followers[on].append(request)
            if not self._taken[on] and not self._reacts:
                came = -1 if self._requests.cores[on] > self._cores else on  # nobody asks about one that is too wide
                heapq.heappush(self._coming, (int(self._requests.submit[on]), came, on))
            self._diary.say(request, DEPENDENCY, now)
        elif self._begin[request] > 0 and due > now:
            self.come_back(request, now, due)
        else:
            self._join(request, now, since)
            self._timing.submitted(now)

    def _refused(self, on: int, request: int) -> bool:
        """Whether a request that came before another one was not taken in: nobody waits for its end."""
        return on < request and not self._taken[on] and not self._reacts

    def forsake(self, now: int, came: int) -> None:
        """Whoever waits for one that was refused when it came may run; *came* is the request that came last by now."""
        while self._coming and self._coming[0][:2] <= (now, came):
            on = heapq.heappop(self._coming)[2]
            if self._taken[on]:
                continue
            self._over[on] = True
            for follower in self._followers.pop(on, ()):
                if not self._over[follower]:
                    self._release(follower, now)

    def _join(self, request: int, now: int, since: int | None = None) -> None:
        """A request can run from *now* on, and grows older since then or since an earlier instant."""
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
        """Make priorities anew where a period has gone by."""
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

    def ordered(self) -> IntArray:
        """The queue as a pass looks at it."""
        if self._priorities.circular:
            self.order = self._priorities.order(self.order)
        return self.order

    # -- leaving ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Those leave the queue that run."""
        self.order = self.order[self._busy[self._demands["request"][self.order]] == 0]

    def done(self, request: int, now: int) -> None:
        """A request is over; whoever waited for that may run."""
        self._over[request] = True
        self._stillness.broken(now)
        self._intake.give(request)
        for reservation in self._asked_for(request):
            self._bookings.leave(reservation, now)
        for follower in self._followers.pop(request, ()):
            if not self._over[follower]:
                self._release(follower, now)

    def lose(self, now: int) -> list[int]:
        """Requests that leave since they can never run from *now* on."""
        return [request for request in self._lost(now) if self._drop(request, now)]

    def lose_first(self, now: int) -> list[int]:
        """The first request of a queue that nothing changes any more leaves: no pass will ever start it.

        Slurm would leave it there until somebody does something about it. Those behind it may start then.
        """
        if not self.still(now) or not len(self.order):
            return []
        request = int(self._demands["request"][self.ordered()[0]])
        return [request] if self._drop(request, now) else []

    def still(self, now: int) -> bool:
        """Whether no pass can find anything new, if nobody runs or comes."""
        return (
            not self._later
            and not self._leaves
            and not self._coming
            and self._stillness.lasts(now)
            and not self._priorities.forgets()
        )

    def cancel(self, now: int) -> list[int]:
        """Waiting requests that are cancelled by *now* by their users."""
        found = []
        while self._leaves and self._leaves[0][0] <= now:
            request = heapq.heappop(self._leaves)[1]
            if self._drop(request, now):
                found.append(request)
        return found

    def _waits(self, request: int) -> bool:
        return not self._over[request] and not self._busy[request]

    def _drop(self, request: int, now: int) -> bool:
        """Take a request out of the queue for good, if it waits."""
        if not self._waits(request):
            return False
        self.order = self.order[self._demands["request"][self.order] != request]
        self._diary.say(request, OVER, now)
        self.done(request, now)
        self._timing.freed(now)
        return True

    def _lost(self, now: int) -> list[int]:
        """Requests that no nodes are left for where a reservation begins or ends.

        Slurm would hold them until somebody does something about it. Those whose reservation says so
        (``NO_HOLD_JOBS_AFTER``) go on without it.
        """
        if now < self._bookings.change:
            return []
        lost = []
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
        """Go on without a reservation; whether anything is left that the request could start in."""
        before = self.chosen(request)
        left = [entry for entry in before if self._demands["reservation"][entry] != reservation]
        self._choices[request] = left
        self._bookings.leave(reservation, now)
        queued = np.isin(self.order, before)
        inside = self.order[queued]
        self.order = self.order[~queued | (self._demands["reservation"][self.order] != reservation)]
        if left and all(self._entries.waits[entry] for entry in left):
            self._entries.waits[left] = False
            for entry in left if len(inside) else ():  # else it joins when its time has come
                self._enter(entry, now, now)
        return bool(left)

    def chosen(self, request: int) -> list[int]:
        """Entries in which a request could start."""
        return self._choices.get(request, [request])

    def _asked_for(self, request: int) -> set[int]:
        if not self._books:
            return set()
        return {int(row) for row in self._demands["reservation"][self.chosen(request)] if row >= 0}

    # -- what comes next ----------------------------------------------------------------------------------------------

    def next(self) -> int:
        """The next instant that changes the queue, if nothing happens."""
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
