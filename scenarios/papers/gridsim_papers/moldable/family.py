"""Reproduction of the paper on moldable jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from gridsim.campaign.paper import Absent, Order
from gridsim_papers.cases import Cases
from gridsim_papers.deadline.family import number_of, on_logs, picture_of
from gridsim_papers.deadline.lines import StoredRows
from gridsim_papers.deadline.recipes import Recipe, read_recipes
from gridsim_papers.ledger import Entry
from gridsim_papers.moldable.campaign import MEASURED, MoldableCampaign
from gridsim_papers.moldable.claims import EXACT, QUESTIONS, answers, figures
from gridsim_papers.moldable.figures import CONDITIONS, draw, words_of
from gridsim_papers.moldable.study import Study
from gridsim_papers.paper import (
    MODEL,
    RECIPES,
    Family,
    Paper,
    Part,
    Picture,
    Plan,
    Results,
    Rows,
    store_name,
)
from gridsim_papers.verdict_table import Judged, of_finding
from gridsim_papers.verdicts import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MoldableFamily"]


@cache
def _recipes() -> Mapping[str, Recipe]:
    return read_recipes(RECIPES / "moldable-figures.toml", CONDITIONS)


class MoldableFamily(Family):
    """Windows of two logs whose jobs may start on other numbers of cores."""

    name = "moldable"
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ctc-338": {"ctc_cores": 338}}

    def plan(self, paper: Paper, order: Order, pictures: Sequence[Picture] | None = None) -> Plan:
        """All experiments, or those of some figures."""
        wanted = MoldableCampaign.from_toml(self.recipe, scale=order.scale, **self.changes(order.variant))
        there = wanted.on(order.data)
        campaign, stand_ins, absent = on_logs(there, order, wanted.logs)
        if len(there.profiles) < len(wanted.profiles):
            absent.append(Absent("measured runs of the NAS Parallel Benchmarks", str(MEASURED)))
        store = store_name("moldable", order.variant, order.scale)
        if pictures is None:
            return Plan([Part("campaign", store, campaign)], stand_ins, absent)
        needed = sorted({name for it in pictures for name in it.experiments})
        logs = {MODEL if log in stand_ins else log for it in pictures for log in it.logs}
        of_them = replace(campaign, experiments=tuple(needed), logs=tuple(sorted(logs)))
        return Plan([Part("campaign", store_name(store, *needed), of_them)], stand_ins, absent)

    def pictures(self, paper: Paper) -> Iterator[Picture]:
        """Figures 1 to 14."""
        for recipe in _recipes().values():
            yield picture_of(recipe, words_of(recipe))

    def results(self, paper: Paper, rows: Rows, plan: Plan) -> MoldableResults:
        """Stored rows, indexed for judges."""
        return MoldableResults(rows, plan)

    def by_cases(self, ledger: Mapping[str, Entry], cases: Cases) -> Iterator[Judged]:
        """Properties of the code, which exact cases also decide when available."""
        for claim, judge in EXACT.items():
            number = ledger[claim].what
            found = list(cases.of("moldable", f"{number}-*"))
            failed = [name for name, case in found if not cases.passes(case)]
            told = "not as expected" if failed else "as expected" if found else cases.missing("")
            own = judge()
            answer = "does not hold" if failed else own.answer
            yield of_finding(claim, Finding(answer, own.effect, n=own.n, note=f"{own.note}; case {number} {told}"))


class MoldableResults(Results):
    """Rows of the study."""

    def __init__(self, rows: Rows, plan: Plan) -> None:
        self._logs = dict.fromkeys(plan.stand_ins, MODEL)
        self._rows = [row for row in rows.get("campaign", ()) if row["log"] != MODEL or self._logs]
        self._recipes = {number_of(it): it for it in _recipes().values()}
        self._stored: StoredRows | None = None

    def draw(self, number: str) -> Figure:
        """Draw a figure from its recipe."""
        recipe = self._recipes[number].standing_in(self._logs)
        if self._stored is None:
            self._stored = StoredRows(self._rows, recipe.usual, CONDITIONS)
        return draw(recipe, self._stored)

    def judged(self) -> Iterator[Judged]:
        """Verdicts on the claims that rows decide, in each circumstance."""
        study = Study.from_rows(self._rows, self._logs)
        yield from answers(study, [*figures(_recipes()), *QUESTIONS])
