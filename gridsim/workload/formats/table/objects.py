"""Objects of a JSON array, one after the other, and the values at a path in each, as texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from gridsim.errors import InputError
from gridsim.files import DAMAGED, integer

_CHUNK = 1 << 20
_STEP = re.compile(r"\[(-?\d+|\*)\]|\.?([^.\[\]]+)")


class Objects(Iterator[Mapping[str, Any]]):
    """Iterator over the objects of an array, with only the current part in memory.

    Parameters
    ----------
    text : text file
        File with the array.
    path : object
        Path of the file, for errors.
    """

    def __init__(self, text: IO[str], path: object) -> None:
        self._text, self._path = text, path
        self._decoder = json.JSONDecoder(parse_int=integer)
        self._rest, self._place, self._number = "", 0, 0
        if self._next() != "[":
            raise self._wrong("no array")
        self._place += 1

    def __next__(self) -> Mapping[str, Any]:
        mark = self._next()
        if mark == "," and self._number:
            self._place += 1
            mark = self._next()
        if mark == "]":
            raise StopIteration
        found = self._decoded()
        self._number += 1
        if not isinstance(found, dict):
            raise self._wrong(f"object {self._number} is {str(found)[:40]!r}")
        return found

    def _decoded(self) -> Any:
        while True:
            try:
                found, self._place = self._decoder.raw_decode(self._rest, self._place)
                return found
            except json.JSONDecodeError as error:
                if not self._more():
                    raise self._wrong(f"{error.msg} in object {self._number + 1}") from error
            except RecursionError as error:
                raise self._wrong(f"object {self._number + 1} is nested too deeply") from error

    def _next(self) -> str:
        """Return the next character that is not a blank; empty at the end."""
        while True:
            while self._place < len(self._rest):
                if not self._rest[self._place].isspace():
                    return self._rest[self._place]
                self._place += 1
            if not self._more():
                return ""

    def _more(self) -> bool:
        """Read more text; double the amount for long objects, to limit repeated parsing."""
        self._rest = self._rest[self._place :]
        self._place = 0
        try:
            data = self._text.read(max(_CHUNK, len(self._rest)))
        except DAMAGED as error:
            raise self._wrong(f"the compressed data is damaged ({error}) after object {self._number}") from error
        self._rest += data
        return bool(data)

    def _wrong(self, problem: str) -> InputError:
        return InputError(f"{problem}; expected an array of objects (JSON)", path=self._path)

    @staticmethod
    def column(path: str, objects: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return the values at a path in each object, as texts; empty without a value.

        Examples
        --------
        >>> job = {"user": "ada", "runs": [{"end": 3, "on": ["g0", "g1"]}, {"end": None, "on": ["g0"]}]}
        >>> [Objects.column(path, [job])[0] for path in ("user", "runs[-1].on[*]", "runs[*].on[*]", "runs[*].end")]
        ['ada', 'g0', 'g0|g1|g0', '3|']
        """
        steps = [found[2] if found[1] is None else _Index(found[1]) for found in _STEP.finditer(path)]
        return [_text(_found(it, steps)) for it in objects]


class _Index(str):
    """Index of a list entry, or all entries."""


def _found(value: Any, steps: Sequence[str]) -> Any:
    for place, step in enumerate(steps):
        if not isinstance(step, _Index):
            value = value.get(step) if isinstance(value, dict) else None
        elif not isinstance(value, list):
            return None
        elif step == "*":
            below = [_found(it, steps[place + 1 :]) for it in value]
            return [part for it in below for part in (it if isinstance(it, list) else [it])]
        else:
            value = value[int(step)] if -len(value) <= int(step) < len(value) else None
    return value


def _text(value: Any) -> str:
    """Return a value as the text of a cell; several values are separated by bars."""
    if isinstance(value, list):
        return "|".join(map(_text, value))
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, bool | dict) else str(value).strip()
