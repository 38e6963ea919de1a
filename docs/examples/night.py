"""Only what is submitted at night."""

import dataclasses

__all__ = ["NightOnly"]


@dataclasses.dataclass
class NightOnly:
    """Jobs submitted from hour *begin* to hour *end* of a day that starts with second 0 of the log."""

    begin: float = 20.0
    end: float = 6.0

    def apply(self, workload, rng):
        hour = workload.submit / 3.6e9 % 24
        return workload.select((hour >= self.begin) | (hour < self.end))
