"""Pictures of what a change does to the waits: against the cores of the machine, and change by change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gridsim.questions.changes import NOW, Effect, WhatIf
from gridsim.report.figures import INK, PALETTE, drawing
from gridsim.report.gallery import Gallery
from gridsim.report.pictures import Drawing, Picture
from gridsim.words import duration, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["changes", "figures", "pictures", "sizes"]

FILE = "whatif.csv"


def figures(found: WhatIf) -> Gallery:
    """Figures of the answers by name, for a notebook or a paper."""
    return Gallery(lambda: {one.drawing.name: one.drawing.figure for one in pictures(found)})


def pictures(found: WhatIf) -> Iterator[Picture]:
    """What there is to see: waits against cores where more than one size was asked, and every change."""
    sized = _sized(found)
    if len(sized) > 2:
        told = ", ".join(f"{duration(_mean(one))} with {number(one.cores)}" for one in sized)
        yield Picture(
            "Waits against cores",
            f"Mean wait under {found.policy} by the cores of the machine, with 95 % intervals of the change from now: "
            f"{told}.",
            Drawing(sizes(found), "whatif-sizes"),
            FILE,
        )
    shown = [one for one in found.outcomes if one.wait is not None]
    if shown:
        yield Picture(
            "Waits under each change",
            f"Mean wait under {found.policy} with one thing changed at a time, with 95 % intervals of the change from "
            f"now; the line is the wait as it is, {duration(found[NOW].numbers['wait_mean'])}.",
            Drawing(changes(found), "whatif-changes"),
            FILE,
        )


def sizes(found: WhatIf) -> Figure:
    """Mean wait against the cores of the machine, for the sizes that were asked and the one that is."""
    shown = _sized(found)
    with drawing() as (figure, axes):
        cores = [one.cores for one in shown]
        axes.plot(cores, [_mean(one) for one in shown], "o-", color=PALETTE[0], markersize=5.5)
        for one in shown:
            if (interval := _interval(one)) is not None:
                axes.vlines(one.cores, *interval, color=PALETTE[0], linewidth=2.4, alpha=0.55)
        now = found[NOW]
        axes.plot([now.cores], [_mean(now)], "o", color=INK, markersize=7)
        axes.set_xticks(cores, [f"{count:,}" for count in cores])
        axes.set_xlabel("cores of the machine")
        axes.set_ylabel("mean wait")
        axes.set_ylim(bottom=0)
        axes.set_yticks(*_hours(axes.get_ylim()[1]))
        return figure


def changes(found: WhatIf) -> Figure:
    """Mean wait under each change with its interval, a row a change; a line at the wait as it is."""
    shown = [one for one in found.outcomes if one.label == NOW or one.wait is not None]
    with drawing(height=1.2 + 0.34 * len(shown)) as (figure, axes):
        axes.axvline(_mean(found[NOW]), color=INK, linewidth=1)
        for row, one in enumerate(shown):
            if (interval := _interval(one)) is not None:
                axes.hlines(row, *interval, color=PALETTE[0], linewidth=2.4, alpha=0.55)
            axes.plot([_mean(one)], [row], "o", color=INK if one.label == NOW else PALETTE[0], markersize=5.5)
        _rows(axes, shown)
        axes.set_xlim(left=0)
        axes.set_xticks(*_hours(axes.get_xlim()[1]))
        axes.set_xlabel("mean wait")
        return figure


def _rows(axes: Axes, shown: Sequence[Effect]) -> None:
    axes.set_yticks(range(len(shown)), [one.label for one in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _sized(found: WhatIf) -> list[Effect]:
    """Answers that differ in nothing but the size of the machine, smallest first."""
    now = found[NOW]
    return sorted((one for one in found.outcomes if one is now or one.cores != now.cores), key=lambda one: one.cores)


def _mean(one: Effect) -> float:
    """Mean wait of the jobs that ran as it is too, s."""
    return one.numbers["wait_mean"] if one.wait is None else one.wait.policy_mean


def _interval(one: Effect) -> tuple[float, float] | None:
    """Mean wait as low and as high as the change from now may be, s; None where that is not known."""
    if one.wait is None or not math.isfinite(one.wait.ratio_low * one.wait.ratio_high):
        return None
    return one.wait.ratio_low * one.wait.baseline_mean, one.wait.ratio_high * one.wait.baseline_mean


_STEPS = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600, 86_400, 2 * 86_400, 7 * 86_400)
_MOST = 6


def _hours(top: float) -> tuple[list[float], Any]:
    """Ticks of times that people know, from none to *top* seconds, and what they are called."""
    step = next((step for step in _STEPS if top / step <= _MOST), 30 * 86_400 * math.ceil(top / _MOST / 30 / 86_400))
    ticks = [float(step * place) for place in range(int(top / step) + 1)]
    return ticks, ["none", *map(duration, ticks[1:])]
