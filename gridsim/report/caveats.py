"""Notes on the numbers of a comparison: machines, cuts, statuses, predictions, and excluded lines of the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gridsim.metrics.preemption import LoggedRuns, logged_runs
from gridsim.model.capacity import GPU, NodeGroup
from gridsim.model.dates import calendar_of
from gridsim.model.time import NEVER, seconds
from gridsim.number_formatting import between, counted, duration, listed, number, percent
from gridsim.questions.evidence import Evidence
from gridsim.record import Record
from gridsim.report import admission, flurries_text, notices, rejections, replications_text, users
from gridsim.report.markup import texts
from gridsim.report.whatif_text import node_text

_text = texts("caveats")


def caveats(comparison: Evidence) -> list[str]:
    """Return notes on cuts, kills, rejections, and excluded or changed parts of the log."""
    return [
        *_machines(comparison.info),
        *admission.caveats(comparison),
        *notices.caveats(comparison.info),
        *notices.demands_left_aside(comparison),
        *users.caveats(comparison),
        *flurries_text.caveats(comparison),
        *replications_text.caveats(comparison),
        *_cuts(comparison),
        *_statuses(comparison),
        *rejections.caveats(comparison),
        *rejections.preempted_in_log(_logged_runs(comparison), comparison.metrics),
        *rejections.preempted(comparison.metrics),
        *_predictions(comparison.records, comparison.metrics),
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
    return [f"Excluded: {number(cut)} jobs submitted in {listed(parts)} of the log{_counted_from(comparison)}."]


def _counted_from(comparison: Evidence) -> str:
    """Return the period of the counted jobs as dates, if the log has any."""
    submit, kept = comparison.records[comparison.baseline].workload_given.submit, comparison.kept
    calendar = calendar_of(comparison.info.get("workload", {}))
    if calendar is None or not kept.any():
        return ""
    first, last = (float(seconds(int(end))) for end in (submit[kept].min(), submit[kept].max()))
    return f"; the other jobs were submitted from {between(first, last, calendar)}"


def _statuses(comparison: Evidence) -> list[str]:
    found = []
    for name, text in (
        ("killed_walltime", "killed at {their} requested walltime"),
        ("rejected", "rejected because the machine can never run {them}"),
        ("unadmitted", "rejected by admission"),
    ):
        counts = {label: numbers[name] for label, numbers in comparison.metrics.items()}
        if len(set(counts.values())) == 1:
            count = next(iter(counts.values()))
            if count:
                each = "Under every policy, " if len(counts) > 1 else ""
                one = {"their": "its", "them": "it"} if count == 1 else _MANY
                found.append(f"{each}{_jobs(count)} {text.format(**one)}.")
        else:
            parts = listed([f"{number(count)} under {label}" for label, count in counts.items()])
            found.append(f"Jobs {text.format(**_MANY)}: {parts}.")
    return found


_MANY = {"their": "their", "them": "them"}


def _jobs(count: float) -> str:
    return f"{number(count)} job was" if count == 1 else f"{number(count)} jobs were"


def _problems(provenance: Mapping[str, Any]) -> list[str]:
    """Return the excluded and changed lines of the log, each kind with its count."""
    parts = []
    for rule, text in (("skip", "skipped"), ("repair", "repaired")):
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


def _machines(info: Mapping[str, Any]) -> list[str]:
    """Return notes on different machines of the policies, and their differences from the first site's machine.

    Examples
    --------
    >>> node = {"capacity": {"cores": 4}, "gpus": 0, "gpu_kind": None, "features": [], "partitions": ["batch"]}
    >>> bigger = {"cores": 40, "nodes": [{"more": 2, "node": node}], "pools": {}}
    >>> for line in _machines({"machines": {"now": {"cores": 32, "nodes": [], "pools": {}}, "bigger": bigger}}):
    ...     print(line)
    The policies run on different machines: now on 32 cores and bigger on 40 cores; utilisation is per machine.
    Compared with now, the machine of bigger has 2 more nodes of 4 cores, in partition batch.
    """
    machines = info.get("machines", {})
    if not machines:
        return []
    sizes = listed([f"{label} on {counted(each['cores'], 'core')}" for label, each in machines.items()])
    lines = [f"The policies run on different machines: {sizes}; utilisation is per machine."]
    base = next(iter(machines))
    for label, each in machines.items():
        nodes = [(it["more"], node_text(_node(it["node"]))) for it in each["nodes"]]
        words = [f"{counted(abs(n), 'more node' if n > 0 else 'fewer node')} of {text}" for n, text in nodes]
        pools = [f"{number(abs(n))} {'more' if n > 0 else 'fewer'} {name}" for name, n in each["pools"].items()]
        if words or pools:
            lines.append(f"Compared with {base}, the machine of {label} has {'; '.join([*words, *pools])}.")
    return lines


def _node(it: Mapping[str, Any]) -> NodeGroup:
    return NodeGroup(
        group="",
        capacity=it["capacity"],
        gpus=it["gpus"],
        gpu_kind=it["gpu_kind"] or GPU,
        features=tuple(it["features"]),
        partitions=tuple(it["partitions"]),
    )


def _predictions(records: Mapping[str, Record], metrics: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Return notes on the prediction accuracy of each policy compared with the requests, and on broken guarantees.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from gridsim.metrics.prediction import prediction_metrics
    >>> from gridsim.record import Predictions
    >>> record = Record.from_rows([dict(submit=0, start=0, end=30, cores=1, estimate=100)])
    >>> record = replace(record, predictions=Predictions(np.array([20_000_000]), np.array([1])))
    >>> predicted, cost = _predictions({"easy++": record}, {"easy++": prediction_metrics(record)})
    >>> predicted.partition(": ")[0]
    'Under easy++, run times were predicted with an accuracy of 0.67 (requested times 0.30; 1 is perfect)'
    >>> cost.rpartition(" (")[2]
    '33 % of all core-hours).'
    """
    knowing = [label for label, record in records.items() if record.predictions and record.predictions.oracle]
    if knowing:
        yield f"Under {listed(knowing)}, plans use true run times, which no real scheduler knows."
    for label, record in records.items():
        numbers = metrics[label]
        if record.predictions is None or record.predictions.oracle or "prediction_accuracy" not in numbers:
            continue
        requests = f"requested times {numbers['request_accuracy']:.2f}; 1 is perfect"
        accuracy = f"{numbers['prediction_accuracy']:.2f} ({requests})"
        under = f"{percent(numbers['prediction_under'])} of the jobs ran longer than first predicted"
        corrected = f"predictions were corrected {numbers['corrections']:.2f} times per job"
        yield f"Under {label}, run times were predicted with an accuracy of {accuracy}: {under}, and {corrected}."
        hours, share = _beyond(record)
        shown = number(hours) if hours >= 100 else f"{hours:.3g}"
        if share:
            yield _text("overruns", label=label, shown=shown, share=share)
        if numbers.get("starts_late", 0.0) > 0:
            late = f"{percent(numbers['starts_late'])} of the jobs started after their first planned start"
            by = f"{duration(numbers['start_late_mean'])} on average, at most {duration(numbers['start_late_max'])}"
            yield f"Under {label}, {late}: {by}."


def _beyond(record: Record) -> tuple[float, float]:
    """Return the core-hours of jobs beyond their first predictions, and their share of all core-hours."""
    assert record.predictions is not None
    ran = record.end_us < NEVER
    held, cores = (record.end_us - record.start_us)[ran], record.given[ran]
    beyond = np.maximum(0, held - record.predictions.prediction_us[ran])
    total, over = (float((seconds(each) * cores).sum()) / 3600 for each in (held, beyond))
    return over, over / total if total else 0.0
