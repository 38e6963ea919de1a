"""Deadlines for workloads that have none, from a reference schedule; pure functions on columns, no simulation here."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import IntArray, whole

__all__ = ["DAY", "artificial_responses", "requested_deadlines"]

DAY = 86400.0
"""Least artificial response, s."""

_LARGEST_DENOMINATOR = 10**6


def _exact(value: float, name: str) -> Fraction:
    """The number as it is written in decimal: 0.2 is one fifth, so that ceilings are what a reader computes."""
    if not np.isfinite(value) or value < 0:
        raise InputError(f"{value} is not a number from 0", field=name)
    return Fraction(str(value)).limit_denominator(_LARGEST_DENOMINATOR)


def requested_deadlines(
    submit: IntArray, runtime: IntArray, response: IntArray, stringency: float, *, tick: float = 1.0
) -> IntArray:
    """Deadlines that users might have asked for: submit + max(runtime, ceil((1 - stringency) * response)).

    Parameters
    ----------
    submit, runtime : (n,) int64
        Whole microseconds.
    response : (n,) int64
        End minus submit of each job in a reference schedule (EASY), whole microseconds.
    stringency : float
        0 asks for the end of the reference schedule, 1 for a start without any wait.
    tick : float
        What the ceiling rounds to, s.

    Returns
    -------
    (n,) int64
        Deadlines, whole microseconds.

    References
    ----------
    Islam, Balaji, Sadayappan, Panda 2003 and 2004; the exact rule in section 8.2 of the project's specification of
    deadline admission.

    Examples
    --------
    >>> whole_seconds = 1_000_000
    >>> columns = [np.array([value]) * whole_seconds for value in (2, 10, 28)]
    >>> int(requested_deadlines(*columns, 0.2)[0]) // whole_seconds
    25
    """
    share = 1 - _exact(stringency, "stringency")
    if share < 0:
        raise InputError(f"stringency {stringency} is above 1", field="stringency")
    unit = whole(tick) * share.denominator
    # Whole ticks and the rest apart: the product with the numerator stays within 64 bits for any time of a log.
    ticks, rest = response // unit, response % unit
    shortened = ticks * share.numerator * whole(tick) + -(-(rest * share.numerator) // unit) * whole(tick)
    deadlines: IntArray = submit + np.maximum(runtime, shortened)
    return deadlines


def artificial_responses(estimate: IntArray, relaxation: float, floor: float = DAY) -> IntArray:
    """Responses that jobs without a deadline are promised: max(floor, relaxation * estimate), whole microseconds.

    Parameters
    ----------
    estimate : (n,) int64
        Walltime estimates, whole microseconds.
    relaxation : float
        How many times its estimate a job may be in the system.
    floor : float
        Least response, s.

    References
    ----------
    Section 6.4 of the project's specification of deadline admission.

    Examples
    --------
    >>> artificial_responses(np.array([60, 43200]) * 1_000_000, relaxation=5) // 1_000_000
    array([ 86400, 216000])
    """
    factor = _exact(relaxation, "relaxation")
    whole_part, rest = estimate // factor.denominator, estimate % factor.denominator
    relaxed = whole_part * factor.numerator + rest * factor.numerator // factor.denominator
    responses: IntArray = np.maximum(whole(floor), relaxed)
    return responses
