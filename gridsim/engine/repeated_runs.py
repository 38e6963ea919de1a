"""One compiled run of a state that is repeated with other run times and arrivals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gridsim.engine import events
from gridsim.engine.choice import compiled_run_of
from gridsim.engine.setup import CompiledRun, Engine, Setup
from gridsim.model.time import NEVER, IntArray

_WORK = 1024
"""Work of the first compiled call, after which the run stops if all starts in question are known; then more."""


class RepeatedRuns:
    """Runs that differ in run times and in which jobs arrive; they are set up once.

    Parameters
    ----------
    run : Setup
        A run that starts from a state, with all jobs that can arrive.
    calendar : CompiledRun
        Its compiled run; not called from Python.
    """

    def __init__(self, run: Setup, calendar: CompiledRun) -> None:
        assert run.beginning is not None
        self._calendar, self._events = calendar, calendar._events
        self._scheduler: Any = run.clusters[0].scheduler
        self._running = len(run.beginning.running)
        self._arrays = list(_arrays((tuple(self._events), calendar._passes)))
        self._saved = [array.copy() for array in self._arrays]

    @classmethod
    def of(cls, run: Setup, engine: Engine, repeats: int = 1) -> RepeatedRuns | None:
        """Return the runs, of *repeats* moments in all; None if the compiled loop cannot repeat them, or is slower."""
        calendar = compiled_run_of(engine, run, repeats=repeats)
        if not isinstance(calendar, CompiledRun):
            return None
        in_python = (calendar._ask, calendar._answers, calendar._pieces)
        return cls(run, calendar) if all(it is None for it in in_python) else None

    def starts(self, runtime: IntArray, rows: IntArray, at: IntArray, asked: IntArray, until: int) -> IntArray:
        """Return the starts of some jobs; `NEVER` if they start after an instant.

        Parameters
        ----------
        runtime : (n,) int64
            Run times of all jobs, whole microseconds.
        rows, at : (m,) int64
            Jobs that enter the queue, in this order, and when, ascending.
        asked : (k,) int64
            Jobs in question; the run ends as soon as all have started.
        until : int
            Last instant of the run.
        """
        for array, saved in zip(self._arrays, self._saved, strict=True):
            array[...] = saved
        here, numbers = self._events, self._events.numbers
        there = np.isin(rows, self._calendar._rows)
        rows, at = rows[there], at[there]
        here.jobs[events.RUNTIME] = runtime
        here.come[0, : len(rows)], here.come[1, : len(rows)] = at, rows
        numbers[events.ARRIVALS] = len(rows)
        self._calendar.begin(self._running)
        self._scheduler.passes(rows)
        arrays, starts, work = tuple(here), here.jobs[events.START], _WORK
        while not numbers[events.OVER] and numbers[events.NOW] <= until:
            self._calendar.loop(work, arrays, self._calendar._passes)
            work += work // 2
            if numbers[events.FAILED] >= 0:
                self._calendar._refuse()
            if (starts[asked] < NEVER).all():
                break
        return np.where(starts[asked] <= until, starts[asked], NEVER)


def _arrays(columns: Any) -> Iterator[IntArray]:
    """Yield the arrays in nested tuples."""
    for column in columns:
        if isinstance(column, tuple):
            yield from _arrays(column)
        elif isinstance(column, np.ndarray):
            yield column
