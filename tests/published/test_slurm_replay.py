"""A real Slurm's schedule, simulated from its own configuration: how near the Slurm-like scheduler comes.

The run is one of eight nodes of four cores, seven users, 840 s of arrivals; the bar (median error of a start at most
6 s, at least 45 % within 5 s) is that of its measurer. Everything comes from the site's files and from what was asked
for; nothing is fitted.
"""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.metrics.agreement import agreement
from gridsim.model.site import Site
from gridsim.model.site_file import read_site
from gridsim.model.workload import Workload
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.simulation import simulate

BOOT = 1_795_244_020
"""``BOOT_TIME`` in ``scontrol show config``: 2026-11-21T06:53:40 UTC. The simulation's clock begins there."""


@pytest.fixture(scope="module")
def run_a(shared: Path) -> Path:
    folder = shared / "data" / "slurm" / "run-a"
    if not folder.is_dir():
        pytest.skip("no Slurm data")
    return folder


@pytest.fixture(scope="module")
def site(run_a: Path) -> Site:
    logs = run_a / "logs"
    return read_site(run_a / "config/slurm.conf", assoc=logs / "sacctmgr_dump.cfg", qos=logs / "sacctmgr_qos.txt")


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture(scope="module")
def jobs(run_a: Path) -> Workload:
    """Jobs of phase 1: asked for as they were, run as long as they did, cancelled while waiting when they were."""
    asked = {row["id"]: row for row in rows(run_a / "workload.csv")}
    submitted = {row["id"]: row for row in rows(run_a / "submitted.csv")}
    found = []
    phase = [row for row in rows(run_a / "schedule.csv") if row["phase"] == "1"]
    for row in phase:
        want, sent = asked[row["workload_id"]], submitted[row["workload_id"]]
        started = row["start"].isdigit() and bool(row["nodelist"])
        if started or row["state"].startswith("CANCELLED"):
            found.append(_job(row, want, sent, submitted, started))
    found.sort(key=lambda job: (job["submit"], job["task"]))
    columns: dict[str, Any] = {name: [job[name] for job in found] for name in found[0]}
    names = {name: tuple(sorted(set(columns[name]))) for name in ("user", "account", "partition", "qos")}
    labels = {name: [values.index(value) for value in columns[name]] for name, values in names.items()}
    labels |= {name: columns[name] for name in ("nodes", "exclusive", "array", "array_limit", "after", "withdrawn")}
    basic = {name: columns[name] for name in ("job", "submit", "runtime", "estimate", "cores")}
    workload = Workload.from_columns(**basic, labels=labels, logged={"wait": columns["wait"]})
    return replace(workload, names=names)


def _job(
    row: dict[str, str], want: dict[str, str], sent: dict[str, str], submitted: dict[str, dict[str, str]], started: bool
) -> dict[str, Any]:
    """One job; whole-minute limits and whole-second runtimes, as Slurm keeps them."""
    submit = float(sent["returned"]) - BOOT
    task = re.search(r"_(\d+)$", row["jobid"])
    throttle = want["array"].partition("%")[2]
    return {
        "job": int(row["jobid_raw"]),
        "task": (int(sent["jobid"]), int(task[1]) if task else 0),
        "submit": submit,
        "runtime": max(int(row["elapsed"] or 0), 1),
        "estimate": 60 * int(row["limit_min"]),
        "cores": int(row["req_cpus"]),
        **{name: row[name] for name in ("user", "account", "partition", "qos")},
        "nodes": int(want["nodes"] or -1),
        "exclusive": int(want["exclusive"] or 0),
        "array": int(sent["jobid"]) if want["array"] else -1,
        "array_limit": int(throttle or -1),
        "after": int(submitted[want["depends"].split(":")[1]]["jobid"]) if want["depends"] else -1,
        "withdrawn": -1 if started else int(row["end"]) - int(float(sent["returned"])),
        "wait": float(row["start"]) - BOOT - submit if started else np.nan,
    }


def test_a_real_slurm_schedule_is_met_within_seconds(jobs: Workload, site: Site) -> None:
    record = simulate(jobs, platform=site.platform(), policy=Slurm(site=site), overrun="extend").record
    found = agreement(record)
    assert found.jobs == 272
    assert found.median <= 6.0
    assert found.within_5 >= 0.45
    assert abs(found.wait - found.logged_wait) < 0.25 * found.logged_wait


def test_whatever_the_phase_of_its_clock_it_comes_nearer_than_fcfs_with_backfill(jobs: Workload, site: Site) -> None:
    # Fractions of a second decide now and then who is first, and one job moves all after it: one run is one sample.
    easy = agreement(simulate(jobs, platform=site.platform(), policy="easy", overrun="extend").record)
    found = [
        agreement(
            simulate(jobs, platform=site.platform(), policy=Slurm(site=site, boot=-phase), overrun="extend").record
        )
        for phase in (0.0, 0.2, 0.4, 0.6, 0.8)
    ]
    assert np.mean([each.median for each in found]) < 0.35 * easy.median
    assert np.mean([each.within_5 for each in found]) > 0.45
    assert all(each.spearman > easy.spearman for each in found)
