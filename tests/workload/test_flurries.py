"""Flurries: bursts of jobs by one user."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gridsim as gs
from gridsim.cli import main
from gridsim.errors import InputError
from gridsim.model.workload import Workload
from gridsim.questions.whatif import whatif
from gridsim.scenario import transformed
from gridsim.workload.formats.swf_writer import write_swf
from gridsim.workload.synthetic.lublin import default_workload
from gridsim.workload.transform.flurries import WithoutFlurries, flurries

WEEK = 7 * 86_400
FLOODER = 77_777


def flooded(log: Workload, jobs: int, *, days: float = 3, part: float = 0.4) -> Workload:
    """Return the log with additional small jobs of one user, in one window from a *part* of its time on."""
    first, last = (int(it) // 1_000_000 for it in (log.submit.min(), log.submit.max()))
    window = int(part * (last - first)) // WEEK
    more = first + window * WEEK + 86_400 + np.arange(jobs) * days * 86_400 / jobs
    return Workload.from_columns(
        submit=np.concatenate([log.submit / 1e6, more]),
        runtime=np.concatenate([log.runtime / 1e6, np.full(jobs, 60.0)]),
        cores=np.concatenate([log.cores, np.ones(jobs, dtype=int)]),
        labels={"user": np.concatenate([log.labels["user"], np.full(jobs, FLOODER)])},
        cores_stated=log.cores_stated,
    )


LOGS = [
    "generated",
    pytest.param("CTC-SP2-1996-3.1-cln", marks=pytest.mark.others),
    pytest.param("SDSC-SP2-1998-4.2-cln", marks=pytest.mark.others),
    pytest.param("SDSC-BLUE-2000-4.2-cln", marks=[pytest.mark.others, pytest.mark.long]),
    pytest.param("NASA-iPSC-1993-3.1-cln", marks=[pytest.mark.others, pytest.mark.long]),
]


@pytest.mark.parametrize("name", LOGS)
def test_planted_floods_are_found_and_there_is_no_false_alarm(name: str, others: Callable[[str], Path]) -> None:
    log = default_workload() if name == "generated" else gs.read_workload(others(f"swf/{name}.swf.gz"))
    assert flurries(log) == []
    weeks = np.bincount((log.submit - log.submit.min()) // (WEEK * 1_000_000))
    median = float(np.median(weeks[weeks > 0]))
    for times, seen in ((1, False), (3, True), (10, True)):
        jobs = max(round(times * median), 600 if seen else 0)
        found = flurries(flooded(log, jobs))
        assert [it.user for it, _ in found] == [FLOODER] * seen, times
        if seen:
            (flurry, rows), *_ = found
            assert flurry.jobs == len(rows) == jobs
            assert flurry.times >= 2
            assert flurry.share >= 0.5


@pytest.mark.parametrize("name", ["generated", pytest.param("SDSC-SP2-1998-4.2-cln", marks=pytest.mark.others)])
def test_a_looser_rule_finds_more(name: str, others: Callable[[str], Path]) -> None:
    if name == "generated":
        submits = [0] * 10 + [WEEK] * 10 + [2 * WEEK] * 10 + [3 * WEEK] * 10
        users = list(range(30)) + [50] * 8 + [51, 52]
        log = Workload.from_columns(submit=submits, runtime=[1] * 40, cores=[1] * 40, labels={"user": users})
        found = [it for it, _ in flurries(log, WithoutFlurries(times=0.8, least=5))]
        assert [(it.user, it.first, it.jobs, it.times, it.share) for it in found] == [(50, 3 * WEEK, 8, 0.8, 0.8)]
        return
    found = [it for it, _ in flurries(gs.read_workload(others(f"swf/{name}.swf.gz")), WithoutFlurries(times=1))]
    assert [(it.user, it.jobs, round(it.times, 1)) for it in found] == [(24, 675, 1.4), (48, 619, 1.3)]


def test_neighbouring_windows_are_one_flurry_and_all_jobs_of_the_user_in_them_go() -> None:
    submits = [*range(10), *(WEEK + np.arange(20)), *(2 * WEEK + np.arange(20)), *(4 * WEEK + np.arange(20))]
    users = [*range(10), *[7] * 20, *[7] * 19, 8, *[7] * 20]
    log = Workload.from_columns(submit=submits, runtime=[1] * 70, cores=[1] * 70, labels={"user": users})
    rule = WithoutFlurries(times=0.9, least=10)
    assert [(it.first, it.last, it.jobs) for it, _ in flurries(log, rule)] == [
        (WEEK, 2 * WEEK + 18, 39),
        (4 * WEEK, 4 * WEEK + 19, 20),
    ]
    left = rule.apply(log)
    assert len(left) == 11  # the only job of user 7 in the first week remains
    assert left.provenance["transforms"][-1]["flurries"] == 2


def test_unknown_users_flood_nothing() -> None:
    columns = {"submit": [0] * 900, "runtime": [1] * 900, "cores": [1] * 900}
    for labels in ({}, {"user": [-1] * 900}):
        assert flurries(Workload.from_columns(**columns, labels=labels)) == []  # type: ignore[arg-type]
    with pytest.raises(InputError, match="all jobs belong to flurries"):
        transformed(Workload.from_columns(**columns, labels={"user": [1] * 900}), ["without-flurries?times=1"])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    write_swf(flooded(default_workload(jobs=400, load=0.1, cores=16), 1500), path)
    return path


def test_they_are_listed_named_and_left_out(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workload", "flurries", str(log)]) == 0
    told = capsys.readouterr().out
    assert str(FLOODER) in told
    assert "1,500" in told
    assert main(["workload", "flurries", str(log), "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["flurries"]
    assert (entry["user"], entry["jobs"]) == (str(FLOODER), 1500)
    assert main(["workload", "flurries", str(log), "--times", "900"]) == 0
    assert "The log has no flurries." in capsys.readouterr().out
    words = ["compare", str(log), "--policy", "fcfs", "--policy", "easy", "--no-page", "--out", str(tmp_path / "out")]
    assert main([*words, "--flurries", "keep"]) == 0
    assert f"burst of jobs by one user): user {FLOODER} (1,500 jobs" in " ".join(capsys.readouterr().out.split())
    assert main([*words, "--flurries", "drop"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "transformed: 400 jobs" in told
    assert "burst of jobs" not in told


def test_an_answer_is_reported_with_and_without_them(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", str(log), "--policy", "fcfs", "--policy", "easy", "--no-page", "--out", str(tmp_path / "out")]
    assert main([*words, "--flurries", "both", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert main([*words, "--flurries", "drop", "--json"]) == 0
    dropped = json.loads(capsys.readouterr().out)
    assert answer["without_flurries"] == dropped["metrics"]
    assert answer["metrics"] != dropped["metrics"]
    told = " ".join(answer["sentences"])
    assert f"Without the flurry of user {FLOODER}" in told
    assert "1,500 jobs fewer" in told
    assert "The conclusions " in told
    assert main([*words, "--json"]) == 0  # with a flurry in the log, no option is needed
    assert json.loads(capsys.readouterr().out)["sentences"] == answer["sentences"]


def test_nothing_is_reported_or_run_twice_where_no_job_floods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", "--jobs", "40", "--policy", "easy", "--no-page", "--out", str(tmp_path), "--json"]
    assert main(words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["without_flurries"] is None
    assert "flurry" not in " ".join(answer["sentences"])


def test_what_if_is_reported_with_and_without_them(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["whatif", str(log), "--add-cores", "+25%"]
    assert main([*words, "--flurries", "keep"]) == 0
    assert f"burst of jobs by one user): user {FLOODER} (1,500 jobs" in " ".join(capsys.readouterr().out.split())
    assert main([*words, "--flurries", "both", "--out", str(tmp_path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"Without the flurry of user {FLOODER}" in told
    assert "1,500 jobs fewer, the mean wait is" in told
    assert "burst of jobs" not in told
    both = json.loads((tmp_path / "whatif.json").read_text())
    assert main([*words, "--flurries", "drop", "--json"]) == 0
    dropped = json.loads(capsys.readouterr().out)
    assert both["without_flurries"] == dropped["changes"]
    assert both["changes"] != dropped["changes"]
    assert dropped["without_flurries"] is None


def test_from_python_they_are_left_out_too() -> None:
    jobs = flooded(default_workload(jobs=400, load=0.1, cores=16), 1500)
    both, dropped = (gs.compare(jobs, ["fcfs", "easy"], flurries=what) for what in ("both", "drop"))  # type: ignore[arg-type]
    assert both.cleaned is not None
    assert both.cleaned.metrics == dropped.metrics != both.metrics
    assert dropped.cleaned is None
    changed = [whatif(jobs, flurries=what) for what in ("both", "drop")]  # type: ignore[arg-type]
    assert changed[0].cleaned is not None
    assert [one.numbers for one in changed[0].cleaned.outcomes] == [one.numbers for one in changed[1].outcomes]
