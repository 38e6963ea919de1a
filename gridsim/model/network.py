"""Transfer times between clusters, as defined by the paper: nominal delays, which ranks and critical paths use."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

import numpy as np

from gridsim.errors import InputError
from gridsim.model.decimal_numbers import rational
from gridsim.model.time import NEVER, FloatArray, IntArray
from gridsim.schema import POSITIVE, Number, check_fields

_FIELDS = {
    "kind": Literal["ccr", "shared", "fifo"],
    "transfer_start": Literal["each", "all"],
    "transfer": Literal["ccr", "files"],
    "bandwidth": POSITIVE,
    "slots": Number(1, whole=True),
    "delay_levels_power": (Number(0, whole=True), None),
}


@dataclass(frozen=True, slots=True)
class Network:
    """Delays and links between clusters (grid spec, section 5).

    Parameters
    ----------
    kind : {"ccr", "shared", "fifo"}
        Fixed delays, links with max-min fair sharing of their capacity, or links with slots in first-come-first-served
        order.
    ccr : str
        Communication-to-computation ratio, an exact rational such as ``"1/5"``: the data volume of a task as a
        fraction of its execution time.
    delay_levels_power : int or None
        Power of the number of tree levels between two clusters by which fixed delays grow; by default they do not
        grow.
    transfer_start : {"each", "all"}
        Start of a transfer: ``each`` when its own predecessor ends, ``all`` when the last predecessor of the task
        ends.
    transfer : {"ccr", "files"}
        Source of the data volume: `ccr`, or the files of the workload divided by *bandwidth*.
    bandwidth : float
        Bytes per second of a transfer of files.
    capacity : str
        Capacity of each link and direction, an exact rational: seconds of `ccr` volume per second (``shared``).
    slots : int
        Number of simultaneous transfers on each link and direction (``fifo``).
    transfer_rate_cap : str
        Largest rate of one transfer (``shared``).
    """

    kind: Literal["ccr", "shared", "fifo"] = "ccr"
    ccr: str = "0"
    delay_levels_power: int | None = None
    transfer_start: Literal["each", "all"] = "each"
    transfer: Literal["ccr", "files"] = "ccr"
    bandwidth: float = 125_000_000.0
    capacity: str = "1"
    slots: int = 1
    transfer_rate_cap: str = "1"
    _ratio: Fraction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("ccr", "capacity", "transfer_rate_cap"):
            value = getattr(self, name)
            try:
                number = rational(str(value))
            except (ValueError, ZeroDivisionError) as error:
                raise InputError(f"'{value}' is not a rational number such as 1/5", field=name) from error
            if number < 0 or (number == 0 and name != "ccr"):
                raise InputError(f"{value}; expected a number above 0", field=name)
        check_fields(self, _FIELDS)
        object.__setattr__(self, "_ratio", Fraction(str(self.ccr)))

    @property
    def free(self) -> bool:
        """Return whether transfers take no time."""
        return self.transfer == "ccr" and self._ratio == 0

    def volume(self, runtime: int, bytes_sent: float | None, tick: int) -> Fraction:
        """Return the volume of a transfer in ticks of an idle link: `ccr` times run time, or bytes / bandwidth."""
        if self.transfer == "files":
            return Fraction(bytes_sent or 0.0) / Fraction(self.bandwidth) * 1_000_000 / tick
        return self._ratio * runtime / tick

    def delay(self, runtime: int, levels: int, tick: int, bytes_sent: float | None = None) -> int:
        """Return the delay between two clusters, whole microseconds: the volume, rounded up once to whole ticks.

        Parameters
        ----------
        runtime : int
            Execution time of the sending task, whole microseconds.
        levels : int
            Levels of the tree between the clusters; 0 for the same cluster.
        tick : int
            Length of a tick, whole microseconds.
        """
        if not levels:
            return 0
        power = levels**self.delay_levels_power if self.delay_levels_power is not None else 1
        if self.transfer == "ccr":
            return -(-self._ratio.numerator * runtime * power // (self._ratio.denominator * tick)) * tick
        ticks = self.volume(runtime, bytes_sent, tick) * power
        return -(-ticks.numerator // ticks.denominator) * tick

    def delays(self, runtime: IntArray, levels: int, tick: int, sent: FloatArray | None = None) -> IntArray:
        """Return the delays of many tasks or edges.

        Parameters
        ----------
        runtime : (n,) int64
            Execution times, whole microseconds.
        sent : (n,) float64, optional
            Bytes sent, if the network counts them.
        """
        if self.transfer == "files":
            volumes = [None] * len(runtime) if sent is None else sent.tolist()
            pairs = zip(runtime.tolist(), volumes, strict=True)
            return np.array([self.delay(one, levels, tick, much) for one, much in pairs], dtype=np.int64)
        power = levels**self.delay_levels_power if levels and self.delay_levels_power is not None else min(levels, 1)
        by, of = self._ratio.numerator * power, self._ratio.denominator * tick
        if max(by, 1) * int(runtime.max(initial=0)) < NEVER and of < NEVER:
            return -(-by * runtime // of) * tick
        return np.array([self.delay(one, levels, tick) for one in runtime.tolist()], dtype=np.int64)
