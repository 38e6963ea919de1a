"""Users for jobs that come without: few submit much, many submit little."""

from __future__ import annotations

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import IntArray

__all__ = ["zipf_users"]


def zipf_users(n: int, users: int, rng: np.random.Generator, *, exponent: float = 1.0) -> IntArray:
    """User of each of *n* jobs, numbered from 1: user k has a share in proportion to ``k ** -exponent``.

    Parameters
    ----------
    n : int
        Jobs; each is drawn independently of the others.
    users : int
        Users there are; the last ones may stay without a job.
    rng : Generator
        One uniform number a job is taken from it.

    Raises
    ------
    InputError
        When there is no user.

    Examples
    --------
    >>> zipf_users(5, 1, np.random.default_rng(1))
    array([1, 1, 1, 1, 1])
    """
    if users < 1:
        raise InputError(f"is {users}; expected at least 1 user", field="users")
    reached = np.cumsum(np.arange(1, users + 1) ** -exponent)
    return np.searchsorted(reached[:-1] / reached[-1], rng.random(n), side="right").astype(np.int64) + 1
