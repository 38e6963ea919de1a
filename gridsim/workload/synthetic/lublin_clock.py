"""The daily cycle of the Lublin-Feitelson model as a clock that runs fast by night and slowly by day."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gridsim.model.time import FloatArray
from gridsim.workload.synthetic.lublin_parameters import BUCKET, BUCKETS, CYCLE_OFFSET, JobClass

__all__ = ["DAY", "DailyClock", "cycle"]

DAY = BUCKET * BUCKETS
"""Length of a day, s; also its points."""


def cycle(job_class: JobClass) -> FloatArray:
    """Weight of each bucket of the day from midnight, dimensionless; their mean is 1."""
    from scipy.special import gammainc  # a fifth of a second: only where a workload is made

    edges = np.arange(CYCLE_OFFSET, CYCLE_OFFSET + BUCKETS + 1) - 0.5
    weights = np.roll(np.diff(gammainc(job_class.a_num, edges / job_class.b_num)), CYCLE_OFFSET - 1)
    return np.asarray(weights / weights.mean())


@dataclass(frozen=True, slots=True, eq=False)
class DailyClock:
    """Points to seconds and back: a bucket of weight w costs w x 1800 points, a day 86,400.

    Attributes
    ----------
    weights : (48,) float
        Weight of each bucket of the day from midnight; their mean is 1.
    start_bucket : int
        Bucket of the day at time 0.
    """

    weights: FloatArray
    start_bucket: int = 0
    _times: FloatArray = field(init=False, repr=False)
    _points: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        spent = np.cumsum(np.roll(self.weights, -self.start_bucket)) * BUCKET
        object.__setattr__(self, "_times", np.arange(BUCKETS + 1) * BUCKET)
        object.__setattr__(self, "_points", np.concatenate(([0.0], spent[:-1], [DAY])))

    def time(self, points: Any) -> FloatArray:
        """Seconds since the start at which *points* points are spent; a periodic, piecewise linear map.

        Notes
        -----
        The authors' program walks the buckets job by job and cuts each gap to whole seconds, which makes its
        cycle drift by half a second a job; here the clock stays in floating point.
        """
        days, rest = np.divmod(np.asarray(points, dtype=float), DAY)
        return np.asarray(days * DAY + np.interp(rest, self._points, self._times))
