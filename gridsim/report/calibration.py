"""How far to trust a simulation of a machine: its log replayed under each policy, against what the log says it did."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from gridsim.errors import InputError, UnknownNameError
from gridsim.metrics.agreement import (
    Agreement,
    Disagreement,
    agreement,
    agreement_by_group,
    largest_disagreements,
)
from gridsim.metrics.preemption import LoggedRuns, concerns_preemption, logged_runs, preemption_metrics
from gridsim.model.machine import machine_of
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.policy.presets import policy as make_policy
from gridsim.questions.explain import explain
from gridsim.questions.labels import labelled
from gridsim.questions.schedules import Schedule
from gridsim.record import Record
from gridsim.report.explain_text import sentences as why
from gridsim.report.preemption import as_logged
from gridsim.report.trust import Trust
from gridsim.result import Result
from gridsim.scenario import simulate_all
from gridsim.simulation import Run, run
from gridsim.words import duration, number, percent
from gridsim.workers import Workers

__all__ = [
    "DEFAULT_POLICIES",
    "FAR",
    "FAR_SECONDS",
    "Calibration",
    "alone",
    "calibrate",
    "is_far",
    "own_policy",
    "replays_once_more",
    "sentences",
    "trust_of",
]

DEFAULT_POLICIES = ("fcfs", "easy", "conservative")
"""Who is replayed when nobody says what the site's own policy is."""

SHOWN = 5
"""Disagreements that are told."""

FAR = 2.0
"""Factor between the replayed and the logged mean wait from which on a comparison is told with a warning before it."""

FAR_SECONDS = 60.0
"""Difference of the two, s, up to which no factor matters."""

TOLD = 5
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
        Agreement under the policy `of` by what tells jobs apart (size, length, user …), then by class.
    apart : tuple of (Disagreement, list of str)
        Jobs with the largest errors under it, each with what the replay shows of its wait.
    own : str or None
        The site's own policy; None where nobody said which that is.
    logged_runs : LoggedRuns or None
        Runs that were preempted on the machine, where the log knows.
    preempted : mapping
        Those of each policy that preempts (`gridsim.metrics.summary.PREEMPTION_METRICS`), by label.
    """

    overall: Mapping[str, Agreement]
    best: str
    by_class: Mapping[str, Mapping[str, Agreement]]
    apart: tuple[tuple[Disagreement, list[str]], ...]
    own: str | None = None
    logged_runs: LoggedRuns | None = None
    preempted: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def of(self) -> str:
        """The policy that is told of: the site's own, where it is known, else the one that comes nearest."""
        return self.own or self.best

    def __repr__(self) -> str:
        found = ", ".join(f"{label} {duration(one.median)}" for label, one in self.overall.items())
        return f"<Calibration of {self.overall[self.best].jobs:,} starts, median errors: {found}>"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "best": self.best,
            "own": self.own,
            "policies": {label: asdict(found) for label, found in self.overall.items()},
            "classes": {
                kind: {name: asdict(found) for name, found in classes.items()}
                for kind, classes in self.by_class.items()
            },
            **({} if self.logged_runs is None else {"preempted": self._preempted()}),
            "disagreements": [{**asdict(one), "replay": told} for one, told in self.apart],
        }

    def _preempted(self) -> dict[str, Any]:
        """Runs preempted in the log and under each policy."""
        assert self.logged_runs is not None
        return {
            "log": self.logged_runs._asdict(),
            "policies": {name: dict(one) for name, one in self.preempted.items()},
        }


def calibrate(
    workload: Workload,
    policies: Iterable[Any] | Mapping[str, Any] = DEFAULT_POLICIES,
    *,
    platform: Platform,
    options: Run | None = None,
    own: str | None = None,
    progress: Callable[[str, int], None] | None = None,
    workers: int | Workers = 1,
) -> Calibration:
    """Replay a log under each policy and compare starts with the logged ones.

    Parameters
    ----------
    workload : Workload
        A log that says when jobs started.
    policies : iterable or mapping
        As `gridsim.report.compare.compare` takes them: the site's own, or those that it may have.
    own : str, optional
        Label of the site's own policy; where left out, the first that knows its site.

    progress : callable, optional
        Told the label and the number of jobs released so far.
    workers : int or Workers
        Processes that replay; 1 for none but this one. Results are the same with any number.

    Raises
    ------
    InputError
        When the log knows no starts, or *own* is no policy.
    """
    made = {label: make_policy(what) for label, what in labelled(policies).items()}
    own = own_policy(made, own)
    results = simulate_all(workload, made, platform=platform, options=options, progress=progress, workers=workers)
    records = {label: result.record for label, result in results.items()}
    overall = {label: agreement(record) for label, record in records.items()}
    best = _nearest(overall)
    if not overall[best].jobs:
        source = workload.provenance.get("source")
        raise InputError("says of no job that ran when it started, so there is nothing to compare with", path=source)
    of = own or best
    apart, classes = tuple(_apart(results[of], of)), agreement_by_group(records[of])
    cut = {
        label: preemption_metrics(record) if concerns_preemption(record) else {} for label, record in records.items()
    }
    return Calibration(overall, best, classes, apart, own, logged_runs(workload), cut)


def _nearest(overall: Mapping[str, Agreement]) -> str:
    """The policy with the smallest median error, of equal ones that with the smallest mean error."""

    def error(label: str) -> tuple[float, float]:
        one = overall[label]
        return (one.median, one.mean) if one.jobs else (math.inf, math.inf)

    return min(overall, key=error)


def _apart(result: Result, label: str) -> Iterable[tuple[Disagreement, list[str]]]:
    schedule = Schedule.of(result.record, result.platform)
    for one in largest_disagreements(result.record, count=SHOWN):
        yield one, why(explain(schedule, one.job), label)[:TOLD]


def sentences(found: Calibration) -> list[str]:
    """The answer in words: how far the site's own policy is off, else the best one, and for whom most."""
    one = found.overall[found.of]
    own = ", the site's own policy," if found.own else ", which comes nearest," if len(found.overall) > 1 else ","
    told = [
        f"Replayed under {found.of}{own} half of the {number(one.jobs)} jobs start within {duration(one.median)} of "
        f"when they did{_interval(one)}; 90 % within {duration(one.percentile_90)}, {percent(one.within_5)} within 5 s."
        f" The mean wait is {duration(one.wait)}, in the log {duration(one.logged_wait)}"
        f"{f', more than a factor of {FAR:g} apart' if is_far(one) else ''}.",
    ]
    if len(found.overall) > 1:
        others = [f"{label} {duration(each.median)}" for label, each in found.overall.items() if label != found.of]
        told.append(f"Median errors of the others: {', '.join(others)}.")
    missing = one.only_logged + one.only_simulated
    if missing:
        told.append(
            f"{number(missing)} {'job' if missing == 1 else 'jobs'} started in only one of the two, and "
            f"{'is' if missing == 1 else 'are'} not counted."
        )
    told += as_logged(found.logged_runs, found.preempted)
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
    return worst if worst is not None and worst[2].median > found.overall[found.of].median else None


def own_policy(policies: Mapping[str, Any], asked: str | None = None) -> str | None:
    """Label of the site's own policy: the one that is *asked* for, else the first that knows its site (``conf``).

    None where none does. How near a replay comes to a log plays no part: a variant may come nearer by chance.

    Raises
    ------
    UnknownNameError
        When what is asked for is none of the labels.
    """
    if asked is None:
        return next((label for label, made in policies.items() if machine_of([made]) is not None), None)
    if asked not in policies:
        raise UnknownNameError("policy in --own", asked, policies)
    return asked


def trust_of(
    results: Mapping[str, Result],
    own: str | None = None,
    *,
    policies: Mapping[str, Any] | None = None,
    options: Run | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Trust | None:
    """What a comparison may say of itself: how near the replay under the site's own policy comes to the log.

    Where none is that of the site, it is the first: never the one that comes nearest, which tells nothing of the
    others. None where the log knows no starts, where jobs were changed since, and for DAG jobs.

    Parameters
    ----------
    own : str, optional
        Label of the site's own policy (`own_policy`).
    policies, options : mapping, Run
        What the labels stand for, and the options of the results. With them the policy is replayed once more where jobs
        outlived their limits and were cut there: as in `calibrate`, they then run as long as they did.
    progress : callable, optional
        Told the label and the number of jobs released so far.
    """
    label = next(iter(results)) if own is None else own
    record, longer = results[label].record, ""
    workload = record.workload
    if not _comparable(workload):
        return None
    if policies is not None and options is not None and _cut(record, options):
        told = None if progress is None else partial(progress, f"{label}, as the log")
        as_logged = replace(options, overrun="extend")
        record = run(workload, results[label].platform, policies[label], as_logged, progress=told)
        longer = " (with jobs that run as long as they did, beyond their limits too)"
    one = agreement(record)
    if not one.jobs:
        return None
    first = " to their first start" if (record.first_start_us != record.start_us).any() else ""
    warning = () if own is None or not is_far(one) else (_warning(one, own, first),)
    return Trust(
        (*warning, _how_far(one, label, own, longer, first, workload, alone=len(results) == 1)),
        {
            "jobs": one.jobs,
            "start_error_median": one.median,
            "start_error_median_low": one.median_low,
            "start_error_median_high": one.median_high,
            "within_60": one.within_60,
            "wait_mean": one.wait,
            "logged_wait_mean": one.logged_wait,
            **_preempted_runs(record),
        },
        policy=label,
        own=own is not None,
        far=bool(warning),
    )


def _preempted_runs(record: Record) -> dict[str, float]:
    """Runs preempted in the replay and in the log, where both tell of them."""
    logged = logged_runs(record.workload)
    if logged is None or not concerns_preemption(record):
        return {}
    return {"preempted_runs": preemption_metrics(record)["preempted_runs"], "logged_preempted_runs": logged.runs}


def is_far(one: Agreement) -> bool:
    """Whether a replayed mean wait is more than `FAR` times the logged one, or less than a part of it.

    Means less than `FAR_SECONDS` apart are near each other whatever their ratio.
    """
    low, high = sorted((one.wait, one.logged_wait))
    return high > FAR * low and high - low > FAR_SECONDS


def _warning(one: Agreement, own: str, first: str) -> str:
    return (
        f"Warning: the replay is not like the machine. Under {own}, the site's own policy, jobs wait "
        f"{duration(one.wait)} on average{first}, in the log {duration(one.logged_wait)}: more than a factor of "
        f"{FAR:g} apart. Take what follows for the order of the policies at most, not for waits that users would see."
    )


def _how_far(
    one: Agreement, label: str, own: str | None, longer: str, first: str, workload: Workload, *, alone: bool
) -> str:
    if own is not None:
        who = f"replayed under {label}, the site's own policy"
    elif alone:
        who = f"whether {label} is the site's own policy is not known. Replayed under it"
    else:
        who = (
            f"which of these policies is the site's own was not said (--own). Replayed under {label}, the first of them"
        )
    not_so = f"{label} is not" if alone else "none of them is"
    return (
        f"How far to trust this: {who}{longer}, half of the {number(one.jobs)} jobs start within "
        f"{duration(one.median)} of their logged start{_interval(one)}; the mean wait{first} is "
        f"{duration(one.wait)}, in the log {duration(one.logged_wait)}. {_more(workload, own is not None, not_so)}"
    )


def _cut(record: Record, options: Run) -> bool:
    """Whether jobs that ran longer than their limit were killed at it."""
    workload = record.workload
    return options.overrun == "kill" and bool((workload.runtime > workload.estimate)[record.ran].any())


def replays_once_more(workload: Workload, options: Run) -> bool:
    """Whether `trust_of` will simulate, unless all jobs that outlived their limits are refused."""
    return _comparable(workload) and options.overrun == "kill" and bool((workload.runtime > workload.estimate).any())


def _comparable(workload: Workload) -> bool:
    """Whether the log knows when these very jobs started."""
    return workload.logged_start is not None and workload.tasks is None and not workload.provenance.get("transforms")


def _more(workload: Workload, replayed: bool, not_so: str) -> str:
    """Where to learn more: of a log of Slurm that was not replayed by Slurm's rules, how that is done."""
    if replayed or workload.provenance.get("format") != "sacct":
        return "gridsim calibrate says more."
    told = workload.provenance
    if told.get("clusters"):  # each has rules of its own
        return f"Those machines ran Slurm, and {not_so} Slurm's: gridsim calibrate replays one --cluster by its rules."
    words = "…" if "files" in told else Path(str(told.get("source", "sacct.txt"))).name
    words += f" --cluster {told['cluster']}" if "clusters_left_out" in told else ""
    return (
        f"That machine ran Slurm, and {not_so} Slurm's: gridsim calibrate {words} --policy 'slurm?conf=slurm.conf' "
        "replays the log by its rules."
    )
