"""The published evaluation on an industrial log: one cluster, rigid jobs, seven orderings, randomly drawn shares.

References
----------
Burkimsher, Bate and Indrusiak, FGCS 29(8), 2013, section 4.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from gridsim import InputError, Lublin, Platform, Record, Workload, read_workload, simulate
from gridsim.campaign.run import Made
from gridsim.model.platform import machine_cores
from gridsim.model.random_streams import stream
from gridsim.model.time import MICROSECOND
from gridsim_papers.grid.campaign import POLICIES, TABLE, Row, as_run, schedule_rows
from gridsim_papers.units import Table, Tabled, Unit

__all__ = ["DRAWN", "KIND", "LOG", "MINUTES", "IndustrialCampaign", "industrial_rows", "with_shares"]

LOG = Path("industrial-grid", "industrial-grid-5888.swf.gz")
"""Path of the industrial log, in the folder of the archive's logs or next to it."""

KIND = "industrial"
"""Kind of the rows; ``workload`` numbers the draws and is 1 for policies without random draws."""

MINUTES = "industrial-minutes"
"""Kind of the rows with a tick of one minute."""

DRAWN = ("random", "fair-share")
"""Policies with a random component: the order, or the share of each job."""

SHARES = 5

_MODEL_LOAD = 0.6
"""Offered load of the synthetic jobs, equal to that of the log."""


@dataclass(frozen=True, slots=True)
class IndustrialCampaign(Tabled):
    """The evaluation on one log, or on synthetic jobs when the log is absent.

    Parameters
    ----------
    log : {"industrial", "model"}
        Source of the jobs; the model is that of Lublin and Feitelson.
    seeds : int
        Draws of the order and of the shares.
    random_hold : bool
        As in `gridsim_papers.grid.campaign.GridCampaign`.
    jobs, cores : int
        Of the model.
    """

    table: ClassVar[Table] = TABLE
    may_grow: ClassVar[tuple[str, ...]] = ()
    log: str = "industrial"
    seeds: int = 30
    random_hold: bool = True
    jobs: int = 5_000
    cores: int = 430

    def on(self, data: str | Path | None) -> IndustrialCampaign:
        """This campaign on the log when it is available, otherwise on the model."""
        return replace(self, log="industrial" if _place(data) is not None else "model")

    def reads(self, data: Path | None) -> list[Path]:
        """The log."""
        place = _place(data)
        return [place] if self.log == "industrial" and place is not None else []

    def units(self) -> list[Unit]:
        """The single unit."""
        return [Unit(self.log)]

    def rows(self, unit: Unit, data: str | Path | None = None) -> list[Row]:
        """Numbers of every policy."""
        workload, cores = self._jobs(unit, data)
        return list(industrial_rows(workload, cores, seeds=self.seeds, random_hold=self.random_hold))

    def made(self, unit: Unit, data: Path | None = None) -> Made:
        """Rows as in their file; reports the schedules and jobs of each policy and draw."""
        rows = self.rows(unit, data)
        jobs = [int(row["value"]) for row in rows if row["metric"] == "jobs"]
        return Made(self.table.text(rows).encode(), schedules=len(jobs), jobs=sum(jobs))

    def _jobs(self, unit: Unit, data: str | Path | None) -> tuple[Workload, int]:
        if unit.log == "model":
            model = Lublin(jobs=self.jobs, cores=self.cores, load=_MODEL_LOAD, realised=True, f=0)
            return _whole_seconds(model.generate(int(stream(1, "industrial", "model").integers(2**32)))), self.cores
        place = _place(data)
        if place is None:
            raise InputError(f"no {LOG} in the folder of the logs or beside it", field="data")
        workload = read_workload(place)
        return workload, machine_cores(workload, None)[0]


def _whole_seconds(workload: Workload) -> Workload:
    """Submits rounded down and runtimes rounded up, as in a log."""
    runtime = -(-workload.runtime // MICROSECOND) * MICROSECOND
    return replace(
        workload, submit=workload.submit - workload.submit % MICROSECOND, runtime=runtime, estimate=runtime.copy()
    )


def _place(data: str | Path | None) -> Path | None:
    """The file of the log."""
    places = () if data is None else (Path(data) / LOG, Path(data).resolve().parent / LOG)
    return next((place for place in places if place.is_file()), None)


def with_shares(workload: Workload, seed: int, shares: int = SHARES) -> Workload:
    """Jobs assigned to equal shares at random, with exact estimates."""
    drawn = stream(seed, "industrial", "shares").integers(0, shares, len(workload))
    paths = tuple(f"/share{place}" for place in range(1, shares + 1))
    return replace(
        workload,
        estimate=workload.runtime.copy(),
        labels={**workload.labels, "share": drawn},
        names={**workload.names, "share": paths},
    )


def industrial_rows(workload: Workload, cores: int, *, seeds: int = 30, random_hold: bool = True) -> Iterator[Row]:
    """Rows of every policy, for each of *seeds* under policies in `DRAWN`; then P-SLR with a tick of one minute.

    Policy ``fifo-job`` has the further metric ``starts_equal``: the share of jobs that start at their logged start,
    when the log contains waits.

    Parameters
    ----------
    workload : Workload
        Rigid jobs; walltime estimates are replaced by runtimes.
    cores : int
        Of the cluster.
    seeds : int
        Draws of the order and of the shares.
    random_hold : bool
        As in `gridsim_papers.grid.campaign.GridCampaign`.
    """
    if workload.tasks is not None:
        raise InputError("has jobs of several tasks; expected rigid ones", field="workload")
    load = {"load": round(workload.offered_load(cores), 4)}
    runs = [(policy, 1) for policy in POLICIES]
    runs += [(policy, seed) for policy in DRAWN for seed in range(2, seeds + 1)]
    records = {
        (policy, seed): _run(workload, cores, as_run(policy, random_hold=random_hold), seed) for policy, seed in runs
    }
    labels = {f"{policy} {seed}": record for (policy, seed), record in records.items()}
    for row in schedule_rows(labels, {"kind": KIND, "workload": 1, **load}):
        policy, seed = row["policy"].split()
        yield {**row, "policy": policy, "workload": int(seed)}
    logged = workload.logged.get("wait")
    if logged is not None:
        equal = float(np.mean(records["fifo-job", 1].wait == logged))
        names = {"kind": KIND, "workload": 1, **load}
        yield {**names, "policy": "fifo-job", "metric": "starts_equal", "value": equal, "decile": None}
    if not ((workload.submit % (60 * MICROSECOND)).any() or (workload.runtime % (60 * MICROSECOND)).any()):
        record = _run(workload, cores, "p-slr", 1, tick=60.0)
        yield from schedule_rows({"p-slr": record}, {"kind": MINUTES, "workload": 1, **load})


def _run(workload: Workload, cores: int, policy: str, seed: int, *, tick: float = 1.0) -> Record:
    jobs = with_shares(workload, seed)
    return simulate(jobs, platform=Platform.single(cores), policy=policy, seed=seed, tick=tick).record
