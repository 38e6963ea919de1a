"""State at a moment of a log, and the workload of a run that starts from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gridsim.entities.beginning import Beginning
from gridsim.entities.starting_point import with_time_left
from gridsim.forecasts.history import History
from gridsim.forecasts.model import Jobs
from gridsim.model.allocations import Allocations
from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.model.workload import Workload
from gridsim.policy.protocols import Placement

RECALLED = 20
"""Number of ended jobs of each user that policies with predictions learn."""


@dataclass(frozen=True)
class State:
    """Jobs of a log at a moment, after its scheduling cycle.

    Attributes
    ----------
    at : int
        The moment, whole seconds.
    running, waiting : (n,) int64
        Rows of the log: running jobs by start, waiting ones in the order of the queue.
    elapsed : (n,) int64
        Elapsed time of the running jobs, whole microseconds.
    places : sequence of Placement or None
        Their places; None on a pool of cores.
    enters : (m,) int64, optional
        When waiting jobs enter the queue, whole microseconds from the moment on, for those that do so later.
    conditions : Beginning, optional
        Dependencies between jobs, whose numbers are those of running jobs, then waiting ones.
    past : sequence of (int, int, int)
        Jobs that have ended, for policies that predict run times: user, run time and end, as of `Beginning`.
    """

    at: int
    running: IntArray
    waiting: IntArray
    elapsed: IntArray
    places: Sequence[Placement | None]
    enters: IntArray | None = None
    conditions: Beginning | None = None
    past: Sequence[tuple[int, int, int]] = ()

    @classmethod
    def of(
        cls, at: int, submit: IntArray, start: IntArray, end: IntArray, allocations: Allocations | None = None
    ) -> State:
        """Return the state at a moment of a schedule, whose times are whole microseconds.

        Examples
        --------
        >>> submit, start, end = np.array([[0, 1, 2], [0, 5, NEVER], [9, 9, NEVER]])
        >>> [it.tolist() for it in (State.of(0, submit, start, end).running, State.of(0, submit, start, end).waiting)]
        [[0], []]
        """
        now = at * MICROSECOND
        running = np.flatnonzero((start <= now) & (end > now))
        running = running[np.argsort(start[running], kind="stable")]
        waiting = np.flatnonzero((submit <= now) & (start > now) & (end > now))
        places = [None] * len(running) if allocations is None else _places(allocations, running, now)
        return cls(at, running, waiting, now - start[running], places)

    def jobs(self, history: History) -> Jobs:
        """Return the jobs of the state for a model of the future."""
        rows = np.concatenate([self.running, self.waiting])
        elapsed = np.concatenate([self.elapsed // MICROSECOND, np.zeros(len(self.waiting), dtype=np.int64)])
        return Jobs(history.limit[rows], elapsed, history.user[rows])

    def workload(self, log: Workload, later: IntArray, at: IntArray) -> Workload:
        """Return the jobs of the state and *later* ones of the log; time 0 is the moment.

        Submit times of jobs of the state are not above 0. Running jobs that have reached their limits have 30 s left.

        Parameters
        ----------
        log : Workload
            The jobs, with the run times of this future.
        later : (m,) int64
            Rows of the log of jobs that arrive.
        at : (m,) int64
            Their arrivals, whole microseconds from the moment on.
        """
        rows, many = np.concatenate([self.running, self.waiting, later]), len(self.running)
        found = log.select(rows)
        submit = found.submit - self.at * MICROSECOND
        submit[len(rows) - len(later) :] = at
        if self.enters is not None:
            waiting = slice(many, many + len(self.enters))
            submit[waiting] = np.where(self.enters > 0, self.enters, submit[waiting])
        estimate = found.estimate.copy()
        estimate[:many] = with_time_left(estimate[:many], self.elapsed)
        changed: dict[str, Any] = {"submit": submit, "estimate": estimate, "logged": {}}
        shift = {"transform": "state", "shift": self.at}  # second 0 is the moment
        provenance = {**found.provenance, "transforms": [*found.provenance.get("transforms", ()), shift]}
        changed |= {
            "provenance": provenance,
            "job": np.arange(1, len(rows) + 1),
            "deadline": np.full(len(rows), NEVER),
            "reactions": None,
        }
        return replace(found, **changed)

    @property
    def beginning(self) -> Beginning:
        """The running jobs in place, for `gridsim.world.World`."""
        running = list(zip(self.elapsed.tolist(), self.places, strict=True))
        return replace(self.conditions or Beginning(), running=running, past=self.past)

    def with_past(self, log: Workload, start: IntArray, end: IntArray) -> State:
        """Return the state with the ended jobs that predictions depend on.

        These are those that ended since the first submission of a job of the state, and the last `RECALLED` before.
        """
        now, users = self.at * MICROSECOND, log.labels.get("user")
        if users is None:
            return self
        first = log.submit[np.concatenate([self.running, self.waiting])].min(initial=now)
        ended = np.flatnonzero((end <= now) & (start < NEVER))
        ended = ended[np.argsort(end[ended], kind="stable")]
        last: dict[int, list[int]] = {}
        for row, user in zip(ended[::-1].tolist(), users[ended][::-1].tolist(), strict=True):
            own = last.setdefault(user, [])
            if end[row] > first or len(own) < RECALLED or end[own[-RECALLED]] > first:
                own.append(row)
        rows = np.array(sorted(row for own in last.values() for row in own), dtype=np.int64)
        rows = rows[np.argsort(end[rows], kind="stable")]
        ran = (end - start)[rows]
        return replace(
            self, past=list(zip(users[rows].tolist(), ran.tolist(), (end[rows] - now).tolist(), strict=True))
        )


def _places(allocations: Allocations, running: IntArray, now: int) -> list[Placement | None]:
    """Return what running jobs hold at an instant."""
    there = np.flatnonzero((allocations.start_us <= now) & (allocations.end_us > now) & (allocations.node >= 0))
    gpus: dict[int, list[tuple[int, int]]] = {}
    columns = (allocations.gpu_row, allocations.gpu, allocations.gpu_share)
    for row, gpu, share in zip(*(column.tolist() for column in columns), strict=True):
        gpus.setdefault(row, []).append((gpu, share))
    found: list[Placement | None] = []
    for job in running.tolist():
        rows = there[allocations.job[there] == job]
        amounts = {name: column[rows] for name, column in allocations.amounts.items()}
        shares = [tuple(gpus.get(row, ())) for row in rows.tolist()]
        tasks = allocations.tasks[rows]
        counted = tasks if len(tasks) and (tasks >= 0).all() else ()
        found.append(Placement(allocations.node[rows], amounts, shares if any(shares) else (), counted))
    return found
