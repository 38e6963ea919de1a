"""The pages cover the whole program: each column, number, word of the report and algorithm is documented.

Columns are read from the files that the commands write, so that a new one without a description fails here.
"""

from __future__ import annotations

import contextlib
import csv
import doctest
import importlib
import io
import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from gridsim import cli, registry
from gridsim.metrics.compare import Difference
from gridsim.metrics.dag import DAG_METRICS
from gridsim.metrics.summary import DEADLINE_METRICS, GRID_METRICS, METRICS
from gridsim.model.platform import ClusterSpec
from gridsim.policy.presets import policy
from gridsim.questions.evidence import GroupRow
from gridsim.report import tables
from gridsim.scenario import Scenario
from gridsim_papers.verdict_table import COLUMNS as VERDICTS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
RECIPES = sorted(
    path for path in (ROOT / "scenarios" / "examples").glob("*.toml") if not path.name.startswith("campaign-")
)
SOURCES = (ROOT, ROOT / "scenarios" / "papers")
MODULES = [(root, path) for root in SOURCES for path in sorted(root.glob("gridsim*/**/*.py"))]

WRITING = [
    "compare --jobs 200 --transform deadlines --policy easy --policy fqops?kill_restart=true --no-page --out promised",
    "compare --jobs 200 --transform moldable --policy easy --policy moldable-combined --no-page --out sized",
    "compare workflow.json --platform grid.toml --policy fifo-job --policy p-slr --no-page --out tasks",
    "compare sacct.txt --machine 32 --policy fcfs --policy easy --shake 2 --no-page --out slurm",
    "whatif site.swf --add-cores +25% --out changed",
    "forecast site.swf --at 26h --no-arrivals --out expected",
    "sweep campaign-estimates.toml --workers 1 --out swept",
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands write."""
    folder = tmp_path_factory.mktemp("written")
    for examples in (DOCS / "examples", ROOT / "scenarios" / "examples"):
        shutil.copytree(examples, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        for line in WRITING:
            assert cli.main(line.split()) == 0, line
    return folder


def described(page: str) -> set[str]:
    """Words in backticks on a page."""
    return set(re.findall(r"`([\w()]+)`", (DOCS / "reference" / page).read_text(encoding="utf-8")))


def terms() -> set[str]:
    """Words of the glossary, in lower case and without units."""
    text = (DOCS / "glossary.md").read_text(encoding="utf-8").split("```{glossary}\n")[1].split("```")[0]
    found = [line for line in text.splitlines() if line and not line.startswith(" ")]
    return {re.sub(r" \((?!Holm)[^()]*\)$", "", line).lower() for line in found}


def columns_of(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return next(csv.reader(file))


# -- columns, numbers, words -------------------------------------------------------------------------------------------


def test_every_column_that_is_written_is_described(written: Path) -> None:
    known = described("files.md") | set(METRICS) | set(DEADLINE_METRICS) | set(GRID_METRICS)
    factors = {"policy", "window", "estimates"}  # of the campaign above
    files = [path for path in written.rglob("*.csv") if path.parent != written]
    assert {"jobs.csv", "tasks.csv", "comparisons.csv", "means.csv", "runs.csv"} <= {path.name for path in files}
    missing = {f"{path.name}: {name}" for path in files for name in columns_of(path) if name not in known | factors}
    assert not missing


def test_every_file_that_is_written_is_described(written: Path) -> None:
    text = (DOCS / "reference" / "files.md").read_text(encoding="utf-8")
    names = {path.name for path in written.rglob("*") if path.is_file() and path.parent != written}
    names = {name for name in names if not re.fullmatch(r"[0-9a-f]{16,}\.json", name)}
    assert {"jobs.csv", "metrics.json", "campaign.json"} <= names
    assert not {name for name in names if f"`{name}" not in text and Path(name).suffix in (".csv", ".json", ".html")}


def test_every_number_of_metrics_json_is_described(written: Path) -> None:
    found: set[str] = set()
    for path in written.rglob("metrics.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        nested = all(isinstance(value, dict) for value in content.values())
        found.update(*content.values()) if nested else found.update(content)
    assert len(found) > 60
    assert found <= set(METRICS) | set(DEADLINE_METRICS) | set(DAG_METRICS)  # the pages list these in full


def test_every_column_of_verdicts_is_described() -> None:
    assert {*VERDICTS, "scale"} <= described("files.md")


@pytest.mark.parametrize("shown", ["SHOWN", "SHOWN_DAGS", "SHOWN_MOLDABLE", "SHOWN_DEADLINES"])
def test_every_row_of_the_table_has_a_word_in_the_glossary(shown: str) -> None:
    known = terms()
    titles = getattr(tables, shown).values()
    first = {title.split(",")[0].lower() for title in titles}
    assert not {word for word in first if not any(term in word or word in term for term in known)}


HEADINGS = {"", "lines", "first ones", "treatment", "significant?", "id", "n", "mean", "claim", "under", "jobs"}
"""Headings of tables that say what they are."""


def test_every_heading_of_the_page_has_a_word_in_the_glossary() -> None:
    known = terms()
    text = (ROOT / "gridsim" / "report" / "templates" / "page.html.j2").read_text(encoding="utf-8")
    headings = {found.lower().strip() for found in re.findall(r'scope="col"[^>]*>([^<{]*)<', text)} - HEADINGS
    assert {"metric", "change", "verdict"} <= headings
    assert not {heading for heading in headings if not any(term in heading for term in known)}


# -- verbs, keys, parameters -----------------------------------------------------------------------------------------


def test_every_verb_has_a_section() -> None:
    text = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    for verb in cli.VERBS:
        assert f"\n## {verb}\n" in text
        assert f"{{generated}} verb {verb}\n" in text


@pytest.mark.parametrize(
    ("kind", "page", "rows"),
    [
        ("jobs.csv", "files.md", "jobs"),
        ("killed_runs.csv", "files.md", "killed"),
        ("differences.csv", "files.md", "differences"),
        ("groups.csv", "files.md", "groups"),
    ],
)
def test_every_column_of_a_file_is_described(kind: str, page: str, rows: str) -> None:
    text = (DOCS / "reference" / page).read_text(encoding="utf-8")
    section = text.split(f"## Columns of `{kind}`")[1].split("\n## ")[0]
    if rows == "jobs":
        transforms = ("deadlines", "moldable?range_factor=1")
        result = Scenario(model="lublin?jobs=5&users=2", transforms=transforms, policy="fqops").run()
        columns = list(result.jobs)
        assert {"granted", "cores_used"} <= set(columns)
    elif rows == "killed":
        columns = list(Scenario(model="lublin?jobs=5", transforms=("deadlines",), policy="qops").run().killed_runs)
    else:
        columns = [field.name for field in fields(Difference if rows == "differences" else GroupRow)]
    described = set(re.findall(r"`(\w+)`", section))
    assert not set(columns) - described


def test_every_key_of_a_cluster_is_described() -> None:
    section = (DOCS / "reference" / "files.md").read_text(encoding="utf-8").split("## A platform")[1]
    keys = {"cluster" if field.name == "name" else field.name for field in fields(ClusterSpec)}
    assert keys <= set(re.findall(r"`children\[\]\.(\w+)`", section))


def test_every_key_of_run_json_is_described(tmp_path: Path) -> None:
    Scenario(model="lublin?jobs=5").run().write(tmp_path)
    section = (DOCS / "reference" / "files.md").read_text(encoding="utf-8").split("## `run.json`")[1]
    assert set(json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))) <= set(re.findall(r"`(\w+)`", section))


def test_recipe_keys_of_the_page_are_those_of_recipes() -> None:
    text = (DOCS / "howto" / "recipes.md").read_text(encoding="utf-8")
    keys = re.findall(r"^\| `(?:workload|options)\.(\w+)`", text, re.MULTILINE)
    assert {"file", "model", "cores", "on", "transforms"} < set(keys)
    for recipe in RECIPES:
        content = tomllib.loads(recipe.read_text(encoding="utf-8"))
        assert {*content.get("workload", {}), *content.get("options", {})} <= set(keys)


def test_lublin_parameters_of_the_page_are_those_of_the_model() -> None:
    text = (DOCS / "background" / "lublin.md").read_text(encoding="utf-8")
    table = text.split("## Parameters of the model")[1]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(
        registry.parameters(registry.find("model", "lublin"))
    )


# -- pictures ----------------------------------------------------------------------------------------------------------


def _parts(thing: object) -> Iterator[str]:
    """Names of a composition and of all its components."""
    if is_dataclass(thing) and not isinstance(thing, type):
        yield registry.name_of(type(thing))
        for field in fields(thing):
            yield from _parts(getattr(thing, field.name, None))


def _drawn() -> Iterator[str]:
    for page in PAGES:
        for found in re.finditer(r"^```\{(?:gantt|dag)\} (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            for text in found[1].split("|"):
                composed, *options = text.split()
                yield composed
                yield from _parts(policy(composed))
                for option in options:
                    if option.startswith("balancer="):
                        yield from _parts(registry.make("balancer", option.removeprefix("balancer=")))


@pytest.mark.parametrize(
    "kind", ["scheduler", "ordering", "reservation", "admission", "heuristic", "partition", "balancer"]
)
def test_every_algorithm_has_a_picture(kind: str) -> None:
    with contextlib.chdir(DOCS / "examples"):
        drawn = set(_drawn())
    assert not {row["name"] for row in registry.describe(kind, own=True)} - drawn


def test_every_speedup_has_a_curve() -> None:
    text = (DOCS / "background" / "moldable.md").read_text(encoding="utf-8")
    curves = text.split("```{speedups}")[1].split("```")[0]
    assert not {row["name"] for row in registry.describe("speedup", own=True)} - set(re.findall(r": (\w+)", curves))


# -- examples of docstrings --------------------------------------------------------------------------------------------


def test_examples_of_docstrings_are_collected() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    assert "gridsim" in options["testpaths"]
    assert "--doctest-modules" in options["addopts"].split()


@pytest.mark.parametrize(("root", "path"), MODULES, ids=lambda path: os.path.relpath(path, ROOT))
def test_every_example_of_a_module_is_one_that_is_run(root: Path, path: Path) -> None:
    written = len(re.findall(r"^\s*>>> ", path.read_text(encoding="utf-8"), re.MULTILINE))
    if written:
        name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        tests = doctest.DocTestFinder().find(importlib.import_module(name))
        assert sum(len(test.examples) for test in tests) == written
        skipping = doctest.OPTIONFLAGS_BY_NAME["SKIP"]
        assert not [line.source for test in tests for line in test.examples if line.options.get(skipping)]


def test_files_that_developer_pages_name_exist() -> None:
    package = ROOT / "gridsim"
    missing = []
    for page in sorted((DOCS / "develop").glob("*.md")):
        for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+)(?:\.py)?`", page.read_text(encoding="utf-8")):
            there = (package / name, package / f"{name}.py", ROOT / name, ROOT / f"{name}.py", DOCS / f"{name}.md")
            if not any(path.exists() for path in there):
                missing.append(f"{page.name}: {name}")
    assert missing == []
