"""Judges of the paper's claims about the schemes before its own.

The claims are listed in `claims`.

References
----------
Srinivasan, Krishnamoorthy, Sadayappan, "A robust scheduling strategy for moldable scheduling of parallel jobs",
CLUSTER 2003.
"""

from __future__ import annotations

from itertools import chain, product

from gridsim_papers.decisions import at_least, expected, more_often, signed
from gridsim_papers.moldable.campaign import BASELINE, EARLIER, GREEDY, LANES, WEIGHTS
from gridsim_papers.moldable.parts import beyond, categories, degraded, toward, unharmed
from gridsim_papers.moldable.study import Bars, Case, Judge
from gridsim_papers.paired import changes
from gridsim_papers.verdicts import Finding, Part, decided

__all__ = [
    "all_gain",
    "before_greedy",
    "both_gain",
    "hidden_losers",
    "inefficient",
    "light_suffer",
    "saturated",
    "several_suffer",
    "start_is_best",
    "weight_factor",
    "worse_still",
]

SUBMIT, START = EARLIER
ALL = range(1, 11)
SEVERAL = 3
"""Minimum number of categories that counts as several."""


def saturated(case: Case) -> Finding:
    """The rigid baseline uses 0.90 to 0.98 of the machine at load factor 150."""
    family = []
    for log in case.logs:
        setting = case.setting(log=log, load_factor=150.0)
        family.append((f"utilisation, {case.name(log)}", case.study.numbers("utilisation", setting, BASELINE)[""]))
    values = chain.from_iterable(numbers.values() for _, numbers in family)
    told = "by window " + " ".join(f"{value:.2f}" for value in values)
    return decided(expected(family, 0.90, 0.98), note=told)


def before_greedy(case: Case) -> Finding:
    """Both fair-share schemes are better overall than the greedy one, with and without variation of parallelism."""
    settings = product(case.logs, (100.0, 125.0), (0.0, 1.0), EARLIER)
    return decided(
        [
            toward(case.bars(scheme, GREEDY, log=log, load_factor=load, sigma=sigma)[""], -1)
            for log, load, sigma, scheme in settings
        ]
    )


def both_gain(sigma: float) -> Judge:
    """Both fair-share schemes are better overall than rigid jobs on CTC."""

    def judge(case: Case) -> Finding:
        return decided([toward(_first(case, scheme, sigma)[""], -1) for scheme in EARLIER])

    return judge


def _first(case: Case, scheme: str, sigma: float = 0.0) -> Bars:
    return case.bars(scheme, log="ctc", sigma=sigma)


def several_suffer(case: Case) -> Finding:
    """At least three categories lose more than the margin with sizes chosen at submission."""
    every = categories(_first(case, SUBMIT), ALL)
    return decided(at_least(SEVERAL, [degraded(bar, case.margin) for bar in every]))


def all_gain(case: Case) -> Finding:
    """Every category gains with sizes chosen at the start."""
    return decided([toward(bar, -1) for bar in categories(_first(case, START), ALL)], universal=True)


def light_suffer(case: Case) -> Finding:
    """With less scalable jobs at least three of the categories 1 to 7 are degraded by each scheme."""
    parts: list[Part] = []
    for scheme in EARLIER:
        every = categories(_first(case, scheme, 1.0), range(1, 8))
        parts += at_least(SEVERAL, [degraded(bar, case.margin) for bar in every])
    return decided(parts)


def inefficient(case: Case) -> Finding:
    """At high load and poor scalability, several categories are degraded, without an overall gain."""
    parts = []
    for scheme in EARLIER:
        bars = case.bars(scheme, log="sdsc", load_factor=125.0, sigma=2.0)
        losers = [degraded(bar, case.margin) for bar in categories(bars, ALL)]
        parts += [toward(bars[""], 1, case.margin), *at_least(SEVERAL, losers)]
    return decided(parts)


def weight_factor(case: Case) -> Finding:
    """Twice the share degrades no category at sigma 0, degrades light ones at sigma 1, and degrades more than at 0."""
    parts = []
    for log in case.logs:
        linear, varied = (case.bars(START, "moldable-base", log=log, sigma=sigma) for sigma in (0.0, 1.0))
        light = categories(varied, range(1, 5))
        more = [
            (f"{bar.words} less that at sigma 0", changes(bar.logs, linear[bar.group].logs))
            for bar in light
            if bar.group in linear
        ]
        parts += [unharmed(bar, case.margin) for bar in categories(linear, ALL)]
        parts += [*(toward(bar, 1) for bar in light), *signed(more, 1, ratio=True)]
    return decided(parts, universal=True)


def worse_still(case: Case) -> Finding:
    """More categories are degraded at sigma 2 than at 0, and narrower ranges are worse than wide ones somewhere."""
    loads, ranges = (100.0, 125.0), (1.0, 2.0, 4.0)
    family, narrower = [], []
    for scheme in EARLIER:
        high, low = (
            beyond(
                (
                    bar
                    for load, factor in product(loads, ranges)
                    for bar in categories(_at(case, scheme, load, sigma, factor), ALL)
                ),
                case.margin,
            )
            for sigma in (2.0, 0.0)
        )
        family.append((f"{scheme}: categories degraded at sigma 2 against 0, all windows", high, low))
        narrower += [
            (bar, _at(case, scheme, load, sigma, 1.0)[group])
            for load, sigma, factor in product(loads, (0.0, 1.0, 2.0), ranges[1:])
            for group, bar in _at(case, scheme, load, sigma, factor).items()
            if group in _at(case, scheme, load, sigma, 1.0)
        ]
    less = [(f"{bar.words} less RF 1", changes(bar.logs, at_1.logs)) for bar, at_1 in narrower]
    return decided([*more_often(family, 1), *at_least(1, signed(less, 1, ratio=True))])


def _at(case: Case, scheme: str, load: float, sigma: float, factor: float) -> Bars:
    return case.bars(scheme, log="sdsc", load_factor=load, sigma=sigma, range_factor=factor)


def start_is_best(case: Case) -> Finding:
    """Sizes chosen at the start are better overall than both variants at submission."""
    settings = product(case.logs, (100.0, 125.0), (0.0, 1.0, 2.0), (SUBMIT, GREEDY))
    return decided(
        [
            toward(case.bars(START, other, log=log, load_factor=load, sigma=sigma)[""], -1)
            for log, load, sigma, other in settings
        ]
    )


def hidden_losers(case: Case) -> Finding:
    """At some of the settings of figures 1 to 5, all jobs together gain while a category is degraded."""
    shown = [
        *(_first(case, scheme, sigma) for sigma, scheme in product((0.0, 1.0), EARLIER)),
        *(case.bars(scheme, log="sdsc", load_factor=125.0, sigma=2.0) for scheme in EARLIER),
        *(case.bars(scheme, "moldable-base", log="sdsc") for scheme in (*WEIGHTS, *LANES)),
    ]
    hidden = [_hidden(bars, degraded(bar, case.margin)) for bars in shown for bar in categories(bars, ALL)]
    return decided(at_least(1, hidden))


def _hidden(bars: Bars, loses: Part) -> Part:
    """Test whether all jobs together gain and one category loses; refuted when either is significantly false."""
    gains = toward(bars[""], -1)
    return loses._replace(a=max(gains.a, loses.a), b=min(1.0, 2 * min(gains.b, loses.b)))
