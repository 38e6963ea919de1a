"""Run the published campaign on synthetic workloads: a file of rows for each, finished ones kept."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from gridsim.campaign.grid import Finished, GridCampaign, run_campaign

RECIPE = Path(__file__).with_name("campaign.toml")


def report(unit: Finished, left: int) -> None:
    """A line a workload."""
    print(
        f"{unit.kind:8} {unit.workload:3}  {unit.tasks:9,} tasks  {unit.cpu:6.1f} s CPU  "
        f"{1e6 * unit.cpu / unit.tasks:5.1f} us a task  {left} workloads left",
        flush=True,
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=Path, help="folder of the rows")
    parser.add_argument("--recipe", type=Path, default=RECIPE)
    parser.add_argument("--scale", default="small", help="tiny, test, small or full")
    parser.add_argument("--sizes", default="paper", choices=("paper", "loguniform"), help="of jobs, where log")
    parser.add_argument("--kind", action="append", help="only this kind of workload")
    parser.add_argument("--cluster-cores", type=int, help="another size of the clusters, at equal load (G-28)")
    parser.add_argument("--redraw", action="store_true", help="Random draws anew at each pass (random_hold = false)")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    changes = {
        "sizes": args.sizes,
        "kinds": args.kind,
        "cluster_cores": args.cluster_cores,
        "random_hold": not args.redraw,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    campaign = GridCampaign.from_toml(args.recipe, scale=args.scale, **given)
    begun = time.perf_counter()
    done = run_campaign(campaign, args.out, workers=args.workers, told=report)
    cpu, tasks = sum(unit.cpu for unit in done), sum(unit.tasks for unit in done)
    print(
        f"{campaign.schedules} schedules in {args.out}; {len(done)} workloads run now: {tasks:,} tasks, "
        f"{cpu:.0f} s CPU ({1e6 * cpu / max(tasks, 1):.1f} us a task), {time.perf_counter() - begun:.0f} s"
    )


if __name__ == "__main__":
    main()
