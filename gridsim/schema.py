"""Schemas of JSON files; a file is checked as a whole on reading, and errors contain its line and field."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridsim.errors import InputError
from gridsim.files import DEEPEST, parse_json

Schema = Any
"""Expected type or structure of a value.

====================  ================================================================================================
``str``, ``bool``     a value of this type
`Number`              a number within limits
``None``              null
``[schema]``          a list of such values; a list of several schemas is a list of this length
``{"key": schema}``   an object with these keys; a key that ends in ``?`` may be absent, and others may be present
``{str: schema}``     an object with any keys
``(one, other)``      either
``frozenset``         one of these texts
``re.Pattern``        a text that matches; as a key, any key that matches
`ANY`                 anything
====================  ================================================================================================
"""

ANY = object()
"""Any value."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number within limits.

    Parameters
    ----------
    least, most : float
        Limits, both included.
    whole : bool
        Whether it has to be an integer.
    """

    least: float = -1e300
    most: float = 1e300
    whole: bool = False

    def __str__(self) -> str:
        what = "a whole number" if self.whole else "a number"
        return f"{what} from {self.least:.16g} to {self.most:.16g}"


NUMBER = Number()
"""Any finite number."""

WHOLE = Number(-(2**53), 2**53, whole=True)
"""Any integer that a float holds exactly."""

_Place = tuple[str | int, ...]


def read_json(path: str | Path, schema: Schema, expected: str) -> Any:
    """Return the content of a JSON file after checking it against a schema.

    Parameters
    ----------
    path : path
        The file.
    schema : Schema
        The schema.
    expected : str
        Expected content, for error messages.

    Raises
    ------
    InputError
        With the file, the line and the field.
    """
    content, data = load_json(path, expected)
    check(content, schema, path=path, data=data)
    return content


def load_json(path: str | Path, expected: str) -> tuple[Any, bytes]:
    """Return the unchecked content of a JSON file, and its bytes; errors as in `read_json`."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}); expected {expected}", path=path) from error
    return parse_json(data, path, expected), data


def check(content: Any, schema: Schema, *, path: object = None, data: bytes | None = None) -> None:
    """Check a value against a schema.

    Parameters
    ----------
    path : path, optional
        File of the value.
    data : bytes, optional
        Bytes of that file, to find the line of an error.

    Raises
    ------
    InputError
        With the field, and with file and line if known.
    """
    inside, depth = [content], 0
    while inside := [
        one
        for each in inside
        if isinstance(each, dict | list)
        for one in (each.values() if isinstance(each, dict) else each)
    ]:
        depth += 1
        if depth > DEEPEST:
            raise InputError("is nested too deeply", path=path)
    if (wrong := _wrong(content, schema, ())) is None:
        return
    place, message = wrong
    line = None if data is None else line_of(data, place)
    field = re.sub(r"^\.", "", "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place))
    raise InputError(message, path=path, line=line, field=field or None)


def _wrong(value: Any, schema: Schema, place: _Place) -> tuple[_Place, str] | None:
    """Return place and description of the first difference; None if there is none."""
    if schema is ANY:
        return None
    if isinstance(schema, tuple):
        closest: tuple[_Place, str] = place, ""
        for each in schema:
            if (wrong := _wrong(value, each, place)) is None:
                return None
            closest = max(closest, wrong, key=lambda one: len(one[0]))
        return closest if len(closest[0]) > len(place) else _expected(value, schema, place)
    if isinstance(schema, dict) and isinstance(value, Mapping):
        return _wrong_object(value, schema, place)
    if isinstance(schema, list) and isinstance(value, list):
        if len(schema) > 1 and len(value) != len(schema):
            return place, f"has {len(value)} entries; expected {len(schema)}"
        each = schema * len(value) if len(schema) == 1 else schema
        entries = enumerate(zip(value, each, strict=True))
        return next((it for at, (one, kind) in entries if (it := _wrong(one, kind, (*place, at)))), None)
    return None if _is(value, schema) else _expected(value, schema, place)


def _wrong_object(value: Mapping[str, Any], schema: Mapping[Any, Schema], place: _Place) -> tuple[_Place, str] | None:
    named = {key.removesuffix("?"): kind for key, kind in schema.items() if isinstance(key, str)}
    of_others = next(((key, kind) for key, kind in schema.items() if not isinstance(key, str)), (str, ANY))
    for key in named:
        if key in schema and key not in value:
            return (*place, key), "is missing"
    for key, one in value.items():
        if key not in named and not _is(key, of_others[0]):
            return (*place, key), f"is not a known key; expected {_name(of_others[0])}"
        if (it := _wrong(one, named.get(key, of_others[1]), (*place, key))) is not None:
            return it
    return None


def _is(value: Any, schema: Schema) -> bool:
    if isinstance(schema, Number):
        kinds = int if schema.whole else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool) and schema.least <= value <= schema.most
    if isinstance(schema, frozenset):
        return isinstance(value, str) and value in schema
    if isinstance(schema, re.Pattern):
        return isinstance(value, str) and schema.fullmatch(value) is not None
    return value is None if schema is None else isinstance(schema, type) and isinstance(value, schema)


def _expected(value: Any, schema: Schema, place: _Place) -> tuple[_Place, str]:
    text = repr(value) if not isinstance(value, int) or abs(value) < 1e40 else "an integer with too many digits"
    return place, f"is {text if len(text) <= 40 else text[:40] + '…'}; expected {_name(schema)}"


def _name(schema: Schema) -> str:
    if isinstance(schema, tuple):
        return " or ".join(map(_name, schema))
    if isinstance(schema, frozenset):
        return ", ".join(sorted(schema))
    if isinstance(schema, Number):
        return str(schema)
    if isinstance(schema, re.Pattern):
        return f"a text like {schema.pattern}"
    if isinstance(schema, dict | list):
        return "an object" if isinstance(schema, dict) else "a list"
    return {None: "null", str: "a text", bool: "true or false"}[schema]


_SPACE = re.compile(r"[ \t\n\r]*")


def line_of(data: bytes, place: Sequence[str | int]) -> int:
    """Return the line of a JSON text on which a value begins; for a missing value that of the innermost object.

    Examples
    --------
    >>> line_of(b'{"jobs":\\n [{"id": 1},\\n  {"id": "x"}]}', ("jobs", 1, "id"))
    3
    """
    text = data.decode("utf-8-sig", "replace")
    decoder = json.JSONDecoder(parse_int=lambda digits: math.inf)

    def after(at: int) -> int:
        found = _SPACE.match(text, at)
        return at if found is None else found.end()

    value = after(0)
    for key in place:
        at, count = after(value + 1), 0
        while text[at] not in "]}":
            name: str | int = count
            if isinstance(key, str):
                name, end = decoder.raw_decode(text, at)
                at = after(after(end) + 1)
            if name == key:
                value = at
                break
            at, count = after(decoder.raw_decode(text, at)[1]), count + 1
            at = after(at + 1) if text[at] == "," else at
        else:
            break
    return text.count("\n", 0, value) + 1
