"""Text of the audit of a trace: counts, anomalies, and whether the trace fits its machine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from gridsim.number_formatting import counted, duration, listed, number, percent
from gridsim.report.markup import text_table, texts
from gridsim.workload.audit import Audit, Demand, Infeasible, Usage

_text = texts("audit")

COLUMNS = text_table("audit", "columns")["cells"]
"""Headings of the table of demands: as recorded, and without waiting."""

_IDLE = 0.1
"""Share of the capacity below which a peak shows that the machine was not busy."""

_UNITS = {"memory": "MiB"}
_WORDS = {"gpus": "GPUs", "memory": "MiB of memory"}


def facts(audit: Audit) -> Iterator[tuple[str, str]]:
    """Return the counts with their names."""
    tally = audit.tally
    left = [f"{number(count)} {reason}" for reason, count in tally.left_out.items() if count]
    yield "rows", f"{number(tally.read)} read, {number(tally.kept)} kept, excluded: {listed(left) if left else 'none'}"
    if tally.damaged:
        yield "damaged rows", "; ".join(tally.damaged)
    yield (
        "order",
        "submitted, started, ended" if not audit.early else f"{number(audit.early)} start before their submit time",
    )
    if tally.runtimes_logged:
        odd = f"{number(tally.not_span)} of {number(tally.runtimes_logged)}"
        yield "run times", f"{odd} differ by more than 1 s from end minus start"
    if audit.zero:
        yield "zero run time", counted(audit.zero, "row")
    share = percent(audit.over / audit.limits) if audit.limits else ""
    yield "limits", f"{share} of {number(audit.limits)} ran more than 1 % beyond their limit" if share else "none"
    yield from _names(audit)
    for view, what in (("ran", "recorded schedule"), ("unwaited", "schedule without waiting")):
        if view in audit.span:
            first, last = audit.span[view]
            yield (
                what,
                f"{duration(last - first)} from the first {'start' if view == 'ran' else 'submission'} to the last end",
            )
    if not math.isnan(audit.median):
        yield "median run time", duration(audit.median)


def _names(audit: Audit) -> Iterator[tuple[str, str]]:
    least = "at least " if audit.partly else ""
    for name, found in (("job names", audit.ids), ("exclusive nodes", audit.nodes)):
        if found is None:
            continue
        text = "no duplicates" if name == "job names" else "no overlaps"
        if found["overlaps"] or (found["names"] and name == "job names"):
            text = f"{least}{number(found['names'])} occur several times, in {number(found['rows'])} rows"
            text += f"; {number(found['overlaps'])} begin before an earlier one has ended"
        yield name, text


def rows(audit: Audit) -> Iterator[tuple[str, ...]]:
    """Return the cells under `COLUMNS`: shares of the capacity, or amounts if it is unknown."""
    for demand in audit.demands:
        known = not math.isnan(demand.capacity)
        name = f"{demand.resource} ({demand.kind})" if demand.kind else demand.resource
        yield (
            f"{name}, {_UNITS[demand.resource]}" if demand.resource in _UNITS else name,
            number(demand.capacity) if known else "unknown",
            _part(demand.requested, demand.capacity),
            *_cells(demand.ran, demand.capacity),
            *_cells(demand.unwaited, demand.capacity),
        )


def _cells(usage: Usage | None, capacity: float) -> tuple[str, str, str]:
    if usage is None:
        return "-", "-", "-"
    above = "-" if math.isnan(usage.above) else percent(usage.above)
    return _part(usage.mean, capacity), _part(usage.peak, capacity), above


def _part(amount: float, capacity: float) -> str:
    return f"{amount:,.4g}" if math.isnan(capacity) else percent(amount / capacity)


def verdict(audit: Audit) -> Iterator[str]:
    """Return the conclusions as sentences; the first is about the machine."""
    yield from _fit(audit)
    yield from (_impossible(it) for it in audit.infeasible)
    if not audit.exact:
        yield "The trace is too large for exact values: peaks and times above are of means over 2,048 equal intervals."
    if not audit.rows_conserved:
        left = number(sum(audit.tally.left_out.values()))
        kept = number(audit.tally.kept)
        yield f"Rows are missing: {number(audit.tally.read)} were read, {kept} kept and {left} excluded."
    for demand in audit.demands:
        if not demand.conserved:
            yield f"Amounts of {_noun(demand)} are missing: the area under the steps differs from that of the rows."
    if audit.conserved:
        yield "Nothing is missing: each row is kept or excluded for a reason, and amounts times run times add up."


def _noun(demand: Demand) -> str:
    return f"GPUs of type {demand.kind}" if demand.kind else _WORDS.get(demand.resource, demand.resource)


def _fit(audit: Audit) -> Iterator[str]:
    known = [it for it in audit.demands if not math.isnan(it.capacity)]
    if not known:
        yield "The capacity of the machine is unknown; give --platform, --machine, or [capacity] in the mapping."
        return
    grows = [it for it in known if it.unwaited is not None and it.unwaited.mean > it.capacity]
    if grows:
        needs = [f"{percent((it.unwaited.mean if it.unwaited else 0) / it.capacity)} of {_noun(it)}" for it in grows]
        yield _text("does_not_fit", needs=needs)
    ran = [(it, it.ran) for it in known if it.ran is not None]
    idle = bool(ran) and all(use.peak <= _IDLE * it.capacity for it, use in ran)
    if not grows and not idle:
        yield "The trace fits the machine: without waiting, it would need at most the capacity on average."
    if not ran:
        yield "The trace has no start times, so the recorded schedule is unknown."
    elif idle:
        together = max(ran, key=lambda pair: pair[0].requested / pair[0].capacity)[0]
        peak = max(use.peak / it.capacity for it, use in ran)
        yield _text("idle_machine", peak=peak, peaks=_peaks(audit))
        if together.requested > 0.5 * together.capacity:
            share = percent(together.requested / together.capacity)
            yield _text("packing_problem", share=share, together=_noun(together), life=_life(audit))
    over = [(it, use) for it, use in ran if use.above > 0]
    if over:
        parts = [f"{_noun(it)} {percent(use.above)} of the time" for it, use in over]
        yield f"The recorded schedule exceeds the capacity ({listed(parts)}): capacity, amounts or times are wrong."


def _peaks(audit: Audit) -> str:
    return listed(
        [
            f"{_amount(it.ran.peak)} of {number(it.capacity)} {_noun(it)}"
            for it in audit.demands
            if it.ran is not None and not math.isnan(it.capacity)
        ]
    )


def _amount(amount: float) -> str:
    return number(amount) if amount >= 100 else f"{amount:.3g}"


def _life(audit: Audit) -> str:
    if math.isnan(audit.median):
        return ""
    first, last = audit.span["ran"]
    return f" (the median job ran {duration(audit.median)} of {duration(last - first)})"


def _impossible(it: Infeasible) -> str:
    job = "one-node job" if it.of == "node" else "job"
    jobs = f"{counted(it.jobs, job)} {'requests' if it.jobs == 1 else 'request'}"
    if it.resource == "gpu_kind":
        return f"{jobs} more GPUs of a type than the machine has, or a type that it does not have."
    where = "the machine" if it.of == "machine" else "the largest node"
    resource = _WORDS.get(it.resource, it.resource)
    return f"{jobs} more {resource} than {where} has: up to {it.most:,.6g} of {it.capacity:,.6g}."


def findings(audit: Audit) -> list[str]:
    """Return the names of anomalies, for strict checks."""
    tally = audit.tally
    above = [it for it in audit.demands if it.unwaited is not None and it.unwaited.mean > it.capacity]
    beyond = [it for it in audit.demands if it.ran is not None and it.ran.above > 0]
    twice = [it for it in (audit.ids, audit.nodes) if it is not None and it["overlaps"]]
    found = {
        "rows-left-out": sum(tally.left_out.values()),
        "start-before-submit": audit.early,
        "runtime-not-span": tally.not_span,
        "over-limit": audit.over,
        "repeated-names": audit.ids["names"] if audit.ids else 0,
        "overlaps": len(twice),
        "infeasible": len(audit.infeasible),
        "does-not-fit": len(above),
        "above-capacity": len(beyond),
        "not-conserved": not audit.conserved,
    }
    return [name for name, count in found.items() if count]


def as_json(audit: Audit) -> dict[str, Any]:
    """Return the audit with JSON types."""
    tally = audit.tally

    def usage(it: Usage | None) -> dict[str, Any] | None:
        return None if it is None else {name: getattr(it, name) for name in ("mean", "peak", "above", "area", "exact")}

    return {
        "file": audit.name,
        "rows": {"read": tally.read, "kept": tally.kept, "left_out": {k: n for k, n in tally.left_out.items() if n}},
        "damaged": tally.damaged,
        "start_before_submit": audit.early,
        "runtimes": {"logged": tally.runtimes_logged, "not_span": tally.not_span, "zero": audit.zero},
        "limits": {"given": audit.limits, "over": audit.over},
        "job_names": audit.ids,
        "nodes_held_alone": audit.nodes,
        "names_partly": audit.partly,
        "infeasible": [it._asdict() for it in audit.infeasible],
        "span": {view: list(times) for view, times in audit.span.items()},
        "median_runtime": audit.median,
        "demands": [
            {
                "resource": it.resource,
                "kind": it.kind,
                "capacity": it.capacity,
                "requested": it.requested,
                "ran": usage(it.ran),
                "unwaited": usage(it.unwaited),
                "conserved": it.conserved,
            }
            for it in audit.demands
        ],
        "conserved": audit.conserved,
        "findings": findings(audit),
        "verdict": [*verdict(audit)],
    }
