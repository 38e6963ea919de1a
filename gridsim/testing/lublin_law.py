"""Exact values of the Lublin-Feitelson model that samples of it are held against: means and quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsim.model.time import FloatArray
from gridsim.workload.synthetic.lublin_law import runtime_given_size, short_share, size_probabilities
from gridsim.workload.synthetic.lublin_parameters import JobClass

__all__ = ["mean_runtime", "mean_size", "runtime_cdf", "runtime_quantile"]


def mean_size(job_class: JobClass, cores: int) -> float:
    """Mean size, cores."""
    return float(size_probabilities(job_class, cores) @ np.arange(cores + 1))


def mean_runtime(job_class: JobClass, cores: int) -> float:
    """Mean runtime before it is cut to whole seconds, s."""
    return float(size_probabilities(job_class, cores) @ runtime_given_size(job_class, np.arange(cores + 1)))


def runtime_cdf(job_class: JobClass, cores: int, runtime: Any) -> FloatArray:
    """Probability that a job of any size runs at most *runtime* seconds, before the cut to whole seconds."""
    share = size_probabilities(job_class, cores) @ short_share(job_class, np.arange(cores + 1))
    value = np.log(np.asarray(runtime, dtype=float))
    return np.asarray(share * job_class.short.cdf(value) + (1.0 - share) * job_class.long.cdf(value))


def runtime_quantile(job_class: JobClass, cores: int, probability: Any) -> FloatArray:
    """Runtime that is not exceeded with *probability*, s, before the cut to whole seconds; by bisection."""
    wanted = np.asarray(probability, dtype=float)
    low, high = np.zeros_like(wanted), np.full_like(wanted, job_class.short.limit)
    for _ in range(60):
        middle = (low + high) / 2.0
        reached = runtime_cdf(job_class, cores, np.exp(middle)) >= wanted
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return np.asarray(np.exp(high))
