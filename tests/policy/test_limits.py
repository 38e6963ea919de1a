"""Compiled limits of moldable jobs equal the results of the partitions, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.model.moldable import Moldable
from gridsim.model.speedup import Amdahl, Downey
from gridsim.model.time import FloatArray, IntArray
from gridsim.model.workload import Workload
from gridsim.policy.limits import allow, total
from gridsim.policy.partition import Greedy, Rigid, ShareOfWork
from gridsim.policy.queue import Queue, Requests
from gridsim.policy.scheduler.core_count_choice import LEAST, MOST
from gridsim.policy.scheduler.moldable_state import Shapes

CORES = 64
SCRATCH = np.zeros((3, 64), dtype=np.int64), np.zeros(64)


@pytest.mark.parametrize("count", [*range(20), 127, 128, 129, 135, 136, 255, 256, 257, 1000, 1025, 4099, 100_003])
def test_a_sum_is_that_of_numpy_to_the_last_bit(count: int) -> None:
    rng = np.random.default_rng(count)
    values = np.exp(rng.uniform(-20, 20, count + 5))
    assert total(values, count, *SCRATCH) == values[:count].sum()


def requests(n: int, seed: int) -> Requests:
    rng = np.random.default_rng(seed)
    cores = rng.integers(1, CORES + 9, n)
    ranges = Moldable.of(
        cores,
        1,
        rng.integers(1, CORES + 9, n),
        [Downey(parallelism=30.5, sigma=1), Amdahl(0.07)],
        rng.integers(0, 2, n),
    )
    runtime = np.exp(rng.uniform(0, 12, n))
    return Requests(Workload.from_columns(submit=np.zeros(n), runtime=runtime, cores=cores, moldable=ranges))


class InPython(ShareOfWork):
    """The same limits, computed from the columns that policies see."""

    def limits(self, queue: Queue, now: float) -> IntArray:
        weighed = self._counted(queue)
        everything = weighed.sum() + self._running(queue, now)
        share = self._weighed(queue.weight) / everything if everything > 0 else np.zeros(len(queue))
        most: IntArray = np.floor(np.minimum(self.wf * share, self.gap) * queue.state["total"] + 1e-9).astype(np.int64)
        return np.maximum(most, 1)

    def _weighed(self, weight: FloatArray) -> FloatArray:
        if self.weight == "equal":
            return np.ones_like(weight)
        return weight if self.weight == "linear" else np.sqrt(weight)

    def _counted(self, queue: Queue) -> FloatArray:
        weighed = self._weighed(queue.weight)
        if self.weight == "sqrt-parallel":
            weighed = np.where(queue.requests.maximum[queue.rows] > 1, weighed, 0.0)
        return weighed

    def _running(self, queue: Queue, now: float) -> float:
        if self.scope == "queued":
            return 0.0
        running: Queue = queue.state["running"]
        weight = running.weight
        if self.scope == "remaining":
            began, expected = running.state["began"], running.state["expected"]
            weight = weight * np.maximum(0.0, expected - now) / (expected - began)
        weighed = self._weighed(weight)
        if self.weight == "sqrt-parallel":
            weighed = weighed[running.requests.maximum[running.rows] > 1]
        return float(weighed.sum())


@pytest.mark.long
@given(
    seed=st.integers(0, 10**6),
    waiting=st.integers(1, 300),
    running=st.integers(0, 40),
    how=st.fixed_dictionaries(
        {
            "wf": st.sampled_from((1.0, 2.0, 1.3)),
            "gap": st.sampled_from((0.9, 1.0, 0.37)),
            "weight": st.sampled_from(("linear", "sqrt", "sqrt-parallel", "equal")),
            "scope": st.sampled_from(("system", "remaining", "queued")),
        }
    ),
)
def test_shares_of_work_are_those_that_the_partition_answers(
    seed: int, waiting: int, running: int, how: dict[str, Any]
) -> None:
    n = waiting + running
    asked, rng = requests(n, seed), np.random.default_rng(seed)
    rows = rng.permutation(n)
    waits, runs = rows[:waiting], rows[waiting:]
    now = 5 * 10**11
    began = now - rng.integers(1, 10**11, n)
    ends = np.sort(now + rng.integers(-(10**6), 10**11, running))
    shapes = Shapes(asked, ShareOfWork(**how), CORES)
    expected = Shapes(asked, InPython(**how), CORES).largest(waits, runs, began, ends, now)
    assert shapes.largest(waits, runs, began, ends, now).tolist() == expected.tolist()
    held = (np.stack([ends, runs]), np.array([running, 0, CORES]), asked.cores, began)
    allow(now, waits, held, *shapes.table[LEAST : MOST + 1], shapes.most)
    assert shapes.allowed[:waiting].tolist() == expected.tolist()
    assert shapes.most_of_last(waits, held, now) == expected[-1]


def test_equal_weights_divide_the_machine_by_the_jobs_in_the_system() -> None:
    """4 waiting and 2 running jobs of very different work on 64 cores: each may have floor(64 / 6) = 10."""
    jobs = requests(6, 1)
    state = {"total": CORES, "running": Queue(jobs, np.array([0, 1]), {})}
    waiting = Queue(jobs, np.arange(2, 6), state)
    assert ShareOfWork(gap=1.0, weight="equal").limits(waiting, 0.0).tolist() == [10, 10, 10, 10]
    assert ShareOfWork(gap=1.0, weight="equal", scope="queued").limits(waiting, 0.0).tolist() == [16] * 4


@pytest.mark.long
@pytest.mark.parametrize("partition", [Greedy(), Rigid()])
def test_partitions_without_shares_answer_equally(partition: Any) -> None:
    asked = requests(50, 3)
    shapes, rows, none = Shapes(asked, partition, CORES), np.arange(50), np.zeros(0, dtype=np.int64)
    expected = shapes.largest(rows, none, asked.submit, none, 0)
    held = (np.zeros((2, 1), dtype=np.int64), np.array([0, 0, CORES]), asked.cores, asked.submit)
    allow(0, rows, held, *shapes.table[LEAST : MOST + 1], shapes.most)
    assert shapes.allowed.tolist() == expected.tolist()
    assert shapes.most_of_last(rows, held, 0) == expected[-1]


def test_a_partition_of_a_plain_file_is_called() -> None:
    class Modest(ShareOfWork):
        """A partition derived in a plain file; its result counts."""

        def limits(self, queue: Queue, now: float) -> Any:
            return np.ones(len(queue), dtype=np.int64)

    asked = requests(4, 1)
    shapes, none = Shapes(asked, Modest(), CORES), np.zeros(0, dtype=np.int64)
    held = (np.zeros((2, 1), dtype=np.int64), np.array([0, 0, CORES]), asked.cores, asked.submit)
    assert shapes.from_python
    assert shapes.most_of_last(np.arange(4), held, 0) == 1
    assert shapes.largest(np.arange(4), none, asked.submit, none, 0).tolist() == [1, 1, 1, 1]
