"""Ranges of cores as columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.moldable import Moldable, weight_bounds, weight_category
from gridsim.model.speedup import Amdahl, Downey, Linear, Speedup, Table
from gridsim.model.tasks import Tasks
from gridsim.model.time import IntArray
from gridsim.model.workload import Workload

TABLE = Table([(4, 100), (8, 55), (16, 30), (32, 20), (64, 18)])


def made(**columns: Any) -> Moldable:
    given: dict[str, Any] = {
        "cores": [4, 2, 8],
        "minimum": [1, 2, 4],
        "maximum": [16, 2, 64],
        "speedups": [Downey(4, 1), TABLE],
        "curve": [0, 0, 1],
    }
    return Moldable.of(**{**given, **columns})


def test_ranges_end_where_more_cores_gain_nothing() -> None:
    ranges = made(maximum=[16, 200, 100])
    assert ranges.minimum.tolist() == [1, 2, 4]
    assert ranges.maximum.tolist() == [7, 7, 64]


def test_a_minimum_above_what_is_useful_stands() -> None:
    assert made(minimum=[9, 2, 80], maximum=[16, 2, 90]).maximum.tolist() == [9, 2, 80]


def test_a_curve_reaches_the_request_and_the_maximum_of_all_its_jobs() -> None:
    ranges = made(cores=[40, 2, 8])
    assert np.diff(ranges.first).tolist() == [40, 64]


def test_a_weight_is_the_speedup_on_the_request_and_of_tables_the_work_on_the_minimum() -> None:
    ranges = made()
    assert ranges.weight.tolist() == pytest.approx([2.9090909091, 1.7777777778, 4 * 100 / 55])
    estimate = np.array([10, 20, 30]) * 1_000_000
    assert ranges.sequential(estimate).tolist() == pytest.approx([29.090909091, 35.555555556, 30 * 400 / 55])


@given(
    st.lists(st.tuples(st.integers(1, 64), st.integers(1, 64), st.integers(1, 10**15)), min_size=1, max_size=8),
    st.sampled_from([Linear(), Amdahl(0.3), Downey(20, 0.7), Downey(7, 2), TABLE]),
)
def test_times_on_the_request_are_exactly_those_of_the_log(rows: list[tuple[int, int, int]], law: Speedup) -> None:
    cores, other, times = (np.array(column) for column in zip(*rows, strict=True))
    ranges = Moldable.of(cores, 1, 64, [law])
    assert ranges.times_on(cores, times, cores).tolist() == times.tolist()
    wider, narrower = np.maximum(cores, other), np.minimum(cores, other)
    assert (ranges.times_on(wider, times, cores) <= times).all()
    assert (ranges.times_on(narrower, times, cores) >= times).all()


def test_times_are_rounded_once_to_whole_microseconds() -> None:
    ranges = Moldable.of([2], 1, 8, [Linear()])
    assert [int(ranges.times_on(n, np.array([10]), np.array([2]))[0]) for n in (1, 2, 3, 7)] == [20, 10, 7, 3]
    assert ranges.times_on(8, np.array([1]), np.array([2])).tolist() == [1]


def test_rows_are_selected_with_their_sizes() -> None:
    ranges = made(minimum=[1, 2, 4], sizes=[[1, 2, 4, 16], [2], [4, 8, 64]])
    assert ranges.maximum.tolist() == [4, 2, 64]
    part = ranges.select([2, 0])
    assert (part.minimum.tolist(), part.maximum.tolist(), part.curve.tolist()) == ([4, 1], [64, 4], [1, 0])
    assert part.size_first is not None
    assert part.sizes is not None
    assert (part.size_first.tolist(), part.sizes.tolist()) == ([0, 3, 6], [4, 8, 64, 1, 2, 4])
    assert len(ranges.select(np.array([False, False, False]))) == 0
    assert made().select(slice(1, None)).size_first is None


class Broken:
    def __init__(self, *values: float) -> None:
        self.values = values

    def relative(self, cores: IntArray) -> Any:
        return np.array(self.values)[: len(cores)]

    def __repr__(self) -> str:
        return "Broken()"


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (
            {"minimum": [1, 5, 1], "maximum": [2, 4, 9]},
            r"field 'maximum': job 2 has the range 5 to 4; expected a maximum",
        ),
        (
            {"minimum": [1, 0, 1], "names": [7, 8, 9]},
            "field 'minimum': job 8 has the range 0 to 2; expected at least 1",
        ),
        ({"speedups": [Broken(1.0), TABLE]}, r"Broken\(\) gives \(1,\) runtimes on 1 to 16 cores"),
        ({"speedups": [Broken(1, 0.5, 0, *[1] * 20), TABLE]}, r"Broken\(\) has a run time of 0.0 on 3 cores"),
        ({"speedups": [Broken(*[float("nan")] * 20), TABLE]}, r"a run time of nan on 1 cores"),
    ],
)
def test_ranges_and_laws_that_are_none_are_refused(columns: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        made(**columns)


# -- in a workload -----------------------------------------------------------------------------------------------------


def jobs(**columns: Any) -> Workload:
    given: dict[str, Any] = {"submit": [5, 0, 3], "runtime": [10, 20, 30], "cores": [4, 2, 8], "moldable": made()}
    return Workload.from_columns(**{**given, **columns})


def test_ranges_go_with_their_jobs() -> None:
    workload = jobs()
    assert workload.moldable is not None
    assert workload.cores.tolist() == [2, 8, 4]
    assert workload.moldable.minimum.tolist() == [2, 4, 1]
    part = workload.select(workload.cores > 2)
    assert part.moldable is not None
    assert part.moldable.minimum.tolist() == [4, 1]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"minimum": np.array([1])}, "field 'minimum': the column has 1 rows"),
        ({"maximum": np.array([9, 9, 3])}, "job 3 has the range 4 to 3"),
        ({"maximum": np.array([99, 9, 9])}, "field 'relative': job 1 has 16; expected run times up to"),
        ({"weight": np.array([1, 0, 1.0])}, "field 'weight': job 2 has 0; expected a weight above 0"),
        ({"weight": np.array([1, 1, np.inf])}, "field 'weight': job 3 has inf"),
    ],
)
def test_a_workload_refuses_ranges_that_do_not_fit(change: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        jobs(moldable=replace(made(), **change))


def test_of_jobs_with_several_tasks_every_task_has_a_range() -> None:
    tasks = Tasks.from_edges(counts=[2, 1], runtime=[1, 2, 3], cores=[1, 2, 4], edges=[(0, 1)])
    workload = Workload.from_tasks(tasks, submit=[0, 1])
    workload = replace(workload, moldable=Moldable.of([1, 2, 4], [1, 2, 3], [8, 8, 8], [Linear()]))
    workload.check()
    assert [column.tolist() for column in workload.requested] == [[1, 2, 4], [1, 1, 2]]
    last = workload.select([1])
    last.check()
    assert last.moldable is not None
    assert last.moldable.minimum.tolist() == [3]
    with pytest.raises(InputError, match="column has 1 rows, but the workload has 3 requests"):
        replace(workload, moldable=last.moldable).check()


# -- categories of weight ----------------------------------------------------------------------------------------------


def test_a_bound_belongs_to_the_lower_category() -> None:
    bounds = weight_bounds()
    assert bounds.tolist() == [100 * 3**k for k in range(9)]
    assert weight_category([0.5, 100, 100.001, 300, 301, 656_100, 656_101], bounds).tolist() == [1, 1, 2, 2, 3, 9, 10]


def test_a_bound_missed_by_a_rounding_error_still_belongs_to_the_lower_category() -> None:
    assert weight_category([np.nextafter(2700, 3000)], weight_bounds()).tolist() == [4]


def test_one_category_has_no_bounds() -> None:
    assert weight_category([1, 1e9], weight_bounds(count=1)).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"count": 0}, "field 'count': is 0; expected 1 to 1,000"),
        ({"count": 10**9}, "field 'count': is 1000000000; expected 1 to 1,000"),
        ({"first": 0}, "field 'first': is 0; expected a weight above 0"),
        ({"ratio": 1}, "field 'ratio': is 1; expected above 1"),
    ],
)
def test_bounds_that_do_not_ascend_are_refused(values: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        weight_bounds(**values)
