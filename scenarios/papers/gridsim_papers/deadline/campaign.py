"""Published campaigns on guaranteed deadlines: their schedules, and the numbers stored of each.

A *unit* is one window of a log with one stream of random numbers, under all conditions and policies. Each workload is
generated once, higher loads contain the jobs of lower loads, and all policies run the same jobs. A *point* is one
schedule: the construction of its workload, and its policy. Experiments are sets of points under the names of the
claims. Points that several experiments share are run once, so rows contain the conditions of a run, not its experiment.

References
----------
Islam, Balaji, Sadayappan, Panda, "QoPS: a QoS based scheme for parallel job scheduling", OSU-CISRC-4/03-TR21 and
JSSPP 2003; "Towards provision of quality of service guarantees in job scheduling", CLUSTER 2004. Sections 8 and 9 of
the project's specification of deadline admission.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from gridsim import InputError, Platform, Record, Workload, simulate
from gridsim.errors import UnknownNameError
from gridsim.workload.synthetic.packed import Packed
from gridsim_papers.deadline.schedules import (
    BASELINES,
    EXTRA_METRICS,
    Point,
    Replicate,
    numbers_of,
    of_single_cores,
    row_of,
)
from gridsim_papers.experiments import Grid, experiments, schedules
from gridsim_papers.units import Row, Table, Tabled, Unit, is_one_of
from gridsim_papers.windows import LOGS, log_files, logs_there, seed_of, window_of

__all__ = [
    "BASELINES",
    "COLUMNS",
    "EXTRA_METRICS",
    "LOGS",
    "PACKED",
    "SCHEMES",
    "DeadlineCampaign",
    "Point",
    "Unit",
    "feedback",
    "read_rows",
]

SCHEMES = ("qops", "msb", "mrt")
"""Policies that guarantee deadlines, from the report and the JSSPP paper."""

PACKED = ("packed-static", "packed-dynamic", "packed-early")
"""Packed workloads, used instead of logs: ``window`` is the replicate and ``method`` is empty.

In the first half of the replicates, the whole rectangle of cores and time is divided into jobs. In the second half,
each core is packed separately, and every job has one core.
"""

_LARGEST_RANDOM = 50.0
"""Larger tolerances mean that users accept any offer; random draws of them have the same effect."""

TABLE = Table(
    {
        "log": str,
        "window": int,
        "stream": int,
        "method": str,
        "load": float,
        "stringency": float,
        "fraction": float,
        "tolerance": float,
        "random_tolerance": "True".__eq__,
        "estimates": str,
        "scheme": str,
        "metric": str,
        "group": str,
        "value": float,
    }
)

COLUMNS = tuple(TABLE.columns)
"""Columns of the stored rows; ``group`` is empty for all jobs."""

Wanted = tuple[Point, tuple[str, ...]]
"""A point, and the kinds of groups whose numbers are stored in addition to those of all jobs."""


def feedback(slack_factor: float = 1.0, *, kill_restart: bool = False) -> str:
    """Return the name of FQoPS with slack and kill-and-restart, as in the rows.

    Examples
    --------
    >>> feedback(), feedback(1.5), feedback(2, kill_restart=True)
    ('fqops', 'fqops?slack_factor=1.5', 'fqops?slack_factor=2&kill_restart=true')
    """
    parameters = [f"slack_factor={slack_factor:g}"] * (slack_factor != 1) + ["kill_restart=true"] * kill_restart
    return "?".join(["fqops", *["&".join(parameters)] * bool(parameters)])


@dataclass(frozen=True, slots=True)
class DeadlineCampaign(Tabled):
    """Windows of logs by loads, deadlines, users and policies.

    Parameters
    ----------
    logs : sequence of str
        Names from `LOGS`.
    windows : int
        Maximum number of windows of each log, from its beginning.
    streams : int
        Streams of random numbers for each window. A stream decides which jobs are duplicated and when, which
        jobs have a deadline, and the tolerance of each user. Load by expansion uses the first stream only.
    jobs : int
        Jobs of a window.
    experiments : sequence of str
        Names of experiments, or patterns such as ``A-*``.
    fewer : mapping of str to int
        Number of windows of expensive experiments, by name or pattern; the first matching pattern applies.
    loads : sequence of float
        Loads of the report and of the JSSPP paper.
    service_loads, slack_loads : sequence of float
        Loads of the 2004 paper, without and with slack; kill-and-restart uses the last slack load.
    tolerances : sequence of float
        Tolerances of users in the 2004 paper.
    slack_tolerances, slack_factors, kill_tolerances : sequence of float
        Tolerances and slack factors of the experiments on slack and on kill-and-restart.
    packed : int
        Replicates of each kind of packed workload; half of them consist of jobs with one core.
    packed_cores, packed_jobs : int
        Cores and jobs of packed workloads.
    ctc_cores : int
        Cores of CTC: 430 in studies of its time, 338 in the header of the log.
    seed : int
        Seed of all random streams.
    """

    table: ClassVar[Table] = TABLE
    may_grow: ClassVar[tuple[str, ...]] = ("windows", "streams", "logs")
    logs: tuple[str, ...] = ("ctc", "sdsc")
    windows: int = 15
    streams: int = 1
    jobs: int = 5_000
    experiments: tuple[str, ...] = ("*",)
    fewer: Mapping[str, int] = field(default_factory=dict)
    loads: tuple[float, ...] = (1.0, 1.2, 1.4, 1.6)
    service_loads: tuple[float, ...] = (1.0, 1.3, 1.6)
    slack_loads: tuple[float, ...] = (1.3, 1.6)
    tolerances: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0, 100.0, 1000.0)
    slack_tolerances: tuple[float, ...] = (2.0, 3.0, 4.0, 6.0)
    slack_factors: tuple[float, ...] = (1.0, 1.2, 1.5, 2.0, 3.0, 4.0)
    kill_tolerances: tuple[float, ...] = (2.0, 4.0)
    packed: int = 60
    packed_cores: int = 32
    packed_jobs: int = 128
    ctc_cores: int = 430
    seed: int = 1

    def __post_init__(self) -> None:
        for log in self.logs:
            if log not in LOGS:
                raise UnknownNameError("log", log, LOGS)
        for name in ("windows", "streams", "jobs"):
            if getattr(self, name) < 1:
                raise InputError(f"{getattr(self, name)} {name}; expected at least 1", field=name)
        known = [name for log in (*LOGS, *PACKED) for name in self._experiments(log)]
        for pattern in (*self.experiments, *self.fewer):
            if not any(is_one_of(name, [pattern]) for name in known):
                raise UnknownNameError("experiment", pattern, known)

    def on(self, data: str | Path | None) -> DeadlineCampaign:
        """Return this campaign on the available logs, or on the model when no log is available."""
        return replace(self, logs=logs_there(self.logs, data))

    def reads(self, data: Path | None) -> list[Path]:
        """Files of the logs."""
        return log_files(self.logs, data)

    def experiments_on(self, log: str) -> dict[str, list[Wanted]]:
        """Points of each selected experiment that includes a log, by the name of the experiment."""
        return {name: points for name, points in self._experiments(log).items() if is_one_of(name, self.experiments)}

    def units(self) -> list[Unit]:
        """Units in execution order, which alternates between logs so that their window counts stay equal."""
        packed = [Unit(log, 0, 0) for log in PACKED]
        windows = [
            Unit(log, window, number)
            for number, window, log in product(range(self.streams), range(self.windows), self.logs)
            if window < LOGS[log].windows
        ]
        return [unit for unit in (*packed, *windows) if self.points(unit)]

    def points(self, unit: Unit) -> dict[Point, set[str]]:
        """Schedules of a unit, each with the kinds of groups that are stored."""
        points: dict[Point, set[str]] = {}
        for name, wanted in self.experiments_on(unit.log).items():
            if unit.window >= self._windows_of(name):
                continue
            for point, kinds in wanted:
                if unit.part == 0 or point.method != "expansion":
                    points.setdefault(point, set()).update(kinds)
        return points

    def _windows_of(self, experiment: str) -> int:
        found = (windows for pattern, windows in self.fewer.items() if fnmatchcase(experiment, pattern))
        return next(found, self.windows)

    def _experiments(self, log: str) -> dict[str, list[Wanted]]:
        tables = ("packed",) if log in PACKED else ("every-log",) if log == "sdsc" else ("every-log", "one-log")
        short = log.removeprefix("packed-")
        return {
            name.format(log=short): [wanted for grid in grids for wanted in self._grid(grid)]
            for name, grids in experiments("deadline", *tables).items()
        }

    def _grid(self, grid: Grid) -> Iterator[Wanted]:
        sets = {
            "@baselines": BASELINES,
            "@guarantees": SCHEMES,
            "@slack": [feedback(factor) for factor in self.slack_factors],
            "@kill-restart": [feedback(factor, kill_restart=True) for factor in self.slack_factors],
        }
        groups = tuple(grid.get("groups", ()))
        return ((Point(*setting), groups) for setting in schedules("deadline", grid, self, sets))

    @property
    def drawn_tolerances(self) -> list[float]:
        """Points of users with randomly drawn tolerances."""
        return [factor for factor in self.tolerances if factor <= _LARGEST_RANDOM]

    def rows(self, unit: Unit, data: str | Path | None = None) -> list[Row]:
        """Numbers of one unit.

        Parameters
        ----------
        data : path, optional
            Folder of the archive's logs.
        """
        points, named = self.points(unit), unit.named("log", "window", "stream")
        if unit.log in PACKED:
            return [
                row_of({**named, "window": number}, point, *number_of)
                for number in range(self.packed)
                for point in points
                for number_of in numbers_of(self._packed(unit.log, number, point), point)
            ]
        replicate = Replicate(self.window(unit, data), self.cores(unit.log), self.seed, unit)
        kinds: dict[tuple[Any, ...], set[str]] = {}
        for point, wanted in points.items():
            kinds.setdefault(point.schedule, set()).update(wanted)
        found: dict[tuple[Any, ...], list[tuple[str, str, float]]] = {}
        rows: list[Row] = []
        for point in points:
            if point.schedule not in found:
                found[point.schedule] = list(replicate.numbers(point, kinds[point.schedule]))
            rows += [row_of(named, point, *number_of) for number_of in found[point.schedule]]
        return rows

    def cores(self, log: str) -> int:
        """Cores of the simulated machine of a log."""
        return self.ctc_cores if log == "ctc" else LOGS[log].cores

    def window(self, unit: Unit, data: str | Path | None) -> Workload:
        """Jobs of a unit as logged, with the first submission at 0."""
        cores = self.cores(unit.log)
        return window_of(
            unit.log, unit.window, jobs=self.jobs, cores=cores, data=data, seed=self.seed, study="deadline"
        )

    def _packed(self, log: str, number: int, point: Point) -> Record:
        seed = seed_of(self.seed, "deadline", "packed", number)
        packed = Packed(
            kind=log.removeprefix("packed-"),  # type: ignore[arg-type]  # one of PACKED
            cores=self.packed_cores,
            jobs=self.packed_jobs,
            r=point.load,
        )
        workload = packed.generate(seed) if number < self.packed / 2 else of_single_cores(packed, seed)
        return simulate(workload, platform=Platform.single(self.packed_cores), policy=point.scheme).record


read_rows = TABLE.read
