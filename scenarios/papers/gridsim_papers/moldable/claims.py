"""Claims of the paper on moldable jobs, with the stored rows, base load and weight factor that decide each claim.

Identifiers are those of the ledger of claims, which contains the statements. The judges are in `earlier`, `base` and
`combined`; claims that no row decides are in `exact`.

References
----------
Srinivasan, Krishnamoorthy, Sadayappan, "A robust scheduling strategy for moldable scheduling of parallel jobs",
CLUSTER 2003.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gridsim import InputError
from gridsim.number_formatting import listed, percent
from gridsim_papers.deadline.recipes import Recipe
from gridsim_papers.decisions import answered
from gridsim_papers.ledger import MARGIN, read_ledger
from gridsim_papers.moldable import base, combined, earlier, exact
from gridsim_papers.moldable.campaign import BASES, LANES, WEIGHTS
from gridsim_papers.moldable.figures import SCHEMES, Bars, bars_of
from gridsim_papers.moldable.study import Case, Judge, Study
from gridsim_papers.verdict_table import Judged
from gridsim_papers.verdicts import Finding, Verdict

__all__ = ["COLUMNS", "EXACT", "QUESTIONS", "Question", "answers", "figures"]

COLUMNS = ("base load", "weight factor")
"""Columns of verdicts, in addition to the common ones."""

BOTH = (1, 2)


@dataclass(frozen=True, slots=True)
class Question:
    """A claim by its identifier in the ledger, its judge, and the weight factors at which it is judged."""

    id: str
    judge: Judge
    factors: Sequence[int] = ()


EXACT: Mapping[str, Callable[[], Finding]] = {
    "M01": exact.downey,
    "M15": exact.blocks_suffice,
    "M23": exact.corrected_limits,
}
"""Claims decided by properties of the code, by identifier; exact cases of the ledger also decide them."""

CATEGORY, WAITED, TOGETHER = LANES

QUESTIONS = (
    Question("M02", earlier.saturated),
    Question("M03", combined.wide_ranges, BOTH),
    Question("M04", combined.same_on_both_logs, BOTH),
    Question("M05", earlier.before_greedy),
    Question("M06", earlier.both_gain(0.0)),
    Question("M07", earlier.several_suffer),
    Question("M08", earlier.all_gain),
    Question("M09", earlier.both_gain(1.0)),
    Question("M10", earlier.light_suffer),
    Question("M11", earlier.inefficient),
    Question("M12", earlier.weight_factor),
    Question("M13", earlier.worse_still),
    Question("M14", earlier.start_is_best),
    Question("M16", base.all_sizes_hurt_light, BOTH),
    Question("M17", base.all_sizes_worse, BOTH),
    Question("M18", base.balance, BOTH),
    Question("M19", base.strict_shares),
    Question("M20", base.overall([(WEIGHTS[0], base.BASE)])),
    Question("M21", base.overall([(WEIGHTS[1], WEIGHTS[0])])),
    Question("M22", base.some_each_way),
    Question("M24", base.lanes_gain(100.0)),
    Question("M25", base.lanes_gain(125.0)),
    Question("M26", base.waited_gain),
    Question("M27", base.light_first),
    Question("M28", base.together),
    Question(
        "M29",
        base.overall([(TOGETHER, CATEGORY), (TOGETHER, WAITED)]),
    ),
    Question(
        "M30",
        combined.robust((100.0, 0.0), lightest=True),
        BOTH,
    ),
    Question("M31", combined.robust((125.0, 0.0)), BOTH),
    Question("M32", combined.robust((125.0, 1.0)), BOTH),
    Question("M33", combined.always_gains, BOTH),
    Question("M34", combined.consistent, BOTH),
    Question("M35", combined.always_degrades),
    Question("M36", combined.robust_on_profiles, BOTH),
    Question("M37", combined.outperforms, BOTH),
    Question("M38", earlier.hidden_losers),
    Question("X01", base.light_lose_by_order),
    Question("X02", base.scraps),
    Question("X03", base.scopes),
    Question("X04", base.heavy_gain),
    Question("X05", combined.other_loads, BOTH),
)
"""Claims decided by stored rows."""


def figures(recipes: Mapping[str, Recipe]) -> list[Question]:
    """The figures: each *holds* when it can be drawn at the base load; the note reports its bars of all jobs."""
    found = []
    for recipe in recipes.values():
        number = recipe.name.rpartition("-F")[2]
        found.append(Question(f"F{int(number):02}", _drawn(recipe)))
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
    """Description of a panel among those of its base load."""
    told = [str(where[name]) for name in ("scheme", "profiles") if name != lines and where.get(name)]
    return f"{', '.join(SCHEMES.get(name, name) for name in told)}: " if told else ""


def _bar(bars: Bars) -> str:
    name = SCHEMES.get(bars.value, bars.value) if isinstance(bars.value, str) else f"RF {bars.value:g}"
    return f"{name} {percent(bars.changes[''].change, sign=True)}"


def answers(study: Study, questions: Iterable[Question], bases: Sequence[str] = BASES) -> list[Judged]:
    """Return a verdict on each question at each base load and weight factor; *not testable* when rows are missing."""
    margins = {claim: entry.margin for claim, entry in read_ledger("moldable").items()}
    return [one for it in questions for one in _judged(study, it, bases, margins.get(it.id, MARGIN))]


def _judged(study: Study, question: Question, bases: Sequence[str], margin: float) -> Iterator[Judged]:
    for load in bases:
        for factor in question.factors or (None,):
            case = Case(study, load, factor or max(BOTH), margin)
            found = answered(question.judge, case)
            where = dict(zip(COLUMNS, (load, str(factor or "")), strict=True))
            yield Judged(Verdict(question.id, *found[:-1]), found.p_wilcoxon, where)
