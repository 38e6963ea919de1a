"""Labels of policies on the command line, with every verb."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from gridsim.cli import main

MINI = Path(__file__).resolve().parents[2] / "docs" / "examples" / "mini"
LOG = MINI / "sacct.txt"
SITE = f"slurm?conf={MINI}/slurm.conf&assoc={MINI}/assoc.cfg&qos={MINI}/qos.txt&boot=2026-11-21T06:53:40&timezone=UTC"


def answer(words: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.long
def test_a_comparison_speaks_of_labels_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policies = ["today=easy?reserve=depth(k=2)", "short <b>first</b>=easy?ordering=sjf", "fcfs"]
    words = [word for policy in policies for word in ("--policy", policy)]
    assert main(["compare", "--jobs", "80", "--load", "0.9", *words, "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "short <b>first</b>" in told
    assert "easy?" not in told
    labels = {"today", "short <b>first</b>", "fcfs"}
    for name in ("metrics", "groups", "distributions"):
        with (tmp_path / f"{name}.csv").open() as file:
            assert {row["policy"] for row in csv.DictReader(file)} <= labels
    folders = json.loads((tmp_path / "run.json").read_text())["folders"]
    assert folders == {label: label for label in labels} | {"short <b>first</b>": "short-b-first-b"}
    assert all((tmp_path / place / "jobs.csv").is_file() for place in folders.values())
    page = (tmp_path / "report.html").read_text()
    assert "short &lt;b&gt;first&lt;/b&gt;" in page
    assert "easy?ordering" not in page.partition("<dt>Command")[0]
    assert main(["explain", str(tmp_path), "--policy", "short <b>first</b>"]) == 0


def test_a_replay_speaks_of_labels(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["calibrate", str(LOG), "--policy", f"today={SITE}", "--policy", "textbook=easy"], capsys)
    assert set(found["policies"]) == {"today", "textbook"}


def test_a_quotation_speaks_of_labels(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["quote", "--cores", "8", "--walltime", "1h", "--jobs", "60", "--policy", "promised=qops"]
    assert [one["policy"] for one in answer(words, capsys)["answers"]] == ["promised"]


def test_what_if_uses_labels(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["whatif", "--jobs", "60", "--policy", "now=fcfs", "--add-cores", "+10%"], capsys)["policy"] == "now"


def test_a_recipe_has_a_label_in_front_of_its_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('policy = "shortest first=easy?ordering=sjf"\n[workload]\nmodel = "lublin?jobs=50"\n')
    assert main(["run", str(recipe), "--out", str(tmp_path / "out")]) == 0
    told = json.loads((tmp_path / "out" / "run.json").read_text())
    assert told["label"] == "shortest first"
    assert told["policy"].startswith("Backfilling(ordering=ShortestEstimate()")
    capsys.readouterr()
    assert main(["explain", str(tmp_path / "out")]) == 0
    assert "under shortest first" in " ".join(capsys.readouterr().out.split())


def test_a_sweep_reports_a_policy_by_its_label(tmp_path: Path) -> None:
    recipe = tmp_path / "sweep.toml"
    recipe.write_text(
        '[workload]\nmodel = "lublin?jobs=30"\n[factors]\nseed = [1, 2]\n'
        'policy = ["easy", "shortest first=easy?ordering=sjf"]\n[compare]\nbaseline = "easy"\n'
    )
    assert main(["sweep", str(recipe), "--workers", "1", "--json", "--out", str(tmp_path / "out")]) == 0
    with (tmp_path / "out" / "runs.csv").open() as file:
        assert {row["policy"] for row in csv.DictReader(file)} == {"easy", "shortest first"}


@pytest.mark.parametrize(
    ("policies", "what"),
    [
        (["a=easy", "a=fcfs"], "the label 'a' is given twice"),
        (["=easy"], "label is empty"),
        (["today="], "'today=' has a label but no policy"),
        (["easy&ordering=sjf"], "easy&ordering=sjf"),
    ],
)
def test_a_label_that_is_none_is_reported(policies: list[str], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--jobs", "20", *(word for one in policies for word in ("--policy", one))]) == 2
    assert what in capsys.readouterr().err
