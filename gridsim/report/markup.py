"""Templates of reports: sentences in a TOML file for each subject, and what the HTML pages share."""

from __future__ import annotations

import math
import re
import string
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from gridsim import words

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


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
    'Under msb, 3 of 4 jobs that were offered a later deadline took it.'
    """

    def text(name: str, /, **values: Any) -> str:
        try:
            return _Formatter().vformat(templates(subject)[name], (), values)
        except KeyError as error:
            raise LookupError(f"{subject}.toml: {name}: {error} is missing") from error

    return text


@cache
def environment(*folders: Path, **filters: Callable[..., Any]) -> Environment:
    """Templates of pages: whatever is put in is escaped, and what is missing is an error; each is compiled once.

    Parameters
    ----------
    *folders : Path
        Looked in before gridsim's own.
    **filters : callable
        Of the templates, by name.
    """
    import jinja2  # 0.1 s: only where a page is made

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= filters
    return made


def style(*names: str | Path) -> Markup:
    """Style sheets of gridsim's own, or in other folders, one after the other."""
    return Markup("".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names))


def prose(text: str) -> Markup:
    """A sentence, escaped, with numbers kept beside their units and what is in brackets made quieter."""
    return Markup(re.sub(r"(?<= )\([^()]*\)", r'<span class="aside">\g<0></span>', str(escape(words.together(text)))))


LARGE_RATIO = 1e6
"""From here on ratios are shown as infinite."""


def breakable(label: str) -> Markup:
    """A label, escaped, that may break after its punctuation, but not in a time of day."""
    return Markup("<wbr>").join(re.split(r"(?<=[?&=,(])|(?<=:)(?!\d)", label))


def ratio_shown(value: float) -> str:
    """A ratio with as many digits as tell something; beyond a million it is as good as infinite.

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
    """A p value."""
    return "-" if value != value else "< 0.001" if value < 0.001 else f"{value:.2g}"
