"""Judges of claims on stored rows of the grid campaign: parts for comparisons, printed shares, and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.special import bdtr, bdtrc  # importing scipy.stats takes a second

from gridsim import InputError
from gridsim.metrics.campaign import Paired, PolicyComparison, Rows, compare_policies, tidy
from gridsim.metrics.dag import DAG_METRICS
from gridsim.metrics.paired_tests import log_ratios
from gridsim.model.time import FloatArray
from gridsim_papers import decisions
from gridsim_papers.decisions import answered, signed
from gridsim_papers.grid.figures import POLICIES, PRINTED_DOMINANCE
from gridsim_papers.ledger import MARGIN, read_ledger
from gridsim_papers.paired import Values
from gridsim_papers.verdicts import LEVEL, Finding, Part, Verdict, decided

__all__ = [
    "Claim",
    "Evidence",
    "Judge",
    "Stored",
    "Wanted",
    "alike",
    "as_printed",
    "at_each_load",
    "differs",
    "drawn",
    "load_of",
    "logs_of",
    "pooled",
    "title",
    "verdicts",
]

Wanted = Literal["better", "worse"]


@dataclass(slots=True)
class Stored:
    """Rows by metric, with cached comparisons, computed when a claim needs them.

    Raises `InputError` for missing rows; `verdicts` converts it to *not testable*.

    Attributes
    ----------
    margin : float
        Margin of the claim that is judged, from the ledger.
    """

    rows: Rows
    margin: float = MARGIN
    by_metric: dict[str, list[Mapping[str, Any]]] = field(init=False, default_factory=dict)
    compared: dict[tuple[str, str], list[PolicyComparison]] = field(init=False, default_factory=dict)

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

    def comparisons(self, metric: str, policy: str, *, at_loads: bool = False) -> dict[str, list[PolicyComparison]]:
        """Comparisons by other policy: over all loads, or one at each load."""
        key = (metric, policy)
        if key not in self.compared:
            self.compared[key] = compare_policies(self.paired(metric), policy)
        found: dict[str, list[PolicyComparison]] = {}
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


Judge = Callable[[Stored], Finding]

Evidence = Callable[[Stored], tuple[list[Part], str]]
"""Parts of a claim, and a note on the result."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper, by its identifier in the ledger, and its judge."""

    id: str
    judge: Judge


def verdicts(rows: Rows, claims: Sequence[Claim]) -> list[Verdict]:
    """Return a verdict on each claim; *not testable* when the rows that decide it are missing."""
    stored, ledger = Stored(rows), read_ledger("grid")
    found = []
    for claim in claims:
        stored.margin = ledger[claim.id].margin if claim.id in ledger else MARGIN
        found.append(Verdict(claim.id, *answered(claim.judge, stored)[:-1]))
    return found


def pooled(*evidence: Evidence, universal: bool = False) -> Judge:
    """A claim whose parts are those of all the evidence."""

    def judge(stored: Stored) -> Finding:
        found = [one(stored) for one in evidence]
        parts = [part for own, _ in found for part in own]
        return decided(parts, universal=universal, note="; ".join(note for _, note in found if note))

    return judge


def title(policy: str) -> str:
    return POLICIES.get(policy, policy)


def _pair(policy: str, other: str) -> str:
    return f"{title(policy)}/{title(other)}"


def differs(metric: str, wanted: Mapping[str, Wanted], policies: Sequence[str] = ("p-slr",)) -> Evidence:
    """Each of the *policies* compared with each other one, over all loads, has the wanted result."""

    def evidence(stored: Stored) -> tuple[list[Part], str]:
        parts, theirs = [], 0
        for policy in policies:
            for one in _against(stored, metric, policy, wanted):
                below = (wanted[one.other] == "better") == (DAG_METRICS[metric].better != "higher")
                logs = logs_of(stored, metric, policy, one.other)
                parts += signed([(_pair(policy, one.other), logs)], -1 if below else 1, ratio=True)
                theirs += one.p < LEVEL and (one.difference < 0) == below
        return parts, f"the paper's t-test: {theirs}"

    return evidence


def alike(metric: str, policy: str = "p-slr", other: str = "srtf") -> Evidence:
    """Two policies are indistinguishable over all loads."""

    def evidence(stored: Stored) -> tuple[list[Part], str]:
        (one,) = _against(stored, metric, policy, [other])
        family = [(_pair(policy, other), logs_of(stored, metric, policy, other))]
        parts = decisions.alike(family, stored.margin, ratio=True)
        return parts, f"the paper's t-test: p = {one.p:.2g}"

    return evidence


def logs_of(stored: Stored, metric: str, policy: str, other: str, load: float | None = None) -> Values:
    """Logarithm of the ratio of two policies by workload, averaged over its loads or at one load."""
    paired = stored.paired(metric)
    columns = slice(None) if load is None else [paired.loads.index(load)]
    logs = log_ratios(paired.of(policy)[:, columns], paired.of(other)[:, columns]).mean(axis=1)
    return {(at, 0): float(value) for at, value in enumerate(logs)}


def _against(stored: Stored, metric: str, policy: str, others: Iterable[str]) -> list[PolicyComparison]:
    """One comparison over all loads for each other policy."""
    found = stored.comparisons(metric, policy)
    for other in others:
        if other not in found:
            raise InputError(f"no row has the policy '{other}'", field="policy")
    return [found[other][-1] for other in others]


def drawn(metric: str, figure: str, *, by_decile: bool = False) -> Judge:
    """The figure can be drawn because its rows exist."""

    def judge(stored: Stored) -> Finding:
        rows = [row for row in stored.of(metric) if (row["decile"] is not None) == by_decile]
        if not rows:
            raise InputError(f"no row has the metric '{metric}' by decile")
        return Finding("holds", n=len(rows), note=f"drawn as {figure}")

    return judge


def as_printed(metric: str, other: str, points: float = 0.10) -> Evidence:
    """Dominance of P-SLR at each load is within 10 points of the printed table: two one-sided binomial tests."""

    def evidence(stored: Stored) -> tuple[list[Part], str]:
        printed = PRINTED_DOMINANCE[metric][other]
        cells = [
            (one, load) for one in at_each_load(stored, metric, other) if (load := round(100 * load_of(one))) in printed
        ]
        parts = [_near(one, f"at {load} %", printed[load] / 100, points) for one, load in cells]
        shares = "; ".join(f"{100 * one.dominance:.0f}" for one, _ in cells)
        return parts, f"{shares} %, printed {'; '.join(f'{printed[load]:g}' for _, load in cells)}"

    return evidence


def _near(one: PolicyComparison, words: str, printed: float, points: float) -> Part:
    k, n = one.wins + one.ties, one.wins + one.ties + one.losses
    least, most = printed - points, printed + points
    a = max(float(bdtrc(k - 1, n, least)) if least > 0 else 0.0, float(bdtr(k, n, most)) if most < 1 else 0.0)
    b = min(float(bdtr(k, n, least)) if least > 0 else 1.0, float(bdtrc(k - 1, n, most)) if most < 1 else 1.0)
    return Part(words, a, b, n, one.dominance, one.dominance_low, one.dominance_high)


def load_of(one: PolicyComparison) -> float:
    return float(one.load or 0)


def at_each_load(stored: Stored, metric: str, other: str) -> list[PolicyComparison]:
    found = stored.comparisons(metric, "p-slr", at_loads=True).get(other, [])
    if not found:
        raise InputError(f"no comparison by load of '{metric}' with '{other}'")
    return found
