"""The published evaluation on an industrial log: one cluster, rigid jobs, the seven orderings, shares drawn at random.

References
----------
Burkimsher, Bate and Indrusiak, FGCS 29(8), 2013, section 4.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gridsim.campaign.grid import POLICIES, Row, as_run, schedule_rows
from gridsim.errors import InputError
from gridsim.model.platform import Platform
from gridsim.model.streams import stream
from gridsim.model.time import MICROSECOND
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.simulation import Run, run

__all__ = ["DRAWN", "KIND", "MINUTES", "industrial_rows", "with_shares"]

KIND = "industrial"
"""Kind of the rows; ``workload`` counts the draws, 1 for policies that draw nothing."""

MINUTES = "industrial-minutes"
"""Kind of the rows with a tick of one minute."""

DRAWN = ("random", "fair-share")
"""Policies whose schedule depends on what is drawn: the order, or the share of each job."""

SHARES = 5


def with_shares(workload: Workload, seed: int, shares: int = SHARES) -> Workload:
    """Jobs dealt among equal shares at random, exact estimates."""
    drawn = stream(seed, "industrial", "shares").integers(0, shares, len(workload))
    paths = tuple(f"/share{place}" for place in range(1, shares + 1))
    return replace(
        workload,
        estimate=workload.runtime.copy(),
        labels={**workload.labels, "share": drawn},
        names={**workload.names, "share": paths},
    )


def industrial_rows(workload: Workload, cores: int, *, seeds: int = 30, random_hold: bool = True) -> Iterator[Row]:
    """Rows of every policy, those of `DRAWN` for each of *seeds*; then P-SLR with a tick of one minute.

    Policy ``fifo-job`` has the further metric ``starts_equal``: the share of jobs that start when the log says, where
    its waits are known.

    Parameters
    ----------
    workload : Workload
        Rigid jobs; walltime estimates are replaced by runtimes.
    cores : int
        Of the cluster.
    seeds : int
        Draws of the order and of the shares.
    random_hold : bool
        As in `gridsim.campaign.grid.GridCampaign`.
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
    return run(with_shares(workload, seed), Platform.single(cores), policy, Run(seed=seed, tick=tick))
