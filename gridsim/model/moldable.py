"""Moldable jobs as columns: ranges of cores, and run times on each number of cores in the range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gridsim.errors import InputError, check_rows
from gridsim.model.speedup import Speedup, useful_maximum, work
from gridsim.model.time import MICROSECOND, FloatArray, IntArray
from gridsim.tables import with_rows


@dataclass(frozen=True, slots=True, eq=False)
class Moldable:
    """Ranges of cores and relative run times of the jobs of a workload, one row per job or per task of DAG jobs.

    Attributes
    ----------
    minimum, maximum : (n,) int64
        Range of cores, ``1 <= minimum <= maximum``; more cores than the maximum do not make the job faster. The
        requested number may be outside the range.
    curve : (n,) int64
        Number of the curve of relative run times.
    first : (c + 1,) int64
        Curve ``i`` is ``relative[first[i]:first[i + 1]]``.
    relative : (k,) float64
        Relative run times on 1, 2, 3, … cores of each curve, one curve after the other. Each curve extends to the
        maximum and to the request of all its jobs.
    weight : (n,) float64
        Effective sequential run time divided by the estimate: the speedup on the requested cores. For measured tables,
        the work on the minimum divided by the run time on the requested cores.
    size_first : (n + 1,) int64 or None
        The core counts of row ``i`` are ``sizes[size_first[i]:size_first[i + 1]]``; a row without any can use its
        whole range. None: no job lists core counts.
    sizes : (m,) int64 or None
        Core counts that jobs can use, ascending; the first is the minimum, the last the maximum of the row.

    References
    ----------
    Sections 2 and 7 of the project's specification of moldable jobs.
    """

    minimum: IntArray
    maximum: IntArray
    curve: IntArray
    first: IntArray
    relative: FloatArray
    weight: FloatArray
    size_first: IntArray | None = None
    sizes: IntArray | None = None

    def __repr__(self) -> str:
        return f"<Moldable: ranges of {len(self.minimum):,} rows, {len(self.first) - 1:,} curves>"

    @classmethod
    def of(
        cls,
        cores: Any,
        minimum: Any,
        maximum: Any,
        speedups: Sequence[Speedup],
        curve: Any = 0,
        *,
        sizes: Sequence[Any] | None = None,
        names: Any = None,
    ) -> Moldable:
        """Return ranges limited to useful core counts, with the curves that they need.

        Parameters
        ----------
        cores : (n,) array_like of int
            Requested cores of each row, to which its run time and estimate apply.
        minimum, maximum : (n,) array_like of int
            Range of cores; a single number applies to all rows.
        speedups : sequence of Speedup
            Distinct speedup laws.
        curve : (n,) array_like of int
            Index of the law of each row.
        sizes : (n,) sequence of array_like, optional
            Core counts that each row can use instead of its whole range; empty for a row that can use all.
        names : (n,) array_like of int, optional
            Job numbers, for errors.

        Raises
        ------
        InputError
            For an empty range, a range that begins below one core, and a law without a run time; with the job.

        Examples
        --------
        >>> from gridsim.model.speedup import Downey
        >>> jobs = Moldable.of([4, 2], [1, 2], [16, 8], [Downey(parallelism=4, sigma=1)])
        >>> jobs.maximum, jobs.weight.round(3)
        (array([7, 7]), array([2.909, 1.778]))
        """
        requested = np.asarray(cores, dtype=np.int64)
        shape = requested.shape
        low, high, which = (
            np.broadcast_to(np.asarray(c, dtype=np.int64), shape).copy() for c in (minimum, maximum, curve)
        )
        _check_ranges(low, high, np.arange(1, len(low) + 1) if names is None else names)
        reach = np.zeros(len(speedups), dtype=np.int64)
        np.maximum.at(reach, which, np.maximum(high, requested))
        curves = [_curve(law, int(length)) for law, length in zip(speedups, reach, strict=True)]
        weight = np.ones(shape)
        order = np.argsort(which, kind="stable")
        ends = np.searchsorted(which[order], np.arange(len(speedups) + 1))
        for number, (law, known) in enumerate(zip(speedups, curves, strict=True)):
            rows = order[ends[number] : ends[number + 1]]
            if not len(rows):
                continue
            high[rows] = np.maximum(low[rows], useful_maximum(known)[high[rows] - 1])
            weight[rows] = work(law, low[rows]) / known[requested[rows] - 1]
        made = cls(
            minimum=low,
            maximum=high,
            curve=which,
            first=np.concatenate([[0], np.cumsum(reach)]).astype(np.int64),
            relative=np.concatenate(curves) if curves else np.zeros(0),
            weight=weight,
        )
        return made if sizes is None else made._with_sizes(sizes)

    def _with_sizes(self, sizes: Sequence[Any]) -> Moldable:
        """Return the same rows with the *sizes* that are in their ranges; the ranges end at the largest."""
        kept = []
        maximum = self.maximum.copy()
        for row, named in enumerate(sizes):
            inside = np.unique(np.asarray(named, dtype=np.int64))
            inside = inside[(inside >= self.minimum[row]) & (inside <= maximum[row])]
            kept.append(inside)
            if len(inside):
                maximum[row] = inside[-1]
        first = np.concatenate([[0], np.cumsum([len(inside) for inside in kept])]).astype(np.int64)
        together = np.concatenate([np.zeros(0, dtype=np.int64), *kept])
        return Moldable(self.minimum, maximum, self.curve, self.first, self.relative, self.weight, first, together)

    def check(self, cores: IntArray, names: IntArray) -> None:
        """Raise `InputError` for the first invalid row.

        Parameters
        ----------
        cores : (n,) int64
            Requested cores of each row.
        names : (n,) int64
            Job numbers, for the error.
        """
        for name in ("minimum", "maximum", "curve", "weight"):
            if len(getattr(self, name)) != len(cores):
                rows = len(getattr(self, name))
                raise InputError(f"the column has {rows} rows, but the workload has {len(cores)} requests", field=name)
        _check_ranges(self.minimum, self.maximum, names)
        length = np.diff(self.first)[self.curve]
        values = {"relative": length, "weight": self.weight}
        check_rows(
            lambda name, row: f"job {names[row]} has {values[name][row]:g}",
            ("relative", length < np.maximum(self.maximum, cores), "run times up to its largest number of cores"),
            ("weight", ~(self.weight > 0) | ~np.isfinite(self.weight), "a weight above 0"),
        )

    def select(self, rows: Any) -> Moldable:
        """Return the *rows* (mask, slice or indices), in that order, with all curves."""
        first, sizes = self.size_first, self.sizes
        if first is not None and sizes is not None:
            chosen = np.arange(len(self))[rows]
            parts = [sizes[first[row] : first[row + 1]] for row in chosen]
            first = np.concatenate([[0], np.cumsum(np.diff(first)[chosen])]).astype(np.int64)
            sizes = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
        return with_rows(self, rows, "minimum", "maximum", "curve", "weight", size_first=first, sizes=sizes)

    def with_rigid(self, cores: int) -> Moldable:
        """Return the columns with one more row, for a rigid job of *cores* cores.

        Examples
        --------
        >>> from gridsim.model.speedup import Linear
        >>> Moldable.of([4], [1], [8], [Linear()]).with_rigid(3).maximum
        array([8, 3])
        """
        first, sizes = self.size_first, self.sizes
        return Moldable(
            minimum=np.append(self.minimum, cores),
            maximum=np.append(self.maximum, cores),
            curve=np.append(self.curve, len(self.first) - 1),
            first=np.append(self.first, self.first[-1] + cores),
            relative=np.append(self.relative, 1 / np.arange(1, cores + 1)),
            weight=np.append(self.weight, cores),
            size_first=None if first is None else np.append(first, first[-1]),
            sizes=sizes,
        )

    @classmethod
    def rigid(cls, cores: IntArray) -> Moldable:
        """Return the columns of rigid jobs, which run on their requested cores.

        Examples
        --------
        >>> Moldable.rigid(np.array([4, 2])).weight
        array([4., 2.])
        """
        widest = int(cores.max(initial=1))
        first = np.array([0, widest], dtype=np.int64)
        relative = 1 / np.arange(1, widest + 1)
        return cls(cores.copy(), cores.copy(), np.zeros_like(cores), first, relative, cores.astype(np.float64))

    def with_spare_rows(self, spare: int) -> Moldable:
        """Return the columns with *spare* spare one-core rows for `take`, and as many spare curves without entries."""
        ones, n = np.ones(spare, dtype=np.int64), len(self)
        first, sizes = self.size_first, self.sizes
        if first is None or sizes is None:
            first, sizes = np.zeros(n + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
        return Moldable(
            minimum=np.append(self.minimum, ones),
            maximum=np.append(self.maximum, ones),
            curve=np.append(self.curve, (len(self.first) - 1) * ones),
            first=np.append(self.first, (self.first[-1] + 1) * np.ones(spare + 1, dtype=np.int64)),
            relative=np.append(self.relative, 1.0),
            weight=np.append(self.weight, ones),
            size_first=np.append(first, first[-1] * ones),
            sizes=sizes.copy(),
        )

    def take(self, row: int, one: Moldable) -> Moldable:
        """Replace the first spare row reserved by `with_spare_rows` by the only row of *one*.

        Columns are overwritten. Full columns are reallocated at twice their length; entries after the last curve and
        the last core count are unused.
        """
        first, sizes, size_first = self.first, self.sizes, self.size_first
        assert size_first is not None
        assert sizes is not None
        self.minimum[row], self.maximum[row], self.weight[row] = one.minimum[0], one.maximum[0], one.weight[0]
        begin, end = one.first[one.curve[0] : one.curve[0] + 2].tolist()
        number = self.curve[row] = len(first) - 1 - (len(self) - row)
        relative = _written(self.relative, int(first[number]), one.relative[begin:end])
        first[number + 1 :] += end - begin
        if one.sizes is not None:
            sizes = _written(sizes, int(size_first[row]), one.sizes)
            size_first[row + 1 :] += len(one.sizes)
        return replace(self, relative=relative, sizes=sizes)

    @property
    def trimmed(self) -> Moldable:
        """Return the same rows without unused entries, and without core counts if no row lists any."""
        first, sizes = self.size_first, self.sizes
        used = 0 if first is None else int(first[-1])
        named = (first, sizes[:used]) if used and sizes is not None else (None, None)
        return replace(self, relative=self.relative[: self.first[-1]], size_first=named[0], sizes=named[1])

    @property
    def least(self) -> IntArray:
        """Smallest core count of each row: its minimum, or the first core count that it lists."""
        first, sizes = self.size_first, self.sizes
        if first is None or sizes is None:
            return self.minimum
        least, names = self.minimum.copy(), first[:-1] < first[1:]
        least[names] = sizes[first[:-1][names]]
        return least

    def times_on(self, given: Any, times: IntArray, requested: IntArray) -> IntArray:
        """Convert *times* of all rows on the *requested* cores to the *given* cores.

        Parameters
        ----------
        given : (n,) array_like of int
            Number of cores; a single number applies to all rows.
        times : (n,) int64
            Run times or estimates on the requested cores, whole microseconds.
        requested : (n,) int64
            Requested cores.

        Returns
        -------
        (n,) int64
            Whole microseconds, at least one; on the requested cores exactly the *times*.
        """
        begin = self.first[self.curve] - 1
        ratio = self.relative[begin + np.asarray(given)] / self.relative[begin + requested]
        scaled: IntArray = np.maximum(np.rint(times * ratio).astype(np.int64), 1)
        return scaled

    def time_on(self, row: int, given: int, time: int, requested: int) -> int:
        """Convert *time* of one row on the *requested* cores to the *given* ones, as `times_on`; whole microseconds."""
        if given == requested:
            return time
        begin = self.first[self.curve[row]] - 1
        return max(1, int(np.rint(time * self.relative[begin + given] / self.relative[begin + requested])))

    def sequential(self, estimate: IntArray) -> FloatArray:
        """Return the effective sequential run time of all rows, s, from their *estimate* (whole microseconds)."""
        return estimate * self.weight / MICROSECOND

    def __len__(self) -> int:
        return len(self.minimum)


def _written(column: Any, at: int, values: Any) -> Any:
    """Return the column with new values from an index on, extended if necessary."""
    end = at + len(values)
    if end > len(column):
        column = np.append(column, np.zeros(end, dtype=column.dtype))
    column[at:end] = values
    return column


def _curve(law: Speedup, length: int) -> FloatArray:
    """Return relative run times on 1 to *length* cores.

    Raises
    ------
    InputError
        If the law has no valid run time.
    """
    relative = np.asarray(law.relative(np.arange(1, length + 1)), dtype=np.float64)
    if relative.shape != (length,):
        raise InputError(
            f"{law!r} gives {relative.shape} runtimes on 1 to {length} cores; expected one each", field="speedup"
        )
    bad = ~(relative > 0) | ~np.isfinite(relative)
    if bad.any():
        cores = int(np.argmax(bad)) + 1
        raise InputError(
            f"{law!r} has a run time of {relative[cores - 1]} on {cores} cores; expected more than 0 s", field="speedup"
        )
    return relative


def _check_ranges(minimum: IntArray, maximum: IntArray, names: IntArray) -> None:
    check_rows(
        lambda _, row: f"job {names[row]} has the range {minimum[row]} to {maximum[row]}",
        ("minimum", minimum < 1, "at least 1 core"),
        ("maximum", maximum < minimum, "a maximum of at least the minimum"),
    )


def weight_bounds(count: int = 10, first: float = 100.0, ratio: float = 3.0) -> FloatArray:
    """Return the largest weight of each category but the last, core-seconds: a geometric series from *first*.

    Raises
    ------
    InputError
        For values that do not give ascending bounds.

    References
    ----------
    Section 5.2 of the project's specification of moldable jobs.

    Examples
    --------
    >>> weight_bounds(count=4)
    array([100., 300., 900.])
    """
    for name, value, good, rule in (
        ("count", count, 1 <= count <= 1000, "1 to 1,000"),
        ("first", first, 0 < first < np.inf, "a weight above 0"),
        ("ratio", ratio, 1 < ratio < np.inf, "above 1"),
    ):
        if not good:
            raise InputError(f"is {value}; expected {rule}", field=name)
    return np.asarray(first * float(ratio) ** np.arange(count - 1), dtype=np.float64)


def weight_category(weight: Any, bounds: FloatArray) -> IntArray:
    """Return the category of each *weight*, from 1; a bound belongs to the lower category.

    Examples
    --------
    >>> weight_category([100, 100.001, 1e9], weight_bounds(count=4))
    array([1, 2, 4])
    """
    # Products of floats can slightly exceed the bound that they are equal to.
    return np.searchsorted(bounds * (1 + 1e-12), np.asarray(weight, dtype=np.float64), side="left") + 1
