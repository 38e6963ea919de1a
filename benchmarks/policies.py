"""Jobs per CPU second of each policy on logs, with a bare SimPy run of the same arrivals and completions."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator

from simpy import Environment, Event

import gridsim as gs
from gridsim.model.platform import machine_cores
from gridsim.model.workload import Workload

POLICIES = ("fcfs", "easy", "conservative", "easy?ordering=sjf", "easy?ordering=wfp3")


def bare(workload: Workload) -> float:
    """Return the CPU seconds of SimPy alone: a process that releases jobs, and a callback at each end."""
    env = Environment()
    ended = 0

    def end(event: Event) -> None:
        nonlocal ended
        ended += 1

    def release() -> Iterator[Event]:
        for submit, runtime in zip(workload.submit.data, workload.runtime.data, strict=True):
            if submit > env.now:
                yield env.timeout(submit - env.now)
            env.timeout(runtime).callbacks.append(end)

    env.process(release())  # type: ignore[arg-type]
    begun = time.process_time()
    env.run()
    return time.process_time() - begun


def main() -> None:
    """Print a row for each log and policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--policy", action="append")
    args = parser.parse_args()
    print(f"{'log':34} {'policy':20} {'jobs':>8} {'jobs/s':>9} {'bare/s':>9} {'ratio':>7} {'min':>7} {'max':>7}")
    for log in args.logs:
        workload = gs.read_workload(log)
        cores, _ = machine_cores(workload, None)
        platform = gs.Platform.single(cores)
        for policy in args.policy or POLICIES:
            gs.simulate(workload.select(slice(0, 500)), platform=platform, policy=policy)
            runs = []
            for _ in range(args.repeat):
                floor = bare(workload)
                begun = time.process_time()
                gs.simulate(workload, platform=platform, policy=policy)
                runs.append((floor / (time.process_time() - begun), floor))
            ratios = [ratio for ratio, _ in runs]
            ratio, floor = statistics.median(ratios), statistics.median(floor for _, floor in runs)
            name = log.rpartition("/")[2].removesuffix(".swf.gz")
            print(
                f"{name:34} {policy:20} {len(workload):8,} {len(workload) * ratio / floor:9,.0f} "
                f"{len(workload) / floor:9,.0f} {ratio:7.3f} {min(ratios):7.3f} {max(ratios):7.3f}"
            )


if __name__ == "__main__":
    main()
