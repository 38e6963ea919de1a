"""Walltime estimates for jobs that come without: the runtime times a factor that overstates it."""

from __future__ import annotations

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import FloatArray

__all__ = ["overestimated"]


def overestimated(
    runtime: FloatArray, rng: np.random.Generator, *, f: float = 5.0, step: float | None = None
) -> FloatArray:
    """Estimate of each job, s: ``runtime * (1 + f U)`` with U uniform on [0, 1), never below the runtime.

    Parameters
    ----------
    runtime : (n,) float
        True runtimes, s.
    rng : Generator
        One uniform number a job is taken from it, whatever *f* is.
    f : float
        Largest overestimate in runtimes; 0 for exact estimates.
    step : float, optional
        Estimates are rounded up to a multiple of this many seconds, as users ask for whole minutes.

    Raises
    ------
    InputError
        When *f* is negative or *step* not above 0.

    Examples
    --------
    >>> overestimated(np.array([100.0, 61.0]), np.random.default_rng(1), f=0, step=60)
    array([120., 120.])
    """
    if not 0 <= f < np.inf:
        raise InputError(f"is {f}; expected a factor from 0 (exact estimates)", field="f")
    if step is not None and not 0 < step < np.inf:
        raise InputError(f"is {step}; expected seconds above 0, or none", field="step")
    estimate = runtime * (1.0 + f * rng.random(len(runtime)))
    return estimate if step is None else np.ceil(estimate / step) * step
