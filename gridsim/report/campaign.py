"""Report on comparisons of a campaign: table for the terminal, CSV, LaTeX and an HTML page.

Ratios are geometric means over workloads, value over baseline; the tests are those of `gridsim.metrics.campaign`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gridsim.campaign.comparisons import KNOWN, REPLICAS, Agreement, Compared, Comparisons, Mean
from gridsim.files import write_text
from gridsim.metrics.campaign import PolicyComparison
from gridsim.metrics.summary import DEADLINE_METRICS, GRID_METRICS, METRICS
from gridsim.number_formatting import counted, listed, number, percent, times
from gridsim.report import change
from gridsim.report.figures import INK, PALETTE, drawing, name_rows, short_labels
from gridsim.report.gallery import Gallery
from gridsim.report.markup import TEMPLATES, breakable, environment, p_shown, prose, ratio_shown, style, texts
from gridsim.report.pictures import Drawing, Picture
from gridsim.report.replications_text import VERDICTS
from gridsim.report.tables import SHOWN, SHOWN_DAGS, csv_text, shown
from gridsim.report.text_table import WIDTH, broken

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table


_text = texts("campaign")


_TITLES = {
    **SHOWN_DAGS,
    **SHOWN,
    "deadline_guaranteed_share": "share of deadlines guaranteed",
    "deadline_met_share": "share of deadlines met",
}

_MOST = 3
"""Largest number of values, or metrics, named in a sentence."""

_FEW = 6
"""Number of workloads below which Wilcoxon's test cannot be significant at 95 %."""

_VERDICTS = ("better", "worse", "equivalent", "no clear difference", "too little data")


def title(metric: str) -> str:
    """Return the name of a metric for use in a sentence.

    Examples
    --------
    >>> title("wait_mean"), title("utilisation"), title("flow")
    ('mean wait', 'utilisation', 'flow')
    """
    return " ".join(reversed(_TITLES.get(metric, metric.replace("_", " ")).split(", ")))


def label(found: Comparisons, value: Any) -> str:
    """Return the name of a value of the factor, with the name of the factor unless it is the policy."""
    factor = found.comparing.factor
    return str(value) if factor == "policy" else f"{factor} {value}"


def unit(found: Comparisons) -> str:
    """Return the unit of the tests: a log, a window of a single log, else a workload."""
    how = found.comparing
    if found.nested:
        return " and ".join(how.sources or ())
    return "window" if found.of_one and "window" in (how.replicates or ()) else "workload"


def condition_name(condition: Mapping[str, Any]) -> str:
    """Return the text of the factor values that define a condition."""
    return ", ".join(f"{name} {value}" for name, value in condition.items()) or "all runs"


def sentences(found: Comparisons) -> list[str]:
    """Return sentences on significant differences from the baseline, other results, and missing or unclear data.

    The first metric is described in detail, the others briefly.
    """
    base = label(found, found.values[0])
    if len(found.values) < 2:
        return [f"The campaign has only {base}, so there is nothing to compare."]
    if not found.metrics:
        return ["No run has any of the compared metrics."]
    if found.replicates == 1:
        return [_one_workload(found), *_missing(found)]
    headline, *others = found.metrics
    lines = [*_headline(found, headline), *_agreement(found, headline), *_in_passing(found, others), *_missing(found)]
    return [*lines, *_few(found), *_independence(found)]


def _agreement(found: Comparisons, metric: str) -> Iterator[str]:
    """Return in how many replicas the values are below the baseline, if there are replicas of workloads."""
    there = [it for it in found.agreements if it.metric == metric and it.pairs]
    if not there:
        return
    lead = "In shaken replicas" if there[0].role == "shake" else "In workloads with resampled users"
    parts = [
        f"under {label(found, it.value)} in {number(it.lower)} of {number(it.pairs)} ({_verdict(it)})"
        for it in there[:_MOST]
    ]
    rest = len(there) - _MOST
    more = [f"under {counted(rest, 'other')} (agreement.csv)"] if rest > 0 else []
    base = label(found, found.values[0])
    yield f"{lead}, {title(metric)} is lower {listed([*parts, *more])} than under {base}."


def _verdict(it: Agreement) -> str:
    """Return for how many workloads the replicas agree."""
    if it.workloads == 1:
        return str(VERDICTS[it.role]["does not change" if it.certain else "noise"])
    return f"replicas of {number(it.certain)} of {number(it.workloads)} workloads agree"


def _independence(found: Comparisons) -> Iterator[str]:
    """Return the text on the unit of observation, if workloads are parts of a source."""
    noun = unit(found)
    if found.nested:
        yield _text("averaged_by_source", found=found, noun=noun)
    if found.of_one and found.agreements and not found.nested and found.sources == found.replicates:
        what = "shaken" if found.agreements[0].role == "shake" else "with resampled users"
        yield f"All workloads are replicas of one, {what}: the results apply to it, not to others."
    elif found.of_one:
        parts = "windows" if "window" in (found.comparing.replicates or ()) else "workloads"
        yield _text("parts_of_one_log", parts=parts)


def _one_workload(found: Comparisons) -> str:
    base, metric = label(found, found.values[0]), found.metrics[0]
    known = [it for it in found.overall(metric) if not math.isnan(it.test.ratio)]
    parts = [f"{_times_of(it.test.ratio)} under {label(found, it.value)}" for it in known[:_MOST]]
    what = f"; against {base}, {title(metric)} is {listed(parts)}" if parts else ""
    return f"There is one workload, so no test is possible{what}. The result applies to this workload only."


def _times_of(ratio: float) -> str:
    return times(ratio) if ratio >= 2 else percent(ratio)


def _headline(found: Comparisons, metric: str) -> Iterator[str]:
    overall = sorted(found.overall(metric), key=_distance, reverse=True)
    by = {name: [it for it in overall if it.test.verdict == name] for name in _VERDICTS}
    base, over = label(found, found.values[0]), _over(found, overall)
    lower, higher = ("lower", "higher") if KNOWN[metric].better != "higher" else ("higher", "lower")
    corrected = f" after Holm, {len(overall)} comparisons" if len(overall) > 1 else ""
    if by["better"]:
        parts = _parts(found, by["better"], corrected)
        yield f"Against {base}, {title(metric)} is {lower} {listed(parts)}, over {over}."
        yield from _reversed(found, metric, by["better"], higher)
    elif any(by[name] for name in ("worse", "equivalent", "no clear difference")):
        none = f"Under no other {found.comparing.factor} is {title(metric)}"
        yield f"{none} significantly {lower} than under {base}, over {over}."
    if by["worse"]:
        parts = _parts(found, by["worse"], "" if by["better"] else corrected)
        yield f"It is {higher} {listed(parts)}."
    if by["equivalent"]:
        names = listed([label(found, it.value) for it in by["equivalent"]])
        yield f"Equivalent to {base} (within {percent(found.comparing.margin)}): {names}."
    unclear = by["no clear difference"]
    if unclear:
        parts = [f"{label(found, it.value)} ({_unclear(it, found.comparing.confidence)})" for it in unclear[:_MOST]]
        more = [f"{len(unclear) - _MOST} others"] if len(unclear) > _MOST else []
        yield f"No significant difference from {base}: {listed([*parts, *more])}."


def _distance(it: Compared) -> float:
    """Return the distance of a ratio from 1; 0 if there is none."""
    return abs(math.log(it.test.ratio)) if it.test.ratio > 0 else -1.0


def _over(found: Comparisons, overall: Sequence[Compared]) -> str:
    """Return the text on the numbers of workloads, parts and conditions."""
    noun = unit(found)
    there = sorted({it.test.workloads - it.test.left_out for it in overall if it.test.workloads})
    most = there[-1] if there else 0
    text = counted(most, noun) if len(there) < 2 else f"{number(there[0])} to {number(most)} {noun}s"
    conditions = max((it.conditions for it in overall), default=1)
    each = [_parts_each(found)] if found.nested else []
    each += [f"{conditions} conditions each"] if conditions > 1 else []
    return f"{text} ({'; '.join(each)})" if each else text


def _parts_each(found: Comparisons) -> str:
    """Return the number of parts of a source."""
    how = found.comparing
    names = (name for name in how.replicates or () if name not in (how.sources or ()))
    parts = " and ".join("replica" if name in REPLICAS else name for name in names)
    mean, rest = divmod(found.replicates, found.sources)
    return f"{found.replicates} {parts}s in all" if rest else f"{mean} {parts}s each"


def _parts(found: Comparisons, clear: Sequence[Compared], corrected: str) -> list[str]:
    """Return size and significance of each difference; the correction of p is mentioned once."""
    parts = []
    for place, it in enumerate(clear[:_MOST]):
        sure = f"{_sure(it, found.comparing.confidence)}{'' if place else corrected}"
        parts.append(f"under {label(found, it.value)} {_by(it.test)} ({sure}{_unconfirmed(it, found)})")
    rest = len(clear) - _MOST
    return [*parts, f"under {counted(rest, 'other')}"] if rest > 0 else parts


def _by(test: PolicyComparison) -> str:
    return f"at {times(test.ratio)}" if test.ratio >= 2 else f"by {percent(abs(test.ratio - 1))}"


def _sure(it: Compared, confidence: float) -> str:
    test = it.test
    if test.ratio >= 2:
        span = f"{ratio_shown(test.ratio_low)} to {ratio_shown(test.ratio_high)} times"
    else:
        span = change.span(test.ratio_low - 1, test.ratio_high - 1, change.HIGHER)
    return f"{100 * confidence:g} % interval {span}; {_probability(test.p_log_holm)}"


def _probability(p: float) -> str:
    return f"p {p_shown(p)}" if p < 0.001 else f"p = {p_shown(p)}"


def _unconfirmed(it: Compared, found: Comparisons) -> str:
    """Return whether the test that is more robust to outlying workloads disagrees."""
    doubts = it.test.workloads >= _FEW and it.test.p_wilcoxon_holm >= 1 - found.comparing.confidence
    return "; not confirmed by Wilcoxon's test" if doubts else ""


def _unclear(it: Compared, confidence: float) -> str:
    test = it.test
    by = change.text(test.ratio - 1, change.HIGHER)
    span = change.span(test.ratio_low - 1, test.ratio_high - 1, change.HIGHER)
    return f"{by}, {100 * confidence:g} % interval {span}; {_probability(test.p_log_holm)}"


def _reversed(found: Comparisons, metric: str, winners: Sequence[Compared], worse: str) -> Iterator[str]:
    """Return the conditions in which a better value is significantly worse."""
    parts = []
    for it in winners:
        lost = [
            row.condition
            for row in found.found
            if row.metric == metric and row.value == it.value and row.condition and row.test.verdict == "worse"
        ]
        if lost and it.condition is None:
            which = f"{len(lost)} of {it.conditions} conditions, such as {condition_name(lost[0])}"
            parts.append(f"under {label(found, it.value)} in {which}")
    if parts:
        yield f"But it is significantly {worse} {listed(parts[:_MOST])}."


def _in_passing(found: Comparisons, metrics: Sequence[str]) -> Iterator[str]:
    """Return one sentence on further metrics."""
    parts = []
    for metric in metrics[:_MOST]:
        overall = found.overall(metric)
        names = {
            verdict: listed([label(found, it.value) for it in overall if it.test.verdict == verdict][: _MOST + 1])
            for verdict in ("better", "worse")
            if any(it.test.verdict == verdict for it in overall)
        }
        text = ", ".join(f"{verdict} under {who}" for verdict, who in names.items())
        if all(it.test.verdict == "equivalent" for it in overall):
            text = "equivalent under all"
        parts.append(f"{title(metric)} is {text or 'significantly different under none'}")
    if parts:
        rest = len(metrics) - len(parts)
        more = f"; the table has {rest} more" if rest else ""
        yield f"Of the other metrics, {'; '.join(parts)}{more}."


def _missing(found: Comparisons) -> Iterator[str]:
    """Return the text on workloads without a pair (first metric), and on pairs without a ratio."""
    overall = found.overall(found.metrics[0])
    short = [it for it in overall if it.missing]
    if short:
        parts = [f"{number(it.missing)} for {label(found, it.value)}" for it in short[:_MOST]]
        more = [f"some for {counted(len(short) - _MOST, 'other')}"] if len(short) > _MOST else []
        yield _text("left_out", found=found, parts=[*parts, *more], title=title(found.metrics[0]))
    part = [it for it in overall if it.condition is None and it.conditions < found.conditions]
    if part:
        parts = [f"{found.conditions - it.conditions} for {label(found, it.value)}" for it in part[:_MOST]]
        yield f"Conditions without any pair, of {number(found.conditions)}: {listed(parts)}."
    zeros = [it for it in overall if it.test.left_out]
    if zeros:
        parts = [f"{number(it.test.left_out)} for {label(found, it.value)}" for it in zeros[:_MOST]]
        yield f"Workloads without a ratio, because one value is not above 0: {listed(parts)}."


def _few(found: Comparisons) -> Iterator[str]:
    overall = found.overall(found.metrics[0])
    none = [label(found, it.value) for it in overall if it.test.verdict == "too little data"]
    if none:
        yield f"Too few pairs for a test: {listed(none)}."
    most = max((it.test.workloads for it in overall), default=0)
    if 1 < most < _FEW:
        yield _text("few_units", most=most, unit=unit(found))


_MOST_DRAWN = 4
"""Largest number of metrics with figures."""

_MARKERS = {"better": "s", "worse": "D"}


def figures(found: Comparisons) -> Gallery:
    """Return the figures of a campaign by name: ``wait-mean``, …"""
    return Gallery(lambda: {one.drawing.name: one.drawing.figure for one in pictures(found)})


def pictures(found: Comparisons) -> Iterator[Picture]:
    """Return figures of the main comparison: all values against the baseline, for the first metrics."""
    for metric in found.metrics[:_MOST_DRAWN]:
        rows = [it for it in found.overall(metric) if it.test.ratio > 0 and math.isfinite(it.test.ratio)]
        if rows:
            units = max(it.test.workloads - it.test.left_out for it in rows)
            ratios = ", ".join(f"{ratio_shown(it.test.ratio)} under {label(found, it.value)}" for it in rows)
            name = title(metric)[:1].upper() + title(metric)[1:]
            yield Picture(
                name,
                f"Ratio to {label(found, found.values[0])} over {counted(units, unit(found))}, with "
                f"{100 * found.comparing.confidence:g} % intervals; squares are significantly better, diamonds "
                f"significantly worse: {ratios}.",
                Drawing(against(found, rows), metric.replace("_", "-")),
                "comparisons.csv",
                f"{name} over {counted(units, unit(found))}.",
            )


def against(found: Comparisons, rows: Sequence[Compared]) -> Figure:
    """Draw the ratios of one metric to the baseline with intervals, one row per value of the factor."""
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
        name_rows(axes, [names[label(found, it.value)] for it in rows])
        name, under = title(rows[0].metric), f"times that under {short_labels([base])[base]}"
        axes.set_xlabel(f"{name},{chr(10) if len(name + under) > _WIDEST else ' '}{under}")
        return figure


_WIDEST = 48
"""Largest number of characters of an axis label next to the names of rows."""


def _limits(rows: Sequence[Compared]) -> tuple[float, float]:
    """Return the axis limits: all ratios, with intervals up to a factor of 10 to each side."""
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


_OF_WHAT = ("metric", "policy", "other", "load", "kind")
_TESTS = tuple(it.name for it in fields(PolicyComparison) if it.name not in _OF_WHAT)
"""Columns of the CSV file that are attributes of a test."""

_MOST_ROWS = 2_000
"""Largest number of rows of means on the page and in the long LaTeX table; the CSV file has all."""

_NOTES = (
    _text("comparison_note"),
    _text("p_values_note"),
    "Intervals of means are Student's t over workloads; they are much wider than those of ratios if workloads differ.",
)


def _value(metric: str, value: float) -> str:
    """Return a formatted value of a metric."""
    if math.isnan(value):
        return "-"
    if metric.endswith("_share"):
        return f"{100 * value:.1f} %"
    if metric in METRICS or metric in GRID_METRICS or metric in DEADLINE_METRICS:
        return shown(metric, value)
    return number(value) if abs(value) >= 1000 else f"{value:.3g}"


def _verdict_shown(it: Compared, margin: float) -> str:
    """Return the verdict, and whether a clear difference is small."""
    clear = it.test.verdict in ("better", "worse")
    return f"{it.test.verdict}, within {percent(margin)}" if clear and it.test.equivalent else it.test.verdict


def _fixed(ratio: float) -> str:
    """Return a ratio with three digits, including trailing zeros, as in the rest of the column.

    Examples
    --------
    >>> _fixed(1.0), _fixed(0.9966), _fixed(125.0), _fixed(math.inf), _fixed(math.nan)
    ('1.00', '0.997', '125', '∞', '-')
    """
    return f"{ratio:#.3g}".rstrip(".") if 1e-3 <= ratio < 999.5 else ratio_shown(ratio)


def _interval(low: float, high: float) -> str:
    """Return an interval of ratios as text."""
    return "-" if math.isnan(low) else f"{_fixed(low)} to {_fixed(high)}"


_SHORT = {"no clear difference": "unclear", "too little data": "too few"}
"""Short forms of verdicts."""


# ---- terminal -----------------------------------------------------------------------------------------------------


def terminal(found: Comparisons, *, width: int = WIDTH) -> Table:
    """Return the comparisons over all conditions as a rich table; significant ones are bold and marked."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption=f"* better, ! worse, = equivalent ({_equal(found)})",
        caption_justify="left",
    )
    grid.add_column("against " + "\n".join(broken(label(found, found.values[0]), 24)), max_width=32)
    for head in ("ratio", f"{100 * found.comparing.confidence:g} % interval", "p (Holm)", f"{unit(found)}s"):
        grid.add_column(head, justify="right", no_wrap=True)
    for metric in found.metrics:
        grid.add_row(Text(title(metric), style="italic"))
        for it in found.overall(metric):
            mark = {"better": "*", "worse": "!"}.get(it.test.verdict, "=" if it.test.equivalent else " ")
            grid.add_row(
                Text("\n".join(f"  {line}" for line in broken(label(found, it.value), max(12, width - 52)))),
                Text(f"{_fixed(it.test.ratio)} {mark}", style="bold" if mark in "*!" else ""),
                _interval(*it.test.shown_interval(found.comparing.confidence)),
                p_shown(it.test.p_log_holm),
                _paired(it),
            )
    return grid


def _equal(found: Comparisons) -> str:
    """Return the text on the criterion for *equivalent*."""
    inside = 200 * found.comparing.confidence - 100
    return f"the {inside:.3g} % interval, shown for these, is within {percent(found.comparing.margin)}"


def _paired(it: Compared) -> str:
    """Return the numbers of workloads with and without a ratio."""
    lost = it.missing + it.test.left_out
    return f"{number(it.test.workloads - it.test.left_out)}" + (f" (-{number(lost)})" if lost else "")


# ---- CSV ----------------------------------------------------------------------------------------------------------


def _columns_of(found: Comparisons, *taken: str) -> list[str]:
    """Return the headings of the factors, made distinct from those of numbers."""
    return [f"{name} (factor)" if name in taken else name for name in (*found.others, found.comparing.factor)]


def _comparison_rows(found: Comparisons) -> Iterator[Sequence[Any]]:
    head = ("metric", "unit", "better", "over")
    columns = ("baseline", "conditions", "missing", "mean", "baseline_mean")
    yield [*head, *_columns_of(found, *head, *columns, *_TESTS), *columns, *_TESTS]
    for it in found.found:
        condition = it.condition or {}
        yield [
            *(it.metric, KNOWN[it.metric].unit, KNOWN[it.metric].better),
            "all conditions" if it.condition is None else "condition",
            *(condition.get(name) for name in found.others),
            *(it.value, it.baseline, it.conditions, it.missing, it.mean, it.baseline_mean),
            *(getattr(it.test, name) for name in _TESTS),
        ]


def _mean_rows(found: Comparisons) -> Iterator[Sequence[Any]]:
    columns = ("mean", "low", "high", "replicates", "missing")
    yield ["metric", "unit", *_columns_of(found, "metric", "unit", *columns), *columns]
    for it in found.means:
        names = (it.condition[name] for name in found.others)
        yield [it.metric, KNOWN[it.metric].unit, *names, it.value, *(getattr(it, name) for name in columns)]


class _Line(NamedTuple):
    """Value of the factor in a condition: its mean, and the comparison with the baseline, unless it is the baseline."""

    mean: Mean
    compared: Compared | None


class _Block(NamedTuple):
    """One condition."""

    condition: str
    lines: Sequence[_Line]


def _by_condition(found: Comparisons) -> dict[str, list[_Block]]:
    """Return means and comparisons of each metric by condition, for at most `_MOST_ROWS` rows."""
    most = _conditions_shown(found)
    blocks: dict[str, list[_Block]] = {}
    rows = {
        name: [it for it in found.found if it.metric == name and it.condition is not None] for name in found.metrics
    }
    for metric, means in groupby(found.means, key=lambda it: it.metric):
        against = iter(rows[metric])
        listed_means = list(means)
        size = len(found.values)
        for start in range(0, min(len(listed_means), most * size), size):
            part = listed_means[start : start + size]  # the baseline, followed by its comparisons in the same order
            lines = [_Line(part[0], None), *(_Line(mean, next(against)) for mean in part[1:])]
            blocks.setdefault(metric, []).append(_Block(condition_name(part[0].condition), lines))
    return blocks


def _conditions_shown(found: Comparisons) -> int:
    return max(1, _MOST_ROWS // max(1, len(found.metrics) * len(found.values)))


def _about(found: Comparisons, name: str) -> dict[str, Any]:
    """Return the common variables of both templates."""
    confidence = f"{100 * found.comparing.confidence:g} %"
    return {
        "found": found,
        "title": name,
        "confidence": confidence,
        "level": found.comparing.confidence,
        "equal": _equal(found),
        "metric_title": title,
        "label": partial(label, found),
        "value": _value,
        "interval": _interval,
        "paired": _paired,
        "verdict": partial(_verdict_shown, margin=found.comparing.margin),
        "base": label(found, found.values[0]),
        "factor": found.comparing.factor,
        "by_condition": _by_condition(found),
        "unit": unit(found),
        "left": max(0, found.conditions - _conditions_shown(found)),
    }


# ---- LaTeX --------------------------------------------------------------------------------------------------------


class _Tex(str):
    """Text that is already LaTeX."""

    __slots__ = ()


_TEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': "{''}",
    "∞": r"$\infty$",
    **{character: f"{{{character}}}" for character in "[]*-"},  # no option, star or dash of the preceding command
}


def _tex(text: Any) -> str:
    """Escape a text for LaTeX.

    Examples
    --------
    >>> print(_tex("fqops?k_factor=5&slack=50%"))
    fqops?k\\_factor=5\\&slack=50\\%
    """
    if isinstance(text, _Tex):
        return text
    return "".join(_TEX.get(character, character) for character in " ".join(str(text).split()))


def _tex_breakable(text: str) -> _Tex:
    """Escape a label for LaTeX, with line breaks allowed after punctuation."""
    return _Tex(r"\allowbreak{}".join(_tex(part) for part in re.split(r"(?<=[?&=,:(])", text)))


def latex(found: Comparisons, *, name: str = "campaign", by_condition: bool = False) -> str:
    """Return the comparisons as LaTeX: over all conditions as a floating table, or by condition as a ``longtable``.

    The table is for ``\\input``. The document must load ``booktabs``, and ``longtable`` for the second form.
    """
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        finalize=_tex,
        autoescape=False,  # all output is escaped by _tex
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {"breakable": _tex_breakable, "p": p_shown, "ratio": _fixed}
    templates.globals |= {"tex": _Tex, "short": lambda verdict: _SHORT.get(verdict, verdict)}
    return templates.get_template("campaign.tex.j2").render(
        **_about(found, name), long=by_condition, mark=_Tex(re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"))
    )


# ---- page ---------------------------------------------------------------------------------------------------------


def page(found: Comparisons, *, name: str = "campaign") -> str:
    """Return the self-contained HTML page: sentences, the table, means and comparisons by condition."""
    templates = environment(prose=prose, breakable=breakable, p=p_shown, ratio=_fixed)
    return templates.get_template("campaign.html.j2").render(
        **_about(found, name),
        lead=list(_lead(found)),
        pictures=[one.shown() for one in pictures(found)],
        answer=sentences(found),
        facts=list(_facts(found)),
        notes=_NOTES,
        style=style("page.css"),
    )


def _lead(found: Comparisons) -> Iterator[str]:
    yield counted(found.runs, "run")
    yield f"{number(len(found.values))} values of {found.comparing.factor}"
    of = f" of {counted(found.sources, unit(found))}" if found.nested else ""
    yield f"{counted(found.replicates, 'workload')}{of}"
    yield counted(found.conditions, "condition")


def _facts(found: Comparisons) -> Iterator[tuple[str, str]]:
    how = found.comparing
    yield "Baseline", label(found, found.values[0])
    yield "A workload is a value of", ", ".join(how.replicates or ()) or "nothing: there is one workload"
    if found.nested:
        yield "Tests are over", f"{number(found.sources)} {unit(found)}s, which contain the workloads"
    yield "A condition is a value of", ", ".join(found.others) or "nothing: there is one condition"
    yield "Equivalent", f"ratios from {_interval(1 / (1 + how.margin), 1 + how.margin)}"
    yield "Intervals", f"{100 * how.confidence:g} %, each without correction for the others"


# ---- files --------------------------------------------------------------------------------------------------------


def write_tables(folder: str | Path, found: Comparisons, *, name: str = "campaign") -> list[Path]:
    """Write ``comparisons.csv``, ``means.csv``, ``comparisons.tex`` and ``comparisons.html``; return their paths.

    With several conditions also write ``comparisons-by-condition.tex``, and with replicas of workloads
    ``agreement.csv``. Each file is written atomically.

    Parameters
    ----------
    folder : path
        The folder; created if missing.
    name : str
        Name of the campaign, for headings and the label of the LaTeX table.
    """
    folder = Path(folder)
    texts = {
        "comparisons.csv": csv_text(*_comparison_rows(found)),
        "means.csv": csv_text(*_mean_rows(found)),
        **({"agreement.csv": csv_text(Agreement._fields, *found.agreements)} if found.agreements else {}),
        "comparisons.tex": latex(found, name=name),
        "comparisons.html": page(found, name=name),
    }
    if found.conditions > 1:
        texts["comparisons-by-condition.tex"] = latex(found, name=name, by_condition=True)
    else:
        (folder / "comparisons-by-condition.tex").unlink(missing_ok=True)  # from an earlier run with more conditions
    for file, text in texts.items():
        write_text(folder / file, text)
    return [folder / file for file in texts]
