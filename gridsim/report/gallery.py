"""Figures by name for notebooks and papers: those of the page, drawn for white paper, and written to files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from gridsim.errors import require_known
from gridsim.files import write_atomically
from gridsim.questions.evidence import Evidence
from gridsim.report import pictures
from gridsim.report.figures import ON_PAPER, RC

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gridsim.model.platform import Platform
    from gridsim.record import Record
    from gridsim.report.pictures import Picture


Kind = Literal["pdf", "svg", "png"]
"""Formats of files: two vector formats and one raster format."""

KINDS: tuple[str, ...] = get_args(Kind)

FOLDER = "figures"
"""Folder of figures of the command line, in the result folder."""

_DPI = 300


class Gallery(Mapping[str, "Figure"]):
    """Figures by name, each a matplotlib ``Figure`` that may be changed before it is saved.

    Parameters
    ----------
    draw : callable
        Draws all figures when the first one is accessed.
    """

    def __init__(self, draw: Callable[[], Mapping[str, Figure]]) -> None:
        self._draw = draw

    @cached_property
    def _drawn(self) -> Mapping[str, Figure]:
        found = dict(self._draw())
        for figure in found.values():
            _repaint(figure)
        return found

    def __getitem__(self, name: str) -> Figure:
        require_known("figure", self._drawn, name)
        return self._drawn[name]

    def __contains__(self, name: object) -> bool:
        return name in self._drawn

    def __iter__(self) -> Iterator[str]:
        return iter(self._drawn)

    def __len__(self) -> int:
        return len(self._drawn)

    def __repr__(self) -> str:
        return f"<Gallery: {', '.join(self)}>"

    def save(self, folder: str | Path, kind: Kind = "pdf") -> list[Path]:
        """Write every figure as ``NAME.KIND``, atomically and deterministically; return the paths.

        Parameters
        ----------
        kind : {"pdf", "svg", "png"}
            PDF with embedded fonts, SVG with text as outlines, PNG with 300 dpi.
        """
        return [save(figure, Path(folder) / f"{name}.{kind}") for name, figure in self.items()]


def of_comparison(comparison: Evidence) -> Gallery:
    """Return the figures of the page of a comparison:

    ``waits``, ``slowdowns``, ``utilisation``, ``queue``, ``by-size`` …
    """
    kept = comparison.kept
    rows = slice(None) if kept.all() else kept

    def draw() -> Mapping[str, Figure]:
        every: list[Picture] = [
            *pictures.pictures(comparison, rows),
            *pictures.over_users(comparison),
            *pictures.winners(comparison),
        ]
        return {picture.drawing.name: picture.drawing.figure for picture in every}

    return Gallery(draw)


def of_run(policy: str, record: Record, platform: Platform) -> Gallery:
    """Return the figures of one run: those of a comparison with a single policy."""
    return of_comparison(Evidence.of({policy: record}, info={}, platform=platform))


def save(figure: Figure, path: Path) -> Path:
    """Write a figure in the format of the extension of *path*, atomically and deterministically."""
    import matplotlib

    kind = path.suffix[1:]
    require_known("format of figures", KINDS, kind)
    nothing: dict[str, Any] = {
        "pdf": {"metadata": {"CreationDate": None}},
        "svg": {"metadata": {"Date": None, "Creator": None}},
        "png": {"metadata": {"Software": None}, "dpi": _DPI},
    }
    embedded: dict[Any, Any] = {"pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": f"gridsim {path.stem}"}
    with matplotlib.rc_context({**RC, **embedded}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a label may contain any character
        write_atomically(path, lambda place: figure.savefig(place, format=kind, facecolor="white", **nothing[kind]))
    return path


_PARTS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")


def _repaint(figure: Figure) -> None:
    """Replace the colours that the page sets by style by colours for paper."""
    from matplotlib.colors import to_hex

    figure.draw_without_rendering()  # creates the labels of ticks
    for artist in figure.findobj():
        for part in _PARTS:
            value = getattr(artist, f"get_{part}", lambda: None)()
            try:
                known = ON_PAPER.get(to_hex(value)) if value is not None else None
            except ValueError:  # several colours, none of which is replaced
                continue
            if known is not None:
                getattr(artist, f"set_{part}")(known)
    for axes in figure.axes:  # also for ticks that are created later
        axes.tick_params(colors=ON_PAPER[RC["text.color"]], grid_color=ON_PAPER[RC["grid.color"]])
