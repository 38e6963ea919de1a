"""Back-test: forecasts at earlier moments compared with the truth, and with three baselines (spec of forecasts, 4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gridsim.forecasts.intervals import (
    CALIBRATION,
    FEWEST,
    LEVELS,
    Calibration,
    Judged,
    Pair,
    loss,
    quantile,
    raw_interval,
)
from gridsim.model.time import FloatArray

BLOCK = 10
"""Number of successive moments in a block; standard errors are those of means of blocks."""

DRAWS = 2000
"""Number of resamples of the blocks for the standard error of a skill."""

BASELINES = {
    "requested": "requested walltimes",
    "alike": "quantiles of the waits of similar jobs",
    "mean": "mean wait of similar jobs",
    "last": "last wait",
}
"""Baselines by key."""

_HOUR = 3600.0


@dataclass(frozen=True)
class Backtest:
    """Judged forecasts of earlier moments.

    Attributes
    ----------
    pairs : sequence of Pair
        Forecasts and true waits, by moment.
    horizon : float
        Length of the futures, s; forecasts beyond it count as the horizon in errors and losses.
    gap : float or None
        Time between a forecast and the pairs that calibrate it, s; the horizon by default.
    calibration, fewest : int
        Number of pairs that calibrate a forecast, without which it is not judged, and the fewest for an interval.
    seed : int
        Seed of the resampling.
    """

    pairs: Sequence[Pair]
    horizon: float
    gap: float | None = None
    calibration: int = CALIBRATION
    fewest: int = FEWEST
    seed: int = 1

    @cached_property
    def calibrated(self) -> Calibration:
        """The calibration of all forecasts."""
        how: dict[str, Any] = {"calibration": self.calibration, "fewest": self.fewest}
        return Calibration(self.pairs, self.horizon, self.gap, **how)

    @cached_property
    def tests(self) -> list[tuple[Pair, Judged]]:
        """The judged forecasts: those with enough earlier pairs."""
        found = zip(self.pairs, self.calibrated.judged, strict=True)
        enough = (self.calibrated.known(pair.at) >= self.needed for pair in self.pairs)
        return [(pair, it) for (pair, it), many in zip(found, enough, strict=True) if it is not None and many]

    @property
    def needed(self) -> int:
        """Number of earlier pairs of a judged forecast: with few moments half of them, at least the fewest."""
        if len(self.pairs) >= 2 * CALIBRATION or self.calibration != CALIBRATION:
            return self.calibration
        return max(len(self.pairs) // 2, self.fewest)

    def _each(self, of: Callable[[Pair, Judged], float]) -> FloatArray:
        return np.array([of(pair, judged) for pair, judged in self.tests])

    @cached_property
    def waits(self) -> FloatArray:
        """True waits of the judged forecasts, s; the horizon for jobs that never started."""
        return self._each(lambda pair, judged: self._true(pair))

    def _true(self, pair: Pair) -> float:
        return pair.wait if math.isfinite(pair.wait) else self.horizon

    def _points(self) -> dict[str, FloatArray]:
        """Point forecasts of each source."""
        cut = self.horizon
        return {
            "median": self._each(lambda pair, judged: min(quantile(pair.of(judged.source), 0.5), cut)),
            "futures": self._each(lambda pair, judged: min(quantile(pair.futures, 0.5), cut)),
            "requested": self._each(lambda pair, judged: min(pair.requested, cut)),
            "alike": self._each(lambda pair, judged: float(pair.of("similar jobs").mean())),
            "last": self._each(lambda pair, judged: min(pair.last, cut)),
        }

    @cached_property
    def losses(self) -> dict[str, FloatArray]:
        """Losses of each source, s; the absolute error of a point forecast."""
        points, waits = self._points(), self.waits

        def of(sample: FloatArray, wait: float) -> float:
            return loss(np.minimum(sample, self.horizon), wait)

        return {
            "forecast": self._each(lambda pair, judged: of(pair.of(judged.source), self._true(pair))),
            "futures": self._each(lambda pair, judged: of(pair.futures, self._true(pair))),
            "requested": np.abs(points["requested"] - waits),
            "alike": self._each(lambda pair, judged: of(pair.of("similar jobs"), self._true(pair))),
            "mean": np.abs(points["alike"] - waits),
            "last": np.abs(points["last"] - waits),
        }

    def covered(self, level: float, *, raw: bool = False) -> FloatArray:
        """Return for each judged forecast whether its interval, or the *raw* one of the futures, has the truth."""

        def inside(pair: Pair, judged: Judged) -> float:
            low, high = raw_interval(pair.futures, level) if raw else judged.intervals[level].calibrated
            return float(low <= pair.wait <= high)

        return self._each(inside)

    def skill(self, baseline: str) -> tuple[float, float]:
        """Return 1 - loss / loss of a baseline, and its standard error by a bootstrap of the blocks."""
        own, other = (_blocks(self.losses[name], np.sum) for name in ("forecast", baseline))
        draws = np.random.default_rng(self.seed).integers(0, len(own), (DRAWS, len(own)))
        skills = 1 - own[draws].sum(axis=1) / other[draws].sum(axis=1)
        return float(1 - own.sum() / other.sum()), float(skills.std(ddof=1))

    def to_dict(self) -> dict[str, Any]:
        """Return all figures; times in hours."""
        waits, points = self.waits, self._points()
        found: dict[str, Any] = {
            "tests": len(waits),
            "mean_wait_h": float(waits.mean()) / _HOUR,
            "median_wait_h": float(np.median(waits)) / _HOUR,
            "by_futures": sum(judged.source == "futures" for _, judged in self.tests),
        }
        for level in LEVELS:
            ends = [np.array([raw_interval(pair.futures, level) for pair, _ in self.tests])]
            ends.append(np.array([judged.intervals[level].calibrated for _, judged in self.tests]))
            widths = [float(np.median(np.minimum(it[:, 1], 1e300) - np.minimum(it[:, 0], 1e300))) for it in ends]
            covered = self.covered(level)
            found[f"{level:.0%}"] = {
                "raw": float(self.covered(level, raw=True).mean()),
                "calibrated": float(covered.mean()),
                "standard_error": standard_error(covered),
                "raw_width_h": widths[0] / _HOUR,
                "width_h": widths[1] / _HOUR,
                "no_upper_end": float(np.isinf(ends[1][:, 1]).mean()),
            }
        errors = {name: np.abs(point - waits) / _HOUR for name, point in points.items()}
        found["mae_h"] = {name: float(error.mean()) for name, error in errors.items()}
        found["median_abs_error_h"] = {name: float(np.median(error)) for name, error in errors.items()}
        found["pinball_h"] = {name: float(it.mean()) / _HOUR for name, it in self.losses.items()}
        found["skill"] = dict(zip(BASELINES, map(self.skill, BASELINES), strict=True))
        return found


def _blocks(values: FloatArray, of: Callable[[FloatArray], float]) -> FloatArray:
    return np.array([of(values[first : first + BLOCK]) for first in range(0, len(values), BLOCK)])


def standard_error(values: FloatArray) -> float:
    """Return the standard error of a mean, from the means of blocks of successive moments.

    Examples
    --------
    >>> round(standard_error(np.repeat([0.0, 1.0], 10)), 3)
    0.5
    """
    means = _blocks(values, np.mean)
    return float(means.std(ddof=1)) / math.sqrt(len(means)) if len(means) > 1 else math.nan
