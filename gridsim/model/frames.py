"""Columns as pandas data frames, for who works on in a notebook: names in place of numbers, dates beside seconds."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.dates import Calendar, calendar_of
from gridsim.model.time import MICROSECOND
from gridsim.model.workload import UNKNOWN, Workload

__all__ = ["DATED", "UNITS", "frame", "frame_of_jobs"]

DATED = ("submit", "start", "end", "deadline")
"""Columns of instants that get a column of dates beside them, named so with ``_at`` behind it."""

_SECONDS = ("submit", "start", "end", "wait", "runtime", "estimate", "response", "deadline", "granted", "offer")

UNITS: Mapping[str, str] = {
    **dict.fromkeys((*_SECONDS, "logged_submit", "logged_wait", "logged_held", "logged_think", "critical_path"), "s"),
    **dict.fromkeys(("cores", "cores_min", "cores_max", "cores_used", "logged_allocated"), "cores"),
    "lost_core_seconds": "core-seconds",
}
"""Units of columns; the others are counts, ratios and names. A frame has those of its own in ``attrs["units"]``."""


def frame(columns: Mapping[str, Any], units: Mapping[str, str] | None = None) -> Any:
    """A data frame of columns of one length, with their units in ``attrs["units"]``.

    Raises
    ------
    InputError
        Where pandas is not installed.
    """
    try:
        pandas = importlib.import_module("pandas")
    except ImportError as error:
        raise InputError("pandas is not installed; pip install 'gridsim[pandas]'") from error
    made = pandas.DataFrame(dict(columns))
    known = UNITS if units is None else units
    made.attrs["units"] = {name: known[name] for name in made.columns if name in known}
    return made


def frame_of_jobs(columns: Mapping[str, npt.NDArray[Any]], workload: Workload) -> Any:
    """A data frame of columns that have a row a job of *workload*.

    Numbers of users, accounts and so on become their names where the source has them, missing where it says nothing.
    Where the source knows dates, each column of `DATED` has one of dates beside it: in the zone of the log, without a
    zone where that is not known.
    """
    calendar = calendar_of(workload.provenance)
    made: dict[str, Any] = {}
    for name, column in columns.items():
        names = workload.names.get(name)
        made[name] = _named(column, names) if names else _known(column) if name in workload.labels else column
        if calendar is not None and name in DATED:
            made[f"{name}_at"] = _dates(np.asarray(column, dtype=np.float64), calendar)
    return frame(made)


def _named(column: npt.NDArray[Any], names: Sequence[str]) -> list[str | None]:
    """Names of numbers; None for what has none."""
    return [names[code] or None if UNKNOWN < code < len(names) else None for code in column.tolist()]


def _known(column: npt.NDArray[Any]) -> Any:
    """Numbers of a label; floats with NaN where some are not known."""
    unknown = column == UNKNOWN
    return np.where(unknown, np.nan, column) if unknown.any() else column


def _dates(seconds: npt.NDArray[np.float64], calendar: Calendar) -> Any:
    """Timestamps of instants, missing ones where there is none."""
    known = np.isfinite(seconds)
    micro = np.where(known, np.rint((calendar.epoch + np.where(known, seconds, 0.0)) * MICROSECOND), 0.0)
    instants = micro.astype(np.int64).astype("datetime64[us]")
    instants[~known] = np.datetime64("NaT")
    try:
        dates = importlib.import_module("pandas").Series(instants)
    except ImportError:
        return instants  # the frame says what is missing
    return dates.dt.tz_localize(UTC).dt.tz_convert(calendar.zone) if calendar.zone_name else dates
