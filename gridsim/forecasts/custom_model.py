"""Custom models of the future: classes of plain Python files that draw run times and arrivals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError, call, name_of, policy_error
from gridsim.forecasts.history import History
from gridsim.forecasts.model import Future, FutureModel, Options
from gridsim.forecasts.state import State
from gridsim.model.time import MICROSECOND, IntArray
from gridsim.registry import make

MOST = 10**9
"""Longest run time of a custom model, s."""


class KnownJobs(NamedTuple):
    """Jobs submitted up to the moment of a forecast, without later data: the argument of a custom model.

    Attributes
    ----------
    submit, limit, cores, user : (n,) int64
        Jobs submitted up to the moment, by submission; times in seconds of the log's clock. Users are numbers, -1 if
        unknown.
    start, run : (n,) int64
        Start and run time (s); -1 for jobs that have not started, and not ended.
    running, waiting : (r,), (w,) int64
        Numbers of the jobs that run, by start, and that wait, in the order of the queue.
    elapsed : (r,) int64
        Time that the running jobs have run, s.
    """

    submit: IntArray
    limit: IntArray
    cores: IntArray
    user: IntArray
    start: IntArray
    run: IntArray
    running: IntArray
    waiting: IntArray
    elapsed: IntArray

    @classmethod
    def of(cls, history: History, state: State) -> KnownJobs:
        """Return the jobs submitted up to the moment of a state, without what became known later."""
        many = int(np.searchsorted(history.submit, state.at, side="right"))
        start = np.where(history.start <= state.at, history.start, -1)[:many]
        run = np.where(history.end <= state.at, history.run, -1)[:many]
        submit, limit, cores, user = (getattr(history, name)[:many].copy() for name in cls._fields[:4])
        rows = state.running.copy(), state.waiting.copy()
        return cls(submit, limit, cores, user, start, run, *rows, state.elapsed // MICROSECOND)


class Drawn(NamedTuple):
    """One future, as a custom model returns it.

    Attributes
    ----------
    run : (r + w,) int
        Run times from their starts of the running jobs, then of the waiting ones, s; limits still end jobs.
    like : (m,) int
        For each arrival the number of the earlier job with its cores, limit, user and other requests.
    after : (m,) int
        Time from the moment to each arrival, s.
    arrival_run : (m,) int
        Their run times, s.
    """

    run: IntArray
    like: IntArray
    after: IntArray
    arrival_run: IntArray


def custom_model(what: Any) -> Any:
    """Return the object of a custom model, from ``file.py:Class``; an object, or None, is returned unchanged.

    Raises
    ------
    InputError
        For a class without the method ``future``, and as for `gridsim.registry.make`.
    """
    found = make("future", what)
    if found is not None and not callable(getattr(found, "future", None)):
        raise InputError(f"{name_of(found)} is not a model of the future; it has no method 'future'", field="model")
    return found


class CustomModel(FutureModel):
    """Futures of a custom model: an object with ``future(jobs, at, horizon, rng) -> Drawn``.

    All futures are drawn as the object is made; each has its own generator, of the seed, the moment and its number.

    Raises
    ------
    PolicyError
        If the model fails, or returns values that are not possible.
    """

    def __init__(self, history: History, state: State, options: Options) -> None:
        super().__init__(history, state.at, state.jobs(history), options)
        known = KnownJobs.of(history, state)
        self._draws = [self._drawn(k, known) for k in range(options.futures)]

    @property
    def keys(self) -> list[tuple[int, int]]:
        """Numbers of the futures, whose arrivals are those that are possible."""
        return [(0, k) for k in range(len(self._draws))]

    def missing_days(self) -> float:
        """Return 0: no week is copied."""
        return 0.0

    def _copied(self, piece: int, back: int) -> tuple[IntArray, IntArray]:
        """Return the rows of the arrivals of a future, and their times from the moment on."""
        return self._draws[back].like, self._draws[back].after

    def future(self, k: int) -> Future:
        """Return future *k*."""
        drawn = self._draws[k]
        return Future(drawn.run, [(0, k)], drawn.arrival_run, k)

    def _drawn(self, k: int, known: KnownJobs) -> Drawn:
        """Return a future with checked values, its arrivals in order."""
        rng, model = np.random.default_rng(np.random.SeedSequence([self.options.seed, self.at, k])), self.options.model
        answer = call(model, "future", known, self.at, self.horizon, rng)
        if not isinstance(answer, tuple) or len(answer) != len(Drawn._fields):
            raise policy_error(model, f"returns a {type(answer).__name__}; expected a Drawn or its four columns")
        arrivals = np.size(answer[1])
        bounds: dict[str, tuple[int, Any, int]] = {
            "run": (len(self.jobs.limit), self.jobs.elapsed + 1, MOST),
            "like": (arrivals, 0, len(known.submit) - 1),
            "after": (arrivals, 1, self.horizon),
            "arrival_run": (arrivals, 1, MOST),
        }
        drawn = Drawn(*(checked(it, name, *bounds[name], model) for name, it in zip(bounds, answer, strict=True)))
        order = np.argsort(drawn.after, kind="stable")[: None if self.options.arrivals else 0]
        return Drawn(drawn.run, *(it[order] for it in drawn[1:]))


def checked(values: Any, name: str, size: int, least: int | IntArray, most: int, model: Any) -> IntArray:
    """Return a column of a custom model as whole numbers.

    Raises
    ------
    PolicyError
        If it has another size, or a value that is not a number from *least* to *most*.
    """
    try:
        column: npt.NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise policy_error(model, f"returns '{name}' that is not numeric; expected {size} numbers") from error
    if column.shape != (size,):
        raise policy_error(model, f"returns '{name}' of shape {column.shape}; expected {size} numbers")
    wrong = np.flatnonzero(~((column >= least) & (column <= most)))  # also where it is not a number
    if len(wrong):
        first, low = int(wrong[0]), np.broadcast_to(least, size)
        expected = f"expected {low[first]} to {most}"
        raise policy_error(model, f"returns {column[first]:g} as '{name}' number {first}; {expected}")
    return column.astype(np.int64)
