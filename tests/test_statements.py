"""Statements of capability on README, the first page and *Choose a simulator* that no other test checks."""

from __future__ import annotations

import configparser
import re
import tomllib
from pathlib import Path

import pytest

from gridsim import registry
from gridsim.campaign.paper import papers
from gridsim.cli import VERBS
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
