"""Figure of the share of kept promises by slack when estimates are inaccurate, drawn from stored rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gridsim import InputError
from gridsim.number_formatting import percent
from gridsim.report.figures import DASHES, PALETTE, RC

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PLACES", "slack_figure"]

PLACES = {
    "reserve": "kept in reserve\n(planned for less than is promised)",
    "request": "in every request\n(planned for what is promised)",
    "offer": "in later offers only\n(FQoPS, patient users)",
}
"""Places where slack is applied, with the titles of their panels."""

_SHOWN = {"kept_share": "promises kept", "deadline_unadmitted_share": "jobs turned away"}
_MARKERS = "osD^vP"

Row = Mapping[str, Any]


def slack_figure(rows: Sequence[Row]) -> Figure:
    """Draw the shares of kept promises and of rejected jobs by slack: a column per place of slack, a line per spread.

    Parameters
    ----------
    rows : sequence of mapping
        With ``window``, ``spread``, ``slack_by``, ``slack`` (promised response divided by the requested or planned
        response), ``metric`` and ``value``. Lines are means over windows; bars extend from the minimum to the maximum.

    Raises
    ------
    InputError
        When there are no rows to draw.
    """
    import matplotlib  # the import takes half a second, so it happens only when a figure is drawn
    from matplotlib.figure import Figure

    shown = [row for row in rows if row["slack_by"] in PLACES and row["metric"] in _SHOWN]
    if not shown:
        raise InputError("no rows of slack to draw; run the study first", field="rows")
    with matplotlib.rc_context({**RC, "grid.alpha": 0.2}):
        figure = Figure(figsize=(9.0, 5.4), layout="constrained")
        grid = figure.subplots(len(_SHOWN), len(PLACES), sharex=True, sharey="row", squeeze=False)
        for line, (metric, title) in zip(grid, _SHOWN.items(), strict=True):
            for axes, place in zip(line, PLACES, strict=True):
                _panel(axes, [row for row in shown if (row["slack_by"], row["metric"]) == (place, metric)])
            _share_axis(line[0])
            line[0].set_ylabel(title)
        for axes, title in zip(grid[0], PLACES.values(), strict=True):
            axes.set_title(title, fontsize=10)
        _slack_axis(grid[-1], sorted({row["slack"] for row in shown}))
        handles, labels = grid[0][0].get_legend_handles_labels()
        title = "estimates, of which two in three are wrong by at most"
        figure.legend(handles, labels, loc="outside upper left", ncols=len(labels), handlelength=2.2, title=title)
        return figure


def _panel(axes: Axes, rows: Sequence[Row]) -> None:
    for index, (spread, points) in enumerate(_lines(rows)):
        slacks = sorted(points)
        means = np.array([np.mean(points[slack]) for slack in slacks])
        low, high = (np.array([reach(points[slack]) for slack in slacks]) for reach in (min, max))
        axes.errorbar(
            slacks,
            means,
            yerr=np.maximum([means - low, high - means], 0),
            color=PALETTE[index % len(PALETTE)],
            linestyle=DASHES[index % len(DASHES)],
            marker=_MARKERS[index % len(_MARKERS)],
            markersize=4,
            elinewidth=0.8,
            label="nothing" if not spread else f"a factor of {np.exp(spread):.2g}",
        )


def _lines(rows: Sequence[Row]) -> Iterator[tuple[float, dict[float, list[float]]]]:
    """Values of all windows by slack, for each spread."""
    for spread in sorted({row["spread"] for row in rows}):
        points: dict[float, list[float]] = {}
        for row in rows:
            if row["spread"] == spread:
                points.setdefault(row["slack"], []).append(row["value"])
        yield spread, points


def _slack_axis(line: Sequence[Axes], slacks: Sequence[float]) -> None:
    """Use a logarithmic axis, on which equal factors are equal distances."""
    for axes in line:
        axes.set_xscale("log")
        axes.set_xticks(slacks, [f"{slack:g}" for slack in slacks])
        axes.minorticks_off()
    line[len(line) // 2].set_xlabel("slack: response promised, over that planned with, asked for, or found")


def _share_axis(axes: Axes) -> None:
    """Label ticks with whole per cents."""
    axes.locator_params(axis="y", steps=(1, 2, 5, 10))
    axes.yaxis.set_major_formatter(lambda value, place: percent(round(float(value), 6)))
