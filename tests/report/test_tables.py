"""The table: best values marked, 80 columns, readable without colour."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from gridsim.report import tables
from gridsim.report.comparison import Comparison


def printed(rows: list[tables.Row]) -> str:
    out = io.StringIO()
    Console(file=out, width=80, color_system=None).print(tables.terminal(rows))
    return out.getvalue()


def test_the_best_value_of_a_row_is_marked(comparison: Comparison) -> None:
    row = next(row for row in comparison.table() if row.metric == "wait_mean")
    assert [label for label, cell in row.cells.items() if cell.best] == ["greedy"]


def test_values_that_look_equal_are_marked_equally() -> None:
    rows = tables.rows(_numbers({"a": 0.8361, "b": 0.8362, "c": 0.7}))
    row = next(row for row in rows if row.metric == "utilisation")
    assert [cell.best for cell in row.cells.values()] == [True, True, False]


def test_nothing_is_marked_where_all_look_equal() -> None:
    rows = tables.rows(_numbers({"a": 0.8361, "b": 0.8362}))
    assert not any(cell.best for row in rows for cell in row.cells.values())


def test_counts_that_are_0_everywhere_are_left_out() -> None:
    assert "rejected" not in {row.metric for row in tables.rows(_numbers({"a": 0.5, "b": 0.6}))}


@pytest.mark.parametrize("policies", [1, 2, 3, 5, 9])
def test_the_table_fits_80_columns(comparison: Comparison, policies: int) -> None:
    labels = ["fcfs", "easy", "conservative", *(f"backfilling?ordering=wfp3&reserve=depth(k={k})" for k in range(9))]
    text = printed(tables.rows(dict.fromkeys(labels[:policies], comparison.metrics["fcfs"])))
    assert max(map(len, text.splitlines())) <= 80
    assert "fcfs" in text


def test_a_label_breaks_after_punctuation_and_not_inside_a_word(comparison: Comparison) -> None:
    long = "backfilling?ordering=widest.py:WidestFirst(tie=0.001)&reserve=protect.py:ProtectWide(cores=16)"
    text = printed(tables.rows(dict.fromkeys(["easy", "fcfs", long], comparison.metrics["fcfs"])))
    pieces = [line.split()[-1] for line in text.splitlines() if line.strip()]
    assert long in "".join(pieces)
    assert all(piece[-1] in "?&,:(=" for piece in pieces[pieces.index("backfilling?") : pieces.index("cores=16)")])


def test_marks_are_seen_without_colour(comparison: Comparison) -> None:
    best = next(row for row in comparison.table() if row.metric == "wait_mean").cells["greedy"].text
    assert f"{best} *" in printed(comparison.table())


def _numbers(utilisation: dict[str, float]) -> dict[str, dict[str, float]]:
    return {label: dict.fromkeys(tables.SHOWN, 0.0) | {"utilisation": value} for label, value in utilisation.items()}
