"""A part of a workload, selected by position or by submit time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridsim.errors import InputError, check_parameters
from gridsim.model.time import NEVER, IntArray, seconds, to_us
from gridsim.model.workload import Workload, recorded


@dataclass(frozen=True)
class Slice:
    """Jobs submitted from *start* to before *end*; of these, a number *jobs* from position *first* on.

    Parameters
    ----------
    first : int
        Position of the first job, from 0, among the jobs of the time window.
    jobs : int, optional
        Number of jobs; by default all that follow.
    start, end : float, optional
        Window of submit times, s.
    origin : bool
        Shift times so that the first submission is at 0; logged waits are durations and stay.
    window : int
        Number of the disjoint section of *jobs* jobs, from 0; the last section of a workload may be shorter.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 5, 9], runtime=[1, 1, 1], cores=[1, 1, 1])
    >>> Slice(first=1).apply(log)
    <Workload: 2 jobs, 5 s to 9 s>
    >>> Slice(start=5, origin=True).apply(log)
    <Workload: 2 jobs, 0 s to 4 s>
    >>> Slice(jobs=2, window=1).apply(log)
    <Workload: 1 jobs, 9 s to 9 s>
    """

    first: int = 0
    jobs: int | None = None
    start: float | None = None
    end: float | None = None
    origin: bool = False
    window: int = 0

    def __post_init__(self) -> None:
        later = self.start is None or self.end is None or self.end > self.start
        window = not self.window or (self.window > 0 and self.jobs is not None)
        check_parameters(
            self,
            first=(self.first >= 0, "a position from 0"),
            jobs=(self.jobs is None or self.jobs >= 1, "at least 1"),
            window=(window, "a number from 0, and how many jobs each window has"),
            end=(later, f"seconds after the start, {self.start}"),
        )

    def apply(self, workload: Workload, rng: np.random.Generator | None = None) -> Workload:
        """Return the part of *workload*; *rng* is not used.

        Raises
        ------
        InputError
            If it contains no job.
        """
        low = 0 if self.start is None else int(np.searchsorted(workload.submit, to_us(self.start)))
        high = len(workload) if self.end is None else int(np.searchsorted(workload.submit, to_us(self.end)))
        low += self.first + self.window * (self.jobs or 0)
        if self.jobs is not None:
            high = min(high, low + self.jobs)
        if low >= high:
            raise InputError(f"{self} selects no job; the workload is {workload!r}")
        part = workload.select(slice(low, high))
        shift = int(part.submit[0]) if self.origin else 0
        part = part.submitted_at(part.submit - shift) if shift else part
        return recorded(part, self, jobs_kept=len(part), shift=seconds(shift))


def there(workload: Workload, since: float | None, until: float | None) -> Workload:
    """Return the jobs that were in the system at any time from *since* to before *until*, seconds of the log's clock.

    These jobs were submitted before *until* and ended after *since*. A job without a logged end has not ended if it
    started; otherwise its submit time is used. Times stay.

    Raises
    ------
    InputError
        If no job was in the system.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 5, 9], runtime=[9, 1, 1], cores=[1, 1, 1], logged={"wait": [0, 0, 0]})
    >>> there(log, 7, 9).job
    array([1])
    """
    end = workload.logged_end
    left = workload.submit if end is None else np.where(end < NEVER, end, _over(workload))
    kept = np.ones(len(workload), dtype=bool)
    if since is not None:
        kept &= left >= to_us(since) if end is None else left > to_us(since)
    if until is not None:
        kept &= workload.submit < to_us(until)
    if not kept.any():
        raise InputError(f"the log has no job in that period; the workload is {workload!r}")
    part = workload.select(kept)
    entry = {"transform": "there", "start": since, "end": until, "jobs_kept": len(part)}
    return part.with_provenance(transforms=[*workload.provenance.get("transforms", ()), entry])


def _over(workload: Workload) -> IntArray:
    """Return the latest time in the system without a logged end: `NEVER` for started jobs, else the submit time."""
    start = workload.logged_start
    return workload.submit if start is None else np.where(start < NEVER, NEVER, workload.submit)
