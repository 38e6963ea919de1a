"""The published study of moldable jobs: its schedules, and the numbers stored of each.

A *unit* is one window of a log at one base load, under all conditions: a workload is generated once, and all policies
run the same jobs. A *point* is one schedule: the construction of its workload, and its policy. The rigid baseline
belongs to every setting; its schedule depends only on the load and is simulated once. Experiments are sets of points
under the names of the claims. Rows contain the conditions of a run, not its experiment.

References
----------
Srinivasan, Krishnamoorthy, Sadayappan, "A robust scheduling strategy for moldable scheduling of parallel jobs",
CLUSTER 2003. Section 8 of the project's specification of moldable jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from gridsim import InputError, Platform, Record, Workload, simulate
from gridsim.errors import UnknownNameError
from gridsim.metrics.utilisation import makespan, offered_load, utilisation
from gridsim.model.random_streams import stream
from gridsim.workload.transform.duplicate import Duplicate, Expand
from gridsim.workload.transform.estimates import ExactEstimates
from gridsim.workload.transform.load_factor import LoadFactor, OfferedLoad
from gridsim.workload.transform.moldable import MoldableJobs
from gridsim.workload.transform.profiles import Profiles
from gridsim_papers.experiments import Grid, experiments, schedules
from gridsim_papers.moldable.changes import LEAST_JOBS, categories, category_responses, promise_waits
from gridsim_papers.units import Row, Table, Tabled, Unit, is_one_of
from gridsim_papers.windows import LOGS, log_files, logs_there, window_of

__all__ = [
    "BASELINE",
    "BASES",
    "COLUMNS",
    "COMBINED",
    "EARLIER",
    "MEASURED",
    "METHODS",
    "PROFILES",
    "MoldableCampaign",
    "Point",
    "Unit",
    "read_rows",
]

BASELINE = "conservative"
"""Rigid baseline: every job runs on its requested cores."""

COMBINED = ("moldable-combined", "moldable-combined-2003")
"""The scheme proposed by the paper, with weight factors 2 and 1."""

EARLIER = ("moldable-submit", "moldable-start")
"""Its predecessors, weight factor 2."""

GREEDY = "moldable-greedy?choices=all"

LANES = tuple(f"moldable-base?reserve={rule}" for rule in ("category", "xfactor(k=4)", "xfactor(k=4,others=category)"))
"""The base with a promise for each category, for jobs with a long wait, and for both."""

WAITED = LANES[1]
"""The scheme whose promises are analysed."""

WEIGHTS = ("moldable-base?weight=sqrt", "moldable-base?weight=sqrt-parallel")

SETS: Mapping[str, Sequence[str]] = {
    "@combined": COMBINED,
    "@earlier": EARLIER,
    "@greedy": (GREEDY,),
    "@lanes": LANES,
    "@waited": (WAITED,),
    "@weights": WEIGHTS,
}
"""Names for groups of policies in the experiments."""

BASES = ("0.65", "as-logged")
"""Offered loads of the windows at load factor 100."""

METHODS = ("gaps", "duplication", "expansion")
"""Methods to raise the load: shorter gaps between submits, duplicates of jobs at random instants, or longer jobs."""

PROFILES = ("npb-standin", "npb-measured")
"""Runtime tables assigned to jobs: shipped with gridsim, or measured, from the folder of the data."""

MEASURED = Path("npb", "npb-pi4-cluster.csv")
"""Path of measured runs of the NAS Parallel Benchmarks, in the folder of the logs or next to it."""

_MEASURED_ROWS = 3
"""Applications with fewer rows that gain are omitted."""

TABLE = Table(
    {
        "log": str,
        "window": int,
        "base": str,
        "method": str,
        "load_factor": float,
        "sigma": float,
        "range_factor": float,
        "profiles": str,
        "scheme": lambda text: text.replace("besides=", "others="),  # the name in older stores
        "metric": str,
        "group": str,
        "value": float,
    }
)

COLUMNS = tuple(TABLE.columns)
"""Columns of the rows; ``group`` is empty for all jobs, ``profiles`` if range factor and sigma apply to all jobs."""

_MODEL_LOAD = 0.8
"""Offered load of the unscaled windows of the model, similar to that of SDSC."""


class Point(NamedTuple):
    """One schedule of a unit, with the fields of the rows.

    Attributes
    ----------
    method : str
        One of `METHODS`.
    load_factor : float
        Percent.
    sigma, range_factor : float
        As in `gridsim.workload.transform.moldable.MoldableJobs`; 0 and 1 with profiles.
    profiles : str
        One of `PROFILES`, or empty.
    scheme : str
        The policy.
    """

    method: str = "gaps"
    load_factor: float = 100.0
    sigma: float = 0.0
    range_factor: float = 1.0
    profiles: str = ""
    scheme: str = BASELINE

    @property
    def trace(self) -> tuple[str, float]:
        """Key of the rigid jobs: at load factor 100 they are those of the window, with any method."""
        return ("" if self.load_factor == 100 else self.method), self.load_factor


@dataclass(frozen=True, slots=True)
class MoldableCampaign(Tabled):
    """Windows of logs by base loads, load factors, scalability, ranges and policies.

    Parameters
    ----------
    logs : sequence of str
        Names from `gridsim_papers.windows.LOGS`.
    windows : int
        Maximum number of windows of each log, from its beginning.
    jobs : int
        Jobs of a window.
    bases : sequence of str
        Offered loads of each window at load factor 100: a number, or ``as-logged``.
    experiments : sequence of str
        Names of experiments, or patterns such as ``mold-fig*``.
    load_factors, sigmas, range_factors : sequence of float
        Values of the whole grid.
    profiles : sequence of str
        Names from `PROFILES`.
    ctc_cores : int
        Cores of CTC: 430 in studies of its time, 338 in the header of the log.
    seed : int
        Seed of all random streams.
    """

    table: ClassVar[Table] = TABLE
    may_grow: ClassVar[tuple[str, ...]] = ("windows", "logs", "bases")
    logs: tuple[str, ...] = ("ctc", "sdsc")
    windows: int = 15
    jobs: int = 5_000
    bases: tuple[str, ...] = BASES
    experiments: tuple[str, ...] = ("*",)
    load_factors: tuple[float, ...] = (100.0, 125.0, 150.0)
    sigmas: tuple[float, ...] = (0.0, 1.0, 2.0)
    range_factors: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    profiles: tuple[str, ...] = PROFILES
    ctc_cores: int = 430
    seed: int = 1

    def __post_init__(self) -> None:
        for name, known in (("logs", tuple(LOGS)), ("profiles", PROFILES)):
            for value in getattr(self, name):
                if value not in known:
                    raise UnknownNameError(
                        name.removesuffix("s") if name == "logs" else "set of profiles", value, known
                    )
        for name in ("windows", "jobs"):
            if getattr(self, name) < 1:
                raise InputError(f"{getattr(self, name)} {name}; expected at least 1", field=name)
        for base in self.bases:
            if _offered(base) is None and base != "as-logged":
                raise InputError(f"a base load of '{base}'; expected a number above 0 or 'as-logged'", field="bases")
        known_experiments = list(self._all())
        for pattern in self.experiments:
            if not any(is_one_of(name, [pattern]) for name in known_experiments):
                raise UnknownNameError("experiment", pattern, known_experiments)

    def on(self, data: str | Path | None) -> MoldableCampaign:
        """This campaign on the available logs and profiles, or on the model when no log is available."""
        there = tuple(name for name in self.profiles if name != "npb-measured" or _measured(data) is not None)
        return replace(self, logs=logs_there(self.logs, data), profiles=there)

    def reads(self, data: Path | None) -> list[Path]:
        """Files of logs and measured profiles."""
        profiles = _measured(data) if "npb-measured" in self.profiles else None
        return [*log_files(self.logs, data), *([] if profiles is None else [profiles])]

    def experiments_wanted(self) -> dict[str, list[Point]]:
        """Points of each selected experiment, by its name."""
        return {name: points for name, points in self._all().items() if is_one_of(name, self.experiments)}

    def units(self) -> list[Unit]:
        """Units in execution order."""
        return [
            Unit(log, window, base)
            for window in range(self.windows)
            for log in self.logs
            if window < LOGS[log].windows
            for base in self.bases
        ]

    def points(self) -> list[Point]:
        """Schedules of a unit without duplicates, with the baseline of each setting first."""
        points: dict[Point, None] = {}
        for wanted in self.experiments_wanted().values():
            for point in wanted:
                points.setdefault(point._replace(scheme=BASELINE))
                points.setdefault(point)
        return list(points)

    def _all(self) -> dict[str, list[Point]]:
        every = experiments("moldable", "experiments")
        return {name: [it for grid in grids for it in self._grid(grid)] for name, grids in every.items()}

    def _grid(self, grid: Grid) -> Iterator[Point]:
        for load_factor, sigma, method, range_factor, tables, scheme in schedules("moldable", grid, self, SETS):
            yield Point(method, float(load_factor), float(sigma), float(range_factor), tables, scheme)

    def rows(self, unit: Unit, data: str | Path | None = None) -> list[Row]:
        """Numbers of one unit.

        Parameters
        ----------
        data : path, optional
            Folder of the archive's logs.
        """
        replicate, named = Replicate(self, unit, data), unit.named("log", "window", "base")
        rigid: dict[tuple[str, float], list[tuple[str, str, float]]] = {}
        rows: list[Row] = []
        for point in self.points():
            if point.scheme != BASELINE:
                numbers = list(_numbers(replicate.record(point), point.scheme))
            else:
                if point.trace not in rigid:
                    rigid[point.trace] = list(_numbers(replicate.record(point), BASELINE))
                numbers = rigid[point.trace]
            rows += [
                {
                    **named,
                    **point._asdict(),
                    "metric": metric,
                    "group": group,
                    "value": value,
                }
                for metric, group, value in numbers
            ]
        return rows

    def cores(self, log: str) -> int:
        """Cores of the simulated machine of a log."""
        return self.ctc_cores if log == "ctc" else LOGS[log].cores


def _offered(base: str) -> float | None:
    try:
        return float(base) if float(base) > 0 else None
    except ValueError:
        return None


def _measured(data: str | Path | None) -> Path | None:
    """The file of the measured profiles."""
    places = () if data is None else (Path(data) / MEASURED, Path(data).resolve().parent / MEASURED)
    return next((place for place in places if place.is_file()), None)


class Replicate:
    """Workloads of one unit.

    Parameters
    ----------
    campaign : MoldableCampaign
        Definition of windows and machines.
    unit : Unit
        The unit of these workloads.
    data : path or None
        Folder of the archive's logs.
    """

    def __init__(self, campaign: MoldableCampaign, unit: Unit, data: str | Path | None) -> None:
        self.cores, self.seed, self.unit, self.data = campaign.cores(unit.log), campaign.seed, unit, data
        self.platform = Platform.single(self.cores)
        logged = window_of(
            unit.log,
            unit.window,
            jobs=campaign.jobs,
            cores=self.cores,
            data=data,
            seed=self.seed,
            study="moldable",
            model_load=_MODEL_LOAD,
        )
        load, exact = _offered(str(unit.part)), ExactEstimates().apply(logged)
        self.window = exact if load is None else OfferedLoad(load=load, cores=self.cores).apply(exact)
        self._traces: dict[tuple[str, float], Workload] = {}
        self._last: tuple[Point, Workload] | None = None

    def record(self, point: Point) -> Record:
        """The schedule of a point."""
        workload = self.trace(point) if point.scheme == BASELINE else self.workload(point)
        return simulate(workload, platform=self.platform, policy=point.scheme).record

    def workload(self, point: Point) -> Workload:
        """Moldable jobs of a point; the last result is cached."""
        point = point._replace(scheme="")
        if self._last is None or self._last[0] != point:
            self._last = point, self._molded(point)
        return self._last[1]

    def trace(self, point: Point) -> Workload:
        """Rigid jobs of a point."""
        if point.trace not in self._traces:
            self._traces[point.trace] = self._raised(point)
        return self._traces[point.trace]

    def _molded(self, point: Point) -> Workload:
        rigid = self.trace(point)
        if not point.profiles:
            ranges = MoldableJobs(range_factor=point.range_factor, sigma=point.sigma, cores=self.cores)
            return ranges.apply(rigid)
        if point.profiles == "npb-standin":
            tables = Profiles(cores=self.cores)
        else:
            tables = Profiles(file=str(_measured(self.data)), least_rows=_MEASURED_ROWS, cores=self.cores)
        return tables.apply(rigid, self._stream(point.profiles))

    def _raised(self, point: Point) -> Workload:
        load = point.load_factor / 100
        match point.trace[0]:
            case "duplication":
                return Duplicate(load, arrival="random").apply(self.window, self._stream("copies"))
            case "expansion":
                return Expand(load).apply(self.window)
            case _:
                return LoadFactor(point.load_factor).apply(self.window)

    def _stream(self, role: str) -> np.random.Generator:
        """Seed that both base loads and every load factor share, so that they have the same jobs."""
        return stream(self.seed, "moldable", self.unit.log, self.unit.window, role)


def _numbers(record: Record, scheme: str) -> Iterator[tuple[str, str, float]]:
    """Metric, group and value of all numbers of a schedule; categories with few jobs have no mean response."""
    yield "submitted", "", float(len(record))
    yield "completed", "", float(record.ran.sum())
    yield "response_mean", "", float(record.response[record.ran].mean())
    yield "utilisation", "", utilisation(record)
    yield "offered_load", "", offered_load(record)
    yield "makespan", "", makespan(record)
    for group, (jobs, mean) in category_responses(record).items():
        yield "completed", group, float(jobs)
        if jobs >= LEAST_JOBS:
            yield "response_mean", group, mean
    if scheme == WAITED:
        yield from _promises(record)


def _promises(record: Record) -> Iterator[tuple[str, str, float]]:
    """Number of jobs that got a promise by waiting, and their median wait until then, by category."""
    waits = promise_waits(record)
    for group, rows in categories(record, ~np.isnan(waits)).items():
        yield "promised", group, float(len(rows))
        yield "promise_wait_median", group, float(np.median(waits[rows]))


read_rows = TABLE.read
