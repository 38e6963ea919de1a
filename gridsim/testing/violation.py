"""Kinds of violations of a schedule, and the class of a violation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.time import IntArray, seconds

KINDS: Mapping[str, str] = {
    "unknown-job": "the schedule has a job that the workload does not",
    "duplicate-job": "a job is in the schedule more than once",
    "missing-job": "a job of the workload is missing in the schedule",
    "no-outcome": "a job has neither a known status nor a start and an end: submitted is not the sum of the outcomes",
    "negative-time": "a start or an end is before 0 s",
    "ends-before-start": "a job ends before it starts",
    "starts-before-submit": "a job starts before it was submitted",
    "wrong-submit": "the submit time is not the workload's",
    "wrong-wait": "the stated wait is not start minus submit",
    "wrong-end": "a job does not use its cores for its run time (or until its limit, if jobs are killed there)",
    "wrong-cores": "a job has a number of cores other than the requested one",
    "too-wide": "a job wider than the machine was started",
    "oversubscribed": "more cores were in use than the machine has",
    "wrong-status": "the status contradicts what happened to the job",
    "rejected-fits": "a job was rejected although it fits the machine",
    "deadline-missed": "a job ended after the deadline that it was granted",
    "promised-yet-refused": "a job that did not run has a guaranteed deadline",
    "two-runs-at-once": "a run of a preempted or split job started before the previous run ended, ran too long, or is "
    "missing",
}
"""Kinds of violations with their meaning."""

TASK_KINDS: Mapping[str, str] = {
    "wrong-kind": "a task ran on a cluster of another kind than it needs",
    "starts-before-ready": "a task starts before the tasks that it depends on have ended and their data have arrived",
    "below-critical-path": "a job took less time than its critical path",
}
"""Kinds for records of DAG jobs only; the other kinds then apply to tasks."""

USER_KINDS: Mapping[str, str] = {"wrong-reaction": "a job was not submitted when its reacting user submits it"}
"""Kinds for records of users who react only."""

PIECE_KINDS: Mapping[str, str] = {
    "unknown-run": "a piece belongs to no run of a job in the schedule",
    "missing-pieces": "a job ran, but has no piece with its nodes",
    "wrong-pieces": "the pieces of a run do not add up to its cores, or differ from its time",
    "unknown-node": "a piece is on a node, or a GPU of it, that the machine does not have",
    "node-oversubscribed": "more of a resource of a node was in use than the node has",
    "on-absent-node": "a run was on a node while that node had failed",
    "outside-reservation": "a member of a reservation ran on other nodes or at another time",
    "reserved-node": "other jobs held reserved cores of a node",
    "gpu-oversubscribed": "more than 1000 thousandths of a GPU were in use",
}
"""Kinds for schedules with allocations (``allocations.csv``) only."""

DEMAND_KINDS: Mapping[str, str] = {
    "wrong-tasks": "tasks are missing, on too few or too many nodes, or too many on one node",
    "wrong-node": "tasks are on a node without a requested feature, partition or GPU type",
    "wrong-amounts": "a job has less of a node than its tasks request, or more although it is not exclusive",
    "wrong-gpus": "the thousandths of GPUs of a job on a node differ from the request of its tasks",
    "not-alone": "a node of an exclusive job was also used by another job",
    "pool-oversubscribed": "more of a pool was in use than exists",
    "cannot-be-held": "a job was started that the empty machine cannot hold",
}
"""Kinds for jobs that request more than cores, on machines with known nodes and pools, only."""

_MEANING = {**KINDS, **TASK_KINDS, **USER_KINDS, **PIECE_KINDS, **DEMAND_KINDS}


@dataclass(frozen=True, slots=True)
class Violation:
    """Violation of one kind: number, and first affected jobs.

    Attributes
    ----------
    kind : str
        A name of `KINDS`.
    count : int
        Number of affected jobs; for ``oversubscribed`` number of periods.
    jobs : tuple of int
        Numbers of the first affected jobs.
    instants : tuple of float
        Times of the first violations, s.
    detail : str
        Numbers of the first violation.
    """

    kind: str
    count: int
    jobs: tuple[int, ...] = ()
    instants: tuple[float, ...] = ()
    detail: str = ""

    def __str__(self) -> str:
        where = f" (jobs {', '.join(map(str, self.jobs))}{', …' if self.count > len(self.jobs) else ''})"
        when = f"; first at {self.instants[0]:.15g} s" if self.instants else ""
        return f"{self.kind}: {self.count:,}{where if self.jobs else ''}: {self.detail or _MEANING[self.kind]}{when}"

    def to_json(self) -> dict[str, Any]:
        """Return the violation with JSON types."""
        return {
            "kind": self.kind,
            "meaning": _MEANING[self.kind],
            "count": self.count,
            "jobs": list(self.jobs),
            "instants": list(self.instants),
            "detail": self.detail,
        }


def marked(
    kind: str,
    bad: npt.NDArray[np.bool_],
    job: IntArray,
    instants: IntArray | None,
    limit: int,
    detail: Callable[[int], str] | None = None,
) -> Iterator[Violation]:
    """Violation of the rows that *bad* marks, if there are any, with jobs and instants of the first *limit* of them."""
    if bad.any():
        first = np.flatnonzero(bad)[:limit]
        when = () if instants is None else tuple(seconds(int(instant)) for instant in instants[first])
        yield Violation(kind, int(bad.sum()), tuple(job[first].tolist()), when, detail(int(first[0])) if detail else "")
