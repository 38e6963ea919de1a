"""Copies of policies: locks and queues are copied, and errors name objects that cannot be."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.errors import PolicyError
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.workload import Workload
from gridsim.policy.copies import per_cluster_copy
from gridsim.simulation import simulate


@dataclass
class Noting:
    """First come, first served, with a count of the requests that it has seen."""

    shown: Any = field(default_factory=queue.Queue, compare=False)

    def rank(self, waiting: Any, now: float) -> Any:
        self.shown.put(len(waiting))
        return np.zeros(len(waiting))


@pytest.fixture
def jobs() -> Workload:
    return Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2])


def test_a_policy_that_holds_a_queue_runs_and_keeps_its_own_as_it_was(jobs: Workload) -> None:
    policy = Noting()
    assert simulate(jobs, platform=Platform.single(4), policy=policy).record.start.tolist() == [0, 10, 20]
    assert policy.shown.empty()


@pytest.mark.parametrize("make", [queue.Queue, queue.PriorityQueue, queue.SimpleQueue])
def test_the_queue_of_a_copy_holds_the_same_and_works_alone(make: Callable[[], Any]) -> None:
    given = make()
    for number in (1, 2):
        given.put(number)
    copied = per_cluster_copy(Noting(given)).shown
    assert [copied.get(timeout=1), copied.get(timeout=1)] == [1, 2]
    copied.put(3)
    assert (copied.qsize(), given.qsize()) == (1, 2)
    assert given.get(timeout=1) == 1


@pytest.mark.parametrize("make", [threading.Lock, threading.RLock, threading.Condition])
def test_the_lock_of_a_copy_is_open_whoever_holds_the_first(make: Callable[[], Any]) -> None:
    with (lock := make()):
        copied = per_cluster_copy({"lock": lock})["lock"]
        assert copied is not lock
        assert copied.acquire(timeout=1)


def test_two_parts_that_share_a_lock_share_that_of_the_copy() -> None:
    lock = threading.Lock()
    copied = per_cluster_copy({"lock": lock, "condition": threading.Condition(lock)})
    with copied["condition"]:
        assert copied["lock"].locked()
    assert not lock.locked()


def test_objects_that_cannot_be_copied_are_named_with_their_place(jobs: Workload, tmp_path: Path) -> None:
    told = r"ordering\.shown\['log'\] is a TextIOWrapper .* setup"
    with (tmp_path / "log.txt").open("w") as file, pytest.raises(PolicyError, match=told) as caught:
        simulate(jobs, platform=Platform.single(4), policy=Noting({"log": file}))
    assert " at 0x" not in str(caught.value)


@dataclass
class Same:
    """Selects the first child and records the request."""

    shown: Any = field(default_factory=queue.Queue, compare=False)

    def score(self, piece: Any, child: Any, now: int) -> float:
        self.shown.put(now)
        return 0.0


def test_a_balancer_that_holds_a_queue_runs_and_keeps_its_own_as_it_was(jobs: Workload) -> None:
    two = Platform(RouterSpec("top", (ClusterSpec("one", 4), ClusterSpec("other", 4))))
    result = simulate(jobs, platform=two, policy="easy", balancer=(given := Same()))
    assert given.shown.empty()
    assert result.options["balancer"] == "Same(shown=<queue.Queue object>)"
