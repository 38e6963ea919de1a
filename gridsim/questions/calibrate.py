"""Validation of policies: simulations of a log compared with its recorded schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gridsim.errors import InputError, require_known
from gridsim.metrics.agreement import (
    Disagreement,
    agreement,
    agreement_by_group,
    largest_disagreements,
    model_failures,
    start_error,
)
from gridsim.metrics.preemption import concerns_preemption, logged_runs, preemption_metrics
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER, seconds
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.capabilities import is_variant
from gridsim.policy.site_policy import machine, machine_of
from gridsim.questions.explain import Explanation, explain
from gridsim.questions.labels import policies_of
from gridsim.questions.replay import Calibration, Replay, nearest_policy
from gridsim.questions.schedules import JobSchedule
from gridsim.record import Record
from gridsim.result import Result
from gridsim.scenario import jobs_of, simulate_all
from gridsim.simulation import run
from gridsim.workers import Workers
from gridsim.workload.read import Paths

DEFAULT_POLICIES = ("easy", "conservative", "fcfs")
"""Policies that are simulated if the site's own policy is not given."""

SHOWN = 5
"""Number of disagreements in the report."""


def calibrate(
    workload: Workload | Paths,
    policies: Iterable[Any] | Mapping[str, Any] = DEFAULT_POLICIES,
    *,
    platform: Platform | None = None,
    options: Run | None = None,
    own: str | None = None,
    site: Any = None,
    progress: Callable[[str, int], None] | None = None,
    workers: int | Workers = 1,
) -> Calibration:
    """Simulate a log under each policy and compare the starts with the logged ones.

    Parameters
    ----------
    workload : Workload or path
        A log with start times; a file is read with the default rules.
    policies : iterable or mapping
        Policies as for `gridsim.compare`: the site's own, or candidates for it.
    platform : Platform, optional
        The machine; by default that of a policy with a site configuration, else of the size that the log states.
    options : Run, optional
        Options of all runs: overrun, instant, seed, partitions.
    own : str, optional
        Label of the site's own policy; by default the first with a site configuration.
    site : str or mapping, optional
        The site of the policy ``site``, as for `gridsim.compare`.
    progress : callable, optional
        Called with the label and the number of jobs released so far.
    workers : int or Workers
        Number of worker processes; 1 uses only this process. Results do not depend on the number.

    Returns
    -------
    Calibration
        Errors of simulated start times by policy, and the jobs with the largest errors.

    Raises
    ------
    InputError
        If the log has no starts, or *own* is not one of the labels.

    Examples
    --------
    >>> jobs = Workload.from_columns(
    ...     submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2], cores_stated=4, logged={"wait": [0, 9, 0]}
    ... )
    >>> found = calibrate(jobs, ["fcfs", "easy"])
    >>> found.best, found.overall["fcfs"].mean
    ('easy', 6.0)
    """
    made = policies_of(policies, site, default=DEFAULT_POLICIES)
    own, workload = own_policy(made, own), jobs_of(workload, made.values())
    platform = platform or machine(workload, policies=made.values())
    results = simulate_all(workload, made, platform=platform, options=options, progress=progress, workers=workers)
    records = {label: result.record for label, result in results.items()}
    overall = {label: agreement(record) for label, record in records.items()}
    best = nearest_policy({label: (one.median, one.mean) for label, one in overall.items()})
    if not overall[best].jobs:
        source = workload.provenance.get("source")
        known = workload.logged_start is not None and (workload.logged_start < NEVER).any()
        what = "no job of the log runs under any of these policies" if known else "the log has no start time of any job"
        raise InputError(f"{what}, so there is nothing to compare", path=source)
    of = own or best
    apart, classes = tuple(_apart(results[of])), agreement_by_group(records[of])
    cut = {
        label: preemption_metrics(record) if concerns_preemption(record) else {} for label, record in records.items()
    }
    assert workload.logged_start is not None  # checked before: the log has starts
    ran = {"": workload.logged_start < NEVER} | {label: it.first_start_us < NEVER for label, it in records.items()}
    more: Any = {"ran": ran, "failures": model_failures(records, own), "provenance": workload.provenance}
    return Calibration(overall, best, classes, apart, own, logged_runs(workload), cut, **more)


def _apart(result: Result) -> Iterator[tuple[Disagreement, Explanation]]:
    schedule = JobSchedule.of(result.record, result.platform)
    for one in largest_disagreements(result.record, count=SHOWN):
        yield one, explain(schedule, one.job)


def own_policy(policies: Mapping[str, Any], asked: str | None = None) -> str | None:
    """Return the label of the site's own policy: *asked*, else the first with an unchanged site configuration.

    Return None if there is none: a policy with changed keys is a variant. The agreement with the log is not a
    criterion, since a variant may agree better by chance.

    Raises
    ------
    UnknownNameError
        If *asked* is not one of the labels.
    """
    if asked is None:
        known = [label for label, made in policies.items() if machine_of([made]) is not None]
        return next((label for label in known if not is_variant(policies[label])), None)
    require_known("policy in --own", policies, asked)
    return asked


def replay_of(
    results: Mapping[str, Result],
    own: str | None = None,
    *,
    policies: Mapping[str, Any] | None = None,
    options: Run | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Replay | None:
    """Return the agreement of the site's own policy with the log, for the validation sentence of a comparison.

    If the site's own policy is unknown, the policy with the best agreement is used (`nearest_policy`). Return None if
    the log has no starts, if jobs were changed, and for DAG jobs.

    Parameters
    ----------
    own : str, optional
        Label of the site's own policy (`own_policy`).
    policies, options : mapping, Run
        Policies by label, and the options of the results. With them, the policy is simulated again if jobs were killed
        at limits that they exceeded in the log; as in `calibrate`, these jobs then keep their logged run times.
    progress : callable, optional
        Called with the label and the number of jobs released so far.
    """
    workload = next(iter(results.values())).record.workload
    if not workload.has_recorded_schedule:
        return None
    label = own or nearest_policy({label: _start_error(result.record) for label, result in results.items()})
    record, extended = results[label].record, False
    if policies is not None and options is not None and _cut(record, options):
        extended = True
        hear = None if progress is None else partial(progress, f"{label}, as the log")
        as_logged = replace(options, overrun="extend")
        record = run(workload, results[label].platform, policies[label], as_logged, progress=hear)
    one = agreement(record)
    if not one.jobs:
        return None
    return Replay(
        label,
        one,
        own=own is not None,
        alone=len(results) == 1,
        extended=extended,
        several_runs=bool((record.first_start_us != record.start_us).any()),
        preempted=_preempted_runs(record),
        provenance=workload.provenance,
    )


def _start_error(record: Record) -> tuple[float, float]:
    logged = record.workload.logged_start
    assert logged is not None
    start, recorded = (np.where(it < NEVER, seconds(it), np.nan) for it in (record.first_start_us, logged))
    return start_error(start, recorded)


def _preempted_runs(record: Record) -> dict[str, float]:
    """Return the runs preempted in the simulation and in the log, if both have such data."""
    logged = logged_runs(record.workload)
    if logged is None or not concerns_preemption(record):
        return {}
    return {"preempted_runs": preemption_metrics(record)["preempted_runs"], "logged_preempted_runs": logged.runs}


def _cut(record: Record, options: Run) -> bool:
    """Return whether jobs that exceeded their limit were killed at it."""
    workload = record.workload
    return options.overrun == "kill" and bool((workload.runtime > workload.estimate)[record.ran].any())


def replays_once_more(workload: Workload, options: Run) -> bool:
    """Return whether `replay_of` will simulate, unless all jobs that exceeded their limits are rejected."""
    return (
        workload.has_recorded_schedule
        and options.overrun == "kill"
        and bool((workload.runtime > workload.estimate).any())
    )
