"""Judges of the claims of the 2004 paper about offers, slack, charges and killed jobs.

All claims use the CTC log with same-arrival duplication and deadlines from the base run at stringency 0.2. The
tolerance factor (TF) is the field ``tolerance``; the slack factor (SF) is a parameter of ``fqops``.

References
----------
Islam, Balaji, Sadayappan, Panda, "Towards provision of quality of service guarantees in job scheduling", CLUSTER 2004
(P04).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gridsim import InputError
from gridsim_papers.deadline.exact import as_plain, victims_are_served
from gridsim_papers.deadline.readings import Question
from gridsim_papers.deadline.schemes import Judge, trend_at_each
from gridsim_papers.deadline.study import Measure, Place, Study, of, over
from gridsim_papers.decisions import agreement, alike, more_often, one_sided, signed, trends
from gridsim_papers.paired import Values, by_window, changes, combined
from gridsim_papers.verdicts import NAN, Finding, Part, decided

__all__ = ["QUESTIONS", "with_slack"]

BASE = Place(method="same-arrival")
FACTORS = (1.0, 1.2, 1.5, 2.0, 3.0, 4.0)
"""Slack factors of figures 6 to 11."""

TOLERANCES = (2.0, 3.0, 4.0, 6.0)
"""Tolerance factors of figures 6 and 7."""

ACCEPTED = of("deadline_guaranteed")
WORK = of("deadline_guaranteed_area")
CHARGES = {"resource charge": of("resource_charge"), "QoS charge": of("qos_charge")}


def with_slack(factor: float, *, kill: bool = False) -> str:
    """Return the name of FQoPS with a slack factor; rows may contain its parameters in any order.

    Examples
    --------
    >>> with_slack(1.5, kill=True)
    'fqops?slack_factor=1.5&kill_restart=true'
    """
    return f"fqops?slack_factor={factor:g}" + ("&kill_restart=true" if kill else "")


def _factors(study: Study, place: Place, *, kill: bool = False) -> list[float]:
    """Slack factors that were run; empty when only the default was run."""
    found = [factor for factor in FACTORS if study.ran(place, with_slack(factor, kill=kill))]
    return found if len(found) > 1 else []


def _killing_factors(study: Study, place: Place) -> list[float]:
    factors = _factors(study, place, kill=True)
    if not factors:
        raise InputError(f"kill-and-restart was not run with TF {place.tolerance:g} at 1.6", field="scheme")
    return factors


def _tolerances(study: Study, place: Place) -> list[float]:
    return study.levels("tolerance", "deadline_jobs", place, "fqops")


def _loads(study: Study, least: float = 1.0, place: Place = BASE) -> list[Place]:
    """Places by load."""
    return [place._replace(load=load) for load in study.levels("load", "deadline_jobs", place, "fqops", least)]


def _at(study: Study, place: Place, tolerance: float, measure: Measure) -> Values:
    return measure(study, place._replace(tolerance=tolerance), "fqops")


def _dip(study: Study, place: Place) -> float:
    """The inner tolerance with the fewest accepted jobs on average."""
    inner = [level for level in _tolerances(study, place) if level > 1][:-1]
    if not inner:
        raise InputError("needs three tolerance factors, 1 among them", field="tolerance")
    return min(inner, key=lambda level: float(by_window(_at(study, place, level, ACCEPTED)).mean()))


def _dip_then_rise(study: Study) -> Finding:
    """Fewer jobs are accepted with TF 2 than with 1, and most with the largest TF; core-seconds rise with TF."""
    falls, rises, work = [], [], []
    for place in _loads(study):
        levels = _tolerances(study, place)
        bottom = _dip(study, place)
        at = f"at {place.load:g}"
        none, two, top, least = (_at(study, place, level, ACCEPTED) for level in (1, 2, levels[-1], bottom))
        falls.append((f"jobs accepted with TF 2 below TF 1 {at}", changes(two, none)))
        rises.append((f"jobs accepted with TF {levels[-1]:g} above TF {bottom:g} {at}", changes(top, least)))
        work.append(
            (f"core-seconds accepted up with TF {at}", [(level, _at(study, place, level, WORK)) for level in levels])
        )
    return decided([*signed(falls, -1), *signed(rises, 1), *trends(work, 1)])


def _along_tolerance(study: Study, measure: Measure, words: str, wanted: int) -> list[Part]:
    """A charge by tolerance factor, fixed and random, at each load."""
    parts = []
    for random in (False, True):
        place = BASE._replace(tolerance=1.0, random_tolerance=random)
        told = f"{words} with {'random' if random else 'fixed'} TF"
        parts += trend_at_each(study, place, "tolerance", measure, told, "fqops", wanted)
    return parts


def _rises(study: Study) -> Finding:
    """The resource charge rises with TF."""
    return decided(_along_tolerance(study, CHARGES["resource charge"], "resource charge up", 1))


def _monotone(study: Study) -> Finding:
    """The QoS charge falls with TF, in most windows at every step."""
    measure = CHARGES["QoS charge"]
    parts = _along_tolerance(study, measure, "QoS charge down", -1)
    strictly = []
    for random in (False, True):
        for place in _loads(study, place=BASE._replace(random_tolerance=random)):
            numbers = [_at(study, place, level, measure) for level in _tolerances(study, place)]
            steps = combined(lambda *row: float((np.diff(row) < 0).all()), *numbers)
            words = f"QoS charge down at every step with {'random' if random else 'fixed'} TF at {place.load:g}"
            strictly.append((words, steps, dict.fromkeys(steps, 0.5)))
    return decided([*parts, *(_moved(part, 0.5) for part in more_often(strictly, 1))], universal=True)


def _along_slack(measure: Measure, words: str, wanted: int, *, universal: bool = False) -> Judge:
    """A charge by slack factor, for each tolerance factor above 1, at loads from 1.3."""

    def judge(study: Study) -> Finding:
        parts = []
        for tolerance in TOLERANCES:
            family = []
            for place in _loads(study, 1.3):
                at = place._replace(tolerance=tolerance)
                if not (factors := _factors(study, at)):
                    continue
                numbers = [(factor, measure(study, at, with_slack(factor))) for factor in factors]
                family.append((f"{words} with SF, TF {tolerance:g}, at {place.load:g}", numbers))
            parts += trends(family, wanted)
        return decided(parts, universal=universal)

    return judge


def _killing(study: Study, tolerance: float, measure: Measure, fraction: float, words: str) -> list[tuple[str, Values]]:
    """Change of a charge caused by kill-and-restart, by slack factor."""
    place = BASE._replace(load=1.6, tolerance=tolerance, fraction=fraction)
    factors = _killing_factors(study, place)
    return [
        (
            f"{words} with kills, TF {tolerance:g}, SF {factor:g}",
            changes(
                measure(study, place, with_slack(factor, kill=True)),
                measure(study, place, with_slack(factor)),
                ratio=True,
            ),
        )
        for factor in factors
    ]


def _kills_matter_late(name: str, wanted: int) -> Judge:
    """No difference with TF 2 (within the margin), and a difference of the claimed sign with TF 4."""

    def judge(study: Study) -> Finding:
        measure = CHARGES[name]
        return decided(
            [
                *alike(_killing(study, 2.0, measure, 1.0, name), study.margin, ratio=True),
                *signed(_killing(study, 4.0, measure, 1.0, name), wanted, ratio=True),
            ]
        )

    return judge


def _kills_pay(name: str) -> Judge:
    """With 20 % deadline jobs kills raise the charge, with TF 2 and with TF 4."""

    def judge(study: Study) -> Finding:
        return decided(
            [
                part
                for tolerance in (2.0, 4.0)
                for part in signed(_killing(study, tolerance, CHARGES[name], 0.2, name), 1, ratio=True)
            ]
        )

    return judge


def _heavy_for_light(study: Study) -> Finding:
    """From TF 1 to the minimum, more heavy and fewer light jobs are accepted."""
    heavy: list[tuple[str, Values]] = []
    light: list[tuple[str, Values]] = []
    for place in _loads(study, 1.3):
        bottom = _dip(study, place)
        for family, group in ((heavy, "heavy"), (light, "light")):
            measure = of("deadline_guaranteed", f"area:{group}")
            change = changes(_at(study, place, bottom, measure), _at(study, place, 1, measure))
            family.append((f"{group} jobs accepted from TF 1 to {bottom:g} at {place.load:g}", change))
    return decided([*signed(heavy, 1), *signed(light, -1)])


def _everything(study: Study) -> Finding:
    """With TF 1000 at least 0.99 of the jobs are accepted, at loads 1.0 and 1.3."""
    family = []
    for place in _loads(study):
        if place.load <= 1.3:
            accepted = _at(study, place, 1000, of("deadline_guaranteed_share"))
            family.append((f"share accepted with TF 1000 at {place.load:g}", accepted))
    limit = 0.99
    parts = signed([(words, combined(lambda share: share - limit, values)) for words, values in family], 1)
    return decided([_moved(part, limit) for part in parts], universal=True)


def _moved(part: Part, limit: float) -> Part:
    """Return the same part with the number itself as its effect, instead of the distance from a limit."""
    return part._replace(effect=part.effect + limit, low=part.low + limit, high=part.high + limit)


def _slack_undoes_tolerance(study: Study) -> Finding:
    """Slopes over TF and over SF have opposite signs, in a linear model of their logarithms fitted per unit."""
    measures = {"jobs accepted": ACCEPTED, "core-seconds accepted": WORK, **CHARGES}
    parts: list[Part] = []
    for name, measure in measures.items():
        family = []
        for place in _loads(study, 1.3):
            levels = [tolerance for tolerance in _tolerances(study, place) if tolerance in TOLERANCES]
            factors = [set(_factors(study, place._replace(tolerance=tolerance))) for tolerance in levels]
            grid = [(tf, sf) for tf in levels for sf in sorted(set.intersection(*factors))]
            numbers = [measure(study, place._replace(tolerance=tf), with_slack(sf)) for tf, sf in grid]
            family.append((f"{name} at {place.load:g}", [_partial(grid, numbers, of_axis) for of_axis in (0, 1)]))
        parts += _opposite(family)
    return decided(parts, universal=True)


def _partial(grid: Sequence[tuple[float, float]], numbers: Sequence[Values], axis: int) -> Values:
    """Slope over the logarithm of one factor with the other constant, relative to the mean."""
    along = np.log(np.array(grid, dtype=np.float64))
    if len(grid) < 3 or (np.ptp(along, axis=0) == 0).any():
        raise InputError("needs two tolerance and two slack factors", field="tolerance")
    model = np.column_stack([np.ones(len(grid)), along])

    def slope(*row: float) -> float:
        values = np.array(row)
        return float(np.linalg.lstsq(model, values, rcond=None)[0][1 + axis] / (abs(values.mean()) or 1.0))

    return combined(slope, *numbers)


def _opposite(family: Sequence[tuple[str, Sequence[Values]]]) -> list[Part]:
    """Parts that are shown when both slopes are significant with opposite signs, and refuted with equal signs."""
    found = []
    for words, slopes in family:
        tolerance, slack = signed([("", values) for values in slopes], 1)
        told = f"{words} (slope over TF {tolerance.effect:.3g})"
        a, b = agreement([(tolerance.a, tolerance.b), (slack.b, slack.a)])
        found.append(slack._replace(words=told, a=a, b=b, series=None))
    return found


def _best_at_the_ends(study: Study) -> Finding:
    """TF 1 has the highest QoS charge, the largest TF the highest resource charge, against the best inner value."""
    parts: list[Part] = []
    for name, measure in CHARGES.items():
        family = []
        for place in _loads(study, 1.3):
            levels = _tolerances(study, place)
            if len(levels) < 3:
                raise InputError("needs three tolerance factors", field="tolerance")
            end = levels[0] if name == "QoS charge" else levels[-1]
            best = max(levels[1:-1], key=lambda level: float(by_window(_at(study, place, level, measure)).mean()))
            words = f"{name} with TF {end:g} at least that with {best:g} at {place.load:g}"
            family.append(
                (words, changes(_at(study, place, end, measure), _at(study, place, best, measure), ratio=True))
            )
        parts += signed(family, 1, ratio=True, margin=study.margin)
    return decided(parts)


def _larger_jobs_take_offers(study: Study) -> Finding:
    """Jobs accepted by offer have a larger share of core-seconds than of jobs that request a deadline."""
    parts: list[Part] = []
    for tolerance in (2.0, 4.0):
        family = []
        for place in _loads(study):
            work = over(of("offers_taken_area"), of("deadline_area"))
            jobs = over(of("offers_taken"), of("deadline_jobs"))
            change = changes(*(_at(study, place, tolerance, measure) for measure in (work, jobs)))
            family.append((f"share of work less share of jobs, TF {tolerance:g}, at {place.load:g}", change))
        parts += signed(family, 1)
    return decided(parts)


def _loss_is_lost_work(study: Study) -> Finding:
    """With TF 4, the loss of resource charge caused by kills correlates with the core-seconds lost to kills."""
    from scipy import stats  # the import takes a second and only this test needs it

    place = BASE._replace(load=1.6, tolerance=4.0)
    losses, lost = [], []
    for factor in _killing_factors(study, place):
        on, off = with_slack(factor, kill=True), with_slack(factor)
        charge = CHARGES["resource charge"]
        losses.append(changes(charge(study, place, off), charge(study, place, on)))
        lost.append(study.values("lost_area", place, on))
    loss, work = (by_window(combined(lambda *row: float(np.mean(row)), *columns)) for columns in (losses, lost))
    if len(loss) < 3 or not work.std() or not loss.std():
        raise InputError("needs three windows with different losses", field="window")
    found = stats.pearsonr(work, loss)
    low, high = found.confidence_interval() if len(loss) > 3 else (NAN, NAN)
    note = f"mean loss of charge {loss.mean():.3g}, mean work lost {work.mean():.3g} core-seconds"
    note += "" if loss.mean() > 0 else "; there is no loss to explain"
    a, b = one_sided(float(found.pvalue), bool(found.statistic > 0))
    part = Part("correlation over windows", a, b, len(loss), float(found.statistic), low, high)
    return decided([part], note=note)


def _few_kills(study: Study) -> Finding:
    """Fewer kills with TF 2 than with TF 4, at each slack factor."""
    two, four = (BASE._replace(load=1.6, tolerance=tolerance) for tolerance in (2.0, 4.0))
    family = []
    for factor in _killing_factors(study, four):
        scheme = with_slack(factor, kill=True)
        change = changes(study.values("kills", two, scheme), study.values("kills", four, scheme))
        family.append((f"kills with TF 2 below TF 4, SF {factor:g}", change))
    return decided(signed(family, -1))


def _categories(study: Study) -> Finding:
    """Under EASY the slowdown of a category decreases with its runtime class and increases with its core class."""
    parts = []
    cells: dict[float, dict[tuple[int, int], Values]] = {}
    for metric, group in study.cells:
        if metric != "slowdown_mean" or not group.startswith("category:"):
            continue
        row, column = (int(part) for part in group.removeprefix("category:").split(","))
        where = {"log": BASE.log, "method": BASE.method}
        for place, (name, _), values in study.scan(metric, group, **where):
            if name == "easy" and place.fraction == 1:
                cells.setdefault(place.load, {}).setdefault((row, column), values)
    for axis, words, wanted in ((0, "down with the class of runtime", -1), (1, "up with the class of cores", 1)):
        family = [
            (f"slowdown {words} at {load:g}", _class_means(of_load, axis)) for load, of_load in sorted(cells.items())
        ]
        parts += trends(family, wanted)
    return decided(parts, note="classes that every window has")


def _class_means(cells: dict[tuple[int, int], Values], axis: int) -> list[tuple[float, Values]]:
    """Mean of logarithms over the categories of each class of one axis, for classes present in all units."""
    units = {unit for values in cells.values() for unit in values}
    found: list[tuple[float, Values]] = []
    for level in sorted({key[axis] for key in cells}):
        columns = [values for key, values in cells.items() if key[axis] == level]
        means: dict[tuple[int, int], float] = {}
        for unit in units:
            row = [values[unit] for values in columns if math.isfinite(values.get(unit, NAN))]
            if row:
                means[unit] = float(np.mean(np.log(row)))
        if len(means) == len(units):
            found.append((float(level + 1), means))
    if len(found) < 3:
        raise InputError("fewer than three classes are in every window", field="group")
    return found


QUESTIONS: tuple[Question, ...] = (
    Question("P04-F03", _dip_then_rise),
    Question("P04-F04", _rises),
    Question("P04-F05", _monotone),
    Question(
        "P04-F06",
        _along_slack(CHARGES["resource charge"], "resource charge down", -1, universal=True),
    ),
    Question(
        "P04-F07",
        _along_slack(CHARGES["QoS charge"], "QoS charge up", 1),
    ),
    Question(
        "P04-F08",
        _kills_matter_late("resource charge", -1),
    ),
    Question(
        "P04-F09",
        _kills_matter_late("QoS charge", 1),
    ),
    Question("P04-F10", _kills_pay("resource charge")),
    Question("P04-F11", _kills_pay("QoS charge")),
    Question("P04-C01", _heavy_for_light),
    Question("P04-C02", _everything),
    Question("P04-C03", as_plain),
    Question("P04-C04", _slack_undoes_tolerance),
    Question("P04-C05", _best_at_the_ends),
    Question("P04-C06", _larger_jobs_take_offers),
    Question("P04-C07", victims_are_served),
    Question("P04-C08", _loss_is_lost_work),
    Question("P04-C09", _few_kills),
    Question("P04-C10", _categories),
)
"""Claims of 2004 decided by stored rows."""
