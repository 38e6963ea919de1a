"""A quote under Slurm's rules starts from the state of the log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gridsim as gs
from gridsim.policy.presets import policy
from gridsim.questions.quote import last_event
from gridsim.scenario import rules_for

MINI = Path(__file__).resolve().parents[2] / "docs" / "examples" / "mini"


def differing(log: Path, site: str, moments: int) -> list[tuple[float, object, object]]:
    """Moments at which the log and Slurm's rules have different numbers of jobs and cores."""
    slurm = policy(f"slurm?conf={site}")
    jobs = gs.read_workload(log, rules=rules_for([slurm]))
    start, end = jobs.logged_last_start, jobs.logged_end
    assert start is not None
    assert end is not None
    withdrawn = np.where(jobs.labels["withdrawn"] >= 0, jobs.submit + jobs.labels["withdrawn"] * 1_000_000, 1 << 62)
    found = []
    for at in np.linspace(0, last_event(jobs) // 1_000_000, moments).astype(int).tolist():
        now = at * 1_000_000
        running = (start <= now) & (now < end)
        waiting = (jobs.submit <= now) & (now < start) & (now < withdrawn)
        logged = (int(running.sum()), int(jobs.cores[running].sum()), int(waiting.sum()))
        quoted = gs.quote(jobs, at=at, cores=1, walltime=60, policies={"slurm": slurm}, deadline=at + 10**6)
        answer = quoted["slurm"]
        for state in (tuple(quoted.recorded or ()), (answer.running, answer.busy, answer.waiting)):
            if state != logged:
                found.append((at, logged, state))
    return found


@pytest.mark.long
@pytest.mark.parametrize("moments", [100])
def test_jobs_run_and_wait_as_in_the_log(moments: int) -> None:
    site = f"{MINI}/slurm.conf&assoc={MINI}/assoc.cfg&qos={MINI}/qos.txt"
    assert differing(MINI / "sacct.txt", site, moments) == []


@pytest.mark.long
def test_jobs_of_several_runs_wait_until_the_last_one(run_a: Path) -> None:
    log = run_a / "logs" / "sacct_P_X_duplicates.txt.gz"
    assert differing(log, f"{run_a}/config/slurm.conf", 40) == []
