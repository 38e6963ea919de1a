"""Duplicate names, compared with a count of all names."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gridsim.workload.audit.rows import Busy, Seen, keys_of

ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 20), st.integers(0, 9)), min_size=1, max_size=30)


@given(ROWS, st.integers(1, 7))
def test_names_that_are_twice_are_found(rows: list[tuple[int, int, int]], size: int) -> None:
    names = [f"job-{name}" for name, _, _ in rows]
    seen = Seen()
    for first in range(0, len(names), size):
        seen.add(keys_of(names[first : first + size]))
    twice = {name for name, count in Counter(names).items() if count > 1}
    assert set(keys_of(sorted(twice)).tolist()) <= set(seen.names().tolist())
    assert set(seen.names().tolist()) <= set(keys_of(names).tolist())


@given(ROWS)
def test_overlaps_are_those_of_every_pair(rows: list[tuple[int, int, int]]) -> None:
    busy = Busy()
    keys, start, length = (np.array(column) for column in zip(*rows, strict=True))
    busy.add(keys, start.astype(float), (start + length).astype(float))
    ordered = sorted((name, begin, begin + long) for name, begin, long in rows)
    counts = Counter(keys.tolist())
    found = busy.found()
    assert found["names"] == sum(count > 1 for count in counts.values())
    assert found["rows"] == sum(count for count in counts.values() if count > 1)
    late = sum(
        any(other[0] == name and other[2] > begin for other in ordered[:place])
        for place, (name, begin, _) in enumerate(ordered)
    )
    assert abs(found["overlaps"] - late) <= sum(
        counts_of > 1 for counts_of in Counter((name, begin) for name, begin, _ in rows).values()
    )  # of jobs with equal starts, either may be first
