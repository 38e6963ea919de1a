"""Quantiles of a sample of waits, and intervals that are calibrated on earlier forecasts (spec of forecasts, 3).

Waits are seconds from the moment of a forecast on; those beyond the horizon are infinite.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.time import FloatArray, IntArray

LEVELS = (0.5, 0.8, 0.9)
"""Levels of the intervals."""

_LOSS = np.arange(1, 20) / 20

SCALE = 600.0
"""Wait, s, around which errors change from seconds to ratios; it also separates the groups of calibration."""

CALIBRATION, FEWEST = 200, 50
"""Number of pairs that calibrate a forecast, and the number below which no coverage is stated."""

STEP, SMALLEST, LARGEST = 0.05, 0.001, 0.5
"""Step of the adaptation, and bounds of the share of misses."""

BETTER = 0.9
"""Similar jobs are the source if their loss is below this multiple of that of the futures."""

Source = Literal["futures", "similar jobs"]
SOURCES: tuple[Source, ...] = ("futures", "similar jobs")


def quantile(sample: FloatArray, p: float) -> float:
    """Return the quantile of a sorted sample: the element of rank ``ceil((K + 1) p)``, within the sample.

    Examples
    --------
    >>> quantile(np.arange(1.0, 100.0), 0.5)
    50.0
    """
    return _at(sample, math.ceil(_rank(sample, p)))


def _rank(sample: FloatArray, p: float) -> float:
    return round((len(sample) + 1) * p, 9)


def _at(sample: FloatArray, rank: int) -> float:
    return float(sample[min(max(rank, 1), len(sample)) - 1])


def raw_interval(sample: FloatArray, level: float) -> tuple[float, float]:
    """Return the interval of a sorted sample, before calibration.

    Examples
    --------
    >>> raw_interval(np.arange(1.0, 100.0), 0.9)
    (5.0, 95.0)
    """
    low, high = _rank(sample, (1 - level) / 2), _rank(sample, (1 + level) / 2)
    return _at(sample, math.floor(low)), _at(sample, math.ceil(high))


def loss(sample: FloatArray, wait: float) -> float:
    """Return the mean pinball loss of a sorted sample at the levels 0.05, 0.10, …, 0.95, times 2, s."""
    error = wait - np.array([quantile(sample, level) for level in _LOSS.tolist()])
    return 2 * float(np.maximum(_LOSS * error, (_LOSS - 1) * error).mean())


def scaled(wait: float | FloatArray) -> FloatArray:
    """Return waits on the scale of errors: seconds for short waits, ratios for long ones."""
    return np.log1p(np.asarray(wait) / SCALE)


def corrections(
    low: FloatArray, high: FloatArray, wait: FloatArray, misses: Sequence[float], horizon: float
) -> tuple[float, float]:
    """Return the corrections of both sides from earlier raw intervals and true waits; infinity if there are too few.

    Parameters
    ----------
    low, high, wait : (n,) float64
        Raw intervals and waits of the pairs.
    misses : sequence of float
        Share of misses of each side.
    horizon : float
        Waits above it are infinite.
    """
    first, last, true = (scaled(np.minimum(it, horizon)) for it in (low, high, wait))
    above = np.where(wait > horizon, np.where(np.isinf(high), 0.0, np.inf), true - last)

    def correction(scores: FloatArray, share: float) -> float:
        rank = math.ceil(_rank(scores, 1 - share))
        return math.inf if rank > len(scores) else float(np.sort(scores)[rank - 1])

    return correction(first - true, misses[0]), correction(above, misses[1])


def calibrated(raw: tuple[float, float], correction: tuple[float, float]) -> tuple[float, float]:
    """Return a raw interval with its corrections."""
    scales = (float(scaled(raw[0])) - correction[0], float(scaled(raw[1])) + correction[1])
    ends = sorted(SCALE * float(np.expm1(max(0.0, scale))) for scale in scales)  # 0 for infinity - infinity
    return ends[0], ends[1]


class Pair(NamedTuple):
    """An earlier forecast and the truth.

    Attributes
    ----------
    at : int
        Its moment, s.
    wait : float
        True wait from the moment on, s; calibration treats waits beyond the horizon as infinite.
    futures, similar : (k,) float64
        Sorted waits: in the futures, and of similar jobs; empty if there are none.
    requested, last : float
        Wait if all jobs run for their limits and no others arrive, and the wait of the last job that started.
    """

    at: int
    wait: float
    futures: FloatArray
    similar: FloatArray
    requested: float = math.nan
    last: float = math.nan

    def of(self, source: Source) -> FloatArray:
        """Return the waits of a source; those of the futures if there are no similar jobs."""
        return self.futures if source == "futures" or not len(self.similar) else self.similar


@dataclass(frozen=True)
class Interval:
    """An interval of one level.

    Attributes
    ----------
    raw, calibrated : tuple of float
        Its ends before and after calibration, s.
    misses, correction : tuple of float
        Share of misses and correction of each side.
    """

    raw: tuple[float, float]
    misses: Sequence[float]
    correction: tuple[float, float]
    calibrated: tuple[float, float]

    def holds(self, wait: float) -> bool:
        """Return whether a wait is in the calibrated interval."""
        return self.calibrated[0] <= wait <= self.calibrated[1]


class Judged(NamedTuple):
    """A calibrated forecast: its source, the numbers of the pairs that calibrate it, and its intervals by level."""

    source: Source
    pairs: IntArray
    intervals: dict[float, Interval]


def uncalibrated(pair: Pair) -> Judged:
    """Return a forecast with the raw intervals of the futures."""
    raw = ((level, raw_interval(pair.futures, level)) for level in LEVELS)
    found = {level: Interval(ends, (), (0.0, 0.0), ends) for level, ends in raw}
    return Judged("futures", np.zeros(0, dtype=np.int64), found)


@dataclass(eq=False)
class Calibration:
    """Calibration of forecasts by earlier ones, in the order of their moments.

    Attributes
    ----------
    pairs : sequence of Pair
        Earlier forecasts, by moment.
    horizon : float
        Length of the futures, s.
    gap : float or None
        Time that must be between a pair and a forecast that it calibrates, s; the horizon by default.
    calibration, fewest : int
        Number of pairs that calibrate a forecast, and the fewest.
    judged : list of Judged or None
        The calibrated forecast of each pair.
    """

    pairs: Sequence[Pair]
    horizon: float
    gap: float | None = None
    calibration: int = CALIBRATION
    fewest: int = FEWEST

    def __post_init__(self) -> None:
        self._at, self._wait = (np.array([getattr(pair, name) for pair in self.pairs]) for name in ("at", "wait"))
        near = np.minimum(self._wait, self.horizon).tolist()
        self._median, self._raw, self._loss = {}, {}, {}
        for source in SOURCES:
            samples = [pair.of(source) for pair in self.pairs]
            self._median[source] = np.array([quantile(it, 0.5) for it in samples])
            ends = [[raw_interval(it, level) for it in samples] for level in LEVELS]
            self._raw[source] = np.array(ends).reshape(len(LEVELS), len(samples), 2)
            losses = (loss(np.minimum(it, self.horizon), wait) for it, wait in zip(samples, near, strict=True))
            self._loss[source] = np.array(list(losses))
        self._nominal = self._shares = np.array([[(1 - level) / 2] * 2 for level in LEVELS])  # of misses, by side
        self._pending: list[tuple[float, int, npt.NDArray[np.bool_]]] = []
        self.judged: list[Judged | None] = []
        for number, pair in enumerate(self.pairs):
            self.judged.append(found := self.forecast(pair))
            if found is not None:
                low, high = np.array([it.calibrated for it in found.intervals.values()]).T
                wait = min(pair.wait, self.horizon + 1)
                missed = np.stack([wait < low, wait > high], axis=1)
                heapq.heappush(self._pending, (pair.at + min(pair.wait, self.horizon), number, missed))

    def known(self, at: int) -> int:
        """Return the number of pairs whose truth is known at a moment."""
        return int(np.searchsorted(self._at, at - (self.horizon if self.gap is None else self.gap), side="right"))

    def forecast(self, asked: Pair) -> Judged | None:
        """Return the calibrated forecast at a moment, not before those of earlier calls; None with too few pairs."""
        while self._pending and self._pending[0][0] <= asked.at:
            shares = self._shares + STEP * (self._nominal - heapq.heappop(self._pending)[2])
            self._shares = np.clip(shares, SMALLEST, LARGEST)
        known = self.known(asked.at)
        if known < self.fewest:
            return None
        futures, similar = (it[:known][-self.calibration :].mean() for it in self._loss.values())
        source: Source = "similar jobs" if similar < BETTER * futures else "futures"
        sample = asked.of(source)
        alike = np.flatnonzero((self._median[source][:known] < SCALE) == (quantile(sample, 0.5) < SCALE))
        chosen = (alike if len(alike) >= self.fewest else np.arange(known))[-self.calibration :]
        intervals = {}
        for level, ends, misses in zip(LEVELS, self._raw[source], self._shares.tolist(), strict=True):
            raw, (low, high) = raw_interval(sample, level), ends[chosen].T
            correction = corrections(low, high, self._wait[chosen], misses, self.horizon)
            intervals[level] = Interval(raw, tuple(misses), correction, calibrated(raw, correction))
        return Judged(source, chosen, intervals)
