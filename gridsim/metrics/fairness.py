"""How evenly a value is spread over jobs: one number of a column. Standard deviations are of the sample (n - 1)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gridsim.model.time import FloatArray

__all__ = ["SPREADS", "gini", "jain", "max_over_median", "p99", "standard_deviation"]

NAN = float("nan")


def standard_deviation(values: FloatArray) -> float:
    """Standard deviation of the sample; NaN for fewer than two values, never 0.

    Examples
    --------
    >>> standard_deviation(np.array([1.0, 3.0])), standard_deviation(np.array([1.0]))
    (1.4142135623730951, nan)
    """
    return float(values.std(ddof=1)) if len(values) > 1 else NAN


def gini(values: FloatArray) -> float:
    """Gini coefficient of values above 0: 0 where all are equal, towards 1 where one job has it all.

    Examples
    --------
    >>> gini(np.array([2.0, 2.0])), gini(np.array([0.0, 0.0, 0.0, 4.0]))
    (0.0, 0.75)
    """
    n, total = len(values), float(values.sum())
    if not n or not total:
        return NAN
    ranks = 2.0 * np.arange(1, n + 1) - n - 1
    return float(ranks @ np.sort(values) / (n * total))


def jain(values: FloatArray) -> float:
    """Jain's index: 1 where all values are equal, 1/n where one job has it all.

    Examples
    --------
    >>> jain(np.array([2.0, 2.0])), jain(np.array([0.0, 0.0, 0.0, 4.0]))
    (1.0, 0.25)
    """
    squares = float(values @ values)
    return float(values.sum()) ** 2 / (len(values) * squares) if squares else NAN


def p99(values: FloatArray) -> float:
    """99th percentile, interpolated linearly between neighbours; NaN without values."""
    return float(np.quantile(values, 0.99)) if len(values) else NAN


def max_over_median(values: FloatArray) -> float:
    """Largest value over the median one; NaN without values."""
    return float(values.max() / np.median(values)) if len(values) else NAN


SPREADS: dict[str, Callable[[FloatArray], float]] = {
    "gini": gini,
    "jain": jain,
    "p99": p99,
    "max_over_median": max_over_median,
}
"""Measures of spread beside the standard deviation, by name."""
