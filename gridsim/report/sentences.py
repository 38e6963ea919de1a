"""Sentences on a comparison: waits, schedule length ratios, and groups of jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gridsim.metrics.compare import Difference
from gridsim.metrics.responsiveness import measure, summarise
from gridsim.number_formatting import counted, duration, listed, number
from gridsim.questions.evidence import Evidence, GroupRow, best
from gridsim.report import admission, change, pooling, rejections, robustness
from gridsim.report.differences import (
    MOST,
    Terms,
    changed,
    findings,
    group_name,
    intervals_are_of,
    no_common_job,
    saturated,
    sure,
)
from gridsim.report.markup import text_table, texts

_text = texts("comparison")


NOTABLE = 2.0
"""Ratio from which on a group, or the longest wait, is named without a significant difference."""

NOTABLE_SECONDS = 60.0
"""Difference of the means, s, below which no ratio of a group counts."""

LONGEST_SECONDS = 3600.0
"""Difference of the longest waits, s, below which no ratio counts."""

WEIGHTED = 1.25
"""Ratio of the means weighted by core-seconds from which on they are reported."""

_KINDS = {"size": "cores", "length": "run time", "user": "user", "work": "work"}
"""Kinds of compared groups, with the property that defines them."""


class GroupTerms(NamedTuple):
    """Verbs for the jobs of a group: ``wait`` longer, ``waited`` in this log, and the words of a change."""

    present: str
    past: str
    words: change.Wording


class _Losses(NamedTuple):
    """Groups that lose significantly, groups that lose in this log, and number of groups with too little data.

    *slight*: a group loses significantly, but by less than the threshold.
    """

    significant: list[GroupRow]
    in_log: list[GroupRow]
    unknown: int
    slight: bool
    groups: int
    kinds: list[str]


def next_to_the_headline(comparison: Evidence, winner: str, terms: GroupTerms) -> Iterator[str]:
    """Return the sentences that directly follow the one on the best policy."""
    rows = _losses(comparison, winner).significant
    for baseline in dict.fromkeys(row.baseline for row in rows):
        own = [row for row in rows if row.baseline == baseline]
        parts = [f"{_jobs(row)} {_change(row, terms)} (95 % interval {_span(row, terms)})" for row in own[:MOST]]
        yield _text("groups_that_lose", terms=terms, winner=winner, baseline=baseline, parts=[*parts, *_rest(own)])
    if not comparison.of_dags:
        yield from _longest(comparison, winner)
        yield from _weighted(comparison, winner)


def in_general(comparison: Evidence, winner: str, terms: GroupTerms) -> Iterator[str]:
    """Return the sentence on groups without a significant difference."""
    found = _losses(comparison, winner)
    if not found.groups:
        return
    rows, by = found.in_log, listed([_KINDS[kind] for kind in found.kinds], "or")
    if rows:
        none = "" if found.significant else f"No group of jobs {terms.present}s significantly {terms.words.more}. In"
        parts = [f"{_jobs(row)} {_in_log(row, winner, terms)}" for row in rows[:MOST]]
        yield f"{none or 'In'} this log {listed([*parts, *_rest(rows)])}; {_why(rows[:MOST])}."
    elif not found.significant and found.unknown < found.groups:
        unknown = f"; {number(found.unknown)} of {counted(found.groups, 'group')} have too little data"
        none = f"No group of jobs (by {by}) {terms.present}s significantly {terms.words.more} under {winner}"
        least = f" ({change.threshold(timed=not comparison.of_dags)})" if found.slight else ""
        yield f"{none}{least}{unknown if found.unknown else ''}."
    elif not found.significant:
        which = "the only group" if found.groups == 1 else f"any of the {number(found.groups)} groups"
        yield f"There is too little data on {which} of jobs (by {by})."


def _losses(comparison: Evidence, winner: str) -> _Losses:
    """Return the losses of groups under the best policy against each other one; the baseline comes first."""
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
    """Return rows sorted by jobs times difference, largest first."""
    return sorted(rows, key=lambda row: -row.jobs * (row.policy_mean - row.baseline_mean))


def _ratio(row: GroupRow) -> float:
    return math.inf if not row.baseline_mean and row.policy_mean > 0 else row.ratio if row.ratio == row.ratio else 0.0


def _is_notable(row: GroupRow, of_dags: bool) -> bool:
    least = 0.0 if of_dags else NOTABLE_SECONDS
    return _ratio(row) >= NOTABLE and row.policy_mean - row.baseline_mean >= least


def _jobs(row: GroupRow) -> str:
    """Return the jobs of a group with their number: *the 57 jobs of 257 to 338 cores*."""
    return f"the {counted(row.jobs, 'job')}{group_name(row.kind, row.group).removeprefix('jobs')}"


def _change(row: GroupRow, terms: GroupTerms) -> str:
    if math.isnan(row.ratio):
        return change.text(row.policy_mean - row.baseline_mean, terms.words, duration)
    return _as_many(row.ratio, terms)


def _as_many(ratio: float, terms: GroupTerms) -> str:
    """Return a ratio above 1 as text, from twice the base on as a multiple."""
    return change.text(ratio - 1, terms.words, many_from=NOTABLE)


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
        return f"{terms.past} under {winner} but not under {row.baseline} {means}"
    return f"{terms.past} {_as_many(row.ratio, terms)} under {winner} as under {row.baseline} {means}"


def _why(rows: Sequence[GroupRow]) -> str:
    few = [row.verdict == "too little data" for row in rows]
    return "too few jobs to generalise" if all(few) else "too few jobs to generalise, or not significant"


def _rest(rows: Sequence[GroupRow]) -> list[str]:
    more = len(rows) - MOST
    return [f"{counted(more, 'more group')} (groups.csv)"] if more > 0 else []


def _longest(comparison: Evidence, winner: str) -> Iterator[str]:
    """Return the longest wait, if it is much longer than under another policy."""
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
    """Return the mean weighted by core-seconds, if it is longer although the plain mean is shorter."""
    weighted = _of_common(comparison, "mean_by_area", "wait")
    for label in (comparison.baseline, *comparison.others):
        mine, theirs = weighted[winner], weighted[label]
        if label != winner and comparison.means[winner] < comparison.means[label] and mine >= WEIGHTED * theirs > 0:
            ratio = change.text(mine / theirs - 1, change.LONGER, many_from=WEIGHTED)
            yield _text("weighted_mean", ratio=ratio, winner=winner, label=label, mine=mine, theirs=theirs)
            return


def _of_common(comparison: Evidence, part: str, metric: str | None = None) -> Mapping[str, float]:
    """Return a metric of each policy over the jobs that ran under every one, as for the main means."""
    metric = metric or comparison.headline
    if comparison.comparable:
        return {label: it.get(f"{metric}_{part}", math.nan) for label, it in comparison.metrics.items()}
    common, by_area = comparison.common, part.endswith("_by_area")
    found = {}
    for label, record in comparison.records.items():
        values, area = measure(record, metric, comparison.bound)[common], record.area[common]
        found[label] = summarise(values, area if by_area else None)[part.removesuffix("_by_area")]
    return found


def answer_of_dags(comparison: Evidence, but: str | None = None) -> list[str]:
    """Return sentences on the lowest schedule length ratio, inconclusive results, and losing groups."""
    if none := no_common_job(comparison):
        return none
    means = comparison.means
    counted = int(comparison.kept.sum())
    winner = comparison.best
    if len(means) == 1:
        return [_alone_of_dags(comparison, winner, counted), *saturated(comparison)]
    against = [comparison.difference("slr", winner, other) for other in comparison.labels if other != winner]
    if all(it.same == 1 for it in against):
        what = "The job finishes" if counted == 1 else "Every job finishes"
        return [
            f"{what} at the same time under every policy, after {_slr(means[winner])} its critical path"
            f"{'' if counted == 1 else ' on average'}: on this machine the policy makes no difference "
            f"to {'it' if counted == 1 else 'them'}."
        ]
    if counted == 1:
        return [_one_job(comparison, winner, against), _ONE_JOB]
    found = findings(comparison, winner, _SLR, _slr(means[winner]), but=but)
    return [
        *(found.shown or found.others),
        *next_to_the_headline(comparison, winner, _GROUPS_OF_DAGS),
        *saturated(comparison),
        *intervals_are_of(comparison.differences, comparison.replicated, comparison.records[comparison.baseline]),
        *(found.others if found.shown else ()),
        *_worst_slr(comparison, winner),
        *in_general(comparison, winner, _GROUPS_OF_DAGS),
        _individual_dags(winner, against),
    ]


_SLR = Terms(**text_table("comparison", "slr"), words=change.HIGHER)
_GROUPS_OF_DAGS = GroupTerms("take", "took", change.LONGER)

_ONE_JOB = _text("one_job")


def _slr(value: float) -> str:
    """Return an SLR as text.

    Examples
    --------
    >>> _slr(1.234), _slr(1.0)
    ('1.23 times', 'exactly')
    """
    return "exactly" if value == 1 else f"{value:.3g} times" if abs(value) < 1000 else f"{number(value)} times"


def _alone_of_dags(comparison: Evidence, label: str, counted: int) -> str:
    numbers = comparison.metrics[label]
    if counted == 1:
        return _text("single_policy_one_dag", label=label, numbers=numbers, slr=_slr(numbers["mean_slr"]))
    return _text("single_policy_dags", label=label, slr=_slr(numbers["mean_slr"]), numbers=numbers)


def _one_job(comparison: Evidence, winner: str, against: Sequence[Difference]) -> str:
    """Return the completion of a single job under several policies, relative to its critical path."""
    took = {label: duration(numbers["response_mean"]) for label, numbers in comparison.metrics.items()}
    slower = sorted((it for it in against if it.same < 1), key=lambda it: it.baseline_mean)
    parts = [f"{took[it.baseline]} ({_slr(it.baseline_mean)}) under {it.baseline}" for it in slower[:MOST]]
    if len(slower) > MOST:
        parts.append(f"longer under {len(slower) - MOST} others")
    equal = [it.baseline for it in against if it.same == 1]
    also = f" (equally under {listed(equal)})" if equal else ""
    return _text(
        "earliest_completion",
        winner=winner,
        also=also,
        took=took[winner],
        slr=_slr(against[0].policy_mean),
        parts=parts,
    )


def _worst_slr(comparison: Evidence, winner: str) -> list[str]:
    """Return the worst SLR, if it is lower under another policy."""
    other = best(comparison.metrics, "worst_slr")
    mine, theirs = (comparison.metrics[label]["worst_slr"] for label in (winner, other))
    if not theirs < mine:
        return []
    return [f"The worst SLR is lower under {other}: {theirs:.3g} against {mine:.3g}."]


def _individual_dags(winner: str, against: Sequence[Difference]) -> str:
    worst = max(against, key=lambda it: it.worse)
    if not worst.worse:
        return f"No job finishes later under {winner} than under any other policy."
    return _text("individual_dags", worst=worst)


_WAITS = Terms(**text_table("comparison", "waits"))

_RESPONSES = Terms(**text_table("comparison", "responses"))
"""Terms for moldable jobs, whose run time also depends on the policy."""

_GROUPS_WAIT = GroupTerms("wait", "waited", change.LONGER)
_GROUPS_TAKE = GroupTerms("take", "took", change.LONGER)


def terms_of(comparison: Evidence) -> Terms:
    """Return the terms of the main metric."""
    return _SLR if comparison.of_dags else _RESPONSES if comparison.of_moldable else _WAITS


def losing_groups(comparison: Evidence, winner: str) -> list[GroupRow]:
    """Return the groups of jobs that lose significantly under a policy."""
    return _losses(comparison, winner).significant


def answer(comparison: Evidence, *, but: str | None = None) -> list[str]:
    """Return the policy with the lowest mean wait (DAG jobs: SLR; moldable jobs: response), and exceptions.

    The comparison of that policy with the policy *but* is left out, if it is given elsewhere.

    The first sentences are on policies that reject notably more jobs, and on guaranteed deadlines; the last ones on
    categories of moldable jobs that lose, and on clusters without jobs.
    """
    return [
        *rejections.answer(comparison),
        *admission.answer(comparison),
        *(answer_of_dags if comparison.of_dags else _of_times)(comparison, but),
        *robustness.answer(comparison),
        *pooling.answer(comparison),
    ]


def _of_times(comparison: Evidence, but: str | None = None) -> list[str]:
    if none := no_common_job(comparison):
        return none
    waits = comparison.means
    if len(waits) == 1:
        return [_alone(comparison, *waits), *saturated(comparison)]
    if not any(waits.values()):
        if not comparison.comparable:
            return ["The jobs that ran under every policy do not wait under any of them."]
        return ["No job waits under any policy: on this machine the policy makes no difference to these jobs."]
    winner = comparison.best
    terms, groups = terms_of(comparison), _GROUPS_TAKE if comparison.of_moldable else _GROUPS_WAIT
    found = findings(comparison, winner, terms, duration(waits[winner]), but=but)
    return [
        *(found.shown or found.others),
        *next_to_the_headline(comparison, winner, groups),
        *saturated(comparison),
        *intervals_are_of(comparison.differences, comparison.replicated, comparison.records[comparison.baseline]),
        *(found.others if found.shown else ()),
        *([] if comparison.of_moldable else _slowdown(comparison, winner)),  # moldable jobs differ in run time
        *in_general(comparison, winner, groups),
        *_individual_jobs(comparison, winner, terms),
    ]


def _alone(comparison: Evidence, label: str) -> str:
    numbers = comparison.metrics[label]
    return _text("single_policy", label=label, numbers=numbers)


def _slowdown(comparison: Evidence, winner: str) -> list[str]:
    """Return a sentence only if another policy has a significantly lower bounded slowdown."""
    other = best(comparison.metrics, "bounded_slowdown_mean")
    if other == winner:
        return []
    it = comparison.difference("bounded_slowdown", other, winner)
    if it.verdict != "better":
        return []
    return [
        f"The mean bounded slowdown is lower under {other}: {it.policy_mean:.3g}, {changed(it, change.HIGHER)} than "
        f"the {it.baseline_mean:.3g} under {winner} ({sure(it, change.HIGHER)})."
    ]


def _individual_jobs(comparison: Evidence, winner: str, terms: Terms) -> list[str]:
    """Return how many single jobs wait longer than under the policy with the most such jobs."""
    others = [label for label in comparison.labels if label != winner]
    against: Sequence[Difference] = [comparison.difference(comparison.headline, winner, other) for other in others]
    worst = max(against, key=lambda it: it.worse)
    if math.isnan(worst.worse):
        return []
    verb = "take" if terms is _RESPONSES else "wait"
    if not worst.worse:
        return [f"No job {verb}s longer under {winner} than under any other policy."]
    return [_text("individual_jobs", worst=worst, verb=verb)]
