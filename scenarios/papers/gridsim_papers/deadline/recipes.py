"""Recipes of the figures on guaranteed deadlines, read from a file.

`lines` finds their lines among stored rows, and `figures` draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gridsim import InputError
from gridsim.errors import UnknownNameError
from gridsim.files import read_toml
from gridsim.metrics.summary import DEADLINE_METRICS, METRICS, Metric

__all__ = [
    "CONDITIONS",
    "RATIOS",
    "Conditions",
    "Panel",
    "Recipe",
    "figure_name",
    "metric_of",
    "read_recipes",
    "readers",
]

Conditions = Mapping[str, Callable[[Any], Any]]
"""Columns of rows that describe a run, and the parsers of their values."""

CONDITIONS: Conditions = {
    "log": str,
    "method": str,
    "load": float,
    "stringency": float,
    "fraction": float,
    "tolerance": float,
    "random_tolerance": lambda value: str(value).lower() in ("true", "1"),
    "estimates": str,
    "scheme": str,
}
"""Columns of the deadline studies; parameters of schemes are added to them."""

RATIOS: Mapping[str, tuple[str, str, Metric]] = {
    "promises_kept_share": (
        "promises_broken",
        "promises_made",
        Metric("", "higher", "promises kept over promises made"),
    ),
}
"""Shares that no run stores: 1 - first / second of each run, not of means, with a description."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes.

    Attributes
    ----------
    where : mapping
        Conditions of all rows of the panel.
    lines : str
        Condition that distinguishes the lines.
    values : tuple
        Values of that condition, in the order of the lines; empty for all values.
    x : str
        Condition, or metric.
    along : str
        Condition that distinguishes and orders the points of a line: x, or the load.
    places : tuple
        Drawn values of that condition; empty for all values.
    y : str
        Metric.
    experiment : str
        Experiment to run for the rows.
    against : str
        Scheme that y is compared with; empty for y itself.
    """

    where: Mapping[str, Any]
    lines: str
    values: tuple[Any, ...]
    x: str
    along: str
    places: tuple[Any, ...]
    y: str
    experiment: str
    against: str = ""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One figure.

    Attributes
    ----------
    name : str
        Paper and number, such as ``TR-F04``.
    source, title : str
        Source of the figure, and its title.
    panels : tuple of Panel
        Empty for pseudo-code.
    golden : tuple of str
        Golden cases that check the pseudo-code.
    usual : mapping
        Conditions that need no mention.
    """

    name: str
    source: str
    title: str
    panels: tuple[Panel, ...]
    golden: tuple[str, ...]
    usual: Mapping[str, Any]

    @property
    def paper(self) -> str:
        """Short name of the paper."""
        return self.name.partition("-")[0]

    def of_log(self, log: str) -> Recipe:
        """The same figure from rows of another log."""
        return replace(self, panels=tuple(_of_log(panel, log) for panel in self.panels))

    def standing_in(self, logs: Mapping[str, str]) -> Recipe:
        """The same panel with some logs replaced by others."""
        return replace(self, panels=tuple(_of_log(panel, logs.get(_log_of(panel), "")) for panel in self.panels))


def _log_of(panel: Panel) -> str:
    return str(panel.where["log"])


def _of_log(panel: Panel, log: str) -> Panel:
    if not log:
        return panel
    experiment = panel.experiment.replace(f"-{panel.where['log']}-", f"-{log}-")
    return replace(panel, where={**panel.where, "log": log}, experiment=experiment)


_AXES = ("x", "places", "y", "lines", "values", "experiment", "against")
_ENTRY = ("title", "source", "kind", "like", "golden", "panels", *_AXES)


def read_recipes(path: str | Path, conditions: Conditions = CONDITIONS) -> dict[str, Recipe]:
    """Figures of a file by name, in file order.

    Parameters
    ----------
    conditions : mapping
        Columns of the rows that the figures are drawn from.

    Raises
    ------
    UnknownNameError
        For an unknown key, kind, experiment, metric or figure.
    InputError
        When a figure lacks an axis, a title, or both panels and golden cases.
    """
    book = read_toml(path)
    tables = {name: book.get(name, {}) for name in ("usual", "experiment", "kind", "paper")}
    tables["conditions"] = conditions
    entries = {
        figure_name(paper, number): (source, entry)
        for paper, source in tables["paper"].items()
        for number, entry in book.get(paper, {}).items()
    }
    return {name: _recipe(name, entries, tables, Path(path)) for name in entries}


def figure_name(paper: str, number: str) -> str:
    """Name of a figure.

    Examples
    --------
    >>> figure_name("TR", "4"), figure_name("TR", "C23")
    ('TR-F04', 'TR-C23')
    """
    return f"{paper}-F{int(number):02d}" if number.isdigit() else f"{paper}-{number}"


def _recipe(
    name: str, entries: Mapping[str, tuple[str, Mapping[str, Any]]], tables: Mapping[str, Mapping[str, Any]], path: Path
) -> Recipe:
    source, entry = entries[name]
    if "like" in entry:
        entry = {**_looked_up("figure", entry["like"], entries)[1], **entry}
    kind = _looked_up("kind of figure", entry["kind"], tables["kind"]) if "kind" in entry else {}
    entry = {**kind, **entry}
    known = (*_ENTRY, *tables["conditions"], *tables["usual"])
    for key in (*entry, *(key for panel in entry.get("panels", ()) for key in panel)):
        if key not in known:
            raise UnknownNameError(f"key of {name} in {path.name}", key, known)
    if "title" not in entry:
        raise InputError(f"{name} has no title", path=path, field="title")
    panels = () if "golden" in entry else tuple(_panel(name, {**entry, **it}, tables) for it in entry.get("panels", ()))
    if not panels and "golden" not in entry:
        raise InputError(f"{name} has neither panels nor golden cases", path=path, field="panels")
    return Recipe(
        name, entry.get("source", source), entry["title"], panels, tuple(entry.get("golden", ())), tables["usual"]
    )


def _panel(name: str, entry: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> Panel:
    experiment = _looked_up("experiment", entry.get("experiment", ""), tables["experiment"])
    entry = {**tables["usual"], **experiment, **entry}
    for key in ("x", "y", "lines"):
        if key not in entry:
            raise InputError(f"{name} does not say what is its {key}", field=key)
    read_as = readers(tables["usual"], tables["conditions"])
    for metric in (entry["y"], *([] if entry["x"] in read_as else [entry["x"]])):
        metric_of(metric)
    along = entry["x"] if entry["x"] in read_as else "load"
    if entry["lines"] not in read_as or entry["lines"] == along:
        raise InputError(f"{name} has the lines '{entry['lines']}'; expected a condition other than x", field="lines")
    where = {
        key: read(entry[key]) for key, read in read_as.items() if key in entry and key not in (entry["lines"], along)
    }
    values = tuple(read_as[entry["lines"]](value) for value in entry.get("values", ()))
    places = tuple(read_as[along](place) for place in entry.get("places", ()))
    axes = (where, entry["lines"], values, entry["x"], along, places, entry["y"])
    return Panel(*axes, entry["experiment"], entry.get("against", ""))


def _looked_up(kind: str, name: str, table: Mapping[str, Any]) -> Any:
    if name not in table:
        raise UnknownNameError(kind, name, table)
    return table[name]


def _metrics() -> dict[str, Metric]:
    return METRICS | DEADLINE_METRICS | {name: metric for name, (_, _, metric) in RATIOS.items()}


def metric_of(name: str) -> Metric:
    """Description of a metric, which is stored or a ratio of two."""
    known = _metrics()
    if name not in known:
        raise UnknownNameError("metric", name, known)
    return known[name]


def readers(usual: Mapping[str, Any], conditions: Conditions = CONDITIONS) -> dict[str, Callable[[Any], Any]]:
    """Conditions with their parsers: columns of rows, then parameters of schemes with a usual value."""
    return {**conditions, **{name: type(value) for name, value in usual.items() if name not in conditions}}
