"""Comparison of policies over many workloads, paired by workload and load.

The unit is one value per schedule, from `gridsim.metrics.dag`. For one workload, job by job, see
`gridsim.metrics.compare`.

Notes
-----
*The paper's method* is the paired t-test of the values, with n = 150 workloads at each load and n = 750 over all
loads; it is reported unchanged. The distribution of SLRs has a very long right tail (a one-tick job that waits), so
one or two pairs dominate the test. Also, five loads of one workload are not five independent pairs.

*The main result* is therefore the paired t-test of log ratios, whose mean is the logarithm of the geometric-mean
ratio. Over all loads, the log ratios of a workload are averaged first: n = 150. Wilcoxon's signed-rank test uses the
same log ratios without zeros. Two equal values, also two zeros, have the log ratio 0. Any other pair with a value not
above 0 has no log ratio and is counted in ``left_out``.

*Multiple tests.* A family of Holm's correction consists of the comparisons of one policy with all others for one
metric, one load (or all loads), and one set of workloads. Tests of equivalence are not corrected, since each is a
separate claim.

*Equivalence* is tested by two one-sided t-tests of the log ratio at level 1 - confidence against the margins 1 / (1 +
m) and 1 + m; a large p value is not sufficient.

*Intervals.* The bootstrap resamples workloads with all their loads and uses percentiles. It does not fix the number of
workloads of each kind, which agrees with the t-test. Dominance has a Clopper-Pearson interval, which is too short over
all loads, as it assumes independent pairs.

*Validation* (tests/metrics/test_paired_tests.py): results equal those of scipy. For n = 150 and normal or skewed log
ratios, intervals have their nominal coverage, and tests, also the equivalence test at its margin, have about their
nominal level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from gridsim.errors import InputError, require_known
from gridsim.metrics import paired_tests
from gridsim.metrics.compare import holm
from gridsim.metrics.dag import DAG_METRICS
from gridsim.metrics.paired_tests import MARGIN, NAN, RESAMPLES, Better
from gridsim.model.time import FloatArray, IntArray

Rows = Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]
"""Stored metrics, a list of mappings or a mapping of columns, one row per value.

Keys are ``kind``, ``workload``, ``load``, ``policy``, ``metric``, ``value`` and ``decile``, from 1, or None for a
value
of the whole schedule.
"""

Verdict = Literal["better", "worse", "equivalent", "no clear difference", "too little data"]


def tidy(rows: Rows, **where: Any) -> Iterator[Mapping[str, Any]]:
    """Yield rows as mappings, only those whose entries equal *where*; a missing entry is None.

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
        Name of the metric.
    better : {"lower", "higher"}
        Direction of better values.
    workloads : tuple of (str, int)
        Kind and number of each.
    loads : tuple of float
        Ascending, fractions.
    policies : tuple of str
        In order of appearance.
    values : (workloads, loads, policies) float64
        One value per schedule.
    """

    metric: str
    better: Better
    workloads: tuple[tuple[str, int], ...]
    loads: tuple[float, ...]
    policies: tuple[str, ...]
    values: FloatArray

    @classmethod
    def from_rows(cls, rows: Rows, metric: str, *, decile: int | None = None, better: Better | None = None) -> Paired:
        """Return the values of one metric from stored rows.

        Raises
        ------
        InputError
            If a schedule is missing or duplicated, since values cannot be paired then.
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
        """Return the values of one policy, workloads by loads."""
        require_known("policy", self.policies, policy)
        return self.values[:, :, self.policies.index(policy)]

    def of_kind(self, kind: str) -> Paired:
        """Return the values for the workloads of one kind."""
        rows = [row for row, (own, _) in enumerate(self.workloads) if own == kind]
        return replace(self, workloads=tuple(self.workloads[row] for row in rows), values=self.values[rows])


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """Comparison of one metric under two policies, at one load or over all loads.

    Attributes
    ----------
    metric, policy, other : str
        Metric and policies compared.
    load : float or None
        The load; None: over all loads.
    kind : str or None
        Kind of the workloads; None for all kinds together.
    workloads, schedules : int
        Workloads, and pairs of schedules.
    difference, difference_low, difference_high, t, p, p_holm : float
        The paper's test: paired t of the values of all schedules, policy minus other.
    ratio, ratio_low, ratio_high, t_log, p_log, p_log_holm : float
        The main result: geometric mean of policy over other, with the interval of the t-test of log ratios, averaged
        over the loads of each workload.
    ratio_bootstrap_low, ratio_bootstrap_high : float
        Percentile interval of the ratio over resampled workloads.
    d_z : float
        Mean over standard deviation of the log ratios.
    left_out : int
        Number of workloads without a log ratio.
    p_wilcoxon, p_wilcoxon_holm : float
        Signed-rank test of the log ratios.
    dominance, dominance_low, dominance_high : float
        Share of the schedules in which the policy is not worse.
    wins, ties, losses : int
        Number of schedules in which the policy is strictly better, equal, worse.
    p_equivalence : float
        p value of two one-sided tests against the margin.
    equivalent : bool
        Whether ``p_equivalence`` is below 1 - confidence.
    verdict : str
        ``better`` or ``worse`` if ``p_log_holm`` is below 1 - confidence, else ``equivalent``, ``no clear
        difference``, or ``too little data`` for fewer than two workloads. A difference can be both clear and
        ``equivalent``: certainly not zero, and certainly small.
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

        For *equivalent* this is the interval at ``2 * confidence - 1`` of the two one-sided tests (90 %), which is
        within the margin; the usual interval may be wider.
        """
        if self.verdict != "equivalent" or not self.ratio_low < self.ratio:
            return self.ratio_low, self.ratio_high
        from scipy.special import stdtrit  # 0.2 s: imported only if something is compared

        freedom = self.workloads - self.left_out - 1
        share = float(stdtrit(freedom, confidence) / stdtrit(freedom, (1 + confidence) / 2))
        factor = (self.ratio_high / self.ratio) ** share
        return self.ratio / factor, self.ratio * factor

    def row(self) -> dict[str, Any]:
        """Return the comparison as a flat mapping, for a file."""
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
    """Compare a policy with other policies at each load, then over all loads; for all kinds together, then by kind.

    Parameters
    ----------
    paired : Paired
        The values.
    policy : str
        The policy, compared with all others or with *others*.
    margin : float
        Margin of the equivalence test, relative to the ratio.
    seed, resamples : int
        Parameters of the bootstrap.
    sources : (n,) int64, optional
        Source of each workload: windows of a log, for example, have a common source. The values of a source are
        averaged first, and the tests are over sources. By default every workload is a separate source.

    Returns
    -------
    list of PolicyComparison
        Comparisons, grouped by family of Holm's correction.
    """
    if not 0 < confidence < 1:
        raise InputError(f"{confidence} is no confidence level; expected a value between 0 and 1", field="confidence")
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
    """Return one comparison, before Holm's correction and without a verdict."""
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
    """Return the mean of each source over its workloads that have a value, NaN if none has one."""
    known, places = np.unique(sources, return_inverse=True)
    sums = np.zeros((len(known), *values.shape[1:]))
    counts = np.zeros_like(sums)
    np.add.at(sums, places, np.nan_to_num(values))
    np.add.at(counts, places, ~np.isnan(values))
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0, sums / counts, NAN)


def corrected(family: Sequence[PolicyComparison], better: Better, confidence: float = 0.95) -> list[PolicyComparison]:
    """Return the comparisons with Holm's p values and verdicts, regardless of their earlier family."""
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
    """Return the exponential, infinity on overflow: two extreme workloads have an interval without an upper end."""
    return math.exp(value) if value < 700 else math.inf
