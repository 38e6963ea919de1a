"""Tables of a terminal: every value on one line, at most as wide as the terminal, for any labels."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, RenderableType

from gridsim.questions.changes import Effect, WhatIf
from gridsim.report import tables, whatif_text
from gridsim.report.comparison import Comparison
from gridsim.report.text_table import broken, either, fits, sheet

LONG = "slurm?conf=default-timing.conf&assoc=assoc.cfg&qos=qos.txt&boot=2026-11-21T06:53:40"
LABELS = [
    *("today", "no preemption", LONG, LONG.replace("default-timing", "wider"), "slurm?conf=slurm.conf"),
    *("easy?ordering=sjf", "fcfs"),
]
VALUES = ["12 min 46 s", "4 min 4 s", "0.5 s", "1,234", "100 %", "6 h 11 min", "-"]


def lines(made: RenderableType, width: int = 80) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(made)
    return out.getvalue().splitlines()


def whole(shown: list[str], value: str) -> int:
    """Number of lines that consist of one value."""
    return sum(len(re.findall(rf"(?<!\S){re.escape(value)}(?!\S)", line)) for line in shown)


@pytest.mark.parametrize("layout", [sheet, either])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 7])
def test_no_value_is_broken_and_no_line_too_wide(layout: type, rows: int) -> None:
    columns = {f"what is in column {place}": [value] * rows for place, value in enumerate(VALUES)}
    shown = lines(layout(LABELS[:rows], columns, first="policy"))
    assert max(map(len, shown)) <= 80
    for value in VALUES:
        assert whole(shown, value) >= rows


@given(
    labels=st.lists(st.text("ab?&=:( .-9\u5927", min_size=1, max_size=70), min_size=1, max_size=6),
    columns=st.lists(st.text("x9", min_size=1, max_size=14), min_size=1, max_size=9),
    first=st.sampled_from(["", "policy", "core-seconds"]),
    layout=st.sampled_from([sheet, either]),
)
@example(labels=["a"], columns=["x" * 10] * 6, first="core-seconds", layout=sheet)
@example(labels=["\u5927" * 20], columns=["x" * 11] * 3, first="", layout=sheet)
def test_a_table_with_any_labels_fits_its_terminal(
    labels: list[str], columns: list[str], first: str, layout: type
) -> None:
    made = {f"title {place}": [value] * len(labels) for place, value in enumerate(columns)}
    shown = lines(layout(labels, made, first=first))
    assert max(map(cell_len, shown)) <= 80
    for value in set(columns):
        assert whole(shown, value) >= len(labels) * columns.count(value)


def test_a_time_of_day_is_no_place_to_break() -> None:
    assert broken(LONG, 30)[-1].endswith("06:53:40")


def test_a_number_keeps_its_unit() -> None:
    assert broken("2 more nodes of 4 cores (+25 %)", 16) == ["2 more nodes of", "4 cores (+25 %)"]


def test_labels_side_by_side_where_only_so_they_fit() -> None:
    columns = {name: ["10 min 59 s"] * 2 for name in "abcdef"}
    assert not fits([LONG, LONG], columns)
    assert sum("───" in line for line in lines(either([LONG, LONG], columns))) == 1


def test_counts_in_which_many_policies_differ_are_reported(comparison: Comparison) -> None:
    numbers = {label: {**comparison.metrics["fcfs"], "unadmitted": 83.0 * (label == "fcfs")} for label in LABELS}
    shown = lines(tables.terminal(tables.rows(numbers)))
    assert max(map(len, shown)) <= 80
    assert "admission" in " ".join(shown).split()
    assert whole(shown, "83") == 1


def test_what_if_keeps_its_values_unbroken() -> None:
    numbers = {"wait_mean": 371.0, "wait_p95": 244.0, "bounded_slowdown_mean": 12.3, "utilisation": 0.8}
    label = "{} more nodes of 128 cores in partition gpu (+12 %)"
    changed = tuple(Effect(label.format(n), 32, numbers, None, None) for n in range(3))
    shown = lines(whatif_text.table([WhatIf(LONG, changed), WhatIf("easy", changed)]))
    assert max(map(len, shown)) <= 80
    assert whole(shown, "4 min 4 s") == 6
