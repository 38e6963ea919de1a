"""Sentences on jobs that are rejected, exceed a limit, or are preempted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gridsim.metrics.agreement import ModelFailures, model_failures
from gridsim.metrics.preemption import LoggedRuns
from gridsim.model.time import NEVER
from gridsim.number_formatting import counted, listed, number, percent
from gridsim.record import Record, Status
from gridsim.report import admission
from gridsim.report.markup import texts

if TYPE_CHECKING:
    from gridsim.questions.evidence import Evidence


_text = texts("rejections")

NOTABLE = 0.01
"""Difference in the share of rejected jobs between policies, from which on it is reported first."""

_MOST = 3
_HOUR = 3600.0


def refused(comparison: Evidence) -> dict[str, int]:
    """Return how many jobs each policy rejects, without model failures."""
    return {label: int(numbers["unadmitted"] + numbers["rejected"]) for label, numbers in comparison.metrics.items()}


def answer(comparison: Evidence) -> list[str]:
    """Return text on policies that reject notably more jobs than others; empty for similar numbers.

    Jobs rejected because of deadlines are reported elsewhere.
    """
    rejected, jobs = refused(comparison), comparison.metrics[comparison.baseline]["submitted"]
    fewest = min(rejected.values())
    notable = [label for label, count in rejected.items() if count - fewest >= max(1, NOTABLE * jobs)]
    if not notable or admission.of_deadlines(comparison):
        return []
    notable.sort(key=lambda label: -rejected[label])
    parts = [
        f"{label} rejects {number(rejected[label])} ({percent(rejected[label] / jobs)})" for label in notable[:_MOST]
    ]
    if len(notable) > _MOST:
        parts.append(f"{number(len(notable) - _MOST)} of the others up to {number(rejected[notable[_MOST]])}")
    others = [label for label in rejected if label not in notable]
    most = max(rejected[label] for label in others)
    parts.append(f"{listed(others)} {number(most) if most else 'none'}{' at most' if most and len(others) > 1 else ''}")
    common = f"{number(comparison.common.sum())} ran under every policy"
    return [f"Of {counted(int(jobs), 'job')}, {listed(parts)}; {common}{_instead(comparison)}."]


def _instead(comparison: Evidence) -> str:
    """Return how to model the reactions of users, if limits may have caused rejections."""
    asked = comparison.info.get("options", {}).get("limits", "refuse")
    if asked != "refuse" or not any(map(_too_long, comparison.records.values())):
        return ""
    return " (--limits clip or split: simulate users who shorten or split jobs that exceed a time limit)"


def _too_long(record: Record) -> bool:
    """Return whether any job was rejected for its requested time."""
    return record.reasons is not None and any(why.unit == "s" for why in record.reasons.refused.values())


def caveats(comparison: Evidence) -> Iterator[str]:
    """Return notes on jobs rejected only in the simulation, above a time limit, or by other limits."""
    yield from failures(model_failures(comparison.records, comparison.info.get("own"), comparison.kept))
    for label, record in comparison.records.items():
        if record.beyond is not None:
            yield f"Under {label}, {(_clipped if record.beyond.how == 'clip' else _split)(record)}."
            others = int(comparison.metrics[label]["unadmitted"])
            if others:
                were = "job is" if others == 1 else "jobs are"
                yield f"Under {label}, {number(others)} more {were} rejected by other limits, which do not change."


def failures(found: Mapping[str, ModelFailures]) -> Iterator[str]:
    """Return sentences on jobs that ran in the log but are rejected in the simulation.

    Policies with the same ones are grouped.

    Examples
    --------
    >>> list(failures({"a": ModelFailures(2, ()), "b": ModelFailures(2, ())}))  # doctest: +NORMALIZE_WHITESPACE
    ['2 jobs ran in the log but the simulation rejects them under a and b: the model of the site is wrong for them.']
    """
    policies: dict[ModelFailures, list[str]] = {}
    for label, each in found.items():
        policies.setdefault(each, []).append(label)
    for each, labels in policies.items():
        several = len(each.reasons) > 1
        parts = [f"{reason}: {number(count)}" if several else reason for reason, count in each.reasons[:_MOST]]
        reasons = f" ({listed(parts)})" if parts else ""
        them = "it" if each.jobs == 1 else "them"
        yield _text("model_failures", each=each, them=them, labels=labels, reasons=reasons)


def _clipped(record: Record) -> str:
    assert record.beyond is not None
    above = record.beyond.limit_us < NEVER
    cut = above & (record.status == Status.killed_walltime) & (record.workload.runtime > record.beyond.limit_us)
    lost = float(np.nansum(record.area[cut])) / _HOUR
    clipped = f"{_jobs(above)} above the time limit requested the limit instead"
    if not cut.any():
        return f"{clipped}, which was long enough"
    return _text("clipped", clipped=clipped, cut=cut.sum(), were="was" if cut.sum() == 1 else "were", lost=lost)


def _split(record: Record) -> str:
    assert record.beyond is not None
    above = (record.beyond.limit_us < NEVER) & record.ran
    pieces = int((record.beyond.pieces + 1)[above].sum())
    if pieces == above.sum():
        return f"{_jobs(above)} above the time limit ended within it, in one piece"
    chained = above & (record.beyond.pieces > 0)
    others = int(above.sum() - chained.sum())
    more = f" ({number(others)} more ended within the limit)" if others else ""
    were = "was" if chained.sum() == 1 else "were"
    return _text("chains", jobs=_jobs(chained), were=were, pieces=pieces - others, more=more)


def _jobs(which: npt.NDArray[np.bool_]) -> str:
    return counted(int(which.sum()), "job")


def preempted(metrics: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Return sentences on preempted runs of each policy: number, lost work, and owners of the preempting jobs.

    Examples
    --------
    >>> numbers = {"preempted_runs": 3.0, "preempted_jobs": 2.0, "preempted_core_hours": 1.5}
    >>> list(preempted({"today": {**numbers, "preempted_runs[QOS high]": 3.0}}))
    ['Under today, 3 runs of 2 jobs were preempted, all for jobs of QOS high; 1.5 core-hours of work were lost.']
    """
    for label, numbers in metrics.items():
        runs = int(numbers.get("preempted_runs", 0))
        if runs:
            jobs = counted(int(numbers["preempted_jobs"]), "job")
            lost = f"{numbers['preempted_core_hours']:,.3g} core-hours of work were lost"
            cut = f"{counted(runs, 'run')} of {jobs} {'was' if runs == 1 else 'were'} preempted"
            yield f"Under {label}, {cut}{_whose(numbers, runs)}; {lost}."
        if count := int(numbers.get("suspensions", 0)):
            hours = f"{numbers['suspended_hours']:,.3g} hours in all"
            yield f"Under {label}, running jobs were suspended {counted(count, 'time')}, for {hours}."


def preempted_in_log(logged: LoggedRuns | None, metrics: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Return the number of preempted runs in the log and under each policy; empty if the log has no such data.

    Examples
    --------
    >>> numbers = {"preempted_runs": 34.0, "preempted_jobs": 28.0}
    >>> list(preempted_in_log(LoggedRuns(53, 48, every=True), {"today": numbers, "easy": {}}))
    ['In the log, 53 runs of 48 of these jobs were preempted; under today 34 of 28, under easy none.']
    """
    if logged is None or not logged.runs:
        return
    parts = [
        f"under {label} {number(int(runs))} of {number(int(numbers['preempted_jobs']))}"
        if (runs := numbers.get("preempted_runs", 0))
        else f"under {label} none"
        for label, numbers in metrics.items()
    ]
    were = "was" if logged.runs == 1 else "were"
    least = "" if logged.every else "at least "
    missing = "" if logged.every else " (no job has more than one run: was sacct run with -D?)"
    cut = f"{least}{counted(logged.runs, 'run')} of {number(logged.jobs)} of these jobs {were} preempted{missing}"
    yield f"In the log, {cut}; {', '.join(parts)}."


def _whose(numbers: Mapping[str, float], runs: int) -> str:
    start, end = "preempted_runs[", "]"
    groups = {key[len(start) : -len(end)]: value for key, value in numbers.items() if key.startswith(start)}
    named = sorted(((int(count), name) for name, count in groups.items() if count > 0), key=lambda it: -it[0])
    if not named:
        return ""
    if len(named) == 1:
        return f", all for jobs of {named[0][1]}" if runs > 1 else f", for a job of {named[0][1]}"
    parts = [f"{number(count)} for jobs of {name}" for count, name in named[:_MOST]]
    rest = sum(count for count, _ in named[_MOST:])
    return f": {listed([*parts, *([f'{number(rest)} for others'] if rest else [])])}"
