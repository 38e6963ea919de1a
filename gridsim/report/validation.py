"""Validation against the recorded schedule, as sentences and JSON data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gridsim.metrics.agreement import Agreement
from gridsim.number_formatting import counted, duration, number, percent
from gridsim.questions.evidence import Evidence
from gridsim.questions.replay import FAR, Calibration, Replay, is_far
from gridsim.report import explain_text, rejections
from gridsim.report.admission import job_counts
from gridsim.report.markup import texts

_text = texts("validation")


@dataclass(frozen=True, slots=True)
class Trust:
    """Agreement of a simulation with the recorded schedule.

    Attributes
    ----------
    sentences : tuple of str
        Sentences; the first one is sufficient if space is limited.
    numbers : mapping of str to float
        Data: seconds, shares and counts by name.
    policy : str
        Label of the simulated policy; empty if it is not named.
    own : bool
        Whether it is the site's own policy.
    far : bool
        Whether the agreement is so poor that the first sentence is a warning, to be placed before the results.
    """

    sentences: tuple[str, ...]
    numbers: Mapping[str, float] = field(default_factory=dict)
    policy: str = ""
    own: bool = False
    far: bool = False

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences before the results."""
        return self.sentences[:1] if self.far else ()

    @property
    def rest(self) -> tuple[str, ...]:
        """Sentences after the results."""
        return self.sentences[1:] if self.far else self.sentences


def trust(comparison: Evidence) -> Trust | None:
    """Return the agreement of the simulation with the log; None if the log has no starts."""
    return None if comparison.replay is None else trust_in(comparison.replay)


def trust_in(replay: Replay) -> Trust:
    """Return the agreement of a simulation with the log as sentences and data."""
    one = replay.agreement
    numbers = {
        "jobs": one.jobs,
        "start_error_median": one.median,
        "start_error_median_low": one.median_low,
        "start_error_median_high": one.median_high,
        "within_60": one.within_60,
        "wait_mean": one.wait,
        "logged_wait_mean": one.logged_wait,
        **replay.preempted,
    }
    warning = (_warning(replay),) if replay.far else ()
    return Trust((*warning, _how_far(replay)), numbers, policy=replay.policy, own=replay.own, far=replay.far)


def _warning(replay: Replay) -> str:
    one = replay.agreement
    who = f"{replay.policy}, the site's own policy" if replay.own else replay.policy
    return _text("large_difference", who=who, first=_first(replay), one=one, far=FAR)


def _how_far(replay: Replay) -> str:
    one, label = replay.agreement, replay.policy
    error = f"median error of the start times {duration(one.median)}{interval(one)}, {counted(one.jobs, 'job')}"
    means = f"mean wait{_first(replay)} {duration(one.wait)} simulated, {duration(one.logged_wait)} recorded"
    longer = " Here, jobs run for as long as recorded, beyond their limits too." if replay.extended else ""
    if replay.own:
        who = f"Validation of {label}, the site's own policy, against the recorded log"
    else:
        nearest = label if replay.alone else f"{label}, the most accurate policy of these"
        who = f"Not validated: name the site's policy with --own. Under {nearest}"
    return f"{who}: {error}; {means}.{longer} {_more(replay)}"


def _first(replay: Replay) -> str:
    """Return the end of the counted waits, if it is not obvious."""
    return " to their first start" if replay.several_runs else ""


def interval(one: Agreement) -> str:
    """Return the interval of the median error of a start in brackets, if there is one."""
    if math.isnan(one.median_low):
        return ""
    return f" (95 % interval {duration(one.median_low)} to {duration(one.median_high)})"


def _more(replay: Replay) -> str:
    """Return advice for a Slurm log that was not simulated with Slurm's rules."""
    log: Mapping[str, Any] = replay.provenance
    if replay.own or log.get("format") != "sacct":
        return "Details: gridsim calibrate."
    not_so = f"{replay.policy} is not" if replay.alone else "no compared policy is"
    if log.get("clusters"):  # each cluster has separate rules
        return f"The machines ran Slurm, but {not_so} Slurm's policy: gridsim calibrate simulates one --cluster."
    words = "…" if "files" in log else Path(str(log.get("source", "sacct.txt"))).name
    words += f" --cluster {log['cluster']}" if "clusters_left_out" in log else ""
    return _text("slurm_log", not_so=not_so, words=words)


_SENTENCES = 5
"""Number of sentences on each disagreement: request, free cores, and jobs ahead."""


def sentences(found: Calibration) -> list[str]:
    """Return sentences on the errors of the site's own policy, else of the best one, and on the worst class."""
    one = found.overall[found.of]
    own = ", the site's own policy," if found.own else ", the most accurate policy," if len(found.overall) > 1 else ","
    lines = [
        f"Under {found.of}{own} half of the {number(one.jobs)} jobs start within {duration(one.median)} of their "
        f"recorded start{interval(one)}; 90 % within {duration(one.percentile_90)}, {percent(one.within_5)} within 5 s."
        f" The mean wait is {duration(one.wait)} simulated and {duration(one.logged_wait)} recorded"
        f"{f', more than a factor of {FAR:g} apart' if is_far(one.wait, one.logged_wait) else ''}.",
    ]
    if len(found.overall) > 1:
        others = [f"{label} {duration(each.median)}" for label, each in found.overall.items() if label != found.of]
        lines.append(f"Median errors of the other policies: {', '.join(others)}.")
    ran = {f"under {label}" if label else "on the machine": mask for label, mask in found.ran.items()}
    lines += job_counts(ran, np.ones_like(found.ran[""]), found.provenance)
    lines += rejections.failures(found.failures)
    lines += rejections.preempted_in_log(found.logged_runs, found.preempted)
    worst = _worst(found)
    if worst is not None:
        kind, name, agreed = worst
        lines.append(_text("least_accurate_class", kind=kind, alone=alone(name, kind), agreed=agreed))
    return lines


def alone(name: str, kind: str) -> str:
    """Return the name of a class without its kind.

    Examples
    --------
    >>> alone("user ann", "user"), alone("QOS low", "qos"), alone("2-4", "size")
    ('ann', 'low', '2-4')
    """
    return name[len(kind) + 1 :] if name.lower().startswith(f"{kind} ".lower()) else name


def _worst(found: Calibration) -> tuple[str, str, Agreement] | None:
    """Return the class with the largest median error among those with enough jobs.

    None if none is worse than all jobs.
    """
    by_class = found.by_class.items()
    classes = [(kind, name, one) for kind, each in by_class for name, one in each.items() if one.jobs >= _FEWEST_JOBS]
    worst = max(classes, key=lambda entry: entry[2].median, default=None)
    return worst if worst is not None and worst[2].median > found.overall[found.of].median else None


_FEWEST_JOBS = 10
"""Jobs below which a class is not named."""


def why(found: Calibration) -> list[list[str]]:
    """Return the explanations of the simulated waits of the jobs with the largest errors."""
    return [explain_text.sentences(waiting, found.of)[:_SENTENCES] for _, waiting in found.apart]


def as_dict(found: Calibration) -> dict[str, Any]:
    """Return the validation with JSON types."""
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
    """Return the runs preempted in the log and under each policy."""
    if found.logged_runs is None:
        return {}
    policies = {name: dict(one) for name, one in found.preempted.items()}
    return {"preempted": {"log": found.logged_runs._asdict(), "policies": policies}}
