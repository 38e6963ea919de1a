"""Capabilities of policies, declared or detected; schedulers of the earlier protocol."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import gridsim as gs
from gridsim import registry
from gridsim.model.random_streams import stream
from gridsim.model.time import NEVER
from gridsim.policy.capabilities import Earlier, adapted, capabilities_of, of_ordering
from gridsim.policy.fair_share import FairShare
from gridsim.policy.partition import Greedy
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.protocols import Capabilities, Offer, Quote, Start, Stop
from gridsim.policy.queue import ClusterView, Requests
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.record import Record, Status
from gridsim.testing import check_scheduler

SECOND = 1_000_000


@dataclass
class Plain:
    """Starts each job that fits in order of arrival, under the earlier protocol."""

    def setup(self, cluster: Any, rng: Any) -> None:
        self.need, self.free, self.waiting = cluster.requests.cores, cluster.cores, list[int]()

    def quote(self, request: int, now: int) -> Any:
        return Quote(request)

    def commit(self, quote: Any, now: int) -> None:
        self.waiting.append(quote.request)

    def ended(self, request: int, now: int) -> None:
        self.free += int(self.need[request])

    def overran(self, request: int, expected_end: int, now: int) -> None: ...

    def settled(self, now: int) -> None: ...

    def dispatch(self, now: int) -> Sequence[int]:
        started = []
        while self.waiting and self.need[self.waiting[0]] <= self.free:
            started.append(self.waiting.pop(0))
            self.free -= int(self.need[started[-1]])
        return started

    def wake(self, now: int) -> int:
        return NEVER


class Sleeper(Plain):
    """Starts no job before 5 s."""

    def dispatch(self, now: int) -> Sequence[int]:
        return super().dispatch(now) if now >= 5 * SECOND else ()

    def wake(self, now: int) -> int:
        return 5 * SECOND if now < 5 * SECOND else NEVER


class Pushy(Plain):
    """The last request stops the previous one, which is requeued or (*again* false) over."""

    again = True

    def setup(self, cluster: Any, rng: Any) -> None:
        super().setup(cluster, rng)
        self.running: list[int] = []
        self.out: list[tuple[int, bool, int]] = []

    def dispatch(self, now: int) -> Sequence[int]:
        if self.waiting and self.running and self.waiting[0] > self.running[0]:
            victim = self.running.pop()
            self.free += int(self.need[victim])
            self.out = [(victim, self.again, self.waiting[0])]
            if self.again:
                self.waiting.append(victim)
        self.running += (started := super().dispatch(now))
        return started

    def stopped(self) -> Sequence[tuple[int, bool, int]]:
        out, self.out = self.out, []
        return out


class Kills(Plain):
    """Kills the running job by an offer."""

    def quote(self, request: int, now: int) -> Any:
        return Quote(request, Offer(now, kills=(0,) if request else ()))

    def commit(self, quote: Any, now: int) -> None:
        super().commit(quote, now)
        for victim in quote.offer.kills:
            self.free += int(self.need[victim])
            self.waiting.append(victim)


class Leaving(Plain):
    """Removes all waiting jobs from the queue from 3 s on."""

    def leaving(self, now: int) -> Sequence[int]:
        gone, self.waiting = (self.waiting, []) if now >= 3 * SECOND else ([], self.waiting)
        return gone


def run(scheduler: Any, **more: Any) -> Record:
    jobs = gs.Workload.from_columns(submit=[0, 1], runtime=[8, 4], cores=[4, 4], **more)
    with pytest.warns(DeprecationWarning, match="dispatch must return a Decision"):
        return gs.simulate(jobs, platform=gs.Platform.single(4), policy=scheduler).record


@pytest.mark.parametrize(
    ("scheduler", "starts"), [(Plain, [0, 8]), (Sleeper, [5, 13]), (Pushy, [5, 1]), (Kills, [5, 1])]
)
def test_schedulers_of_the_earlier_form_decide_as_they_did(scheduler: Any, starts: list[float]) -> None:
    record = run(scheduler())
    assert record.start.tolist() == starts
    assert record.kills.tolist() == [int(starts[0] > starts[1]), 0]


def test_jobs_that_are_stopped_for_good_or_leave_are_cancelled() -> None:
    pushy = Pushy()
    pushy.again = False
    record = run(pushy)
    assert record.status.tolist() == [Status.cancelled, Status.completed]
    assert record.end.tolist() == [1, 5]
    assert capabilities_of(Leaving()).withdraws
    record = run(Leaving())
    assert record.status.tolist() == [Status.completed, Status.cancelled]


def test_the_earlier_form_keeps_its_name_and_its_other_methods() -> None:
    with pytest.warns(DeprecationWarning, match=r"Kills\(\) has wake"):
        found = adapted(Kills())
    assert isinstance(found, Earlier)
    assert repr(found) == "Kills()"
    assert found.overran(0, 1, 1) is None
    jobs = gs.Workload.from_columns(submit=[0, 1], runtime=[8, 4], cores=[4, 4])
    found.setup(ClusterView(4, Requests(jobs)), stream(0))
    assert list(found.commit(Quote(1, Offer(0, kills=(0,))), 0)) == [Stop(0, "requeue", 1)]
    assert found.dispatch(0).starts == [Start(1), Start(0)]
    with pytest.raises(AttributeError):
        found.nothing_like_it  # noqa: B018


@pytest.mark.filterwarnings("ignore:.*dispatch is to return:DeprecationWarning")
def test_the_earlier_form_passes_the_check_of_schedulers() -> None:
    check_scheduler(Plain, workloads=2)


@dataclass
class Ordering:
    changes: Any = "pass"

    def pick(self, queue: Any, now: float) -> int:
        return 0


def test_an_ordering_without_a_declaration_is_evaluated_at_each_cycle() -> None:
    assert of_ordering(object()) == ("pass", False, False, False, False)
    assert of_ordering(Ordering("start")) == ("start", True, False, False, False)


def test_an_ordering_that_changes_in_an_unknown_way_is_refused() -> None:
    with pytest.raises(gs.PolicyError, match="changes 'sometimes'; expected one of static, linear, pass, start"):
        of_ordering(Ordering("sometimes"))


@dataclass
class Told(Plain):
    """A scheduler in a plain file, without declared capabilities."""

    effort = 3
    guarantees = True
    ordering = FairShare(scope="grid")
    partition = Greedy()

    broken = ()

    def reasons(self) -> None: ...

    def promise(self, request: int, deadline: int, now: int) -> None: ...

    def declined(self, quote: Any) -> None: ...


def test_a_plain_file_that_guarantees_deadlines_has_the_methods_for_that() -> None:
    scheduler: Any = Plain()
    scheduler.guarantees = True
    with pytest.raises(gs.PolicyError, match=r"Plain\(\) guarantees deadlines without promise, declined, broken"):
        capabilities_of(scheduler)


def test_capabilities_of_a_plain_file_are_those_of_its_methods() -> None:
    assert capabilities_of(Told()) == Capabilities(effort=3, guarantees=True, scope="grid", sizes=True, reasons=True)
    assert capabilities_of(Plain()) == Capabilities()


ALL: Any = frozenset({"pool", "nodes", "windows"})
BOTH: Any = frozenset({"held", "capacity_changed"})
CHANGES: Any = frozenset({"capacity_changed"})
POOL: Any = frozenset({"pool"})


@pytest.mark.parametrize(
    ("policy", "can"),
    [
        ("easy", Capabilities(notified=BOTH, compiled=ALL, vectors=True)),
        ("wfp3", Capabilities(notified=BOTH, compiled=ALL, vectors=True)),
        ("easy?ordering=random", Capabilities(notified=BOTH, compiled=ALL - {"windows"}, vectors=True)),
        ("random", Capabilities(notified=BOTH, vectors=True)),
        ("fair-share?scope=grid", Capabilities(scope="grid", vectors=True, notified=CHANGES)),
        ("moldable-base", Capabilities(sizes=True, compiled=POOL, vectors=True)),
        ("moldable?partition=rigid", Capabilities(compiled=POOL, vectors=True)),
        ("conservative", Capabilities(plan=True, effort=10, compiled=ALL, vectors=True, notified=CHANGES)),
        (
            "conservative?ordering=sjf",
            Capabilities(plan=True, effort=10, compiled=ALL - {"windows"}, vectors=True, notified=CHANGES),
        ),
        (
            "qops",
            Capabilities(
                plan=True,
                guarantees=True,
                effort=100,
                compiled=POOL,
                vectors=True,
                notified=CHANGES,
            ),
        ),
    ],
)
def test_schedulers_declare_what_they_can_do(policy: str, can: Capabilities) -> None:
    declared = capabilities_of(make_policy(policy))
    assert replace(declared, in_python="") == can


def test_every_scheduler_of_the_registry_declares_and_has_what_it_declares() -> None:
    for name in registry.names("scheduler"):
        kind = registry.find("scheduler", name)
        assert isinstance(kind.capabilities, property), name
    for policy in ("easy", "moldable-base", "conservative", "qops"):
        scheduler = make_policy(policy)
        scheduler.setup(
            ClusterView(4, Requests(gs.Workload.from_columns(submit=[0], runtime=[1], cores=[1]))), stream(0)
        )
        can = capabilities_of(scheduler)
        for name in ("plan", "expected_starts", "reasons", "site"):
            assert hasattr(scheduler, name) == getattr(can, name), (policy, name)
        for name in ("promise", "declined", "broken"):
            assert hasattr(scheduler, name) == can.guarantees, (policy, name)


ROOT = Path(gs.__file__).parent
ROOMS = ("*", "campaign/*", "cli/*", "entities/*", "model/**/*", "policy/**/*", "questions/*", "report/*")
ALLOWED = {
    "policy/capabilities.py",  # capabilities themselves
    "policy/copies.py",  # copies any object, attribute by attribute
    "campaign/executors.py",  # user-defined executors
    "campaign/paper.py",  # packages with papers
    "cli/__init__.py",  # commands with their own descriptions
    "cli/source.py",  # options of a command
    "files.py",  # numbers
    "model/platform_file.py",  # operating system errors
    "model/speedup.py",  # speedup laws
    "registry.py",  # modules and classes
    "workers.py",  # operating system
    "scenario.py",  # transforms
}


def probes(path: Path) -> list[int]:
    """Return the lines of a file that test whether an attribute exists."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            by_name = node.func.id == "getattr" and isinstance(node.args[1], ast.Constant)
            found += [node.lineno] if node.func.id == "hasattr" or by_name else []
    return found


def test_only_the_capabilities_of_a_policy_are_used() -> None:
    files = [path for room in ROOMS for path in ROOT.glob(f"{room}.py")]
    assert len(files) > 60
    found = {path.relative_to(ROOT).as_posix(): probes(path) for path in files}
    assert {name for name, lines in found.items() if lines} <= ALLOWED


def test_a_scheduler_that_answers_decisions_stays_itself() -> None:
    scheduler = Backfilling()
    assert adapted(scheduler) is scheduler
