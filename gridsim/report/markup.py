"""What the HTML pages share: how templates are read, the style, and how sentences, labels and numbers stand in them."""

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
    """Templates of pages: whatever is put in is escaped, and what is missing is an error; each is compiled once.

    Parameters
    ----------
    *folders : Path
        Looked in before gridsim's own.
    **filters : callable
        Of the templates, by name.
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
    """Style sheets of gridsim's own, or in other folders, one after the other."""
    return Markup("".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names))


def prose(text: str) -> Markup:
    """A sentence, escaped, with numbers kept beside their units and what is in brackets made quieter."""
    return Markup(re.sub(r"(?<= )\([^()]*\)", r'<span class="aside">\g<0></span>', str(escape(together(text)))))


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
