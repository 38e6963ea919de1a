"""Nodes that a change adds, waits of parts of the jobs under it, and limits that make it useless, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from gridsim.metrics.compare import Difference
from gridsim.model.capacity import GPU, NodeChange, NodeGroup
from gridsim.model.site.tres import CPU, GPUS, JOBS, LICENCE, MEMORY, NODE, gpu_type
from gridsim.questions.changes import Effect, LimitEffect, PartEffect, WhatIf
from gridsim.report.sheet import WIDTH, either
from gridsim.words import counted, duration, listed, number

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["CAPTION", "FILE", "as_dict", "node_text", "nodes_text", "rows", "sentences", "table", "table_rows"]

FILE = "whatif_parts.csv"
"""Name of the file with the waits of parts of the jobs."""

CAPTION = "Mean wait by partition and requested resource"

_MOST = 3
"""Parts that are named in sentences for a change."""

_MEBIBYTES = 1024


def node_text(node: NodeGroup) -> str:
    """What a node has, its features and its partitions.

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
    """Nodes that are added and removed, such as "Added: 2 nodes of 8 cores and 1 GPU, in partition gpu"; else empty."""
    told = []
    for word, sign in (("Added", 1), ("Removed", -1)):
        those = [f"{counted(abs(it.more), 'node')} of {node_text(it.node)}" for it in nodes if it.more * sign > 0]
        told += [f"{word}: {'; '.join(those)}."] if those else []
    return " ".join(told)


def sentences(one: Effect, by: Callable[[Difference], str]) -> Iterator[str]:
    """Nodes that a change adds, waits of the jobs that it is made for, limits that bind; *by* words a difference."""
    if one.nodes:
        yield nodes_text(one.nodes)
    for each in _named(one):
        before, after = duration(each.wait.baseline_mean), duration(each.wait.policy_mean)
        name = str(each.part)[0].upper() + str(each.part)[1:]
        yield f"{name} ({number(each.wait.jobs)}) wait {before} now and {after} then: {by(each.wait)}."
    yield from map(_limit, one.limits)


def _named(one: Effect) -> list[PartEffect]:
    """Parts that a change is made for, and those that wait longer for it; each set of jobs once.

    Requested resources come before partitions.
    """
    if one.wait is None or not any(it.concerned for it in one.parts):
        return []
    parts = [it for it in one.parts if it.wait.jobs < one.wait.jobs and (it.concerned or it.wait.verdict == "worse")]
    found: list[PartEffect] = []
    for each in sorted(parts, key=lambda it: (not it.concerned, it.part.kind == "partition")):
        if len(found) < _MOST and not any(np.array_equal(each.part.rows, other.part.rows) for other in found):
            found.append(each)
    return found


def _limit(effect: LimitEffect) -> str:
    it = effect.limit
    jobs, held = int(np.count_nonzero(it.held)), float(it.held.sum())
    what = _units(it.resource, 2)
    of = f" of {number(it.available)}" if it.available is not None else ""
    each = f" for each {it.each}" if it.each else ""
    told = f"{it.owner[0].upper()}{it.owner[1:]} stops at {number(it.most)}{of} {what}{each} ({it.rule})"
    waiting = f"{counted(jobs, 'job')} wait{'s' if jobs == 1 else ''} {duration(held)} in all for this limit"
    if effect.idle:
        idle = f"{number(effect.idle)} {_units(it.resource, effect.idle)}"
        return f"{told}, so {idle} {'is' if effect.idle == 1 else 'are'} always idle; {waiting}."
    return f"{told}: {waiting}, whatever is added."


def _units(resource: str, count: int) -> str:
    """What units of a resource are called.

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


def _shown(found: WhatIf) -> list[str]:
    """Names of the parts, as the changes have them."""
    return list(dict.fromkeys(it.part.name for one in found.outcomes for it in one.parts))


def table_rows(found: WhatIf) -> tuple[list[str], dict[str, list[str]]]:
    """Names of parts, and their mean waits now and under each change, by its label; no columns where there are none."""
    names = _shown(found)
    columns: dict[str, list[str]] = {}
    for one in found.outcomes[1:]:
        waits = {it.part.name: it.wait for it in one.parts}
        columns.setdefault(found.outcomes[0].label, [_mean(waits, name, now=True) for name in names])
        columns[one.label] = [_mean(waits, name) for name in names]
    return names, columns if names else {}


def _mean(waits: dict[str, Difference], name: str, *, now: bool = False) -> str:
    if name not in waits:
        return "-"
    return duration(waits[name].baseline_mean if now else waits[name].policy_mean)


def table(found: WhatIf, *, width: int = WIDTH) -> RenderableType | None:
    """The same for a terminal; None where there are no parts."""
    names, columns = table_rows(found)
    return either(names, columns, width=width, caption=f"{CAPTION}.") if columns else None


def rows(found: Sequence[WhatIf]) -> Iterator[list[Any]]:
    """Header and rows of `FILE`: one row for each policy, change and part."""
    compared = ("wait_now", "wait", "ratio", "ratio_low", "ratio_high", "p_holm", "verdict")
    yield ["policy", "change", "kind", "part", "jobs", *compared]
    for each in found:
        for one in each.outcomes:
            for it in one.parts:
                wait = it.wait
                numbers = [wait.baseline_mean, wait.policy_mean, wait.ratio, wait.ratio_low, wait.ratio_high]
                values = [*numbers, wait.p_holm, wait.verdict]
                yield [each.policy, one.label, it.part.kind, it.part.value, wait.jobs, *values]


def as_dict(one: Effect) -> dict[str, Any]:
    """Nodes, parts and limits of a change in JSON's types."""
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
