"""Sentences of reports: templates in a TOML file for each subject."""

from __future__ import annotations

import string
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from gridsim import words

_FOLDER = Path(__file__).parent / "templates"


class _Formatter(string.Formatter):
    """Format specifications are those of Python, and functions of `gridsim.words` with a last argument."""

    def format_field(self, value: Any, format_spec: str) -> str:
        name, _, argument = format_spec.partition(" ")
        if name in words.__all__:
            return str(getattr(words, name)(value, *([argument] if argument else [])))
        return format(value, format_spec)


@cache
def templates(subject: str) -> dict[str, Any]:
    """Templates and tables of ``templates/SUBJECT.toml`` by name."""
    return tomllib.loads((_FOLDER / f"{subject}.toml").read_text(encoding="utf-8"))


def text_table(subject: str, name: str) -> dict[str, Any]:
    """Table of a subject, such as titles by key."""
    found: dict[str, Any] = templates(subject)[name]
    return found


def texts(subject: str) -> Callable[..., str]:
    """Function that fills in a template of a subject, by its name and the values of its fields.

    Examples
    --------
    >>> texts("rejections")("offers", label="msb", numbers={"offers_taken": 3, "offers_made": 4})
    'Under msb, 3 of 4 jobs that were offered a later deadline took it.'
    """

    def text(name: str, /, **values: Any) -> str:
        try:
            return _Formatter().vformat(templates(subject)[name], (), values)
        except KeyError as error:
            raise LookupError(f"{subject}.toml: {name}: {error} is missing") from error

    return text
