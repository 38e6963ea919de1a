"""Preemption: which running jobs are stopped for jobs of a higher priority class, and what happens to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from gridsim.errors import InputError, name_of
from gridsim.model.time import FloatArray, IntArray, to_us
from gridsim.model.workload import PRIORITY
from gridsim.policy.capabilities import first_of, of_ordering
from gridsim.policy.protocols import Changes, Then, ranks_of
from gridsim.policy.queue import Queue, Requests


@dataclass(frozen=True)
class _Preemption:
    victims: Literal["youngest", "least-lost", "checkpointed"] = "youngest"
    grace: float = 0.0
    max: int | None = None
    min_run: float = 0.0

    then: ClassVar[Then]

    def __post_init__(self) -> None:
        for name in ("grace", "min_run", "max"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1e11:
                raise InputError(f"is {value}; expected a number from 0 to 1e11", field=name)

    @property
    def grace_us(self) -> int:
        """Time between the decision and the stop, whole microseconds."""
        return to_us(self.grace)

    @property
    def min_run_us(self) -> int:
        """Time for which a run cannot be stopped, whole microseconds."""
        return to_us(self.min_run)


_PARAMETERS = """

    Parameters
    ----------
    victims : {"youngest", "least-lost", "checkpointed"}
        First job to stop within the lowest class: the job whose run started last, the job that would lose the fewest
        core-seconds, or the job that would lose the fewest seconds.
    grace : float
        Time between the decision and the stop, s, in which the job works on.
    max : int, optional
        Number of times that a job can be stopped; unlimited if omitted.
    min_run : float
        Time for which a run cannot be stopped after its start, s.
"""


@dataclass(frozen=True)
class Requeue(_Preemption):
    """A stopped job returns to its place in the queue, with the work that its own checkpoints saved."""

    then: ClassVar[Then] = "requeue"


@dataclass(frozen=True)
class Checkpoint(_Preemption):
    """A stopped job first writes a checkpoint and keeps all its work; without checkpoints it is queued again."""

    then: ClassVar[Then] = "checkpoint"


@dataclass(frozen=True)
class Cancel(_Preemption):
    """A stopped job is over, with the status ``preempted``."""

    then: ClassVar[Then] = "cancel"


@dataclass(frozen=True)
class Suspend(_Preemption):
    """A stopped job gives up its cores at once, keeps all else, and resumes later at the same place."""

    then: ClassVar[Then] = "suspend"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.grace:
            raise InputError("has no effect, since a job is suspended at once; leave it out", field="grace")


for _mode in (Requeue, Checkpoint, Cancel, Suspend):
    assert _mode.__doc__ is not None
    _mode.__doc__ += _PARAMETERS


def classes_of(requests: Requests) -> IntArray | None:
    """Return the priority class of each request; None if all are of one class."""
    column = requests.labels.get(PRIORITY)
    if column is None or not len(column) or (requests.spare == 0 and column.min() == column.max()):
        return None
    return column


def by_class(ordering: Any, requests: Requests) -> Any:
    """Return an ordering with higher classes first, and the given one within a class; that one if all are equal.

    Raises
    ------
    InputError
        If the ordering selects the next request without ranks.
    """
    return ordering if classes_of(requests) is None else _ByClass(ordering)


class _ByClass:
    def __init__(self, ordering: Any) -> None:
        if first_of(ordering, "rank") is None:
            message = f"is not supported with {name_of(ordering)}, which selects the next job without ranks"
            raise InputError(message, field=PRIORITY)
        self._ordering = ordering
        self.changes: Changes = "start" if of_ordering(ordering).changes == "start" else "pass"

    def rank(self, queue: Queue, now: float) -> FloatArray:
        """Return the place of each request by class and rank; equal ranks are one place."""
        level, inner = -queue.label(PRIORITY), ranks_of(self._ordering, queue, now)
        order = np.lexsort((inner, level))
        steps = np.zeros(len(order))
        steps[1:] = np.logical_or.reduce([it[order][1:] != it[order][:-1] for it in (level, inner)])
        places = np.empty(len(order))
        places[order] = np.cumsum(steps)
        return places
