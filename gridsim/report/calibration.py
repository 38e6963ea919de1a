"""Replays of a log against the log, in words and for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from gridsim.metrics.agreement import Agreement
from gridsim.questions.replay import FAR, Calibration, is_far
from gridsim.report import explain_text, refusals
from gridsim.report.job_counts import job_counts
from gridsim.report.texts import texts
from gridsim.report.trust import interval
from gridsim.words import duration, number, percent

__all__ = ["alone", "as_dict", "sentences", "why"]

_text = texts("validation")

_SENTENCES = 5
"""Sentences on each disagreement: what was asked for, the room there was, who stood before."""


def sentences(found: Calibration) -> list[str]:
    """The answer in words: how far the site's own policy is off, else the best one, and for whom most."""
    one = found.overall[found.of]
    own = ", the site's own policy," if found.own else ", which comes nearest," if len(found.overall) > 1 else ","
    told = [
        f"Replayed under {found.of}{own} half of the {number(one.jobs)} jobs start within {duration(one.median)} of "
        f"when they did{interval(one)}; 90 % within {duration(one.percentile_90)}, {percent(one.within_5)} within 5 s."
        f" The mean wait is {duration(one.wait)}, in the log {duration(one.logged_wait)}"
        f"{f', more than a factor of {FAR:g} apart' if is_far(one.wait, one.logged_wait) else ''}.",
    ]
    if len(found.overall) > 1:
        others = [f"{label} {duration(each.median)}" for label, each in found.overall.items() if label != found.of]
        told.append(f"Median errors of the others: {', '.join(others)}.")
    ran = {f"under {label}" if label else "on the machine": mask for label, mask in found.ran.items()}
    told += job_counts(ran, np.ones_like(found.ran[""]), found.provenance)
    told += refusals.failures(found.failures)
    told += refusals.preempted_in_log(found.logged_runs, found.preempted)
    worst = _worst(found)
    if worst is not None:
        kind, name, agreed = worst
        told.append(_text("least_accurate_class", kind=kind, alone=alone(name, kind), agreed=agreed))
    return told


def alone(name: str, kind: str) -> str:
    """Name of a class where its kind is said already.

    Examples
    --------
    >>> alone("user ann", "user"), alone("QOS low", "qos"), alone("2-4", "size")
    ('ann', 'low', '2-4')
    """
    return name[len(kind) + 1 :] if name.lower().startswith(f"{kind} ".lower()) else name


def _worst(found: Calibration, least: int = 10) -> tuple[str, str, Agreement] | None:
    """The class with the largest median error, of those with enough jobs; None where none is worse than all jobs."""
    classes = [
        (kind, name, one) for kind, each in found.by_class.items() for name, one in each.items() if one.jobs >= least
    ]
    worst = max(classes, key=lambda entry: entry[2].median, default=None)
    return worst if worst is not None and worst[2].median > found.overall[found.of].median else None


def why(found: Calibration) -> list[list[str]]:
    """What the replay shows of the wait of each of the jobs that are furthest apart, in words."""
    return [explain_text.sentences(waiting, found.of)[:_SENTENCES] for _, waiting in found.apart]


def as_dict(found: Calibration) -> dict[str, Any]:
    """For JSON."""
    return {
        "best": found.best,
        "own": found.own,
        "policies": {label: asdict(one) for label, one in found.overall.items()},
        "classes": {
            kind: {name: asdict(one) for name, one in classes.items()} for kind, classes in found.by_class.items()
        },
        **_preempted(found),
        "disagreements": [
            {**asdict(one), "replay": lines} for (one, _), lines in zip(found.apart, why(found), strict=True)
        ],
    }


def _preempted(found: Calibration) -> dict[str, Any]:
    """Runs preempted in the log and under each policy."""
    if found.logged_runs is None:
        return {}
    policies = {name: dict(one) for name, one in found.preempted.items()}
    return {"preempted": {"log": found.logged_runs._asdict(), "policies": policies}}
