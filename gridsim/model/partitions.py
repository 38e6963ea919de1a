"""Parts of a machine that jobs name, each with a separate queue and pool: partitions, and clusters of one log."""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.model.platform import Platform
from gridsim.model.time import IntArray
from gridsim.model.workload import UNKNOWN, Workload

PARTITION, CLUSTER = "partition", "cluster"
"""Labels that can determine the cluster of a job."""

Partitions = Literal["apart", "pooled"]
"""Values of the option for partitions: separate pools of cores, or one pool."""


class JobClusters(NamedTuple):
    """Clusters on which the jobs of a workload can run.

    Attributes
    ----------
    way : (n,) int64
        Index in *clusters* of each job.
    clusters : tuple of tuple of int
        Cluster indices in tree order; several for jobs with several partitions, from which a balancer selects one.
    """

    way: IntArray
    clusters: tuple[tuple[int, ...], ...]


def names_of(workload: Workload, label: str) -> dict[int, tuple[str, ...]]:
    """Return the values of a label that jobs have, with the names of each: both for ``a,b``, none for unknown."""
    column = workload.labels.get(label)
    known = workload.names.get(label, ())
    found: dict[int, tuple[str, ...]] = {}
    for code in [] if column is None else np.unique(column).tolist():
        name = known[code] if 0 <= code < len(known) else str(code)
        found[code] = () if code == UNKNOWN or not name else tuple(filter(None, name.split(",")))
    return found


def partitions_named(workload: Workload) -> list[str]:
    """Return the partitions that the jobs name, in order of decreasing number of jobs."""
    jobs: Counter[str] = Counter()
    for code, names in names_of(workload, PARTITION).items():
        for name in names:
            jobs[name] += int(np.count_nonzero(workload.labels[PARTITION] == code))
    return [name for name, _ in jobs.most_common()]


def job_clusters(workload: Workload, platform: Platform) -> JobClusters | None:
    """Return the clusters on which each job can run; None if all jobs can run on any cluster.

    Raises
    ------
    InputError
        For DAG jobs, and for a job whose label is not the name of a cluster.
    """
    if platform.by is None:
        return None
    if workload.tasks is not None:
        raise InputError(f"DAG jobs cannot be restricted to the cluster of a {platform.by}", field=platform.by)
    places = {cluster.name: place for place, cluster in enumerate(platform.clusters())}
    column = workload.labels.get(platform.by, np.full(len(workload), UNKNOWN))
    codes = {UNKNOWN: ()} | names_of(workload, platform.by)
    found: dict[tuple[int, ...], int] = {}
    way = np.zeros(len(workload), dtype=np.int64)
    for code in np.unique(column).tolist():
        names = codes[code] or (() if platform.default is None else (platform.default,))
        rows = np.flatnonzero(column == code)
        wrong = next((name for name in names if name not in places), None)
        if wrong is not None or not names:
            what = f"has no {platform.by}" if wrong is None else f"has the {platform.by} '{wrong}'"
            raise InputError(
                f"job {workload.job[rows[0]]} {what}; the platform has {', '.join(places)}", field=platform.by
            )
        to = tuple(sorted({places[name] for name in names}))
        way[rows] = found.setdefault(to, len(found))
    return JobClusters(way, tuple(found))
