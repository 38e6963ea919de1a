"""The answer in words. Says how sure it is, and says so when it is not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gridsim.metrics.compare import Difference
from gridsim.questions.evidence import Evidence, best, turned
from gridsim.report import admission, change, dag_sentences, pools, refusals, robustness
from gridsim.report.differences import (
    ENOUGH_JOBS,
    MOST,
    amount_of,
    changed,
    family,
    group_name,
    losing,
    lost,
    same_or_unclear,
    sure,
)
from gridsim.words import duration, listed, percent

__all__ = ["answer"]


class _Words(NamedTuple):
    """How a metric of times is told: its name, and what jobs do that have more of it or less."""

    metric: str
    mean: str
    least: str
    none: str
    many: str
    one: str
    each: str
    less: str
    more: str


_WAITS = _Words(
    *("wait", "mean wait", "waits least", "not at all", "wait", "waits"),
    *("waits exactly as long", "wait less", "wait longer"),
)

_RESPONSES = _Words(
    *("response", "mean response", "has the shortest responses", "at once", "take", "takes"),
    *("takes exactly as long", "end sooner", "end later"),
)
"""Of moldable jobs, which trade their waits for their runtimes."""


def _words(comparison: Evidence) -> _Words:
    return _RESPONSES if comparison.of_moldable else _WAITS


def answer(comparison: Evidence) -> list[str]:
    """Who waits least (DAG jobs: finishes soonest for its critical path) and by how much, and who loses.

    Two to four sentences, of what cannot be told too. Where jobs ask for deadlines, first who guarantees how many. Of
    moldable jobs, whose response is shortest, and last whether any category of jobs by weight pays for it. On several
    clusters, which of them ran nothing. Before all that, who turns notably more jobs away than others.
    """
    return [
        *refusals.answer(comparison),
        *admission.answer(comparison),
        *(dag_sentences.answer if comparison.of_dags else _of_times)(comparison),
        *robustness.answer(comparison),
        *pools.answer(comparison),
    ]


def _of_times(comparison: Evidence) -> list[str]:
    waits, words = comparison.means, _words(comparison)
    if all(math.isnan(value) for value in waits.values()):
        return ["No job ran under any policy, so there is nothing to compare."]
    if len(waits) == 1:
        return [_alone(comparison, *waits)]
    if not any(waits.values()):
        return ["Nobody waits under any of the policies: on this machine the choice makes no difference to these jobs."]
    winner = comparison.best
    against = [comparison.difference(words.metric, winner, other) for other in comparison.labels if other != winner]
    told = [_winner(winner, waits[winner], against, comparison.comparable, words)]
    told += _undecided(winner, against, words)
    if not comparison.of_moldable:  # slowdowns are relative to runtimes, which then differ
        told += _slowdown(comparison, winner)
    return [*told, _losers(comparison, winner, against)]


def _alone(comparison: Evidence, label: str) -> str:
    numbers = comparison.metrics[label]
    return (
        f"Under {label}, jobs wait {duration(numbers['wait_mean'])} on average and {duration(numbers['wait_median'])} "
        f"at the median; 5 % wait longer than {duration(numbers['wait_p95'])}. "
        f"The machine is {percent(numbers['utilisation'])} busy."
    )


def _winner(winner: str, wait: float, against: Sequence[Difference], comparable: bool, words: _Words) -> str:
    clear = [it for it in against if it.verdict == "better"]
    if not clear:
        what = "in this log" if comparable else "over the jobs that ran under every policy"
        return f"{winner} has the shortest {words.mean} {what}, {duration(wait)}."
    named = sorted(clear, key=lambda it: it.baseline_mean, reverse=True)
    if len(named) > MOST:
        named = [*named[: MOST - 1], named[-1]]
    parts = [
        f"{changed(it)} than {it.baseline} ({sure(it)}{family(it, against) if it is named[0] else ''})" for it in named
    ]
    rest = len(clear) - len(named)
    more = f"; {rest} other{f's {words.many}' if rest > 1 else f' {words.one}'} clearly longer too" if rest else ""
    whose = "" if comparable else "Over the jobs that ran under every policy, "
    mean = duration(wait) if wait else words.none
    return f"{whose}{winner} {words.least}: {mean} on average, {listed(parts)}{more}."


def _undecided(winner: str, against: Sequence[Difference], words: _Words) -> Iterator[str]:
    yield from same_or_unclear(winner, against, words.each, "This log")
    worse = [it for it in against if it.verdict == "worse"]
    if worse:  # the winner is that of the jobs that ran under every policy, and these are more
        parts = [f"under {it.baseline} {changed(turned(it))} than under {winner} ({sure(turned(it))})" for it in worse]
        yield f"Over all jobs that ran under both, jobs {words.many} {listed(parts)}."
    few = [it for it in against if it.verdict == "too little data" and it.same < 1]
    if few:
        yield f"The {words.mean} under {winner} is {listed([_happened(it, words) for it in few])}."
        why = "Too few jobs ran" if few[0].jobs < ENOUGH_JOBS else "One congested stretch dominates this difference"
        yield f"{why}, so the log cannot say how far {'that' if few[0].jobs < ENOUGH_JOBS else 'it'} holds elsewhere."


def _happened(it: Difference, words: _Words) -> str:
    """What a difference was in this log, without how sure it is."""
    part = change.told(it.mean, shown=amount_of(it)) if math.isnan(it.ratio) else change.told(it.ratio - 1)
    return (
        f"{part} than under {it.baseline} ({duration(it.baseline_mean)}; {percent(it.better)} of the jobs "
        f"{words.less}, {percent(it.worse)} {words.more.split()[-1]})"
    )


def _slowdown(comparison: Evidence, winner: str) -> list[str]:
    """Only where the bounded slowdown names another winner, clearly."""
    other = best(comparison.metrics, "bounded_slowdown_mean")
    if other == winner:
        return []
    it = comparison.difference("bounded_slowdown", other, winner)
    if it.verdict != "better":
        return []
    return [
        f"By mean bounded slowdown {other} is ahead: {it.policy_mean:.3g}, {changed(it)} than the "
        f"{it.baseline_mean:.3g} under {winner} ({sure(it)})."
    ]


def _losers(comparison: Evidence, winner: str, against: Sequence[Difference]) -> str:
    """Who waits longer under the winner than under another policy: groups, else single jobs."""
    words, chosen = _words(comparison), losing(comparison, winner)
    if chosen:
        parts = [f"{group_name(row.kind, row.group)} {words.many} {lost(row, change.LONGER)}" for row in chosen]
        return f"Who loses under {winner}, {change.at_least()}: {listed(parts)}."
    worst = max(against, key=lambda it: it.worse)
    if not worst.worse:
        return f"No job {words.one} longer under {winner} than under any other policy."
    return (
        f"No class of size or length loses clearly under {winner} ({change.at_least()}); single jobs do: "
        f"{percent(worst.worse)} {words.more} than under {worst.baseline}, {percent(worst.better)} {words.less}."
    )
