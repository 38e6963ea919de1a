"""Answers about one job at one moment, as data; in words: `gridsim.report.quotation`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from gridsim.files import plain
from gridsim.model.dates import Calendar
from gridsim.model.demand import Demand
from gridsim.record import Refusal


@dataclass(frozen=True, slots=True)
class Answer:
    """What one policy could promise the job. Times in seconds of the log's clock; NaN for none.

    Attributes
    ----------
    policy : str
        Its label.
    promise : {"deadline", "start", "none"}
        What the policy promises jobs at all.
    running, busy, waiting : int
        Jobs that run, cores that they hold, jobs that wait at that moment under the policy.
    guaranteed : float
        The earliest completion that could be guaranteed.
    start : float
        Planned start then; without a promise, the start to expect if all jobs took as long as estimated and nobody
        else came.
    refused : float
        Latest deadline before it that was tried and refused.
    moved, delayed : int
        Waiting jobs whose planned start would change, and those of them that would start later.
    delay : float
        The longest such delay, s, within what that job was promised.
    delayed_job : int or None
        Its number.
    kills : tuple of int
        Jobs that the policy itself would kill for it.
    lost : float
        Work of theirs that would be lost, core-seconds.
    keeps : bool or None
        Whether the deadline asked for can be promised; None where none was asked for.
    held_by : str
        The limit of the site that holds the job back at that moment, such as ``QOSMaxJobsPerUserLimit of QOS low``.
    refused_by : Refusal or None
        The rule by which the site rejects it.
    """

    policy: str
    promise: Literal["deadline", "start", "none"]
    running: int
    busy: int
    waiting: int
    guaranteed: float = float("nan")
    start: float = float("nan")
    refused: float = float("nan")
    moved: int = 0
    delayed: int = 0
    delay: float = 0.0
    delayed_job: int | None = None
    kills: tuple[int, ...] = ()
    lost: float = 0.0
    keeps: bool | None = None
    held_by: str = ""
    refused_by: Refusal | None = None


class State(NamedTuple):
    """Jobs that run, cores that they hold, and jobs that wait, as the log has them."""

    running: int
    busy: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Price:
    """What a deadline would cost. Times in seconds of the log's clock.

    Attributes
    ----------
    deadline : float
        The deadline.
    possible : bool
        Whether it can be promised, by a kill if need be.
    kills : tuple of int
        Running jobs that would have to be killed and started over; their promises are kept.
    lost : float
        Work of theirs that would be lost, core-seconds.
    start : float
        Planned start; NaN where it is not possible.
    charge : float
        QoS charge: mean slowdown of jobs of this size and length under EASY, over the slowdown asked for; NaN where
        there are no jobs to judge by.
    """

    deadline: float
    possible: bool
    kills: tuple[int, ...]
    lost: float
    start: float
    charge: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """When the job would start under a policy without deadlines, and how such expectations turned out so far.

    Attributes
    ----------
    policy : str
        Its label.
    start : float
        If all jobs took as long as estimated and nobody else came, seconds of the log's clock; NaN where the policy
        does not say.
    jobs : int
        Earlier jobs of the log that had to wait, some of them still, and were asked the same as they came; of those a
        short wait was expected of, or a long one, as of this one.
    alike : bool
        Whether these are of the job's class of size and time asked for; else they are of any.
    scale : {"share", "seconds"}
        Of the next four: true waits over the expected ones, or where a short wait is expected, by how many seconds they
        started later than expected.
    early, middle, late, latest : float
        Quartiles and 90th percentile; NaN where too few have started.
    """

    policy: str
    start: float
    jobs: int = 0
    alike: bool = False
    scale: Literal["share", "seconds"] = "share"
    early: float = float("nan")
    middle: float = float("nan")
    late: float = float("nan")
    latest: float = float("nan")

    def wait(self, value: float, at: float) -> float:
        """Wait of this job if it does like those of which *value* is a quantile, s; NaN where nobody could act on it.

        That is where it is more than `TIMES` times what is expected, or an hour where less is.

        Parameters
        ----------
        at : float
            When the job comes, seconds of the log's clock.
        """
        expected = self.start - at
        found = expected * value if self.scale == "share" else max(expected + value, 0.0)
        return found if found <= TIMES * max(expected, 3600.0) else math.nan


TIMES = 10.0
"""Expected waits, or hours where less is expected, beyond which a bound of a wait is not told."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another size of the job: cores and walltime in seconds, and its expected start by policy (s, log's clock)."""

    cores: int
    walltime: float
    starts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Quoted:
    """Answers of several policies about one job at one moment, and the price of tighter deadlines.

    Attributes
    ----------
    at : float
        The moment, seconds of the log's clock.
    cores, walltime : int, float
        The job; the walltime in seconds.
    machine : int
        Cores of the machine.
    deadline : float or None
        Deadline asked for, seconds of the log's clock.
    answers : tuple of Answer
        One a policy.
    priced_by : str or None
        Label of the policy that the prices are of; None where none keeps deadlines.
    prices : tuple of Price
        From the tightest deadline that there is to the earliest one that costs no kill.
    undated : int
        Jobs that had come and asked for no deadline.
    forecasts : tuple of Forecast
        One a policy, where none of them keeps deadlines and none was asked for.
    alternatives : tuple of Alternative
        Then too: the same for a narrower and for a shorter job.
    owner : mapping of str to str
        Names of the job's user, account, partition, QOS, as far as they were given.
    calendar : Calendar or None
        Dates of the log, where it says them.
    demand : Demand or None
        What the job asks of nodes and pools; None for plain cores.
    recorded : State or None
        State of the machine in the log at that moment, where a policy starts from it.
    """

    at: float
    cores: int
    walltime: float
    machine: int
    deadline: float | None
    answers: tuple[Answer, ...]
    priced_by: str | None
    prices: tuple[Price, ...]
    undated: int
    forecasts: tuple[Forecast, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    owner: Mapping[str, str] = field(default_factory=dict)
    calendar: Calendar | None = None
    demand: Demand | None = None
    recorded: State | None = None

    def __repr__(self) -> str:
        asked = ", ".join(one.policy for one in self.answers)
        return f"<Quotation of {self.cores:,} cores for {self.walltime:,.15g} s at {self.at:,.15g} s: {asked}>"

    def __getitem__(self, policy: str) -> Answer:
        """The answer of a policy.

        Raises
        ------
        KeyError
            When it was not asked.
        """
        return {answer.policy: answer for answer in self.answers}[policy]

    @property
    def tightest(self) -> float:
        """The earliest end that the job can have at all, seconds of the log's clock."""
        return self.at + self.walltime

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON types; what is not there is null. The moment is there as a date too (``at_date``)."""
        date = None if self.calendar is None else self.calendar.date(self.at).isoformat()
        found: dict[str, Any] = plain({"at_date": date, **asdict(replace(self, calendar=None))})
        del found["calendar"]
        return found
