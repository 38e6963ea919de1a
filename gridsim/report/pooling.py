"""Text on parts of a machine: partitions that were not simulated, and clusters that ran no jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gridsim.model.partitions import PARTITION, partitions_named
from gridsim.model.time import NEVER
from gridsim.number_formatting import counted, listed, number

if TYPE_CHECKING:
    from gridsim.model.platform import Platform
    from gridsim.model.workload import Workload
    from gridsim.questions.evidence import Evidence
    from gridsim.record import Record


_MOST = 4
"""Largest number of partitions named in a sentence."""


def parts_of(platform: Platform) -> str:
    """Return the number of nodes, clusters or partitions of a machine, to follow its number of cores."""
    clusters = list(platform.clusters())
    nodes = sum(group.count for cluster in clusters for group in cluster.nodes)
    if len(clusters) > 1:
        return f" in {len(clusters)} {'partitions, each a separate pool' if platform.by == PARTITION else 'clusters'}"
    return f" on {counted(nodes, 'node')}" if nodes else ""


def origin_of(origin: str) -> str:
    """Return the source of the size of a machine."""
    words = {
        "the workload": "from the workload",
        "MaxProcs": "MaxProcs in the header",
        "MaxNodes": "MaxNodes in the header, no MaxProcs",
    }
    return words.get(origin, origin)


def answer(comparison: Evidence) -> list[str]:
    """Return why partitions are pooled, and which clusters ran no job under which policies."""
    return [*_pooled(comparison), *_emptied(comparison)]


def _pooled(comparison: Evidence) -> list[str]:
    platforms = {label: comparison.platform_of(label) for label in comparison.records}
    labels = [label for label, platform in platforms.items() if platform is not None and platform.pooled]
    if not labels:
        return []
    platform = platforms[labels[0]]
    assert platform is not None
    jobs = comparison.records[labels[0]].workload
    return [pooled(jobs, platform, labels if len(labels) < len(comparison.records) else (), rows=True)]


def pooled(workload: Workload, platform: Platform, labels: Sequence[str] = (), *, rows: bool = False) -> str:
    """Return notes that partitions of the log were not simulated, under some policies or all, and the consequences.

    With *rows*, the notes also cover results by partition.
    """
    names = partitions_named(workload)
    whom = f" under {listed(labels)}" if labels else ""
    shown = listed(names if len(names) <= _MOST else [*names[: _MOST - 1], f"{len(names) - _MOST + 1} more"])
    several = len(list(platform.clusters())) > 1
    where = "jobs may run on any cluster" if several else f"all {number(platform.cores)} cores are one pool"
    there = " there" if whom else ""
    return (
        f"Partitions are not simulated{whom}: {shown} are one queue{there} and {where}, "
        f"{'also in rows by partition, ' if rows else ''}{_because(platform.pooled)}."
    )


def _because(why: str) -> str:
    return why if why.startswith("as ") else f"because {why}"


def _emptied(comparison: Evidence) -> list[str]:
    found: dict[str, list[str]] = {}
    for label, record in comparison.records.items():
        for name in empty(record, comparison.platform_of(label)):
            found.setdefault(name, []).append(label)
    balancer = comparison.info.get("options", {}).get("balancer")
    by = f" (balancer {balancer})" if isinstance(balancer, str) else ""
    everywhere = [name for name, labels in found.items() if len(labels) == len(comparison.records)]
    whom = "any policy" if len(comparison.records) > 1 else comparison.baseline
    lines = [f"{_clusters(everywhere)} ran no job under {whom}{by}."] if everywhere else []
    return lines + [
        f"{_clusters([name])} ran no job under {listed(labels, 'or')}{by}."
        for name, labels in found.items()
        if name not in everywhere
    ]


def of_one(record: Record, platform: Platform) -> list[str]:
    """Return the notes for a single run."""
    names = empty(record, platform)
    lines = [pooled(record.workload, platform)] if platform.pooled else []
    return lines + ([f"{_clusters(names)} ran no job."] if names else [])


def empty(record: Record, platform: Platform | None) -> list[str]:
    """Return the clusters that ran no job, if other clusters did.

    The result is empty for a machine on which jobs specify their cluster.

    Examples
    --------
    >>> from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
    >>> from gridsim.model.workload import Workload
    >>> from gridsim.simulation import run
    >>> grid = Platform(RouterSpec("root", (ClusterSpec("a", 4), ClusterSpec("b", 4))))
    >>> empty(run(Workload.from_columns(submit=[0], runtime=[5], cores=[1]), grid, "fcfs"), grid)
    ['b']
    """
    names = [] if platform is None or platform.by is not None else [cluster.name for cluster in platform.clusters()]
    rows = record if record.tasks is None else record.tasks
    used = set(np.unique(rows.cluster[rows.start_us < NEVER]).tolist())
    return [name for place, name in enumerate(names) if place not in used] if used and len(names) > 1 else []


def _clusters(names: list[str]) -> str:
    return f"Cluster {names[0]}" if len(names) == 1 else f"Clusters {listed(names)}"
