"""Figures and tables of many schedules: one function per figure, drawn from stored rows without simulation.

Rows are those of `gridsim.metrics.campaign`: ``kind``, ``workload``, ``load``, ``policy``, ``metric``, ``value``, and
``decile`` for numbers by decile. `FIGURES` and `TABLES` name those of Burkimsher, Bate and Indrusiak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from gridsim import InputError
from gridsim.metrics.campaign import Paired, PolicyComparison, Rows, compare_policies, tidy
from gridsim.metrics.dag import DAG_METRICS
from gridsim.model.time import FloatArray
from gridsim.number_formatting import percent
from gridsim.report.figures import DASHES, INK, PALETTE, drawing, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "FIGURES",
    "POLICIES",
    "PRINTED_DOMINANCE",
    "PRINTED_INDUSTRIAL",
    "TABLES",
    "Average",
    "DominanceRow",
    "against_load",
    "bars",
    "box_by_policy",
    "by_decile",
    "dominance_table",
    "dominance_text",
    "industrial_table",
]

POLICIES = {
    "p-slr": "P-SLR",
    "srtf": "SRTF",
    "fair-share": "Fair Share",
    "random": "Random",
    "fifo-task": "FIFO Task",
    "fifo-job": "FIFO Job",
    "lrtf": "LRTF",
}
"""Policies of the paper with their titles, in the order of their colours."""

TITLES = {
    "mean_slr": "mean SLR",
    "worst_slr": "worst SLR",
    "sd_slr": "standard deviation of SLR",
    "utilisation": "average utilisation",
    "utilisation_arrivals": "utilisation, first to last arrival",
    "cumulative_completion": "cumulative completion",
    "peak_in_flight": "peak in-flight, jobs",
}
"""Labels of axes; other metrics are labelled with their names."""

Average = Literal["mean", "geometric"]

_SHARES = ("utilisation", "utilisation_arrivals")
_DECIMALS_UP_TO = 100_000


def box_by_policy(
    rows: Rows, metric: str, *, policies: Sequence[str] | None = None, outliers: bool = False, log: bool = True
) -> Figure:
    """Draw quartiles of a metric over all schedules of each policy; whiskers extend to the last value within 1.5 IQR.

    Parameters
    ----------
    policies : sequence of str, optional
        Policies to draw, in this order; by default all.
    outliers : bool
        Show the values beyond the whiskers.
    log : bool
        Logarithmic axis. Quartiles and whiskers are those of the values, not of their logarithms.
    """
    values = _values(rows, metric, policies)
    with drawing(height=0.9 + 0.36 * len(values)) as (figure, axes):
        axes.set_axisbelow(True)
        drawn = axes.boxplot(
            [column[np.isfinite(column)] for column in values.values()],
            orientation="horizontal",
            whis=1.5,
            showfliers=outliers,
            widths=0.6,
            patch_artist=True,
            medianprops={"color": INK, "linewidth": 1.6},
            whiskerprops={"color": INK},
            capprops={"color": INK},
            flierprops={"marker": ".", "markersize": 3, "markeredgecolor": INK, "alpha": 0.5},
        )
        for patch, policy in zip(drawn["boxes"], values, strict=True):
            patch.set_facecolor(_colour(policy, values))
            patch.set_edgecolor(INK)
            patch.set_alpha(0.75)
        axes.set_yticks(range(1, len(values) + 1), [_title(policy) for policy in values])
        axes.invert_yaxis()
        _horizontal(axes, metric, log=log)
        return figure


def by_decile(
    rows: Rows,
    metric: str = "mean_slr",
    *,
    load: float | None = None,
    policies: Sequence[str] | None = None,
    average: Average = "mean",
    log: bool = True,
) -> Figure:
    """Draw a metric by decile of job execution time, averaged over schedules, with a line per policy.

    Parameters
    ----------
    load : float, optional
        Only schedules at this load ratio; by default all.
    average : {"mean", "geometric"}
        Over schedules.
    """
    chosen = list(_at(tidy(rows, metric=metric), load))
    deciles = sorted({row["decile"] for row in chosen if row.get("decile") is not None})
    if not deciles:
        raise InputError(f"no row has the metric '{metric}' by decile" + (f" at load {load:g}" if load else ""))
    with drawing() as (figure, axes):
        _lines(axes, chosen, "decile", deciles, policies, average)
        axes.set_xticks(deciles)
        axes.set_xlabel("decile of job execution time, smallest jobs first")
        axes.set_ylabel(_average_title(metric, average))
        if log:
            _log_axis(axes, "y")
        legend(axes)
        return figure


def against_load(
    rows: Rows,
    metric: str,
    *,
    policies: Sequence[str] | None = None,
    average: Average = "mean",
    log: bool = True,
) -> Figure:
    """Draw the average of a metric over schedules against the load ratio, with a line per policy."""
    chosen = list(tidy(rows, metric=metric, decile=None))
    loads = sorted({float(row["load"]) for row in chosen})
    with drawing() as (figure, axes):
        _lines(axes, chosen, "load", loads, policies, average)
        axes.set_xticks(loads, [percent(load) for load in loads])
        axes.set_xlabel("load")
        axes.set_ylabel(_average_title(metric, average))
        if log:
            _log_axis(axes, "y")
        legend(axes)
        return figure


def bars(rows: Rows, metric: str, *, policies: Sequence[str] | None = None, log: bool = True) -> Figure:
    """Draw a metric of one schedule per policy, with its value; the mean of several (seeds of Random)."""
    values = {policy: float(column.mean()) for policy, column in _values(rows, metric, policies).items()}
    with drawing(height=0.9 + 0.34 * len(values)) as (figure, axes):
        colours = [_colour(policy, values) for policy in values]
        axes.set_axisbelow(True)
        drawn = axes.barh(range(len(values)), list(values.values()), 0.66, color=colours, alpha=0.85)
        axes.bar_label(drawn, [_number(value, metric) for value in values.values()], padding=4, fontsize=9)
        axes.set_yticks(range(len(values)), [_title(policy) for policy in values])
        axes.invert_yaxis()
        positive = [value for value in values.values() if value > 0]
        if log and positive:
            floor = 10.0 ** (math.ceil(math.log10(min(positive))) - 1)
            axes.set_xscale("log")
            axes.set_xlim(floor, max(positive) * (max(positive) / floor) ** 0.18)
        else:
            axes.set_xlim(0, 1.15 * max(values.values()))
        _horizontal(axes, metric, log=log)
        return figure


class DominanceRow(NamedTuple):
    """A cell of Tables 3 and 4: how often the policy is no worse, and whether the difference is significant.

    ``significant`` is the paper's t-test of the values at 0.05, ``significant_log`` that of log ratios after Holm's
    correction; ``printed`` is the paper's number, or None.
    """

    metric: str
    policy: str
    other: str
    load: float
    dominance: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int
    p: float
    significant: bool
    ratio: float
    ratio_low: float
    ratio_high: float
    p_log_holm: float
    significant_log: bool
    printed: float | None


def dominance_table(
    rows: Rows | Sequence[PolicyComparison], metric: str, *, policy: str = "p-slr", confidence: float = 0.95
) -> list[DominanceRow]:
    """Tables 3 (``worst_slr``) and 4 (``mean_slr``): a row for each other policy and load.

    Parameters
    ----------
    rows : rows or sequence of PolicyComparison
        Stored values, or the result of `compare_policies` on them, which avoids computing it again.
    """
    if isinstance(rows, Sequence) and rows and isinstance(rows[0], PolicyComparison):
        found = [one for one in rows if isinstance(one, PolicyComparison)]
    else:
        found = compare_policies(Paired.from_rows(rows, metric), policy, confidence=confidence)  # type: ignore[arg-type]
    cells = [
        it for it in found if it.load is not None and it.kind is None and (it.metric, it.policy) == (metric, policy)
    ]
    order = {name: place for place, name in enumerate(PRINTED_DOMINANCE["worst_slr"])}
    cells.sort(key=lambda it: (order.get(it.other, len(order)), it.other, it.load))
    return [_dominance_row(it, 1 - confidence) for it in cells]


def _dominance_row(one: PolicyComparison, level: float) -> DominanceRow:
    load = float(one.load or 0)
    printed = PRINTED_DOMINANCE.get(one.metric, {}).get(one.other, {}) if one.policy == "p-slr" else {}
    return DominanceRow(
        metric=one.metric,
        policy=one.policy,
        other=one.other,
        load=load,
        dominance=one.dominance,
        low=one.dominance_low,
        high=one.dominance_high,
        wins=one.wins,
        ties=one.ties,
        losses=one.losses,
        p=one.p,
        significant=one.p < level,
        ratio=one.ratio,
        ratio_low=one.ratio_low,
        ratio_high=one.ratio_high,
        p_log_holm=one.p_log_holm,
        significant_log=one.p_log_holm < level,
        printed=printed.get(round(100 * load)),
    )


def dominance_text(table: Sequence[DominanceRow]) -> list[list[str]]:
    """The table in the paper's layout, policies by loads with a heading: share, interval, the paper's number.

    A cell ends in ``*`` when the log ratios differ significantly, in ``'`` when the paper's test does.
    """
    loads = sorted({cell.load for cell in table})
    lines = [["", *(percent(load) for load in loads)]]
    for other in dict.fromkeys(cell.other for cell in table):
        cells = {cell.load: cell for cell in table if cell.other == other}
        lines.append([_title(other), *(_cell(cells[load]) if load in cells else "" for load in loads)])
    return lines


def _cell(cell: DominanceRow) -> str:
    share, low, high = (f"{100 * value:.0f}" for value in (cell.dominance, cell.low, cell.high))
    marks = ("*" if cell.significant_log else "") + ("'" if cell.significant else "")
    printed = f" (printed {cell.printed:g})" if cell.printed is not None else ""
    return f"{share} [{low}, {high}]{marks}{printed}"


def industrial_table(
    rows: Rows, metrics: Sequence[str] = ("utilisation", "cumulative_completion", "peak_in_flight")
) -> list[dict[str, Any]]:
    """Table 5: a row per policy with its numbers and, as ``printed_…``, the paper's, which are from another log."""
    columns = {metric: _values(rows, metric, None) for metric in metrics}
    return [
        {
            "policy": policy,
            **{metric: float(column[policy].mean()) for metric, column in columns.items() if policy in column},
            **{f"printed_{metric}": PRINTED_INDUSTRIAL.get(policy, {}).get(metric) for metric in metrics},
        }
        for policy in columns[metrics[0]]
    ]


_LOADS = (80, 90, 100, 110, 120)

_PRINTED: dict[str, dict[str, tuple[float, ...]]] = {
    "worst_slr": {
        "lrtf": (96, 100, 100, 100, 100),
        "srtf": (54, 47, 56, 58, 57),
        "random": (87, 93, 100, 93.3, 100),
        "fifo-task": (87, 98, 100, 100, 100),
        "fifo-job": (92, 94, 100, 100, 100),
        "fair-share": (87, 95, 98.6, 100, 99.3),
    },
    "mean_slr": {
        "lrtf": (97, 100, 100, 100, 100),
        "srtf": (59, 54, 44, 26, 21),
        "random": (88, 97, 100, 100, 100),
        "fifo-task": (91, 98.3, 100, 100, 100),
        "fifo-job": (94, 97, 100, 100, 100),
        "fair-share": (92, 98.6, 100, 100, 99.3),
    },
}

PRINTED_DOMINANCE: Mapping[str, Mapping[str, Mapping[int, float]]] = {
    metric: {policy: dict(zip(_LOADS, cells, strict=True)) for policy, cells in table.items()}
    for metric, table in _PRINTED.items()
}
"""Tables 3 and 4 as printed, per cent of 150 pairs, by metric, other policy and load in per cent."""

PRINTED_INDUSTRIAL: Mapping[str, Mapping[str, float]] = {
    policy: {"utilisation": 0.5864, "cumulative_completion": completion * 1e18, "peak_in_flight": peak}
    for policy, completion, peak in (
        ("p-slr", 7.685, 489),
        ("random", 7.686, 515),
        ("lrtf", 7.688, 490),
        ("fifo-job", 7.686, 543),
        ("srtf", 7.684, 439),
        ("fair-share", 7.687, 441),
        ("fifo-task", 7.688, 407),
    )
}
"""Table 5 as printed."""

FIGURES: Mapping[str, Callable[[Rows], Figure]] = {
    "figure-6": partial(box_by_policy, metric="sd_slr"),
    "figure-7": partial(by_decile, metric="mean_slr", load=1.2),
    "figure-7-worst": partial(by_decile, metric="worst_slr", load=1.2),
    "figure-8": partial(box_by_policy, metric="worst_slr"),
    "figure-9": partial(against_load, metric="worst_slr"),
    "figure-10": partial(box_by_policy, metric="utilisation", log=False),
    "figure-11": partial(box_by_policy, metric="cumulative_completion"),
    "figure-12": partial(box_by_policy, metric="peak_in_flight"),
    "figure-13a": partial(bars, metric="sd_slr"),
    "figure-13b": partial(bars, metric="mean_slr"),
    "figure-13c": partial(bars, metric="worst_slr"),
    "figure-14": partial(by_decile, metric="mean_slr"),
}
"""Figures of the paper by name: 6 to 12 from the rows of the campaign, 13 and 14 from those of the industrial log.

The paper announces the worst SLR by decile and shows the mean; ``figure-7-worst`` is the announced figure.
"""

TABLES: Mapping[str, Callable[[Rows], Sequence[Any]]] = {
    "table-3": partial(dominance_table, metric="worst_slr"),
    "table-4": partial(dominance_table, metric="mean_slr"),
    "table-5": industrial_table,
}
"""Tables of the paper by name."""


def _values(rows: Rows, metric: str, policies: Sequence[str] | None) -> dict[str, FloatArray]:
    """Values of whole schedules by policy, known policies in the order of `POLICIES`."""
    found: dict[str, list[float]] = {}
    for row in tidy(rows, metric=metric, decile=None):
        found.setdefault(row["policy"], []).append(row["value"])
    if not found:
        raise InputError(f"no row has the metric '{metric}'", field="metric")
    return {policy: np.array(found[policy], dtype=float) for policy in _shown(found, policies)}


def _shown(there: Mapping[str, Any], policies: Sequence[str] | None) -> list[str]:
    if policies is None:
        return [*(policy for policy in POLICIES if policy in there), *(name for name in there if name not in POLICIES)]
    for policy in policies:
        if policy not in there:
            raise InputError(f"no row has the policy '{policy}'; there are {', '.join(there)}", field="policies")
    return list(policies)


def _at(rows: Iterator[Mapping[str, Any]], load: float | None) -> Iterator[Mapping[str, Any]]:
    return (row for row in rows if load is None or math.isclose(float(row["load"]), load))


def _lines(
    axes: Axes,
    rows: Sequence[Mapping[str, Any]],
    column: str,
    places: Sequence[Any],
    policies: Sequence[str] | None,
    average: Average,
) -> None:
    """A line per policy of the averages over schedules at each of the *places* of a *column*."""
    values: dict[str, dict[Any, list[float]]] = {}
    for row in rows:
        if row.get(column) is not None:
            values.setdefault(row["policy"], {}).setdefault(row[column], []).append(float(row["value"]))
    for index, policy in enumerate(_shown(values, policies)):
        heights = [_averaged(values[policy].get(place, []), average) for place in places]
        style: dict[str, Any] = {"color": _colour(policy, values), "linestyle": DASHES[index % len(DASHES)]}
        axes.plot(places, heights, marker="osD^vPX"[index % 7], markersize=4.5, label=_title(policy), **style)


def _averaged(values: Sequence[float], average: Average) -> float:
    known = np.array([value for value in values if math.isfinite(value)])
    if not len(known):
        return float("nan")
    return float(np.exp(np.log(known).mean())) if average == "geometric" else float(known.mean())


def _colour(policy: str, shown: Mapping[str, Any]) -> str:
    """A fixed style for a policy in every figure; policies that are not in the paper get the remaining styles."""
    known = list(POLICIES)
    others = [name for name in shown if name not in POLICIES]
    place = known.index(policy) if policy in POLICIES else len(known) + others.index(policy)
    return PALETTE[place % len(PALETTE)]


def _title(policy: str) -> str:
    return POLICIES.get(policy, policy)


def _average_title(metric: str, average: Average) -> str:
    return f"{TITLES.get(metric, metric)}, {'mean' if average == 'mean' else 'geometric mean'} of schedules"


def _horizontal(axes: Axes, metric: str, *, log: bool) -> None:
    """Draw the value axis at the bottom, without lines or ticks between the policies."""
    axes.set_xlabel(TITLES.get(metric, metric) + _unit(metric))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    if metric in _SHARES and not log:
        ticks = [tick for tick in axes.get_xticks() if 0 <= tick <= 1]
        axes.set_xticks(ticks, [percent(tick) for tick in ticks])
    if log:
        _log_axis(axes, "x")


def _unit(metric: str) -> str:
    unit = DAG_METRICS[metric].unit if metric in DAG_METRICS else ""
    return f", {unit}" if unit and unit != "jobs" else ""


def _log_axis(axes: Axes, which: Literal["x", "y"]) -> None:
    """Use a logarithmic axis with plain numbers for ticks."""
    set_scale, get_limits = (axes.set_xscale, axes.get_xlim) if which == "x" else (axes.set_yscale, axes.get_ylim)
    set_ticks, set_limits = (axes.set_xticks, axes.set_xlim) if which == "x" else (axes.set_yticks, axes.set_ylim)
    set_scale("log")
    low, high = get_limits()
    shown = _log_ticks(low, high)
    set_ticks(shown, [_power(tick) for tick in shown])
    axes.minorticks_off()
    set_limits(low, high)


def _log_ticks(low: float, high: float) -> list[float]:
    """Ticks at decades, or at digits of each when there are fewer than four decades, coarse before fine.

    Examples
    --------
    >>> _log_ticks(0.5, 2e4), _log_ticks(3, 130)
    ([1.0, 10.0, 100.0, 1000.0, 10000.0], [5.0, 10.0, 20.0, 50.0, 100.0])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    shown: list[float] = []
    for digits in ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)):
        ticks = [float(f"{digit}e{power}") for power in powers for digit in digits]
        shown = [tick for tick in ticks if low <= tick <= high]
        if len(shown) >= 4:
            return shown[:: 1 + (len(shown) - 1) // 8]
    return shown if len(shown) > 1 else [float(f"{tick:.3g}") for tick in np.linspace(low, high, 5)[1:-1]]


def _power(value: float) -> str:
    """Format a tick: plain up to 100,000, then as a power of ten.

    Examples
    --------
    >>> _power(0.5), _power(2000), _power(1e9), _power(5e18)
    ('0.5', '2,000', '10⁹', '5·10¹⁸')
    """
    if value <= _DECIMALS_UP_TO:
        return f"{value:,.0f}" if value >= 1 and value == round(value) else f"{value:g}"
    power = math.floor(math.log10(value) + 1e-9)
    digits = f"{value / 10.0**power:.3g}"
    raised = f"10{str(power).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
    return raised if digits == "1" else f"{digits}·{raised}"


def _number(value: float, metric: str) -> str:
    """Write a value next to its bar."""
    if metric in _SHARES:
        return percent(value)
    if value > _DECIMALS_UP_TO * 100:
        return _power(value)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
