"""Run the published campaigns on guaranteed deadlines: a file of rows for each window of a log, finished ones kept."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from gridsim.campaign.deadline import LOGS, DeadlineCampaign, Finished, run_campaign

RECIPE = Path(__file__).with_name("campaign.toml")


def report(done: Finished, left: int) -> None:
    """A line a unit."""
    unit = done.unit
    print(
        f"{unit.log:14} window {unit.window:2} stream {unit.stream}  {done.schedules:5} schedules  "
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
    parser.add_argument("--experiment", action="append", help="only these: a name or a pattern, such as 'A-ctc-*'")
    parser.add_argument("--log", action="append", help="only these")
    parser.add_argument("--windows", type=int, help="of each log")
    parser.add_argument("--streams", type=int, help="of random numbers for each window")
    parser.add_argument("--ctc-cores", type=int, help="338, as the header of the log says, in place of 430")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    changes = {
        "experiments": args.experiment and tuple(args.experiment),
        "logs": args.log and tuple(args.log),
        "windows": args.windows,
        "streams": args.streams,
        "ctc_cores": args.ctc_cores,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    campaign = DeadlineCampaign.from_toml(args.recipe, scale=args.scale, **given).on(args.data)
    if "model" in campaign.logs:
        print("log 'model': windows of the model of Lublin and Feitelson, no archive log", flush=True)
    begun = time.perf_counter()
    done = run_campaign(campaign, args.out, data=args.data, workers=args.workers, told=report)
    cpu, schedules = sum(unit.cpu for unit in done), sum(unit.schedules for unit in done)
    print(
        f"{len(campaign.units())} units in {args.out}; {len(done)} run now: {schedules} schedules, {cpu:.0f} s CPU, "
        f"{time.perf_counter() - begun:.0f} s"
    )


if __name__ == "__main__":
    main()
