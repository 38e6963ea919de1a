"""Why did this job wait? What a schedule shows of one job: who held the cores, who stood before it, who passed it.

Everything is read from the schedule, whoever made it: facts, and no guess at what a policy had in mind. The same in
words: `gridsim.report.explain_text`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.dates import Calendar
from gridsim.model.time import FloatArray, IntArray
from gridsim.questions.schedules import JobSchedule
from gridsim.record import Refusal
from gridsim.words import when

SHOWN = 5
"""Other jobs that are told one by one."""

LACKING = ("Resources", "ReqNodeNotAvail", "Reservation")
"""Reasons that say that nodes are lacking; others say that the job was kept from them."""


class Other(NamedTuple):
    """Another job: its cores, when it held them, and its share of all that was held while the job waited."""

    job: int
    id: str
    user: str
    cores: int
    start: float
    end: float
    share: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a schedule shows of the wait of one job.

    Attributes
    ----------
    job, cores : int
        Its number and what it asked for.
    id : str
        What its user calls it: ``41206_5`` for a task of an array; the number where the log says no more.
    user, account, partition, status : str
        Whose it is and where it was sent (empty where the log does not say); what became of it.
    submit, start, end, estimate : float
        Seconds; NaN where it did not run.
    submitted, started : str
        Dates of submit and start, in the zone of the log; empty where it has none.
    machine, reach, free : int
        Cores of the machine; of the part of it that the job could have, by its cluster or partition and by what it
        asked for; of these, free ones when it was submitted.
    room : str
        What the room is that of: ``machine``; ``pooled``, where the policy makes one pool of all partitions of the log;
        ``nodes``, where it knows which nodes the job could have; else a cluster's name.
    short_of : str
        On machines of nodes and pools what it lacked when it began to wait (`gridsim.metrics.stranding.short_of`); how
        long there was room for it is then not told. Empty elsewhere.
    short, enough : float
        Seconds of the wait with fewer free cores than it asked for, and with as many or more. Under a policy that tells
        reasons, those in which it said that nodes were lacking, and all others.
    reasons : tuple of (str, float)
        What the scheduler said of its wait, and for how many seconds, longest first; empty where it says nothing.
    refused : Refusal or None
        The rule by which it was turned away.
    ahead : int
        Jobs that had come before it and waited when it came; ``ahead_work`` is their cores times time held.
    passed : int
        Jobs that came later and started before it; ``passed_work`` as above.
    ahead_work, passed_work : float
        Core-seconds.
    holders, passing, freeing : tuple of Other
        Those that held most while it waited; those that passed it and held most; those that ended when it started.
    first : tuple of Other
        Who stood first in order of arrival while there was enough room, longest first; ``share`` is the part of that
        time.
    passers : tuple of (str, int)
        Users whose jobs passed it, and how many of them did, most first; empty where the log does not name them.
    outlived : tuple of (Other, float)
        Those that went on while it waited for longer than was predicted of them, and by how many seconds of that
        time, those first that held most by it.
    pieces : int
        In how many it ran, one behind the other; all that is told of other jobs is up to the start of the last.
    earlier : float
        Seconds that the pieces before the last one ran: no part of its wait.
    cut, lost : int, float
        Runs that were cut short to make room for others before the last one, and the seconds that they took: no part of
        its wait either.
    first_wait : float
        Seconds from the submission to its first start, of a chain of pieces `wait`; NaN where it did not run.
    logged_wait : float or None
        The same in the log: NaN where it did not start there; None where the log has no starts.
    logged_reason : str
        Why it waited, as the log has it (``Licenses``); empty where it has none.
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
    reach: int
    free: int
    room: str
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
    outlived: tuple[tuple[Other, float], ...] = ()
    pieces: int = 1
    earlier: float = 0.0
    cut: int = 0
    lost: float = 0.0
    first_wait: float = math.nan
    logged_wait: float | None = None
    logged_reason: str = ""

    def __repr__(self) -> str:
        waited = "did not run" if math.isnan(self.start) else f"waited {self.wait:,.15g} s"
        return f"<Explanation: job {self.id} of {self.cores:,} cores {waited}>"

    @property
    def wait(self) -> float:
        """Seconds."""
        return self.start - self.submit - self.earlier - self.lost

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        told = asdict(self) | {"wait": self.wait, "passers": [list(one) for one in self.passers]}
        told["reasons"] = [list(one) for one in self.reasons]
        outlived = told.pop("outlived")
        if outlived:  # nothing is said where nothing is predicted
            told["outlived"] = [one._asdict() | {"beyond": beyond} for one, beyond in self.outlived]
        told["refused"] = None if self.refused is None else self.refused._asdict()
        return told | {
            name: [one._asdict() for one in getattr(self, name)] for name in ("holders", "passing", "freeing", "first")
        }


def explain(schedule: JobSchedule, job: int | str) -> Explanation:
    """What a schedule shows of the wait of a job.

    Parameters
    ----------
    job : int or str
        Its number, or its id: ``41206_5``, ``41479+1``; steps such as ``.batch`` stand for their job.

    Raises
    ------
    InputError
        When that names no job, or several.

    Examples
    --------
    Job 3 asks for all 4 cores while job 1 holds 2; job 4 comes later and starts at once beside job 1.

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
    room, found = _room(schedule, row, submit, until, runs)
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
        **_others_meanwhile(schedule, row, submit, until, room),
        pieces=1 if schedule.pieces is None else int(schedule.pieces[row]),
        earlier=0.0 if schedule.earlier is None else float(schedule.earlier[row]),
        cut=len(runs),
        lost=float(np.diff(runs).sum()),
        first_wait=float(runs[0, 0]) - submit if len(runs) else float(schedule.wait[row]),
        logged_wait=None if schedule.logged_start is None else float(schedule.logged_start[row]) - submit,
        logged_reason="" if schedule.logged_reason is None else str(schedule.logged_reason[row]),
    )


def _room(
    schedule: JobSchedule, row: int, submit: float, until: float, runs: FloatArray
) -> tuple[FloatArray, dict[str, Any]]:
    """Stretches (k, 2) of the wait with enough room for the job; which room that is, and what is known of it.

    Parameters
    ----------
    runs : (k, 2) float64
        When the job held cores itself, before its last run.
    """
    room, free = _room_for(schedule, row, submit, until)
    for begin, end in runs.tolist():
        before, after = np.minimum(room, begin), np.maximum(room, end)
        room = np.concatenate([before[before[:, 1] > before[:, 0]], after[after[:, 1] > after[:, 0]]])
    parts, reach = schedule.parts, schedule.machine
    enough = float(np.diff(room, axis=1).sum())
    short = until - submit - enough - float(np.diff(runs).sum())
    reasons: tuple[tuple[str, float], ...] = ()
    if parts is not None and parts.reach is not None and parts.free is not None:
        reasons, reach, free = parts.reasons(row), int(parts.reach[row]), int(parts.free[row])
        short = sum(held for word, held in reasons if word in LACKING)
        enough, room = sum(held for word, held in reasons if word not in LACKING), room[:0]
    short_of = "" if schedule.short_of is None else str(schedule.short_of[row])
    if schedule.short_of is not None:  # more than cores decides
        short, enough, room = 0.0, 0.0, room[:0]
    return room, {
        "reach": reach,
        "free": free,
        "room": _room_of(schedule, row),
        "reasons": reasons,
        "refused": None if parts is None else parts.refused.get(row),
        "short_of": short_of,
        "short": short,
        "enough": enough,
    }


def _others_meanwhile(schedule: JobSchedule, row: int, submit: float, until: float, room: FloatArray) -> dict[str, Any]:
    """Jobs that stood before it, passed it, held cores while it waited, and stood first while there was *room*."""
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
    came = came[np.argsort(schedule.submit[came], kind="stable")]  # rows are in this order but where users reacted
    first = _first(schedule, came, room)
    return {
        "ahead": int(ahead.sum()),
        "ahead_work": float(np.nansum(work[ahead])),
        "passed": int(passed.sum()),
        "passed_work": float(np.nansum(work[passed])),
        "holders": _others(schedule, np.where(order == row, 0.0, held), held, total),
        "passing": _others(schedule, np.where(passed, held, 0.0), held, total),
        "freeing": _others(schedule, freeing, held, total),
        "first": _others(schedule, first, first, float(np.diff(room, axis=1).sum())),
        "passers": _passers(schedule, passed),
        "outlived": _outlived(schedule, submit, until, held, total),
    }


def _outlived(
    schedule: JobSchedule, submit: float, until: float, held: npt.NDArray[Any], total: float
) -> tuple[tuple[Other, float], ...]:
    """Jobs that held cores beyond their predictions between two instants, and for how long."""
    if schedule.prediction is None:
        return ()
    expected = schedule.start + schedule.prediction
    beyond = np.minimum(schedule.end, until) - np.maximum(expected, submit)
    beyond = np.where(beyond > 0, beyond, 0.0)
    seconds_of = dict(zip(schedule.job.tolist(), beyond.tolist(), strict=True))
    found = _others(schedule, schedule.cores * beyond, held, total)
    return tuple((one, seconds_of[one.job]) for one in found)


def _job(schedule: JobSchedule, row: int) -> dict[str, Any]:
    """What a job is, whatever became of it."""
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
    """To the second begun, as a clock shows it."""
    return "" if calendar is None or math.isnan(instant) else when(math.floor(instant), calendar)


def _within(schedule: JobSchedule, row: int) -> JobSchedule:
    """The schedule as a job sees it: others ran only where it could have run too."""
    parts = schedule.parts
    if parts is None or (pool := int(parts.pool[row])) < 0 or (parts.pool == pool).all():
        return schedule
    start, end = (np.where(parts.pool == pool, column, np.nan) for column in (schedule.start, schedule.end))
    machine = parts.clusters[pool][1] if parts.clusters else schedule.machine
    return schedule._replace(start=start, end=end, machine=machine)


def _room_of(schedule: JobSchedule, row: int) -> str:
    parts = schedule.parts
    if parts is None:
        return "pooled" if schedule.pooled else "machine"
    if not parts.clusters:
        return "nodes"
    return parts.clusters[int(parts.pool[row])][0] if parts.pool[row] >= 0 else "machine"


def _passers(schedule: JobSchedule, passed: npt.NDArray[np.bool_]) -> tuple[tuple[str, int], ...]:
    """Users by how many of their jobs passed, most first, of equal ones who did first."""
    users = Counter(name for name in map(_name, schedule.user[passed]) if name)
    return tuple(users.most_common())


def _others(schedule: JobSchedule, weight: npt.NDArray[Any], held: npt.NDArray[Any], total: float) -> tuple[Other, ...]:
    """Jobs of largest weight, those without any left out."""
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


def _room_for(schedule: JobSchedule, row: int, submit: float, until: float) -> tuple[FloatArray, int]:
    """Stretches (k, 2) of the wait with enough free cores; free cores when it began."""
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


def _first(schedule: JobSchedule, ahead: IntArray, room: FloatArray) -> FloatArray:
    """How long each job stood first, in order of arrival, while there was room for the one behind; a number a job."""
    seconds = np.zeros(len(schedule.job))
    at = -math.inf
    for row in ahead.tolist():  # who came first stands first until it starts
        until = float(schedule.start[row])
        if until > at:
            inside = np.minimum(room[:, 1], until) - np.maximum(room[:, 0], at)
            seconds[row] = inside[inside > 0].sum()
            at = until
    return seconds


def waits(schedules: Mapping[str, JobSchedule], job: int | str) -> dict[str, tuple[float, float]]:
    """Start and wait of a job under each policy, s; NaN where it did not run."""
    rows = {label: schedule.row(job) for label, schedule in schedules.items()}
    return {
        label: (float(schedule.start[rows[label]]), float(schedule.wait[rows[label]]))
        for label, schedule in schedules.items()
    }
