"""The page of the reproduced papers."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gridsim_papers.ledger import Entry
from gridsim_papers.page import render
from gridsim_papers.verdict_table import Judged, as_rows, rulings
from gridsim_papers.verdicts import Verdict

NAN = float("nan")
LEDGER = {
    "G-1": Entry("G-1", "grid", "section 1", "P-SLR <b>wins</b>", "campaign", "", 0.05),
    "G-2": Entry("G-2", "grid", "section 2", "decided by cases", "exact cases", "m1"),
}
JUDGED = [
    Judged(Verdict("G-1", "holds", 0.5, 0.4, 0.6, 0.01, 6, "one"), 0.03, {"base load": "0.65"}),
    Judged(Verdict("G-1", "does not hold", 1.5, 1.2, 1.9, 0.02, 6, "x" * 200), 0.05, {"base load": "as-logged"}),
]


def told(**changes: Any) -> dict[str, Any]:
    """Results of a paper with one figure that was drawn and one that was not."""
    return {
        "name": "grid",
        "paper": "grid",
        "variant": "",
        "scale": "tiny",
        "title": "On ordering",
        "authors": "A. Author",
        "where": "Journal, 2013",
        "synthetic": "CTC SP2",
        "absent": [{"name": "CTC SP2", "file": "CTC.swf.gz", "fetch": "ctc"}],
        "figures": [
            {"number": "1", "caption": "Figure 1: code", "file": "", "note": "pseudo-code", "made": True},
            {
                "number": "2",
                "caption": "Figure 2: drawn",
                "file": "figures/grid-figure-02.png",
                "note": "",
                "made": True,
            },
            {"number": "3", "caption": "Figure 3: lost", "file": "", "note": "no rows", "made": False},
        ],
        "tables": [
            {"name": "table-3", "title": "Dominance", "lines": [["", "80 %"], ["LRTF", "100"]], "file": "t.csv"}
        ],
        "claims": as_rows(rulings(JUDGED, LEDGER, lambda entry: "CTC SP2" if entry.decided_by == "campaign" else "")),
        "failed": 0,
        "campaigns": {"grid-tiny": {}},
        "ran": {"units": 3, "cpu": 12.0, "took": 14.0},
        "made": "2026-11-21",
        "versions": {"gridsim": "0.1.0"},
        **changes,
    }


class Shape(HTMLParser):
    """Tags that are left open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attributes: object) -> None:
        if tag not in ("meta", "img", "br", "link", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.fixture(scope="module")
def page() -> str:
    return render([told(), told(name="qops", paper="qops", synthetic="", absent=[])])


def test_the_page_is_well_formed_and_loads_nothing_but_its_figures(page: str) -> None:
    shape = Shape()
    shape.feed(page)
    assert not shape.wrong
    assert not shape.open
    assert "<script" not in page
    assert not re.search(r'(src|href)="(https?:)?//', page)
    assert "<b>wins</b>" not in page
    assert "P-SLR &lt;b&gt;wins&lt;/b&gt;" in page


def test_figures_are_shown_with_captions_and_missing_ones_with_the_reason(page: str) -> None:
    assert '<img src="figures/grid-figure-02.png" alt="Figure 2: drawn"' in page
    assert "Not made: no rows" in page
    assert "Pseudo-code: figures 1" in page


def test_synthetic_substitutes_are_marked_with_the_way_to_get_the_logs(page: str) -> None:
    first, second = page.split('id="qops"')
    assert "Synthetic jobs instead of CTC SP2." in first
    assert "gridsim workload fetch ctc" in first
    assert "(section 1; margin 5 %; synthetic jobs)" in first
    assert "workload fetch" not in second


def test_a_claim_shows_the_circumstance_that_supports_it_least(page: str) -> None:
    row = page[page.index('<th scope="row">G-1</th>') : page.index('<th scope="row">G-2</th>')]
    assert "2 circumstances" in row
    assert re.search(
        r'class="verdict-mark partly">holds partly</span></td><td class="number">1.5 \(1.2 to 1.9\)</td>', row
    )
    assert row.count('circumstance">') == 2


def test_answers_are_counted_over_all_papers(page: str) -> None:
    assert "4 claims: <span>2 hold partly</span><span>2 not testable</span>" in page


def test_the_page_fits_a_phone_in_both_colour_schemes(page: str, browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(page, encoding="utf-8")
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        )
        browser.get(path.as_uri())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        colours = browser.execute_script(
            "const style = getComputedStyle(document.querySelector('.verdict-mark.partly'));"
            "return [style.color, style.backgroundColor]"
        )
        assert colours[0] != colours[1]


def test_cells_of_claims_have_no_style_of_the_sections(page: str, browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(page, encoding="utf-8")
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    )
    browser.get(path.as_uri())
    bars = "return [...document.querySelectorAll('.claims *')].map((it) => getComputedStyle(it).borderLeftWidth)"
    assert set(browser.execute_script(bars)) == {"0px"}


def test_no_column_of_a_table_is_off_the_screen(browser: Any, tmp_path: Path) -> None:
    heads = ["policy", "cumulative completion", "peak in flight"]
    lines = [
        [*heads, *(f"printed {head}" for head in heads), *(f"measured {head}" for head in heads)],
        ["3.1368e+12"] * 9,
    ]
    path = tmp_path / "index.html"
    path.write_text(render([told(tables=[{"name": "t", "title": "T", "lines": lines, "file": "t.csv"}])]), "utf-8")
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    )
    browser.get(path.as_uri())
    hidden = "const it = document.querySelector('.tables .scroll'); return it.scrollWidth - it.clientWidth"
    assert browser.execute_script(hidden) <= 0
