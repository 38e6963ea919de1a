"""Agreement of simulations of a log with its recorded schedule, as data; in words: `gridsim.report.validation`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.metrics.agreement import Agreement, Disagreement, ModelFailures, start_error
from gridsim.metrics.preemption import LoggedRuns
from gridsim.model.time import NEVER
from gridsim.number_formatting import duration
from gridsim.questions.explain import Explanation
from gridsim.questions.schedules import JobSchedule
from gridsim.record import Record, Status

FAR = 2.0
"""Factor between the simulated and the recorded mean wait above which a comparison begins with a warning."""

RESOLUTION = 1.0
"""Resolution of the times in a log, s; two waits below it count as equal."""

NEAR_SECONDS = 60.0
"""Largest difference between the simulated and the recorded wait of a job that agree, s."""

NEAR = 0.1
"""The same difference as a fraction of the recorded wait; the larger of both applies."""


def is_far(wait: float, logged: float) -> bool:
    """Return whether a simulated and a recorded wait, or two mean waits, are more than a factor of `FAR` apart.

    Examples
    --------
    >>> is_far(4.0, 1.5), is_far(3.0, 1.5), is_far(0.5, 0.0)
    (True, False, False)
    """
    low, high = sorted((wait, logged))
    return high > FAR * low and high >= RESOLUTION


LOG = "recorded log"
"""Label of the recorded schedule in tables of policies."""


def recorded_schedule(record: Record) -> Record | None:
    """Return the recorded schedule of the jobs of a record; None if the log has none, or for DAG jobs.

    A job that ran several times is one run from its first start to its last end.
    """
    workload = record.workload_given
    start, end = workload.logged_start, workload.logged_end
    if start is None or end is None or not workload.has_recorded_schedule or record.tasks is not None:
        return None
    ran = (start < NEVER) & (end < NEVER)
    if not ran.any():
        return None
    status = np.where(ran, Status.completed, Status.rejected).astype(np.int8)
    times = (np.where(ran, start, NEVER), np.where(ran, end, NEVER))
    return Record(workload, *times, status, np.zeros(len(ran), dtype=np.int16), record.cores)


def nearest_policy(errors: Mapping[str, tuple[float, float]]) -> str:
    """Return the label of the policy with the smallest errors of simulated start times.

    Parameters
    ----------
    errors : mapping of str to tuple of float
        Median and mean absolute error of a start by label, s; NaN if no job started in both.

    Returns
    -------
    str
        The label with the smallest median error; ties are resolved by the mean error, then by the order.

    Examples
    --------
    >>> nearest_policy({"fcfs": (90.0, 200.0), "easy": (5.0, 80.0), "slurm": (5.0, 30.0), "idle": (math.nan, math.nan)})
    'slurm'
    """
    return min(errors, key=lambda label: [math.inf if math.isnan(error) else error for error in errors[label]])


def usual_policy(schedules: Mapping[str, JobSchedule], own: str | None = None, path: str | Path | None = None) -> str:
    """Return the label of the default policy of a question: the site's own one (*own*) if it is known.

    Else it is the policy with the smallest errors of start times (`nearest_policy`), or the first one if the log has no
    starts.

    Raises
    ------
    InputError
        If *own*, of the file *path*, is not one of the labels.
    """
    if own is not None:
        if own not in schedules:
            raise InputError(f"is {own!r}; expected one of {', '.join(schedules)}", path=path, field="own")
        return str(own)
    return nearest_policy({label: _start_error(schedule) for label, schedule in schedules.items()})


def _start_error(schedule: JobSchedule) -> tuple[float, float]:
    if schedule.logged_start is None:
        return math.nan, math.nan
    start = schedule.start.copy()
    if schedule.cut is not None:
        np.fmin.at(start, schedule.cut.row, schedule.cut.start)
    return start_error(start, schedule.logged_start)


def agrees(wait: float, logged: float) -> bool:
    """Return whether a simulated wait agrees with the recorded one, within `NEAR_SECONDS` or the fraction `NEAR`.

    Waits that are far apart (`is_far`) never agree, so the mean waits of agreeing jobs are not far apart either.
    """
    return not is_far(wait, logged) and abs(wait - logged) <= max(NEAR_SECONDS, NEAR * logged)


@dataclass(frozen=True, slots=True)
class Replay:
    """Simulation of a log under one of the compared policies, against the recorded schedule.

    Attributes
    ----------
    policy : str
        Label of the policy.
    agreement : Agreement
        Errors of its start times.
    own : bool
        Whether the policy is the site's own.
    alone : bool
        Whether no other policy was simulated.
    extended : bool
        Whether jobs ran for as long as recorded, beyond their limits too, unlike in the comparison.
    several_runs : bool
        Whether some jobs ran several times, so that starts and waits are those of the first run.
    preempted : mapping of str to float
        Preempted runs in the simulation and in the log, if both have them.
    provenance : mapping
        Provenance of the log.
    """

    policy: str
    agreement: Agreement
    own: bool = False
    alone: bool = False
    extended: bool = False
    several_runs: bool = False
    preempted: Mapping[str, float] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def far(self) -> bool:
        """True if the mean waits differ so much that the results begin with a warning."""
        return is_far(self.agreement.wait, self.agreement.logged_wait)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Agreement of several policies with one log.

    Attributes
    ----------
    overall : mapping of str to Agreement
        Agreement by policy.
    best : str
        The policy with the smallest median error of start times.
    by_class : mapping
        Agreement under the policy `of` by property of jobs (size, length, user, …), then by class.
    apart : tuple of (Disagreement, Explanation)
        Jobs with the largest errors under it, each with the explanation of its simulated wait.
    own : str or None
        The site's own policy; None if unknown.
    logged_runs : LoggedRuns or None
        Recorded preempted runs, if the log has them.
    preempted : mapping
        Preempted runs under each policy that preempts (`gridsim.metrics.summary.PREEMPTION_METRICS`), by label.
    ran : mapping of str to (n,) bool
        Jobs that started in the log (label ""), and under each policy.
    failures : mapping of str to ModelFailures
        Jobs that ran in the log but are rejected by a policy, by its label.
    provenance : mapping
        Provenance of the log.
    """

    overall: Mapping[str, Agreement]
    best: str
    by_class: Mapping[str, Mapping[str, Agreement]]
    apart: tuple[tuple[Disagreement, Explanation], ...]
    own: str | None = None
    logged_runs: LoggedRuns | None = None
    preempted: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    ran: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict, compare=False)
    failures: Mapping[str, ModelFailures] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def of(self) -> str:
        """The reported policy: the site's own one if known, else the one with the smallest errors."""
        return self.own or self.best

    def __repr__(self) -> str:
        found = ", ".join(f"{label} {duration(one.median)}" for label, one in self.overall.items())
        return f"<Calibration of {self.overall[self.best].jobs:,} starts, median errors: {found}>"
