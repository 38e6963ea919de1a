"""Comparisons of a campaign told: a table for the terminal, CSV, LaTeX and a page. Nothing is tested here.

Ratios are geometric means over workloads, value over baseline; the tests are those of `gridsim.metrics.campaign`.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gridsim.campaign.comparisons import KNOWN, Agreement, Compared, Comparisons, Mean
from gridsim.files import write_atomically, write_text
from gridsim.metrics.campaign import PolicyComparison
from gridsim.metrics.summary import DEADLINE_METRICS, GRID_METRICS, METRICS
from gridsim.report.campaign_sentences import condition_name, label, sentences, title, unit
from gridsim.report.comparison_figures import pictures
from gridsim.report.markup import TEMPLATES, breakable, environment, p_shown, prose, ratio_shown, style
from gridsim.report.sheet import WIDTH, broken
from gridsim.report.tables import shown
from gridsim.report.texts import texts
from gridsim.words import counted, number, percent

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["latex", "page", "terminal", "write_tables"]

_text = texts("campaign")

_OF_WHAT = ("metric", "policy", "other", "load", "kind")
_TESTS = tuple(it.name for it in fields(PolicyComparison) if it.name not in _OF_WHAT)
"""Columns of the CSV that are attributes of a test."""

_MOST_ROWS = 2_000
"""Of means on the page and in the long LaTeX table; the CSV has all."""

_NOTES = (
    _text("comparison_note"),
    _text("p_values_note"),
    "Intervals of means are Student's t over workloads, and much wider than those of ratios where workloads differ.",
)


def _value(metric: str, value: float) -> str:
    """A value of a metric as people read it."""
    if math.isnan(value):
        return "-"
    if metric.endswith("_share"):
        return f"{100 * value:.1f} %"
    if metric in METRICS or metric in GRID_METRICS or metric in DEADLINE_METRICS:
        return shown(metric, value)
    return number(value) if abs(value) >= 1000 else f"{value:.3g}"


def _verdict(it: Compared, margin: float) -> str:
    """The verdict, and whether a clear difference is a small one."""
    clear = it.test.verdict in ("better", "worse")
    return f"{it.test.verdict}, within {percent(margin)}" if clear and it.test.equivalent else it.test.verdict


def _fixed(ratio: float) -> str:
    """A ratio with three digits, also where they are zeros: those beside it have as many.

    Examples
    --------
    >>> _fixed(1.0), _fixed(0.9966), _fixed(125.0), _fixed(math.inf), _fixed(math.nan)
    ('1.00', '0.997', '125', '∞', '-')
    """
    return f"{ratio:#.3g}".rstrip(".") if 1e-3 <= ratio < 999.5 else ratio_shown(ratio)


def _interval(low: float, high: float) -> str:
    """From and to, of ratios."""
    return "-" if math.isnan(low) else f"{_fixed(low)} to {_fixed(high)}"


_SHORT = {"no clear difference": "unclear", "too little data": "too few"}
"""Verdicts where there is little room."""


# ---- the terminal -------------------------------------------------------------------------------------------------


def terminal(found: Comparisons, *, width: int = WIDTH) -> Table:
    """Comparisons over all conditions as a rich table; clear ones are bold and have a mark too."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption=f"* better, ! worse, = as good as equal ({_equal(found)})",
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
    """How *equivalent* is decided."""
    inside = 200 * found.comparing.confidence - 100
    return f"{inside:.3g} % interval within {percent(found.comparing.margin)}, shown there"


def _paired(it: Compared) -> str:
    """Workloads with a ratio, and those without."""
    lost = it.missing + it.test.left_out
    return f"{number(it.test.workloads - it.test.left_out)}" + (f" (-{number(lost)})" if lost else "")


# ---- CSV ----------------------------------------------------------------------------------------------------------


def _columns_of(found: Comparisons, *taken: str) -> list[str]:
    """Headings of the factors, told apart from those of numbers."""
    return [f"{name} (factor)" if name in taken else name for name in (*found.others, found.comparing.factor)]


def _comparison_rows(found: Comparisons) -> Iterator[Sequence[Any]]:
    head = ("metric", "unit", "better", "over")
    told = ("baseline", "conditions", "missing", "mean", "baseline_mean")
    yield [*head, *_columns_of(found, *head, *told, *_TESTS), *told, *_TESTS]
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
    told = ("mean", "low", "high", "replicates", "missing")
    yield ["metric", "unit", *_columns_of(found, "metric", "unit", *told), *told]
    for it in found.means:
        names = (it.condition[name] for name in found.others)
        yield [it.metric, KNOWN[it.metric].unit, *names, it.value, *(getattr(it, name) for name in told)]


def _write_csv(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Rows, whole or not at all; numbers keep every digit, NaN and None are empty cells."""

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([["" if cell is None or cell != cell else cell for cell in row] for row in rows])

    write_atomically(path, write)


# ---- by condition -------------------------------------------------------------------------------------------------


class _Line(NamedTuple):
    """A value of the factor in a condition: its mean, and the comparison with the baseline unless it is that."""

    mean: Mean
    compared: Compared | None


class _Block(NamedTuple):
    """One condition."""

    condition: str
    lines: Sequence[_Line]


def _by_condition(found: Comparisons) -> dict[str, list[_Block]]:
    """Means and comparisons of each metric by condition, of as many conditions as are shown."""
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
            part = listed_means[start : start + size]  # the baseline, then its comparisons in the same order
            lines = [_Line(part[0], None), *(_Line(mean, next(against)) for mean in part[1:])]
            blocks.setdefault(metric, []).append(_Block(condition_name(part[0].condition), lines))
    return blocks


def _conditions_shown(found: Comparisons) -> int:
    return max(1, _MOST_ROWS // max(1, len(found.metrics) * len(found.values)))


def _about(found: Comparisons, name: str) -> dict[str, Any]:
    """What both templates are told."""
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
        "verdict": partial(_verdict, margin=found.comparing.margin),
        "base": label(found, found.values[0]),
        "factor": found.comparing.factor,
        "by_condition": _by_condition(found),
        "unit": unit(found),
        "left": max(0, found.conditions - _conditions_shown(found)),
    }


# ---- LaTeX --------------------------------------------------------------------------------------------------------


class _Tex(str):
    """Text that is LaTeX already."""

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
    **{character: f"{{{character}}}" for character in "[]*-"},  # not an option, star or dash of what stands before
}


def _tex(text: Any) -> str:
    """Any text as LaTeX prints it.

    Examples
    --------
    >>> print(_tex("fqops?k_factor=5&slack=50%"))
    fqops?k\\_factor=5\\&slack=50\\%
    """
    if isinstance(text, _Tex):
        return text
    return "".join(_TEX.get(character, character) for character in " ".join(str(text).split()))


def _tex_breakable(text: str) -> _Tex:
    """A label that may break after its punctuation."""
    return _Tex(r"\allowbreak{}".join(_tex(part) for part in re.split(r"(?<=[?&=,:(])", text)))


def latex(found: Comparisons, *, name: str = "campaign", by_condition: bool = False) -> str:
    """Comparisons over all conditions as a floating table for ``\\input``, or all by condition as a ``longtable``.

    The document loads ``booktabs``, and ``longtable`` for the second.
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
        autoescape=False,  # everything printed goes through _tex
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


# ---- the page -----------------------------------------------------------------------------------------------------


def page(found: Comparisons, *, name: str = "campaign") -> str:
    """The self-contained HTML page: what was found in words, the table, means and comparisons by condition."""
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
    yield "A workload is a value of", ", ".join(how.replicates or ()) or "nothing: there is one"
    if found.nested:
        yield "Tests are over", f"{number(found.sources)} {unit(found)}s, of which the workloads are parts"
    yield "A condition is a value of", ", ".join(found.others) or "nothing: there is one"
    yield "As good as equal", f"ratios from {_interval(1 / (1 + how.margin), 1 + how.margin)}"
    yield "Intervals", f"{100 * how.confidence:g} %, each for itself: not widened for the others"


# ---- files --------------------------------------------------------------------------------------------------------


def write_tables(folder: str | Path, found: Comparisons, *, name: str = "campaign") -> list[Path]:
    """Write ``comparisons.csv``, ``means.csv``, ``comparisons.tex`` and ``comparisons.html``; returns their paths.

    With several conditions also ``comparisons-by-condition.tex``, with replicas of workloads ``agreement.csv``. Each is
    whole or not written at all.

    Parameters
    ----------
    folder : path
        Made where it is missing.
    name : str
        Of the campaign, for headings and the label of the LaTeX table.
    """
    folder = Path(folder)
    _write_csv(folder / "comparisons.csv", _comparison_rows(found))
    _write_csv(folder / "means.csv", _mean_rows(found))
    if found.agreements:
        _write_csv(folder / "agreement.csv", [Agreement._fields, *found.agreements])
    texts = {"comparisons.tex": latex(found, name=name), "comparisons.html": page(found, name=name)}
    if found.conditions > 1:
        texts["comparisons-by-condition.tex"] = latex(found, name=name, by_condition=True)
    else:
        (folder / "comparisons-by-condition.tex").unlink(missing_ok=True)  # of more conditions, earlier
    for file, text in texts.items():
        write_text(folder / file, text)
    numbers = ["comparisons.csv", "means.csv", *(["agreement.csv"] if found.agreements else [])]
    return [folder / file for file in (*numbers, *texts)]
