"""What the lines of a log say of jobs, in columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridsim.model.time import IntArray
from gridsim.workload.formats.sacct.values import ABSENT, BoolArray

__all__ = ["Facts", "Lines"]


class Lines:
    """The columns that were read, one row a line.

    Parameters
    ----------
    columns : mapping
        By name; only those that the log has.
    """

    def __init__(self, columns: dict[str, IntArray]) -> None:
        self.columns = columns
        self.rows = len(columns.get("number", ()))

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def column(self, name: str, default: int = ABSENT) -> IntArray:
        """A column, or one of the default where the log has none."""
        if name not in self.columns:
            return np.full(self.rows, default, dtype=np.int64)
        return self.columns[name]

    def identity(self) -> IntArray:
        """The number that orders jobs: that of the array where the job is a task."""
        return self.column("base" if "base" in self else "raw")

    def shown(self, row: int) -> str:
        """A job as a person would name it."""
        base = self.identity()[row]
        task, part = self.column("task")[row], self.column("part")[row]
        return f"job {base}" + (f"_{task}" if task >= 0 else "") + (f"+{part}" if part >= 0 else "")


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
    elapsed : (n,) int64
        Time that the job ran.
    held : (n,) int64
        Time between start and end.
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
    end: IntArray
    elapsed: IntArray
    held: IntArray
    running: BoolArray
    state: IntArray
    limit: IntArray
    cores: IntArray
