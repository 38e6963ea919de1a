"""Run the oracle, the slow second implementation for gridsim's tests: it tries every candidate start."""

from __future__ import annotations

import sys

from joblist import read_jobs, write_schedule

import gridsim as gs
from gridsim.testing import oracle

if __name__ == "__main__":
    log, policy, output = sys.argv[1:]
    cores, listed = read_jobs(log)
    record = oracle.schedule(gs.read_workload(log), cores, policy)  # type: ignore[arg-type]
    write_schedule(output, listed, record.start.tolist())
