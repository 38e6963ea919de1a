"""Claims about moldable jobs decided by the code, on random speedups, profiles and queues, without stored rows.

Exact cases also decide them when available: see `gridsim_papers.moldable.family`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsim import Workload
from gridsim.model.random_streams import stream
from gridsim.model.speedup import Downey
from gridsim.policy.partition import ShareOfWork
from gridsim.policy.queue import Queue, Requests
from gridsim.testing.size_choice import choices_compared
from gridsim.workload.transform.moldable import MoldableJobs
from gridsim_papers.verdicts import Finding

__all__ = ["blocks_suffice", "corrected_limits", "downey"]

CORES = 64
TOLERANCE = 1e-9


def downey(speedup: type[Downey] = Downey) -> Finding:
    """Continuous, never decreasing, at most min(n, A), the same in both regimes at sigma 1, saturated at A."""
    rng = stream(1, "claims", "downey")
    worst, checks = 0.0, 0
    for average, sigma in zip([1.0, 8.0, *rng.uniform(1, 200, 300)], [0.0, 1.0, *rng.uniform(0, 3, 300)], strict=True):
        n = np.arange(1, 1000)
        law = speedup(parallelism=float(average), sigma=float(sigma))
        values = law.speedup(n)
        bound = 2 * average - 1 if sigma <= 1 else average + average * sigma - sigma
        breaks: Any = np.array([average, bound])  # the formulas also apply between whole numbers of cores
        one, attached = (speedup(parallelism=float(average), sigma=value).speedup(n) for value in (1.0, 1 + 1e-12))
        errors = (
            np.abs(law.speedup(breaks * (1 + 1e-13)) - law.speedup(breaks * (1 - 1e-13))),
            -np.diff(values),
            values - np.minimum(n, average),
            np.abs(one - attached),
            np.abs(values[n >= bound] - average),
        )
        worst = max(worst, *(float(error.max(initial=0.0)) for error in errors))
        checks += sum(len(error) for error in errors)
    note = f"{checks} checks of 302 laws; largest error {worst:.1g}"
    return Finding("holds" if worst <= TOLERANCE else "does not hold", worst, n=checks, note=note)


def blocks_suffice(jobs: int = 600, *, skipped: int = 0) -> Finding:
    """The choice over blocks of free time equals that of trying every size, when runtimes decrease with cores.

    Parameters
    ----------
    jobs : int
        Number of jobs, each with a separate profile, at each of three variations of parallelism.
    skipped : int
        Blocks at the beginning that the choice ignores, for tests.
    """
    checked, different = choices_compared(jobs, skipped=skipped)
    note = f"{different} of {checked} choices differ in cores or start from those of trying every size"
    return Finding("does not hold" if different else "holds", different, n=checked, note=note)


def corrected_limits(states: int = 300, corrected: str = "sqrt-parallel") -> Finding:
    """A job that can run on several cores has no smaller limit when sequential jobs are not counted."""
    rng = stream(1, "claims", "limits")
    checked = lower = 0
    for _ in range(states):
        requests = Requests(_jobs(rng))
        rows = rng.permutation(len(requests))
        running = Queue(requests, rows[: int(rng.integers(0, len(rows)))], {})
        queue = Queue(requests, rows[len(running) :], {"total": CORES, "running": running})
        factor = float(rng.integers(1, 3))
        mine, plain = (ShareOfWork(wf=factor, weight=weight).limits(queue, 0.0) for weight in (corrected, "sqrt"))  # type: ignore[arg-type]
        parallel = requests.maximum[queue.rows] > 1
        lower += int((mine[parallel] < plain[parallel]).sum())
        checked += int(parallel.sum())
    note = f"{lower} of {checked} limits lower"
    return Finding("does not hold" if lower else "holds", lower, n=checked, note=note)


def _jobs(rng: np.random.Generator) -> Workload:
    count = int(rng.integers(2, 20))
    log = Workload.from_columns(
        submit=np.zeros(count), runtime=10 ** rng.uniform(1, 5, count), cores=rng.integers(1, 9, count)
    )
    return MoldableJobs(range_factor=1, sigma=0, cores=CORES).apply(log)
