"""Numbers per unit, which are paired, subtracted and averaged before any test.

A *unit* is a window of a log and a stream of duplication: the same jobs under every policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from gridsim.metrics.paired_tests import log_ratios
from gridsim.model.time import FloatArray

__all__ = ["Values", "by_window", "changes", "combined"]

Values = Mapping[tuple[int, int], float]
"""One number per unit: by window and stream."""


def combined(function: Callable[..., float], *values: Values) -> Values:
    """Apply a function to numbers of the same unit, for units present in all arguments."""
    units = [unit for unit in values[0] if all(unit in others for others in values[1:])]
    return {unit: function(*(of_one[unit] for of_one in values)) for unit in units}


def changes(mine: Values, theirs: Values, *, ratio: bool = False) -> Values:
    """Mine minus theirs, or the logarithm of mine divided by theirs."""
    if not ratio:
        return combined(lambda a, b: a - b, mine, theirs)
    units = [unit for unit in mine if unit in theirs]
    columns = (np.array([of_one[unit] for unit in units], dtype=np.float64) for of_one in (mine, theirs))
    return dict(zip(units, log_ratios(*columns).tolist(), strict=True))


def by_window(values: Values) -> FloatArray:
    """Mean over the streams of each window, without NaN and infinite values."""
    found: dict[int, list[float]] = {}
    for (window, _), value in sorted(values.items()):
        if math.isfinite(value):
            found.setdefault(window, []).append(value)
    return np.array([sum(streams) / len(streams) for streams in found.values()], dtype=np.float64)
