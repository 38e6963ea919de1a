"""Quantiles of a sample of waits, and intervals that are calibrated on earlier forecasts (spec of forecasts, 3).

Waits are seconds from the moment of a forecast on; those beyond the horizon are infinite.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from gridsim.model.time import FloatArray, IntArray

LEVELS = (0.5, 0.8, 0.9)
"""Levels of the intervals."""

SCALE = 600.0
"""Wait, s, around which errors change from seconds to ratios; it also separates the groups of calibration."""

CALIBRATION, FEWEST = 200, 50
"""Number of pairs that calibrate a forecast, and the number below which no coverage is stated."""

STEP, SMALLEST, LARGEST = 0.05, 0.001, 0.5
"""Step of the adaptation, and bounds of the share of misses."""

BETTER = 0.9
"""Similar jobs are the source if their loss is below this multiple of that of the futures."""

Source = Literal["futures", "similar jobs"]


def quantile(sample: FloatArray, p: float) -> float:
    """Return the quantile of a sorted sample: the element of rank ``ceil((K + 1) p)``, within the sample.

    Examples
    --------
    >>> quantile(np.arange(1.0, 100.0), 0.5)
    50.0
    """
    return float(_at_ranks(sample, math.ceil(round((len(sample) + 1) * p, 9))))


def _at_ranks(sample: FloatArray, ranks: Any) -> Any:
    return sample[np.clip(ranks, 1, len(sample)) - 1]


def raw_interval(sample: FloatArray, level: float) -> tuple[float, float]:
    """Return the interval of a sorted sample, before calibration.

    Examples
    --------
    >>> raw_interval(np.arange(1.0, 100.0), 0.9)
    (5.0, 95.0)
    """
    many = len(sample)
    low = math.floor(round((many + 1) * (1 - level) / 2, 9))
    high = math.ceil(round((many + 1) * (1 + level) / 2, 9))
    return float(_at_ranks(sample, low)), float(_at_ranks(sample, high))


def loss(sample: FloatArray, wait: float) -> float:
    """Return the mean pinball loss of a sorted sample at the levels 0.05, 0.10, …, 0.95, times 2, s."""
    levels = np.arange(1, 20) / 20
    ranks = np.ceil(np.round((len(sample) + 1) * levels, 9)).astype(np.int64)
    error = wait - _at_ranks(sample, ranks)
    return 2 * float(np.maximum(levels * error, (levels - 1) * error).mean())


def scaled(wait: float | FloatArray) -> FloatArray:
    """Return waits on the scale of errors: seconds for short waits, ratios for long ones."""
    return np.log1p(np.asarray(wait) / SCALE)


def corrections(
    low: FloatArray, high: FloatArray, wait: FloatArray, misses: tuple[float, float], horizon: float
) -> tuple[float, float]:
    """Return the corrections of both sides from earlier raw intervals and true waits; infinity if there are too few.

    Parameters
    ----------
    low, high, wait : (n,) float64
        Raw intervals and waits of the pairs.
    misses : tuple of float
        Share of misses of each side.
    horizon : float
        Waits above it are infinite.
    """
    late, beyond = wait > horizon, np.isinf(high)
    above = scaled(np.minimum(wait, horizon)) - scaled(np.minimum(high, horizon))
    sides = (
        scaled(np.minimum(low, horizon)) - scaled(np.minimum(wait, horizon)),
        np.where(late, np.where(beyond, 0.0, np.inf), above),
    )
    found = []
    for scores, share in zip(sides, misses, strict=True):
        rank = math.ceil(round((len(scores) + 1) * (1 - share), 9))
        found.append(math.inf if rank > len(scores) else float(np.sort(scores)[rank - 1]))
    return found[0], found[1]


def calibrated(raw: tuple[float, float], correction: tuple[float, float]) -> tuple[float, float]:
    """Return a raw interval with its corrections."""
    scales = (float(scaled(raw[0])) - correction[0], float(scaled(raw[1])) + correction[1])
    ends = sorted(SCALE * float(np.expm1(max(scale, 0.0))) for scale in scales)
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
    misses: tuple[float, float]
    correction: tuple[float, float]
    calibrated: tuple[float, float]


class Judged(NamedTuple):
    """A calibrated forecast: its source, the numbers of the pairs that calibrate it, and its intervals by level."""

    source: Source
    pairs: IntArray
    intervals: dict[float, Interval]


class Calibration:
    """Calibration of forecasts by earlier ones, in the order of their moments.

    Parameters
    ----------
    pairs : sequence of Pair
        Earlier forecasts, by moment.
    horizon, gap : float
        Horizon, and the time that must be between a pair and a forecast, s.
    calibration, fewest : int
        Number of pairs that calibrate a forecast, and the fewest.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        horizon: float,
        gap: float | None = None,
        *,
        calibration: int = CALIBRATION,
        fewest: int = FEWEST,
    ) -> None:
        self.pairs, self.horizon, self._gap = pairs, horizon, horizon if gap is None else gap
        self._most, self._fewest = calibration, fewest
        self._at = np.array([pair.at for pair in pairs], dtype=np.int64)
        self._wait = np.array([pair.wait for pair in pairs])
        sources: tuple[Source, ...] = ("futures", "similar jobs")
        self._median = {it: np.array([quantile(pair.of(it), 0.5) for pair in pairs]) for it in sources}
        self._raw = {
            (it, level): np.array([raw_interval(pair.of(it), level) for pair in pairs]).reshape(-1, 2).T
            for it in sources
            for level in LEVELS
        }
        near = np.minimum(self._wait, horizon)
        self._loss = {
            it: np.array(
                [loss(np.minimum(pair.of(it), horizon), y) for pair, y in zip(pairs, near.tolist(), strict=True)]
            )
            for it in sources
        }
        self._shares = {level: [(1 - level) / 2] * 2 for level in LEVELS}
        self._pending: list[tuple[float, int, dict[float, tuple[bool, bool]]]] = []
        self.judged: list[Judged | None] = []
        for i, pair in enumerate(pairs):
            found = self.forecast(pair)
            self.judged.append(found)
            if found is not None:
                missed = min(pair.wait, horizon + 1)
                sides = {
                    level: (missed < it.calibrated[0], missed > it.calibrated[1])
                    for level, it in found.intervals.items()
                }
                heapq.heappush(self._pending, (pair.at + min(pair.wait, horizon), i, sides))

    def known(self, at: int) -> int:
        """Return the number of pairs whose truth is known at a moment."""
        return int(np.searchsorted(self._at, at - self._gap, side="right"))

    def source(self, known: int) -> Source:
        """Return the source with the smaller loss over the last of the known pairs."""
        last = slice(max(0, known - self._most), known)
        futures, similar = (float(self._loss[it][last].mean()) if known else 0.0 for it in ("futures", "similar jobs"))
        return "similar jobs" if similar < BETTER * futures else "futures"

    def forecast(self, asked: Pair) -> Judged | None:
        """Return the calibrated forecast at a moment, not before those of earlier calls; None with too few pairs."""
        self._adapt(asked.at)
        known = self.known(asked.at)
        if known < self._fewest:
            return None
        source = self.source(known)
        sample = asked.of(source)
        alike = np.flatnonzero((self._median[source][:known] < SCALE) == (quantile(sample, 0.5) < SCALE))
        chosen = (alike if len(alike) >= self._fewest else np.arange(known))[-self._most :]
        intervals = {}
        for level in LEVELS:
            misses = self._shares[level][0], self._shares[level][1]
            low, high = self._raw[source, level][:, chosen]
            correction = corrections(low, high, self._wait[chosen], misses, self.horizon)
            raw = raw_interval(sample, level)
            intervals[level] = Interval(raw, misses, correction, calibrated(raw, correction))
        return Judged(source, chosen, intervals)

    def _adapt(self, at: int) -> None:
        """Change the shares of misses by the forecasts whose truth became known at or before a moment."""
        while self._pending and self._pending[0][0] <= at:
            _, _, sides = heapq.heappop(self._pending)
            for level, missed in sides.items():
                for side, miss in enumerate(missed):
                    share = self._shares[level][side] + STEP * ((1 - level) / 2 - miss)
                    self._shares[level][side] = min(max(share, SMALLEST), LARGEST)
