"""Allocations of jobs on a machine of nodes, as columns with one row per node and run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.time import IntArray

POOLS = -1
"""Node number of amounts outside nodes: cores of a machine without nodes, licences …"""

UNKNOWN_TASKS = -1
"""Number of tasks if it is unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class Allocations:
    """Amounts that each run of a job held on each of its nodes, by job, then run, then order of allocation.

    Attributes
    ----------
    nodes : tuple of str
        Names of the nodes.
    job : (k,) int64
        Rows of the workload, or of the tasks for DAG jobs.
    run : (k,) int64
        Number of the run within its job: 1 for the first; more after a preemption, or in a chain of jobs.
    node : (k,) int64
        Index in *nodes*, `POOLS` for none.
    tasks : (k,) int64
        Number of tasks of the job on the node, `UNKNOWN_TASKS` if unknown.
    amounts : mapping of str to (k,) int64
        Amounts by resource: ``cores``; ``memory`` in MiB; others in their units.
    start_us, end_us : (k,) int64
        Time for which the run held them, ``[start, end)``, whole microseconds.
    gpu_row, gpu, gpu_share : (g,) int64
        GPUs: row of these columns, number of the GPU on its node, thousandths held.
    resumed : (k,) bool or None
        Rows in which a run is suspended, with 0 cores and what it keeps, or resumes after that; None for none.
    """

    nodes: tuple[str, ...]
    job: IntArray
    run: IntArray
    node: IntArray
    tasks: IntArray
    amounts: Mapping[str, IntArray]
    start_us: IntArray
    end_us: IntArray
    gpu_row: IntArray
    gpu: IntArray
    gpu_share: IntArray
    resumed: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.job)

    def __repr__(self) -> str:
        return f"<Allocations: {len(self):,} pieces on {len(self.nodes):,} nodes>"

    @property
    def asleep(self) -> npt.NDArray[np.bool_]:
        """Mask of the rows with what suspended runs keep."""
        none = np.zeros(len(self), dtype=np.bool_)
        return none if self.resumed is None else self.resumed & (self.amounts.get("cores", self.run) == 0)

    def select(self, rows: Any, count: int) -> Allocations:
        """Return the allocations of some of *count* jobs (mask, slice or indices)."""
        place: IntArray = np.full(count, -1, dtype=np.int64)
        kept = np.arange(count)[rows]
        place[kept] = np.arange(len(kept))
        job = place[self.job]
        return replace(self, job=job).taken(np.flatnonzero(job >= 0))

    def of_jobs(self, row: IntArray) -> Allocations:
        """Return the allocations by job from those by part of a chain of jobs; *row* has the job of each part."""
        return replace(self, job=row[self.job]).taken(np.arange(len(self)))

    def taken(self, rows: IntArray) -> Allocations:
        """Return some rows in sorted order, with new run numbers."""
        rows = rows[np.lexsort((self.start_us[rows], self.job[rows]))]
        place: IntArray = np.full(len(self), -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        gpus = np.flatnonzero(place[self.gpu_row] >= 0)
        gpus = gpus[np.argsort(place[self.gpu_row[gpus]], kind="stable")]
        job, start = self.job[rows], self.start_us[rows]
        resumed = None if self.resumed is None else self.resumed[rows]
        return Allocations(
            nodes=self.nodes,
            job=job,
            run=numbered_runs(job, start, resumed),
            node=self.node[rows],
            tasks=self.tasks[rows],
            amounts={name: column[rows] for name, column in self.amounts.items()},
            start_us=start,
            end_us=self.end_us[rows],
            gpu_row=place[self.gpu_row[gpus]],
            gpu=self.gpu[gpus],
            gpu_share=self.gpu_share[gpus],
            resumed=resumed,
        )

    def gpu_texts(self) -> list[str]:
        """Return the GPUs of each row as in tables: ``0:500 3:1000``, thousandths by number; empty for none.

        Examples
        --------
        >>> one = np.zeros(1, dtype=np.int64)
        >>> held = Allocations(("n1",), one, one, one, one, {}, one, one, np.array([0, 0]), np.array([0, 3]),
        ...                    np.array([500, 1000]))
        >>> held.gpu_texts()
        ['0:500 3:1000']
        """
        found = [""] * len(self)
        for row, gpu, share in zip(self.gpu_row.tolist(), self.gpu.tolist(), self.gpu_share.tolist(), strict=True):
            found[row] += f"{' ' if found[row] else ''}{gpu}:{share}"
        return found


def numbered_runs(job: IntArray, start: IntArray, resumed: npt.NDArray[np.bool_] | None = None) -> IntArray:
    """Return the number of each row's run within its job, from 1; rows are sorted by job, then start.

    Rows with *resumed* belong to the run of the row before.

    Examples
    --------
    >>> numbered_runs(np.array([4, 4, 4, 7]), np.array([0, 0, 9, 9])).tolist()
    [1, 1, 2, 1]
    """
    if not len(job):
        return np.zeros(0, dtype=np.int64)
    first = np.r_[True, job[1:] != job[:-1]]
    new = np.r_[True, start[1:] != start[:-1]]
    runs = np.cumsum(first | (new if resumed is None else new & ~resumed))
    numbers: IntArray = runs - runs[first][np.cumsum(first) - 1] + 1
    return numbers
