"""Figures of the study on guaranteed deadlines: one function draws every figure from its recipe and stored rows.

Recipes are in `recipes` and their lines in `lines`; this module simulates and measures nothing.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gridsim.files import write_atomically
from gridsim.number_formatting import listed, percent
from gridsim.report.figures import DASHES, PALETTE, RC
from gridsim_papers.deadline.lines import Line, Mean, StoredRows, gaps, lines_of
from gridsim_papers.deadline.recipes import Panel, Recipe, metric_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "ESTIMATES",
    "LOGS",
    "METHODS",
    "SCHEMES",
    "TITLES",
    "Words",
    "caption",
    "draw",
    "heading",
    "on_paper",
    "panelled",
    "save",
    "setting",
    "wrapped",
]

SCHEMES = {
    "qops": "QoPS",
    "mrt": "MRT",
    "msb": "MSB",
    "easy": "EASY",
    "conservative": "conservative",
    "fqops": "FQoPS",
}
"""Schemes of the papers with their titles, in the order of their colours."""

LOGS = {"ctc": "CTC SP2", "sdsc": "SDSC SP2", "model": "synthetic jobs in place of a log"}
METHODS = {
    "random-arrival": "load by duplicates that arrive at random",
    "same-arrival": "load by duplicates that arrive with their originals",
    "expansion": "load by longer runtimes",
}
ESTIMATES = {
    "exact": "exact estimates",
    "logged": "estimates as logged, jobs killed there",
    "logged-extended": "estimates as logged, jobs run on",
}

TITLES = {
    "load": "offered load, times that of the log",
    "tolerance": "tolerance, times the response asked for",
    "slack_factor": "slack, times the earliest response",
    "utilisation": "utilisation to the last end",
    "utilisation_arrivals": "utilisation while jobs arrive",
    "deadline_unadmitted": "deadline jobs turned away",
    "deadline_unadmitted_share": "share of deadline jobs turned away",
    "deadline_unadmitted_area": "work turned away",
    "deadline_unadmitted_area_share": "share of their work turned away",
    "deadline_guaranteed_share": "share of jobs accepted",
    "deadline_guaranteed_area_share": "share of work accepted",
    "non_deadline_response_mean": "mean response time",
    "non_deadline_slowdown_mean": "mean slowdown",
    "resource_charge": "resource charge",
    "qos_charge": "QoS charge",
    "promises_kept_share": "share of promises kept",
}
"""Labels of axes; other metrics are labelled with their names."""

Words = Callable[[str, Any], str]
"""Labels of conditions and their values; empty for a condition that needs no mention."""

_SCALES = {"s": (3_600.0, "hours"), "core-seconds": (3_600.0, "core-hours")}
_PANEL = (4.5, 2.9)
_WIDE = 20.0
_MARKERS = "osD^vPX"
_PAPER: dict[Any, Any] = {"grid.alpha": 0.2}
"""Colour of grid lines on a white background."""


def draw(recipe: Recipe, stored: StoredRows) -> Figure:
    """Draw a recipe: axes per panel, one legend, the conditions above and the number of runs below.

    Raises
    ------
    InputError
        When a panel has no rows; the message contains the experiment to run.
    """
    drawn = [(panel, lines_of(recipe.name, panel, stored)) for panel in recipe.panels]
    columns = min(2, len(drawn))
    above = wrapped(heading(recipe), 13 * _PANEL[0] * columns)
    below = wrapped(caption(recipe, drawn), 16 * _PANEL[0] * columns)
    with panelled(len(drawn), columns, above, below) as (figure, every):
        for letter, axes, (panel, lines) in zip("abcdefghijklmnopqrstuvwxyz", every, drawn, strict=False):
            _panel(axes, panel, lines)
            told = setting(recipe, panel)
            axes.set_title(f"({letter})" + (f"  {told}" if told else ""), loc="left", fontsize=10)
        for metric in dict.fromkeys(panel.y for panel in recipe.panels):
            alike = [(axes, lines) for axes, (panel, lines) in zip(every, drawn, strict=True) if panel.y == metric]
            _scale_alike([axes for axes, _ in alike], metric, [line for _, lines in alike for line in lines])
        return figure


@contextmanager
def panelled(
    panels: int, columns: int, above: str, below: str, *, size: tuple[float, float] = _PANEL
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Create axes row by row in the project's style; on exit, place their legend under the text above them.

    Parameters
    ----------
    size : tuple of float
        Width and height of a panel, inches.
    """
    import matplotlib  # the import takes half a second, so it happens only when a figure is drawn
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    rows = -(-panels // columns)
    top, bottom = 0.44 + 0.2 * len(above.split("\n")), 0.14 + 0.15 * len(below.split("\n"))
    width, height = size[0] * columns, size[1] * rows + top + bottom
    layout = ConstrainedLayoutEngine(
        hspace=0.05, wspace=0.04, rect=(0, bottom / height, 1, 1 - (top + bottom) / height)
    )
    with matplotlib.rc_context({**RC, **_PAPER}):
        figure = Figure(figsize=(width, height), layout=layout)
        every = list(figure.subplots(rows, columns, squeeze=False).ravel())
        yield figure, every[:panels]
        for axes in every[panels:]:
            axes.set_axis_off()
        figure.text(0.1 / width, 1 - 0.1 / height, above, va="top", fontsize=11)
        figure.text(0.1 / width, 0.1 / height, below, va="bottom", fontsize=8.5)
        _legend(figure, every[:panels], (0.1 / width, 1 - (top - 0.17) / height))


def save(figure: Figure, path: Path) -> None:
    """Write a figure as ``.svg`` or ``.png``, by the suffix of *path*, with reproducible bytes."""
    import matplotlib

    kind = path.suffix[1:]
    more: dict[str, Any] = {"metadata": {"Date": None}} if kind == "svg" else {"dpi": 110}
    with matplotlib.rc_context({**RC, **_PAPER, "svg.hashsalt": f"gridsim {path.stem}"}):
        write_atomically(path, lambda place: figure.savefig(place, format=kind, facecolor="w", **more))


@contextmanager
def on_paper() -> Iterator[None]:
    """Use lighter grid lines for figures drawn within this context."""
    import matplotlib  # the import takes half a second, so it happens only when a figure is drawn

    with matplotlib.rc_context(_PAPER):
        yield


def heading(recipe: Recipe, words: Words | None = None) -> str:
    """Describe the content of a figure and the runs that it is drawn from."""
    told = setting(recipe, words=words)
    return f"{recipe.name} · {recipe.title}" + (f"\n{told}" if told else "")


def setting(recipe: Recipe, panel: Panel | None = None, *, words: Words | None = None) -> str:
    """Describe the conditions shared by all panels of a figure or, for one *panel*, the conditions that differ."""
    say = words or _words
    first = recipe.panels[0].where
    shared = {name for name in first if all(name in it.where and it.where[name] == first[name] for it in recipe.panels)}
    if panel is not None:
        return _listed(say(name, value) for name, value in panel.where.items() if name not in shared)
    told = (name for name in first if name in shared and first[name] != recipe.usual.get(name))
    return _listed(say(name, first[name]) for name in told)


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(text for text in texts if text)


def _words(name: str, value: Any) -> str:
    match name:
        case "log":
            return LOGS.get(value, str(value))
        case "method":
            return METHODS.get(value, str(value))
        case "scheme":
            return SCHEMES.get(value, str(value))
        case "fraction":
            return "all jobs have deadlines" if value == 1 else f"{percent(value)} of the jobs have deadlines"
        case "random_tolerance":
            return "tolerance drawn for each job" if value else "the same tolerance for all"
        case "estimates":
            return ESTIMATES.get(value, str(value))
        case "kill_restart":
            return "running jobs may be killed" if value else "no running job is killed"
        case _:
            plain = name.replace("_", " ")
            return f"{plain} {value:g}" if isinstance(value, float) else f"{plain} {value}"


def caption(recipe: Recipe, drawn: Sequence[tuple[Panel, Sequence[Line]]]) -> str:
    """Describe the number of runs per point, the interval, and the missing lines and points."""
    points = [point.y for _, lines in drawn for line in lines for point in line.points]
    parts = [f"{recipe.source}.", _replicates(points)]
    for panel, lines in drawn:
        parts += [_gap(panel, value, places) for value, places in gaps(lines)]
    return " ".join(dict.fromkeys(parts))


def _replicates(points: Sequence[Mean]) -> str:
    windows, streams = sorted({point.windows for point in points}), sorted({point.streams for point in points})
    text = f"A point is the mean of {_counted(windows, 'window')}"
    if streams != [1]:
        text += f", {'each ' if windows[-1] > 1 else ''}with {_counted(streams, 'stream')} of duplicates"
    known = [math.isfinite(point.low) for point in points]
    if not any(known):
        return f"{text}; one replicate has no interval."
    text += "; bars are 95 % intervals (Student's\u00a0t)"
    text += " over windows" if windows[-1] > 1 else " over streams and say nothing about other windows"
    text += "." if all(known) else ", none where there is one replicate."
    if len(windows) > 1 or len(streams) > 1:
        return f"{text} Points that differ in their replicates do not compare."
    return f"{text} Lines share their replicates: differences are surer than bars that overlap suggest."


def _counted(counts: Sequence[int], noun: str) -> str:
    several = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    return f"{several} {noun}{'' if counts[-1] == 1 else 's'}"


def _gap(panel: Panel, value: Any, places: Sequence[Any]) -> str:
    at = f" at {panel.along.replace('_', ' ')} {listed([f'{place:g}' for place in places])}" if places else ""
    return f"No rows of {_words(panel.lines, value)}{at}."


def _panel(axes: Axes, panel: Panel, lines: Sequence[Line]) -> None:
    (x_scale, _), (y_scale, _) = _unit(panel.x), _unit(panel.y)
    fixed = panel.x == panel.along
    places = sorted({point.place for line in lines for point in line.points}) if fixed else []
    log_x = fixed and places[0] > 0 and places[-1] / places[0] >= _WIDE
    for index, line in enumerate(lines):
        if not line.points:
            continue
        y = np.array([point.y[:3] for point in line.points]) / y_scale
        x = np.array([point.x[:3] for point in line.points]) / x_scale
        if fixed:
            x = x + _shift(index, len(lines), places, log=log_x) * (x if log_x else 1)
        style = _style(panel.lines, line.value, index)
        axes.plot(x[:, 0], y[:, 0], label=_words(panel.lines, line.value), **style)
        _bars(axes, x, y, color=style["color"], across=not fixed)
    if log_x:
        axes.set_xscale("log")
    if fixed:
        axes.set_xticks(places, [f"{place:g}" for place in places])
        axes.minorticks_off()
    elif not metric_of(panel.x).unit:
        axes.xaxis.set_major_formatter(_percent)
    axes.set_xlabel(_axis_title(panel.x))
    axes.set_ylabel(_axis_title(panel.y))


def _shift(index: int, count: int, places: Sequence[float], *, log: bool) -> float:
    """Shift points sideways by less than the distance between places, so that bars of lines do not overlap."""
    if len(places) < 2:
        return 0.0
    space = min(np.diff(np.log(places) if log else places))
    return float(0.03 * space * (index - (count - 1) / 2))


def _bars(axes: Axes, x: Any, y: Any, *, color: str, across: bool) -> None:
    """Draw intervals as thin bars, also horizontally when x was measured."""
    known = np.isfinite(y[:, 1])
    style: dict[str, Any] = {"color": color, "linewidth": 1.1}
    axes.vlines(x[known, 0], y[known, 1], y[known, 2], alpha=0.6, **style)
    if across:
        axes.hlines(y[known, 0], x[known, 1], x[known, 2], alpha=0.3, **style)


def _scale_alike(every: Sequence[Axes], metric: str, lines: Sequence[Line]) -> None:
    """Use the same axis for panels of one metric, logarithmic when one line would compress the others.

    The axis starts at 0 unless that wastes space, and always for rejections. The axis of a share ends at 1 even if
    intervals exceed 1.
    """
    means = np.array([point.y.mean for line in lines for point in line.points]) / _unit(metric)[0]
    of_whole = not metric_of(metric).unit and ("share" in metric or "utilisation" in metric)
    low, high = min(axes.get_ylim()[0] for axes in every), max(axes.get_ylim()[1] for axes in every)
    logarithmic = not of_whole and 0 < means.min() < means.max() / _WIDE
    if logarithmic:
        low, high = means.min() / 2, means.max() * 3
    elif low < 0 or "unadmitted" in metric or means.min() < 0.5 * means.max():
        low = min(0.0, means.min())
    if of_whole and high > 1:
        high = 1 + 0.02 * (1 - low)
    for axes in every:
        if logarithmic:
            axes.set_yscale("log")
        axes.set_ylim(low, high)
        axes.yaxis.set_major_formatter(_percent if of_whole else _plain)


def _percent(value: float, _: object = None) -> str:
    """Format a tick with the decimals that its neighbours need."""
    return f"{100 * value:.6g} %"


def _plain(value: float, _: object = None) -> str:
    return f"{value:,.10g}"


def _style(condition: str, value: Any, index: int) -> dict[str, Any]:
    """Return a fixed style for a scheme in every figure; other lines get styles in their order."""
    if condition == "scheme" and value in SCHEMES:
        index = list(SCHEMES).index(value)
    return {
        "color": PALETTE[index % len(PALETTE)],
        "linestyle": DASHES[index % len(DASHES)],
        "marker": _MARKERS[index % len(_MARKERS)],
        "markersize": 4.5,
        "linewidth": 1.5,
    }


def _unit(name: str) -> tuple[float, str]:
    """Return the divisor of values on an axis, and the resulting unit."""
    if name in ("load", "tolerance", "slack_factor"):
        return 1.0, ""
    unit = metric_of(name).unit
    return _SCALES.get(unit, (1.0, unit))


def _axis_title(name: str) -> str:
    unit = _unit(name)[1]
    title = TITLES.get(name, name.replace("_", " "))
    return f"{title}, {unit}" if unit and unit not in title.split() else title


def _legend(figure: Figure, every: Sequence[Axes], place: tuple[float, float]) -> None:
    """Draw one legend for all panels, with its left middle at *place*."""
    entries: dict[str, Any] = {}
    for axes in every:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    more: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": place, "borderaxespad": 0, "borderpad": 0}
    figure.legend(entries.values(), entries, ncols=len(entries), handlelength=2.4, **more)


def wrapped(text: str, width: float) -> str:
    """Wrap a text to a number of characters per line; existing line breaks stay."""
    return "\n".join(textwrap.fill(line, int(width)) for line in text.split("\n"))
