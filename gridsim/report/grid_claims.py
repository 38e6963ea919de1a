"""What the grid paper claims, and what stored rows say of it: a verdict a claim, with effect, interval, p and n.

Rules, the same for all claims:

* The headline of a comparison is the geometric-mean ratio with the t-test of log ratios, a workload's averaged over its
  loads, Holm's correction within the family; the paper's own t-test of the values is told beside it.
* Of several comparisons that a claim makes: all as claimed, it *holds*; at least half, it *holds partly*; fewer, and at
  least one that is surely otherwise, it *does not hold*.
* "Indistinguishable" holds where equivalence is shown, does not where a difference is; both at once is a difference
  too small to matter, and holds partly.
* An order of averages is sure where it is the same in 95 % of resamples of the workloads.
* What is neither shown nor refuted with fewer than `DECISIVE` workloads is *not testable here*: the scale does not
  decide. With more it holds partly.

The effect shown is that of the comparison that supports the claim least.

References
----------
Burkimsher, Bate and Indrusiak, FGCS 29(8), 2013, sections 3 and 4; numbers of the claims are the project's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.metrics.campaign import (
    Comparison,
    Paired,
    Rows,
    bootstrap_means,
    clopper_pearson,
    compare_policies,
    tidy,
)
from gridsim.model.time import FloatArray
from gridsim.report.campaign_figures import POLICIES, PRINTED_DOMINANCE

__all__ = ["CLAIMS", "DECISIVE", "ELSEWHERE", "INDUSTRIAL_CLAIMS", "Claim", "Finding", "Stored", "Verdict", "verdicts"]

Answer = Literal["holds", "holds partly", "does not hold", "not testable here"]

DECISIVE = 100
"""Workloads from which on an undecided claim counts as partly held instead of left open."""

NAN = float("nan")
LEVEL = 0.05
OTHERS = ("lrtf", "fair-share", "random", "fifo-task", "fifo-job")
"""Those that P-SLR and SRTF are claimed to beat."""

Profile = Callable[[FloatArray], npt.NDArray[np.bool_]]
"""Whether an order holds: of (…, policies, places) averages one answer each."""


class Finding(NamedTuple):
    """What rows say of a claim: the verdict, its least favourable effect with interval and p, n, and words."""

    answer: Answer
    effect: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    n: int = 0
    note: str = ""


class Verdict(NamedTuple):
    """A row of the verdict table."""

    claim: str
    statement: str
    verdict: Answer
    effect: float
    low: float
    high: float
    p: float
    n: int
    note: str


@dataclass(slots=True)
class Stored:
    """Rows by metric, and what has been compared of them; a claim asks only for what it needs.

    Raises `InputError` for what is not there, and `verdicts` makes *not testable here* of it.
    """

    rows: Rows
    by_metric: dict[str, list[Mapping[str, Any]]] = field(init=False, default_factory=dict)
    compared: dict[tuple[str, str], list[Comparison]] = field(init=False, default_factory=dict)
    found: dict[str, Finding] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for row in tidy(self.rows):
            self.by_metric.setdefault(row["metric"], []).append(row)

    def of(self, metric: str) -> list[Mapping[str, Any]]:
        """Rows of one metric."""
        if metric not in self.by_metric:
            raise InputError(f"no row has the metric '{metric}'", field="metric")
        return self.by_metric[metric]

    def paired(self, metric: str) -> Paired:
        """One metric of whole schedules."""
        return Paired.from_rows(self.of(metric), metric)

    def comparisons(self, metric: str, policy: str, *, at_loads: bool = False) -> dict[str, list[Comparison]]:
        """By other policy: the comparison over all loads, or one at each."""
        key = (metric, policy)
        if key not in self.compared:
            self.compared[key] = compare_policies(self.paired(metric), policy)
        found: dict[str, list[Comparison]] = {}
        for one in self.compared[key]:
            if (one.load is not None) == at_loads:
                found.setdefault(one.other, []).append(one)
        return found

    def profile(self, metric: str, load: float) -> tuple[tuple[str, ...], FloatArray]:
        """Policies, and workloads by policies by deciles at one load."""
        rows = [row for row in self.of(metric) if row["load"] == load]
        deciles = [Paired.from_rows(rows, metric, decile=decile) for decile in range(1, 11)]
        return deciles[0].policies, np.stack([one.values[:, 0, :] for one in deciles], axis=-1)

    def column(self, metric: str, policy: str, *, load: float | None = None) -> FloatArray:
        """Values of whole schedules under one policy."""
        rows = tidy(self.of(metric), policy=policy, decile=None)
        return np.array([row["value"] for row in rows if load is None or row["load"] == load], dtype=float)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper in our words, and what decides it."""

    id: str
    statement: str
    judge: Callable[[Stored], Finding]


def verdicts(rows: Rows, claims: Sequence[Claim] | None = None) -> list[Verdict]:
    """Verdicts on the claims of a campaign; *not testable here* where rows are missing.

    Parameters
    ----------
    rows : rows
        Stored values of `gridsim.campaign.grid`, or of `gridsim.campaign.industrial` for `INDUSTRIAL_CLAIMS`.
    claims : sequence of Claim, optional
        Those to judge; `CLAIMS` where left out.
    """
    stored = Stored(rows)
    return [_judged(claim, stored) for claim in (CLAIMS if claims is None else claims)]


def _judged(claim: Claim, stored: Stored) -> Verdict:
    try:
        finding = claim.judge(stored)
    except InputError as error:
        finding = Finding("not testable here", note=str(error))
    stored.found[claim.id] = finding
    return Verdict(claim.id, claim.statement, *finding)


def _title(policy: str) -> str:
    return POLICIES.get(policy, policy)


def _names(policies: Iterable[str]) -> str:
    return ", ".join(map(_title, policies))


def _opened(n: int) -> Answer:
    """Answer where nothing is decided."""
    return "not testable here" if n < DECISIVE else "holds partly"


def _counted(right: int, wrong: int, total: int, n: int) -> Answer:
    """Answer from how many parts of a claim are as claimed, and how many surely otherwise."""
    if right == total:
        return "holds"
    if 2 * right >= total:
        return "holds partly"
    return "does not hold" if wrong else _opened(n)


def _supports(one: Comparison, wanted: str) -> float:
    """How far a comparison speaks for the wanted verdict, as a t value."""
    sign = 1.0 if (wanted == "better") == (one.verdict_if_lower == "better") else -1.0
    return sign * one.t_log


def beaten(metric: str, wanted: Mapping[str, Literal["better", "worse"]], policies: Sequence[str]) -> Judge:
    raise NotImplementedError


Judge = Callable[[Stored], Finding]
