"""Modal estimates: a few popular values, a long tail, and the limit of the queue, assigned to jobs that fit.

After Tsafrir, Etsion and Feitelson 2005, with gridsim's constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import check_parameters
from gridsim.model.time import FloatArray, IntArray

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400

_POPULAR = (
    *(2 * _HOUR, 15 * _MINUTE, 30 * _MINUTE, 5 * _MINUTE, _HOUR, 10 * _MINUTE, 3 * _HOUR, 4 * _HOUR, 6 * _HOUR),
    *(20 * _MINUTE, 12 * _HOUR, 10 * _HOUR, 8 * _HOUR, 5 * _HOUR, 90 * _MINUTE, 40 * _MINUTE, 45 * _MINUTE),
    *(150 * _MINUTE, 15 * _HOUR, 50 * _MINUTE, 7 * _HOUR, 9 * _HOUR, 16 * _HOUR, 24 * _HOUR, 36 * _HOUR, 48 * _HOUR),
)
"""Popular requested values, the most frequent first, s."""

_LIMITS = tuple(hours * _HOUR for hours in (18, 24, 36, 48, 72, 96, 168))
"""Customary limits of queues, s."""

_STEP = 300
"""Step of values that are not popular, s."""

_STEEPEST, _WIDEST = 10.0, 1000.0
"""Largest rates of decay of shares; largest spread."""


def customary_maximum(longest: float) -> int:
    """Return the smallest customary limit of a queue that covers the *longest* run time, s; whole days above a week.

    Examples
    --------
    >>> [customary_maximum(hours * 3600) // 3600 for hours in (1, 18, 34.6, 200)]
    [18, 18, 36, 216]
    """
    return next((limit for limit in _LIMITS if limit >= longest), int(-(-longest // _DAY)) * _DAY)


class Mix(NamedTuple):
    """Requested values, s (the maximum, popular values, then the tail), and the number of jobs for each value."""

    values: IntArray
    counts: IntArray


@dataclass(frozen=True)
class Law:
    """Distribution of jobs over estimate values.

    Parameters
    ----------
    share_max : float
        Share of jobs that request the maximum; the most important parameter. CTC SP2: 0.238, SDSC SP2: 0.097, SDSC
        BLUE: 0.011.
    head : int
        Number of popular values, including the maximum.
    head_share : float
        Share of jobs that request one of these.
    decay : float
        The share of the k-th popular value is proportional to ``exp(-decay k)``.
    spread : float
        There are ``round(spread sqrt(n))`` distinct values for n jobs.
    tail_power : float
        The share of the k-th value of the tail is proportional to ``k ** -tail_power``.
    tight : float
        Probability that a job requests the smallest sufficient value.

    References
    ----------
    Tsafrir, Etsion, Feitelson, JSSPP 2005: about twenty values cover nine of ten jobs; the maximum and the share of
    jobs that request it determine most of the rest. The constants are fitted to three logs of the Parallel Workloads
    Archive: section 1 of the project's specification of methods.
    """

    share_max: float = 0.10
    head: int = 20
    head_share: float = 0.88
    decay: float = 0.17
    spread: float = 1.1
    tail_power: float = 0.9
    tight: float = 0.10

    def __post_init__(self) -> None:
        check_parameters(
            self,
            share_max=(0 <= self.share_max <= self.head_share, f"0 to head_share, which is {self.head_share:g}"),
            head=(1 <= self.head <= len(_POPULAR) + 1, f"1 to {len(_POPULAR) + 1}"),
            head_share=(0 < self.head_share <= 1, "above 0, at most 1"),
            decay=(0 <= self.decay <= _STEEPEST, f"0 to {_STEEPEST:g}"),
            spread=(0 <= self.spread <= _WIDEST, f"0 to {_WIDEST:g}"),
            tail_power=(0 <= self.tail_power <= _STEEPEST, f"0 to {_STEEPEST:g}"),
            tight=(0 <= self.tight <= 1, "0 to 1"),
        )

    def mix(self, jobs: int, maximum: int, rng: np.random.Generator) -> Mix:
        """Return values and counts for *jobs* jobs under a *maximum*, s; only the tail of values uses *rng*."""
        popular = np.array([value for value in _POPULAR if value < maximum][: self.head - 1], dtype=np.int64)
        wanted = round(self.spread * jobs**0.5) - len(popular) - 1
        tail = _tail(popular, maximum, max(wanted, 0), rng)
        middle = np.exp(-self.decay * np.arange(1, len(popular) + 1))
        falling = np.arange(1, len(tail) + 1) ** -self.tail_power
        shares = np.concatenate(
            [
                [self.share_max if len(popular) else self.head_share],
                middle / middle.sum() * (self.head_share - self.share_max),
                falling / falling.sum() * (1 - self.head_share),
            ]
        )
        values = np.concatenate([[maximum], popular, tail]).astype(np.int64)
        return Mix(values, _counts(jobs, shares / shares.sum()))


def _tail(popular: IntArray, maximum: int, wanted: int, rng: np.random.Generator) -> IntArray:
    """Return values that are not popular, log-uniform: each drawn from the remaining ones with weights 1 / value."""
    left = np.setdiff1d(np.arange(_STEP, maximum, _STEP), popular)
    if len(left) < wanted:
        left = np.setdiff1d(np.arange(_MINUTE, maximum, _MINUTE), popular)
    # Successive draws with weights w have the order of exponential variates divided by w.
    drawn: IntArray = left[np.argsort(rng.exponential(size=len(left)) * left, kind="stable")[:wanted]]
    return drawn


def _counts(jobs: int, shares: FloatArray) -> IntArray:
    """Return integers in proportion to *shares*, rounded by largest remainder; ties go to the earlier share."""
    exact = jobs * shares
    counts = np.floor(exact).astype(np.int64)
    most = np.argsort(-(exact - counts), kind="stable")[: jobs - int(counts.sum())]
    counts[most] += 1
    return counts


class Modal(NamedTuple):
    """Estimate of each job, s, and the number of estimates computed because no sufficient value was left."""

    estimate: FloatArray
    repaired: int

    @classmethod
    def of(cls, runtime: FloatArray, law: Law, rng: np.random.Generator, *, maximum: int | None = None) -> Modal:
        """Return estimates for jobs with these run times.

        Parameters
        ----------
        runtime : (n,) float
            True run times, s.
        rng : Generator
            Source of the tail, then of two uniform numbers per job, longest first.
        maximum : int, optional
            Limit of the queue, s; by default `customary_maximum` of the longest run time.

        Notes
        -----
        In order of decreasing run time, each job draws from the remaining values that suffice: the smallest of them
        with probability ``tight``, else any of them. If none is left, its estimate is its run time, rounded up to
        300 s.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> Modal.of(np.array([100.0, 5000.0, 60.0]), Law(share_max=0.3), rng).estimate / 60
        array([  15.,  120., 1080.])
        """
        longest = float(runtime.max(initial=0.0))
        mix = law.mix(len(runtime), customary_maximum(longest) if maximum is None else maximum, rng)
        falling = np.argsort(-runtime, kind="stable")
        first, second = rng.random((len(runtime), 2)).T
        estimate = np.empty(len(runtime))
        estimate[falling] = _dealt(runtime[falling], mix, first < law.tight, second)
        repaired = np.isnan(estimate)
        estimate[repaired] = np.ceil(runtime[repaired] / _STEP) * _STEP
        return cls(estimate, int(np.count_nonzero(repaired)))


def _dealt(runtime: FloatArray, mix: Mix, tight: npt.NDArray[np.bool_], place: FloatArray) -> FloatArray:
    """Return a value of the mix for each run time, longest first; NaN if no sufficient value is left."""
    order = np.argsort(-mix.values)
    values, counts = mix.values[order], mix.counts[order]
    pool = _Pool(counts)
    suffice = np.searchsorted(-values, -runtime, side="right")  # number of sufficient values, largest first
    reached = np.concatenate([[0], np.cumsum(counts)])[suffice]
    dealt, given = np.full(len(runtime), np.nan), 0
    for row, (there, least, at) in enumerate(zip(reached.tolist(), tight.tolist(), place.tolist(), strict=True)):
        left = there - given
        if left > 0:
            dealt[row] = values[pool.take(left - 1 if least else int(at * left))]
            given += 1
    return dealt


class _Pool:
    """Items of several kinds in a row, each removable by its index: a tree of their counts."""

    def __init__(self, counts: IntArray) -> None:
        self._leaves = 1 << max(len(counts) - 1, 1).bit_length()
        tree = [0] * self._leaves + counts.tolist() + [0] * (self._leaves - len(counts))
        for node in range(self._leaves - 1, 0, -1):
            tree[node] = tree[2 * node] + tree[2 * node + 1]
        self._tree = tree

    def take(self, place: int) -> int:
        """Remove the item at an index, from 0; return its kind."""
        tree, node = self._tree, 1
        tree[1] -= 1
        while node < self._leaves:
            node *= 2
            if place >= tree[node]:
                place -= tree[node]
                node += 1
            tree[node] -= 1
        return node - self._leaves
