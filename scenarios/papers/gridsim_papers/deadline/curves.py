"""Two policies at equal utilisation: curves over the range that they share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.time import FloatArray

__all__ = ["Shared", "common_range"]


class Shared(NamedTuple):
    """Two curves over the range where both have values.

    Attributes
    ----------
    x : (m,) float64
        Points of either curve within the common range, ascending; empty without a common range.
    first, second : (m,) float64
        Values at these points, interpolated linearly between neighbours.
    """

    x: FloatArray
    first: FloatArray
    second: FloatArray

    @property
    def difference(self) -> float:
        """Mean of second minus first over the range; NaN without a common range."""
        if not len(self.x):
            return float("nan")
        gap, width = self.second - self.first, self.x[-1] - self.x[0]
        return float(np.trapezoid(gap, self.x) / width) if width else float(gap[0])


def common_range(first: tuple[npt.ArrayLike, npt.ArrayLike], second: tuple[npt.ArrayLike, npt.ArrayLike]) -> Shared:
    """Compare two policies at equal utilisation, as piecewise linear curves over their common range.

    Parameters
    ----------
    first, second : (x, y)
        Points of each curve in any order: achieved utilisation and the compared value, one point per load. Points with
        equal x are replaced by their mean; points that contain NaN or infinity are ignored.

    Notes
    -----
    Points are connected in ascending order of x. A higher load can achieve a lower utilisation, so this order can
    differ from the order of loads.

    Examples
    --------
    >>> both = common_range(([0.5, 0.7], [0.0, 0.2]), ([0.8, 0.6], [0.5, 0.1]))
    >>> both.x.tolist(), both.second.round(3).tolist(), round(both.difference, 3)
    ([0.6, 0.7], [0.1, 0.3], 0.05)
    """
    curves = [_curve(*points) for points in (first, second)]
    if not all(len(x) for x, _ in curves):
        return Shared(*(np.zeros(0) for _ in range(3)))
    low, high = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    x = np.unique(np.concatenate([x for x, _ in curves]))
    x = x[(x >= low) & (x <= high)]
    return Shared(x, *(np.interp(x, *curve) for curve in curves))


def _curve(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Sort points by x and merge points with equal x."""
    along, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    known = np.isfinite(along) & np.isfinite(values)
    found, position = np.unique(along[known], return_inverse=True)
    return found, np.bincount(position, weights=values[known]) / np.maximum(np.bincount(position), 1)
