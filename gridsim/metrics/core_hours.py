"""Charge by core-hours."""

from __future__ import annotations

from dataclasses import dataclass

from gridsim.metrics.charges import resource_charge
from gridsim.model.time import FloatArray
from gridsim.record import Record


@dataclass(frozen=True)
class CoreHours:
    """Core-hours held by a job, times *price*; work lost by preemption is not charged.

    Parameters
    ----------
    price : float
        Price of one core-hour.

    Examples
    --------
    >>> CoreHours(price=0.5).charge(Record.from_rows([dict(submit=0, start=0, end=7200, cores=4)]))
    array([4.])
    """

    price: float = 1.0

    def charge(self, record: Record) -> FloatArray:
        return resource_charge(record) / 3600 * self.price
