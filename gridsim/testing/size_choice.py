"""Check of the choice of sizes of moldable jobs over blocks of free time, against trying every size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.model.random_streams import stream
from gridsim.model.time import MICROSECOND, IntArray
from gridsim.model.workload import Workload
from gridsim.policy.partition import Greedy
from gridsim.policy.queue import Requests
from gridsim.workload.transform.moldable import MoldableJobs

_CORES = 64
_BLOCKS = 12
_LONGEST = 500


class Compared(NamedTuple):
    """Number of compared choices, and of those that differ in cores or start."""

    checked: int
    different: int


def choices_compared(jobs: int = 600, *, skipped: int = 0) -> Compared:
    """Compare the choice over blocks of free time with trying every size, for run times that decrease with cores.

    Parameters
    ----------
    jobs : int
        Number of jobs, each with a separate profile, at each of three variations of parallelism.
    skipped : int
        Number of initial blocks hidden from the choice, for tests.
    """
    from gridsim.machine.blocks import earliest
    from gridsim.policy.scheduler.core_count_choice import FALLS, LEAST, MOST, by_blocks
    from gridsim.policy.scheduler.moldable_state import Shapes  # compiled kernels: only if something runs

    rng = stream(1, "claims", "blocks")
    checked = different = 0
    for sigma in (0.0, 1.0, 2.0):
        asked = rng.integers(1, _CORES + 1, jobs)
        log = Workload.from_columns(submit=np.arange(jobs), runtime=rng.integers(60, _LONGEST, jobs), cores=asked)
        moldable_schedule = MoldableJobs(range_factor=float(rng.integers(1, 4)), sigma=sigma, cores=_CORES).apply(log)
        shapes = Shapes(Requests(moldable_schedule), Greedy(choices="all"), _CORES)
        for row in np.flatnonzero(shapes.table[FALLS]).tolist():
            times, free = _profile(rng)
            low = int(shapes.table[LEAST, row])
            high = int(rng.integers(low, shapes.table[MOST, row] + 1))
            seen = slice(min(skipped, len(times) - 1), None)
            start, cores, _ = by_blocks(
                times[seen], free[seen], len(times[seen]), shapes.table, shapes.relative, row, high, times[:0]
            )
            ends = np.array(
                [
                    earliest(times, free, len(times), n, shapes.on(row, n)) + shapes.on(row, n)
                    for n in range(low, high + 1)
                ]
            )
            best = low + int(np.argmax(ends <= ends.min() + 1))
            different += (int(cores), int(start)) != (best, int(ends[best - low]) - shapes.on(row, best))
            checked += 1
    return Compared(checked, different)


def _profile(rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return the begins of blocks of free time, and the free cores in each; all in the last one."""
    count = int(rng.integers(2, _BLOCKS))
    times = np.cumsum(rng.integers(1, _LONGEST, count)) * MICROSECOND
    free = np.append(rng.integers(0, _CORES + 1, count - 1), _CORES)
    return times, free
