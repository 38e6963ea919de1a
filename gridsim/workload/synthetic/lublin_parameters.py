"""Parameters and distributions of the Lublin-Feitelson model, fitted to the size of the machine.

The parameters of each class of jobs are the published ones. Functions give sizes, run times and the daily cycle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from gridsim.errors import check_parameters
from gridsim.model.time import FloatArray


@dataclass(frozen=True, slots=True)
class TruncatedGamma:
    """Gamma distribution conditioned on values of at most *limit*; larger draws are repeated.

    Attributes
    ----------
    shape : float
        Shape of the gamma distribution before truncation, above 0.
    scale : float
        Its scale (mean = shape x scale), between 0 and 1. With a larger scale, the exponential has a finite mean only
        because of the truncation.
    limit : float
        Largest value.
    """

    shape: float
    scale: float
    limit: float

    def __post_init__(self) -> None:
        check_parameters(
            self,
            shape=(self.shape > 0, "a number above 0"),
            scale=(0 < self.scale < 1, "a number between 0 and 1"),
            limit=(self.limit > 0, "a number above 0"),
        )

    @property
    def kept(self) -> float:
        """Probability that the untruncated distribution is at most the limit, so that no redraw is needed."""
        return float(_below(self.shape, self.limit / self.scale))

    @property
    def mean_exponential(self) -> float:
        """Mean of the exponential of a value, in closed form.

        Notes
        -----
        The density weighted by the exponential is a gamma density of scale ``b / (1 - b)``.
        """
        narrow = 1.0 - self.scale
        weight = narrow**-self.shape
        return float(weight * _below(self.shape, self.limit * narrow / self.scale) / self.kept)

    def cdf(self, value: Any) -> FloatArray:
        """Return the probability of at most *value*."""
        inside = np.clip(np.asarray(value, dtype=float), 0.0, self.limit)
        return np.asarray(_below(self.shape, inside / self.scale) / self.kept)

    def quantile(self, probability: Any) -> FloatArray:
        """Return the value that is not exceeded with *probability*."""
        from scipy.special import gammaincinv  # importing takes 0.2 s: only for exact values

        return np.asarray(self.scale * gammaincinv(self.shape, np.asarray(probability, dtype=float) * self.kept))

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return the first *n* values of *rng* up to the limit; a larger *n* gives the same first values."""
        parts = [np.empty(0)]
        while (missing := n - sum(map(len, parts))) > 0:
            values = rng.gamma(self.shape, self.scale, missing)
            parts.append(values[values <= self.limit])
        return np.concatenate(parts)


def _below(shape: float, value: Any) -> Any:
    """Return the probability that a gamma distribution of this shape and scale 1 is at most *value*."""
    from scipy.special import gammainc  # importing takes 0.2 s: only for synthetic workloads

    return gammainc(shape, value)


BUCKET = 1800.0
"""Length of a bucket of the daily cycle, s."""

BUCKETS = 48
"""Number of buckets in a day."""

CYCLE_OFFSET = 11
"""Bucket at which the gamma distribution of the daily cycle begins; the minimum at night is at 05:00."""

LONGEST_LOG_RUNTIME = 12.0
"""Largest natural logarithm of a runtime in seconds (162,754 s)."""

LONGEST_LOG_GAP = 13.0
"""Largest natural logarithm of a gap in seconds, before a load is set (442,413 s)."""

REFERENCE_CORES = 128
"""Cores of the machine that the published parameters describe."""

CHANGE_POINT_DISTANCE = 2.5
"""Distance of the change point of log2 sizes below the largest, on other machines (the authors allow 1.5 to 3.5)."""


@dataclass(frozen=True, slots=True)
class JobClass:
    """One class of jobs of the model; the names are those of the paper.

    Attributes
    ----------
    name : str
        Name of the class, which is also part of the names of its random streams.
    serial, pow2 : float
        Shares of serial jobs, and of parallel jobs with a power-of-two size, among all jobs.
    u_low, u_med, u_hi : float
        log2 of the smallest parallel size, of the change point, and of the largest size, in cores.
    u_prob : float
        Weight of the lower stage, between `u_low` and `u_med`.
    a1, b1, a2, b2 : float
        Shapes and scales of the two gamma distributions of ln run time in seconds.
    pa, pb : float
        Weight of the first distribution on n cores: ``pa n + pb``, clipped to [0, 1].
    a_arr, b_arr : float
        Shape and scale of the gamma distribution of ln gap in seconds in the rush hours.
    arar : float
        Ratio of all hours to rush hours; multiplies `a_arr`.
    a_num, b_num : float
        Shape and scale of the gamma distribution of the arrivals over the day, in buckets.

    References
    ----------
    Lublin and Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid jobs",
    JPDC 63(11), 2003.
    """

    name: str
    serial: float
    pow2: float
    u_low: float
    u_med: float
    u_hi: float
    u_prob: float
    a1: float
    b1: float
    a2: float
    b2: float
    pa: float
    pb: float
    a_arr: float
    b_arr: float
    arar: float
    a_num: float
    b_num: float

    @property
    def short(self) -> TruncatedGamma:
        """Distribution of ln run time of the first component, mostly short jobs."""
        return TruncatedGamma(self.a1, self.b1, LONGEST_LOG_RUNTIME)

    @property
    def long(self) -> TruncatedGamma:
        """Distribution of ln run time of the second component, mostly long jobs."""
        return TruncatedGamma(self.a2, self.b2, LONGEST_LOG_RUNTIME)

    @property
    def log_gap(self) -> TruncatedGamma:
        """Distribution of ln gap over all hours; its exponential is a gap in points, whose mean is the mean gap."""
        return TruncatedGamma(self.a_arr * self.arar, self.b_arr, LONGEST_LOG_GAP)

    def on(self, cores: int, *, rescale: bool = True) -> JobClass:
        """Return the class on a machine of *cores* cores; the class itself on the published 128.

        Parameters
        ----------
        rescale : bool
            Scale `pa` by 128 / cores. Otherwise jobs above 144 cores are always long, and the load grows with the
            machine.

        Notes
        -----
        On machines with fewer than 10 cores, the change point would be below the smallest parallel size. The lower
        stage then shrinks to that size; the published rule does not cover this case.
        """
        if cores == REFERENCE_CORES:
            return self
        highest = math.log2(cores)
        lowest = min(self.u_low, highest)
        return replace(
            self,
            u_low=lowest,
            u_med=max(lowest, highest - CHANGE_POINT_DISTANCE),
            u_hi=highest,
            pa=self.pa * REFERENCE_CORES / cores if rescale else self.pa,
        )


_PUBLISHED: Mapping[str, tuple[float, float, float]] = {
    "serial": (0.244, 0.2927, 0.1541),
    "pow2": (0.576, 0.6686, 0.625),
    "u_low": (0.8, 1.2, 1.0),
    "u_med": (4.5, 5.0, 3.0),
    "u_hi": (7.0, 7.0, 5.5),
    "u_prob": (0.86, 0.875, 0.705),
    "a1": (4.2, 6.57, 3.8351),
    "b1": (0.94, 0.823, 0.6605),
    "a2": (312.0, 639.1, 7.073),
    "b2": (0.03, 0.0156, 0.6856),
    "pa": (-0.0054, -0.003, -0.0118),
    "pb": (0.78, 0.6986, 0.9156),
    "a_arr": (10.2303, 6.0415, 6.5510),
    "b_arr": (0.4871, 0.8531, 0.6621),
    "arar": (1.0225, 1.0519, 0.9797),
    "a_num": (8.1737, 6.1271, 8.9186),
    "b_num": (3.9631, 5.2740, 3.6680),
}
"""Parameters of all jobs of a machine as one class, and of the batch and interactive jobs of the two-class variant."""

ALL, BATCH, INTERACTIVE = (
    JobClass(name, **{parameter: values[place] for parameter, values in _PUBLISHED.items()})
    for place, name in enumerate(("all", "batch", "interactive"))
)

KINDS: Mapping[str, tuple[JobClass, ...]] = MappingProxyType(
    {"all": (ALL,), "two-class": (INTERACTIVE, BATCH), "batch": (BATCH,), "interactive": (INTERACTIVE,)}
)
"""Classes of each kind of workload; the index of a class is its number in the queue column, interactive jobs 0."""


def short_weight(job_class: JobClass, cores: Any) -> FloatArray:
    """Return the probability of the first gamma distribution of ln run time on *cores* cores, before truncation."""
    return np.clip(job_class.pa * np.asarray(cores, dtype=float) + job_class.pb, 0.0, 1.0)


def short_share(job_class: JobClass, cores: Any) -> FloatArray:
    """Return the share of the first gamma distribution among the jobs on *cores* cores, after truncation.

    Notes
    -----
    A run time above the limit is drawn again together with its component, so truncation changes the shares.
    """
    weight = short_weight(job_class, cores)
    short, long = weight * job_class.short.kept, (1.0 - weight) * job_class.long.kept
    return short / (short + long)


def size_probabilities(job_class: JobClass, cores: int) -> FloatArray:
    """Return the probability of each size on a machine of *cores* cores; (cores + 1,), indexed by the size.

    Parameters
    ----------
    job_class : JobClass
        The class, already fitted to the machine (`JobClass.on`).
    cores : int
        Cores of the machine, the upper limit of sizes.
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
    """Return the probabilities of the exponent below, between and above the *edges*."""
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
    """Return the mean run time of jobs on *cores* cores before rounding down to whole seconds, s."""
    share = short_share(job_class, cores)
    return share * job_class.short.mean_exponential + (1.0 - share) * job_class.long.mean_exponential


def mean_area(job_class: JobClass, cores: int) -> float:
    """Return the mean of cores times run time, core-seconds."""
    sizes = np.arange(cores + 1)
    return float(size_probabilities(job_class, cores) @ (sizes * runtime_given_size(job_class, sizes)))


def expected_load(classes: Iterable[JobClass], cores: int) -> float:
    """Return the offered load of all *classes* on *cores* cores, a fraction: mean area over capacity of a mean gap."""
    return sum(mean_area(job_class, cores) / (cores * job_class.log_gap.mean_exponential) for job_class in classes)


DAY = BUCKET * BUCKETS
"""Length of a day, s; also its length in points."""


def cycle(job_class: JobClass) -> FloatArray:
    """Return the weight of each bucket of the day from midnight, dimensionless; the mean weight is 1."""
    from scipy.special import gammainc  # importing takes 0.2 s: only for synthetic workloads

    edges = np.arange(CYCLE_OFFSET, CYCLE_OFFSET + BUCKETS + 1) - 0.5
    weights = np.roll(np.diff(gammainc(job_class.a_num, edges / job_class.b_num)), CYCLE_OFFSET - 1)
    return np.asarray(weights / weights.mean())


@dataclass(frozen=True, slots=True, eq=False)
class DailyClock:
    """Conversion between points and seconds: a bucket of weight w has w x 1800 points, a day 86,400.

    Attributes
    ----------
    weights : (48,) float
        Weight of each bucket of the day from midnight; the mean weight is 1.
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
        """Return the seconds from the start to *points* points, by a periodic, piecewise linear map.

        Notes
        -----
        The authors' program steps through the buckets for each job and truncates each gap to whole seconds. Its cycle
        therefore drifts by half a second per job; this clock uses floating point.
        """
        days, rest = np.divmod(np.asarray(points, dtype=float), DAY)
        return np.asarray(days * DAY + np.interp(rest, self._points, self._times))
