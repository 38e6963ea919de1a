"""Guarantees hold on any workload under any controller, with later arrivals, compression and kills."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gridsim as gs
from gridsim.cli import main
from gridsim.model.moldable import Moldable
from gridsim.model.speedup import Downey, Linear
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.record import Record, Status
from gridsim.testing.claims import work
from gridsim.testing.invariants import violations
from tests.oracles.strategies import workloads

CORES = 8
CONTROLLERS = [
    "msb",
    "msb?price=disturbance&order=edf",
    "mrt",
    "mrt?hole_filling=false&backtracks=2",
    "mrt?heuristic=edf+est&window=2",
    "qops",
    "qops?slots=best&price=wait&insertion=sorted",
    "qops?append_slot=false&artificial_fallback=reject",
    "qops?unadmitted=best-effort",
    "fqops?slack_factor=1.2",
    "fqops?kill_restart=true&max_kills=2&unadmitted=best-effort",
    "fqops?kill_restart=true&compress=none",
    "guaranteed?admission=restart(inner=msb)",
    "guaranteed?admission=conservative",
]
QUICK = "relaxation=1.5&artificial_floor=9"
"""Artificial deadlines that are as tight as the others."""


def simulate(workload: Workload, policy: str, **options: Any) -> Record:
    policy += ("&" if "?" in policy else "?") + QUICK
    return gs.simulate(workload, platform=gs.Platform.single(CORES), policy=policy, **options).record


@st.composite
def demanding(draw: st.DrawFn) -> Workload:
    """Draw workloads with deadlines, tolerant users, and some jobs that must not be killed."""
    workload = draw(workloads(cores=CORES, deadlines=True, largest=14))
    n = len(workload)
    return Workload.from_columns(
        submit=workload.submit / 1e6,
        runtime=workload.runtime / 1e6,
        estimate=workload.estimate / 1e6,
        cores=workload.cores,
        deadline=np.where(workload.deadline < NEVER, workload.deadline / 1e6, np.inf),
        tolerance=draw(st.lists(st.sampled_from((1.0, 1.5, 3.0, np.inf)), min_size=n, max_size=n)),
        restartable=draw(st.lists(st.booleans(), min_size=n, max_size=n)),
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", CONTROLLERS)
@given(workload=demanding(), instant=st.sampled_from(["batched", "per-event"]))
def test_promises_are_kept(policy: str, workload: Workload, instant: str) -> None:
    record = simulate(workload, policy, instant=instant)
    assert violations(record) == []
    assert record.promises is not None
    granted = record.promises.granted_us
    promised = granted < NEVER
    assert (record.end_us[promised] <= granted[promised]).all()
    assert record.ran[promised].all(), "who is promised an end runs"
    assert not record.promises.broken.any()
    statuses = np.bincount(record.status, minlength=len(Status))
    assert statuses.sum() == len(workload)
    if "best-effort" in policy:
        assert not statuses[Status.unadmitted], "nobody leaves"
    else:
        assert ((record.status == Status.unadmitted) == ~promised).all()
    held = np.minimum(workload.runtime, workload.estimate)
    assert work(record) == int((held * workload.cores)[record.ran].sum()), "useful work is that of the jobs that ran"
    assert (record.kills[~record.ran] == 0).all()
    if workload.restartable is not None:
        assert (record.kills[~workload.restartable] == 0).all()
    again = simulate(workload, policy, instant=instant)
    assert record.start_us.tolist() == again.start_us.tolist()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", CONTROLLERS)
@given(workload=demanding())
def test_promises_are_broken_only_by_overruns_and_are_reported(policy: str, workload: Workload) -> None:
    record = simulate(workload, policy, overrun="extend")
    assert violations(record, overrun="extend") == []
    if not (workload.runtime > workload.estimate).any():
        assert record.promises is not None
        assert not record.promises.broken.any()


@pytest.mark.parametrize("instant", ["batched", "per-event"])
@given(workload=demanding(), slack=st.sampled_from((1.5, 2.0, 3.0)))
def test_tolerance_up_to_the_slack_is_no_tolerance(workload: Workload, slack: float, instant: str) -> None:
    """Spec of the deadline papers, 7.3: TF <= SF behaves exactly like plain QoPS."""
    tolerance = np.minimum(np.ones(len(workload)) if workload.tolerance is None else workload.tolerance, slack)
    users = Workload.from_columns(
        submit=workload.submit / 1e6,
        runtime=workload.runtime / 1e6,
        estimate=workload.estimate / 1e6,
        cores=workload.cores,
        deadline=np.where(workload.deadline < NEVER, workload.deadline / 1e6, np.inf),
        tolerance=tolerance,
    )
    plain = simulate(users, "qops", instant=instant)
    slacked = simulate(users, f"fqops?slack_factor={slack}", instant=instant)
    assert plain.start_us.tolist() == slacked.start_us.tolist()
    assert plain.status.tolist() == slacked.status.tolist()


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(workload=demanding())
def test_guarantees_are_checked_from_files(workload: Workload, tmp_path: Path, capsys: Any) -> None:
    result = gs.simulate(
        workload, platform=gs.Platform.single(CORES), policy=f"fqops?kill_restart=true&{QUICK}", overrun="kill"
    )
    result.write(tmp_path)
    assert main(["validate", str(tmp_path)]) == 0, capsys.readouterr().out
    promised = result.record.ran & (result.record.end_us > workload.submit)
    if not promised.any():
        return
    row = int(np.flatnonzero(promised)[0])
    table = (tmp_path / "jobs.csv").read_text().splitlines()
    place = table[0].split(",").index("granted")
    cells = table[row + 1].split(",")
    cells[place] = str(float(workload.submit[row]) / 1e6)
    (tmp_path / "jobs.csv").write_text("\n".join([table[0], *table[1 : row + 1], ",".join(cells), *table[row + 2 :]]))
    assert main(["validate", str(tmp_path)]) == 1
    assert "deadline-missed" in capsys.readouterr().out


@st.composite
def moldable_schedule(draw: st.DrawFn) -> Workload:
    """Draw high-load workloads whose jobs may have sizes other than the requested ones."""
    workload = draw(demanding())
    ends = [sorted(draw(st.tuples(st.integers(1, CORES), st.integers(1, CORES)))) for _ in range(len(workload))]
    sigma = draw(st.sampled_from((0.0, 0.5, 1.0, 2.0)))
    low, high = np.array(ends).T
    return replace(workload, moldable=Moldable.of(workload.cores, low, high, [Downey(parallelism=CORES, sigma=sigma)]))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", ["qops", "msb", "mrt", "fqops?kill_restart=true&slack_factor=1.5"])
@pytest.mark.parametrize("partition", ["greedy", "fair-share(wf=2)"])
@given(workload=moldable_schedule(), overrun=st.sampled_from(["kill", "extend"]))
def test_promises_to_moldable_jobs_are_kept(policy: str, partition: str, workload: Workload, overrun: str) -> None:
    policy += ("&" if "?" in policy else "?") + f"partition={partition}"
    record = simulate(workload, policy, overrun=overrun)
    assert violations(record, overrun=overrun) == []  # type: ignore[arg-type]
    assert record.promises is not None
    if overrun == "kill":
        promised = record.promises.granted_us < NEVER
        assert (record.end_us[promised] <= record.promises.granted_us[promised]).all()


def test_the_fewest_cores_that_keep_the_promise_are_chosen() -> None:
    """On eight idle cores, 12 s of sequential work use three cores to end by 4 s, and six to end by 2 s."""
    for deadline, cores in ((12, 1), (4, 3), (2, 6)):
        job = Workload.from_columns(submit=[0], runtime=[6], cores=[2])
        job = replace(
            job, moldable=Moldable.of([2], 1, 8, [Linear()]), deadline=np.array([deadline * 1_000_000], dtype=np.int64)
        )
        record = simulate(job, "qops?partition=greedy(choices=all)")
        assert record.given.tolist() == [cores]
        assert record.end.tolist() == [12 / cores]
