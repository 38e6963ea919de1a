"""Check that schedules are feasible and equal: prints a row for each schedule, as markdown.

    python check.py FOLDER

FOLDER contains the output of compare.py: ``NAME.swf`` and ``NAME.POLICY.SIMULATOR.csv``. Feasibility is the result of
``gridsim validate``. A start is equal if gridsim starts the job in the same second under the same policy.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import gridsim as gs
from gridsim.model.platform import machine_cores
from gridsim.model.time import seconds
from gridsim.testing.invariants import violations_of
from gridsim.testing.schedule_reader import read_schedule

HEAD = """\
| log | policy | simulator | possible | starts as gridsim's | mean wait, s |
|---|---|---|---|---:|---:|"""


def row(path: Path) -> str:
    """Return a row: log, policy, simulator; feasible or the violation; share of starts equal to gridsim's; wait."""
    name, policy, simulator = path.name.removesuffix(".csv").rsplit(".", 2)
    workload = gs.read_workload(path.with_name(f"{name}.swf"))
    schedule = read_schedule(path)
    violations = violations_of(schedule, workload, cores=machine_cores(workload, None)[0])
    ours = read_schedule(path.with_name(f"{name}.{policy}.gridsim.csv"))
    same = share(schedule.start[schedule.job.argsort()] == ours.start[ours.job.argsort()])
    wait = seconds(schedule.start).mean() - seconds(workload.submit).mean()
    return f"| {name} | {policy} | {simulator} | {'; '.join(map(str, violations)) or 'yes'} | {same} | {wait:,.0f} |"


def share(equal: np.ndarray) -> str:
    """Format the share in per cent; only a share of exactly 1 is 'all'.

    >>> share(np.array([True, True])), share(np.array([True] * 9999 + [False]))
    ('all', '99.9 %')
    """
    return "all" if equal.all() else f"{min(100 * equal.mean(), 99.9):.1f} %"


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    print(HEAD)
    for path in sorted(parser.parse_args().folder.glob("*.*.*.csv")):
        print(row(path))


if __name__ == "__main__":
    main()
