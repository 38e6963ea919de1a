"""Judges of the figures of 2003: rejections, utilisation, and performance of other jobs, by scheme.

The claims are listed in `claims`.

References
----------
Islam, Balaji, Sadayappan, Panda, "QoPS: A QoS based scheme for parallel job scheduling", OSU-CISRC-4/03-TR21, 2003.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gridsim import InputError
from gridsim_papers.deadline.curves import common_range
from gridsim_papers.deadline.study import Measure, Place, Study, of, title
from gridsim_papers.decisions import alike, signed, trends
from gridsim_papers.paired import Values, by_window, changes, combined
from gridsim_papers.verdicts import Finding, Part, decided

__all__ = [
    "BASELINES",
    "EXPERIMENTS",
    "NUMBERS",
    "OTHERS",
    "SCHEMES",
    "UNADMITTED",
    "Judge",
    "admittance",
    "along_relaxation",
    "at_each",
    "below",
    "equal_utilisation",
    "loss",
    "mixed_utilisation",
    "on_both",
    "relaxation",
    "responses",
    "trend_at_each",
    "utilisation",
]

SCHEMES = ("qops", "msb", "mrt")
BASELINES = ("easy", "conservative")
UNADMITTED = {"jobs rejected": of("deadline_unadmitted_share"), "work rejected": of("deadline_unadmitted_area_share")}
NUMBERS = {
    "number of jobs rejected": of("deadline_unadmitted"),
    "core-seconds rejected": of("deadline_unadmitted_area"),
}
UTILISATION = {"utilisation": of("utilisation"), "utilisation until the last arrival": of("utilisation_arrivals")}
OTHERS = {"response": of("non_deadline_response_mean"), "slowdown": of("non_deadline_slowdown_mean")}

EXPERIMENTS = {
    "CTC, duplication": Place(),
    "SDSC, duplication": Place("sdsc"),
    "CTC, expansion": Place(method="expansion"),
}

Judge = Callable[[Study], Finding]


def at_each(
    study: Study, place: Place, scheme: str, metric: str, change: Callable[[Place], Values]
) -> list[tuple[float, Values]]:
    """A change at each load at which a scheme was run."""
    loads = study.levels("load", metric, place, scheme)
    return [(load, change(place._replace(load=load))) for load in loads]


def below(
    study: Study,
    place: Place,
    measure: Measure,
    name: str,
    low: str,
    high: str,
    *,
    start: float = 0.0,
    end: float = np.inf,
    ratio: bool = False,
    margin: float | None = None,
) -> list[Part]:
    """One scheme is below another in a measure at each load from *start* to *end*."""
    family = at_each(
        study,
        place,
        low,
        "deadline_jobs",
        lambda at: changes(measure(study, at, low), measure(study, at, high), ratio=ratio),
    )
    than = "at most" if margin else "below"
    named = [
        (f"{name} of {title(low)} {than} {title(high)} at {load:g}", values)
        for load, values in family
        if start <= load <= end
    ]
    if not named:
        raise InputError(f"no load from {start:g} up was run", field="load")
    return signed(named, -1, ratio=ratio, margin=margin)


def _closer(study: Study, place: Place, name: str, measure: Measure, other: str, start: float) -> list[Part]:
    """The difference to another scheme is smaller in size than at stringency 0.2."""

    def change(at: Place) -> Values:
        gaps = [
            combined(abs, changes(measure(study, there, "qops"), measure(study, there, other)))
            for there in (at, at._replace(stringency=0.2))
        ]
        return changes(*gaps)

    family = at_each(study, place, "qops", "deadline_jobs", change)
    named = [
        (f"gap of {name} to {title(other)} below that at 0.2, at {load:g}", values)
        for load, values in family
        if load >= start
    ]
    return signed(named, -1)


def admittance(
    place: Place, start: float, *, closer: bool = False, measures: dict[str, Measure] | None = None
) -> Judge:
    """QoPS rejects less than MRT and MSB from a load on; *closer*: the gap is smaller than at stringency 0.2."""

    def judge(study: Study) -> Finding:
        return decided(_refusals(study, place, start, closer, measures or UNADMITTED))

    return judge


def on_both(place: Place) -> Judge:
    """The same at stringencies 0.2 and 0.5 together, in shares and in numbers."""

    def judge(study: Study) -> Finding:
        parts = _refusals(study, place, 1.4, False, UNADMITTED | NUMBERS)
        return decided(parts + _refusals(study, place._replace(stringency=0.5), 1.4, True, UNADMITTED | NUMBERS))

    return judge


def _refusals(study: Study, place: Place, start: float, closer: bool, measures: dict[str, Measure]) -> list[Part]:
    parts = []
    for name, measure in measures.items():
        for other in ("mrt", "msb"):
            parts += below(study, place, measure, f"{name} ({place.stringency:g})", "qops", other, start=start)
            if closer:
                parts += _closer(study, place, name, measure, other, start)
    return parts


def _utilisation_at(study: Study, place: Place, baselines: Sequence[str]) -> list[Part]:
    """At the highest load the baselines are above QoPS, QoPS equals MSB, and both are above MRT."""
    top = place._replace(load=1.6)
    parts: list[Part] = []
    for name, measure in UTILISATION.items():
        pairs = [("qops", base) for base in baselines] + [("mrt", "qops"), ("mrt", "msb")]
        for low, high in pairs:
            parts += below(study, place, measure, f"{name} ({place.stringency:g})", low, high, start=1.6)
        same = [("qops", "msb"), BASELINES] if len(baselines) > 1 else [("qops", "msb")]
        named = [
            (
                f"{name} of {title(one)} as {title(other)} at 1.6 ({place.stringency:g})",
                changes(measure(study, top, one), measure(study, top, other)),
            )
            for one, other in same
        ]
        parts += alike(named, study.margin)
    return parts


def utilisation(place: Place, baselines: Sequence[str] = BASELINES) -> Judge:
    """The order of achieved utilisation at load 1.6, and lower utilisation at the higher stringency."""

    def judge(study: Study) -> Finding:
        tight = place._replace(stringency=0.5)
        parts = [part for at in (place, tight) for part in _utilisation_at(study, at, baselines)]
        for name, measure in UTILISATION.items():
            named = [
                (
                    f"{name} of {title(scheme)} at 1.6 below that at 0.2",
                    changes(
                        measure(study, tight._replace(load=1.6), scheme),
                        measure(study, place._replace(load=1.6), scheme),
                    ),
                )
                for scheme in SCHEMES
            ]
            parts += signed(named, -1)
        return decided(parts)

    return judge


def loss(study: Study, place: Place) -> Values:
    return changes(study.values("utilisation", place, "easy"), study.values("utilisation", place, "qops"))


def mixed_utilisation(place: Place) -> Judge:
    """The order of utilisation with 80 % and with 20 % deadline jobs, and a smaller loss with 20 %."""

    def judge(study: Study) -> Finding:
        many, few = place._replace(fraction=0.8), place._replace(fraction=0.2)
        parts = [part for at in (many, few) for part in _utilisation_at(study, at, BASELINES)]
        family = at_each(
            study,
            few,
            "qops",
            "utilisation",
            lambda at: changes(loss(study, at), loss(study, at._replace(fraction=0.8))),
        )
        parts += signed([(f"loss with 20 % below that with 80 % at {load:g}", values) for load, values in family], -1)
        top = [by_window(loss(study, at._replace(load=1.6))).mean() for at in (many, few)]
        return decided(parts, note=f"loss against EASY at 1.6: {top[0]:.3f} (80 %), {top[1]:.3f} (20 %)")

    return judge


def responses(place: Place, baselines: Sequence[str] = BASELINES) -> Judge:
    """Non-deadline jobs perform better than under the baselines; with 20 % deadline jobs QoPS is at most MSB too.

    The comparison with the baselines covers loads from 1.2; that with MSB covers response up to 1.4 and slowdown at all
    loads.
    """

    def judge(study: Study) -> Finding:
        parts = []
        for name, measure in OTHERS.items():
            for scheme in SCHEMES:
                for base in baselines:
                    parts += below(study, place, measure, name, scheme, base, start=1.2, ratio=True)
            if place.fraction == 0.2:
                last = np.inf if name == "slowdown" else 1.4
                parts += below(study, place, measure, name, "qops", "msb", end=last, ratio=True, margin=study.margin)
        return decided(parts)

    return judge


def _area(study: Study, place: Place, measure: Measure, low: str, high: str) -> Values:
    """*high* minus *low*, averaged over the utilisation that both achieve at some load; NaN without a common range."""
    curves = []
    for scheme in (low, high):
        loads = [place._replace(load=load) for load in study.levels("load", "utilisation", place, scheme)]
        x = [study.values("utilisation", at, scheme) for at in loads]
        y = [measure(study, at, scheme) for at in loads]
        curves.append((x, y))
    columns = [column for pair in curves for column in pair]
    count = [len(column) for column in columns]

    def difference(*numbers: float) -> float:
        x1, y1, x2, y2 = np.split(np.array(numbers), np.cumsum(count)[:-1])
        return common_range((x1, y1), (x2, y2)).difference

    return combined(difference, *(values for column in columns for values in column))


def equal_utilisation(place: Place, others: Sequence[str] = ("msb", "mrt", *BASELINES)) -> Judge:
    """Over their common range of achieved utilisation, the curve of QoPS is below those of the other schemes."""

    def judge(study: Study) -> Finding:
        parts = []
        for name, measure in OTHERS.items():
            family = [
                (
                    f"{name} of QoPS below {title(other)} at equal utilisation",
                    combined(lambda area: -area, _area(study, place, measure, "qops", other)),
                )
                for other in others
            ]
            parts += signed(family, -1)
        return decided(parts)

    return judge


def trend_at_each(
    study: Study,
    place: Place,
    axis: str,
    measure: Measure,
    words: str,
    scheme: str,
    wanted: int,
    *,
    loads: Sequence[float] | None = None,
    least: float = 0.0,
) -> list[Part]:
    """A number increases or decreases along a field of the place, at each load."""
    if loads is None:
        loads = study.levels("load", "deadline_jobs", place, scheme)
    family = []
    for load in loads:
        at = place._replace(load=load)
        levels = study.levels(axis, "deadline_jobs", at, scheme, least)
        numbers = [(level, measure(study, at._replace(**{axis: level}), scheme)) for level in levels]  # type: ignore[arg-type]
        family.append((f"{words} at {load:g}", numbers))
    return trends(family, wanted)


def along_relaxation(study: Study, place: Place, measure: Measure, words: str, wanted: int) -> list[Part]:
    family = []
    for load in study.levels("load", "deadline_jobs", place, "qops"):
        at = place._replace(load=load)
        numbers = [(float(r), measure(study, at, f"qops?relaxation={r}")) for r in (2, 5, 10)]
        family.append((f"{words} at {load:g}", numbers))
    return trends(family, wanted)


def relaxation(place: Place) -> Judge:
    """With a larger relaxation factor the mean response of non-deadline jobs rises, their mean slowdown falls."""

    def judge(study: Study) -> Finding:
        return decided(
            [
                *along_relaxation(study, place, OTHERS["response"], "response up with R", 1),
                *along_relaxation(study, place, OTHERS["slowdown"], "slowdown down with R", -1),
            ]
        )

    return judge
