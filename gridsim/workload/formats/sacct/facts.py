"""What the lines of a log say of jobs, in columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridsim.model.job_id import JobId
from gridsim.model.time import IntArray
from gridsim.workload.formats.sacct.values import ABSENT, BoolArray

__all__ = ["Facts", "SacctColumns"]


class SacctColumns:
    """The columns that were read, one row a line.

    Parameters
    ----------
    columns : mapping
        By name; only those that the log has.

    Attributes
    ----------
    several : (n,) int64 or None
        Place of each line's cluster, where the log is read as one of several.
    """

    def __init__(self, columns: dict[str, IntArray]) -> None:
        self.columns = columns
        self.rows = len(columns.get("number", ()))
        self.several: IntArray | None = None

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def column(self, name: str, default: int = ABSENT) -> IntArray:
        """A column, or one of the default where the log has none."""
        if name not in self.columns:
            return np.full(self.rows, default, dtype=np.int64)
        return self.columns[name]

    def select(self, keep: BoolArray) -> None:
        """Let go of all rows but these."""
        self.columns = {name: column[keep] for name, column in self.columns.items()}
        self.rows = int(np.count_nonzero(keep))

    def identity(self) -> IntArray:
        """The number that orders jobs: that of the array where the job is a task."""
        return self.column("base" if "base" in self else "raw")

    def sequence(self) -> IntArray:
        """The same with the clusters of the log one behind the other: each counts its jobs alone."""
        identity = self.identity().astype(np.int64)
        return identity if self.several is None else identity + self.several * (int(identity.max(initial=0)) + 1)

    def shown(self, row: int) -> str:
        """A job as a person would name it."""
        task, part = int(self.column("task")[row]), int(self.column("part")[row])
        return f"job {JobId(int(self.identity()[row]), task, part)}"


@dataclass(slots=True)
class Facts:
    """Columns of all rows, in seconds; repairs change them.

    Attributes
    ----------
    submit : (n,) int64
        Submit time of the run; in the end the time from which the job can start.
    first_submit : (n,) int64
        Submit time of the first run of the job.
    start, end : (n,) int64
        `ABSENT` where there is none.
    last_start : (n,) int64
        Start of the last run of the job; another one than `start` where the row stands for several.
    elapsed : (n,) int64
        Time that the job ran.
    held : (n,) int64
        Time between start and end of the last run.
    running : (n,) bool
        Whether it had not ended.
    state : (n,) int64
        Position in `STATES`.
    limit, cores : (n,) int64
        Time limit; cores that the job had.
    """

    submit: IntArray
    first_submit: IntArray
    start: IntArray
    last_start: IntArray
    end: IntArray
    elapsed: IntArray
    held: IntArray
    running: BoolArray
    state: IntArray
    limit: IntArray
    cores: IntArray
