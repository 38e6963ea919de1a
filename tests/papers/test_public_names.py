"""The papers use only public names of gridsim: those of `gridsim.__all__`, and those of the reference."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import gridsim

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ROOT / "scenarios" / "papers" / "gridsim_papers"
CONTRACT = "papers are made of public names"


def taken(path: Path) -> Iterator[tuple[str, str]]:
    """Modules of gridsim that a file imports from, and the names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "gridsim":
            yield from ((str(node.module), name.name) for name in node.names)
        elif isinstance(node, ast.Import):
            yield from ((name.name, "") for name in node.names if name.name.partition(".")[0] == "gridsim")


@pytest.fixture(scope="module")
def documented() -> set[str]:
    """Names that the pages of the reference describe."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md"))
    found = re.findall(r"^(?:\.\. auto\w+::|  ) +([\w.]+)$", text, re.MULTILINE)  # directives, and rows of summaries
    return {f"gridsim.{name.removeprefix('gridsim.')}" for name in found}


def test_every_name_that_the_papers_take_is_public(documented: set[str]) -> None:
    own = {f"gridsim.{name}" for name in gridsim.__all__}
    found = {(path.relative_to(PAPERS), f"{it[0]}.{it[1]}") for path in PAPERS.rglob("*.py") for it in taken(path)}
    assert len(found) > 100
    assert not {(str(path), name) for path, name in found if name not in documented | own}


def test_the_contract_allows_modules_of_the_reference_alone(documented: set[str]) -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (contract,) = (one for one in told if one["name"] == CONTRACT)
    allowed = {line.removeprefix("gridsim_papers.** -> ") for line in contract["ignore_imports"]}
    assert allowed - {"gridsim"} <= {name.rpartition(".")[0] for name in documented}
    assert allowed == {module for path in PAPERS.rglob("*.py") for module, _ in taken(path)}
