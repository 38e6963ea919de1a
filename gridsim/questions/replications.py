"""Results of policies on replicas of a workload: spread of each metric, and comparison by replica.

`gridsim.questions.run_replications` runs the simulations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from gridsim.metrics.compare import Difference, widened
from gridsim.metrics.paired_tests import CERTAIN, log_ratios, t_test
from gridsim.model.time import FloatArray

Role = Literal["shake", "resample"]

Verdict = Literal["does not change", "reversed", "noise"]


class Spread(NamedTuple):
    """Distribution of a metric over replicas: mean, standard deviation, extremes and quartiles, in its unit.

    ``original`` is the value of the original workload, ``below`` the share of replicas with lower values.
    """

    metric: str
    policy: str
    original: float
    mean: float
    sd: float
    least: float
    quarter: float
    median: float
    three_quarters: float
    most: float
    below: float
    replicas: int


class Pair(NamedTuple):
    """Difference of two policies, paired by replica: policy minus other, in the unit of the metric.

    ``original`` is the difference for the original workload. ``low`` and ``high`` are the 95 % interval of the mean
    (Student's t over replicas). ``lower`` is the number of replicas in which the policy is lower, ``agree`` of those
    with the sign of the original difference, ``same_sign`` of those with the sign of the mean. If at least `CERTAIN`
    of the differences have the sign of their mean, the verdict is ``does not change`` for the sign of the original,
    and ``reversed`` for the opposite sign; else it is ``noise``.
    """

    metric: str
    policy: str
    other: str
    original: float
    mean: float
    sd: float
    low: float
    high: float
    lower: int
    agree: int
    same_sign: int
    replicas: int
    verdict: Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Replicated:
    """Metrics of policies on replicas of a workload.

    Attributes
    ----------
    role : {"shake", "resample"}
        Kind of replicas.
    info : mapping
        Role, seed, number of replicas, and the transform with its parameters; JSON types only.
    original : mapping of str to mapping
        Metrics for the original workload, by policy and name.
    numbers : mapping of str to mapping
        Metrics for the replicas: (replicas,) float64 by policy and name, in the order of the replicas.
    """

    role: Role
    info: Mapping[str, Any]
    original: Mapping[str, Mapping[str, float]]
    numbers: Mapping[str, Mapping[str, FloatArray]]

    @property
    def replicas(self) -> int:
        """Number of replicas."""
        return int(self.info["replicas"])

    @property
    def default(self) -> bool:
        """True if the replicas were not requested explicitly; the report then has one sentence on them."""
        return bool(self.info.get("default"))

    def log_spread(self, metric: str, policy: str, other: str) -> float:
        """Standard deviation of the logarithm of the ratio of two policies over the replicas; NaN if undefined."""
        logs = log_ratios(self.numbers[policy][metric], self.numbers[other][metric])
        return float(logs.std(ddof=1)) if len(logs) > 1 else math.nan

    def spreads(self) -> Iterator[Spread]:
        """Return the spread of every metric that is known for the original workload."""
        for policy, numbers in self.numbers.items():
            for metric in numbers:
                if math.isfinite(self.original[policy].get(metric, math.nan)):
                    yield self.spread(metric, policy)

    def spread(self, metric: str, policy: str) -> Spread:
        """Return the spread of one metric under one policy."""
        values, original = self.numbers[policy][metric], self.original[policy][metric]
        known = values[np.isfinite(values)]
        if not len(known):
            known = np.full(1, np.nan)
        sd = float(known.std(ddof=1)) if len(known) > 1 else math.nan
        least, quarter, median, three_quarters, most = np.quantile(known, [0, 0.25, 0.5, 0.75, 1]).tolist()
        below, replicas = float((known < original).mean()), int(np.count_nonzero(np.isfinite(known)))
        points = (least, quarter, median, three_quarters, most)
        return Spread(metric, policy, original, float(known.mean()), sd, *points, below, replicas)

    def pairs(self, metric: str) -> Iterator[Pair]:
        """Return all pairs of policies, each with the policy first that is lower for the original workload."""
        labels = sorted(self.numbers, key=lambda label: self.original[label][metric])
        for place, policy in enumerate(labels):
            for other in labels[place + 1 :]:
                yield self.pair(metric, policy, other)

    def pair(self, metric: str, policy: str, other: str) -> Pair:
        """Return the difference of two policies."""
        mine, theirs = self.numbers[policy][metric], self.numbers[other][metric]
        original = self.original[policy][metric] - self.original[other][metric]
        difference = (mine - theirs)[np.isfinite(mine) & np.isfinite(theirs)]
        test = t_test(difference, scale=float(np.abs(theirs[np.isfinite(theirs)]).max(initial=1.0)))
        sd = float(difference.std(ddof=1)) if len(difference) > 1 else math.nan
        signs = np.sign(difference)
        lower, agree, same = (int(np.count_nonzero(signs == np.sign(it))) for it in (-1, original, test.mean))
        certain = len(difference) > 0 and same >= CERTAIN * len(difference)
        verdict: Verdict = "noise"
        if certain and np.sign(original) == np.sign(test.mean):
            verdict = "does not change"
        elif certain and original:
            verdict = "reversed"
        found = (original, test.mean, sd, test.low, test.high, lower, agree, same, len(difference))
        return Pair(metric, policy, other, *found, verdict)


def mean_of(metric: str) -> str:
    """Return the name of the mean over jobs of a compared metric.

    Examples
    --------
    >>> mean_of("wait"), mean_of("slr")
    ('wait_mean', 'mean_slr')
    """
    return "mean_slr" if metric == "slr" else f"{metric}_mean"


def settled(found: Sequence[Difference], replicated: Sequence[Replicated]) -> list[Difference]:
    """Return the differences, adjusted by the results on replicas of the workload.

    With resampled users, the wider interval is used (`gridsim.metrics.compare.widened`). If fewer than `CERTAIN` of
    the shaken replicas have the sign of a difference, it is *no clear difference*. This does not apply if the means
    over the jobs of each policy and the paired difference have different signs.
    """
    settled: list[Difference] = []
    for metric in dict.fromkeys(it.metric for it in found):
        family = [it for it in found if it.metric == metric]
        for each in replicated:
            pairs = [(mean_of(metric), it.policy, it.baseline) for it in family]
            if each.role == "resample":
                family = widened(family, [each.log_spread(*pair) for pair in pairs], replicas=each.replicas)
        for each in replicated:
            if each.role == "shake":
                family = [_after_shaking(it, each) for it in family]
        settled += family
    return settled


def _after_shaking(found: Difference, shaken: Replicated) -> Difference:
    """Withdraw a verdict that shaking does not confirm."""
    if found.verdict not in ("better", "worse"):
        return found
    pair = shaken.pair(mean_of(found.metric), found.policy, found.baseline)
    if np.sign(pair.original) != np.sign(found.mean):  # its means are over the jobs that ran under each policy
        return found
    confirmed = pair.agree >= CERTAIN * pair.replicas
    return found if confirmed else replace(found, verdict="no clear difference")
