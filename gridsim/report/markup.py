"""Common parts of HTML pages: templates, style, and formatting of sentences, labels and numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from gridsim.words import together

TEMPLATES = Path(__file__).parent / "templates"


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
    made = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= filters
    return made


def style(*names: str | Path) -> Markup:
    """Return the style sheets, from gridsim or other folders, concatenated."""
    return Markup("".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names))


def prose(text: str) -> Markup:
    """Return a sentence as HTML, with numbers kept together with units and text in brackets less prominent."""
    return Markup(re.sub(r"(?<= )\([^()]*\)", r'<span class="aside">\g<0></span>', str(escape(together(text)))))


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
