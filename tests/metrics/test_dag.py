"""Numbers of DAG schedules: by hand, against an exact second implementation, and on empty and single schedules."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.metrics.dag import (
    DAG_METRICS,
    cumulative_completion,
    dag_metrics,
    interval_metrics,
    job_columns,
    peak_in_flight,
    slr_by_decile,
    utilisation,
)
from gridsim.metrics.schedule import Schedule
from gridsim.model.random_streams import stream
from gridsim.testing import exact_metrics as exactly
from gridsim.testing.exact_metrics import Exact, exact_jobs, exact_metrics


def made(rows: list[tuple[int, int, int, int]], *, cores: int = 4, **given: Any) -> Schedule:
    """Jobs of one task from (arrival, start, finish, cores); the critical path is the execution time."""
    columns = {"arrival": [row[0] for row in rows], "critical_path": [row[2] - row[1] for row in rows], **given}
    return Schedule.from_tasks(
        task_job=list(range(len(rows))),
        task_start=[row[1] for row in rows],
        task_finish=[row[2] for row in rows],
        task_cores=[row[3] for row in rows],
        cores=cores,
        **columns,
    )


def random_schedule(jobs: int, tasks: int, seed: int = 1, *, first: int = 0) -> Schedule:
    """Tasks at random times: no scheduler would produce this, but every number has a value."""
    rng = stream(seed, "tests", "dag")
    job = np.sort(np.concatenate([np.arange(jobs), rng.integers(0, jobs, tasks - jobs)]))
    arrival = first + np.sort(rng.integers(0, 20 * jobs, jobs))
    begin = arrival[job] + rng.integers(0, 500, tasks)
    length = rng.geometric(0.01, tasks)
    longest = np.maximum.reduceat(length, np.searchsorted(job, np.arange(jobs)))
    return Schedule.from_tasks(
        arrival=arrival,
        critical_path=longest,
        task_job=job,
        task_start=begin,
        task_finish=begin + length,
        task_cores=rng.choice([1, 5, 10, 15, 20], tasks),
        cores=400,
    )


def same(fast: dict[str, float], exact: dict[str, Exact]) -> None:
    assert list(fast) == list(exact)
    for name, value in exact.items():
        assert fast[name] == pytest.approx(float(value), rel=1e-12, abs=1e-12, nan_ok=True), name


THREE = made([(0, 0, 4, 2), (1, 2, 4, 2), (3, 4, 10, 4)])


def test_the_numbers_of_three_jobs() -> None:
    numbers = dag_metrics(THREE)
    expected = {
        "makespan": 10,
        "flow": 0.3,
        "utilisation": 36 / 40,
        "utilisation_arrivals": 8 / 12,
        "peak_in_flight": 2,
        "cumulative_completion": 7 * 8 + 7 * 4 + 1 * 24,
        "cumulative_completion_base": 10,
        "mean_wait": 2 / 3,
        "worst_wait": 1,
        "mean_slr": (1 + 1.5 + 7 / 6) / 3,
        "worst_slr": 1.5,
        "worst_speedup": 4 / 3,
        "mean_slr_from_start": 1,
        "sd_slr_from_start": 0,
        "max_over_median_slr": 1.5 / (7 / 6),
        "jobs": 3,
        "unfinished": 0,
    }
    assert {name: numbers[name] for name in expected} == pytest.approx(expected, rel=1e-12)


def test_ends_come_before_starts_at_the_peak() -> None:
    assert peak_in_flight(made([(0, 0, 4, 1), (0, 4, 6, 1)]), 0, 6) == 1
    assert peak_in_flight(made([(0, 0, 5, 1), (0, 4, 6, 1)]), 0, 6) == 2


def test_a_job_is_in_flight_through_its_gaps() -> None:
    gap = Schedule.from_tasks(
        arrival=[0, 0],
        critical_path=[2, 1],
        task_job=[0, 0, 1],
        task_start=[0, 9, 5],
        task_finish=[1, 10, 6],
        cores=1,
    )
    assert dag_metrics(gap)["peak_in_flight"] == 2


def test_one_job_has_no_standard_deviation_and_it_is_not_zero() -> None:
    numbers = dag_metrics(made([(0, 0, 4, 2)]))
    assert [name for name, value in numbers.items() if name.startswith("sd_") and not math.isnan(value)] == []
    assert math.isnan(numbers["utilisation_arrivals"])
    same(numbers, exact_metrics(made([(0, 0, 4, 2)])))


def test_a_schedule_without_jobs_has_no_numbers_but_counts() -> None:
    empty = made([])
    numbers = dag_metrics(empty)
    assert (numbers["makespan"], numbers["jobs"], numbers["peak_in_flight"]) == (0, 0, 0)
    assert math.isnan(numbers["mean_slr"])
    same(numbers, exact_metrics(empty))
    assert np.isnan(slr_by_decile(empty).mean).all()


def test_the_clock_begins_at_the_first_arrival_by_default() -> None:
    late = made([(100, 100, 104, 2), (101, 102, 104, 2), (103, 104, 110, 4)])
    assert dag_metrics(late) == dag_metrics(THREE)
    absolute = dag_metrics(late, origin="absolute")
    assert (absolute["makespan"], absolute["flow"]) == (110, 3 / 110)
    assert absolute["mean_slr"] == dag_metrics(THREE)["mean_slr"]
    same(absolute, exact_metrics(late, origin="absolute"))


def test_a_finish_after_the_base_is_an_error() -> None:
    with pytest.raises(InputError, match="finishes at 10, after the base 9"):
        dag_metrics(THREE, base=9)
    with pytest.raises(InputError, match="after the base"):
        exact_metrics(THREE, base=9)
    assert cumulative_completion(THREE, 12) - cumulative_completion(THREE, 10) == 2 * 36


def test_an_interval_clips_tasks_and_counts_what_is_known_at_its_end() -> None:
    numbers = interval_metrics(THREE, 1, 4)
    assert numbers["flow"] == 2 / 3  # both finishes at 4; the interval is open below, closed above
    assert numbers["utilisation"] == (2 * 3 + 2 * 2) / 12
    assert (numbers["jobs"], numbers["unfinished"]) == (1, 1)  # job 3 arrived at 3 and runs to 10
    assert numbers["mean_slr"] == 1.5
    assert numbers["cumulative_completion"] == 1 * 4  # finished at the end of the interval
    assert "makespan" not in numbers


def test_the_peak_of_an_interval_sees_what_began_before_it() -> None:
    assert peak_in_flight(THREE, 3, 4) == 2
    assert peak_in_flight(THREE, 4, 5) == 1
    assert peak_in_flight(THREE, 20, 30) == 0


def test_an_empty_interval_is_an_error() -> None:
    with pytest.raises(InputError, match="not an interval"):
        interval_metrics(THREE, 4, 4)


def test_the_whole_run_as_an_interval_is_the_whole_run() -> None:
    some = random_schedule(40, 200, first=7)
    run, interval = dag_metrics(some), interval_metrics(some, 0, int(some.from_origin().makespan))
    shared = [name for name in interval if name != "cumulative_completion_base"]
    assert {name: interval[name] for name in shared} == {name: run[name] for name in shared}


def test_cuts_leave_out_jobs_by_arrival_and_follow_the_others_to_their_finish() -> None:
    rows = [(t, t + 1, t + 4, 1) for t in range(0, 50, 10)]
    numbers = dag_metrics(made(rows), warmup=5, cooldown=10)
    assert (numbers["jobs"], numbers["jobs_cut"]) == (3, 2)
    assert numbers["makespan"] == 44
    assert numbers["utilisation"] == numbers["utilisation_arrivals"] == 6 / (4 * 25)  # of [5, 30), jobs 2 and 3
    with pytest.raises(InputError, match="exclude all jobs"):
        dag_metrics(made(rows), warmup=20, cooldown=20)


def test_deciles_are_cut_as_numpy_cuts_and_ties_stay_in_job_order() -> None:
    rows = [(0, 0, 1, 1)] * 6 + [(0, 1, 2, 1)] * 6
    deciles = slr_by_decile(made(rows, cores=12))
    assert deciles.jobs.tolist() == [2, 2, 1, 1, 1, 1, 1, 1, 1, 1]
    assert deciles.worst.tolist() == [1, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    assert math.isnan(slr_by_decile(made(rows[:3])).mean[3])


def exact_interval(schedule: Schedule, start: int, end: int) -> dict[str, Exact]:
    """The numbers of `gridsim.metrics.dag.interval_metrics`."""
    schedule = schedule.from_origin("first-arrival")
    jobs = exact_jobs(schedule, "absolute")
    arrived = [job for job in jobs if start <= job["arrival"] < end]
    known = [job for job in arrived if job["finish"] <= end]
    return {
        "flow": Fraction(sum(start < job["finish"] <= end for job in jobs), end - start),
        "utilisation": exactly._utilisation(schedule, start, end),
        "peak_in_flight": exactly._peak(jobs, start, end),
        "cumulative_completion": exactly._completion(known, end),
        "cumulative_completion_base": end,
        **exactly._about_jobs(known),
        "jobs": len(known),
        "unfinished": len(arrived) - len(known),
    }


def exact_slr_by_decile(schedule: Schedule) -> list[tuple[float, float]]:
    """Mean and largest SLR of ten parts of the jobs, least work first; the first parts have one job more."""
    jobs = sorted(exact_jobs(schedule), key=lambda job: job["exec"])
    size, longer = divmod(len(jobs), 10)
    edges = [part * size + min(part, longer) for part in range(11)]
    parts = [[Fraction(job["slr"]) for job in jobs[low:high]] for low, high in pairwise(edges)]
    return [(float(sum(part) / len(part)), float(max(part))) if part else (math.nan, math.nan) for part in parts]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_fast_and_exact_agree_on_anything(data: st.DataObject) -> None:
    jobs = data.draw(st.integers(1, 12))
    schedule = random_schedule(jobs, jobs + data.draw(st.integers(0, 20)), data.draw(st.integers(0, 999)), first=3)
    longest = dag_metrics(schedule)["makespan"]
    base = int(longest) + data.draw(st.integers(0, 50))
    same(dag_metrics(schedule, base=base), exact_metrics(schedule, base=base))
    start = data.draw(st.integers(0, int(longest)))
    end = start + data.draw(st.integers(1, 300))
    same(interval_metrics(schedule, start, end), exact_interval(schedule, start, end))
    deciles = slr_by_decile(schedule)
    exact = np.array(exact_slr_by_decile(schedule))
    np.testing.assert_allclose(np.column_stack([deciles.mean, deciles.worst]), exact, rtol=1e-12)
    columns = job_columns(schedule)
    for name, column in columns.items():
        assert column.tolist() == pytest.approx([float(job[name]) for job in exact_jobs(schedule)], rel=1e-15)


def test_fast_and_exact_agree_on_a_thousand_jobs() -> None:
    some = random_schedule(1_000, 8_000)
    same(dag_metrics(some), exact_metrics(some))


def test_scaling_time_scales_the_numbers() -> None:
    some = random_schedule(30, 100)
    names = ("arrival", "start", "finish", "work", "critical_path", "task_start", "task_finish")
    slow = replace(some, **{name: 3 * getattr(some, name) for name in names})
    before, after = dag_metrics(some), dag_metrics(slow)
    for name in ("utilisation", "peak_in_flight", "mean_slr", "sd_stretch", "gini_slr", "p99_slr"):
        assert after[name] == pytest.approx(before[name], rel=1e-12)
    assert after["makespan"] == 3 * before["makespan"]
    assert after["flow"] == pytest.approx(before["flow"] / 3)


def test_every_number_is_described_and_table_1_is_kept() -> None:
    assert list(dag_metrics(THREE)) == list(DAG_METRICS)
    classes = {name: metric.classes for name, metric in DAG_METRICS.items()}
    for name in ("makespan", "flow", "utilisation", "peak_in_flight"):
        assert classes[name] == ("utilisation",)
    assert classes["cumulative_completion"] == ("utilisation", "responsiveness")
    for name in ("speedup", "stretch", "slr"):
        assert classes[f"mean_{name}"] == classes[f"worst_{name}"] == ("responsiveness",)
        assert classes[f"sd_{name}"] == ("fairness",)
    assert DAG_METRICS["worst_speedup"].better == "higher"
    assert DAG_METRICS["sd_speedup"].better == "lower"


def test_utilisation_of_an_empty_interval_is_not_a_number() -> None:
    assert math.isnan(utilisation(THREE, 3, 3))
