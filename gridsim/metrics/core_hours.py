"""A charge by what a job held."""

from __future__ import annotations

from dataclasses import dataclass

from gridsim.metrics.charges import resource_charge
from gridsim.model.time import FloatArray
from gridsim.record import Record


@dataclass(frozen=True)
class CoreHours:
    """Cores times the hours held, at a *price* of each; work that was lost when a job was killed for another is free.

    Parameters
    ----------
    price : float
        Of one core-hour.

    Examples
    --------
    >>> CoreHours(price=0.5).charge(Record.from_rows([dict(submit=0, start=0, end=7200, cores=4)]))
    array([4.])
    """

    price: float = 1.0

    def charge(self, record: Record) -> FloatArray:
        return resource_charge(record) / 3600 * self.price
