"""Time per job and peak memory of a generated workload under EASY, by size; one process per size."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

SIZES = (10_000, 100_000, 1_000_000)


def one(jobs: int, load: float, policy: str) -> None:
    """Generate and simulate a workload, and print the figures of this process."""
    import gridsim as gs

    platform = gs.Platform.single(128)
    gs.simulate(gs.default_workload(jobs=500, load=load), platform=platform, policy=policy)
    workload = gs.default_workload(jobs=jobs, load=load)
    begun = time.process_time()
    result = gs.simulate(workload, platform=platform, policy=policy)
    seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wait = float(result.record.wait.mean())
    print(f"{jobs:10,} {seconds / jobs * 1e6:12.2f} {jobs / seconds:12,.0f} {peak:10.0f} {wait:12,.0f}")


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", type=float, default=0.5)
    parser.add_argument("--policy", default="easy")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        one(args.one, args.load, args.policy)
        return
    print(f"{'jobs':>10} {'us a job':>12} {'jobs/s':>12} {'peak MB':>10} {'mean wait s':>12}")
    for jobs in SIZES:
        words = [sys.executable, __file__, "--one", str(jobs), "--load", str(args.load), "--policy", args.policy]
        subprocess.run(words, check=True)


if __name__ == "__main__":
    main()
