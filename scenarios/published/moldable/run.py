"""Run the published study of moldable jobs: a file of rows for each window and base load, finished ones kept."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from gridsim.campaign.moldable import MoldableCampaign, run_campaign
from gridsim.campaign.units import Finished
from gridsim.campaign.windows import LOGS

RECIPE = Path(__file__).with_name("campaign.toml")


def report(done: Finished, left: int) -> None:
    """A line a unit."""
    unit = done.unit
    print(
        f"{unit.log:6} window {unit.window:2}  base load {unit.base:10}  {done.schedules:4} points  "
        f"{done.cpu:7.1f} s CPU  {1e6 * done.cpu / max(done.jobs, 1):6.1f} us a job  {left} units left",
        flush=True,
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    files = ", ".join(log.file for log in LOGS.values() if log.file)
    parser.add_argument("--data", type=Path, help=f"folder of the logs {files}; without any, a model stands in")
    parser.add_argument("--out", required=True, type=Path, help="folder of the rows")
    parser.add_argument("--recipe", type=Path, default=RECIPE)
    parser.add_argument("--scale", default="small", help="tiny, test, small or full")
    parser.add_argument("--experiment", action="append", help="only these: a name or a pattern, such as 'mold-fig*'")
    parser.add_argument("--log", action="append", help="only these")
    parser.add_argument("--base", action="append", help="only these base loads")
    parser.add_argument("--windows", type=int, help="of each log")
    parser.add_argument("--ctc-cores", type=int, help="338, as the header of the log says, in place of 430")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    changes = {
        "experiments": args.experiment and tuple(args.experiment),
        "logs": args.log and tuple(args.log),
        "bases": args.base and tuple(args.base),
        "windows": args.windows,
        "ctc_cores": args.ctc_cores,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    campaign = MoldableCampaign.from_toml(args.recipe, scale=args.scale, **given).on(args.data)
    if "model" in campaign.logs:
        print("log 'model': windows of the model of Lublin and Feitelson, no archive log", flush=True)
    if "npb-measured" not in campaign.profiles:
        print("no measured profiles are there; the stand-in alone", flush=True)
    begun = time.perf_counter()
    done = run_campaign(campaign, args.out, data=args.data, workers=args.workers, told=report)
    cpu, schedules = sum(unit.cpu for unit in done), sum(unit.schedules for unit in done)
    print(
        f"{len(campaign.units())} units in {args.out}; {len(done)} run now: {schedules} schedules, {cpu:.0f} s CPU, "
        f"{time.perf_counter() - begun:.0f} s"
    )


if __name__ == "__main__":
    main()
