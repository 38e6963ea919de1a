"""Exact cases that decide claims: their folder, and the function that runs one case."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridsim import InputError

__all__ = ["Case", "Cases"]

Case = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cases:
    """Cases of all families.

    Parameters
    ----------
    folder : Path, optional
        Folder with a subfolder for each family, or with the cases of one family. Without a folder there are no cases.
    passes : callable
        Return whether this implementation gives the expected result of a case.

    Raises
    ------
    InputError
        When the folder does not exist.
    """

    folder: Path | None = None
    passes: Callable[[Mapping[str, Any]], bool] = lambda case: False

    def __post_init__(self) -> None:
        if self.folder is not None and not self.folder.is_dir():
            raise InputError("is not a folder; expected one with exact cases", path=self.folder, field="cases")

    def of(self, family: str, pattern: str) -> Iterator[tuple[str, Case]]:
        """Return names and cases of a family whose file name matches *pattern*, sorted by name."""
        if self.folder is None:
            return
        place = self.folder / family
        for path in sorted((place if place.is_dir() else self.folder).glob(f"{pattern}.json")):
            try:
                yield path.stem, json.loads(path.read_bytes())
            except ValueError as error:
                raise InputError(f"is not valid JSON: {error}", path=path) from error

    def missing(self, what: str) -> str:
        """Raise the error for missing cases."""
        if self.folder is None:
            return "not told by cases (give --cases)" if not what else "give --cases"
        return f"not found at {self.folder}" if not what else f"cases {what} not found at {self.folder}"
