"""Templates of reports: TOML files of sentences by subject, and common parts of HTML pages."""

from __future__ import annotations

import math
import re
import string
import tomllib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from gridsim import number_formatting
from gridsim.machine.njit import FOLDER

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.bccache import Bucket

TEMPLATES = Path(__file__).parent / "templates"


class _Formatter(string.Formatter):
    """Format specifications are those of Python, and functions of `gridsim.number_formatting` with a last argument."""

    def format_field(self, value: Any, format_spec: str) -> str:
        name, _, argument = format_spec.partition(" ")
        if name in number_formatting.__all__:
            return str(getattr(number_formatting, name)(value, *([argument] if argument else [])))
        return format(value, format_spec)


@cache
def templates(subject: str) -> dict[str, Any]:
    """Templates and tables of ``templates/SUBJECT.toml`` by name."""
    return tomllib.loads((TEMPLATES / f"{subject}.toml").read_text(encoding="utf-8"))


def text_table(subject: str, name: str) -> dict[str, Any]:
    """Table of a subject, such as titles by key."""
    found: dict[str, Any] = templates(subject)[name]
    return found


def texts(subject: str) -> Callable[..., str]:
    """Function that fills in a template of a subject, by its name and the values of its fields.

    Examples
    --------
    >>> texts("rejections")("offers", label="msb", numbers={"offers_taken": 3, "offers_made": 4})
    'Under msb, 3 of 4 jobs that were offered a later deadline accepted it.'
    """

    def text(name: str, /, **values: Any) -> str:
        try:
            return _Formatter().vformat(templates(subject)[name], (), values)
        except KeyError as error:
            raise LookupError(f"{subject}.toml: {name}: {error} is missing") from error

    return text


@cache
def environment(*folders: Path, **filters: Callable[..., Any]) -> Environment:
    """Return the template environment: values are escaped, missing values are errors, and templates are cached.

    Parameters
    ----------
    *folders : Path
        Folders that are searched before gridsim's own.
    **filters : callable
        Filters by name.
    """
    import jinja2  # 0.1 s: only where a page is made

    class Compiled(jinja2.FileSystemBytecodeCache):
        """Compiled templates, whose compilation takes 0.2 s."""

        def dump_bytecode(self, bucket: Bucket) -> None:
            with suppress(OSError):  # disk full: the next page compiles them again
                super().dump_bytecode(bucket)

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=Compiled(FOLDER) if FOLDER else None,
    )
    made.filters |= filters
    return made


def style(*names: str | Path) -> Markup:
    """Return the style sheets, from gridsim or other folders, concatenated."""
    return Markup("".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names))


def prose(text: str) -> Markup:
    """Return a sentence as HTML, with numbers kept together with units and text in brackets less prominent."""
    escaped = str(escape(number_formatting.together(text)))
    return Markup(re.sub(r"(?<= )\([^()]*\)", r'<span class="aside">\g<0></span>', escaped))


LARGE_RATIO = 1e6
"""Ratio from which on ratios are shown as infinite."""


def breakable(label: str) -> Markup:
    """Return a label as HTML that may break after punctuation, except within a time of day."""
    return Markup("<wbr>").join(re.split(r"(?<=[?&=,(])|(?<=:)(?!\d)", label))


def ratio_shown(value: float) -> str:
    """Return a ratio with its significant digits; above a million as infinite.

    Examples
    --------
    >>> ratio_shown(0.01234), ratio_shown(1315.4), ratio_shown(math.inf), ratio_shown(math.nan)
    ('0.0123', '1,315', '∞', '-')
    """
    if math.isnan(value):
        return "-"
    if value >= LARGE_RATIO:
        return "∞"
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}" if value >= 1e-3 else "0"


def p_shown(value: float) -> str:
    """Return a formatted p value."""
    return "-" if value != value else "< 0.001" if value < 0.001 else f"{value:.2g}"
