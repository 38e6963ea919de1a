"""Groups of jobs by size, length, user or account. They depend only on workload and machine, not on the policy."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.metrics.responsiveness import BOUND, measure, overtook, summarise
from gridsim.model.moldable import weight_bounds, weight_category
from gridsim.model.time import NEVER, IntArray, to_us
from gridsim.model.workload import PRIORITY, UNKNOWN, Workload
from gridsim.record import Record

MINUTE, HOUR = 60, 3600

LENGTHS = (
    ("under 1 min", 1 * MINUTE),
    ("1-10 min", 10 * MINUTE),
    ("10-60 min", 60 * MINUTE),
    ("1-8 h", 8 * HOUR),
    ("8-24 h", 24 * HOUR),
    ("24 h or more", None),
)
"""Length classes by upper bound (excluded), s; the lower bound (included) is the bound of the previous class."""

LABELLED = {
    "user": ("user", "users"),
    "account": ("account", "accounts"),
    "partition": ("partition", "partitions"),
    "qos": ("QOS", "QOS"),
    PRIORITY: ("class", "classes"),
}
"""Labels for grouping jobs, with the singular and plural names of their values."""


def no_value(label: str) -> int:
    """Return the value of a label that means none; every number is a priority class."""
    return NEVER if label == PRIORITY else UNKNOWN


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Assignment of jobs to groups.

    Attributes
    ----------
    kind : str
        Criterion: ``size``, ``length``, ``weight``, or a label such as ``user``.
    names : tuple of str
        Names of the groups, in display order. A group may be empty.
    index : (n,) int64
        Row of `names` for each job.
    """

    kind: str
    names: tuple[str, ...]
    index: IntArray

    def __len__(self) -> int:
        return len(self.names)


def size_classes(record: Record) -> Groups:
    """Group jobs by cores: 1, 2-4, 5-8, 9-16, … in powers of two up to the machine; wider jobs in a last group.

    Examples
    --------
    >>> record = Record.from_rows([dict(submit=0, start=0, end=1, cores=n) for n in (1, 2, 4, 5, 20)], cores=20)
    >>> size_classes(record).names, size_classes(record).index.tolist()
    (('1', '2-4', '5-8', '9-16', '17-20'), [0, 1, 1, 2, 4])
    """
    bounds = [1]
    while bounds[-1] < record.cores:
        bounds.append(min(max(2 * bounds[-1], 4), record.cores))
    names = ["1", *(_span(low + 1, high) for low, high in pairwise(bounds))]
    cores = record.workload.cores
    if len(cores) and cores.max() > record.cores:
        names.append(f"more than {record.cores}")
    return Groups("size", tuple(names), np.searchsorted(bounds, cores, side="left"))


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def length_classes(record: Record) -> Groups:
    """Group jobs by true run time: under 1 min, 1-10 min, 10-60 min, 1-8 h, 8-24 h, 24 h or more.

    Notes
    -----
    A run time equal to a bound belongs to the longer class: exactly 1 min is ``1-10 min``. The run time is that of the
    workload, also for jobs that were killed earlier.
    """
    bounds = [to_us(bound) for _, bound in LENGTHS if bound is not None]
    index = np.searchsorted(bounds, record.workload.runtime, side="right")
    return Groups("length", tuple(name for name, _ in LENGTHS), index)


def weight_classes(record: Record) -> Groups:
    """Group jobs by requested cores times true run time, core-seconds: up to 100, 300, 900, … and above 656,100.

    Notes
    -----
    These are the ten categories of moldable jobs (section 8.4 of the project's specification of moldable jobs). A
    weight equal to a bound belongs to the lighter category. Categories depend only on the workload, not on the
    allocated cores.

    Examples
    --------
    >>> record = Record.from_rows([dict(submit=0, start=0, end=end, cores=4) for end in (25, 26, 1e6)])
    >>> groups = weight_classes(record)
    >>> [groups.names[row] for row in groups.index]
    ['up to 100', '100-300', 'above 656,100']
    """
    bounds = weight_bounds()
    texts = [f"{bound:,.0f}" for bound in bounds]
    names = (f"up to {texts[0]}", *(f"{low}-{high}" for low, high in pairwise(texts)), f"above {texts[-1]}")
    return Groups("weight", names, weight_category(record.workload.area, bounds) - 1)


def users(record: Record, top: int = 10) -> Groups:
    """Group jobs by user: `by_label` of the label ``user``."""
    return by_label(record, "user", top)


def by_label(record: Record, label: str, top: int = 10) -> Groups:
    """Group jobs by a label: the *top* values by true core-seconds, largest first, all others, jobs without a value.

    Parameters
    ----------
    label : str
        One of `LABELLED`. Groups have the names of the values in the workload, else their numbers.
    top : int
        Number of values with a separate group. For equal work the lower number is first.

    Examples
    --------
    >>> rows = [dict(submit=0, start=0, end=end, cores=1, user=user) for end, user in ((5, 7), (9, 3), (1, -1))]
    >>> groups = users(Record.from_rows(rows))
    >>> [groups.names[row] for row in groups.index]
    ['user 7', 'user 3', 'unknown']
    """
    one, many = LABELLED[label]
    if top < 1:
        raise InputError(f"{top} {many} as groups; expected at least 1", field="top")
    column = record.workload.labels.get(label)
    if column is None:
        return Groups(label, ("unknown",), np.zeros(len(record), dtype=np.int64))
    chosen = largest(record, label, top)
    known, position = np.unique(column, return_inverse=True)
    group = np.full(len(known), len(chosen), dtype=np.int64)
    group[np.searchsorted(known, chosen)] = np.arange(len(chosen))
    group[known == no_value(label)] = len(chosen) + 1
    texts = [f"{one} {called(record.workload, label, value)}" for value in chosen]
    texts = [f"{text} ({value})" if texts.count(text) > 1 else text for text, value in zip(texts, chosen, strict=True)]
    return Groups(label, (*texts, f"other {many}", "unknown"), group[position])


def largest(record: Record, label: str, top: int) -> list[int]:
    """Return the *top* values of a label by true core-seconds of their jobs, largest first.

    For equal work the lower number.
    """
    known, position = np.unique(record.workload.labels[label], return_inverse=True)
    work = np.bincount(position, weights=record.workload.area, minlength=len(known))
    none = no_value(label)
    work[known == none] = -1.0
    return [int(known[row]) for row in np.argsort(-work, kind="stable")[:top] if known[row] != none]


def called(workload: Workload, label: str, value: int) -> str:
    """Return the name of a label's value if the workload has one, else the number.

    Examples
    --------
    >>> from dataclasses import replace
    >>> log = Workload.from_columns(submit=[0, 1], runtime=[1, 1], cores=1, labels={"user": [1, 2]})
    >>> log = replace(log, names={"user": ("", "ann")})
    >>> called(log, "user", 1), called(log, "user", 2)
    ('ann', '2')
    """
    names = workload.names.get(label, ())
    return (names[value] if 0 <= value < len(names) else "") or str(value)


def rows_by_group(groups: Groups, rows: Any = None) -> dict[str, IntArray]:
    """Return the rows of each group that has jobs, ascending, among *rows* (mask, slice or indices)."""
    kept = np.arange(len(groups.index)) if rows is None else np.sort(np.arange(len(groups.index))[rows])
    index = groups.index[kept]
    order = np.argsort(index, kind="stable")
    edges = np.searchsorted(index[order], np.arange(len(groups) + 1))
    return {
        name: kept[order[edges[row] : edges[row + 1]]]
        for row, name in enumerate(groups.names)
        if edges[row] < edges[row + 1]
    }


def by_group(record: Record, groups: Groups, *, bound: float = BOUND, rows: Any = None) -> dict[str, dict[str, float]]:
    """Return the metrics of each group that has jobs, by name.

    Parameters
    ----------
    groups : Groups
        Groups from `size_classes`, `length_classes` or `users`, or custom ones.
    bound : float
        Bound of the bounded slowdown, s.
    rows : mask, slice or indices, optional
        Jobs to count, such as those remaining after a warm-up cut.

    Returns
    -------
    dict
        ``jobs``, ``ran``, ``area`` (core-seconds held), ``area_share`` (of all groups), ``wait_*``, ``response_*``
        and ``bounded_slowdown_*`` as in `summarise`, and ``backfilled_share``.
    """
    members = rows_by_group(groups, rows)
    ran, area, ahead = record.ran, np.nan_to_num(record.area), overtook(record)
    held = {name: float(area[own].sum()) for name, own in members.items()}
    total = sum(held.values()) or float("nan")
    table: dict[str, dict[str, float]] = {}
    for name, own in members.items():
        count = int(ran[own].sum())
        table[name] = {"jobs": len(own), "ran": count, "area": held[name], "area_share": held[name] / total}
        table[name]["backfilled_share"] = float(ahead[own].sum()) / count if count else float("nan")
    for metric in ("wait", "response", "bounded_slowdown"):
        values = measure(record, metric, bound)
        for name, own in members.items():
            summary = summarise(values[own])
            table[name].update((f"{metric}_{part}", value) for part, value in summary.items())
    return table
