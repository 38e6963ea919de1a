"""Whose the job is that is asked about: names of a log, or of a site, as numbers of the labels of a workload."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.policy.capabilities import capabilities_of

__all__ = ["LABELS", "numbered", "owned"]

LABELS = ("user", "account", "partition", "qos")
"""What may be said of the job."""

_SHOWN = 5
"""Names that are told where one is unknown."""


def owned(
    workload: Workload, names: Mapping[str, str], policies: Iterable[Any] = ()
) -> tuple[Workload, dict[str, int]]:
    """Numbers of names by label, and the workload, which knows them.

    Parameters
    ----------
    names : mapping of str to str
        Name by label, as in the log; numbers where the log has no names.
    policies : iterable of object
        Names that their sites know are taken too (`gridsim.model.site.Site.names`).

    Raises
    ------
    InputError
        For a name that neither the log nor a site knows, with those that are near.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0], runtime=[9], cores=[8], labels={"user": [7]})
    >>> owned(log, {"user": "7"})[1]
    {'user': 7}
    """
    sites = [policy.site for policy in policies if capabilities_of(policy).site and policy.site is not None]
    found: dict[str, int] = {}
    for label, name in names.items():
        if label not in LABELS:
            raise InputError(f"is nothing that is said of a job; expected one of {', '.join(LABELS)}", field=label)
        known = {other: None for site in sites for other in site.names(label)}
        workload, found[label] = _numbered(workload, label, name, list(known))
    return workload, found


def numbered(workload: Workload, label: str, value: int | str) -> tuple[Workload, int]:
    """Number of a value of a label, and the workload, which has the label and the name."""
    if isinstance(value, str):
        return _numbered(workload, label, value, [value])
    column = workload.labels.get(label, np.full(len(workload), UNKNOWN, dtype=np.int64))
    return replace(workload, labels={**workload.labels, label: column}), value


def _numbered(workload: Workload, label: str, name: str, of_sites: list[str]) -> tuple[Workload, int]:
    """Number of one name; one that only a site knows is added."""
    column, names = workload.labels.get(label), workload.names.get(label)
    if column is None:
        column, names = np.full(len(workload), UNKNOWN, dtype=np.int64), ("",)
    if names is None:
        numbers = {str(number): number for number in np.unique(column[column != UNKNOWN]).tolist()}
        if name not in numbers:
            raise _unknown(label, name, list(numbers))
        return workload, numbers[name]
    if name in names and name:
        return workload, names.index(name)
    known = dict.fromkeys([*filter(None, names), *of_sites])
    parts = name.split(",") if label == "partition" else [name]
    for part in parts:
        if part not in known:
            raise _unknown(label, part, list(known))
    added = {"labels": {**workload.labels, label: column}, "names": {**workload.names, label: (*names, name)}}
    return replace(workload, **added), len(names)  # type: ignore[arg-type]


def _unknown(label: str, name: str, known: list[str]) -> InputError:
    if not known:
        return InputError(f"'{name}' cannot be found: the log names none, and no policy knows a site", field=label)
    near = difflib.get_close_matches(name, known, n=_SHOWN, cutoff=0.5) or sorted(known)[:_SHOWN]
    others = len(known) - len(near)
    more = f" and {others:,} more" if others else ""
    return InputError(f"'{name}' is no {label} of the log or of a site; known: {', '.join(near)}{more}", field=label)
