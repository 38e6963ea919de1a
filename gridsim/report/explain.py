"""Why did this job wait? What a schedule shows of one job: who held the cores, who stood before it, who passed it.

Everything is read from the schedule, whoever made it: facts, and no guess at what a policy had in mind. The same in
words: `gridsim.report.explain_text`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.metrics.groups import called
from gridsim.model.time import FloatArray, IntArray, seconds
from gridsim.model.workload import UNKNOWN
from gridsim.record import Record, Status
from gridsim.result import read_names, read_table

__all__ = ["PLACES", "SHOWN", "Other", "Schedule", "Waiting", "explain", "read_schedules", "waits"]

SHOWN = 5
"""Other jobs that are told one by one."""

_USERS = ("user", "account", "group")
PLACES = ("account", "partition")
"""Labels that say where a job was sent."""


class Schedule(NamedTuple):
    """Columns of one schedule, a row a job in order of arrival; times in seconds, NaN where a job did not run."""

    job: IntArray
    cores: IntArray
    submit: FloatArray
    start: FloatArray
    end: FloatArray
    estimate: FloatArray
    status: npt.NDArray[np.str_]
    user: npt.NDArray[Any]
    machine: int
    account: npt.NDArray[Any] | None = None
    partition: npt.NDArray[Any] | None = None

    @classmethod
    def of(cls, record: Record) -> Schedule:
        """Schedule of a record of jobs of one task, with the names of users and so on where there are any."""
        workload = record.workload
        users = workload.labels.get("user", np.full(len(record), UNKNOWN))

        def named(label: str) -> npt.NDArray[Any] | None:
            if not workload.names.get(label) or label not in workload.labels:
                return None
            return _texts(workload.labels[label], lambda value: called(workload, label, value))

        return cls(
            job=workload.job,
            cores=record.given,
            submit=record.submit,
            start=record.start,
            end=record.end,
            estimate=seconds(workload.estimate),
            status=np.array([status.name for status in Status])[record.status],
            user=_texts(users, lambda value: called(workload, "user", value)),
            machine=record.cores,
            **{label: named(label) for label in PLACES},
        )

    def row(self, job: int) -> int:
        """Row of a job.

        Raises
        ------
        InputError
            When there is no such job.
        """
        rows = np.flatnonzero(self.job == job)
        if not len(rows):
            known = f"numbers go from {self.job.min()} to {self.job.max()}" if len(self.job) else "there is none at all"
            raise InputError(f"there is no job {job}; {known}", field="job")
        return int(rows[0])

    @property
    def wait(self) -> FloatArray:
        """Start minus submit."""
        return self.start - self.submit

    def longest(self) -> int:
        """The job that waited longest.

        Raises
        ------
        InputError
            When no job ran.
        """
        if np.isnan(self.wait).all():
            raise InputError("no job ran, so none waited")
        return int(self.job[np.nanargmax(self.wait)])


def _texts(values: npt.NDArray[Any], called: Callable[[int], str]) -> npt.NDArray[Any]:
    """What each number is called; nothing of `UNKNOWN`."""
    known, place = np.unique(values, return_inverse=True)
    texts = ["" if value == UNKNOWN else called(value) for value in known.tolist()]
    return np.array(texts, dtype=object)[place]


class Other(NamedTuple):
    """Another job: its cores, when it held them, and its share of all that was held while the job waited."""

    job: int
    user: str
    cores: int
    start: float
    end: float
    share: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a schedule shows of the wait of one job.

    Attributes
    ----------
    job, cores : int
        Its number and what it asked for.
    user, account, partition, status : str
        Whose it is and where it was sent (empty where the log does not say); what became of it.
    submit, start, end, estimate : float
        Seconds; NaN where it did not run.
    machine, free : int
        Cores of the machine; free cores when it was submitted.
    short, enough : float
        Seconds of the wait with fewer free cores than it asked for, and with as many or more.
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
    """

    job: int
    user: str
    account: str
    partition: str
    cores: int
    status: str
    submit: float
    start: float
    end: float
    estimate: float
    machine: int
    free: int
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

    @property
    def wait(self) -> float:
        """Seconds."""
        return self.start - self.submit

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        told = asdict(self) | {"wait": self.wait, "passers": [list(one) for one in self.passers]}
        return told | {
            name: [one._asdict() for one in getattr(self, name)] for name in ("holders", "passing", "freeing", "first")
        }


def read_schedules(folder: str | Path) -> dict[str, Schedule]:
    """Schedules of a result directory, of one run or of `gridsim compare`, by policy.

    Raises
    ------
    InputError
        When it is none, or damaged, or of jobs of several tasks.
    """
    folder = Path(folder)
    told = _run_of(folder)
    if "folders" not in told:
        return {str(told.get("policy", "policy")): _read(folder)}
    if not isinstance(told["folders"], dict) or not told["folders"]:
        raise InputError("names no folders of policies", path=folder / "run.json", field="folders")
    return {label: _read(folder / str(place)) for label, place in told["folders"].items()}


def _run_of(folder: Path) -> dict[str, Any]:
    """What ``run.json`` of a result directory says."""
    try:
        told = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError("has no run.json; expected a result directory", path=folder) from error
    if not isinstance(told, dict):
        raise InputError("is no table of a run; expected a result directory", path=folder / "run.json")
    return told


def _read(folder: Path) -> Schedule:
    if (folder / "tasks.csv").exists() or (folder / "tasks.parquet").exists():
        raise InputError("is of jobs of several tasks, which have several waits each", path=folder)
    columns = read_table(folder)
    for name in ("job", "cores", "submit", "start", "end", "estimate", "status"):
        if name not in columns:
            raise InputError("is not there; expected the jobs of a result directory", path=folder, field=name)
    names = read_names(folder)
    try:
        machine = int(_run_of(folder)["platform"]["cores"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError("tells no size of the machine; expected that of a run", path=folder / "run.json") from error

    def named(label: str) -> npt.NDArray[Any]:
        known = names.get(label, {})
        return _texts(columns[label], lambda value: known.get(value, str(value)))

    def numbers(name: str, kind: type[Any] = np.float64) -> npt.NDArray[Any]:
        try:
            return columns[name].astype(kind)
        except ValueError as error:
            raise InputError(f"has what is no number ({error})", path=folder, field=name) from error

    whose = next((named(name) for name in _USERS if name in columns), np.full(len(columns["job"]), ""))
    return Schedule(
        job=numbers("job", np.int64),
        cores=numbers("cores_used" if "cores_used" in columns else "cores", np.int64),
        submit=numbers("submit"),
        start=numbers("start"),
        end=numbers("end"),
        estimate=numbers("estimate"),
        status=columns["status"],
        user=whose,
        machine=machine,
        **{label: named(label) for label in PLACES if label in columns and label in names},
    )


def explain(schedule: Schedule, job: int) -> Waiting:
    """What a schedule shows of the wait of a job.

    Raises
    ------
    InputError
        When there is no such job.

    Examples
    --------
    Job 3 asks for all 4 cores while job 1 holds 2; job 4 comes later and starts at once beside job 1.

    >>> columns = {"submit": [0, 1, 2, 3], "start": [0, 0, 10, 3], "end": [10, 0, 20, 9], "estimate": [10, 1, 10, 6]}
    >>> times = [np.array(columns[name], dtype=float) for name in ("submit", "start", "end", "estimate")]
    >>> names = np.array(["", "", "", ""])
    >>> found = explain(Schedule(np.array([1, 2, 3, 4]), np.array([2, 1, 4, 2]), *times, names, names, 4), 3)
    >>> found.wait, found.free, found.short, found.passed, [one.job for one in found.holders]
    (8.0, 2, 8.0, 1, [1, 4])
    """
    row = schedule.row(job)
    submit, start = float(schedule.submit[row]), float(schedule.start[row])
    until = start if not math.isnan(start) else submit
    order = np.arange(len(schedule.job))
    before = (schedule.submit < submit) | ((schedule.submit == submit) & (order < row))
    began, ended = schedule.start, schedule.end
    work = schedule.cores * (ended - began)
    ahead = before & (began > submit)
    passed = ~before & (order != row) & (began < until)
    inside = np.minimum(ended, until) - np.maximum(began, submit)
    held = schedule.cores * np.where(inside > 0, inside, 0.0)
    total = float(np.nansum(held))
    holders = _others(schedule, np.where(order == row, 0.0, held), held, total)
    passing = _others(schedule, np.where(passed, held, 0.0), held, total)
    freeing = _others(schedule, np.where(before | passed, schedule.cores, 0) * (ended == until), held, total)
    room, free = _room_for(schedule, row, submit, until)
    enough = float(np.diff(room, axis=1).sum())
    came = np.flatnonzero(ahead)
    came = came[np.argsort(schedule.submit[came], kind="stable")]  # rows are in this order but where users reacted
    standing = _standing(schedule, came, room)
    return Waiting(
        job=job,
        user=_name(schedule.user[row]),
        account="" if schedule.account is None else _name(schedule.account[row]),
        partition="" if schedule.partition is None else _name(schedule.partition[row]),
        cores=int(schedule.cores[row]),
        status=str(schedule.status[row]),
        submit=submit,
        start=start,
        end=float(schedule.end[row]),
        estimate=float(schedule.estimate[row]),
        machine=schedule.machine,
        free=free,
        short=until - submit - enough,
        enough=enough,
        ahead=int(ahead.sum()),
        ahead_work=float(np.nansum(work[ahead])),
        passed=int(passed.sum()),
        passed_work=float(np.nansum(work[passed])),
        holders=holders,
        passing=passing,
        freeing=freeing if until > submit else (),
        first=_others(schedule, standing, standing, enough),
        passers=_passers(schedule, passed),
    )


def _passers(schedule: Schedule, passed: npt.NDArray[np.bool_]) -> tuple[tuple[str, int], ...]:
    """Users by how many of their jobs passed, most first, of equal ones who did first."""
    users = Counter(name for name in map(_name, schedule.user[passed]) if name)
    return tuple(users.most_common())


def _others(schedule: Schedule, weight: npt.NDArray[Any], held: npt.NDArray[Any], total: float) -> tuple[Other, ...]:
    """Jobs of largest weight, those without any left out."""
    weight = np.nan_to_num(weight)
    rows = np.argsort(-weight, kind="stable")[:SHOWN]
    return tuple(
        Other(
            int(schedule.job[row]),
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


def _room_for(schedule: Schedule, row: int, submit: float, until: float) -> tuple[FloatArray, int]:
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


def _standing(schedule: Schedule, ahead: IntArray, room: FloatArray) -> FloatArray:
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


def waits(schedules: Mapping[str, Schedule], job: int) -> dict[str, tuple[float, float]]:
    """Start and wait of a job under each policy, s; NaN where it did not run."""
    rows = {label: schedule.row(job) for label, schedule in schedules.items()}
    return {
        label: (float(schedule.start[rows[label]]), float(schedule.wait[rows[label]]))
        for label, schedule in schedules.items()
    }
