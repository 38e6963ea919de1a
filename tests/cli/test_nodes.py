"""A machine of nodes from run to page: reports of the commands."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import gridsim as gs
from gridsim.cli import main
from gridsim.model.demand import Demands

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result directory of jobs that request memory, GPUs and licences."""
    rng, n = np.random.default_rng(27), 80
    asked = [
        gs.Demand(
            tasks=int(rng.integers(1, 4)),
            each={"cores": int(rng.integers(1, 3)), "memory": int(rng.choice([1024, 4096]))},
            gpu=int(rng.choice([0, 0, 500])),
            exclusive=bool(rng.random() < 0.1),
            pools={"licence": 1} if rng.random() < 0.3 else {},
        )
        for _ in range(n)
    ]
    jobs = gs.Workload.from_columns(
        submit=np.sort(rng.integers(0, 9000, n)), runtime=rng.integers(60, 900, n), demands=Demands.of(asked)
    )
    machine = gs.Platform.of_nodes(
        [
            gs.NodeGroup(group="thin", count=3, capacity={"cores": 4, "memory": 16384}),
            gs.NodeGroup(group="gpu", capacity={"cores": 8, "memory": 32768}, gpus=2),
        ],
        {"licence": 2},
    )
    made = tmp_path_factory.mktemp("nodes") / "run"
    gs.simulate(jobs, platform=machine, policy="easy?placement=pack").write(made)
    return made


def test_a_run_on_nodes_is_valid_by_its_own_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(folder)]) == 0
    assert "valid: none of 34 kinds of violations found" in capsys.readouterr().out


def test_too_small_allocations_are_found(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.reader((folder / "allocations.csv").read_text().splitlines()))
    rows[1][rows[0].index("memory")] = "1"
    changed = tmp_path / "allocations.csv"
    changed.write_text("\n".join(map(",".join, rows)) + "\n")
    assert main(["validate", str(folder), "--allocations", str(changed)]) == 1
    assert "violated  wrong-amounts: 1 (jobs 1): 1 memory of node" in capsys.readouterr().out


def test_explain_says_what_a_job_was_short_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader((folder / "jobs.csv").read_text().splitlines()))
    lacked = {row["short_of"]: row["job"] for row in rows if row["short_of"]}
    assert {"cores", "order"} < set(lacked)
    assert main(["explain", str(folder), lacked["cores"]]) == 0
    assert "it lacked only cores." in " ".join(capsys.readouterr().out.split())
