"""The start in a quote is the forecast of `gs.forecast`, for policies with and without guarantees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.errors import InputError
from gridsim.forecasts import forecaster
from gridsim.forecasts.new_job import NewJob
from gridsim.questions.quote import snapshot
from gridsim.report.quotation import sentences

SITE = Path(__file__).resolve().parents[2] / "scenarios" / "examples" / "site.swf"
AT, JOB = 93_600, {"cores": 48, "walltime": 7200.0}


@pytest.fixture(scope="module")
def site() -> gs.Workload:
    return gs.read_workload(SITE)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("policy", "recorded"), [("easy", True), ("easy", False), ("conservative", False), ("qops", False)]
)
def test_the_start_is_the_forecast_from_the_state_of_the_log(site: gs.Workload, policy: str, recorded: bool) -> None:
    if recorded:
        site = replace(site, logged={"wait": gs.simulate(site, policy="fcfs").record.wait})
    found = gs.quote(site, at=AT, **JOB, policies=[policy])  # type: ignore[arg-type]
    alone = gs.forecast(site, at=AT, new=NewJob(48, 7200.0, {}), policy=policy, arrivals=False)
    given = found.forecasts[policy]
    assert given.state == ("recorded" if recorded else "simulated")
    assert np.array_equal(given.samples, alone.samples)
    assert given.jobs[0].requested == alone.jobs[0].requested
    assert [(it.cores, it.limit) for it in given.shapes] == [(24, 7200.0), (48, 3600.0), (24, 3600.0)]
    assert found.to_dict()["forecasts"][policy]["jobs"][0]["median"] == given.jobs[0].median
    if policy != "easy":  # the promise is kept as well
        assert found[policy].start >= AT


def test_later_jobs_of_the_log_change_no_forecast(site: gs.Workload) -> None:
    known = site.select(site.submit <= AT * 10**6)
    both = [gs.quote(it, at=AT, **JOB, policies=["easy"]).to_dict() for it in (site, known)]  # type: ignore[arg-type]
    assert both[0]["forecasts"] == both[1]["forecasts"]


def test_a_long_log_is_calibrated_unless_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecaster, "MOMENTS", 60)
    begin = np.arange(0, 12 * 7 * 86_400, 50_000)  # a second job waits for each first one
    n, rng = 2 * len(begin), np.random.default_rng(8)
    log = gs.Workload.from_columns(
        submit=np.repeat(begin, 2) + np.tile([0, 60], len(begin)),
        runtime=rng.integers(600, 20_000, n),
        cores=np.full(n, 8),
        estimate=np.full(n, 36_000),
        cores_stated=8,
    )
    how: dict[str, Any] = {"at": int(begin[-1]) + 60, "cores": 8, "walltime": 600, "policies": ["easy"]}
    heard: list[str] = []
    told = gs.quote(log, **how, progress=lambda label, _: heard.append(label)).forecasts["easy"]
    assert told.jobs[0].pairs >= 50
    assert "easy, earlier forecasts" in heard
    assert "arrivals" not in " ".join(told.notes)
    raw = gs.quote(log, **how, calibrate=False)
    assert raw.forecasts["easy"].jobs[0].pairs == 0
    assert np.array_equal(raw.forecasts["easy"].samples, told.samples)
    assert any("not calibrated" in line for line in sentences(raw))


def test_a_job_that_starts_at_once_is_reported() -> None:
    jobs = gs.Workload.from_columns(submit=[0], runtime=[10], cores=[1], cores_stated=4)
    found = gs.quote(jobs, at=5, cores=2, walltime=10, policies=["easy", "fcfs"])
    assert [it.jobs[0].median for it in found.forecasts.values()] == [0.0, 0.0]
    assert "Under easy and fcfs, the new job starts now." in sentences(found)


def test_a_policy_without_a_forecast_is_named() -> None:
    jobs = gs.Workload.from_columns(submit=[0, 1], runtime=[10, 10], cores=[4, 4], cores_stated=4)
    found = gs.quote(jobs, at=5, cores=2, walltime=10, policies=["easy?predict=clairvoyant"])
    assert found["easy?predict=clairvoyant"].start == 20
    assert found.forecasts == {}
    assert any("needs true run times" in line for line in sentences(found))


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


def test_an_empty_log_has_no_now() -> None:
    with pytest.raises(InputError, match="has no jobs"):
        snapshot(gs.Workload.from_columns(submit=[], runtime=[], cores=[]))


def test_a_job_of_slurm_has_a_forecast_with_its_labels(run_a: Path) -> None:
    log = gs.read_workload(run_a / "logs" / "sacct_P_X.txt.gz", cores=32)
    spec = f"slurm?conf={run_a}/config/slurm.conf&assoc={run_a}/logs/sacctmgr_dump.cfg&boot=2026-11-21T06:53:40"
    found = gs.quote(log, at=974, cores=16, walltime=300, policies={"site": spec}, calibrate=False)
    one = found.forecasts["site"]
    assert (one.state, one.futures) == ("recorded", 99)
    assert 974 + one.jobs[0].median <= found["site"].start
    assert one.waiting == found.recorded.waiting + 1  # jobs that were cancelled before are not in the queue
