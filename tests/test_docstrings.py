"""Docstrings of public names follow numpydoc: every parameter with its type, and the return value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from numpydoc.docscrape import FunctionDoc, NumpyDocString
from numpydoc.validate import validate

import gridsim

CHECKS = {"GL08", "PR01", "PR02", "PR03", "PR04", "PR10", "RT01", "RT03", "SS01", "SS03", "YD01"}
"""A summary ends with a period; documented parameters exist, in order, with types; returns or yields are documented."""


def public() -> Iterator[str]:
    """Public classes and functions, and the public methods and properties of the classes."""
    for name in gridsim.__all__:
        yield f"gridsim.{name}"
        thing = getattr(gridsim, name)
        if isinstance(thing, type):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property | classmethod)):
                    yield f"gridsim.{name}.{member}"


def wanting(name: str) -> list[str]:
    """Errors found by numpydoc; fields that are class attributes are documented in the class."""
    thing: Any = gridsim
    for part in name.split(".")[1:]:
        thing = getattr(thing, part)
    bases = (
        thing.__mro__[:-1] if isinstance(thing, type) else ()
    )  # a view documents the fields of its data by naming it
    fields = [field for base in bases for field in NumpyDocString(base.__doc__ or "")["Attributes"]]
    found = [(code, text) for code, text in validate(name)["errors"] if code in CHECKS]
    return [f"{code} {text}" for code, text in found if not (code == "PR01" and fields)]


@pytest.mark.parametrize("name", sorted(public()))
def test_public_names_have_numpydoc_docstrings(name: str) -> None:
    assert wanting(name) == []


def test_the_check_finds_what_is_wanting(monkeypatch: pytest.MonkeyPatch) -> None:
    def bare(cores: int) -> int:
        """Cores."""
        return cores

    assert not FunctionDoc(bare)["Parameters"]
    bare.__module__, bare.__qualname__ = "gridsim", "bare"
    monkeypatch.setattr(gridsim, "bare", bare, raising=False)
    assert [text.split()[0] for text in wanting("gridsim.bare")] == ["PR01", "RT01"]
