"""Judges of the effects of weights, promises and tried sizes on the base scheme, and of ambiguous points of the paper.

The claims are listed in `claims`.

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
from gridsim_papers.decisions import at_least, signed, trends
from gridsim_papers.moldable.campaign import COMBINED, LANES, WAITED, WEIGHTS
from gridsim_papers.moldable.changes import CATEGORIES
from gridsim_papers.moldable.parts import categories, pooled, toward, unharmed
from gridsim_papers.moldable.study import Bars, Case, Judge
from gridsim_papers.paired import Values
from gridsim_papers.verdicts import Finding, Part, decided

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
    """The first of each pair of schemes is better overall than the second."""

    def judge(case: Case) -> Finding:
        return decided([toward(case.bars(mine, theirs, **where)[""], -1) for mine, theirs in pairs])

    return judge


def _every_size(case: Case) -> list[Bars]:
    """All sizes against twelve: one promise, and the combined scheme."""
    return [case.bars(f"{scheme}?choices=all", scheme) for scheme in (case.plain, case.combined)]


def all_sizes_hurt_light(case: Case) -> Finding:
    """Responses of categories 1 to 5 get longer when every size is tried."""
    return decided([toward(bar, 1) for bars in _every_size(case) for bar in categories(bars, LIGHT)])


def all_sizes_worse(case: Case) -> Finding:
    """The response of all jobs together gets longer when every size is tried."""
    return decided([toward(bars[""], 1) for bars in _every_size(case)])


def balance(case: Case) -> Finding:
    """No other number of sizes is better overall without degrading a category."""
    every = [case.bars(f"{case.combined}?choices={count}", case.combined) for count in (3, 6, 24, "all")]
    return decided([_beaten(bars, case.margin) for bars in every], universal=True)


def _beaten(bars: Bars, margin: float) -> Part:
    """Test whether all jobs together gain no more than the margin, or a category is degraded."""
    overall = toward(bars[""], 1, margin)
    harmless = [unharmed(bar, margin) for bar in categories(bars, range(1, 11))]
    (harmed,) = at_least(1, [part._replace(a=part.b, b=part.a) for part in harmless])
    return overall._replace(a=min(1.0, 2 * min(overall.a, harmed.a)), b=max(overall.b, harmed.b))


def strict_shares(case: Case) -> Finding:
    """Heavy jobs (9, 10) gain and light ones (1, 2) lose compared with rigid ones."""
    bars = case.bars(BASE)
    parts = [toward(bar, -1) for bar in categories(bars, (9, 10))]
    return decided([*parts, *(toward(bar, 1) for bar in categories(bars, (1, 2)))])


def some_each_way(case: Case) -> Finding:
    """The correction of the weights helps some categories and harms others."""
    every = categories(case.bars(WEIGHTS[1], WEIGHTS[0]), range(1, 11))
    return decided([part for way in (-1, 1) for part in at_least(1, [toward(bar, way) for bar in every])])


def lanes_gain(load_factor: float) -> Judge:
    """At least eight categories gain by a promise for each."""

    def judge(case: Case) -> Finding:
        bars = case.bars(CATEGORY, BASE, load_factor=load_factor)
        every = categories(bars, range(1, 11))
        return decided(at_least(8, [toward(bar, -1) for bar in every]), note=bars[""].words)

    return judge


def waited_gain(case: Case) -> Finding:
    """Promises by expansion factors against those by category: 1 to 4 gain, three or more of 6 to 10 lose."""
    bars = case.bars(WAITED_LANES, CATEGORY)
    parts = [toward(bar, -1) for bar in categories(bars, range(1, 5))]
    return decided([*parts, *at_least(3, [toward(bar, 1) for bar in categories(bars, range(6, 11))])])


def together(case: Case) -> Finding:
    """Both kinds of promises against those by category: 1 to 9 gain."""
    return decided([toward(bar, -1) for bar in categories(case.bars(BOTH, CATEGORY), range(1, 10))])


def light_first(case: Case) -> Finding:
    """The median wait for a promise increases with the category: rank correlations, and Page's test in the note."""
    from scipy import stats  # the import takes a second and only this test needs it

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
    return decided(parts, note=f"Page's p: {', '.join(trend)}")


def _page(groups: Sequence[str], medians: Any) -> str:
    """Page's test over the windows in which every frequent category got promises."""
    most = max((len(medians[name]) for name in groups), default=0)
    levels: list[tuple[float, Values]] = [
        (float(at + 1), medians[name]) for at, name in enumerate(groups) if 2 * len(medians[name]) > most
    ]
    try:
        (part,) = trends([("", levels)], 1)
    except (InputError, ValueError):
        return "none"
    return "none" if math.isnan(part.a) else f"{part.a:.2g} in {part.n} windows"


def _at_both_loads(case: Case, scheme: str, against: str) -> list[Bars]:
    return [case.bars(scheme, against, load_factor=load) for load in (100.0, 125.0)]


def light_lose_by_order(case: Case) -> Finding:
    """With promises served in queue order, all jobs together lose, and categories 1 to 5 lose."""
    every = _at_both_loads(case, f"{COMBINED[0]}?promise_order=queue", COMBINED[0])
    parts: list[Part] = []
    for bars in every:
        parts += [toward(bar, 1) for bar in (bars[""], *categories(bars, LIGHT))]
    return decided(parts)


def scraps(case: Case) -> Finding:
    """When jobs start on the currently free cores, categories 8 to 10 lose."""
    every = _at_both_loads(case, "moldable-start?backfill=now", "moldable-start")
    parts = [toward(bar, 1) for bars in every for bar in categories(bars, HEAVY)]
    return decided(parts)


def heavy_gain(case: Case) -> Finding:
    """Category bounds that double from 1,000 against those that triple from 100: categories 8 to 10 gain."""
    every = _at_both_loads(case, f"{COMBINED[0]}?first=1000&ratio=2", COMBINED[0])
    parts = [toward(bar, -1) for bars in every for bar in categories(bars, HEAVY)]
    return decided(parts)


def scopes(case: Case) -> Finding:
    """Shares among waiting jobs reproduce the paper's results for the base and all sizes; the other scope: a note."""
    found = {scope: _scope(case, scope) for scope in ("queued", "remaining")}
    also = decided(found["remaining"])
    return decided(found["queued"], note=f"shares of what is left: {also.answer}, {also.note}")


def _scope(case: Case, scope: str) -> list[Part]:
    """Strict shares, and all sizes for light jobs, under another scope, on each log."""
    parts = []
    for log in case.logs:
        bars = case.bars(f"{BASE}?scope={scope}", log=log)
        parts += [toward(bar, -1) for bar in categories(bars, (9, 10))]
        parts += [toward(bar, 1) for bar in categories(bars, (1, 2))]
        for scheme in (BASE, COMBINED[1]):
            own = f"{scheme}?scope={scope}"
            parts.append(pooled(case.bars(f"{own}&choices=all", own, log=log), LIGHT, 1))
    return parts
