"""The test suite: tests of third-party data also run on generated input; long files run first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


def alone(items: Iterable[Any]) -> list[str]:
    """Tests whose cases all read third-party data, so that none of them runs without it."""
    twins: dict[str, bool] = {}
    for item in items:
        name = item.nodeid.partition("[")[0]
        twins[name] = twins.get(name, False) or item.get_closest_marker("others") is None
    return [name for name, has_twin in twins.items() if not has_twin]


def test_every_test_on_other_peoples_data_has_a_case_on_generated_input(request: pytest.FixtureRequest) -> None:
    assert alone(request.session.items) == []


@dataclass
class Case:
    nodeid: str
    marked: bool

    def get_closest_marker(self, name: str) -> object | None:
        assert name == "others"
        return SimpleNamespace() if self.marked else None


def test_a_test_without_a_twin_is_found() -> None:
    both = [Case("test_a.py::test_one[generated]", False), Case("test_a.py::test_one[SDSC]", True)]
    assert alone([*both, Case("test_a.py::test_two", False)]) == []
    assert alone([*both, Case("test_b.py::test_one[SDSC]", True), Case("test_b.py::test_one[CTC]", True)]) == [
        "test_b.py::test_one"
    ]


def test_the_files_that_are_first_are_there() -> None:
    names = (Path(__file__).parent / "longest.txt").read_text().split()
    assert [name for name in names if not (Path(__file__).parents[1] / name).is_file()] == []
