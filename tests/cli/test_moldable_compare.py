"""Command ``compare --moldable``: the benefit of moldable jobs, and the groups that gain."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from gridsim.cli import main

SITE = Path(__file__).parents[2] / "scenarios" / "examples" / "site.swf"
MOLDABLE = ["--transform", "moldable?range_factor=4&sigma=1"]
POLICIES = ["--policy", "conservative", "--policy", "moldable-combined"]


def fits(printed: str) -> bool:
    """Assert that the output between the log and the paths of the files fits a terminal of 80 columns."""
    told = printed.partition("simulation:")[2].rpartition("\n\n")[0]
    return bool(told) and all(len(line) <= 80 for line in told.splitlines())


@pytest.mark.long
def test_the_answer_has_the_changes_by_weight_and_one_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(SITE), *MOLDABLE, *POLICIES, "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert fits(printed)
    assert "Change of the mean response relative to conservative, by weight of the jobs:" in printed
    assert "up to 100" in printed
    told = " ".join(printed.split())
    assert told.count("weight categories of jobs") == 1
    assert "mean response" in told
    assert "Change of the mean response relative to conservative" in (tmp_path / "out" / "report.html").read_text()
    with (tmp_path / "out" / "groups.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "weight"]
    assert rows[0]["group"] == "up to 100"
    assert {row["policy"] for row in rows} == {"moldable-combined"}
    assert sum(int(row["jobs"]) for row in rows) == 386


def test_a_program_gets_the_same_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", str(SITE), *MOLDABLE, *POLICIES, "--no-page", "--json", "--out", str(tmp_path / "out")]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"weight", "size", "length"} <= {row["kind"] for row in found["groups"]}
    assert {row["metric"] for row in found["differences"]} == {"response", "wait"}


@pytest.mark.long
def test_many_policies_still_fit_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["easy", "moldable-greedy", "moldable-submit", "moldable-start", "moldable-base", "moldable-base?wf=2"]
    policies = [word for name in names for word in ("--policy", name)]
    assert main(["compare", str(SITE), *MOLDABLE, *policies, "--no-page", "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert fits(printed)
    told = " ".join(printed.split())
    assert told.count("By weight categories of jobs against easy:") == 1
    assert "inconclusive, as the log is too short: moldable-greedy, moldable-submit" in told


@pytest.mark.long
def test_rigid_jobs_have_no_categories_by_weight(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(SITE), "--policy", "fcfs", "--policy", "easy", "--out", str(tmp_path / "out")]) == 0
    assert "by weight of the jobs" not in capsys.readouterr().out
    assert "weight" not in (tmp_path / "out" / "groups.csv").read_text()
