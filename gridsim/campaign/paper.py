"""Papers that are done again: what a user asks of one, what it answers, and the installed packages that bring them."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gridsim.errors import InputError
from gridsim.registry import load_entry

if TYPE_CHECKING:
    from gridsim.campaign.run import Finished, Progress


GROUP = "gridsim.paper"
"""Entry-point group of the modules whose ``PAPERS`` maps names to papers."""

Listener = Callable[[str, "Finished", "Progress"], None]
"""Called with the name of a store, each unit that comes back, and where the campaign stands then."""


class Order(NamedTuple):
    """What is asked for.

    Attributes
    ----------
    scale : str
        Of the recipe of the paper.
    data : Path or None
        Folder of the archive's logs.
    variant : str
        Of the paper; empty for the paper as it is.
    """

    scale: str = "small"
    data: Path | None = None
    variant: str = ""


class Absent(NamedTuple):
    """Data that is not there.

    Attributes
    ----------
    name : str
        What it is.
    file : str
        Where it is looked for in the folder of the data.
    fetch : str
        Name under which it can be fetched; empty where it cannot.
    """

    name: str
    file: str
    fetch: str = ""


class Drawn(NamedTuple):
    """A figure: where it is in the folder, or why it is not there.

    Attributes
    ----------
    number : str
        As it is asked for.
    caption : str
        What it shows, and of which synthetic jobs.
    file : str
        In the folder; empty where nothing was drawn.
    note : str
        Why not; for pseudo-code, which exact cases decide it.
    made : bool
        False where it could not be.
    """

    number: str
    caption: str
    file: str
    note: str
    made: bool


class Claim(NamedTuple):
    """A claim of the paper as a line of text: effect, p and n are those of the circumstance that supports it least."""

    id: str
    answer: str
    effect: str
    p: str
    n: str
    statement: str


@dataclass(frozen=True, slots=True)
class Reproduced:
    """What came of one paper.

    Attributes
    ----------
    name : str
        Of the paper, with its variant.
    synthetic : str
        Logs in whose place synthetic jobs stand, in words; empty for none.
    absent : sequence of Absent
        Data that is not there.
    drawn : sequence of Drawn
        Its figures.
    claims : sequence of Claim
        Empty where figures alone were asked for.
    failed : int
        Units that raised.
    page : Path or None
        Page of all papers in the folder.
    """

    name: str
    synthetic: str
    absent: Sequence[Absent]
    drawn: Sequence[Drawn]
    claims: Sequence[Claim] = ()
    failed: int = 0
    page: Path | None = None

    @property
    def not_made(self) -> list[Drawn]:
        """Figures that could not be made."""
        return [one for one in self.drawn if not one.made]


class Paper(Protocol):
    """One paper; `gridsim reproduce` knows no more of it."""

    @property
    def citation(self) -> object:
        """Who wrote it, where and when, as text."""

    @property
    def variants(self) -> Collection[str]:
        """Other ways to run it."""

    def check(self, order: Order, figure: str | None = None) -> None:
        """Look at what is asked for, and run nothing.

        Raises
        ------
        InputError
            For an unknown scale, variant or figure.
        """

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
        """Run what is missing, and write everything to a folder.

        Parameters
        ----------
        out : Path
            The folder. Stores of rows in it are used again.
        figure : str, optional
            Draw this one alone, and run only what it needs.
        cases : Path, optional
            Folder of exact cases; those that come with gridsim where left out.
        workers : int
            Processes.
        kind : {"png", "svg"}
            Of figures.
        listener : callable, optional
            Called with each unit that is done.

        Raises
        ------
        InputError
            As `check` does, and for a store of something else.
        """


def papers() -> dict[str, Paper]:
    """Papers of all installed packages by name.

    Raises
    ------
    InputError
        When a module that a package names does not import or has no papers, or two have one of the same name.
    """
    found: dict[str, Paper] = {}
    for entry in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        module, place = load_entry(entry)
        there = getattr(module, "PAPERS", None)
        if not isinstance(there, Mapping):
            raise InputError(f"{entry.value} has no PAPERS; expected a mapping of names to papers", path=place)
        for name, paper in there.items():
            if found.setdefault(name, paper) is not paper:
                raise InputError(f"there is another paper '{name}'", path=place)
    return found
