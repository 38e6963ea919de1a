"""Modal estimates: few popular values, a long tail, and the limit of the queue, dealt to the jobs that fit under them.

After Tsafrir, Etsion and Feitelson 2005, with constants of our own.
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
"""Values that people ask for, the commonest first, s."""

_LIMITS = tuple(hours * _HOUR for hours in (18, 24, 36, 48, 72, 96, 168))
"""Customary limits of queues, s."""

_STEP = 300
"""Of values that are not popular, s."""

_STEEPEST, _WIDEST = 10.0, 1000.0
"""Largest rates at which shares fall; largest spread."""


def customary_maximum(longest: float) -> int:
    """The least customary limit of a queue that is not below the *longest* runtime, whole days above a week, s.

    Examples
    --------
    >>> [customary_maximum(hours * 3600) // 3600 for hours in (1, 18, 34.6, 200)]
    [18, 18, 36, 216]
    """
    return next((limit for limit in _LIMITS if limit >= longest), int(-(-longest // _DAY)) * _DAY)


class Mix(NamedTuple):
    """Values that so many jobs ask for, s: the maximum, popular ones, then the tail; and how many jobs ask for each."""

    values: IntArray
    counts: IntArray


@dataclass(frozen=True)
class Law:
    """How many jobs ask for which value.

    Parameters
    ----------
    share_max : float
        Share of jobs that ask for the maximum; the parameter worth setting. In CTC SP2 0.238, SDSC SP2 0.097, SDSC
        BLUE 0.011.
    head : int
        Popular values, the maximum among them.
    head_share : float
        Share of jobs that ask for one of these.
    decay : float
        The share of the k-th popular value falls as ``exp(-decay k)``.
    spread : float
        There are ``round(spread sqrt(n))`` distinct values for n jobs.
    tail_power : float
        The share of the k-th value of the tail falls as ``k ** -tail_power``.
    tight : float
        Chance that a job asks for the least value that suffices.

    References
    ----------
    Tsafrir, Etsion, Feitelson, JSSPP 2005: some twenty values cover nine jobs in ten; the maximum and the share of jobs
    that ask for it determine most of the rest. The constants are fitted to three logs of the Parallel Workloads
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
        """Values and counts for so many *jobs* under a *maximum*, s; of *rng* only the values of the tail are drawn."""
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
    """Values that are not popular, uniform in the logarithm: each drawn from those left with weights 1 / value."""
    left = np.setdiff1d(np.arange(_STEP, maximum, _STEP), popular)
    if len(left) < wanted:
        left = np.setdiff1d(np.arange(_MINUTE, maximum, _MINUTE), popular)
    # Successive draws with weights w have the order of exponential waits over w.
    drawn: IntArray = left[np.argsort(rng.exponential(size=len(left)) * left, kind="stable")[:wanted]]
    return drawn


def _counts(jobs: int, shares: FloatArray) -> IntArray:
    """Whole numbers in proportion to *shares*: rounded down, the rest by largest remainder, ties to the earlier."""
    exact = jobs * shares
    counts = np.floor(exact).astype(np.int64)
    most = np.argsort(-(exact - counts), kind="stable")[: jobs - int(counts.sum())]
    counts[most] += 1
    return counts


class Modal(NamedTuple):
    """Estimates, s, one a job, and how many had to be made because no value was left that suffices."""

    estimate: FloatArray
    repaired: int

    @classmethod
    def of(cls, runtime: FloatArray, law: Law, rng: np.random.Generator, *, maximum: int | None = None) -> Modal:
        """Estimates for jobs of these runtimes.

        Parameters
        ----------
        runtime : (n,) float
            True runtimes, s.
        rng : Generator
            The tail is drawn from it, then two uniform numbers a job, longest first.
        maximum : int, optional
            Limit of the queue, s; `customary_maximum` of the longest runtime where left out.

        Notes
        -----
        By falling runtime, each job draws from the values not yet given that suffice: with chance ``tight`` the least
        of them, else any. Where none is left its estimate is its runtime, rounded up to 300 s.

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
    """A value of the mix for each runtime, longest first; NaN where none is left that suffices."""
    order = np.argsort(-mix.values)
    values, counts = mix.values[order], mix.counts[order]
    pool = _Pool(counts)
    suffice = np.searchsorted(-values, -runtime, side="right")  # how many of the values, largest first
    reached = np.concatenate([[0], np.cumsum(counts)])[suffice]
    dealt, given = np.full(len(runtime), np.nan), 0
    for row, (there, least, at) in enumerate(zip(reached.tolist(), tight.tolist(), place.tolist(), strict=True)):
        left = there - given
        if left > 0:
            dealt[row] = values[pool.take(left - 1 if least else int(at * left))]
            given += 1
    return dealt


class _Pool:
    """Things of several kinds in a row, each of which can be taken out by its place: a tree of their numbers."""

    def __init__(self, counts: IntArray) -> None:
        self._leaves = 1 << max(len(counts) - 1, 1).bit_length()
        tree = [0] * self._leaves + counts.tolist() + [0] * (self._leaves - len(counts))
        for node in range(self._leaves - 1, 0, -1):
            tree[node] = tree[2 * node] + tree[2 * node + 1]
        self._tree = tree

    def take(self, place: int) -> int:
        """Take out the thing at a place, from 0; returns its kind."""
        tree, node = self._tree, 1
        tree[1] -= 1
        while node < self._leaves:
            node *= 2
            if place >= tree[node]:
                place -= tree[node]
                node += 1
            tree[node] -= 1
        return node - self._leaves
