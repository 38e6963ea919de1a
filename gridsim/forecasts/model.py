"""Model of the future at a moment of a log: arrivals of earlier weeks, and run times of similar jobs.

Times are whole seconds. Nothing that became known after the moment is read (spec of forecasts, section 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.forecasts.history import History, drawn
from gridsim.model.time import FloatArray, IntArray

Source = Literal["simulated", "recorded"]

WEEK = 7 * 86_400
WEEKS = 10
"""Number of earlier weeks from which arrivals are copied."""

LEAST_FUTURES = 19
"""Fewest futures: with fewer, an interval of all waits has a probability below 90 %."""

DEPENDENCE = 0.5
"""Probability with which a job shares the uniform of its user and limit."""


@dataclass(frozen=True)
class Options:
    """Options of forecasts.

    Attributes
    ----------
    futures, horizon, seed : int
        Number of futures (at least 19), their length (s), and the seed.
    source : {"simulated", "recorded"}, optional
        Origin of states and true starts; by default recorded if the log has starts.
    arrivals : bool
        Whether later jobs arrive.
    model : object, optional
        A custom model of the future; by default arrivals of earlier weeks and run times of similar jobs.
    """

    futures: int = 99
    horizon: int = WEEK
    seed: int = 1
    source: Source | None = None
    arrivals: bool = True
    model: Any = None

    def __post_init__(self) -> None:
        for name, least in (("futures", LEAST_FUTURES), ("seed", 0)):
            if not isinstance(value := getattr(self, name), int | np.integer) or value < least:
                raise InputError(f"is {value}; expected a whole number from {least}", field=name)
        if not 3600 <= self.horizon <= 3650 * 86_400:
            raise InputError(f"is {self.horizon:g} s; expected at least 1 h and at most 3650 d", field="horizon")
        object.__setattr__(self, "horizon", int(self.horizon))
        if self.source not in (None, "simulated", "recorded"):
            raise InputError(f"is '{self.source}'; expected simulated or recorded", field="state")


class Jobs(NamedTuple):
    """Jobs of the state at a moment: running ones, then waiting ones.

    Attributes
    ----------
    limit, elapsed, user : (n,) int64
        Limit, elapsed time (0 for waiting jobs), and user.
    """

    limit: IntArray
    elapsed: IntArray
    user: IntArray


class Future(NamedTuple):
    """One future.

    Attributes
    ----------
    run : (n,) int64
        Run times of the jobs of the state, from their starts.
    weeks : sequence of (int, int)
        Pieces with arrivals, and the number of weeks back that each is copied from.
    arrival_run : (m,) int64
        Run times of the copied jobs, in the order of their arrivals.
    number : int
        Its number, from which random failures are drawn.
    """

    run: IntArray
    weeks: Sequence[tuple[int, int]]
    arrival_run: IntArray
    number: int = 0


class FutureModel:
    """Futures of a moment; candidates of run times are computed once for each job.

    Parameters
    ----------
    history : History
        Jobs submitted up to the moment; later ones are not read.
    at : int
        The moment.
    jobs : Jobs
        Jobs of the state.
    options : Options
        Number of futures, their length and seed, and whether later jobs arrive.
    """

    def __init__(self, history: History, at: int, jobs: Jobs, options: Options) -> None:
        self.history, self.at, self.jobs, self.options, self.horizon = history, at, jobs, options, options.horizon
        self.pieces = -(-self.horizon // WEEK) if options.arrivals else 0  # of seven days
        self._weeks = (at - int(history.submit[0])) // WEEK if len(history.submit) else 0  # of history, whole ones
        self._pool = cache(partial(history.candidates, at))
        self.pools = [self._pool(*job) for job in zip(*(it.tolist() for it in jobs), strict=True)]
        owners = list(zip(jobs.user.tolist(), jobs.limit.tolist(), strict=True))
        self.groups = list(dict.fromkeys(owners))
        numbers = {owner: number for number, owner in enumerate(self.groups)}
        self._group: IntArray = np.array([numbers[owner] for owner in owners], dtype=np.int64)
        values = [np.zeros(0, dtype=np.int64), *(values for _, values in self.pools)]
        self._values, ends = np.concatenate(values), np.cumsum([len(it) for it in values], dtype=np.int64)
        self._first, self._counts = ends[:-1], np.diff(ends)
        self.copied = cache(self._copied)

    def _back(self, piece: int) -> range:
        """Return the numbers of weeks back that a piece can be copied from."""
        return range(piece + 1, min(self._weeks, piece + WEEKS) + 1)

    def weeks_back(self, piece: int, u: float) -> int | None:
        """Return the number of weeks that a piece is copied from; None if there is no such week."""
        weeks = self._back(piece)
        return weeks[int(u * len(weeks))] if weeks else None

    def missing_days(self) -> float:
        """Return for how many days of the horizon no week can be copied."""
        missing = [piece for piece in range(self.pieces) if not self._back(piece)]
        return sum(min(self.horizon - piece * WEEK, WEEK) for piece in missing) / 86_400

    @property
    def keys(self) -> list[tuple[int, int]]:
        """Pieces, and the numbers of weeks back that each can be copied from."""
        return [(piece, back) for piece in range(self.pieces) for back in self._back(piece)]

    def arrivals(self, weeks: Sequence[tuple[int, int]]) -> tuple[IntArray, IntArray]:
        """Return the rows of the copied jobs and their arrivals from the moment on, for pieces and weeks back."""
        none = np.zeros(0, dtype=np.int64)
        rows, at = zip((none, none), *(self.copied(*key) for key in weeks), strict=True)
        return np.concatenate(rows), np.concatenate(at)

    def _copied(self, piece: int, back: int) -> tuple[IntArray, IntArray]:
        """Return the rows that a piece copies from an earlier week, and their arrivals from the moment on."""
        shift = self.at - back * WEEK
        bounds = shift + piece * WEEK, shift + min(self.horizon, (piece + 1) * WEEK)
        first, last = np.searchsorted(self.history.submit, bounds, side="right").tolist()
        rows = first + np.flatnonzero(self.history.left[first:last] > self.at)
        return rows, self.history.submit[rows] - shift

    def run_times(self, share: FloatArray, value: FloatArray, common: FloatArray) -> IntArray:
        """Return the run times of the jobs of the state for uniforms of jobs and groups."""
        u: FloatArray = np.where(share < DEPENDENCE, common[self._group], value)
        limit, elapsed = self.jobs.limit, self.jobs.elapsed
        free: IntArray = elapsed + 1 + (u * np.maximum(limit - elapsed, 1)).astype(np.int64)
        if not len(self._values):
            return free
        at = np.minimum(self._first + (u * self._counts).astype(np.int64), len(self._values) - 1)
        return np.where(self._counts > 0, self._values[at], free)

    def arrival_runs(self, rows: IntArray, u: FloatArray) -> IntArray:
        """Return the run times of copied jobs: their own if they have ended, else drawn."""
        history, run = self.history, self.history.run[rows]
        for place in np.flatnonzero(history.end[rows] > self.at).tolist():
            limit, user = int(history.limit[rows[place]]), int(history.user[rows[place]])
            run[place] = drawn(self._pool(limit, 0, user)[1], float(u[place]), limit, 0)
        return run

    def future(self, k: int) -> Future:
        """Return future *k*."""
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.options.seed, self.at, k])))
        uniforms = rng.random(self.pieces)
        uniforms[:1] = (k + uniforms[:1]) / self.options.futures  # the first week is stratified
        n = len(self.jobs.limit)
        run = self.run_times(rng.random(n), rng.random(n), rng.random(len(self.groups)))
        weeks = enumerate(map(self.weeks_back, range(self.pieces), uniforms.tolist()))
        keys = [(piece, back) for piece, back in weeks if back is not None]
        rows, _ = self.arrivals(keys)
        return Future(run, keys, self.arrival_runs(rows, rng.random(len(rows))), k)

    def each(self) -> Iterator[Future]:
        """Yield all futures."""
        return map(self.future, range(self.options.futures))
