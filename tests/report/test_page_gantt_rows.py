"""The chart of a log with partitions and dates, in a browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gridsim.model.dates import calendar_of
from gridsim.number_formatting import when
from gridsim.record import Record
from gridsim.report.comparison import Comparison

pytestmark = pytest.mark.long

SPRING = 1_774_652_400
"""Midnight of 28 March 2026 in Berlin, a day before clocks were put forward."""


@pytest.fixture(scope="module")
def shown(making: Callable[..., dict[str, Record]]) -> dict[str, Record]:
    """Jobs of three partitions, one of them small, across a change to summer time."""
    records = making(1200, policies=2)
    workload = next(iter(records.values())).workload
    labels = {**workload.labels, "partition": np.where(np.arange(1200) % 10 == 7, 2, np.arange(1200) % 2)}
    labels["account"] = np.arange(1200) % 12
    workload = replace(
        workload,
        labels=labels,
        names={"partition": ("batch", "gpu", "debug")},
        provenance={"clock": {"origin": SPRING, "zone": "Europe/Berlin"}},
    )
    return {label: replace(record, workload=workload) for label, record in records.items()}


@pytest.fixture(scope="module")
def opened(
    browser: Any,
    visit: Callable[..., Any],
    shown: dict[str, Record],
    comparing: Callable[..., Comparison],
    tmp_path_factory: pytest.TempPathFactory,
) -> Any:
    path = comparing(shown).page(tmp_path_factory.mktemp("bands") / "page.html")
    return visit(browser, path.as_uri())


def test_every_partition_has_a_band_with_its_name(opened: Any) -> None:
    assert opened.execute_script("gridsimGantt.draw(); return gridsimGantt.lastBands") == 2 * 3
    bands = opened.execute_script("return gridsimGantt.data.bands")
    assert [band["name"] for band in bands] == ["batch", "gpu", "debug"]
    assert sum(band["high"] for band in bands) == pytest.approx(1)
    assert min(band["high"] for band in bands) > 0.06
    assert "Rows are grouped by partition" in opened.find_element("css selector", "#gantt .note").text


def test_the_job_below_the_pointer_is_of_the_partition_whose_band_it_is(opened: Any) -> None:
    found = opened.execute_script("""
        const { data } = gridsimGantt, canvas = document.querySelector("#gantt canvas"), found = [];
        const top = 24, high = canvas.clientHeight;
        for (let y = top; y < high; y += 4) for (let x = 60; x < canvas.clientWidth; x += 15) {
          const [row, one] = gridsimGantt.jobAt(x, y);
          if (row < 0) continue;
          const p = [...one.row.keys()].find((k) => one.row[k] === row);
          const band = data.bands.findIndex((band) => one.low[p] < band.base + band.cores);
          found.push([data.colours.partition.values[row], band]);
        }
        return found;
    """)
    assert len(found) > 100
    assert {band for _, band in found} == {0, 1, 2}
    assert all(partition == band for partition, band in found)


def test_jobs_are_coloured_by_whatever_the_log_names(opened: Any) -> None:
    options = opened.execute_script("return [...document.querySelector('[name=colour]').options].map((it) => it.value)")
    assert options == ["size", "account", "partition", "user", "wait"]
    for label, first, others in (("account", "account ", True), ("partition", "partition ", False)):
        legend = opened.execute_script(
            "const box = document.querySelector('[name=colour]'); box.value = arguments[0];"
            "box.dispatchEvent(new Event('change')); gridsimGantt.draw();"
            "return [...document.querySelectorAll('.legend li')].map((it) => it.textContent)",
            label,
        )
        assert legend[0].startswith(first)
        assert ("all others" in legend) == others


def test_the_axis_and_the_facts_have_dates_of_the_log_in_its_zone(opened: Any, shown: dict[str, Record]) -> None:
    record = shown["fcfs"]
    calendar = calendar_of(record.workload.provenance)
    row = 600
    told = opened.execute_script(
        "gridsimGantt.find(String(arguments[0])); gridsimGantt.draw();"
        "return document.querySelector('#why .pinned').textContent",
        int(record.workload.job[row]),
    )
    assert when(float(record.start[row]), calendar) in told
    texts = opened.execute_script("gridsimGantt.look(0, 2 * 86400); gridsimGantt.draw(); return gridsimGantt.lastTicks")
    assert "29 Mar, 00:00" in texts
    assert "30 Mar, 00:00" in texts  # 23 hours later
    assert {text[-5:] for text in texts} <= {"00:00", "06:00", "12:00", "18:00"}
    assert "Times are those of the log, Europe/Berlin." in opened.find_element("css selector", "#gantt .note").text
