"""``gridsim calibrate`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gridsim.cli import main

LOG = Path(__file__).resolve().parents[2] / "docs" / "examples" / "sacct.txt"


def test_a_log_of_slurm_is_replayed_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(LOG), "--cores", "32", "--policy", "fcfs", "--policy", "easy"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Replayed under" in told
    assert "by user:" in told
    assert "The largest disagreements" in told


def test_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(LOG), "--cores", "32", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["policies"]) == {"fcfs", "easy", "conservative"}
    assert told["policies"][told["best"]]["median"] == min(one["median"] for one in told["policies"].values())


def test_a_log_without_starts_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 4\n1 0 -1 10 1 -1 -1 1 10 -1 1 1 1 -1 1 -1 -1 -1\n")
    assert main(["calibrate", str(log)]) == 2
    assert "there is nothing to compare with" in capsys.readouterr().err
