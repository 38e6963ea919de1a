"""CPU time per task on the grid of the paper (4 clusters of 1,000 cores), and the cost of a backlog of ready tasks.

175 schedules: one workload of each of the five kinds of Table 2, five loads, seven policies, on one engine. The output
includes the CPU time of a SimPy time-out, measured just before and after: quote the ratio. ``--campaign`` runs the
published evaluation instead: generation, schedules and metrics of one workload of each kind, on both engines. It prints
CPU ms per schedule and the total for all 5,250 schedules, and reports whether the rows are equal.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Iterable, Iterator

import numpy as np
from simpy import Environment, Event

import gridsim as gs
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.simulation import Run, run
from gridsim.workload.synthetic.grid import Grid

KINDS = ("uni-ind", "log-ind", "prob", "fan", "chain")
LOADS = (0.8, 0.9, 1.0, 1.1, 1.2)
POLICIES = ("random", "fifo-task", "fifo", "fair-share", "lrtf", "srtf", "p-slr")
BACKLOGS = (200, 20_000)
ENGINES = ("simpy", "compiled")


def paper_platform() -> Platform:
    """Return one router over four clusters, three of one kind, with data delays of a fifth of the execution time."""
    kinds = ("Kind1", "Kind1", "Kind1", "Kind2")
    clusters = tuple(ClusterSpec(f"cluster{number}", 1000, kind) for number, kind in enumerate(kinds, start=1))
    return Platform(RouterSpec("router", clusters), network=Network(ccr="1/5"))


def timeout() -> float:
    """Return the CPU microseconds of one SimPy time-out."""
    env = Environment()

    def wait() -> Iterator[Event]:
        for _ in range(100_000):
            yield env.timeout(1)

    env.process(wait())  # type: ignore[arg-type]
    begun = time.process_time()
    env.run()
    return (time.process_time() - begun) * 10


def backlog(policy: str, waiting: int, options: Run, jobs: int = 40_000, cores: int = 100) -> float:
    """Return the CPU microseconds per job with a constant number of waiting one-core jobs."""
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
    run(workload, Platform.single(cores), policy, options)
    return (time.process_time() - begun) / jobs * 1e6


def campaign(kinds: Iterable[str], loads: tuple[float, ...]) -> None:
    """Print a row for each kind and engine, then the extrapolation; exit 1 if the engines differ."""
    from gridsim_papers.grid import campaign as published
    from gridsim_papers.units import Unit

    whole = published.GridCampaign(loads=loads)
    whole.rows(Unit("fan", 29))  # compiles the loops
    usual, found, spent = published.simulate, dict[str, str](), dict.fromkeys(ENGINES, 0.0)
    schedules = len(loads) * len(whole.policies)
    print(f"{'kind':8} {'engine':9} {'CPU s':>7} {'ms a schedule':>14}")
    for kind in kinds:
        for engine in ENGINES:
            published.simulate = functools.partial(usual, engine=engine)  # type: ignore[attr-defined]
            begun = time.process_time()
            found[engine] = published.TABLE.text(whole.rows(Unit(kind, 1)))
            seconds = time.process_time() - begun
            spent[engine] += seconds
            print(f"{kind:8} {engine:9} {seconds:7.2f} {seconds / schedules * 1e3:14.1f}")
        if len(set(found.values())) > 1:
            raise SystemExit(f"{kind}: the engines differ")
    total = schedules * len(list(kinds))
    for engine, seconds in spent.items():
        print(
            f"all      {engine:9} {seconds:7.2f} {seconds / total * 1e3:14.1f}; 5,250: {seconds / total * 87.5:.1f} min"
        )


def main() -> None:
    """Print a row for each kind and load, then the averages, then the backlogs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--engine", choices=ENGINES, default="compiled")
    parser.add_argument("--campaign", action="store_true", help="the published evaluation, on both engines")
    parser.add_argument("--load", action="append", type=float, help="of --campaign; all five where left out")
    args = parser.parse_args()
    if args.campaign:
        campaign(args.kind or KINDS, tuple(args.load or LOADS))
        return
    options = Run(engine=args.engine)
    platform = paper_platform()
    for policy in POLICIES:  # compiles the loops
        run(Grid(kind="prob", jobs=20, total=10**7).generate(1), platform, policy, options)
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
                run(workload, platform, policy, options)
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
        few, many = (backlog(policy, waiting, options) for waiting in BACKLOGS)
        print(f"backlog {policy:10} {few:6.1f} us a job at 200 waiting, {many:6.1f} at 20,000: {many / few:.2f}")


if __name__ == "__main__":
    main()
