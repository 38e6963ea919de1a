"""What an ordering answers is checked, whoever asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gridsim.errors import PolicyError
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.policy.protocols import ranks_of
from gridsim.policy.queue import Queue, Requests
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.policy.scheduler.planned import Planned
from gridsim.simulation import run

JOBS = Workload.from_columns(submit=[0, 0, 0], runtime=[1, 2, 3], estimate=[9, 9, 9], cores=[4, 4, 4])
QUEUE = Queue(Requests(JOBS), np.arange(3))


@dataclass
class Answers:
    """An ordering that answers what it is given."""

    answer: Any

    def rank(self, queue: Queue, now: float) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ([1.0, float("nan"), 2.0], "with NaN"),
        ([1.0, 2.0], r"with shape \(2,\)"),
        (0, r"with shape \(\)"),
        ([[1.0], [2.0], [3.0]], r"with shape \(3, 1\)"),
        (["first", "second", "third"], "with no numbers"),
        (None, r"with shape \(\)"),
    ],
)
def test_an_ordering_that_does_not_give_one_number_each_is_refused_by_name(answer: Any, told: str) -> None:
    with pytest.raises(PolicyError, match=told) as caught:
        ranks_of(Answers(answer), QUEUE, 0.0)
    assert "Answers(answer=" in str(caught.value)


@pytest.mark.parametrize("policy", [Backfilling(Answers([0.0])), Planned(ordering=Answers([0.0]))])
def test_it_is_refused_in_a_run_too(policy: Any) -> None:
    with pytest.raises(PolicyError, match=r"ranked . requests with shape"):
        run(JOBS, Platform.single(4), policy)


def test_infinite_ranks_and_whole_numbers_are_ranks() -> None:
    assert ranks_of(Answers([3, float("inf"), -1]), QUEUE, 0.0).tolist() == [3.0, float("inf"), -1.0]


def test_an_ordering_without_rank_is_refused_under_a_rule_that_lets_others_pass() -> None:
    class Picks:
        def reset(self) -> None: ...

        def pick(self, queue: Queue, now: float) -> int:
            return 0

    with pytest.raises(PolicyError, match="has no rank"):
        run(JOBS, Platform.single(4), Backfilling(Picks()))
    assert run(JOBS, Platform.single(4), Picks()).start.tolist() == [0, 1, 3]


@pytest.mark.parametrize("index", [-1, 3])
def test_a_pick_outside_the_queue_is_refused(index: int) -> None:
    class Picks:
        def reset(self) -> None: ...

        def pick(self, queue: Queue, now: float) -> int:
            return index

    with pytest.raises(PolicyError, match=f"picked number {index} of 3 requests"):
        run(JOBS, Platform.single(4), Picks())
