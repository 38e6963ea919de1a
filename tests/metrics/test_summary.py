"""All metrics of a record, and their breakdowns."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.metrics.summary import METRICS, cut, metrics
from gridsim.record import Record, Status


@pytest.fixture
def record() -> Record:
    """Three jobs on four cores; the last overtakes the second."""
    return Record.from_rows(
        [
            {"submit": 0, "start": 0, "end": 10, "cores": 3},
            {"submit": 2, "start": 10, "end": 20, "cores": 4},
            {
                "submit": 4,
                "start": 4,
                "end": 8,
                "cores": 1,
                "runtime": 9,
                "estimate": 4,
                "status": Status.killed_walltime,
            },
        ]
    )


def test_numbers_by_hand(record: Record) -> None:
    numbers = metrics(record)
    expected = {
        "wait_mean": 8 / 3, "wait_median": 0, "wait_p95": 7.2, "wait_p99": 7.84, "wait_max": 8,
        "wait_mean_by_area": 8 * 40 / 74, "wait_median_by_area": 8,
        "response_mean": (10 + 18 + 4) / 3, "slowdown_mean": (1 + 1.8 + 1) / 3, "bounded_slowdown_max": 1.8,
        "utilisation": 74 / 80, "utilisation_arrivals": 12 / 16, "makespan": 20, "throughput": 540,
        "queue_length_mean": 8 / 20, "queue_length_max": 1, "busy_cores_mean": 74 / 20, "waiting_area": 32,
        "offered_load": 79 / 16, "backfilled_share": 1 / 3, "backfilled_share_by_area": 4 / 74,
        "submitted": 3, "completed": 2, "killed_walltime": 1, "rejected": 0, "jobs_cut": 0,
        "interval_start": 0, "interval_end": 20,
    }  # fmt: skip
    assert {name: numbers[name] for name in expected} == pytest.approx(expected)


def test_every_number_is_described_and_a_float(record: Record) -> None:
    numbers = metrics(record, warmup=1)
    assert list(numbers) == list(METRICS)
    assert all(type(value) is float for value in numbers.values())
    assert all(metric.better in ("lower", "higher", None) and metric.description for metric in METRICS.values())


def test_cuts_keep_jobs_by_submit_time_and_narrow_the_interval(record: Record) -> None:
    assert cut(record, warmup=2).tolist() == [False, True, True]
    assert cut(record, cooldown=2).tolist() == [True, True, False]
    numbers = metrics(record, warmup=2)
    assert numbers["jobs_cut"] == 1
    assert numbers["submitted"] == 2
    assert numbers["wait_mean"] == 4
    assert (numbers["interval_start"], numbers["interval_end"]) == (2, 4)
    assert numbers["utilisation"] == 6 / 8 == numbers["utilisation_arrivals"]
    assert numbers["queue_length_mean"] == 1
    assert numbers["backfilled_share"] == 1 / 2
    assert numbers["makespan"] == 20


def test_cuts_that_leave_nothing_or_are_no_seconds_are_refused(record: Record) -> None:
    with pytest.raises(InputError, match="exclude all jobs"):
        metrics(record, warmup=3, cooldown=1)
    with pytest.raises(InputError, match="0 s or more"):
        metrics(record, cooldown=-1)
    with pytest.raises(InputError, match="0 s or more"):
        cut(record, warmup=math.nan)


def test_a_record_of_nothing_has_numbers_too() -> None:
    nothing = Record.from_rows([{"submit": 0, "start": None, "end": None, "runtime": 1}])
    for record in (nothing, nothing.select(slice(0, 0))):
        numbers = metrics(record)
        assert math.isnan(numbers["wait_mean"])
        assert math.isnan(numbers["utilisation"])
        assert numbers["submitted"] == len(record) == numbers["rejected"]


def test_statuses_add_up_to_submitted() -> None:
    ended = [status for status in Status if status.name in METRICS]  # the remaining state of a finished run
    rng = np.random.default_rng(1)
    rows = [
        {"submit": t, "start": t, "end": t + 1, "status": status}
        if status < Status.rejected
        else {"submit": t, "start": None, "end": None, "runtime": 1, "status": status}
        for t, status in enumerate(rng.integers(0, len(ended), 50).tolist())
    ]
    numbers = metrics(Record.from_rows(rows))
    assert sum(numbers[status.name] for status in ended) == numbers["submitted"] == 50
