"""Queue order: the compiled order compared with a simple one, and the fast one with both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.policy.slurm.queue_sort import SortColumns, by_levels, in_order, levels_of, place_of, sort_columns_of

KINDS = 4


def _before(one: int, other: int, queue: SortColumns) -> bool:
    """Return whether an entry does not follow another one that was behind it."""
    mine, theirs = (queue.own[entry] for entry in (one, other))

    def preempts(first: Any, second: Any) -> bool:
        stronger = first["kind"] != second["kind"] or first["priority"] > second["priority"]
        return bool(queue.may[first["kind"], second["kind"]]) and bool(stronger)

    if preempts(mine, theirs) or preempts(theirs, mine):
        return preempts(mine, theirs)

    def key(row: Any) -> tuple[int, ...]:
        return row["free"], -row["tier"], -row["priority"], queue.submitted[row["request"]], row["request"]

    return key(mine) <= key(theirs)


def _merged(rows: list[int], queue: SortColumns) -> list[int]:
    if len(rows) < 2:
        return rows
    left, right = _merged(rows[: len(rows) // 2], queue), _merged(rows[len(rows) // 2 :], queue)
    found = []
    while left and right:
        found.append((left if _before(left[0], right[0], queue) else right).pop(0))
    return found + left + right


@st.composite
def queues(draw: st.DrawFn) -> tuple[SortColumns, list[int]]:
    count = draw(st.integers(0, 14))

    def column(low: int, high: int) -> Any:
        return np.array(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)), dtype=np.int64)

    may = np.array(draw(st.lists(st.integers(0, 1), min_size=KINDS**2, max_size=KINDS**2)), dtype=np.uint8)
    if draw(st.booleans()):  # higher entries may preempt all lower ones
        level = np.array(draw(st.lists(st.integers(0, 2), min_size=KINDS, max_size=KINDS)))
        may = (level[:, None] < level).astype(np.uint8)
    request = np.arange(count) if draw(st.booleans()) else np.arange(count) // 2
    submitted = np.array(
        draw(st.lists(st.integers(0, 3), min_size=max(count, 1), max_size=max(count, 1))), dtype=np.int64
    )
    kind = column(0, KINDS - 1)
    queue = sort_columns_of(may.reshape(KINDS, KINDS), kind, request, column(0, 1), column(1, 3), submitted)
    queue.own["priority"][:] = column(0, 3)
    return queue, draw(st.permutations(range(count)))


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(queues())
def test_the_order_is_that_of_merged_halves(drawn: tuple[SortColumns, list[int]]) -> None:
    queue, rows = drawn
    natural = sorted(rows, key=lambda entry: (queue.own["request"][entry], -queue.own["tier"][entry], entry))
    assert in_order(np.array(rows, dtype=np.int64), queue).tolist() == _merged(natural, queue)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(queues())
def test_where_there_are_levels_the_quick_order_is_the_same_and_entries_can_be_put_in(
    drawn: tuple[SortColumns, list[int]],
) -> None:
    queue, drawn_rows = drawn
    level = levels_of(queue.may, queue.own["kind"])
    if level is None:
        return
    rows = np.array(drawn_rows, dtype=np.int64)
    ordered = in_order(rows, queue)
    assert by_levels(rows, level, queue).tolist() == ordered.tolist()
    joined: Any = np.zeros(0, dtype=np.int64)
    for entry in drawn_rows:
        joined = np.insert(joined, place_of(entry, joined, queue), entry)
    assert joined.tolist() == ordered.tolist()


def test_levels_are_those_of_a_chain_that_leaves_no_job_out() -> None:
    def levels(*pairs: tuple[int, int], kinds: int = 3) -> list[int] | None:
        may = np.zeros((kinds, kinds), dtype=np.uint8)
        may[tuple(np.array(pairs, dtype=np.int64).reshape(-1, 2).T)] = 1
        found = levels_of(may, np.arange(kinds))
        return None if found is None else found.tolist()

    assert levels() == [0, 0, 0]
    assert levels((0, 1), (0, 2), (1, 2)) == [0, 1, 2]
    assert levels((0, 2), (1, 2)) == [0, 0, 2]
    assert levels((0, 1), (1, 2)) is None  # the first may not preempt the last
    assert levels((0, 1)) is None  # the last is independent of both
    assert levels((0, 0), kinds=1) is None  # within a QOS, priority has precedence over the tier
    assert levels((0, 1), (1, 0), kinds=2) is None
