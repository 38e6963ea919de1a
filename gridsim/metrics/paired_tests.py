"""Tests of paired values, one pair per workload: t, Wilcoxon, equivalence, dominance, and the bootstrap of means.

References
----------
Schuirmann, "A comparison of the two one-sided tests procedure and the power approach for assessing the equivalence of
average bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987.
Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika
26(4), 1934.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.model.random_streams import stream
from gridsim.model.time import FloatArray

CERTAIN = 0.95
"""Share of the replicas of a workload that must agree for a significant result."""

MARGIN = 0.05
"""Largest relative deviation from 1 of ratios that count as equal."""

RESAMPLES = 10_000
"""Number of bootstrap samples."""

ROUNDING = 1e-12
"""Relative spread of differences that is rounding error."""

NAN = float("nan")

Better = Literal["lower", "higher"]


class PairedTest(NamedTuple):
    """Result of a paired t-test: mean difference, interval, t, two-sided p, d_z (mean over deviation), pairs."""

    mean: float
    low: float
    high: float
    t: float
    p: float
    d_z: float
    pairs: int


def t_test(differences: FloatArray, *, scale: float = 1.0, confidence: float = 0.95) -> PairedTest:
    """Test with Student's t whether the mean of paired differences is 0.

    Parameters
    ----------
    differences : (n,) float64
        One difference per pair.
    scale : float
        Magnitude of the values; deviations far below it are rounding errors and count as zero.

    Notes
    -----
    Without deviation p is 1 for equal values and 0 for a constant difference.

    Examples
    --------
    >>> test = t_test(np.array([1.0, 2.0, 3.0]))
    >>> round(test.mean, 3), round(test.t, 3), round(test.p, 3), round(test.d_z, 3)
    (2.0, 3.464, 0.074, 2.0)
    """
    from scipy.special import stdtr, stdtrit  # import takes 0.2 s: only if something is tested

    n = len(differences)
    if n < 2:
        return PairedTest(float(differences[0]) if n else NAN, NAN, NAN, NAN, NAN, NAN, n)
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1))
    if deviation <= ROUNDING * scale:
        certain = math.copysign(math.inf, mean) if abs(mean) > ROUNDING * scale else 0.0
        return PairedTest(mean, mean, mean, certain, 0.0 if certain else 1.0, certain, n)
    error = deviation / math.sqrt(n)
    half = float(stdtrit(n - 1, (1 + confidence) / 2)) * error
    t = mean / error
    return PairedTest(mean, mean - half, mean + half, t, float(2 * stdtr(n - 1, -abs(t))), mean / deviation, n)


def log_ratios(mine: FloatArray, theirs: FloatArray) -> FloatArray:
    """Return the natural logarithm of *mine* over *theirs*; 0 for equal values, NaN if there is no ratio.

    Examples
    --------
    >>> log_ratios(np.array([2.0, 0.0, 1.0]), np.array([2.0, 0.0, 0.0]))
    array([ 0.,  0., nan])
    """
    known = (mine > 0) & (theirs > 0) & np.isfinite(mine) & np.isfinite(theirs)
    logs = np.log(np.where(known, mine, 1.0)) - np.log(np.where(known, theirs, 1.0))
    return np.where(mine == theirs, 0.0, np.where(known, logs, np.nan))


def wilcoxon(differences: FloatArray) -> float:
    """Return the two-sided p of Wilcoxon's signed-rank test, zeros excluded; 1 if all are zero, NaN without values."""
    from scipy import stats  # import takes 1 s: only for this test

    moved = differences[differences != 0]
    if not len(moved):
        return 1.0 if len(differences) else NAN
    return float(stats.wilcoxon(moved).pvalue)


def equivalence(logs: FloatArray, margin: float = MARGIN) -> float:
    """Return p of two one-sided t-tests of the geometric-mean ratio against ``1 / (1 + margin)`` and ``1 + margin``.

    Examples
    --------
    >>> equivalence(np.log([1.01, 0.99, 1.0, 1.02])) < 0.05, equivalence(np.log([1.3, 0.8, 1.0, 1.1])) < 0.05
    (True, False)
    """
    from scipy.special import stdtr  # import takes 0.2 s: only if something is tested

    if margin <= 0:
        raise InputError(f"a margin of {margin}; expected a fraction above 0", field="margin")
    n, limit = len(logs), math.log1p(margin)
    if n < 2:
        return NAN
    mean, error = float(logs.mean()), float(logs.std(ddof=1)) / math.sqrt(n)
    if error <= ROUNDING:
        return 0.0 if abs(mean) < limit else 1.0
    return float(stdtr(n - 1, (abs(mean) - limit) / error))


class Dominance(NamedTuple):
    """Share of the pairs that are not worse, with its Clopper-Pearson interval; strict wins, ties and losses."""

    share: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int


def dominance(mine: FloatArray, theirs: FloatArray, *, better: Better = "lower", confidence: float = 0.95) -> Dominance:
    """Return the share of pairs in which *mine* is at least as good as *theirs*, ties included.

    Examples
    --------
    >>> found = dominance(np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 2.0, 2.0, 5.0]))
    >>> found.share, round(found.low, 3), round(found.high, 3), found[3:]
    (0.75, 0.194, 0.994, (2, 1, 1))
    """
    known = ~(np.isnan(mine) | np.isnan(theirs))
    sign = -1.0 if better == "higher" else 1.0
    mine, theirs = sign * mine[known], sign * theirs[known]
    n, wins, ties = len(mine), int((mine < theirs).sum()), int((mine == theirs).sum())
    if not n:
        return Dominance(NAN, NAN, NAN, 0, 0, 0)
    low, high = clopper_pearson(wins + ties, n, confidence)
    return Dominance((wins + ties) / n, low, high, wins, ties, n - wins - ties)


def clopper_pearson(k: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact (conservative) interval of a probability for *k* successes in *n* trials.

    Examples
    --------
    >>> low, high = clopper_pearson(150, 150)
    >>> round(low, 4), high
    (0.9757, 1.0)
    """
    from scipy.special import betaincinv  # import takes 0.2 s: only if something is tested

    tail = (1 - confidence) / 2
    low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return low, high


def bootstrap_means(values: FloatArray, *, seed: int = 0, resamples: int = RESAMPLES) -> FloatArray:
    """Return the means over the first axis of resampled rows; the other axes are kept together.

    Parameters
    ----------
    values : (n, ...) float64
        One row per workload: a number, or an array such as its values by decile and policy.
    seed, resamples : int
        Parameters of the resampling. It depends only on these and the number of rows, so all metrics have the same
        samples.

    Returns
    -------
    (resamples, ...) float64
        Means. Quantiles over the first axis give an interval; the share of rows with an order of values is its
        confidence.

    Examples
    --------
    >>> bootstrap_means(np.array([[1.0, 5.0], [3.0, 5.0]]), resamples=4)[:, 1]
    array([5., 5., 5., 5.])
    """
    n = len(values)
    if not n:
        return np.full((resamples, *values.shape[1:]), np.nan)
    means = _drawn(seed, n, resamples) @ values.reshape(n, -1) / n
    return means.reshape(resamples, *values.shape[1:])


@lru_cache(maxsize=4)
def _drawn(seed: int, n: int, resamples: int) -> FloatArray:
    """Return how often each of *n* rows is in each resample; 12 MB for 150 rows, and the slowest step."""
    drawn = stream(seed, "campaign", "bootstrap", n).multinomial(n, np.full(n, 1 / n), size=resamples)
    return drawn.astype(np.float64)
