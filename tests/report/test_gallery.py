"""Figures by name: on a white background, with reproducible bytes."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import pytest

from gridsim.ask import compare
from gridsim.errors import UnknownNameError
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.report.comparison import Comparison
from gridsim.report.gallery import save
from gridsim.simulation import simulate

pytestmark = pytest.mark.long

JOBS = Workload.from_columns(
    submit=range(40), runtime=[10, 30, 5, 20] * 10, cores=[1, 4, 2, 3] * 10, labels={"user": [1, 2] * 20}
)
PLACEHOLDERS = re.compile(r"#(?:010203|040506|0a0b0c|0d0e0f|101112)", re.IGNORECASE)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare(JOBS, ["fcfs", "easy"], platform=Platform.single(4))


@pytest.fixture(scope="module")
def saved(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All figures as they are saved for a paper."""
    return comparison.figures.save(tmp_path_factory.mktemp("figures"), "svg")


def test_a_comparison_has_the_figures_of_its_page(comparison: Comparison) -> None:
    assert list(comparison.figures)[:4] == ["waits", "slowdowns", "utilisation", "queue"]
    assert comparison.figures["waits"].axes[0].get_xlabel() == "wait"
    assert "by-size" in comparison.figures


def test_a_result_has_the_figures_of_one_policy() -> None:
    result = simulate(JOBS, platform=Platform.single(4), policy="easy")
    assert {"waits", "slowdowns", "utilisation", "queue"} <= set(result.figures)
    assert "job-by-job" not in result.figures


def test_an_unknown_figure_is_answered_with_the_nearest(comparison: Comparison) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'waits'"):
        comparison.figures["wiats"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_a_figure_is_the_same_bytes_every_time(comparison: Comparison, tmp_path: Path, kind: str) -> None:
    first, again = (save(comparison.figures["by-size"], tmp_path / place / f"a.{kind}") for place in ("one", "two"))
    assert first.read_bytes() == again.read_bytes()


def test_a_figure_for_paper_has_no_colour_that_only_the_page_fills_in(saved: list[Path]) -> None:
    assert saved
    for path in saved:
        assert not PLACEHOLDERS.search(path.read_text()), path.stem


def test_the_fonts_of_a_pdf_are_in_it(comparison: Comparison, tmp_path: Path) -> None:
    data = save(comparison.figures["waits"], tmp_path / "waits.pdf").read_bytes()
    inside = b"".join(map(_plain, re.findall(rb"stream\r?\n(.*?)endstream", data, re.DOTALL))) + data
    assert b"/FontFile2" in inside
    assert b"/Type3" not in inside


def _plain(stream: bytes) -> bytes:
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""


def test_all_figures_are_saved_under_their_names(comparison: Comparison, saved: list[Path]) -> None:
    assert [path.stem for path in saved] == list(comparison.figures)
    assert all(path.is_file() for path in saved)
