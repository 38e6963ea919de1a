"""Cases of moldable jobs that need no simulation: speedups, ranges, profiles, weights, loads; and jobs with ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.model.moldable import Moldable, weight_bounds, weight_category
from gridsim.model.speedup import Downey, Linear, Speedup, Table
from gridsim.model.time import MICROSECOND, to_us
from gridsim.model.workload import Workload
from gridsim.testing.conformance import running
from gridsim.testing.conformance.outcome import Comparison, Outcome, Run
from gridsim.testing.conformance.running import known_only, rigid_workload
from gridsim.workload.transform.load_factor import LoadFactor
from gridsim.workload.transform.moldable import MoldableJobs, factor_range
from gridsim.workload.transform.profiles import profile_range

PROSE = (*running.PROSE, "tolerance")


def moldable_workload(jobs: Sequence[Mapping[str, Any]], machine: int) -> Workload:
    """Workload of job objects with ``min``, ``max`` and ``A, sigma`` or a ``table``; one without stays rigid."""
    workload = rigid_workload(jobs, cores="processors", machine=machine)
    by_number = {job["id"]: job for job in jobs}
    ordered = [by_number[number] for number in workload.job.tolist()]
    ranges = Moldable.of(
        workload.cores,
        [job.get("min", job["processors"]) for job in ordered],
        [job.get("max", job["processors"]) for job in ordered],
        [_law(job) for job in ordered],
        np.arange(len(workload)),
        names=workload.job,
    )
    return replace(workload, moldable=ranges)


def _law(job: Mapping[str, Any]) -> Speedup:
    if "table" in job:
        return _table(job)
    if "A" not in job:
        return Linear()
    if "sigma" not in job:
        raise InputError("has a parallelism 'A' without 'sigma'", field="jobs")
    return Downey(float(job["A"]), float(job["sigma"]))


def _table(of: Mapping[str, Any]) -> Table:
    return Table([(cores, seconds) for cores, seconds in of["table"]])


def _points(
    case: Mapping[str, Any], name: str, fields: Sequence[str], compare: Callable[[Comparison, Any, str, float], None]
) -> Run:
    """A run that compares every entry of a list of a case."""
    comparison, tolerance = Comparison(), float(case.get("tolerance", 0.0))
    for index, point in enumerate(case[name]):
        known_only(point, fields, f"{name}[{index}] holds")
        compare(comparison, point, f"{name}[{index}]", tolerance)
    return comparison.verdict(name)


def check_speedup(case: Mapping[str, Any]) -> Outcome:
    """Downey's speedups."""
    known_only(case, (*PROSE, "points"), "the case holds")
    return Outcome.of([_points(case, "points", ("n", "A", "sigma", "speedup"), _speedup)])


def _speedup(comparison: Comparison, point: Mapping[str, Any], where: str, tolerance: float) -> None:
    law = _law(point)
    cores = np.array([point["n"]])
    comparison.near(f"{where}: speedup", 1 / float(law.relative(cores)[0]), point["speedup"], tolerance)


def check_range(case: Mapping[str, Any]) -> Outcome:
    """Ranges from range factors, with the rule for sequential jobs and by the plain formula."""
    known_only(case, (*PROSE, "points"), "the case holds")
    fields = ("platform", "requested", "rf", "min", "max", "formula_min", "formula_max")
    return Outcome.of([_points(case, "points", fields, _range)])


def _range(comparison: Comparison, point: Mapping[str, Any], where: str, _: float) -> None:
    machine, requested = (point[name] for name in ("platform", "requested"))
    factor = float(point["rf"])
    job = Workload.from_columns(submit=[0], runtime=[1], cores=[requested], cores_stated=machine)
    made = MoldableJobs(range_factor=factor).apply(job).moldable
    assert made is not None
    formula = factor_range(job.cores, factor, machine)
    found = {"min": made.minimum, "max": made.maximum, "formula_min": formula[0], "formula_max": formula[1]}
    for name, column in found.items():
        if name in point:
            comparison.equal(f"{where}: {name}", int(column[0]), point[name])


def check_profile(case: Mapping[str, Any]) -> Outcome:
    """Interpolated runtimes of a table, and runtimes, ranges and weights of jobs on it."""
    known_only(case, (*PROSE, "table", "points", "jobs"), "the case holds")
    table = _table(case)

    def point(comparison: Comparison, of: Mapping[str, Any], where: str, tolerance: float) -> None:
        found = float(table.relative(np.array([of["processors"]]))[0])
        comparison.near(f"{where}: seconds", found, of["seconds"], tolerance)

    def job(comparison: Comparison, of: Mapping[str, Any], where: str, tolerance: float) -> None:
        _profiled(comparison, of, where, tolerance, table)

    runs = [_points(case, "points", ("processors", "seconds"), point)] if "points" in case else []
    fields = ("requested", "runtime", "min", "max", "weight", "seconds")
    return Outcome.of([*runs, *([_points(case, "jobs", fields, job)] if "jobs" in case else [])])


def _profiled(comparison: Comparison, of: Mapping[str, Any], where: str, tolerance: float, table: Table) -> None:
    requested = np.array([of["requested"]])
    runtime = to_us(np.array([float(of["runtime"])]))
    points = of["seconds"]
    widest = max(table.last, int(requested[0]), *(point["processors"] for point in points))
    minimum, maximum = profile_range(requested, table, widest)
    # The range of the family is that before sizes without gain are cut off.
    comparison.equal(f"{where}: min", int(minimum[0]), of["min"])
    comparison.equal(f"{where}: max", int(maximum[0]), of["max"])
    made = Moldable.of(requested, minimum, widest, [table])
    comparison.near(f"{where}: weight", float(made.sequential(runtime)[0]), of["weight"], tolerance)
    for point in points:
        found = int(made.times_on(point["processors"], runtime, requested)[0]) / MICROSECOND
        comparison.near(f"{where}: seconds on {point['processors']}", found, point["seconds"], tolerance)


def check_table(case: Mapping[str, Any]) -> Outcome:
    """Categories of weights, and submits under a load factor."""
    known_only(case, (*PROSE, "bounds", "points", "load"), "the case holds")
    runs = []
    if "points" in case or "bounds" in case:
        runs.append(_categories(case))
    if "load" in case:
        runs.append(_points(case, "load", ("lf", "submit", "expected"), _load))
    return Outcome.of(runs)


def _categories(case: Mapping[str, Any]) -> Run:
    bounds = weight_bounds()
    if "bounds" in case and (given := case["bounds"]) != bounds.tolist():
        comparison = Comparison()
        comparison.equal("bounds", bounds.tolist(), given)
        return comparison.verdict("bounds")

    def point(comparison: Comparison, of: Mapping[str, Any], where: str, _: float) -> None:
        weight = of["weight"]
        comparison.equal(f"{where}: category", int(weight_category([weight], bounds)[0]), of["category"])

    return _points({"points": [], **case}, "points", ("weight", "category"), point)


def _load(comparison: Comparison, of: Mapping[str, Any], where: str, tolerance: float) -> None:
    submit = of["submit"]
    jobs = Workload.from_columns(submit=submit, runtime=[1] * len(submit), cores=1)
    found = LoadFactor(float(of["lf"])).apply(jobs).submit
    expected = of["expected"]
    comparison.equal(f"{where}: submits", len(found), len(expected))
    for place, (one, other) in enumerate(zip(found.tolist(), expected, strict=False)):
        comparison.near(f"{where}: submit {place}", one / MICROSECOND, other, tolerance)
