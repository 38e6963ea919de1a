"""The compiled engine and the SimPy engine make the same records, byte for byte."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsim as gs
from gridsim.model.moldable import Moldable
from gridsim.model.speedup import Amdahl, Downey, Linear
from gridsim.model.workload import Workload
from gridsim.policy.ordering import SmallestArea
from gridsim.policy.prediction import Recent
from gridsim.policy.protocols import Lanes
from gridsim.policy.queue import Queue
from gridsim.policy.reservation import Strict
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.policy.scheduler.moldable_scheduler import MoldableBackfilling
from gridsim.record import Predictions, Record
from gridsim.scenario import transformed
from gridsim.testing.conformance import moldable
from gridsim.testing.conformance.running import rigid_workload, rows_of
from gridsim.testing.oracle import Job
from tests.oracles.backfilling import Rule, State
from tests.oracles.strategies import workloads
from tests.oracles.translated import MOST, compared

CORES = 8
INSTANTS = ("batched", "per-event")
OVERRUNS = ("kill", "extend")


@dataclass
class ByWidth:
    """A rule of two lanes: narrow requests with two reservations, and wide requests with one."""

    blocking = False

    def lanes(self, queue: Queue) -> Lanes:
        return Lanes((queue.cores > 2).astype(np.int64), np.array([2, 1]))

    oracle_rule: ClassVar[Rule] = Rule((2, 1), lambda job: int(job.cores > 2))


@dataclass
class Oldest:
    """An ordering in a plain file; it is called in Python before each scheduling cycle."""

    changes = "pass"

    def rank(self, queue: Queue, now: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        held = queue.running.cores.sum() + queue.prediction.sum()
        return queue.submit - now * (held % 3 - 1)

    @staticmethod
    def oracle_key(job: Job, now: int, state: State) -> float:
        predicted = sum(state.predicted(other) / 1e6 for other in state.waiting)
        held = sum(other.cores for other in state.running) + predicted
        return job.submit / 1e6 - now / 1e6 * (held % 3 - 1)


POLICIES = (
    *("fcfs", "easy", "first-fit", "depth?k=3", "depth?k=0"),
    *("sjf", "easy?ordering=laf", "first-fit?ordering=narrowest", "depth?k=2&ordering=edf"),
    *("fifo-task", "easy?ordering=fifo-task", "p-slr", "easy?ordering=p-slr", "first-fit?ordering=p-slr"),
    *("conservative", "conservative?compress=arrival", "conservative?compress=none"),
    *("conservative?compress_at=every", "conservative?compress=arrival&compress_at=every"),
    *("conservative?ordering=sjf", "conservative?ordering=edf&compress_at=every", "conservative?ordering=fifo-task"),
    Backfilling(ordering=SmallestArea(), reserve=ByWidth()),
    *("easy++", "sjbf", "sjbf?predict=clairvoyant", "fcfs?predict=similar(n=1)&correct=double(cap=False)"),
    *("easy++?ordering=sjf&correct=added", "first-fit?predict=average&correct=double&backfill_order=wfp3"),
    *("depth?k=2&predict=recent(n=1)&ordering=p-slr", "fcfs?ordering=p-slr&predict=recent&correct=request"),
    *("wfp3", "unicef", "xfactor", "easy?ordering=wfp3", "easy++?ordering=unicef", "sjbf?ordering=xfactor"),
    *("easy?backfill_order=smallest-cores", "easy?backfill_order=xfactor", "depth?k=3&backfill_order=p-slr"),
    *("easy?ordering=random", "first-fit?backfill_order=random", "easy++?backfill_order=random"),
    *(Backfilling(ordering=Oldest()), Backfilling(ordering=Oldest(), reserve=Strict(), predict=Recent(n=1))),
)


@dataclass
class Halves:
    """A partition in a plain file; it is called in Python before each scheduling cycle."""

    choices = "all"
    grid = "linear"

    def limits(self, queue: Queue, now: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        held = int(queue.state["running"].rows.sum() + now) % 2
        return np.maximum(queue.requests.maximum[queue.rows] // (1 + held), 1)

    @staticmethod
    def oracle_limit(maximum: int, running: Sequence[int], now: int) -> int:
        return max(maximum // (1 + int(sum(running) + now / 1e6) % 2), 1)


SIZES_ON_ARRIVAL = ("moldable-greedy", "moldable-submit")
SIZES_AT_START = ("moldable-base", "moldable-start", "moldable-combined", "moldable-combined-2003", "moldable-equal")
SIZES = (
    *SIZES_ON_ARRIVAL,
    *("moldable-greedy?choices=all", "moldable-greedy?choices=3&grid=linear&compress=none", "planned?partition=rigid"),
    *("moldable-submit?scope=remaining&weight=sqrt", "moldable-submit?weight=sqrt-parallel&scope=queued"),
    *("moldable-submit?gap=0.5&choices=all&compress_at=every", "planned?partition=fair-share&compress=arrival"),
    *SIZES_AT_START,
    *("moldable-start?backfill=now", "moldable-base?promise_order=queue&choices=all", "moldable-base?choices=3"),
    *("moldable-base?reserve=category(count=4,first=6,ratio=2)", "moldable-base?reserve=first-fit&scope=queued"),
    *("moldable-base?reserve=xfactor(k=1.25)&backfill=now", "moldable-combined?k=1.5&first=6&scope=remaining"),
    *("moldable-start?gap=0.5&weight=sqrt&scope=remaining", "moldable-start?reserve=depth(k=3)&grid=linear"),
    *("moldable?partition=rigid", "moldable?partition=greedy", "moldable?partition=greedy(choices=all)&backfill=now"),
    *("moldable-base?ordering=sjf", "moldable-combined?ordering=wfp3", "moldable-base?ordering=random"),
    *(
        MoldableBackfilling(partition=Halves()),
        MoldableBackfilling(ordering=Oldest(), partition=Halves(), promise_order="queue"),
    ),
    *("easy", "conservative", "sjf", "easy++"),
)
LAWS = (Linear(), Amdahl(0.1), Downey(parallelism=6, sigma=1), Downey(parallelism=3.5, sigma=0.5))


LOADED = (
    *("fcfs", "easy", "sjf", "easy?ordering=p-slr", "p-slr", "conservative"),
    *("depth?k=3", "easy?ordering=sjf", Backfilling(ordering=SmallestArea(), reserve=ByWidth())),
    *("easy++", "sjbf", "easy++?predict=similar&correct=double", "wfp3", "easy?ordering=unicef"),
    *("easy++?ordering=xfactor", "easy?backfill_order=wfp3", "easy?ordering=random"),
    "conservative?ordering=saf",
)


@st.composite
def of_sizes(draw: st.DrawFn) -> Workload:
    """Draw workloads full of ties whose jobs may have several sizes, sometimes from a list; some jobs are rigid."""
    workload = draw(workloads(cores=CORES, largest=20, deadlines=True, users=True))
    cores = workload.cores
    n = len(cores)
    below, above = (draw(st.lists(st.integers(0, CORES), min_size=n, max_size=n)) for _ in range(2))
    named = draw(st.lists(st.one_of(st.just(()), st.sets(st.integers(1, CORES))), min_size=n, max_size=n))
    law = draw(st.lists(st.integers(0, len(LAWS) - 1), min_size=n, max_size=n))
    ends = np.maximum(1, cores - below), np.minimum(CORES, cores + above)
    sizes = [sorted(some) for some in named] if any(named) else None
    return replace(workload, moldable=Moldable.of(cores, *ends, LAWS, law, sizes=sizes))


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
    assert compared(one, workload, policy, cores, **options) or len(workload) > MOST


@pytest.mark.sampled(2)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@given(
    workload=workloads(cores=CORES, largest=20, deadlines=True, users=True),
    instant=st.sampled_from(INSTANTS),
    overrun=st.sampled_from(OVERRUNS),
    tick=st.sampled_from((None, 0.25, 3.0)),
    narrower=st.booleans(),  # larger than the widest jobs, which are rejected
)
def test_small_workloads_full_of_ties(
    policy: Any, workload: Workload, instant: str, overrun: str, tick: float | None, narrower: bool
) -> None:
    assert_same(workload, policy, CORES - narrower, instant=instant, overrun=overrun, tick=tick)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", SIZES, ids=str)
@given(
    workload=of_sizes(),
    instant=st.sampled_from(INSTANTS),
    overrun=st.sampled_from(OVERRUNS),
    tick=st.sampled_from((None, 0.25, 3.0)),
    narrower=st.booleans(),
)
@settings(max_examples=settings.default.max_examples)  # type: ignore[union-attr]
def test_small_workloads_of_several_sizes(
    policy: Any, workload: Workload, instant: str, overrun: str, tick: float | None, narrower: bool
) -> None:
    assert_same(workload, policy, CORES - narrower, instant=instant, overrun=overrun, tick=tick)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("instant", INSTANTS)
@pytest.mark.parametrize("overrun", OVERRUNS)
@pytest.mark.parametrize("policy", LOADED, ids=str)
def test_a_loaded_machine_with_long_queues(policy: Any, overrun: str, instant: str) -> None:
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


@pytest.mark.parametrize("how", list(zip(INSTANTS, OVERRUNS, strict=True)), ids="-".join)
@pytest.mark.parametrize("policy", SIZES_ON_ARRIVAL + SIZES_AT_START)
def test_a_loaded_machine_of_jobs_of_several_sizes(policy: str, how: tuple[str, str]) -> None:
    """Queues of several hundred jobs: sums of their work are pairwise."""
    rng, jobs = np.random.default_rng(6), 600
    runtime = rng.integers(1, 5000, jobs)
    cores = rng.integers(1, 33, jobs)
    workload = Workload.from_columns(
        submit=np.sort(rng.integers(0, 40_000, jobs)),
        runtime=runtime,
        estimate=np.maximum(1, runtime + rng.integers(-200, 400, jobs)),
        cores=cores,
        moldable=Moldable.of(cores, 1, 32, LAWS, rng.integers(0, len(LAWS), jobs)),
    )
    assert_same(workload, policy, 32, instant=how[0], overrun=how[1])


@pytest.mark.parametrize("ordering", ["wfp3", "p-slr", "sjf", "random"])
def test_a_job_that_is_drawn_behind_the_protected_is_drawn_in_the_order_of_the_queue(ordering: str) -> None:
    rng, jobs = np.random.default_rng(3), 60
    runtime = rng.integers(1, 15, jobs)
    submit, estimate = np.sort(rng.integers(0, 60, jobs)), runtime + rng.integers(0, 9, jobs)
    workload = Workload.from_columns(submit=submit, runtime=runtime, estimate=estimate, cores=rng.integers(1, 9, jobs))
    for rule in ("easy", "first-fit"):
        assert_same(workload, f"{rule}?ordering={ordering}&backfill_order=random")


def test_without_jobs_and_where_all_are_too_wide() -> None:
    assert_same(Workload.from_columns(submit=[], runtime=[], cores=[]), "easy")
    too_wide = Workload.from_columns(submit=[0, 1], runtime=[1, 1], cores=[9, 9])
    for policy in ("easy", "moldable-base", "moldable-submit"):
        assert_same(too_wide, policy)
    sizes = replace(too_wide, moldable=Moldable.of(too_wide.cores, 9, 9, [Linear(), Linear()]))  # the second is unused
    for policy in ("easy", "moldable-base", "moldable-submit"):
        assert_same(sizes, policy)


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
    rules = list(itertools.product(INSTANTS, OVERRUNS))
    if policy not in ("easy", "conservative"):  # small workloads cover all rules under each policy
        workload = workload.select(slice(0, 2_500))
        rules = [rules[POLICIES.index(policy) % len(rules)]]
    for instant, overrun in rules:
        assert_same(workload, policy, 128, instant=instant, overrun=overrun)


@pytest.mark.parametrize(
    ("name", "cores"),
    [
        pytest.param(f"swf/{name}-cln.swf.gz", cores, marks=[pytest.mark.others, pytest.mark.long])
        for name, cores in (("SDSC-SP2-1998-4.2", 128), ("CTC-SP2-1996-3.1", 430))
    ],
)
@pytest.mark.parametrize("policy", SIZES, ids=str)
def test_a_log_whose_jobs_may_have_several_sizes(name: str, cores: int, policy: Any, others: Any) -> None:
    texts = ["slice?window=0&jobs=5000&origin=true", "load-factor?percent=150", "moldable?range_factor=1&sigma=1"]
    workload = transformed(gs.read_workload(others(name)), texts, cores=cores)
    for instant in INSTANTS:
        for overrun in OVERRUNS:
            assert_same(workload, policy, cores, instant=instant, overrun=overrun)


MOLDABLE = sorted((Path(gs.__file__).parent / "testing/cases/moldable").glob("*.json"))


@pytest.mark.parametrize(
    "path", [it for it in MOLDABLE if json.loads(it.read_bytes())["kind"] == "schedule"], ids=lambda it: it.stem
)
def test_golden_cases_of_several_sizes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []

    def run(workload: Workload, cores: int, policy: Any) -> tuple[Record, None]:
        assert_same(workload, policy, cores)
        made = gs.simulate(workload, platform=gs.Platform.single(cores), policy=policy, engine="compiled")
        ran.append(policy)
        return made.record, None

    monkeypatch.setattr(moldable, "run", run)
    outcome = moldable.check_schedule(json.loads(path.read_bytes()))
    assert (outcome.status, outcome.messages) == ("passed", ())
    assert ran


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
