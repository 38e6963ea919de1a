"""Reproduction of the paper on ordering policies for list schedulers on a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from gridsim import InputError
from gridsim.campaign.paper import Absent, Order
from gridsim_papers.cases import Cases
from gridsim_papers.grid import figures, schedule_figures
from gridsim_papers.grid.campaign import GridCampaign
from gridsim_papers.grid.claims import CLAIMS, INDUSTRIAL_CLAIMS
from gridsim_papers.grid.industrial import KIND, LOG, IndustrialCampaign
from gridsim_papers.grid.judges import verdicts
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
    Tabled,
    store_name,
)
from gridsim_papers.units import Row
from gridsim_papers.verdict_table import Judged, without_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["GridFamily"]

CAMPAIGN, INDUSTRIAL = "campaign", "industrial log"
"""Parts of the study."""

AT_120 = "load 1.2"
"""The load of the figures by decile."""

_TITLES = {
    "3": ("Graham's workload under two schedules", ""),
    "4": ("Two jobs alternating, and in sequence", ""),
    "5": ("Unused parallelism and a chain", ""),
    "6": ("Standard deviation of SLR by policy", CAMPAIGN),
    "7": ("Mean SLR by decile of execution time at 120 % load", AT_120),
    "7-worst": ("Worst SLR by decile at 120 % load, announced by the paper and not shown", AT_120),
    "8": ("Worst SLR by policy", CAMPAIGN),
    "9": ("Mean worst SLR against load", CAMPAIGN),
    "10": ("Average utilisation by policy", CAMPAIGN),
    "11": ("Cumulative completion by policy", CAMPAIGN),
    "12": ("Peak in-flight by policy", CAMPAIGN),
    "13a": ("Industrial log: standard deviation of SLR", INDUSTRIAL),
    "13b": ("Industrial log: mean SLR", INDUSTRIAL),
    "13c": ("Industrial log: worst SLR", INDUSTRIAL),
    "14": ("Industrial log: mean SLR by decile of execution time", INDUSTRIAL),
}
"""Figures with their titles, and the part of the study that they need."""

_TABLES = {
    "table-3": "Dominance of P-SLR in worst SLR",
    "table-4": "Dominance of P-SLR in mean SLR",
    "table-5": "Industrial log: utilisation, cumulative completion, peak in-flight",
}

_REFUTES = ("G-80",)
"""Claims whose case shows the opposite: the claim fails when the case passes."""


class GridFamily(Family):
    """Synthetic workloads on a grid, and an industrial log on one cluster."""

    name = "grid"
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "loguniform": {"sizes": "loguniform"},
        "redraw": {"random_hold": False},
    }

    def plan(self, paper: Paper, order: Order, pictures: Sequence[Picture] | None = None) -> Plan:
        """Select synthetic workloads at all loads or one, and the log unless the law of job sizes is changed."""
        needed = {CAMPAIGN, INDUSTRIAL} if pictures is None else {one for it in pictures for one in it.experiments}
        parts = [self._campaign(order, needed)] if needed & {CAMPAIGN, AT_120} else []
        if INDUSTRIAL not in needed or order.variant == "loguniform":
            return Plan(parts)
        industrial, absent = self._industrial(order)
        stand_ins = {INDUSTRIAL: "the industrial log"} if absent else {}
        return Plan([*parts, industrial], stand_ins, absent)

    def _campaign(self, order: Order, needed: set[str]) -> Part:
        campaign = GridCampaign.from_toml(self.recipe, scale=order.scale, **self.changes(order.variant))
        # Small and full campaigns differ only in the number of workloads, so that they share units.
        scale = "" if replace(campaign, workloads=1) == self._published(order) else order.scale
        store = store_name("grid", order.variant, scale)
        if CAMPAIGN in needed:
            return Part(CAMPAIGN, store, campaign)
        return Part(CAMPAIGN, store_name(store, AT_120.replace(" ", "-")), replace(campaign, loads=(1.2,)))

    def _published(self, order: Order) -> GridCampaign:
        return GridCampaign.from_toml(self.recipe, scale="full", workloads=1, **self.changes(order.variant))

    def _industrial(self, order: Order) -> tuple[Part, list[Absent]]:
        changes = {name: value for name, value in self.changes(order.variant).items() if name == "random_hold"}
        wanted = IndustrialCampaign.from_toml(RECIPES / "industrial.toml", scale=order.scale, **changes)
        campaign = wanted.on(order.data)
        absent = [Absent("the industrial log", str(LOG))] if campaign.log == MODEL else []
        scale = order.scale if campaign.log == MODEL else ""
        store = store_name("grid", campaign.log, order.variant, f"{campaign.seeds}-draws", scale)
        return Part(INDUSTRIAL, store, campaign), absent

    def pictures(self, paper: Paper) -> Iterator[Picture]:
        """Figures 3 to 14."""
        for number, (title, part) in _TITLES.items():
            yield Picture(number, title, frozenset({part} if part else ()), frozenset({part} & {INDUSTRIAL}))

    def results(self, paper: Paper, rows: Rows, plan: Plan) -> GridResults:
        """Stored rows, indexed for judges."""
        return GridResults(rows, plan)

    def synthetic(self, entry: Entry, plan: Plan) -> str:
        """Only the industrial log is replaced: the campaign uses synthetic jobs as published."""
        return plan.synthetic if entry.decided_by == INDUSTRIAL else ""

    def by_cases(self, ledger: Mapping[str, Entry], cases: Cases) -> Iterator[Judged]:
        """Claims hold when their cases pass."""
        for claim, entry in ledger.items():
            if entry.decided_by != "exact cases":
                continue
            found = [it for name in entry.what.split() for it in cases.of("grid-dag", name)]
            if len(found) < len(entry.what.split()):
                yield without_numbers(claim, "not testable", cases.missing(entry.what))
                continue
            failed = [name for name, case in found if not cases.passes(case)]
            holds = bool(failed) == (claim in _REFUTES)
            note = f"exact cases {', '.join(name for name, _ in found)}: {'failed' if failed else 'passed'}"
            yield without_numbers(claim, "holds" if holds else "does not hold", note, len(found))


class GridResults(Results):
    """Rows of the synthetic workloads, and of the log."""

    def __init__(self, rows: Rows, plan: Plan) -> None:
        self._campaign: Sequence[Row] = rows.get(CAMPAIGN, ())
        self._log = [row for row in rows.get(INDUSTRIAL, ()) if row["kind"] == KIND]
        self._synthetic = plan.synthetic

    def draw(self, number: str) -> Figure:
        """Schedules of the worked examples, or rows."""
        name = f"figure-{number}"
        if name in schedule_figures.FIGURES:
            return schedule_figures.FIGURES[name]()
        make: Callable[[Sequence[Row]], Figure] = figures.FIGURES[name]
        of_log = _TITLES[number][1] == INDUSTRIAL
        rows = self._log if of_log else self._campaign
        if not rows:
            raise InputError(f"figure {number} has no rows of the {_TITLES[number][1]}")
        figure = make(rows)
        if of_log and self._synthetic:
            figure.supxlabel(f"synthetic jobs in place of {self._synthetic}", x=0.01, ha="left", fontsize=9)
        return figure

    def tables(self) -> Iterator[Tabled]:
        """Tables 3 to 5."""
        for name, title in _TABLES.items():
            rows = self._log if name == "table-5" else self._campaign
            if rows:
                yield Tabled(name, title, _lines(name, figures.TABLES[name](rows)))

    def judged(self) -> Iterator[Judged]:
        """Claims on synthetic workloads, and on the log."""
        for rows, claims in ((self._campaign, CLAIMS), (self._log, INDUSTRIAL_CLAIMS)):
            yield from (Judged(verdict) for verdict in verdicts(rows, claims))


def _lines(name: str, table: Sequence[Any]) -> list[list[str]]:
    if name != "table-5":
        return figures.dominance_text(table)
    return [
        [head.replace("_", " ") for head in table[0]],
        *([_cell(value) for value in row.values()] for row in table),
    ]


def _cell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:.5g}"
