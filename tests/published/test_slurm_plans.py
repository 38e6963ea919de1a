"""States in which a real Slurm was stopped, and its backfill plan: start times and nodes of each job."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from gridsim.model.site_file import read_site
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.policy.queue import ClusterView, Requests
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.policy.slurm.entry_allocation import take

FOLDER = Path(__file__).parent
SECOND = 1_000_000
Row = dict[str, str]


@cache
def situations() -> dict[str, list[Row]]:
    with (FOLDER / "slurm-plans" / "plans.csv").open() as lines:
        return {name: list(rows) for name, rows in groupby(csv.DictReader(lines), lambda row: row["situation"])}


def situation(rows: list[Row]) -> Slurm:
    """A scheduler with the running jobs on their recorded nodes; the others wait, in order."""
    site = read_site(FOLDER / "slurm-b" / "config" / "slurm.conf")
    parts = sorted({row["partition"] for row in rows})
    workload = replace(
        Workload.from_columns(
            job=[int(row["job"]) for row in rows],
            submit=[0] * len(rows),
            runtime=[60 * int(row["limit_min"]) for row in rows],
            estimate=[60 * int(row["limit_min"]) for row in rows],
            cores=[int(row["cores"]) for row in rows],
            labels={
                "partition": [parts.index(row["partition"]) for row in rows],
                "nodes": [int(row["nodes"] or UNKNOWN) for row in rows],
                "memory_core_mb": [int(row["core_mb"] or UNKNOWN) for row in rows],
                "exclusive": [int(row["exclusive"]) for row in rows],
            },
        ),
        names={"partition": tuple(parts)},
    )
    slurm = Slurm(site=site, boot=0.0)
    slurm.setup(ClusterView(site.cores, Requests(workload)), default_rng(1))
    number = {node.name: place for place, node in enumerate(site.nodes)}
    waiting = []
    for entry, row in enumerate(rows):
        slurm._priorities.priority[entry] = int(row["priority"])
        if not row["began"]:
            waiting.append(entry)
            continue
        held = sorted(
            (number[node], int(cores)) for node, _, cores in (on.partition(":") for on in row["holds"].split())
        )
        nodes, cores = (np.array(column, dtype=np.int64) for column in zip(*held, strict=True))
        slurm._rules.own["began"][entry] = int(row["began"]) * SECOND
        end = (int(row["began"]) + 60 * int(row["limit_min"])) * SECOND
        take(entry, end, nodes, cores, slurm._parts)
    slurm._pending.order = slurm._priorities.order(np.array(waiting))
    return slurm


def compared(name: str) -> tuple[int, int, set[int], set[int]]:
    """Numbers of jobs in the real plan and of equal starts in both, and the waiting jobs that each plan omits."""
    rows = situations()[name]
    found: dict[int, Any] = situation(rows).expected_starts(round(float(rows[0]["now"]) * SECOND))
    waiting = [entry for entry, row in enumerate(rows) if not row["began"]]
    planned = [entry for entry in waiting if rows[entry]["planned"]]
    same = [entry for entry in planned if abs(found.get(entry, 0) / SECOND - int(rows[entry]["planned"])) < 1.5]
    return len(planned), len(same), set(waiting) - set(planned), set(waiting) - set(found)


EXACT = ("1", "2", "3", "4", "5", "7", "8", "9", "12")


@pytest.mark.parametrize("name", EXACT)
def test_every_start_is_expected_when_a_real_slurm_expected_it_and_the_same_jobs_are_left_out(name: str) -> None:
    planned, same, left_out, missing = compared(name)
    assert planned > 20
    assert same == planned
    assert missing == left_out


def test_of_all_situations_nine_parts_in_ten_agree() -> None:
    # The causes of the others are known (slurm-plans/README.md): one job is treated differently, and later ones
    # follow.
    found = [compared(name) for name in situations()]
    assert sum(planned for planned, *_ in found) == 324
    assert sum(same for _, same, *_ in found) >= 290
