"""Figures and tables of the campaign: their content for artificial rows; every one of the paper can be drawn."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.metrics.campaign import Paired, compare_policies
from gridsim.model.random_streams import stream
from gridsim.report.figures import svg
from gridsim_papers.grid import figures as pictures

LOADS = (0.8, 0.9, 1.0, 1.1, 1.2)
KINDS = ("uni-ind", "log-ind", "prob", "fan", "chain")
FACTORS = dict(zip(pictures.POLICIES, (1.0, 0.95, 3.0, 2.8, 4.0, 4.5, 20.0), strict=True))
SIZES = {
    "mean_slr": (1.5, 0.3),
    "worst_slr": (40.0, 1.2),
    "sd_slr": (2.0, 0.8),
    "cumulative_completion": (1e17, 1.0),
    "peak_in_flight": (250.0, 0.3),
}


def made_rows(workloads: int = 3, policies: tuple[str, ...] = tuple(pictures.POLICIES)) -> list[dict[str, Any]]:
    """Rows of a small campaign in which each policy has a distinct value of every metric."""
    rng = stream(1, "tests", "campaign figures")
    rows: list[dict[str, Any]] = []
    for kind in KINDS:
        for workload in range(workloads):
            for load in LOADS:
                for policy in policies:
                    place = {"kind": kind, "workload": workload, "load": load, "policy": policy}
                    weight = 1 + (FACTORS.get(policy, 1.0) - 1) * (load - 0.7)
                    for metric, (size, spread) in SIZES.items():
                        rows.append({**place, "metric": metric, "value": size * weight * rng.lognormal(0, spread)})
                    rows.append({**place, "metric": "utilisation", "value": rng.beta(5, 5)})
                    slope = {"lrtf": -0.3, "srtf": 0.1, "p-slr": 0.0}.get(policy, -0.15)
                    for decile in range(1, 11):
                        value = 1 + weight * float(np.exp(slope * decile)) * rng.lognormal(0, 0.1)
                        rows.append({**place, "metric": "mean_slr", "decile": decile, "value": value})
                        rows.append({**place, "metric": "worst_slr", "decile": decile, "value": 9 * value})
    return rows


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return made_rows()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", pictures.FIGURES)
def test_every_figure_of_the_paper_is_drawn_and_the_same_every_time(rows: list[dict[str, Any]], name: str) -> None:
    text = svg(pictures.FIGURES[name](rows), name)
    assert text == svg(pictures.FIGURES[name](rows), name)
    assert "var(--ink)" in text
    assert "var(--policy-0)" in text
    assert "#010203" not in text
    assert "mathdefault" not in text
    assert "P-SLR" in text
    ET.fromstring(text)
    ids = re.findall(r'id="([^"]*)"', text)
    assert len(ids) == len(set(ids))


def test_boxes_are_those_of_all_schedules_and_outliers_are_shown_when_asked() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 100.0]
    rows = [{"policy": "p-slr", "metric": "m", "load": 1, "workload": w, "value": v} for w, v in enumerate(values)]
    axes = pictures.box_by_policy(rows, "m", log=False).axes[0]
    box = np.asarray(axes.patches[0].get_path().vertices)
    assert (np.min(box[:, 0]), np.max(box[:, 0])) == (2.0, 4.0)
    assert 100.0 not in np.concatenate([np.asarray(line.get_xdata()) for line in axes.lines])
    shown = pictures.box_by_policy(rows, "m", log=False, outliers=True).axes[0]
    assert 100.0 in np.concatenate([np.asarray(line.get_xdata()) for line in shown.lines])


def test_a_line_by_decile_is_the_average_at_its_load() -> None:
    rows = [
        {"policy": "a", "metric": "mean_slr", "load": load, "workload": w, "decile": d, "value": load * d * (1 + 3 * w)}
        for load in (0.8, 1.2)
        for w in (0, 1)
        for d in (1, 2)
    ]
    line = pictures.by_decile(rows, load=1.2).axes[0].lines[0]
    assert np.asarray(line.get_ydata()).tolist() == pytest.approx([3.0, 6.0])
    line = pictures.by_decile(rows, load=1.2, average="geometric").axes[0].lines[0]
    assert np.asarray(line.get_ydata()).tolist() == pytest.approx([2.4, 4.8])
    with pytest.raises(InputError, match="by decile at load 1"):
        pictures.by_decile(rows, load=1.0)


def test_a_line_against_load_takes_whole_schedules_only(rows: list[dict[str, Any]]) -> None:
    axes = pictures.against_load(rows, "worst_slr").axes[0]
    assert [line.get_label() for line in axes.lines] == list(pictures.POLICIES.values())
    expected = np.mean(
        [
            row["value"]
            for row in rows
            if (row["policy"], row["metric"], row["load"], row.get("decile")) == ("lrtf", "worst_slr", 0.8, None)
        ]
    )
    assert np.asarray(axes.lines[-1].get_ydata())[0] == pytest.approx(expected)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["80 %", "90 %", "100 %", "110 %", "120 %"]


def test_a_policy_keeps_its_colour_whoever_else_is_shown(rows: list[dict[str, Any]]) -> None:
    few = pictures.against_load(rows, "mean_slr", policies=["lrtf", "p-slr"]).axes[0].lines
    many = pictures.against_load(rows, "mean_slr").axes[0].lines
    colours = {line.get_label(): line.get_color() for line in many}
    assert [line.get_color() for line in few] == [colours["LRTF"], colours["P-SLR"]]


def test_policies_of_others_come_after_those_of_the_paper() -> None:
    rows = [{"policy": p, "metric": "mean_slr", "value": v} for p, v in (("own", 2.0), ("srtf", 1.0), ("own", 4.0))]
    axes = pictures.bars(rows, "mean_slr").axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["SRTF", "own"]
    assert [text.get_text() for text in axes.texts] == ["1", "3"]


def test_columns_are_as_good_as_rows(rows: list[dict[str, Any]]) -> None:
    columns = {name: [row.get(name) for row in rows] for name in (*rows[0], "decile")}
    assert svg(pictures.FIGURES["figure-9"](columns), "a") == svg(pictures.FIGURES["figure-9"](rows), "a")


def test_missing_rows_are_named(rows: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError, match="metric 'colour'"):
        pictures.bars(rows, "colour")
    with pytest.raises(InputError, match="policy 'easy'"):
        pictures.box_by_policy(rows, "mean_slr", policies=["easy"])


def test_tables_3_and_4_have_a_row_for_each_policy_and_load(rows: list[dict[str, Any]]) -> None:
    table = pictures.TABLES["table-3"](rows)
    assert len(table) == 6 * 5
    assert (table[0].other, table[0].load, table[0].printed) == ("lrtf", 0.8, 96)
    assert table[5].printed == 54
    for cell in table:
        assert cell.wins + cell.ties + cell.losses == 15
        assert cell.low <= cell.dominance == (cell.wins + cell.ties) / 15 <= cell.high
    assert table[4].significant_log
    assert pictures.TABLES["table-4"](rows)[5].printed == 59


def test_a_table_of_comparisons_is_that_of_their_rows(rows: list[dict[str, Any]]) -> None:
    found = compare_policies(Paired.from_rows(rows, "worst_slr"), by_kind=True)
    assert pictures.dominance_table(found, "worst_slr") == pictures.dominance_table(rows, "worst_slr")


def test_the_table_as_text_has_the_layout_of_the_paper(rows: list[dict[str, Any]]) -> None:
    lines = pictures.dominance_text(pictures.dominance_table(rows, "worst_slr"))
    assert lines[0] == ["", "80 %", "90 %", "100 %", "110 %", "120 %"]
    assert [line[0] for line in lines[1:]] == ["LRTF", "SRTF", "Random", "FIFO Task", "FIFO Job", "Fair Share"]
    assert re.fullmatch(r"\d+ \[\d+, \d+\]\*?'? \(printed 96\)", lines[1][1])


def test_table_5_has_the_numbers_of_the_paper_next_to_it(rows: list[dict[str, Any]]) -> None:
    table = pictures.TABLES["table-5"](rows)
    assert [row["policy"] for row in table] == list(pictures.POLICIES)
    assert table[0]["printed_peak_in_flight"] == 489
    assert table[0]["peak_in_flight"] > 0
