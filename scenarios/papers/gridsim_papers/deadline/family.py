"""Reproduction of the three papers on deadlines guaranteed at submission, which share one campaign."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from gridsim.campaign.paper import Absent, Order
from gridsim_papers.cases import Case, Cases
from gridsim_papers.deadline.campaign import LOGS, PACKED, DeadlineCampaign
from gridsim_papers.deadline.claims import OFFERS, QUESTIONS
from gridsim_papers.deadline.figures import LOGS as TITLES
from gridsim_papers.deadline.figures import Words, draw, setting
from gridsim_papers.deadline.lines import StoredRows
from gridsim_papers.deadline.readings import answers
from gridsim_papers.deadline.recipes import Recipe, read_recipes
from gridsim_papers.deadline.study import Study
from gridsim_papers.ledger import Entry
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
from gridsim_papers.units import is_one_of
from gridsim_papers.verdict_table import Judged, without_numbers
from gridsim_papers.windows import logs_there

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DeadlineFamily", "number_of", "on_logs", "picture_of"]

SERVICE = ("categories", "T-fixed", "T-random", "S", "K", "K-mixed")
"""Experiments of the 2004 paper; all others belong to the report and its extract."""

BOTH_LOGS = ("TR-C12",)
"""Claims that compare the two logs."""


def on_logs(campaign: Any, order: Order, wanted: Sequence[str]) -> tuple[Any, dict[str, str], list[Absent]]:
    """Return a campaign on the available logs, with the model for the others.

    Returns
    -------
    campaign
        On these logs.
    stand_ins : dict of str to str
        Logs that the model replaces, with their titles.
    absent : list of Absent
        Their files.
    """
    there = [log for log in logs_there(wanted, order.data) if log != MODEL]
    absent = [log for log in wanted if log not in there]
    logs = (*there, *([MODEL] if absent else []))
    files = [Absent(TITLES[log], LOGS[log].file, log) for log in absent]
    return replace(campaign, logs=logs), {log: TITLES[log] for log in absent}, files


def number_of(recipe: Recipe) -> str:
    """Return the number by which a figure is requested.

    Examples
    --------
    >>> from gridsim_papers.deadline.recipes import Recipe
    >>> number_of(Recipe("TR-F04", "", "", (), (), {})), number_of(Recipe("TR-C23", "", "", (), (), {}))
    ('4', 'C23')
    """
    number = recipe.name.partition("-")[2]
    return number.removeprefix("F").lstrip("0") if number.startswith("F") else number


def picture_of(recipe: Recipe, words: Words | None = None) -> Picture:
    """Describe a figure by its recipe; *words* contains the labels of its conditions."""
    experiments = frozenset(panel.experiment for panel in recipe.panels)
    logs = frozenset(str(panel.where["log"]) for panel in recipe.panels)
    title = ": ".join(filter(None, (recipe.title, setting(recipe, words=words) if recipe.panels else "")))
    return Picture(number_of(recipe), title, experiments, logs, " ".join(recipe.golden))


@cache
def _recipes() -> Mapping[str, Recipe]:
    return read_recipes(RECIPES / "deadline-figures.toml")


class DeadlineFamily(Family):
    """Windows of two logs under policies that guarantee deadlines."""

    name = "deadline"
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ctc-338": {"ctc_cores": 338}}

    def plan(self, paper: Paper, order: Order, pictures: Sequence[Picture] | None = None) -> Plan:
        """Select the experiments of the paper, or those of some figures."""
        service = paper.name == "service"
        wanted = DeadlineCampaign.from_toml(self.recipe, scale=order.scale, **self.changes(order.variant))
        campaign, stand_ins, absent = on_logs(wanted, order, wanted.logs[:1] if service else wanted.logs)
        # The figures of the extract are drawn from the rows of the report.
        store = store_name("service" if service else "qops-report", order.variant, order.scale)
        if pictures is None:
            experiments = _of_paper(campaign, service=service)
            part = Part("campaign", store, replace(campaign, experiments=experiments))
            return Plan([part], stand_ins, absent)
        needed = sorted({_standing_in(name, stand_ins) for it in pictures for name in it.experiments})
        if not needed:
            return Plan([])
        fewer = {name: count for name, count in campaign.fewer.items() if any(is_one_of(one, [name]) for one in needed)}
        of_them = replace(campaign, experiments=tuple(needed), fewer=fewer)
        return Plan([Part("campaign", store_name(store, *needed), of_them)], stand_ins, absent)

    def pictures(self, paper: Paper) -> Iterator[Picture]:
        """Figures of the paper; pseudo-code is decided by exact cases."""
        for recipe in _recipes().values():
            if recipe.paper == paper.key:
                yield picture_of(recipe)

    def results(self, paper: Paper, rows: Rows, plan: Plan) -> DeadlineResults:
        """Stored rows, indexed for judges."""
        return DeadlineResults(paper, rows, plan)

    def by_cases(self, ledger: Mapping[str, Entry], cases: Cases) -> Iterator[Judged]:
        """A procedure holds when the runs of its policy in exact cases pass."""
        for claim, entry in ledger.items():
            if entry.decided_by != "exact cases":
                continue
            algorithm, *numbers = entry.what.split()
            found = [it for number in numbers for it in cases.of("deadline-admission", f"{number}-*")]
            if len(found) < len(numbers):
                yield without_numbers(claim, "not testable", cases.missing(" ".join(numbers)))
                continue
            runs = [(name, one) for name, case in found for one in _runs(case, algorithm)]
            failed = [name for name, one in runs if not cases.passes(one)]
            note = f"{len(runs)} runs of {algorithm} in cases {' '.join(numbers)}: "
            note += (
                f"not as expected: {', '.join(dict.fromkeys(failed))}" if failed else "decisions and starts as expected"
            )
            yield without_numbers(claim, "does not hold" if failed else "holds", note, len(runs))


def _of_paper(campaign: DeadlineCampaign, *, service: bool) -> tuple[str, ...]:
    """Experiments of a campaign that belong to a paper; a selection of all becomes the patterns of the paper."""
    names = {name for log in (*campaign.logs, *PACKED) for name in campaign.experiments_on(log)}
    own = {name for name in names if (name in SERVICE) == service}
    patterns: list[str] = []
    for pattern in campaign.experiments:
        if pattern == "*":
            patterns += SERVICE if service else ("[AMR]-*", "P-*")
        elif any(is_one_of(name, [pattern]) for name in own):
            patterns.append(pattern)
    return tuple(patterns)


def _standing_in(experiment: str, stand_ins: Iterable[str]) -> str:
    """The experiment on the model instead of a log."""
    for log in stand_ins:
        experiment = experiment.replace(f"-{log}-", f"-{MODEL}-")
    return experiment


def _runs(case: Case, algorithm: str) -> Iterator[Case]:
    """Split a case into cases with one run each, for each run of a policy."""
    for run in case["runs"]:
        if run["algorithm"] == algorithm:
            yield {**case, "runs": [run]}


class DeadlineResults(Results):
    """Rows of one paper."""

    def __init__(self, paper: Paper, rows: Rows, plan: Plan) -> None:
        self._key = paper.key
        self._logs = dict.fromkeys(plan.stand_ins, MODEL)
        self._rows = [row for row in rows.get("campaign", ()) if row["log"] != MODEL or self._logs]
        self._recipes = {number_of(it): it for it in _recipes().values() if it.paper == paper.key}
        self._stored: StoredRows | None = None

    def draw(self, number: str) -> Figure:
        """Draw a figure from its recipe."""
        recipe = self._recipes[number].standing_in(self._logs)
        if self._stored is None:
            self._stored = StoredRows(self._rows, recipe.usual)
        return draw(recipe, self._stored)

    def judged(self) -> Iterator[Judged]:
        """Claims of the paper."""
        asked = [it for it in QUESTIONS if it.id.startswith(f"{self._key}-")]
        untold = BOTH_LOGS if len(self._logs) > 1 else ()
        study = Study.from_rows(self._rows, self._logs)
        yield from answers(study, [it for it in asked if it.id not in untold])
        for claim in untold:
            yield without_numbers(claim, "not testable", "the same synthetic jobs stand in for both logs")
        if OFFERS.id.startswith(f"{self._key}-"):
            yield from answers(study, [OFFERS])
