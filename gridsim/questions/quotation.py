"""Estimates for one job at one moment, as data; for the text see `gridsim.report.quotation`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from gridsim.files import plain
from gridsim.forecasts.answer import Answer as Forecast
from gridsim.model.dates import Calendar
from gridsim.model.demand import Demand
from gridsim.record import Refusal


@dataclass(frozen=True, slots=True)
class Answer:
    """Guarantee or estimate of one policy for the job. Times in seconds of the log's clock; NaN for none.

    Attributes
    ----------
    policy : str
        Label of the policy.
    promise : {"deadline", "start", "none"}
        What the policy guarantees.
    running, busy, waiting : int
        Running jobs, cores held, and waiting jobs at that moment under the policy.
    guaranteed : float
        The earliest completion that could be guaranteed.
    start : float
        Planned start; without a guarantee, the expected start if all jobs run as estimated and no others are
        submitted.
    refused : float
        Latest earlier deadline that was tried and rejected.
    moved, delayed : int
        Number of waiting jobs whose planned start would change, and of those that would start later.
    delay : float
        The longest such delay, s, within the guarantee of the delayed job.
    delayed_job : int or None
        Number of the job with the longest delay.
    kills : tuple of int
        Jobs that the policy would kill for it.
    lost : float
        Lost work of these jobs, core-seconds.
    keeps : bool or None
        Whether the requested deadline can be guaranteed; None without one.
    held_by : str
        Limit of the site that delays the job at that moment, such as ``QOSMaxJobsPerUserLimit of QOS low``.
    refused_by : Refusal or None
        The rule of the site that rejects it.
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


class AbsentNodes(NamedTuple):
    """Number of absent nodes and of all nodes, and the return of the last one (s, log's clock), NaN if unknown."""

    absent: int
    nodes: int
    until: float


class State(NamedTuple):
    """Running jobs, cores held, and waiting jobs in the log."""

    running: int
    busy: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Price:
    """Cost of a deadline. Times in seconds of the log's clock.

    Attributes
    ----------
    deadline : float
        The deadline.
    possible : bool
        Whether it can be guaranteed, if necessary by killing jobs.
    kills : tuple of int
        Running jobs that must be killed and restarted; their guarantees are kept.
    lost : float
        Lost work of these jobs, core-seconds.
    start : float
        Planned start; NaN if the deadline is not possible.
    charge : float
        QoS charge: mean slowdown of jobs of this size and length under EASY, over the requested slowdown; NaN without
        such jobs.
    """

    deadline: float
    possible: bool
    kills: tuple[int, ...]
    lost: float
    start: float
    charge: float


@dataclass(frozen=True, slots=True)
class Quoted:
    """Estimates of several policies for one job at one moment, and the cost of tighter deadlines.

    Attributes
    ----------
    at : float
        The moment, seconds of the log's clock.
    cores, walltime : int, float
        Cores and walltime (s) of the job.
    machine : int
        Cores of the machine.
    deadline : float or None
        Requested deadline, seconds of the log's clock.
    answers : tuple of Answer
        One answer per policy.
    priced_by : str or None
        Label of the policy of the prices; None if no policy supports deadlines.
    prices : tuple of Price
        Prices from the tightest possible deadline to the earliest one without a kill.
    undated : int
        Number of submitted jobs without a deadline.
    forecasts : mapping of str to gridsim.forecasts.answer.Answer
        Forecast of the start by policy, with those of smaller requests as shapes.
    without_forecast : mapping of str to str
        Policies without a forecast, with the reason.
    owner : mapping of str to str
        Given names of the job's user, account, partition and QOS.
    calendar : Calendar or None
        Dates of the log, if it has any.
    demand : Demand or None
        Requested resources of nodes and pools; None for plain cores.
    recorded : State or None
        State of the machine in the log at that moment, if a policy starts from it.
    absent : AbsentNodes or None
        Nodes that are absent at that moment, if any are.
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
    forecasts: Mapping[str, Forecast] = field(default_factory=dict)
    without_forecast: Mapping[str, str] = field(default_factory=dict)
    owner: Mapping[str, str] = field(default_factory=dict)
    calendar: Calendar | None = None
    demand: Demand | None = None
    recorded: State | None = None
    absent: AbsentNodes | None = None

    def __repr__(self) -> str:
        asked = ", ".join(one.policy for one in self.answers)
        return f"<Quotation of {self.cores:,} cores for {self.walltime:,.15g} s at {self.at:,.15g} s: {asked}>"

    def __getitem__(self, policy: str) -> Answer:
        """Return the answer of a policy.

        Raises
        ------
        KeyError
            If there is no answer of this policy.
        """
        return {answer.policy: answer for answer in self.answers}[policy]

    @property
    def tightest(self) -> float:
        """Earliest possible end of the job, seconds of the log's clock."""
        return self.at + self.walltime

    def to_dict(self) -> dict[str, Any]:
        """Return all data as JSON types, null for missing values; the moment also as a date (``at_date``)."""
        date = None if self.calendar is None else self.calendar.date(self.at).isoformat()
        found: dict[str, Any] = plain({"at_date": date, **asdict(replace(self, calendar=None, forecasts={}))})
        del found["calendar"]
        return {**found, "forecasts": {policy: it.to_dict() for policy, it in self.forecasts.items()}}
