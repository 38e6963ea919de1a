"""Accessibility of the page without a browser: contrast, headings, tables, pictures, keys, numbers next to pictures."""

from __future__ import annotations

import base64
import csv
import gzip
import html
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.record import Record
from gridsim.report import page
from gridsim.report.comparison import Comparison
from gridsim.report.markup import TEMPLATES

STYLE = (TEMPLATES / "page.css").read_text(encoding="utf-8")
SCRIPTS = "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in ("explain.js", "gantt.js"))
HOSTILE = "<script>window.hacked = 1</script>"
QUOTED = '" onmouseover="window.hacked = 1'


class Element:
    """A tag with its attributes, what is in it, and the text of all of that."""

    def __init__(self, tag: str, attributes: dict[str, str | None], within: list[str]) -> None:
        self.tag, self.attributes, self.within, self.text = tag, attributes, within, ""


class Tree(HTMLParser):
    """Elements of a page in order."""

    VOID = frozenset({"meta", "input", "br", "wbr", "path", "use", "link", "img", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        made = Element(tag, dict(attributes), [one.tag for one in self._open])
        self.elements.append(made)
        if tag not in self.VOID:
            self._open.append(made)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, dict(attributes), [one.tag for one in self._open]))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        for one in self._open:
            one.text += data

    def of(self, *tags: str) -> list[Element]:
        return [one for one in self.elements if one.tag in tags]


@pytest.fixture(scope="module")
def written(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    comparison.write(folder)
    comparison.page(folder / "report.html")
    return folder


@pytest.fixture(scope="module")
def tree(written: Path) -> Tree:
    return Tree((written / "report.html").read_text(encoding="utf-8"))


# ---- colours ----------------------------------------------------------------------------------------------------


def colours() -> dict[str, dict[str, str]]:
    """Custom properties of both schemes; values missing in the dark one are those of the light one."""
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)[:2]
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light))
    return {"light": found, "dark": {**found, **dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", dark))}}


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio (WCAG 2.2), 1 to 21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("text", "ground"),
    [
        *((text, ground) for text in ("ink", "soft", "accent") for ground in ("paper", "ground")),
        ("good", "good-ground"),
        *(("ink", ground) for ground in ("better", "same", "worse")),
    ],
)
def test_text_can_be_read(scheme: str, text: str, ground: str) -> None:
    known = colours()[scheme]
    assert contrast(known[text], known[ground]) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_curves_and_the_focus_can_be_distinguished_from_the_paper(scheme: str) -> None:
    known = colours()[scheme]
    for name in ("accent", *(f"policy-{number}" for number in range(8))):
        assert contrast(known[name], known["paper"]) >= 2.8, name
    assert contrast(known["accent"], known["paper"]) >= 3


# ---- structure --------------------------------------------------------------------------------------------------


def test_headings_leave_no_level_out(tree: Tree) -> None:
    levels = [int(one.tag[1]) for one in tree.of("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_tables_have_captions_and_their_heads_say_what_they_head(tree: Tree) -> None:
    tables = tree.of("table")
    assert len(tables) >= 3
    assert len(tree.of("caption")) == len(tables)
    assert all(one.text.strip() for one in tree.of("caption"))
    assert all(one.attributes.get("scope") in ("col", "row", "rowgroup") for one in tree.of("th"))


def test_scrollable_regions_have_a_name_and_keyboard_access(tree: Tree) -> None:
    regions = [one for one in tree.of("div") if "scroll" in (one.attributes.get("class") or "").split()]
    assert regions
    assert all(one.attributes.get("tabindex") == "0" for one in regions)
    names = [one.attributes["aria-label"] for one in regions]
    assert len(set(names)) == len(names)


def test_every_picture_is_reported_in_words(tree: Tree) -> None:
    pictures = [one for one in tree.of("div") if one.attributes.get("class") == "picture"]
    assert len(pictures) == len(tree.of("figure")) >= 6
    for one in pictures:
        assert one.attributes["role"] == "img"
        assert len(one.attributes["aria-label"] or "") > 40


def test_pictures_answer_in_words_before_they_explain(tree: Tree, comparison: Comparison) -> None:
    pictures = [one for one in tree.of("div") if one.attributes.get("class") == "picture"]
    texts = [one.attributes["aria-label"] or "" for one in pictures]
    assert all(", ".join(comparison.labels) in text for text in texts[:4])
    own = [text for text in texts if "with 95 % intervals" in text]
    assert own
    assert all(text.startswith(f"Under {comparison.labels[1]}") for text in own)


def test_captions_are_short_and_no_text_is_below_several_charts(tree: Tree, written: Path) -> None:
    texts = [" ".join(one.text.split()) for one in tree.of("figcaption")]
    assert all(0 < len(text.split()) <= 25 for text in (*texts, *(one.text for one in tree.of("caption"))))
    names = {path.name for path in written.iterdir()}
    told = [" ".join(word for word in text.split() if word not in names) for text in texts]
    assert len(set(told)) == len(told)


def test_the_answers_about_a_job_are_read_out_and_every_control_has_a_name(tree: Tree) -> None:
    said = [one for one in tree.of("div") if one.attributes.get("class") == "explanation"]
    assert [one.attributes.get("aria-live") for one in said] == ["polite"]
    for one in tree.of("input", "select"):
        assert "label" in one.within
    assert all(one.text.strip() or one.attributes.get("aria-label") for one in tree.of("button"))
    canvas = tree.of("canvas")[0]
    assert canvas.attributes["tabindex"] == "0"
    assert "Arrow keys move" in (canvas.attributes["aria-label"] or "")


def test_the_first_key_leads_to_the_answer(tree: Tree) -> None:
    first = tree.of("a", "button", "input", "select")[0]
    assert first.attributes["href"] == "#answer"
    assert any(one.attributes.get("id") == "answer" for one in tree.of("h2"))
    assert ":focus-visible" in STYLE


def test_nothing_moves_for_those_who_do_not_want_it() -> None:
    assert "prefers-reduced-motion: reduce" in STYLE
    assert "scrollIntoView({ behavior" not in SCRIPTS


def test_no_references_leave_the_page(tree: Tree) -> None:
    links = [one.attributes["href"] or "" for one in tree.of("a")]
    ids = {one.attributes["id"] for one in tree.elements if one.attributes.get("id")}
    inside = {link[1:] for link in links if link.startswith("#")}
    assert inside <= ids
    assert all(link.startswith(("#", "data:application/gzip;base64,")) for link in links)
    assert not [one for one in tree.elements if "src" in one.attributes or one.tag in ("link", "iframe", "img")]
    assert not re.search(r"fetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(|EventSource", SCRIPTS)
    assert "url(" not in STYLE


def test_every_file_of_numbers_is_part_of_the_page(tree: Tree, written: Path) -> None:
    linked = {one.attributes["id"]: one for one in tree.of("a") if (one.attributes.get("id") or "").startswith("data-")}
    assert {name.removeprefix("data-") for name in linked} == {path.name for path in written.glob("*.csv")}
    for name, link in linked.items():
        packed = (link.attributes["href"] or "").partition(",")[2]
        text = gzip.decompress(base64.b64decode(packed))
        assert text == (written / name.removeprefix("data-")).read_bytes()
        rows = list(csv.reader(io.StringIO(text.decode())))
        assert len(rows) > 1
        assert {len(row) for row in rows} == {len(rows[0])}
    inside = [one for one in tree.of("a") if "figcaption" in one.within]
    assert len(inside) == len(tree.of("figure"))
    assert {(one.attributes["href"] or "")[1:] for one in inside} <= set(linked)


def test_a_file_that_is_too_large_is_not_part_of_the_page(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MOST_EMBEDDED", 100)
    found = page.embedded_files({"a.csv": b"a,b\n1,2\n", "b.csv": bytes(range(256))})
    assert found["a.csv"]
    assert found["b.csv"] == ""


# ---- hostile names ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(making: Callable[..., dict[str, Record]], comparing: Callable[..., Comparison]) -> str:
    records = making(600, policies=2)
    workload = next(iter(records.values())).workload
    labels = {**workload.labels, **{name: np.arange(600) % 2 + 1 for name in ("user", "account", "partition", "qos")}}
    names = dict.fromkeys(("user", "account", "partition", "qos"), ("", HOSTILE, QUOTED))
    workload = replace(workload, labels=labels, names=names)
    return page.render(comparing({label: replace(record, workload=workload) for label, record in records.items()}))


def test_names_of_a_log_are_never_markup(hostile: str) -> None:
    assert HOSTILE not in hostile
    assert QUOTED not in hostile
    assert hostile.count("</script>") == 2
    tree = Tree(hostile)
    assert not [one for one in tree.elements if any(name.startswith("on") for name in one.attributes)]
    assert "&lt;script&gt;window" in hostile


def test_the_data_of_the_page_hold_names_that_end_no_script(hostile: str) -> None:
    found = re.search(r'<script type="application/json" id="gantt-data">(.*?)</script>', hostile, re.DOTALL)
    assert found is not None
    assert not set("<>&'") & set(found[1])
    pack: dict[str, Any] = json.loads(found[1])
    assert pack["places"]["account"] == {"1": HOSTILE, "2": QUOTED}
    assert html.unescape(found[1]) == found[1]
