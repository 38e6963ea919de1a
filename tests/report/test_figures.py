"""Figures: their content, and reproducible text that is safe on a page."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from gridsim.record import Record
from gridsim.report import figures
from gridsim.report.comparison import Comparison

DRAW: dict[str, Callable[[Comparison], Figure]] = {
    "waits": lambda it: figures.waits(it.records),
    "slowdowns": lambda it: figures.slowdowns(it.records),
    "utilisation": lambda it: figures.utilisation(it.records),
    "queue": lambda it: figures.queue(it.records),
    "groups": lambda it: figures.groups([row for row in it.groups if row.kind == "size"], it.labels),
    "job_by_job": lambda it: figures.job_by_job([row for row in it.differences if row.metric == "wait"]),
}


@pytest.mark.parametrize("name", DRAW)
def test_the_svg_is_the_same_every_time_and_has_theme_colours(comparison: Comparison, name: str) -> None:
    text = figures.svg(DRAW[name](comparison), name)
    assert text == figures.svg(DRAW[name](comparison), name)
    assert "var(--ink)" in text
    assert "http" not in text
    assert "#010203" not in text
    ET.fromstring(text)
    ids = re.findall(r'id="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert all(one.startswith(f"{name}-") for one in ids)


def test_the_share_that_does_not_wait_is_where_the_curve_begins(records: dict[str, Record]) -> None:
    for line, record in zip(figures.waits(records).axes[0].lines, records.values(), strict=True):
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        assert y[x == 0].max(initial=0) == pytest.approx((record.wait == 0).mean())
        assert y[-1] == 1.0
        assert (np.diff(y) >= 0).all()


def test_labels_of_policies_are_escaped_and_never_formulas(records: dict[str, Record]) -> None:
    hostile = "</svg><script>x()</script> $\\frac{1}{2}$ & co"
    text = figures.svg(figures.waits({hostile: records["fcfs"]}), "waits")
    assert "<script" not in text
    ET.fromstring(text)


@pytest.mark.long
def test_figures_of_tiny_records_can_be_drawn(comparing: Callable[..., Comparison]) -> None:
    one = Record.from_rows([{"submit": 0, "start": 0, "end": 5, "cores": 1}], cores=4)
    none = Record.from_rows([{"submit": 0, "start": None, "end": None, "cores": 1, "runtime": 3}], cores=4)
    for record in (one, none):
        for name in ("waits", "slowdowns", "utilisation", "queue"):
            figures.svg(DRAW[name](comparing({"a": record, "b": record})), name)


def test_names_of_groups_are_one_short_line_and_never_formulas(comparison: Comparison) -> None:
    names = ("user </svg><script>x()</script>", "user a\nb", f"user {'x' * 90}", "user $\\frac{1}{2}$", "user \x01日本")
    rows = [row for row in comparison.groups if row.kind == "size" and row.policy == comparison.best][: len(names)]
    hostile = [replace(row, kind="user", group=name) for row, name in zip(rows, names, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = figures.svg(figures.groups(hostile, comparison.labels, unit=""), "by-user")
    assert "<script" not in text
    shown = [it.text or "" for it in ET.fromstring(text).iter() if it.tag.endswith("text")]
    assert {"user a�b", "user $\\frac{1}{2}$", "user �日本", "user xxxxxxx…xxxxxxxxxxx"} <= set(shown)


def test_axes_of_time_have_dates_where_the_log_has(records: dict[str, Record]) -> None:
    def ticks(provenance: dict[str, Any]) -> tuple[str, list[str]]:
        dated = {
            label: replace(record, workload=replace(record.workload, provenance=provenance))
            for label, record in records.items()
        }
        axes = figures.utilisation(dated).axes[0]
        assert [text.get_text() for text in figures.queue(dated).axes[0].get_xticklabels()]
        return axes.get_xlabel(), [text.get_text() for text in axes.get_xticklabels()]

    assert ticks({})[0].endswith("since the first submission")
    label, texts = ticks({"header": {"UnixStartTime": ["835823160"], "TimeZoneString": ["US/Eastern"]}})
    assert label == "1996, US/Eastern"
    assert 3 <= len(texts) <= 9
    assert all(re.fullmatch(r"\d+ (Jun|Jul|Aug)", text) for text in texts)


def test_at_most_five_policies_share_a_chart_of_steps(records: dict[str, Record]) -> None:
    made = list(records.values())
    several = {f"policy {place}": made[place % 3] for place in range(7)}
    few = dict(list(several.items())[:5])
    for draw in (figures.waits, figures.slowdowns, figures.utilisation, figures.queue):
        assert len(draw(few).axes) == 1
        many = draw(several)
        assert [axes.get_title(loc="left") for axes in many.axes] == list(several)
        assert len({(*axes.get_xlim(), *axes.get_ylim()) for axes in many.axes}) == 1
        assert many.get_supylabel() == draw(few).axes[0].get_ylabel()


def test_groups_without_a_significant_difference_are_hollow(comparison: Comparison) -> None:
    rows = [row for row in comparison.groups if row.kind == "size" and row.policy == "greedy"][:3]
    verdicts = ("better", "no clear difference", "too little data")
    given = [replace(row, verdict=verdict) for row, verdict in zip(rows, verdicts, strict=True)]
    filled, hollow = (line for line in figures.groups(given, comparison.labels).axes[0].lines[:2])
    assert filled.get_markerfacecolor() != "none"
    assert hollow.get_markerfacecolor() == "none"
    assert [len(line.get_xdata()) for line in (filled, hollow)] == [1, 2]
