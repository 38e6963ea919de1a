"""``gridsim run``."""

from __future__ import annotations

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
    output = capsys.readouterr().out
    assert "wait_mean" in output
    assert output.endswith(f"written to {out}\n")
    assert sorted(path.name for path in out.iterdir()) == ["jobs.csv", "metrics.json", "run.json"]


def test_json_is_the_metrics_and_nothing_else(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = recipe.parent / "out"
    assert main(["run", str(recipe), "--out", str(out), "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert metrics["submitted"] == 40
    assert metrics == json.loads((out / "metrics.json").read_text())


def test_a_table_of_jobs_is_not_replaced_by_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "id,at,took,n\n1,0,10,1\n2,5,10,2\n"
    (tmp_path / "jobs.csv").write_text(table)
    (tmp_path / "map.toml").write_text(
        '[columns]\njob = "id"\nsubmit = {column = "at", time = "s"}\nruntime = "took"\ncores = "n"\n'
    )
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('policy = "easy"\n[workload]\nfile = "jobs.csv"\nmapping = "map.toml"\n')
    assert main(["run", str(recipe), "--out", str(tmp_path)]) == 2
    assert "jobs.csv: is an input of this command" in capsys.readouterr().err
    words = ["--mapping", str(tmp_path / "map.toml"), "--out", str(tmp_path)]
    assert main(["compare", str(tmp_path / "jobs.csv"), *words]) == 2
    assert "jobs.csv: is an input of this command" in capsys.readouterr().err
    assert (tmp_path / "jobs.csv").read_text() == table
    assert main(["run", str(recipe), "--out", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize(
    "name", ["easy/jobs.csv", "whatif_parts.csv", "resample_pairs.csv", "trace.swf.gz", "load.csv"]
)
def test_an_input_in_the_place_of_any_output_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, recipe = tmp_path / "q" / name, tmp_path / "recipe.toml"
    path.parent.mkdir(parents=True)
    path.write_text("job,submit,runtime,cores\n1,0,10,1\n2,5,10,2\n")
    (tmp_path / "map.toml").write_text(
        "[columns]\n" + "".join(f'{it} = "{it}"\n' for it in ("job", "submit", "runtime", "cores"))
    )
    recipe.write_text(f'policy = "easy"\n[workload]\nfile = "q/{name}"\nmapping = "map.toml"\n')
    before = path.read_bytes()
    for words in (["run", str(recipe)], ["compare", str(path), "--mapping", str(tmp_path / "map.toml")]):
        assert main([*words, "--out", str(tmp_path / "q")]) == 2
        assert f"{name}: is an input of this command" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_names_stay_when_a_run_is_repeated(recipe: Path) -> None:
    columns, at = ("job", "submit", "runtime", "cores", "user"), "2026-11-21T00:00:00"
    (recipe.parent / "log.csv").write_text(",".join(columns) + "\n" + f"1,{at},10,1,ann\n2,{at},10,2,bob\n")
    (recipe.parent / "map.toml").write_text("[columns]\n" + "".join(f'{it} = "{it}"\n' for it in columns))
    recipe.write_text('policy = "easy"\n[workload]\nfile = "log.csv"\nmapping = "map.toml"\n')
    found = []
    for _ in range(2):
        assert main(["run", str(recipe), "--out", str(recipe.parent / "out")]) == 0
        found.append(sorted(path.name for path in (recipe.parent / "out").iterdir()))
    assert "names.csv" in found[0]
    assert found[0] == found[1]


@pytest.mark.parquet
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


STREAMED = """policy = "easy"

[workload]
model = "lublin?jobs=300&estimates=multiples"
"""


@pytest.mark.long
@pytest.mark.parquet
def test_block_by_block_and_not_simulated_again(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe.write_text(STREAMED)
    out, whole = recipe.parent / "out", recipe.parent / "whole"
    assert main(["run", str(recipe), "--out", str(out)]) == 0  # its jobs.csv does not belong to the following run
    assert main(["run", str(recipe), "--stream", "--out", str(out)]) == 0
    first = capsys.readouterr().out
    assert first.endswith(f"written to {out}\n")
    assert sorted(path.name for path in out.iterdir()) == ["jobs.parquet", "metrics.json", "run.json"]
    assert main(["run", str(recipe), "--stream", "--out", str(out)]) == 0
    again = capsys.readouterr().out
    assert again.endswith(f"\nnot simulated again; the record of this run exists in {out}\n")
    assert main(["run", str(recipe), "--table", "parquet", "--out", str(whole), "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert main(["run", str(recipe), "--stream", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == known


@pytest.mark.parquet
@pytest.mark.parametrize(
    ("recipe_text", "output"),
    [
        (RECIPE, "field 'estimates': needs all jobs at once"),
        (STREAMED.replace("easy", "easy++"), "sorts or predicts by more than the request of each job"),
        (STREAMED + 'transforms = ["slice?jobs=5"]\n', "field 'workload.transforms'"),
    ],
)
def test_options_that_need_all_jobs_exit_with_two_and_write_nothing(
    recipe: Path, capsys: pytest.CaptureFixture[str], recipe_text: str, output: str
) -> None:
    recipe.write_text(recipe_text)
    out = recipe.parent / "out"
    assert main(["run", str(recipe), "--stream", "--out", str(out)]) == 2
    assert output in capsys.readouterr().err
    assert not out.exists()
