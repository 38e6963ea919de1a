"""Run the industrial evaluation of section 4.5 on a log in the Standard Workload Format: stored rows in a folder."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from gridsim.campaign.grid import write_rows
from gridsim.campaign.industrial import industrial_rows
from gridsim.workload.read import machine_cores, read_workload

SHARED = Path(os.environ.get("GRIDSIM_SHARED", Path(__file__).resolve().parents[4] / "shared"))
LOG = SHARED / "data" / "industrial-grid" / "industrial-grid-5888.swf.gz"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=Path, help="folder of the rows")
    parser.add_argument("--log", type=Path, default=LOG)
    parser.add_argument("--cores", type=int, help="of the cluster, where the log does not say")
    parser.add_argument("--seeds", type=int, default=30, help="draws of Random and of the shares")
    parser.add_argument("--redraw", action="store_true", help="Random draws anew at each pass (random_hold = false)")
    args = parser.parse_args()
    name = args.log.name.split(".swf")[0]
    path = args.out / f"{name}.csv"
    if path.exists():
        print(f"{path} is there already")
        return
    if not args.log.exists():
        parser.error(f"{args.log} is not there; give --log, or set GRIDSIM_SHARED to the folder that holds data/")
    begun = time.process_time()
    workload = read_workload(args.log, cores=args.cores)
    cores, _ = machine_cores(workload, args.cores)
    write_rows(path, industrial_rows(workload, cores, seeds=args.seeds, random_hold=not args.redraw))
    print(f"{len(workload):,} jobs on {cores:,} cores: rows in {path}, {time.process_time() - begun:.0f} s CPU")


if __name__ == "__main__":
    main()
