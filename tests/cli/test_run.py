"""``gridsim run``."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from gridsim.cli import main

RECIPE = """policy = "easy"

[workload]
model = "lublin?jobs=40"
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


def test_a_recipe_is_simulated_and_its_result_written(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = recipe.parent / "out"
    assert main(["run", str(recipe), "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "wait_mean" in told
    assert told.endswith(f"written to {out}\n")
    assert sorted(path.name for path in out.iterdir()) == ["jobs.csv", "metrics.json", "run.json"]


def test_json_is_the_metrics_and_nothing_else(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = recipe.parent / "out"
    assert main(["run", str(recipe), "--out", str(out), "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert metrics["submitted"] == 40
    assert metrics == json.loads((out / "metrics.json").read_text())


@pytest.mark.skipif(importlib.util.find_spec("duckdb") is None, reason="the extra parquet is not installed")
def test_the_table_may_be_parquet(recipe: Path) -> None:
    out = recipe.parent / "out"
    assert main(["run", str(recipe), "--out", str(out), "--table", "parquet"]) == 0
    assert (out / "jobs.parquet").read_bytes().startswith(b"PAR1")


def test_the_same_recipe_gives_the_same_files(recipe: Path) -> None:
    for name in ("once", "again"):
        assert main(["run", str(recipe), "--out", str(recipe.parent / name)]) == 0
    for path in (recipe.parent / "once").iterdir():
        assert path.read_bytes() == (recipe.parent / "again" / path.name).read_bytes()


def test_a_recipe_that_is_wrong_exits_with_two_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text("[workload]\nfile = 'absent.swf'\n")
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "absent.swf" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
