"""Files of a release: citation, names and versions, extras, workflows, and the pages about them."""

from __future__ import annotations

import configparser
import importlib.metadata
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gridsim import cli, result
from gridsim_papers.citations import CITATIONS

ROOT = Path(__file__).resolve().parent.parent
INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def setup() -> configparser.ConfigParser:
    """Content of setup.cfg."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    """Content of CITATION.cff."""
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def people(entry: dict[str, Any]) -> str:
    return ", ".join(f"{author['given-names']} {author['family-names']}" for author in entry["authors"])


# -- names and versions ------------------------------------------------------------------------------------------------


def test_the_version_is_read_from_the_distribution(
    setup: configparser.ConfigParser, capsys: pytest.CaptureFixture[str]
) -> None:
    version = setup["metadata"]["version"]
    assert importlib.metadata.version(setup["metadata"]["name"]) == version
    assert result.versions()["gridsim"] == version
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"gridsim {version}\n"


def test_the_wheel_that_ci_installs_has_the_name_of_the_distribution(setup: configparser.ConfigParser) -> None:
    wheel = setup["metadata"]["name"].replace("-", "_") + "-"
    for path in (ROOT / ".ci" / "run", ROOT / ".github" / "workflows" / "release.yml"):
        assert wheel in path.read_text(encoding="utf-8"), path


def test_no_person_and_no_address_is_named(setup: configparser.ConfigParser, citation: dict[str, Any]) -> None:
    assert setup["metadata"]["author"] == "gridsim contributors"
    assert not {"url", "project_urls", "author_email", "maintainer_email"} & set(setup["metadata"])
    assert citation["authors"] == [{"name": "gridsim contributors"}]
    assert not {"url", "doi", "repository", "repository-code"} & set(citation)


# -- citation ----------------------------------------------------------------------------------------------------------


def test_the_citation_has_the_version_and_the_licence(
    setup: configparser.ConfigParser, citation: dict[str, Any]
) -> None:
    assert citation["version"] == setup["metadata"]["version"]
    assert citation["license"] == setup["metadata"]["license"]


def test_the_citation_has_the_reproduced_papers_as_the_pages_cite_them(citation: dict[str, Any]) -> None:
    found = [(entry["title"], people(entry), entry["year"]) for entry in citation["references"]]
    assert found == [(paper.title, paper.authors, int(paper.where[-4:])) for paper in CITATIONS.values()]
    for entry, paper in zip(citation["references"], CITATIONS.values(), strict=True):
        venue = (entry.get("journal"), entry.get("collection-title"), entry.get("number"))
        assert all(text in paper.where for text in venue if text), paper.where


# -- pages -------------------------------------------------------------------------------------------------------------


def test_the_install_page_lists_the_extras_with_their_packages(setup: configparser.ConfigParser) -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", INSTALL, re.MULTILINE))
    extras = {
        name: [line.split()[0] for line in text.strip().splitlines()]
        for name, text in setup["options.extras_require"].items()
    }
    assert {name: text.split(", ") for name, text in rows.items()} == extras


def test_the_install_page_has_the_versions_of_python(setup: configparser.ConfigParser) -> None:
    declared = re.findall(r":: (3\.\d+)$", setup["metadata"]["classifiers"], re.MULTILINE)
    assert re.findall(r"3\.\d+", INSTALL.split("\n\n")[1]) == declared
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]["tests"]
    assert tests["strategy"]["matrix"]["python"] == declared


def test_the_page_on_releases_names_existing_files() -> None:
    text = (ROOT / "docs" / "develop" / "release.md").read_text(encoding="utf-8")
    first = text.split("## Before the first release")[1].split("## Each release")[0]
    names = [
        name for row in re.findall(r"^\| (`[^|]+) \|", first, re.MULTILINE) for name in re.findall("`([^`]+)`", row)
    ]
    assert len(names) > 8
    assert [name for name in names if not (ROOT / name).exists()] == []


# -- workflows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_installs_extras_that_exist(path: Path, setup: configparser.ConfigParser) -> None:
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
    commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    assert commands
    for extras in re.findall(r"\.\[([\w,]+)\]", "\n".join(commands)):
        assert set(extras.split(",")) <= set(setup["options.extras_require"])


def test_read_the_docs_installs_the_extra_of_the_pages_and_stops_at_warnings() -> None:
    content = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text(encoding="utf-8"))
    assert content["python"]["install"] == [{"method": "pip", "path": ".", "extra_requirements": ["docs"]}]
    assert content["sphinx"] == {"configuration": "docs/conf.py", "fail_on_warning": True}
    assert "intersphinx" not in (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
