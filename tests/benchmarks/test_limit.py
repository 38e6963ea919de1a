"""The benchmark of the limit compares the engines with each other, never with a clock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "limit.py"


@pytest.mark.long
def test_the_engines_make_the_same_starts(tmp_path: Path) -> None:
    words = [sys.executable, str(SCRIPT), "--jobs", "300", "--check", "--reference", str(tmp_path / "none.c")]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert [line.split(": ")[1] for line in told.splitlines()] == [
        "fcfs",
        "easy",
        "first-fit",
        "easy?ordering=sjf",
        "conservative",
        "conservative?compress=arrival",
        "sjbf",
        "easy++",
        "easy?predict=recent&correct=steps",
        "easy++?predict=similar",
        "easy++?predict=average",
        "wfp3",
        "unicef",
        "xfactor",
        "easy?ordering=wfp3",
        "easy?ordering=random",
        "easy?backfill_order=wfp3",
    ]
    assert all(line.endswith("300 starts as by SimPy") for line in told.splitlines())


@pytest.mark.long
@pytest.mark.parquet
def test_a_generated_log_is_simulated_once() -> None:
    words = [sys.executable, str(SCRIPT), "--stream", "--jobs", "300"]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    assert [line.split(":")[0] for line in told] == ["300 jobs, simulated", "300 jobs, there"]
