"""Identifiers of jobs: the number, and the id in the source, such as ``41206_5`` for a task of an array.

Sources: sacct(1), ``JobID`` ("The number of the job or job step. It is in the form: *job.jobstep*"; "Job arrays …
*ArrayJobID_ArrayTaskID*"; "Heterogeneous jobs … *HetJobID+HetJobOffset*"); squeue(1), ``--jobs``; PBS Professional,
"Job Array Identifiers" (``1234[5].server``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import IntArray

if TYPE_CHECKING:
    from gridsim.model.workload import Workload


ABSENT, SEVERAL = -1, -2
"""Task number of a job outside arrays; task number of a line for several tasks."""

EXPECTED = (
    "expected a job as sacct names it: its number (387), a task of an array (700018_2) or a part of a heterogeneous "
    "job (700020+1); a step such as .batch may follow"
)

_ID = re.compile(r"([0-9]{1,17})(?:_(?:([0-9]{1,17})|(\*|\[[^\]]*\]?\+?)))?(?:\+([0-9]{1,9}))?(\..+)?")
_ELEMENT = re.compile(r"([0-9]{1,17})\[([0-9]{1,17})\](\..+)?")
_ONE = re.compile(r"\[([0-9]{1,17})\]")


def fields_of(text: str) -> tuple[int, int, int, str, str] | None:
    """Return number, task, component, text of several tasks, and step of a Slurm id; None for an invalid text.

    Examples
    --------
    >>> fields_of("41206_5"), fields_of("41479+1"), fields_of("41200.batch")
    ((41206, 5, -1, '', ''), (41479, -1, 1, '', ''), (41200, -1, -1, '', '.batch'))
    >>> fields_of("41206_[4-12%3]"), fields_of("38 7")
    ((41206, -2, -1, '[4-12%3]', ''), None)
    """
    match = _ID.fullmatch(text)
    if match is None:
        return None
    number, task, several, part, step = match.groups()
    found = SEVERAL if several is not None else ABSENT if task is None else int(task)
    return int(number), found, ABSENT if part is None else int(part), several or "", step or ""


class JobId(NamedTuple):
    """Number of a job, array or heterogeneous job; task and component, `ABSENT` if none."""

    number: int
    task: int = ABSENT
    part: int = ABSENT

    def __str__(self) -> str:
        task = "" if self.task == ABSENT else "_*" if self.task == SEVERAL else f"_{self.task}"
        return f"{self.number}{task}" + ("" if self.part == ABSENT else f"+{self.part}")


def read_id(text: str) -> JobId:
    """Return the id of a job from user input; the step of the job is ignored.

    Raises
    ------
    InputError
        For an invalid text.

    Examples
    --------
    >>> [tuple(read_id(text)) for text in ("387", "700018_2.batch", "700020+1.0", "1234[5].server")]
    [(387, -1, -1), (700018, 2, -1), (700020, -1, 1), (1234, 5, -1)]
    """
    text = text.strip()
    element = _ELEMENT.fullmatch(text)
    if element is not None:
        return JobId(int(element[1]), int(element[2]))
    found = fields_of(text)
    if found is None:
        raise InputError(f"'{text}' is not a job; {EXPECTED}", field="job")
    number, task, part, several, _ = found
    one = _ONE.fullmatch(several)
    return JobId(number, int(one[1]) if one else task, part)


@dataclass(frozen=True, slots=True)
class JobIds:
    """Ids of the jobs of a workload, one row per job.

    Attributes
    ----------
    job : (n,) int64
        Job numbers.
    group, task, part : (n,) int64 or None
        Number of the array or heterogeneous job, else the job number; task and component, `ABSENT` if none. None if
        the source has no such ids.
    """

    job: IntArray
    group: IntArray | None = None
    task: IntArray | None = None
    part: IntArray | None = None

    @classmethod
    def of(cls, workload: Workload) -> JobIds:
        """Return the ids of a workload, as far as its source has them."""
        logged, job = workload.logged, workload.job
        if "element" in logged:  # PBS, which also counts from 0
            inside = logged["element"] >= 0
            return cls(job, np.where(inside, logged["array"], job), np.where(inside, logged["element"], ABSENT))
        if "array_job" not in logged or len(logged["array_job"]) != len(job):
            return cls(job)
        return cls(job, logged["array_job"], logged.get("array_task"), logged.get("het_part"))

    @classmethod
    def read(cls, job: IntArray, texts: Sequence[str]) -> JobIds:
        """Parse ids written by `shown`.

        Raises
        ------
        InputError
            For a text that is not an id.
        """
        columns: IntArray = np.array([read_id(text) for text in texts], dtype=np.int64).reshape(-1, 3)
        return cls(job, columns[:, 0], columns[:, 1], columns[:, 2])

    @property
    def known(self) -> bool:
        """Return whether any job has an id in addition to its number."""
        return self.group is not None

    def at(self, row: int) -> JobId:
        """Return the id of a job, or its number only if it has none."""
        if self.group is None:
            return JobId(int(self.job[row]))
        task = ABSENT if self.task is None else int(self.task[row])
        part = ABSENT if self.part is None else int(self.part[row])
        return JobId(int(self.group[row]) if task != ABSENT or part != ABSENT else int(self.job[row]), task, part)

    def shown(self, row: int) -> str:
        """Return the id of a job in the form used by its source."""
        return str(self.at(row))

    def texts(self) -> list[str]:
        """Return the ids of all jobs."""
        return [self.shown(row) for row in range(len(self.job))]

    def row(self, asked: int | str) -> int:
        """Return the row of the job with this number, or with this id in its source.

        Raises
        ------
        InputError
            For an invalid text, for an unknown job, and for several matching jobs.

        Examples
        --------
        >>> ids = JobIds.read(np.array([41208, 41209, 41210]), ["41206_1", "41206_2", "41210"])
        >>> ids.row("41206_2"), ids.row(41210), ids.row("41208.batch")
        (1, 2, 0)
        """
        wanted = JobId(int(asked)) if not isinstance(asked, str) else self._read(asked)
        rows = self._rows(wanted)
        if len(rows) == 1:
            return int(rows[0])
        raise self._several(wanted, rows) if len(rows) else self._missing(wanted)

    def _read(self, text: str) -> JobId:
        try:
            return read_id(text)
        except InputError as error:
            near = self._meant(text)
            raise InputError(error.message + (f"; did you mean {near}?" if near else ""), field="job") from error

    def _meant(self, text: str) -> str:
        """Return the id of the job that has the same numbers as an invalid text, if it is unique."""
        digits = re.findall("[0-9]{1,17}", text)
        for join in ("_", "+"):
            wanted = fields_of(join.join(digits))
            if wanted is not None and len(self._rows(JobId(*wanted[:3]))) == 1:
                return str(JobId(*wanted[:3]))
        return ""

    def _rows(self, wanted: JobId) -> IntArray:
        if wanted.task == ABSENT and wanted.part == ABSENT:
            rows = np.flatnonzero(self.job == wanted.number)
            return rows if len(rows) or self.group is None else np.flatnonzero(self.group == wanted.number)
        if self.group is None:
            return np.zeros(0, dtype=np.int64)
        inside = self.group == wanted.number
        if wanted.task != SEVERAL:
            inside &= (ABSENT if self.task is None else self.task) == wanted.task
        if wanted.part != ABSENT or wanted.task == ABSENT:
            inside &= (ABSENT if self.part is None else self.part) == wanted.part
        return np.flatnonzero(inside)

    def _several(self, wanted: JobId, rows: IntArray) -> InputError:
        shown = [self.shown(int(row)) for row in rows]
        if len(set(shown)) < len(shown):  # runs of one job, or tasks that the source does not distinguish
            shown = self.job[rows].astype(str).tolist()
        few = ", ".join(shown[:3]) + (f", … {shown[-1]}" if len(shown) > 3 else "")
        return InputError(f"{wanted} is {len(rows):,} jobs; name one of them: {few}", field="job")

    def _missing(self, wanted: JobId) -> InputError:
        if not len(self.job):
            return InputError(f"there is no job {wanted}; the result has no jobs", field="job")
        if wanted.task == ABSENT and wanted.part == ABSENT:
            return InputError(f"there is no job {wanted}; {self._numbers(wanted.number)}", field="job")
        if self.group is None:
            why = "these jobs have only numbers, without arrays or parts; expected the job's number (JobIDRaw of sacct)"
            return InputError(f"there is no job {wanted}: {why}; {self._numbers(wanted.number)}", field="job")
        alike = np.flatnonzero(self.group == wanted.number)
        if not len(alike):
            groups = self.group[self._in_group()]
            near = groups[np.argmin(np.abs(groups - wanted.number))]
            why = f"no array or group of parts has the number {wanted.number}; the nearest is {near}"
            return InputError(f"there is no job {wanted}; {why}", field="job")
        untold = np.array([], dtype=np.int64) if self.task is None else alike[self.task[alike] == SEVERAL]
        if len(untold) == 1:
            line = self.shown(int(untold[0]))
            return InputError(f"there is no job {wanted}; its tasks are one line of the log: {line}", field="job")
        if len(untold):
            return self._several(JobId(wanted.number, SEVERAL), untold)
        offset = [abs(each.task - wanted.task) + abs(each.part - wanted.part) for each in map(self.at, alike.tolist())]
        order = sorted({self.at(row) for row in alike.tolist()})
        near = self.shown(int(alike[int(np.argmin(offset))]))
        span = f"{order[0]} to {order[-1]}, and the nearest is {near}" if len(order) > 1 else str(order[0])
        return InputError(f"there is no job {wanted}; there is {span}", field="job")

    def _in_group(self) -> IntArray:
        inside = np.zeros(len(self.job), dtype=bool)
        for column in (self.task, self.part):
            if column is not None:
                inside |= column != ABSENT
        return np.flatnonzero(inside)

    def _numbers(self, wanted: int) -> str:
        near = int(self.job[np.argmin(np.abs(self.job - wanted))])
        return f"numbers go from {self.job.min()} to {self.job.max()}, and the nearest is {near}"
