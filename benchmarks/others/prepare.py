"""Logs that all simulators read in the same way: whole seconds, every field known, no job longer than its estimate.

    python prepare.py FOLDER [LOG[@JOBS] …]

Writes ``NAME.swf`` and, with its first ten jobs, ``NAME.ten.swf`` (the cost of a command before it simulates), and
prints the names. ``generated`` instead of a file is the built-in workload.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
from pathlib import Path

import gridsim as gs
from gridsim.model.time import to_us
from gridsim.workload.formats.swf_writer import write_swf
from gridsim.workload.transform.slice import Slice

GENERATED = "generated"


def prepared(log: str) -> tuple[str, gs.Workload]:
    """Return the name and jobs of a log: its first submission is at 0, estimates are at least the run times."""
    path, _, jobs = log.partition("@")
    if path == GENERATED:
        workload = gs.default_workload(estimates="multiples")
    else:
        workload = gs.read_workload(path, rules={"over-estimate": "repair"})
    workload = Slice(jobs=int(jobs) if jobs else None, origin=True).apply(workload)
    rounded = dataclasses.replace(workload, submit=workload.submit // to_us(1) * to_us(1))
    return re.sub(r"\.swf(\.gz|\.xz)?$", "", Path(path).name) + (f"-{jobs}" if jobs else ""), rounded


def main() -> None:
    """Write the logs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("logs", nargs="*", default=[GENERATED])
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for log in args.logs:
        name, workload = prepared(log)
        write_swf(workload, args.folder / f"{name}.swf")
        write_swf(Slice(jobs=10).apply(workload), args.folder / f"{name}.ten.swf")
        print(name)


if __name__ == "__main__":
    main()
