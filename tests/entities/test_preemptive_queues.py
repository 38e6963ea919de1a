"""Queues with preemptive resume, by a higher priority class or by breakdowns, have the mean numbers of jobs of theory.

Formulas: specification of availability, section 11, for exponential times. Two classes have equal mean times. The high
class is not delayed by the other one, so its number is that of a queue with its rate alone; both together are one queue
of all jobs.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import gridsim as gs
from gridsim.model.checkpoints import Checkpoints
from gridsim.model.failures import FailureModel, Failures
from gridsim.options import Run

MEAN, BATCHES = 1000.0, 25


def in_system(servers: int, rate: float) -> float:
    """Return the mean number of jobs of an M/M/c queue with service rate 1 (Erlang C)."""
    share = rate / servers
    last = rate**servers / math.factorial(servers) / (1 - share)
    waits = last / (sum(rate**k / math.factorial(k) for k in range(servers)) + last)
    return rate + waits * share / (1 - share)


def simulated(servers: int, high: float, low: float, jobs: int, seed: int) -> tuple[float, float, float, float]:
    """Return the mean numbers of jobs of both classes, and their standard errors by batch means."""
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.exponential(MEAN / (high + low), jobs))
    runtime = np.maximum(1e-3, rng.exponential(MEAN, jobs))
    priority = (rng.random(jobs) < high / (high + low)).astype(int)
    log = gs.Workload.from_columns(
        submit=submit, runtime=runtime, estimate=runtime, cores=1, labels={"priority": priority}
    )
    found = gs.simulate(log, platform=gs.Platform.single(servers), policy="fcfs?preempt=suspend").record
    means: list[float] = []
    errors: list[float] = []
    for level, rate in ((1, high), (0, low)):
        mean, error = by_littles_law(np.where(priority == level, found.response, 0.0), (high + low) / MEAN)
        means.append(mean)
        errors.append(error)
        assert rate > 0
    return means[0], means[1], errors[0], errors[1]


def by_littles_law(response: np.ndarray, rate: float) -> tuple[float, float]:
    """Return the mean number of jobs in the system, and its standard error by batch means; the first jobs left out."""
    batches = np.array([batch.mean() * rate for batch in np.array_split(response[len(response) // 20 :], BATCHES)])
    return float(batches.mean()), float(batches.std(ddof=1)) / math.sqrt(BATCHES)


@pytest.mark.parametrize(
    ("servers", "high", "low", "expected"),
    [(1, 0.3, 0.4, (0.428571, 1.904762)), (3, 1.0, 1.2, (1.045455, 2.645482))],
)
def test_preemptive_resume_has_the_numbers_of_queueing_theory(
    servers: int, high: float, low: float, expected: tuple[float, float]
) -> None:
    alone = in_system(servers, high)
    assert (alone, in_system(servers, high + low) - alone) == pytest.approx(expected, abs=1e-6)
    one, two, error, other = simulated(servers, high, low, 12_000, seed=3)
    assert abs(one - expected[0]) <= 3 * error
    assert abs(two - expected[1]) <= 3 * other
    # Power: without preemption, class 1 of a single server would have 0.3 * (1 + 0.7 / 0.7) = 0.6 jobs, 8 errors more.
    assert error < 0.05 * expected[0]
    assert other < 0.1 * expected[1]


def test_a_server_with_breakdowns_has_the_number_of_queueing_theory() -> None:
    # White and Christie 1958: breakdowns at rate x also of an idle server, repairs at rate e, work is kept.
    rate, m, x, e = 0.5, 1.0, 0.1, 0.4
    expected = rate * ((x + e) ** 2 + m * x) / ((x + e) * (e * m - rate * (x + e)))
    assert expected == pytest.approx(7 / 3)
    rng, jobs = np.random.default_rng(5), 12_000
    log = gs.Workload.from_columns(
        submit=np.cumsum(rng.exponential(MEAN / rate, jobs)),
        runtime=(runtime := np.maximum(1e-3, rng.exponential(MEAN / m, jobs))),
        estimate=runtime * 1000,
        cores=1,
    )
    breakdowns = FailureModel(mtbf=MEAN / x, mttr=MEAN / e)
    options = Run(failures=Failures(models=[breakdowns], checkpoints=Checkpoints(1e-6)))
    found = gs.simulate(
        log,
        platform=gs.Platform.of_nodes([gs.NodeGroup(group="n", count=1, capacity={"cores": 1})]),
        policy="fcfs",
        options=options,
    )
    mean, error = by_littles_law(found.record.response, rate / MEAN)
    assert abs(mean - expected) <= 3 * error
    assert error < 0.1 * expected  # power: without breakdowns the number is 1, with lost work the queue has no bound
