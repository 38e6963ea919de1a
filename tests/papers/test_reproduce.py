"""``gridsim reproduce``: each paper from end to end at the smallest scale, without any log."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from gridsim.cli import main
from gridsim_papers.ledger import read_ledger
from gridsim_papers.papers import PAPERS

ANSWERS = {"holds", "holds partly", "not shown", "does not hold", "not testable"}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all papers."""
    return tmp_path_factory.mktemp("reproduction")


def call(out: Path, *words: str) -> int:
    return main(["reproduce", *words, "--scale", "tiny", "--out", str(out)])


@pytest.mark.long  # seconds each; other tests cover campaigns and claims
@pytest.mark.parametrize(("paper", "figures"), [("qops-report", 57), ("service", 9), ("grid", 15), ("moldable", 14)])
@pytest.mark.usefixtures("undrawn")
def test_a_paper_is_done_again(paper: str, figures: int, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(out, paper) == 0
    told = capsys.readouterr().out
    assert "synthetic jobs replace" in told
    assert f"{paper}: {figures} figures in" in told
    names = {path.stem for path in (out / "figures").glob(f"{paper}-figure-*.png")}
    assert len(names) == figures
    with (out / "verdicts.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["paper"] == paper]
    assert {row["id"] for row in rows} == set(read_ledger(PAPERS[paper].family.name, paper))
    assert {row["overall"] for row in rows} <= ANSWERS
    for row in rows:
        assert f"\n{row['id']} " in told
        assert row["synthetic"] or not row["effect"] or row["id"][0] in "GM" or row["id"] == "P04-C11"
    page = (out / "index.html").read_text(encoding="utf-8")
    assert page.count(f'src="figures/{paper}-figure-') == figures
    assert "Synthetic jobs instead of" in page


@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
def test_existing_results_are_not_run_again_and_papers_share_a_page(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the report: its extract has the same rows."""
    assert call(out, "qops-report", "--figure", "7") == 0
    before = sorted((out / "rows").glob("*/runs/*"))
    assert call(out, "qops") == 0
    assert sorted((out / "rows").glob("*/runs/*")) == before
    assert json.loads((out / "qops.json").read_text(encoding="utf-8"))["ran"]["units"] == 0
    page = (out / "index.html").read_text(encoding="utf-8")
    assert page.index('id="qops-report"') < page.index('id="qops"')
    told = capsys.readouterr().out
    for claim in ("J03-F01", "J03-F02", "J03-F03"):  # by the cases that gridsim includes
        assert re.search(rf"^{claim} +holds ", told, re.MULTILINE)


@pytest.mark.long
def test_a_figure_alone_runs_what_it_needs_and_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(tmp_path, "service", "--figure", "3", "--figures", "svg") == 0
    told = capsys.readouterr()
    assert str(tmp_path / "figures" / "service-figure-03.svg") in told.out
    assert (tmp_path / "figures" / "service-figure-03.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert [path.name for path in (tmp_path / "rows").iterdir()] == ["service-tiny-T-fixed"]
    assert not (tmp_path / "index.html").exists()
    assert "gridsim workload fetch ctc" in told.out


def test_pseudo_code_and_worked_examples_need_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(tmp_path, "qops", "--figure", "1") == 0
    assert "decided by exact cases 05 06" in capsys.readouterr().out
    assert call(tmp_path, "grid", "--figure", "3") == 0
    assert (tmp_path / "figures" / "grid-figure-03.png").stat().st_size > 1000
    assert not (tmp_path / "rows").exists()


def test_a_figure_that_cannot_be_made_is_named_with_exit_1(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    family = PAPERS["service"].family
    monkeypatch.setattr(family, "results", lambda paper, rows, plan: type(family).results(family, paper, {}, plan))
    assert call(out, "service", "--figure", "3") == 1
    assert "figure 3 was not drawn: P04-F03 has no rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["qop"], "did you mean 'qops'"),
        (["moldable", "--figure", "15"], "unknown figure of moldable '15'"),
        (["--figure", "3"], "needs a paper;"),
        (["grid", "--scale", "big"], "unknown scale 'big'"),
        (["moldable", "--variant", "loguniform"], "ctc-338"),
        (["grid", "--data", "nowhere"], "is not a folder"),
        (["grid", "--cases", "nowhere"], "is not a folder"),
        (["grid", "--workers", "0"], "at least 1"),
    ],
)
def test_bad_input_is_named_before_anything_runs(
    words: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = words if "--scale" in words else [*words, "--scale", "tiny"]
    assert main(["reproduce", *given, "--out", str(tmp_path / "out")]) == 2
    assert named in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_help_cites_the_papers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["reproduce", "--help"])
    told = capsys.readouterr().out
    for name in PAPERS:
        assert f"\n  {name} " in told
    assert "Burkimsher" in told


def test_papers_are_listed_with_their_variants(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list"]) == 0
    told = capsys.readouterr().out
    assert [line.split()[0] for line in told.splitlines() if line[0] != " "] == list(PAPERS)
    assert "variants: loguniform, redraw" in told
