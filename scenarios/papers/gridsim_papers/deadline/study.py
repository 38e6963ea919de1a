"""Rows of the deadline study, indexed by their conditions, and numbers per unit computed from them.

Comparisons are in `gridsim_papers.decisions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

from gridsim import InputError
from gridsim.registry import parse
from gridsim_papers.ledger import MARGIN
from gridsim_papers.paired import Values, combined
from gridsim_papers.verdicts import NAN

__all__ = ["Measure", "Place", "Study", "of", "over", "title"]

Scheme = tuple[str, frozenset[tuple[str, Any]]]

_USUAL = {
    "heuristic": "llf",
    "k_factor": 5,
    "relaxation": 5,
    "price": "slack",
    "hole_filling": True,
    "slack_factor": 1,
    "kill_restart": False,
}
"""Default parameters."""

_TITLES = {"qops": "QoPS", "msb": "MSB", "mrt": "MRT", "fqops": "FQoPS", "easy": "EASY"}


def title(scheme: str) -> str:
    """Name of a scheme in a sentence."""
    return _TITLES.get(scheme, scheme)


@cache
def _scheme(text: str) -> Scheme:
    """Return the normalised name of a scheme: parameters in any order, defaults given or omitted."""
    spec = parse(text)
    return spec.name, frozenset(pair for pair in spec.parameters.items() if _USUAL.get(pair[0]) != pair[1])


class Place(NamedTuple):
    """Conditions of a schedule in the study except its scheme; names as in the stored rows."""

    log: str = "ctc"
    method: str = "random-arrival"
    load: float = 1.0
    stringency: float = 0.2
    fraction: float = 1.0
    tolerance: float = 1.0
    random_tolerance: bool = False
    estimates: str = "exact"

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Place:
        """Parse the entries of a stored row, which are text or numbers."""
        load, stringency, fraction, tolerance = (
            float(row[name]) for name in ("load", "stringency", "fraction", "tolerance")
        )
        random = str(row["random_tolerance"]).lower() in ("true", "1")
        method, estimates = (str(row[name] or "") for name in ("method", "estimates"))
        return cls(str(row["log"]), method, load, stringency, fraction, tolerance, random, estimates)


_Cells = dict[tuple[Place, Scheme], dict[tuple[int, int], float]]


@dataclass(frozen=True, slots=True)
class Study:
    """Stored rows by their conditions.

    Attributes
    ----------
    cells : mapping
        By metric and group: values of each place and scheme.
    logs : mapping of str to str
        Logs that replace others.
    reading : mapping of str to str
        Schemes that replace others, where they were run.
    taken : set of str
        Replacements that were used.
    found_levels : dict
        Cached results of `levels`.
    margin : float
        Margin of the claim that is judged, from the ledger.
    """

    cells: Mapping[tuple[str, str], _Cells]
    logs: Mapping[str, str] = field(default_factory=dict)
    reading: Mapping[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    found_levels: dict[tuple[Any, ...], list[float]] = field(default_factory=dict)
    margin: float = MARGIN

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], logs: Mapping[str, str] | None = None) -> Study:
        """Index stored rows.

        Raises
        ------
        InputError
            When a number occurs twice.
        """
        cells: dict[tuple[str, str], _Cells] = {}
        for row in rows:
            of_metric = cells.setdefault((row["metric"], row["group"] or ""), {})
            values = of_metric.setdefault((Place.of_row(row), _scheme(row["scheme"])), {})
            unit = int(row["window"]), int(row["stream"])
            if unit in values:
                raise InputError(f"two values of '{row['metric']}' for window {unit[0]}, stream {unit[1]}")
            values[unit] = float(row["value"])
        return cls(cells, logs or {})

    def read_as(self, reading: Mapping[str, str]) -> Study:
        """The same rows with some schemes replaced by others."""
        return replace(self, reading=reading, taken=set())

    def values(self, metric: str, place: Place, scheme: str, group: str = "") -> Values:
        """A number of one scheme in one place.

        Raises
        ------
        InputError
            When it was not run.
        """
        place = place._replace(log=self.logs.get(place.log, place.log))
        cells = self.cells.get((metric, group), {})
        other = self.reading.get(scheme)
        if other is not None and (found := cells.get((place, _scheme(other)))) is not None:
            self.taken.add(other)
            return found
        if (found := cells.get((place, _scheme(scheme)))) is None:
            where = ", ".join(f"{name} {value}" for name, value in zip(place._fields, place, strict=True))
            raise InputError(f"no row of '{metric}'{f' of {group}' if group else ''} under '{scheme}' at {where}")
        return found

    def scan(self, metric: str, group: str = "", **where: Any) -> Iterator[tuple[Place, Scheme, Values]]:
        """Every place and scheme whose fields match *where*."""
        if "log" in where:
            where["log"] = self.logs.get(where["log"], where["log"])
        for (place, scheme), values in self.cells.get((metric, group), {}).items():
            if all(getattr(place, name) == value for name, value in where.items()):
                yield place, scheme, values

    def ran(self, place: Place, scheme: str) -> bool:
        """Return whether a scheme was run in a place."""
        place = place._replace(log=self.logs.get(place.log, place.log))
        return (place, _scheme(scheme)) in self.cells.get(("deadline_jobs", ""), {})

    def levels(self, name: str, metric: str, place: Place, scheme: str, least: float = 0.0) -> list[float]:
        """Values of one field of the place at which a scheme was run, ascending, from *least* up.

        Raises
        ------
        InputError
            When there is none.
        """
        key = name, metric, place._replace(**{name: 0}), scheme  # type: ignore[arg-type]
        if key not in self.found_levels:
            where = {field: value for field, value in place._asdict().items() if field != name}
            wanted = _scheme(scheme)
            found = {getattr(at, name) for at, ran, _ in self.scan(metric, **where) if ran == wanted}
            self.found_levels[key] = sorted(found)
        levels = [level for level in self.found_levels[key] if level >= least]
        if not levels:
            told = f"no {name} from {least:g} up with rows of '{metric}' under '{scheme}'"
            raise InputError(f"{told}; log {place.log}, method {place.method}, fraction {place.fraction:g}", field=name)
        return levels


Measure = Callable[[Study, Place, str], Values]
"""A number of each unit at a place under a scheme."""


def of(metric: str, group: str = "") -> Measure:
    """A stored metric."""
    return lambda study, place, scheme: study.values(metric, place, scheme, group)


def over(part: Measure, whole: Measure) -> Measure:
    """One number over another."""
    return lambda study, place, scheme: combined(
        lambda a, b: a / b if b else NAN, part(study, place, scheme), whole(study, place, scheme)
    )
