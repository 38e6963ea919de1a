"""Ranges of cores on the command line: invalid ranges are reported with exit code 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gridsim.cli import main

LOG = """; MaxProcs: 8
1 0 -1 20 4 -1 -1 4 20 -1 1 3 1 -1 -1 -1 -1 -1
2 2 -1 10 8 -1 -1 8 10 -1 1 3 1 -1 -1 -1 -1 -1
3 4 -1 6 1 -1 -1 1 6 -1 1 4 1 -1 -1 -1 -1 -1
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    path.write_text(LOG)
    return path


def compare(log: Path, *transforms: str, out: Path) -> int:
    words = [word for transform in transforms for word in ("--transform", transform)]
    return main(["compare", str(log), *words, "--policy", "fcfs", "--policy", "easy", "--no-page", "--out", str(out)])


@pytest.mark.parametrize(
    ("transform", "told"),
    [
        ("moldable?sigma=-1", "field 'sigma': a sigma of -1.0; expected 0 (no variation) or more"),
        ("moldable?range_factor=0.5", "field 'range_factor': is 0.5; expected 1 or more"),
        ("moldable?cores=16", "field 'cores': is 16; expected at most the 8 of the machine"),
        ("moldable?sequential=never", "unknown value of moldable?sequential 'never'"),
        ("moldable?speedup=amdal", "unknown speedup 'amdal'; did you mean 'amdahl'?"),
        ("moldable?speedup=amdahl(serial=2)", "field 'serial': a serial fraction of 2.0; expected 0 to 1"),
        ("moldable?speedup=table(rows=[(4,100)])", "field 'rows': a table of 1 row(s); expected cores and seconds"),
        ("moldable?speedup=table(rows=[(4,100),(8,-5)])", "a table with -5 s on 8 cores; expected times above 0 s"),
        ("moldable?sigma=2&speedup=linear", "field 'speedup': give either a speedup, or sigma and parallelism"),
        ("profiles?file=none.csv", "none.csv: cannot be read: No such file or directory"),
        ("load-factor?percent=0", "field 'percent': is 0.0; expected 0.0001 to 100000"),
        ("offered-load?load=-1", "field 'load': is -1.0; expected a fraction such as 0.65"),
        ("cirne?admissible=all", "unknown value of cirne?admissible 'all'"),
    ],
)
def test_errors_in_ranges_are_reported_and_nothing_written(
    log: Path, tmp_path: Path, transform: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(log, transform, out=tmp_path / "out") == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("1,4,2,1", "ranges.csv line 2, field 'maximum': the range 4 to 2; expected at least 1 core"),
        ("1,4,16,1", "ranges.csv line 2, field 'maximum': the range 4 to 16; expected at most the 8 cores"),
        ("1,4,8,-2", "ranges.csv line 2, field 'sigma': a sigma of -2.0"),
    ],
)
def test_a_file_with_a_range_that_is_none_is_reported_with_its_line(
    log: Path, tmp_path: Path, line: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ranges.csv"
    file.write_text(f"job,minimum,maximum,sigma\n{line}\n")
    assert compare(log, f"ranges?file={file}", out=tmp_path / "out") == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("line", ["x,4,10\n", "x,4,10\nx,8,-3\n"])
def test_a_table_of_one_row_or_with_a_negative_time_is_reported(
    log: Path, tmp_path: Path, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tables.csv"
    file.write_text(f"application,cores,seconds\n{line}")
    assert compare(log, f"profiles?file={file}", out=tmp_path / "out") == 2
    assert (
        "a table of 1 row" if line.count("\n") == 1 else "line 3, field 'seconds': has '-3'"
    ) in capsys.readouterr().err


def test_ranges_are_given_once(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(log, "moldable", "profiles", out=tmp_path / "out") == 2
    assert "field 'moldable': the jobs already have ranges of cores; give ranges once" in capsys.readouterr().err


def test_ranges_are_those_of_the_machine_that_is_requested(log: Path, tmp_path: Path) -> None:
    assert compare(log, "moldable?range_factor=1&sigma=0", "load-factor?percent=150", out=tmp_path / "out") == 0
    entries = json.loads((tmp_path / "out" / "run.json").read_text())["workload"]["transforms"]
    assert [entry["transform"] for entry in entries] == ["moldable", "load-factor"]
    assert (entries[0]["cores"], entries[0]["moldable"], entries[0]["rows"]) == (8, 2, 3)


def test_files_of_a_recipe_are_searched_next_to_it(log: Path, tmp_path: Path) -> None:
    (tmp_path / "ranges.csv").write_text("job,minimum,maximum\n1,1,8\n")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('policy = "easy"\n[workload]\nfile = "log.swf"\ntransforms = ["ranges?file=ranges.csv"]\n')
    assert main(["run", str(recipe), "--out", str(tmp_path / "run")]) == 0
