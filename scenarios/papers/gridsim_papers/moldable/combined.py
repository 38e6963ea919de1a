"""Judges of the paper's claims about its proposed scheme, and of results that must agree.

The claims are listed in `claims`.

References
----------
Srinivasan, Krishnamoorthy, Sadayappan, "A robust scheduling strategy for moldable scheduling of parallel jobs",
CLUSTER 2003.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from gridsim import InputError
from gridsim.number_formatting import listed
from gridsim_papers.decisions import alike, at_least, more_often, signed
from gridsim_papers.moldable.campaign import BASELINE, EARLIER, METHODS, PROFILES
from gridsim_papers.moldable.changes import CATEGORIES
from gridsim_papers.moldable.parts import beyond, categories, degraded, mean_of, signs, toward, unharmed
from gridsim_papers.moldable.study import MEAN, Bar, Bars, Case, Judge, Setting, between
from gridsim_papers.paired import by_window
from gridsim_papers.verdicts import Finding, Part, decided

__all__ = [
    "always_degrades",
    "always_gains",
    "consistent",
    "other_loads",
    "outperforms",
    "robust",
    "robust_on_profiles",
    "same_on_both_logs",
    "wide_ranges",
]

LOADS = (100.0, 125.0, 150.0)
SIGMAS = (0.0, 1.0, 2.0)
RANGES = (1.0, 2.0, 3.0, 4.0)
_MANY_JOBS = 100


def wide_ranges(case: Case) -> Finding:
    """Range factors 5 and 8 equal 4 within the margin, overall and in every category with a hundred jobs or more."""
    parts: list[Part] = []
    at_4 = case.setting(load_factor=125.0, range_factor=4.0)
    sizes = case.study.numbers("completed", at_4, BASELINE)
    many = [name for name in CATEGORIES if name in sizes and by_window(sizes[name]).mean() >= _MANY_JOBS]
    for factor in (5.0, 8.0):
        bars = _against_range(case, at_4, factor)
        kept = [bars[name] for name in ("", *many) if name in bars]
        parts += alike([(bar.words, bar.logs) for bar in kept], case.margin, ratio=True)
    return decided(parts)


def _against_range(case: Case, setting: Setting, factor: float) -> Bars:
    """Changes from one range factor to another; the jobs are the same."""
    other = case.study.at(setting._replace(range_factor=factor))
    mine, theirs = (case.study.numbers(MEAN, at, case.combined) for at in (other, setting))
    return between(mine, theirs, other, case.combined, f"RF {setting.range_factor:g}")


def same_on_both_logs(case: Case) -> Finding:
    """Three quarters of the categories at the settings of figures 6 to 11 change with the same sign on both logs.

    All jobs together change with the same sign at every setting.
    """
    if len(case.logs) < 2:
        raise InputError("one log stands in for both", field="log")
    settings = product(((100.0, 0.0), (125.0, 0.0), (125.0, 1.0)), RANGES)
    every = [
        [case.bars(case.combined, log=log, load_factor=load, sigma=sigma, range_factor=factor) for log in case.logs]
        for (load, sigma), factor in settings
    ]
    return decided(signs([(one[group], other[group]) for one, other in every for group in one if group in other]))


def other_loads(case: Case) -> Finding:
    """Duplicates and longer jobs have the same results as shorter gaps, at the settings of figures 8 and 10."""
    pairs = []
    for method, sigma, factor in product(METHODS[1:], (0.0, 1.0), RANGES):
        one, other = (
            case.bars(case.combined, method=way, load_factor=125.0, sigma=sigma, range_factor=factor)
            for way in (method, METHODS[0])
        )
        pairs += [(one[group], other[group]) for group in one if group in other]
    return decided(signs(pairs))


def robust(*figures: tuple[float, float], lightest: bool = False) -> Judge:
    """Better overall at every range factor on both logs, with no degraded category.

    Parameters
    ----------
    figures : (load factor, sigma)
        Of the settings.
    lightest : bool
        Whether category 1 may be degraded at range factor 1.
    """

    def judge(case: Case) -> Finding:
        settings = product(case.logs, figures, RANGES)
        every = [
            case.bars(case.combined, log=log, load_factor=load, sigma=sigma, range_factor=factor)
            for log, (load, sigma), factor in settings
        ]
        spared = [bars.get(CATEGORIES[0]) for bars in every if lightest and bars[""].setting.range_factor == 1]
        return _robust(every, [bar for bar in spared if bar], case.margin)

    return judge


def _robust(every: Sequence[Bars], spared: Sequence[Bar], margin: float, note: str = "") -> Finding:
    """Better overall everywhere, with no degraded category except the bars *spared*."""
    overall = [toward(bars[""], -1) for bars in every]
    bars = [bar for own in every for bar in categories(own, range(1, 11)) if bar not in spared]
    return decided([*overall, *(unharmed(bar, margin) for bar in bars)], universal=True, note=note)


def _profiles(case: Case) -> tuple[tuple[str, ...], str]:
    """Sets of profiles that were run (the first if none was, for the error), and a note on the others."""
    there = tuple(name for name in PROFILES if case.has(case.combined, load_factor=LOADS[0], profiles=name))
    missing = [name for name in PROFILES if name not in there]
    return there or PROFILES[:1], f"{listed(missing)} not run" if missing else ""


def robust_on_profiles(case: Case) -> Finding:
    """The claim with profiles, at every load."""
    there, note = _profiles(case)
    every = [case.bars(case.combined, load_factor=load, profiles=profiles) for profiles, load in product(there, LOADS)]
    return _robust(every, (), case.margin, note)


def always_degrades(case: Case) -> Finding:
    """With either set of profiles the base degrades a category at each load."""
    parts: list[Part] = []
    there, note = _profiles(case)
    for profiles, load in product(there, LOADS):
        bars = case.bars("moldable-base", load_factor=load, profiles=profiles)
        parts += at_least(1, [degraded(bar, case.margin) for bar in categories(bars, range(1, 11))])
    return decided(parts, universal=True, note=note)


def _overall(case: Case, loads: Iterable[float]) -> list[Part]:
    return [
        toward(case.bars(case.combined, log=log, load_factor=load, sigma=sigma, range_factor=factor)[""], -1)
        for log, load, sigma, factor in product(case.logs, loads, SIGMAS, RANGES)
    ]


def always_gains(case: Case) -> Finding:
    """At the highest load all jobs together gain at every setting."""
    return decided(_overall(case, LOADS[-1:]), universal=True)


def consistent(case: Case) -> Finding:
    """All jobs together gain at every setting of the grid."""
    return decided(_overall(case, LOADS), universal=True)


def outperforms(case: Case) -> Finding:
    """Fewer degraded categories over the grid than under either earlier scheme, and better overall on average."""
    counts, means = [], []
    pairs: dict[str, int] = {}
    for log in case.logs:
        grid: list[dict[str, Any]] = [
            {"log": log, "load_factor": load, "sigma": sigma, "range_factor": factor}
            for load, sigma, factor in product(LOADS, SIGMAS, RANGES)
        ]
        harmed = {}
        for scheme in (case.combined, *EARLIER):
            bars = [bar for where in grid for bar in categories(case.bars(scheme, **where), range(1, 11))]
            harmed[scheme] = beyond(bars, case.margin)
            pairs[scheme] = pairs.get(scheme, 0) + sum(bar.change.change > case.margin for bar in bars)
        for scheme in EARLIER:
            every = mean_of(case.bars(case.combined, scheme, **where)[""] for where in grid)
            means.append((f"overall against {scheme} on {case.name(log)}, mean of the grid", every))
            counts.append(
                (f"categories degraded against {scheme} on {case.name(log)}", harmed[case.combined], harmed[scheme])
            )
    told = ", ".join(f"{scheme} {count}" for scheme, count in pairs.items())
    parts = [*more_often(counts, -1), *signed(means, -1, ratio=True)]
    return decided(parts, note=f"(category, setting) pairs with a mean beyond the margin: {told}")
