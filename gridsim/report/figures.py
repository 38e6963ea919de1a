"""Figures: functions that return a matplotlib `Figure` for records and metrics, and its SVG text for the page.

No metrics are computed here. Colours are those of Okabe and Ito, which colour-blind readers can distinguish, and lines
also differ in their dashes. `svg` replaces colours by CSS variables, so that a figure is readable in light and dark
mode.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gridsim.metrics.compare import Difference
from gridsim.metrics.fairness import FairnessOverTime
from gridsim.metrics.load_performance import Joint
from gridsim.metrics.responsiveness import measure
from gridsim.metrics.utilisation import Steps
from gridsim.model.dates import Calendar, calendar_of
from gridsim.model.time import FloatArray
from gridsim.number_formatting import duration, percent
from gridsim.record import Record
from gridsim.report.calendar import ticks
from gridsim.report.curves import busy_share, distribution, waiting

if TYPE_CHECKING:  # matplotlib takes 0.5 s to import; only a page needs it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gridsim.questions.evidence import GroupRow


PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#f0e442")
"""Colours of policies in order (Okabe and Ito 2008, without black), used cyclically."""

DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
"""Dashes of lines in the order of policies, used cyclically."""

SHARED = 5
"""Largest number of policies whose lines share a chart; more have a chart each."""

INK = "#010203"
"""Colour of text and similar elements."""

_RULE = "#040506"
_BETTER, _SAME, _WORSE = "#0a0b0c", "#0d0e0f", "#101112"
_SIZE = (5.4, 3.3)
_LONGEST = 24

ON_PAPER = {
    INK: "#1a1a1a",
    _RULE: "#d0d0d0",
    _BETTER: "#009e73",
    _SAME: "#b0b0b0",
    _WORSE: "#d55e00",
}
"""Colours on white paper for the colours that the page sets by style."""

RC: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gridsim",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.edgecolor": _RULE,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": _RULE,
    "grid.linewidth": 0.5,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "lines.linewidth": 1.8,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}
"""Settings of matplotlib for all figures."""


@contextmanager
def drawing(height: float = _SIZE[1]) -> Iterator[tuple[Figure, Axes]]:
    """Return a figure in gridsim's style, and its axes.

    Parameters
    ----------
    height : float
        Height, inches.
    """
    import matplotlib  # 0.5 s: only if a figure is made
    from matplotlib.figure import Figure

    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(_SIZE[0], height), layout="constrained")
        yield figure, figure.add_subplot()


@contextmanager
def _panels(labels: Sequence[str]) -> Iterator[tuple[Figure, dict[str, Axes]]]:
    """Return a figure of lines and the axes of each policy: one for at most `SHARED` policies, else one for each.

    Scales are set on the first axes and apply to all. The legend, titles and outer labels are added at the end.
    """
    if len(labels) <= SHARED:
        with drawing() as (figure, axes):
            yield figure, dict.fromkeys(labels, axes)
            legend(axes, labels)
        return
    rows = -(-len(labels) // 2)
    with drawing(height=0.7 + 1.2 * rows) as (figure, axes):
        axes.remove()
        grid = figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False).flatten().tolist()
        panels = dict(zip(labels, grid, strict=False))
        yield figure, panels
        for label, title in short_labels(labels).items():
            panels[label].set_title(title, loc="left", fontsize=9.0, pad=3.0)
        for spare in grid[len(labels) :]:
            spare.remove()
            grid[len(labels) - 2].tick_params(axis="x", labelbottom=True)
        _thin(grid[0])
        figure.supxlabel(grid[0].get_xlabel(), fontsize=10.0)
        figure.supylabel(grid[0].get_ylabel(), fontsize=10.0)
        grid[0].set(xlabel="", ylabel="")


def _thin(axes: Axes) -> None:
    """Keep every second label of the horizontal axis of a narrow chart, from the first one, if there are many."""
    from matplotlib.ticker import FixedLocator

    ticks, shown = axes.get_xticks(), axes.xaxis.get_major_formatter()
    if isinstance(axes.xaxis.get_major_locator(), FixedLocator) and len(ticks) > _NARROW_TICKS:
        axes.set_xticks(ticks, ["" if place % 2 else shown(tick, place) for place, tick in enumerate(ticks)])


_NARROW_TICKS = 4
"""Largest number of labels of a narrow chart."""

_EVERY = 4
"""One of so many points of the first policy is drawn in the charts of the others, which keeps pages small."""


def svg(figure: Figure, name: str) -> str:
    """Return the figure as an ``<svg>`` element for the page: deterministic, with colours as CSS variables.

    Parameters
    ----------
    name : str
        Prefix that makes the ids of this figure unique on the page.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    FigureCanvasSVG(figure)  # the layout measures texts as they are written
    with matplotlib.rc_context({**RC, "svg.hashsalt": f"gridsim {name}"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the page uses the fonts of the reader
        if (layout := figure.get_layout_engine()) is not None:
            layout.execute(figure)
            figure.set_layout_engine("none")  # else savefig draws the figure twice
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :].rstrip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"font-family: [^;\"]*; ?", "", text)  # the page has its own
    text = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), text)
    text = re.sub(r"\s*\n\s*", "\n", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = text.replace('"url(#', f'"url(#{name}-').replace('href="#', f'href="#{name}-')
    for colour, variable in _variables():
        text = re.sub(re.escape(colour), f"var({variable})", text, flags=re.IGNORECASE)
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text).replace("xlink:href=", "href=")
    return text.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)


def _variables() -> Iterator[tuple[str, str]]:
    yield from ((INK, "--ink"), (_RULE, "--rule"), (_BETTER, "--better"), (_SAME, "--same"), (_WORSE, "--worse"))
    yield from ((colour, f"--policy-{index}") for index, colour in enumerate(PALETTE))


def waits(records: Mapping[str, Record], rows: Any = slice(None)) -> Figure:
    """Draw the share of jobs by wait, on a logarithmic axis that begins at "none"."""

    def finish(axes: Axes, _: float) -> None:
        axes.set_xlabel("wait")
        duration_ticks(axes, (0, 60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400), linear_to=10.0)

    return _distribution(records, lambda record: record.wait[rows], finish, linear_to=10.0)


def responses(records: Mapping[str, Record], rows: Any = slice(None)) -> Figure:
    """Draw the share of jobs by response time, on a logarithmic axis."""

    def finish(axes: Axes, _: float) -> None:
        axes.set_xlabel("response")
        every = (1, 10, 60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
        known = [tick for tick in every if tick <= axes.get_xlim()[1]]
        axes.set_xticks(known, [duration(tick) for tick in known])

    return _distribution(records, lambda record: record.response[rows], finish)


def slowdowns(records: Mapping[str, Record], rows: Any = slice(None), *, bound: float = 10.0) -> Figure:
    """Draw the share of jobs by bounded slowdown."""

    def finish(axes: Axes, _: float) -> None:
        axes.set_xlabel(f"bounded slowdown (bound {bound:g} s)")
        ticks = [tick for tick in 10.0 ** np.arange(0, 9) if tick <= axes.get_xlim()[1]]
        axes.set_xticks(ticks, ["1", *(f"{tick:,.0f}" for tick in ticks[1:])])

    return _distribution(records, lambda record: measure(record, "bounded_slowdown", bound)[rows], finish)


def schedule_lengths(records: Mapping[str, Record], rows: Any = slice(None)) -> Figure:
    """Draw the share of DAG jobs by SLR."""

    def finish(axes: Axes, top: float) -> None:
        axes.set_xlim(1.0, max(1.1, top * 1.02))
        axes.set_xlabel("schedule length ratio (SLR)")
        ticks = [tick for tick in (1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, *10.0 ** np.arange(2, 9)) if tick <= top * 1.02]
        if len(ticks) > _MOST_TICKS:
            ticks = [tick for tick in 10.0 ** np.arange(0, 9) if tick <= top * 1.02]
        axes.set_xticks(ticks, [f"{tick:,.10g}" for tick in ticks])

    return _distribution(records, lambda record: measure(record, "slr")[rows], finish)


_MOST_TICKS = 9


def _distribution(
    records: Mapping[str, Record],
    values: Callable[[Record], FloatArray],
    finish: Callable[[Axes, float], None],
    *,
    linear_to: float | None = None,
) -> Figure:
    """Draw the cumulative shares; *finish* labels the first axes, for the largest value.

    In separate charts, a thin line is the first policy.
    """
    found = {label: distribution(values(record)) for label, record in records.items()}
    largest = max((float(it.value[-1]) for it in found.values() if len(it.value)), default=1.0)
    with _panels(list(records)) as (figure, panels):
        axes = panels[next(iter(records))]
        for index, (label, (x, share)) in enumerate(found.items()):
            if len(x):
                panels[label].step([x[0], *x], [0, *share], where="post", label=label, **_line(index))
        for other in (it for it in panels.values() if it is not axes):
            first = found[next(iter(records))]
            other.step(first.value[::_EVERY], first.share[::_EVERY], where="post", color=INK, linewidth=0.8, alpha=0.5)
        if linear_to is None:
            axes.set_xscale("log")
            axes.set_xlim(1.0, max(10.0, largest))
        else:
            axes.set_xscale("symlog", linthresh=linear_to, linscale=0.4)
            axes.set_xlim(0, max(60.0, largest))
        axes.set_ylim(0, 1.01)
        axes.set_ylabel("share of jobs")
        share_ticks(axes)
        finish(axes, largest)
        axes.minorticks_off()
        return figure


def utilisation(records: Mapping[str, Record], courses: Mapping[str, Steps] | None = None) -> Figure:
    """Draw the busy share of the machine over time, as means of equal bins or given *courses* by policy."""
    with _panels(list(records)) as (figure, panels):
        axes = _over_time(
            panels, list(records), busy_share(records) if courses is None else courses, _calendar(records)
        )
        axes.set_ylim(0, 1.01)
        axes.set_ylabel("busy share of the cores")
        share_ticks(axes)
        return figure


def queue(records: Mapping[str, Record]) -> Figure:
    """Draw the waiting jobs (ready tasks) over time, as means of equal bins."""
    with _panels(list(records)) as (figure, panels):
        axes = _over_time(panels, list(records), waiting(records), _calendar(records))
        _count_axis(axes, figure)
        of_dags = next(iter(records.values())).tasks is not None
        axes.set_ylabel("waiting tasks" if of_dags else "waiting jobs")
        return figure


def load_against_slowdown(found: Mapping[str, Joint]) -> Figure:
    """Draw days as points: offered load against mean bounded slowdown of submitted jobs, with a symbol per policy."""
    with drawing() as (figure, axes):
        for place, (label, it) in enumerate(found.items()):
            shape: dict[str, Any] = {"s": 16, "alpha": 0.65, "linewidths": 0}
            colour, sign = PALETTE[place % len(PALETTE)], _SIGNS[place % len(_SIGNS)]
            axes.scatter(it.load, it.slowdown, color=colour, marker=sign, label=label, **shape)
        axes.set_yscale("log", base=2)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=1)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.xaxis.set_major_formatter(lambda value, _: percent(value))
        axes.set_xlabel("offered load of a day")
        axes.set_ylabel("mean bounded slowdown")
        if len(found) > 1:
            legend(axes)
        return figure


_SIGNS = ("o", "s", "^", "D", "v", "P", "X", "p")
"""Symbols of points, in the order of policies."""


def inequality(
    found: Mapping[str, FairnessOverTime], labels: Sequence[str], calendar: Calendar | None = None
) -> Figure:
    """Draw the Gini coefficient of users' slowdowns over time, one step per period.

    Parameters
    ----------
    found : mapping of str to FairnessOverTime
        Fairness by policy.
    labels : sequence of str
        Policies in the order of colours.
    calendar : Calendar, optional
        Calendar that converts seconds to dates.
    """
    with _panels(labels) as (figure, panels):
        axes = _over_time(panels, labels, {label: _steps(it.edges_s, it.gini) for label, it in found.items()}, calendar)
        axes.set_ylim(0, 1.01)
        axes.set_ylabel("inequality between users (Gini)")
        return figure


def largest_share(
    found: Mapping[str, FairnessOverTime], labels: Sequence[str], calendar: Calendar | None = None
) -> Figure:
    """Draw the share of the machine held by the largest users over time; parameters as for `inequality`."""
    with _panels(labels) as (figure, panels):
        axes = _over_time(
            panels, labels, {label: _steps(it.edges_s, it.share) for label, it in found.items()}, calendar
        )
        axes.set_ylim(0, 1.01)
        axes.set_ylabel("share of the cores")
        share_ticks(axes)
        return figure


def _calendar(records: Mapping[str, Record]) -> Calendar | None:
    return calendar_of(next(iter(records.values())).workload.provenance)


def _steps(edges_s: FloatArray, values: FloatArray) -> Steps:
    return Steps(edges_s, np.append(values, values[-1]))


def _over_time(
    panels: Mapping[str, Axes], labels: Sequence[str], courses: Mapping[str, Steps], calendar: Calendar | None
) -> Axes:
    """Draw a step line per policy; return the first axes, which share their scales with the others."""
    axes = panels[labels[0]]
    first = min((float(steps.times_s[0]) for steps in courses.values()), default=0.0)
    last = max((float(steps.times_s[-1]) for steps in courses.values()), default=1.0)
    unit, name = (1.0, "") if calendar else _time_unit(last - first)
    for label, steps in courses.items():
        values = np.append(steps.values[:-1], steps.values[-2])
        index = labels.index(label)
        behind = len(labels) - 1 - index if len(labels) <= SHARED else 0  # equal lines stay visible below each other
        style: dict[str, Any] = {"color": PALETTE[index % len(PALETTE)], "linewidth": 1.2 + 0.6 * behind, "alpha": 0.85}
        panels[label].step((steps.times_s - first) / unit, values, where="post", label=label, **style)
    axes.set_xlim(0, (last - first) / unit)
    if calendar:
        date_ticks(axes, calendar, first, last)
    else:
        axes.set_xlabel(f"{name} since the first submission")
    return axes


def date_ticks(axes: Axes, calendar: Calendar, first: float, last: float) -> None:
    """Label an axis of seconds with dates from *first* on; the axis label is their common part and the zone."""
    import matplotlib.dates

    dates = cast("Any", matplotlib.dates)  # without type annotations
    places = dates.AutoDateLocator(tz=calendar.zone, minticks=3, maxticks=7).tick_values(
        calendar.date(first), calendar.date(last)
    )
    seconds = [round(calendar.seconds(dates.num2date(place, calendar.zone)), 3) for place in places]
    shown = [second for second in seconds if first <= second <= last]
    texts, label = ticks(calendar, shown)
    axes.set_xticks([second - first for second in shown], texts)
    axes.set_xlabel(label)


def groups(rows: Sequence[GroupRow], labels: Sequence[str], *, unit: str = "cores", what: str = "mean wait") -> Figure:
    """Draw the ratio of mean waits to the baseline's by group, with interval; ratios below 1 are better.

    Groups without a significant difference are hollow. Intervals are clipped at the edges of the figure.

    Parameters
    ----------
    rows : sequence of GroupRow
        Rows of one kind of group.
    labels : sequence of str
        Policies in the order of colours.
    unit : str
        Label of the group names.
    what : str
        Name of the compared metric.
    """
    names = list(dict.fromkeys(row.group for row in rows))
    policies = [label for label in labels if any(row.policy == label for row in rows)]
    spread = 0.7 / max(1, len(policies))
    with drawing(height=1.3 + 0.27 * len(names) * max(1.0, 0.62 * len(policies))) as (figure, axes):
        for number, policy in enumerate(policies):
            own = [row for row in rows if row.policy == policy and np.isfinite(row.ratio)]
            y = np.array([names.index(row.group) + (number - (len(policies) - 1) / 2) * spread for row in own])
            colour = PALETTE[labels.index(policy) % len(PALETTE)]
            low = np.array([row.ratio_low for row in own], dtype=float)
            high = np.array([row.ratio_high for row in own], dtype=float)
            known = np.isfinite(low) & np.isfinite(high)
            axes.hlines(y[known], np.maximum(low[known], 1e-4), high[known], color=colour, linewidth=2.4, alpha=0.55)
            marker = "osD^vP"[labels.index(policy) % 6]
            clear = np.array([row.verdict in ("better", "worse") for row in own], dtype=bool)
            ratios = np.array([row.ratio for row in own], dtype=float)
            style: dict[str, Any] = {"color": colour, "markersize": 5.5, "linestyle": "none", "marker": marker}
            axes.plot(ratios[clear], y[clear], label=policy, **style)
            axes.plot(ratios[~clear], y[~clear], markerfacecolor="none", markeredgewidth=1.3, **style)
        axes.axvline(1.0, color=INK, linewidth=1)
        axes.set_xscale("log")
        _ratio_ticks(axes, rows)
        name_rows(axes, [_short(_printable(name)) for name in names])
        axes.set_ylabel(unit)
        baseline = rows[0].baseline if rows else ""
        under = short_labels([*labels, *([] if baseline in labels else [baseline])])[baseline]
        axes.set_xlabel("\n".join(wrap(f"{what}, times that under {under}", 44)))
        legend(axes, labels)
        return figure


def job_by_job(
    differences: Sequence[Difference], *, words: tuple[str, str, str] = ("wait less", "the same", "wait longer")
) -> Figure:
    """Draw the shares of jobs that wait less, equally long and longer, one bar per pair of policies.

    Parameters
    ----------
    words : tuple of str
        Names of a lower, an equal and a higher value.
    """
    short = short_labels(list(dict.fromkeys(label for it in differences for label in (it.policy, it.baseline))))
    names = [f"{short[it.policy]} against {short[it.baseline]}" for it in differences]
    parts = [
        (label, {"color": colour}, np.array([getattr(it, title) for it in differences]))
        for label, title, colour in zip(words, ("better", "same", "worse"), (_BETTER, _SAME, _WORSE), strict=True)
    ]
    return _shares(names, parts, "share of jobs")


def deadlines(outcomes: Mapping[str, Mapping[str, int]]) -> Figure:
    """Draw the outcomes of requested deadlines, one bar per policy.

    Parameters
    ----------
    outcomes : mapping of str to mapping
        Results of `gridsim.metrics.deadlines.outcomes` by label.
    """
    short = short_labels(list(outcomes))
    total = sum(next(iter(outcomes.values())).values())
    parts = [
        (name, _OUTCOMES[name], np.array([counts[name] for counts in outcomes.values()]) / total)
        for name in _OUTCOMES
        if any(counts[name] for counts in outcomes.values())
    ]
    return _shares([short[label] for label in outcomes], parts, "share of the jobs that request a deadline")


_OUTCOMES: Mapping[str, dict[str, Any]] = {
    "guaranteed": {"color": _BETTER},
    "guaranteed later": {"color": _BETTER, "alpha": 0.6},
    "met without a guarantee": {"color": _SAME},
    "missed": {"color": _WORSE, "alpha": 0.6},
    "rejected": {"color": _WORSE},
}


def _shares(names: Sequence[str], parts: Sequence[tuple[str, dict[str, Any], FloatArray]], what: str) -> Figure:
    """Draw stacked bars of shares, one bar per name, which is above it."""
    with drawing(height=1.2 + 0.56 * len(names)) as (figure, axes):
        left = np.zeros(len(names))
        for label, style, shares in parts:
            axes.barh(range(len(names)), shares, 0.5, left=left, label=label, **style)
            for row, share in enumerate(shares):
                if share > 0.08:
                    axes.text(
                        left[row] + share / 2, row, percent(round(share, 2)), ha="center", va="center", fontsize=9
                    )
            left += shares
        axes.set_xlim(0, 1)
        ticks = [0, 0.25, 0.5, 0.75, 1]
        axes.set_xticks(ticks, [percent(tick) for tick in ticks])
        axes.set_xlabel(what)
        axes.set_yticks([])
        for row, name in enumerate(names):
            axes.text(0, row - 0.29, name, ha="left", va="bottom", fontsize=9)
        axes.set_ylim(len(names) - 0.6, -0.75)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        legend(axes)
        return figure


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Give each row of a chart a name, the first at the top, without lines and ticks."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def legend(axes: Axes, among: Sequence[str] = ()) -> None:
    """Add a legend above the figure with as many columns as fit; labels are shortened as for all of *among*."""
    handles, labels = axes.get_legend_handles_labels()
    every = short_labels([*among, *(label for label in labels if label not in among)])
    short = {label: every[label] for label in labels}
    wide = [len(text) + 9 for text in short.values()]  # with the symbol; the figure is 66 letters wide
    fit = (each for each in range(len(wide), 1, -1) if sum(map(max, np.array_split(wide, each))) <= 66)
    columns = next(fit, 1)
    rows = -(-len(labels) // columns)
    if rows > 1:
        axes.figure.set_figheight(axes.figure.get_figheight() + 0.19 * (rows - 1))  # type: ignore[union-attr]
    if handles:
        place: dict[str, Any] = {"loc": "outside upper left", "ncols": columns, "handlelength": 1.8}
        axes.figure.legend(handles, [short[label] for label in labels], **place)


def short_labels(labels: Sequence[str]) -> dict[str, str]:
    """Shorten labels for a legend: if one is long, common parts are removed from all, then the middle of long ones.

    Examples
    --------
    >>> list(short_labels(["easy", "backfilling?ordering=wfp3&reserve=easy"]).values())
    ['easy', 'backfilling?…eserve=easy']
    >>> list(short_labels([f"backfilling?ordering={name}&reserve=easy" for name in ("sjf", "wfp3")]).values())
    ['ordering=sjf', 'ordering=wfp3']
    """
    if all(len(label) <= _LONGEST for label in labels):
        return {label: label for label in labels}
    parts = {label: re.split(r"[?&]", label) for label in labels}
    common = set.intersection(*map(set, parts.values())) if len(labels) > 1 else set()
    own = {label: "&".join(part for part in parts[label] if part not in common) if common else "" for label in labels}
    short: dict[str, str] = {}
    for number, (label, text) in enumerate(own.items(), start=1):
        shown = _short(text or label)
        short[label] = shown if shown not in short.values() else f"{number}: {shown[: _LONGEST - 4]}"
    return short


def _short(label: str) -> str:
    """Remove the middle of a long label, at word boundaries if possible.

    Examples
    --------
    >>> _short("more weight on the size of jobs"), _short("backfilling?ordering=wfp3&reserve=easy")
    ('more weight … of jobs', 'backfilling?…eserve=easy')
    """
    half = _LONGEST // 2
    if len(label) <= _LONGEST:
        return label
    head, _, _ = label[: half + 1].rpartition(" ")
    _, _, tail = label[-half:].partition(" ")
    return f"{head.strip()} … {tail.strip()}" if head and tail else f"{label[:half]}…{label[1 - half :]}"


def _printable(name: str) -> str:
    """Return a name from a log on one line."""
    return "".join(letter if letter.isprintable() else "�" for letter in name)


def _count_axis(axes: Axes, figure: Figure) -> None:
    """Scale an axis from 0; logarithmic above 10 if one line would compress the others."""
    lines = [line for each in figure.axes for line in each.lines]
    tops = [float(np.max(np.asarray(line.get_ydata()), initial=0.0)) for line in lines]
    if max(tops, default=0) > 10 * max(min(tops, default=0), 10):
        axes.set_yscale("symlog", linthresh=10, linscale=0.6)
        ticks = [tick for tick in (0, 10, 100, 1_000, 10_000, 100_000, 1_000_000) if tick <= 2 * max(tops)]
        axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.minorticks_off()
    else:
        axes.locator_params(axis="y", integer=True)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylim(bottom=0)


def _line(index: int) -> dict[str, Any]:
    return {"color": PALETTE[index % len(PALETTE)], "linestyle": DASHES[index % len(DASHES)]}


def share_ticks(axes: Axes) -> None:
    """Label a vertical axis of shares from 0 to 1."""
    ticks = [0, 0.2, 0.4, 0.6, 0.8, 1.0]
    axes.set_yticks(ticks, [percent(tick) for tick in ticks])


def duration_ticks(axes: Axes, ticks: Sequence[float], *, linear_to: float) -> None:
    """Label a horizontal axis with those durations of *ticks* (s) that it contains."""
    limit = axes.get_xlim()[1]
    shown = [tick for tick in ticks if tick <= limit]
    axes.set_xticks(shown, ["none" if not tick else duration(tick) for tick in shown])
    axes.set_xlim(-0.04 * linear_to, limit * 1.05)
    axes.minorticks_off()


def _ratio_ticks(axes: Axes, rows: Sequence[GroupRow]) -> None:
    values = np.array([row.ratio for row in rows if row.ratio > 0], dtype=float)
    low = float(np.clip(values.min(initial=0.7) / 2, 0.0005, 0.5))
    high = float(np.clip(values.max(initial=1.4) * 2, 2.0, 200.0))
    steps: tuple[float, ...] = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)
    if high / low > 200:
        steps = (0.001, 0.01, 0.1, 1, 10, 100)
    shown = [tick for tick in steps if low <= tick <= high]
    axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
    axes.set_xlim(low, high)
    axes.minorticks_off()


def _time_unit(span: float) -> tuple[float, str]:
    for size, name in ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")):
        if span >= 3 * size:
            return size, name
    return 1.0, "seconds"


_STEPS = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600, 86_400, 2 * 86_400, 7 * 86_400)
_MOST = 6


def round_durations(top: float) -> tuple[list[float], Any]:
    """Return ticks at round times from 0 to *top* seconds, and their labels."""
    step = next(
        (step for step in _STEPS if top / step <= _MOST),
        30 * 86_400 * math.ceil(top / _MOST / 30 / 86_400),
    )
    ticks = [float(step * place) for place in range(int(top / step) + 1)]
    return ticks, ["none", *map(duration, ticks[1:])]
