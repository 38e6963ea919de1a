"""The examples of the documentation run and print what the pages show.

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

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from gridsim import cli
from gridsim.campaign.run import progress_of, run_campaign
from gridsim.campaign.store import Store
from gridsim.campaign.sweep import Sweep
from gridsim.scenario import Scenario

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
    "background/availability.md",
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
