"""Schemas of JSON files and of tables of TOML files; errors contain the field, and the line in a JSON file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args

from gridsim.errors import InputError, UnknownNameError
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
`Table`               a table of a TOML file: as an object, but other keys may not be present
``(one, other)``      either
``frozenset``         one of these texts, as ``Literal["one", "other"]``
``re.Pattern``        a text that matches; as a key, any key that matches
`ANY`                 anything
====================  ================================================================================================
"""

ANY = object()
"""Any value."""

NAME = re.compile(r"(?s).+")
"""A text that is not empty."""


class Table(dict[Any, Schema]):
    """Schema of a table of a TOML file, which may have only these keys."""


ANY_TABLE = Table({str: ANY})
"""A table with any content."""


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
        least = f" from {self.least:.16g}" if self.least > -(2**53) else ""
        least = " above 0" if self.least == _SMALLEST else least
        return f"{what}{least}{f' to {self.most:.16g}' if self.most < 2**53 else ''}"


NUMBER = Number()
"""Any finite number."""

_SMALLEST = 5e-324
"""The smallest number above 0."""

POSITIVE = Number(_SMALLEST)
"""Any finite number above 0."""

WHOLE = Number(-(2**53), 2**53, whole=True)
"""Any integer that a float holds exactly."""

_Place = tuple[str | int, ...]


class _Wrong(NamedTuple):
    """Where a value differs from its schema: the problem (empty for an unknown key), and the schema of that place."""

    place: _Place
    problem: str
    schema: Schema


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


def typed(value: Any, schema: Schema, where: str, path: object) -> Any:
    """Return a value of a TOML file after checking it; *where* is its place, and errors are as in `check`."""
    check(value, schema, path=path, where=where)
    return value


def check_fields(owner: object, schema: Mapping[str, Schema], where: str = "") -> None:
    """Check attributes of an object, which are a table of this name in a TOML file; errors are as in `check`."""
    check({name: getattr(owner, name) for name in schema}, schema, where=where)


def check(content: Any, schema: Schema, *, path: object = None, data: bytes | None = None, where: str = "") -> None:
    """Check a value against a schema.

    Parameters
    ----------
    path : path, optional
        File of the value.
    data : bytes, optional
        Bytes of that file, to find the line of an error.
    where : str, optional
        Place of the value in the file, if it is a part of it.

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
    if (wrong := _wrong(content, schema, (where,) if where else ())) is None:
        return
    place, problem, expected = wrong
    if not problem:
        named = [key.removesuffix("?") for key in expected]
        table = f"[{_field(place[:-1])}] in " if place[:-1] else ""
        raise UnknownNameError(f"key of {table}{path or 'the table'}", place[-1], named)
    line = None if data is None else line_of(data, place)
    raise InputError(f"{problem}; expected {_name(expected)}", path=path, line=line, field=_field(place) or None)


def _field(place: _Place) -> str:
    return re.sub(r"^\.", "", "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place))


def _wrong(value: Any, schema: Schema, place: _Place) -> _Wrong | None:
    """Return place and description of the first difference; None if there is none."""
    if schema is ANY:
        return None
    if isinstance(schema, tuple):
        closest = _Wrong(place, "", schema)
        for each in schema:
            if (wrong := _wrong(value, each, place)) is None:
                return None
            closest = max(closest, wrong, key=lambda one: len(one.place))
        return closest if len(closest.place) > len(place) else _expected(value, schema, place)
    if isinstance(schema, dict) and isinstance(value, Mapping):
        return _wrong_object(value, schema, place)
    if isinstance(schema, list) and isinstance(value, list | tuple):
        if len(schema) > 1 and len(value) != len(schema):
            return _Wrong(place, f"has {len(value)} entries", schema)
        each = schema * len(value) if len(schema) == 1 else schema
        entries = enumerate(zip(value, each, strict=True))
        return next((it for at, (one, kind) in entries if (it := _wrong(one, kind, (*place, at)))), None)
    return None if _is(value, schema) else _expected(value, schema, place)


def _wrong_object(value: Mapping[str, Any], schema: Mapping[Any, Schema], place: _Place) -> _Wrong | None:
    named = {key.removesuffix("?"): kind for key, kind in schema.items() if isinstance(key, str)}
    of_others = next(((key, kind) for key, kind in schema.items() if not isinstance(key, str)), (str, ANY))
    closed = isinstance(schema, Table) and len(named) == len(schema)
    if unknown := [key for key in value if closed and key not in named]:
        return _Wrong((*place, unknown[0]), "", schema)
    for key in named:
        if key in schema and key not in value:
            return _Wrong((*place, key), "is missing", named[key])
    for key, one in value.items():
        if key not in named and not _is(key, of_others[0]):
            return _Wrong((*place, key), "is not a known key", of_others[0])
        if (it := _wrong(one, named.get(key, of_others[1]), (*place, key))) is not None:
            return it
    return None


def _is(value: Any, schema: Schema) -> bool:
    if isinstance(schema, Number):
        kinds = int if schema.whole else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool) and schema.least <= value <= schema.most
    if isinstance(schema, type):
        return isinstance(value, schema)
    if isinstance(schema, re.Pattern):
        return isinstance(value, str) and schema.fullmatch(value) is not None
    return value is None if schema is None else value in _choices(schema)


def _choices(schema: Schema) -> tuple[str, ...]:
    """Return the texts that a schema lists; empty for others."""
    return tuple(sorted(schema)) if isinstance(schema, frozenset) else get_args(schema)


def _expected(value: Any, schema: Schema, place: _Place) -> _Wrong:
    text = repr(value) if not isinstance(value, int) or abs(value) <= 2**53 else "an integer with too many digits"
    return _Wrong(place, f"is {text if len(text) <= 40 else text[:40] + '…'}", schema)


def _name(schema: Schema) -> str:
    if isinstance(schema, tuple):
        return " or ".join(map(_name, schema))
    if words := _choices(schema):
        return f"one of {', '.join(words)}"
    if isinstance(schema, Number):
        return str(schema)
    if isinstance(schema, re.Pattern):
        return "a name" if schema is NAME else f"a text like {schema.pattern}"
    if isinstance(schema, list):
        of = "names" if schema[0] is NAME else "texts" if schema[0] is str else f"{len(schema)} values"
        return "a list" if of == "1 values" else f"a list of {of}"
    if isinstance(schema, dict):
        return "a table" if isinstance(schema, Table) else "an object"
    return {ANY: "a value", None: "null", str: "a text", bool: "true or false"}[schema]


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
