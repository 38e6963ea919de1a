"""Explanation of the wait of one job from a schedule: running jobs, jobs ahead, and jobs that passed it.

All data are read from the schedule, of any origin; the decisions of the policy are not interpreted. For the text see
`gridsim.report.explain_text`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.dates import Calendar
from gridsim.model.time import FloatArray, IntArray
from gridsim.number_formatting import when
from gridsim.questions.schedules import JobSchedule
from gridsim.record import Refusal

SHOWN = 5
"""Number of other jobs that are listed individually."""

LACKING = ("Resources", "ReqNodeNotAvail", "Reservation")
"""Reasons for a lack of nodes; other reasons mean that the job was held back."""


class Other(NamedTuple):
    """Another job: cores, start and end, and share of all held core-seconds while the job waited."""

    job: int
    id: str
    user: str
    cores: int
    start: float
    end: float
    share: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Facts on the wait of one job from a schedule.

    Attributes
    ----------
    job, cores : int
        Number and requested cores of the job.
    id : str
        Id known to the user: ``41206_5`` for a task of an array; the number if the log has no other id.
    user, account, partition, status : str
        Labels of the job (empty if unknown), and its final status.
    submit, start, end, estimate : float
        Times, s; NaN if it did not run.
    submitted, started : str
        Dates of submission and start, in the zone of the log; empty without dates.
    machine, eligible, free : int
        Cores of the machine; cores eligible for the job, by cluster, partition and request; and free eligible cores at
        its submission.
    scope : str
        Scope of *eligible*: ``machine``; ``pooled`` if the policy pools all partitions of the log; ``nodes`` if
        the eligible nodes are known; else a cluster's name.
    short_of : str
        Missing resource when it began to wait (`gridsim.metrics.stranding.short_of`), on machines of nodes and pools;
        *short* and *enough* are then undefined. Empty otherwise.
    short, enough : float
        Seconds of the wait with too few and with enough free cores. Under a policy that reports reasons, seconds with
        reasons for a lack of nodes, and all others.
    reasons : tuple of (str, float)
        Reasons of the scheduler and their duration, s, longest first; empty if it reports none.
    refused : Refusal or None
        The rule that rejected the job.
    ahead : int
        Number of earlier jobs that were waiting at its submission; ``ahead_work`` is their cores times held time.
    passed : int
        Number of jobs that were submitted later and started before it; ``passed_work`` as above.
    ahead_work, passed_work : float
        Core-seconds.
    holders, passing, freeing : tuple of Other
        Largest jobs running while it waited; largest jobs that passed it; jobs that ended when it started.
    first : tuple of Other
        Jobs that were first in order of arrival while enough cores were free, longest first; ``share`` is the share of
        that time.
    passers : tuple of (str, int)
        Users whose jobs passed it, and the number of these jobs, most first; empty if the log has no users.
    exceeded : tuple of (Other, float)
        Jobs that exceeded their predicted run time while it waited, and the excess, s, sorted by core-seconds.
    pieces : int
        Number of pieces in which it ran; data on other jobs refer to the time before the start of the last piece.
    earlier : float
        Run time of the pieces before the last one, s, which is not part of the wait.
    cut, lost : int, float
        Number and total time (s) of its runs that were stopped, which is not part of the wait.
    stopped_by : tuple of (str, int)
        Causes of their stops (`gridsim.questions.schedules.STOPPED`), and the number of runs of each.
    first_wait : float
        Seconds from the submission to its first start; for a chain of pieces equal to `wait`; NaN if it did not run.
    logged_wait : float or None
        First wait in the log; NaN if it did not start there; None if the log has no starts.
    logged_reason : str
        Reason in the log (``Licenses``); empty if there is none.
    policy : str
        Label of the policy; empty if unknown.
    policies : mapping of str to (float, float)
        Start and wait of the job under each policy of the result, s; NaN if it did not run.
    """

    job: int
    id: str
    user: str
    account: str
    partition: str
    cores: int
    status: str
    submit: float
    start: float
    end: float
    estimate: float
    submitted: str
    started: str
    machine: int
    eligible: int
    free: int
    scope: str
    reasons: tuple[tuple[str, float], ...]
    refused: Refusal | None
    short_of: str
    short: float
    enough: float
    ahead: int
    ahead_work: float
    passed: int
    passed_work: float
    holders: tuple[Other, ...]
    passing: tuple[Other, ...]
    freeing: tuple[Other, ...]
    first: tuple[Other, ...]
    passers: tuple[tuple[str, int], ...]
    exceeded: tuple[tuple[Other, float], ...] = ()
    pieces: int = 1
    earlier: float = 0.0
    cut: int = 0
    lost: float = 0.0
    stopped_by: tuple[tuple[str, int], ...] = ()
    first_wait: float = math.nan
    logged_wait: float | None = None
    logged_reason: str = ""
    policy: str = ""
    policies: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __repr__(self) -> str:
        waited = "did not run" if math.isnan(self.start) else f"waited {self.wait:,.15g} s"
        return f"<Explanation: job {self.id} of {self.cores:,} cores {waited}>"

    @property
    def wait(self) -> float:
        """Wait, s."""
        return self.start - self.submit - self.earlier - self.lost

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation with JSON types."""
        told = asdict(self) | {"wait": self.wait}
        told |= {name: [list(one) for one in told[name]] for name in ("passers", "reasons", "stopped_by")}
        exceeded = told.pop("exceeded")
        if exceeded:  # omitted if nothing was predicted
            told["exceeded"] = [one._asdict() | {"beyond": beyond} for one, beyond in self.exceeded]
        told["refused"] = None if self.refused is None else self.refused._asdict()
        told |= {
            name: [one._asdict() for one in getattr(self, name)] for name in ("holders", "passing", "freeing", "first")
        }
        policy, policies = told.pop("policy"), told.pop("policies")
        if not policy:
            return told
        under = {label: {"start": start, "wait": wait} for label, (start, wait) in policies.items()}
        return {"policy": policy, **told, "policies": under}


def explain(schedule: JobSchedule, job: int | str) -> Explanation:
    """Return the facts on the wait of a job from a schedule.

    Parameters
    ----------
    job : int or str
        Number or id of the job: ``41206_5``, ``41479+1``; a step such as ``.batch`` refers to its job.

    Raises
    ------
    InputError
        If no job, or several jobs match.

    Examples
    --------
    Job 3 requests all 4 cores while job 1 holds 2; job 4 is submitted later and starts immediately.

    >>> columns = {"submit": [0, 1, 2, 3], "start": [0, 0, 10, 3], "end": [10, 0, 20, 9], "estimate": [10, 1, 10, 6]}
    >>> times = [np.array(columns[name], dtype=float) for name in ("submit", "start", "end", "estimate")]
    >>> names = np.array(["", "", "", ""])
    >>> found = explain(JobSchedule(np.array([1, 2, 3, 4]), np.array([2, 1, 4, 2]), *times, names, names, 4), 3)
    >>> found.wait, found.free, found.short, found.passed, [one.job for one in found.holders]
    (8.0, 2, 8.0, 1, [1, 4])
    """
    row = schedule.row(job)
    machine, schedule = schedule.machine, _within(schedule, row)
    submit, start = float(schedule.submit[row]), float(schedule.start[row])
    until = start if not math.isnan(start) else submit
    runs = schedule.cut_runs(row)
    gaps, found = _capacity(schedule, row, submit, until, runs)
    return Explanation(
        **_job(schedule, row),
        submit=submit,
        start=start,
        end=float(schedule.end[row]),
        estimate=float(schedule.estimate[row]),
        submitted=_date(submit, schedule.calendar),
        started=_date(start, schedule.calendar),
        machine=machine,
        **found,
        **_others_meanwhile(schedule, row, submit, until, gaps),
        pieces=1 if schedule.pieces is None else int(schedule.pieces[row]),
        earlier=0.0 if schedule.earlier is None else float(schedule.earlier[row]),
        cut=len(runs),
        lost=float(np.diff(runs).sum()),
        stopped_by=schedule.stopped_by(row),
        first_wait=float(runs[0, 0]) - submit if len(runs) else float(schedule.wait[row]),
        logged_wait=None if schedule.logged_start is None else float(schedule.logged_start[row]) - submit,
        logged_reason="" if schedule.logged_reason is None else str(schedule.logged_reason[row]),
    )


def _capacity(
    schedule: JobSchedule, row: int, submit: float, until: float, runs: FloatArray
) -> tuple[FloatArray, dict[str, Any]]:
    """Return the intervals (k, 2) of the wait with enough free cores for the job, and the scope of eligible cores.

    Parameters
    ----------
    runs : (k, 2) float64
        Earlier runs of the job itself.
    """
    gaps, free = _intervals_with_capacity(schedule, row, submit, until)
    for begin, end in runs.tolist():
        before, after = np.minimum(gaps, begin), np.maximum(gaps, end)
        gaps = np.concatenate([before[before[:, 1] > before[:, 0]], after[after[:, 1] > after[:, 0]]])
    parts, eligible = schedule.parts, schedule.machine
    enough = float(np.diff(gaps, axis=1).sum())
    short = until - submit - enough - float(np.diff(runs).sum())
    reasons: tuple[tuple[str, float], ...] = ()
    if parts is not None and parts.eligible is not None and parts.free is not None:
        reasons, eligible, free = parts.reasons(row), int(parts.eligible[row]), int(parts.free[row])
        short = sum(held for word, held in reasons if word in LACKING)
        enough, gaps = sum(held for word, held in reasons if word not in LACKING), gaps[:0]
    short_of = "" if schedule.short_of is None else str(schedule.short_of[row])
    if schedule.short_of is not None:  # other resources than cores also matter
        short, enough, gaps = 0.0, 0.0, gaps[:0]
    return gaps, {
        "eligible": eligible,
        "free": free,
        "scope": _scope(schedule, row),
        "reasons": reasons,
        "refused": None if parts is None else parts.refused.get(row),
        "short_of": short_of,
        "short": short,
        "enough": enough,
    }


def _others_meanwhile(schedule: JobSchedule, row: int, submit: float, until: float, gaps: FloatArray) -> dict[str, Any]:
    """Return the jobs ahead of it, those that passed it, those that ran while it waited, and those that were first."""
    order = np.arange(len(schedule.job))
    before = (schedule.submit < submit) | ((schedule.submit == submit) & (order < row))
    began, ended = schedule.start, schedule.end
    work = schedule.cores * (ended - began)
    ahead = before & (began > submit)
    passed = ~before & (order != row) & (began < until)
    inside = np.minimum(ended, until) - np.maximum(began, submit)
    held = schedule.cores * np.where(inside > 0, inside, 0.0)
    total = float(np.nansum(held))
    freeing = np.where(before | passed, schedule.cores, 0) * (ended == until) if until > submit else np.zeros(len(held))
    came = np.flatnonzero(ahead)
    came = came[np.argsort(schedule.submit[came], kind="stable")]  # rows are in this order unless users reacted
    first = _first(schedule, came, gaps)
    return {
        "ahead": int(ahead.sum()),
        "ahead_work": float(np.nansum(work[ahead])),
        "passed": int(passed.sum()),
        "passed_work": float(np.nansum(work[passed])),
        "holders": _others(schedule, np.where(order == row, 0.0, held), held, total),
        "passing": _others(schedule, np.where(passed, held, 0.0), held, total),
        "freeing": _others(schedule, freeing, held, total),
        "first": _others(schedule, first, first, float(np.diff(gaps, axis=1).sum())),
        "passers": _passers(schedule, passed),
        "exceeded": _overruns(schedule, submit, until, held, total),
    }


def _overruns(
    schedule: JobSchedule, submit: float, until: float, held: npt.NDArray[Any], total: float
) -> tuple[tuple[Other, float], ...]:
    """Return the jobs that exceeded their predictions between two instants, and the excess."""
    if schedule.prediction is None:
        return ()
    expected = schedule.start + schedule.prediction
    beyond = np.minimum(schedule.end, until) - np.maximum(expected, submit)
    beyond = np.where(beyond > 0, beyond, 0.0)
    seconds_of = dict(zip(schedule.job.tolist(), beyond.tolist(), strict=True))
    found = _others(schedule, schedule.cores * beyond, held, total)
    return tuple((one, seconds_of[one.job]) for one in found)


def _job(schedule: JobSchedule, row: int) -> dict[str, Any]:
    """Return the properties of a job."""
    return {
        "job": int(schedule.job[row]),
        "id": schedule.ids.shown(row),
        "user": _name(schedule.user[row]),
        "account": "" if schedule.account is None else _name(schedule.account[row]),
        "partition": "" if schedule.partition is None else _name(schedule.partition[row]),
        "cores": int(schedule.cores[row]),
        "status": str(schedule.status[row]),
    }


def _date(instant: float, calendar: Calendar | None) -> str:
    """Return a date, rounded down to the second."""
    return "" if calendar is None or math.isnan(instant) else when(math.floor(instant), calendar)


def _within(schedule: JobSchedule, row: int) -> JobSchedule:
    """Return the schedule restricted to the cluster or nodes where the job could have run."""
    parts = schedule.parts
    if parts is None or (pool := int(parts.pool[row])) < 0 or (parts.pool == pool).all():
        return schedule
    start, end = (np.where(parts.pool == pool, column, np.nan) for column in (schedule.start, schedule.end))
    machine = parts.clusters[pool][1] if parts.clusters else schedule.machine
    return schedule._replace(start=start, end=end, machine=machine)


def _scope(schedule: JobSchedule, row: int) -> str:
    parts = schedule.parts
    if parts is None:
        return "pooled" if schedule.pooled else "machine"
    if not parts.clusters:
        return "nodes"
    return parts.clusters[int(parts.pool[row])][0] if parts.pool[row] >= 0 else "machine"


def _passers(schedule: JobSchedule, passed: npt.NDArray[np.bool_]) -> tuple[tuple[str, int], ...]:
    """Return users by number of jobs that passed, most first; for equal numbers the first to pass."""
    users = Counter(name for name in map(_name, schedule.user[passed]) if name)
    return tuple(users.most_common())


def _others(schedule: JobSchedule, weight: npt.NDArray[Any], held: npt.NDArray[Any], total: float) -> tuple[Other, ...]:
    """Return the jobs of largest weight, without those of weight 0."""
    weight = np.nan_to_num(weight)
    rows = np.argsort(-weight, kind="stable")[:SHOWN]
    return tuple(
        Other(
            int(schedule.job[row]),
            schedule.ids.shown(row),
            _name(schedule.user[row]),
            int(schedule.cores[row]),
            float(schedule.start[row]),
            float(schedule.end[row]),
            float(held[row]) / total if total else 0.0,
        )
        for row in rows.tolist()
        if weight[row] > 0
    )


def _name(user: Any) -> str:
    return "" if str(user) in ("", "-1", "nan") else str(user)


def _intervals_with_capacity(schedule: JobSchedule, row: int, submit: float, until: float) -> tuple[FloatArray, int]:
    """Return the intervals (k, 2) of the wait with enough free cores, and the free cores at its begin."""
    ran = (schedule.end > submit) & (schedule.start <= until) & (schedule.end > schedule.start)
    ran[row] = False
    start, end, cores = schedule.start[ran], schedule.end[ran], schedule.cores[ran]
    instants = np.concatenate([np.maximum(start, submit), end])
    change = np.concatenate([cores, -cores])
    order = np.argsort(instants, kind="stable")
    marks = np.minimum(np.concatenate([[submit], instants[order], [until]]), until)
    free = schedule.machine - np.concatenate([[0], np.cumsum(change[order])])
    stretches = np.stack([marks[:-1], marks[1:]], axis=1)[free >= schedule.cores[row]]
    return stretches[stretches[:, 1] > stretches[:, 0]], schedule.machine - int(cores[start <= submit].sum())


def _first(schedule: JobSchedule, ahead: IntArray, gaps: FloatArray) -> FloatArray:
    """Return how long each job was first in order of arrival while enough cores were free for the next one."""
    seconds = np.zeros(len(schedule.job))
    at = -math.inf
    for row in ahead.tolist():  # the first to arrive stays first until it starts
        until = float(schedule.start[row])
        if until > at:
            inside = np.minimum(gaps[:, 1], until) - np.maximum(gaps[:, 0], at)
            seconds[row] = inside[inside > 0].sum()
            at = until
    return seconds


def waits(schedules: Mapping[str, JobSchedule], job: int | str) -> dict[str, tuple[float, float]]:
    """Return start and wait of a job under each policy, s; NaN if it did not run."""
    rows = {label: schedule.row(job) for label, schedule in schedules.items()}
    return {
        label: (float(schedule.start[rows[label]]), float(schedule.wait[rows[label]]))
        for label, schedule in schedules.items()
    }
