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

*What was checked* (tests/metrics/test_paired_tests.py): scipy's own answers; intervals of normal and of skewed log
ratios that cover the truth as often as they say at n = 150; tests that reject a true hypothesis about as often as
they say, also the equivalence test at its margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from gridsim.errors import InputError, UnknownNameError
from gridsim.metrics import paired_tests
from gridsim.metrics.compare import holm
from gridsim.metrics.dag import DAG_METRICS
from gridsim.metrics.paired_tests import MARGIN, NAN, RESAMPLES, Better
from gridsim.model.time import FloatArray, IntArray

Rows = Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]
"""Stored numbers, one row a value: ``kind``, ``workload``, ``load``, ``policy``, ``metric``, ``value``; ``decile`` from
1, or None for a value of the whole schedule. A list of mappings, or a mapping of columns."""

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


@dataclass(frozen=True, slots=True)
class PolicyComparison:
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

    def shown_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the interval of the ratio that decides the verdict.

        For *equivalent* that is the interval at ``2 * confidence - 1`` of the two one-sided tests (90 %), which lies
        within the margin; the usual one may be wider than the margin.
        """
        if self.verdict != "equivalent" or not self.ratio_low < self.ratio:
            return self.ratio_low, self.ratio_high
        from scipy.special import stdtrit  # 0.2 s: imported only if something is compared

        freedom = self.workloads - self.left_out - 1
        share = float(stdtrit(freedom, confidence) / stdtrit(freedom, (1 + confidence) / 2))
        factor = (self.ratio_high / self.ratio) ** share
        return self.ratio / factor, self.ratio * factor

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
    sources: IntArray | None = None,
) -> list[PolicyComparison]:
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
    sources : (n,) int64, optional
        Which workloads are parts of the same one, such as windows of a log. The numbers of a source are averaged first,
        and the tests are over sources; every workload is one of its own where left out.

    Returns
    -------
    list of PolicyComparison
        Families of Holm's correction stand together.
    """
    if not 0 < confidence < 1:
        raise InputError(f"{confidence} is no confidence; expected a fraction between 0 and 1", field="confidence")
    against = [name for name in paired.policies if name != policy] if others is None else list(others)
    sets: list[tuple[str | None, Paired]] = [(None, paired)]
    if by_kind:
        sets += [(kind, paired.of_kind(kind)) for kind in paired.kinds]
    at_load = list(enumerate(paired.loads)) if by_load and len(paired.loads) > 1 else []
    found: list[PolicyComparison] = []
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
                    lambda logs: paired_tests.bootstrap_means(logs, seed=seed, resamples=resamples),
                    sources,
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
    sources: IntArray | None = None,
) -> PolicyComparison:
    """One comparison, before Holm's correction and without a verdict."""
    all_logs = paired_tests.log_ratios(mine, theirs).mean(axis=1)
    if sources is not None:
        all_logs, mine, theirs = (_of_sources(each, sources) for each in (all_logs, mine, theirs))
    raw = paired_tests.t_test(
        (mine - theirs).ravel(), scale=float(np.abs(theirs).max(initial=0.0)), confidence=confidence
    )
    logs = all_logs[~np.isnan(all_logs)]
    log = paired_tests.t_test(logs, confidence=confidence)
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.exp(np.quantile(bootstrap(logs), tails)).tolist() if len(logs) > 1 else (NAN, NAN)
    share = paired_tests.dominance(mine.ravel(), theirs.ravel(), better=better, confidence=confidence)
    p_equivalence = paired_tests.equivalence(logs, margin)
    return PolicyComparison(
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
        p_wilcoxon=paired_tests.wilcoxon(logs),
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


def _of_sources(values: FloatArray, sources: IntArray) -> FloatArray:
    """Mean of each source over those of its workloads that have a number, NaN where none has one."""
    known, places = np.unique(sources, return_inverse=True)
    sums = np.zeros((len(known), *values.shape[1:]))
    counts = np.zeros_like(sums)
    np.add.at(sums, places, np.nan_to_num(values))
    np.add.at(counts, places, ~np.isnan(values))
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0, sums / counts, NAN)


def corrected(family: Sequence[PolicyComparison], better: Better, confidence: float = 0.95) -> list[PolicyComparison]:
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


def _verdict(one: PolicyComparison, p: float, better: Better, confidence: float) -> Verdict:
    if math.isnan(p):
        return "too little data"
    if p < 1 - confidence:
        return "better" if (one.ratio < 1) == (better == "lower") else "worse"
    return "equivalent" if one.equivalent else "no clear difference"


def _exp(value: float) -> float:
    """Exponential that ends at infinity: two wild workloads have an interval without a top."""
    return math.exp(value) if value < 700 else math.inf
