"""Job arrivals: processes that release each job at its submit time, or when a simulated user submits it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence

import numpy as np
from simpy import Environment, Event

from gridsim.entities.clock import Instant, PriorityEvent
from gridsim.entities.router import Root
from gridsim.model.reactions import NONE, Reactions
from gridsim.model.time import IntArray
from gridsim.policy.queue import Requests

_EVERY = 2048  # jobs between two progress reports


class Source:
    """Release the requests of a run in job order.

    Parameters
    ----------
    submit : (n,) int64
        Submit times in whole microseconds, ascending.
    rows : (n,) int64, optional
        Their requests; all in order by default.
    progress : callable, optional
        Called at intervals with the number of jobs released so far.
    """

    def __init__(
        self,
        env: Environment,
        submit: IntArray,
        router: Root,
        instant: Instant,
        progress: Callable[[int], None] | None = None,
        rows: IntArray | None = None,
    ) -> None:
        self._env, self._router, self._instant, self._progress = env, router, instant, progress
        self._rows: Sequence[int] = range(len(submit)) if rows is None else rows.tolist()
        firsts = np.flatnonzero(np.diff(submit, prepend=-1))
        self._instants = zip(
            submit[firsts].data,
            firsts.data,
            np.append(firsts, len(submit))[1:].data,
            strict=True,
        )
        self.process = env.process(self._release())

    def _release(self) -> Generator[Event, None, None]:
        env, router, priority = self._env, self._router, self._instant.arrival
        told = 0
        for instant, first, end in self._instants:
            arrival = PriorityEvent(env, instant - int(env.now), priority)
            router.expect(arrival)
            yield arrival
            router.inbox.extend(self._rows[first:end])
            if self._progress is not None and end - told >= _EVERY:
                told = end
                self._progress(told)


class Reacting:
    """Release requests when their users submit them: at fixed times, or after the ends of other requests.

    Parameters
    ----------
    requests : Requests
        Single tasks in the order of their original submit times; the simulated submit times are written to its columns.
    reactions : Reactions
        The jobs that each batch waits for.
    progress : callable, optional
        Called at intervals with the number of jobs released so far.

    Notes
    -----
    Jobs that are submitted in one instant are routed in job order, in the fewest events that the order of the instant
    allows.
    """

    def __init__(
        self,
        env: Environment,
        requests: Requests,
        reactions: Reactions,
        router: Root,
        instant: Instant,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._env, self._requests, self._router, self._progress = env, requests, router, progress
        self._priority = instant.arrival
        self._due: dict[int, list[int]] = {}
        self._released = self._notify = 0
        self._expect_batches(requests, reactions)
        alone = np.flatnonzero(reactions.batch == NONE)
        self._own: Iterator[tuple[int, int]] = zip(requests.submit[alone].tolist(), alone.tolist(), strict=True)
        self._next = next(self._own, None)
        self._until = -1  # instant up to which independent jobs are scheduled
        self._fetch()

    def _expect_batches(self, requests: Requests, reactions: Reactions) -> None:
        batches = reactions.batches(requests.labels.get("user"))
        rows = batches.rows
        answers = np.repeat(batches.answers, np.diff(batches.first))
        self._rows: list[int] = rows.tolist()
        # Delays after the last awaited end, or submit times.
        self._times: list[int] = np.where(answers, reactions.delay[rows], requests.submit[rows]).tolist()
        self._first: list[int] = batches.first.tolist()
        waiting = (batches.before,) if batches.then is None else (batches.before, batches.then)
        self._waiting: list[list[int]] = [column.tolist() for column in waiting]  # batches that wait for each job
        self._answers: list[bool] = batches.answers.tolist()
        self._follows: list[bool] = [*batches.follows.tolist(), False]
        self._missing: list[int] = (batches.waited + batches.follows).tolist()
        self._ended = [0] * len(self._missing)  # latest end so far among the jobs that each batch waits for
        self._earliest = [0] * len(self._missing)  # submit time of the previous batch of the user
        for batch in [batch for batch, missing in enumerate(self._missing) if not missing]:
            self._schedule_batch(batch)

    def began(self, request: int) -> None:
        """Ignore the start of a request; no batch waits for starts."""

    def over(self, request: int) -> None:
        """Submit the batches whose last awaited request has ended or was rejected."""
        for column in self._waiting:
            batch = column[request]
            if batch == NONE:
                continue
            self._ended[batch] = int(self._env.now)
            self._missing[batch] -= 1
            if not self._missing[batch]:
                self._schedule_batch(batch)

    def _schedule_batch(self, batch: int) -> None:
        """Schedule a batch that waits for nothing more, and the batches that waited only for it."""
        while True:
            begin, end, ended = self._first[batch], self._first[batch + 1], self._ended[batch]
            first = self._times[begin]
            came = max(ended + first if self._answers[batch] else first, ended, self._earliest[batch])
            for place in range(begin, end):
                self._expect(self._rows[place], came + self._times[place] - first)
            batch += 1
            if not self._follows[batch]:
                return
            self._earliest[batch] = came
            self._missing[batch] -= 1
            if self._missing[batch]:
                return

    def _fetch(self) -> None:
        """Schedule the independent jobs of the next submit time."""
        if self._next is None:
            return
        self._until = self._next[0]
        while self._next is not None and self._next[0] == self._until:
            self._expect(self._next[1], self._until)
            self._next = next(self._own, None)

    def _expect(self, row: int, instant: int) -> None:
        rows = self._due.get(instant)
        if rows is not None:
            rows.append(row)
            return
        self._due[instant] = [row]
        PriorityEvent(self._env, instant - int(self._env.now), self._priority, self._release, instant)

    def _release(self, event: Event) -> None:
        instant: int = event._value
        rows = sorted(self._due.pop(instant))
        if instant == self._until:
            self._fetch()
        for row in rows:
            self._requests.arrive(row, instant)
        self._router.take(rows)
        self._released += len(rows)
        if self._progress is not None and self._released - self._notify >= _EVERY:
            self._notify = self._released
            self._progress(self._notify)
