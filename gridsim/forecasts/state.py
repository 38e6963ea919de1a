"""State at a moment of a log, and the runs of its futures: the starts of the jobs that wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gridsim.engine.repeated_runs import RepeatedRuns
from gridsim.entities.beginning import Beginning
from gridsim.entities.starting_point import with_time_left
from gridsim.forecasts.history import History
from gridsim.forecasts.model import Future, FutureModel, Jobs
from gridsim.model.allocations import Allocations
from gridsim.model.cluster_state import LABELS, ClusterState, RunningJob, StateNode, WaitingJob, requested
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.options import Run
from gridsim.policy.protocols import Placement
from gridsim.record import Record
from gridsim.run_setup import set_up
from gridsim.simulation import run
from gridsim.world import World

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

    @cached_property
    def rows(self) -> IntArray:
        """Rows of the running jobs, then of the waiting ones."""
        return np.concatenate([self.running, self.waiting])

    def jobs(self, history: History) -> Jobs:
        """Return the jobs of the state for a model of the future."""
        elapsed = np.append(self.elapsed // MICROSECOND, np.zeros(len(self.waiting), dtype=np.int64))
        return Jobs(history.limit[self.rows], elapsed, history.user[self.rows])

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
        found, running, many = log.select(np.concatenate([self.rows, later])), len(self.running), len(self.rows)
        submit, estimate = found.submit - self.at * MICROSECOND, found.estimate.copy()
        submit[many:] = at
        if self.enters is not None:
            submit[running:many] = np.where(self.enters > 0, self.enters, submit[running:many])
        estimate[:running] = with_time_left(estimate[:running], self.elapsed)
        shift = {"transform": "state", "shift": self.at}  # second 0 is the moment
        provenance = {**found.provenance, "transforms": [*found.provenance.get("transforms", ()), shift]}
        changed: dict[str, Any] = {"submit": submit, "estimate": estimate, "logged": {}, "reactions": None}
        changed |= {"job": np.arange(1, len(found) + 1), "deadline": np.full(len(found), NEVER)}
        return replace(found, provenance=provenance, **changed)

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
        first = log.submit[self.rows].min(initial=now)
        ended = np.flatnonzero((end <= now) & (start < NEVER))
        old = ended[end[ended] <= first]
        old = old[np.lexsort((-old, -end[old], users[old]))]  # by user, the last one first
        nth = np.arange(len(old)) - np.searchsorted(users[old], users[old])
        rows = np.sort(np.concatenate([old[nth < RECALLED], ended[end[ended] > first]]))
        rows = rows[np.argsort(end[rows], kind="stable")]
        past = (users[rows], (end - start)[rows], end[rows] - now)
        return replace(self, past=list(zip(*(column.tolist() for column in past), strict=True)))


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


def cluster_state(state: State, log: Workload, ids: Sequence[str], platform: Platform) -> ClusterState:
    """Return the state at a moment of a log as that of a cluster; without a start date its times are those of the log.

    Parameters
    ----------
    state : State
        Running and waiting jobs.
    log : Workload
        The jobs.
    ids : sequence of str
        Ids of the waiting jobs.
    platform : Platform
        The machine.
    """
    epoch, nodes, many = int(log.epoch or 0), StateNode.of(platform), len(state.running)
    columns = {label: log.labels[label] for label in LABELS if label in log.labels}
    jobs = []
    for row in state.rows.tolist():
        numbers = {label: int(column[row]) for label, column in columns.items() if column[row] != UNKNOWN}
        labels = {label: log.names[label][it] if label in log.names else str(it) for label, it in numbers.items()}
        demand = None if log.demands is None else log.demands[row]
        jobs.append(requested(int(log.cores[row]), int(log.estimate[row]) // MICROSECOND, labels, demand))
    running, elapsed, at = [], (state.elapsed // MICROSECOND).tolist(), epoch + state.at
    for job, name, passed, held in zip(jobs, log.job[state.running].tolist(), elapsed, state.places, strict=False):
        on = () if held is None else tuple(nodes[node].node for node in held.node)
        running.append(RunningJob(**job, job=str(name), start=at - passed, elapsed=passed, stopped=False, on=on))
    submit = (epoch + log.submit[state.waiting] // MICROSECOND).tolist()
    queued = zip(jobs[many:], ids, submit, strict=True)
    waiting = tuple(WaitingJob(**job, job=name, submit=since) for job, name, since in queued)
    return ClusterState(at, tuple(running), waiting, nodes)


class Machine(NamedTuple):
    """Machine, policy and options of runs."""

    platform: Platform
    policy: Any
    options: Run

    def run(self, workload: Workload) -> Record:
        """Return the record of a workload."""
        return run(workload, *self)


@dataclass(frozen=True, eq=False)
class FutureRuns:
    """Starts of the waiting jobs of a moment in its futures.

    Attributes
    ----------
    log : Workload
        The jobs.
    state : State
        Running and waiting jobs.
    model : FutureModel
        Model of the future.
    machine : Machine
        Machine, policy and options.
    moments : int
        Number of moments of which futures are simulated; the compiled loop is worth its compile time for many.
    """

    log: Workload
    state: State
    model: FutureModel
    machine: Machine
    moments: int = 1

    def waits(self, future: Future, asked: Sequence[int], until: int | None = None) -> IntArray:
        """Return the waits of some waiting jobs from the moment on, whole seconds; `NEVER` beyond the horizon.

        Parameters
        ----------
        future : Future
            Run times and arrivals.
        asked : sequence of int
            Positions of the jobs among the waiting ones.
        until : int, optional
            End of the run, whole microseconds; the horizon by default.
        """
        _, found = self.queue(future, asked, until)
        return np.where(found < NEVER, -(-found // MICROSECOND), NEVER)

    def samples(self, futures: Iterable[Future], asked: Sequence[int]) -> FloatArray:
        """Return the waits in some futures, s, a row for each; infinite beyond the horizon."""
        found = [self.waits(future, asked) for future in futures]
        waits = np.array(found, dtype=np.float64).reshape(len(found), len(asked))
        return np.where(waits >= NEVER, np.inf, waits)

    def by_requested_walltimes(self, asked: Sequence[int]) -> IntArray:
        """Return the waits if all jobs run for their limits and no others arrive, whole seconds."""
        jobs = self.model.jobs
        limits = with_time_left(jobs.limit * MICROSECOND, jobs.elapsed * MICROSECOND) // MICROSECOND
        return self.waits(Future(limits, (), np.zeros(0, dtype=np.int64)), asked, NEVER - 1)

    def queue(
        self, future: Future, asked: Sequence[int] | None = None, until: int | None = None
    ) -> tuple[IntArray, IntArray]:
        """Return when jobs enter the queue of a future, and their starts, whole microseconds from the moment on.

        Parameters
        ----------
        future, until
            As for `waits`.
        asked : sequence of int, optional
            Positions of the jobs among those that wait, then those that arrive; all by default.
        """
        (jobs, weeks), until = self._jobs, self.model.horizon * MICROSECOND if until is None else until
        rows = np.concatenate([np.arange(len(self.state.rows)), *(weeks[key] for key in future.weeks)])
        runtime = jobs.runtime.copy()
        runtime[rows] = np.maximum(np.concatenate([future.run, future.arrival_run]), 1) * MICROSECOND
        queue = rows[len(self.state.running) :]
        enters = np.maximum(jobs.submit[queue], 0)
        places = np.arange(len(queue)) if asked is None else np.asarray(asked, dtype=np.int64)
        if self._repeated is not None:
            order = np.argsort(enters, kind="stable")
            return enters, self._repeated.starts(runtime, queue[order], enters[order], queue[places], until)
        jobs = replace(replace(jobs, runtime=runtime).select(rows), job=np.arange(1, len(rows) + 1))
        platform, policy, options = self.machine
        # Random failures of each future are its own; orderings keep their draws, as in the compiled loop.
        drawn = options.failures is not None and bool(options.failures.models)
        options = replace(options, until=None, seed=options.seed + future.number * drawn)
        world = World(jobs, platform, policy, options, max_jobs=0, beginning=self.state.beginning)
        starts, requests = world.outcome.start, len(self.state.running) + places
        while world.env.peek() <= until and (starts[requests] >= NEVER).any():
            world.env.run_instant()
        if world.env.peek() > NEVER and self.state.conditions is None:
            world.run()  # raises an error for jobs that wait on an idle machine
        found = starts[requests]
        return enters, np.where(found <= until, found, NEVER)

    @cached_property
    def _jobs(self) -> tuple[Workload, dict[tuple[int, int], IntArray]]:
        """The jobs of the state and of all weeks that can be copied, by arrival, and the rows of each week."""
        keys = self.model.keys
        copied, at = self.model.arrivals(keys)
        order = np.argsort(at, kind="stable")
        ends = np.cumsum([len(self.model.copied(*key)[0]) for key in keys], dtype=np.int64)
        rows = np.split(len(self.state.rows) + np.argsort(order), ends)[:-1]
        jobs = self.state.workload(self.log, copied[order], at[order] * MICROSECOND)
        return jobs, dict(zip(keys, rows, strict=True))

    @cached_property
    def _repeated(self) -> RepeatedRuns | None:
        platform, policy, options = self.machine
        setup = set_up(self._jobs[0], platform, policy, options, beginning=self.state.beginning)
        return RepeatedRuns.of(setup, options.engine, self.moments)
