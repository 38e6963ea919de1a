"""Intervals of a plan compared with a simple plan by second; next examination of a job that does not fit."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.model.time import NEVER
from gridsim.policy.slurm.backfill_map import (
    Plan,
    clear_nodes,
    clear_plan,
    is_clear,
    keep_clear,
    next_opening,
    plan_for,
    reserve,
)
from gridsim.policy.slurm.nodes import WORD

NODES, LAST = WORD + 5, 40
SETS = st.lists(st.integers(0, NODES - 1), min_size=1, max_size=NODES, unique=True)
RESERVATIONS = st.lists(st.tuples(st.integers(0, LAST - 2), st.integers(1, 12), SETS), max_size=25)


def planned(reservations: list[tuple[int, int, list[int]]]) -> tuple[Plan, Any]:
    """Return a plan, and the same with one row per second and a last row for all later time."""
    plan, plain = plan_for(len(reservations), NODES), np.zeros((LAST + 12, NODES), dtype=np.uint8)
    clear_plan(0, plan)
    for begin, length, nodes in reservations:
        reserve(begin, begin + length, len(nodes), np.array(nodes, dtype=np.int64), plan)
        plain[begin : begin + length, nodes] = 1
    return plan, plain


def nodes_of(taken: Any) -> list[bool]:
    """Return the nodes for the bits of a row."""
    return [bool(taken[node // WORD] >> node % WORD & 1) for node in range(NODES)]


def intervals(plan: Plan) -> list[tuple[int, int, tuple[int, ...]]]:
    begins = [*plan.begin[: plan.size[0]].tolist(), NEVER]
    taken = [tuple(np.flatnonzero(nodes_of(row)).tolist()) for row in plan.taken[: plan.size[0]]]
    return [(begin, end, nodes) for (begin, end), nodes in zip(pairwise(begins), taken, strict=True)]


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(RESERVATIONS)
def test_intervals_follow_one_another_and_are_as_few_as_can_be(reservations: Any) -> None:
    plan, plain = planned(reservations)
    found = intervals(plan)
    assert (found[0][0], found[-1][1], found[-1][2]) == (0, NEVER, ())
    for one, other in pairwise(found):
        assert one[1] == other[0]
        assert one[2] != other[2]
    for begin, end, nodes in found:
        for second in range(begin, min(end, len(plain))):
            assert tuple(np.flatnonzero(plain[second]).tolist()) == nodes


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(RESERVATIONS, st.integers(0, LAST), st.integers(1, 12), SETS)
def test_nodes_are_clear_where_no_job_has_planned_them(reservations: Any, start: int, length: int, nodes: Any) -> None:
    plan, plain = planned(reservations)
    mask, clear, everybody = np.ones(NODES, dtype=np.int64), np.zeros(2, dtype=np.int64), np.array([-1, -1])
    many = clear_nodes(start, start + length, 0, 2, everybody, plan, clear)
    keep_clear(0, 2, everybody, mask, clear)
    assert many == 2 * WORD - (plain[start : start + length + 1].max(axis=0) > 0).sum()
    assert (mask == (plain[start : start + length + 1].max(axis=0) == 0)).all()
    assert nodes_of(clear) == (mask > 0).tolist()
    chosen = np.array(nodes, dtype=np.int64)
    clear = not plain[start : start + length, nodes].any()
    assert is_clear(start, start + length, len(nodes), chosen, plan) == clear


# A real Slurm scheduled a job of two nodes, one of which was planned from the first of these instants to the last.
# Plans on other nodes divide the time into intervals. Seconds after the backfill cycle, from its log.
BOTH = (np.array([0b00011, 0]), [1])


@pytest.mark.parametrize(
    ("ends", "limit", "again"),
    [
        ((434, 1334), 480, 1334),
        ((398, 518, 1298), 420, 1298),  # the interval of its end and the next one are examined
        ((413, 653, 1013, 1313), 420, None),  # the next one is not the last
        ((405, 645, 1005, 1305), 600, None),
        ((401, 641, 1001, 1301), 660, 1301),
        ((393, 633, 993, 1293), 900, 1293),
        ((361, 421, 481, 601, 721, 1261), 600, None),
        ((357, 417, 477, 597, 717, 1257), 720, 1257),
        ((322, 562, 622, 742, 1042, 1222), 720, None),
        ((320, 560, 620, 740, 1040, 1220), 780, 1220),
    ],
)
def test_a_job_is_left_out_where_nothing_opens_soon_enough_as_a_real_slurm_did(
    ends: tuple[int, ...], limit: int, again: int | None
) -> None:
    member, second = BOTH
    plan = plan_for(16, NODES)
    clear_plan(-60, plan)
    for place, (begin, end) in enumerate(pairwise(ends)):
        other = [2] if place % 2 else []  # so that neighbours differ
        reserve(begin, end, 1 + len(other), np.array(second + other, dtype=np.int64), plan)
    assert next_opening(0, limit, 0, 2, member, plan) == (NEVER if again is None else again)
