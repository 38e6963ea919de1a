"""Tests that decide parts of claims about policies, on paired numbers of units.

Differences are computed per unit and first averaged over the streams of a window, so n is the number of windows. Every
test is one-sided and uncorrected: `gridsim_papers.verdicts.decided` corrects over all parts of a claim.

Statistics are those of `gridsim.metrics.paired_tests`; Page's trend test is scipy's.

References
----------
Benjamini and Heller, "Screening for partial conjunction hypotheses", Biometrics 64(4), 2008.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from gridsim import InputError
from gridsim.metrics.paired_tests import PairedTest, bootstrap_means, t_test
from gridsim.model.time import FloatArray
from gridsim_papers.paired import Values, by_window, changes
from gridsim_papers.verdicts import LEVEL, NAN, Finding, Part

__all__ = [
    "agreement",
    "alike",
    "answered",
    "at_least",
    "expected",
    "more_often",
    "one_sided",
    "resampled",
    "signed",
    "trends",
]

Subject = TypeVar("Subject")


def answered(judge: Callable[[Subject], Finding], subject: Subject) -> Finding:
    """Return the finding of a judge; *not testable*, with the reason, when the rows that decide are missing."""
    try:
        return judge(subject)
    except InputError as error:
        return Finding("not testable", note=str(error))


def one_sided(p: float, supports: bool) -> tuple[float, float]:
    """Return ``a`` and ``b`` of a part, from a two-sided p value and whether the estimate is as claimed.

    Examples
    --------
    >>> one_sided(0.02, True), one_sided(0.02, False)
    ((0.01, 0.99), (0.99, 0.01))
    """
    return (p / 2, 1 - p / 2) if supports else (1 - p / 2, p / 2)


def _below(numbers: FloatArray, limit: float) -> float:
    """One-sided p that the mean is not below a limit, by Student's t-test."""
    test = t_test(numbers - limit, scale=float(np.abs(numbers).max(initial=0.0)))
    return one_sided(test.p, test.mean < 0)[0]


def _limit(margin: float, ratio: bool) -> float:
    return math.log1p(margin) if ratio else margin


def signed(
    family: Sequence[tuple[str, Values]], wanted: int, *, ratio: bool = False, margin: float | None = None
) -> list[Part]:
    """Test whether mean changes have a sign, each by a paired t-test.

    Parameters
    ----------
    family : sequence of (str, values)
        Description, and the change of each unit.
    wanted : {-1, 1}
        The claimed sign.
    ratio : bool
        Whether the changes are logarithms of ratios: the reported effect is then the ratio.
    margin : float, optional
        For non-inferiority (claims such as "at most"). A change in the opposite direction is shown to be within this
        margin. It is refuted when the estimate is beyond the margin and its sign is significantly the opposite one.
    """
    found = []
    for words, values in family:
        numbers = by_window(values)
        worse = -wanted * numbers
        if margin is None:
            a, b = _below(worse, 0.0), _below(-worse, 0.0)
        else:
            limit = _limit(margin, ratio)
            a = _below(worse, limit)
            b = _below(-worse, 0.0) if len(worse) and worse.mean() > limit else 1.0
        found.append(Part(words, a, b, len(numbers), *_shown(t_test(numbers), ratio), numbers))
    return found


def _shown(test: PairedTest, ratio: bool) -> tuple[float, float, float]:
    """Mean change and its interval, or the ratios with these logarithms; infinity for a missing upper limit."""
    shown = test.mean, test.low, test.high
    if not ratio:
        return shown
    effect, low, high = (math.exp(value) if value < 700 else math.inf for value in shown)
    return effect, low, high


def alike(family: Sequence[tuple[str, Values]], margin: float, *, ratio: bool = False) -> list[Part]:
    """Test whether mean changes lie within a *margin* of 0 (of a ratio of 1), by two one-sided tests."""
    limit = _limit(margin, ratio)
    return _within(family, -limit, limit, ratio)


def expected(family: Sequence[tuple[str, Values]], least: float, most: float, margin: float = 0.0) -> list[Part]:
    """Test whether mean changes lie in a printed range, or within a *margin* of it."""
    return _within(family, least - margin, most + margin, False)


def _within(family: Sequence[tuple[str, Values]], least: float, most: float, ratio: bool) -> list[Part]:
    """Shown by two one-sided tests, refuted by the test on the side of the mean."""
    found = []
    for words, values in family:
        numbers = by_window(values)
        a = max(_below(numbers, most), _below(-numbers, -least))
        b = min(_below(-numbers, -most), _below(numbers, least))
        found.append(Part(words, a, b, len(numbers), *_shown(t_test(numbers), ratio), numbers))
    return found


def trends(family: Sequence[tuple[str, Sequence[tuple[float, Values]]]], wanted: int) -> list[Part]:
    """Test whether numbers rise (1) or fall (-1) along an axis: Page's test over windows.

    Parameters
    ----------
    family : sequence of (str, sequence of (level, values))
        Description, and numbers of each unit at two or more levels of the axis (two levels: a paired t-test).

    Notes
    -----
    The effect is the slope of a straight line over the logarithm of the axis, relative to the mean of the window, with
    an interval from resampled windows. The description contains the number of units whose last number is beyond the
    first.
    """
    found = []
    for words, levels in family:
        axis, table = _table(levels)
        a, b = _page(table, wanted), _page(table, -wanted)
        slopes = _slopes(axis, table)
        low, high = np.quantile(bootstrap_means(slopes), [LEVEL / 2, 1 - LEVEL / 2]).tolist()
        ends = changes(levels[-1][1], levels[0][1])
        moved = np.mean([wanted * value > 0 for value in ends.values()]) if ends else NAN
        effect = float(slopes.mean()) if len(slopes) else NAN
        told = f"{words} ({100 * moved:.0f} % of {len(ends)} units)"
        found.append(Part(told, a, b, len(table), effect, low, high, table[:, -1] - table[:, 0]))
    return found


def _table(levels: Sequence[tuple[float, Values]]) -> tuple[FloatArray, FloatArray]:
    """The axis, and windows by levels, for the units that have a number at each level."""
    if len(levels) < 2:
        raise InputError(f"{len(levels)} levels show no trend; expected two or more")
    units = [unit for unit in levels[0][1] if all(math.isfinite(values.get(unit, NAN)) for _, values in levels)]
    columns = [by_window({unit: values[unit] for unit in units}) for _, values in levels]
    return np.array([level for level, _ in levels], dtype=np.float64), np.stack(columns, axis=1)


def _page(table: FloatArray, way: int) -> float:
    """One-sided p that the columns do not rise (1) or fall (-1)."""
    from scipy import stats  # the import takes a second and only this test needs it

    windows, levels = table.shape
    if windows < 2:
        return NAN
    if levels == 2:
        return _below(-way * (table[:, 1] - table[:, 0]), 0.0)
    return float(stats.page_trend_test(table[:, ::way]).pvalue)


def _slopes(axis: FloatArray, table: FloatArray) -> FloatArray:
    """Slope of each row over the logarithm of the axis (over the axis itself when the logarithm is undefined)."""
    along = np.log(axis) if axis.min() > 0 else axis
    along = along - along.mean()
    means = table.mean(axis=1)
    slopes: FloatArray = table @ along / (along @ along)
    return slopes / np.where(means == 0, 1.0, np.abs(means))


def more_often(family: Sequence[tuple[str, Values, Values]], wanted: int) -> list[Part]:
    """Test whether one number is above (1) or below (-1) another in most windows: sign tests that ignore ties.

    The effect is the mean difference.
    """
    from scipy import stats  # the import takes a second and only these tests need it

    found = []
    for words, mine, theirs in family:
        numbers = by_window(changes(mine, theirs))
        moved = int(np.count_nonzero(numbers))
        right = int(np.count_nonzero(wanted * numbers > 0))
        a, b = (
            float(stats.binomtest(k, moved, alternative="greater").pvalue) if moved else 1.0
            for k in (right, moved - right)
        )
        found.append(Part(words, a, b, len(numbers), *_shown(t_test(numbers), False), numbers))
    return found


def agreement(tests: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return ``a`` and ``b`` of a part that claims the same sign for several changes.

    Parameters
    ----------
    tests : sequence of (a, b)
        One-sided p values of each change: that it is not above 0, and that it is not below.

    Notes
    -----
    Shown when all changes are significantly above 0, or all significantly below; refuted when one is significantly
    above and another significantly below.
    """
    above, below = zip(*tests, strict=True)
    return min(max(above), max(below)), min(1.0, len(tests) * max(min(above), min(below)))


def at_least(number: int, parts: Sequence[Part]) -> list[Part]:
    """Parts of a claim that needs a *number* of many parts: the best ones, corrected for the selection.

    The part at place i claims that at least i of all parts are as claimed. Its ``a`` is corrected by Holm's method over
    all candidates. Its ``b`` is that of a partial conjunction: enough parts are otherwise that fewer than i remain.

    Raises
    ------
    InputError
        When there are fewer parts than needed.
    """
    if len(parts) < number:
        raise InputError(f"{len(parts)} parts to choose from; expected {number} or more")
    best = sorted(parts, key=lambda part: (part.a, -part.b))
    worst_first = sorted(part.b for part in parts)
    found: list[Part] = []
    for place, part in enumerate(best[:number], start=1):
        a = min(1.0, (len(parts) - place + 1) * part.a)
        b = min(1.0, place * worst_first[len(parts) - place])
        found.append(part._replace(a=max([a, *(one.a for one in found)]), b=b))
    return found


def resampled(words: str, value: float, draws: FloatArray, n: int, least: float, most: float = math.inf) -> Part:
    """Test whether a statistic other than a mean lies in a range: the share of resamples of the units in the range.

    Parameters
    ----------
    value : float
        The statistic of all units.
    draws : array
        The statistic of each resample.
    """
    outside = int(np.count_nonzero((draws < least) | (draws > most)))
    a, b = ((1 + count) / (1 + len(draws)) for count in (outside, len(draws) - outside))
    if not least <= value <= most:  # an estimate outside the range is evidence against the claim
        a = 1.0
    else:
        b = 1.0
    low, high = np.quantile(draws, [LEVEL / 2, 1 - LEVEL / 2]).tolist()
    return Part(words, a, b, n, value, low, high)
