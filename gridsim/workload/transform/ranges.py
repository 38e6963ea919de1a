"""Known ranges of cores, one line per job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gridsim.errors import InputError, located
from gridsim.files import csv_records, read_text
from gridsim.model.moldable import Moldable
from gridsim.model.speedup import Downey, Linear, Speedup
from gridsim.model.workload import Workload, recorded
from gridsim.workload.transform.moldable import facts, rigid_within

_NEEDED = ("job", "minimum", "maximum")


class _Line(NamedTuple):
    """Values of one line for one job."""

    minimum: int
    maximum: int
    law: Downey


@dataclass(frozen=True)
class Ranges:
    """Ranges of individual jobs from a file; all other jobs stay rigid.

    Parameters
    ----------
    file : str
        CSV with columns ``job, minimum, maximum`` and, where known, ``parallelism`` and ``sigma`` of Downey's model
        (defaults: the maximum, and 1).
    cores : int or None
        Cores of the machine; on several clusters, the cores of the widest one.

    Examples
    --------
    >>> import tempfile
    >>> log = Workload.from_columns(submit=[0, 1], runtime=[60, 60], cores=[4, 4])
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("job,minimum,maximum,sigma\\n2,1,8,0\\n")
    ...     file.flush()
    ...     ranges = Ranges(file.name, cores=8).apply(log).moldable
    >>> ranges.minimum, ranges.maximum
    (array([4, 1]), array([4, 8]))
    """

    file: str
    cores: int | None = None

    machine: ClassVar[str] = "widest"

    def apply(self, workload: Workload, rng: np.random.Generator | None = None) -> Workload:
        """Return the *workload* with ranges; *rng* is not used.

        Raises
        ------
        InputError
            If jobs have ranges already or are workflows, for a job that does not exist, for an empty range, and for a
            range beyond the machine; with the line.
        """
        workload.require_rigid("a file gives ranges of rigid jobs only", field="file")
        machine = rigid_within(workload, self.cores)
        places = {number: row for row, number in enumerate(workload.job.tolist())}
        minimum, maximum = workload.cores.copy(), workload.cores.copy()
        laws: list[Speedup] = [Linear()]
        curve = np.zeros(len(workload), dtype=np.int64)
        for number, line in self._lines(places, machine):
            row = places[number]
            if curve[row]:
                raise InputError(f"gives job {number} two ranges; expected one", path=self.file, field="job")
            minimum[row], maximum[row], curve[row] = line.minimum, line.maximum, len(laws)
            laws.append(line.law)
        made = Moldable.of(workload.cores, minimum, maximum, laws, curve, names=workload.job)
        return recorded(replace(workload, moldable=made), self, **facts(made, machine))

    def _lines(self, places: Mapping[int, int], machine: int) -> Iterator[tuple[int, _Line]]:
        header, rows = csv_records(read_text(self.file).splitlines(), self.file)
        if not set(_NEEDED) <= set(header):
            found = ", ".join(header or ("none",))
            raise InputError(f"has columns {found}; expected {', '.join(_NEEDED)}", path=self.file, line=1)
        for at, row in rows:
            with located(self.file, line=at):
                taken = _line(row, places, machine)
            yield taken


def _line(row: Mapping[str, str], places: Mapping[int, int], machine: int) -> tuple[int, _Line]:
    number, minimum, maximum = (_number(row, name, int) for name in _NEEDED)
    if number not in places:
        raise InputError(f"job {number} is not in the workload", field="job")
    if minimum < 1 or maximum < minimum:
        raise InputError(
            f"the range {minimum} to {maximum}; expected at least 1 core, and a maximum of at least the minimum",
            field="maximum" if minimum >= 1 else "minimum",
        )
    if maximum > machine:
        raise InputError(
            f"the range {minimum} to {maximum}; expected at most the {machine} cores of the machine", field="maximum"
        )
    parallelism = _number(row, "parallelism", float) if row.get("parallelism") else float(maximum)
    return number, _Line(
        minimum, maximum, Downey(parallelism, _number(row, "sigma", float) if row.get("sigma") else 1.0)
    )


def _number(row: Mapping[str, str], name: str, kind: type) -> Any:
    try:
        return kind(row[name] or "")
    except ValueError as error:
        raise InputError(f"has {row[name]!r}; expected a number", field=name) from error
