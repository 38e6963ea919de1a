"""Tests of bars for parts of a claim: a sign, a loss or its absence, agreement of signs, counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from gridsim import InputError
from gridsim_papers.decisions import agreement, signed
from gridsim_papers.moldable.study import Bar, Bars
from gridsim_papers.paired import Values
from gridsim_papers.verdicts import NAN, Part

__all__ = [
    "AGREE",
    "beyond",
    "categories",
    "degraded",
    "mean_of",
    "pooled",
    "signs",
    "toward",
    "unharmed",
]


def categories(bars: Bars, numbers: Iterable[int]) -> list[Bar]:
    """Existing bars of these categories.

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


def toward(bar: Bar, wanted: int, margin: float | None = None) -> Part:
    """Test whether a bar has the wanted sign, or is within a margin on the other side."""
    return signed([(bar.words, bar.logs)], wanted, ratio=True, margin=margin)[0]


def unharmed(bar: Bar, margin: float) -> Part:
    """Test whether no category is degraded: non-inferiority."""
    return toward(bar, -1, margin)


def degraded(bar: Bar, margin: float) -> Part:
    """Test the opposite: responses are significantly longer, by more than the margin; refuted if significantly not."""
    part = unharmed(bar, margin)
    return part._replace(a=part.b, b=part.a)


def mean_of(bars: Iterable[Bar]) -> Values:
    """Mean change of several bars in each window, on the logarithmic scale."""
    every = list(bars)
    units = sorted(set(chain.from_iterable(bar.logs for bar in every)))
    means = {}
    for unit in units:
        own = [bar.logs[unit] for bar in every if math.isfinite(bar.logs.get(unit, NAN))]
        if own:
            means[unit] = float(np.mean(own))
    return means


def pooled(bars: Bars, numbers: Sequence[int], wanted: int) -> Part:
    """Test whether categories have the wanted sign on average."""
    some = categories(bars, numbers)
    words = f"mean of categories {numbers[0]} to {numbers[-1]}, {some[0].scheme}, {some[0].setting}"
    return signed([(words, mean_of(some))], wanted, ratio=True)[0]


def signs(pairs: Sequence[tuple[Bar, Bar]]) -> list[Part]:
    """Test whether bars of the same place agree in sign: in three quarters of all places, and for all jobs.

    The effect of the first part is the share that agrees, with Clopper and Pearson's interval; its tests are binomial.

    Raises
    ------
    InputError
        When there is no pair.
    """
    from scipy import stats  # the import takes a second and only this test needs it

    if not pairs:
        raise InputError("no bars to compare the signs of")
    same = sum(one.change.change * other.change.change > 0 for one, other in pairs)
    tests = [stats.binomtest(same, len(pairs), AGREE, alternative=way) for way in ("greater", "less")]
    a, b = (float(test.pvalue) for test in tests)
    interval = stats.binomtest(same, len(pairs)).proportion_ci()
    n = min(bar.change.windows for pair in pairs for bar in pair)
    words = f"{same} of {len(pairs)} signs agree"
    shared = Part(words, a, b, n, same / len(pairs), float(interval.low), float(interval.high))
    return [shared, *(_same_sign(*pair) for pair in pairs if not pair[0].group)]


def _same_sign(one: Bar, other: Bar) -> Part:
    parts = [toward(bar, 1) for bar in (one, other)]
    a, b = agreement([(part.a, part.b) for part in parts])
    least = min(parts, key=lambda part: abs(part.support))
    return least._replace(a=a, b=b, n=min(part.n for part in parts), words=f"{least.words} as {other.setting}")


AGREE = 0.75
"""Share of equal signs from which two studies agree."""


def beyond(bars: Iterable[Bar], margin: float) -> Values:
    """Number of bars above a margin in each window."""
    totals: Values | None = None
    for bar in bars:
        own = {unit: float(value > math.log1p(margin)) for unit, value in bar.logs.items() if math.isfinite(value)}
        if totals is None:
            totals = own
        else:
            totals = {unit: totals.get(unit, 0.0) + own.get(unit, 0.0) for unit in totals.keys() | own.keys()}
    return totals or {}
