"""Robustness of results over replicas of the workload: sentences, a table, and files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from gridsim.metrics.measures import Metric
from gridsim.metrics.summary import described
from gridsim.number_formatting import duration, listed
from gridsim.questions.evidence import Evidence, best
from gridsim.questions.replications import Pair, Replicated, Role, Spread, mean_of
from gridsim.report.markup import text_table, texts
from gridsim.report.tables import shown
from gridsim.report.text_table import WIDTH, sheet
from gridsim.workload.transform.resample import FEW_USERS, FEW_WEEKS

if TYPE_CHECKING:
    from rich.console import RenderableType


_text = texts("caveats")

FILES = tuple(f"{role}{kind}.csv" for role in get_args(Role) for kind in ("", "_pairs"))
"""Names of the files of spreads and pairs."""

TITLES = text_table("caveats", "replica_titles")

VERDICTS = text_table("caveats", "replica_verdicts")

AGAIN = {"shake": "In the same replicas, ", "resample": "In the same workloads, "}

HEAD = ("original", "mean", "sd", "min", "max")
"""Titles of the columns of the table."""


class Line(NamedTuple):
    """Row of the table: a mean under a policy, and its formatted values in the order of `HEAD`."""

    title: str
    cells: tuple[str, ...]


def compared(comparison: Evidence) -> list[str]:
    """Return the names of the compared means, the main metric first."""
    return [mean_of(name) for name in comparison.compared]


def answer(comparison: Evidence) -> list[str]:
    """Return in how many replicas the best policy remains better than the others, one sentence per compared metric."""
    if len(comparison.records) < 2:
        return []
    return [text for each in comparison.replicated for text in _agreement(comparison, each)]


def _agreement(comparison: Evidence, found: Replicated) -> Iterator[str]:
    metrics = compared(comparison)
    for number, metric in enumerate(metrics[:1] if found.default else metrics):
        winner = best(found.original, metric)
        pairs = [found.pair(metric, winner, other) for other in comparison.labels if other != winner]
        equal = [it.other for it in pairs if it.replicas and not it.original and it.agree == it.replicas]
        pairs = [it for it in pairs if it.replicas and it.other not in equal]
        parts = [
            f"{listed([_part(it) for it in pairs if it.verdict == verdict])} ({meaning})"
            for verdict, meaning in VERDICTS[found.role].items()
            if any(it.verdict == verdict for it in pairs)
        ]
        clauses = [f"lower than {listed(parts)}"] if parts else []
        clauses += [f"the same as under {listed(equal)} in all of them"] if equal else []
        if clauses:
            begin = f"{lead(found)}, the" if not number else f"{AGAIN[found.role]}the"
            jobs = "" if comparison.comparable else "; each mean is over the jobs that ran under its policy"
            yield f"{begin} mean {TITLES.get(metric, metric)} under {winner} is {' and '.join(clauses)}{jobs}."


def lead(found: Replicated) -> str:
    """Return the beginning of a sentence on the kind of replicas."""
    if found.role == "shake":
        by = duration(float(found.info["by"]))
        return f"In {found.replicas} replicas with every submit time shaken by up to {by}"
    load = float(found.info["load"])
    times = "" if load == 1 else f" ({load:g} times as many as in the log)"
    return f"In {found.replicas} workloads with resampled users{times}"


def caveats(comparison: Evidence) -> list[str]:
    """Return notes on few users or weeks for resampling."""
    return [text for found in comparison.replicated for text in few(found.info)]


def few(info: Mapping[str, Any]) -> Iterator[str]:
    """Return the same notes for one family, from the users and weeks of its log."""
    users, weeks = info.get("users_of_log", FEW_USERS), info.get("weeks", FEW_WEEKS)
    if users < FEW_USERS or weeks < FEW_WEEKS:
        yield _text("few_users", users=users, weeks=weeks, few_users=FEW_USERS, few_weeks=FEW_WEEKS)


def _part(it: Pair) -> str:
    if not it.original:
        return f"under {it.other} in {it.lower} of {it.replicas}, but equal in the original workload"
    return f"under {it.other} in {it.lower} of {it.replicas}"


def lines(found: Replicated, metrics: Iterable[str], labels: Collection[str]) -> list[Line]:
    """Return the spread of each mean."""
    return [
        Line(f"{TITLES.get(metric, metric).removeprefix('bounded ')}, {label}", cells(found.spread(metric, label)))
        for metric in metrics
        for label in labels
    ]


def cells(it: Spread) -> tuple[str, ...]:
    """Return the formatted values of a row, in the order of `HEAD`."""
    return tuple(shown(it.metric, value) for value in (it.original, it.mean, it.sd, it.least, it.most))


def caption(found: Replicated) -> str:
    """Return the caption of the table."""
    return f"Means {lead(found)[0].lower()}{lead(found)[1:]}"


def table(rows: Sequence[Line], found: Replicated, *, width: int = WIDTH) -> RenderableType:
    """Return the table of the spreads for a terminal."""
    columns = {title: [row.cells[place] for row in rows] for place, title in enumerate(HEAD)}
    return sheet([row.title for row in rows], columns, width=width, caption=caption(found))


def files(comparison: Evidence) -> Iterator[tuple[str, Sequence[str], Sequence[Sequence[Any]]]]:
    """Return name, columns and rows of each file: spreads of all metrics, and all pairs for the compared ones."""
    for found in comparison.replicated:
        yield from tables(found, compared(comparison), comparison.measures)


def tables(
    found: Replicated, compared: Sequence[str], measures: Mapping[str, Metric] | None = None
) -> Iterator[tuple[str, Sequence[str], Sequence[Sequence[Any]]]]:
    """Return the files of one family, for the *compared* means."""
    spreads = [(*it, described(it.metric, measures).unit) for it in found.spreads()]
    yield f"{found.role}.csv", (*Spread._fields, "unit"), spreads
    yield f"{found.role}_pairs.csv", Pair._fields, [it for metric in compared for it in found.pairs(metric)]


def as_dict(comparison: Evidence, found: Replicated) -> dict[str, Any]:
    """Return all data with JSON types."""
    return {
        **found.info,
        "spreads": [it._asdict() for it in found.spreads()],
        "pairs": [it._asdict() for metric in compared(comparison) for it in found.pairs(metric)],
    }
