"""Claims of the papers."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def claims() -> Callable[[str], list[dict[str, str]]]:
    """Claims by family, with the campaigns to run, draw and judge."""

    def read(family: str) -> list[dict[str, str]]:
        text = (Path(__file__).parent / "claims" / f"{family}.csv").read_text(encoding="utf-8")
        return list(csv.DictReader(text.splitlines()))

    return read
