"""Reproducible papers: a campaign, numbered figures, tables, and claims with their judges.

Papers that share one campaign are a family. The module of a family defines the campaign, draws figures from its rows,
and selects the judges of the claims in its ledger.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from gridsim import InputError
from gridsim.campaign.paper import Absent, Order, Reproduced
from gridsim.errors import UnknownNameError
from gridsim_papers.citations import Citation
from gridsim_papers.ledger import Entry, read_ledger

if TYPE_CHECKING:  # ``gridsim reproduce --help`` needs none of these imports
    from matplotlib.figure import Figure

    from gridsim_papers.cases import Cases
    from gridsim_papers.units import Row
    from gridsim_papers.verdict_table import Judged

__all__ = [
    "MODEL",
    "Family",
    "Paper",
    "Part",
    "Picture",
    "Plan",
    "Results",
    "Rows",
    "Tabled",
    "store_name",
]

RECIPES = Path(__file__).parent / "recipes"

MODEL = "model"
"""Log of synthetic jobs that replaces absent logs."""

Rows = Mapping[str, Sequence["Row"]]
"""Stored rows of each part of a plan."""


class Picture(NamedTuple):
    """A figure of a paper.

    Attributes
    ----------
    number : str
        Number by which it is requested.
    title : str
        Title of the figure.
    experiments : frozenset of str
        Experiments that its rows belong to, with the names of the family; empty if it needs none.
    logs : frozenset of str
        Logs whose jobs it shows.
    cases : str
        Exact cases that decide pseudo-code, which has no drawing.
    """

    number: str
    title: str
    experiments: frozenset[str] = frozenset()
    logs: frozenset[str] = frozenset()
    cases: str = ""


class Tabled(NamedTuple):
    """A table of a paper: lines of cells, of which the first is the header."""

    name: str
    title: str
    lines: Sequence[Sequence[str]]


class Part(NamedTuple):
    """A campaign, a description of its rows, and the name of the folder that stores them."""

    name: str
    store: str
    campaign: Any


@dataclass(frozen=True, slots=True)
class Plan:
    """Campaigns to run, and their replaced data.

    Attributes
    ----------
    parts : sequence of Part
        Campaigns.
    stand_ins : mapping of str to str
        Logs that synthetic jobs replace, with their titles.
    absent : sequence of Absent
        Missing data.
    """

    parts: Sequence[Part]
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    absent: Sequence[Absent] = ()

    @property
    def synthetic(self) -> str:
        """Titles of the logs that synthetic jobs replace, as text."""
        return " and ".join(self.stand_ins.values())


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper.

    Attributes
    ----------
    name : str
        Name on the command line.
    citation : Citation
        Title, authors, venue and year.
    home : str
        Class of its family, as ``module:Class`` of this package.
    key : str
        Prefix of the names of its figures in the recipes of the family.
    """

    name: str
    citation: Citation
    home: str
    key: str = ""

    @property
    def family(self) -> Family:
        """The family of the paper."""
        return _family(self.home)

    @property
    def variants(self) -> Collection[str]:
        """Variants of the campaign."""
        return self.family.variants

    @property
    def ledger(self) -> dict[str, Entry]:
        """Its claims by identifier."""
        return read_ledger(self.family.name, self.name)

    @property
    def pictures(self) -> dict[str, Picture]:
        """Its figures by number."""
        return {picture.number: picture for picture in self.family.pictures(self)}

    def asked(self, number: str) -> list[Picture]:
        """Figures with a number: the figure itself, or its parts (13 for 13a, 13b and 13c).

        Raises
        ------
        UnknownNameError
            When there is none.
        """
        there = self.pictures
        if number in there:
            return [there[number]]
        parts = [picture for name, picture in there.items() if number.isdigit() and name.rstrip("abc") == number]
        if not parts:
            raise UnknownNameError(f"figure of {self.name}", number, there)
        return parts

    def check(self, order: Order, figure: str | None = None) -> None:
        """Return the plan for a request without running it.

        Raises
        ------
        InputError
            For an unknown scale, variant or figure.
        """
        self.family.plan(self, order, None if figure is None else self.asked(figure))

    def reproduce(self, order: Order, out: Path, *, figure: str | None = None, **how: Any) -> Reproduced:
        """Run missing campaigns, draw, judge, and write everything to a folder: see `gridsim.campaign.paper.Paper`."""
        from gridsim_papers.reproduce import draw_alone, reproduce

        if figure is None:
            return reproduce(self, order, out, **how)
        del how["cases"]
        return draw_alone(self, order, figure, out, **how)


@cache
def _family(home: str) -> Family:
    module, _, name = home.partition(":")
    family: Family = getattr(importlib.import_module(f"gridsim_papers.{module}"), name)()
    return family


class Results(ABC):
    """Indexed rows of a paper, from which figures are drawn and claims are judged."""

    @abstractmethod
    def draw(self, number: str) -> Figure:
        """Draw one figure.

        Raises
        ------
        InputError
            When rows are missing for it.
        """

    def tables(self) -> Iterator[Tabled]:
        """Tables of the paper for which rows exist."""
        return iter(())

    @abstractmethod
    def judged(self) -> Iterator[Judged]:
        """Verdicts that rows or the code decide."""


class Family(ABC):
    """Papers that share one campaign."""

    name: ClassVar[str]
    """Describe a figure from its recipe and its ledger."""

    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Variants of the campaign: names, and the keys of the recipe that they change."""

    @property
    def recipe(self) -> Path:
        """Recipe of the campaign."""
        return RECIPES / f"{self.name}.toml"

    def changes(self, variant: str) -> Mapping[str, Any]:
        """Keys of the recipe that a variant changes.

        Raises
        ------
        UnknownNameError
            When there is no such variant.
        """
        if variant and variant not in self.variants:
            if not self.variants:
                raise InputError(f"there is no variant '{variant}' of {self.name}; it has none", field="variant")
            raise UnknownNameError(f"variant of {self.name}", variant, self.variants)
        return self.variants.get(variant, {})

    @abstractmethod
    def plan(self, paper: Paper, order: Order, pictures: Sequence[Picture] | None = None) -> Plan:
        """Plan for these figures only, or for all figures and claims of the paper."""

    @abstractmethod
    def pictures(self, paper: Paper) -> Iterator[Picture]:
        """Figures of a paper, in its order."""

    @abstractmethod
    def results(self, paper: Paper, rows: Rows, plan: Plan) -> Results:
        """Rows of a paper, indexed."""

    def synthetic(self, entry: Entry, plan: Plan) -> str:
        """Logs that synthetic jobs replace in the decision on a claim; those named in its experiments, or all."""
        if entry.decided_by != "campaign":
            return ""
        named = [title for log, title in plan.stand_ins.items() if f"-{log}-" in entry.what]
        others = [log for log in ("ctc", "sdsc") if f"-{log}-" in entry.what]
        return " and ".join(named) if others else plan.synthetic

    @abstractmethod
    def by_cases(self, ledger: Mapping[str, Entry], cases: Cases) -> Iterator[Judged]:
        """Verdicts that exact cases decide."""


def store_name(*parts: str) -> str:
    """Name of the folder of rows, from its nonempty parts.

    Examples
    --------
    >>> store_name("grid", "", "tiny")
    'grid-tiny'
    """
    return "-".join(filter(None, parts))
