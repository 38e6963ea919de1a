"""Jobs that wait for other jobs: pairs of rows, and chains as jobs of several tasks."""

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
        The row that waited, and the row that it waited for.
    joined : bool
        Whether chains are to become jobs of several tasks.
    """

    row: IntArray
    on: IntArray
    joined: bool = False

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, int]], base: IntArray, raw: IntArray | None, keep: BoolArray) -> Edges:
        """Pairs of rows that are kept, from pairs of a row and the number of a job, of an array all its tasks."""
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
        """Number of the job whose end each of the *rows* waited for longest; `UNKNOWN` where it waited for none."""
        among = self.among(rows)
        after = np.full(len(rows), UNKNOWN, dtype=np.int64)
        order = np.argsort(end[rows[among.on]], kind="stable")
        after[among.row[order]] = job[among.on[order]]
        return after

    def among(self, rows: IntArray) -> Edges:
        """The same pairs as positions in *rows*; those of rows that are not there are gone."""
        place = np.full(int(max(rows.max(), self.row.max(initial=0), self.on.max(initial=0))) + 1, UNKNOWN)
        place[rows] = np.arange(len(rows))
        row, on = place[self.row], place[self.on]
        there = (row != UNKNOWN) & (on != UNKNOWN)
        return Edges(row[there], on[there], self.joined)


def chained(workload: Workload, edges: Edges) -> Workload:
    """Workload in which jobs that wait for one another are one job of several tasks, submitted with the first.

    The job has number and labels of its first task. What the log says of the schedule of its tasks is not kept, since a
    job has one start. An edge against the order of time, of a log that was damaged, is left out.
    """
    n = len(workload)
    forward = edges.on < edges.row
    row, on = edges.row[forward], edges.on[forward]
    root = np.arange(n)
    while True:  # the smallest row of what hangs together reaches all of it
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
