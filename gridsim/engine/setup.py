"""Setup of a run, and the compiled run, which writes the same results as the clusters of SimPy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.engine import deadline_loop, events, list_states, moldable_states, plan_states
from gridsim.engine.events import Events
from gridsim.entities.beginning import Beginning
from gridsim.entities.clock import Clock, modes
from gridsim.entities.cluster import Cluster
from gridsim.entities.dynamic_jobs import Submissions
from gridsim.entities.failures import Breakdowns
from gridsim.entities.outcome import DONE, WAITING, Outcome
from gridsim.entities.router import Root
from gridsim.entities.tree import TreeOptions
from gridsim.errors import PolicyError, name_of
from gridsim.machine.running_set import most_running
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER, IntArray
from gridsim.model.workload import Workload
from gridsim.policy.protocols import Answers, LoopState
from gridsim.policy.queue import Requests
from gridsim.record import Status

Engine = Literal["auto", "simpy", "compiled"]

_SLICE = 0.05
"""Interval of progress reports in seconds; a run can be interrupted there."""


class Earlier(NamedTuple):
    """The previous window of a streamed run; its unfinished jobs are the first rows of this window.

    Attributes
    ----------
    calendar : CompiledRun
        The previous window, at its end.
    rows : (w,) int64
        Rows in this window of the requests of the previous one; -1 for requests that have ended.
    """

    calendar: CompiledRun
    rows: IntArray


@dataclass(frozen=True)
class Setup:
    """A run that is ready to start.

    Attributes
    ----------
    workload, platform : Workload, Platform
        The jobs and the machine as the policy sees them.
    policy : object
        The policy; each cluster has a copy of it.
    options : TreeOptions
        Instant, overruns, balancer, split and seed.
    tick : int
        The first assumed overrun, and the unit to which delays are rounded up, whole microseconds.
    env : Clock
        The SimPy environment.
    requests, outcome : Requests, Outcome
        Columns of all requests, and their results.
    clusters : list of Cluster
        Clusters in tree order.
    root : Root
        Entry point of jobs.
    ways : sequence of tuple, optional
        Allowed clusters of each job; None if all jobs may use all clusters.
    submissions : Submissions, optional
        Accepts jobs that are submitted during the run; None if that is not supported, for the reason *closed*.
    breakdowns : Breakdowns, optional
        The process of failures; None without failures.
    beginning : Beginning, optional
        State at time 0; None for an empty machine.
    """

    workload: Workload
    platform: Platform
    policy: Any
    options: TreeOptions
    tick: int
    env: Clock
    requests: Requests
    outcome: Outcome
    clusters: list[Cluster]
    root: Root
    ways: Sequence[tuple[int, ...]] | None
    submissions: Submissions | None
    closed: str
    breakdowns: Breakdowns | None = None
    beginning: Beginning | None = None

    @property
    def batched(self) -> bool:
        """True for one decision after all events of an instant, False for one after each event."""
        return modes[self.options.instant].batched

    @property
    def extend(self) -> bool:
        """True if jobs continue beyond their estimates."""
        return self.options.overrun == "extend"


class CompiledRun:
    """A run of jobs of one task on one cluster, in compiled slices.

    Parameters
    ----------
    run : Setup
        The run.
    earlier : Earlier, optional
        The previous window of a longer run (`gridsim.streaming`), from which this run continues.
    more : bool
        Whether other jobs follow these: the run stops when the last of these is submitted.
    """

    def __init__(self, run: Setup, earlier: Earlier | None = None, *, more: bool = False) -> None:
        requests, outcome, cluster = run.requests, run.outcome, run.clusters[0]
        self._outcome, self._cluster, self._extend = outcome, cluster, run.extend
        n = len(requests)
        demands = cluster.demands
        fits: IntArray = np.flatnonzero(requests.needed <= cluster.cores if demands is None else ~demands.never())
        self._rows, submit = fits, requests.submit
        if run.beginning is not None:
            rows, submit = run.beginning.arrivals(submit), np.maximum(submit, 0)
            self._rows = rows[np.isin(rows, fits)]
        waiting = self._resume(earlier) if earlier is not None else 0
        passes: LoopState = cluster.scheduler.passes(self._rows)  # type: ignore[attr-defined]  # known from its capabilities
        self.loop = _loop(passes.loop)
        self._passes, self._ask, self._pieces = passes.columns, passes.ask, passes.pieces
        if run.beginning is not None and demands is not None and self._ask is not None:
            self._passes = self._ask(0) or self._passes  # with the running jobs in place
        self._answers = passes.answers
        if self._answers is not None:
            self._answers.takes[:] = _taken(requests, outcome)
        busy = (most_running(cluster.cores, n) if demands is None else n) + 1
        looks = int(np.count_nonzero(outcome.runtime > requests.estimate)) if run.extend else 0
        numbers = np.zeros(len(events.NUMBERS), dtype=np.int64)
        numbers[events.FREE] = numbers[events.TOTAL] = cluster.cores
        numbers[events.BATCHED], numbers[events.EXTEND], numbers[events.TICK] = run.batched, run.extend, run.tick
        numbers[events.FAILED], numbers[events.ARRIVALS], numbers[events.MORE] = -1, len(self._rows), more
        self._events = Events(
            jobs=np.stack([outcome.runtime, requests.estimate, requests.cores, np.full(n, NEVER)]),
            come=np.stack([submit[self._rows], self._rows]),
            refused=_only_refused(submit, fits),
            ends=np.zeros((3, busy), dtype=np.int64),
            looks=np.zeros((3, looks + 1), dtype=np.int64),
            late=np.zeros((2, min(busy, looks + 1)), dtype=np.int64),
            numbers=numbers,
        )
        if earlier is not None:
            self._take_over(earlier, waiting)
        elif run.beginning is not None:
            self.begin(len(run.beginning.running))

    def begin(self, running: int) -> None:
        """Let the first requests run, which began before, and schedule their ends."""
        here, numbers = self._events, self._events.numbers
        here.jobs[events.START, :running] = self._outcome.start[:running]
        runtime, estimate, cores, began = here.jobs[:, :running]
        numbers[events.FREE], numbers[events.ORDER] = numbers[events.TOTAL] - cores.sum(), running
        held = runtime if self._extend else np.minimum(runtime, estimate)
        late = np.flatnonzero((runtime > estimate) & self._extend)
        ends = (here.ends, events.ENDS, np.arange(running), began + held)
        for heap, size, rows, times in (ends, (here.looks, events.ESTIMATE_CHECKS, late, (began + estimate)[late])):
            order = np.argsort(times, kind="stable")  # a sorted array is a heap
            heap[:, : len(order)] = times[order], rows[order], rows[order]
            numbers[size] = len(order)

    def _resume(self, earlier: Earlier) -> int:
        """Make the waiting requests of the previous window the first arrivals, in queue order; return their number."""
        before = earlier.calendar
        came = int(before._events.numbers[events.NEXT])
        scheduler: Any = self._cluster.scheduler  # known from its capabilities
        waiting: IntArray = scheduler.resume(before._cluster.scheduler, earlier.rows, came)
        known = np.count_nonzero(earlier.rows >= 0)
        self._rows = np.concatenate([waiting, self._rows[self._rows >= known]])
        return len(waiting)

    def _take_over(self, earlier: Earlier, waiting: int) -> None:
        """Copy the time, the event heaps and the starts of the previous window."""
        there, here, rows = earlier.calendar._events, self._events, earlier.rows
        kept = np.flatnonzero(rows >= 0)
        here.jobs[events.START, rows[kept]] = there.jobs[events.START, kept]
        for name, size in (("ends", events.ENDS), ("looks", events.ESTIMATE_CHECKS)):
            expected = getattr(there, name)[:, : there.numbers[size]]
            expected = expected[:, rows[expected[2]] >= 0]  # some checks belong to ended requests
            expected = expected[:, np.lexsort(expected[1::-1])]
            getattr(here, name)[:, : expected.shape[1]] = *expected[:2], rows[expected[2]]
            here.numbers[size] = expected.shape[1]
        goes_on = [events.NOW, events.ORDER, events.FREE, events.RUNG, events.UNSEEN]
        here.numbers[goes_on] = there.numbers[goes_on]
        here.numbers[events.NEXT] = waiting
        refused = there.refused[there.refused >= there.numbers[events.NOW]]
        self._events = here._replace(refused=np.concatenate([refused, here.refused]))

    def left(self) -> IntArray:
        """Return the requests that wait or run."""
        found = self._events
        over = np.ones(len(self._outcome.state), dtype=np.bool_)
        over[self._rows] = found.jobs[events.START, self._rows] < NEVER
        over[found.ends[2, : found.numbers[events.ENDS]]] = False
        return np.flatnonzero(~over)

    def run(self, progress: Callable[[int], None] | None = None) -> None:
        """Run to the last event.

        Parameters
        ----------
        progress : callable, optional
            Called at intervals with the number of jobs released so far.

        Raises
        ------
        PolicyError
            If a scheduling cycle starts a request without enough free cores.
        """
        numbers = self._events.numbers
        work, arrays, first = 256, tuple(self._events), True
        while not numbers[events.OVER] and numbers[events.FAILED] < 0:
            begun = time.monotonic()
            self._play(work, arrays, begun + _SLICE)
            took = time.monotonic() - begun
            if not first or took < _SLICE:  # the first call may include compilation
                work = max(1, min(4 * work, int(work * _SLICE / max(took, 1e-6))))
            first = False
            if progress is not None and not numbers[events.OVER]:  # the caller reports the last number
                progress(self._released())
        self._refuse()
        self._fill_in()

    def _play(self, work: int, arrays: tuple[IntArray, ...], until: float) -> None:
        """Run an amount of work; if Python is called before cycles, run until about the time *until*."""
        numbers = self._events.numbers
        while True:
            if numbers[events.ASKING]:
                assert self._ask is not None
                self._passes = self._ask(int(numbers[events.NOW])) or self._passes
            self.loop(work, arrays, self._passes)
            if not numbers[events.ASKING] or time.monotonic() >= until:
                return

    def _released(self) -> int:
        """Return the number of submitted jobs, including those that are too wide."""
        came = int(self._events.numbers[events.NEXT])
        return int(self._rows[came - 1]) + 1 if came else 0

    def _refuse(self) -> None:
        """Raise the error of a machine that has too few cores for a start."""
        numbers, cluster = self._events.numbers.tolist(), self._cluster
        at, row, owner = numbers[events.NOW] / 1e6, numbers[events.FAILED], name_of(self._cluster.scheduler)
        if row >= 0:
            need = self._events.jobs[events.CORES, row]
            free = f"only {numbers[events.SHORT]} of {cluster.cores} cores are free"
            raise PolicyError(f"{owner} starts request {row} ({need} cores) at {at} s, but {free}")
        if numbers[events.FREE] < 0 and not numbers[events.MORE]:  # the instant may be incomplete
            more = f"{-numbers[events.FREE]} more cores in use at {at} s than the {cluster.cores} of the machine"
            raise PolicyError(f"{owner} has {more}")

    def _fill_in(self) -> None:
        """Write when each job ran and how it ended; the remaining jobs are waiting."""
        runtime, estimate, cores, start = self._events.jobs
        outcome, ran = self._outcome, start < NEVER
        held = runtime if self._extend else np.minimum(runtime, estimate)
        outcome.start[:] = start
        outcome.end[:] = np.where(ran, start + held, NEVER)
        if outcome.moldable is not None:
            outcome.cores[:] = cores
        outcome.status[ran] = Status.completed
        if not self._extend:
            outcome.status[ran & (runtime > estimate)] = Status.killed_walltime
        state = np.full(len(start), DONE, dtype=np.uint8)
        state[self._rows[~ran[self._rows]]] = WAITING
        if self._answers is not None:
            self._fill_in_promises(self._answers, state)
        outcome.state[:] = state.tobytes()
        if self._cluster.demands is not None:
            refused = np.ones(len(start), dtype=np.bool_)
            refused[self._rows] = False
            outcome.refused.update((row, self._cluster.demands.reason(row)) for row in np.flatnonzero(refused).tolist())
        if self._pieces is not None and self._cluster.machine.nodes is not None:
            outcome.placed.fill(self._pieces(), outcome.start, outcome.end)

    def _fill_in_promises(self, answers: Answers, state: npt.NDArray[np.uint8]) -> None:
        """Write the guarantee of each job, the rejected jobs, and the stopped runs.

        Raises
        ------
        PolicyError
            If a guarantee was missed although no job exceeded its estimate.
        """
        outcome, late = self._outcome, self._events.jobs[events.RUNTIME] > self._events.jobs[events.ESTIMATE]
        outcome.granted[:], outcome.offer[:], outcome.doublings[:] = answers[:3]
        outcome.status[answers.refused], state[answers.refused] = Status.unadmitted, DONE
        outcome.cut += map(tuple, answers.cut[:, : answers.cuts[0]].T.tolist())
        missed = np.flatnonzero((outcome.end < NEVER) & (outcome.end > outcome.granted))
        if len(missed) and not (self._extend and late.any()):
            row, owner = missed[np.argmin(outcome.end[missed])], name_of(self._cluster.scheduler)
            promised, ends = outcome.granted[row] / 1e6, outcome.end[row] / 1e6
            raise PolicyError(f"{owner} promised request {row} an end by {promised} s; it ends at {ends} s")
        outcome.broken[missed] = ~late[missed]


def _loop(name: str) -> Any:
    """Return a loop by its name."""
    modules = (list_states, plan_states, deadline_loop, moldable_states)
    return next(getattr(module, name) for module in modules if hasattr(module, name))


def _taken(requests: Requests, outcome: Outcome) -> IntArray:
    """Return the latest end that each user accepts, by the tolerances of requests with deadlines."""
    takes: IntArray = requests.deadline.copy()
    if outcome.tolerance is None:
        return takes
    asking = np.flatnonzero((takes < NEVER) & (outcome.tolerance != 1))
    parts = zip(asking.tolist(), requests.submit[asking].tolist(), takes[asking].tolist(), strict=True)
    takes[asking] = [outcome.latest_taken(row, submit, asked) for row, submit, asked in parts]
    return takes


def _only_refused(submit: IntArray, fits: IntArray) -> IntArray:
    """Return the times, ascending, at which only jobs that are too wide arrive; usually there are none."""
    if len(fits) == len(submit):
        return np.zeros(0, dtype=np.int64)
    return np.setdiff1d(np.delete(submit, fits), submit[fits])
