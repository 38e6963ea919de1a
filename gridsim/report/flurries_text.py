"""Text on bursts of jobs by one user (flurries): users, and effect on the results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from gridsim.model.dates import calendar_of
from gridsim.model.workload import Workload
from gridsim.number_formatting import between, counted, listed, number, percent, times
from gridsim.questions.evidence import Evidence
from gridsim.questions.replications import mean_of
from gridsim.report import sentences
from gridsim.report.markup import texts
from gridsim.report.tables import shown
from gridsim.workload.transform.flurries import Flurry, WithoutFlurries, flurries

_text = texts("caveats")

_NUMBERS = re.compile(r"[\d.,]+(?: ?(?:%|d|h|min|s|times)\b)*")


def named(workload: Workload, user: int) -> str:
    """Return the name of a user."""
    names = workload.names.get("user")
    return names[user] if names and user < len(names) else str(user)


def rows(workload: Workload, rule: WithoutFlurries) -> list[dict[str, Any]]:
    """Return the flurries of a workload with the name of the user and the period as text; JSON types only."""
    calendar = calendar_of(workload.provenance)
    return [
        {**it._asdict(), "user": named(workload, it.user), "period": between(it.first, it.last, calendar)}
        for it, _ in flurries(workload, rule)
    ]


def _described(workload: Workload, found: Sequence[Flurry]) -> str:
    """Return user, period and size of flurries as text."""
    calendar = calendar_of(workload.provenance)
    return listed(
        [
            f"user {named(workload, it.user)} ({counted(it.jobs, 'job')}, {between(it.first, it.last, calendar)}; "
            f"{percent(it.share)} of the jobs of a week, {times(it.times)} the median week)"
            for it in found
        ]
    )


def caveats(comparison: Evidence) -> list[str]:
    """Return a note on flurries in the log, if their effect was not evaluated."""
    workload = comparison.records[comparison.baseline].workload_given
    return in_log(workload, asked=comparison.cleaned is not None)


def in_log(workload: Workload, *, asked: bool) -> list[str]:
    """Return the same note for a workload."""
    found = [] if asked else [it for it, _ in flurries(workload)]
    if not found:
        return []
    return [_text("flurry", found=_described(workload, found))]


def answer(comparison: Evidence) -> Iterator[str]:
    """Return the results without flurries that differ from those with them, if requested."""
    other = comparison.cleaned
    if other is None:
        return
    metric = mean_of(comparison.headline)
    means = [
        f"{shown(metric, other.metrics[label][metric])} under {label} ({shown(metric, numbers[metric])} with it)"
        for label, numbers in comparison.metrics.items()
    ]
    workload, fewer = comparison.records[comparison.baseline].workload_given, len(other.records[other.baseline])
    text = f"the mean {comparison.headline} is {listed(means)}"
    yield from without(workload, fewer, text, sentences.answer(comparison), sentences.answer(other))


def without(workload: Workload, fewer: int, means: str, before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Return the effect of excluding flurries: numbers, and changed sentences.

    Parameters
    ----------
    fewer : int
        Number of remaining jobs.
    means : str
        Text with the numbers with and without flurries.
    before, after : sequence of str
        Sentences with and without flurries.
    """
    found = [it for it, _ in flurries(workload)]
    if not found:
        yield "The log has no flurry, so no jobs are left out."
        return
    left = number(len(workload) - fewer)
    yield f"Without the flurry of {_described(workload, found)}, {left} jobs fewer, {means}."
    known = {_without_numbers(sentence) for sentence in before}
    changed = [sentence for sentence in after if _without_numbers(sentence) not in known]
    if changed:
        yield f"The conclusions change without it: {' '.join(changed)}"
    else:
        yield "The conclusions are the same without it; only the numbers differ."


def _without_numbers(sentence: str) -> str:
    """Return a sentence without its numbers."""
    return _NUMBERS.sub("", sentence)
