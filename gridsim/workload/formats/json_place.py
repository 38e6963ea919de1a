"""Values of a JSON file that know where they stand, so that an error names the path of the field."""

from __future__ import annotations

import json
import math
import os
import sys
from typing import Any, NoReturn

from gridsim.errors import InputError
from gridsim.files import parse_json
from gridsim.workload.formats.stream import DAMAGED, opened

__all__ = ["JsonPlace", "read_json"]

MOST = sys.float_info.max
"""Largest number that is read where nothing less is asked for."""

_TYPES: dict[type, str] = {dict: "an object", list: "a list", str: "a text", int: "a whole number", float: "a number"}


class JsonPlace:
    """A value of a JSON file.

    Parameters
    ----------
    value : object
        As the JSON module reads it.
    path : object
        The file.
    field : str
        Path of the value in it, as in ``workflow.specification.tasks[3].id``; empty for the whole.

    Examples
    --------
    >>> JsonPlace({"tasks": [{"id": "a"}]}, "w.json").get("tasks").items()[0].get("id").field
    'tasks[0].id'
    """

    __slots__ = ("field", "path", "value")

    def __init__(self, value: Any, path: object, field: str = "") -> None:
        self.value, self.path, self.field = value, path, field

    def wrong(self, message: str) -> NoReturn:
        """Raise `InputError` for this value."""
        raise InputError(message, path=self.path, field=self.field or "(the whole file)")

    def get(self, key: str) -> JsonPlace:
        """Value of a key that must be there."""
        found = self.find(key)
        if found is None:
            raise InputError(f"is missing; expected by {self._name()}", path=self.path, field=self._of(key))
        return found

    def find(self, key: str) -> JsonPlace | None:
        """Value of a key, None where it is not there."""
        value = self._typed(dict).get(key)
        return None if value is None else JsonPlace(value, self.path, self._of(key))

    def items(self, key: str | None = None, *, least: int = 0) -> list[JsonPlace]:
        """Entries of the list that this is, or that stands under *key*; an absent one has none, unless some are due."""
        if key is not None:
            inner = self.get(key) if least else self.find(key)
            return [] if inner is None else inner.items(least=least)
        values = self._typed(list)
        if len(values) < least:
            self.wrong(f"is empty; expected at least {least}")
        return [JsonPlace(value, self.path, f"{self.field}[{index}]") for index, value in enumerate(values)]

    def text(self) -> str:
        """The text that this is; not an empty one."""
        value: str = self._typed(str)
        if not value:
            self.wrong("is empty; expected a text")
        return value

    def number(self, least: float = -math.inf, most: float = MOST) -> float:
        """The number that this is, from *least* to *most*."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.wrong(f"is {_shown(self.value)}; expected a number")
        if not least <= self.value <= most:
            said = f"from {least:g}" if self.value < least or most == MOST else f"of at most {most:,.16g}"
            self.wrong(f"is {_shown(self.value)}; expected a number {said}")
        return float(self.value)

    def _typed(self, wanted: type) -> Any:
        if not isinstance(self.value, wanted):
            self.wrong(f"is {_shown(self.value)}; expected {_TYPES[wanted]}")
        return self.value

    def _of(self, key: str) -> str:
        return f"{self.field}.{key}" if self.field else key

    def _name(self) -> str:
        return f"'{self.field}'" if self.field else "the format"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}…"


def read_json(path: str | os.PathLike[str]) -> tuple[JsonPlace, bytes, str]:
    """Contents of a JSON file, plain or compressed, its decompressed bytes and its checksum.

    Raises
    ------
    InputError
        When the file cannot be read or is no JSON; naming the line.
    """
    with opened(path) as (stream, digesting):
        try:
            text = stream.read()
        except DAMAGED as error:
            raise InputError(f"the compressed data is damaged ({error}); fetch the file again", path=path) from error
        sha256 = digesting.hexdigest()
    return JsonPlace(parse_json(text, path, "a workflow"), path), text, sha256
