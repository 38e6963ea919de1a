"""Text of what-if results: sentences, tables for a terminal and a page, rows of CSV files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.metrics.compare import Difference
from gridsim.model.capacity import GPU, NodeChange, NodeGroup
from gridsim.model.site.parameters import CPU, GPUS, JOBS, LICENCE, MEMORY, NODE, gpu_type
from gridsim.number_formatting import counted, duration, listed, number
from gridsim.questions.changes import NOW, Effect, LimitEffect, PartEffect, WhatIf
from gridsim.questions.replications import Replicated
from gridsim.report import change, flurries_text, rejections, replications_text, tables, users
from gridsim.report.admission import job_counts
from gridsim.report.differences import intervals_are_of, shortage
from gridsim.report.markup import text_table, texts
from gridsim.report.replications_text import AGAIN, TITLES, VERDICTS
from gridsim.report.tables import shown
from gridsim.report.text_table import WIDTH, broken, either, sheet
from gridsim.report.validation import trust_in

if TYPE_CHECKING:
    from rich.console import RenderableType


_text = texts("whatif")


PARTS_FILE = "whatif_parts.csv"
"""Name of the file with the waits of parts of the jobs."""

PARTS_CAPTION = "Mean wait by partition and requested resource"

_MOST_PARTS = 3
"""Largest number of parts named in sentences on a change."""

_MEBIBYTES = 1024


def node_text(node: NodeGroup) -> str:
    """Return the resources, features and partitions of a node as text.

    Examples
    --------
    >>> node_text(NodeGroup(group="", capacity={"cores": 64}, gpus=4, gpu_kind="a100", partitions=("gpu", "all")))
    '64 cores and 4 GPUs (a100), in partitions gpu and all'
    """
    memory = node.capacity.get("memory", 0)
    others = {name: amount for name, amount in node.capacity.items() if name not in ("cores", "memory")}
    parts = [counted(node.capacity.get("cores", 0), "core")]
    if node.gpus:
        parts.append(counted(node.gpus, "GPU") + (f" ({node.gpu_kind})" if node.gpu_kind != GPU else ""))
    parts += [f"{number(memory / _MEBIBYTES)} GiB of memory"] if memory else []
    parts += [f"{number(amount)} {name}" for name, amount in others.items() if amount]
    features = [f"feature{'' if len(node.features) == 1 else 's'} {listed(node.features)}"] if node.features else []
    several = "" if len(node.partitions) == 1 else "s"
    within = [f"in partition{several} {listed(node.partitions)}"] if node.partitions else []
    return ", ".join([listed(parts), *features, *within])


def nodes_text(nodes: Sequence[NodeChange]) -> str:
    """Return text on added and removed nodes, such as "Added: 2 nodes of 8 cores and 1 GPU, in partition gpu".

    Else empty.
    """
    lines = []
    for word, sign in (("Added", 1), ("Removed", -1)):
        those = [f"{counted(abs(it.more), 'node')} of {node_text(it.node)}" for it in nodes if it.more * sign > 0]
        lines += [f"{word}: {'; '.join(those)}."] if those else []
    return " ".join(lines)


def _part_sentences(one: Effect, by: Callable[[Difference], str]) -> Iterator[str]:
    """Return text on added nodes, waits of the affected jobs, and binding limits; *by* formats a difference."""
    if one.nodes:
        yield nodes_text(one.nodes)
    for each in _named_parts(one):
        before, after = duration(each.wait.baseline_mean), duration(each.wait.policy_mean)
        name = str(each.part)[0].upper() + str(each.part)[1:]
        yield f"{name} ({number(each.wait.jobs)}) wait {before} now and {after} with the change: {by(each.wait)}."
    yield from map(_binding_limit, one.limits)


def _named_parts(one: Effect) -> list[PartEffect]:
    """Return the parts that a change is made for, and those that wait longer because of it; each set of jobs once.

    Requested resources come before partitions.
    """
    if one.wait is None or not any(it.concerned for it in one.parts):
        return []
    parts = [it for it in one.parts if it.wait.jobs < one.wait.jobs and (it.concerned or it.wait.verdict == "worse")]
    found: list[PartEffect] = []
    for each in sorted(parts, key=lambda it: (not it.concerned, it.part.kind == "partition")):
        if len(found) < _MOST_PARTS and not any(np.array_equal(each.part.rows, other.part.rows) for other in found):
            found.append(each)
    return found


def _binding_limit(effect: LimitEffect) -> str:
    it = effect.limit
    jobs, held = int(np.count_nonzero(it.held)), float(it.held.sum())
    what = _units(it.resource, 2)
    of = f" of {number(it.available)}" if it.available is not None else ""
    each = f" for each {it.each}" if it.each else ""
    limit = f"{it.owner[0].upper()}{it.owner[1:]} is limited to {number(it.most)}{of} {what}{each} ({it.rule})"
    waiting = f"{counted(jobs, 'job')} wait{'s' if jobs == 1 else ''} {duration(held)} in total because of this limit"
    if effect.idle:
        idle = f"{number(effect.idle)} {_units(it.resource, effect.idle)}"
        return f"{limit}, so {idle} {'is' if effect.idle == 1 else 'are'} always idle; {waiting}."
    return f"{limit}: {waiting}; a larger machine does not change this."


def _units(resource: str, count: int) -> str:
    """Return the name of units of a resource.

    Examples
    --------
    >>> _units("gres/gpu:a100", 1), _units("cpu", 2), _units("license/matlab", 3)
    ('GPU (a100)', 'cores', 'matlab licences')
    """
    many = "" if count == 1 else "s"
    if resource.startswith(LICENCE):
        return f"{resource.removeprefix(LICENCE)} licence{many}"
    if resource.startswith(GPUS):
        return f"GPU{many}" + (f" ({gpu_type(resource)})" if gpu_type(resource) else "")
    named = {CPU: f"core{many}", NODE: f"node{many}", MEMORY: "MiB of memory", JOBS: f"job{many}"}
    return named.get(resource, resource.partition("/")[2] or resource)


def _part_names(found: WhatIf) -> list[str]:
    """Return the names of the parts, as in the changes."""
    return list(dict.fromkeys(it.part.name for one in found.outcomes for it in one.parts))


def part_rows(found: WhatIf) -> tuple[list[str], dict[str, list[str]]]:
    """Return names of parts, and their mean waits now and under each change, by label; empty if there are no parts."""
    names = _part_names(found)
    columns: dict[str, list[str]] = {}
    for one in found.outcomes[1:]:
        waits = {it.part.name: it.wait for it in one.parts}
        columns.setdefault(found.outcomes[0].label, [_part_mean(waits, name, now=True) for name in names])
        columns[one.label] = [_part_mean(waits, name) for name in names]
    return names, columns if names else {}


def _part_mean(waits: dict[str, Difference], name: str, *, now: bool = False) -> str:
    if name not in waits:
        return "-"
    return duration(waits[name].baseline_mean if now else waits[name].policy_mean)


def part_table(found: WhatIf, *, width: int = WIDTH) -> RenderableType | None:
    """Return the table of parts for a terminal; None if there are no parts."""
    names, columns = part_rows(found)
    return either(names, columns, width=width, caption=f"{PARTS_CAPTION}.") if columns else None


def part_file_rows(found: Sequence[WhatIf]) -> Iterator[list[Any]]:
    """Return header and rows of `PARTS_FILE`: one row for each policy, change and part."""
    compared = ("wait_now", "wait", "ratio", "ratio_low", "ratio_high", "p_holm", "verdict")
    yield ["policy", "change", "kind", "part", "jobs", *compared]
    for each in found:
        for one in each.outcomes:
            for it in one.parts:
                wait = it.wait
                numbers = [wait.baseline_mean, wait.policy_mean, wait.ratio, wait.ratio_low, wait.ratio_high]
                values = [*numbers, wait.p_holm, wait.verdict]
                yield [each.policy, one.label, it.part.kind, it.part.value, wait.jobs, *values]


def _parts_as_dict(one: Effect) -> dict[str, Any]:
    """Return nodes, parts and limits of a change with JSON types."""
    return {
        "nodes": [each.to_dict() for each in one.nodes],
        "parts": [
            {"kind": it.part.kind, "part": it.part.value, "concerned": it.concerned, "wait": asdict(it.wait)}
            for it in one.parts
        ],
        "limits": [
            {
                **{
                    name: getattr(it.limit, name) for name in ("owner", "rule", "resource", "most", "available", "each")
                },
                "jobs": int(np.count_nonzero(it.limit.held)),
                "seconds": float(it.limit.held.sum()),
                "idle": it.idle,
            }
            for it in one.limits
        ],
    }


_COMPARED = ("wait_mean", "bounded_slowdown_mean")


def _replica_answers(found: WhatIf) -> Iterator[str]:
    """Return in how many replicas each change has the same effect as in the log, one sentence per compared mean."""
    for replicas in found.replicated:
        for place, metric in enumerate(_COMPARED):
            pairs = [replicas.pair(metric, label, NOW) for label in replicas.numbers if label != NOW]
            parts = [
                f"{listed([f'with {it.policy} in {it.lower} of {it.replicas}' for it in those])} ({meaning})"
                for verdict, meaning in VERDICTS[replicas.role].items()
                if (those := [it for it in pairs if it.replicas and it.verdict == verdict and it.sd])
            ]
            if parts:
                begin = f"{replications_text.lead(replicas)}, the" if not place else f"{AGAIN[replicas.role]}the"
                yield f"{begin} mean {TITLES[metric]} is lower than now {listed(parts)}."


def _replica_caveats(found: WhatIf) -> Iterator[str]:
    """Return notes on few resampled users, and on bursts of jobs or their effect."""
    for replicas in found.replicated:
        yield from replications_text.few(replicas.info)
    if found.now is not None:
        yield from flurries_text.in_log(found.now.workload_given, asked=found.cleaned is not None)


def replica_lines(found: Replicated) -> list[replications_text.Line]:
    """Return the rows of the table: each compared mean, in the unchanged case and under each change."""
    return replications_text.lines(found, _COMPARED, found.numbers)


def replica_files(found: WhatIf) -> Iterator[tuple[str, Sequence[str], Sequence[Sequence[Any]]]]:
    """Return name, columns and rows of each file, as `replications_text.files`, by change instead of policy."""
    for replicas in found.replicated:
        for name, columns, rows in replications_text.tables(replicas, _COMPARED):
            yield name, [{"policy": "change", "other": "against"}.get(it, it) for it in columns], rows


def _replicas_as_dict(found: WhatIf) -> list[dict[str, Any]]:
    """Return all data of replicas with JSON types."""
    return [
        {
            **replicas.info,
            "spreads": [_renamed(it._asdict()) for it in replicas.spreads()],
            "pairs": [_renamed(it._asdict()) for metric in _COMPARED for it in replicas.pairs(metric)],
        }
        for replicas in found.replicated
    ]


def _renamed(row: dict[str, Any]) -> dict[str, Any]:
    return {{"policy": "change", "other": "against"}.get(name, name): value for name, value in row.items()}


FILE = "whatif.csv"
"""Name of the data file."""

FILES = frozenset((FILE, PARTS_FILE, "whatif.json", "whatif.html", *replications_text.FILES))
"""Names of all files that `gridsim whatif` may write."""

SHOWN = text_table("whatif", "shown")
"""Metrics of the table with their titles."""

NOTE = _text("note")
"""Explanation of the table."""

_REAL = text_table("whatif", "significance")


_WAITS = change.Wording("less", "longer", "as long")


class Line(NamedTuple):
    """Row of the table on a page; ``verdict`` is empty for the unchanged case."""

    change: str
    cells: tuple[str, ...]
    against: str
    interval: str
    real: str
    verdict: str


def lines(found: WhatIf) -> list[Line]:
    """Return the rows of one policy, the unchanged case first."""
    return [_line(one) for one in found.outcomes]


def _line(one: Effect) -> Line:
    cells = tuple(shown(name, one.numbers[name]) for name in SHOWN)
    wait = one.wait
    if wait is None:
        return Line(one.label, cells, "-", "-", "-", "")
    if wait.same == 1:
        return Line(one.label, cells, "the same", "-", "no change", "")
    if math.isnan(wait.ratio):
        return Line(one.label, cells, _signed(wait.mean), "", _REAL[wait.verdict], wait.verdict)
    interval = change.signed_span(wait.ratio_low, wait.ratio_high)
    return Line(one.label, cells, change.signed(wait.ratio), interval, _REAL[wait.verdict], wait.verdict)


def _less(wait: Difference) -> str:
    """Return how much less or longer jobs wait than now."""
    return change.text(wait.mean, _WAITS, duration) if math.isnan(wait.ratio) else change.text(wait.ratio - 1, _WAITS)


def _against_now(wait: Difference) -> str:
    """Return a change with its base: "32 % less than now", "14 times as long as now"."""
    less = _less(wait)
    return f"{less} {'as' if less.endswith(_WAITS.many) else 'than'} now"


def _span(wait: Difference) -> str:
    if math.isnan(wait.ratio):
        return change.span(wait.low, wait.high, _WAITS, duration)
    return change.span(wait.ratio_low - 1, wait.ratio_high - 1, _WAITS)


def _signed(seconds: float) -> str:
    return f"+{duration(seconds)}" if seconds > 0 else duration(seconds)


def table(found: Sequence[WhatIf], *, width: int = WIDTH) -> RenderableType:
    """Return the table for a terminal; policies are below each other, with their names if there are several."""
    from rich.console import Group  # only if a table is printed

    blocks: list[RenderableType] = []
    for each in found:
        if len(found) > 1:
            blocks.append("\n".join(broken(f"under {each.policy}:", width)))
        rows = [(one.label, [shown(name, one.numbers[name]) for name in SHOWN]) for one in each.outcomes]
        columns = {title: [cells[place] for _, cells in rows] for place, title in enumerate(SHOWN.values())}
        blocks.append(sheet([label for label, _ in rows], columns, width=width))
    return Group(*blocks)


def lead(found: Sequence[WhatIf]) -> list[str]:
    """Return the main results of a table of several policies (the best one last)."""
    best = found[-1]
    lines = [*_most(best)]
    if len(found) > 1:
        lines += _instead(found[0], best)
    for each in found:
        lines += [f"Under {each.policy}, {label} cannot be simulated: {why}." for label, why in each.refused]
    return [*lines, *_rounded(found), *_caution(found)]


def _most(best: WhatIf) -> Iterator[str]:
    """Return the change that shortens waits most under the best policy, if it is significant and no jobs lose."""
    now = best[NOW].numbers["wait_mean"]
    clear = [
        one
        for one in best.outcomes
        if one.wait is not None and one.wait.verdict == "better" and _fewer(one, best[NOW]) <= 0
    ]
    if not clear:
        yield f"Under {best.policy}, none of these changes significantly shortens the mean wait of {duration(now)}."
        return
    most = min(clear, key=lambda one: one.numbers["wait_mean"])
    assert most.wait is not None
    before, after = most.wait.baseline_mean, most.wait.policy_mean  # of the same jobs
    by = f"{_against_now(most.wait)}; 95 % interval {_span(most.wait)}"
    yield _text("best_change", most=most, best=best, before=before, after=after, by=by)


def _instead(baseline: WhatIf, best: WhatIf) -> Iterator[str]:
    """Return whether another policy has the same effect as the largest machine of the table."""
    sizes = [one for one in baseline.outcomes if one.cores > baseline[NOW].cores]
    wait = best[NOW].numbers["wait_mean"]
    if baseline[NOW].cores != best[NOW].cores or not sizes or not wait < baseline[NOW].numbers["wait_mean"]:
        return
    largest = max(sizes, key=lambda one: one.cores)
    if not _of_same_jobs([baseline.ran[NOW], best.ran[NOW], baseline.ran[largest.label]]):
        return
    bought = largest.numbers["wait_mean"]
    than = "more" if wait < bought else "less"
    yield _text("other_policy", baseline=baseline, best=best, than=than, largest=largest, wait=wait, bought=bought)


def _rounded(found: Sequence[WhatIf]) -> Iterator[str]:
    """Return text on sizes that were rounded to whole nodes."""
    rounded = list(dict.fromkeys(one for each in found for one in each.rounded))
    if rounded:
        yield f"Sizes are rounded to whole nodes: {listed(rounded)}."


def _of_same_jobs(ran: Iterable[npt.NDArray[np.bool_]]) -> bool:
    """Return whether the same jobs ran in all of these runs, so that their mean waits are comparable."""
    return len({mask.tobytes() for mask in ran}) <= 1


def _not_taken(one: Effect) -> float:
    """Return text on jobs that were rejected, or too large for the machine."""
    return one.numbers["unadmitted"] + one.numbers["rejected"]


def _fewer(one: Effect, now: Effect) -> int:
    """Return how many fewer jobs run than now."""
    return round(_not_taken(one) - _not_taken(now))


def _caution(found: Sequence[WhatIf]) -> Iterator[str]:
    if any(not _of_same_jobs(each.ran.values()) for each in found):
        yield _text("different_jobs")
    if any(each.reacting for each in found):
        yield users.REACTING_TO_CHANGES
        return
    higher = dict.fromkeys(
        one.label
        for each in found
        for one in each.outcomes
        if (one.label.startswith("load") or one.cores < each[NOW].cores) and one.wait is not None and one.wait.mean > 0
    )
    if higher:
        yield _text("other_load", higher=list(higher))


def csv_text(found: Sequence[WhatIf]) -> str:
    """Return CSV text, one row per policy and change: metrics of the run, and difference of its mean wait from now."""
    compared = ("wait_difference", "ratio", "ratio_low", "ratio_high", "p_holm", "verdict")
    rows: list[list[Any]] = []
    for each in found:
        for one in each.outcomes:
            wait = one.wait
            numbers = [one.numbers[name] for name in SHOWN]
            of_wait: list[Any] = [""] * len(compared)
            if wait is not None:
                of_wait = [wait.mean, *(getattr(wait, name) for name in compared[1:])]
            rows.append([each.policy, one.label, one.cores, *numbers, *of_wait])
    return tables.csv_text(["policy", "change", "cores", *SHOWN, *compared], *rows)


def sentences(found: WhatIf) -> list[str]:
    """Return the results as sentences: the change of the mean wait with its significance."""
    known = None if found.replay is None else trust_in(found.replay)
    before, behind = ((), ()) if known is None else (known.warnings, known.rest)
    lines = [*_each(found), *_saturated(found), *_periods(found), *_replica_answers(found), *_without_flurries(found)]
    return [
        *before,
        *lines,
        *_jobs(found),
        *_rounded([found]),
        *_replica_caveats(found),
        *_caution([found]),
        *behind,
    ]


def _without_flurries(found: WhatIf) -> Iterator[str]:
    """Return the results without bursts of jobs by one user, if requested."""
    other = found.cleaned
    if other is None or found.now is None or other.now is None:
        return
    means = [
        f"{duration(one.numbers['wait_mean'])} {'' if one.label == NOW else 'with '}{one.label} "
        f"({duration(found[one.label].numbers['wait_mean'])} with it)"
        for one in other.outcomes
    ]
    text = f"the mean wait is {listed(means)}"
    yield from flurries_text.without(found.now.workload_given, len(other.now), text, _each(found), _each(other))


def _each(found: WhatIf) -> list[str]:
    """Return the waits now and with each change."""
    now = found[NOW]
    lines = [f"At present, jobs wait {duration(now.numbers['wait_mean'])} on average under {found.policy}."]
    if not _ran(now):
        lines = [f"At present, no job runs under {found.policy}."]
    for one in found.outcomes[1:]:
        assert one.wait is not None
        by, fewer = _change(one.wait, len(found.outcomes) - 1), _fewer(one, now)
        rejected = f"{counted(fewer, 'job')} would not run at all; " if fewer > 0 else ""
        if not one.wait.jobs:
            lines.append(f"With {one.label}, no job runs that also runs now, so there is nothing to compare.")
            continue
        if one.wait.jobs == _ran(now):
            waits = f"they would wait {duration(one.wait.policy_mean)}"
        else:
            both = "1 job that runs" if one.wait.jobs == 1 else f"{number(one.wait.jobs)} jobs that run"
            means = f"{duration(one.wait.policy_mean)} instead of {duration(one.wait.baseline_mean)}"
            waits = f"the {both} in both cases would wait {means}"
        lines.append(f"With {one.label}, {rejected}{waits}: {by}.")
        lines += _part_sentences(one, lambda wait: _change(wait, len(found.outcomes) - 1))
    return lines


def _ran(one: Effect) -> int:
    """Return the number of counted jobs that ran."""
    return round(one.numbers["completed"] + one.numbers["killed_walltime"])


def _jobs(found: WhatIf) -> Iterator[str]:
    """Return the line that reconciles the numbers of jobs, and jobs rejected only in the simulation."""
    if found.now is not None and found.kept is not None:
        ran = {label if label == NOW else f"with {label}": mask for label, mask in found.ran.items()}
        yield from job_counts(ran, found.kept, found.now.workload_given.provenance)
    yield from rejections.failures(found.failures)


def _saturated(found: WhatIf) -> Iterator[str]:
    """Return the changes under which the queue is still growing at the last submission."""
    labels = [one.label if one.label == NOW else f"with {one.label}" for one in found.outcomes if one.saturated]
    if labels:
        yield _text("saturated", found=found, labels=labels)


def _periods(found: WhatIf) -> Iterator[str]:
    if found.now is not None:
        waits = [one.wait for one in found.outcomes if one.wait is not None]
        yield from intervals_are_of(waits, found.replicated, found.now)


def as_dict(found: WhatIf) -> dict[str, Any]:
    """Return the results with JSON types."""
    return {
        "policy": found.policy,
        "changes": [
            {
                "change": one.label,
                "cores": one.cores,
                "metrics": dict(one.numbers),
                "wait": None if one.wait is None else asdict(one.wait),
                "bounded_slowdown": None if one.slowdown is None else asdict(one.slowdown),
                **_parts_as_dict(one),
            }
            for one in found.outcomes
        ],
        "refused": [{"change": label, "why": why} for label, why in found.refused],
        "rounded": list(found.rounded),
        "validation": None if found.replay is None else asdict(trust_in(found.replay)),
        "replicas": _replicas_as_dict(found),
        "without_flurries": None if found.cleaned is None else as_dict(found.cleaned)["changes"],
    }


def _change(found: Difference, among: int) -> str:
    if found.same == 1:
        return "as long as now"
    if found.verdict in ("better", "worse"):
        return f"{_against_now(found)} (95 % interval {_span(found)})"
    here = f"{_against_now(found)} in this log"
    if found.verdict == "too little data":
        return f"too little data to compare with now: {shortage(found)}; {here}"
    several = f", corrected for {among} changes" if among > 1 else ""
    return f"no significant difference from now{several} ({here}; 95 % interval {_span(found)})"
