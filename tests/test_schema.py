"""Schemas of JSON files: accepted documents, and the location of an error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gridsim.errors import InputError
from gridsim.schema import ANY, NUMBER, Number, Schema, check, read_json

SCHEMA = {
    "cores": Number(1, 8, whole=True),
    "label?": (str, None),
    "jobs": [{"id": Number(0, 99, whole=True), "span?": [NUMBER, NUMBER]}],
    "kind?": frozenset(["a", "b"]),
    "sizes?": {re.compile("[0-9]+"): bool},
    str: ANY,
}
FINE: dict[str, Any] = {
    "cores": 4,
    "label": None,
    "jobs": [{"id": 1, "span": [0, 1.5], "more": 3}],
    "kind": "a",
    "x": [],
}


def test_a_value_that_matches_is_accepted() -> None:
    check({**FINE, "sizes": {"4": True}}, SCHEMA)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"cores": 9}, "field 'cores': is 9; expected a whole number from 1 to 8"),
        ({"cores": 4.0}, "field 'cores': is 4.0"),
        ({"cores": True}, "field 'cores': is True"),
        ({"cores": 10**5000}, "field 'cores': is an integer with too many digits"),
        ({"label": 3}, "field 'label': is 3; expected a text or null"),
        ({"jobs": [{"id": 1}, {}]}, r"field 'jobs\[1\].id': is missing"),
        ({"jobs": {}}, "field 'jobs': is {}; expected a list"),
        ({"jobs": [{"id": 1, "span": [1]}]}, r"field 'jobs\[0\].span': has 1 entries; expected a list of 2 values"),
        ({"jobs": [{"id": 1, "span": [1, float("nan")]}]}, r"span\[1\]': is nan"),
        ({"kind": "c"}, "field 'kind': is 'c'; expected one of a, b"),
        ({"sizes": {"x": True}}, "field 'sizes.x': is not a known key"),
    ],
)
def test_the_first_difference_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check(FINE | changed, SCHEMA)


def test_the_alternative_that_is_closest_names_the_field() -> None:
    either: Schema = [({"cluster": str}, {"router": str, "children": [str]})]
    with pytest.raises(InputError, match=r"field '\[0\].children\[1\]': is 3; expected a text"):
        check([{"router": "a", "children": ["b", 3]}], either)


def test_no_alternative_is_compared_after_one_that_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[Any] = []
    monkeypatch.setattr("gridsim.schema._expected", lambda value, *place: messages.append(value))
    check([1.0] * 100, [(NUMBER, None)])
    assert messages == []


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ('{"a": [1,\n 2,\n "x"]}', 3, "a[2]"),
        ('{"b": 99999,\n "a": {"a": [[]]},\n\n "c": 0}', 2, "a"),
        ('{\n "b": [1]}', 1, "a"),
        ('{"b": ' + "9" * 5000 + ',\n "a": 3}', 2, "a"),
    ],
)
def test_an_error_names_the_line_of_the_value(text: str, line: int, field: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError) as error:
        read_json(tmp_path / "a.json", {"a": [NUMBER]}, "numbers")
    assert (error.value.path, error.value.line, error.value.field) == (tmp_path / "a.json", line, field)


@pytest.mark.parametrize("depth", [200, 50_000])
def test_deep_nesting_is_refused(depth: int, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": ' + "[" * depth + "]" * depth + "}")
    with pytest.raises(InputError, match=r"a\.json.*: is nested too deeply"):
        read_json(tmp_path / "a.json", {"a": ANY}, "anything")
