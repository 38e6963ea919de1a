"""Selection of the engine, and errors, messages and final state of the compiled engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from gridsim.cli import main
from gridsim.engine import choice
from gridsim.engine import setup as engine
from gridsim.engine.setup import CompiledRun
from gridsim.errors import InputError, PolicyError
from gridsim.machine import running_set as running
from gridsim.model.moldable import Moldable
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.speedup import Table
from gridsim.model.tasks import Tasks
from gridsim.model.time import FloatArray
from gridsim.model.workload import Workload
from gridsim.policy.ordering import LargestCores, Random
from gridsim.policy.prediction import Recent
from gridsim.policy.queue import Queue
from gridsim.policy.reservation import Strict
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.scenario import transformed
from gridsim.simulation import Run, simulate
from gridsim.world import World

JOBS = Workload.from_columns(submit=[0, 1, 2, 2], runtime=[10, 10, 5, 1], cores=[3, 2, 1, 1], cores_stated=4)

ONE_USER = replace(JOBS, labels={"user": np.zeros(4, dtype=np.int64)})
CHAIN = Tasks.from_edges(counts=[2], runtime=[5, 5], cores=[1, 1], edges=[(0, 1)])


TWO = Platform(RouterSpec("root", (ClusterSpec("a", 4), ClusterSpec("b", 4))))

SHARED = replace(JOBS, labels={"share": np.zeros(4, dtype=np.int64)}, names={"share": ("/a",)})


@dataclass
class Hour:
    """A predictor in a plain file."""

    def setup(self, rng: Any) -> None:
        pass

    def predict(self, queue: Queue, now: float) -> FloatArray:
        return np.full(len(queue), 3600.0)

    def finished(self, queue: Queue, ran: FloatArray, now: float) -> None:
        pass


@dataclass
class Tenfold:
    """A corrector in a plain file."""

    def correct(self, first: float, present: float, times: int, estimate: float) -> float:
        return 10 * present


@dataclass
class Widest(LargestCores):
    """An ordering in a plain file that may read predictions."""


@dataclass
class Noting:
    """First come, first served, called in each scheduling cycle; records the instants."""

    changes = "pass"
    asked: ClassVar[list[float]] = []

    def rank(self, queue: Queue, now: float) -> FloatArray:
        self.asked.append(now)
        return queue.submit


@dataclass
class Drawing(Random):
    """An ordering in a plain file that selects the next request itself."""


class Sidestepping(Backfilling):
    """A user-defined class whose callbacks at single events must be called."""


@pytest.fixture
def calendars(monkeypatch: pytest.MonkeyPatch) -> list[CompiledRun]:
    """Return the compiled runs of the test."""
    ran: list[CompiledRun] = []
    usual = CompiledRun.run

    def run(self: CompiledRun, progress: Callable[[int], None] | None = None) -> None:
        ran.append(self)
        usual(self, progress)

    monkeypatch.setattr(CompiledRun, "run", run)
    return ran


@pytest.mark.parametrize(
    ("jobs", "how", "why"),
    [
        (JOBS, {"policy": "easy?ordering=drf"}, "DominantShare.* is called again after each start"),
        (
            JOBS,
            {"policy": Backfilling(ordering=Drawing(), reserve=Strict())},
            "Drawing.* selects the next request itself",
        ),
        (JOBS, {"policy": Backfilling(predict=Hour())}, "Hour.* predicts in Python"),
        (JOBS, {"policy": Backfilling(predict=Recent(), correct=Tenfold())}, "Tenfold.* corrects in Python"),
        (
            JOBS,
            {"policy": Backfilling(predict=Recent(), backfill_order=Widest())},
            "Widest.* is called for each request, with its prediction",
        ),
        (SHARED, {"policy": "fair-share?usage=decayed"}, "FairShare.* depends on the usage of each share"),
        (JOBS, {"policy": Sidestepping()}, "Sidestepping.* has no compiled scheduling cycle"),
        (JOBS, {"policy": "conservative?ordering=wfp3"}, "no compiled scheduling cycle"),
        (JOBS, {"policy": "qops?unadmitted=best-effort"}, "jobs may have no reservation"),
        (JOBS, {"policy": "msb?partition=greedy"}, "Greedy.* chooses sizes"),
        (JOBS, {"policy": "fqops?ordering=wfp3"}, "Wfp3.* is called at each compression"),
        (JOBS, {"policy": "mrt?heuristic=edf+est"}, "EarliestDeadlineAndStart.* is called for each decision"),
        (JOBS, {"policy": "guaranteed?admission=conservative"}, "Conservative.* searches in Python"),
        (JOBS, {"policy": "fqops?slack_factor=1.00001"}, "the slack factor 1.00001 is too fine"),
        (
            replace(JOBS, moldable=Moldable.of(JOBS.cores, 1, 4, [Table([(1, 1e14), (4, 1)])])),
            {"policy": "moldable-base"},
            "add up to more than the calendar has",
        ),
        (
            JOBS,
            {"platform": TWO, "policy": "conservative"},
            "Planned.* has no compiled scheduling cycle for several clusters",
        ),
        (
            Workload.from_columns(submit=[0, 1], runtime=[1, 1], cores=1, labels={"withdrawn": [-1, 3]}),
            {"platform": Platform.single(2)},
            "users withdraw jobs that wait",
        ),
        (
            Workload.from_columns(submit=[0, 2e12], runtime=[5e11, 1], cores=1),
            {"platform": Platform.single(2)},
            "add up to more than the calendar has",
        ),
        (
            transformed(replace(JOBS, labels={"user": np.zeros(4, dtype=np.int64)}), ["react?reference=easy"]),
            {},
            "users react",
        ),
        (
            Workload.from_tasks(
                Tasks.from_edges(counts=[2], runtime=[5, 5], cores=[1, 1], edges=[(0, 1)]), submit=[0.0]
            ),
            {"platform": Platform.single(2), "policy": "easy++"},
            "has no compiled scheduling cycle for DAG jobs",
        ),
    ],
)
def test_impossible_cases_have_a_reason(jobs: Workload, how: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why) as error:
        simulate(jobs, engine="compiled", **how)
    assert error.value.field == "engine"
    simulate(jobs, engine="auto", **how)


def test_a_user_error_is_reported_and_the_command_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--jobs", "20", "--policy", "p-slr-sf", "--engine", "compiled", "--no-page"]) == 2
    told = capsys.readouterr().err
    assert "'engine'" in told
    assert "ProjectedSlrStarvationFree(lateness=1) is called again after each start" in told


def test_no_small_run_waits_for_a_compiler(monkeypatch: pytest.MonkeyPatch, calendars: list[CompiledRun]) -> None:
    monkeypatch.setattr(choice, "is_kept", lambda loop: False)
    simulate(JOBS)
    assert not calendars
    monkeypatch.setattr(choice, "_SMALL", 4)
    simulate(JOBS)
    assert len(calendars) == 1


def test_cached_loops_are_used_for_small_runs_too(
    monkeypatch: pytest.MonkeyPatch, calendars: list[CompiledRun]
) -> None:
    monkeypatch.setattr(choice, "is_kept", lambda loop: True)
    simulate(JOBS)
    assert len(calendars) == 1
    simulate(JOBS, engine="simpy")
    simulate(JOBS, policy="p-slr-sf")
    assert len(calendars) == 1


def test_an_ordering_in_python_is_evaluated_at_the_same_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    # At 4 s job 1 exceeds its estimate, and job 4, which is too wide, arrives: one cycle for it, one at the end of the
    # instant.
    jobs = Workload.from_columns(
        submit=[0, 1, 1, 4], runtime=[10, 1, 50, 1], estimate=[4, 1, 100, 1], cores=[2, 3, 1, 9], cores_stated=3
    )
    heard = []
    for slice_, name in ((0.05, "simpy"), (0.05, "compiled"), (0.0, "compiled")):
        monkeypatch.setattr(engine, "_SLICE", slice_)
        policy = Backfilling(ordering=Noting())
        simulate(jobs, platform=Platform.single(3), policy=policy, engine=name, instant="per-event", overrun="extend")
        heard.append(Noting.asked.copy())
        Noting.asked.clear()
    assert heard[0].count(4.0) == 2
    assert heard[1] == heard[2] == heard[0]


def test_slices_change_nothing_progress_continues_and_an_interrupt_is_passed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = 5000
    jobs = Workload.from_columns(submit=np.arange(n), runtime=np.full(n, 9), cores=1)
    platform = Platform.single(4)
    whole = simulate(jobs, platform=platform, engine="compiled").record
    monkeypatch.setattr(engine, "_SLICE", 0.0)  # smallest possible number of steps per slice
    told: list[int] = []
    sliced = simulate(jobs, platform=platform, engine="compiled", progress=told.append).record
    assert sliced.start_us.tolist() == whole.start_us.tolist()
    assert told == sorted(told)
    assert len(told) > 2
    assert told[-1] == n

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(jobs, platform=platform, engine="compiled", progress=interrupt)


@pytest.mark.parametrize(
    ("instant", "cores", "why"),
    [
        ("batched", 8, "starts request 1 (2 cores) at 1.0 s, but only 1 of 4 cores are free"),
        ("per-event", 8, "has 1 more cores in use at 1.0 s than the 4 of the machine"),
        ("batched", 2, "never started 4 jobs, job 1 first"),
    ],
)
@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_the_machine_refuses_what_it_has_not(engine: Any, instant: Any, cores: int, why: str) -> None:
    world = World(JOBS, Platform.single(4), Backfilling(), Run(instant=instant, engine=engine), max_jobs=0)
    world.clusters[0].scheduler._state.meta[running.TOTAL] = cores  # type: ignore[attr-defined]  # it is mistaken
    with pytest.raises(PolicyError) as error:
        world.complete()
    assert why in str(error.value)


def test_an_engine_is_reported_and_no_other_is_known() -> None:
    assert simulate(JOBS, engine="simpy").options["engine"] == "simpy"
    assert simulate(JOBS).options["engine"] == "auto"
    with pytest.raises(InputError, match="is 'fast'; expected one of auto, simpy, compiled"):
        Run(engine="fast")  # type: ignore[arg-type]
