"""The rule that turns tests into verdicts, the same for all papers.

A claim has parts. A part has two one-sided p values over units (windows or workloads): ``a``, that it is not as
claimed, and ``b``, that it is not otherwise. Holm's correction is over all parts of the claim, once over the ``a`` and
once over the ``b``. A part is *shown* if its corrected ``a`` is at most 0.05, *refuted* if its corrected ``b`` is, and
*open* otherwise. The first line that applies is the verdict:

* *not testable*: rows are missing, or a part that is not exact has fewer than `FEWEST` units.
* *holds*: every part has an uncorrected ``a`` of at most 0.05; all must be true, so no correction is needed.
* *does not hold*: the claim is universal (always, never, every), and a part is refuted.
* *holds partly*: at least half of the parts are shown.
* *does not hold*: at least one part is refuted.
* *not shown*: otherwise; the data leave the claim open.

Exact facts, such as a count of broken promises, need no test: they hold or do not hold (`facts`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from gridsim import InputError
from gridsim.metrics.compare import holm
from gridsim.metrics.paired_tests import wilcoxon
from gridsim.model.time import FloatArray

__all__ = [
    "FEWEST",
    "RANKS",
    "Answer",
    "Finding",
    "Part",
    "Verdict",
    "decided",
    "facts",
    "overall_answer",
]

Answer = Literal["holds", "holds partly", "not shown", "does not hold", "not testable"]

RANKS: Mapping[Answer, int] = {
    "does not hold": 0,
    "not testable": 1,
    "not shown": 2,
    "holds partly": 3,
    "holds": 4,
}
"""Order of the answers: the least support first."""

NAN = float("nan")
LEVEL = 0.05

FEWEST = 3
"""Minimum number of units of a testable part."""


class Part(NamedTuple):
    """One part of a claim.

    Attributes
    ----------
    words : str
        Description.
    a, b : float
        One-sided p values, not corrected: that it is not as claimed, and that it is not otherwise.
    n : int
        Units.
    effect, low, high : float
        With the 95 % interval.
    series : array, optional
        One number per unit, for Wilcoxon's test.
    exact : bool
        Whether it is a fact that no unit varies, and so needs no test: ``a`` and ``b`` are 0 and 1, or 1 and 0.
    """

    words: str
    a: float
    b: float
    n: int
    effect: float = NAN
    low: float = NAN
    high: float = NAN
    series: FloatArray | None = None
    exact: bool = False

    @property
    def support(self) -> float:
        """Evidence for the part minus evidence against it, which orders parts that are all shown, refuted or open."""
        return math.log(max(self.b, 1e-300)) - math.log(max(self.a, 1e-300))


class Finding(NamedTuple):
    """A verdict on a claim: its least supported effect with interval, p and n, and a description of the findings.

    ``series`` are the changes of the least supported part, one per unit, for Wilcoxon's test.
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
        """P value of the signed-rank test of the same changes; NaN without changes."""
        return NAN if self.series is None or len(self.series) < 2 else wilcoxon(self.series)


class Verdict(NamedTuple):
    """Findings on a claim; its statement is in the ledger of claims."""

    claim: str
    verdict: Answer
    effect: float
    low: float
    high: float
    p: float
    n: int
    note: str


def decided(parts: Sequence[Part], *, universal: bool = False, note: str = "") -> Finding:
    """The verdict on a claim of several parts, with the effect of the least supported one.

    Parameters
    ----------
    universal : bool
        Whether one refuted part refutes the claim.

    Returns
    -------
    Finding
        Its p is that of the test that decides the part shown: ``a`` of a claim that holds, the corrected ``b`` of a
        refuted part, else the corrected ``a``.

    Raises
    ------
    InputError
        When there is no part.

    Examples
    --------
    >>> decided([Part("", 0.01, 0.99, 10), Part("", 0.2, 0.8, 10), Part("", 0.3, 0.7, 10)]).answer
    'not shown'
    """
    if not parts:
        raise InputError("no row decides any part of it")
    against, otherwise = (
        holm([_tested(p) for p in column]) for column in ((it.a for it in parts), (it.b for it in parts))
    )
    shown = [p <= LEVEL for p in against]
    refuted = [p <= LEVEL for p in otherwise]
    answer: Answer = "not shown"
    if any(part.n < FEWEST and not part.exact for part in parts):
        answer = "not testable"
    elif all(part.a <= LEVEL for part in parts):
        answer = "holds"
    elif universal and any(refuted):
        answer = "does not hold"
    elif 2 * sum(shown) >= len(parts):
        answer = "holds partly"
    elif any(refuted):
        answer = "does not hold"
    least = min(range(len(parts)), key=lambda at: (shown[at] - refuted[at], parts[at].support))
    weakest = parts[least]
    p = weakest.a if answer == "holds" else otherwise[least] if refuted[least] else against[least]
    p = NAN if answer == "not testable" else p
    told = _told(parts, shown, refuted, least, answer)
    return Finding(answer, *weakest[4:7], p, weakest.n, "; ".join(filter(None, (told, note))), weakest.series)


def _tested(p: float) -> float:
    return 1.0 if math.isnan(p) else p


def _told(parts: Sequence[Part], shown: Sequence[bool], refuted: Sequence[bool], least: int, answer: Answer) -> str:
    counts = sum(part.a <= LEVEL for part in parts) if answer == "holds" else sum(shown)
    undecided = [part for part, *known in zip(parts, shown, refuted, strict=True) if not any(known)]
    told = [f"{counts} of {len(parts)} shown"]
    told += [f"{sum(refuted)} refuted"] if any(refuted) else []
    told += [f"{len(undecided)} open"] if undecided and answer != "holds" else []
    text = [", ".join(told), f"least supported: {parts[least].words}"]
    others = [part.words for at, part in enumerate(parts) if refuted[at] and at != least]
    if others:
        text.append("also refuted: " + ", ".join(others[:3]) + (f" and {len(others) - 3} more" if others[3:] else ""))
    with_interval = [part for part in undecided if math.isfinite(part.low)]
    if answer == "not shown" and with_interval:
        widest = max(with_interval, key=lambda part: part.high - part.low)
        text.append(f"widest interval of the open parts: {widest.words}, {widest.low:.3g} to {widest.high:.3g}")
    return "; ".join(text)


def facts(true: Collection[bool]) -> Answer:
    """The verdict on parts that are exactly true or false, without a test.

    Examples
    --------
    >>> facts([True, True]), facts([True, False]), facts([False])
    ('holds', 'holds partly', 'does not hold')
    """
    return decided([Part("", float(not one), float(one), 1, exact=True) for one in true]).answer


def overall_answer(answers: Collection[Answer]) -> Answer:
    """One answer for several circumstances, such as logs or base loads.

    Examples
    --------
    >>> overall_answer(["holds", "not shown"]), overall_answer(["not shown", "does not hold"])
    ('holds partly', 'does not hold')
    """
    own = set(answers)
    if len(own) == 1:
        return own.pop()
    if own & {"holds", "holds partly"}:
        return "holds partly"
    return "does not hold" if "does not hold" in own else "not shown"
