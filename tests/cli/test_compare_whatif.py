"""Commands ``gridsim compare --what-if``, ``whatif --out`` and ``quote --at now``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gridsim.cli import main

SITE = Path(__file__).resolve().parents[2] / "scenarios" / "examples" / "site.swf"
COMPARE = ["compare", str(SITE), "--policy", "fcfs", "--policy", "easy"]


@pytest.mark.long
def test_the_table_is_requested_and_goes_with_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMPARE, "--what-if", "--out", str(tmp_path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "under fcfs:" in told
    assert "77 cores (+20 %)" in told
    assert "The change from fcfs to easy shortens waits more than" in told
    assert (tmp_path / "whatif.csv").is_file()
    assert 'id="what-if"' in (tmp_path / "report.html").read_text()
    assert main([*COMPARE, "--no-page", "--out", str(tmp_path)]) == 0
    assert not (tmp_path / "whatif.csv").exists()


def test_json_has_the_changes_of_both_policies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMPARE, "--what-if", "--no-page", "--json", "--out", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)["what_if"]
    assert [each["policy"] for each in found] == ["fcfs", "easy"]
    assert [len(each["changes"]) for each in found] == [5, 5]


def test_dag_jobs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = SITE.with_name("workflow.json")
    grid = SITE.parents[2] / "docs" / "examples" / "grid.toml"
    assert main(["compare", str(flow), "--platform", str(grid), "--what-if", "--out", str(tmp_path)]) == 2
    assert "DAG jobs" in capsys.readouterr().err


def test_whatif_writes_a_page_with_its_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", str(SITE), "--estimates", "2", "--out", str(tmp_path)]) == 0
    assert "Page: " in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"whatif.html", "whatif.csv", "whatif.json"}
    text = (tmp_path / "whatif.html").read_text()
    assert "With estimates 2 times better" in text
    assert '<a href="whatif.csv">' in text
    assert "<script" not in text
    assert [one["change"] for one in json.loads((tmp_path / "whatif.json").read_text())["changes"]] == [
        "as it is",
        "estimates 2 times better",
    ]


def test_a_start_is_reported_as_a_forecast(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["quote", str(SITE), "--at", "26h", "--cores", "48", "--walltime", "2h", "--policy", "easy"]
    assert main([*words, "--no-calibration"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "24 cores for 2 h" in told
    assert "Under easy, the new job starts between" in told
    assert "in 90 % of the futures (not calibrated)" in told
    assert "guaranteed by" not in told


def test_now_is_the_end_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["quote", str(SITE), "--at", "now", "--cores", "4", "--walltime", "1h", "--policy", "easy", "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["at"] == 348_318  # the last submit
    assert found["forecasts"]["easy"]["state"] == "simulated"


def test_moments_of_a_slurm_log_are_dates(run_a: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = run_a / "logs" / "sacct_P_X.txt.gz"
    words = ["quote", str(log), "--machine", "32", "--cores", "16", "--walltime", "5m", "--policy", "easy"]
    assert main([*words, "--at", "2026-11-21T07:10"]) == 0
    assert "moment: 2026-11-21 07:10, 0 d 00:16:14 of the log (974 s)" in capsys.readouterr().out
