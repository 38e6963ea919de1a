"""Back-test: forecasts at earlier moments compared with the truth, and with three baselines (spec of forecasts, 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gridsim.forecasts import intervals
from gridsim.forecasts.intervals import LEVELS, Calibration, Judged, Pair, Source
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


@dataclass(eq=False)
class Backtest(Calibration):
    """Judged forecasts of earlier moments; for the other attributes see `Calibration`.

    Forecasts beyond the horizon count as the horizon in errors and losses.

    Attributes
    ----------
    seed : int
        Seed of the resampling.
    """

    seed: int = 1

    @cached_property
    def tests(self) -> list[tuple[Pair, Judged]]:
        """The judged forecasts: those with enough earlier pairs."""
        found = zip(self.pairs, self.judged, strict=True)
        return [(pair, it) for pair, it in found if it is not None and self.known(pair.at) >= self.needed]

    @property
    def needed(self) -> int:
        """Number of earlier pairs of a judged forecast: with few moments half of them, at least the fewest."""
        if len(self.pairs) >= 2 * intervals.CALIBRATION or self.calibration != intervals.CALIBRATION:
            return self.calibration
        return max(len(self.pairs) // 2, self.fewest)

    def _column(self, name: str) -> FloatArray:
        return np.array([getattr(pair, name) for pair, _ in self.tests])

    @cached_property
    def waits(self) -> FloatArray:
        """True waits of the judged forecasts, s; the horizon for jobs that never started."""
        waits = self._column("wait")
        return np.where(np.isfinite(waits), waits, self.horizon)

    def _samples(self, source: Source | None = None) -> list[FloatArray]:
        """Return the waits of a source, by default that of each forecast."""
        return [pair.of(source or judged.source) for pair, judged in self.tests]

    @cached_property
    def errors(self) -> dict[str, FloatArray]:
        """Absolute errors of the point forecast of each source, s."""

        def medians(source: Source | None = None) -> FloatArray:
            return np.array([intervals.quantile(sample, 0.5) for sample in self._samples(source)])

        points = {"median": medians(), "futures": medians("futures"), "requested": self._column("requested")}
        points = {name: np.minimum(it, self.horizon) for name, it in {**points, "last": self._column("last")}.items()}
        points["alike"] = np.array([sample.mean() for sample in self._samples("similar jobs")])
        return {name: np.abs(points[name] - self.waits) for name in ("median", "futures", "requested", "alike", "last")}

    @cached_property
    def losses(self) -> dict[str, FloatArray]:
        """Losses of each source, s; the absolute error of a point forecast."""

        def of(source: Source | None = None) -> FloatArray:
            pairs = zip(self._samples(source), self.waits.tolist(), strict=True)
            return np.array([intervals.loss(np.minimum(sample, self.horizon), wait) for sample, wait in pairs])

        own = {"forecast": of(), "futures": of("futures"), "requested": self.errors["requested"]}
        return {**own, "alike": of("similar jobs"), "mean": self.errors["alike"], "last": self.errors["last"]}

    def _ends(self, level: float, *, raw: bool = False) -> FloatArray:
        """Return the low ends and the high ends of the intervals of a level."""
        if raw:
            return np.array([intervals.raw_interval(pair.futures, level) for pair, _ in self.tests]).T
        return np.array([judged.intervals[level].calibrated for _, judged in self.tests]).T

    def covered(self, level: float, *, raw: bool = False) -> FloatArray:
        """Return for each judged forecast whether its interval, or the *raw* one of the futures, has the truth."""
        (low, high), waits = self._ends(level, raw=raw), self._column("wait")
        return np.where((low <= waits) & (waits <= high), 1.0, 0.0)

    def skill(self, baseline: str) -> tuple[float, float]:
        """Return 1 - loss / loss of a baseline, and its standard error by a bootstrap of the blocks."""
        own, other = (np.array([it.sum() for it in _blocks(self.losses[name])]) for name in ("forecast", baseline))
        draws = np.random.default_rng(self.seed).integers(0, len(own), (DRAWS, len(own)))
        skills = 1 - own[draws].sum(axis=1) / other[draws].sum(axis=1)
        return float(1 - own.sum() / other.sum()), float(skills.std(ddof=1)) if len(own) > 1 else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return all figures; times in hours."""
        found: dict[str, Any] = {
            "tests": len(self.tests),
            "mean_wait_h": float(self.waits.mean()) / _HOUR,
            "median_wait_h": float(np.median(self.waits)) / _HOUR,
            "by_futures": sum(judged.source == "futures" for _, judged in self.tests),
        }
        for level in LEVELS:
            covered = self.covered(level)
            found[f"{level:.0%}"] = {
                "raw": float(self.covered(level, raw=True).mean()),
                "calibrated": float(covered.mean()),
                "standard_error": standard_error(covered),
                "raw_width_h": _width(*self._ends(level, raw=True)) / _HOUR,
                "width_h": _width(*self._ends(level)) / _HOUR,
                "no_upper_end": float(np.isinf(self._ends(level)[1]).mean()),
            }
        errors = {name: error / _HOUR for name, error in self.errors.items()}
        found["mae_h"] = {name: float(error.mean()) for name, error in errors.items()}
        found["median_abs_error_h"] = {name: float(np.median(error)) for name, error in errors.items()}
        found["pinball_h"] = {name: float(it.mean()) / _HOUR for name, it in self.losses.items()}
        found["skill"] = dict(zip(BASELINES, map(self.skill, BASELINES), strict=True))
        return found


def _width(low: FloatArray, high: FloatArray) -> float:
    """Return the median width of intervals; infinite if most have no upper end, 0 for those beyond the horizon."""
    found = float(np.median(np.minimum(high, 1e300) - np.minimum(low, 1e300)))
    return found if found < 1e299 else math.inf


def _blocks(values: FloatArray) -> list[FloatArray]:
    return [values[first : first + BLOCK] for first in range(0, len(values), BLOCK)]


def standard_error(values: FloatArray) -> float:
    """Return the standard error of a mean, from the means of blocks of successive moments.

    Examples
    --------
    >>> round(standard_error(np.repeat([0.0, 1.0], 10)), 3)
    0.5
    """
    means = np.array([it.mean() for it in _blocks(values)])
    return float(means.std(ddof=1)) / math.sqrt(len(means)) if len(means) > 1 else math.nan
