"""Load against performance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gridsim as gs
from gridsim.errors import InputError
from gridsim.metrics.load_performance import LOADS, SLOWDOWNS, Joint, joint, load_bins
from gridsim.record import Record
from gridsim.workload.synthetic.lublin import default_workload

DAY = 86_400


def record(rows: list[tuple[int, int, int, int]], cores: int = 4) -> Record:
    made = [{"submit": submit, "start": start, "end": end, "cores": width} for submit, start, end, width in rows]
    return replace(Record.from_rows(made), cores=cores)


def test_periods_have_their_load_and_slowdown_and_few_jobs_are_left_out() -> None:
    rows = [(0, 0, 100, 1), (50, 100, 200, 2), (100, 200, 300, 4), (350, 400, 500, 1)]
    found = joint(record(rows), period=100, least=1)
    assert found.start.tolist() == [0, 100, 300]
    assert found.load.tolist() == [0.75, 1.0, 0.25]
    assert found.slowdown.tolist() == [1.25, 2.0, 1.5]
    assert found.jobs.tolist() == [2, 1, 1]
    assert joint(record(rows), period=100, least=2).left_out == 2
    busy = joint(record(rows), period=100, least=1, by="utilisation")
    assert busy.load.tolist() == [0.25, 0.5, 0.0]


def test_cells_hold_all_periods_and_their_jobs() -> None:
    found = Joint(
        np.arange(4.0), np.array([0.3, 0.0, 1.95, 7.0]), np.array([1.0, 3.9, 4.0, 1e9]), np.array([10, 11, 12, 13]), 0
    )
    cells = found.cells()
    assert cells.shape == (LOADS, SLOWDOWNS)
    assert [tuple(cell) for cell in np.argwhere(cells).tolist()] == [(0, 1), (3, 0), (19, 2), (20, 16)]
    assert cells.sum() == 4
    assert found.cells("jobs")[3, 0] == 10
    assert found.cells("jobs").sum() == 46


def test_two_policies_are_paired_by_period() -> None:
    mine = Joint(np.array([0.0, 1, 2]), np.array([0.5, 0.55, 0.9]), np.array([2.0, 4, 6]), np.ones(3, dtype=int), 0)
    theirs = Joint(np.array([1.0, 2, 3]), np.array([0.55, 0.9, 0.1]), np.array([5.0, 1, 9]), np.ones(3, dtype=int), 0)
    assert [tuple(it) for it in load_bins(mine, theirs)] == [(0.5, 1, 4.0, 5.0, -1.0), (0.9, 1, 6.0, 1.0, 5.0)]


def test_days_begin_at_midnight_where_the_log_has_dates() -> None:
    log = gs.Workload.from_columns(
        submit=[0, 3 * 3600], runtime=[60, 60], cores=[1, 1], provenance={"header": {"UnixStartTime": ["893466664"]}}
    )
    found = joint(gs.simulate(log, platform=gs.Platform.single(4), policy="fcfs").record, least=1)
    assert (found.start + 893_466_664).tolist() == [893_466_664 // DAY * DAY]  # 02:04 and 05:04 of one day


MEASURED = [
    pytest.param("SDSC-SP2-1998-4.2-cln", 106, [0.51, 0.86, 1.10], [25, 38, 47], 0.14, marks=pytest.mark.others),
    pytest.param("CTC-SP2-1996-3.1-cln", 43, None, [10, 37, 41], 0.34, marks=pytest.mark.others),
    ("generated", None, None, None, None),
]


@pytest.mark.parametrize(("name", "days", "quartiles", "medians", "correlation"), MEASURED)
def test_days_of_a_schedule(
    name: str,
    days: int | None,
    quartiles: list[float] | None,
    medians: list[float] | None,
    correlation: float | None,
    others: Callable[[str], Path],
) -> None:
    if name == "generated":
        log = default_workload(jobs=1000)
    else:
        log = gs.read_workload(others(f"swf/{name}.swf.gz")).select(slice(20_000, 30_000))
        log = replace(log, provenance={})  # what was measured has days from the first submit
    found = joint(gs.simulate(log, policy="easy").record)
    assert found.cells().sum() == len(found.load) > 10
    assert found.cells("jobs").sum() == found.jobs.sum() <= len(log)
    if days is not None:
        assert len(found.load) == days
        low, high = found.load < 0.6, found.load >= 0.9
        told = [float(np.median(found.slowdown[rows])) for rows in (low, ~low & ~high, high)]
        assert np.round(told).tolist() == medians
        assert found.rank_correlation() == pytest.approx(correlation, abs=0.005)
    if quartiles is not None:
        assert np.quantile(found.load, [0.25, 0.5, 0.75]).tolist() == pytest.approx(quartiles, abs=0.005)


def test_an_invalid_period_is_refused() -> None:
    with pytest.raises(InputError, match="a period of 0 s"):
        joint(record([(0, 0, 1, 1)]), period=0)
