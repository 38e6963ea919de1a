"""Whole logs of the Parallel Workloads Archive: no schedule of ours breaks an invariant."""

from __future__ import annotations

from pathlib import Path

import pytest

import gridsim as gs
from gridsim.model.machine import machine
from gridsim.testing import violations

LOGS = (
    "CTC-SP2-1996-3.1-cln",
    "NASA-iPSC-1993-3.1-cln",
    "SDSC-BLUE-2000-4.2-cln",
    "SDSC-SP2-1998-4.2-cln",
    "lublin_256",
)


@pytest.mark.parametrize("name", LOGS)
def test_no_schedule_of_a_whole_log_breaks_an_invariant(shared: Path, name: str) -> None:
    log = gs.read_workload(shared / f"data/swf/{name}.swf.gz")
    platform = machine(log)
    for policy in ("fcfs", "easy", "conservative"):
        record = gs.simulate(log, platform=platform, policy=policy).record
        assert list(violations(record)) == [], policy
        assert record.ran.all()
