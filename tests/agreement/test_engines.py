"""The compiled calendar and the events of SimPy make the same records, byte for byte."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsim as gs
from gridsim.model.workload import Workload
from gridsim.policy.ordering import SmallestArea
from gridsim.policy.prediction import Recent
from gridsim.policy.protocols import Lanes
from gridsim.policy.queue import Queue
from gridsim.policy.reservation import Strict
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.record import Predictions, Record
from gridsim.testing.conformance.running import rigid_workload, rows_of
from gridsim.testing.strategies import workloads

CORES = 8
INSTANTS = ("batched", "per-event")
OVERRUNS = ("kill", "extend")


@dataclass
class ByWidth:
    """A rule of two lanes: narrow requests, of which two hold a promise, and wide ones, of which one does."""

    blocking = False

    def lanes(self, queue: Queue) -> Lanes:
        return Lanes((queue.cores > 2).astype(np.int64), np.array([2, 1]))


@dataclass
class Oldest:
    """An ordering of a plain file, which is asked in Python before each pass."""

    changes = "pass"

    def rank(self, queue: Queue, now: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        held = queue.running.cores.sum() + queue.prediction.sum()
        return queue.submit - now * (held % 3 - 1)


POLICIES = (
    *("fcfs", "easy", "first-fit", "depth?k=3", "depth?k=0"),
    *("sjf", "easy?ordering=laf", "first-fit?ordering=narrowest", "depth?k=2&ordering=edf"),
    *("fifo-task", "easy?ordering=fifo-task", "p-slr", "easy?ordering=p-slr", "first-fit?ordering=p-slr"),
    *("conservative", "conservative?compress=arrival", "conservative?compress=none"),
    *("conservative?compress_at=every", "conservative?compress=arrival&compress_at=every"),
    Backfilling(ordering=SmallestArea(), reserve=ByWidth()),
    *("easy++", "sjbf", "sjbf?predict=clairvoyant", "fcfs?predict=similar(n=1)&correct=double(cap=False)"),
    *("easy++?ordering=sjf&correct=added", "first-fit?predict=average&correct=double&backfill_order=wfp3"),
    *("depth?k=2&predict=recent(n=1)&ordering=p-slr", "fcfs?ordering=p-slr&predict=recent&correct=request"),
    *("wfp3", "unicef", "xfactor", "easy?ordering=wfp3", "easy++?ordering=unicef", "sjbf?ordering=xfactor"),
    *("easy?backfill_order=smallest-cores", "easy?backfill_order=xfactor", "depth?k=3&backfill_order=p-slr"),
    *("easy?ordering=random", "first-fit?backfill_order=random", "easy++?backfill_order=random"),
    *(Backfilling(ordering=Oldest()), Backfilling(ordering=Oldest(), reserve=Strict(), predict=Recent(n=1))),
)


LOADED = (
    *("fcfs", "easy", "sjf", "easy?ordering=p-slr", "p-slr", "conservative"),
    *("easy++", "sjbf", "easy++?predict=similar&correct=double", "wfp3", "easy?ordering=unicef"),
    *("easy++?ordering=xfactor", "easy?backfill_order=wfp3", "easy?ordering=random"),
)


def assert_same(workload: Workload, policy: Any, cores: int = CORES, **options: Any) -> None:
    one, other = (
        gs.simulate(workload, platform=gs.Platform.single(cores), policy=policy, engine=engine, **options).record
        for engine in ("simpy", "compiled")
    )
    for field in fields(Record):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(ours, np.ndarray):
            assert (ours.dtype, ours.tolist()) == (theirs.dtype, theirs.tolist()), field.name
        elif isinstance(ours, Predictions):
            assert [ours.prediction_us.tolist(), ours.corrections.tolist(), ours.oracle] == [
                theirs.prediction_us.tolist(),
                theirs.corrections.tolist(),
                theirs.oracle,
            ]
        elif field.name != "workload":
            assert ours == theirs, field.name
    for (name, ours), (_, theirs) in zip(one.workload.columns(), other.workload.columns(), strict=True):
        assert ours.tobytes() == theirs.tobytes(), name


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@given(
    workload=workloads(cores=CORES, largest=20, deadlines=True, users=True),
    instant=st.sampled_from(INSTANTS),
    overrun=st.sampled_from(OVERRUNS),
    tick=st.sampled_from((None, 0.25, 3.0)),
    narrower=st.booleans(),  # than the widest jobs, which are rejected
)
@settings(max_examples=2 * settings.default.max_examples)  # type: ignore[union-attr]
def test_small_workloads_full_of_ties(
    policy: Any, workload: Workload, instant: str, overrun: str, tick: float | None, narrower: bool
) -> None:
    assert_same(workload, policy, CORES - narrower, instant=instant, overrun=overrun, tick=tick)


@pytest.mark.parametrize("instant", INSTANTS)
@pytest.mark.parametrize("overrun", OVERRUNS)
@pytest.mark.parametrize("policy", LOADED)
def test_a_loaded_machine_with_long_queues(policy: str, overrun: str, instant: str) -> None:
    rng, jobs = np.random.default_rng(5), 300
    runtime = rng.integers(1, 50, jobs)
    workload = Workload.from_columns(
        submit=np.sort(rng.integers(0, 900, jobs)),
        runtime=runtime,
        estimate=np.maximum(1, runtime + rng.integers(-20, 40, jobs)),
        cores=rng.integers(1, 20, jobs),
        labels={"user": rng.integers(-1, 9, jobs)},
    )
    assert_same(workload, policy, 16, instant=instant, overrun=overrun)


def test_without_jobs_and_where_all_are_too_wide() -> None:
    assert_same(Workload.from_columns(submit=[], runtime=[], cores=[]), "easy")
    assert_same(Workload.from_columns(submit=[0, 1], runtime=[1, 1], cores=[9, 9]), "easy")


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_one_core(policy: str) -> None:
    jobs = Workload.from_columns(submit=[0, 0, 0, 3], runtime=[2, 1, 4, 1], cores=1)
    assert_same(jobs, policy, 1, instant="per-event", overrun="extend")


@pytest.mark.parametrize(
    "name", [pytest.param("swf/SDSC-SP2-1998-4.2-cln.swf.gz", marks=[pytest.mark.others, pytest.mark.long])]
)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_log(name: str, policy: Any, others: Any) -> None:
    workload = gs.read_workload(others(name))
    for instant in INSTANTS:
        for overrun in OVERRUNS:
            assert_same(workload, policy, 128, instant=instant, overrun=overrun)


GOLDEN = [
    (path, run)
    for path in sorted((Path(gs.__file__).parent / "testing/cases/deadline-admission").glob("*.json"))
    for run in json.loads(path.read_bytes()).get("runs", ())
    if run["algorithm"] in ("fcfs", "easy", "conservative")
]


@pytest.mark.parametrize(("path", "run"), GOLDEN, ids=lambda it: it.stem if isinstance(it, Path) else it["algorithm"])
def test_golden_cases(path: Path, run: dict[str, Any]) -> None:
    case, parameters = json.loads(path.read_bytes()), dict(run["parameters"])
    cores = case["platform"]["cores"]
    workload = rigid_workload(case["jobs"], cores="cores", machine=cores, least=1)
    policy = run["algorithm"] + (f"?compress={parameters.pop('compress')}" if "compress" in parameters else "")
    assert_same(workload, policy, cores, **parameters)
    platform = gs.Platform.single(cores)
    rows = rows_of(gs.simulate(workload, platform=platform, policy=policy, engine="compiled", **parameters).record)
    for job in run["expected"]["jobs"]:
        assert {name: rows[job["id"]][name] for name in ("status", "start", "end")} == {
            name: job[name] for name in ("status", "start", "end")
        }
