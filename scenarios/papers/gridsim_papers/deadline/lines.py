"""Lines of the figures on guaranteed deadlines: means and intervals that recipes request, from stored rows.

Rows are those of the study: ``log``, ``window``, ``stream``, ``method``, ``load``, ``stringency``, ``fraction``,
``tolerance``, ``random_tolerance``, ``estimates``, ``scheme``, ``metric``, ``group``, ``value``. This module draws and
simulates nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit  # importing scipy.stats takes a second

from gridsim import InputError
from gridsim.registry import Spec, parse
from gridsim_papers.deadline.recipes import CONDITIONS, RATIOS, Conditions, Panel, readers

__all__ = ["Line", "Mean", "Point", "StoredRows", "gaps", "lines_of", "mean_of_windows", "written"]

Condition = tuple[Any, ...]
Replicate = tuple[int, int]


class Mean(NamedTuple):
    """A mean over windows with its interval (NaN for a single one), windows, and the most streams of a window."""

    mean: float
    low: float
    high: float
    windows: int
    streams: int


class Point(NamedTuple):
    """The place of a point along its line, and the drawn values."""

    place: Any
    x: Mean
    y: Mean


class Line(NamedTuple):
    """Points of one value of the condition that distinguishes lines, in order of their places."""

    value: Any
    points: tuple[Point, ...]


class StoredRows:
    """Numbers of all jobs, by metric and condition.

    Parameters
    ----------
    rows : iterable of mapping
        Rows of the study; those of groups of jobs are ignored.
    usual : mapping
        Conditions of recipes that need no mention. Parameters of schemes among them become separate conditions:
        ``fqops?slack_factor=2`` is the scheme ``fqops`` with a slack factor of 2.
    conditions : mapping
        Columns that describe a run; with ``group`` among them, rows of groups are kept.

    Raises
    ------
    InputError
        When two rows give one metric of one run different values.
    """

    def __init__(
        self, rows: Iterable[Mapping[str, Any]], usual: Mapping[str, Any], conditions: Conditions = CONDITIONS
    ) -> None:
        columns = readers(usual, conditions)
        self.columns, self.usual = tuple(columns), usual
        self._cells: dict[str, dict[Condition, dict[Replicate, float]]] = {}
        parameters = {name: usual[name] for name in columns if name not in conditions}
        for row in rows:
            if row["group"] and "group" not in conditions:
                continue
            scheme, given = _split(row["scheme"])
            rest = {name: value for name, value in given.items() if name not in parameters}
            own: dict[str, Any] = {**parameters, **given, "scheme": str(Spec(scheme, rest))}
            condition = tuple(read(own[name] if name in own else row[name]) for name, read in columns.items())
            cell = self._cells.setdefault(row["metric"], {}).setdefault(condition, {})
            replicate, value = (int(row["window"]), int(row.get("stream", 0))), float(row["value"])
            before = cell.setdefault(replicate, value)
            if before != value and not (math.isnan(before) and math.isnan(value)):
                run = ", ".join(map(str, condition))
                raise InputError(
                    f"there are two values of '{row['metric']}', {before:g} and {value:g}, for window {replicate[0]}, "
                    f"stream {replicate[1]} of {run}; expected one",
                    field="value",
                )

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics with rows."""
        return tuple(self._cells)

    def values(self, metric: str, where: Mapping[str, Any], *by: str) -> dict[Condition, dict[Replicate, float]]:
        """Values of the runs that match *where*, for each value of the conditions *by*.

        Raises
        ------
        InputError
            When matching runs differ in a condition that is neither in *where* nor in *by*.
        """
        if metric in RATIOS and metric not in self._cells:
            return self._ratio(metric, where, *by)
        places = [(self.columns.index(name), value) for name, value in where.items()]
        asked = [self.columns.index(name) for name in by]
        found: dict[Condition, dict[Replicate, float]] = {}
        seen: dict[Condition, Condition] = {}
        for condition, cell in self._cells.get(metric, {}).items():
            if all(_same(condition[place], value) for place, value in places):
                key = tuple(condition[place] for place in asked)
                other = seen.setdefault(key, condition)
                if other != condition:
                    self._say_ambiguous(metric, other, condition)
                found[key] = cell
        return found

    def _ratio(self, metric: str, where: Mapping[str, Any], *by: str) -> dict[Condition, dict[Replicate, float]]:
        part, whole, _ = RATIOS[metric]
        parts, wholes = self.values(part, where, *by), self.values(whole, where, *by)
        return {
            key: {one: 1 - parts[key][one] / cell[one] for one in parts[key] if cell.get(one)}
            for key, cell in wholes.items()
            if key in parts
        }

    def _say_ambiguous(self, metric: str, one: Condition, other: Condition) -> None:
        differ = [name for name, mine, theirs in zip(self.columns, one, other, strict=True) if mine != theirs]
        raise InputError(
            f"rows of '{metric}' differ in {', '.join(differ)}; the recipe must say which to take", field=differ[0]
        )


@lru_cache(maxsize=4096)
def _split(scheme: str) -> tuple[str, dict[str, Any]]:
    spec = parse(scheme)
    return spec.name, spec.parameters


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, abs_tol=1e-12)
    return bool(one == other)


def lines_of(name: str, panel: Panel, stored: StoredRows) -> list[Line]:
    """Lines of a panel; a line without rows has no points.

    Parameters
    ----------
    name : str
        Name of the figure, for the error.

    Raises
    ------
    InputError
        When no line has rows; the message contains the figure and the experiment to run.
    """
    found = stored.values(panel.y, panel.where, panel.lines, panel.along)
    attached = found if panel.x == panel.along else stored.values(panel.x, panel.where, panel.lines, panel.along)
    values = panel.values or tuple(sorted({value for value, _ in found}))
    lines = [Line(value, tuple(_points(value, panel, found, attached))) for value in values]
    if not any(line.points for line in lines):
        raise InputError(
            f"{name} has no rows of '{panel.y}'"
            + (f" and '{panel.x}'" if attached is not found else "")
            + f" with {written(panel.where, stored.usual)}; run the experiment {panel.experiment}"
        )
    return lines


def _points(
    value: Any,
    panel: Panel,
    found: Mapping[Condition, Mapping[Replicate, float]],
    attached: Mapping[Condition, Mapping[Replicate, float]],
) -> Iterable[Point]:
    for own, place in sorted(key for key in found if _same(key[0], value)):
        if panel.places and not any(_same(place, wanted) for wanted in panel.places):
            continue
        heights, widths = found[own, place], attached.get((own, place), {})
        both = [one for one in heights if math.isfinite(heights[one]) and math.isfinite(widths.get(one, math.nan))]
        if both:
            y = mean_of_windows({one: heights[one] for one in both})
            fixed = panel.x == panel.along
            x = Mean(place, place, place, *y[3:]) if fixed else mean_of_windows({one: widths[one] for one in both})
            yield Point(place, x, y)


def mean_of_windows(values: Mapping[Replicate, float], confidence: float = 0.95) -> Mean:
    """Mean over windows of the mean over the streams of each, with Student's interval.

    Parameters
    ----------
    values : mapping of (window, stream) to float
        One finite value per run.

    Notes
    -----
    Streams of one window duplicate the same jobs and are not independent, so the interval is that of the means of
    windows. For a single window, the interval is that of its streams. It then covers other draws of the duplicates,
    but not other windows.

    Examples
    --------
    >>> mean_of_windows({(0, 0): 1.0, (1, 0): 2.0, (2, 0): 3.0}).high
    4.484...
    """
    windows: dict[int, list[float]] = {}
    for (window, _), value in values.items():
        windows.setdefault(window, []).append(value)
    means = [float(np.mean(own)) for own in windows.values()]
    runs = np.array(means if len(means) > 1 else list(values.values()))
    mean, half = float(np.mean(means)), math.nan
    if len(runs) > 1:
        half = float(stdtrit(len(runs) - 1, (1 + confidence) / 2)) * float(runs.std(ddof=1)) / math.sqrt(len(runs))
    return Mean(mean, mean - half, mean + half, len(windows), max(map(len, windows.values())))


def gaps(lines: Sequence[Line]) -> list[tuple[Any, list[Any]]]:
    """Lines that lack points of others: the value and the missing places of each, without places for a missing line."""
    places = sorted({point.place for line in lines for point in line.points})
    there = [(line.value, {point.place for point in line.points}) for line in lines]
    return [(value, [it for it in places if it not in own] if own else []) for value, own in there if own < {*places}]


def written(where: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """Conditions in the form of a recipe, without the usual ones."""
    told = {name: value for name, value in where.items() if name not in usual or not _same(value, usual[name])}
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in told.items()
    )
