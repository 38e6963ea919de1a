"""Moldable jobs: CPU time of whole runs compared with rigid EASY, and of a scheduling cycle by number of waiting jobs.

With a log: 5,000 jobs at load factor 150, every job on 1 to all cores, Downey speedups with sigma 1. Without a log: the
cost of cycles over a queue with a given number of waiting jobs, while jobs arrive and end on a full machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import gridsim as gs
from gridsim.model.workload import Workload
from gridsim.scenario import transformed
from gridsim.testing.moldable_oracle import moldable_schedule

CORES = 430
POLICIES = (
    "easy",
    "conservative",
    "moldable?partition=rigid",
    "moldable-greedy",
    "moldable-submit",
    "moldable-base",
    "moldable-start",
    "moldable-base?choices=all",
    "moldable-combined",
    "moldable-combined-2003",
)
PLAIN_UP_TO = 30
RANGES = "moldable?range_factor=1&sigma=1"


def cpu(workload: Workload, cores: int, policy: str, repeat: int = 1) -> tuple[float, Any]:
    """Return the least CPU seconds of some runs with loaded compiled code, and the last result."""
    platform = gs.Platform.single(cores)
    gs.simulate(workload.select(slice(0, 100)), platform=platform, policy=policy)
    spent = []
    for _ in range(repeat):
        begun = time.process_time()
        result = gs.simulate(workload, platform=platform, policy=policy)
        spent.append(time.process_time() - begun)
    return min(spent), result


def runs(log: str, window: int, repeat: int) -> None:
    """Print a row for each policy."""
    texts = [f"slice?window={window}&jobs=5000&origin=true", "exact-estimates", "load-factor?percent=150", RANGES]
    workload = transformed(gs.read_workload(log), texts, platform=gs.Platform.single(CORES))
    print(f"{log.rpartition('/')[2]}, window {window}, load factor 150: {len(workload):,} jobs on {CORES} cores")
    print(f"{'policy':26} {'CPU s':>7} {'over EASY':>10} {'waiting: mean':>14} {'most':>6}")
    floor = None
    for policy in POLICIES:
        spent, result = cpu(workload, CORES, policy, repeat)
        floor = floor or spent
        numbers = result.metrics()
        print(
            f"{policy:26} {spent:7.2f} {spent / floor:10.1f} {numbers['queue_length_mean']:14.1f} "
            f"{numbers['queue_length_max']:6.0f}",
            flush=True,
        )


def flood(waiting: int, churn: int = 200) -> Workload:
    """Return jobs of which *waiting* wait at once, while *churn* small ones arrive and end."""
    rng = np.random.default_rng(waiting)
    n = waiting + churn
    submit = np.concatenate([np.zeros(waiting), np.sort(rng.uniform(1, 20_000, churn))])
    runtime = np.ceil(np.exp(rng.uniform(np.log(60), np.log(36_000), n)))
    cores = np.minimum(np.exp(rng.uniform(0, np.log(CORES), n)).astype(np.int64), CORES)
    rigid = Workload.from_columns(submit=submit, runtime=runtime, cores=cores)
    return transformed(rigid, [RANGES], cores=CORES)


def growth(counts: Sequence[int]) -> None:
    """Print a row for each number of waiting jobs."""
    chosen = ("easy", "moldable-base", "moldable-base?choices=all", "moldable-combined")
    print(f"CPU milliseconds a job, so many jobs of {CORES} cores submitted at once and 200 behind them")
    print(f"{'waiting':>7} " + " ".join(f"{policy:>26}" for policy in chosen) + f" {'base, plain version':>20}")
    for waiting in counts:
        workload = flood(waiting)
        spent = [1e3 * cpu(workload, CORES, policy)[0] / len(workload) for policy in chosen]
        plain = "-"
        if waiting <= PLAIN_UP_TO:
            few = flood(waiting, 20)
            begun = time.process_time()
            moldable_schedule(few, CORES, "aggressive-fair-share", wf=1.0, gap=0.9)
            plain = f"{1e3 * (time.process_time() - begun) / len(few):,.1f}"
        print(f"{waiting:7} " + " ".join(f"{value:26.3f}" for value in spent) + f" {plain:>20}", flush=True)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", nargs="?", help="SWF log, for whole runs")
    parser.add_argument("--waiting", type=int, nargs="+", default=[10, 30, 100, 300, 1000, 3000])
    parser.add_argument("--window", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    growth(args.waiting)
    if args.log is not None:
        runs(args.log, args.window, args.repeat)


if __name__ == "__main__":
    main()
