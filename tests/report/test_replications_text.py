"""Sentences about resampled workloads."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridsim.cli import main
from gridsim.model.time import NEVER
from gridsim.questions.replications import Replicated
from gridsim.report import replications_text
from gridsim.report.comparison import Comparison

SHAKEN = ["compare", "--jobs", "80", "--load", "0.9", "--policy", "fcfs", "--policy", "easy", "--shake", "4"]


@pytest.mark.long
def test_the_share_that_agrees_is_part_of_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SHAKEN, "--shake-by", "5", "--out", str(tmp_path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    sentence = (
        "In 4 replicas with every submit time shaken by up to 5 s, the mean wait under easy is lower than under fcfs "
        "in 4 of 4"
    )
    assert f"{sentence} (robust to shaking)." in told
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Small changes of the input" in page
    assert "shake.csv" in page
    with (tmp_path / "shake.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "wait_mean"]
    assert [row["policy"] for row in rows] == ["fcfs", "easy"]
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert [float(row["original"]) for row in rows] == [metrics[label]["wait_mean"] for label in ("fcfs", "easy")]
    assert all(float(row["least"]) <= float(row["mean"]) <= float(row["most"]) for row in rows)
    with (tmp_path / "shake_pairs.csv").open(newline="") as file:
        pair = next(csv.DictReader(file))
    assert (pair["metric"], pair["policy"], pair["other"], pair["lower"]) == ("wait_mean", "easy", "fcfs", "4")
    assert json.loads((tmp_path / "run.json").read_text())["replicas"] == [
        {"role": "shake", "seed": 1, "replicas": 4, "transform": "shake", "by": 5}
    ]


def test_equal_means_are_called_equal(comparison: Comparison) -> None:
    means = {"fcfs": [5.0, 6.0], "greedy": [4.0, 3.0], "modest": [4.0, 3.0]}
    original = {label: {"wait_mean": values[0]} for label, values in means.items()}
    numbers = {label: {"wait_mean": np.array(values)} for label, values in means.items()}
    found = Replicated("shake", {"replicas": 2, "by": 60, "default": True}, original, numbers)
    assert replications_text.answer(replace(comparison, replicated=(found,))) == [
        "In 2 replicas with every submit time shaken by up to 1 min, the mean wait under greedy is lower than under "
        "fcfs in 2 of 2 (robust to shaking) and the same as under modest in all of them."
    ]
    numbers["modest"]["wait_mean"][1] = 9.0
    (sentence,) = replications_text.answer(replace(comparison, replicated=(found,)))
    assert "under modest in 1 of 2, but equal in the original workload (within the noise of the input)" in sentence


def test_means_over_different_jobs_are_named(comparison: Comparison) -> None:
    fcfs = comparison.records["fcfs"]
    rejected = np.arange(len(fcfs)) == 5
    one_less = replace(
        fcfs, start_us=np.where(rejected, NEVER, fcfs.start_us), end_us=np.where(rejected, NEVER, fcfs.end_us)
    )
    means = {"fcfs": [5.0, 6.0], "greedy": [4.0, 3.0], "modest": [4.0, 3.0]}
    original = {label: {"wait_mean": values[0]} for label, values in means.items()}
    numbers = {label: {"wait_mean": np.array(values)} for label, values in means.items()}
    found = Replicated("shake", {"replicas": 2, "by": 60, "default": True}, original, numbers)
    records = {**comparison.records, "fcfs": one_less}
    (sentence,) = replications_text.answer(replace(comparison, records=records, replicated=(found,)))
    assert sentence.endswith("; each mean is over the jobs that ran under its policy.")


def test_one_policy_has_a_table_and_no_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "--jobs", "50", "--policy", "easy", "--shake", "2", "--no-page", "--out", str(tmp_path)]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "wait, easy" in told
    assert "is lower than" not in told


def test_how_far_without_how_often_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--jobs", "50", "--shake", "0", "--shake-by", "5", "--out", str(tmp_path / "out")]) == 2
    assert "field 'shake-by'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_users_drawn_again_are_reported_and_few_of_them_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--resample", "3", "--resample-load", "1.5", "--no-page", "--out", str(tmp_path)]
    assert main(["compare", "--jobs", "200", "--policy", "fcfs", "--policy", "easy", *asked]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "In 3 workloads with resampled users (1.5 times as many as in the log), the mean wait under easy" in told
    assert "single users dominate" in told
    _, entry = json.loads((tmp_path / "run.json").read_text())["replicas"]
    assert (entry["role"], entry["load"], entry["replicas"]) == ("resample", 1.5, 3)
    assert {"resample.csv", "resample_pairs.csv"} <= {path.name for path in tmp_path.iterdir()}
    assert main(["compare", "--jobs", "50", "--resample-load", "2", "--out", str(tmp_path)]) == 2
    assert "field 'resample-load'" in capsys.readouterr().err
