"""Simulate the jobs of a case: workload from job objects, and the plan after each instant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gridsim.errors import InputError
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import Workload
from gridsim.record import Record, Status
from gridsim.testing.conformance.outcome import Comparison, Unsupported
from gridsim.testing.policies import Wrapper

PROSE = ("schema", "kind", "name", "title", "why", "spec_sections")
"""Fields that describe a case."""


def known_only(of: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    """Raise `Unsupported` for an unused field, which may contain an expectation or change the run."""
    for name in of:
        if name not in known:
            raise Unsupported(f"{what} '{name}'")


def expected_of(
    comparison: Comparison, rows: Mapping[int, Mapping[str, Any]], jobs: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, str, Any, Mapping[str, Any]]]:
    """Each field that a case expects of jobs: where it is, its word and value, and the row of the job.

    Jobs without a row are differences.
    """
    for job in jobs:
        number = job["id"]
        if number in rows:
            yield from ((f"job {number}: {word}", word, value, rows[number]) for word, value in job.items())
        else:
            comparison.equal(f"job {number}", "not in the jobs", "there")


def rigid_workload(jobs: Sequence[Mapping[str, Any]], *, cores: str, machine: int, least: float = 0) -> Workload:
    """Workload of job objects; equal submits in order of their ids.

    Parameters
    ----------
    cores : str
        The family's word for cores.
    machine : int
        Cores of the machine: wider jobs are input errors.
    least : float
        Runtimes and estimates below this many seconds count as this many.
    """
    for index, job in enumerate(jobs):
        if job[cores] > machine:
            message = f"job {job['id']} is wider than the machine ({machine})"
            raise InputError(message, field=f"jobs[{index}].{cores}")
    ordered = sorted(jobs, key=lambda job: (job["submit"], job["id"]))
    deadlines = [float("inf") if job.get("deadline") is None else job["deadline"] for job in ordered]
    return Workload.from_columns(
        job=[job["id"] for job in ordered],
        submit=[job["submit"] for job in ordered],
        runtime=[max(job["runtime"], least) for job in ordered],
        estimate=[max(job["estimate"], least) for job in ordered],
        cores=[job[cores] for job in ordered],
        deadline=deadlines,
        tolerance=[max(1.0, job.get("tolerance", 1.0)) for job in ordered],  # below 1 behaves like 1
        restartable=[job.get("restartable", True) for job in ordered],
    )


class _Watched(Wrapper):
    """A scheduler that writes its plan down after each decision."""

    _plans: dict[int, dict[int, int]]

    def _write_down(self, now: int) -> None:
        if hasattr(self._scheduler, "plan"):
            self._plans[now] = self._scheduler.plan.starts()

    def quote(self, request: int, now: int) -> Any:
        quote = self._scheduler.quote(request, now)
        self._write_down(now)  # nothing need follow where the request is refused
        return quote

    def dispatch(self, now: int) -> Any:
        started = self._scheduler.dispatch(now)
        self._write_down(now)
        return started


def run(workload: Workload, cores: int, policy: Any, **options: Any) -> tuple[Record, dict[int, dict[int, int]]]:
    """Record of a policy, and the planned start of each waiting job after each instant (none for plan-less policies).

    All whole microseconds; jobs by number.
    """
    from gridsim.policy.presets import policy as make_policy  # compiled kernels: only when something runs
    from gridsim.simulation import simulate

    plans: dict[int, dict[int, int]] = {}
    watched = _Watched(make_policy(policy), _plans=plans)
    record = simulate(workload, platform=Platform.single(cores), policy=watched, **options).record
    numbers = workload.job.tolist()
    by_number = {now: {numbers[row]: start for row, start in plan.items()} for now, plan in plans.items()}
    return record, by_number


def rows_of(record: Record) -> dict[int, dict[str, Any]]:
    """Outcome of each job by its number, in gridsim's words: start and end in seconds (None: did not run), status."""

    def second(instant: int) -> int | float | None:
        if instant >= NEVER:
            return None
        return instant // MICROSECOND if instant % MICROSECOND == 0 else instant / MICROSECOND

    n = len(record)
    promises = record.promises
    columns: dict[str, list[Any]] = {
        "job": record.workload.job.tolist(),
        "start": [second(instant) for instant in record.start_us.tolist()],
        "end": [second(instant) for instant in record.end_us.tolist()],
        "status": [Status(status).name for status in record.status.tolist()],
        "cores": record.given.tolist(),
        "granted": [None] * n if promises is None else [second(instant) for instant in promises.granted_us.tolist()],
        "offer": [None] * n if promises is None else [second(instant) for instant in promises.offer_us.tolist()],
        "kills": record.kills.tolist(),
        "lost_core_seconds": record.lost.tolist(),
        "artificial_doublings": [0] * n if promises is None else promises.doublings.tolist(),
        "guarantee_broken": [False] * n if promises is None else promises.broken.tolist(),
    }
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return {row["job"]: row for row in rows}
