"""Figures of the study on moldable jobs: gains and losses by weight, at both base loads.

Recipes and stored rows are read as in the deadline study; this module simulates nothing. A bar is the change of the
mean response relative to another policy, over windows, as in `gridsim_papers.moldable.changes`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gridsim import InputError
from gridsim.metrics.compare import holm
from gridsim.number_formatting import listed, percent
from gridsim.report.figures import PALETTE
from gridsim_papers.deadline.figures import LOGS, Words, heading, panelled, setting, wrapped
from gridsim_papers.deadline.lines import StoredRows, written
from gridsim_papers.deadline.recipes import Panel, Recipe
from gridsim_papers.moldable.campaign import TABLE
from gridsim_papers.moldable.changes import CATEGORIES, LEAST_JOBS, Change, change

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["CONDITIONS", "SCHEMES", "Bars", "bars_of", "caption", "draw", "words_of"]

CONDITIONS = {name: read for name, read in TABLE.columns.items() if name not in ("window", "metric", "value")}
"""Columns of rows that describe a run, and the parsers of their values."""

SCHEMES = {
    "conservative": "rigid conservative backfilling",
    "moldable-greedy?choices=all": "greedy at submission",
    "moldable-submit": "fair share at submission",
    "moldable-start": "fair share at start",
    "moldable-base": "base",
    "moldable-combined": "combined, weight factor 2",
    "moldable-combined-2003": "combined, weight factor 1",
    "moldable-base?weight=sqrt": "square-root weights",
    "moldable-base?weight=sqrt-parallel": "square-root weights, corrected",
    "moldable-base?reserve=category": "category promises",
    "moldable-base?reserve=xfactor(k=4)": "expansion-factor promises",
    "moldable-base?reserve=xfactor(k=4,others=category)": "both",
}
"""Policies with their names in figures."""

_PROFILES = {"npb-standin": "profiles of the stand-in", "npb-measured": "measured profiles"}
_METHODS = {"gaps": "shorter gaps", "duplication": "duplicates of jobs", "expansion": "longer runtimes"}
_GROUPS = (*CATEGORIES, "")
_SIZE = (5.3, 2.9)
_APART = 0.6
_SURE = 0.05
_TICKS = (1.0, 0.5, 2.0, 0.2, 5.0, 0.1, 10.0, 0.05, 20.0, 50.0, 0.7, 1.5, 0.8, 0.9, 1.2, 0.3, 3.0, 1.1)
_TICKS_APART = 0.08


class Bars(NamedTuple):
    """Changes of one value of the condition that distinguishes bars of a category.

    Attributes
    ----------
    value : object
        Of that condition.
    changes : mapping of str to Change
        By category; all jobs have the empty name. Categories without data are absent.
    p_holm : mapping of str to float
        Two-sided, corrected for all of these.
    """

    value: Any
    changes: Mapping[str, Change]
    p_holm: Mapping[str, float]


def bars_of(name: str, panel: Panel, stored: StoredRows) -> list[Bars]:
    """Bars of a panel; a value without rows has none.

    Parameters
    ----------
    name : str
        Name of the figure, for the error.

    Raises
    ------
    InputError
        When no value has rows; the message contains the figure and the experiment to run.
    """
    found = stored.values(panel.y, panel.where, panel.lines, panel.along)
    others = {**panel.where, "scheme": panel.against}
    by = () if panel.lines == "scheme" else (panel.lines,)
    attached = stored.values(panel.y, others, *by, panel.along)
    bars = []
    for value in panel.values:
        changes = {}
        for group in panel.places or _GROUPS:
            mine, theirs = found.get((value, group), {}), attached.get((value, group) if by else (group,), {})
            both = sorted(mine.keys() & theirs.keys())
            if both:
                changes[group] = change(*(np.array([run[window] for window in both]) for run in (mine, theirs)))
        p_holm = holm([it.p for it in changes.values()])
        bars.append(Bars(value, changes, dict(zip(changes, p_holm, strict=True))))
    if not any(it.changes for it in bars):
        told = written({**panel.where, "against": panel.against}, stored.usual)
        raise InputError(f"{name} has no rows of '{panel.y}' with {told}; run the experiment {panel.experiment}")
    return bars


def draw(recipe: Recipe, stored: StoredRows) -> Figure:
    """Draw a recipe: axes per panel with rows, one legend, the conditions above and the number of runs below.

    Raises
    ------
    InputError
        When no panel has rows, naming the experiment to run.
    """
    drawn, missing = _panels(recipe, stored)
    words = words_of(recipe)
    columns = min(2, len(drawn))
    above = wrapped(heading(recipe, words), 13 * _SIZE[0] * columns)
    below = wrapped(caption(recipe, drawn, missing), 15.5 * _SIZE[0] * columns)
    with panelled(len(drawn), columns, above, below, size=_SIZE) as (figure, every):
        limits = _limits(bars for _, bars in drawn)
        for letter, axes, (panel, bars) in zip("abcdefgh", every, drawn, strict=False):
            _panel(axes, panel, bars, limits)
            axes.set_title(f"({letter})  {setting(recipe, panel, words=words)}", loc="left", fontsize=10)
        return figure


def _panels(recipe: Recipe, stored: StoredRows) -> tuple[list[tuple[Panel, list[Bars]]], list[Panel]]:
    """Panels with their bars, and panels without rows."""
    drawn, missing, error = [], [], None
    for panel in recipe.panels:
        try:
            drawn.append((panel, bars_of(recipe.name, panel, stored)))
        except InputError as problem:
            missing.append(panel)
            error = error or problem
    if error and not drawn:
        raise error
    return drawn, missing


def caption(recipe: Recipe, drawn: Sequence[tuple[Panel, Sequence[Bars]]], missing: Sequence[Panel] = ()) -> str:
    """Describe a bar and its interval, the number of windows per bar, and the missing panels and bars."""
    changes = [it for _, every in drawn for bars in every for it in bars.changes.values()]
    windows = sorted({it.windows for it in changes})
    counted = f"{windows[0]} to {windows[-1]} windows" if len(windows) > 1 else f"{windows[0]} window"
    counted += "s" if len(windows) == 1 and windows[0] > 1 else ""
    against = listed([_words("scheme", name) for name in dict.fromkeys(panel.against for panel, _ in drawn)])
    parts = [f"{recipe.source}. Change of the mean response relative to {against}; below 0 is better."]
    if windows[-1] == 1:
        parts.append("A bar is one window; it has no interval.")
    else:
        parts.append(
            f"A bar is the geometric mean over {counted}, with its 95 % interval (Student's\u00a0t on logarithms; "
            "cut at the edge); pale ones may be chance (p above 0.05, Holm over the bars of a colour)."
        )
    parts.append(
        f"Category 1 is up to 100 core-seconds, each next one reaches to three times as many, 10 is all above; "
        f"one with fewer than {LEAST_JOBS} jobs in a window is left out there."
    )
    gaps = [_words(panel.lines, it.value) for panel, every in drawn for it in every if not it.changes]
    parts += [f"No rows of {gap}." for gap in dict.fromkeys(gaps)]
    for panel in missing:
        told = setting(recipe, panel, words=words_of(recipe))
        parts.append(f"No rows of {told}: run the experiment {panel.experiment}.")
    return " ".join(parts)


def words_of(recipe: Recipe) -> Words:
    """Describe conditions; with job profiles, sigma and range factor have no effect."""
    unsaid = ("sigma", "range_factor") if all(panel.where.get("profiles") for panel in recipe.panels) else ()
    return lambda name, value: "" if name in unsaid else _words(name, value)


def _words(name: str, value: Any) -> str:
    match name:
        case "log":
            return LOGS.get(value, str(value))
        case "base":
            return "load as logged" if value == "as-logged" else f"base load {value}"
        case "load_factor":
            return f"load factor {value:g} %"
        case "method":
            return _METHODS.get(value, str(value))
        case "profiles":
            return _PROFILES.get(value, str(value))
        case "scheme":
            return SCHEMES.get(value, str(value))
        case _:
            plain = name.replace("_", " ")
            return f"{plain} {value:g}" if isinstance(value, float) else f"{plain} {value}"


def _limits(panels: Iterable[Sequence[Bars]]) -> tuple[float, float]:
    """Ratios at the edges: every bar, and the parts of intervals that are not far beyond all bars."""
    changes = [it for every in panels for bars in every for it in bars.changes.values()]
    bars = [1 + it.change for it in changes]
    low, high = min(0.95, *bars), max(1.05, *bars)
    room = (high / low) ** 0.25
    ends = [1 + end for it in changes for end in (it.low, it.high) if math.isfinite(end)]
    return max(low / room, 0.95 * min([low, *ends])), min(high * room, 1.05 * max([high, *ends]))


def _panel(axes: Axes, panel: Panel, every: Sequence[Bars], limits: tuple[float, float]) -> None:
    groups = panel.places or _GROUPS
    places = np.arange(len(groups)) + _APART * np.array([not group for group in groups])
    width = 0.8 / len(every)
    for index, bars in enumerate(every):
        colour = PALETTE[index % len(PALETTE)]
        sides = places + (index - (len(every) - 1) / 2) * width
        own = [(side, group) for side, group in zip(sides, groups, strict=True) if group in bars.changes]
        # A single window allows no test, so no bar is drawn paler than another.
        colours = [_paler(colour) if bars.p_holm[group] >= _SURE else colour for _, group in own]
        changes = [bars.changes[group] for _, group in own]
        _bars(axes, [side for side, _ in own], changes, 0.92 * width, limits, color=colours)
        axes.plot([], [], color=colour, linewidth=7, solid_capstyle="butt", label=_words(panel.lines, bars.value))
    axes.axhline(1.0, color="k", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_ylim(*limits)
    _ticks(axes, limits)
    axes.set_xticks(places, [group.removeprefix("weight:") or "all" for group in groups])
    axes.set_xlim(places[0] - 0.6, places[-1] + 0.6)
    axes.grid(visible=False, axis="x")
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel("category of weight, lightest to heaviest")
    axes.set_ylabel("change of mean response")


def _bars(
    axes: Axes, x: Sequence[float], changes: Sequence[Change], width: float, limits: tuple[float, float], **style: Any
) -> None:
    """Draw bars from no change to each change, with their intervals."""
    axes.bar(x, [it.change for it in changes], width, bottom=1.0, linewidth=0, zorder=2, **style)
    ends = np.clip(np.array([[1 + it.low, 1 + it.high] for it in changes]).reshape(-1, 2), *limits)
    axes.vlines(x, ends[:, 0], ends[:, 1], color="0.2", linewidth=0.8, zorder=3)


def _paler(colour: str) -> str:
    """The colour on a white background, lightened."""
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(255 - 0.38 * (255 - part)):02x}" for part in parts)


def _ticks(axes: Axes, limits: tuple[float, float]) -> None:
    """Write ratios as per cent of change, in the order of `_TICKS`, as many as fit."""
    apart = _TICKS_APART * math.log(limits[1] / limits[0])
    ticks: list[float] = []
    for tick in _TICKS:
        if limits[0] <= tick <= limits[1] and all(abs(math.log(tick / other)) >= apart for other in ticks):
            ticks.append(tick)
    axes.set_yticks(ticks, [percent(round(tick - 1, 2), sign=True) for tick in ticks])
    axes.minorticks_off()
