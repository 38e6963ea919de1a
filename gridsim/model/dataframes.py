"""Conversion of columns to pandas data frames with units and dates, and small HTML tables for notebooks."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import installed
from gridsim.model.dates import Calendar
from gridsim.model.time import MICROSECOND

DATED = ("submit", "start", "end", "deadline")
"""Columns of instants for which a column of dates is added, with the suffix ``_at``."""

_SECONDS = ("submit", "start", "end", "wait", "runtime", "estimate", "response", "deadline", "granted", "offer")

UNITS: Mapping[str, str] = {
    **dict.fromkeys((*_SECONDS, "logged_submit", "logged_wait", "logged_held", "logged_think", "critical_path"), "s"),
    **dict.fromkeys(("cores", "cores_min", "cores_max", "cores_used", "logged_allocated"), "cores"),
    "lost_core_seconds": "core-seconds",
}
"""Units of columns; other columns are counts, ratios and names. ``attrs["units"]`` has the units of a frame."""


def frame(columns: Mapping[str, Any], units: Mapping[str, str] | None = None) -> Any:
    """Return a data frame of columns of one length, with their units in ``attrs["units"]``.

    Raises
    ------
    InputError
        If pandas is not installed.
    """
    made = installed("pandas", "pandas is not installed").DataFrame(dict(columns))
    known = UNITS if units is None else units
    made.attrs["units"] = {name: known[name] for name in made.columns if name in known}
    return made


def dates_of(seconds: npt.NDArray[np.float64], calendar: Calendar) -> Any:
    """Return timestamps of instants, with missing values for missing instants."""
    known = np.isfinite(seconds)
    micro = np.where(known, np.rint((calendar.epoch + np.where(known, seconds, 0.0)) * MICROSECOND), 0.0)
    instants = micro.astype(np.int64).astype("datetime64[us]")
    instants[~known] = np.datetime64("NaT")
    try:
        dates = importlib.import_module("pandas").Series(instants)
    except ImportError:
        return instants  # the caller reports missing dates
    return dates.dt.tz_localize(UTC).dt.tz_convert(calendar.zone) if calendar.zone_name else dates


def html_repr(
    title: str,
    rows: Iterable[Sequence[str]],
    *,
    head: Sequence[str] = (),
    sentences: Iterable[str] = (),
    marked: str = "",
) -> str:
    """Return an object's description as HTML.

    Parameters
    ----------
    title : str
        Title.
    rows : iterable of sequence of str
        Cells; the first cell is the name of the row.
    head : sequence of str
        Names of the columns; none by default.
    sentences : iterable of str
        Sentences between the title and the table.
    marked : str
        Suffix of the cells to print in bold.

    Examples
    --------
    >>> html_repr("<2 jobs>", [], sentences=["No job waits."])
    '<div><p><b>&lt;2 jobs&gt;</b></p><p>No job waits.</p><table></table></div>'
    """
    parts = [f"<p><b>{escape(title)}</b></p>", *(f"<p>{escape(sentence)}</p>" for sentence in sentences)]
    lines = ["<tr>" + "".join(f"<th>{escape(name)}</th>" for name in head) + "</tr>"] if head else []
    for name, *cells in rows:
        lines.append(f"<tr>{_NAMING}{escape(name)}</th>{''.join(_cell(text, marked) for text in cells)}</tr>")
    return f"<div>{''.join(parts)}<table>{''.join(lines)}</table></div>"


_NAMING = '<th style="text-align: left">'


def _cell(text: str, marked: str) -> str:
    bold = bool(marked) and text.endswith(marked)
    return f"<td><b>{escape(text)}</b></td>" if bold else f"<td>{escape(text)}</td>"
