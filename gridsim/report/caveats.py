"""Caveats on the numbers of a comparison: cuts, statuses, rejections, and lines of the log left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gridsim.metrics.preemption import LoggedRuns, logged_runs
from gridsim.model.dates import calendar_of
from gridsim.model.time import seconds
from gridsim.questions.evidence import Evidence
from gridsim.report import (
    admission,
    demands,
    flurries_text,
    machines,
    notices,
    predictions,
    preemption,
    refusals,
    replicas_text,
    users,
)
from gridsim.words import between, duration, listed, number

__all__ = ["caveats"]


def caveats(comparison: Evidence) -> list[str]:
    """Cuts, kills, rejections, and what was left out of the log or changed in it."""
    return [
        *machines.caveats(comparison.info),
        *admission.caveats(comparison),
        *notices.caveats(comparison.info),
        *demands.caveats(comparison),
        *users.caveats(comparison),
        *flurries_text.caveats(comparison),
        *replicas_text.caveats(comparison),
        *_cuts(comparison),
        *_statuses(comparison),
        *refusals.caveats(comparison),
        *preemption.as_logged(_logged_runs(comparison), comparison.metrics),
        *preemption.caveats(comparison.metrics),
        *predictions.caveats(comparison.records, comparison.metrics),
        *_problems(comparison.info.get("workload", {})),
    ]


def _logged_runs(comparison: Evidence) -> LoggedRuns | None:
    return logged_runs(comparison.records[comparison.baseline].workload, comparison.kept)


def _cuts(comparison: Evidence) -> list[str]:
    if not (comparison.warmup or comparison.cooldown):
        return []
    cut = comparison.metrics[comparison.baseline]["jobs_cut"]
    parts = [
        f"the {name} {duration(value)}"
        for name, value in (("first", comparison.warmup), ("last", comparison.cooldown))
        if value
    ]
    return [f"Not counted: {number(cut)} jobs submitted in {listed(parts)} of the log{_counted_from(comparison)}."]


def _counted_from(comparison: Evidence) -> str:
    """Of which dates the jobs are that count, where the log has dates."""
    submit, kept = comparison.records[comparison.baseline].workload_given.submit, comparison.kept
    calendar = calendar_of(comparison.info.get("workload", {}))
    if calendar is None or not kept.any():
        return ""
    first, last = (float(seconds(int(end))) for end in (submit[kept].min(), submit[kept].max()))
    return f"; counted are those of {between(first, last, calendar)}"


def _statuses(comparison: Evidence) -> list[str]:
    told = []
    for name, text in (
        ("killed_walltime", "killed at the walltime {they} had asked for"),
        ("rejected", "rejected: the machine can never run {them}"),
        ("unadmitted", "turned away by admission"),
    ):
        counts = {label: numbers[name] for label, numbers in comparison.metrics.items()}
        if len(set(counts.values())) == 1:
            count = next(iter(counts.values()))
            if count:
                each = " under every policy" if len(counts) > 1 else ""
                one = {"they": "it", "them": "it"} if count == 1 else _MANY
                told.append(f"{_jobs(count)} {text.format(**one)}{each}.")
        else:
            parts = listed([f"{number(count)} under {label}" for label, count in counts.items()])
            told.append(f"Jobs {text.format(**_MANY)}: {parts}.")
    return told


_MANY = {"they": "they", "them": "them"}


def _jobs(count: float) -> str:
    return f"{number(count)} job was" if count == 1 else f"{number(count)} jobs were"


def _problems(provenance: Mapping[str, Any]) -> list[str]:
    """Left out and changed lines of the log, each kind with its count."""
    parts = []
    for rule, text in (("skip", "left out"), ("repair", "repaired")):
        found = [entry for entry in provenance.get("problems", ()) if entry["rule"] == rule and entry["count"]]
        if found:
            total = sum(entry["count"] for entry in found)
            names = [str(entry["kind"]).replace("-", " ") for entry in found]
            if len(found) > 1:
                names = [f"{name}: {number(entry['count'])}" for name, entry in zip(names, found, strict=True)]
            parts.append(f"{number(total)} {'was' if total == 1 else 'were'} {text} ({', '.join(names)})")
    read = provenance.get("jobs_read")
    lines = f"{number(read)} jobs" if isinstance(read, int) else "lines"
    return [f"Of the log's {lines}, {listed(parts)}."] if parts else []
