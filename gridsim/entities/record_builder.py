"""Build the record from the outcome of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.entities.outcome import DONE, NEW, RUNNING, Outcome
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER, IntArray
from gridsim.model.windows import PlannedWindow
from gridsim.model.workload import PRIORITY, Workload
from gridsim.policy.capabilities import attribute_of, capabilities_of
from gridsim.policy.queue import Requests
from gridsim.record import (
    BROKEN_BY,
    SAVED,
    Interruptions,
    KeptWork,
    Predictions,
    Promises,
    Reasons,
    Record,
    Status,
    TaskRecord,
)


def build_record(
    workload: Workload,
    requests: Requests,
    outcome: Outcome,
    platform: Platform,
    schedulers: Sequence[Any],
    critical_path: IntArray | None,
    until: int | None = None,
    absences: tuple[tuple[str, ...], int, IntArray, tuple[PlannedWindow, ...]] | None = None,
) -> Record:
    """Build the record of a run: rows of jobs, and of tasks if jobs have several.

    Parameters
    ----------
    until : int, optional
        Time at which the run is paused, whole microseconds; only jobs submitted by then are in the record.
    absences : tuple, optional
        Names of nodes, number of GPUs, absences, and reservations (`gridsim.entities.failures.Breakdowns.absences`).
    """
    start, end, status = outcome.start, outcome.end, outcome.status
    used = None if workload.moldable is None else outcome.cores
    if until is not None:
        start, end, status, used = start.copy(), end.copy(), _status(outcome), None if used is None else used.copy()
    more: dict[str, Any] = {"until_us": until}
    if not _is_pool(platform, schedulers):
        more["allocations"] = outcome.placed.allocations()
    more["reason"] = _why_rejected(workload, outcome, platform)
    if workload.tasks is None:
        columns = (start, end, status, outcome.cluster)
        submit = requests.submit
        if outcome.submitted:
            submit = submit.copy()
            submit[list(outcome.submitted)] = list(outcome.submitted.values())
        if requests.spare or workload.reactions is not None:  # waits in the log are counted from other submit times
            if workload.reactions is not None:
                more["logged_submit_us"] = workload.submit
            workload = replace(workload, submit=submit, deadline=requests.deadline, logged={})
        more |= {"promises": _promises(outcome, schedulers), "cores_used": used}
        more["reasons"] = _reasons(schedulers) if until is None else None
        more["predictions"] = _predictions(outcome, schedulers)
        more["requested"] = schedulers[0].requested() if capabilities_of(schedulers[0]).site else None
    else:
        begins, submit = workload.tasks.first[:-1], workload.submit
        more["tasks"] = TaskRecord(requests.ready, start, end, status, outcome.cluster, used)
        more |= {"critical_path": critical_path, "rank": requests.rank}
        more["promises"] = _stopped_tasks(outcome, schedulers, len(workload))
        columns = (
            np.minimum.reduceat(start, begins),
            np.maximum.reduceat(end, begins),
            np.maximum.reduceat(status, begins),
            outcome.cluster[begins],
        )
    if outcome.interrupted is not None:
        job, began, ended, reason = np.array(outcome.interrupted, dtype=np.int64).reshape(-1, 4).T
        names, gpus, parts, reserved = absences or ((), 0, np.zeros((5, 0), dtype=np.int64), ())
        runs = (job, began, ended, reason.astype(np.int8), outcome.ended)
        kept = None
        if outcome.kept is not None:
            kept = KeptWork(*np.array(outcome.kept, dtype=np.int64).reshape(-1, 6).T)
        now = int(end[end < NEVER].max(initial=0)) if until is None else until
        spans = [(row, int(start[row]), since, now, by) for row, (since, by) in outcome.asleep.items()]
        spans = [*outcome.suspended, *spans]
        asleep = np.array(spans, dtype=np.int64).reshape(-1, 5).T if spans else None
        node, gpu, kind, down, up = parts
        moved = _moved(schedulers)
        made = Interruptions(*runs, names, gpus, node, gpu, kind, down, up, kept, asleep, moved, reserved)
        more["interruptions"] = made
    clusters = list(platform.clusters())
    nodes_of_policy = capabilities_of(schedulers[0]).nodes
    more["capacity"] = (nodes_of_policy or clusters[0].capacity) if len(clusters) == 1 else None
    found = Record(workload, *columns, platform.cores, **more)
    return found if until is None else _submitted_before(found, outcome, submit, until)


def _is_pool(platform: Platform, schedulers: Sequence[Any]) -> bool:
    """Return whether nodes of a run exist only for priority classes, for which a pool is one node."""
    return capabilities_of(schedulers[0]).nodes is None and not any(it.nodes for it in platform.clusters())


def _why_rejected(workload: Workload, outcome: Outcome, platform: Platform) -> npt.NDArray[np.str_] | None:
    """Return why the machine can never run each rejected job; None if the only reason is the number of cores."""
    if workload.demands is None and all(cluster.capacity is None for cluster in platform.clusters()):
        return None
    owner = np.arange(len(outcome.state)) if workload.tasks is None else workload.tasks.job_rows()
    found = [""] * len(workload)
    for request, reason in outcome.refused.items():
        found[owner[request]] = reason
    return np.array(found, dtype=np.str_)


def _status(outcome: Outcome) -> Any:
    """Return the status of each request; for unfinished requests the current state, where a task of a running job is
    running or pending.
    """
    state = np.frombuffer(bytes(outcome.state), dtype=np.uint8)
    return np.select([state == RUNNING, state != DONE], [Status.running, Status.waiting], outcome.status).astype(
        np.int8
    )


def _submitted_before(found: Record, outcome: Outcome, submit: IntArray, until: int) -> Record:
    """Return the jobs of a record that have been submitted."""
    status = found.status
    if found.tasks is not None:  # a job also counts as running between two of its tasks
        status = np.where((status == Status.waiting) & (found.start_us < NEVER), Status.running, status).astype(np.int8)
        return replace(found, status=status).select(submit < until)
    new = np.frombuffer(bytes(outcome.state), dtype=np.uint8) == NEW
    return found.select(~new)


def _promises(outcome: Outcome, schedulers: Sequence[Any]) -> Promises | None:
    """Return the guarantees and the stopped runs; None if the policy guarantees nothing and stopped no run."""
    can = [capabilities_of(scheduler) for scheduler in schedulers]
    guarantees, preempts = any(each.guarantees for each in can), any(each.preempts is not None for each in can)
    if not guarantees and not preempts and not outcome.cut and (outcome.cancelled_by >= NEVER).all():
        return None
    for scheduler, each in zip(schedulers, can, strict=True):
        if each.guarantees:
            outcome.broken |= scheduler.broken
    cut: IntArray = np.array(outcome.cut, dtype=np.int64).reshape(-1, 4)
    request, began, ended, by = cut.T
    found = Promises(outcome.granted, outcome.offer, outcome.doublings, outcome.broken, request, began, ended)
    rule = next((each.preempts for each in can if each.preempts), "")
    more: dict[str, Any] = {"guarantees": guarantees, "preempts_by": rule}
    if guarantees and outcome.interrupted is not None:
        more["broken_at_us"], more["broken_by"] = _broken(outcome, outcome.interrupted, schedulers)
    return replace(found, **more, killed_by=by, cancelled_by=outcome.cancelled_by)


def _stopped_tasks(outcome: Outcome, schedulers: Sequence[Any], jobs: int) -> Promises | None:
    """Return the runs of tasks that were stopped for a higher class; None without classes. Nothing is guaranteed."""
    found = _promises(outcome, schedulers)
    if found is None or found.preempts_by != PRIORITY:
        return None
    none, zero = np.full(jobs, NEVER, dtype=np.int64), np.zeros(jobs, dtype=np.int64)
    return replace(found, granted_us=none, offer_us=none, doublings=zero, broken=zero > 0, guarantees=False)


def _broken(outcome: Outcome, interrupted: Sequence[tuple[int, ...]], schedulers: Sequence[Any]) -> tuple[Any, Any]:
    """Return when each guarantee was broken, and by what; schedulers do not know of jobs that save their work."""
    at, by = np.full(len(outcome.granted), NEVER, dtype=np.int64), np.zeros(len(outcome.granted), dtype=np.int8)
    for its_at, its_by in _results_of(schedulers, "broken_promises"):
        own = its_at < NEVER
        at[own], by[own] = its_at[own], its_by[own]
    for request, _, ended, reason in interrupted:
        if reason == SAVED and at[request] == ended:
            by[request] = BROKEN_BY.index("own")
    return at, by


def _results_of(schedulers: Sequence[Any], method: str) -> Iterator[Any]:
    """Yield what a method of the schedulers that have it returns."""
    yield from (call() for it in schedulers if (call := attribute_of(it, method)) is not None)


def _moved(schedulers: Sequence[Any]) -> IntArray | None:
    """Return how often the planned start of each request became later, and by how much; None without plans."""
    found = list(_results_of(schedulers, "planned_start_moves"))
    return np.add.reduce(found) if found else None


def _predictions(outcome: Outcome, schedulers: Sequence[Any]) -> Predictions | None:
    """Return the predicted run times of each job on its cluster; None if no scheduler predicts."""
    if not capabilities_of(schedulers[0]).predicts:
        return None
    found = [scheduler.predictions() for scheduler in schedulers]
    rows = np.arange(len(outcome.cluster))

    def of_its_cluster(name: str) -> Any:
        columns = [getattr(it, name) for it in found]
        return None if columns[0] is None else np.stack(columns)[outcome.cluster, rows]

    columns = {it.name: of_its_cluster(it.name) for it in fields(Predictions) if it.name != "oracle"}
    return Predictions(**columns, oracle=capabilities_of(schedulers[0]).oracle)


def _reasons(schedulers: Sequence[Any]) -> Reasons | None:
    """Return the reasons why jobs waited, if the only scheduler of the machine reports them."""
    return schedulers[0].reasons() if len(schedulers) == 1 and capabilities_of(schedulers[0]).reasons else None
