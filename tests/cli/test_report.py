"""``gridsim report``: builds the page of existing runs without simulation."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest

from gridsim import simulation
from gridsim.cli import main
from gridsim.questions.compare import compare
from gridsim.report import pictures
from gridsim.report.comparison import Comparison
from gridsim.scenario import Scenario

SCENARIO = Scenario(model="lublin?jobs=400&cores=64&load=0.9&estimates=multiples&users=5", policy="easy")
POLICIES = ("easy", "fcfs")
NUMBERS = ("metrics.csv", "differences.csv", "groups.csv", "distributions.csv", "over_time.csv", "fairness.csv")
needs_duckdb = pytest.mark.skipif(
    importlib.util.find_spec("duckdb") is None, reason="the extra parquet is not installed"
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for policy in POLICIES:
        replace(SCENARIO, policy=policy).run().write(folder / policy)
    return folder


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Output of a comparison that simulates."""
    folder = tmp_path_factory.mktemp("compared")
    Comparison.view(compare(SCENARIO.load(), POLICIES)).write(folder)
    return folder


def check_numbers(found: Path, known: Path) -> None:
    for name in NUMBERS:
        assert (found / name).read_text() == (known / name).read_text(), name


def test_the_page_has_the_numbers_of_a_comparison(
    runs: Path, known: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(simulation, "run", None)
    assert main(["report", str(runs / "easy"), str(runs / "fcfs"), "--out", str(tmp_path)]) == 0
    assert f"Page: {tmp_path}/report.html" in capsys.readouterr().out
    check_numbers(tmp_path, known)
    page = (tmp_path / "report.html").read_text()
    assert "Backfilling(ordering=Fifo(), reserve=Easy())" in page
    assert page.count("<svg") >= 8
    assert not list(tmp_path.glob(".*"))


@pytest.mark.long
@needs_duckdb
def test_a_streamed_record_makes_the_same_page(runs: Path, known: Path, tmp_path: Path) -> None:
    for policy in POLICIES:
        replace(SCENARIO, policy=policy).stream(tmp_path / policy)
    for place in (runs, tmp_path):
        assert main(["report", *(str(place / each) for each in POLICIES), "--out", str(tmp_path / "page")]) == 0
        check_numbers(tmp_path / "page", known)
        text = (tmp_path / "page" / "report.html").read_text()
        pages = [part for part in text.split("<dt>") if not part.startswith("Command")]
        assert len(pages) > 3
        if place is runs:
            first = pages
    assert pages == first


@pytest.mark.long
def test_a_page_that_was_stopped_continues(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["report", str(runs / "easy"), f"other={runs / 'fcfs'}", "--out", str(tmp_path)]
    with monkeypatch.context() as patched:
        patched.setattr(pictures, "winners", None)
        with pytest.raises(TypeError):
            main(command)
    parts = tmp_path / ".report.html.parts"
    assert sorted(path.stem for path in parts.iterdir()) == ["numbers", "over-users", "pictures"]
    assert not (tmp_path / "report.html").exists()
    with monkeypatch.context() as patched:
        patched.setattr(pictures, "pictures", None)
        patched.setattr("gridsim.questions.evidence.paired", None)
        assert main(command) == 0
    assert (tmp_path / "report.html").is_file()
    assert not parts.exists()


@pytest.mark.long
def test_parts_of_other_records_are_not_taken(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = ["--out", str(tmp_path)]
    with monkeypatch.context() as patched:
        patched.setattr(pictures, "winners", None)
        with pytest.raises(TypeError):
            main(["report", str(runs / "easy"), str(runs / "fcfs"), *out])
    assert main(["report", str(runs / "fcfs"), *out]) == 0
    assert list(json.loads((tmp_path / "metrics.json").read_text())) == ["fcfs"]


@pytest.mark.parametrize(
    ("scenario", "told"),
    [
        (replace(SCENARIO, options=replace(SCENARIO.options, overrun="extend")), "has other options than"),
        (replace(SCENARIO, model="lublin?jobs=399&cores=64&users=5"), "are not records of the same jobs"),
        (replace(SCENARIO, model="lublin?jobs=40&cores=64", policy="qops"), "is not supported by this command"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(
    runs: Path, tmp_path: Path, scenario: Scenario, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.run().write(tmp_path / "other")
    assert main(["report", str(runs / "easy"), str(tmp_path / "other"), "--out", str(tmp_path / "page")]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "page" / "report.html").exists()


def test_a_folder_without_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "page")]) == 2
    assert "has no run.json; expected a result directory" in capsys.readouterr().err


def test_a_page_does_not_go_into_the_folder_of_a_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(runs / "easy"), "--out", str(runs / "easy")]) == 2
    assert "expected another folder for the page" in capsys.readouterr().err
