"""Checkpoints of jobs: how often they are written, how long a run lasts with them, and what an interruption leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

from gridsim.errors import check_keys
from gridsim.model.dates import duration
from gridsim.model.time import MICROSECOND, NEVER, to_us
from gridsim.schema import Number, check_fields

RequeueEstimate = Literal["original", "remaining"]

LABELS = ("checkpoint_interval", "checkpoint_cost", "restart_cost", "save_before")
"""Labels with the values of single jobs, whole seconds; -1 for those of the run, and interval 0 for no checkpoints."""


class Kept(NamedTuple):
    """Parts of a run of a job, whole microseconds: restart, saved work, and checkpoints; the rest is lost."""

    restart: int
    work: int
    checkpoints: int
    writing: int


class Stretch(NamedTuple):
    """A run of a job: restart, work, a checkpoint of a *cost* after each *interval* of work; whole microseconds.

    From *save* on, counted from the start of the run, the job only writes a last checkpoint, and leaves.
    """

    restart: int
    work: int
    interval: int
    cost: int
    checkpoints: int
    save: int = NEVER

    @property
    def length(self) -> int:
        """Duration of the run if nothing interrupts it."""
        if self.save < NEVER:
            return self.save + self.cost
        return self.restart + self.work + self.checkpoints * self.cost

    def after(self, passed: int) -> Kept:
        """Return what is kept if the run ends at this time after its start."""
        if passed >= self.length:
            count = self.checkpoints if self.save >= NEVER else self._complete(self.save) + 1
            return Kept(min(self.restart, self.save), self.worked(min(passed, self.save)), count, count * self.cost)
        complete = self._complete(min(passed, self.save))
        restart = min(passed, self.restart, self.save)
        return Kept(restart, complete * self.interval, complete, complete * self.cost)

    def worked(self, passed: int) -> int:
        """Return the work that is done at this time after the start, saved or not; none while it writes."""
        complete, seconds = self._complete(passed), passed - self.restart
        most = (complete + 1) * self.interval if complete < self.checkpoints else self.work
        return max(0, min(seconds - complete * self.cost, most))

    def _complete(self, passed: int) -> int:
        """Return the number of complete checkpoints."""
        if not self.checkpoints:
            return 0
        return max(0, min(self.checkpoints, (passed - self.restart) // (self.interval + self.cost)))


_LONGEST = (NEVER - 1) / MICROSECOND
_SECONDS, _LONG = Number(0, _LONGEST), Number(1 / MICROSECOND, _LONGEST)
_FIELDS = {
    "cost": _SECONDS,
    "restart": _SECONDS,
    "save_before": (_SECONDS, None),
    "mtbf": (_LONG, None),
    "interval": (_LONG, Literal["young", "daly"], None),
    "requeue_estimate": RequeueEstimate,
    "final_checkpoint": bool,
}


@dataclass(frozen=True)
class Checkpoints:
    """Checkpoints of all jobs of a run.

    Parameters
    ----------
    interval : float, {"young", "daly"} or None
        Work between two checkpoints, s: a number; by the formula of Young or Daly from the cost and the mean time
        between failures of the job's nodes; None for no checkpoints.
    cost : float
        Time to write a checkpoint, in which the job does not work, s.
    restart : float
        Time that every run after an interruption needs before it works, s.
    final_checkpoint : bool
        Whether a checkpoint is written at the end, too, if the work is a multiple of the interval.
    save_before : float, optional
        A run that cannot finish within its walltime stops working this time before it, s, saves its work, and the job
        is submitted again.
    requeue_estimate : {"original", "remaining"}
        Walltime of a later run: the same again, or what the earlier runs left of it plus the restart.
    mtbf : float, optional
        Mean time between failures of one node, s, for the two formulas; by default that of the failures of the run.

    Examples
    --------
    >>> Checkpoints("daly").interval_us(300_000_000, 86_400e6) / 1e6
    7001.0
    """

    interval: float | Literal["young", "daly"] | None = None
    cost: float = 0.0
    restart: float = 0.0
    final_checkpoint: bool = False
    save_before: float | None = None
    requeue_estimate: RequeueEstimate = "original"
    mtbf: float | None = None

    def __post_init__(self) -> None:
        check_fields(self, _FIELDS, "checkpoint")

    def interval_us(self, cost: int, mean: float, tick: int = MICROSECOND) -> int:
        """Return the work between two checkpoints of a run, whole microseconds; `NEVER` for no checkpoints.

        Parameters
        ----------
        cost : int
            Time to write a checkpoint, whole microseconds.
        mean : float
            Mean time between failures of the nodes of the run, microseconds; infinite without failures.
        tick : int
            Unit to which the formulas are rounded, half up; whole microseconds.
        """
        if self.interval is None:
            return NEVER
        if not isinstance(self.interval, str):
            return to_us(self.interval)
        if math.isinf(mean):
            return NEVER
        best = math.sqrt(2 * cost * mean)
        if self.interval == "daly":
            ratio = cost / (2 * mean)
            best = best * (1 + math.sqrt(ratio) / 3 + ratio / 9) - cost if cost < 2 * mean else mean
        return min(max(1, math.floor(best / tick + 0.5)) * tick, NEVER)

    def stretch(self, work: int, interval: int, cost: int, restart: int) -> Stretch:
        """Return a run that does *work*; all in whole microseconds."""
        if interval >= NEVER:
            return Stretch(restart, work, NEVER, cost, 0)
        count = work // interval if self.final_checkpoint else max(0, -(-work // interval) - 1)
        return Stretch(restart, work, interval, cost, count)

    def written(self) -> dict[str, Any]:
        """Return the settings that differ from the default, as JSON types."""
        return {it.name: getattr(self, it.name) for it in fields(self) if getattr(self, it.name) != it.default}


def checkpoints_from(table: Mapping[str, Any], origin: object = "the options") -> Checkpoints | None:
    """Return the checkpoints of a table ``[checkpoint]`` of a recipe, or of the options of a command; None if empty.

    Examples
    --------
    >>> checkpoints_from({"interval": "1h", "cost": "5m"})
    Checkpoints(interval=3600.0, cost=300.0, ...)
    """
    check_keys(table, tuple(it.name for it in fields(Checkpoints)), "[checkpoint]", origin)
    given = dict(table)
    for name in ("interval", "cost", "restart", "save_before", "mtbf"):
        if isinstance(value := given.get(name), str) and not (name == "interval" and value in ("young", "daly")):
            given[name] = None if (name, value) == ("interval", "none") else duration(value, f"checkpoint.{name}")
    return Checkpoints(**given) if given else None
