"""One line that reconciles the numbers of jobs that were read, kept, counted, run, and run in every run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.words import listed, number

__all__ = ["job_counts"]

_MOST = 4
"""Runs that the line names where there are more than one more."""


def job_counts(
    ran: Mapping[str, npt.NDArray[np.bool_]],
    kept: npt.NDArray[np.bool_],
    provenance: Mapping[str, Any],
    *,
    every: str = "in every run",
) -> list[str]:
    """The line, or nothing where all counted jobs ran in every run.

    A number that equals the one before it is left out, but for that of the jobs that ran.

    Parameters
    ----------
    ran : mapping of str to mask
        Jobs that ran, by the words for the run ("under easy").
    kept : mask
        Jobs that are counted.
    provenance : mapping
        Numbers of jobs that were read and kept.
    every : str
        The words for all runs together.

    Examples
    --------
    >>> ran = {"under a": np.array([True, True, False]), "under b": np.array([True, False, False])}
    >>> job_counts(ran, np.ones(3, dtype=bool), {"jobs_read": 4, "jobs_kept": 3})
    ['Jobs: 4 in the log, 3 kept; 2 ran under a and 1 under b, 1 of them in every run.']
    """
    runs = {name: int((mask & kept).sum()) for name, mask in ran.items()}
    common, counted = int((np.logical_and.reduce([*ran.values()]) & kept).sum()), int(kept.sum())
    if common == counted:
        return []
    steps = {
        "in the log": provenance.get("jobs_read"),
        "kept": provenance.get("jobs_kept"),
        "after transforms": len(kept),
        "counted": counted,
    }
    parts: list[str] = []
    last = None
    for step, count in steps.items():
        if isinstance(count, int) and count != last:
            parts.append(f"{number(count)} {step}" if parts or step == "in the log" else number(count))
            last = count
    if set(runs.values()) == {common}:
        where = f" {every}" if len(runs) > 1 else ""
        return [f"Jobs: {', '.join(parts)}; {number(common)} ran{where}."]
    named = list(runs) if len(runs) <= _MOST + 1 else list(runs)[:_MOST]
    told = [f"{number(runs[name])} {'' if row else 'ran '}{name}" for row, name in enumerate(named)]
    if others := [runs[name] for name in runs if name not in named]:
        told.append(f"{number(min(others))} to {number(max(others))} in {len(others)} other runs")
    return [f"Jobs: {', '.join(parts)}; {listed(told)}, {number(common)} of them {every}."]
