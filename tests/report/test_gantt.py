"""Embedded schedules of the page: complete, or a stated part."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gridsim.record import Record
from gridsim.report import gantt


def unpacked(column: dict[str, Any], deflated: bool) -> npt.NDArray[Any]:
    raw, kind = base64.b64decode(column["data"]), np.dtype(f"<{column['type']}")
    if deflated:
        planes = np.frombuffer(zlib.decompress(raw), dtype=np.uint8)
        raw = planes.reshape(kind.itemsize, column["length"]).T.tobytes()
    values = np.frombuffer(raw, dtype=kind)
    assert len(values) == column["length"]
    return values


@pytest.mark.parametrize("jobs", [300, 20_000])
def test_every_start_and_every_core_can_be_unpacked(making: Callable[..., dict[str, Record]], jobs: int) -> None:
    records = making(jobs, policies=2)
    pack = gantt.pack(records, first="greedy")
    json.dumps(pack)
    assert pack["deflated"] == (jobs > 1000)
    assert (pack["jobs"], pack["tick"], pack["shown"], pack["note"]) == (jobs, 1.0, 1, None)
    columns = {name: unpacked(column, pack["deflated"]) for name, column in pack["columns"].items()}
    submit = np.cumsum(columns["submit"]) + pack["origin"]
    for packed, record in zip(pack["policies"], records.values(), strict=True):
        assert "runtime" not in packed
        values = {name: unpacked(packed[name], pack["deflated"]) for name in ("wait", "pieces", "low", "size")}
        assert np.array_equal(submit + values["wait"], record.start)
        placed = gantt.placement(record)
        assert np.array_equal(values["low"], placed.low)
        assert np.array_equal(values["pieces"], np.diff(placed.offset))
    assert np.array_equal(np.cumsum(columns["job"]), records["fcfs"].workload.job)
    assert np.array_equal(columns["runtime"], records["fcfs"].held)


def test_jobs_that_did_not_run_have_no_start_and_no_pieces() -> None:
    rows: list[dict[str, Any]] = [
        {"submit": 0, "start": 0, "end": 5, "cores": 2},
        {"submit": 1, "start": None, "end": None, "cores": 2, "runtime": 5},
    ]
    pack = gantt.pack({"a": Record.from_rows(rows, cores=4)})
    assert unpacked(pack["policies"][0]["wait"], deflated=False).tolist() == [0, -1]
    assert unpacked(pack["policies"][0]["pieces"], deflated=False).tolist() == [1, 0]


def test_runtimes_that_differ_between_policies_are_kept_apart() -> None:
    short = Record.from_rows([{"submit": 0, "start": 0, "end": 5, "cores": 2}], cores=4)
    long = Record.from_rows([{"submit": 0, "start": 0, "end": 9, "cores": 2}], cores=4)
    pack = gantt.pack({"short": short, "long": long})
    assert unpacked(pack["policies"][1]["runtime"], deflated=False).tolist() == [9]


@pytest.mark.parametrize(("scale", "tick"), [(1.0, 1.0), (0.001, 1e-6), (1000.5, 1e-6)])
def test_short_schedules_keep_their_fractions_of_a_second(scale: float, tick: float) -> None:
    rows = [{"submit": t * scale, "start": t * scale, "end": (t + 1) * scale, "cores": 1} for t in range(2)]
    assert gantt.pack({"a": Record.from_rows(rows, cores=1)})["tick"] in (tick, 1e-4)


def test_long_schedules_fit_31_bits() -> None:
    rows = [{"submit": t, "start": t, "end": t + 10.25, "cores": 1} for t in (0.0, 9e9)]
    pack = gantt.pack({"a": Record.from_rows(rows, cores=1)})
    assert int(unpacked(pack["columns"]["submit"], deflated=False).sum()) * pack["tick"] == pytest.approx(9e9)
    assert pack["columns"]["submit"]["type"] == "i4"


def test_a_large_log_shows_the_stretch_with_the_most_waiting_and_says_so(
    making: Callable[..., dict[str, Record]],
) -> None:
    records = making(2000, policies=2)
    pack = gantt.pack(records, jobs=500)
    assert pack["jobs"] == 500
    assert "500 of 2,000 jobs" in pack["note"]
    assert pack["since"] == pack["origin"] - records["fcfs"].submit[0]
    assert gantt.window(records, rows=600).rows.stop - gantt.window(records, rows=600).rows.start == 300
    rows = gantt.window(records, jobs=500).rows
    waits = np.sum([record.wait for record in records.values()], axis=0)
    assert waits[rows].sum() == max(waits[first : first + 500].sum() for first in range(1501))


def test_the_largest_archive_logs_are_whole() -> None:
    assert gantt.MOST_JOBS >= 77_205
    assert gantt.MOST_ROWS >= 3 * 77_205
