"""Cores for drawing: never shared, never too many, in few pieces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.record import Record
from gridsim.report.core_assignment import CoreAssignment, assign_cores

MACHINE = 12


def fitted(jobs: Sequence[tuple[int, int, int]]) -> list[dict[str, int]]:
    """Rows of the jobs (start, length, cores) that fit with the previous ones, checked second by second."""
    busy = np.zeros(200, dtype=int)
    rows = []
    for start, length, cores in jobs:
        if busy[start : start + length].max() + cores <= MACHINE:
            busy[start : start + length] += cores
            rows.append({"submit": 0, "start": start, "end": start + length, "cores": cores})
    return rows


def placed(record: Record) -> CoreAssignment:
    workload = record.workload
    return assign_cores(record.start_us, record.end_us, workload.cores, record.cores, job=workload.job)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(1, MACHINE)), min_size=1, max_size=60))
def test_no_core_is_ever_shared_and_every_job_has_its_number(jobs: list[tuple[int, int, int]]) -> None:
    rows = fitted(jobs)
    record = Record.from_rows(rows, cores=MACHINE)
    placement = placed(record)
    owner = np.full((200, MACHINE), -1)
    for row in range(len(record)):
        cores = placement.cores(row)
        assert len(cores) == len(set(cores.tolist())) == record.workload.cores[row]
        assert cores.min() >= 0
        assert cores.max() < MACHINE
        span = owner[int(record.start[row]) : int(record.end[row]), cores]
        assert (span == -1).all()
        owner[int(record.start[row]) : int(record.end[row]), cores] = row


def test_a_job_takes_the_first_hole_that_is_wide_enough() -> None:
    rows = [
        {"submit": 0, "start": 0, "end": 5, "cores": 2},
        {"submit": 0, "start": 0, "end": 9, "cores": 1},
        {"submit": 0, "start": 5, "end": 9, "cores": 3},
    ]
    placement = placed(Record.from_rows(rows, cores=6))
    assert placement.cores(2).tolist() == [3, 4, 5]


def test_a_job_that_fits_no_hole_takes_the_widest_ones() -> None:
    rows = [
        {"submit": 0, "start": 0, "end": 5, "cores": 1},
        {"submit": 0, "start": 0, "end": 9, "cores": 1},
        {"submit": 0, "start": 5, "end": 9, "cores": 4},
    ]
    placement = placed(Record.from_rows(rows, cores=6))
    assert placement.cores(2).tolist() == [2, 3, 4, 5]
    placement = placed(Record.from_rows(rows, cores=5))
    assert placement.cores(2).tolist() == [0, 2, 3, 4]
    assert placement.size[placement.offset[2] : placement.offset[3]].tolist() == [3, 1]


def test_ends_come_before_starts_of_the_same_instant() -> None:
    rows = [{"submit": 0, "start": step, "end": step + 1, "cores": 4} for step in range(5)]
    assert placed(Record.from_rows(rows, cores=4)).low.tolist() == [0] * 5


def test_jobs_that_did_not_run_hold_nothing() -> None:
    rows = [
        {"submit": 0, "start": None, "end": None, "cores": 4, "runtime": 5},
        {"submit": 0, "start": 0, "end": 5, "cores": 4},
    ]
    placement = placed(Record.from_rows(rows, cores=4))
    assert placement.offset.tolist() == [0, 0, 1]


def test_an_overfull_schedule_names_the_job() -> None:
    rows = [
        {"submit": 0, "start": 0, "end": 5, "cores": 3, "job": 7},
        {"submit": 0, "start": 4, "end": 5, "cores": 2, "job": 9},
    ]
    with pytest.raises(InputError, match="job 9 starts at 4 s and needs 2 of 1 free cores; the machine has 4"):
        placed(Record.from_rows(rows, cores=4))


def test_an_empty_record_has_no_pieces() -> None:
    rows = [{"submit": 0, "start": 0, "end": 5, "cores": 3}]
    record = Record.from_rows(rows, cores=4)
    assert len(placed(record.select(slice(0, 0))).low) == 0


def test_capacity_for_pieces_grows_with_them() -> None:
    """Every second one-core job continues, so that later wide jobs have as many pieces as there are holes."""
    n, wide = 64, 40
    start = np.array([0] * n + [2 + 2 * k for k in range(wide)])
    end = np.array([1 if k % 2 else 1000 for k in range(n)] + [3 + 2 * k for k in range(wide)])
    placed = assign_cores(start, end, np.array([1] * n + [n // 2] * wide), n)
    assert np.diff(placed.offset).tolist() == [1] * n + [n // 2] * wide
    assert [placed.cores(n + k).tolist() for k in range(wide)] == [list(range(1, n, 2))] * wide
