"""User-selected metrics and charges: classes of plain files or packages, or metrics of gridsim by name.

A *metric* is a class with ``measure(record) -> float``, a *charge* one with ``charge(record) -> (n,) float64``, the
charge of each job; its total is their sum. The record contains the counted jobs. Both may define their ``unit`` (empty
by default), and the direction of ``better`` values: ``"lower"``, ``"higher"`` or None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from gridsim import registry
from gridsim.errors import InputError, UnknownNameError, call
from gridsim.model.time import FloatArray
from gridsim.record import Record


class Metric(NamedTuple):
    """Description of a metric:

    *unit* (empty for counts and ratios), direction of *better* values, one line of text.
    """

    unit: str
    better: Literal["lower", "higher"] | None
    description: str


@dataclass(frozen=True, slots=True)
class Measure:
    """Named metric or charge, with its description.

    Attributes
    ----------
    name : str
        Name of the class with its parameters as given, ``long_waits(limit=60)``.
    kind : {"metric", "charge"}
        Whether it is a metric or a charge.
    part : object or None
        Object that computes it; None for a metric of gridsim that is only displayed.
    metric : Metric
        Its description.
    """

    name: str
    kind: Literal["metric", "charge"]
    part: Any
    metric: Metric

    def column(self, record: Record) -> FloatArray:
        """Return the charge of each job."""
        answer = call(self.part, "charge", record)
        try:
            found: FloatArray = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"'{self.name}' is {answer!r}; expected one number per job") from error
        if found.shape != (len(record),):
            raise InputError(f"'{self.name}' has shape {found.shape}; expected one number per job, {len(record)}")
        return found

    def number(self, record: Record) -> float:
        """Return the metric, or the total charge, of one record."""
        if self.kind == "charge":
            return float(self.column(record).sum())
        found = call(self.part, "measure", record)
        try:
            return float(found)
        except (TypeError, ValueError) as error:
            raise InputError(f"'{self.name}' is {found!r}; expected one number") from error


def measures(metrics: Iterable[Any], charges: Iterable[Any], known: Mapping[str, Metric]) -> list[Measure]:
    """Return metrics and charges from names, ``file.py:Class`` with parameters, or objects.

    Parameters
    ----------
    known : mapping of str to Metric
        Metrics of gridsim that may be selected for display.

    Raises
    ------
    UnknownNameError
        For an unknown name.
    InputError
        For an object without the required method, and for duplicate names.
    """
    found = [_measure("metric", it, known) for it in metrics] + [_measure("charge", it, known) for it in charges]
    names = [each.name for each in found]
    for each in found:
        if names.count(each.name) > 1 or (each.part is not None and each.name in known):
            raise InputError(f"'{each.name}' exists already; give its class another 'name'", field=each.kind)
    return found


def _measure(kind: Literal["metric", "charge"], what: Any, known: Mapping[str, Metric]) -> Measure:
    what = registry.parse(what) if isinstance(what, str) else what
    if isinstance(what, registry.Spec):
        name = what.name
        if kind == "metric" and name in known and not what.parameters:
            return Measure(name, kind, None, known[name])
        if ".py" not in name and not registry.is_registered(kind, name):
            raise UnknownNameError(kind, name, {*registry.spellings(kind), *(known if kind == "metric" else ())})
    part = registry.make(kind, what)
    method = {"metric": "measure", "charge": "charge"}[kind]
    if not callable(getattr(part, method, None)):
        raise InputError(f"{registry.name_of(type(part))} is not a {kind}; it has no method '{method}'", field=kind)
    name = re.sub(r"\W", "_", registry.name_of(type(part)))
    if isinstance(what, registry.Spec) and what.parameters:
        name += f"({str(what).partition('?')[2]})"
    lines = (type(part).__doc__ or "").strip().splitlines()
    metric = Metric(getattr(part, "unit", ""), getattr(part, "better", None), lines[0] if lines else "")
    return Measure(name, kind, part, metric)
