"""Conformance cases of kind ``metrics``: exact metrics of a given schedule of DAG jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from gridsim.errors import InputError
from gridsim.metrics.schedule import Schedule
from gridsim.record import Record
from gridsim.testing.exact_metrics import Exact, exact_jobs, exact_metrics

PROSE = ("id", "kind", "title", "note", "printed_in_paper")
"""Keys of a case that are not compared."""

TOLERANCE = 1e-12
"""Relative tolerance of standard deviations; all other values are exact."""


def check_metrics_case(case: Mapping[str, Any]) -> list[str]:
    """Return mismatches between a case and gridsim, one sentence each; empty if it passes.

    Raises
    ------
    InputError
        For an invalid case: a part is missing, or refers to an unknown job or task.
    """
    known = (*PROSE, "cores", "jobs", "schedule", "expected")
    messages = [f"unknown part '{key}': it has no counterpart" for key in case if key not in known]
    schedule = schedule_of_case(case)
    expected = case["expected"]
    names = [job["id"] for job in _in_job_order(case)]
    return messages + list(_compared(schedule, names, expected))


def compare_metrics(record: Record, names: Sequence[str], expected: Mapping[str, Any]) -> list[str]:
    """Return mismatches between the metrics of a record and the expected ``jobs`` and ``workload`` of a case.

    Parameters
    ----------
    names : sequence of str
        Names of the jobs, in job order.
    """
    return list(_compared(Schedule.from_record(record), names, expected))


def _compared(schedule: Schedule, names: Sequence[str], expected: Mapping[str, Any]) -> Iterator[str]:
    of_jobs = dict(zip(names, exact_jobs(schedule, "absolute"), strict=True))
    base = expected.get("workload", {}).get("cumulative_completion_base")
    parts: dict[str, Mapping[str, Mapping[str, Exact]]] = {
        "jobs": of_jobs,
        "workload": {"": exact_metrics(schedule, base=base)},
    }
    for part, wanted in expected.items():
        if part not in parts:
            yield f"unknown part 'expected.{part}': it has no counterpart"
            continue
        yield from _differences(part, parts[part], wanted if part == "jobs" else {"": wanted})


def schedule_of_case(case: Mapping[str, Any]) -> Schedule:
    """Return the schedule of a case; critical paths are longest chains, since there are no delays.

    Raises
    ------
    InputError
        If a part is missing, a task has no start, or an edge names an unknown task.
    """
    starts = case["schedule"]
    columns: dict[str, list[int]] = {name: [] for name in ("task_job", "task_start", "task_finish", "task_cores")}
    jobs = _in_job_order(case)
    for row, job in enumerate(jobs):
        for task in job["tasks"]:
            name = f"{job['id']}/{task['id']}"
            if name not in starts:
                raise InputError("is missing", field=f"schedule.{name}")
            start = starts[name]["start"]
            columns["task_job"].append(row)
            columns["task_start"].append(start)
            columns["task_finish"].append(start + task["exec"])
            columns["task_cores"].append(task["cores"])
    return Schedule.from_tasks(
        arrival=[job["arrival"] for job in jobs],
        critical_path=[_longest_chain(job) for job in jobs],
        cores=case["cores"],
        **columns,
    )


def _in_job_order(case: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return sorted(case["jobs"], key=lambda job: int(job["arrival"]))


def _longest_chain(job: Mapping[str, Any]) -> int:
    times = {task["id"]: int(task["exec"]) for task in job["tasks"]}
    after: dict[str, list[str]] = {name: [] for name in times}
    for one, other in job.get("edges", ()):
        if one not in times or other not in times:
            raise InputError(f"an edge from {one} to {other} connects two jobs", field=f"jobs {job['id']}.edges")
        after[one].append(other)
    if len({task.get("kind") for task in job["tasks"]}) > 1:
        raise InputError("contains tasks of several kinds; cases of this kind have no delays for them", field="jobs")
    return max(_chain(name, times, after, {}, len(times)) for name in times)


def _chain(
    name: str, times: Mapping[str, int], after: Mapping[str, Sequence[str]], known: dict[str, int], depth: int
) -> int:
    """Return the longest chain from a task.

    *depth* is the number of further tasks that a chain without a cycle can have.
    """
    if not depth:
        raise InputError(f"task {name} is in a cycle; expected an acyclic graph", field="jobs.edges")
    if name not in known:
        chains = [_chain(other, times, after, known, depth - 1) for other in after[name]]
        known[name] = times[name] + max(chains, default=0)
    return known[name]


def _differences(part: str, found: Mapping[str, Mapping[str, Exact]], expected: Mapping[str, Any]) -> Iterator[str]:
    for name, fields in expected.items():
        place = f"{part} {name}".rstrip()
        if name not in found:
            yield f"{place}: expected, but missing"
            continue
        for field, value in fields.items():
            if field not in found[name]:
                yield f"{place} {field}: it has no counterpart"
            elif not _agrees(found[name][field], value):
                yield f"{place} {field}: expected {value}, got {found[name][field]}"


def _agrees(found: Exact, expected: Any) -> bool:
    if isinstance(found, float):
        if expected is None or math.isnan(float(expected)):
            return math.isnan(found)
        return math.isclose(found, float(expected), rel_tol=TOLERANCE)
    try:
        return found == Fraction(expected)
    except (TypeError, ValueError):
        return False
