"""Jobs with checkpoints: what their runs are spent on, closed forms, and runs that save themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.errors import InputError
from gridsim.metrics.availability import lost_core_seconds, overhead_core_seconds, runs_of, spent_in_runs
from gridsim.model.checkpoints import Checkpoints, Stretch
from gridsim.model.failures import FailureModel, Failures, Machines
from gridsim.options import Run
from gridsim.record import Record
from gridsim.testing.invariants import violations

FOUR = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=4, capacity={"cores": 2})])
ONE = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=1, capacity={"cores": 1})])


def _record(jobs: gs.Workload, policy: Any, failures: Failures | None, platform: Any = FOUR, **options: Any) -> Record:
    return gs.simulate(jobs, platform=platform, policy=policy, options=Run(failures=failures, **options)).record


def _jobs(n: int, seed: int = 1) -> gs.Workload:
    rng = np.random.default_rng(seed)
    runtime = rng.integers(1, 400, n)
    estimate = np.maximum(1, runtime + rng.integers(-40, 300, n))
    submit = np.sort(rng.integers(0, 60 * n, n))
    users = {"user": rng.integers(0, 4, n).tolist()}
    return gs.Workload.from_columns(
        submit=submit, runtime=runtime, estimate=estimate, cores=rng.integers(1, 9, n), labels=users
    )


POLICIES = ["fcfs", "first-fit", "easy", "conservative", "easy?predict=recent", "conservative?predict=recent"]


@pytest.mark.parametrize("remaining", ["original", "remaining"])
@pytest.mark.parametrize("instant", ["batched", "per-event"])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_second_of_a_run_is_spent_once(policy: str, instant: str, remaining: Any) -> None:
    if instant == "per-event" and policy.startswith("conservative?"):
        pytest.skip("plans from predictions need batched events")
    for seed in range(3):
        saving = Checkpoints(30, cost=7, restart=5, save_before=20, requeue_estimate=remaining)
        model = FailureModel(mtbf=2500.0, mttr=200.0)
        record = _record(_jobs(60, seed), policy, Failures(models=[model], checkpoints=saving), instant=instant)
        row, start, end, reason, _ = runs_of(record)
        spent = spent_in_runs(record)
        assert {"failure", "saved", "completed"} <= set(reason)
        assert all((column >= 0).all() for column in spent)
        assert (end - start == spent.restart + spent.kept + spent.checkpoint + spent.lost).all()
        kept = np.bincount(row, spent.kept, minlength=len(record))
        done = record.status_names == "completed"
        assert (kept[done] == record.workload.runtime[done]).all()
        held = record.given * np.bincount(row, (end - start) / 1e6, minlength=len(record))
        useful = np.where(done, record.given * record.workload.runtime / 1e6, 0)
        total = useful + lost_core_seconds(record) + sum(overhead_core_seconds(record))
        assert total == pytest.approx(held)
        order = np.lexsort((start, row))
        follows = row[order][1:] == row[order][:-1]
        assert (start[order][1:][follows] >= end[order][:-1][follows]).all()
        assert violations(record) == []


@pytest.mark.parametrize("policy", POLICIES)
def test_checkpoints_without_cost_change_no_schedule_where_nothing_is_hit(policy: str) -> None:
    jobs = _jobs(150)
    plain = _record(jobs, policy, None)
    found = _record(jobs, policy, Failures(checkpoints=Checkpoints(20)))
    assert (plain.start_us == found.start_us).all()
    assert (plain.end_us == found.end_us).all()
    assert (plain.status == found.status).all()
    assert found.workload.estimate.tolist() == jobs.estimate.tolist()


def test_nothing_is_lost_with_a_checkpoint_after_each_microsecond_without_cost() -> None:
    failures = Failures(models=[FailureModel(mtbf=2500.0, mttr=200.0)], checkpoints=Checkpoints(1e-6))
    record = _record(_jobs(60), "easy", failures, overrun="extend")
    assert record.interruptions is not None
    assert len(record.interruptions.job)
    assert spent_in_runs(record).lost.sum() == 0


@pytest.mark.parametrize(("work", "final", "expected"), [(300, True, 394.312), (600, False, 760.11)])
def test_expected_time_of_a_job_alone_on_a_node(work: int, final: bool, expected: float) -> None:
    # (1/l + D) e^{lR} (e^{l(W+C)} - 1) of each segment (specification, section 11); 4,000 jobs, three standard errors.
    rate, down, restart = 1 / 1000, 30, 15
    segments = [320] if work == 300 else [320, 300]
    first = sum((1 / rate + down) * math.exp(rate * restart) * math.expm1(rate * length) for length in segments)
    assert first == pytest.approx(expected, abs=0.01)
    n = 4000
    jobs = gs.Workload.from_columns(
        submit=np.arange(n) * 5000, runtime=np.full(n, work), estimate=np.full(n, 10_000), cores=np.ones(n, dtype=int)
    )
    saving = Checkpoints(300, cost=20, restart=restart, final_checkpoint=final)
    model = FailureModel(mtbf=1000.0, mttr=down, repair="fixed")
    record = _record(jobs, "fcfs", Failures(models=[model], checkpoints=saving), ONE)
    took = (record.end_us - record.first_start_us) / 1e6
    error = took.std() / math.sqrt(n)
    assert error < 0.02 * expected  # power: a difference of a checkpoint (20 s) is more than this
    assert abs(took.mean() - first) < 3 * error


def test_intervals_by_formula_are_near_the_best_of_a_sweep() -> None:
    cost, mean = 300, 900
    times = {tau: mean * math.expm1((tau + cost) / mean) / tau for tau in range(1, 5000)}
    best = min(times.values())
    young, daly = (Checkpoints(it).interval_us(cost * 10**6, mean * 1e6) // 10**6 for it in ("young", "daly"))
    assert best == times[550]
    assert 0.02 < times[young] / best - 1 < 0.028
    assert 0 <= times[daly] / best - 1 < 0.0000045  # 0.0004 %


def test_the_mean_time_between_failures_of_models_and_traces() -> None:
    machines = Machines([it.capacity for it in FOUR.clusters() if it.capacity is not None], ["c"])
    both = [FailureModel(300.0), FailureModel(600.0, scope="group", groups={"left": ["n-0", "n-1"]})]
    assert Failures(models=both).mtbf(machines) == pytest.approx(4 / (4 / 300 + 2 / 600))
    trace = [(["n-0", "n-1"], 100, 200), (["n-2"], 900, 1000)]
    assert Failures(trace).mtbf(machines) == pytest.approx((4 * 1000 - 300) / 3)
    assert Failures().mtbf(machines) == math.inf


def test_a_predictor_learns_once_from_a_job_what_its_runs_needed() -> None:
    # The job of 100 s is cut at 50 with 40 s saved: 40 + 4 (two checkpoints), then 5 + 60 + 4 = 113 s.
    labels = {"user": [1, 1]}
    jobs = gs.Workload.from_columns(
        submit=[0, 500], runtime=[100, 10], estimate=[900, 900], cores=[8, 8], labels=labels
    )
    saving = Checkpoints(20, cost=2, restart=5)
    failures = Failures([(["n-0"], 50, 60)], checkpoints=saving)
    record = _record(jobs, "easy?predict=recent(n=1)", failures)
    assert record.predictions is not None
    assert record.predictions.prediction_us[1] == 113_000_000


def test_the_compiled_engine_names_the_option() -> None:
    with pytest.raises(InputError, match="checkpoint"):
        _record(_jobs(5), "easy", Failures(checkpoints=Checkpoints(20)), engine="compiled")


@pytest.mark.parametrize("wrong", [{"interval": 0}, {"interval": "often"}, {"cost": -1}, {"requeue_estimate": "less"}])
def test_wrong_settings_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"checkpoint\."):
        Checkpoints(**wrong)


@pytest.mark.parametrize("passed", range(1, 9))
def test_a_run_that_is_stopped_within_its_restart_loses_nothing_twice(passed: int) -> None:
    # A preempted run stops working at 1 s of a restart of 2 s, and writes a checkpoint of 3 s.
    kept = Stretch(restart=2, work=9, interval=2, cost=3, checkpoints=4, save=1).after(passed)
    assert (kept.restart, kept.work) == (1, 0)
    assert kept.writing == (3 if passed >= 4 else 0)
