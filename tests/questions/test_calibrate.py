"""The simulation that is compared with a log, and the detection of large deviations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gridsim as gs
from gridsim.ask import compare
from gridsim.cli import main
from gridsim.errors import InputError, UnknownNameError
from gridsim.metrics.agreement import agreement
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.policy.presets import policy
from gridsim.questions.calibrate import calibrate, own_policy, replay_of
from gridsim.questions.replay import Replay, agrees
from gridsim.record import Record
from gridsim.scenario import simulate_all, transformed
from gridsim.workload.formats.swf_writer import write_swf
from gridsim.workload.synthetic.lublin import default_workload

HERE = Platform.single(32)
MINI = Path(__file__).resolve().parents[2] / "docs" / "examples" / "mini" / "slurm.conf"


@pytest.fixture(scope="module")
def log() -> Workload:
    """A log of a machine that runs EASY."""
    jobs = default_workload(jobs=300, load=0.9, cores=32, seed=2)
    record = gs.simulate(jobs, platform=HERE, policy="easy").record
    return replace(jobs, logged={"wait": record.wait})


def test_jobs_that_were_changed_or_have_no_starts_are_not_vouched_for(log: Workload) -> None:
    unknown = replace(log, logged={})
    assert replay_of(simulate_all(unknown, {"fcfs": "fcfs"}, platform=HERE)) is None
    changed = log.with_provenance(transforms=[{"transform": "slice"}])
    assert replay_of(simulate_all(changed, {"fcfs": "fcfs"}, platform=HERE)) is None
    with pytest.raises(InputError, match="has no starts"):
        calibrate(unknown, ["fcfs"], platform=HERE)


@pytest.mark.parametrize("changed", [[], ["load-factor?percent=120"], ["resample"], ["slice?jobs=100"], ["shake"]])
def test_a_transformed_workload_is_not_compared_with_the_log(
    log: Workload, changed: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = transformed(log, changed, cores=32)
    assert (compare(workload, ["easy"], platform=HERE).replay is None) == bool(changed)
    write_swf(log, tmp_path / "log.swf")
    words = ["whatif", str(tmp_path / "log.swf"), "--add-cores", "+8"]
    assert main([*words, *(f"--transform={each}" for each in changed)]) == 0
    told = capsys.readouterr().out
    assert ("alidat" in told) != bool(changed)


def test_nothing_is_replayed_again_where_no_job_was_cut(log: Workload) -> None:
    results = simulate_all(log, {"fcfs": "fcfs"}, platform=HERE)
    replay = replay_of(results, policies={"fcfs": "none"}, options=gs.Run())
    assert replay == replay_of(results)


@pytest.mark.parametrize(
    ("replayed", "logged", "far"),
    [(199, 100, False), (400, 100, True), (100, 400, True), (100, 40, True), (5, 2, True), (0, 0, False), (2, 0, True)],
)
def test_a_mean_wait_is_far_from_the_log_beyond_a_factor_of_two_however_short(
    replayed: int, logged: int, far: bool
) -> None:
    rows = [{"submit": 600 * job, "start": 600 * job + replayed, "end": 600 * job + 600} for job in range(30)]
    record = Record.from_rows(rows)
    known = replace(record.workload, logged={"wait": np.full(30, float(logged))})
    assert Replay("easy", agreement(replace(record, workload=known))).far is far
    assert not (far and agrees(replayed, logged)), "a page shows both"


def test_the_site_s_own_policy_is_the_one_requested_else_the_first_that_has_its_site() -> None:
    known = {"easy": policy("easy"), "b": policy(f"slurm?conf={MINI}"), "a": policy(f"slurm?conf={MINI}&add_nodes=2")}
    assert own_policy(known) == "b"
    assert own_policy(known, "easy") == "easy"
    assert own_policy({"easy": policy("easy")}) is None
    with pytest.raises(UnknownNameError, match="unknown policy in --own 'c'"):
        own_policy(known, "c")
