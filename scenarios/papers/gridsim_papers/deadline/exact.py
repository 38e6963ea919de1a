"""Judges of absolute statements about deadlines: counts over every stored schedule instead of averages.

They cover packed traces, kept promises, jobs that must not be rejected, and schemes that must be identical.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import chdtrc  # importing scipy.stats takes a second

from gridsim import InputError
from gridsim_papers.deadline.schemes import SCHEMES
from gridsim_papers.deadline.study import Place, Study, title
from gridsim_papers.decisions import one_sided, signed, trends
from gridsim_papers.paired import Values, by_window, changes, combined
from gridsim_papers.verdicts import Finding, Part, decided

__all__ = [
    "as_plain",
    "cost",
    "inexact",
    "nobody_starves",
    "packed_exactly",
    "packed_falls",
    "packed_static",
    "promises",
    "victims_are_served",
]

PACKED = "packed-dynamic"


def packed_exactly(study: Study) -> Finding:
    """No job of a packed trace is rejected without slack."""
    refused = _packed(study, PACKED, 0.0)
    count = int(sum(refused))
    return Finding("does not hold" if count else "holds", count, n=len(refused), note=f"{count} jobs rejected")


def _packed(study: Study, log: str, load: float | None = None) -> list[float]:
    where: dict[str, Any] = {} if load is None else {"load": load}
    found = []
    for scheme in SCHEMES:
        mine = [
            value
            for _, (name, _), values in study.scan("deadline_unadmitted", log=log, **where)
            for value in values.values()
            if name == scheme
        ]
        if not mine:
            raise InputError(f"no row of {log} under '{scheme}'", field="log")
        found += mine
    return found


def _packed_levels(study: Study, log: str, scheme: str, metric: str) -> list[tuple[float, Values]]:
    found = {place.load: values for place, (name, _), values in study.scan(metric, log=log) if name == scheme}
    if len(found) < 2:
        raise InputError(f"no rows of {log} under '{scheme}' for two sizes of slack", field="log")
    return sorted(found.items())


def packed_falls(study: Study) -> Finding:
    """Success on dynamic packed traces falls with r; refuted when no job is ever rejected."""
    refused = _packed(study, PACKED)
    note = _early(study)
    if not any(refused):
        told = "no job rejected at any r: each finds its packed cores free when it arrives"
        return Finding("does not hold", 0.0, n=len(refused), note="; ".join(filter(None, (told, note))))
    family = [
        (f"{title(scheme)}: share rejected up with r", _packed_levels(study, PACKED, scheme, UNADMITTED_SHARE))
        for scheme in SCHEMES
    ]
    return decided(trends(family, 1), note=note)


UNADMITTED_SHARE = "deadline_unadmitted_share"


def _early(study: Study) -> str:
    """Judge claims about traces whose jobs arrive before their packed start."""
    try:
        family = [
            (title(scheme), _packed_levels(study, "packed-early", scheme, UNADMITTED_SHARE)) for scheme in SCHEMES
        ]
    except InputError:
        return ""
    ends = (
        f"{name} {by_window(levels[0][1]).mean():.3f} to {by_window(levels[-1][1]).mean():.3f}"
        for name, levels in family
    )
    return "with notice, share rejected from the least r to the most: " + ", ".join(ends)


def packed_static(study: Study) -> Finding:
    """More sets are fully placed with larger r: Cochran-Armitage test, computed from the correlation."""
    parts: list[Part] = []
    for scheme in ("mrt", "qops"):
        levels = _packed_levels(study, "packed-static", scheme, "deadline_unadmitted")
        r = np.concatenate([np.full(len(values), level) for level, values in levels])
        placed = np.concatenate([[value == 0 for value in values.values()] for _, values in levels]).astype(float)
        n = len(levels[0][1])
        shares = " ".join(f"{np.mean([value == 0 for value in values.values()]):.2f}" for _, values in levels)
        words = f"{title(scheme)}: sets placed {shares}"
        if placed.std() == 0:
            parts.append(Part(words, 1.0, 1.0, n, 0.0))
            continue
        correlation = float(np.corrcoef(r, placed)[0, 1])
        p = float(chdtrc(1, len(r) * correlation**2))
        parts.append(Part(words, *one_sided(p, correlation > 0), n, correlation))
    return decided(parts, note="the effect is the correlation with r")


def promises(study: Study) -> Finding:
    """No promise is broken in any schedule whose jobs end at their estimates."""
    sums = {"exact": [0, 0], "logged": [0, 0], "logged-extended": [0, 0]}
    for place, (name, _), values in study.scan("promises_broken"):
        if name in (*SCHEMES, "fqops") and place.estimates in sums:
            sums[place.estimates][0] += len(values)
            sums[place.estimates][1] += int(sum(values.values()))
    n, broken = (sum(sums[name][at] for name in ("exact", "logged")) for at in (0, 1))
    if not n:
        raise InputError("no row has the metric 'promises_broken'", field="metric")
    told = {name: f"{count} broken in {runs} schedules" for name, (runs, count) in sums.items() if runs}
    note = "; ".join(f"{name} estimates: {text}" for name, text in told.items())
    return Finding("does not hold" if broken else "holds", broken, n=n, note=note)


def nobody_starves(study: Study) -> Finding:
    """When only some jobs have deadlines, only jobs with one are rejected, and every artificial deadline is kept."""
    refused = late = n = 0
    for place, scheme, values in study.scan("unadmitted"):
        if place.fraction == 1 or scheme[0] not in SCHEMES:
            continue
        with_deadline = study.cells[("deadline_unadmitted", "")][(place, scheme)]
        refused += int(sum(changes(values, with_deadline).values()))
        late += int(sum(study.cells[("promises_broken", "")][(place, scheme)].values()))
        n += len(values)
    if not n:
        raise InputError("no row of a scheme with jobs that have no deadline", field="fraction")
    doublings = [
        value
        for place, scheme, values in study.scan("doublings")
        if place.fraction < 1 and scheme[0] in SCHEMES
        for value in values.values()
    ]
    stretch = [
        value
        for place, scheme, values in study.scan("artificial_stretch_max")
        if place.fraction < 1 and scheme[0] in SCHEMES
        for value in values.values()
    ]
    note = f"{refused} jobs without a deadline rejected, {late} promises broken; artificial deadlines were doubled "
    note += f"{int(sum(doublings))} times"
    note += f"; longest response {max(stretch):.3g} of the first artificial one" if stretch else ""
    return Finding("does not hold" if refused or late else "holds", refused + late, n=n, note=note)


def inexact(study: Study) -> Finding:
    """Report the effect of estimates as logged; the claim fails when a promise is broken."""
    told, broken, n = [], 0, 0
    for scheme in SCHEMES:
        for load in study.levels("load", UNADMITTED_SHARE, Place(estimates="logged"), scheme):
            at = Place(load=load, estimates="logged")
            means = [
                by_window(study.values(metric, place, scheme)).mean()
                for metric in (UNADMITTED_SHARE, "utilisation")
                for place in (at, at._replace(estimates="exact"))
            ]
            promises = study.values("promises_broken", at, scheme)
            broken, n = broken + int(sum(promises.values())), n + len(promises)
            told.append(
                f"{title(scheme)} at {load:g}: rejected {means[0]:.3f} (exact {means[1]:.3f}), "
                f"utilisation {means[2]:.3f} ({means[3]:.3f})"
            )
    note = f"{broken} promises broken; " + "; ".join(told)
    return Finding("does not hold" if broken else "holds", broken, n=n, note=note)


QOPS = "qops", frozenset[tuple[str, Any]]()


def as_plain(study: Study) -> Finding:
    """With a tolerance up to the slack factor, FQoPS without kills equals QoPS: every stored number is the same."""
    compared, different = 0, []
    names = {metric for metric, group in study.cells if not group} - {"offers_made", "offers_taken"}
    for metric in sorted(names):
        for place, (name, parameters), values in study.scan(metric):
            chosen = dict(parameters)
            if (
                name != "fqops"
                or not place.tolerance <= chosen.pop("slack_factor", 1)
                or place.random_tolerance
                or chosen
            ):
                continue
            same = study.cells[(metric, "")]
            plain = same.get((place, QOPS)) or same.get((place._replace(tolerance=1.0), QOPS))  # QoPS makes no offers
            if plain is None:
                continue
            apart = combined(lambda a, b: float(a != b and not (math.isnan(a) and math.isnan(b))), values, plain)
            compared += len(apart)
            different += [metric] * int(sum(apart.values()))
    if not compared:
        raise InputError("no rows of 'fqops' with TF up to SF beside rows of 'qops'", field="scheme")
    note = f"{len(different)} of {compared} stored numbers differ"
    if different:
        note += f" ({', '.join(dict.fromkeys(different))})"
    return Finding("does not hold" if different else "holds", len(different), n=compared, note=note)


def victims_are_served(study: Study) -> Finding:
    """No promise is broken in a schedule with killed jobs."""
    broken = killed = n = 0
    for place, scheme, values in study.scan("promises_broken"):
        if scheme[0] != "fqops" or ("kill_restart", True) not in scheme[1]:
            continue
        kills = study.cells[("kills", "")][(place, scheme)]
        units = [unit for unit in values if kills[unit] > 0]
        broken += int(sum(values[unit] for unit in units))
        killed += int(sum(kills[unit] for unit in units))
        n += len(units)
    if not n:
        raise InputError("no row in which a job was killed to make room", field="kills")
    note = f"{broken} promises broken, of victims or others, in {n} schedules with {killed} kills"
    return Finding("does not hold" if broken else "holds", broken, n=n, note=note)


def cost(study: Study) -> Finding:
    """Placements grow no faster with the queue than stated; in rows of the log ``cost``, load is the queue length."""
    parts = []
    for scheme in ("msb", "qops"):
        found = {at.load: values for at, (name, _), values in study.scan("placements", log="cost") if name == scheme}
        if len(found) < 3:
            raise InputError(f"needs the study of cost: placements of '{scheme}' at three queues or more", field="log")
        queues = np.array(sorted(found))
        stated = queues**2 if scheme == "msb" else queues * np.log(queues)
        table = np.stack([by_window(found[queue]) for queue in sorted(found)], axis=1) / stated
        along = np.log(queues) - np.log(queues).mean()
        slopes = np.log(table) @ along / (along @ along)
        change = {(at, 0): float(slope) - 0.2 for at, slope in enumerate(slopes)}
        parts += signed([(f"slope of {title(scheme)} beyond its order, less 0.2", change)], -1)
    return decided(parts)
