"""Reservation rules: protected jobs and backfilled jobs."""

from __future__ import annotations

import numpy as np
import pytest

from gridsim.model.workload import Workload
from gridsim.policy.queue import Queue, Requests
from gridsim.policy.reservation import Depth, Easy, FirstFit, Strict

QUEUE = Queue(Requests(Workload.from_columns(submit=[0, 1, 2], runtime=[1, 1, 1], cores=[1, 1, 1])), np.arange(3))


@pytest.mark.parametrize(
    ("rule", "holders", "blocking"),
    [(Strict(), 0, True), (FirstFit(), 0, False), (Easy(), 1, False), (Depth(), 8, False), (Depth(k=3), 3, False)],
)
def test_a_rule_is_one_lane_of_its_holders(rule: Strict | Depth, holders: int, blocking: bool) -> None:
    lanes = rule.lanes(QUEUE)
    assert lanes.lane.tolist() == [0, 0, 0]
    assert lanes.capacity.tolist() == [holders]
    assert rule.blocking is blocking


def test_a_negative_depth_is_refused() -> None:
    with pytest.raises(ValueError, match="k is -1; at least 0 is needed"):
        Depth(k=-1)
