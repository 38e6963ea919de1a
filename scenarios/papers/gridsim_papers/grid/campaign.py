"""The published campaign on a grid: its schedules, and the numbers stored of each.

A *unit* is one workload at every load under every policy. The schedules of a unit are compared, so they are simulated
together: the cumulative completion of all policies at one load counts up to the longest of their makespans. Units are
independent, and their numbers do not depend on the process or the order of execution.

References
----------
Burkimsher, Bate and Indrusiak, "A survey of scheduling metrics and an improved ordering policy for list schedulers
operating on workloads with dependencies and a wide variation in execution times", FGCS 29(8), 2013, sections 4.3, 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from gridsim import InputError, Platform, Record, Workload, simulate
from gridsim.campaign.run import Made
from gridsim.errors import UnknownNameError
from gridsim.metrics.dag import dag_metrics, job_columns, slr_by_decile
from gridsim.metrics.schedule import Schedule
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, RouterSpec
from gridsim.model.random_streams import stream
from gridsim.model.time import MICROSECOND
from gridsim.workload.synthetic.grid import KINDS_OF_JOBS, KINDS_OF_TASKS, LOADS, Grid
from gridsim_papers.units import Row, Table, Tabled, Unit

__all__ = [
    "COLUMNS",
    "POLICIES",
    "GridCampaign",
    "Row",
    "as_run",
    "read_rows",
    "schedule_rows",
]

POLICIES = ("p-slr", "srtf", "fair-share", "random", "fifo-task", "fifo-job", "lrtf")
"""Ordering policies of the paper."""

TABLE = Table(
    {
        "kind": str,
        "workload": int,
        "load": float,
        "policy": str,
        "metric": str,
        "value": float,
        "decile": lambda text: int(text) if text else None,
    }
)

COLUMNS = tuple(TABLE.columns)
"""Columns of the stored rows; ``decile`` is empty for whole schedules, ``policy`` for numbers of a workload."""

WORKLOAD = ""
"""Policy of numbers that describe a workload instead of a schedule."""


@dataclass(frozen=True, slots=True)
class GridCampaign(Tabled):
    """Workloads by loads by policies on one router over clusters of equal size, the last of the second kind.

    Parameters
    ----------
    workloads : int
        Workloads of each kind, numbered from 1.
    kinds, policies : sequence of str
        Kinds of workloads; orderings.
    loads : sequence of float
        Arriving work divided by the capacity of the grid.
    part : float
        Number of jobs of a workload, and their total execution time, as a fraction of the published ones. Sizes of
        jobs do not change.
    sizes : {"paper", "loguniform"}
        Job execution times as published, or over five decades, as in industrial logs, where the paper says ``log``.
    cluster_cores : int
        Cores of each of the four clusters.
    random_hold : bool
        Whether the task drawn by the policy ``random`` stays first in the queue until it starts. Otherwise each
        scheduling cycle draws again, as in the published simulator.
    seed : int
        Seed of all random streams; each workload and each run under the policy ``random`` has a separate stream.

    Examples
    --------
    >>> GridCampaign(workloads=30).schedules
    5250
    """

    table: ClassVar[Table] = TABLE
    may_grow: ClassVar[tuple[str, ...]] = ("workloads", "kinds")
    workloads: int = 30
    kinds: tuple[str, ...] = tuple(KINDS_OF_JOBS)
    policies: tuple[str, ...] = POLICIES
    loads: tuple[float, ...] = LOADS
    part: float = 1.0
    sizes: Literal["paper", "loguniform"] = "paper"
    cluster_cores: int = 1_000
    random_hold: bool = True
    seed: int = 1

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS_OF_JOBS:
                raise UnknownNameError("kind of workload", kind, KINDS_OF_JOBS)
        if self.sizes not in ("paper", "loguniform"):
            raise UnknownNameError("value of sizes", self.sizes, ("paper", "loguniform"))
        if self.workloads < 1 or not 0 < self.part <= 1:
            raise InputError(
                f"{self.workloads} workloads of {self.part} of the jobs; expected at least 1, and a part up to 1"
            )

    @property
    def schedules(self) -> int:
        """The number of schedules."""
        return len(self.kinds) * self.workloads * len(self.loads) * len(self.policies)

    @property
    def platform(self) -> Platform:
        """Three clusters of the first kind and one of the second; transfers take a fifth of the computing time."""
        kinds = (*3 * KINDS_OF_TASKS[:1], KINDS_OF_TASKS[1])
        clusters = [ClusterSpec(f"cluster{at}", self.cluster_cores, kind) for at, kind in enumerate(kinds, start=1)]
        return Platform(RouterSpec("root", tuple(clusters)), network=Network(ccr="1/5"))

    def units(self) -> list[Unit]:
        """Workloads, with the most expensive kinds first."""
        kinds = sorted(self.kinds, key=list(KINDS_OF_JOBS).index, reverse=True)
        return [Unit(kind, number) for kind in kinds for number in range(1, self.workloads + 1)]

    def workload(self, kind: str, number: int, load: float) -> Workload:
        """One workload, of which only the arrivals depend on the load."""
        return self._grid(kind, number, load).generate(self.seed)

    def _grid(self, kind: str, number: int, load: float) -> Grid:
        law = KINDS_OF_JOBS[kind]
        jobs = max(1, round(self.part * law.jobs))
        return Grid(
            kind=kind,  # type: ignore[arg-type]  # checked in __post_init__
            number=number,
            load=load,
            cores=self.platform.cores,
            sizes="loguniform" if self.sizes == "loguniform" and law.sizes == "log" else None,
            jobs=jobs,
            total=10**10 * jobs // law.jobs,
        )

    def rows(self, unit: Unit, data: str | Path | None = None) -> list[Row]:
        """Numbers of one unit: every load, every policy. *data* is not used."""
        grid = self._grid(unit.log, unit.window, 1.0)
        jobs = grid.generate(self.seed)
        return [
            row
            for load in self.loads
            for row in self._rows_at(unit.log, unit.window, load, grid.at_load(jobs, load, self.seed))
        ]

    def made(self, unit: Unit, data: Path | None = None) -> Made:
        """Rows of one unit, as in its file; its tasks are counted as jobs."""
        rows = self.rows(unit, data)
        tasks = sum(int(row["value"]) for row in rows if row["metric"] == "tasks") * len(self.policies)
        return Made(self.table.text(rows).encode(), {}, len(self.loads) * len(self.policies), tasks)

    def _rows_at(self, kind: str, number: int, load: float, workload: Workload) -> Iterator[Row]:
        platform = self.platform
        names = {"kind": kind, "workload": number, "load": load}
        for metric, value in _of_workload(workload, platform).items():
            yield _row(names, WORKLOAD, metric, value)
        seed = int(stream(self.seed, "grid", kind, number, "run", round(1000 * load)).integers(2**32))
        runs = {policy: as_run(policy, random_hold=self.random_hold) for policy in self.policies}
        records = {
            policy: simulate(workload, platform=platform, policy=it, seed=seed).record for policy, it in runs.items()
        }
        yield from schedule_rows(records, names)


def as_run(policy: str, *, random_hold: bool) -> str:
    """The policy that is run for the name in the rows."""
    return "random?hold=false" if policy == "random" and not random_hold else policy


def schedule_rows(records: Mapping[str, Record], names: Mapping[str, Any], *, tick: int = MICROSECOND) -> Iterator[Row]:
    """Numbers of the schedules of one workload under several policies, in the units of `gridsim.metrics.dag`.

    Parameters
    ----------
    records : mapping of str to Record
        Records by policy. Cumulative completion counts up to the longest of their makespans.
    names : mapping
        ``kind``, ``workload`` and ``load`` of the rows.
    tick : int
        Microseconds.
    """
    schedules = {policy: Schedule.from_record(record, tick=tick) for policy, record in records.items()}
    base = max(schedule.from_origin().makespan for schedule in schedules.values())
    for policy, schedule in schedules.items():
        numbers = dag_metrics(schedule, base=base)
        numbers["least_slr"] = float(job_columns(schedule)["slr"].min())
        numbers |= _queue(records[policy])
        for metric, value in numbers.items():
            yield _row(names, policy, metric, value)
        deciles = slr_by_decile(schedule)
        for metric, column in (("mean_slr", deciles.mean), ("worst_slr", deciles.worst)):
            for decile, value in enumerate(column.tolist(), start=1):
                yield _row(names, policy, metric, value, decile)


def _row(names: Mapping[str, Any], policy: str, metric: str, value: float, decile: int | None = None) -> Row:
    return {**names, "policy": policy, "metric": metric, "value": value, "decile": decile}


def _of_workload(workload: Workload, platform: Platform) -> dict[str, float]:
    """Numbers of a workload: load until the last arrival, in total and by kind of task; cores of a task; tasks."""
    tasks = workload.tasks
    assert tasks is not None
    arrived = tasks.job_rows() < len(workload) - 1
    work = tasks.cores * tasks.runtime * arrived / MICROSECOND
    span = float(workload.submit[-1] - workload.submit[0]) / MICROSECOND
    numbers = {
        "offered_load": float(work.sum()) / platform.cores / span,
        "mean_cores": float(tasks.cores.mean()),
        "tasks": float(len(tasks)),
    }
    for code, kind in enumerate(tasks.kinds):
        cores = sum(cluster.cores for cluster in platform.clusters() if cluster.kind == kind)
        numbers[f"offered_load_{kind.lower()}"] = float(work[tasks.kind == code].sum()) / cores / span
    return numbers


def _queue(record: Record) -> dict[str, float]:
    """Mean and maximum of ready waiting tasks, and gaps between completions, both from first to last arrival."""
    workload, tasks = record.workload, record.tasks
    first, last = int(workload.submit[0]), int(workload.submit[-1])
    if tasks is None:
        ready, start, end, cluster = workload.submit, record.start_us, record.end_us, record.cluster
        runtime = workload.runtime
    else:
        ready, start, end, cluster = tasks.ready_us, tasks.start_us, tasks.end_us, tasks.cluster
        runtime = workload.tasks.runtime if workload.tasks is not None else workload.runtime
    waited = np.maximum(np.minimum(start, last) - np.clip(ready, first, last), 0)
    came = np.sort(ready)
    instants = came[came <= last]  # sort, so that the lookups take a fifth of the time
    level = np.searchsorted(came, instants, side="right")
    level -= np.searchsorted(np.sort(start), instants, side="right")
    gaps = [np.diff(np.sort(end[(cluster == one) & (end <= last)])) for one in np.unique(cluster)]
    gap = np.concatenate(gaps)
    return {
        "queue_mean": float(waited.sum(dtype=np.float64)) / max(last - first, 1),
        "queue_most": float(level.max(initial=0)),
        "completion_gap": float(np.quantile(gap, 0.95) / np.median(runtime)) if len(gap) else float("nan"),
    }


read_rows = TABLE.read
