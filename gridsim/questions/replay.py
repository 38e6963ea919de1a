"""How near replays of a log come to what the log says the machine did, as data; in words: `gridsim.report.trust`."""

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
from gridsim.questions.explain import Explanation
from gridsim.questions.schedules import JobSchedule
from gridsim.run_folder import read_run
from gridsim.words import duration

FAR = 2.0
"""Factor between the replayed and the logged mean wait from which on a comparison is told with a warning before it."""

RESOLUTION = 1.0
"""Resolution of the times in a log, s: two waits below it are not distinguished."""

NEAR_SECONDS = 60.0
"""Difference up to which the simulated wait of one job agrees with the recorded one, s."""

NEAR = 0.1
"""Part of a recorded wait up to which a simulated one agrees with it."""


def is_far(wait: float, logged: float) -> bool:
    """Whether a simulated wait and a recorded one, or two means of them, are more than a factor of `FAR` apart.

    Examples
    --------
    >>> is_far(4.0, 1.5), is_far(3.0, 1.5), is_far(0.5, 0.0)
    (True, False, False)
    """
    low, high = sorted((wait, logged))
    return high > FAR * low and high >= RESOLUTION


def nearest_policy(errors: Mapping[str, tuple[float, float]]) -> str:
    """Label of the policy whose simulated starts are nearest to those in the log.

    Parameters
    ----------
    errors : mapping of str to tuple of float
        Median and mean absolute error of a start by label, s; NaN where no start is in both.

    Returns
    -------
    str
        The label with the least median error; among equal ones the least mean error decides, then the order.

    Examples
    --------
    >>> nearest_policy({"fcfs": (90.0, 200.0), "easy": (5.0, 80.0), "slurm": (5.0, 30.0), "idle": (math.nan, math.nan)})
    'slurm'
    """
    return min(errors, key=lambda label: [math.inf if math.isnan(error) else error for error in errors[label]])


def usual_policy(folder: str | Path, schedules: Mapping[str, JobSchedule]) -> str:
    """Label of the policy that a question is about: the site's own, where ``run.json`` has it, else the nearest one.

    Nearest is the policy with the least median error of a start (`nearest_policy`), where the
    log has starts; else the first.

    Raises
    ------
    InputError
        When ``run.json`` names an own policy that the folder does not have.
    """
    own = read_run(folder).get("own")
    if own is not None:
        if own not in schedules:
            message = f"is {own!r}; expected one of {', '.join(schedules)}"
            raise InputError(message, path=Path(folder) / "run.json", field="own")
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
    """Whether one simulated wait is that of the log: at most `NEAR_SECONDS`, or `NEAR` of the recorded wait, apart.

    Waits that are far apart (`is_far`) never agree, so that jobs that agree cannot add up to means that are far apart.
    """
    return not is_far(wait, logged) and abs(wait - logged) <= max(NEAR_SECONDS, NEAR * logged)


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay of a log under one of the policies that are compared, against what the log says did happen.

    Attributes
    ----------
    policy : str
        Its label.
    agreement : Agreement
        How far its starts are from the logged ones.
    own : bool
        Whether the policy is the site's own.
    alone : bool
        Whether no other one was simulated.
    extended : bool
        Whether jobs ran as long as they did, beyond their limits too, which they do not in what is compared.
    several_runs : bool
        Whether some jobs ran more than once, so that starts and waits are those of the first run.
    preempted : mapping of str to float
        Runs preempted in the replay and in the log, where both tell of them.
    provenance : mapping
        Where the log is from.
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
        """Whether the mean waits differ so much that a warning precedes the answer."""
        return is_far(self.agreement.wait, self.agreement.logged_wait)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Replays of one log.

    Attributes
    ----------
    overall : mapping of str to Agreement
        By policy.
    best : str
        The policy with the smallest median error of a start.
    by_class : mapping
        Agreement under the policy `of` by what tells jobs apart (size, length, user …), then by class.
    apart : tuple of (Disagreement, Explanation)
        Jobs with the largest errors under it, each with what the replay shows of its wait.
    own : str or None
        The site's own policy; None where nobody said which that is.
    logged_runs : LoggedRuns or None
        Runs that were preempted on the machine, where the log knows.
    preempted : mapping
        Those of each policy that preempts (`gridsim.metrics.summary.PREEMPTION_METRICS`), by label.
    ran : mapping of str to (n,) bool
        Jobs that started on the machine, with the label "", and under each policy.
    failures : mapping of str to ModelFailures
        Jobs that ran in the log but that a policy rejects, by its label.
    provenance : mapping
        Where the log is from.
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
        """The policy that is told of: the site's own, where it is known, else the one that comes nearest."""
        return self.own or self.best

    def __repr__(self) -> str:
        found = ", ".join(f"{label} {duration(one.median)}" for label, one in self.overall.items())
        return f"<Calibration of {self.overall[self.best].jobs:,} starts, median errors: {found}>"
