"""The pages of the documentation build without a warning; links have targets, and references are complete."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import gridsim
from gridsim import cli, registry
from gridsim.cli.arguments import add_arguments
from gridsim.cli.list import KINDS as LISTED
from gridsim.policy.presets import PRESETS
from gridsim.workload.formats.table import presets

DOCS = Path(__file__).resolve().parent.parent / "docs"

pytestmark = pytest.mark.long


class _Page(HTMLParser):
    """Anchors and links of a built page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" and value:
                self.anchors.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages; warnings are errors."""
    for package in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(package, reason="the docs extra is not installed: pip install '.[docs]'")
    from sphinx.cmd.build import build_main

    folder = tmp_path_factory.mktemp("site")
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        code = build_main(
            ["-W", "--keep-going", "-q", "-b", "html", "-d", str(folder / "trees"), str(DOCS), str(folder / "html")]
        )
    assert code == 0, told.getvalue()
    return folder / "html"


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {path: _Page(path) for path in site.rglob("*.html")}
    missing = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchored = target in pages and parts.fragment and unquote(parts.fragment) not in pages[target].anchors
            if not target.exists() or anchored:
                missing.append(f"{path.relative_to(site)}: {link}")
    assert not missing


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Long options of a parser and of those below it."""
    for action in parser._actions:
        yield from (name for name in action.option_strings if name.startswith("--") and name != "--help")
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from options(below)


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_option_of_a_verb_is_in_the_reference(site: Path, verb: str) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser, verb)
    pages = (site / "reference" / "command-line.html", site / "howto" / "log.html")
    described = set(re.findall(r'<span class="pre">(--[\w-]+)', "".join(page.read_text("utf-8") for page in pages)))
    assert not set(options(parser)) - described


def test_every_mapping_that_comes_with_gridsim_is_in_the_reference(site: Path) -> None:
    text = (site / "reference" / "files.html").read_text(encoding="utf-8")
    assert [name for name in presets() if name not in text] == []


@pytest.mark.parametrize("kind", [kind for kind in LISTED if kind not in ("mappings", "problems")])
def test_every_name_of_the_registry_is_in_the_reference(site: Path, kind: str) -> None:
    text = (site / "reference" / "policies.html").read_text(encoding="utf-8")
    described = (
        [{"name": name, "aliases": []} for name in PRESETS]
        if kind == "policies"
        else registry.describe(kind.removesuffix("s"))
    )
    for row in described:
        for name in (row["name"], *row["aliases"]):
            assert f'<dt><code class="docutils literal notranslate"><span class="pre">{name}</span></code>' in text or (
                f'</code>, <code class="docutils literal notranslate"><span class="pre">{name}</span></code>' in text
            ), name


@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_violation_on_the_first_page(
    site: Path, browser: Any, axe: Callable[[Any], list[str]], width: int
) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get((site / "index.html").as_uri())
    assert axe(browser) == []


@pytest.mark.parametrize(
    ("word", "page"), [("maintenance", "howto/world"), ("maintenance", "glossary"), ("utilization", "glossary")]
)
def test_the_search_finds_a_word(site: Path, word: str, page: str) -> None:
    from sphinx.search.en import SearchEnglish

    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    stem, number = SearchEnglish({}).stem(word), index["docnames"].index(page)
    found = [index[kind].get(stem, []) for kind in ("terms", "titleterms")]
    assert any(number in (each if isinstance(each, list) else [each]) for each in found)


@pytest.mark.parametrize("name", [name for name in gridsim.__all__ if isinstance(getattr(gridsim, name), type)])
def test_every_public_class_has_a_page_with_a_link_to_its_source(site: Path, name: str) -> None:
    if issubclass(getattr(gridsim, name), Exception):
        assert f'id="gridsim.{name}"' in (site / "reference" / "python.html").read_text(encoding="utf-8")
        return
    page = site / "reference" / "classes" / f"gridsim.{name}.html"
    assert f'id="gridsim.{name}"' in page.read_text(encoding="utf-8")
    assert any(link.startswith("../../_modules/gridsim/") for link in _Page(page).links)


def test_the_side_bar_groups_the_how_tos_by_reader(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    captions = re.findall(r'<span class="caption-text">([^<]+)</span>', text)
    assert captions == ["Start", "For operators", "For researchers", "For developers", "Reference"]
    bar = text.split('class="sidebar-tree"')[1].split("<!-- end sidebar-tree")[0]
    pages = {page.stem for page in (DOCS / "howto").glob("*.md")}
    assert set(re.findall(r'href="howto/(\w[\w-]*)\.html"', bar)) == pages
    assert 'href="trust.html"' in bar


def test_the_gallery_has_every_picture_of_the_pages(site: Path) -> None:
    def drawn(*pages: Path) -> int:
        return sum(page.read_text(encoding="utf-8").count('<svg class="gantt"') for page in pages)

    assert drawn(site / "gallery.html") == drawn(*(site / "background").glob("*.html")) > 40
    figures = {path.name for path in (DOCS / "results" / "figures").glob("*.png")}
    assert figures <= {Path(link).name for link in _Page(site / "gallery.html").links}


def test_nothing_of_the_pages_comes_from_the_network(site: Path) -> None:
    for path in site.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|img|link)[^>]+(?:src|href)=\"(https?:[^\"]+)\"", path.read_text(encoding="utf-8")
        )
        assert not loaded
