"""Interface of reproduced papers: order, result, and installed packages that provide them."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gridsim.errors import InputError, require_known
from gridsim.registry import load_entry

if TYPE_CHECKING:
    from gridsim.campaign.run import Finished, Progress


GROUP = "gridsim.paper"
"""Entry-point group of the modules whose ``PAPERS`` maps names to papers."""

Listener = Callable[[str, "Finished", "Progress"], None]
"""Called with the name of a store, each finished unit, and the progress of the campaign."""


class Order(NamedTuple):
    """Order for a reproduction.

    Attributes
    ----------
    scale : str
        Scale of the reproduction.
    data : Path or None
        Folder of the archive's logs.
    variant : str
        Variant of the paper; empty for the original.
    """

    scale: str = "small"
    data: Path | None = None
    variant: str = ""


class Absent(NamedTuple):
    """Missing data.

    Attributes
    ----------
    name : str
        Description of the data.
    file : str
        Expected file in the data folder.
    fetch : str
        Name for downloading it; empty if that is not possible.
    """

    name: str
    file: str
    fetch: str = ""


class Drawn(NamedTuple):
    """Figure: its file, or the reason why there is none.

    Attributes
    ----------
    number : str
        Number of the figure.
    caption : str
        Description, with the synthetic jobs used.
    file : str
        File in the folder; empty if nothing was drawn.
    note : str
        Reason for a missing file; for pseudo-code, the exact cases that check it.
    made : bool
        False if the figure could not be made.
    """

    number: str
    caption: str
    file: str
    note: str
    made: bool


class Claim(NamedTuple):
    """Claim of the paper as a line of text; effect, p and n are those of the least favourable condition."""

    id: str
    answer: str
    effect: str
    p: str
    n: str
    statement: str


@dataclass(frozen=True, slots=True)
class Reproduced:
    """Result of the reproduction of one paper.

    Attributes
    ----------
    name : str
        Name of the paper, with its variant.
    synthetic : str
        Text on logs that were replaced by synthetic jobs; empty for none.
    absent : sequence of Absent
        Missing data.
    drawn : sequence of Drawn
        Figures.
    claims : sequence of Claim
        Claims; empty if only figures were requested.
    failed : int
        Number of failed units.
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

    def __repr__(self) -> str:
        return f"<Reproduced {self.name}: {len(self.drawn)} figures, {len(self.claims)} claims>"

    @property
    def not_made(self) -> list[Drawn]:
        """Number of figures that could not be made."""
        return [one for one in self.drawn if not one.made]


class Paper(Protocol):
    """Interface of a paper for `gridsim reproduce`."""

    @property
    def citation(self) -> object:
        """Citation as text: authors, venue and year."""

    @property
    def variants(self) -> Collection[str]:
        """Names of variants of the reproduction."""

    def check(self, order: Order, figure: str | None = None) -> None:
        """Check an order without running anything.

        Raises
        ------
        InputError
            For an unknown scale, variant or figure.
        """

    def reproduce(self, order: Order, out: Path, *, figure: str | None = None, **how: Any) -> Reproduced:
        """Run missing units, and write all results to a folder.

        Parameters
        ----------
        out : Path
            The folder. Existing stores of rows in it are reused.
        figure : str, optional
            Draw only this figure, and run only the units that it needs.
        **how
            *cases*, *workers*, *kind* and *listener*, as for the function `reproduce`.

        Raises
        ------
        InputError
            As `check`, and for a store of another campaign.
        """


def papers() -> dict[str, Paper]:
    """Return the papers of all installed packages by name.

    Raises
    ------
    InputError
        If a registered module cannot be imported or has no papers, or names are not unique.
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


def paper_named(name: str) -> Paper:
    """Return an installed paper.

    Raises
    ------
    UnknownNameError
        For an unknown name.
    """
    known = papers()
    require_known("paper", known, name)
    return known[name]


def reproduce(
    paper: str,
    out: str | Path = "gridsim-reproduction",
    *,
    figure: str | None = None,
    scale: str = "small",
    data: str | Path | None = None,
    variant: str = "",
    cases: str | Path | None = None,
    workers: int = 1,
    kind: str = "png",
    listener: Listener | None = None,
) -> Reproduced:
    """Reproduce a published study: run missing simulations, draw the figures, and test each claim.

    Parameters
    ----------
    paper : str
        Name of an installed paper, such as ``grid`` (`papers`).
    out : path
        Folder of the results. Existing results in it are reused.
    figure : str, optional
        Draw only this figure, and run only the simulations that it needs.
    scale : {"tiny", "small", "full"}
        Number of simulations: a few jobs, some windows of each log, or as published.
    data : path, optional
        Folder of the archive's logs; without it, synthetic jobs replace them.
    variant : str
        Variant of the paper; empty for the original.
    cases : path, optional
        Folder of exact cases; by default those included in gridsim.
    workers : int
        Number of processes.
    kind : {"png", "svg"}
        Format of the figures.
    listener : callable, optional
        Called with the name of a store, each finished simulation, and the progress.

    Returns
    -------
    Reproduced
        Figures, claims with their verdicts, and missing data.

    Raises
    ------
    InputError
        For an unknown paper, figure, scale or variant, and if *out* has results of another campaign.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = reproduce("qops", folder, figure="2", scale="tiny")
    >>> [(one.number, one.made) for one in found.drawn]
    [('2', True)]
    """
    if data is not None and not Path(data).is_dir():
        raise InputError("is not a folder; expected a folder with the archive's logs", path=data, field="data")
    order = Order(scale, None if data is None else Path(data), variant)
    asked = paper_named(paper)
    asked.check(order, figure)
    place = None if cases is None else Path(cases)
    how: dict[str, Any] = {"cases": place, "workers": workers, "kind": kind, "listener": listener}
    return asked.reproduce(order, Path(out), figure=figure, **how)
