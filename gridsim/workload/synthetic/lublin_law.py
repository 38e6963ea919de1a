"""Distributions of the Lublin-Feitelson model: shares of sizes and runtimes, mean areas, and its daily cycle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gridsim.model.time import FloatArray
from gridsim.workload.synthetic.lublin_parameters import BUCKET, BUCKETS, CYCLE_OFFSET, JobClass

__all__ = [
    "DAY",
    "DailyClock",
    "cycle",
    "expected_load",
    "mean_area",
    "runtime_given_size",
    "short_share",
    "short_weight",
    "size_probabilities",
]


def short_weight(job_class: JobClass, cores: Any) -> FloatArray:
    """Probability of the first gamma law of ln runtime on *cores* cores, before the cut of the runtimes."""
    return np.clip(job_class.pa * np.asarray(cores, dtype=float) + job_class.pb, 0.0, 1.0)


def short_share(job_class: JobClass, cores: Any) -> FloatArray:
    """Share of the first gamma law among the jobs on *cores* cores, after the cut.

    Notes
    -----
    A runtime that is too long is drawn again with its component, so the cut moves the shares.
    """
    weight = short_weight(job_class, cores)
    short, long = weight * job_class.short.kept, (1.0 - weight) * job_class.long.kept
    return short / (short + long)


def size_probabilities(job_class: JobClass, cores: int) -> FloatArray:
    """Probability of each size on a machine of *cores* cores; (cores + 1,), indexed by the size.

    Parameters
    ----------
    job_class : JobClass
        The class, already fitted to the machine (`JobClass.on`).
    cores : int
        Cores of the machine, where sizes are capped.
    """
    top = cores.bit_length() - 1
    probabilities = np.zeros(cores + 1)
    halves = np.log2(np.arange(1, cores, dtype=np.float64) + 0.5)
    probabilities[1:] = (1.0 - job_class.serial - job_class.pow2) * _between(job_class, halves)
    powers = 2 ** np.arange(top + 1)
    probabilities[powers] += job_class.pow2 * _between(job_class, np.arange(top, dtype=np.float64) + 0.5)
    probabilities[1] += job_class.serial
    return probabilities


def _between(job_class: JobClass, edges: FloatArray) -> FloatArray:
    """Probabilities of the exponent below, between and above the *edges*."""
    low, middle, high = job_class.u_low, job_class.u_med, job_class.u_hi
    below = job_class.u_prob * _uniform_cdf(edges, low, middle) + (1.0 - job_class.u_prob) * _uniform_cdf(
        edges, middle, high
    )
    return np.diff(below, prepend=0.0, append=1.0)


def _uniform_cdf(value: FloatArray, low: float, high: float) -> FloatArray:
    if low == high:
        return (value >= low).astype(float)
    return np.clip((value - low) / (high - low), 0.0, 1.0)


def runtime_given_size(job_class: JobClass, cores: Any) -> FloatArray:
    """Mean runtime of jobs on *cores* cores before it is cut to whole seconds, s."""
    share = short_share(job_class, cores)
    return share * job_class.short.mean_exponential + (1.0 - share) * job_class.long.mean_exponential


def mean_area(job_class: JobClass, cores: int) -> float:
    """Mean of cores times runtime, core-seconds."""
    sizes = np.arange(cores + 1)
    return float(size_probabilities(job_class, cores) @ (sizes * runtime_given_size(job_class, sizes)))


def expected_load(classes: Iterable[JobClass], cores: int) -> float:
    """Offered load of the *classes* together on *cores* cores, a fraction: mean area over capacity of a mean gap."""
    return sum(mean_area(job_class, cores) / (cores * job_class.log_gap.mean_exponential) for job_class in classes)


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
