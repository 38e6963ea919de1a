"""Parameters of the Lublin-Feitelson model: one set a class of jobs, as published, and fitted to other machines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from gridsim.workload.synthetic.truncated_gamma import TruncatedGamma

__all__ = [
    "ALL",
    "BATCH",
    "BUCKET",
    "BUCKETS",
    "CYCLE_OFFSET",
    "INTERACTIVE",
    "KINDS",
    "LONGEST_LOG_GAP",
    "LONGEST_LOG_RUNTIME",
    "REFERENCE_CORES",
    "JobClass",
]

BUCKET = 1800.0
"""Length of a bucket of the daily cycle, s."""

BUCKETS = 48
"""Buckets of a day."""

CYCLE_OFFSET = 11
"""Bucket at which the gamma law of the daily cycle begins: the night minimum lies at 05:00."""

LONGEST_LOG_RUNTIME = 12.0
"""Largest natural logarithm of a runtime in seconds (162,754 s)."""

LONGEST_LOG_GAP = 13.0
"""Largest natural logarithm of a gap in seconds, before a load is set (442,413 s)."""

REFERENCE_CORES = 128
"""Cores of the machine that the published parameters describe."""

CHANGE_POINT_DISTANCE = 2.5
"""Change point of the log2 sizes below the largest on machines of another size (the authors allow 1.5 to 3.5)."""


@dataclass(frozen=True, slots=True)
class JobClass:
    """One class of jobs of the model; names are the paper's.

    Attributes
    ----------
    name : str
        Name of the class, also part of the names of its random streams.
    serial, pow2 : float
        Shares of serial jobs, and of parallel jobs with a power-of-two size, of all jobs.
    u_low, u_med, u_hi : float
        log2 of the smallest parallel size, of the change point, and of the largest size, in cores.
    u_prob : float
        Weight of the lower stage, between `u_low` and `u_med`.
    a1, b1, a2, b2 : float
        Shapes and scales of the two gamma laws of ln runtime in seconds.
    pa, pb : float
        Weight of the first of them on n cores: ``pa n + pb``, cut to [0, 1].
    a_arr, b_arr : float
        Shape and scale of the gamma law of ln gap in seconds in the rush hours.
    arar : float
        Ratio of all hours to rush hours; multiplies `a_arr`.
    a_num, b_num : float
        Shape and scale of the gamma law of the arrivals over the day, in buckets.

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
        """Law of ln runtime of the first component, mostly short jobs."""
        return TruncatedGamma(self.a1, self.b1, LONGEST_LOG_RUNTIME)

    @property
    def long(self) -> TruncatedGamma:
        """Law of ln runtime of the second component, mostly long jobs."""
        return TruncatedGamma(self.a2, self.b2, LONGEST_LOG_RUNTIME)

    @property
    def log_gap(self) -> TruncatedGamma:
        """Law of ln gap over all hours; its exponential is a gap in points of the daily cycle, mean = mean gap."""
        return TruncatedGamma(self.a_arr * self.arar, self.b_arr, LONGEST_LOG_GAP)

    def on(self, cores: int, *, rescale: bool = True) -> JobClass:
        """The class on a machine of *cores* cores; itself on the published 128.

        Parameters
        ----------
        rescale : bool
            Scale `pa` by 128 / cores. Left alone, jobs above 144 cores are always long, and the load grows with
            the machine.

        Notes
        -----
        Where the change point would lie below the smallest parallel size (machines under 10 cores), the lower
        stage shrinks to that size; the published rule does not say.
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


ALL = JobClass(
    name="all",
    serial=0.244,
    pow2=0.576,
    u_low=0.8,
    u_med=4.5,
    u_hi=7.0,
    u_prob=0.86,
    a1=4.2,
    b1=0.94,
    a2=312.0,
    b2=0.03,
    pa=-0.0054,
    pb=0.78,
    a_arr=10.2303,
    b_arr=0.4871,
    arar=1.0225,
    a_num=8.1737,
    b_num=3.9631,
)
"""All jobs of a machine as one class: the default workload."""

BATCH = JobClass(
    name="batch",
    serial=0.2927,
    pow2=0.6686,
    u_low=1.2,
    u_med=5.0,
    u_hi=7.0,
    u_prob=0.875,
    a1=6.57,
    b1=0.823,
    a2=639.1,
    b2=0.0156,
    pa=-0.003,
    pb=0.6986,
    a_arr=6.0415,
    b_arr=0.8531,
    arar=1.0519,
    a_num=6.1271,
    b_num=5.2740,
)
"""Batch jobs of the two-class variant."""

INTERACTIVE = JobClass(
    name="interactive",
    serial=0.1541,
    pow2=0.625,
    u_low=1.0,
    u_med=3.0,
    u_hi=5.5,
    u_prob=0.705,
    a1=3.8351,
    b1=0.6605,
    a2=7.073,
    b2=0.6856,
    pa=-0.0118,
    pb=0.9156,
    a_arr=6.5510,
    b_arr=0.6621,
    arar=0.9797,
    a_num=8.9186,
    b_num=3.6680,
)
"""Interactive jobs of the two-class variant."""

KINDS: Mapping[str, tuple[JobClass, ...]] = MappingProxyType(
    {"all": (ALL,), "two-class": (INTERACTIVE, BATCH), "batch": (BATCH,), "interactive": (INTERACTIVE,)}
)
"""Classes of each kind of workload; a class's place is its number in the queue column, interactive jobs 0."""
