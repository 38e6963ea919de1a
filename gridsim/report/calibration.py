"""How far to trust a simulation of a machine: its log replayed under each policy, against what the log says it did."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.metrics.agreement import (
    Agreement,
    Disagreement,
    agreement,
    agreement_by_group,
    largest_disagreements,
)
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER, seconds
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.report.compare import labelled
from gridsim.report.explain import Schedule, explain
from gridsim.report.explain_text import sentences as why
from gridsim.report.trust import Trust
from gridsim.report.words import duration, number, percent
from gridsim.result import Result
from gridsim.scenario import simulate_all
from gridsim.simulation import Run, run

__all__ = ["DEFAULT_POLICIES", "Calibration", "alone", "calibrate", "sentences", "trust_of"]

DEFAULT_POLICIES = ("fcfs", "easy", "conservative")
"""Who is replayed when nobody says what the site's own policy is."""

SHOWN = 5
"""Disagreements that are told."""

TOLD = 4
"""Sentences on each: what was asked for, the room there was, who stood before."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Replays of one log.

    Attributes
    ----------
    overall : mapping of str to Agreement
        By policy.
    best : str
        The policy with the smallest median error of a start.
    by_class : mapping
        Agreement under the best policy by what tells jobs apart (size, length, user …), then by class.
    apart : tuple of (Disagreement, list of str)
        Jobs with the largest errors under the best policy, each with what the replay shows of its wait.
    """

    overall: Mapping[str, Agreement]
    best: str
    by_class: Mapping[str, Mapping[str, Agreement]]
    apart: tuple[tuple[Disagreement, list[str]], ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "best": self.best,
            "policies": {label: asdict(found) for label, found in self.overall.items()},
            "classes": {
                kind: {name: asdict(found) for name, found in classes.items()}
                for kind, classes in self.by_class.items()
            },
            "disagreements": [{**asdict(one), "replay": told} for one, told in self.apart],
        }


def calibrate(
    workload: Workload,
    policies: Iterable[Any] | Mapping[str, Any] = DEFAULT_POLICIES,
    *,
    platform: Platform,
    options: Run | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Calibration:
    """Replay a log under each policy and compare starts with the logged ones.

    Parameters
    ----------
    workload : Workload
        A log that says when jobs started.
    policies : iterable or mapping
        As `gridsim.report.compare.compare` takes them: the site's own, or those that it may have.

    Raises
    ------
    InputError
        When the log knows no starts.
    """
    results = simulate_all(workload, labelled(policies), platform=platform, options=options, progress=progress)
    records = {label: result.record for label, result in results.items()}
    overall = {label: agreement(record) for label, record in records.items()}
    best = _nearest(overall)
    if not overall[best].jobs:
        source = workload.provenance.get("source")
        raise InputError("says of no job that ran when it started, so there is nothing to compare with", path=source)
    return Calibration(overall, best, agreement_by_group(records[best]), tuple(_apart(records[best], best)))


def _nearest(overall: Mapping[str, Agreement]) -> str:
    """The policy with the smallest median error, of equal ones that with the smallest mean error."""

    def error(label: str) -> tuple[float, float]:
        one = overall[label]
        return (one.median, one.mean) if one.jobs else (math.inf, math.inf)

    return min(overall, key=error)


def _apart(record: Record, label: str) -> Iterable[tuple[Disagreement, list[str]]]:
    schedule = Schedule.of(record)
    for one in largest_disagreements(record, count=SHOWN):
        yield one, why(explain(schedule, one.job), label)[:TOLD]


def sentences(found: Calibration) -> list[str]:
    """The answer in words: the best policy, how far it is off, for whom most."""
    one = found.overall[found.best]
    told = [
        f"Replayed under {found.best}, half of the {number(one.jobs)} jobs start within {duration(one.median)} of when "
        f"they did{_interval(one)}; 90 % within {duration(one.percentile_90)}, {percent(one.within_5)} within 5 s. The "
        f"mean wait is {duration(one.wait)}, in the log {duration(one.logged_wait)}.",
    ]
    if len(found.overall) > 1:
        others = [f"{label} {duration(each.median)}" for label, each in found.overall.items() if label != found.best]
        told.append(f"Median errors of the others: {', '.join(others)}.")
    missing = one.only_logged + one.only_simulated
    if missing:
        told.append(
            f"{number(missing)} {'job' if missing == 1 else 'jobs'} started in only one of the two, and "
            f"{'is' if missing == 1 else 'are'} not counted."
        )
    worst = _worst(found)
    if worst is not None:
        kind, name, agreed = worst
        told.append(
            f"Least true by {kind}: {alone(name, kind)}, half of whose {number(agreed.jobs)} jobs are off by more than "
            f"{duration(agreed.median)}."
        )
    return told


def alone(name: str, kind: str) -> str:
    """Name of a class where its kind is said already.

    Examples
    --------
    >>> alone("user ann", "user"), alone("QOS low", "qos"), alone("2-4", "size")
    ('ann', 'low', '2-4')
    """
    return name[len(kind) + 1 :] if name.lower().startswith(f"{kind} ".lower()) else name


def _interval(one: Agreement) -> str:
    if math.isnan(one.median_low):
        return ""
    return f" (95 % interval {duration(one.median_low)} to {duration(one.median_high)})"


def _worst(found: Calibration, least: int = 10) -> tuple[str, str, Agreement] | None:
    """The class with the largest median error, of those with enough jobs; None where none is worse than all jobs."""
    classes = [
        (kind, name, one) for kind, each in found.by_class.items() for name, one in each.items() if one.jobs >= least
    ]
    worst = max(classes, key=lambda entry: entry[2].median, default=None)
    return worst if worst is not None and worst[2].median > found.overall[found.best].median else None


def _median_error(record: Record) -> float:
    """Of a start, s, over the jobs that started in both; NaN without any: that of `agreement`, without its interval."""
    logged = record.workload.logged_start
    assert logged is not None
    both = record.ran & (logged < NEVER)
    return float(np.median(np.abs(seconds(record.start_us[both] - logged[both])))) if both.any() else math.nan


def trust_of(
    results: Mapping[str, Result],
    own: Iterable[str] = (),
    *,
    policies: Mapping[str, Any] | None = None,
    options: Run | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Trust | None:
    """What a comparison may say of itself: how near the replay under the site's own policy comes to the log.

    Where none is that of the site, it is the policy among those compared that comes nearest. None where the log knows
    no starts, where jobs were changed since, and for DAG jobs.

    Parameters
    ----------
    own : iterable of str
        Labels of policies that know the site.
    policies, options : mapping, Run
        What the labels stand for, and the options of the results. With them the policy is replayed once more where jobs
        outlived their limits and were cut there: as in `calibrate`, they then run as long as they did.
    progress : callable, optional
        Told the label and the number of jobs released so far.
    """
    records = {label: result.record for label, result in results.items()}
    workload = next(iter(records.values())).workload
    if workload.logged_start is None or workload.tasks is not None or workload.provenance.get("transforms"):
        return None
    errors = {label: _median_error(record) for label, record in records.items()}
    known = [label for label in errors if not math.isnan(errors[label])]
    if not known:
        return None
    own = set(own)
    replays = [label for label in known if label in own]
    best = min(replays or known, key=errors.__getitem__)
    record, longer = records[best], ""
    if policies is not None and options is not None and _cut(record, options):
        told = None if progress is None else partial(progress, f"{best}, as the log")
        as_logged = replace(options, overrun="extend")
        record = run(workload, results[best].platform, policies[best], as_logged, progress=told)
        longer = " (replayed with jobs that run as long as they did, beyond their limits too)"
    one = agreement(record)
    role = "is the site's own policy" if replays else "comes nearest to what the machine did"
    said = (
        f"How far to trust this: of the policies compared, {best} {role}. Under it{longer} half of the "
        f"{number(one.jobs)} jobs start within {duration(one.median)} of their logged start{_interval(one)}; the mean "
        f"wait is {duration(one.wait)}, in the log {duration(one.logged_wait)}. {_more(workload, bool(replays))}"
    )
    return Trust(
        (said,),
        {
            "jobs": one.jobs,
            "start_error_median": one.median,
            "start_error_median_low": one.median_low,
            "start_error_median_high": one.median_high,
            "within_60": one.within_60,
            "wait_mean": one.wait,
            "logged_wait_mean": one.logged_wait,
        },
    )


def _cut(record: Record, options: Run) -> bool:
    """Whether jobs that ran longer than their limit were killed at it."""
    workload = record.workload
    return options.overrun == "kill" and bool((workload.runtime > workload.estimate)[record.ran].any())


def _more(workload: Workload, replayed: bool) -> str:
    """Where to learn more: of a log of Slurm that was not replayed by Slurm's rules, how that is done."""
    if replayed or workload.provenance.get("format") != "sacct":
        return "gridsim calibrate says more."
    file = Path(str(workload.provenance.get("source", "sacct.txt"))).name
    return (
        f"That machine runs Slurm, which none of them is: gridsim calibrate {file} --policy 'slurm?conf=slurm.conf' "
        "replays the log by its rules."
    )
