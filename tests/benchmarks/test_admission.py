"""The benchmark of admission writes the rows that decide how placements grow with the queue."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gridsim_papers.deadline.campaign import read_rows

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "admission.py"


@pytest.mark.long
def test_placements_are_rows_of_the_campaign(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "cost-00-0.csv"
    path.parent.mkdir()
    words = [sys.executable, str(SCRIPT), "--waiting", "5", "10", "--placements", str(path)]
    subprocess.run(words, check=True, capture_output=True, text=True)
    rows = read_rows(tmp_path)
    assert {(row["scheme"], row["load"]) for row in rows} == {(s, n) for s in ("qops", "msb", "mrt") for n in (5, 10)}
    assert all(row["metric"] == "placements" and row["value"] >= 1 for row in rows)
