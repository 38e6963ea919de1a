"""The compiled engine and the SimPy engine make the same records under guaranteed deadlines."""

from __future__ import annotations

import itertools
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridsim as gs
from gridsim.model.moldable import Moldable
from gridsim.model.speedup import Linear
from gridsim.model.workload import Workload
from gridsim.record import Promises, Record, Status
from gridsim.scenario import transformed
from gridsim.testing.conformance.running import rigid_workload, rows_of
from tests.oracles.translated import MOST, deadlines_compared

CORES = 8
INSTANTS = ("batched", "per-event")
OVERRUNS = ("kill", "extend")
GUARANTEED = (
    *("qops", "msb", "mrt", "fqops", "fqops?kill_restart=true", "fqops?slack_factor=1.3&kill_restart=true&max_kills=1"),
    *("qops?heuristic=edf&insertion=sorted&k_factor=1", "qops?slots=best&append_slot=false", "qops?compress=arrival"),
    *("msb?price=wait&order=llf", "msb?price=disturbance&compress_at=every", "msb?artificial_fallback=reject"),
    *("mrt?window=2&backtracks=3", "mrt?hole_filling=false", "mrt?heuristic=fifo&relaxation=1.5&artificial_floor=9"),
    *("guaranteed?admission=restart(inner=msb)&compress=none", "guaranteed?admission=feedback(inner=mrt)"),
    *("qops?ordering=sjf", "msb?ordering=edf&compress_at=every", "fqops?kill_restart=true&ordering=largest-cores"),
)
"""Policies that guarantee deadlines."""


def assert_same(workload: Workload, policy: Any, cores: int = CORES, **options: Any) -> Record:
    one, other = (
        gs.simulate(workload, platform=gs.Platform.single(cores), policy=policy, engine=engine, **options).record
        for engine in ("simpy", "compiled")
    )
    assert one.promises is not None
    for kind, ours, theirs in ((Record, one, other), (Promises, one.promises, other.promises)):
        for field in fields(kind):
            mine, its = getattr(ours, field.name), getattr(theirs, field.name)
            if isinstance(mine, np.ndarray):
                assert (mine.dtype, mine.tolist()) == (its.dtype, its.tolist()), field.name
            elif field.name not in ("workload", "promises"):
                assert mine == its, field.name
    assert deadlines_compared(one, workload, policy, cores, **options) or len(workload) > MOST
    return other


@st.composite
def demanding(draw: st.DrawFn) -> Workload:
    """Draw jobs with tight deadlines or none, early and late ends, and users who accept or decline later ends."""
    job = st.tuples(
        st.sampled_from((0, 0, 0, 1, 1, 2, 5)),
        st.integers(1, 12),
        st.sampled_from((0, 0, 3, 6, -1, -4)),
        st.one_of(st.just(1), st.just(CORES), st.integers(1, CORES)),
        st.sampled_from((0, 1, 3, 5, 8, 13, 30, np.inf)),
        st.sampled_from((1.0, 1.0, 1.5, 3.1, np.inf)),
        st.sampled_from((True, True, False)),
    )
    gap, runtime, beyond, cores, slack, tolerance, restartable = zip(
        *draw(st.lists(job, min_size=1, max_size=24)), strict=True
    )
    submit, estimate = np.cumsum(gap), np.maximum(1, np.add(runtime, beyond))
    return Workload.from_columns(
        submit=submit,
        runtime=runtime,
        estimate=estimate,
        cores=cores,
        deadline=submit + estimate + np.array(slack),
        tolerance=tolerance,
        restartable=restartable,
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", GUARANTEED)
@given(
    workload=demanding(),
    instant=st.sampled_from(INSTANTS),
    overrun=st.sampled_from(OVERRUNS),
    tick=st.sampled_from((None, 0.25, 3.0)),
    narrower=st.booleans(),
)
def test_promised_deadlines(
    policy: str, workload: Workload, instant: str, overrun: str, tick: float | None, narrower: bool
) -> None:
    assert_same(workload, policy, CORES - narrower, instant=instant, overrun=overrun, tick=tick)


def crowded(jobs: int, seed: int) -> Workload:
    """Return jobs that arrive much faster than they can run, most of them with a deadline."""
    rng = np.random.default_rng(seed)
    submit, runtime = np.sort(rng.integers(0, 5 * jobs, jobs)), rng.integers(1, 60, jobs)
    estimate = np.maximum(1, runtime + rng.integers(-9, 60, jobs))
    return Workload.from_columns(
        submit=submit,
        runtime=runtime,
        estimate=estimate,
        cores=rng.integers(1, 14, jobs),
        deadline=submit + estimate + np.where(rng.random(jobs) < 0.3, np.inf, rng.integers(0, 500, jobs)),
        tolerance=rng.choice([1, 1.2, 2, 7.77], jobs),
    )


@pytest.mark.sampled(5)
@pytest.mark.parametrize("instant", INSTANTS)
@pytest.mark.parametrize("overrun", OVERRUNS)
@pytest.mark.parametrize("policy", GUARANTEED)
def test_promised_deadlines_with_long_queues(policy: str, overrun: str, instant: str) -> None:
    record = assert_same(crowded(300, 8), policy, 16, instant=instant, overrun=overrun)
    assert 5 < (record.status == Status.unadmitted).sum() < 270
    assert record.promises is not None
    if "kill_restart" in policy or "restart" in policy:
        assert len(record.promises.killed) > 0


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.others, pytest.mark.long])
        for name in ("swf/SDSC-SP2-1998-4.2-cln.swf.gz", "swf/CTC-SP2-1996-3.1-cln.swf.gz")
    ],
)
@pytest.mark.parametrize("policy", GUARANTEED)
def test_promised_deadlines_on_a_log(name: str, policy: str, others: Any) -> None:
    cores = gs.Platform.single(128 if "SDSC" in name else 430)
    made = ["slice?window=1&jobs=1500&origin=true", "load-factor?percent=140", "deadlines?stringency=0.2&fraction=0.8"]
    asked = transformed(gs.read_workload(others(name)), [*made, "tolerance?factor=1.5&random=true"], platform=cores)
    rules = list(itertools.product(INSTANTS, OVERRUNS))  # small workloads cover all rules under each policy
    instant, overrun = rules[(GUARANTEED.index(policy) + ("SDSC" in name)) % len(rules)]
    assert_same(asked, policy, cores.cores, instant=instant, overrun=overrun)


@pytest.mark.parametrize(
    "response", ["relaxation=1e300", "artificial_floor=1e300", "relaxation=1e-300&artificial_floor=0"]
)
def test_artificial_deadlines_beyond_the_calendar_and_below_a_microsecond(response: str) -> None:
    jobs = gs.Workload.from_columns(submit=[0, 0, 3], runtime=[4, 4, 4], cores=[CORES, 1, CORES])
    assert assert_same(jobs, f"qops?{response}").start.tolist() == [0, 4, 8]


def test_jobs_of_several_sizes_are_as_wide_as_they_request() -> None:
    jobs = crowded(120, 3)
    several = replace(jobs, moldable=Moldable.of(jobs.cores, 1, 16, [Linear()]))
    for policy in GUARANTEED[:5]:
        assert_same(several, policy, 16)


GOLDEN = [
    (path, run)
    for path in sorted((Path(gs.__file__).parent / "testing/cases/deadline-admission").glob("*.json"))
    for run in json.loads(path.read_bytes()).get("runs", ())
    if run["algorithm"] in ("qops", "msb", "mrt", "fqops")
    and run["parameters"].get("heuristic") != "edf+est"
    and run["parameters"].get("unadmitted") != "best-effort"
]


@pytest.mark.parametrize(("path", "run"), GOLDEN, ids=lambda it: it.stem if isinstance(it, Path) else it["algorithm"])
def test_golden_cases(path: Path, run: dict[str, Any]) -> None:
    case, parameters = json.loads(path.read_bytes()), dict(run["parameters"])
    cores = case["platform"]["cores"]
    workload = rigid_workload(case["jobs"], cores="cores", machine=cores, least=1)
    own = {name: parameters.pop(name) for name in list(parameters) if name not in ("overrun", "instant", "tick")}
    stated = "&".join(f"{name}={str(value).lower()}" for name, value in own.items() if name != "weight")
    policy = run["algorithm"] + f"?{stated}" * bool(stated)
    assert_same(workload, policy, cores, **parameters)
    platform = gs.Platform.single(cores)
    rows = rows_of(gs.simulate(workload, platform=platform, policy=policy, engine="compiled", **parameters).record)
    for job in run["expected"]["jobs"]:
        told = ("status", "start", "end", *({"granted", "offer", "kills"} & set(job)))
        assert {name: rows[job["id"]][name] for name in told} == {name: job[name] for name in told}
