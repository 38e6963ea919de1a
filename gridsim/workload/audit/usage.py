"""Usage over time, and the machine it is compared with: exact steps of rows in memory, means of bins of a stream.

A job has its amount in ``[start, end)``: an end and a start in one instant do not add.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gridsim.model.capacity import Capacity
from gridsim.model.time import FloatArray, IntArray
from gridsim.workload.formats.table.mapping import TableMapping

BINS = 2048
"""Into which the time is cut where rows are too many to be kept."""

_EXCESS = 1e-9
"""Share of the capacity above 1 that is a rounding."""


class Usage(NamedTuple):
    """What was in use.

    Attributes
    ----------
    mean, peak : float
        Amounts, of ``[first, last]``; the peak is that of means of bins where it is not *exact*.
    above : float
        Share of the time in which more than the capacity is in use; NaN where that is not known.
    area : float
        Amount times s, under the step function.
    exact : bool
        Whether peak and share are.
    series : (n,) float64
        Means of `BINS` equal parts of ``[first, last]``.
    """

    mean: float
    peak: float
    above: float
    area: float
    exact: bool
    series: FloatArray


class Steps:
    """Steps of jobs that are all at hand.

    Parameters
    ----------
    start, end : (n,) float64
        When jobs hold what they have, s.
    """

    def __init__(self, start: FloatArray, end: FloatArray) -> None:
        times = np.concatenate((end, start))
        self._order = np.argsort(times, kind="stable")
        ordered = times[self._order]
        self._last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
        self._times = ordered[self._last]
        self._start, self._end = start, end

    def usage(self, amount: FloatArray, capacity: float) -> Usage:
        """Use of a resource of which each job has so much.

        Examples
        --------
        >>> steps = Steps(np.array([0.0, 0.0, 50.0]), np.array([100.0, 100.0, 150.0]))
        >>> found = steps.usage(np.array([2.0, 1.0, 2.0]), 3)
        >>> found.mean, found.peak, found.area, round(found.above, 4)
        (3.3333333333333335, 5.0, 500.0, 0.3333)
        """
        change = np.concatenate((-amount, amount))[self._order]
        used = np.cumsum(change)[self._last][:-1]
        lengths = np.diff(self._times)
        first, last = self._times[0], self._times[-1]
        area = float(used @ lengths)
        span = float(last - first)
        over = float(lengths[used > capacity * (1 + _EXCESS)].sum())
        bins = Bins(first, last)
        bins.add(self._start, self._end, amount)
        return Usage(
            mean=area / span if span else 0.0,
            peak=float(used.max(initial=0)),
            above=(over / span if span else 0.0) if np.isfinite(capacity) else np.nan,
            area=area,
            exact=True,
            series=bins.means(),
        )


@dataclass
class Bins:
    """Means of equal parts of ``[first, last]`` of jobs that pass by; no more is kept of them than that."""

    first: float
    last: float
    _area: FloatArray = field(default_factory=lambda: np.zeros(BINS + 1), init=False)
    _change: FloatArray = field(default_factory=lambda: np.zeros(BINS + 1), init=False)

    @property
    def width(self) -> float:
        """Length of a bin, s."""
        return (self.last - self.first) / BINS

    def add(self, start: FloatArray, end: FloatArray, amount: FloatArray) -> None:
        """Take jobs with their amounts."""
        if not self.width:
            return
        for times, sign in ((start, 1.0), (end, -1.0)):
            since = times - self.first
            place: IntArray = np.minimum((since / self.width).astype(np.int64), BINS - 1)
            rest = (place + 1) * self.width - since
            self._area += np.bincount(place, sign * amount * rest, minlength=BINS + 1)
            self._change += np.bincount(place + 1, sign * amount, minlength=BINS + 1)

    def areas(self) -> FloatArray:
        """Amount times s of each bin."""
        found: FloatArray = (self._area + np.cumsum(self._change) * self.width)[:BINS]
        return found

    def means(self) -> FloatArray:
        """Mean amount of each bin."""
        return self.areas() / self.width if self.width else np.zeros(BINS)

    def usage(self, capacity: float) -> Usage:
        """Use of the resource."""
        means, area = self.means(), float(self.areas().sum())
        span = self.last - self.first
        return Usage(
            mean=area / span if span else 0.0,
            peak=float(means.max()),
            above=float((means > capacity * (1 + _EXCESS)).mean()) if np.isfinite(capacity) else np.nan,
            area=area,
            exact=False,
            series=means,
        )


@dataclass(frozen=True)
class Machine:
    """Amounts by resource: ``cores``, ``memory`` (MiB), ``gpus``, ``nodes``, others.

    Attributes
    ----------
    totals : mapping of str to float
        Of all of it; what is not there is not known.
    kinds : mapping of str to float
        GPUs by kind; empty where not known.
    largest : mapping of str to float
        Most that one node has; empty where not known.
    """

    totals: Mapping[str, float] = field(default_factory=dict)
    kinds: Mapping[str, float] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of_mapping(cls, mapping: TableMapping) -> Machine:
        """What a mapping says of the machine."""
        return cls(mapping.capacity, mapping.gpu_kinds)

    @classmethod
    def of_capacities(cls, capacities: Iterable[Capacity]) -> Machine:
        """All clusters of a platform together.

        Examples
        --------
        >>> from gridsim.model.capacity import NodeGroup
        >>> nodes = [NodeGroup(group="a", count=2, capacity={"cores": 8}, gpus=4, gpu_kind="T4")]
        >>> Machine.of_capacities([Capacity.of(nodes)]).totals
        {'cores': 16.0, 'gpus': 8.0, 'nodes': 2.0}
        """
        totals: dict[str, float] = {}
        kinds: dict[str, float] = {}
        largest: dict[str, float] = {}
        for each in capacities:
            for name, column in {**each.amounts, "gpus": each.gpus}.items():
                if len(column):
                    totals[name] = totals.get(name, 0) + float(column.sum())
                    largest[name] = max(largest.get(name, 0), float(column.max()))
            for name, amount in each.pools.items():
                totals[name] = totals.get(name, 0) + float(amount)
            if each.nodes:
                totals["nodes"] = totals.get("nodes", 0) + float(len(each.nodes))
            for kind, gpus in zip(each.gpu_kind, each.gpus.tolist(), strict=True):
                if gpus:
                    kinds[kind] = kinds.get(kind, 0) + float(gpus)
        return cls(totals, kinds, largest)
