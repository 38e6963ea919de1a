"""Whole logs of the Parallel Workloads Archive, and a generated one: no schedule violates an invariant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gridsim as gs
from gridsim.policy.site_policy import machine
from gridsim.testing import violations
from gridsim.workload.synthetic.lublin import Lublin

LOGS = (
    "CTC-SP2-1996-3.1-cln",
    "NASA-iPSC-1993-3.1-cln",
    "SDSC-BLUE-2000-4.2-cln",
    "SDSC-SP2-1998-4.2-cln",
    "lublin_256",
)
DRAWN = Lublin(jobs=3_000, cores=128, load=0.9, f=4.0)


WHOLE = (pytest.param(name, marks=[pytest.mark.others, pytest.mark.long]) for name in LOGS)


@pytest.mark.parametrize("name", ["generated", *WHOLE])
def test_no_schedule_of_a_whole_log_breaks_an_invariant(others: Callable[[str], Path], name: str) -> None:
    log = DRAWN.generate(1) if name == "generated" else gs.read_workload(others(f"swf/{name}.swf.gz"))
    platform = machine(log)
    for policy in ("fcfs", "easy", "conservative"):
        record = gs.simulate(log, platform=platform, policy=policy).record
        assert list(violations(record)) == [], policy
        assert record.ran.all()
