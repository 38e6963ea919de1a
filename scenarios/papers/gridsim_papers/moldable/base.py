"""Judges of what weights, promises and sizes tried do to the base, and of readings that the paper leaves open.

The claims that they judge are in `claims`.

References
----------
Srinivasan, Krishnamoorthy, Sadayappan, "A robust scheduling strategy for moldable scheduling of parallel jobs",
CLUSTER 2003.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gridsim import InputError
from gridsim_papers.decisions import Part, decided, signed, trends
from gridsim_papers.moldable.campaign import COMBINED, LANES, WAITED, WEIGHTS
from gridsim_papers.moldable.changes import CATEGORIES
from gridsim_papers.moldable.parts import (
    best,
    categories,
    gains,
    is_wrong,
    moved,
    of_bar,
    pooled,
    toward,
)
from gridsim_papers.moldable.study import Bars, Case, Judge
from gridsim_papers.paired import Values
from gridsim_papers.verdicts import LEVEL, Finding

__all__ = [
    "BASE",
    "all_sizes_hurt_light",
    "all_sizes_worse",
    "balance",
    "heavy_gain",
    "lanes_gain",
    "light_first",
    "light_lose_by_order",
    "overall",
    "scopes",
    "scraps",
    "some_each_way",
    "strict_shares",
    "together",
    "waited_gain",
]

BASE = "moldable-base"
CATEGORY, WAITED_LANES, BOTH = LANES
LIGHT, HEAVY = range(1, 6), range(8, 11)


def overall(pairs: Sequence[tuple[str, str]], **where: Any) -> Judge:
    """The first of each pair of schemes is better overall than the second; refuted where one is surely worse."""

    def judge(case: Case) -> Finding:
        parts = [toward(case.bars(mine, theirs, **where)[""], -1) for mine, theirs in pairs]
        return decided(parts, refuted=is_wrong(parts))

    return judge


def _every_size(case: Case) -> list[Bars]:
    """All sizes against twelve: one promise, and the combined scheme."""
    return [case.bars(f"{scheme}?choices=all", scheme) for scheme in (case.plain, case.combined)]


def all_sizes_hurt_light(case: Case) -> Finding:
    """Categories 1 to 5 lose where every size is tried; refuted where they gain in the mean."""
    return _hurt_light(_every_size(case))


def _hurt_light(every: Sequence[Bars]) -> Finding:
    parts = [toward(bar, 1) for bars in every for bar in categories(bars, LIGHT)]
    return decided(parts, refuted=is_wrong(pooled(bars, LIGHT, 1) for bars in every))


def all_sizes_worse(case: Case) -> Finding:
    """All jobs together lose where every size is tried."""
    parts = [toward(bars[""], 1) for bars in _every_size(case)]
    return decided(parts, refuted=is_wrong(parts))


def balance(case: Case) -> Finding:
    """No other number of sizes is better overall without degrading anybody."""
    parts = []
    for count in (3, 6, 24, "all"):
        bars = case.bars(f"{case.combined}?choices={count}", case.combined)
        every, one = bars[""], [bar for bar in categories(bars, range(1, 11)) if bar.change.degraded]
        beats = every.p_holm < LEVEL and every.change.change < 0 and not one
        settled = one or every.enough or (every.p_holm < LEVEL and every.change.change > 0)
        part = of_bar(every, "wrong" if beats else "right" if settled else "unclear", 1)
        parts.append(part._replace(words=f"{part.words}, {len(one)} categories degraded"))
    return decided(parts, refuted=is_wrong(parts))


def strict_shares(case: Case) -> Finding:
    """Heavy jobs (9, 10) gain and light ones (1, 2) lose against rigid ones; refuted where 8 to 10 lose."""
    return _strict(case.bars(BASE))


def _strict(bars: Bars) -> Finding:
    parts = [toward(bar, -1) for bar in categories(bars, (9, 10))]
    parts += [toward(bar, 1) for bar in categories(bars, (1, 2))]
    return decided(parts, refuted=pooled(bars, HEAVY, -1).state == "wrong")


def some_each_way(case: Case) -> Finding:
    """The correction of the weights helps some categories and harms others."""
    every = categories(case.bars(WEIGHTS[1], WEIGHTS[0]), range(1, 11))
    parts = [part for way in (-1, 1) for part in best((toward(bar, way) for bar in every), 1)]
    one_sided = any(all(toward(bar, way).state == "right" for bar in every) for way in (-1, 1))
    return decided(parts, refuted=one_sided)


def lanes_gain(load_factor: float) -> Judge:
    """At least eight categories gain by a promise for each; three that lose refute it, or all jobs together."""

    def judge(case: Case) -> Finding:
        bars = case.bars(CATEGORY, BASE, load_factor=load_factor)
        every = categories(bars, range(1, 11))
        losers = sum(toward(bar, -1).state == "wrong" for bar in every)
        refuted = losers >= 3 or toward(bars[""], -1).state == "wrong"
        return decided(best((gains(bar) for bar in every), 8), refuted=refuted, note=bars[""].words)

    return judge


def waited_gain(case: Case) -> Finding:
    """Promises by expansion factors against those by category: 1 to 4 gain, three or more of 6 to 10 lose."""
    bars = case.bars(WAITED_LANES, CATEGORY)
    parts = [toward(bar, -1) for bar in categories(bars, range(1, 5))]
    parts += best((moved(bar, 1) for bar in categories(bars, range(6, 11))), 3)
    return decided(parts, refuted=pooled(bars, range(1, 5), -1).state == "wrong")


def together(case: Case) -> Finding:
    """Both kinds of promises against those by category: 1 to 9 gain; refuted where 1 to 5 lose."""
    bars = case.bars(BOTH, CATEGORY)
    parts = [toward(bar, -1) for bar in categories(bars, range(1, 10))]
    return decided(parts, refuted=pooled(bars, LIGHT, -1).state == "wrong")


def light_first(case: Case) -> Finding:
    """The median wait until a promise rises with the category: rank correlations, and Page's test in the note."""
    from scipy import stats  # a second, for this test alone

    parts, trend = [], []
    for log in case.logs:
        medians = case.study.numbers("promise_wait_median", case.setting(log=log), WAITED)
        groups = [name for name in CATEGORIES if name in medians]
        correlations: dict[tuple[int, int], float] = {}
        for unit in sorted({unit for name in groups for unit in medians[name]}):
            own = [medians[name][unit] for name in groups if unit in medians[name]]
            if len(own) >= 3:
                correlations[unit] = float(stats.spearmanr(range(len(own)), own).statistic)
        parts += signed([(f"{case.name(log)}: rank correlation of category and median wait", correlations)], 1)
        trend.append(f"{case.name(log)} {_page(groups, medians)}")
    refuted = any(part.effect <= 0 for part in parts)
    return decided(parts, refuted=refuted, note=f"Page's p: {', '.join(trend)}")


def _page(groups: Sequence[str], medians: Any) -> str:
    """Page's test over the windows in which every category that most have got promises."""
    most = max((len(medians[name]) for name in groups), default=0)
    levels: list[tuple[float, Values]] = [
        (float(at + 1), medians[name]) for at, name in enumerate(groups) if 2 * len(medians[name]) > most
    ]
    try:
        (part,) = trends([("", levels)], 1)
    except (InputError, ValueError):
        return "none"
    return "none" if math.isnan(part.p) else f"{part.p:.2g} in {part.n} windows"


def _at_both_loads(case: Case, scheme: str, against: str) -> list[Bars]:
    return [case.bars(scheme, against, load_factor=load) for load in (100.0, 125.0)]


def light_lose_by_order(case: Case) -> Finding:
    """Promises served in order of the queue: all jobs together lose, and categories 1 to 5."""
    every = _at_both_loads(case, f"{COMBINED[0]}?promise_order=queue", COMBINED[0])
    parts: list[Part] = []
    for bars in every:
        parts += [toward(bar, 1) for bar in (bars[""], *categories(bars, LIGHT))]
    return decided(parts, refuted=is_wrong(toward(bars[""], 1) for bars in every))


def scraps(case: Case) -> Finding:
    """Jobs that start on what is free now: categories 8 to 10 lose."""
    every = _at_both_loads(case, "moldable-start?backfill=now", "moldable-start")
    parts = [toward(bar, 1) for bars in every for bar in categories(bars, HEAVY)]
    return decided(parts, refuted=is_wrong(pooled(bars, HEAVY, 1) for bars in every))


def heavy_gain(case: Case) -> Finding:
    """Category bounds that double from 1,000 against those that triple from 100: categories 8 to 10 gain."""
    every = _at_both_loads(case, f"{COMBINED[0]}?first=1000&ratio=2", COMBINED[0])
    parts = [toward(bar, -1) for bars in every for bar in categories(bars, HEAVY)]
    return decided(parts, strict=False)


def scopes(case: Case) -> Finding:
    """Shares among waiting jobs show what the paper says of the base and of all sizes; by what is left: a note."""
    found = {scope: _scope(case, scope) for scope in ("queued", "remaining")}
    parts = found["queued"]
    also = f"shares of what is left: {sum(part.state == 'right' for part in found['remaining'])} of {len(parts)}"
    return decided(parts, strict=False, note=also)


def _scope(case: Case, scope: str) -> list[Part]:
    """Strict shares, and all sizes for the light, under another scope, on each log."""
    parts = []
    for log in case.logs:
        bars = case.bars(f"{BASE}?scope={scope}", log=log)
        parts += [toward(bar, -1) for bar in categories(bars, (9, 10))]
        parts += [toward(bar, 1) for bar in categories(bars, (1, 2))]
        for scheme in (BASE, COMBINED[1]):
            own = f"{scheme}?scope={scope}"
            parts.append(pooled(case.bars(f"{own}&choices=all", own, log=log), LIGHT, 1))
    return parts
