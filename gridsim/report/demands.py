"""What is told of the demands of a log that count for nothing on a machine, because it is described without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gridsim.model.platform import Platform
from gridsim.model.suited import LEFT_ASIDE
from gridsim.questions.evidence import Evidence
from gridsim.words import counted, listed

__all__ = ["caveats", "left_aside"]


def caveats(comparison: Evidence) -> list[str]:
    """That demands do not count, once for all policies with the same of them."""
    groups: dict[str, list[str]] = {}
    for label, record in comparison.records.items():
        told = left_aside(record.workload.provenance, comparison.platform_of(label))
        if told:
            groups.setdefault(told[0], []).append(label)
    everybody = len(comparison.records)
    return [
        told if len(labels) == everybody else f"Under {listed(labels)}: {told[0].lower()}{told[1:]}"
        for told, labels in groups.items()
    ]


def left_aside(provenance: Mapping[str, Any], platform: Platform | None = None) -> list[str]:
    """What jobs of a workload of this provenance ask for that the machine is said to have nothing of.

    Examples
    --------
    >>> left_aside({"demands_left_aside": {"memory": 272}}, Platform.single(4))
    ['What jobs ask for beside cores does not count here: memory (272 jobs); the machine is one pool of cores.']
    """
    found = provenance.get(LEFT_ASIDE, {})
    if not found:
        return []
    pooled = platform is not None and all(it.capacity is None for it in platform.clusters())
    why = "the machine is one pool of cores" if pooled else "no node of the machine is said to have any"
    return [f"What jobs ask for beside cores does not count here: {_counts(found)}; {why}."]


def _counts(found: Mapping[str, int]) -> str:
    named: Sequence[str] = [f"{_name(what)} ({counted(count, 'job')})" for what, count in found.items()]
    return listed(list(named))


def _name(what: str) -> str:
    return "GPUs" if what == "gpu" else what
