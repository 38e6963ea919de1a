"""Is one policy better than another, by how much, and how sure is that? Paired by job, with blocks of time.

Jobs that wait together are no independent witnesses: one congested week delays thousands of them at once, and a
test that counts them one by one finds differences where there are none. So the evidence here is the mean paired
difference in blocks of consecutive jobs, long enough that one block says little about the next.

Notes
-----
*Blocks.* The jobs, in order of submission, are cut into 64 blocks of equally many jobs (half as many until each has
10). Blocks of equal numbers, not of equal time, make the plain mean of the block means the mean over jobs, which is
what is to be estimated; blocks of equal time would need a ratio estimator and give a busy week the same number of
blocks as an idle one.

*Correlation.* Neighbouring blocks are merged, 64 to 32 to 16 to 8, until the lag-1 autocorrelation of the block means
(from von Neumann's ratio, small-sample bias removed) is at most 0.8; what remains, when positive, widens the interval
as in a first-order autoregression: variance times (1 + r) / (1 - r), degrees of freedom likewise fewer. This is the
idea of ASAP3 (Steiger et al. 2005). Merging until the correlation is merely not significant keeps fewer blocks, and
covered less often in our simulations: at few blocks the test overlooks correlation that matters. Fewer than 6 blocks'
worth of independent evidence, or correlation that no merging removes, is "too little data": intervals are shown, very
wide, and no verdict is given. Batch means rather than a block bootstrap (Politis and Romano 1994), because with 8 to
64 blocks the t quantile is needed anyway, and the answer has no random part.

*Which is better* is decided on the ratio of means, through its logarithm (delta method): each job counts with its
share of the policy's total minus its share of the baseline's. Without a difference that is the test of the mean
difference; with a large one it is much the sharper, because in a log the difference grows and shrinks with the
congestion that both policies meet, and the ratio does not. The interval of the mean difference is that of its own
block means, and allows for other congestion than this log's; it can be very wide when a policy cannot keep up with
the load, as its waits then grow with the length of the log. Where the interval of the ratio leaves out 1, that of the
difference does not cross 0.

*What was checked* (tests/metrics/test_compare.py): on autoregressive differences of known mean the 95 % interval
covers it in at least 90 % of the series, where the interval that counts jobs covers 10 to 40 %; without a difference
a verdict is given about as often as promised. Logs with less than some 20 independent stretches and a heavy tail are
the hard case: there up to an eighth of the verdicts may be false.

*What it is about.* One workload: the intervals say how the means would vary over other periods like this one, not
over other machines.

References
----------
Law and Kelton, Simulation Modeling and Analysis, 3rd edition, 2000, section 9.5.3 (batch means) and 9.4.1 (ratios).
Fishman, "Grouping observations in digital simulation", Management Science 24(5), 1978 (von Neumann's ratio).
Steiger, Lada, Wilson, Joines, Alexopoulos and Goldsman, "ASAP3: a batch means procedure for steady-state simulation
analysis", ACM TOMACS 15(1), 2005.
Politis and Romano, "The stationary bootstrap", JASA 89(428), 1994.
Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6(2), 1979.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np

from gridsim.errors import InputError, UnknownNameError
from gridsim.metrics.groups import Groups, rows_by_group
from gridsim.metrics.responsiveness import BOUND, measure
from gridsim.model.time import FloatArray
from gridsim.record import Record

__all__ = ["Difference", "Verdict", "holm", "paired", "winners_and_losers"]

Verdict = Literal["better", "worse", "no clear difference", "too little data"]

BLOCKS = 64
"""Blocks to begin with."""

FEWEST_BLOCKS = 8
"""Blocks below which nothing is merged any more."""

JOBS_A_BLOCK = 10
"""Jobs that a block holds at least, to begin with."""

ENOUGH = 6.0
"""Independent blocks, after what correlation takes away, below which there is no verdict."""

TOLERABLE = 0.8
"""Correlation between blocks up to which an autoregression is trusted to describe it: the value of ASAP3."""

LARGEST_EXPONENT = 300.0
"""Half widths of a log ratio beyond which only "no idea" is said, in numbers that still are some."""

ROUNDING = 1e-12
"""Spread between blocks, in parts of the means compared, that is no more than rounding."""

MOST_CORRELATION = 0.9
"""Estimated correlation beyond which the interval widens no further."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric under a policy against a baseline, over the jobs that ran under both. Lower is better.

    Attributes
    ----------
    metric : str
        ``wait``, ``response`` (s), ``slowdown`` or ``bounded_slowdown`` (ratios).
    policy, baseline : str
        Names of the two.
    policy_mean, baseline_mean : float
        Means over the same jobs.
    mean, low, high : float
        Policy minus baseline, mean over jobs, with its interval; negative says that the policy is better.
    ratio, ratio_low, ratio_high : float
        Mean under the policy over mean under the baseline, with its interval; NaN where one of them is 0 (the
        verdict then rests on the difference). Intervals stand for themselves: they are not widened for other
        comparisons made at the same time.
    effect : float
        Cohen's d_z over blocks: logarithm of the ratio over its standard deviation from block to block; for small
        differences the same as mean over standard deviation of the block differences. It depends on the length of
        the blocks: compare it within one table only.
    p, p_holm : float
        Two-sided, for a ratio of 1; corrected by Holm for all comparisons of the same call.
    better, worse, same : float
        Share of the jobs with a lower, higher and equal value under the policy.
    jobs, blocks : int
        How many jobs in how many blocks.
    autocorrelation : float
        Lag-1 autocorrelation of the block means of the difference, both policies scaled to a mean of 1.
    verdict : str
        ``better`` or ``worse`` where ``p_holm`` is below 1 - confidence; ``too little data`` where the blocks are
        too few or too much alike to tell; else ``no clear difference``.
    """

    metric: str
    policy: str
    baseline: str
    policy_mean: float
    baseline_mean: float
    mean: float
    low: float
    high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    effect: float
    p: float
    p_holm: float
    better: float
    worse: float
    same: float
    jobs: int
    blocks: int
    autocorrelation: float
    verdict: Verdict


def paired(
    records: Mapping[str, Record],
    *,
    metric: str = "wait",
    baseline: str | None = None,
    bound: float = BOUND,
    rows: Any = None,
    confidence: float = 0.95,
    moved: bool = False,
) -> list[Difference]:
    """Differences between policies on one workload, paired by job.

    Parameters
    ----------
    records : mapping of str to Record
        One record a policy, all of the same jobs.
    metric : str
        A name of `gridsim.metrics.responsiveness.MEASURES`.
    baseline : str, optional
        Compare every other policy with this one. Where left out, all pairs: each policy with each earlier one.
    bound : float
        Of the bounded slowdown, s.
    rows : mask, slice or indices, optional
        Jobs to compare, such as those that `gridsim.metrics.summary.cut` keeps; all where left out.
    confidence : float
        Of the intervals, and 1 minus the level of the verdicts.
    moved : bool
        Whether the same jobs may have been submitted at other times, such as at another load.

    Returns
    -------
    list of Difference
        Holm's correction takes the comparisons of this call for one family: one metric, all pairs. Further metrics
        are further families; they are different questions, not further tries at the same one.

    Raises
    ------
    InputError
        When the records are not of the same jobs.

    Examples
    --------
    >>> late = Record.from_rows([dict(submit=t, start=t + 9 + t % 2, end=t + 20, runtime=9) for t in range(200)])
    >>> soon = Record.from_rows([dict(submit=t, start=t + 4, end=t + 13, runtime=9) for t in range(200)])
    >>> found = paired({"late": late, "soon": soon}, baseline="late")[0]
    >>> found.policy, found.mean, found.verdict
    ('soon', -5.5, 'better')
    """
    _check(records, confidence, moved=moved)
    if baseline is not None and baseline not in records:
        raise UnknownNameError("baseline", baseline, records)
    values = {name: measure(record, metric, bound) for name, record in records.items()}
    if rows is not None:
        values = {name: column[rows] for name, column in values.items()}
    if baseline is None:
        pairs = [(later, earlier) for earlier, later in combinations(records, 2)]
    else:
        pairs = [(name, baseline) for name in records if name != baseline]
    found = [_difference(metric, policy, other, values[policy], values[other], confidence) for policy, other in pairs]
    return _corrected(found, confidence)


def winners_and_losers(
    record: Record,
    baseline: Record,
    groups: Groups,
    *,
    metric: str = "wait",
    names: tuple[str, str] = ("policy", "baseline"),
    bound: float = BOUND,
    rows: Any = None,
    confidence: float = 0.95,
) -> dict[str, Difference]:
    """Difference between two policies for each group that has jobs, by its name.

    Parameters
    ----------
    record, baseline : Record
        The policy and what it is compared with, of the same jobs.
    groups : Groups
        Such as `gridsim.metrics.groups.size_classes` of either.
    names : (str, str)
        What to call the two.
    metric, bound, rows, confidence
        As in `paired`.

    Notes
    -----
    Each group has blocks of its own, of equally many of its jobs; small groups often have too little data. Holm's
    correction takes the groups of this call for one family.
    """
    _check(dict(zip(names, (record, baseline), strict=True)), confidence)
    mine, theirs = measure(record, metric, bound), measure(baseline, metric, bound)
    members = rows_by_group(groups, rows)
    found = [_difference(metric, *names, mine[own], theirs[own], confidence) for own in members.values()]
    return dict(zip(members, _corrected(found, confidence), strict=True))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's corrected p values, in the order given; NaN (no test made) stays and does not count.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [float("nan")] * len(p)
    tested = sorted((row for row in range(len(p)) if not math.isnan(p[row])), key=lambda row: p[row])
    largest = 0.0
    for rank, row in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - rank) * p[row]))
        corrected[row] = largest
    return corrected


def _check(records: Mapping[str, Record], confidence: float, *, moved: bool = False) -> None:
    if not 0 < confidence < 1:
        raise InputError(f"{confidence} is no confidence; expected a fraction between 0 and 1", field="confidence")
    if len(records) < 2:
        raise InputError(f"{len(records)} policies cannot be compared; expected at least 2 of different names")
    names = iter(records.items())
    first, reference = next(names)
    expected = reference.workload_given
    for name, record in names:
        if record.workload is reference.workload:
            continue
        given = record.workload_given
        for column in ("job", *(() if moved else ("submit",)), "runtime", "cores"):
            if not np.array_equal(getattr(given, column), getattr(expected, column)):
                raise InputError(f"'{name}' and '{first}' are not records of the same jobs", field=column)


class _Estimate(NamedTuple):
    """A mean over jobs and how far to trust it: standard error, degrees of freedom, and the blocks they come from."""

    mean: float
    error: float
    freedom: float
    spread: float
    blocks: int
    autocorrelation: float
    enough: bool

    def half_width(self, confidence: float) -> float:
        from scipy.special import stdtrit  # a fifth of a second: only where something is compared

        return float(stdtrit(self.freedom, (1 + confidence) / 2)) * self.error if self.error else 0.0

    @property
    def p(self) -> float:
        """Two-sided, for a mean of 0."""
        if not self.error:
            return 0.0 if self.mean else 1.0
        from scipy.special import stdtr  # Student's t without scipy.stats, which costs a second

        return float(2.0 * stdtr(self.freedom, -abs(self.mean) / self.error))

    @property
    def effect(self) -> float:
        """Mean over the standard deviation of blocks."""
        if not self.spread:
            return math.copysign(math.inf, self.mean) if self.mean else 0.0
        return self.mean / self.spread


NO_ESTIMATE = _Estimate(*(float("nan"),) * 4, 0, float("nan"), False)


def _estimate(series: FloatArray, mean: float | None = None, *, scale: float = 1.0) -> _Estimate:
    """Estimate of the mean of a *series*; of *mean*, where the series is what linearises it.

    The series is a difference of numbers of the size of *scale*: what is smaller by 12 digits is rounding.
    """
    if len(series) < 2:
        return NO_ESTIMATE
    negligible = ROUNDING * scale
    means, correlation = _blocks(series, negligible)
    count = len(means)
    carried = min(max(correlation, 0.0), MOST_CORRELATION)
    worth = count * (1.0 - carried) / (1.0 + carried)
    spread = _spread(means, negligible)
    return _Estimate(
        mean=float(series.mean()) if mean is None else mean,
        error=spread / math.sqrt(worth),
        freedom=max(worth - 1.0, 1.0),
        spread=spread,
        blocks=count,
        autocorrelation=correlation,
        enough=correlation <= TOLERABLE and worth >= ENOUGH,
    )


def _blocks(series: FloatArray, negligible: float) -> tuple[FloatArray, float]:
    """Means of blocks of a series, merged until neighbours are little alike, and their autocorrelation."""
    n = len(series)
    count = BLOCKS
    while count > 2 and count * JOBS_A_BLOCK > n:
        count //= 2
    while True:
        edges = np.arange(count + 1) * n // count
        means: FloatArray = np.add.reduceat(series, edges[:-1]) / np.diff(edges)
        correlation = _lag_one(means) if _spread(means, negligible) else 0.0
        if correlation <= TOLERABLE or count // 2 < FEWEST_BLOCKS:
            return means, correlation
        count //= 2


def _spread(means: FloatArray, negligible: float) -> float:
    """Standard deviation; 0 where it is *negligible*."""
    spread = float(means.std(ddof=1))
    return spread if spread > negligible else 0.0


def _lag_one(means: FloatArray) -> float:
    """Lag-1 autocorrelation of what is no constant, from von Neumann's ratio.

    The ratio is unbiased where there is no correlation, and too low by about four parts in the number of blocks
    where there is some.
    """
    spread = float(((means - means.mean()) ** 2).sum())
    ratio = 1.0 - float((np.diff(means) ** 2).sum()) / (2.0 * spread)
    return min(ratio * (1.0 + 4.0 / len(means)), 1.0)


def _difference(
    metric: str, policy: str, baseline: str, mine: FloatArray, theirs: FloatArray, confidence: float
) -> Difference:
    """Compare two columns of the same jobs, not yet corrected for other comparisons."""
    both = ~(np.isnan(mine) | np.isnan(theirs))
    if not both.all():
        mine, theirs = mine[both], theirs[both]
    policy_mean, baseline_mean = _mean(mine), _mean(theirs)
    gap = _estimate(mine - theirs, scale=max(policy_mean, baseline_mean))
    ratio = policy_mean / baseline_mean if policy_mean > 0 and baseline_mean > 0 else float("nan")
    evidence = gap if math.isnan(ratio) else _estimate(mine / policy_mean - theirs / baseline_mean, math.log(ratio))
    low, high = _interval(gap, evidence, confidence)
    factor = math.exp(min(evidence.half_width(confidence), LARGEST_EXPONENT))
    better, worse, same = _shares(mine, theirs)
    return Difference(
        metric=metric,
        policy=policy,
        baseline=baseline,
        policy_mean=policy_mean,
        baseline_mean=baseline_mean,
        mean=policy_mean - baseline_mean if math.isnan(gap.mean) else gap.mean,
        low=low,
        high=high,
        ratio=ratio,
        ratio_low=ratio / factor,
        ratio_high=ratio * factor,
        effect=evidence.effect,
        p=evidence.p,
        p_holm=float("nan"),
        better=better,
        worse=worse,
        same=same,
        jobs=len(mine),
        blocks=evidence.blocks,
        autocorrelation=evidence.autocorrelation,
        verdict="no clear difference" if evidence.enough else "too little data",
    )


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _interval(gap: _Estimate, evidence: _Estimate, confidence: float) -> tuple[float, float]:
    """Interval of the mean difference; it does not cross 0 where the evidence shows the direction."""
    half = gap.half_width(confidence)
    low, high = gap.mean - half, gap.mean + half
    if evidence.enough and abs(evidence.mean) > evidence.half_width(confidence):
        return (low, min(high, 0.0)) if evidence.mean < 0 else (max(low, 0.0), high)
    return low, high


def _shares(mine: FloatArray, theirs: FloatArray) -> tuple[float, float, float]:
    """Shares of the jobs with a lower, higher and equal value in *mine*."""
    n = len(mine)
    if not n:
        return (float("nan"),) * 3
    lower, higher = int(np.count_nonzero(mine < theirs)), int(np.count_nonzero(mine > theirs))
    return lower / n, higher / n, (n - lower - higher) / n


def _corrected(found: Sequence[Difference], confidence: float) -> list[Difference]:
    """The same differences with Holm's p and the verdict that follows from it."""
    corrected = holm([difference.p for difference in found])
    return [
        replace(difference, p_holm=p, verdict=_verdict(difference, p, confidence))
        for difference, p in zip(found, corrected, strict=True)
    ]


def _verdict(difference: Difference, p: float, confidence: float) -> Verdict:
    if difference.verdict == "too little data" or not p < 1.0 - confidence:
        return difference.verdict
    return "better" if difference.mean < 0 else "worse"
