"""Adapters between other simulators and the comparison: conversion of input logs and of returned schedules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import gridsim as gs
from gridsim.workload.formats.swf_writer import write_swf

Script = Callable[[str], ModuleType]
FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "others"
LOG = """\
; MaxProcs: 4
7 100 -1 20 -1 -1 -1 3 10 -1 1 -1 -1 -1 -1 -1 -1 -1
9 105 -1 10 -1 -1 -1 4 -1 -1 1 -1 -1 -1 -1 -1 -1 -1
8 106 -1 5 -1 -1 -1 1 6 -1 1 -1 -1 -1 -1 -1 -1 -1
"""


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "site-2.1.swf"
    path.write_text(LOG)
    return path


def test_every_simulator_is_given_whole_seconds_from_0_and_no_job_exceeds_its_estimate(
    script: Script, log: Path, tmp_path: Path
) -> None:
    name, workload = script("prepare").prepared(f"{log}@2")
    write_swf(workload, tmp_path / "given.swf")
    cores, jobs = script("joblist").read_jobs(tmp_path / "given.swf")
    assert (name, cores) == ("site-2.1-2", 4)
    assert [tuple(job) for job in jobs] == [(7, 0, 20, 3, 20), (9, 5, 10, 4, 10)]


def test_the_built_in_workload_loses_its_fractions(script: Script) -> None:
    _, workload = script("prepare").prepared("generated@50")
    assert not (workload.submit % 1_000_000).any()
    assert (workload.runtime <= workload.estimate).all()


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_page_of_plain_python_makes_the_schedule_of_gridsim(
    script: Script, tmp_path: Path, policy: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    runtime = rng.integers(1, 60, 200)
    workload = gs.Workload.from_columns(
        submit=rng.integers(0, 2000, 200),
        runtime=runtime,
        estimate=runtime + rng.integers(0, 60, 200),
        cores=rng.integers(1, 9, 200),
        cores_stated=8,
    )
    write_swf(workload, tmp_path / "log.swf")
    cores, jobs = script("joblist").read_jobs(tmp_path / "log.swf")
    starts = script("run_plain").schedule(jobs, cores, backfill=policy == "easy")
    expected = gs.simulate(workload, policy=policy).record.start
    assert [starts[job.number] for job in jobs] == expected.tolist()


def test_a_row_states_whether_a_schedule_is_possible_and_like_ours(script: Script, log: Path) -> None:
    joblist, check = script("joblist"), script("check")
    write_swf(gs.read_workload(log, rules={"over-estimate": "repair"}), log)
    _, jobs = joblist.read_jobs(log)
    ours, theirs = (log.with_name(f"site-2.1.easy.{name}.csv") for name in ("gridsim", "other"))
    joblist.write_schedule(ours, jobs, [100, 120, 106])
    joblist.write_schedule(theirs, jobs, [100, 120, 118])
    assert check.row(ours) == "| site-2.1 | easy | gridsim | yes | all | 5 |"
    assert "oversubscribed" in check.row(theirs)
    assert "| 66.7 % | 9 |" in check.row(theirs)


def test_hardly_different_is_not_the_same(script: Script) -> None:
    share = script("check").share
    assert share(np.array([True] * 3)) == "all"
    assert share(np.array([True] * 99_999 + [False])) == "99.9 %"


@pytest.mark.long
def test_a_command_that_runs_too_long_is_stopped_and_said_so(script: Script, tmp_path: Path) -> None:
    compare = script("compare")
    endless = tmp_path / "endless.py"
    endless.write_text("while True: pass")
    case = compare.Case(
        tmp_path / "log.swf", "easy", compare.Simulator("other", str(endless), ("easy",)), sys.executable
    )
    cost = case.cost(case.log, 1)
    assert cost.cpu == float("inf")
    assert "| over 1 |" in compare.row(case, [cost], [cost], [compare.Cost(0.5, 10.0)], 1)


def test_a_command_that_fails_ends_the_comparison(script: Script, tmp_path: Path) -> None:
    compare = script("compare")
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit(3)")
    case = compare.Case(
        tmp_path / "log.swf", "easy", compare.Simulator("other", str(broken), ("easy",)), sys.executable
    )
    with pytest.raises(SystemExit, match="exit code 3"):
        case.cost(case.log, 10)


def test_ratios_are_of_the_same_round(script: Script, tmp_path: Path) -> None:
    compare = script("compare")
    case = compare.Case(tmp_path / "log.swf", "easy", compare.SIMULATORS[1], sys.executable)
    theirs = [compare.Cost(cpu, 10.0) for cpu in (2.0, 8.0, 3.0)]
    ours = [compare.Cost(cpu, 10.0) for cpu in (1.0, 4.0, 1.0)]
    assert "| 3.00 (2.00 to 8.00) | 2.00 | 2.00 | 10 |" in compare.row(case, theirs, theirs[:1], ours, 60)


def test_the_rules_that_explain_accasim_give_what_it_gave(script: Script) -> None:
    explain, job = script("explain"), script("joblist").Job
    ignored = [job(1, 0, 10, 3, 10), job(2, 1, 10, 4, 10), job(3, 2, 100, 1, 100)]
    assert explain.accasim(ignored, 4) == {1: 0, 3: 2, 2: 102}
    not_tried = [job(1, 0, 5, 3, 20), job(2, 1, 10, 4, 10), job(3, 30, 1, 1, 1)]
    assert explain.accasim(not_tried, 4) == {1: 0, 2: 30, 3: 40}


def test_the_rule_that_explains_lapis_starts_jobs_on_whole_minutes(script: Script) -> None:
    explain, job = script("explain"), script("joblist").Job
    assert explain.lapis([job(1, 7, 10, 3, 10), job(2, 8, 100, 1, 100), job(3, 9, 1, 4, 1)], 4) == {
        1: 67,
        2: 67,
        3: 187,
    }
