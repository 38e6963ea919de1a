"""Cores and queue over time, by hand on three jobs and against a simple second implementation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.metrics.utilisation import (
    Steps,
    arrival_window,
    busy_cores,
    keeps_up,
    longest_queue,
    makespan,
    makespan_window,
    mean_queue_length,
    offered_load,
    queue_length,
    throughput,
    utilisation,
    waiting_area,
)
from gridsim.record import Record
from gridsim.simulation import simulate
from gridsim.workload.synthetic.lublin import default_workload

THREE = [
    {"submit": 10, "start": 10, "end": 20, "cores": 4},
    {"submit": 12, "start": 20, "end": 30, "cores": 2},
    {"submit": 15, "start": 20, "end": 50, "cores": 1},
]


@pytest.fixture
def record() -> Record:
    """Four cores, one job at a time, then two that start at the end of the first one."""
    return Record.from_rows(THREE, cores=4)


@pytest.fixture
def nothing() -> Record:
    """A record in which nothing ran."""
    return Record.from_rows([{"submit": 0, "start": None, "end": None, "runtime": 1}])


def test_windows_and_makespan_by_hand(record: Record) -> None:
    assert makespan_window(record) == (10, 50)
    assert arrival_window(record) == (10, 15)
    assert makespan(record) == 40


def test_utilisation_by_hand_over_stated_intervals(record: Record) -> None:
    assert utilisation(record) == (40 + 20 + 30) / (4 * 40)
    assert utilisation(record, *arrival_window(record)) == 1.0
    assert utilisation(record, 15, 25) == (5 * 4 + 5 * 3) / 40
    assert utilisation(record, 100, 200) == 0.0
    assert math.isnan(utilisation(record, 15, 15))


def test_an_end_and_a_start_in_one_instant_never_count_twice(record: Record) -> None:
    busy = busy_cores(record)
    assert busy.times_s.tolist() == [10, 20, 30, 50]
    assert busy.values.tolist() == [4, 3, 1, 0]
    assert busy.max() == 4


def test_the_queue_by_hand(record: Record) -> None:
    queue = queue_length(record)
    assert queue.times_s.tolist() == [10, 12, 15, 20]
    assert queue.values.tolist() == [0, 1, 2, 0]
    assert mean_queue_length(record) == (8 + 5) / 40 == queue.mean(10, 50)
    assert mean_queue_length(record, 14, 16) == 1.5 == queue.mean(14, 16)
    assert queue.max(10, 50) == 2
    assert queue.max(12, 15) == 1
    assert queue.max(20, 50) == 0
    assert waiting_area(record) == 2 * 8 + 1 * 5


def test_throughput_and_offered_load_by_hand(record: Record) -> None:
    assert throughput(record) == 3 * 3600 / 40
    assert throughput(record, 20, 30) == 1 * 3600 / 10
    assert offered_load(record) == 90 / (4 * 5) == record.workload.offered_load(4)
    assert offered_load(record, 12, 22) == 50 / (4 * 10)


def test_numbers_of_nothing_are_nan(nothing: Record) -> None:
    for record in (nothing, nothing.select(slice(0, 0))):
        assert math.isnan(makespan(record))
        assert math.isnan(utilisation(record))
        assert math.isnan(mean_queue_length(record))
        assert math.isnan(throughput(record))
        assert math.isnan(offered_load(record))
        assert waiting_area(record) == 0
        queue = queue_length(record)
        assert math.isnan(queue.mean())
        assert math.isnan(queue.max())
        assert len(queue.resample(3).times_s) == 0
        assert queue.mean(0, 10) == 0 == queue.at(3.0)


def test_steps_answer_between_before_and_after_their_times() -> None:
    steps = Steps(np.array([0.0, 10.0, 30.0]), np.array([2, 1, 0]))
    assert steps.at(np.array([-1.0, 0.0, 9.9, 10.0, 30.0, 99.0])).tolist() == [0, 2, 2, 1, 0, 0]
    assert steps.mean() == (20 + 20) / 30
    assert steps.mean(-10, 40) == 40 / 50
    assert math.isnan(steps.mean(5, 5))


def test_resampled_means_are_time_weighted_and_keep_the_mean() -> None:
    steps = Steps(np.array([0.0, 10.0, 30.0]), np.array([2, 1, 0]))
    binned = steps.resample(2)
    assert binned.times_s.tolist() == [0, 15, 30]
    assert binned.values.tolist() == [25 / 15, 1.0, 0.0]
    assert binned.mean() == pytest.approx(steps.mean())
    assert steps.resample(7, -3, 44).mean() == pytest.approx(steps.mean(-3, 44))
    with pytest.raises(InputError, match="0 bins"):
        steps.resample(0)


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 9), st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=8
    ),
    st.integers(0, 20),
    st.integers(1, 20),
)
def test_steps_agree_with_counting_second_by_second(
    jobs: list[tuple[int, int, int, int]], start: int, length: int
) -> None:
    rows = [
        {"submit": submit, "start": submit + wait, "end": submit + wait + runtime, "cores": cores}
        for submit, wait, runtime, cores in jobs
    ]
    record = Record.from_rows(rows, cores=8)
    clock = range(start, start + length)
    busy = [sum(row["cores"] for row in rows if row["start"] <= now < row["end"]) for now in clock]
    queue = [sum(row["submit"] <= now < row["start"] for row in rows) for now in clock]
    steps = busy_cores(record)
    assert steps.at(np.array(clock, dtype=float)).tolist() == busy
    assert queue_length(record).at(np.array(clock, dtype=float)).tolist() == queue
    assert queue_length(record).max(start, start + length) == longest_queue(record, start, start + length) == max(queue)
    assert steps.mean(start, start + length) == pytest.approx(np.mean(busy))
    assert utilisation(record, start, start + length) == pytest.approx(np.mean(busy) / 8)
    assert mean_queue_length(record, start, start + length) == pytest.approx(np.mean(queue))


def one_core(submits: list[float], held: float = 10.0) -> Record:
    """Jobs of one core on a machine with one core, under FCFS."""
    free, rows = 0.0, []
    for submit in submits:
        start = max(free, submit)
        free = start + held
        rows.append({"submit": submit, "start": start, "end": free, "cores": 1})
    return Record.from_rows(rows)


@pytest.mark.parametrize(("every", "kept"), [(5.0, False), (9.0, False), (11.0, True), (20.0, True)])
def test_a_queue_that_only_grows_is_seen(every: float, kept: bool) -> None:
    assert keeps_up(one_core([every * number for number in range(500)])) == kept


def test_a_burst_is_no_saturation_wherever_it_is() -> None:
    calm = [20.0 * number for number in range(500)]
    for place in (0, 250, 400):
        burst = [calm[place] + number for number in range(100)]
        assert keeps_up(one_core(sorted([*calm, *burst])))


def test_too_few_jobs_say_nothing() -> None:
    assert keeps_up(one_core([5.0 * number for number in range(50)]))


def test_empty_queues_idle_machines_and_simultaneous_arrivals() -> None:
    assert keeps_up(one_core([20.0 * number for number in range(200)]))
    assert keeps_up(one_core([0.0] * 200))
    assert keeps_up(Record.from_rows([{"submit": 0, "start": None, "end": None, "cores": 1, "runtime": 5}]))


@pytest.mark.parametrize(("load", "policy", "kept"), [(0.5, "fcfs", True), (0.9, "fcfs", False), (0.7, "easy", True)])
def test_the_synthetic_workload_saturates_fcfs_above_its_limit_of_three_fifths(
    load: float, policy: str, kept: bool
) -> None:
    assert keeps_up(simulate(default_workload(load=load), policy=policy).record) == kept
