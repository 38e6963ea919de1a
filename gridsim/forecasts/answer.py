"""Data of a forecast: its jobs with their intervals, and its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from gridsim.files import plain
from gridsim.forecasts.intervals import quantile
from gridsim.model.cluster_state import ClusterState
from gridsim.model.dates import Calendar
from gridsim.model.time import FloatArray

EARLIER, CLEARLY = 60.0, 0.9
"""Time, s, by which a start must be earlier, and share of the futures from which this is stated."""


@dataclass(frozen=True)
class Shape:
    """Another shape of a job, in the futures of the original one.

    Attributes
    ----------
    cores : int
        Its cores.
    limit : float
        Its limit, s.
    median : float
        Median wait, s; infinite beyond the horizon.
    earlier, futures : int
        Number of futures in which it starts at least 60 s earlier, and of all.
    difference : float
        Median of the time by which it starts earlier, s.
    killed : float
        Share of the candidates of its run time that exceed the limit.
    """

    cores: int
    limit: float
    median: float
    earlier: int
    futures: int
    difference: float
    killed: float

    @property
    def clearly(self) -> bool:
        """True if it starts earlier in so many futures that this is stated."""
        return self.earlier >= CLEARLY * self.futures


@dataclass(frozen=True)
class JobForecast:
    """Forecast of one job; waits are seconds from the moment on, infinite beyond the horizon.

    Attributes
    ----------
    job : str
        Its id.
    cores : int
        Its cores.
    limit, waited : float
        Its limit, and how long it has waited, s.
    sample : (k,) float64
        Sorted waits of the source.
    intervals : mapping of float to (float, float)
        Interval of each level; calibrated if *pairs* is not 0.
    pairs : int
        Number of earlier forecasts that calibrate it.
    known : int or None
        Number of earlier forecasts that there are; None if none are requested.
    source : str
        ``futures``, or ``similar jobs``.
    requested : float
        Wait if all jobs run for their limits and no others arrive.
    observed : mapping of float to (int, int)
        Hits and number of the last judged forecasts of each level.
    remark : str
        Begin time or dependency of the job, or the limit that blocks it now and is part of the simulation.
    not_modelled : str
        Limit that blocks the job and is not modelled; empty if there is none.
    slurm : float or None
        Wait by Slurm's own estimate, if the state has one.
    delay : (float, int) or None
        Median of the time by which windows and failures delay its start, s, and number of futures in which it is at
        least 60 s; None if they were not compared.
    """

    job: str
    cores: int
    limit: float
    waited: float
    sample: FloatArray
    intervals: Mapping[float, tuple[float, float]]
    pairs: int
    known: int | None
    source: str
    requested: float
    observed: Mapping[float, tuple[int, int]] = field(default_factory=dict)
    remark: str = ""
    not_modelled: str = ""
    slurm: float | None = None
    delay: tuple[float, int] | None = None

    @property
    def median(self) -> float:
        """Median wait, infinite if more than half of the futures are beyond the horizon."""
        return quantile(self.sample, 0.5)

    @property
    def at_once(self) -> bool:
        """True if the job starts at the moment in all futures, and its 90 % interval ends within 60 s."""
        return self.source == "futures" and float(self.sample[-1]) == 0.0 and self.intervals[0.9][1] <= 60


@dataclass(frozen=True)
class Answer:
    """Forecasts at a moment.

    Attributes
    ----------
    at : float
        The moment, s of the clock.
    calendar : Calendar or None
        Dates of the clock.
    policy, state : str
        Policy, and origin of the state: ``simulated``, ``recorded`` or ``live``.
    machine, running, busy, waiting : int
        Cores of the machine, running jobs and their cores, and waiting jobs.
    jobs : sequence of JobForecast
        The jobs in question, by median.
    left_out : mapping of str to str
        Jobs without a forecast, with the reason.
    notes : sequence of str
        Assumptions, and features that are not modelled.
    futures, horizon, seed : int
        Number of futures, horizon (s) and seed.
    samples : (k, n) float64
        Waits in each future, by job of `jobs`.
    shapes : sequence of Shape
        Other shapes of the only job.
    empty : tuple of (k,) float64, optional
        Sorted times until no job of the present queue waits, and until no job waits at all, s.
    cluster_state : ClusterState, optional
        The state.
    """

    at: float
    calendar: Calendar | None
    policy: str
    state: str
    machine: int
    running: int
    busy: int
    waiting: int
    jobs: Sequence[JobForecast]
    left_out: Mapping[str, str]
    notes: Sequence[str]
    futures: int
    horizon: int
    seed: int
    samples: FloatArray
    shapes: Sequence[Shape] = ()
    empty: tuple[FloatArray, FloatArray] | None = None
    cluster_state: ClusterState | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON types; times beyond the horizon are None."""
        found = asdict(replace(self, calendar=None, jobs=(), cluster_state=None))
        del found["calendar"], found["samples"], found["cluster_state"]
        empty = None if self.empty is None else [sample.tolist() for sample in self.empty]
        date = None if self.calendar is None else self.calendar.date(self.at).isoformat()
        found |= {"date": date, "empty": empty, "jobs": [_written(it) for it in self.jobs]}
        written: dict[str, Any] = plain(found)
        return written


def _written(it: JobForecast) -> dict[str, Any]:
    found = {name: value for name, value in vars(it).items() if name != "sample"} | {"median": it.median}
    for name in ("intervals", "observed"):
        found[name] = {f"{level:.0%}": values for level, values in found[name].items()}
    return found
