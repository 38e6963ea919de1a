"""Policies by metrics as rows: for a terminal of 80 columns, and the same for the page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

from gridsim.metrics.summary import DEADLINE_METRICS, GRID_METRICS, METRICS
from gridsim.report.words import duration, number, percent

if TYPE_CHECKING:
    from rich.table import Table

    from gridsim.report.robustness import Category

__all__ = [
    "SHOWN",
    "SHOWN_DAGS",
    "SHOWN_DEADLINES",
    "SHOWN_MOLDABLE",
    "Cell",
    "Row",
    "changed",
    "changes",
    "rows",
    "shown",
    "terminal",
]

SHOWN: Mapping[str, str] = {
    "wait_mean": "wait, mean",
    "wait_median": "wait, median",
    "wait_p95": "wait, 95th percentile",
    "wait_max": "wait, longest",
    "wait_mean_by_area": "wait, mean by area",
    "bounded_slowdown_mean": "bounded slowdown, mean",
    "bounded_slowdown_p95": "bounded slowdown, 95th p.",
    "response_mean": "response, mean",
    "queue_length_mean": "waiting jobs, mean",
    "utilisation": "utilisation",
    "makespan": "makespan",
    "backfilled_share": "backfilled",
    "killed_walltime": "killed at the walltime",
    "rejected": "rejected",
    "unadmitted": "not admitted",
}
"""Metrics of the table with their short titles, in its order."""

SHOWN_DAGS: Mapping[str, str] = {
    "mean_slr": "SLR, mean",
    "worst_slr": "SLR, worst",
    "sd_slr": "SLR, standard deviation",
    "mean_stretch": "stretch, mean",
    "mean_speedup": "speedup, mean",
    "makespan": "makespan",
    "utilisation": "utilisation",
    "peak_in_flight": "jobs in flight, most",
    "wait_mean": "wait, mean",
    "response_mean": "response, mean",
    "queue_length_mean": "waiting tasks, mean",
    "killed_walltime": "killed at the walltime",
    "rejected": "rejected",
    "unadmitted": "not admitted",
}
"""The same of DAG jobs."""

SHOWN_MOLDABLE: Mapping[str, str] = {
    "response_mean": "response, mean",
    "response_median": "response, median",
    "response_p95": "response, 95th percentile",
    "response_max": "response, longest",
    "wait_mean": "wait, mean",
    "wait_median": "wait, median",
    "wait_p95": "wait, 95th percentile",
    "queue_length_mean": "waiting jobs, mean",
    "utilisation": "utilisation",
    "makespan": "makespan",
    "killed_walltime": "killed at the walltime",
    "rejected": "rejected",
    "unadmitted": "not admitted",
}
"""The same of moldable jobs."""

SHOWN_DEADLINES: Mapping[str, str] = {
    "deadline_guaranteed": "deadlines guaranteed",
    "deadline_guaranteed_area_share": "guaranteed, by area",
    "deadline_met": "deadlines met",
    "deadline_met_area_share": "met, by area",
    "promises_broken": "promises broken",
    "offers_taken": "later deadlines taken",
    "kills": "runs killed for others",
    "useful_utilisation": "useful utilisation",
    "qos_charge": "QoS charge",
    "non_deadline_response_mean": "response, no deadline",
}
"""What comes first where jobs ask for deadlines; rows without a number other than 0 are left out."""

_KNOWN = METRICS | GRID_METRICS | DEADLINE_METRICS

_SHORT = ("wait_mean", "wait_p95", "bounded_slowdown_mean", "utilisation")
_SHORT_DAGS = ("mean_slr", "worst_slr", "makespan", "utilisation")
_SHORT_MOLDABLE = ("response_mean", "response_p95", "wait_mean", "utilisation")
_SHORT_DEADLINES = ("deadline_guaranteed", "deadline_met", "wait_mean", "utilisation")
"""Metrics that fit side by side when there are many policies."""

_ONLY_IF_ANY = ("killed_walltime", "rejected", "unadmitted")

_SHARES = (
    *("utilisation", "utilisation_arrivals", "backfilled_share", "backfilled_share_by_area"),
    *("deadline_guaranteed_area_share", "deadline_met_area_share", "useful_utilisation"),
)

_OF_JOBS_RUN = ("wait_", "response_", "bounded_slowdown_", "mean_", "worst_", "sd_", "queue_length_", "makespan")
"""Beginnings of metrics that are lower for who runs fewer jobs."""

_WIDTH = 80

_MARKS = {"better": "*", "worse": "!"}

_MOST_CHANGES = 4
"""Policies whose changes by category fit side by side."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A value, as shown, and whether it is the best of its row."""

    value: float
    text: str
    best: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of all policies."""

    metric: str
    title: str
    better: Literal["lower", "higher"] | None
    description: str
    cells: Mapping[str, Cell]


def shown(metric: str, value: float) -> str:
    """A value of a metric as people read it.

    Examples
    --------
    >>> shown("wait_mean", 4320.0), shown("utilisation", 0.634), shown("bounded_slowdown_mean", 12.345)
    ('1 h 12 min', '63.4 %', '12.3')
    """
    if math.isnan(value):
        return "-"
    unit = _KNOWN[metric].unit
    if unit == "s":
        return duration(value)
    if metric in _SHARES:
        return f"{100 * value:.1f} %"
    if unit == "jobs" and float(value).is_integer():
        return number(value)
    return number(value) if abs(value) >= 1000 else f"{value:.3g}"


def rows(metrics: Mapping[str, Mapping[str, float]], *, moldable: bool = False) -> list[Row]:
    """Rows of `SHOWN` for the metrics of each policy; counts that are 0 everywhere are left out.

    Of DAG jobs those of `SHOWN_DAGS`, of *moldable* ones those of `SHOWN_MOLDABLE`. Those of `SHOWN_DEADLINES` come
    first where jobs ask for deadlines. Where admission turned jobs away, no wait is marked as the best: they are not
    waits of the same jobs.
    """
    titles = SHOWN_MOLDABLE if moldable else SHOWN
    if any("mean_slr" in numbers for numbers in metrics.values()):
        titles = SHOWN_DAGS
    fair = not any(numbers["unadmitted"] for numbers in metrics.values())
    return [*_deadline_rows(metrics)] + [
        _row(name, title, {label: numbers[name] for label, numbers in metrics.items()}, mark=_fair(name) or fair)
        for name, title in titles.items()
        if name not in _ONLY_IF_ANY or any(numbers[name] for numbers in metrics.values())
    ]


def _deadline_rows(metrics: Mapping[str, Mapping[str, float]]) -> Iterator[Row]:
    if not any(numbers.get("deadline_jobs") for numbers in metrics.values()):
        return
    without = {"useful_utilisation"} if not any(numbers["kills"] for numbers in metrics.values()) else set()
    for name, title in SHOWN_DEADLINES.items():
        values = {label: numbers[name] for label, numbers in metrics.items()}
        if name not in without and any(value == value and value for value in values.values()):
            yield _row(name, title, values)


def _fair(name: str) -> bool:
    """Whether a metric says something of a policy whichever jobs it ran."""
    return not name.startswith(_OF_JOBS_RUN)


def _row(name: str, title: str, values: Mapping[str, float], *, mark: bool = True) -> Row:
    """A row; every value that reads like the best one is marked, none where all read alike or none is to be."""
    better = _KNOWN[name].better if mark else None
    texts = {label: shown(name, value) for label, value in values.items()}
    known = {label: value for label, value in values.items() if not math.isnan(value)}
    marked = ""
    if better is not None and known and len(set(texts.values())) > 1:
        choose = min if better == "lower" else max
        marked = texts[choose(known, key=lambda label: known[label])]
    cells = {label: Cell(values[label], text, text == marked) for label, text in texts.items()}
    return Row(name, title, better, _KNOWN[name].description, cells)


def terminal(table: Sequence[Row], *, width: int = _WIDTH) -> Table:
    """The rows as a rich table; metrics downwards where the policies fit side by side, else policies downwards.

    The best of each metric is bold and has an asterisk, so that it is seen without colour too.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    def cell(value: Cell) -> Text:
        return Text(f"{value.text} *" if value.best else f"{value.text}  ", style="bold" if value.best else "")

    labels = list(table[0].cells)
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, width=None, caption="* best", caption_justify="left")
    needed = max(len(row.title) for row in table) + 2 + sum(_wide(table, label) + 2 for label in labels)
    if needed <= width:
        grid.add_column("")
        for label in labels:
            grid.add_column(Text(f"{label}  "), justify="right", no_wrap=True)
        for row in table:
            grid.add_row(Text(row.title), *(cell(row.cells[label]) for label in labels))
        return grid
    there = {row.metric for row in table}
    names = _SHORT_MOLDABLE if "response_p95" in there else _SHORT
    if "mean_slr" in there or "deadline_met" in there:
        names = _SHORT_DEADLINES if "deadline_met" in there else _SHORT_DAGS
    short = [row for row in table if row.metric in names]
    space = width - 2 - sum(_column(row) + 3 for row in short)  # rich puts 3 between columns, 1 at each edge
    grid.add_column("policy", no_wrap=True)
    for row in short:
        grid.add_column(Text(_heading(row)), justify="right", no_wrap=True)
    for label in labels:
        grid.add_row(Text("\n".join(broken(label, space))), *(cell(row.cells[label]) for row in short))
    return grid


def changes(found: Sequence[Category], *, width: int = _WIDTH) -> Table:
    """Change of the mean response by weight category as a rich table, of the first policies; clear ones marked."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    labels = list(found[-1].changes)[:_MOST_CHANGES]
    clear = any(verdict in _MARKS for category in found for verdict in category.verdicts.values())
    caption = "! clearly worse, * clearly better" if clear else None
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=caption, caption_justify="left")
    grid.add_column("core-seconds")
    grid.add_column("jobs", justify="right", no_wrap=True)
    space = max(10, (width - 29) // len(labels) - 3)
    for label in labels:
        grid.add_column(Text("\n".join(wrap(label, space))), justify="right", no_wrap=True)
    for category in found:
        marks = [_MARKS.get(category.verdicts.get(label, ""), "") for label in labels]
        cells = [
            Text(f"{changed(category, label)} {mark or ' '}", style="bold" if mark else "")
            for label, mark in zip(labels, marks, strict=True)
        ]
        grid.add_row(Text(category.name), number(category.jobs), *cells)
    return grid


def changed(category: Category, label: str) -> str:
    """Change of a category under a policy as people read it."""
    value = category.changes.get(label, math.nan)
    return "-" if math.isnan(value) else percent(value, sign=True)


def _heading(row: Row) -> str:
    return row.title.replace(", ", "\n").replace("bounded slowdown", "b. slowdown")


def _column(row: Row) -> int:
    """Characters that a column of one metric needs."""
    return max(*map(len, _heading(row).split("\n")), *(len(cell.text) + 2 for cell in row.cells.values()))


def broken(label: str, width: int) -> list[str]:
    """Lines of at most *width* characters, broken after punctuation; inside a word only if it is wider than that.

    Examples
    --------
    >>> broken("easy?ordering=widest.py:WidestFirst(tie=0.001)", 20)
    ['easy?', 'ordering=widest.py:', 'WidestFirst(', 'tie=0.001)']
    """
    lines = [""]
    for piece in _pieces(label, width):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += piece
    return lines


def _pieces(label: str, width: int) -> Iterator[str]:
    """Parts of a label that stay whole, at ``=`` only where they would be wider than *width*."""
    for part in re.split(r"(?<=[?&,:(])", label):
        for piece in [part] if len(part) <= width else re.split(r"(?<=[=/])", part):
            yield from (piece[start : start + width] for start in range(0, len(piece), width))


def _wide(table: Sequence[Row], label: str) -> int:
    return max(len(label), *(len(row.cells[label].text) for row in table)) + 2
