"""Pictures of the comparisons of a campaign: ratios to the baseline with their intervals, a figure a metric."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gridsim.campaign.comparisons import Compared, Comparisons
from gridsim.report.campaign_sentences import label, title, unit
from gridsim.report.figures import INK, PALETTE, drawing, short_labels
from gridsim.report.gallery import Gallery
from gridsim.report.markup import ratio_shown
from gridsim.report.pictures import Drawing, Picture
from gridsim.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["against", "figures", "pictures"]

_MOST = 4
"""Metrics that are drawn."""

_MARKERS = {"better": "s", "worse": "D"}


def figures(found: Comparisons) -> Gallery:
    """Figures of a campaign by name: ``wait-mean``, …"""
    return Gallery(lambda: {one.drawing.name: one.drawing.figure for one in pictures(found)})


def pictures(found: Comparisons) -> Iterator[Picture]:
    """The main comparison as pictures: of the first metrics, every value against the baseline."""
    for metric in found.metrics[:_MOST]:
        rows = [it for it in found.overall(metric) if it.test.ratio > 0 and math.isfinite(it.test.ratio)]
        if rows:
            units = max(it.test.workloads - it.test.left_out for it in rows)
            told = ", ".join(f"{ratio_shown(it.test.ratio)} under {label(found, it.value)}" for it in rows)
            yield Picture(
                title(metric)[:1].upper() + title(metric)[1:],
                f"Ratio to {label(found, found.values[0])} over {counted(units, unit(found))}, with "
                f"{100 * found.comparing.confidence:g} % intervals; squares are clearly better, diamonds clearly "
                f"worse: {told}.",
                Drawing(against(found, rows), metric.replace("_", "-")),
                "comparisons.csv",
            )


def against(found: Comparisons, rows: Sequence[Compared]) -> Figure:
    """Ratios of one metric to the baseline, a row a value of the factor, with their intervals; a line at 1."""
    names = short_labels([label(found, it.value) for it in rows])
    base = label(found, found.values[0])
    with drawing(height=1.2 + 0.34 * len(rows)) as (figure, axes):
        axes.axvline(1.0, color=INK, linewidth=1)
        axes.set_xscale("log")
        low, high = _limits(rows)
        for row, it in enumerate(rows):
            if math.isfinite(it.test.ratio_low) and it.test.ratio_low > 0:
                axes.hlines(
                    row,
                    it.test.ratio_low,
                    min(it.test.ratio_high, 10 * high),
                    color=PALETTE[0],
                    linewidth=2.4,
                    alpha=0.55,
                )
            axes.plot([it.test.ratio], [row], _MARKERS.get(it.test.verdict, "o"), color=PALETTE[0], markersize=5.5)
        axes.set_xlim(low, high)
        _ticks(axes, low, high)
        axes.set_yticks(range(len(rows)), [names[label(found, it.value)] for it in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        name, under = title(rows[0].metric), f"times that under {short_labels([base])[base]}"
        axes.set_xlabel(f"{name},{chr(10) if len(name + under) > _WIDEST else ' '}{under}")
        return figure


_WIDEST = 48
"""Letters of the label of an axis that fit beside the names of the rows."""


def _limits(rows: Sequence[Compared]) -> tuple[float, float]:
    """From and to: all ratios, with their intervals where these are no wider than a factor of 10 to a side."""
    low, high = 0.5, 2.0
    for it in (it.test for it in rows):
        low = min(low, 0.9 * max(it.ratio_low if it.ratio_low == it.ratio_low else it.ratio, it.ratio / 10))
        high = max(high, 1.1 * min(it.ratio_high if it.ratio_high == it.ratio_high else it.ratio, it.ratio * 10))
    return low, high


def _ticks(axes: Axes, low: float, high: float) -> None:
    steps = [10.0**power * part for power in range(-6, 7) for part in ((1, 2, 5) if high / low < 200 else (1,))]
    ticks = [step for step in steps if low <= step <= high]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
