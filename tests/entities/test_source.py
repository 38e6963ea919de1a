"""The source releases jobs, and the root admits them in the same instant."""

from __future__ import annotations

import numpy as np
import pytest
from simpy import Environment

from gridsim.entities.clock import BATCHED
from gridsim.entities.router import Root
from gridsim.entities.source import Source


class Child:
    """Replacement for a cluster that records arrivals, and the instants that the root has finished."""

    dirty = True

    def __init__(self, env: Environment) -> None:
        self.env, self.log = env, list[tuple[object, float]]()

    def submit(self, request: int) -> None:
        self.log.append((request, self.env.now))

    def close(self) -> None:
        self.log.append(("close", self.env.now))


def released(submit: list[int], progress: object = None) -> list[tuple[object, float]]:
    env = Environment()
    child = Child(env)
    Source(env, np.array(submit, dtype=np.int64), Root(env, [child], child.submit), BATCHED, progress)  # type: ignore[arg-type, list-item]
    env.run()
    return child.log


def test_requests_arrive_at_their_submit_times_in_job_order() -> None:
    assert released([3, 3, 8]) == [(0, 3), (1, 3), ("close", 3), (2, 8), ("close", 8)]


def test_a_request_may_come_at_once() -> None:
    assert released([0]) == [(0, 0), ("close", 0)]


def test_without_requests_nothing_comes() -> None:
    assert released([]) == []


@pytest.mark.parametrize("instants", [1, 5000])
def test_progress_is_reported_now_and_then(instants: int) -> None:
    told: list[int] = []
    released(np.sort(np.arange(5000) % instants).tolist(), told.append)
    assert told == ([5000] if instants == 1 else [2048, 4096])
