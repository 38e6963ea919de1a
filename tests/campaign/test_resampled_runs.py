"""Sweeps on resampled workloads, on resampled users, and with and without bursts of jobs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.campaign.comparisons import Replications
from gridsim.campaign.run import run_campaign
from gridsim.campaign.store import Store
from gridsim.campaign.sweep import Sweep, write_runs
from gridsim.cli import main
from gridsim.errors import InputError
from gridsim.metrics.summary import metrics
from gridsim.model.platform import Platform
from gridsim.options import Run
from gridsim.questions.run_replications import families
from gridsim.report.campaign import sentences
from gridsim.scenario import Scenario
from gridsim.simulation import run

ONE = """
[workload]
model = "lublin?jobs=60&cores=32&load=0.9&realised=true&users=20"

[factors]
policy = ["fcfs", "easy"]
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "one.toml"
    path.write_text(ONE)
    return path


def ran(recipe: Path, folder: Path, **asked: Any) -> tuple[Sweep, Store]:
    sweep, store = Sweep.from_toml(recipe, replications=Replications(**asked)), Store(folder)
    run_campaign(sweep, folder)
    return sweep, store


@pytest.mark.parametrize(("factor", "asked"), [("shaken", {"shake": 3}), ("redrawn", {"resample": 3})])
def test_replicas_are_those_that_compare_makes(
    recipe: Path, tmp_path: Path, factor: str, asked: dict[str, int]
) -> None:
    sweep, store = ran(recipe, tmp_path / "out", **asked)
    log = Scenario(model="lublin?jobs=60&cores=32&load=0.9&realised=true&users=20").load()
    (family,) = families(**asked)  # type: ignore[arg-type]
    rows = {(row["policy"], row[factor]): row["wait_mean"] for row in sweep.rows(store)}
    assert len(rows) == 8
    for policy in ("fcfs", "easy"):
        for number in range(4):
            jobs = log if number == 0 else family.member(log, number - 1)
            known = metrics(run(jobs, Platform.single(32), policy, Run()))["wait_mean"]
            assert rows[policy, number] == pytest.approx(known, rel=1e-12), (policy, number)
    found = sweep.compared(store)
    assert found is not None
    lower = sum(rows["easy", number] < rows["fcfs", number] for number in (1, 2, 3))
    told = {it.metric: it for it in found.agreements}["wait_mean"]
    assert (told.value, told.baseline, told.lower, told.pairs, told.workloads) == ("easy", "fcfs", lower, 3, 1)
    assert found.replicates == 3  # the original workload is not one of them
    text = " ".join(sentences(found))
    assert f"in {lower} of 3" in text
    assert "the results apply to it, not to others" in text


def test_finished_runs_of_the_plain_campaign_are_kept(recipe: Path, tmp_path: Path) -> None:
    plain, store = ran(recipe, tmp_path / "out")
    before = {one.key for one in plain.scenarios()}
    sweep = Sweep.from_toml(recipe, replications=Replications(shake=2, flurries="both"))
    sweep.belongs(store)
    kept = {one.key for one in sweep.scenarios() if one.factors["shaken"] == 0 and one.factors["flurries"] == "keep"}
    assert kept == before
    assert len(list(sweep.scenarios())) == 2 * 3 * 2
    again = Sweep.from_store(ran(recipe, tmp_path / "out", shake=2, flurries="both")[1])
    assert [one.key for one in again.scenarios()] == [one.key for one in sweep.scenarios()]


@pytest.mark.long
def test_replicas_of_several_workloads_are_not_independent(tmp_path: Path) -> None:
    path = tmp_path / "seeds.toml"
    path.write_text(ONE + "seed = [1, 2, 3]\n")
    sweep, store = ran(path, tmp_path / "out", shake=4)
    found = sweep.compared(store)
    assert found is not None
    assert (found.replicates, found.sources, found.of_one) == (12, 3, False)
    told = {it.metric: it for it in found.agreements}["wait_mean"]
    assert (told.pairs, told.workloads) == (12, 3)
    rows = list(sweep.rows(store))
    values = {
        policy: np.array([row["wait_mean"] for row in rows if row["policy"] == policy and row["shaken"]])
        for policy in ("fcfs", "easy")
    }
    assert told.lower == int((values["easy"] < values["fcfs"]).sum())
    assert f"replicas of {told.certain} of 3 workloads agree" in " ".join(sentences(found))
    write_runs(sweep, store, tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(newline="") as file:
        assert {row["shaken"] for row in csv.DictReader(file)} == {"0", "1", "2", "3", "4"}


def test_as_a_user_types_it(recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sweep", str(recipe), "--workers", "1", "--out", str(tmp_path / "out"), "--shake", "2", "--shake-by", "5"]
    assert main(words) == 0
    assert "In shaken replicas, mean wait is lower under easy in" in " ".join(capsys.readouterr().out.split())
    with (tmp_path / "out" / "agreement.csv").open(newline="") as file:
        assert {(row["role"], row["pairs"]) for row in csv.DictReader(file)} == {("shake", "2")}


def test_floods_are_dropped_before_anything_else(recipe: Path) -> None:
    sweep = Sweep.from_toml(recipe, replications=Replications(flurries="drop", resample=2, resample_load=1.5))
    transforms = [one.recipe["workload"]["transforms"] for one in sweep.scenarios() if one.factors["redrawn"] == 2]
    assert transforms == [["without-flurries", "resample?load=1.5&replica=2"]] * 2


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"shake": 1}, "field 'shake': 1 replicas; expected 2 to"),
        ({"shake": 2, "resample": 2}, "field 'resample': shaken and resampled workloads need two campaigns"),
        ({"shake_by": 5}, "also give --shake 20"),
        ({"resample_load": 1.5}, "also give --resample 20"),
    ],
)
def test_errors_are_reported(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Replications(**asked)


def test_a_factor_of_that_name_is_refused(recipe: Path) -> None:
    recipe.write_text(ONE.replace("load=0.9", "load={shaken}") + "shaken = [1, 2]\n")
    with pytest.raises(InputError, match=r"factors.shaken': is already a factor of the recipe"):
        Sweep.from_toml(recipe, replications=Replications(shake=2))
