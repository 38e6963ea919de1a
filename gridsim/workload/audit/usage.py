"""Usage over time, compared with the machine: exact steps of rows in memory, or means of bins for a stream.

A job holds its amount in ``[start, end)``: an end and a start at the same time do not add up.
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
"""Number of bins, used if there are too many rows to keep in memory."""

_EXCESS = 1e-9
"""Excess over the capacity, as a fraction, that counts as a rounding error."""


class Usage(NamedTuple):
    """Usage of a resource.

    Attributes
    ----------
    mean, peak : float
        Amounts over ``[first, last]``; without *exact*, the peak is the largest mean of a bin.
    above : float
        Share of the time in which usage exceeds the capacity; NaN if unknown.
    area : float
        Area under the step function, amount times s.
    exact : bool
        Whether *peak* and *above* are exact.
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
    """Steps of jobs that are all in memory.

    Parameters
    ----------
    start, end : (n,) float64
        Start and end of the usage of each job, s.
    """

    def __init__(self, start: FloatArray, end: FloatArray) -> None:
        times = np.concatenate((end, start))
        self._order = np.argsort(times, kind="stable")
        ordered = times[self._order]
        self._last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
        self._times = ordered[self._last]
        self._start, self._end = start, end

    def usage(self, amount: FloatArray, capacity: float) -> Usage:
        """Return the usage of a resource for the amounts of the jobs.

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
    """Means over equal parts of ``[first, last]``, accumulated from a stream of jobs that are not kept."""

    first: float
    last: float
    _area: FloatArray = field(default_factory=lambda: np.zeros(BINS + 1), init=False)
    _change: FloatArray = field(default_factory=lambda: np.zeros(BINS + 1), init=False)

    @property
    def width(self) -> float:
        """Length of a bin, s."""
        return (self.last - self.first) / BINS

    def add(self, start: FloatArray, end: FloatArray, amount: FloatArray) -> None:
        """Add jobs with their amounts."""
        if not self.width:
            return
        for times, sign in ((start, 1.0), (end, -1.0)):
            since = times - self.first
            place: IntArray = np.minimum((since / self.width).astype(np.int64), BINS - 1)
            rest = (place + 1) * self.width - since
            self._area += np.bincount(place, sign * amount * rest, minlength=BINS + 1)
            self._change += np.bincount(place + 1, sign * amount, minlength=BINS + 1)

    def areas(self) -> FloatArray:
        """Return amount times s of each bin."""
        found: FloatArray = (self._area + np.cumsum(self._change) * self.width)[:BINS]
        return found

    def means(self) -> FloatArray:
        """Return the mean amount of each bin."""
        return self.areas() / self.width if self.width else np.zeros(BINS)

    def usage(self, capacity: float) -> Usage:
        """Return the usage of the resource."""
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
        Total amounts; absent resources are unknown.
    kinds : mapping of str to float
        GPUs by type; empty if unknown.
    largest : mapping of str to float
        Largest amount of one node; empty if unknown.
    """

    totals: Mapping[str, float] = field(default_factory=dict)
    kinds: Mapping[str, float] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of_mapping(cls, mapping: TableMapping) -> Machine:
        """Return the machine that a mapping defines."""
        return cls(mapping.capacity, mapping.gpu_kinds)

    @classmethod
    def of_capacities(cls, capacities: Iterable[Capacity]) -> Machine:
        """Return the machine of all clusters of a platform together.

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
