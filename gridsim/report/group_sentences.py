"""Sentences on jobs that wait longer under the best policy: groups, the longest wait, waits weighted by core-seconds.

*Too little data* never reads as *no loss*: a group whose mean at least doubles is named even if it is too small to
generalise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gridsim.metrics.responsiveness import measure, summarise
from gridsim.questions.evidence import Evidence, GroupRow
from gridsim.report import change
from gridsim.report.differences import MOST, group_name
from gridsim.report.texts import texts
from gridsim.words import counted, duration, listed, number

__all__ = ["GroupTerms", "in_general", "next_to_the_headline"]

_text = texts("comparison")

NOTABLE = 2.0
"""Ratio from which on a group is named without a significant difference, and the longest wait too."""

NOTABLE_SECONDS = 60.0
"""Difference of the means, s, below which no ratio of a group counts."""

LONGEST_SECONDS = 3600.0
"""Difference of the longest waits, s, below which no ratio counts."""

WEIGHTED = 1.25
"""Ratio of the means weighted by core-seconds from which on they are reported."""

_KINDS = {"size": "cores", "length": "run time", "user": "user", "work": "work"}
"""Kinds of groups that are compared, with what jobs are grouped by."""


class GroupTerms(NamedTuple):
    """What the jobs of a group do: ``wait`` longer, ``waited`` in this log, and the words of a change."""

    present: str
    past: str
    words: change.Words


class _Losses(NamedTuple):
    """Groups that lose significantly, groups that lose in this log, and how many of all have too little data.

    *slight*: a group loses significantly, but by less than what counts as a loss.
    """

    significant: list[GroupRow]
    in_log: list[GroupRow]
    unknown: int
    slight: bool
    groups: int
    kinds: list[str]


def next_to_the_headline(comparison: Evidence, winner: str, terms: GroupTerms) -> Iterator[str]:
    """What belongs directly behind the sentence that names the best policy."""
    rows = _losses(comparison, winner).significant
    for baseline in dict.fromkeys(row.baseline for row in rows):
        own = [row for row in rows if row.baseline == baseline]
        parts = [f"{_jobs(row)} {_change(row, terms)} (95 % interval {_span(row, terms)})" for row in own[:MOST]]
        yield _text("groups_that_lose", terms=terms, winner=winner, baseline=baseline, parts=[*parts, *_rest(own)])
    if not comparison.of_dags:
        yield from _longest(comparison, winner)
        yield from _weighted(comparison, winner)


def in_general(comparison: Evidence, winner: str, terms: GroupTerms) -> Iterator[str]:
    """What is said of groups without a significant difference."""
    found = _losses(comparison, winner)
    if not found.groups:
        return
    rows, by = found.in_log, listed([_KINDS[kind] for kind in found.kinds], "or")
    if rows:
        none = "" if found.significant else f"No group is shown to {terms.present} {terms.words.more} in general; in"
        parts = [f"{_jobs(row)} {_in_log(row, winner, terms)}" for row in rows[:MOST]]
        yield f"{none or 'In'} this log {listed([*parts, *_rest(rows)])}; {_why(rows[:MOST])}."
    elif not found.significant and found.unknown < found.groups:
        unknown = f"; {number(found.unknown)} of {counted(found.groups, 'group')} have too little data"
        none = f"No group of jobs (by {by}) {terms.present}s significantly {terms.words.more} under {winner}"
        least = f", {change.at_least(timed=not comparison.of_dags)}" if found.slight else ""
        yield f"{none}{least}{unknown if found.unknown else ''}."
    elif not found.significant:
        which = "the only group" if found.groups == 1 else f"any of the {number(found.groups)} groups"
        yield f"There is too little data on {which} of jobs (by {by})."


def _losses(comparison: Evidence, winner: str) -> _Losses:
    """Groups under the best policy against each other one; of a group the comparison with the baseline comes first."""
    rows = [row for row in comparison.groups if row.policy == winner and row.kind in _KINDS]
    by_group: dict[tuple[str, str], list[GroupRow]] = {}
    for row in sorted(rows, key=lambda row: (row.baseline != comparison.baseline, -_ratio(row))):
        by_group.setdefault((row.kind, row.group), []).append(row)
    significant = [own[0] for each in by_group.values() if (own := [row for row in each if comparison.loses(row)])]
    named = {(row.kind, row.group) for row in significant}
    in_log = [
        own[0]
        for group, each in by_group.items()
        if group not in named and (own := [row for row in each if _is_notable(row, comparison.of_dags)])
    ]
    unknown = sum(any(row.verdict == "too little data" for row in each) for each in by_group.values())
    kinds = [kind for kind in _KINDS if any(kind == row.kind for row in rows)]
    slight = any(row.verdict == "worse" and not comparison.loses(row) for row in rows)
    return _Losses(_ranked(significant), _ranked(in_log), unknown, slight, len(by_group), kinds)


def _ranked(rows: Sequence[GroupRow]) -> list[GroupRow]:
    """Rows by jobs times difference, the largest first."""
    return sorted(rows, key=lambda row: -row.jobs * (row.policy_mean - row.baseline_mean))


def _ratio(row: GroupRow) -> float:
    return math.inf if not row.baseline_mean and row.policy_mean > 0 else row.ratio if row.ratio == row.ratio else 0.0


def _is_notable(row: GroupRow, of_dags: bool) -> bool:
    least = 0.0 if of_dags else NOTABLE_SECONDS
    return _ratio(row) >= NOTABLE and row.policy_mean - row.baseline_mean >= least


def _jobs(row: GroupRow) -> str:
    """Jobs of a group with their number: *the 57 jobs of 257 to 338 cores*."""
    return f"the {counted(row.jobs, 'job')}{group_name(row.kind, row.group).removeprefix('jobs')}"


def _change(row: GroupRow, terms: GroupTerms) -> str:
    if math.isnan(row.ratio):
        return change.told(row.policy_mean - row.baseline_mean, terms.words, duration)
    return _as_many(row.ratio, terms)


def _as_many(ratio: float, terms: GroupTerms) -> str:
    """A ratio above 1: from twice the base on as many times the base."""
    return change.told(ratio - 1, terms.words, many_from=NOTABLE)


def _span(row: GroupRow, terms: GroupTerms) -> str:
    if math.isnan(row.ratio):
        return change.span(row.low, row.high, terms.words, duration)
    if row.ratio < NOTABLE:
        return change.span(row.ratio_low - 1, row.ratio_high - 1, terms.words)
    return change.times_span(row.ratio_low, row.ratio_high)


def _in_log(row: GroupRow, winner: str, terms: GroupTerms) -> str:
    def shown(mean: float) -> str:
        return duration(mean) if row.kind != "work" else f"{mean:.3g}"

    means = f"({shown(row.policy_mean)} against {shown(row.baseline_mean)})"
    if math.isnan(row.ratio):
        return f"{terms.past} under {winner} only, and not under {row.baseline} {means}"
    return f"{terms.past} {_as_many(row.ratio, terms)} under {winner} as under {row.baseline} {means}"


def _why(rows: Sequence[GroupRow]) -> str:
    few = [row.verdict == "too little data" for row in rows]
    return "too few to generalise" if all(few) else "too few to generalise or not significant"


def _rest(rows: Sequence[GroupRow]) -> list[str]:
    more = len(rows) - MOST
    return [f"{counted(more, 'more group')} (groups.csv)"] if more > 0 else []


def _longest(comparison: Evidence, winner: str) -> Iterator[str]:
    """The longest wait, where it is much longer than under another policy."""
    longest = _of_common(comparison, "max")
    mine = longest[winner]
    others = [
        label
        for label in (comparison.baseline, *comparison.others)
        if mine >= NOTABLE * longest[label] and mine - longest[label] >= LONGEST_SECONDS
    ]
    if others:
        parts = [f"{duration(longest[label])} under {label}" for label in (winner, *others[:MOST])]
        yield f"The longest {comparison.headline} is {listed(parts)}."


def _weighted(comparison: Evidence, winner: str) -> Iterator[str]:
    """The mean weighted by core-seconds, where it is longer although the plain mean is shorter."""
    weighted = _of_common(comparison, "mean_by_area", "wait")
    for label in (comparison.baseline, *comparison.others):
        mine, theirs = weighted[winner], weighted[label]
        if label != winner and comparison.means[winner] < comparison.means[label] and mine >= WEIGHTED * theirs > 0:
            ratio = change.told(mine / theirs - 1, change.LONGER, many_from=WEIGHTED)
            yield _text("weighted_mean", ratio=ratio, winner=winner, label=label, mine=mine, theirs=theirs)
            return


def _of_common(comparison: Evidence, part: str, metric: str | None = None) -> Mapping[str, float]:
    """A number of each policy over the jobs that ran under every one, as the means of the headline are."""
    metric = metric or comparison.headline
    if comparison.comparable:
        return {label: it.get(f"{metric}_{part}", math.nan) for label, it in comparison.metrics.items()}
    common, by_area = comparison.common, part.endswith("_by_area")
    found = {}
    for label, record in comparison.records.items():
        values, area = measure(record, metric, comparison.bound)[common], record.area[common]
        found[label] = summarise(values, area if by_area else None)[part.removesuffix("_by_area")]
    return found
