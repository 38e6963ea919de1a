"""Whether the answers to "what if" survive other workloads alike, in words, in a table, and as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gridsim.questions.changes import NOW, WhatIf
from gridsim.questions.replicas import Replicated
from gridsim.report import flurries_text, replicas_text
from gridsim.report.replicas_text import AGAIN, HEAD, TITLES, VERDICTS, Line
from gridsim.report.sheet import WIDTH, sheet
from gridsim.words import listed

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["answer", "as_dict", "caveats", "files", "lines", "table"]

_COMPARED = ("wait_mean", "bounded_slowdown_mean")


def answer(found: WhatIf) -> Iterator[str]:
    """In how many replicas each change does the same as in the log: a sentence a mean that is compared."""
    for alike in found.replicated:
        for place, metric in enumerate(_COMPARED):
            pairs = [alike.pair(metric, label, NOW) for label in alike.numbers if label != NOW]
            told = [
                f"{listed([f'with {it.policy} in {it.lower} of {it.replicas}' for it in those])} ({meaning})"
                for verdict, meaning in VERDICTS[alike.role].items()
                if (those := [it for it in pairs if it.replicas and it.verdict == verdict and it.sd])
            ]
            if told:
                begin = f"{replicas_text.lead(alike)}: the" if not place else f"{AGAIN[alike.role]}the"
                yield f"{begin} mean {TITLES[metric]} is lower than now {listed(told)}."


def caveats(found: WhatIf) -> Iterator[str]:
    """Where users drawn anew are few; that a flood of jobs is in the log, or what it does to the answer."""
    for alike in found.replicated:
        yield from replicas_text.few(alike.info)
    if found.now is not None:
        yield from flurries_text.in_log(found.now.workload_given, asked=found.cleaned is not None)


def lines(found: Replicated) -> list[Line]:
    """Rows of the table: each mean that is compared, as it is and under each change."""
    return [
        Line(f"{TITLES[metric].removeprefix('bounded ')}, {label}", replicas_text.cells(found.spread(metric, label)))
        for metric in _COMPARED
        for label in found.numbers
    ]


def table(found: Replicated, *, width: int = WIDTH) -> RenderableType:
    """The same for a terminal."""
    rows = lines(found)
    columns = {title: [row.cells[place] for row in rows] for place, title in enumerate(HEAD)}
    return sheet([row.title for row in rows], columns, width=width, caption=replicas_text.caption(found))


def files(found: WhatIf) -> Iterator[tuple[str, Sequence[str], Sequence[Sequence[Any]]]]:
    """Name, columns and rows of each file, as `gridsim.report.replicas_text.files`, by change in place of policy."""
    for alike in found.replicated:
        for name, columns, rows in replicas_text.tables(alike, _COMPARED):
            yield name, [{"policy": "change", "other": "against"}.get(it, it) for it in columns], rows


def as_dict(found: WhatIf) -> list[dict[str, Any]]:
    """Everything in JSON's types."""
    return [
        {
            **alike.info,
            "spreads": [_renamed(it._asdict()) for it in alike.spreads()],
            "pairs": [_renamed(it._asdict()) for metric in _COMPARED for it in alike.pairs(metric)],
        }
        for alike in found.replicated
    ]


def _renamed(told: dict[str, Any]) -> dict[str, Any]:
    return {{"policy": "change", "other": "against"}.get(name, name): value for name, value in told.items()}
