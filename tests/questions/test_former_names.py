"""Result folders with former names of columns, keys and policies: ``gridsim report`` and ``gridsim explain`` read them.

The folders are output of ``gridsim compare`` before columns were renamed: ``site`` under a ``slurm.conf`` and EASY,
``pool`` under EASY and the policy that was called ``molding?partition=asked``.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gridsim.cli import main
from gridsim.run_folder import read_run, read_run_table

FORMER = Path(__file__).parent / "former_names"


def test_the_report_has_the_stored_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(FORMER / "pool"), "--out", str(tmp_path)]) == 0
    assert "Every job waits exactly as long under moldable as under easy." in capsys.readouterr().out
    stored = json.loads((FORMER / "pool" / "moldable" / "metrics.json").read_text())
    assert json.loads((tmp_path / "metrics.json").read_text())["moldable"]["wait_mean"] == stored["wait_mean"]
    assert "Molding(ordering=Fifo()" in (tmp_path / "report.html").read_text()


def test_renamed_columns_and_keys_have_their_new_names() -> None:
    assert "asked" in (FORMER / "site" / "today" / "run.json").read_text()
    run = read_run(FORMER / "site" / "today")
    assert run["measures"] == ["core_hours"]
    assert "asked" not in run
    jobs = read_run_table(FORMER / "site" / "today")
    assert jobs["eligible"].tolist() == [8, 8, 8, -1, 8, 8]
    assert "reach" not in jobs
    assert read_run_table(FORMER / "site" / "today", "refused")["requested"].tolist() == [900]


def test_waits_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(FORMER / "site"), "4"]) == 0
    assert "unadmitted because 15 min is above MaxTime\n10 min of partition batch" in capsys.readouterr().out
    assert main(["explain", str(FORMER / "site"), "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["eligible"], found["scope"], found["reasons"]) == (8, "nodes", [["Resources", 90.0], ["None", 0.5]])
