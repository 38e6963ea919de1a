"""What a paper is to those who repeat it: a campaign, figures by number, tables, and claims with what decides them.

Papers that one campaign serves are a family; its module knows the campaign, how figures are drawn of its rows, and
which judges decide the claims of its ledger.
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
from gridsim.campaign.paper import Absent, Listener, Order, Reproduced
from gridsim.errors import UnknownNameError
from gridsim_papers.citations import Citation
from gridsim_papers.ledger import Entry, read_ledger

if TYPE_CHECKING:  # ``gridsim reproduce --help`` needs none of it
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
"""Log of synthetic jobs that stands in for what is not there."""

Rows = Mapping[str, Sequence["Row"]]
"""Stored rows of each part of a plan."""


class Picture(NamedTuple):
    """A figure of a paper.

    Attributes
    ----------
    number : str
        As it is asked for.
    title : str
        What it shows.
    experiments : frozenset of str
        What its rows are of, in the words of the family; empty where it needs none.
    logs : frozenset of str
        Whose jobs it shows.
    cases : str
        Exact cases that decide it in place of a drawing: for pseudo-code.
    """

    number: str
    title: str
    experiments: frozenset[str] = frozenset()
    logs: frozenset[str] = frozenset()
    cases: str = ""


class Tabled(NamedTuple):
    """A table of a paper: lines of cells, the first of them heads."""

    name: str
    title: str
    lines: Sequence[Sequence[str]]


class Part(NamedTuple):
    """A campaign, what its rows are of, and the name of the folder that keeps them."""

    name: str
    store: str
    campaign: Any


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run, and what stands in for what.

    Attributes
    ----------
    parts : sequence of Part
        Campaigns.
    stand_ins : mapping of str to str
        Logs that synthetic jobs replace, with their titles.
    absent : sequence of Absent
        Data that is not there.
    """

    parts: Sequence[Part]
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    absent: Sequence[Absent] = ()

    @property
    def synthetic(self) -> str:
        """Titles of the logs that synthetic jobs replace, in words."""
        return " and ".join(self.stand_ins.values())


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper.

    Attributes
    ----------
    name : str
        What a user types.
    citation : Citation
        What it is.
    home : str
        Class of its family, as ``module:Class`` of this package.
    key : str
        What begins the names of its figures in the recipes of the family.
    """

    name: str
    citation: Citation
    home: str
    key: str = ""

    @property
    def family(self) -> Family:
        """What serves it."""
        return _family(self.home)

    @property
    def variants(self) -> Collection[str]:
        """Other ways to run it."""
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
        """Figures that a number names: its own, or its parts (13 for 13a, 13b and 13c).

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
        """Look at what is asked for, and run nothing.

        Raises
        ------
        InputError
            For an unknown scale, variant or figure.
        """
        self.family.plan(self, order, None if figure is None else self.asked(figure))

    def reproduce(
        self,
        order: Order,
        out: Path,
        *,
        figure: str | None = None,
        cases: Path | None = None,
        workers: int = 1,
        kind: str = "png",
        listener: Listener | None = None,
    ) -> Reproduced:
        """Run what is missing, draw, judge, and write everything to a folder: see `gridsim.campaign.paper.Paper`."""
        from gridsim_papers.reproduce import draw_alone, reproduce

        if figure is not None:
            return draw_alone(self, order, figure, out, workers=workers, kind=kind, listener=listener)
        return reproduce(self, order, out, cases=cases, workers=workers, kind=kind, listener=listener)


@cache
def _family(home: str) -> Family:
    module, _, name = home.partition(":")
    family: Family = getattr(importlib.import_module(f"gridsim_papers.{module}"), name)()
    return family


class Results(ABC):
    """Stored rows of a paper, looked at: what can be drawn of them, and what they say of its claims."""

    @abstractmethod
    def draw(self, number: str) -> Figure:
        """Draw one figure.

        Raises
        ------
        InputError
            When rows are missing for it.
        """

    def tables(self) -> Iterator[Tabled]:
        """Tables of the paper, those that there are rows for."""
        return iter(())

    @abstractmethod
    def judged(self) -> Iterator[Judged]:
        """Verdicts that rows or the code decide."""


class Family(ABC):
    """Papers that one campaign serves."""

    name: ClassVar[str]
    """Of its recipe and its ledger."""

    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Other ways to run it: names, and the keys of the recipe that they change."""

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
        """What is to be run for these figures alone, or for all figures and claims of the paper."""

    @abstractmethod
    def pictures(self, paper: Paper) -> Iterator[Picture]:
        """Figures of a paper, in its order."""

    @abstractmethod
    def results(self, paper: Paper, rows: Rows, plan: Plan) -> Results:
        """Rows of a paper, looked at."""

    def synthetic(self, entry: Entry, plan: Plan) -> str:
        """Logs that synthetic jobs replace where a claim is decided; those that its experiments name, or all."""
        if entry.decided_by != "campaign":
            return ""
        named = [title for log, title in plan.stand_ins.items() if f"-{log}-" in entry.what]
        others = [log for log in ("ctc", "sdsc") if f"-{log}-" in entry.what]
        return " and ".join(named) if others else plan.synthetic

    @abstractmethod
    def by_cases(self, ledger: Mapping[str, Entry], cases: Cases) -> Iterator[Judged]:
        """Verdicts that exact cases decide."""


def store_name(*parts: str) -> str:
    """Name of a folder of rows of parts that are not empty.

    Examples
    --------
    >>> store_name("grid", "", "tiny")
    'grid-tiny'
    """
    return "-".join(filter(None, parts))
