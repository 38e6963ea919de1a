"""Judges of claims in the text of the 2003 papers: mechanisms, printed sizes, and absolute statements.

The claims are listed in `claims`.

References
----------
Islam, Balaji, Sadayappan, Panda, "QoPS: A QoS based scheme for parallel job scheduling", OSU-CISRC-4/03-TR21, 2003.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from gridsim import InputError
from gridsim_papers.deadline.schemes import (
    BASELINES,
    EXPERIMENTS,
    NUMBERS,
    OTHERS,
    SCHEMES,
    UNADMITTED,
    Judge,
    along_relaxation,
    at_each,
    below,
    loss,
    trend_at_each,
)
from gridsim_papers.deadline.study import Measure, Place, Study, of, over, title
from gridsim_papers.decisions import agreement, alike, expected, more_often, signed, trends
from gridsim_papers.paired import Values, changes, combined
from gridsim_papers.verdicts import Finding, Part, decided

__all__ = [
    "better_and_more",
    "comparable",
    "composition",
    "converge",
    "faster_for_less",
    "fewer_at_the_top",
    "gap_grows",
    "loss_is",
    "lost_to_stringency",
    "printed",
    "relaxation_by_length",
    "robust",
    "stringency",
    "work_falls",
]


def relaxation_by_length(study: Study) -> Finding:
    place = Place(fraction=0.8)
    short, long = (
        of(f"non_deadline_{name}_mean", f"runtime:{group}")
        for name, group in (("slowdown", "short"), ("response", "long"))
    )
    return decided(
        [
            *along_relaxation(study, place, short, "slowdown of short jobs down with R", -1),
            *along_relaxation(study, place, long, "response of long jobs up with R", 1),
        ]
    )


def stringency(study: Study) -> Finding:
    """Rejected jobs and core-seconds increase with stringency, for each scheme."""
    parts = []
    for scheme in SCHEMES:
        for name, measure in UNADMITTED.items():
            place = Place(load=1.4)
            loads = [
                load
                for load in (1.0, 1.4)
                if len(study.levels("stringency", "deadline_jobs", place._replace(load=load), scheme)) > 2
            ]
            if not loads:
                raise InputError("fewer than three stringencies were run", field="stringency")
            words = f"{name} of {title(scheme)} up with stringency"
            parts += trend_at_each(study, place, "stringency", measure, words, scheme, 1, loads=loads)
    return decided(parts)


def fewer_at_the_top(study: Study) -> Finding:
    """QoPS rejects fewer jobs at load 1.6 than at 1.4, on average and in most windows."""
    top, below_it = (study.values("deadline_unadmitted", Place(load=load), "qops") for load in (1.6, 1.4))
    words = "number of jobs rejected falls from 1.4 to 1.6"
    parts = signed([(f"{words} in the mean", changes(top, below_it))], -1)
    return decided([*parts, *more_often([(f"{words} in most windows", top, below_it)], -1)])


def work_falls(study: Study) -> Finding:
    """The core-seconds rejected by QoPS decrease from load 1.2 to 1.6, in absolute terms and as a share."""
    parts = []
    names = {"core-seconds rejected": NUMBERS["core-seconds rejected"], "their share": UNADMITTED["work rejected"]}
    jobs = {"share of jobs rejected": UNADMITTED["jobs rejected"]}
    levels = study.levels("load", "deadline_jobs", Place(), "qops", 1.2)
    for name, measure in (names | jobs).items():
        numbers = [(load, measure(study, Place(load=load), "qops")) for load in levels]
        parts += trends([(f"{name} down with load from 1.2", numbers)], -1)
    attached = parts.pop()
    note = f"relative slope: core-seconds {parts[-1].effect:.3g}, jobs {attached.effect:.3g}"
    return decided(parts, note=note)


def composition(study: Study) -> Finding:
    """As load grows, heavy jobs are a larger share of admitted jobs, and their response under EASY grows more."""
    heavy = over(of("deadline_guaranteed", "area:heavy"), of("deadline_guaranteed"))
    light = over(of("deadline_guaranteed", "area:light"), of("deadline_guaranteed"))
    easy = over(of("response_mean", "area:heavy"), of("response_mean", "area:light"))
    median = over(of("deadline_guaranteed_area_median"), of("deadline_unadmitted_area_median"))
    levels = study.levels("load", "deadline_jobs", Place(), "qops")
    parts = []
    for words, measure, scheme, wanted in (
        ("share of heavy jobs among those admitted up with load", heavy, "qops", 1),
        ("share of light jobs among those admitted down with load", light, "qops", -1),
        ("median core-seconds of those admitted over those rejected up with load", median, "qops", 1),
        ("EASY response of heavy over light jobs up with load", easy, "easy", 1),
    ):
        numbers = [(load, measure(study, Place(load=load), scheme)) for load in levels]
        parts += trends([(words, numbers)], wanted)
    return decided(parts)


def _spread(study: Study, place: Place, measure: Measure) -> Values:
    return combined(
        lambda *numbers: max(numbers) - min(numbers), *(measure(study, place, scheme) for scheme in SCHEMES)
    )


def _less_spread(study: Study, measure: Measure, place: Place) -> Values:
    return changes(_spread(study, place, measure), _spread(study, place._replace(stringency=0.2), measure))


def converge(study: Study) -> Finding:
    """The schemes are closer together at stringency 0.5 than at 0.2."""
    parts = []
    for name, measure in UNADMITTED.items():
        family = at_each(
            study,
            Place(stringency=0.5),
            "qops",
            "deadline_jobs",
            partial(_less_spread, study, measure),
        )
        parts += signed([(f"spread of {name} at {load:g}", values) for load, values in family], -1)
    return decided(parts)


def loss_is(least: float, most: float, *places: Place) -> Judge:
    """The loss of utilisation of QoPS relative to EASY matches the printed value at each load."""
    return printed(
        [(f"loss of QoPS ({100 * place.fraction:.0f} % with deadlines)", place, loss, least, most) for place in places]
    )


def printed(losses: Sequence[tuple[str, Place, Callable[[Study, Place], Values], float, float]]) -> Judge:
    """Losses match the printed values at each load, within the margin."""

    def judge(study: Study) -> Finding:
        parts = []
        for words, place, lost, least, most in losses:
            family = at_each(study, place, "qops", "utilisation", partial(lost, study))
            named = [(f"{words} at {load:g}", values) for load, values in family]
            parts += expected(named, least, most, study.margin)
        return decided(parts, note="means " + ", ".join(f"{part.effect:.3f}" for part in parts))

    return judge


def lost_to_stringency(scheme: str) -> Callable[[Study, Place], Values]:
    return lambda study, place: changes(
        study.values("utilisation", place, scheme),
        study.values("utilisation", place._replace(stringency=0.5), scheme),
    )


def comparable(study: Study) -> Finding:
    """At load 1.6 the utilisation of QoPS equals that of MSB, and that of MRT is 0.03 to 0.05 lower."""
    parts = []
    for stringency in (0.2, 0.5):
        at = Place(load=1.6, stringency=stringency)
        qops, msb, mrt = (study.values("utilisation", at, scheme) for scheme in SCHEMES)
        parts += alike([(f"QoPS as MSB ({stringency:g})", changes(qops, msb))], study.margin)
        above = [(f"QoPS above MRT by 0.03 to 0.05 ({stringency:g})", changes(qops, mrt))]
        parts += expected(above, 0.03, 0.05, study.margin)
    return decided(parts)


def robust(study: Study) -> Finding:
    """Differences between QoPS and the others have the same sign on both logs and with both methods to raise load."""
    parts: list[Part] = []
    for stringency in (0.2, 0.5):
        for name, measure in UNADMITTED.items():
            for other in ("mrt", "msb"):
                parts += _agreement(study, stringency, name, measure, other)
    return decided(parts, note="loads from 1.4 up; shown: all sure, of one sign; refuted: two signs, both sure")


def _agreement(study: Study, stringency: float, name: str, measure: Measure, other: str) -> list[Part]:
    """One part per load: all experiments that were run have the same sign."""
    found: dict[float, list[Part]] = {}
    for place in EXPERIMENTS.values():
        at = place._replace(stringency=stringency)
        try:
            family = at_each(
                study,
                at,
                "qops",
                "deadline_jobs",
                lambda there: changes(measure(study, there, "qops"), measure(study, there, other)),
            )
        except InputError:
            continue  # agreement with the other experiments cannot be judged yet
        for (load, _), part in zip(family, signed([("", values) for _, values in family], 1), strict=True):
            found.setdefault(load, []).append(part)
    parts = []
    for load, of_load in found.items():
        if load < 1.4 or len(of_load) < 2:
            continue
        a, b = agreement([(part.a, part.b) for part in of_load])
        least = min(of_load, key=lambda part: abs(part.support))
        words = f"{name} against {title(other)} at {load:g} ({stringency:g})"
        parts.append(least._replace(words=words, a=a, b=b, n=min(part.n for part in of_load)))
    if not parts:
        raise InputError("two of the three experiments are needed, at a load from 1.4 up")
    return parts


def _gap(study: Study, measure: Measure, other: str, place: Place) -> Values:
    return changes(measure(study, place, other), measure(study, place, "qops"))


def gap_grows(study: Study) -> Finding:
    """With 80 % deadline jobs QoPS rejects less at every load, and the difference grows with the load."""
    place = Place(fraction=0.8)
    parts = []
    for name, measure in UNADMITTED.items():
        for other in ("mrt", "msb"):
            parts += below(study, place, measure, name, "qops", other)
            gaps = at_each(
                study,
                place,
                "qops",
                "deadline_jobs",
                partial(_gap, study, measure, other),
            )
            parts += trends([(f"gap of {name} to {title(other)} up with load", gaps)], 1)
    return decided(parts)


def faster_for_less(study: Study) -> Finding:
    """Non-deadline jobs respond faster than under the baselines, and the delivered load is lower."""
    parts = []
    for fraction in (0.2, 0.8):
        place = Place(fraction=fraction)
        for scheme in SCHEMES:
            for base in BASELINES:
                words = f"({100 * fraction:.0f} %)"
                parts += below(
                    study, place, OTHERS["response"], f"response {words}", scheme, base, start=1.2, ratio=True
                )
                parts += below(study, place, of("utilisation"), f"utilisation {words}", scheme, base, start=1.2)
    return decided(parts)


def better_and_more(study: Study) -> Finding:
    """With 20 % deadline jobs QoPS is below MSB in slowdown and in core-seconds rejected at every load."""
    place = Place(fraction=0.2)
    return decided(
        [
            *below(study, place, OTHERS["slowdown"], "slowdown", "qops", "msb", ratio=True),
            *below(study, place, UNADMITTED["work rejected"], "work rejected", "qops", "msb"),
        ]
    )
