"""Is one policy better than another over many workloads? Paired by workload and load, the way the paper did and beside.

One value a schedule: what `gridsim.metrics.dag` says of it. `gridsim.metrics.compare` is for one workload, job by job.

Notes
-----
*The paper's method* is the paired t-test of the values themselves, n = 150 workloads at each load and n = 750 over
all loads; it is reported as it is. SLRs have enormous right tails (a one-tick job that waits), so one or two pairs
decide it, and five loads of one workload are not five independent pairs.

*The headline* is therefore the paired t-test of log ratios, whose mean is the geometric-mean ratio. Over all loads a
workload's log ratios are averaged first: n = 150. Wilcoxon's signed-rank test is of the same log ratios, zeros left
out. Two equal values have the log ratio 0, also two zeros; a pair with one value not above 0 has none, and
``left_out`` tells how many there are.

*Many tests.* Holm's correction takes the policies that one is compared with for one family: one metric, one load (or
all loads), one set of workloads. Tests of equivalence are not corrected: each is a claim of its own.

*Indistinguishable* is two one-sided t-tests of the log ratio at level 1 - confidence against the margins 1 / (1 + m)
and 1 + m, not a large p value.

*Intervals.* The bootstrap resamples workloads, all their loads together, and takes percentiles; it does not hold the
number of each kind of workload fixed, and agrees so with the t-test. Dominance has a Clopper-Pearson interval, which
over all loads is too short, as it takes the pairs for independent.

*What was checked* (tests/metrics/test_campaign.py): scipy's own answers; intervals of normal and of skewed log
ratios that cover the truth as often as they say at n = 150; tests that reject a true hypothesis about as often as
they say, also the equivalence test at its margin.

References
----------
Schuirmann, "A comparison of the two one-sided tests procedure and the power approach for assessing the equivalence of
average bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987.
Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika
26(4), 1934.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from gridsim.errors import InputError, UnknownNameError
from gridsim.metrics.compare import holm
from gridsim.metrics.dag import DAG_METRICS
from gridsim.model.streams import stream
from gridsim.model.time import FloatArray

__all__ = [
    "Comparison",
    "Dominance",
    "Paired",
    "PairedTest",
    "Rows",
    "bootstrap_means",
    "clopper_pearson",
    "compare_policies",
    "corrected",
    "dominance",
    "equivalence",
    "log_ratios",
    "t_test",
    "tidy",
    "wilcoxon",
]

Rows = Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]
"""Stored numbers, one row a value: ``kind``, ``workload``, ``load``, ``policy``, ``metric``, ``value``; ``decile`` from
1, or None for a value of the whole schedule. A list of mappings, or a mapping of columns."""

MARGIN = 0.05
"""Ratios closer to 1 than by this part are as good as equal."""

RESAMPLES = 10_000
"""Of the bootstrap."""

ROUNDING = 1e-12
"""Spread of differences, in parts of the values, that is no more than rounding."""

NAN = float("nan")

Better = Literal["lower", "higher"]
Verdict = Literal["better", "worse", "equivalent", "no clear difference", "too little data"]


def tidy(rows: Rows, **where: Any) -> Iterator[Mapping[str, Any]]:
    """Rows as mappings, those alone whose entries are as *where* says; an entry that is not there is None.

    Examples
    --------
    >>> list(tidy({"policy": ["a", "b"], "value": [1, 2]}, policy="b"))
    [{'policy': 'b', 'value': 2}]
    """
    if isinstance(rows, Mapping):
        names = list(rows)
        rows = [dict(zip(names, entries, strict=True)) for entries in zip(*rows.values(), strict=True)]
    for row in rows:
        if all(row.get(name) == wanted for name, wanted in where.items()):
            yield row


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """One metric of the same workloads at the same loads under several policies.

    Attributes
    ----------
    metric : str
        Its name.
    better : {"lower", "higher"}
        Which values are better.
    workloads : tuple of (str, int)
        Kind and number of each.
    loads : tuple of float
        Ascending, fractions.
    policies : tuple of str
        In order of appearance.
    values : (workloads, loads, policies) float64
        One value a schedule.
    """

    metric: str
    better: Better
    workloads: tuple[tuple[str, int], ...]
    loads: tuple[float, ...]
    policies: tuple[str, ...]
    values: FloatArray

    @classmethod
    def from_rows(cls, rows: Rows, metric: str, *, decile: int | None = None, better: Better | None = None) -> Paired:
        """Values of one metric from stored rows.

        Raises
        ------
        InputError
            When a schedule is missing or there twice, as nothing can be paired then.
        """
        chosen = list(tidy(rows, metric=metric, decile=decile))
        if not chosen:
            raise InputError(f"no row has the metric '{metric}'" + (f" and decile {decile}" if decile else ""))
        workloads = list(dict.fromkeys((row.get("kind", ""), row["workload"]) for row in chosen))
        loads = sorted({float(row["load"]) for row in chosen})
        policies = list(dict.fromkeys(row["policy"] for row in chosen))
        places = [{name: place for place, name in enumerate(names)} for names in (workloads, loads, policies)]
        values = np.full((len(workloads), len(loads), len(policies)), np.nan)
        filled = np.zeros(values.shape, dtype=np.int64)
        for row in chosen:
            names = ((row.get("kind", ""), row["workload"]), float(row["load"]), row["policy"])
            cell = tuple(place[name] for place, name in zip(places, names, strict=True))
            values[cell] = row["value"]
            filled[cell] += 1
        if (filled != 1).any():
            w, at, p = (int(index) for index in np.argwhere(filled != 1)[0])
            kind, number = workloads[w]
            raise InputError(
                f"{filled[w, at, p]} values of '{metric}' for workload {kind} {number}, load {loads[at]:g} and policy "
                f"{policies[p]}; expected one"
            )
        way = better or (DAG_METRICS[metric].better if metric in DAG_METRICS else None) or "lower"
        return cls(metric, way, tuple(workloads), tuple(loads), tuple(policies), values)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of workloads, in order of appearance."""
        return tuple(dict.fromkeys(kind for kind, _ in self.workloads))

    def of(self, policy: str) -> FloatArray:
        """Values of one policy, workloads by loads."""
        if policy not in self.policies:
            raise UnknownNameError("policy", policy, self.policies)
        return self.values[:, :, self.policies.index(policy)]

    def of_kind(self, kind: str) -> Paired:
        """The same for the workloads of one kind."""
        rows = [row for row, (own, _) in enumerate(self.workloads) if own == kind]
        return replace(self, workloads=tuple(self.workloads[row] for row in rows), values=self.values[rows])


class PairedTest(NamedTuple):
    """A paired t-test: mean difference with its interval, t, two-sided p, d_z (mean over deviation), pairs."""

    mean: float
    low: float
    high: float
    t: float
    p: float
    d_z: float
    pairs: int


def t_test(differences: FloatArray, *, scale: float = 1.0, confidence: float = 0.95) -> PairedTest:
    """Student's t-test that the mean of paired differences is 0.

    Parameters
    ----------
    differences : (n,) float64
        One a pair.
    scale : float
        Size of the values subtracted: deviations far below it are rounding, and count as none.

    Notes
    -----
    Without any deviation the answer is certain: p is 1 for equal values and 0 for a constant difference.

    Examples
    --------
    >>> test = t_test(np.array([1.0, 2.0, 3.0]))
    >>> round(test.mean, 3), round(test.t, 3), round(test.p, 3), round(test.d_z, 3)
    (2.0, 3.464, 0.074, 2.0)
    """
    from scipy.special import stdtr, stdtrit  # a fifth of a second: only where something is tested

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
    """Natural logarithm of *mine* over *theirs*; 0 for equal values, NaN where there is no ratio.

    Examples
    --------
    >>> log_ratios(np.array([2.0, 0.0, 1.0]), np.array([2.0, 0.0, 0.0]))
    array([ 0.,  0., nan])
    """
    known = (mine > 0) & (theirs > 0) & np.isfinite(mine) & np.isfinite(theirs)
    logs = np.log(np.where(known, mine, 1.0)) - np.log(np.where(known, theirs, 1.0))
    return np.where(mine == theirs, 0.0, np.where(known, logs, np.nan))


def wilcoxon(differences: FloatArray) -> float:
    """Two-sided p of Wilcoxon's signed-rank test, zeros left out; 1 where all are zero, NaN without any."""
    from scipy import stats  # a second, for this test alone

    moved = differences[differences != 0]
    if not len(moved):
        return 1.0 if len(differences) else NAN
    return float(stats.wilcoxon(moved).pvalue)


def equivalence(logs: FloatArray, margin: float = MARGIN) -> float:
    """p of two one-sided t-tests that the geometric-mean ratio lies within ``1 / (1 + margin)`` and ``1 + margin``.

    Examples
    --------
    >>> equivalence(np.log([1.01, 0.99, 1.0, 1.02])) < 0.05, equivalence(np.log([1.3, 0.8, 1.0, 1.1])) < 0.05
    (True, False)
    """
    from scipy.special import stdtr  # a fifth of a second: only where something is tested

    if margin <= 0:
        raise InputError(f"a margin of {margin} leaves no room; expected a part above 0", field="margin")
    n, limit = len(logs), math.log1p(margin)
    if n < 2:
        return NAN
    mean, error = float(logs.mean()), float(logs.std(ddof=1)) / math.sqrt(n)
    if error <= ROUNDING:
        return 0.0 if abs(mean) < limit else 1.0
    return float(stdtr(n - 1, (abs(mean) - limit) / error))


class Dominance(NamedTuple):
    """Share of the pairs that are no worse, with its Clopper-Pearson interval; strict wins, ties and losses."""

    share: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int


def dominance(mine: FloatArray, theirs: FloatArray, *, better: Better = "lower", confidence: float = 0.95) -> Dominance:
    """How often *mine* is at least as good as *theirs*; ties count for it.

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
    """Interval for a probability of which *k* of *n* trials came true: never too short.

    Examples
    --------
    >>> low, high = clopper_pearson(150, 150)
    >>> round(low, 4), high
    (0.9757, 1.0)
    """
    from scipy.special import betaincinv  # a fifth of a second: only where something is tested

    tail = (1 - confidence) / 2
    low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return low, high


def bootstrap_means(values: FloatArray, *, seed: int = 0, resamples: int = RESAMPLES) -> FloatArray:
    """Means over the first axis of resampled rows; the other axes stay together.

    Parameters
    ----------
    values : (n, ...) float64
        A row a workload: a number, or a profile such as its values by decile and policy.
    seed, resamples : int
        The same for the same seed and number of rows, so that metrics are resampled alike.

    Returns
    -------
    (resamples, ...) float64
        Quantiles over the first axis are an interval; the share of rows in which an order holds is how sure it is.

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
    """How often each of *n* rows is in each resample; 12 MB for 150 rows, and slower to draw than all the rest."""
    drawn = stream(seed, "campaign", "bootstrap", n).multinomial(n, np.full(n, 1 / n), size=resamples)
    return drawn.astype(np.float64)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric under one policy against another, at one load or over all.

    Attributes
    ----------
    metric, policy, other : str
        What is compared.
    load : float or None
        None over all loads.
    kind : str or None
        Kind of the workloads; None for all kinds together.
    workloads, schedules : int
        Workloads, and pairs of schedules.
    difference, difference_low, difference_high, t, p, p_holm : float
        The paper's test: paired t of the values of all schedules, policy minus other.
    ratio, ratio_low, ratio_high, t_log, p_log, p_log_holm : float
        The headline: geometric mean of policy over other, with the interval of the t-test of log ratios, a
        workload's averaged over its loads.
    ratio_bootstrap_low, ratio_bootstrap_high : float
        Its percentile interval over resampled workloads.
    d_z : float
        Mean over deviation of the log ratios.
    left_out : int
        Workloads without a log ratio.
    p_wilcoxon, p_wilcoxon_holm : float
        Signed-rank test of the log ratios.
    dominance, dominance_low, dominance_high : float
        Share of the schedules in which the policy is no worse.
    wins, ties, losses : int
        Schedules in which it is strictly better, equal, worse.
    p_equivalence : float
        Two one-sided tests against the margin.
    equivalent : bool
        Whether that is below 1 - confidence.
    verdict : str
        ``better`` or ``worse`` where ``p_log_holm`` is below 1 - confidence, else ``equivalent``, ``no clear
        difference``, or ``too little data`` for fewer than two workloads. A difference can be clear and ``equivalent``
        too: surely there and surely small.
    """

    metric: str
    policy: str
    other: str
    load: float | None
    kind: str | None
    workloads: int
    schedules: int
    difference: float
    difference_low: float
    difference_high: float
    t: float
    p: float
    p_holm: float
    ratio: float
    ratio_low: float
    ratio_high: float
    t_log: float
    p_log: float
    p_log_holm: float
    ratio_bootstrap_low: float
    ratio_bootstrap_high: float
    d_z: float
    left_out: int
    p_wilcoxon: float
    p_wilcoxon_holm: float
    dominance: float
    dominance_low: float
    dominance_high: float
    wins: int
    ties: int
    losses: int
    p_equivalence: float
    equivalent: bool
    verdict: Verdict

    def row(self) -> dict[str, Any]:
        """As a flat mapping, for a file."""
        return asdict(self)


def compare_policies(
    paired: Paired,
    policy: str = "p-slr",
    *,
    others: Sequence[str] | None = None,
    by_load: bool = True,
    by_kind: bool = False,
    margin: float = MARGIN,
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> list[Comparison]:
    """A policy against each other one: at each load, then over all loads; pooled, then by kind where asked.

    Parameters
    ----------
    paired : Paired
        The values.
    policy : str
        Compared with all others, or with *others*.
    margin : float
        Of the equivalence test, a part of the ratio.
    seed, resamples : int
        Of the bootstrap.

    Returns
    -------
    list of Comparison
        Families of Holm's correction stand together.
    """
    if not 0 < confidence < 1:
        raise InputError(f"{confidence} is no confidence; expected a fraction between 0 and 1", field="confidence")
    against = [name for name in paired.policies if name != policy] if others is None else list(others)
    sets: list[tuple[str | None, Paired]] = [(None, paired)]
    if by_kind:
        sets += [(kind, paired.of_kind(kind)) for kind in paired.kinds]
    at_load = list(enumerate(paired.loads)) if by_load and len(paired.loads) > 1 else []
    found: list[Comparison] = []
    for kind, of_set in sets:
        for at, load in [*at_load, (None, None if len(paired.loads) > 1 else paired.loads[0])]:
            columns = slice(None) if at is None else slice(at, at + 1)
            family = [
                _compare(
                    {"metric": paired.metric, "policy": policy, "other": other, "load": load, "kind": kind},
                    of_set.of(policy)[:, columns],
                    of_set.of(other)[:, columns],
                    paired.better,
                    margin,
                    confidence,
                    lambda logs: bootstrap_means(logs, seed=seed, resamples=resamples),
                )
                for other in against
            ]
            found += corrected(family, paired.better, confidence)
    return found


def _compare(
    names: Mapping[str, Any],
    mine: FloatArray,
    theirs: FloatArray,
    better: Better,
    margin: float,
    confidence: float,
    bootstrap: Callable[[FloatArray], FloatArray],
) -> Comparison:
    """One comparison, before Holm's correction and without a verdict."""
    raw = t_test((mine - theirs).ravel(), scale=float(np.abs(theirs).max(initial=0.0)), confidence=confidence)
    all_logs = log_ratios(mine, theirs).mean(axis=1)
    logs = all_logs[~np.isnan(all_logs)]
    log = t_test(logs, confidence=confidence)
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.exp(np.quantile(bootstrap(logs), tails)).tolist() if len(logs) > 1 else (NAN, NAN)
    share = dominance(mine.ravel(), theirs.ravel(), better=better, confidence=confidence)
    p_equivalence = equivalence(logs, margin)
    return Comparison(
        **names,
        workloads=len(mine),
        schedules=mine.size,
        difference=raw.mean,
        difference_low=raw.low,
        difference_high=raw.high,
        t=raw.t,
        p=raw.p,
        p_holm=NAN,
        ratio=math.exp(log.mean),
        ratio_low=math.exp(log.low),
        ratio_high=_exp(log.high),
        t_log=log.t,
        p_log=log.p,
        p_log_holm=NAN,
        ratio_bootstrap_low=low,
        ratio_bootstrap_high=high,
        d_z=log.d_z,
        left_out=len(all_logs) - len(logs),
        p_wilcoxon=wilcoxon(logs),
        p_wilcoxon_holm=NAN,
        dominance=share.share,
        dominance_low=share.low,
        dominance_high=share.high,
        wins=share.wins,
        ties=share.ties,
        losses=share.losses,
        p_equivalence=p_equivalence,
        equivalent=p_equivalence < 1 - confidence,
        verdict="too little data",
    )


def corrected(family: Sequence[Comparison], better: Better, confidence: float = 0.95) -> list[Comparison]:
    """Comparisons of one family with Holm's p values and their verdicts, whatever family they were of before."""
    columns = zip(
        family,
        holm([one.p for one in family]),
        holm([one.p_log for one in family]),
        holm([one.p_wilcoxon for one in family]),
        strict=True,
    )
    return [
        replace(
            one,
            p_holm=p,
            p_log_holm=p_log,
            p_wilcoxon_holm=p_wilcoxon,
            verdict=_verdict(one, p_log, better, confidence),
        )
        for one, p, p_log, p_wilcoxon in columns
    ]


def _verdict(one: Comparison, p: float, better: Better, confidence: float) -> Verdict:
    if math.isnan(p):
        return "too little data"
    if p < 1 - confidence:
        return "better" if (one.ratio < 1) == (better == "lower") else "worse"
    return "equivalent" if one.equivalent else "no clear difference"


def _exp(value: float) -> float:
    """Exponential that ends at infinity: two wild workloads have an interval without a top."""
    return math.exp(value) if value < 700 else math.inf
