"""Metrics and charges that somebody asks for by name: a class of a plain file or package, or a number that is there.

A *metric* is a class with ``measure(record) -> float``, a *charge* one with ``charge(record) -> (n,) float64``, what
each job pays; its number is their sum. The record holds the jobs that count. Both may say their ``unit`` (empty where
left out), and which way is ``better``: ``"lower"``, ``"higher"`` or None.
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
    """What a number is: its *unit* (empty for counts and ratios), which way is *better*, and a line about it."""

    unit: str
    better: Literal["lower", "higher"] | None
    description: str


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric or a charge under its name, with what it is.

    Attributes
    ----------
    name : str
        Of its number: that of the class with its parameters as they were given, ``long_waits(limit=60)``.
    kind : {"metric", "charge"}
        Which of the two.
    part : object or None
        What computes it; None for a number of gridsim's own, which is only to be shown.
    metric : Metric
        What it is.
    """

    name: str
    kind: Literal["metric", "charge"]
    part: Any
    metric: Metric

    def column(self, record: Record) -> FloatArray:
        """What each job pays, of a charge."""
        answer = call(self.part, "charge", record)
        try:
            found: FloatArray = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"'{self.name}' is {answer!r}; expected one number a job") from error
        if found.shape != (len(record),):
            raise InputError(f"'{self.name}' has shape {found.shape}; expected one number a job, {len(record)}")
        return found

    def number(self, record: Record) -> float:
        """The number for one record."""
        if self.kind == "charge":
            return float(self.column(record).sum())
        found = call(self.part, "measure", record)
        try:
            return float(found)
        except (TypeError, ValueError) as error:
            raise InputError(f"'{self.name}' is {found!r}; expected one number") from error


def measures(metrics: Iterable[Any], charges: Iterable[Any], known: Mapping[str, Metric]) -> list[Measure]:
    """Metrics and charges from what a user may give: names, ``file.py:Class`` with parameters, or objects.

    Parameters
    ----------
    known : mapping of str to Metric
        Numbers of gridsim's own, which a metric may name to have it shown.

    Raises
    ------
    UnknownNameError
        For a name that is neither of a part nor known.
    InputError
        For a part without the method of its kind, and for two of one name.
    """
    found = [_measure("metric", it, known) for it in metrics] + [_measure("charge", it, known) for it in charges]
    names = [each.name for each in found]
    for each in found:
        if names.count(each.name) > 1 or (each.part is not None and each.name in known):
            raise InputError(f"'{each.name}' is there already; give its class another 'name'", field=each.kind)
    return found


def _measure(kind: Literal["metric", "charge"], what: Any, known: Mapping[str, Metric]) -> Measure:
    what = registry.parse(what) if isinstance(what, str) else what
    if isinstance(what, registry.Spec):
        name = what.name
        if kind == "metric" and name in known and not what.parameters:
            return Measure(name, kind, None, known[name])
        if ".py" not in name and not registry.knows(kind, name):
            raise UnknownNameError(kind, name, {*registry.spellings(kind), *(known if kind == "metric" else ())})
    part = registry.make(kind, what)
    method = {"metric": "measure", "charge": "charge"}[kind]
    if not callable(getattr(part, method, None)):
        raise InputError(f"{registry.name_of(type(part))} is no {kind}; it has no method '{method}'", field=kind)
    name = re.sub(r"\W", "_", registry.name_of(type(part)))
    if isinstance(what, registry.Spec) and what.parameters:
        name += f"({str(what).partition('?')[2]})"
    lines = (type(part).__doc__ or "").strip().splitlines()
    metric = Metric(getattr(part, "unit", ""), getattr(part, "better", None), lines[0] if lines else "")
    return Measure(name, kind, part, metric)
