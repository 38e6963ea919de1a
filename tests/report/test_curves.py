"""Numbers of the figures as rows: those that are drawn, in columns that the reference describes."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from gridsim.record import Record
from gridsim.report import curves, figures
from gridsim.report.comparison import Comparison

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "files.md"


@pytest.fixture(scope="module")
def written(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numbers")
    names = comparison.write(folder)
    assert names == {path.name for path in folder.iterdir()}
    return folder


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_file_of_distributions_has_the_points_that_are_drawn(written: Path, records: dict[str, Record]) -> None:
    table = rows(written / "distributions.csv")
    assert {row["metric"] for row in table} == {"wait", "bounded_slowdown"}
    for line, label in zip(figures.waits(records).axes[0].lines, records, strict=True):
        own = [row for row in table if (row["metric"], row["policy"]) == ("wait", label)]
        assert np.asarray(line.get_xdata())[1:] == pytest.approx([float(row["value"]) for row in own])
        assert np.asarray(line.get_ydata())[1:] == pytest.approx([float(row["share"]) for row in own])


def test_the_file_over_time_has_the_bins_that_are_drawn(written: Path, records: dict[str, Record]) -> None:
    table = rows(written / "over_time.csv")
    for quantity, figure in (("busy_share", figures.utilisation(records)), ("waiting", figures.queue(records))):
        for line, label in zip(figure.axes[0].lines, records, strict=True):
            own = [row for row in table if (row["quantity"], row["policy"]) == (quantity, label)]
            assert len(own) == curves.BINS
            assert np.asarray(line.get_ydata())[:-1] == pytest.approx([float(row["value"]) for row in own])
    assert float(table[0]["start"]) == records["fcfs"].submit[0]


def test_utilisation_by_day_and_week_begins_at_midnight_and_on_monday(comparing: Callable[..., Comparison]) -> None:
    day, monday = 86_400, 4 * 86_400  # second 0 is a Thursday
    jobs = [{"submit": day // 2, "start": day // 2, "end": 2 * day, "cores": 2}]
    jobs += [{"submit": monday + 7 * day, "start": monday + 7 * day, "end": monday + 14 * day, "cores": 1}]
    record = Record.from_rows(jobs, cores=4)
    assert curves.busy_share_by("week", {"a": record})["a"].times_s[:2].tolist() == [day / 2, 7.5 * day]
    header = {"UnixStartTime": ["604800"], "TimeZoneString": ["UTC"]}
    dated = replace(record.workload, provenance={**record.workload.provenance, "header": header})
    record = replace(record, workload=dated)
    daily, weekly = (curves.busy_share_by(period, {"a": record})["a"] for period in ("day", "week"))
    assert daily.times_s[:3].tolist() == [day / 2, day, 2 * day]
    assert daily.values[:3].tolist() == [0.5, 0.5, 0.0]
    assert weekly.times_s.tolist() == [day / 2, monday, monday + 7 * day, monday + 14 * day]
    assert weekly.values[:3] == pytest.approx([0.5 * 1.5 / 3.5, 0, 0.25])
    table = {row.quantity for row in curves._courses(comparing({"a": record, "b": record}))}
    assert table == {"busy_share", "waiting", "busy_share_day", "busy_share_week"}


def test_the_file_of_fairness_has_the_periods_that_are_drawn(
    written: Path, comparison: Comparison, records: dict[str, Record]
) -> None:
    table = rows(written / "fairness.csv")
    found = curves.fairness(comparison)
    assert len(table) == sum(len(it.gini) for it in found.values())
    for line, label in zip(figures.inequality(found, comparison.labels).axes[0].lines, records, strict=True):
        own = [float(row["gini"] or "nan") for row in table if row["policy"] == label]
        assert np.asarray(line.get_ydata())[:-1] == pytest.approx(own, nan_ok=True)


def test_a_log_without_users_has_no_fairness(comparing: Callable[..., Comparison]) -> None:
    submit = [3600.0 * hour for hour in range(20)]
    record = Record.from_rows([{"submit": at, "start": at, "end": at + 5, "cores": 1} for at in submit])
    assert curves.fairness(comparing({"a": record, "b": record})) == {}


@pytest.mark.parametrize("name", curves.FILES)
def test_every_column_is_described(name: str) -> None:
    section = REFERENCE.read_text(encoding="utf-8").split(f"## Columns of `{name}`")[1].split("\n## ")[0]
    assert {field.name for field in fields(curves.FILES[name])} <= set(re.findall(r"`(\w+)`", section))
