"""Cost of the checks of plug-in results as a share of a run, and of the hash of gridsim's sources at the start.

Each case runs alternately with the checks and with functions that check nothing, in one process. The share is the
difference of the least CPU times, relative to the time without checks.

    python benchmarks/checks.py [LOG.swf.gz] [--jobs 4000] [--repeat 25]
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import gridsim as gs
from gridsim.entities.cluster import Cluster
from gridsim.machine.njit import state_of
from gridsim.model.platform import machine_cores
from gridsim.policy.admission import feedback, plan, plan_cycle, restart
from gridsim.policy.admission.plan import Plan
from gridsim.policy.admission.qops import QoPS
from gridsim.policy.protocols import Lanes, Offer
from gridsim.policy.reservation import Easy
from gridsim.policy.scheduler import deadline_guarantee, list_state, ordering_strategy, plan_based
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.policy.scheduler.deadline_guarantee import Guaranteed
from gridsim.policy.scheduler.plan_based import Planned
from gridsim.workload.synthetic.lublin import Lublin
from gridsim.workload.transform.deadlines import Deadlines
from gridsim.workload.transform.load_factor import OfferedLoad


class Widest:
    """Widest jobs first, with a static rank."""

    changes = "static"

    def rank(self, queue: Any, now: float) -> Any:
        """Return the number of cores, negative."""
        return -queue.cores


class Aged(Widest):
    """Widest jobs first, ranked in each scheduling cycle."""

    changes = "pass"


class WideProtected:
    """A lane for jobs of 32 cores or more."""

    blocking = False

    def lanes(self, queue: Any) -> Lanes:
        """Return the lane of each request."""
        return Lanes((queue.cores < 32).astype(np.int64), np.array([1, 0], dtype=np.int64))


class FirstPlace:
    """The first place in the plan, if the job ends there by its deadline."""

    def plan(self, request: int, deadline: int, plan: Any, now: int) -> Offer | None:
        """Return an offer of the earliest start."""
        start = plan.earliest(request, now)
        return Offer(start) if start + plan.estimate[request] <= deadline else None


CASES: dict[str, Callable[[], Any]] = {
    "list, static ordering": lambda: Backfilling(ordering=Widest(), reserve=Easy()),
    "list, ordering each cycle": lambda: Backfilling(ordering=Aged(), reserve=Easy()),
    "list, lanes": lambda: Backfilling(reserve=WideProtected()),
    "conservative, ordering": lambda: Planned(ordering=Widest()),
    "conservative, admission": lambda: Planned(admission=FirstPlace()),
    "qops": lambda: Guaranteed(admission=QoPS()),
    "qops, ordering": lambda: Guaranteed(admission=QoPS(heuristic=Widest())),
    "deadlines, admission": lambda: Guaranteed(admission=FirstPlace()),
}


def _unchecked_ranks(ordering: Any, queue: Any, now: float) -> Any:
    return np.asarray(ordering.rank(queue, now), dtype=np.float64)


def _unchecked_reserve(self: Any, request: int, start: int) -> None:
    self._ensure(1)
    self._act(plan_cycle.ENTER, start, request, start)


def _unchecked(*_: Any) -> None:
    """Check nothing."""


WITHOUT: list[tuple[Any, str, Any]] = [
    *((module, "ranks_of", _unchecked_ranks) for module in (list_state, ordering_strategy, plan)),
    *(
        (module, "offer_of", lambda admission, *rest: admission.plan(*rest))
        for module in (deadline_guarantee, plan_based, feedback, restart)
    ),
    (list_state, "lanes_of", lambda rule, queue: rule.lanes(queue)),
    (ordering_strategy, "integer_column", lambda policy, what, answer, *_, **__: answer),
    (Cluster, "_check_decision", _unchecked),
    (Cluster, "_check_quote", _unchecked),
    (Plan, "reserve", _unchecked_reserve),
]
"""The checks, and their replacements without checks."""


@contextmanager
def without_checks() -> Iterator[None]:
    """Run without the checks of plug-in results."""
    kept = [(place, name, getattr(place, name)) for place, name, _ in WITHOUT]
    for place, name, instead in WITHOUT:
        setattr(place, name, instead)
    try:
        yield
    finally:
        for place, name, checked in kept:
            setattr(place, name, checked)


def seconds(workload: gs.Workload, platform: gs.Platform, policy: Any) -> float:
    """Return the CPU seconds of a run with SimPy, where each plug-in result is checked."""
    begun = time.process_time()
    gs.simulate(workload, platform=platform, policy=policy, engine="simpy")
    return time.process_time() - begun


def share(workload: gs.Workload, platform: gs.Platform, make: Callable[[], Any], repeat: int) -> tuple[float, float]:
    """Return the CPU seconds of a run without checks, and the additional share of the checks."""
    checked, plain = [], []
    for turn in range(2 * repeat + 2):  # alternate the first kind of each pair: the second run of a pair is faster
        gc.collect()
        if turn % 4 in (0, 3):
            checked.append(seconds(workload, platform, make()))
        else:
            with without_checks():
                plain.append(seconds(workload, platform, make()))
    base = min(plain[1:])
    return base, (min(checked[1:]) - base) / base


def start(repeat: int) -> float:
    """Return the least CPU seconds of the checksum of all sources that compiled loops depend on."""
    package, taken = Path(gs.__file__).parent, []
    for _ in range(repeat):
        begun = time.process_time()
        state_of(package)
        taken.append(time.process_time() - begun)
    return min(taken)


def main() -> None:
    """Print a row for each case, and the cost of a start."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", nargs="?", help="SWF file; jobs of the Lublin model where left out")
    parser.add_argument("--jobs", type=int, default=4000, help="number of jobs (%(default)s)")
    parser.add_argument("--repeat", type=int, default=25, help="pairs of runs of each case (%(default)s)")
    args = parser.parse_args()
    if args.log:
        log = gs.read_workload(args.log)
        workload, cores = log.select(np.arange(min(args.jobs, len(log)))), machine_cores(log, None)[0]
    else:
        workload, cores = OfferedLoad(0.85).apply(Lublin(jobs=args.jobs).generate(1)), 128
    platform = gs.Platform.single(cores)
    reference = gs.simulate(workload, platform=platform, policy="easy").record
    workload = Deadlines(stringency=0.2).apply(workload, np.random.default_rng(1), reference)
    print(f"{'case':28} {'CPU ms':>8} {'checks':>8}")
    for name, make in CASES.items():
        base, part = share(workload, platform, make, args.repeat)
        print(f"{name:28} {1000 * base:8.0f} {100 * part:7.1f} %", flush=True)
    print(f"{'checksum of sources':28} {1000 * start(args.repeat):8.1f}")


if __name__ == "__main__":
    main()
