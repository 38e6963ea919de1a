"""Numbers of units: what is paired, subtracted and averaged before anything is tested.

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
"""A number a unit: by window and stream."""


def combined(function: Callable[..., float], *values: Values) -> Values:
    """A function of numbers of the same unit, for the units that all have."""
    units = [unit for unit in values[0] if all(unit in others for others in values[1:])]
    return {unit: function(*(of_one[unit] for of_one in values)) for unit in units}


def changes(mine: Values, theirs: Values, *, ratio: bool = False) -> Values:
    """Mine minus theirs, or the logarithm of mine over theirs."""
    if not ratio:
        return combined(lambda a, b: a - b, mine, theirs)
    units = [unit for unit in mine if unit in theirs]
    columns = (np.array([of_one[unit] for unit in units], dtype=np.float64) for of_one in (mine, theirs))
    return dict(zip(units, log_ratios(*columns).tolist(), strict=True))


def by_window(values: Values) -> FloatArray:
    """Mean over the streams of each window; what is no number is left out."""
    found: dict[int, list[float]] = {}
    for (window, _), value in sorted(values.items()):
        if math.isfinite(value):
            found.setdefault(window, []).append(value)
    return np.array([sum(streams) / len(streams) for streams in found.values()], dtype=np.float64)
