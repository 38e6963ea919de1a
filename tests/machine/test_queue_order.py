"""Queue order: the compiled comparison and its sorts against tuples in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.machine.queue_order import HEAD, TAIL, before, comes_before, in_order, index_of, insert, sort_in, take_out

SMALL = st.integers(0, 2)  # ties are frequent


@st.composite
def queues(draw: st.DrawFn) -> tuple[Any, Any, list[int]]:
    """Draw tie values and a key of each request, and some of the requests in any order."""
    n = draw(st.integers(1, 9))
    ties = np.array(draw(st.lists(st.tuples(SMALL, SMALL), min_size=n, max_size=n)), dtype=np.int64).T.copy()
    keys = np.array(draw(st.lists(SMALL, min_size=n, max_size=n)), dtype=np.int64)
    return ties, keys, draw(st.permutations(range(n)))[: draw(st.integers(0, n))]


def order_of(ties: Any, keys: Any, row: int) -> tuple[int, ...]:
    """Return the tuple for Python's comparison: key, row of the job, ready time, row."""
    return (int(keys[row]), int(ties[0, row]), int(ties[1, row]), row)


@settings(deadline=None)
@given(queues())
def test_one_request_is_before_another_by_key_job_ready_time_and_row(made: Any) -> None:
    ties, keys, _ = made
    for one in range(len(keys)):
        for other in range(len(keys)):
            first, second = order_of(ties, keys, one), order_of(ties, keys, other)
            assert before(keys, ties, one, other) == (first < second)
            assert comes_before(ties, one, other) == (first[1:] < second[1:])


@settings(deadline=None)
@given(queues())
def test_requests_are_sorted_with_and_without_keys_and_where_rows_are_in_order(made: Any) -> None:
    ties, keys, drawn = made
    rows = np.array(drawn, dtype=np.int64)
    zeros = np.zeros_like(keys)
    assert rows[in_order(rows, ties, keys[rows])].tolist() == sorted(drawn, key=lambda row: order_of(ties, keys, row))
    assert rows[in_order(rows, ties)].tolist() == sorted(drawn, key=lambda row: order_of(ties, zeros, row))
    assert rows[in_order(rows, None, keys[rows])].tolist() == sorted(drawn, key=lambda row: (keys[row], row))
    assert rows[in_order(rows, None)].tolist() == sorted(drawn)


@settings(deadline=None)
@given(queues(), st.integers(0, 9), st.integers(0, 2))
def test_arrivals_are_sorted_into_the_queue(made: Any, known: int, head: int) -> None:
    ties, keys, drawn = made
    counts = np.zeros(TAIL + 1, dtype=np.int64)
    first = sorted(drawn[:known], key=lambda row: order_of(ties, keys, row))
    waiting = np.array([-1] * head + first + drawn[known:], dtype=np.int64)
    counts[HEAD], counts[TAIL] = head, head + len(first)
    sort_in(waiting, counts, len(waiting), keys, ties)
    assert waiting[head:].tolist() == sorted(drawn, key=lambda row: order_of(ties, keys, row))
    assert counts[TAIL] == len(waiting)
    for index, row in enumerate(waiting[head:].tolist()):
        assert index_of(waiting, counts, row) == index


@settings(deadline=None)
@given(queues())
def test_requests_and_their_planned_starts_are_inserted_together(made: Any) -> None:
    ties, keys, drawn = made
    waiting = np.array([-1, *drawn], dtype=np.int64)
    planned = np.array([9, *keys[drawn].tolist()], dtype=np.int64)
    insert(waiting, planned, 1, 2, len(waiting), ties)
    assert waiting.tolist() == [-1, *sorted(drawn, key=lambda row: order_of(ties, keys, row))]
    assert planned[1:].tolist() == keys[waiting[1:]].tolist()


def test_a_request_leaves_the_queue_and_all_others_stay_in_order() -> None:
    waiting, counts = np.array([7, 3, 5, 4, 6]), np.zeros(TAIL + 1, dtype=np.int64)
    counts[HEAD], counts[TAIL] = 1, 5
    assert take_out(waiting, counts, 2) == 4
    assert waiting[counts[HEAD] : counts[TAIL]].tolist() == [3, 5, 6]
