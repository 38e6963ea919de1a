"""One difference of two means in words: how much, how sure, and which classes of jobs lose by it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from gridsim.metrics.compare import FEWEST_BLOCKS, JOBS_A_BLOCK, Difference
from gridsim.metrics.groups import LABELLED
from gridsim.questions.evidence import Evidence, GroupRow
from gridsim.report import change
from gridsim.words import duration, listed

__all__ = [
    "ENOUGH_JOBS",
    "MOST",
    "amount_of",
    "changed",
    "family",
    "group_name",
    "losing",
    "lost",
    "same_or_unclear",
    "sure",
]

CONFIDENCE = 0.95

_WIDEST = 100.0
"""A ratio known less well than this factor is told as an amount."""

ENOUGH_JOBS = FEWEST_BLOCKS * JOBS_A_BLOCK
"""Jobs below which there are too few blocks for a verdict, however they come."""

MOST = 3
"""Policies that one sentence names at most."""


def changed(it: Difference, words: change.Words = change.MORE) -> str:
    """By how much the mean is less or more than that of the baseline, relative to it where that says enough."""
    return change.told(it.ratio - 1, words) if _relative(it) else change.told(it.mean, words, amount_of(it))


def sure(it: Difference, words: change.Words = change.MORE) -> str:
    """Interval and p value."""
    return f"95 % interval {_interval(it, words)}; {_p(it.p_holm)}"


def _relative(it: Difference) -> bool:
    """Whether the interval of the ratio says the same as the test of the difference; if not, amounts are told."""
    if math.isnan(it.ratio_low) or it.ratio_high / it.ratio_low > _WIDEST:
        return False
    return (it.p < 1 - CONFIDENCE) == (not it.ratio_low <= 1 <= it.ratio_high)


def _interval(it: Difference, words: change.Words = change.MORE) -> str:
    """The interval of `changed`, of the same base."""
    if _relative(it):
        return change.span(it.ratio_low - 1, it.ratio_high - 1, words)
    return change.span(it.low, it.high, words, amount_of(it))


def amount_of(it: Difference) -> Callable[[float], str]:
    """How an amount of the metric is told."""
    return duration if it.metric in ("wait", "response") else "{:.3g}".format


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def family(it: Difference, against: Sequence[Difference]) -> str:
    """What the p value was corrected for and rests on; said once."""
    policies = len(against) + 1
    comparisons = policies * (policies - 1) // 2
    corrected = f" after Holm, {comparisons} comparisons" if comparisons > 1 else ""
    return f"{corrected}, {it.blocks} blocks of time"


def _though(it: Difference) -> str:
    """Why a difference is not clear although its own interval says so: it is one of several that were looked for."""
    return f", but {_p(it.p_holm)} after Holm" if it.p < 1 - CONFIDENCE else ""


def same_or_unclear(winner: str, against: Sequence[Difference], each: str, evidence: str) -> Iterator[str]:
    """Under which policies every job does just the same, and from which the *evidence* cannot tell the winner."""
    same = [it.baseline for it in against if it.same == 1]
    if same:
        yield f"Under {listed(same)} every job {each}."
    unclear = [it for it in against if it.verdict == "no clear difference" and it.same < 1]
    if unclear:
        parts = [
            f"from {it.baseline} ({changed(it)} than under {it.baseline}; 95 % interval {_interval(it)}{_though(it)})"
            for it in unclear[:MOST]
        ]
        if len(unclear) > MOST:
            parts.append(f"from {len(unclear) - MOST} others")
        yield f"{evidence} cannot tell {winner} {listed(parts, 'or')}."


def losing(comparison: Evidence, winner: str) -> list[GroupRow]:
    """Groups that lose clearly and by what matters under the winner against another policy, the worst two."""
    rows = [row for row in comparison.groups if row.policy == winner and comparison.loses(row)]
    rows = [row for row in rows if row.kind not in LABELLED] or rows
    rows.sort(key=lambda row: -row.ratio if row.ratio == row.ratio else -math.inf)
    chosen: list[GroupRow] = []
    for row in rows:
        if all((row.kind, row.group) != (other.kind, other.group) for other in chosen):
            chosen.append(row)
    return chosen[:2]


def lost(row: GroupRow, words: change.Words) -> str:
    """By how much a class loses, and how sure that is."""
    if math.isnan(row.ratio):
        found, span = (change.told(row.policy_mean - row.baseline_mean, words, duration)), (row.low, row.high)
        return f"{found} than under {row.baseline} (95 % interval {change.span(*span, words, duration)})"
    interval = change.span(row.ratio_low - 1, row.ratio_high - 1, words)
    return f"{change.told(row.ratio - 1, words)} than under {row.baseline} (95 % interval {interval})"


def group_name(kind: str, group: str) -> str:
    """Group as a part of a sentence.

    Examples
    --------
    >>> group_name("size", "65-128"), group_name("length", "1-8 h"), group_name("user", "other users")
    ('jobs of 65-128 cores', 'jobs of 1-8 h', 'jobs of other users')
    """
    if kind == "work":
        return f"jobs of the {group} by work"
    if kind == "weight":
        return f"jobs of {group} core-seconds"
    if kind == "size":
        return f"jobs of {group} core{'' if group == '1' else 's'}"
    if group == "unknown" and kind in LABELLED:
        return f"jobs of no known {LABELLED[kind][0]}"
    return f"jobs {group}" if group.startswith("under") else f"jobs of {group}"
