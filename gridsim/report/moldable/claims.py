"""What the paper on moldable jobs claims, and which stored rows decide it, at which base load and weight factor.

Identifiers are those of the project's list of claims; statements are its own words. The judges are in `earlier`,
`base` and `combined`, and of what no row decides in `exact`.

References
----------
Srinivasan, Krishnamoorthy, Sadayappan, "A robust scheduling strategy for moldable scheduling of parallel jobs",
CLUSTER 2003.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gridsim.campaign.moldable import BASES, LANES, WEIGHTS
from gridsim.errors import InputError
from gridsim.report.deadline.recipes import Recipe
from gridsim.report.decisions import answered
from gridsim.report.moldable import base, combined, earlier, exact
from gridsim.report.moldable.figures import SCHEMES, Bars, bars_of
from gridsim.report.moldable.study import Case, Judge, Study
from gridsim.report.verdicts import Answer, Finding, Verdict
from gridsim.report.words import listed, percent

__all__ = ["COLUMNS", "EXACT", "QUESTIONS", "Exact", "Judged", "Question", "answers", "figures", "overall"]

COLUMNS = ("base load", "weight factor")
"""Of verdicts, besides those that all have."""

BOTH = (1, 2)


@dataclass(frozen=True, slots=True)
class Question:
    """A claim in our words, what decides it, and the weight factors of the combined scheme that it is judged at."""

    id: str
    statement: str
    judge: Judge
    factors: Sequence[int] = ()


class Exact(NamedTuple):
    """A claim that the code decides, and the number of the exact cases that do too."""

    id: str
    statement: str
    judge: Callable[[], Finding]
    cases: str


class Judged(NamedTuple):
    """A verdict in given circumstances.

    ``p_wilcoxon`` is of the signed-rank test of the same changes as the effect; NaN where there are none. ``where``
    has the values of `COLUMNS`, empty where they play no part.
    """

    verdict: Verdict
    p_wilcoxon: float
    where: Mapping[str, str]


EXACT = (
    Exact(
        "M01", "Downey's speedup is continuous, never falls, is at most min(n, A), saturates at A", exact.downey, "m01"
    ),
    Exact("M15", "Choosing over blocks of free time equals trying every size", exact.blocks_suffice, "m09"),
    Exact("M23", "Corrected weights lower the limit of no parallel job", exact.corrected_limits, "m10"),
)
"""Claims that properties of the code decide."""

CATEGORY, WAITED, TOGETHER = LANES

QUESTIONS = (
    Question("M02", "At load factor 150 rigid jobs use about 95 % of the machine", earlier.saturated),
    Question("M03", "Range factors above 4 are like 4", combined.wide_ranges, BOTH),
    Question("M04", "SDSC and CTC tell the same", combined.same_on_both_logs, BOTH),
    Question("M05", "Fair shares are better than the greedy choice at submission", earlier.before_greedy),
    Question("M06", "CTC, sigma 0: both fair-share schemes are better overall than rigid jobs", earlier.both_gain(0.0)),
    Question("M07", "CTC, sigma 0: sizes chosen at submission harm several categories greatly", earlier.several_suffer),
    Question("M08", "CTC, sigma 0: sizes chosen at the start are better for every category", earlier.all_gain),
    Question("M09", "CTC, sigma 1: both are still better overall", earlier.both_gain(1.0)),
    Question("M10", "CTC, sigma 1: both harm light and medium categories", earlier.light_suffer),
    Question("M11", "SDSC, load 125, sigma 2: both harm several categories and gain nothing", earlier.inefficient),
    Question("M12", "Twice the share harms nobody at sigma 0, and the light at sigma 1", earlier.weight_factor),
    Question("M13", "Less scalable jobs and narrower ranges make both worse still", earlier.worse_still),
    Question("M14", "Of the earlier schemes that of sizes chosen at the start is best", earlier.start_is_best),
    Question("M16", "All sizes instead of twelve harm the lighter categories", base.all_sizes_hurt_light, BOTH),
    Question("M17", "All sizes instead of twelve are worse overall", base.all_sizes_worse, BOTH),
    Question("M18", "Twelve sizes are a good balance: no other number is better and harms nobody", base.balance, BOTH),
    Question("M19", "Shares by weight help heavy jobs and harm light ones", base.strict_shares),
    Question("M20", "Shares by the root of the weight are better overall", base.overall([(WEIGHTS[0], base.BASE)])),
    Question("M21", "Corrected, they are better overall still", base.overall([(WEIGHTS[1], WEIGHTS[0])])),
    Question("M22", "The correction helps some categories and harms others", base.some_each_way),
    Question("M24", "A promise for each category helps almost all of them", base.lanes_gain(100.0)),
    Question("M25", "The same at load factor 125", base.lanes_gain(125.0)),
    Question("M26", "Promises by expansion factor help the light alone, against those by category", base.waited_gain),
    Question("M27", "Light jobs get promises by expansion factor sooner", base.light_first),
    Question("M28", "Both kinds of promises help all but the heaviest, against those by category", base.together),
    Question(
        "M29",
        "Both kinds of promises are better overall than either",
        base.overall([(TOGETHER, CATEGORY), (TOGETHER, WAITED)]),
    ),
    Question(
        "M30",
        "Combined, load factor 100, sigma 0: better overall, and nobody pays but the lightest at range factor 1",
        combined.robust((100.0, 0.0), lightest=True),
        BOTH,
    ),
    Question("M31", "Load factor 125, sigma 0: nobody pays", combined.robust((125.0, 0.0)), BOTH),
    Question("M32", "Load factor 125, sigma 1: nobody pays", combined.robust((125.0, 1.0)), BOTH),
    Question("M33", "Combined is surely better overall at load factor 150, always", combined.always_gains, BOTH),
    Question("M34", "Combined is better overall than rigid jobs on the whole grid", combined.consistent, BOTH),
    Question("M35", "Profiles: the base harms some category at every load", combined.always_degrades),
    Question("M36", "Profiles: combined is better overall and nobody pays", combined.robust_on_profiles, BOTH),
    Question("M37", "Combined is better than the earlier schemes, and harms fewer", combined.outperforms, BOTH),
    Question("M38", "The mean over all jobs hides those who lose", earlier.hidden_losers),
    Question("X01", "Promises served in order of the queue are worse", base.light_lose_by_order),
    Question("X02", "Starting on what is free now is worse for heavy jobs", base.scraps),
    Question("X03", "Shares among waiting jobs alone show the pattern of the paper", base.scopes),
    Question("X04", "Category bounds that double from 1,000 are better for heavy jobs", base.heavy_gain),
    Question("X05", "Other ways to a higher load tell the same", combined.other_loads, BOTH),
)
"""Claims that rows decide."""


def figures(recipes: Mapping[str, Recipe]) -> list[Question]:
    """The figures: each *holds* where it can be drawn at the base load, and its bars of all jobs are told."""
    found = []
    for recipe in recipes.values():
        number = recipe.name.rpartition("-F")[2]
        found.append(Question(f"F{int(number):02}", f"Figure {int(number)}: {recipe.title}", _drawn(recipe)))
    return found


def _drawn(recipe: Recipe) -> Judge:
    def judge(case: Case) -> Finding:
        log = str(recipe.panels[0].where["log"])
        panels = [p for p in recipe.of_log(case.study.logs.get(log, log)).panels if p.where["base"] == case.base]
        told, error, n = [], None, []
        for panel in panels:
            try:
                bars = [it for it in bars_of(recipe.name, panel, case.study.stored) if "" in it.changes]
            except InputError as problem:
                error = problem
                continue
            told.append(f"{_what(panel.where, panel.lines)}{listed([_bar(it) for it in bars])}")
            n += [it.changes[""].windows for it in bars]
        if not told:
            raise error or InputError(f"the recipe of {recipe.name} has no panel at base load {case.base}")
        return Finding("holds", n=min(n), note="drawn; overall " + "; ".join(told))

    return judge


def _what(where: Mapping[str, object], lines: str) -> str:
    """What tells a panel from others of its base load."""
    told = [str(where[name]) for name in ("scheme", "profiles") if name != lines and where.get(name)]
    return f"{', '.join(SCHEMES.get(name, name) for name in told)}: " if told else ""


def _bar(bars: Bars) -> str:
    name = SCHEMES.get(bars.value, bars.value) if isinstance(bars.value, str) else f"RF {bars.value:g}"
    return f"{name} {percent(bars.changes[''].change, sign=True)}"


def answers(study: Study, questions: Iterable[Question], bases: Sequence[str] = BASES) -> list[Judged]:
    """A verdict on each question at each base load and weight factor; *not testable here* where rows are missing."""
    return [one for question in questions for one in _judged(study, question, bases)]


def _judged(study: Study, question: Question, bases: Sequence[str]) -> Iterator[Judged]:
    for load in bases:
        for factor in question.factors or (None,):
            case = Case(study, load) if factor is None else Case(study, load, factor)
            found = answered(question.judge, case)
            where = dict(zip(COLUMNS, (load, str(factor or "")), strict=True))
            yield Judged(Verdict(question.id, question.statement, *found[:-1]), found.p_wilcoxon, where)


def overall(found: Iterable[Judged]) -> dict[str, Answer]:
    """One answer a claim: that of all circumstances, or *holds partly* where it holds in some and not in others.

    Circumstances that decide nothing count where the claim holds in others, but for those that were not run; it does
    not hold where none supports it and one refutes it.
    """
    by_claim: dict[str, list[Verdict]] = {}
    for one in found:
        by_claim.setdefault(one.verdict.claim, []).append(one.verdict)
    return {
        claim: _of_all({one.verdict for one in own if one.n} or {one.verdict for one in own})
        for claim, own in by_claim.items()
    }


def _of_all(own: set[Answer]) -> Answer:
    if len(own) == 1:
        return next(iter(own))
    return "holds partly" if own & {"holds", "holds partly"} else "does not hold"
