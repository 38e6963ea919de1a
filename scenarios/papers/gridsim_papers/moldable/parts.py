"""What bars say of parts of a claim: a sign, a loss or its absence, counts, trends of counts.

By the rules of section 8.5 of the project's specification of moldable jobs: signs of single bars by Holm's correction
over the bars of a colour; who gains or is *degraded* where they are counted, by one-sided tests without.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from gridsim import InputError
from gridsim.metrics.compare import holm
from gridsim.metrics.paired_tests import t_test
from gridsim_papers.decisions import ENOUGH, Part, State, signed, standing
from gridsim_papers.moldable.changes import DEGRADED
from gridsim_papers.moldable.study import Bar, Bars
from gridsim_papers.paired import Values, by_window, changes
from gridsim_papers.verdicts import LEVEL, NAN

__all__ = [
    "best",
    "beyond",
    "categories",
    "degraded",
    "fails",
    "gains",
    "is_wrong",
    "mean_of",
    "more_often",
    "moved",
    "of_bar",
    "pooled",
    "signs",
    "toward",
    "unharmed",
    "worst",
]


def of_bar(bar: Bar, state: State, wanted: int) -> Part:
    """A part of a claim that a bar decides; *wanted* is the sign by which it supports the claim."""
    one, series = bar.change, by_window(bar.logs)
    support = wanted * t_test(series).t
    return Part(bar.words, state, 1 + one.change, 1 + one.low, 1 + one.high, bar.p_holm, one.windows, support, series)


def categories(bars: Bars, numbers: Iterable[int]) -> list[Bar]:
    """Bars of these categories, those that there are.

    Raises
    ------
    InputError
        When there is none.
    """
    wanted = list(numbers)
    found = [bars[name] for name in (f"weight:{number}" for number in wanted) if name in bars]
    if not found:
        raise InputError(f"none of the categories {', '.join(map(str, wanted))} has enough windows")
    return found


def toward(bar: Bar, wanted: int) -> Part:
    """Whether a bar has the wanted sign, corrected."""
    state: State = "unclear"
    if bar.p_holm < LEVEL:
        state = "right" if bar.change.change * wanted > 0 else "wrong"
    return of_bar(bar, state, wanted)


def moved(bar: Bar, wanted: int, beyond: float = 0.0) -> Part:
    """Whether a bar is moved by more than *beyond*, by the one-sided test; otherwise is so to the other side."""
    sure = bar.change.p / 2 < LEVEL
    way = wanted * bar.change.change
    return of_bar(bar, "right" if sure and way > beyond else "wrong" if sure and way < 0 else "unclear", wanted)


def gains(bar: Bar) -> Part:
    """Whether a category gains; wrong where it is degraded."""
    return of_bar(bar, "right" if bar.change.better else "wrong" if bar.change.degraded else "unclear", -1)


def degraded(bar: Bar) -> Part:
    """Whether a category is degraded."""
    return moved(bar, 1, DEGRADED)


def unharmed(bar: Bar) -> Part:
    """Whether a category is not degraded: with few windows, nor looks so."""
    if bar.change.degraded:
        return of_bar(bar, "wrong", -1)
    return of_bar(bar, "right" if bar.enough or bar.change.change <= DEGRADED else "unclear", -1)


def mean_of(bars: Iterable[Bar]) -> Values:
    """Mean change of several bars in each window, of the logarithms."""
    every = list(bars)
    units = sorted(set(chain.from_iterable(bar.logs for bar in every)))
    means = {}
    for unit in units:
        own = [bar.logs[unit] for bar in every if math.isfinite(bar.logs.get(unit, NAN))]
        if own:
            means[unit] = float(np.mean(own))
    return means


def pooled(bars: Bars, numbers: Sequence[int], wanted: int) -> Part:
    """Whether categories have the wanted sign in the mean."""
    some = categories(bars, numbers)
    words = f"mean of categories {numbers[0]} to {numbers[-1]}, {some[0].scheme}, {some[0].setting}"
    return signed([(words, mean_of(some))], wanted, ratio=True)[0]


def best(parts: Iterable[Part], number: int) -> list[Part]:
    """Those that support a claim most: where it needs some of many."""
    return sorted(parts, key=standing, reverse=True)[:number]


def worst(parts: Iterable[Part]) -> Part:
    """The one that supports a claim least: where many are one."""
    return min(parts, key=standing)


def is_wrong(parts: Iterable[Part]) -> bool:
    """Whether any is surely otherwise."""
    return any(part.state == "wrong" for part in parts)


def fails(parts: Iterable[Part]) -> bool:
    """Whether any is surely otherwise, or not shown by enough windows: for claims that absence refutes."""
    return any(part.state == "wrong" or (part.state == "unclear" and part.n >= ENOUGH) for part in parts)


def more_often(family: Sequence[tuple[str, Values, Values]], wanted: int) -> list[Part]:
    """Whether one count is above (1) or below (-1) another: sign tests over windows, Holm over the family.

    The effect is the mean difference of the counts.
    """
    from scipy import stats  # a second, for these tests alone

    series = [by_window(changes(mine, theirs)) for _, mine, theirs in family]
    p_values = []
    for numbers in series:
        moved_windows = int(np.count_nonzero(numbers))
        up = int(np.count_nonzero(numbers > 0))
        p_values.append(float(stats.binomtest(up, moved_windows).pvalue) if moved_windows else 1.0)
    found = []
    for (words, mine, theirs), numbers, p in zip(family, series, holm(p_values), strict=True):
        test = t_test(numbers)
        sums = (int(by_window(own).sum()) for own in (mine, theirs))
        way = wanted * float(np.sign(numbers).sum())
        state: State = "unclear" if not p < LEVEL else "right" if way > 0 else "wrong"
        told = f"{words} ({' against '.join(map(str, sums))})"
        found.append(Part(told, state, test.mean, test.low, test.high, p, test.pairs, way, numbers))
    return found


def signs(pairs: Sequence[tuple[Bar, Bar]]) -> tuple[Part, list[str]]:
    """Whether bars of the same place agree in their signs in three quarters of all places, and not by chance.

    Returns
    -------
    part : Part
        Effect is the share that agrees, with Clopper and Pearson's interval and the binomial p against one half.
    apart : list of str
        Words of the bars of all jobs that disagree.

    Raises
    ------
    InputError
        When there is no pair.
    """
    from scipy import stats  # a second, for this test alone

    if not pairs:
        raise InputError("no bars to compare the signs of")
    agree = [one.change.change * other.change.change > 0 for one, other in pairs]
    share = sum(agree) / len(pairs)
    test = stats.binomtest(sum(agree), len(pairs))
    interval = test.proportion_ci()
    p = float(test.pvalue)
    state: State = "wrong" if share < AGREE else "right" if p < LEVEL else "unclear"
    words = f"{sum(agree)} of {len(pairs)} signs agree"
    n = min(bar.change.windows for pair in pairs for bar in pair)
    part = Part(words, state, share, float(interval.low), float(interval.high), p, n, share)
    apart = [one.words for (one, _), same in zip(pairs, agree, strict=True) if not same and not one.group]
    return part, apart


AGREE = 0.75
"""Share of the signs below which two studies do not tell the same."""


def beyond(bars: Iterable[Bar], limit: float = math.log1p(DEGRADED)) -> Values:
    """Bars beyond a limit in each window."""
    totals: Values | None = None
    for bar in bars:
        own = {unit: float(value > limit) for unit, value in bar.logs.items() if math.isfinite(value)}
        if totals is None:
            totals = own
        else:
            totals = {unit: totals.get(unit, 0.0) + own.get(unit, 0.0) for unit in totals.keys() | own.keys()}
    return totals or {}
