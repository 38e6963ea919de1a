"""Forecasts from snapshots of a real Slurm, compared with its own estimates and with the starts that followed."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.model.cluster_state import ClusterState, RunningJob, StateNode, WaitingJob
from gridsim.registry import Spec
from gridsim.workload.formats.sacct.values import duration

NODES = tuple(
    StateNode(node=f"n{i}", cores=4, memory=8000, gpus={}, features=(), partitions=("batch",), weight=1, state="up")
    for i in range(1, 9)
)
NOT_QUEUED = ("Dependency", "DependencyNeverSatisfied", "JobHeldUser", "JobHeldAdmin", "BeginTime")

Runs = dict[str, list[dict[str, str]]]


def unix_time(text: str) -> int | None:
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    except ValueError:  # "N/A"
        return None


def state_of(now: int, rows: list[dict[str, str]], runs: Runs) -> tuple[ClusterState, dict[str, tuple[int, int]]]:
    """State of a snapshot, and for jobs with an estimate of Slurm their estimated and true waits."""
    running, waiting, known = [], [], {}
    for row in rows:
        own = runs.get(row["jobid_raw"]) or runs.get(row["jobid"]) or []
        names = {key: own[0][key] if own else "" for key in ("account", "qos")}
        job: dict[str, Any] = {"job": row["jobid"], "user": row["user"], "partition": row["partition"], **names}
        job |= {
            "limit": duration(row["timelimit"].encode()),
            "features": "",
            "reservation": "",
            "cores": int(row["cpus"]),
        }
        job |= {"memory": 0, "gpus": {}, "licences": {}, "nodes": int(row["nodes"].partition("-")[0] or 1)}
        start = unix_time(row["start"])
        if row["state"] in ("RUNNING", "COMPLETING"):
            assert start is not None
            running.append(RunningJob(**job, start=start, elapsed=max(now - start, 0), stopped=False, on=()))
        elif row["state"] == "PENDING":
            held = row["reason"] in NOT_QUEUED
            job |= {"kind": "held" if held else "queued", "reason": row["reason"], "priority": int(row["priority"])}
            job |= {"submit": int(own[0]["submit"]) if own else now, "eligible": None, "after": (), "any_one": False}
            waiting.append(WaitingJob(**job, array=None, throttle=None, required=(), excluded=()))
            later = [int(it["start"]) - now for it in own if it["start"].isdigit() and int(it["start"]) >= now]
            if start is not None and not held and later:
                known[row["jobid"]] = start - now, later[0]
    waiting.sort(key=lambda it: -it.priority)
    return ClusterState(now, tuple(running), tuple(waiting), NODES), known


def snapshots(folder: Path) -> Iterator[tuple[int, list[dict[str, str]]]]:
    """Every third snapshot in which the running jobs hold no more cores than the nodes have."""
    found: dict[int, list[dict[str, str]]] = defaultdict(list)
    with gzip.open(folder / "queue" / "squeue.psv.gz", "rt") as file:
        for row in csv.DictReader(file, delimiter="|"):
            found[int(row["now"])].append(row)
    for number, (now, rows) in enumerate(found.items()):
        held = sum(int(row["cpus"]) for row in rows if row["state"] in ("RUNNING", "COMPLETING"))
        if number % 3 == 0 and held <= 32:
            yield now, rows


@pytest.mark.parametrize("policy", ["easy", pytest.param("slurm", marks=pytest.mark.long)])
def test_median_forecasts_are_nearer_to_the_starts_than_the_estimates_of_slurm(policy: str, run_a: Path) -> None:
    """Acceptance of the specification: 542 s for the estimates of Slurm, at most 200 s for medians without arrivals."""
    runs: Runs = defaultdict(list)
    with (run_a / "schedule.csv").open() as file:
        for row in csv.DictReader(file):
            for name in {row["jobid_raw"], row["jobid"]}:
                runs[name].append(row)
    history = gs.read_workload(run_a / "logs" / "sacct_unitsep_X.txt.gz", rules={})
    files = {"conf": str(run_a / "config" / "slurm.conf"), "assoc": str(run_a / "logs" / "sacctmgr_dump.cfg")}
    asked = Spec("slurm", files) if policy == "slurm" else policy
    errors: list[tuple[float, float, float]] = []
    for now, rows in snapshots(run_a):
        state, known = state_of(now, rows, runs)
        if not known:
            continue
        found = gs.forecast(state, history=history, policy=asked, futures=39, arrivals=False, calibrate=False)
        by_job = {it.job: it for it in found.jobs}
        for name, (estimate, wait) in known.items():
            it = by_job[name]
            errors.append((abs(estimate - wait), abs(min(it.median, 7 * 86_400) - wait), abs(it.requested - wait)))
    own, median, requested = np.mean(errors, axis=0)
    assert len(errors) == 389  # the reference counts 378, with 542 s
    assert own == pytest.approx(543.5, abs=0.1)
    assert median < 200 < requested < own
