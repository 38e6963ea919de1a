"""Metrics of `gridsim.metrics.dag` in integers and fractions, without rounding: a simple, slow reference.

Standard deviations are floats. The module is for worked examples and for tests of the fast version. A sum of a
thousand fractions with different denominators takes seconds.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from fractions import Fraction

from gridsim.errors import InputError
from gridsim.metrics.schedule import Origin, Schedule
from gridsim.model.time import IntArray

Exact = int | Fraction | float
"""Integer or fraction; a float for a standard deviation, NaN for undefined values."""

NAN = float("nan")


def exact_jobs(schedule: Schedule, origin: Origin = "first-arrival") -> list[dict[str, Exact]]:
    """Return all metrics of each job, in job order.

    Examples
    --------
    >>> one = Schedule.from_tasks(
    ...     arrival=[0], critical_path=[4], task_job=[0, 0], task_start=[1, 3], task_finish=[3, 6], cores=4
    ... )
    >>> exact_jobs(one)[0]["slr"]
    Fraction(3, 2)
    """
    return [
        _job(*row)
        for row in zip(*(column.tolist() for column in _job_columns(schedule.from_origin(origin))), strict=True)
    ]


def exact_metrics(schedule: Schedule, *, base: int | None = None, origin: Origin = "first-arrival") -> dict[str, Exact]:
    """Return the metrics of `gridsim.metrics.dag.dag_metrics` without cuts, under the same names.

    Raises
    ------
    InputError
        If a job finishes after the base.
    """
    schedule = schedule.from_origin(origin)
    jobs = exact_jobs(schedule, "absolute")
    makespan = max((int(job["finish"]) for job in jobs), default=0)
    base = makespan if base is None else base
    if makespan > base:
        raise InputError(f"a job finishes at {makespan}, after the base {base}", field="base")
    arrivals = [int(job["arrival"]) for job in jobs]
    return {
        "makespan": makespan,
        "flow": Fraction(len(jobs), makespan) if makespan else NAN,
        "utilisation": _utilisation(schedule, 0, makespan),
        "utilisation_arrivals": _utilisation(schedule, min(arrivals, default=0), max(arrivals, default=0)),
        "peak_in_flight": _peak(jobs, 0, makespan),
        "cumulative_completion": _completion(jobs, base),
        "cumulative_completion_base": base,
        **_about_jobs(jobs),
        "jobs": len(jobs),
        "jobs_cut": 0,
        "unfinished": 0,
    }


def _job_columns(schedule: Schedule) -> Sequence[IntArray]:
    return schedule.arrival, schedule.start, schedule.finish, schedule.work, schedule.critical_path


def _job(arrival: int, start: int, finish: int, work: int, critical_path: int) -> dict[str, Exact]:
    response = finish - arrival
    return {
        "arrival": arrival,
        "start": start,
        "finish": finish,
        "exec": work,
        "critical_path": critical_path,
        "wait": start - arrival,
        "response": response,
        "response_from_start": finish - start,
        "stretch": Fraction(response, work),
        "speedup": Fraction(work, response),
        "slr": Fraction(response, critical_path),
        "slr_from_start": Fraction(finish - start, critical_path),
    }


_WORST: dict[str, Callable[[list[Fraction]], Fraction]] = {
    "wait": max,
    "response": max,
    "response_from_start": max,
    "stretch": max,
    "speedup": min,
    "slr": max,
    "slr_from_start": max,
}


def _about_jobs(jobs: list[dict[str, Exact]]) -> dict[str, Exact]:
    numbers: dict[str, Exact] = {}
    for name, worst in _WORST.items():
        values = [Fraction(job[name]) for job in jobs]
        numbers[f"mean_{name}"] = _mean(values)
        numbers[f"worst_{name}"] = worst(values) if values else NAN
        numbers[f"sd_{name}"] = statistics.stdev(values) if len(values) > 1 else NAN
    return numbers | _spread([Fraction(job["slr"]) for job in jobs])


def _spread(values: list[Fraction]) -> dict[str, Exact]:
    n, ranked = len(values), sorted(values)
    if not n:
        return dict.fromkeys(("gini_slr", "jain_slr", "p99_slr", "max_over_median_slr"), NAN)
    differences = sum((2 * rank - n + 1) * value for rank, value in enumerate(ranked))
    place, share = divmod(Fraction(99 * (n - 1), 100), 1)
    after = ranked[min(place + 1, n - 1)]
    return {
        "gini_slr": differences / (n * sum(values)),
        "jain_slr": Fraction(sum(values)) ** 2 / (n * sum(value**2 for value in values)),
        "p99_slr": ranked[place] + share * (after - ranked[place]),
        "max_over_median_slr": ranked[-1] / statistics.median(ranked),
    }


def _mean(values: list[Fraction]) -> Exact:
    return Fraction(sum(values), len(values)) if values else NAN


def _completion(jobs: list[dict[str, Exact]], base: int) -> int:
    return sum((1 + base - int(job["finish"])) * int(job["exec"]) for job in jobs)


def _utilisation(schedule: Schedule, start: int, end: int) -> Exact:
    if end <= start:
        return NAN
    columns = (schedule.task_start, schedule.task_finish, schedule.task_cores)
    held = sum(
        cores * max(0, min(finish, end) - max(begin, start))
        for begin, finish, cores in zip(*(column.tolist() for column in columns), strict=True)
    )
    return Fraction(held, (end - start) * schedule.cores)


def _peak(jobs: list[dict[str, Exact]], start: int, end: int) -> int:
    """Return the largest number in flight, from that at *start* and at each job's start in the interval."""
    instants = {start} | {int(job["start"]) for job in jobs if start <= job["start"] < end}
    return max(sum(job["start"] <= instant < job["finish"] for job in jobs) for instant in instants) if jobs else 0
