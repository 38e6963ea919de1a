"""What is told of the demands of a log that count for nothing on a machine, because it is described without them."""

from __future__ import annotations

from collections.abc import Mapping

from gridsim.model.platform import Platform
from gridsim.model.suited import LEFT_ASIDE
from gridsim.model.workload import Workload
from gridsim.questions.evidence import Evidence
from gridsim.words import counted, listed

__all__ = ["caveats", "left_aside"]


def caveats(comparison: Evidence) -> list[str]:
    """That demands do not count, once for all policies with the same of them."""
    groups: dict[str, list[str]] = {}
    for label, record in comparison.records.items():
        told = left_aside(record.workload, comparison.platform_of(label))
        if told:
            groups.setdefault(told[0], []).append(label)
    everybody = len(comparison.records)
    return [
        told if len(labels) == everybody else f"Under {listed(labels)}: {told[0].lower()}{told[1:]}"
        for told, labels in groups.items()
    ]


def left_aside(workload: Workload, platform: Platform | None = None) -> list[str]:
    """Resources that jobs request, or tasks of DAG jobs, and that the description of the machine lacks.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0], runtime=[1], cores=1, provenance={"demands_left_aside": {"memory": 1}})
    >>> left_aside(log, Platform.single(4))
    ['What jobs ask for beside cores does not count here: memory (1 job); the machine is one pool of cores.']
    """
    found = workload.provenance.get(LEFT_ASIDE, {})
    if not found:
        return []
    pooled = platform is not None and all(it.capacity is None for it in platform.clusters())
    why = "the machine is one pool of cores" if pooled else "no node of the machine is said to have any"
    counts = _counts(found, "job" if workload.tasks is None else "task")
    return [f"What jobs ask for beside cores does not count here: {counts}; {why}."]


def _counts(found: Mapping[str, int], unit: str) -> str:
    return listed([f"{_name(what)} ({counted(count, unit)})" for what, count in found.items()])


def _name(what: str) -> str:
    return "GPUs" if what == "gpu" else what
