"""Statements of capability on README, the first page and *Choose a simulator*, each with its test."""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from gridsim import registry
from gridsim.campaign.paper import papers
from gridsim.cli import VERBS, build_parser
from gridsim.policy.presets import PRESETS, policy
from gridsim.testing.conformance.cases import FAMILIES, NOT_BUILT

ROOT = Path(__file__).resolve().parents[1]
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/index.md", "docs/choosing.md")}

READERS = {
    "sacct": "sacct",
    "pbs": "PBS",
    "swf": "Standard Workload Format",
    "gwf": "Grid Workload",
    "wfformat": "WfFormat",
    "table": "any table of jobs",
}
"""Name of each format in prose."""


def names(kind: str) -> set[str]:
    return {row["name"] for row in registry.describe(kind, own=True)}


def test_the_formats_of_the_first_page_are_the_readers() -> None:
    text = " ".join(PAGES["docs/index.md"].split())
    assert names("reader") == set(READERS)
    for name, prose in READERS.items():
        if name != "table":
            assert prose in text, name
    assert "howto/tables" in text


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/trust.md", "docs/howto/reproduce.md"])
def test_five_studies_are_reproduced(page: str) -> None:
    assert len(papers()) == 5
    assert re.search(r"\b[Ff]ive (?:published studies|reproduced studies|papers)", (ROOT / page).read_text("utf-8"))


def test_the_algorithms_that_the_first_page_names_exist() -> None:
    text = " ".join(PAGES["docs/index.md"].split())
    for words, name in {
        "first come, first served": "fcfs",
        "EASY": "easy",
        "conservative backfilling": "conservative",
        "reservations for the first *k* jobs": "depth",
        "first-fit": "first-fit",
        "MSB": "msb",
        "MRT": "mrt",
        "QoPS": "qops",
        "FQoPS": "fqops",
        "greedy": "moldable-greedy",
        "fair shares": "moldable-submit",
        "reservations by category": "moldable-combined",
    }.items():
        assert words in text, words
        assert name in PRESETS or name in names("reservation"), name
        policy(name)


def test_the_python_version_of_the_pages_is_that_of_the_package() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    assert parser["options"]["python_requires"] == ">=3.11"
    assert "Python 3.11 or newer" in PAGES["README.md"]
    assert "Python 3.11 or later" in PAGES["docs/index.md"]


@pytest.mark.parametrize("page", PAGES)
def test_commands_on_the_pages_exist(page: str) -> None:
    found = set(re.findall(r"gridsim ([a-z]+)\b(?= )", " ".join(re.findall(r"\$ (.+)", PAGES[page]))))
    assert found <= set(VERBS), found - set(VERBS)


def test_the_families_of_conformance_cases_are_on_their_page() -> None:
    text = (ROOT / "docs/howto/verify.md").read_text(encoding="utf-8")
    assert all(f"`{family}`" in text for family in (*FAMILIES, *NOT_BUILT))


def test_times_to_compile_are_generated() -> None:
    assert "{generated} compile-times" in (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")


def test_lists_of_missing_features_are_generated_on_each_page() -> None:
    for page in ("docs/index.md", "docs/choosing.md", "docs/what-is-modelled.md"):
        assert "{generated} not-modelled" in (ROOT / page).read_text(encoding="utf-8"), page
    assert tomllib.loads((ROOT / "docs/what-is-modelled.toml").read_text(encoding="utf-8"))["feature"]


CHECKED = {
    "README.md": {
        "simulates a cluster's job log": ("tests/cli/test_compare.py", "test_a_log"),
        "an HTML page that opens offline": ("tests/report/test_page.py", "loads_nothing"),
        "The only requirement is Python": ("tests/test_statements.py", "python_requires"),
        "runs the tests": ("tests/test_readme.py", "pytest"),
        "PBS accounting logs": ("tests/workload/formats/test_pbs.py", "def test_"),
        "reproduce the recorded schedule": ("tests/cli/test_calibrate.py", "calibrate"),
        "workflows of dependent tasks": ("tests/cli/test_grid_input.py", "workflow"),
        "which resource do jobs wait for": ("tests/metrics/test_resources.py", "waits_short_of"),
        "slightly shifted submit times": ("tests/cli/test_compare.py", "--shake"),
        "predicted run times": ("tests/policy/test_prediction.py", "easy++"),
        "Guaranteed deadlines": ("tests/cli/test_quote.py", "qops"),
        "Start times": ("tests/published/test_forecasts_of_slurm.py", "median < 200"),
        "which completion time could be guaranteed": ("tests/cli/test_quote.py", "easy"),
        "Moldable jobs": ("tests/cli/test_moldable_compare.py", "moldable"),
        "halve the mean wait": ("tests/cli/test_whatif.py", "--halve"),
        "submit the next job sooner": ("tests/cli/test_users.py", "react"),
        "resumable": ("tests/cli/test_sweep.py", "sweep"),
        "Five published studies": ("tests/test_statements.py", "papers()"),
    },
    "docs/index.md": {
        "under which policy": ("tests/report/test_sentences.py", "answer"),
        "CSV and JSON files": ("tests/test_docs_complete.py", "metrics_json"),
        "for the built-in workload under": ("tests/test_docs.py", "def test_shell_examples"),
        "gridsim generates a workload": ("tests/cli/test_compare.py", "built_in_workload"),
        "Slurm's `sacct` in any output format": ("tests/workload/formats/test_sacct.py", "def test_"),
        "a custom one": ("tests/cli/test_compare.py", "policy_of_a_file"),
        "conservative backfilling": ("tests/agreement/test_oracle.py", "conservative"),
        "multifactor priority with Fair Tree": ("tests/policy/slurm/test_parts.py", "fair_tree"),
        "periodic backfill": ("tests/agreement/test_slurm_oracle.py", "def test_"),
        "Memory, GPUs, nodes and licences": ("tests/cli/test_nodes.py", "gpu"),
        "kill and restart, charges": ("tests/metrics/test_deadlines.py", "kill_restart"),
        "Moldable jobs": ("tests/agreement/test_moldable.py", "moldable"),
        "a tree of routers and clusters": ("tests/agreement/test_engines_on_trees.py", "def test_"),
        "paired comparisons": ("tests/metrics/test_campaign.py", "def test_"),
        "Options and keys for these features are refused": ("tests/test_what_is_modelled.py", "refused"),
        "one pool of interchangeable cores": ("tests/model/test_applicable_demands.py", "one pool of cores"),
    },
    "docs/choosing.md": {
        "an interval for each difference": ("tests/metrics/test_coverage.py", "def test_"),
        "check its result with `gridsim validate`": ("tests/cli/test_validate.py", "validate"),
        "does not model them": ("tests/test_what_is_modelled.py", "refused"),
        "gridsim reads `slurm.conf`": ("tests/test_what_is_modelled.py", "keywords_that_are_modelled"),
        "compiled loops were in the cache": ("tests/machine/test_njit.py", "def test_"),
        "`benchmarks/others/explain.py`": ("tests/benchmarks/test_others.py", "explain"),
        "conformance\ncases": ("tests/conformance/test_cases.py", "def test_"),
        "correlated waits": ("tests/metrics/test_coverage.py", "def test_"),
        "counts each damaged line": ("tests/workload/test_problems.py", "counts"),
        "guarantees [deadlines]": ("tests/agreement/test_admission.py", "def test_"),
        "schedules of [any program]": ("tests/cli/test_validate.py", "violation"),
        "one row per job is enough": ("tests/test_docs.py", "def test_shell_examples"),
    },
}
"""Statements of each page with the file that tests them and a text of that file."""


@pytest.mark.parametrize("page", PAGES)
def test_each_statement_is_on_its_page_and_has_a_test(page: str) -> None:
    for statement, (file, text) in CHECKED[page].items():
        assert " ".join(statement.split()) in " ".join(PAGES[page].split()), statement
        assert text in (ROOT / file).read_text(encoding="utf-8"), f"{statement}: {file}"


CAPABLE = {
    "README.md": PAGES["README.md"],
    "docs/index.md": PAGES["docs/index.md"].partition("## What it simulates")[2],
    "docs/choosing.md": PAGES["docs/choosing.md"].partition("## Limits of gridsim")[2].partition("## Check any")[0],
}
"""Parts of the pages that consist of statements on gridsim's capabilities."""


@pytest.mark.parametrize("page", CAPABLE)
def test_each_paragraph_on_capabilities_has_a_checked_statement(page: str) -> None:
    prose = re.sub(r"^```.*?^```$|^<!--.*?-->$|^!\[.*?\)$", "", CAPABLE[page], flags=re.MULTILINE | re.DOTALL)
    blocks = [" ".join(block.split()) for block in re.split(r"\n\s*\n|\n(?=- )", prose) if block.strip()]
    stated = [" ".join(statement.split()) for statement in CHECKED[page]]
    named = ("#", "Strengths of gridsim:", "gridsim does not simulate:")  # titles, and lines before lists
    open_ones = [it for it in blocks if not it.startswith(named) and not any(statement in it for statement in stated)]
    assert len(blocks) > 5
    assert open_ones == []


@pytest.mark.parametrize("page", PAGES)
def test_each_command_on_the_pages_is_understood(page: str) -> None:
    lines = re.findall(r"^\$ (?:\.venv/bin/)?gridsim (.+)$", PAGES[page], re.MULTILINE)
    assert lines
    for line in lines:
        words = shlex.split(line)
        assert build_parser(words[0]).parse_args(words).verb == words[0]
