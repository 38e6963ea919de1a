"""Runs of the futures of a moment: the starts of jobs that wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gridsim.engine.repeated_runs import RepeatedRuns
from gridsim.entities.starting_point import with_time_left
from gridsim.forecasts.model import Future, FutureModel
from gridsim.forecasts.state import State
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.run_setup import set_up
from gridsim.world import World


class Machine(NamedTuple):
    """Machine, policy and options of the runs of a forecast."""

    platform: Platform
    policy: Any
    options: Run


class FutureRuns:
    """Starts of the waiting jobs of a moment in its futures.

    Parameters
    ----------
    log : Workload
        The jobs.
    state : State
        Running and waiting jobs.
    model : FutureModel
        Model of the future.
    machine : Machine
        Machine, policy and options.
    """

    def __init__(self, log: Workload, state: State, model: FutureModel, machine: Machine) -> None:
        self._log, self._state, self._model, self._machine = log, state, model, machine
        self._many = len(state.running) + len(state.waiting)

    def waits(self, future: Future, asked: Sequence[int]) -> IntArray:
        """Return the waits of some waiting jobs from the moment on, whole seconds; `NEVER` beyond the horizon.

        Parameters
        ----------
        future : Future
            Run times and arrivals.
        asked : sequence of int
            Positions of the jobs among the waiting ones.
        """
        found = self._starts(future, len(self._state.running) + np.asarray(asked, dtype=np.int64))
        return np.where(found < NEVER, -(-found // MICROSECOND), NEVER)

    def samples(self, futures: Iterable[Future], asked: Sequence[int]) -> FloatArray:
        """Return the waits in some futures, s, a row for each; infinite beyond the horizon."""
        found = [self.waits(future, asked) for future in futures]
        waits = np.array(found, dtype=np.float64).reshape(len(found), len(asked))
        return np.where(waits >= NEVER, np.inf, waits)

    def by_requested_walltimes(self, asked: Sequence[int]) -> IntArray:
        """Return the waits if all jobs run for their limits and no others arrive, whole seconds."""
        none = np.zeros(0, dtype=np.int64)
        jobs = self._model.jobs
        limits = with_time_left(jobs.limit * MICROSECOND, jobs.elapsed * MICROSECOND) // MICROSECOND
        future = Future(limits, none, none, none, ())
        found = self._starts(future, len(self._state.running) + np.asarray(asked, dtype=np.int64), NEVER - 1)
        return np.where(found < NEVER, -(-found // MICROSECOND), NEVER)

    def queue(self, future: Future) -> tuple[IntArray, IntArray]:
        """Return when all jobs of a future enter the queue, and their starts, whole microseconds from the moment on."""
        running = len(self._state.running)
        if self._repeated is None:
            rows = running + np.arange(len(self._state.waiting) + len(future.at))
        else:
            later = [self._positions[key] for key in future.weeks]
            rows = np.concatenate([np.arange(running, self._many), *later])
        enters = (
            np.zeros(len(self._state.waiting), dtype=np.int64) if self._state.enters is None else self._state.enters
        )
        return np.concatenate([enters, future.at * MICROSECOND]), self._starts(future, rows)

    def _starts(self, future: Future, asked: IntArray, until: int | None = None) -> IntArray:
        until = self._model.horizon * MICROSECOND if until is None else until
        repeated = self._repeated
        if repeated is None:
            return self._simulated(future, asked, until)
        positions = [self._positions[key] for key in future.weeks]
        later = np.concatenate([np.zeros(0, dtype=np.int64), *positions])
        runtime = self._all.runtime.copy()
        runtime[: self._many] = self._run_us(future.run)
        runtime[later] = self._run_us(future.arrival_run)
        rows = np.concatenate([np.arange(len(self._state.running), self._many), later])
        at = np.maximum(self._all.submit[rows], 0)
        if self._state.enters is not None:
            order = np.argsort(at, kind="stable")
            rows, at = rows[order], at[order]
        return repeated.starts(runtime, rows, at, asked, until)

    def _run_us(self, run: IntArray) -> IntArray:
        return np.maximum(run, 1) * MICROSECOND

    @cached_property
    def _positions(self) -> dict[tuple[int, int], IntArray]:
        """Rows of the workload with all weeks, by piece and week."""
        keys, place = self._model.keys, self._many + np.argsort(self._copied[2])
        ends = np.cumsum([len(self._model.copied(*key)[0]) for key in keys])
        return dict(zip(keys, np.split(place, ends[:-1]), strict=True)) if keys else {}

    @cached_property
    def _copied(self) -> tuple[IntArray, IntArray, IntArray]:
        """Rows of the jobs of all weeks, their arrivals, and the order of the arrivals."""
        copied, at = self._model.arrivals(self._model.keys)
        return copied, at, np.argsort(at, kind="stable")

    @cached_property
    def _all(self) -> Workload:
        """The jobs of the state and of all weeks that can be copied, by arrival."""
        copied, at, order = self._copied
        return self._state.workload(self._log, copied[order], at[order] * MICROSECOND)

    @cached_property
    def _repeated(self) -> RepeatedRuns | None:
        platform, policy, options = self._machine
        run = set_up(self._all, platform, policy, options, beginning=self._state.beginning)
        return RepeatedRuns.of(run, options.engine)

    def _simulated(self, future: Future, asked: IntArray, until: int) -> IntArray:
        """Return the starts from a run of this future only."""
        platform, policy, options = self._machine
        workload = self._state.workload(self._log, future.copied, future.at * MICROSECOND)
        runtime = self._run_us(np.concatenate([future.run, future.arrival_run]))
        beginning, options = self._state.beginning, replace(options, until=None)
        world = World(replace(workload, runtime=runtime), platform, policy, options, max_jobs=0, beginning=beginning)
        if self._state.conditions is None:
            world.complete()
        else:  # some jobs may never start
            world.env.run(None if until >= NEVER - 1 else until + 1)
        found = world.outcome.start[asked]
        return np.where(found <= until, found, NEVER)
