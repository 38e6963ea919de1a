"""How many jobs wait too long, and what the jobs of a run cost."""

import dataclasses

import numpy as np

__all__ = ["Electricity", "LongWaits"]


@dataclasses.dataclass
class LongWaits:
    """Share of the jobs that waited longer than *limit* seconds."""

    limit: float = 3600.0
    better = "lower"

    def measure(self, record):
        return np.mean(record.wait[record.ran] > self.limit)


@dataclasses.dataclass
class Electricity:
    """Energy at *watts* a core, at a *price* of a kWh."""

    watts: float = 8.0
    price: float = 0.3
    unit = "EUR"
    better = "lower"

    def charge(self, record):
        return np.nan_to_num(record.area) / 3.6e6 * self.watts * self.price
