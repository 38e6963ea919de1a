"""CPU time a task on the paper's grid (4 clusters of 1,000 cores), and what a backlog of ready tasks costs.

175 schedules: one workload of each of the five kinds of Table 2, five loads, seven policies. Beside them stands what
SimPy alone needs for a time-out, measured a moment before and after: quote the ratio.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator

import numpy as np
from simpy import Environment, Event

import gridsim as gs
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.simulation import run
from gridsim.workload.synthetic.grid import Grid

KINDS = ("uni-ind", "log-ind", "prob", "fan", "chain")
LOADS = (0.8, 0.9, 1.0, 1.1, 1.2)
POLICIES = ("random", "fifo-task", "fifo", "fair-share", "lrtf", "srtf", "p-slr")
BACKLOGS = (200, 20_000)


def paper_platform() -> Platform:
    """One router over four clusters, three of one kind, data delays of a fifth of the execution time."""
    kinds = ("Kind1", "Kind1", "Kind1", "Kind2")
    clusters = tuple(ClusterSpec(f"cluster{number}", 1000, kind) for number, kind in enumerate(kinds, start=1))
    return Platform(RouterSpec("router", clusters), network=Network(ccr="1/5"))


def timeout() -> float:
    """CPU microseconds of one SimPy time-out."""
    env = Environment()

    def wait() -> Iterator[Event]:
        for _ in range(100_000):
            yield env.timeout(1)

    env.process(wait())  # type: ignore[arg-type]
    begun = time.process_time()
    env.run()
    return (time.process_time() - begun) * 10


def backlog(policy: str, waiting: int, jobs: int = 40_000, cores: int = 100) -> float:
    """CPU microseconds a job where so many one-core jobs wait all the time."""
    rng = np.random.default_rng(1)
    runtime = rng.integers(50, 5000, jobs)
    later = np.cumsum(np.full(jobs - waiting, runtime.mean() / cores)).round()
    submit = np.concatenate([np.zeros(waiting), later])
    share = rng.integers(0, 5, jobs)
    columns = gs.Workload.from_columns(submit=submit, runtime=runtime, cores=1, labels={"share": share})
    workload = gs.Workload(
        **{name: getattr(columns, name) for name in columns.__slots__ if name != "names"},
        names={"share": tuple(f"/share{number}" for number in range(5))},
    )
    begun = time.process_time()
    run(workload, Platform.single(cores), policy)
    return (time.process_time() - begun) / jobs * 1e6


def main() -> None:
    """Print a row a kind and load, then the averages, then the backlogs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", action="append", choices=KINDS)
    args = parser.parse_args()
    platform = paper_platform()
    for policy in POLICIES:  # compile
        run(Grid(kind="prob", jobs=20, total=10**7).generate(1), platform, policy)
    bare = [timeout()]
    spent = dict.fromkeys(POLICIES, 0.0)
    tasks = 0
    print(f"{'kind':8} {'load':>5} {'tasks':>7}  " + " ".join(f"{policy:>10}" for policy in POLICIES) + "   us a task")
    for kind in args.kind or KINDS:
        for load in LOADS:
            workload = Grid(kind=kind, load=load).generate(1)
            assert workload.tasks is not None
            row = []
            for policy in POLICIES:
                begun = time.process_time()
                run(workload, platform, policy)
                seconds = time.process_time() - begun
                spent[policy] += seconds
                row.append(seconds / len(workload.tasks) * 1e6)
            tasks += len(workload.tasks)
            print(f"{kind:8} {load:5.1f} {len(workload.tasks):7,}  " + " ".join(f"{value:10.1f}" for value in row))
    bare.append(timeout())
    by_policy = [spent[policy] / tasks * 1e6 for policy in POLICIES]
    print(f"{'all':8} {'':5} {tasks:7,}  " + " ".join(f"{value:10.1f}" for value in by_policy))
    mean = sum(spent.values()) / (tasks * len(POLICIES)) * 1e6
    print(
        f"mean {mean:.1f} us a task; a bare time-out {statistics.mean(bare):.2f} us: {mean / statistics.mean(bare):.1f}"
    )
    print(f"P-SLR over FIFO Task: {spent['p-slr'] / spent['fifo-task']:.2f}")
    for policy in POLICIES:
        few, many = (backlog(policy, waiting) for waiting in BACKLOGS)
        print(f"backlog {policy:10} {few:6.1f} us a job at 200 waiting, {many:6.1f} at 20,000: {many / few:.2f}")


if __name__ == "__main__":
    main()
