"""Transformed workloads from the command line: ``--transform`` and the same in a recipe."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from gridsim.cli import main

LOG = """; MaxProcs: 4
1 0 -1 20 4 -1 -1 4 20 -1 1 3 1 -1 -1 -1 -1 -1
2 2 -1 10 4 -1 -1 4 10 -1 1 3 1 -1 -1 -1 -1 -1
3 4 -1 6 2 -1 -1 2 6 -1 1 4 1 -1 -1 -1 -1 -1
4 5 -1 30 2 -1 -1 2 30 -1 1 4 1 -1 -1 -1 -1 -1
5 7 -1 3 1 -1 -1 1 3 -1 1 4 1 -1 -1 -1 -1 -1
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    path.write_text(LOG)
    return path


def compare(log: Path, *transforms: str, out: Path) -> int:
    words = [word for transform in transforms for word in ("--transform", transform)]
    return main(["compare", str(log), *words, "--policy", "fcfs", "--policy", "easy", "--no-page", "--out", str(out)])


def deadlines(table: Path) -> dict[int, float]:
    with table.open() as rows:
        return {int(row["job"]): float(row["deadline"]) for row in csv.DictReader(rows)}


def test_deadlines_are_from_the_reference_on_the_machine_that_is_requested(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(log, "deadlines?stringency=0.2", out=tmp_path / "out") == 0
    told = " ".join(capsys.readouterr().out.split())  # a long path is on a separate line
    assert told.startswith("workload: ")
    assert "5 of 5 jobs transform: deadlines: stringency 0.2" in told
    for policy in ("fcfs", "easy"):
        assert deadlines(tmp_path / "out" / policy / "jobs.csv") == {1: 20, 2: 25, 3: 30, 4: 49, 5: 33}
    entry = json.loads((tmp_path / "out" / "run.json").read_text())["workload"]["transforms"][0]
    assert (entry["transform"], entry["reference"], entry["reference_cores"]) == ("deadlines", "easy", 4)


def test_transforms_are_applied_in_their_order_and_counted(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    transforms = ("slice?first=1&jobs=4&origin=true", "duplicate?load=1.5", "expand?load=2")
    assert compare(log, *transforms, out=tmp_path / "out") == 0
    told = capsys.readouterr().out.splitlines()
    assert "log.swf, 5 of 5 jobs" in " ".join(" ".join(told).split())  # a long path is on a separate line
    assert [line.split(":")[1].strip() for line in told if line.startswith("transform:")] == [
        "slice",
        "duplicate",
        "expand",
    ]
    assert "transformed: 6 jobs" in told


def test_a_recipe_and_the_option_make_the_same_workload(log: Path, tmp_path: Path) -> None:
    transforms = [
        "duplicate?load=1.6",
        "exact-estimates",
        "deadlines?stringency=0.5&fraction=0.8&random_tolerance=true",
    ]
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f'policy = "easy"\n[workload]\nfile = "log.swf"\ntransforms = {json.dumps(transforms)}\n')
    assert main(["run", str(recipe), "--out", str(tmp_path / "run")]) == 0
    assert compare(log, *transforms, out=tmp_path / "compare") == 0
    jobs = [(tmp_path / folder / "jobs.csv").read_bytes() for folder in ("run", "compare/easy")]
    assert jobs[0] == jobs[1]
    told = [json.loads((tmp_path / folder / "run.json").read_text())["workload"] for folder in ("run", "compare/easy")]
    assert told[0]["transforms"] == told[1]["transforms"]
    assert [entry["transform"] for entry in told[0]["transforms"]] == ["duplicate", "exact-estimates", "deadlines"]


def test_a_packed_workload_runs_from_a_recipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("[workload]\nmodel = 'packed?kind=dynamic&cores=8&span=600&jobs=15'\n")
    assert main(["run", str(recipe), "--out", str(tmp_path / "out"), "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert (metrics["completed"], metrics["wait_mean"]) == (15, 0)


@pytest.mark.parametrize(
    ("transform", "told"),
    [
        ("duplicat?load=2", "unknown transform 'duplicat'; did you mean 'duplicate'?"),
        ("duplicate?load=0.5", "field 'load': is 0.5; expected 1 to 1000 times the workload's"),
        ("duplicate?loed=2", "unknown parameter of duplicate 'loed'; did you mean 'load'?"),
        ("deadlines?tolerance=0.5", "field 'tolerance': is 0.5; expected 1 (none) or more"),
        ("deadlines?reference=eazy", "unknown policy 'eazy'; did you mean 'easy'?"),
        ("slice?first=99", "selects no job; the workload is"),
    ],
)
def test_errors_in_a_transform_are_reported_and_nothing_written(
    log: Path, tmp_path: Path, transform: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(log, transform, out=tmp_path / "out") == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_deadlines_are_not_stretched_afterwards(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(log, "deadlines", "expand?load=1.2", out=tmp_path / "out") == 2
    assert "expand before deadlines" in capsys.readouterr().err
