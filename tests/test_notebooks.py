"""Notebooks are committed with their outputs, and a new execution prints the same.

Printed output is compared without white space at ends of lines; pictures only have to exist. After a change of output,
``python notebooks/execute.py`` executes the notebooks in place; read the difference before you commit it.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SILENT = re.compile(r"(%|import |from |#|matplotlib\.|os\.|folder = )")
"""Lines of cells that set things up."""

ABSOLUTE = re.compile(r"(?<![\w.:/])/(?:home|root|tmp|usr|opt|var|work|Users|private|mnt)/|\b[A-Z]:\\")


def cells(path: Path) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def code(path: Path) -> list[Mapping[str, Any]]:
    return [cell for cell in cells(path) if cell["cell_type"] == "code"]


def joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def texts(cell: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The text of a cell and its source: streams, and plain forms of its results."""
    for output in cell.get("outputs", ()):
        if output["output_type"] == "stream":
            name, text = output["name"], output["text"]
        else:
            name, text = output["output_type"], output.get("data", {}).get("text/plain", "")
        yield name, "\n".join(line.rstrip() for line in joined(text).splitlines())


@pytest.fixture(scope="module")
def execute() -> ModuleType:
    """The script of the folder."""
    for package in ("nbclient", "nbformat", "ipykernel"):
        pytest.importorskip(package, reason="the notebooks extra is not installed: pip install '.[notebooks]'")
    spec = importlib.util.spec_from_file_location("execute", FOLDER / "execute.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_is_a_notebook_for_each_paper_and_one_for_a_log_of_ones_own() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "campaign",
        "compare-with-pandas",
        "custom-policies",
        "deadlines-jsspp",
        "deadlines-report",
        "deadlines-service",
        "grid",
        "moldable",
        "my-own-log",
        "world",
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_code_cell_is_committed_as_it_was_executed(path: Path) -> None:
    ran = code(path)
    assert [cell["execution_count"] for cell in ran] == list(range(1, len(ran) + 1))
    for cell in ran:
        lines = [line for line in joined(cell["source"]).splitlines() if line]
        assert cell["outputs"] or all(SILENT.match(line) for line in lines), lines
    said = [name for cell in ran for name, _ in texts(cell)]
    assert not {"error", "stderr"} & set(said)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nothing_reports_where_or_when_it_was_executed(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    assert set(content["metadata"]) == {"kernelspec", "language_info"}
    assert content["metadata"]["language_info"] == {"name": "python"}
    for cell in content["cells"]:
        assert cell["metadata"] == {}
        for text in (joined(cell["source"]), *(text for _, text in texts(cell))):
            assert not ABSOLUTE.search(text), text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_public_names_alone_are_used(path: Path) -> None:
    source = "\n".join(joined(cell["source"]) for cell in code(path))
    assert not re.findall(r"(?:import|\.)\s*_[a-z]\w*", source)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_listed_with_what_it_reports(path: Path) -> None:
    assert f"[{path.stem}]({path.name})" in (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_states_the_same_when_executed_again(path: Path, execute: ModuleType) -> None:
    again = [cell for cell in execute.executed(path).cells if cell["cell_type"] == "code"]
    for number, (committed, now) in enumerate(zip(code(path), again, strict=True), start=1):
        assert list(texts(now)) == list(texts(committed)), f"code cell {number} of {path.name}"
