"""Guaranteed deadlines on a machine whose nodes fail: which guarantees are broken, when, and by what."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridsim as gs
from gridsim.cli import main
from gridsim.errors import InputError
from gridsim.model.checkpoints import Checkpoints
from gridsim.model.failures import FailureModel, Failures
from gridsim.model.time import NEVER
from gridsim.model.windows import Window
from gridsim.options import Run
from gridsim.record import BROKEN_BY, FAILURE, SAVED, Record
from gridsim.result import Result
from gridsim.testing.invariants import violations

TWO = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=2, capacity={"cores": 4})])
PLAIN = "guaranteed?admission=conservative"
QUICK = "relaxation=1.5&artificial_floor=9"


def run(jobs: gs.Workload, policy: str, failures: Failures, platform: gs.Platform = TWO, **options: Any) -> Result:
    return gs.simulate(jobs, platform=platform, policy=policy, options=Run(failures=failures, **options))


def jobs_of(**columns: Any) -> gs.Workload:
    return gs.Workload.from_columns(**columns)


def broken(record: Record) -> list[tuple[float, str] | None]:
    """When each guarantee was broken, s, and by what."""
    promises = record.promises
    assert promises is not None
    assert promises.broken_at_us is not None
    assert promises.broken_by is not None
    pairs = zip(promises.broken_at_us.tolist(), promises.broken_by.tolist(), strict=True)
    return [None if at >= NEVER else (at / 1e6, BROKEN_BY[by]) for at, by in pairs]


def test_a_broken_guarantee_may_be_kept_after_all() -> None:
    """Node 1 returns before the scheduler expects it, so job 1 still ends in time: at risk and missed are two facts."""
    jobs = jobs_of(submit=[0, 1], runtime=[40, 20], cores=[4, 4], deadline=[90, 45])
    result = run(jobs, PLAIN, Failures([(["n-1"], 5, 20)]))
    assert broken(result.record) == [None, (5, "machine")]
    assert result.jobs["end"].tolist() == [40, 40]
    numbers = result.metrics()
    assert numbers["promises_broken_by_machine_share"] == 0.5
    assert numbers["promises_missed_share"] == 0
    assert result.jobs["broken_by"].tolist() == ["", "machine"]
    np.testing.assert_equal(result.jobs["broken_at"], [math.nan, 5])


def test_a_guarantee_that_is_broken_binds_no_later_search() -> None:
    """Job 1 can no longer end by 30 s. Its lost guarantee does not prevent the admission of job 2 before it."""
    jobs = jobs_of(submit=[0, 1, 10], runtime=[25, 20, 5], cores=[4, 4, 4], deadline=[25, 30, 31])
    result = run(jobs, "msb", Failures([(["n-1"], 5, math.inf)]))
    assert broken(result.record) == [None, (5, "machine"), None]
    assert result.jobs["end"].tolist() == [25, 50, 30]


def test_a_job_without_a_place_does_not_delay_others() -> None:
    """Job 1 needs both nodes, and node 1 does not return: job 2 is admitted, and job 1 still waits."""
    jobs = jobs_of(
        submit=[0, 0, 10],
        runtime=[25, 20, 5],
        deadline=[25, 100, 31],
        demands=gs.Demands.of([gs.Demand(tasks=count, each={"cores": 4}) for count in (1, 2, 1)]),
    )
    result = run(jobs, "qops", Failures([(["n-1"], 5, math.inf)]))
    assert result.jobs["status"].tolist() == ["completed", "waiting", "completed"]
    assert broken(result.record) == [None, (5, "machine"), None]
    assert result.metrics()["promises_missed_share"] == pytest.approx(1 / 3)


def test_a_job_that_fits_at_no_known_time_gets_no_artificial_deadline() -> None:
    jobs = jobs_of(submit=[0, 10], runtime=[5, 20], demands=gs.Demands.of([gs.Demand(tasks=2, each={"cores": 4})] * 2))
    for policy in (PLAIN, "qops", "fqops"):
        found = run(jobs, policy, Failures([(["n-1"], 8, 200)])).jobs["status"].tolist()
        assert found == ["completed", "unadmitted"]
    loose = run(jobs, "qops?unadmitted=best-effort", Failures([(["n-1"], 8, 200)]))
    assert loose.jobs["end"].tolist() == [5, 220]


@pytest.mark.parametrize("delay", [0, 7])
@pytest.mark.parametrize("how", ["original", "behind"])
def test_an_admitted_job_returns_with_its_guarantee(how: Any, delay: float) -> None:
    """Job 1 could not be admitted any more when it returns; it is not rejected."""
    jobs = jobs_of(submit=[0, 1], runtime=[40, 20], cores=[4, 4], deadline=[50, 22])
    result = run(jobs, "qops", Failures([(["n-1"], 5, math.inf)], requeue=how, requeue_delay=delay))
    assert broken(result.record) == [None, (5 + delay, "machine")]
    assert result.jobs["granted"].tolist() == [50, 22]
    assert result.jobs["end"].tolist() == [40, 60]


def test_an_overrun_and_the_job_itself_break_guarantees_too() -> None:
    one = gs.Platform.of_nodes([gs.NodeGroup(group="n", capacity={"cores": 4})])
    jobs = jobs_of(submit=[0, 0], runtime=[30, 10], estimate=[20, 10], cores=[4, 4], deadline=[20, 30])
    found = run(jobs, PLAIN, Failures([(["n"], 500, 501)]), one, overrun="extend").record
    assert broken(found) == [None, (20, "overrun")]
    saving = Failures([], checkpoints=Checkpoints(None, cost=1, save_before=5))
    jobs = jobs_of(submit=[0, 0], runtime=[30, 10], estimate=[20, 10], cores=[4, 4], deadline=[25, 30])
    found = run(jobs, PLAIN, saving, one).record
    assert broken(found) == [(16, "own"), None]


@pytest.mark.parametrize(("how", "starts"), [("original", [0, 1, 50, 80, 40]), ("behind", [0, 1, 70, 50, 40])])
def test_best_effort_jobs_stay_behind_in_order_of_arrival(how: Any, starts: list[float]) -> None:
    """Job 2 ran without a guarantee and is stopped: it returns behind job 4, and before job 3 at its previous place."""
    jobs = jobs_of(
        submit=[0, 1, 2, 3, 12],
        runtime=[40, 5, 30, 20, 10],
        cores=[4] * 5,
        deadline=[40, 90, 33, 24, 60],
    )
    result = run(jobs, "msb?unadmitted=best-effort", Failures([(["n-1"], 10, 200)], requeue=how))
    assert result.jobs["start"].tolist() == starts
    assert broken(result.record) == [None] * 5


def test_conservative_reports_which_starts_moved() -> None:
    """While node 1 is absent, job 2 is planned for 40 s instead of 20 s, and job 3 for 50 s instead of 30 s."""
    jobs = jobs_of(submit=[0, 0, 1, 2], runtime=[40, 20, 10, 10], cores=[4, 4, 4, 4])
    result = run(jobs, "conservative", Failures([(["n-1"], 15, 70)]))
    assert result.jobs["end"].tolist() == [40, 60, 70, 80]
    assert result.jobs["moved"].tolist() == [0, 0, 1, 1]
    assert result.jobs["moved_by"].tolist() == [0, 0, 40, 40]
    assert result.metrics()["starts_moved"] == 2
    assert result.metrics()["start_moved_mean"] == 40


def test_a_start_without_a_place_moves_by_the_whole_time_until_it_has_one() -> None:
    jobs = jobs_of(submit=[0, 1], runtime=[20, 10], demands=gs.Demands.of([gs.Demand(tasks=2, each={"cores": 4})] * 2))
    result = run(jobs, "conservative", Failures([(["n-1"], 5, 50)], on_failure="cancel"))
    assert result.jobs["start"].tolist() == [0, 50]
    assert (result.jobs["moved"][1], result.jobs["moved_by"][1]) == (1, 30)


def test_columns_and_metrics_are_only_in_runs_with_failures() -> None:
    jobs = jobs_of(submit=[0], runtime=[5], cores=[4], deadline=[10])
    for policy in ("conservative", "qops"):
        result = gs.simulate(jobs, platform=TWO, policy=policy)
        assert not {"broken_at", "broken_by", "moved", "moved_by"} & set(result.jobs)
        assert not {"starts_moved", "promises_missed_share"} & set(result.metrics())


POLICIES = (
    *("msb", "mrt", "qops", "fqops", PLAIN, "fqops?kill_restart=true", "guaranteed?admission=restart"),
    *("msb?unadmitted=best-effort&order=edf", "qops?unadmitted=best-effort", "mrt?hole_filling=false&backtracks=2"),
    *("qops?compress=none&artificial_fallback=reject", "fqops?unadmitted=best-effort&compress=arrival"),
)


def drawn(rng: np.random.Generator) -> gs.Workload:
    n = int(rng.integers(1, 25))
    runtime = rng.integers(1, 60, n)
    submit, estimate = np.sort(rng.integers(0, 150, n)), np.maximum(1, runtime + rng.integers(-5, 30, n))
    each = [int(rng.integers(1, 3)) for _ in range(n)]
    return jobs_of(
        submit=submit,
        runtime=runtime,
        estimate=estimate,
        deadline=np.where(rng.random(n) < 0.2, np.nan, submit + estimate + rng.choice((0, 5, 20, 60, 150), n)),
        tolerance=rng.choice((1.0, 1.5, 3.0), n),
        demands=gs.Demands.of([gs.Demand(tasks=int(rng.integers(1, 5)), each={"cores": cores}) for cores in each]),
    )


@given(
    seed=st.integers(0, 10**6),
    policy=st.sampled_from(POLICIES),
    instant=st.sampled_from(["batched", "per-event"]),
    overrun=st.sampled_from(["kill", "extend"]),
    how=st.sampled_from(["original", "behind"]),
    repair=st.sampled_from(["unknown", "announced"]),
    fails=st.booleans(),
)
def test_laws_of_guarantees(
    seed: int, policy: str, instant: Any, overrun: Any, how: Any, repair: Any, fails: bool
) -> None:
    rng = np.random.default_rng(seed)
    jobs = drawn(rng)
    machine = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=3, capacity={"cores": 4})])
    down = int(rng.integers(20, 120))
    windows = [Window(["n-2"], down, down + 40, announced=int(rng.integers(0, down)), id="w")]
    saving = Checkpoints(10, cost=1, restart=2, save_before=4 if rng.random() < 0.5 else None)
    failures = Failures(
        models=[FailureModel(mtbf=150.0, mttr=20.0)] if fails else [],
        windows=windows if fails else [],
        repair=repair,
        requeue=how,
        requeue_delay=int(rng.choice((0, 9))),
        checkpoints=saving if rng.random() < 0.5 else None,
    )
    policy += ("&" if "?" in policy else "?") + QUICK
    record = run(jobs, policy, failures, machine, seed=seed, instant=instant, overrun=overrun).record
    check(record, int(windows[0].announced or 0) * 10**6 if fails else NEVER, extends=overrun == "extend")


def check(record: Record, announced: int, *, extends: bool) -> None:
    told, promises = record.interruptions, record.promises
    assert told is not None
    assert promises is not None
    kinds = {it.kind for it in violations(record, overrun="extend" if extends else "kill")}
    assert kinds == set()
    assert np.isin(record.status_names, ["completed", "killed_walltime", "unadmitted", "rejected"]).all()
    made = promises.granted_us < NEVER
    assert record.ran[made].all()
    first = min([announced, *told.down_us[told.kind == FAILURE].tolist()])
    saves = set(zip(told.job[told.reason == SAVED].tolist(), told.end_us[told.reason == SAVED].tolist(), strict=True))
    late = record.end_us > promises.granted_us
    for row, why in enumerate(broken(record)):
        if why is None:
            own = extends and record.workload.runtime[row] > record.workload.estimate[row]
            assert not late[row] or own or (extends and told.kept is not None)
            continue
        assert made[row]
        assert promises.broken[row]
        at, by = why
        if by == "machine":
            assert first <= round(at * 1e6)
        elif by == "overrun":
            assert extends
        else:
            assert (row, round(at * 1e6)) in saves


def test_a_result_folder_with_broken_guarantees_is_valid_until_they_are_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = jobs_of(submit=[0, 1], runtime=[40, 20], cores=[4, 4], deadline=[90, 45])
    run(jobs, PLAIN, Failures([(["n-1"], 5, 50)])).write(tmp_path)
    assert main(["validate", str(tmp_path)]) == 0, capsys.readouterr().out
    table = (tmp_path / "jobs.csv").read_text()
    assert ",machine" in table
    for value in ("", "0.5", "55"):  # none, before the submit, after the start
        (tmp_path / "jobs.csv").write_text(table.replace(",5,machine", f",{value},machine"))
        assert main(["validate", str(tmp_path)]) == 1
        assert "deadline-missed" in capsys.readouterr().out
    (tmp_path / "jobs.csv").write_text(table.replace(",5,machine", ",soon,machine"))
    assert main(["validate", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert "broken_at" in message
    assert "'soon'" in message


@pytest.mark.parametrize("policy", ["qops?partition=fair-share", "msb?partition=fair-share"])
def test_deadlines_of_moldable_jobs_under_failures_are_refused_by_name(policy: str) -> None:
    jobs = jobs_of(submit=[0], runtime=[10], cores=[2], deadline=[20])
    with pytest.raises(InputError, match=r"are not supported by .*it chooses sizes of jobs") as error:
        run(jobs, policy, Failures([(["n-0"], 5, 6)]))
    assert error.value.exit_code == 2


def test_deadlines_with_reservations_are_refused_by_name() -> None:
    jobs = jobs_of(submit=[0], runtime=[10], cores=[2], deadline=[20])
    window = Window(["n-0"], 50, 60, kind="reservation", users=("ann",), id="r")
    with pytest.raises(InputError, match="not supported with guaranteed deadlines") as error:
        run(jobs, "qops", Failures(windows=[window]))
    assert error.value.exit_code == 2
