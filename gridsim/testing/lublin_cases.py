"""Conformance cases of kind ``lublin``: exact values of the Lublin-Feitelson model, without random draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from gridsim.model.time import FloatArray
from gridsim.workload.synthetic import lublin_parameters as law
from gridsim.workload.synthetic.lublin import SIZE_KINDS, size_exponents, size_kinds, sizes
from gridsim.workload.synthetic.lublin_parameters import (
    ALL,
    BATCH,
    INTERACTIVE,
    REFERENCE_CORES,
    DailyClock,
    JobClass,
    cycle,
    runtime_given_size,
    short_share,
    size_probabilities,
)


class Comparison(NamedTuple):
    """Comparison of an expected and an actual value, with the decimals in the case, if few."""

    place: str
    expected: Any
    found: Any
    decimals: int | None = None


PROSE = ("schema", "kind", "name", "title", "why", "spec_sections", "tolerance")
"""Keys of a case that are not compared."""


def check_case(case: Mapping[str, Any]) -> list[str]:
    """Return mismatches between a case and gridsim, one sentence each; empty if it passes.

    Parameters
    ----------
    case : mapping
        The parsed JSON; parts may be missing.

    Notes
    -----
    The tolerance is the case's ``tolerance``. For quantiles of run times and gaps and for the mean gap, which have few
    decimals, it is half a unit of the last decimal.
    """
    tolerance = float(case.get("tolerance", 0.0))
    unknown = [f"unknown part '{key}': it has no counterpart" for key in case if key not in (*PROSE, *_PARTS)]
    return unknown + [
        f"{comparison.place}: expected {comparison.expected}, got {comparison.found}"
        for part, comparisons in _PARTS.items()
        if part in case
        for comparison in comparisons(case[part])
        if not _agrees(comparison, tolerance)
    ]


def _agrees(comparison: Comparison, tolerance: float) -> bool:
    _, expected, found, decimals = comparison
    if not isinstance(found, float):
        return bool(expected == found)
    printed = 0.0 if decimals is None else 0.5001 * 10.0**-decimals
    return abs(found - float(expected)) <= max(tolerance, printed)


def _cycle(part: Mapping[str, list[float]]) -> Iterator[Comparison]:
    classes = {job_class.name: job_class for job_class in (ALL, BATCH, INTERACTIVE)}
    for name, expected in part.items():
        weights = cycle(classes[name])
        yield Comparison(f"cycle {name} length", len(expected), len(weights))
        for bucket, (value, weight) in enumerate(zip(expected, weights, strict=False)):
            yield Comparison(f"cycle {name} bucket {bucket}", value, float(weight))


def _clock(part: list[dict[str, Any]]) -> Iterator[Comparison]:
    weights = cycle(ALL)
    for row in part:
        time = DailyClock(weights, row["start_bucket"]).time(row["cumulative_seconds"])
        place = f"clock at {row['cumulative_seconds']} points from bucket {row['start_bucket']}"
        yield Comparison(place, row["time"], float(time))


def _sizes(part: list[dict[str, Any]]) -> Iterator[Comparison]:
    for row in part:
        u_kind, u_stage, u_place = (row[name] for name in ("u_kind", "u_stage", "u_place"))
        place = f"size of ({u_kind}, {u_stage}, {u_place})"
        yield Comparison(f"{place} kind", row["kind"], SIZE_KINDS[int(size_kinds(ALL, u_kind))])
        yield Comparison(f"{place} exponent", row["exponent"], float(size_exponents(ALL, u_stage, u_place)))
        yield Comparison(f"{place} cores", row["cores"], int(sizes(ALL, REFERENCE_CORES, u_kind, u_stage, u_place)))


def _mixture(part: list[dict[str, Any]]) -> Iterator[Comparison]:
    for row in part:
        cores = row["cores"]
        yield Comparison(f"mixture on {cores} cores p_raw", row["p_raw"], ALL.pa * cores + ALL.pb)
        yield Comparison(f"mixture on {cores} cores p", row["p"], float(law.short_weight(ALL, cores)))
        share = float(law.short_share(ALL, cores))
        yield Comparison(f"mixture on {cores} cores first share", row["first_share_after_truncation"], share)


def _size_pmf(part: Mapping[str, float]) -> Iterator[Comparison]:
    probabilities = law.size_probabilities(ALL, REFERENCE_CORES)
    for size, expected in part.items():
        found = float(probabilities[int(size)]) if int(size) < len(probabilities) else 0.0
        yield Comparison(f"probability of size {size}", expected, found)


def _size_mean(part: float) -> Iterator[Comparison]:
    yield Comparison("mean size", part, mean_size(ALL, REFERENCE_CORES))


def _runtimes(part: Mapping[str, float]) -> Iterator[Comparison]:
    for probability, expected in part.items():
        found = runtime_quantile(ALL, REFERENCE_CORES, float(probability))
        yield Comparison(f"runtime quantile {probability}", expected, float(found), 3)


def _gap_points(part: Mapping[str, Any]) -> Iterator[Comparison]:
    gap = ALL.log_gap
    found = {"shape": gap.shape, "scale": gap.scale, "kept": gap.kept, "mean": gap.mean_exponential}
    for name, expected in part.items():
        if name != "quantiles":
            yield Comparison(f"gap points {name}", expected, found.get(name, np.nan), 2 if name == "mean" else None)
    for probability, expected in part.get("quantiles", {}).items():
        yield Comparison(
            f"gap points quantile {probability}", expected, float(np.exp(gap.quantile(float(probability)))), 4
        )


_PARTS: dict[str, Callable[[Any], Iterator[Comparison]]] = {
    "cycle": _cycle,
    "clock": _clock,
    "sizes": _sizes,
    "mixture": _mixture,
    "size_pmf": _size_pmf,
    "size_mean": _size_mean,
    "runtime_quantiles_before_floor": _runtimes,
    "gap_points": _gap_points,
}
"""Parts of a case by their keys."""


def mean_size(job_class: JobClass, cores: int) -> float:
    """Return the mean size, cores."""
    return float(size_probabilities(job_class, cores) @ np.arange(cores + 1))


def mean_runtime(job_class: JobClass, cores: int) -> float:
    """Return the mean run time before truncation to whole seconds, s."""
    return float(size_probabilities(job_class, cores) @ runtime_given_size(job_class, np.arange(cores + 1)))


def runtime_cdf(job_class: JobClass, cores: int, runtime: Any) -> FloatArray:
    """Return the probability of a run time of at most *runtime* seconds, before truncation to whole seconds."""
    share = size_probabilities(job_class, cores) @ short_share(job_class, np.arange(cores + 1))
    value = np.log(np.asarray(runtime, dtype=float))
    return np.asarray(share * job_class.short.cdf(value) + (1.0 - share) * job_class.long.cdf(value))


def runtime_quantile(job_class: JobClass, cores: int, probability: Any) -> FloatArray:
    """Return the run time that is not exceeded with *probability*, s, before truncation to whole seconds.

    By bisection.
    """
    wanted = np.asarray(probability, dtype=float)
    low, high = np.zeros_like(wanted), np.full_like(wanted, job_class.short.limit)
    for _ in range(60):
        middle = (low + high) / 2.0
        reached = runtime_cdf(job_class, cores, np.exp(middle)) >= wanted
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return np.asarray(np.exp(high))
