"""Judges of what the paper on moldable jobs says about the schemes before its own.

The claims that they judge are in `claims`.

References
----------
Srinivasan, Krishnamoorthy, Sadayappan, "A robust scheduling strategy for moldable scheduling of parallel jobs",
CLUSTER 2003.
"""

from __future__ import annotations

from itertools import chain, product

from gridsim_papers.decisions import ENOUGH, Part, State, decided, expected, signed
from gridsim_papers.moldable.campaign import BASELINE, EARLIER, GREEDY, LANES, WEIGHTS
from gridsim_papers.moldable.parts import (
    best,
    beyond,
    categories,
    degraded,
    fails,
    gains,
    is_wrong,
    more_often,
    moved,
    of_bar,
    pooled,
    toward,
    unharmed,
    worst,
)
from gridsim_papers.moldable.study import Bar, Bars, Case, Judge
from gridsim_papers.paired import changes
from gridsim_papers.verdicts import LEVEL, Finding

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
"""Categories from which on they are several."""
GREATLY = 0.10


def saturated(case: Case) -> Finding:
    """The rigid baseline uses 0.90 to 0.98 of the machine at load factor 150; another use of SDSC refutes it."""
    family = []
    for log in case.logs:
        setting = case.setting(log=log, load_factor=150.0)
        family.append((f"utilisation, {case.name(log)}", case.study.numbers("utilisation", setting, BASELINE)[""]))
    parts = [
        part if part.state == "wrong" or 0.90 <= part.effect <= 0.98 else part._replace(state="unclear")
        for part in expected(family, 0.90, 0.98)
    ]
    refuted = any(part.state == "wrong" and log == "sdsc" for log, part in zip(case.logs, parts, strict=True))
    values = chain.from_iterable(numbers.values() for _, numbers in family)
    told = "by window " + " ".join(f"{value:.2f}" for value in values)
    return decided(parts, refuted=refuted, note=told)


def before_greedy(case: Case) -> Finding:
    """Both fair-share schemes are better overall than the greedy one, with and without variation of parallelism."""
    settings = product(case.logs, (100.0, 125.0), (0.0, 1.0), EARLIER)
    return decided(
        [
            toward(case.bars(scheme, GREEDY, log=log, load_factor=load, sigma=sigma)[""], -1)
            for log, load, sigma, scheme in settings
        ],
        strict=False,
    )


def both_gain(sigma: float) -> Judge:
    """Both fair-share schemes are better overall than rigid jobs on CTC."""

    def judge(case: Case) -> Finding:
        parts = [toward(_first(case, scheme, sigma)[""], -1) for scheme in EARLIER]
        return decided(parts, refuted=is_wrong(parts))

    return judge


def _first(case: Case, scheme: str, sigma: float = 0.0) -> Bars:
    return case.bars(scheme, log="ctc", sigma=sigma)


def several_suffer(case: Case) -> Finding:
    """At least three categories lose more than 10 % by the sizes chosen at submission."""
    every = categories(_first(case, SUBMIT), ALL)
    parts = best((moved(bar, 1, GREATLY) for bar in every), SEVERAL)
    lost = sum(moved(bar, 1, GREATLY).state == "right" for bar in every)
    return decided(parts, refuted=fails(parts) or len(parts) < SEVERAL, note=f"{lost} categories in all")


def all_gain(case: Case) -> Finding:
    """Every category gains by the sizes chosen at the start."""
    parts = [gains(bar) for bar in categories(_first(case, START), ALL)]
    return decided(parts, refuted=is_wrong(parts))


def light_suffer(case: Case) -> Finding:
    """With less scalable jobs at least three of the categories 1 to 7 are degraded by each scheme."""
    parts: list[Part] = []
    for scheme in EARLIER:
        parts += best((degraded(bar) for bar in categories(_first(case, scheme, 1.0), range(1, 8))), SEVERAL)
    return decided(parts, refuted=fails(parts))


def inefficient(case: Case) -> Finding:
    """At high load and poor scalability: several categories degraded, and nothing gained overall."""
    parts, refuted = [], False
    for scheme in EARLIER:
        bars = case.bars(scheme, log="sdsc", load_factor=125.0, sigma=2.0)
        overall, losers = bars[""], [degraded(bar) for bar in categories(bars, ALL)]
        parts += [_no_better(overall), *best(losers, SEVERAL)]
        spared = not any(part.state == "right" for part in losers)
        refuted |= spared and overall.change.change < -0.05 and overall.p_holm < LEVEL
    return decided(parts, refuted=refuted)


def _no_better(bar: Bar) -> Part:
    if bar.change.better:
        return of_bar(bar, "wrong", 1)
    return of_bar(bar, "right" if bar.change.change >= 0 or bar.enough else "unclear", 1)


def weight_factor(case: Case) -> Finding:
    """Twice the share harms nobody at sigma 0, and the light categories at sigma 1 (and more than at 0)."""
    parts, refuted = [], False
    for log in case.logs:
        linear, varied = (case.bars(START, "moldable-base", log=log, sigma=sigma) for sigma in (0.0, 1.0))
        harmed = worst(unharmed(bar) for bar in categories(linear, ALL))
        light = categories(varied, range(1, 5))
        more = [
            (f"{bar.words} less that at sigma 0", changes(bar.logs, linear[bar.group].logs))
            for bar in light
            if bar.group in linear
        ]
        parts += [harmed, *(toward(bar, 1) for bar in light), *signed(more, 1, ratio=True)]
        refuted |= harmed.state == "wrong" or pooled(varied, range(1, 5), 1).state == "wrong"
    return decided(parts, refuted=refuted)


def worse_still(case: Case) -> Finding:
    """More categories are degraded at sigma 2 than at 0, and narrower ranges are worse than wide ones somewhere."""
    loads, ranges = (100.0, 125.0), (1.0, 2.0, 4.0)
    family, narrower = [], []
    for scheme in EARLIER:
        high, low = (
            beyond(
                bar
                for load, factor in product(loads, ranges)
                for bar in categories(_at(case, scheme, load, sigma, factor), ALL)
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
    counts = more_often(family, 1)
    less = [(f"{bar.words} less RF 1", changes(bar.logs, at_1.logs)) for bar, at_1 in narrower]
    return decided([*counts, *best(signed(less, 1, ratio=True), 1)], refuted=fails(counts))


def _at(case: Case, scheme: str, load: float, sigma: float, factor: float) -> Bars:
    return case.bars(scheme, log="sdsc", load_factor=load, sigma=sigma, range_factor=factor)


def start_is_best(case: Case) -> Finding:
    """Sizes chosen at the start are better overall than both at submission."""
    settings = product(case.logs, (100.0, 125.0), (0.0, 1.0, 2.0), (SUBMIT, GREEDY))
    return decided(
        [
            toward(case.bars(START, other, log=log, load_factor=load, sigma=sigma)[""], -1)
            for log, load, sigma, other in settings
        ],
        strict=False,
    )


def hidden_losers(case: Case) -> Finding:
    """Among the settings of figures 1 to 5 there are some that gain overall while a category is degraded."""
    shown = [
        *(_first(case, scheme, sigma) for sigma, scheme in product((0.0, 1.0), EARLIER)),
        *(case.bars(scheme, log="sdsc", load_factor=125.0, sigma=2.0) for scheme in EARLIER),
        *(case.bars(scheme, "moldable-base", log="sdsc") for scheme in (*WEIGHTS, *LANES)),
    ]
    n = min(bars[""].change.windows for bars in shown)
    gaining = [bars for bars in shown if bars[""].change.better]
    hidden = [bar for bars in gaining for bar in categories(bars, ALL) if bar.change.degraded]
    if hidden:
        note = f"{len(hidden)} categories degraded where all jobs together gain"
        return decided(best(map(degraded, hidden), 1), note=note)
    state: State = "wrong" if n >= ENOUGH else "unclear"
    nearest = [bar for bars in gaining for bar in categories(bars, ALL)] or [bars[""] for bars in shown]
    note = f"{len(gaining)} of {len(shown)} settings gain overall, and nobody is degraded at any of these"
    return decided(best((of_bar(bar, state, 1) for bar in nearest), 1), refuted=state == "wrong", note=note)
