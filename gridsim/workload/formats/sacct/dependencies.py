"""Dependencies between jobs: pairs of rows, and conversion of chains to workflows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gridsim.model.tasks import Tasks
from gridsim.model.time import MICROSECOND, IntArray
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.workload.formats.sacct.values import BoolArray


@dataclass(slots=True)
class Edges:
    """Rows that waited for the end of other rows.

    Attributes
    ----------
    row, on : (e,) int64
        Waiting row, and the row that it waited for.
    joined : bool
        Whether chains are converted to workflows.
    """

    row: IntArray
    on: IntArray
    joined: bool = False

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, int]], base: IntArray, raw: IntArray | None, keep: BoolArray) -> Edges:
        """Return pairs of kept rows, from pairs of a row and a job number; for an array, one pair per task."""
        if not pairs:
            return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        at, awaited = np.array(pairs, dtype=np.int64).T
        row, on = [], []
        for column in (base,) if raw is None else (base, raw):
            by_number = np.argsort(column, kind="stable")
            first = np.searchsorted(column[by_number], awaited, side="left")
            last = np.searchsorted(column[by_number], awaited, side="right")
            counts = last - first
            row.append(np.repeat(at, counts))
            offsets = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
            on.append(by_number[np.repeat(first, counts) + offsets])
        both = np.unique(np.stack([np.concatenate(row), np.concatenate(on)], axis=1), axis=0)
        both = both[keep[both[:, 0]] & keep[both[:, 1]] & (both[:, 0] != both[:, 1])]
        return cls(both[:, 0], both[:, 1])

    def last_awaited(self, rows: IntArray, job: IntArray, end: IntArray) -> IntArray:
        """Return the job whose end each of the *rows* waited for longest; `UNKNOWN` if it waited for none."""
        among = self.among(rows)
        after = np.full(len(rows), UNKNOWN, dtype=np.int64)
        order = np.argsort(end[rows[among.on]], kind="stable")
        after[among.row[order]] = job[among.on[order]]
        return after

    def among(self, rows: IntArray) -> Edges:
        """Return the same pairs as positions in *rows*, without pairs of missing rows."""
        place = np.full(int(max(rows.max(), self.row.max(initial=0), self.on.max(initial=0))) + 1, UNKNOWN)
        place[rows] = np.arange(len(rows))
        row, on = place[self.row], place[self.on]
        there = (row != UNKNOWN) & (on != UNKNOWN)
        return Edges(row[there], on[there], self.joined)


def chained(workload: Workload, edges: Edges) -> Workload:
    """Return a workload in which jobs that depend on each other are one workflow, submitted with its first task.

    The job has the number and the labels of its first task. The logged schedule of its tasks is dropped, because a job
    has one start. In a damaged log, an edge against the order of time is dropped.
    """
    n = len(workload)
    forward = edges.on < edges.row
    row, on = edges.row[forward], edges.on[forward]
    root = np.arange(n)
    while True:  # the smallest row of each connected component propagates to all its rows
        smallest = root.copy()
        np.minimum.at(smallest, row, root[on])
        np.minimum.at(smallest, on, root[row])
        smallest = smallest[smallest]
        if (smallest == root).all():
            break
        root = smallest
    order = np.argsort(root, kind="stable")
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    heads, counts = np.unique(root, return_counts=True)
    tasks = Tasks.from_edges(
        counts=counts,
        runtime=workload.runtime[order] / MICROSECOND,
        estimate=workload.estimate[order] / MICROSECOND,
        cores=workload.cores[order],
        edges=np.stack([position[on], position[row]], axis=1),
        names=tuple(map(str, workload.job[order].tolist())),
        jobs=workload.job[heads].tolist(),
        path=workload.provenance.get("source"),
    )
    first = replace(workload, logged={}, demands=None).select(heads)
    made = Workload.from_tasks(
        tasks,
        submit=first.submit / MICROSECOND,
        job=first.job,
        labels=first.labels,
        names=dict(first.names),
        provenance={**workload.provenance, "jobs_kept": len(heads)},
        demands=None if workload.demands is None else workload.demands.select(order),
    )
    return replace(made, cores_stated=workload.cores_stated)
