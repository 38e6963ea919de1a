"""Start estimates and their accuracy: the fast methods return the results of whole runs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import gridsim as gs
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER
from gridsim.policy.presets import policy
from gridsim.policy.site_policy import machine
from gridsim.questions.forecast import (
    Setup,
    _expected_by_replay,
    _expected_by_state,
    _expected_on_nodes,
    expected_start,
    quantiles,
    snapshot,
)
from gridsim.questions.quotation import Answer, Forecast, Quoted
from gridsim.report.quotation import alternatives_table, forecasts_table, sentences
from gridsim.simulation import Run, run, state_at

SITE = Path(__file__).resolve().parents[2] / "scenarios" / "examples" / "site.swf"


@pytest.fixture(scope="module")
def site() -> gs.Workload:
    return gs.read_workload(SITE)


def by_whole_run(workload: gs.Workload, row: int, what: str, platform: Platform | None = None) -> int:
    """Simulate the log until a job arrived, then all jobs as estimated, without a shortcut."""
    known = workload.select(slice(0, row))
    platform, at = platform or machine(workload), int(workload.submit[row])
    more = {"cores": int(workload.cores[row]), "estimate": int(workload.estimate[row])}
    moment = state_at(known, platform, policy(what), at, options=Run(), **more)
    return int(run(moment.as_estimated(), platform, policy(what), Run()).start_us[moment.job])


@pytest.mark.parametrize("what", ["fcfs", "easy", "easy?ordering=sjf", "easy?ordering=wfp3", "depth?k=4", "first-fit"])
def test_a_small_workload_of_the_state_decides_as_the_whole_log(site: gs.Workload, what: str) -> None:
    platform = machine(site)
    record = run(site, platform, policy(what), Run())
    rows = np.flatnonzero((record.wait > 0) & (np.diff(site.submit, append=NEVER) > 0))[5::40]
    assert len(rows) >= 4
    for row in rows.tolist():
        found = _expected_by_state(record, row, Setup(platform, policy(what), Run()))
        assert found == by_whole_run(site, row, what), row


@pytest.mark.parametrize("what", ["fcfs", "easy", "easy?ordering=sjf&placement=pack"])
def test_on_nodes_all_is_replayed_since_the_machine_was_idle(what: str) -> None:
    rng = np.random.default_rng(43)
    n = 60
    submit = np.cumsum(rng.choice([0, 1, 4, 9, 60], n))  # the machine is idle at times
    log = gs.Workload.from_columns(
        submit=submit, runtime=rng.integers(1, 20, n), estimate=rng.integers(15, 40, n), cores=rng.integers(1, 7, n)
    )
    nodes = Platform.of_nodes([gs.NodeGroup(group="n", count=3, capacity={"cores": 3})])
    record = run(log, nodes, policy(what), Run())
    rows = np.flatnonzero((record.wait > 0) & (np.diff(log.submit, append=NEVER) > 0))[::4]
    assert len(rows) >= 4
    for row in rows.tolist():
        found = _expected_on_nodes(record, row, 10**6, Setup(nodes, policy(what), Run()))
        assert found == by_whole_run(log, row, what, nodes), row


def test_a_plan_is_evaluated_while_the_log_is_replayed(site: gs.Workload) -> None:
    platform = machine(site)
    setup = Setup(platform, policy("conservative"), Run())
    rows = np.arange(5, len(site), 60)
    found = _expected_by_replay(site, rows, setup)
    for row, start in zip(rows.tolist(), found.tolist(), strict=True):
        known = site.select(slice(0, row))
        more = {"cores": int(site.cores[row]), "estimate": int(site.estimate[row])}
        moment = state_at(known, platform, policy("conservative"), int(site.submit[row]), options=Run(), **more)
        assert start == expected_start(moment, setup)
    record = run(site, platform, policy("conservative"), Run())
    assert (record.start_us[rows] <= found).all()  # conservative keeps its reservations


def test_late_starts_are_kept_while_the_job_still_waits() -> None:
    part = np.array([0.1, 0.2, 0.3, 0.4, 2.0, 2.0, 2.0, 2.0])
    known = quantiles(part, np.array([True] * 4 + [False] * 4))
    assert known[:2] == [0.2, 0.4]
    assert np.isnan(known[2:]).all()
    assert quantiles(part[:4], np.ones(4, dtype=bool)) == [0.1, 0.2, 0.3, 0.4]


@given(st.lists(st.tuples(st.floats(0.01, 10), st.booleans()), min_size=1, max_size=40))
def test_quantiles_rise_and_are_values_that_ended(pairs: list[tuple[float, bool]]) -> None:
    values, ended = np.array([value for value, _ in pairs]), np.array([over for _, over in pairs])
    found = [value for value in quantiles(values, ended) if value == value]
    assert found == sorted(found)
    assert set(found) <= set(values[ended].tolist())


def test_history_is_of_the_log_so_far_and_lies_below_the_expectation(site: gs.Workload) -> None:
    found = gs.quote(site, at=93_600, cores=48, walltime=7200, policies=["easy"])
    (one,) = found.forecasts
    assert one.start == found["easy"].start > found.at
    assert 20 <= one.jobs <= 100
    assert 0 < one.early <= one.middle <= one.late <= one.latest < 1
    until = site.select(site.submit <= 93_600_000_000)
    assert gs.quote(until, at=93_600, cores=48, walltime=7200, policies=["easy"]).forecasts == found.forecasts


@pytest.mark.long
def test_a_narrower_and_a_shorter_job_are_quoted_as_separate_jobs(site: gs.Workload) -> None:
    found = gs.quote(site, at=93_600, cores=48, walltime=7200, policies=["easy", "conservative"])
    assert [(it.cores, it.walltime) for it in found.alternatives] == [(24, 7200), (48, 3600), (24, 3600)]
    alone = gs.quote(site, at=93_600, cores=24, walltime=7200, policies=["easy", "conservative"])
    for label, start in found.alternatives[0].starts.items():
        assert start == alone[label].start
    assert shown(alternatives_table(found)).count(" for ") == 4
    assert {"easy", "conservative"} <= set(shown(forecasts_table(found)).split())


def shown(table: Any) -> str:
    console = Console(width=100, file=io.StringIO(), color_system=None)
    with console.capture() as text:
        console.print(table)
    return text.get()


def overtaken(times: int) -> gs.Workload:
    """One core. A job repeatedly arrives 1 s before a running one ends, and 20 shorter ones overtake it."""
    rows: list[tuple[float, float]] = []
    for begin in range(0, 10_000 * times, 10_000):
        rows += [(begin, 100), (begin + 99, 900), *((begin + 99.5, 30) for _ in range(20))]
    submit, runtime = zip(*rows, strict=True)
    return gs.Workload.from_columns(submit=submit, runtime=runtime, cores=[1] * len(rows), cores_stated=1)


def test_where_next_to_no_wait_is_expected_its_error_is_reported_in_seconds() -> None:
    log = overtaken(25).select(slice(0, 24 * 22 + 1))  # of the last time, only the job that runs
    found = gs.quote(log, at=240_099, cores=1, walltime=900, policies=["easy?ordering=sjf"])
    (one,) = found.forecasts
    assert (one.start - found.at, one.scale, one.jobs >= 20) == (1.0, "seconds", True)
    assert (one.early, one.late, one.latest) == (600.0, 600.0, 600.0)
    told = next(line for line in sentences(found) if "half started" in line)
    assert "half started 10 min later than was expected at their submission, 9 of 10 at most 10 min later" in told
    assert told.endswith("for this job, that would be in 10 min 1 s to 10 min 1 s, 9 of 10 within 10 min 1 s.")


@pytest.mark.parametrize(
    ("quantiles", "told", "untold"),
    [
        ((0.11, 0.5, 1.5e6, 1.7e6), "no useful bound: of 40 jobs of any size that had to wait before", "half started"),
        ((0.11, 0.5, 2.0, 1.7e6), "in 1 h 6 min to 20 h; the slowest tenth has no useful bound", "9 of 10"),
        ((0.11, 0.5, 2.0, 3.0), "in 1 h 6 min to 20 h, 9 of 10 within 1 d 6 h.", "no useful bound"),
    ],
)
def test_only_bounds_that_can_be_used_are_reported(
    quantiles: tuple[float, float, float, float], told: str, untold: str
) -> None:
    one = Forecast("easy", 36_000.0, 40, False, "share", *quantiles)
    asked = Answer("easy", "none", running=1, busy=1, waiting=0, start=36_000.0)
    found = Quoted(0.0, 1, 60.0, 4, None, (asked,), None, (), 0, (one,))
    line = next(line for line in sentences(found) if line.startswith("Under easy"))
    assert told in line
    assert untold not in line
    assert "00 d" not in shown(forecasts_table(found))


def test_a_job_that_starts_at_once_needs_no_history() -> None:
    jobs = gs.Workload.from_columns(submit=[0], runtime=[10], cores=[1], cores_stated=4)
    found = gs.quote(jobs, at=5, cores=2, walltime=10, policies=["easy", "fcfs"])
    assert found.forecasts == (Forecast("easy", 5.0), Forecast("fcfs", 5.0))
    assert found.alternatives == ()
    assert "Under easy the job would start at once." in sentences(found)


def test_too_short_a_log_is_reported() -> None:
    jobs = gs.Workload.from_columns(submit=[0, 1], runtime=[10, 10], cores=[4, 4], cores_stated=4)
    told = " ".join(sentences(gs.quote(jobs, at=5, cores=2, walltime=10, policies=["easy"])))
    assert "would start in 15 s if all jobs ran as long as estimated" in told
    assert "Too few jobs that had to wait" in told


def test_a_scheduler_of_deadlines_gets_only_deadline_queries(site: gs.Workload) -> None:
    assert gs.quote(site, at=93_600, cores=48, walltime=7200, policies=["easy", "qops"]).forecasts == ()
    assert gs.quote(site, at=93_600, cores=4, walltime=60, policies=["easy"], deadline=99_999).forecasts == ()


def test_now_is_the_last_submit_of_a_log_that_says_no_more() -> None:
    jobs = gs.Workload.from_columns(submit=[0, 2], runtime=[9, 4], estimate=[60, 60], cores=[1, 1])
    assert snapshot(jobs) == (jobs, 2.0)


def test_a_log_of_slurm_knows_its_now(run_a: Path) -> None:
    log = gs.read_workload(run_a / "logs" / "sacct_P_X.txt.gz", cores=32)
    found, at = snapshot(log)
    assert at == 2115.0  # 07:29:01, when sacct ran; the log begins at 06:53:46
    changed = found.runtime != log.runtime
    assert changed.sum() == 4
    assert (found.runtime[changed] == log.estimate[changed]).all()


def test_a_slurm_like_scheduler_is_queried_for_its_expected_starts(run_a: Path) -> None:
    log = gs.read_workload(run_a / "logs" / "sacct_P_X.txt.gz", cores=32)
    spec = f"slurm?conf={run_a}/config/slurm.conf&assoc={run_a}/logs/sacctmgr_dump.cfg&boot=2026-11-21T06:53:40"
    found = gs.quote(log, at=974, cores=16, walltime=300, policies={"site": spec})
    (one,) = found.forecasts
    assert one.start > 974
    assert one.jobs >= 20
    assert one.early <= one.late
