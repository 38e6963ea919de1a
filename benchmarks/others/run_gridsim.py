"""Run gridsim from Python: read the log, simulate one policy, write the schedule."""

from __future__ import annotations

import sys

from joblist import read_jobs, write_schedule

import gridsim as gs

if __name__ == "__main__":
    log, policy, output = sys.argv[1:]
    record = gs.simulate(gs.read_workload(log), policy=policy).record
    write_schedule(output, read_jobs(log)[1], record.start.tolist())
