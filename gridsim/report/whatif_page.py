"""Page of `gridsim whatif`: sentences, a table, and figures of waits, in one self-contained file."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gridsim.model.capacity import NodeGroup
from gridsim.number_formatting import duration, listed, number
from gridsim.questions.changes import NOW, Effect, WhatIf
from gridsim.report import replications_text, whatif_text
from gridsim.report.figures import INK, PALETTE, drawing, name_rows, round_durations
from gridsim.report.gallery import Gallery
from gridsim.report.markup import breakable, environment, prose, style, texts
from gridsim.report.pictures import Drawing, Picture
from gridsim.report.whatif_text import FILE, NOTE, SHOWN, lines, node_text, sentences

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_text = texts("whatif")


def render(found: WhatIf, *, title: str, command: str, caveats: Sequence[str] = ()) -> str:
    """Return the text of the page.

    Parameters
    ----------
    title : str
        Title of the log.
    command : str
        The command line.
    caveats : sequence of str
        Notes after the results.
    """
    templates = environment(prose=prose, breakable=breakable, lines=lines)
    return templates.get_template("whatif.html.j2").render(
        title=title,
        command=command,
        found=found,
        sentences=[*sentences(found), *caveats],
        columns=list(SHOWN.values()),
        note=NOTE,
        file=FILE,
        parts=whatif_text.part_rows(found),
        parts_caption=f"{whatif_text.PARTS_CAPTION} under {found.policy}",
        parts_file=whatif_text.PARTS_FILE,
        pictures=[one.shown() for one in pictures(found)],
        replicated=[
            (replications_text.caption(it), whatif_text.replica_lines(it), f"{it.role}.csv") for it in found.replicated
        ],
        replicas_head=replications_text.HEAD,
        style=style("page.css"),
    )


def figures(found: WhatIf) -> Gallery:
    """Return the figures by name, for a notebook or a paper."""
    return Gallery(lambda: {one.drawing.name: one.drawing.figure for one in pictures(found)})


def pictures(found: WhatIf) -> Iterator[Picture]:
    """Return the figures: waits against cores if there are several sizes, and all changes."""
    curves = _curves(found)
    if curves:
        points = [
            ", ".join(f"{duration(_mean(one))} with {number(one.cores)}" for one in each) for each in curves.values()
        ]
        named = [f"{name}: {each}" if len(curves) > 1 else each for name, each in zip(curves, points, strict=True)]
        yield Picture(
            "Waits against cores",
            f"Mean wait under {found.policy} by the cores of the machine, with 95 % intervals of the change from now"
            f"{', a line for each type of node' if len(curves) > 1 else ''}: {'; '.join(named)}.",
            Drawing(sizes(found), "whatif-sizes"),
            FILE,
        )
    shown = [one for one in found.outcomes if one.wait is not None]
    if shown:
        yield Picture(
            "Waits under each change",
            _text("figure_caption", found=found, wait_mean=found[NOW].numbers["wait_mean"]),
            Drawing(changes(found), "whatif-changes"),
            FILE,
        )


def sizes(found: WhatIf) -> Figure:
    """Draw mean wait against cores of the machine, one line per node type with several numbers."""
    curves = _curves(found)
    with drawing() as (figure, axes):
        for (name, shown), color in zip(curves.items(), itertools.cycle(PALETTE)):
            cores = [one.cores for one in shown]
            axes.plot(cores, [_mean(one) for one in shown], "o-", color=color, markersize=5.5, label=name)
            for one in shown:
                if (interval := _interval(one)) is not None:
                    axes.vlines(one.cores, *interval, color=color, linewidth=2.4, alpha=0.55)
        now = found[NOW]
        axes.plot([now.cores], [_mean(now)], "o", color=INK, markersize=7)
        cores = sorted({one.cores for shown in curves.values() for one in shown})
        axes.set_xticks(cores, [f"{count:,}" for count in cores])
        if len(curves) > 1:
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1))
        axes.set_xlabel("cores of the machine")
        axes.set_ylabel("mean wait")
        axes.set_ylim(bottom=0)
        axes.set_yticks(*round_durations(axes.get_ylim()[1]))
        return figure


def changes(found: WhatIf) -> Figure:
    """Draw the mean wait under each change with its interval, one row per change, and a line at the present wait."""
    shown = [one for one in found.outcomes if one.label == NOW or one.wait is not None]
    with drawing(height=1.2 + 0.34 * len(shown)) as (figure, axes):
        axes.axvline(_mean(found[NOW]), color=INK, linewidth=1)
        for row, one in enumerate(shown):
            if (interval := _interval(one)) is not None:
                axes.hlines(row, *interval, color=PALETTE[0], linewidth=2.4, alpha=0.55)
            axes.plot([_mean(one)], [row], "o", color=INK if one.label == NOW else PALETTE[0], markersize=5.5)
        name_rows(axes, [one.label for one in shown])
        axes.set_xlim(left=0)
        axes.set_xticks(*round_durations(axes.get_xlim()[1]))
        axes.set_xlabel("mean wait")
        return figure


def _curves(found: WhatIf) -> dict[str, list[Effect]]:
    """Return machines with other numbers of nodes of one type, smallest first, by type.

    Types with a single other number are omitted, since two points are no curve.
    """
    now, by_type = found[NOW], dict[frozenset[NodeGroup], list[Effect]]()
    for one in found.outcomes:
        if one.cores != now.cores:
            by_type.setdefault(frozenset(each.node for each in one.nodes), [now]).append(one)
    return {
        f"nodes of {listed([node_text(node) for node in kind])}" if kind else "cores": sorted(
            several, key=lambda one: one.cores
        )
        for kind, several in by_type.items()
        if len(several) > 2
    }


def _mean(one: Effect) -> float:
    """Return the mean wait of the jobs that also ran in the unchanged case, s."""
    return one.numbers["wait_mean"] if one.wait is None else one.wait.policy_mean


def _interval(one: Effect) -> tuple[float, float] | None:
    """Return the mean wait at both ends of the interval of the change, s; None if unknown."""
    if one.wait is None or not math.isfinite(one.wait.ratio_low * one.wait.ratio_high):
        return None
    return one.wait.ratio_low * one.wait.baseline_mean, one.wait.ratio_high * one.wait.baseline_mean
