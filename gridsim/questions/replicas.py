"""What policies do with many workloads alike: the spread of each number, and in how many of them a policy is ahead.

Nothing is simulated here: that is `gridsim.questions.replicate`.
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

Verdict = Literal["does not change", "turned round", "noise"]


class Spread(NamedTuple):
    """A number of a policy over replicas: mean, standard deviation, extremes and quartiles, in the unit of the metric.

    ``original`` is that of the workload as it is, ``below`` the share of replicas that are lower.
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
    """A policy against another one, paired by replica: policy minus other, in the unit of the metric.

    ``original`` is the difference of the workload as it is, ``low`` and ``high`` the 95 % interval of the mean
    (Student's t over replicas), ``lower`` the replicas in which the policy is lower, ``agree`` those whose difference
    has the sign of the original one, ``same_sign`` those with the sign of the mean. The verdict is ``does not change``
    where at least `CERTAIN` of the differences have the sign of their mean and that is the sign of the original,
    ``turned round`` where it is the opposite one, else ``noise``.
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
    """Numbers of policies on replicas of a workload.

    Attributes
    ----------
    role : {"shake", "resample"}
        How replicas came about.
    info : mapping
        Role, seed, number of replicas, and the transform with its parameters; JSON types only.
    original : mapping of str to mapping
        Numbers on the workload as it is, by policy and name.
    numbers : mapping of str to mapping
        The same on the replicas: (replicas,) float64 by policy and name, in the order of their numbers.
    """

    role: Role
    info: Mapping[str, Any]
    original: Mapping[str, Mapping[str, float]]
    numbers: Mapping[str, Mapping[str, FloatArray]]

    @property
    def replicas(self) -> int:
        """How many."""
        return int(self.info["replicas"])

    @property
    def default(self) -> bool:
        """Whether nobody asked for it: the report then has one sentence on it."""
        return bool(self.info.get("default"))

    def log_spread(self, metric: str, policy: str, other: str) -> float:
        """Standard deviation of the logarithm of the ratio of two policies over the replicas; NaN if undefined."""
        logs = log_ratios(self.numbers[policy][metric], self.numbers[other][metric])
        return float(logs.std(ddof=1)) if len(logs) > 1 else math.nan

    def spreads(self) -> Iterator[Spread]:
        """Every number that is known of the workload as it is."""
        for policy, numbers in self.numbers.items():
            for metric in numbers:
                if math.isfinite(self.original[policy].get(metric, math.nan)):
                    yield self.spread(metric, policy)

    def spread(self, metric: str, policy: str) -> Spread:
        """One number under one policy."""
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
        """Every two policies, the one that is lower on the workload as it is first."""
        labels = sorted(self.numbers, key=lambda label: self.original[label][metric])
        for place, policy in enumerate(labels):
            for other in labels[place + 1 :]:
                yield self.pair(metric, policy, other)

    def pair(self, metric: str, policy: str, other: str) -> Pair:
        """One policy against another one."""
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
            verdict = "turned round"
        found = (original, test.mean, sd, test.low, test.high, lower, agree, same, len(difference))
        return Pair(metric, policy, other, *found, verdict)


def mean_of(metric: str) -> str:
    """Name of the mean over jobs of a metric that is compared.

    Examples
    --------
    >>> mean_of("wait"), mean_of("slr")
    ('wait_mean', 'mean_slr')
    """
    return "mean_slr" if metric == "slr" else f"{metric}_mean"


def settled(found: Sequence[Difference], replicated: Sequence[Replicated]) -> list[Difference]:
    """Differences after a look at replicas of the workload.

    With resampled users the wider interval counts (`gridsim.metrics.compare.widened`). A difference whose sign fewer
    than `CERTAIN` of the shaken replicas have is *no clear difference*, unless the means over the jobs of each policy
    have another sign than the paired difference.
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
    if np.sign(pair.original) != np.sign(found.mean):  # its means are over the jobs that each policy ran
        return found
    confirmed = pair.agree >= CERTAIN * pair.replicas
    return found if confirmed else replace(found, verdict="no clear difference")
