"""Paired differences between policies: ratio of means with its interval, test, and verdict.

The interval covers the ratio of the means for other periods like this one: the same machine, users and length. Jobs
that wait at the same time are not independent, so the analysis uses blocks of consecutive jobs.

Notes
-----
*Blocks.* The jobs that ran under both policies, in order of submission, form eight blocks of equal numbers of jobs.

*Estimate.* ``L = ln(sum x / sum y)``. With block ``j`` left out the same formula gives ``L_j``; the pseudo-values are
``8 L - 7 L_j``, and their standard deviation over the square root of 8 is the standard error ``e`` (jackknife).

*Distribution.* ``L / (1.76 e)`` has Student's t distribution with 6 degrees of freedom. This is its distribution if
the differences are a stationary Gauss-Markov process with a relaxation time of one block (correlations of 0.543 and
0.200 between blocks one and two apart). The correlation is assumed: an estimate from one log is too noisy.

*Difference.* The interval of the difference is that of the ratio at the mean of the baseline in this log, so the two
cannot contradict each other. If one of the means is 0, the block means of the difference replace the pseudo-values.

Measured coverage and false verdicts are in ``docs/background/trust.md``.

References
----------
Law and Kelton, Simulation Modeling and Analysis, 3rd edition, 2000, section 9.4.1 (jackknife of a ratio).
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
from gridsim.metrics.responsiveness import BOUND, mean, measure
from gridsim.model.time import FloatArray
from gridsim.record import Record

Verdict = Literal["better", "worse", "no clear difference", "too little data", "equal"]

BLOCKS = 8
"""Blocks of consecutive jobs."""

FEWEST_JOBS = 80
"""Number of jobs below which there is no interval."""

SCALE, FREEDOM = 1.76, 6
"""Scale and degrees of freedom of the t distribution of the estimate over its standard error."""

NEGLIGIBLE = 1e-12
"""Relative size of a difference that is rounding error."""

LARGEST_LOG = 300.0
"""Bound of the logarithm of an interval's ends, so that they are finite."""

FEWEST_REPLICAS = 20
"""Number of resampled workloads below which they give no interval."""

WIDEST = math.log(2.0)
"""Half-width from which on an interval excludes neither half nor double."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of one metric between a policy and a baseline, over the jobs that ran under both. Lower is better.

    Attributes
    ----------
    metric : str
        ``wait``, ``response`` (s), ``slowdown`` or ``bounded_slowdown`` (ratios).
    policy, baseline : str
        Names of the two.
    policy_mean, baseline_mean : float
        Means over the same jobs.
    mean, low, high : float
        Policy minus baseline, mean over jobs, with the interval of the ratio at the baseline's mean; negative if the
        policy is better.
    ratio, ratio_low, ratio_high : float
        Mean under the policy over mean under the baseline, with its interval. All three are NaN if one mean is 0
        (the verdict then depends on the difference); the interval is NaN if there is none. Intervals are not corrected
        for multiple comparisons.
    effect : float
        Logarithm of the ratio over the standard deviation of the eight pseudo-values.
    p, p_holm : float
        Two-sided p value for a ratio of 1; the second is corrected by Holm for all comparisons of the same call.
    better, worse, same : float
        Share of the jobs with a lower, higher and equal value under the policy.
    jobs, blocks : int
        Number of jobs and of blocks.
    verdict : str
        ``equal`` if all values are equal; ``better`` or ``worse`` if ``p_holm`` is below 1 - confidence; ``too little
        data`` if there are fewer than 80 jobs, if all of the metric is in one block, or if the interval excludes
        neither half nor double; else ``no clear difference``.
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
    verdict: Verdict

    @property
    def half_width(self) -> float:
        """Half-width of the interval of the logarithm of the ratio; NaN if there is none."""
        return math.log(self.ratio_high / self.ratio_low) / 2 if self.ratio_low > 0 else math.nan

    def turned(self) -> Difference:
        """Return the same difference with the two policies exchanged."""
        ratio, ratio_low, ratio_high = (1 / value for value in (self.ratio, self.ratio_high, self.ratio_low))
        low, high = -self.high, -self.low
        if not math.isnan(ratio_low):
            low, high = _seconds(self.policy_mean, ratio_low, ratio_high)
        return replace(
            self,
            policy=self.baseline,
            baseline=self.policy,
            policy_mean=self.baseline_mean,
            baseline_mean=self.policy_mean,
            mean=-self.mean,
            low=low,
            high=high,
            ratio=ratio,
            ratio_low=ratio_low,
            ratio_high=ratio_high,
            effect=-self.effect,
            better=self.worse,
            worse=self.better,
            verdict=_OPPOSITE.get(self.verdict, self.verdict),
        )


_OPPOSITE: dict[Verdict, Verdict] = {"better": "worse", "worse": "better"}


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
    """Return the differences between policies on one workload, paired by job.

    Parameters
    ----------
    records : mapping of str to Record
        One record per policy, all of the same jobs.
    metric : str
        A name of `gridsim.metrics.responsiveness.MEASURES`.
    baseline : str, optional
        Policy to compare every other policy with. By default all pairs: each policy with each earlier one.
    bound : float
        Bound of the bounded slowdown, s.
    rows : mask, slice or indices, optional
        Jobs to compare, such as those that `gridsim.metrics.summary.cut` keeps; by default all.
    confidence : float
        Confidence level of the intervals, and 1 minus the level of the verdicts.
    moved : bool
        Whether the same jobs may have been submitted at other times, such as at another load.

    Returns
    -------
    list of Difference
        The differences. The comparisons of this call form one family of Holm's correction: one metric, all pairs.
        Other metrics form other families, since they are different questions.

    Raises
    ------
    InputError
        If the records are not of the same jobs.

    Examples
    --------
    >>> late = Record.from_rows([dict(submit=t, start=t + 9 + t % 2, end=t + 20, runtime=9) for t in range(200)])
    >>> soon = Record.from_rows([dict(submit=t, start=t + 4, end=t + 13, runtime=9) for t in range(200)])
    >>> found = paired({"late": late, "soon": soon}, baseline="late")[0]
    >>> found.policy, found.mean, round(found.ratio, 3), found.verdict
    ('soon', -5.5, 0.421, 'better')
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
    rows: Any = None,
    confidence: float = 0.95,
) -> dict[str, Difference]:
    """Return the difference between two policies for each group that has jobs, by its name.

    Parameters
    ----------
    record, baseline : Record
        Records of the policy and of the baseline, of the same jobs.
    groups : Groups
        Such as `gridsim.metrics.groups.size_classes` of either.
    names : (str, str)
        What to call the two.
    metric, rows, confidence
        As in `paired`.

    Notes
    -----
    The blocks of each group have equal numbers of its jobs. The groups of one call are one family of Holm's
    correction.
    """
    _check(dict(zip(names, (record, baseline), strict=True)), confidence)
    mine, theirs = measure(record, metric), measure(baseline, metric)
    members = rows_by_group(groups, rows)
    found = [_difference(metric, *names, mine[own], theirs[own], confidence) for own in members.values()]
    return dict(zip(members, _corrected(found, confidence), strict=True))


def widened(found: Sequence[Difference], spreads: Sequence[float], *, replicas: int) -> list[Difference]:
    """Return the differences with the wider of two intervals: from blocks of time, and from resampled users.

    Parameters
    ----------
    found : sequence of Difference
        One family: the comparisons of one metric, with 95 % intervals.
    spreads : sequence of float
        Standard deviation of the logarithm of each ratio over the replicas; NaN if unknown.
    replicas : int
        Number of workloads with resampled users; below `FEWEST_REPLICAS` the differences are returned unchanged.

    Returns
    -------
    list of Difference
        Differences with the larger of the two p values, with a new Holm correction.
    """
    if replicas < FEWEST_REPLICAS:
        return list(found)
    from scipy.special import stdtr, stdtrit

    t = float(stdtrit(replicas - 1, 0.975))

    def wider(one: Difference, spread: float) -> Difference:
        if not t * spread > one.half_width:
            return one
        p = float(2 * stdtr(replicas - 1, -abs(math.log(one.ratio)) / spread))
        return replace(_with_interval(one, t * spread), p=max(p, one.p))

    return _corrected([wider(one, spread) for one, spread in zip(found, spreads, strict=True)], 0.95)


def holm(p: Sequence[float]) -> list[float]:
    """Return Holm's corrected p values, in the given order; NaN (no test) is kept and not counted.

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
        raise InputError(f"{confidence} is no confidence level; expected a value between 0 and 1", field="confidence")
    if len(records) < 2:
        raise InputError(f"{len(records)} policies cannot be compared; expected at least 2 with different names")
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
    """An estimate with its standard error and effect; ``is_ratio`` if it is the logarithm of the ratio of means."""

    value: float
    error: float
    effect: float
    is_ratio: bool

    def half_width(self, confidence: float) -> float:
        from scipy.special import stdtrit  # 0.2 s: imported only if something is compared

        return SCALE * float(stdtrit(FREEDOM, (1 + confidence) / 2)) * self.error if self.error else 0.0

    @property
    def p(self) -> float:
        """Two-sided p value for a value of 0."""
        if not self.error:
            return float(abs(self.value) <= NEGLIGIBLE)
        from scipy.special import stdtr  # without scipy.stats, whose import takes a second

        return float(2.0 * stdtr(FREEDOM, -abs(self.value / self.error) / SCALE))


def _estimate(mine: FloatArray, theirs: FloatArray) -> _Estimate | None:
    """Return the estimate of the logarithm of the ratio, or of the difference if one mean is 0.

    None without enough data.
    """
    n = len(mine)
    if n < FEWEST_JOBS:
        return None
    edges = np.arange(BLOCKS) * n // BLOCKS
    x, y = np.add.reduceat(mine, edges), np.add.reduceat(theirs, edges)
    sums = float(x.sum()), float(y.sum())
    if not all(total > 0 for total in sums):
        means = (x - y) / np.diff(edges, append=n)
        return _of_values(float(mine.mean() - theirs.mean()), means, max(abs(total) for total in sums) / n)
    rest = sums[0] - x, sums[1] - y
    if any((part <= NEGLIGIBLE * total).any() for part, total in zip(rest, sums, strict=True)):
        return None
    whole = math.log(sums[0] / sums[1])
    pseudo = BLOCKS * whole - (BLOCKS - 1) * np.log(rest[0] / rest[1])
    return _of_values(whole, pseudo, 1.0, is_ratio=True)


def _of_values(value: float, values: FloatArray, scale: float, *, is_ratio: bool = False) -> _Estimate:
    """Return the estimate *value* with the standard error of the mean of eight *values*.

    Deviations far below *scale* are 0.
    """
    deviation = float(values.std(ddof=1))
    error = deviation / math.sqrt(BLOCKS)
    if error <= NEGLIGIBLE * scale:
        certain = math.copysign(math.inf, value) if abs(value) > NEGLIGIBLE * scale else 0.0
        return _Estimate(value if certain else 0.0, 0.0, certain, is_ratio)
    return _Estimate(value, error, value / deviation, is_ratio)


def _difference(
    metric: str, policy: str, baseline: str, mine: FloatArray, theirs: FloatArray, confidence: float
) -> Difference:
    """Compare two columns of the same jobs, not yet corrected for other comparisons."""
    both = ~(np.isnan(mine) | np.isnan(theirs))
    if not both.all():
        mine, theirs = mine[both], theirs[both]
    policy_mean, baseline_mean = mean(mine), mean(theirs)
    difference = policy_mean - baseline_mean
    better, worse, same = _shares(mine, theirs)
    ratio = policy_mean / baseline_mean if policy_mean > 0 and baseline_mean > 0 else math.nan
    unknown: Any = dict.fromkeys(("low", "high", "ratio_low", "ratio_high", "effect", "p", "p_holm"), math.nan)
    found = Difference(
        metric=metric,
        policy=policy,
        baseline=baseline,
        policy_mean=policy_mean,
        baseline_mean=baseline_mean,
        mean=difference,
        ratio=ratio,
        **unknown,
        better=better,
        worse=worse,
        same=same,
        jobs=len(mine),
        blocks=BLOCKS,
        verdict="too little data",
    )
    if same == 1:
        known: dict[str, Any] = dict.fromkeys(("mean", "low", "high", "effect"), 0.0)
        known |= dict.fromkeys(("ratio", "ratio_low", "ratio_high", "p"), 1.0)
        return replace(found, **known, verdict="equal")
    estimate = _estimate(mine, theirs)
    if estimate is None:
        return found
    half = estimate.half_width(confidence)
    found = replace(found, effect=estimate.effect, p=estimate.p, verdict="no clear difference")
    if not estimate.is_ratio:
        return replace(found, low=difference - half, high=difference + half)
    return _with_interval(found, half)


def _with_interval(found: Difference, half: float) -> Difference:
    """Return the difference with an interval of the ratio of half-width *half* on the scale of its logarithm."""
    middle = math.log(found.ratio)
    ends = [math.exp(min(max(middle + side * half, -LARGEST_LOG), LARGEST_LOG)) for side in (-1, 1)]
    low, high = _seconds(found.baseline_mean, *ends)
    return replace(found, ratio_low=ends[0], ratio_high=ends[1], low=low, high=high)


def _seconds(baseline_mean: float, low: float, high: float) -> tuple[float, float]:
    """Return the interval of the difference at the mean of the baseline, from the interval of the ratio."""
    return baseline_mean * (low - 1), baseline_mean * (high - 1)


def _shares(mine: FloatArray, theirs: FloatArray) -> tuple[float, float, float]:
    """Return the shares of the jobs with a lower, higher and equal value in *mine*."""
    n = len(mine)
    if not n:
        return (float("nan"),) * 3
    lower, higher = int(np.count_nonzero(mine < theirs)), int(np.count_nonzero(mine > theirs))
    return lower / n, higher / n, (n - lower - higher) / n


def _corrected(found: Sequence[Difference], confidence: float) -> list[Difference]:
    """Return the differences with Holm's p and the verdict that follows from it."""
    corrected = holm([difference.p for difference in found])
    return [
        replace(difference, p_holm=p, verdict=_verdict(difference, p, confidence))
        for difference, p in zip(found, corrected, strict=True)
    ]


def _verdict(difference: Difference, p: float, confidence: float) -> Verdict:
    if difference.verdict == "equal" or math.isnan(p):
        return difference.verdict
    if p < 1.0 - confidence:
        return "better" if difference.mean < 0 else "worse"
    return "too little data" if difference.half_width > WIDEST else "no clear difference"
