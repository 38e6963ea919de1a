"""Tests that decide parts of claims about policies, on paired numbers of units.

Differences are taken unit by unit and averaged over the streams of a window first, so n is windows. Holm's correction
takes one comparison at all loads (or all slack factors) for a family.

Statistics are those of `gridsim.metrics.paired_tests` and `gridsim.metrics.compare`; Page's trend test is scipy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from gridsim import InputError
from gridsim.metrics.compare import holm
from gridsim.metrics.paired_tests import PairedTest, bootstrap_means, equivalence, t_test
from gridsim.model.time import FloatArray
from gridsim_papers.paired import Values, by_window, changes
from gridsim_papers.verdicts import LEVEL, NAN, Answer, Finding, counted

__all__ = [
    "ENOUGH",
    "FEWEST",
    "Part",
    "State",
    "alike",
    "answered",
    "decided",
    "expected",
    "signed",
    "standing",
    "trends",
]

ENOUGH = 10
"""Windows from which on a claim that its own rule refutes where nothing is shown does not hold, instead of being left
open: the fewest that either log of the papers has."""

Subject = TypeVar("Subject")

State = Literal["right", "wrong", "unclear"]
_RANKS: Mapping[State, int] = {"wrong": 0, "unclear": 1, "right": 2}

FEWEST = 3
"""Windows below which nothing is decided: two that happen to agree would."""


class Part(NamedTuple):
    """One thing that a claim says: whether it is as claimed, surely otherwise or neither.

    ``support`` orders parts of the same state; ``series`` has a number a window, for Wilcoxon's test.
    """

    words: str
    state: State
    effect: float
    low: float
    high: float
    p: float
    n: int
    support: float = NAN
    series: FloatArray | None = None


def answered(judge: Callable[[Subject], Finding], subject: Subject) -> Finding:
    """What a judge says; *not testable here*, and why, where the rows that decide are missing."""
    try:
        return judge(subject)
    except InputError as error:
        return Finding("not testable here", note=str(error))


def standing(part: Part) -> tuple[int, float]:
    """What orders parts: the least supported first."""
    return _RANKS[part.state], -math.inf if math.isnan(part.support) else part.support


def _state(p: float, mean: float, wanted: int) -> State:
    if not p < LEVEL:  # also where nothing could be signed
        return "unclear"
    return "right" if mean * wanted > 0 else "wrong"


def signed(
    family: Sequence[tuple[str, Values]], wanted: int, *, ratio: bool = False, margin: float | None = None
) -> list[Part]:
    """Whether mean changes have a sign, each by a paired t-test, Holm's correction over all of them.

    Parameters
    ----------
    family : sequence of (str, values)
        Words, and the change of each unit.
    wanted : {-1, 1}
        The sign claimed.
    ratio : bool
        Whether the changes are logarithms of ratios: the effect shown is the ratio.
    margin : float, optional
        A change the other way within this margin is as good as none: "at most", "at least".
    """
    series = [by_window(values) for _, values in family]
    tests = [t_test(numbers, scale=float(np.abs(numbers).max(initial=0.0))) for numbers in series]
    found = []
    for (words, _), numbers, test, p in zip(family, series, tests, holm([test.p for test in tests]), strict=True):
        state = _state(p, test.mean, wanted)
        if state != "right" and margin is not None and _equivalent(numbers, margin, ratio) < LEVEL:
            state = "right"
        effect, low, high = _shown(test, ratio)
        found.append(Part(words, state, effect, low, high, p, test.pairs, wanted * test.t, numbers))
    return found


def _shown(test: PairedTest, ratio: bool) -> tuple[float, float, float]:
    """Mean change and its interval, or the ratio whose logarithm they are; infinity where there is no top."""
    shown = test.mean, test.low, test.high
    if not ratio:
        return shown
    effect, low, high = (math.exp(value) if value < 700 else math.inf for value in shown)
    return effect, low, high


def _equivalent(numbers: FloatArray, margin: float, ratio: bool) -> float:
    return equivalence(numbers, margin if ratio else math.expm1(margin))  # the margin there is one of logarithms


def alike(family: Sequence[tuple[str, Values]], margin: float, *, ratio: bool = False) -> list[Part]:
    """Whether mean changes lie within a *margin* of 0 (of a ratio of 1): two one-sided tests, not corrected."""
    found = []
    for words, values in family:
        numbers = by_window(values)
        test, p = t_test(numbers), _equivalent(numbers, margin, ratio)
        limit = math.log1p(margin) if ratio else margin
        state: State = "right" if p < LEVEL else "wrong" if test.low > limit or test.high < -limit else "unclear"
        effect, low, high = _shown(test, ratio)
        found.append(Part(words, state, effect, low, high, p, test.pairs, limit - abs(test.mean), numbers))
    return found


def expected(family: Sequence[tuple[str, Values]], least: float, most: float) -> list[Part]:
    """Whether the interval of a mean change reaches the printed range, and leaves out 0.

    Without the second, little data would agree with every number.
    """
    found = []
    for words, values in family:
        numbers = by_window(values)
        test = t_test(numbers)
        state: State = "unclear"
        if test.high < least or test.low > most:
            state = "wrong"
        elif test.low > 0 and test.high >= least:
            state = "right"
        away = max(least - test.mean, test.mean - most, 0.0)
        found.append(Part(words, state, test.mean, test.low, test.high, test.p, test.pairs, -away, numbers))
    return found


def trends(
    family: Sequence[tuple[str, Sequence[tuple[float, Values]]]], wanted: int, *, corrected: bool = True
) -> list[Part]:
    """Whether numbers rise (1) or fall (-1) along an axis: Page's test over windows, Holm over the family.

    Parameters
    ----------
    family : sequence of (str, sequence of (level, values))
        Words, and numbers of each unit at each level of the axis, two levels or more (two: a paired t-test).

    Notes
    -----
    The effect is the slope of a straight line in logarithms of the axis, relative to the mean of the window, with its
    interval over resampled windows. The words tell in how many units the last number is beyond the first one.
    """
    tables = [_table(levels) for _, levels in family]
    ways = {way: [_page(table, way) for _, table in tables] for way in (1, -1)}
    if corrected:
        ways = {way: holm(p) for way, p in ways.items()}
    found = []
    for at, ((words, levels), (axis, table)) in enumerate(zip(family, tables, strict=True)):
        there, back = ways[wanted][at], ways[-wanted][at]
        state: State = "right" if there < LEVEL else "wrong" if back < LEVEL else "unclear"
        slopes = _slopes(axis, table)
        low, high = np.quantile(bootstrap_means(slopes), [LEVEL / 2, 1 - LEVEL / 2]).tolist()
        ends = changes(levels[-1][1], levels[0][1])
        moved = np.mean([wanted * value > 0 for value in ends.values()]) if ends else NAN
        effect = float(slopes.mean()) if len(slopes) else NAN
        told = f"{words} ({100 * moved:.0f} % of {len(ends)} units)"
        support = math.log(max(back, 1e-300)) - math.log(max(there, 1e-300)) if there == there else NAN
        found.append(Part(told, state, effect, low, high, there, len(table), support, table[:, -1] - table[:, 0]))
    return found


def _table(levels: Sequence[tuple[float, Values]]) -> tuple[FloatArray, FloatArray]:
    """The axis, and windows by levels, of the units that have a number at each."""
    if len(levels) < 2:
        raise InputError(f"{len(levels)} levels show no trend; expected two or more")
    units = [unit for unit in levels[0][1] if all(math.isfinite(values.get(unit, NAN)) for _, values in levels)]
    columns = [by_window({unit: values[unit] for unit in units}) for _, values in levels]
    return np.array([level for level, _ in levels], dtype=np.float64), np.stack(columns, axis=1)


def _page(table: FloatArray, way: int) -> float:
    """One-sided p that the columns rise (1) or fall (-1)."""
    from scipy import stats  # a second, for this test alone

    windows, levels = table.shape
    if windows < 2:
        return NAN
    if levels == 2:
        test = t_test(table[:, 1] - table[:, 0])
        return test.p / 2 if way * test.mean > 0 else 1 - test.p / 2
    return float(stats.page_trend_test(table[:, ::way]).pvalue)


def _slopes(axis: FloatArray, table: FloatArray) -> FloatArray:
    """Slope of each row over the logarithm of the axis (over the axis itself where that has no logarithm)."""
    along = np.log(axis) if axis.min() > 0 else axis
    along = along - along.mean()
    means = table.mean(axis=1)
    slopes: FloatArray = table @ along / (along @ along)
    return slopes / np.where(means == 0, 1.0, np.abs(means))


def decided(parts: Sequence[Part], *, strict: bool = True, refuted: bool | None = None, note: str = "") -> Finding:
    """The verdict of several parts, by the rules of `gridsim_papers.verdicts`, and the effect of the least supported.

    Parameters
    ----------
    strict : bool
        Whether the claim is refuted where nothing is shown: from `ENOUGH` windows on an unclear part is a wrong one.
    refuted : bool, optional
        What the claim's own rule says, where it has one: it does not hold if refuted, whatever else holds, and is
        left open if not where fewer than half of the parts are as claimed.

    Notes
    -----
    Fewer than `FEWEST` windows decide nothing.
    """
    if not parts:
        raise InputError("no row decides any part of it")
    parts = [part if part.n >= FEWEST else part._replace(state="unclear") for part in parts]
    n = min(part.n for part in parts)
    right, wrong = (sum(part.state == state for part in parts) for state in ("right", "wrong"))
    against = len(parts) - right if strict and n >= ENOUGH else wrong
    answer: Answer = counted(right, 0 if refuted is False else against, len(parts), n)
    if refuted and n >= FEWEST:
        answer = "does not hold"
    weakest = min(parts, key=standing)
    told = [f"{right} of {len(parts)} as claimed" + (f", {wrong} surely otherwise" if wrong else "")]
    told.append(f"least: {weakest.words}")
    others = [part.words for part in parts if part.state == "wrong" and part is not weakest]
    if others:
        told.append("otherwise too: " + ", ".join(others[:3]) + (f" and {len(others) - 3} more" if others[3:] else ""))
    if note:
        told.append(note)
    return Finding(answer, *weakest[2:7], "; ".join(told), weakest.series)
