"""Files of ``gridsim forecast``, from the command line and from Python."""

from __future__ import annotations

import csv
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.cli import main, terminal
from gridsim.report.forecast_page import FILES, Forecast
from gridsim.workload.formats.swf_writer import write_swf
from tests.forecasts.states import state_of
from tests.forecasts.test_answers import AT, DAY, busy_log
from tests.forecasts.test_slurm_state import case, folder, jobs_of

LEVELS = (50, 80, 90)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.swf"
    write_swf(busy_log(days=150), path)
    return path


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def words(log: Path, *more: str) -> list[str]:
    return ["forecast", str(log), "--state", "simulated", "--futures", "39", "--horizon", "2d", "-j", "1", *more]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(cell: str) -> float:
    return float(cell) if cell else math.inf


def test_the_intervals_in_the_file_are_ranks_of_the_samples(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Section 3.1 of the specification, computed from samples.csv alone."""
    assert main(words(log, "--at", str(AT), "--no-calibration", "--out", str(tmp_path))) == 0
    assert f"Page: {tmp_path / 'forecast.html'}   (tables in {tmp_path}/)" in capsys.readouterr().out
    assert {it.name for it in tmp_path.iterdir()} == FILES - {"backtest.csv", "backtest.json"}
    waits: dict[str, list[float]] = {}
    for row in table(tmp_path / "samples.csv"):
        waits.setdefault(row["job"], []).append(number(row["wait"]))
    rows = table(tmp_path / "forecast.csv")
    assert len(rows) == len(waits) > 5
    for row in rows:
        sample, k = sorted(waits[row["job"]]), 39
        assert len(sample) == k
        assert number(row["median"]) == sample[math.ceil((k + 1) / 2) - 1]
        for level in LEVELS:
            low = max(1, (k + 1) * (100 - level) // 200)
            high = min(k, -(-(k + 1) * (100 + level) // 200))
            ends = number(row[f"low_{level}"]), number(row[f"high_{level}"])
            assert ends == (sample[low - 1], sample[high - 1])
        assert (row["calibrated"], row["pairs"], row["slurm"]) == ("0", "0", "")
    medians = [number(row["median"]) for row in rows]
    assert medians == sorted(medians)
    page = (tmp_path / "forecast.html").read_text()
    assert page.count('<tr><th scope="row">') == len(rows)
    assert "The intervals are not calibrated." in page.replace("\u00a0", " ")


def test_a_forecast_and_its_back_test_share_a_page(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = words(log, "--at", str(120 * DAY), "--backtest", "--moments", "120", "--out", str(tmp_path), "--json")
    assert main(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert {it.name for it in tmp_path.iterdir()} == FILES
    page = (tmp_path / "forecast.html").read_text()
    assert page.count("<svg") == 3
    rows = table(tmp_path / "backtest.csv")
    ends = [(number(row["low_90"]), number(row["wait"]), number(row["high_90"])) for row in rows]
    least, most = (sum(low + gap <= wait <= high - gap for low, wait, high in ends) for gap in (0.001, 0.0))
    assert found["backtest"]["tests"] == len(rows) > 50
    assert least <= found["backtest"]["90%"]["calibrated"] * len(rows) <= most, "ends of the file are rounded to 1 ms"
    assert json.loads((tmp_path / "backtest.json").read_text()) == found.pop("backtest")
    assert json.loads((tmp_path / "forecast.json").read_text()) == found
    assert all(row["calibrated"] == "1" and int(row["pairs"]) >= 50 for row in table(tmp_path / "forecast.csv"))


def test_a_live_state_is_written_and_jobs_without_a_forecast_are_rows(tmp_path: Path) -> None:
    given, out = case("f05-live-state"), tmp_path / "out"
    (live := tmp_path / "cluster").mkdir()
    folder(live, given, **{"squeue.json": jobs_of(given)})
    asked = ["forecast", "--live", str(live), "--timezone", "UTC", "--no-arrivals", "--futures", "19"]
    assert main([*asked, "--out", str(out)]) == 0
    assert json.loads((out / "state.json").read_text()) == given["expected"]
    rows = {row["job"]: row for row in table(out / "forecast.csv")}
    kinds = {job["job"]: job for job in given["expected"]["waiting"]}
    assert rows.keys() == kinds.keys()
    for name, row in rows.items():
        assert (row["median"] == row["cores"] == "") == (kinds[name]["kind"] in ("held", "never"))
        if "slurm_start" in kinds[name] and row["cores"]:
            assert float(row["slurm"]) == max(kinds[name]["slurm_start"] - given["at"], 0)
    held = next(name for name, job in kinds.items() if job["kind"] == "held")
    assert rows[held]["reason"] == "held; starts after its release at the earliest"
    page = (out / "forecast.html").read_text()
    assert 'href="state.json"' in page
    assert "cluster: start times" in page


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--live", "x", "--at", "3h"], "field 'at': is for a log"),
        (["--live", "x", "--machine", "3"], "field 'machine': is for a log"),
        (["--live", "x", "--state", "simulated"], "field 'state': is for a log"),
        (["--at", "3h", "--walltime", "1h"], "--walltime has no effect without --cores"),
        (["--at", "3h", "--task-gpus", "1"], "--task-gpus has no effect without --cores"),
        (["--at", "3h", "--user", "3"], "--user has no effect without --cores"),
        (["--at", "3h", "--ask", "new"], "--ask has no effect without --backtest"),
        (["--at", "3h", "--moments", "600"], "--moments has no effect without --backtest"),
        (["--at", "3h", "--overwrite"], "--overwrite has no effect without --report"),
        (["--backtest", "--until-empty"], "--until-empty has no effect without --at"),
        (["--at", "3h", "--report", "-"], "field 'report': is '-'; expected the name of a file"),
        (["--live", "x"], "x: folder does not exist; expected a folder with squeue.json"),
        (["--live", __file__], "is a file; expected a folder with squeue.json"),
        (["--at", "3h", "--cores", "1", "--walltime", "1h", "--job", "3"], "field 'job': is a job that waits already"),
    ],
)
def test_options_that_would_have_no_effect_are_errors(
    more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["forecast", *more]) == 2
    assert message in capsys.readouterr().err


def test_progress_counts_earlier_forecasts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_PAUSE", -1.0)
    with terminal.JobsProgress(what="earlier forecasts") as progress:
        progress.show("forecasts", 20, 60)
    assert capsys.readouterr().err == "simulating: 20 of 60 earlier forecasts\n"
    with terminal.JobsProgress(what="") as progress:  # of a quote
        progress.show("easy, jobs", 900)
        progress.show("easy, earlier forecasts", 20)
    assert capsys.readouterr().err == "easy, jobs: 900\neasy, earlier forecasts: 20\n"


def test_a_cluster_without_jobs_has_a_forecast(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(tmp_path, case("f05-live-state"), **{"squeue.json": '{"jobs": []}'})
    (tmp_path / "scontrol_partition.txt").unlink(missing_ok=True)
    assert main(["forecast", "--live", str(tmp_path), "--timezone", "UTC", "--no-arrivals", "--futures", "19"]) == 0
    assert "No job waits for cores at this moment." in capsys.readouterr().out


SLURM_CONF = """ClusterName=c
SchedulerType=sched/backfill
SelectType=select/cons_tres
PriorityType=priority/multifactor
NodeName=n[1-3] CPUs=8 State=UNKNOWN
PartitionName=cpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=gpu Nodes=ALL MaxTime=INFINITE State=UP
"""


def test_the_policy_slurm_uses_the_files_of_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = case("f05-live-state")
    folder(tmp_path, given, **{"squeue.json": jobs_of(given)})
    asked = ["forecast", "--live", str(tmp_path), "--timezone", "UTC", "--no-arrivals", "--futures", "19", "--json"]
    assert main([*asked, "--policy", "slurm"]) == 2
    assert f"{tmp_path / 'slurm.conf'}: does not exist; the policy slurm needs a copy" in capsys.readouterr().err
    (tmp_path / "slurm.conf").write_text(SLURM_CONF)
    found = []
    for policy in ("slurm", f"slurm?conf={tmp_path / 'slurm.conf'}"):
        assert main([*asked, "--policy", policy]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert [it.pop("policy") for it in found][1].startswith("slurm")
    assert found[0] == found[1]
    assert len(found[0]["jobs"]) > 2


def test_a_state_without_waiting_jobs_has_empty_tables(log: Path, tmp_path: Path) -> None:
    assert main(words(log, "--at", "4057", "--no-arrivals", "--no-calibration", "--out", str(tmp_path))) == 0
    assert table(tmp_path / "forecast.csv") == table(tmp_path / "samples.csv") == []
    assert "No job waits for cores" in (tmp_path / "forecast.html").read_text()


def test_the_page_alone_replaces_no_file_without_permission(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "mine.html"
    asked = words(log, "--at", str(AT), "--no-calibration", "--job", "all", "--report", str(page))
    assert main(asked) == 0
    text = page.read_text()
    assert 'href="forecast.csv"' not in text
    assert main(asked) == 2
    assert "mine.html: exists; give another file, or --overwrite" in capsys.readouterr().err
    page.write_text("")
    assert main([*asked, "--overwrite"]) == 0
    assert page.read_text().replace(" --overwrite", "") == text
    assert [it.name for it in tmp_path.iterdir()] == ["mine.html"]
    assert main([*words(log, "--at", str(AT)), "--report", str(log), "--overwrite"]) == 2
    assert "is an input of this command" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_a_place_without_permission_is_an_error_before_the_work(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (file := tmp_path / "file").write_text("")
    asked = ["forecast", str(tmp_path / "absent.swf"), "--at", "3h", option]
    assert main([*asked, str(file / "a" / "b")]) == 2
    assert f"{file}: is a file; expected a folder" in capsys.readouterr().err
    monkeypatch.setattr("os.access", lambda *_: False)
    assert main([*asked, str(tmp_path / "a" / "b")]) == 2
    assert f"{tmp_path}: cannot be written to\n" in capsys.readouterr().err


def test_tables_do_not_replace_the_log(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "samples.csv"
    shutil.copy(log, own)
    assert main(words(own, "--at", str(AT), "--no-calibration", "--out", str(tmp_path))) == 2
    assert "is an input of this command" in capsys.readouterr().err
    assert own.read_bytes() == log.read_bytes()


def test_results_in_python_write_the_same_files(log: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {"state": "simulated", "futures": 39, "horizon": 2 * DAY}
    answer = gs.forecast(log, at=AT, calibrate=False, **how)
    assert isinstance(answer, Forecast)
    assert {*answer.write(tmp_path / "a")} == FILES - {"backtest.csv", "backtest.json"}
    assert main(words(log, "--at", str(AT), "--no-calibration", "--out", str(tmp_path / "b"))) == 0
    for name in ("forecast.csv", "samples.csv", "forecast.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    tested = gs.backtest_forecasts(log, moments=120, **how)
    assert sorted(tested.write(tmp_path / "c")) == ["backtest.csv", "backtest.json", "forecast.html"]
    assert answer.page(tmp_path / "both.html", backtest=tested).read_text().count("<svg") == 3


def test_a_live_state_in_python_is_written_too(tmp_path: Path) -> None:
    state = state_of(case("f05-live-state")["expected"])
    answer = gs.forecast(state, futures=19, arrivals=False)
    assert "state.json" in answer.write(tmp_path)
    assert state_of(json.loads((tmp_path / "state.json").read_text())) == state
    assert np.isfinite(answer.at)
