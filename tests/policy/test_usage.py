"""Usage in a share tree, compared with simple loops over its nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.policy.usage import UsageTree, kept, weighted

# Two accounts with two users each, and one user outside them.
WAYS = [[0, 2], [0, 3], [1, 4], [1, 5], [6]]
PARENT = [-1, -1, 0, 0, 1, 1, -1]
SHARES = np.array([2.0, 1.0, 1.0, 3.0, 1.0, 1.0, 1.0])
PART = np.array([2 / 4, 1 / 4, 1 / 4, 3 / 4, 1 / 2, 1 / 2, 1 / 4])
TREE = UsageTree(WAYS, PARENT, PART)


def test_a_node_has_used_what_the_leaves_below_it_have() -> None:
    assert TREE.usage(np.array([1, 2, 4, 8, 16])).tolist() == [3, 12, 1, 2, 4, 8, 16]


@given(used=st.lists(st.integers(0, 5), min_size=5, max_size=5))
def test_places_are_those_of_a_walk_down_the_tree(used: list[int]) -> None:
    total = TREE.usage(np.array(used))

    def level(node: int) -> float:
        attached = sum(total[other] for other in range(7) if PARENT[other] == PARENT[node])
        return np.inf if not total[node] else PART[node] / (total[node] / attached)

    keys = [[-level(node) for node in way] + [-np.inf] * (2 - len(way)) for way in WAYS]
    assert TREE.places(np.array(used, dtype=float)).tolist() == [sum(other < key for other in keys) for key in keys]


@pytest.mark.parametrize("half_life", [50.0, 0.0])
def test_use_that_is_counted_at_once_is_use_that_is_counted_bit_by_bit(half_life: float) -> None:
    used = 0.0
    for _ in range(100):  # four cores for 100 s, one second at a time
        used = used * kept(1.0, half_life) + 4 * weighted(-1.0, 0.0, half_life)
    assert used == pytest.approx(4 * weighted(-100.0, 0.0, half_life))
    later = 4 * weighted(0.0, 100.0, half_life)  # with the weight of its start
    assert used == pytest.approx(later * kept(100.0, half_life))
