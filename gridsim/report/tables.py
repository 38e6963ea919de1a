"""Table of metrics by policy, for a terminal of 80 columns and for the page."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gridsim.metrics.measures import Metric
from gridsim.metrics.summary import described, metrics
from gridsim.number_formatting import duration, number, percent
from gridsim.questions.replay import LOG, recorded_schedule
from gridsim.report.markup import text_table
from gridsim.report.notices import resource_name
from gridsim.report.text_table import WIDTH, fits, sheet

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from gridsim.questions.evidence import Evidence
    from gridsim.report.curves import UsageRow
    from gridsim.report.robustness import WeightCategory


SHOWN: Mapping[str, str] = text_table("metrics", "shown")
"""Metrics of the table with short titles, in order."""

SHOWN_DAGS: Mapping[str, str] = text_table("metrics", "shown_dags")
"""Metrics for DAG jobs."""

SHOWN_MOLDABLE: Mapping[str, str] = text_table("metrics", "shown_moldable")
"""Metrics for moldable jobs."""

SHOWN_DEADLINES: Mapping[str, str] = text_table("metrics", "shown_deadlines")
"""First metrics if jobs request deadlines; rows with zeros only are omitted."""

SHOWN_PREEMPTION: Mapping[str, str] = text_table("metrics", "shown_preemption")
"""Last metrics if a policy preempts."""

SHOWN_RESOURCES: Mapping[str, str] = text_table("metrics", "shown_resources")
"""Last metrics on machines of nodes and pools, by resource."""

_OF_WAITS = ("waits_short_of", "waits_by_reason")
"""Shares of one total; a missing part is 0 if the policy has other parts."""

_MOST_OF_WAITS = 4

_MOST_PREEMPTORS = 3

_SHORT = ("wait_mean", "wait_p95", "bounded_slowdown_mean", "utilisation")
_SHORT_DAGS = ("mean_slr", "worst_slr", "makespan", "utilisation")
_SHORT_MOLDABLE = ("response_mean", "response_p95", "wait_mean", "utilisation")
_SHORT_DEADLINES = ("deadline_guaranteed", "deadline_met", "wait_mean", "utilisation")
"""Metrics that fit side by side for many policies."""

_ONLY_IF_ANY = ("killed_walltime", "rejected", "unadmitted", "model_failures")

_SHARES = (
    *("utilisation", "utilisation_arrivals", "backfilled_share", "backfilled_share_by_area"),
    *("deadline_guaranteed_area_share", "deadline_met_area_share", "useful_utilisation"),
)

_OF_JOBS_RUN = ("wait_", "response_", "bounded_slowdown_", "mean_", "worst_", "sd_", "queue_length_", "makespan")
"""Prefixes of metrics that are lower for policies that run fewer jobs."""

_MARKS = {"better": "*", "worse": "!"}

_MOST_CHANGES = 4
"""Number of policies whose changes by category fit side by side."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Formatted value, and whether it is the best of its row."""

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

    @property
    def is_empty(self) -> bool:
        """True if no policy has a value, or if a count or share is 0 everywhere."""
        values = [cell.value for cell in self.cells.values() if not math.isnan(cell.value)]
        return not values or (not any(values) and described(self.metric).unit != "s")


def shown(metric: str, value: float, measures: Mapping[str, Metric] | None = None) -> str:
    """Return a formatted value of a metric.

    Examples
    --------
    >>> shown("wait_mean", 4320.0), shown("utilisation", 0.634), shown("bounded_slowdown_mean", 12.345)
    ('1 h 12 min', '63.4 %', '12.3')
    """
    if math.isnan(value):
        return "-"
    unit = described(metric, measures).unit
    if unit == "s":
        return duration(value)
    if metric in _SHARES or metric.partition("[")[0] in SHOWN_RESOURCES:
        return f"{100 * value:.1f} %"
    if unit == "jobs" and float(value).is_integer():
        return number(value)
    return number(value) if abs(value) >= 1000 else f"{value:.3g}"


def rows(
    metrics: Mapping[str, Mapping[str, float]], *, moldable: bool = False, measures: Mapping[str, Metric] | None = None
) -> list[Row]:
    """Return the rows of `SHOWN` for the metrics of each policy, without counts that are 0 everywhere.

    For DAG jobs the rows are those of `SHOWN_DAGS`, for *moldable* jobs those of `SHOWN_MOLDABLE`. `SHOWN_DEADLINES`
    comes first if jobs request deadlines, *measures* last. If admission rejected jobs, no wait is marked as the best,
    since waits are over different jobs.
    """
    titles = SHOWN_MOLDABLE if moldable else SHOWN
    if any("mean_slr" in numbers for numbers in metrics.values()):
        titles = SHOWN_DAGS
    fair = not any(numbers["unadmitted"] for numbers in metrics.values())

    def values(name: str) -> dict[str, float]:
        return {label: numbers.get(name, math.nan) for label, numbers in metrics.items()}

    usual = [name for name in titles if name not in _ONLY_IF_ANY or any(value > 0 for value in values(name).values())]
    found = [
        *_deadline_rows(metrics),
        *(_row(name, titles[name], values(name), mark=_fair(name) or fair) for name in usual),
        *_preemption_rows(metrics),
        *_resource_rows(metrics),
    ]
    more = [name for name in measures or () if name not in {row.metric for row in found}]
    return found + [
        _row(name, name.replace("_", " ").replace("(", " (", 1), values(name), measures=measures) for name in more
    ]


def page_rows(comparison: Evidence) -> list[Row]:
    """Return the rows of the page: with the recorded log; without empty rows, repeated ones, and waits by reason."""
    found = rows(comparison.metrics, moldable=comparison.of_moldable, measures=comparison.measures)
    texts = {row.metric: [cell.text for cell in row.cells.values()] for row in found}
    repeated = {name for name in texts if name.endswith("[cores]") and texts[name] == texts.get("utilisation")}
    log = recorded_schedule(comparison.records[comparison.baseline])
    if log is not None:
        cuts: Any = {"bound": comparison.bound, "warmup": comparison.warmup, "cooldown": comparison.cooldown}
        numbers = {name: value for name, value in metrics(log, **cuts).items() if name.startswith(_OF_LOG)}
        found = [replace(row, cells={**row.cells, LOG: _logged(row.metric, numbers)}) for row in found]
    kept = [row for row in found if not row.is_empty and row.metric not in repeated]
    return [row for row in kept if row.metric.partition("[")[0] not in _OF_WAITS]


MOST_WAITS = 5
"""Largest number of columns of waits in the tables of users and accounts."""

_OF_LOG = ("wait_", "response_", "bounded_slowdown_", "queue_length_", "utilisation", "makespan")
"""Prefixes of metrics that a recorded schedule has."""


def _logged(metric: str, numbers: Mapping[str, float]) -> Cell:
    value = numbers.get(metric, math.nan)
    return Cell(value, shown(metric, value), best=False)


def columns(comparison: Evidence) -> list[str]:
    """Return the policies in the order of columns: the best one, the baseline, the log if it has starts, the others."""
    log = [LOG] if recorded_schedule(comparison.records[comparison.baseline]) is not None else []
    return list(dict.fromkeys((comparison.best, comparison.baseline, *log, *comparison.labels)))


def reasons(comparison: Evidence) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return policies, and rows with the shares of their waiting time by reason, the most frequent reason first.

    Policies that do not report reasons are omitted; the log is last if it has any.
    """
    found: dict[str, dict[str, float]] = {}
    for label in columns(comparison):
        numbers = comparison.metrics.get(label, {})
        named = [name for base in _OF_WAITS for name in numbers if name.startswith(f"{base}[")]
        if named:
            found[label] = {_reason(name): numbers[name] for name in named}
    if shares := _logged_reasons(comparison):
        found[LOG] = shares
    words = dict.fromkeys(word for shares in found.values() for word, share in shares.items() if share > 0)
    order = sorted(words, key=lambda word: -sum(shares.get(word, 0.0) for shares in found.values()))
    cells = [(word, [percent(shares.get(word, 0.0)) for shares in found.values()]) for word in order[:_MOST_REASONS]]
    return list(found), cells


_MOST_REASONS = 8
"""Largest number of reasons in a table."""


def _reason(metric: str) -> str:
    base, _, word = metric.removesuffix("]").partition("[")
    if base == "waits_by_reason":
        meaning = {**text_table("explain", "reasons"), **text_table("metrics", "no_reason")}.get(word)
        meaning = meaning or ("a limit of the site" if word.startswith(("QOS", "Assoc", "Partition")) else "")
        return f"{word}: {meaning}" if meaning else word
    return str(text_table("explain", "lacked").get(word, f"too few free {resource_name(word)}"))


def _logged_reasons(comparison: Evidence) -> dict[str, float]:
    """Return the shares of recorded waiting time by recorded reason; empty if most of it has no reason."""
    logged = comparison.records[comparison.baseline].logged
    if "reason" not in logged:
        return {}
    waits, reason = np.where(comparison.kept, np.nan_to_num(logged["wait"]), 0.0), logged["reason"]
    total = float(waits.sum())
    if total <= 0 or waits[np.isin(reason, ("", "None"))].sum() > total / 2:
        return {}
    words, of = np.unique(reason, return_inverse=True)
    pairs = zip(words.tolist(), np.bincount(of, weights=waits).tolist(), strict=True)
    return {_reason(f"waits_by_reason[{word or 'None'}]"): share / total for word, share in pairs if share > 0}


def usage(found: Iterable[UsageRow], labels: Sequence[str]) -> dict[str, list[list[str]]]:
    """Return rows for each kind of group: name, jobs, hours (cores, GPUs and losses if any), mean waits by policy."""
    by_group: dict[tuple[str, str], dict[str, UsageRow]] = {}
    for row in found:
        by_group.setdefault((row.kind, row.group), {})[row.policy] = row
    tables: dict[str, list[list[str]]] = {}
    with_gpus = any(row.gpu_hours > 0 for each in by_group.values() for row in each.values())
    with_losses = any(row.lost_core_hours >= 0 for each in by_group.values() for row in each.values())
    for (kind, group), each in by_group.items():
        first = each[labels[0]]
        hours = [first.core_hours, *([first.gpu_hours] if with_gpus else [])]
        hours += [first.lost_core_hours] if with_losses else []
        waits = [shown("wait_mean", each[label].wait_mean) for label in labels]
        name = group.removeprefix(f"{kind} ")
        tables.setdefault(kind, []).append([name, number(first.jobs), *map(_hours, hours), *waits])
    return tables


def _hours(value: float) -> str:
    return number(value) if value >= 100 else f"{value:.3g}" if value >= 0 else ""


def _deadline_rows(metrics: Mapping[str, Mapping[str, float]]) -> Iterator[Row]:
    if not any(numbers.get("deadline_jobs") for numbers in metrics.values()):
        return
    without = {"useful_utilisation"} if not any(numbers["kills"] for numbers in metrics.values()) else set()
    for name, title in SHOWN_DEADLINES.items():
        values = {label: numbers[name] for label, numbers in metrics.items()}
        if name not in without and any(value == value and value for value in values.values()):
            yield _row(name, title, values)


def _preemption_rows(metrics: Mapping[str, Mapping[str, float]]) -> Iterator[Row]:
    """Return preempted runs and lost work, each followed by the most frequent owners of preempting jobs."""
    if not any("preempted_runs" in numbers for numbers in metrics.values()):
        return
    for name, title in SHOWN_PREEMPTION.items():
        if any(name in numbers for numbers in metrics.values()):
            yield _row(name, title, {label: numbers.get(name, 0.0) for label, numbers in metrics.items()})
        groups = [key for key in next(iter(metrics.values())) if key.startswith(f"{name}[")]
        for key in groups[:_MOST_PREEMPTORS]:
            values = {label: numbers[key] for label, numbers in metrics.items()}
            yield _row(key, f"… by {key.removeprefix(f'{name}[').removesuffix(']')}", values, mark=False)


def _resource_rows(metrics: Mapping[str, Mapping[str, float]]) -> Iterator[Row]:
    """Return held, lost and stranded amounts of each resource, and the most frequent missing resources."""
    names = list(dict.fromkeys(name for numbers in metrics.values() for name in numbers))
    for base, title in SHOWN_RESOURCES.items():
        keys = [name for name in names if name == base or name.startswith(f"{base}[")]
        if base in _OF_WAITS:
            keys.sort(key=lambda name: -sum(numbers.get(name, 0.0) for numbers in metrics.values()))
            keys = keys[:_MOST_OF_WAITS]
        for key in keys:
            values = {label: _of_resource(numbers, base, key) for label, numbers in metrics.items()}
            yield _row(key, title.format(resource_name(key.removeprefix(base).strip("[]"))), values)


def _of_resource(numbers: Mapping[str, float], base: str, key: str) -> float:
    """Return a metric by resource; NaN if unknown."""
    if key in numbers:
        return numbers[key]
    if base in _OF_WAITS:
        return 0.0 if any(name.startswith(f"{base}[") for name in numbers) else math.nan
    if base == "resource_used":  # without exclusive use equal to the held amount
        return _of_resource(numbers, "resource_utilisation", key.replace(base, "resource_utilisation", 1))
    return numbers["utilisation"] if key == "resource_utilisation[cores]" else math.nan


def _fair(name: str) -> bool:
    """Return whether a metric is comparable between policies that ran different jobs."""
    return not name.startswith(_OF_JOBS_RUN)


def _row(
    name: str,
    title: str,
    values: Mapping[str, float],
    *,
    mark: bool = True,
    measures: Mapping[str, Metric] | None = None,
) -> Row:
    """Return a row; all values displayed like the best one are marked, unless all are equal or *mark* is false."""
    what = described(name, measures)
    better = what.better if mark else None
    texts = {label: shown(name, value, measures) for label, value in values.items()}
    known = {label: value for label, value in values.items() if not math.isnan(value)}
    marked = ""
    if better is not None and len({texts[label] for label in known}) > 1:
        choose = min if better == "lower" else max
        marked = texts[choose(known, key=lambda label: known[label])]
    cells = {label: Cell(values[label], text, text == marked) for label, text in texts.items()}
    return Row(name, title, better, what.description, cells)


def terminal(table: Sequence[Row], *, width: int = WIDTH) -> RenderableType:
    """Return the table for a terminal, with policies as columns if they fit, else as rows.

    The best value of each metric is bold and has an asterisk, which is visible without colours.
    """
    from rich.text import Text

    def cell(value: Cell) -> Text:
        return Text(f"{value.text} *" if value.best else f"{value.text}  ", style="bold" if value.best else "")

    labels = list(table[0].cells)
    caption = "* best"
    downwards = {f"{label}  ": [cell(row.cells[label]) for row in table] for label in labels}
    if fits([row.title for row in table], downwards, width):
        return sheet([row.title for row in table], downwards, width=width, caption=caption)
    there = {row.metric for row in table}
    names = _SHORT_MOLDABLE if "response_p95" in there else _SHORT
    if "mean_slr" in there or "deadline_met" in there:
        names = _SHORT_DEADLINES if "deadline_met" in there else _SHORT_DAGS
    shown = [row for row in table if row.metric in names or (row.metric in _ONLY_IF_ANY and _differs(row))]
    columns = {row.title: [cell(row.cells[label]) for label in labels] for row in shown}
    return sheet(labels, columns, first="policy", width=width, caption=caption)


def _differs(row: Row) -> bool:
    return len({cell.text for cell in row.cells.values()}) > 1


def changes(found: Sequence[WeightCategory], *, width: int = WIDTH) -> RenderableType:
    """Return changes of the mean response by weight category for a terminal, for the first policies.

    Clear ones are marked.
    """
    from rich.text import Text

    labels = list(found[-1].changes)[:_MOST_CHANGES]
    clear = any(verdict in _MARKS for category in found for verdict in category.verdicts.values())
    columns: dict[str, list[Text | str]] = {"jobs": [number(category.jobs) for category in found]}
    for label in labels:
        marks = [_MARKS.get(category.verdicts.get(label, ""), "") for category in found]
        columns[label] = [
            Text(f"{changed(category, label)} {mark or ' '}", style="bold" if mark else "")
            for category, mark in zip(found, marks, strict=True)
        ]
    caption = "! significantly worse, * significantly better" if clear else ""
    names = [category.name for category in found]
    return sheet(names, columns, first="core-seconds", width=width, caption=caption)


def changed(category: WeightCategory, label: str) -> str:
    """Return the formatted change of a category under a policy."""
    value = category.changes.get(label, math.nan)
    return "-" if math.isnan(value) else percent(value, sign=True)


def csv_text(header: Sequence[str], *rows: Sequence[Any]) -> str:
    """Return CSV text; NaN and None are empty cells."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([["" if value is None or value != value else value for value in row] for row in rows])
    return text.getvalue()
