"""The documentation matches the program: pages build, examples run, and links have targets.

Shell examples are the ``$ gridsim`` and ``$ cd`` lines of ``console`` blocks; those of a page run in order, in a folder
with ``docs/examples`` and ``scenarios/examples``. The lines below a command are compared with its output; a line
``...`` matches any lines. A comment before a block changes the expectation:
``<!-- not run: why -->``, ``<!-- needs duckdb -->`` (run if a case of the page is marked ``parquet``),
``<!-- exits with 2 -->``, ``<!-- output not shown -->``. Python examples are the ``pycon`` blocks; ``python`` blocks
are scripts. Commands of ``bash`` blocks, which are for other machines, are only parsed.

After a change of output, ``python tests/test_docs.py [PAGE ...]`` updates the blocks, except where ``...`` matches
anything but the lines above the first empty one, or the end; read the difference before you commit it.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import io
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import unquote, urlsplit

import pytest

import gridsim
from gridsim import cli, registry
from gridsim.campaign.run import progress_of, run_campaign
from gridsim.campaign.store import Store
from gridsim.campaign.sweep import Sweep
from gridsim.cli.arguments import add_arguments
from gridsim.cli.list import KINDS as LISTED
from gridsim.policy.presets import PRESETS
from gridsim.scenario import Scenario
from gridsim.workload.formats.table import presets

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
_EXAMPLES = sorted((ROOT / "scenarios" / "examples").glob("*.toml"))
CAMPAIGNS = [path for path in _EXAMPLES if path.name.startswith("campaign-")]
RECIPES = [path for path in _EXAMPLES if path not in CAMPAIGNS]

_FENCE = re.compile(
    r"(?P<before>(?:<!--[^\n]*-->\n)*)```(?P<language>\w+)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
_OUTPUT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_WHILE = re.compile(r"Compiling the inner loops |[\w ]+: [\d,]+ of [\d,]+ jobs(, about .* left)?$")
"""Progress messages of slow or first-time commands, which are not part of the output."""
_RUN = ("gridsim ", "cd ")
_CHANGING = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}


COMPILED = (
    "tutorial-sacct.md",
    "howto/",
    "background/moldable.md",
    "background/engines.md",
    "background/deadlines.md",
    "own-slurm",
    "campaign-higher-load",
)
"""Beginnings of the names of examples that need seconds, or loops that no other test of the default suite compiles."""


def cases(paths: list[Path]) -> list[Any]:
    """Parameters of a test of examples; those that take long are marked."""
    return [
        pytest.param(path, id=name, marks=pytest.mark.long if name.startswith(COMPILED) else ())
        for path, name in zip(paths, names(paths), strict=True)
    ]


def names(paths: list[Path]) -> list[str]:
    return [path.relative_to(DOCS).as_posix() if path.is_relative_to(DOCS) else path.name for path in paths]


# -- the blocks of a page ----------------------------------------------------------------------------------------------


@dataclass
class Step:
    """A line of a console block and the lines below it."""

    command: str
    shown: str


@dataclass
class Block:
    """A fenced block of a page, with the place of its body in the text."""

    language: str
    body: str
    before: str
    line: int
    span: tuple[int, int]

    @property
    def run(self) -> bool:
        return "not run:" not in self.before

    @property
    def needs_parquet(self) -> bool:
        return "needs duckdb" in self.before

    @property
    def code(self) -> int:
        found = re.search(r"exits with (\d+)", self.before)
        return int(found[1]) if found else 0

    @property
    def compared(self) -> bool:
        return "output not shown" not in self.before

    def steps(self) -> list[Step]:
        found: list[Step] = []
        for line in self.body.splitlines(keepends=True):
            if line.startswith("$ "):
                found.append(Step(line[2:].rstrip("\n"), ""))
            else:
                found[-1].shown += line
        return found


def blocks(text: str, language: str) -> list[Block]:
    return [
        Block(language, match["body"], match["before"], text[: match.start("body")].count("\n") + 1, match.span("body"))
        for match in _FENCE.finditer(text)
        if match["language"] == language
    ]


def having(language: str) -> list[Path]:
    """Pages with a block of a language."""
    return [page for page in PAGES if blocks(page.read_text(encoding="utf-8"), language)]


@contextlib.contextmanager
def workshop() -> Iterator[Path]:
    """A folder with the files of the examples, where the commands run."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name), mock.patch.dict(os.environ, _CHANGING):
        for folder in (DOCS / "examples", ROOT / "scenarios" / "examples"):
            shutil.copytree(folder, name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        with mock.patch.object(sys, "path", [name, *sys.path]):
            yield Path(name)
        for module in Path(name).glob("*.py"):
            sys.modules.pop(module.stem, None)


def carry_out(command: str) -> tuple[int, str]:
    """Exit code and everything that a ``gridsim`` line prints."""
    words = shlex.split(command, comments=True)
    if words[0] == "cd":
        os.chdir(words[1])
        return 0, ""
    printed = io.StringIO()
    with (
        mock.patch.object(sys, "argv", words),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        try:
            code = cli.main(words[1:])
        except SystemExit as done:  # argparse: --help, wrong usage
            code = int(done.code or 0)
    lines = printed.getvalue().splitlines()
    return code, "".join(line.rstrip() + "\n" for line in lines if not _WHILE.match(line))


def gridsim_steps(text: str, parquet: bool) -> Iterator[tuple[Block, Step]]:
    for block in blocks(text, "console"):
        if block.run and (parquet or not block.needs_parquet):
            yield from ((block, step) for step in block.steps() if step.command.startswith(_RUN))


# -- examples ----------------------------------------------------------------------------------------------------------


def having_steps() -> Iterator[Any]:
    """Pages with commands of gridsim; those with some that need Parquet come twice, without these and with all."""
    for page, name in zip(PAGES, names(PAGES), strict=True):
        steps = [block.needs_parquet for block, _ in gridsim_steps(page.read_text(encoding="utf-8"), parquet=True)]
        if not all(steps):
            yield pytest.param(page, False, id=name, marks=() if name == "tutorial.md" else pytest.mark.long)
        if any(steps):
            yield pytest.param(page, True, id=f"{name}-parquet", marks=(pytest.mark.long, pytest.mark.parquet))


@pytest.mark.parametrize(("page", "parquet"), [*having_steps()])
def test_shell_examples_print_what_the_page_shows(page: Path, parquet: bool) -> None:
    with workshop():
        for block, step in gridsim_steps(page.read_text(encoding="utf-8"), parquet):
            code, printed = carry_out(step.command)
            assert code == block.code, f"{page.name} line {block.line}: {step.command}\n{printed}"
            if block.compared and not doctest.OutputChecker().check_output(step.shown, printed, _OUTPUT):
                pytest.fail(f"{page.name} line {block.line}: {step.command} prints\n{printed}\nnot\n{step.shown}")


@pytest.mark.parametrize("page", cases(having("pycon")))
def test_python_examples_answer_what_the_page_shows(page: Path) -> None:
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    told: list[str] = []
    shared: dict[str, Any] = {}
    with workshop():
        for block in blocks(page.read_text(encoding="utf-8"), "pycon"):
            example = parser.get_doctest(block.body, shared, page.name, str(page), block.line)
            runner.run(example, out=told.append, clear_globs=False)
            shared = example.globs
    assert not runner.failures, "".join(told)


@pytest.mark.parametrize("page", having("python"), ids=names(having("python")))
def test_scripts_of_a_page_run(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8"), "python"):
        code = compile(block.body, f"{page.name} line {block.line}", "exec")
        if block.run:
            with workshop():
                exec(code, {"__name__": "__main__"})


@pytest.mark.parametrize("page", having("bash"), ids=names(having("bash")))
def test_commands_for_other_machines_are_understood(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8"), "bash"):
        for line in block.body.splitlines():
            if line.startswith("gridsim "):
                words = shlex.split(line, comments=True)[1:]
                cli.build_parser(words[0]).parse_args(words)


@pytest.mark.parametrize("page", having("toml"), ids=names(having("toml")))
def test_toml_of_a_page_is_toml(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8"), "toml"):
        assert tomllib.loads(block.body)


def test_few_examples_are_not_run_and_each_has_a_reason() -> None:
    reasons = [
        found[1].strip()
        for page in PAGES
        for found in re.finditer(r"<!-- not run:(.*?)-->", page.read_text(encoding="utf-8"))
    ]
    assert len(reasons) <= 14
    assert all(len(reason) > 5 for reason in reasons)


@pytest.mark.parametrize("recipe", cases(RECIPES))
def test_a_recipe_asks_a_question_and_runs(recipe: Path) -> None:
    assert re.match(r"# .*\?", recipe.read_text(encoding="utf-8")), "begin with a comment that asks the question"
    assert Scenario.from_toml(recipe).run().metrics()["completed"] > 0


@pytest.mark.parametrize("campaign", cases(CAMPAIGNS))
def test_a_campaign_asks_a_question_and_runs(campaign: Path, tmp_path: Path) -> None:
    assert re.match(r"# .*\?", campaign.read_text(encoding="utf-8")), "begin with a comment that asks the question"
    sweep = Sweep.from_toml(campaign)
    run_campaign(sweep, tmp_path)
    at = progress_of(sweep, Store(tmp_path))
    assert at.finished == at.total > 1
    found = sweep.compared(Store(tmp_path))
    assert found is not None
    assert found.found


@pytest.mark.parametrize("name", ["widest.py", "protect.py", "cautious.py", "equal.py"])
def test_the_plug_ins_of_the_pages_are_short(name: str) -> None:
    lines = (DOCS / "examples" / name).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= (15 if name == "widest.py" else 22)


# -- the built pages ---------------------------------------------------------------------------------------------------


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


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_option_of_a_verb_is_in_the_reference(site: Path, verb: str) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser, verb)
    pages = (site / "reference" / "command-line.html", site / "howto" / "log.html")
    described = set(re.findall(r'<span class="pre">(--[\w-]+)', "".join(page.read_text("utf-8") for page in pages)))
    assert not set(options(parser)) - described


@pytest.mark.long
def test_every_mapping_that_comes_with_gridsim_is_in_the_reference(site: Path) -> None:
    text = (site / "reference" / "files.html").read_text(encoding="utf-8")
    assert [name for name in presets() if name not in text] == []


@pytest.mark.long
@pytest.mark.parametrize("kind", [kind for kind in LISTED if kind not in ("mappings", "problems")])
def test_every_name_of_the_registry_is_in_the_reference(site: Path, kind: str) -> None:
    text = (site / "reference" / "policies.html").read_text(encoding="utf-8")
    described = (
        [{"name": name, "aliases": []} for name in PRESETS] if kind == "policies" else registry.describe(kind[:-1])
    )
    for row in described:
        for name in (row["name"], *row["aliases"]):
            assert f'<dt><code class="docutils literal notranslate"><span class="pre">{name}</span></code>' in text or (
                f'</code>, <code class="docutils literal notranslate"><span class="pre">{name}</span></code>' in text
            ), name


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_violation_on_the_first_page(
    site: Path, browser: Any, axe: Callable[[Any], list[str]], width: int
) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get((site / "index.html").as_uri())
    assert axe(browser) == []


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in gridsim.__all__ if isinstance(getattr(gridsim, name), type)])
def test_every_public_class_has_a_page_with_a_link_to_its_source(site: Path, name: str) -> None:
    if issubclass(getattr(gridsim, name), Exception):
        assert f'id="gridsim.{name}"' in (site / "reference" / "python.html").read_text(encoding="utf-8")
        return
    page = site / "reference" / "classes" / f"gridsim.{name}.html"
    assert f'id="gridsim.{name}"' in page.read_text(encoding="utf-8")
    assert any(link.startswith("../../_modules/gridsim/") for link in _Page(page).links)


@pytest.mark.long
def test_the_side_bar_groups_the_how_tos_by_reader(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    captions = re.findall(r'<span class="caption-text">([^<]+)</span>', text)
    assert captions == ["Start", "For operators", "For researchers", "For developers", "Reference"]
    bar = text.split('class="sidebar-tree"')[1].split("<!-- end sidebar-tree")[0]
    pages = {page.stem for page in (DOCS / "howto").glob("*.md")}
    assert set(re.findall(r'href="howto/(\w[\w-]*)\.html"', bar)) == pages
    assert 'href="trust.html"' in bar


@pytest.mark.long
def test_the_gallery_has_every_picture_of_the_pages(site: Path) -> None:
    def drawn(*pages: Path) -> int:
        return sum(page.read_text(encoding="utf-8").count('<svg class="gantt"') for page in pages)

    assert drawn(site / "gallery.html") == drawn(*(site / "background").glob("*.html")) > 40
    figures = {path.name for path in (DOCS / "results" / "figures").glob("*.png")}
    assert figures <= {Path(link).name for link in _Page(site / "gallery.html").links}


@pytest.mark.long
def test_nothing_of_the_pages_comes_from_the_network(site: Path) -> None:
    for path in site.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|img|link)[^>]+(?:src|href)=\"(https?:[^\"]+)\"", path.read_text(encoding="utf-8")
        )
        assert not loaded


# -- updating the blocks
# -------------------------------------------------------------------------------------------------


def rewritten(text: str) -> str:
    """The page with what its commands print now."""
    with workshop():
        for block in blocks(text, "console"):
            if not block.run:
                continue
            parts = []
            for step in block.steps():
                shown = step.shown
                if step.command.startswith(_RUN):
                    _, printed = carry_out(step.command)
                    printed = re.sub(r"\n{3,}", "\n\n", printed)
                    shown = _shortened(printed, shown)
                parts.append(f"$ {step.command}\n{shown}")
            if block.compared:  # other commands also run, because later blocks may need their files
                text = text.replace(f"```console\n{block.body}```", f"```console\n{''.join(parts)}```", 1)
    return text


def _shortened(printed: str, shown: str) -> str:
    """The output, with ``...`` as in the page: for the beginning or the end; otherwise the page is unchanged."""
    top, end = shown.startswith("...\n"), shown.endswith("\n...\n")
    if shown == "...\n" or shown.count("...\n") > top + end:
        return shown
    if top:
        printed = "...\n" + printed[printed.find("\n\n") + 1 :]
    return "".join([*printed.splitlines(keepends=True)[: shown.count("\n") - 1], "...\n"]) if end else printed


if __name__ == "__main__":
    for each in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        before = each.read_text(encoding="utf-8")
        each.write_text(rewritten(before), encoding="utf-8")
