"""Jobs that scale like measured applications: a random application for each job."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gridsim.errors import InputError, check_parameters
from gridsim.files import csv_records, read_text
from gridsim.model.moldable import Moldable
from gridsim.model.speedup import Linear, Speedup, Table
from gridsim.model.time import NEVER, IntArray, to_us
from gridsim.model.workload import Workload, recorded
from gridsim.workload.transform.moldable import facts, rigid_within

_COLUMNS = (("application", "cores", "seconds"), ("benchmark", "class", "processes", "time_s"))
"""Columns of a file of profiles: applications, or runs of the NAS Parallel Benchmarks."""


@dataclass(frozen=True)
class Profiles:
    """A random application for each job, which sets its range of cores and its run time over the range.

    Parameters
    ----------
    file : str or None
        CSV with columns ``application, cores, seconds``, or runs of the NAS Parallel Benchmarks (``benchmark, class,
        processes, time_s``), of which the fastest run per core count is used. By default a substitute for those
        benchmarks that is part of gridsim: orders of magnitude, not measurements.
    least_rows : int or None
        Leave out applications with fewer rows after rows without gain are dropped. None: each application must have
        two rows in the file.
    absolute : bool
        Use the application's run times instead of keeping the job's run time on its requested cores.
    cores : int or None
        Cores of the machine; on several clusters, the cores of the widest one.

    Notes
    -----
    The application of a job is drawn uniformly from those whose table spans the requested cores, or from all if no
    table does. The job can use any number of cores from the first row to the last, and its request; core counts that
    do not make it faster are dropped. Jobs that request one core stay sequential. There is one draw per job, in job
    order.

    With ``absolute``, the ratio of estimate to run time stays.

    References
    ----------
    Srinivasan, Krishnamoorthy, Sadayappan 2003; section 7 of the project's specification of moldable jobs.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 1, 2], runtime=[60, 60, 60], cores=[16, 2, 1])
    >>> ranges = Profiles(cores=128).apply(log, np.random.default_rng(1)).moldable
    >>> ranges.minimum, ranges.maximum
    (array([4, 1, 1]), array([128, 128,   1]))
    """

    file: str | None = None
    least_rows: int | None = None
    absolute: bool = False
    cores: int | None = None

    source: ClassVar[str] = "Srinivasan, Krishnamoorthy, Sadayappan 2003"
    machine: ClassVar[str] = "widest"

    def __post_init__(self) -> None:
        check_parameters(self, least_rows=(self.least_rows is None or self.least_rows >= 1, "1 or more"))

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """Return the *workload* with ranges.

        Raises
        ------
        InputError
            If the workload has ranges already, for a job wider than the machine, and for an invalid line of a profile.
        """
        machine = rigid_within(workload, self.cores)
        tables = self.tables()
        if self.absolute and (workload.tasks is not None or (workload.deadline < NEVER).any()):
            raise InputError("DAG jobs and jobs with deadlines must keep their run times", field="absolute")
        requested, numbers = workload.requested
        drawn = _drawn(requested, list(tables.values()), rng.random(len(requested)))
        minimum, maximum = _ranges(requested, list(tables.values()), drawn, machine)
        laws: list[Speedup] = [*tables.values(), Linear()]
        made = Moldable.of(requested, minimum, maximum, laws, drawn, names=numbers)
        counts = {name: int(np.count_nonzero(drawn == place)) for place, name in enumerate(tables)}
        changed = replace(workload, moldable=made)
        if self.absolute:
            changed = _absolute(changed, made, drawn < len(tables))
        return recorded(changed, self, applications=counts, **facts(made, machine))

    def tables(self) -> dict[str, Table]:
        """Return the tables of the applications by name."""
        if self.file is not None:
            return read_profiles(self.file, least_rows=self.least_rows)
        packed = importlib.resources.files("gridsim.workload.transform") / "npb_standin.csv"
        with importlib.resources.as_file(packed) as path:
            return read_profiles(path, least_rows=self.least_rows)


def _drawn(requested: IntArray, tables: Sequence[Table], uniform: Any) -> IntArray:
    """Return the application of each job for its *uniform* number; sequential jobs have the number of applications."""
    drawn = np.full(len(requested), len(tables), dtype=np.int64)
    for cores in np.unique(requested[requested > 1]).tolist():
        able = [place for place, table in enumerate(tables) if table.first <= cores <= table.last]
        among = np.array(able or range(len(tables)), dtype=np.int64)
        rows = requested == cores
        drawn[rows] = among[(uniform[rows] * len(among)).astype(np.int64)]
    return drawn


def _ranges(requested: IntArray, tables: Sequence[Table], drawn: IntArray, machine: int) -> tuple[IntArray, IntArray]:
    minimum, maximum = requested.copy(), requested.copy()
    for place, table in enumerate(tables):
        rows = drawn == place
        minimum[rows], maximum[rows] = profile_range(requested[rows], table, machine)
    return minimum, maximum


def profile_range(requested: IntArray, table: Table, machine: int) -> tuple[IntArray, IntArray]:
    """Return the smallest and largest number of cores of jobs that request *requested* and scale like a table.

    Examples
    --------
    >>> profile_range(np.array([2, 100]), Table([(4, 100), (64, 18)]), 128)
    (array([2, 4]), array([ 64, 100]))
    """
    return np.minimum(requested, table.first), np.minimum(np.maximum(requested, table.last), machine)


def _absolute(workload: Workload, made: Moldable, scaled: Any) -> Workload:
    """Return the jobs with the run times of their tables; estimates change in the same proportion."""
    own = to_us(made.relative[made.first[made.curve] + workload.cores - 1])
    runtime = np.where(scaled, np.maximum(own, 1), workload.runtime)
    estimate = np.maximum(np.rint(workload.estimate * (runtime / workload.runtime)).astype(np.int64), 1)
    return replace(workload, runtime=runtime, estimate=estimate, logged={})


def read_profiles(path: str | Path, *, least_rows: int | None = None) -> dict[str, Table]:
    """Return tables of applications by name, in the order of the file.

    Parameters
    ----------
    least_rows : int, optional
        Leave out applications with fewer rows after rows without gain are dropped.

    Raises
    ------
    InputError
        For a file that cannot be read, an invalid line, an application with one row (unless those are left out), and a
        file without applications; with file, line and value.
    """
    rows: dict[str, list[tuple[int, float]]] = {}
    for application, cores, seconds in _rows(path):
        rows.setdefault(application, []).append((cores, seconds))
    if least_rows is not None:
        rows = {application: table for application, table in rows.items() if len(table) > 1}
    tables = {}
    for application, table in rows.items():
        try:
            tables[application] = Table(table)
        except InputError as error:
            raise InputError(f"{application}: {error.message}", path=path, field=error.field) from error
    kept = {
        application: table
        for application, table in tables.items()
        if least_rows is None or len(table.points.cores) >= least_rows
    }
    if not kept:
        least = "" if least_rows is None else f" with {least_rows} or more rows that become faster"
        raise InputError(f"contains no application{least}", path=path)
    return kept


def _rows(path: str | Path) -> Iterator[tuple[str, int, float]]:
    header, rows = csv_records(read_text(path).splitlines(), path)
    known = next((columns for columns in _COLUMNS if set(columns) <= set(header)), None)
    if known is None:
        wanted = " or ".join(", ".join(columns) for columns in _COLUMNS)
        raise InputError(f"has columns {', '.join(header or ('none',))}; expected {wanted}", path=path, line=1)
    for line, row in rows:
        yield _row(row, known, path, line)


def _row(row: Mapping[str, str], known: Sequence[str], path: str | Path, line: int) -> tuple[str, int, float]:
    *names, cores, seconds = known
    for field, convert, rule in ((cores, int, "a whole number from 1"), (seconds, float, "seconds above 0")):
        try:
            good = 0 < convert(row[field]) < np.inf
        except ValueError:
            good = False
        if not good:
            raise InputError(f"has {row[field]!r}; expected {rule}", path=path, line=line, field=field)
    return ".".join(row[name] for name in names), int(row[cores]), float(row[seconds])
