"""Cases of charges: classes of runtime and cores, category slowdowns, resource and QoS charges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gridsim.metrics.charges import (
    Classes,
    category_slowdowns,
    core_class_bounds,
    qos_charge,
    requested_slowdown,
    resource_charge,
)
from gridsim.model.time import NEVER, IntArray, to_us
from gridsim.model.workload import Workload
from gridsim.record import Promises, Record, Status
from gridsim.testing.conformance.outcome import Comparison, Outcome, Run
from gridsim.testing.conformance.running import PROSE, known_only, rigid_workload

TOLERANCE = 1e-12
"""Relative, of ratios and their sums; classes and core-seconds are compared exactly."""

_EXACT = ("time_class", "core_class", "resource_charge")


def check_charges(case: Mapping[str, Any]) -> Outcome:
    """Charges of jobs that ran within the responses agreed, judged by their responses under EASY."""
    known_only(case, (*PROSE, "platform", "jobs", "expected", "totals", "core_class_bounds"), "the case holds")
    found = _charged(case["jobs"], case["platform"]["cores"])
    runs = [_job(job, found) for job in case.get("expected", ())]
    if "totals" in case:
        runs.append(_totals(case["totals"], found))
    if "core_class_bounds" in case:
        runs.append(_bounds(case["core_class_bounds"]))
    return Outcome.of(runs)


def _charged(jobs: Sequence[Mapping[str, Any]], cores: int) -> dict[str, dict[int, Any]]:
    """Everything that a case may expect of its jobs, by name, then by number of the job."""
    rows = [{"estimate": job.get("runtime"), **job, "deadline": _agreed(job)} for job in jobs]
    workload = rigid_workload(rows, cores="cores", machine=cores, least=1)
    by_number = {job["id"]: job for job in jobs}
    easy = to_us(np.array([by_number[number]["easy_response"] for number in workload.job.tolist()]))
    reference = _record(workload, workload.submit + easy, cores)
    record = _record(workload, workload.deadline, cores)
    slowdowns = category_slowdowns(reference)
    time_class, core_class = Classes().of(record)
    columns = {
        "time_class": time_class,
        "core_class": core_class,
        "category_slowdown": slowdowns.of(record),
        "requested_slowdown": requested_slowdown(record),
        "qos_charge": qos_charge(record, slowdowns),
        "resource_charge": resource_charge(record),
    }
    return {
        name: {
            number: None if value != value else value
            for number, value in zip(workload.job.tolist(), column.tolist(), strict=True)
        }
        for name, column in columns.items()
    }


def _agreed(job: Mapping[str, Any]) -> float | None:
    """Deadline of a job, s; None where it has none."""
    response = job["agreed_response"]
    return None if response is None else job["submit"] + response


def _record(workload: Workload, end: IntArray, cores: int) -> Record:
    """Return a record of jobs with the given ends (without waits if no end is given) and their requested deadlines."""
    n = len(workload)
    nothing, no_rows = np.zeros(n, dtype=np.int64), np.zeros(0, dtype=np.int64)
    end = np.where(end < NEVER, end, workload.submit + workload.runtime)
    granted = Promises(workload.deadline, nothing + NEVER, nothing, nothing > 0, no_rows, no_rows, no_rows)
    status = np.full(n, Status.completed, dtype=np.int8)
    return Record(workload, end - workload.runtime, end, status, nothing.astype(np.int16), cores, promises=granted)


def _job(job: Mapping[str, Any], found: Mapping[str, Mapping[int, Any]]) -> Run:
    comparison = Comparison()
    number = job["id"]
    for name, value in job.items():
        if name == "id":
            continue
        if name not in found:
            comparison.cannot(name)
        elif number not in found[name]:
            comparison.equal(f"job {number}", "not in the jobs", "there")
        else:
            _compare(comparison, name, f"job {number}: {name}", found[name][number], value)
    return comparison.verdict(f"job {number}")


def _totals(totals: Mapping[str, Any], found: Mapping[str, Mapping[int, Any]]) -> Run:
    comparison = Comparison()
    for name, value in totals.items():
        if name in ("qos_charge", "resource_charge"):
            _compare(comparison, name, name, sum(found[name].values()), value)
        else:
            comparison.cannot(name)
    return comparison.verdict("totals")


def _bounds(expected: Mapping[str, Any]) -> Run:
    comparison = Comparison()
    for machine, bounds in expected.items():
        comparison.equal(f"bounds of {machine} cores", core_class_bounds(int(machine)), bounds)
    return comparison.verdict("core_class_bounds")


def _compare(comparison: Comparison, name: str, where: str, found: Any, expected: Any) -> None:
    if name in _EXACT:
        comparison.equal(where, found, expected)
    else:
        comparison.near(where, found, expected, TOLERANCE * max(1.0, abs(expected or 0.0)))
