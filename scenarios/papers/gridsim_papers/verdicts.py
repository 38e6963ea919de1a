"""Verdicts on claims about policies, from stored rows: effect, interval, p and n, by rules the same for all claims.

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
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from gridsim import InputError
from gridsim.metrics.campaign import Paired, PolicyComparison, Rows, compare_policies, tidy
from gridsim.metrics.dag import DAG_METRICS
from gridsim.metrics.paired_tests import wilcoxon
from gridsim.model.time import FloatArray
from gridsim_papers.grid.figures import POLICIES, PRINTED_DOMINANCE

__all__ = [
    "DECISIVE",
    "RANKS",
    "Answer",
    "Claim",
    "Finding",
    "Judge",
    "Stored",
    "Verdict",
    "Wanted",
    "alike",
    "as_printed",
    "at_each_load",
    "both",
    "compared",
    "conjunction",
    "counted",
    "differs",
    "drawn",
    "load_of",
    "opened",
    "title",
    "verdicts",
]

Answer = Literal["holds", "holds partly", "does not hold", "not testable here"]

DECISIVE = 100
"""Workloads from which on an undecided claim counts as partly held instead of left open."""

NAN = float("nan")
LEVEL = 0.05
Wanted = Literal["better", "worse"]


class Finding(NamedTuple):
    """What rows say of a claim: the verdict, its least favourable effect with interval and p, n, and words.

    ``series`` are the changes that support it least, one a window, for Wilcoxon's test.
    """

    answer: Answer
    effect: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    n: int = 0
    note: str = ""
    series: FloatArray | None = None

    @property
    def p_wilcoxon(self) -> float:
        """Of the signed-rank test of the same changes; NaN where there are none."""
        return NAN if self.series is None or len(self.series) < 2 else wilcoxon(self.series)


class Verdict(NamedTuple):
    """What is found of a claim; what it says is in the ledger of claims."""

    claim: str
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
    compared: dict[tuple[str, str], list[PolicyComparison]] = field(init=False, default_factory=dict)
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

    def comparisons(self, metric: str, policy: str, *, at_loads: bool = False) -> dict[str, list[PolicyComparison]]:
        """By other policy: the comparison over all loads, or one at each."""
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


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper, by its identifier in the ledger, and what decides it."""

    id: str
    judge: Callable[[Stored], Finding]


def verdicts(rows: Rows, claims: Sequence[Claim]) -> list[Verdict]:
    """A verdict on each claim; *not testable here* where the rows that decide it are missing.

    Claims that build on others come after them.
    """
    stored = Stored(rows)
    return [_judged(claim, stored) for claim in claims]


def _judged(claim: Claim, stored: Stored) -> Verdict:
    try:
        finding = claim.judge(stored)
    except InputError as error:
        finding = Finding("not testable here", note=str(error))
    stored.found[claim.id] = finding
    return Verdict(claim.id, *finding[:-1])


def title(policy: str) -> str:
    return POLICIES.get(policy, policy)


def opened(n: int) -> Answer:
    """Answer where nothing is decided."""
    return "not testable here" if n < DECISIVE else "holds partly"


def counted(right: int, wrong: int, total: int, n: int) -> Answer:
    """Answer from how many parts of a claim are as claimed, and how many surely otherwise."""
    if right == total:
        return "holds"
    if 2 * right >= total:
        return "holds partly"
    return "does not hold" if wrong else opened(n)


Judge = Callable[[Stored], Finding]


def _less(metric: str, wanted: Wanted) -> bool:
    """Whether *wanted* is a ratio below 1."""
    return (wanted == "better") == (DAG_METRICS[metric].better != "higher")


def differs(metric: str, wanted: Mapping[str, Wanted], policies: Sequence[str] = ("p-slr",)) -> Judge:
    """Each of the *policies* against each other one, over all loads, comes out as wanted."""

    def judge(stored: Stored) -> Finding:
        found = [(one, wanted[one.other]) for policy in policies for one in _against(stored, metric, policy, wanted)]
        right = [one for one, way in found if one.verdict == way]
        unclear = [one for one, _ in found if one.verdict in ("no clear difference", "too little data")]
        weakest, _ = min(found, key=lambda pair: pair[0].t_log * (-1 if _less(metric, pair[1]) else 1))
        theirs = sum(one.p < LEVEL and (one.difference < 0) == _less(metric, way) for one, way in found)
        note = f"{len(right)} of {len(found)} as claimed; least {_pair(weakest)}; the paper's t-test: {theirs}"
        if unclear:
            note += f"; unclear: {', '.join(map(_pair, unclear))}"
        wrong = len(found) - len(right) - len(unclear)
        return compared(counted(len(right), wrong, len(found), weakest.workloads), weakest, note)

    return judge


def alike(metric: str, policy: str = "p-slr", other: str = "srtf") -> Judge:
    """Two policies are indistinguishable over all loads."""

    def judge(stored: Stored) -> Finding:
        (one,) = _against(stored, metric, policy, [other])
        apart = one.verdict in ("better", "worse")
        note = f"equivalence p = {one.p_equivalence:.2g}; the paper's t-test: p = {one.p:.2g}"
        if apart:
            return compared("holds partly" if one.equivalent else "does not hold", one, note)
        return compared("holds" if one.equivalent else opened(one.workloads), one, note)

    return judge


def _against(stored: Stored, metric: str, policy: str, others: Iterable[str]) -> list[PolicyComparison]:
    """One comparison over all loads for each other policy."""
    found = stored.comparisons(metric, policy)
    for other in others:
        if other not in found:
            raise InputError(f"no row has the policy '{other}'", field="policy")
    return [found[other][-1] for other in others]


def _pair(one: PolicyComparison) -> str:
    return f"{title(one.policy)}/{title(one.other)}"


def compared(answer: Answer, one: PolicyComparison, note: str) -> Finding:
    return Finding(answer, one.ratio, one.ratio_low, one.ratio_high, one.p_log_holm, one.workloads, note)


def both(*judges: Judge) -> Judge:
    """A claim of several parts."""

    def judge(stored: Stored) -> Finding:
        findings = [each(stored) for each in judges]
        answers = [finding.answer for finding in findings]
        worst = min(findings, key=lambda finding: RANKS[finding.answer])
        note = "; ".join(f"{finding.answer}: {finding.note}" for finding in findings)
        answer: Answer = worst.answer if len(set(answers)) == 1 else "holds partly"
        if "holds" not in answers and "holds partly" not in answers:
            answer = "does not hold"
        if set(answers) == {"not testable here"}:
            answer = "not testable here"
        return worst._replace(answer=answer, note=note)

    return judge


RANKS: Mapping[Answer, int] = {"does not hold": 0, "not testable here": 1, "holds partly": 2, "holds": 3}


def drawn(metric: str, figure: str, *, by_decile: bool = False) -> Judge:
    """The figure can be drawn: its rows are there."""

    def judge(stored: Stored) -> Finding:
        rows = [row for row in stored.of(metric) if (row["decile"] is not None) == by_decile]
        if not rows:
            raise InputError(f"no row has the metric '{metric}' by decile")
        return Finding("holds", n=len(rows), note=f"drawn as {figure}")

    return judge


def conjunction(*ids: str) -> Judge:
    """Several claims at once."""

    def judge(stored: Stored) -> Finding:
        answers: dict[str, Answer] = {name: stored.found[name].answer for name in ids if name in stored.found}
        note = ", ".join(f"{name} {answer}" for name, answer in answers.items())
        worst: Answer = min(answers.values(), key=RANKS.__getitem__, default="not testable here")
        answer: Answer = "holds partly" if worst == "does not hold" and "holds" in answers.values() else worst
        return Finding(answer, note=note)

    return judge


def as_printed(metric: str, other: str, points: float = 0.10) -> Judge:
    """Dominance of P-SLR at each load is within 10 points of the printed table."""

    def judge(stored: Stored) -> Finding:
        printed = PRINTED_DOMINANCE[metric][other]
        cells = [one for one in at_each_load(stored, metric, other) if round(100 * load_of(one)) in printed]
        away = {id(one): abs(one.dominance - printed[round(100 * load_of(one))] / 100) for one in cells}
        right = [one for one in cells if away[id(one)] <= points + 1e-9]
        wrong = sum(_far(one, printed[round(100 * load_of(one))] / 100, points) for one in cells)
        most = max(cells, key=lambda one: away[id(one)])
        shares = "; ".join(f"{100 * one.dominance:.0f}" for one in cells)
        note = f"{shares} %, printed {'; '.join(f'{printed[round(100 * load_of(one))]:g}' for one in cells)}"
        answer = counted(len(right), wrong, len(cells), most.workloads)
        effect = (most.dominance, most.dominance_low, most.dominance_high)
        return Finding(answer, *effect, most.p_log_holm, most.workloads, note)

    return judge


def _far(one: PolicyComparison, printed: float, points: float) -> bool:
    return one.dominance_high < printed - points or one.dominance_low > printed + points


def load_of(one: PolicyComparison) -> float:
    return float(one.load or 0)


def at_each_load(stored: Stored, metric: str, other: str) -> list[PolicyComparison]:
    found = stored.comparisons(metric, "p-slr", at_loads=True).get(other, [])
    if not found:
        raise InputError(f"no comparison by load of '{metric}' with '{other}'")
    return found
