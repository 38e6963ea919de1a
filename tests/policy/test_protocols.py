"""Results of user-defined policies are checked at every call."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.errors import InputError, PolicyError, call
from gridsim.metrics.measures import measures
from gridsim.model.capacity import NodeGroup
from gridsim.model.moldable import Moldable
from gridsim.model.platform import Platform
from gridsim.model.speedup import Linear
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.ordering import Fifo
from gridsim.policy.partition import Greedy, Rigid
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.protocols import Capabilities, Decision, Lanes, Offer, PlannedStarts, Start, ranks_of
from gridsim.policy.queue import Queue, Requests
from gridsim.policy.reservation import Easy, Selective
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.policy.scheduler.deadline_guarantee import Guaranteed
from gridsim.policy.scheduler.moldable_scheduler import MoldableBackfilling
from gridsim.policy.scheduler.plan_based import Planned
from gridsim.simulation import run

NODES = Platform.of_nodes((NodeGroup(group="thin", capacity={"cores": 4}),))
JOBS = Workload.from_columns(submit=[0, 0, 0], runtime=[1, 2, 3], estimate=[9, 9, 9], cores=[4, 4, 4])
QUEUE = Queue(Requests(JOBS), np.arange(3))


@dataclass
class Answers:
    """An ordering that returns a given result."""

    answer: Any

    def rank(self, queue: Queue, now: float) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ([1.0, float("nan"), 2.0], "with NaN"),
        ([1.0, 2.0], r"with shape \(2,\)"),
        (0, r"with shape \(\)"),
        ([[1.0], [2.0], [3.0]], r"with shape \(3, 1\)"),
        (["first", "second", "third"], "with non-numbers"),
        ([10**400] * 3, "with non-numbers"),
        (None, r"with shape \(\)"),
    ],
)
def test_an_ordering_that_does_not_give_one_number_each_is_refused_by_name(answer: Any, told: str) -> None:
    with pytest.raises(PolicyError, match=told) as caught:
        ranks_of(Answers(answer), QUEUE, 0.0)
    assert "Answers(answer=" in str(caught.value)


@pytest.mark.parametrize("policy", [Backfilling(Answers([0.0])), Planned(ordering=Answers([0.0]))])
def test_it_is_refused_in_a_run_too(policy: Any) -> None:
    with pytest.raises(PolicyError, match=r"ranked . requests with shape"):
        run(JOBS, Platform.single(4), policy)


def test_infinite_ranks_and_whole_numbers_are_ranks() -> None:
    assert ranks_of(Answers([3, float("inf"), -1]), QUEUE, 0.0).tolist() == [3.0, float("inf"), -1.0]


def test_an_ordering_without_rank_is_refused_under_a_rule_that_lets_others_pass() -> None:
    class Picks:
        def reset(self) -> None: ...

        def pick(self, queue: Queue, now: float) -> int:
            return 0

    with pytest.raises(PolicyError, match="has no rank"):
        run(JOBS, Platform.single(4), Backfilling(Picks()))
    assert run(JOBS, Platform.single(4), Picks()).start.tolist() == [0, 1, 3]


@pytest.mark.parametrize("index", [-1, 3, 0.5, float("nan"), "0"])
def test_a_pick_outside_the_queue_is_refused(index: int) -> None:
    class Picks:
        def reset(self) -> None: ...

        def pick(self, queue: Queue, now: float) -> int:
            return index

    with pytest.raises(PolicyError, match=f"picked number {index!r} of 3 requests"):
        run(JOBS, Platform.single(4), Picks())


@dataclass
class Rule:
    """A reservation rule that returns a given result."""

    answer: Any
    blocking: bool = False

    def lanes(self, queue: Queue) -> Any:
        return self.answer


ONE = np.zeros(3, dtype=np.int64)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Lanes(ONE + 7, np.array([1])), "lanes with 7 at index 0; expected whole numbers from 0 to 0"),
        (Lanes(ONE + 10**9, np.array([1])), "lanes with 1000000000 at index 0"),
        (Lanes(ONE - 10**9, np.array([1])), "lanes with -1000000000 at index 0"),
        (Lanes(np.array([0, 0, -1]), np.array([1])), "lanes with -1 at index 2"),
        (Lanes(ONE.astype(float), np.array([1])), "lanes of type float64"),
        (Lanes(ONE > 0, np.array([1])), "lanes of type bool"),
        (Lanes(ONE[:2], np.array([1])), r"lanes of shape \(2,\)"),
        (Lanes(ONE, np.array([-1])), "a capacity with -1 at index 0"),
        (Lanes(ONE, np.array([float("nan")])), "a capacity of type float64"),
        (Lanes(ONE, np.zeros(0, dtype=np.int64)), "lanes with 0 at index 0"),
        (Lanes(ONE, np.array([1]), np.array([0.0, 1.0, float("nan")])), "due instants of type float64"),
        (Lanes(ONE, np.array([1]), ONE[:1]), "due instants of shape"),
        ((ONE, np.array([1])), "returned tuple from lanes"),
        (None, "returned NoneType from lanes"),
    ],
)
@pytest.mark.parametrize("scheduler", ["backfilling", "moldable"])
def test_lanes_are_checked_before_they_enter_a_compiled_loop(answer: Any, message: str, scheduler: str) -> None:
    rule = Rule(answer)
    policy = Backfilling(reserve=rule) if scheduler == "backfilling" else MoldableBackfilling(Fifo(), rule, Rigid())
    with pytest.raises(PolicyError, match=message):
        run(JOBS, Platform.single(4), policy)


def test_a_capacity_above_the_number_of_requests_is_that_number() -> None:
    lanes = Lanes(np.array([0, 1, 2]), np.array([1 << 60, 1 << 61, 1]))
    assert run(JOBS, Platform.single(4), Backfilling(reserve=Rule(lanes))).start.tolist() == [0, 1, 3]


def test_due_instants_are_refused_by_a_scheduler_that_does_not_support_them() -> None:
    lanes = Lanes(ONE, np.array([1]), ONE)
    with pytest.raises(PolicyError, match=r"due instants, which backfilling does not support.*moldable\?part"):
        run(JOBS, Platform.single(4), Backfilling(reserve=Rule(lanes)))
    assert run(JOBS, Platform.single(4), MoldableBackfilling(Fifo(), Rule(lanes), Rigid())).start.tolist() == [0, 1, 3]


@dataclass
class Shares:
    """An ordering of groups that returns given places."""

    answer: Any
    changes: str = "pass"
    group: str = "user"

    def rank(self, queue: Queue, now: float) -> Any:
        return np.zeros(len(queue))

    def places(self, now: int) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [([0], "places of 1 groups; expected 3"), ([0.0, 1.0, 2.0], "places of type float64"), (None, "places of shape")],
)
def test_places_of_groups_are_checked_before_they_enter_a_compiled_loop(answer: Any, message: str) -> None:
    jobs = Workload.from_columns(submit=[0, 0, 0], runtime=[1, 2, 3], cores=[4, 4, 4], labels={"user": [2, 0, 1]})
    with pytest.raises(PolicyError, match=message):
        run(jobs, Platform.single(4), Shares(answer))
    assert run(jobs, Platform.single(4), Shares([2, 1, 0])).start.tolist() == [0, 4, 1]
    with pytest.raises(InputError, match="needs jobs with a user"):
        run(JOBS, Platform.single(4), Shares([0]))


@dataclass
class Admits:
    """An admission that makes a given offer to the second request, and appends the others."""

    offer: Any
    left_shifted: bool = False

    def plan(self, request: int, deadline: int, plan: Any, now: int) -> Any:
        return self.offer if request == 1 else Offer(plan.earliest(request, now))


_SOON, _LATER = 9_000_000, 18_000_000
LATE = Workload.from_columns(submit=[0, 1, 1], runtime=[5, 2, 3], estimate=[9, 9, 9], cores=[4, 4, 4])


@pytest.mark.parametrize(
    ("offer", "message"),
    [
        (Offer(-1), "offers start=-1; expected a whole number from 1000000"),
        (Offer(9.0), r"offers start=9\.0"),  # type: ignore[arg-type]
        (Offer(1 << 61), "offers a start beyond the largest time"),
        (Offer(_SOON, granted=float("nan")), "offers granted=nan"),  # type: ignore[arg-type]
        (Offer(_SOON, kills=(2,)), r"kills \[2\]; expected running requests"),
        (Offer(_SOON, kills=(-5,)), r"kills \[-5\]; expected running requests"),
        (Offer(_SOON, kills=(0,)), "without an arrangement"),
        (Offer(_SOON, PlannedStarts(np.array([10**9]), np.array([_SOON]))), "arranges requests other than"),
        (Offer(_SOON, PlannedStarts(np.array([1, 1]), np.array([_SOON, _SOON]))), "arranges requests other than"),
        (Offer(_SOON, PlannedStarts(np.array([1]), np.array([1.5]))), "starts of an arrangement of type float64"),
        (Offer(_SOON, PlannedStarts(np.array([1]), np.array([-5]))), "starts of an arrangement with -5"),
        (Offer(_SOON, PlannedStarts(np.array([1]), np.array([_LATER]))), "but arranges it at 18000000"),
        (Offer(_SOON, PlannedStarts(np.array([1]), np.array([_SOON]), 5)), "with holdings on a machine of cores"),  # type: ignore[arg-type]
        ("yes", "returned 'yes'; expected an Offer or None"),
    ],
)
@pytest.mark.parametrize("scheduler", [Planned, Guaranteed])
def test_offers_are_checked_before_they_enter_a_compiled_loop(offer: Any, message: str, scheduler: Any) -> None:
    with pytest.raises(PolicyError, match=message) as caught:
        run(LATE, Platform.single(4), scheduler(admission=Admits(offer)))
    assert "Admits(" in str(caught.value)


def test_an_arrangement_out_of_order_and_a_changed_plan_are_refused() -> None:
    @dataclass
    class Backwards:
        def plan(self, request: int, deadline: int, plan: Any, now: int) -> Any:
            if request < 2:
                return Offer(plan.earliest(request, now))
            rows, starts = plan.order(), plan.planned_starts()
            return Offer(_LATER, PlannedStarts(np.append(request, rows), np.append(_LATER, starts)))

    @dataclass
    class Writes:
        def plan(self, request: int, deadline: int, plan: Any, now: int) -> Any:
            plan.reserve(request, plan.earliest(request, now))
            return Offer(plan.earliest(request, now))

    with pytest.raises(PolicyError, match="arranges requests out of order"):
        run(JOBS, Platform.single(4), Planned(Backwards()))
    with pytest.raises(PolicyError, match=r"Writes\(\) changed the plan that it received"):
        run(JOBS, Platform.single(4), Planned(Writes()))


@pytest.mark.parametrize(
    "change",
    [
        "plan.copy().reserve(-1, 0)",
        "plan.copy().reserve(0, 10**20)",
        "plan.without(2, now)",
        "plan.copy().reserve(0, 0.5)",
        "plan.copy().compress(np.array([10**9]), now)",
        "plan.copy().compress(np.array([-(10**9)]), now)",
        "plan.order().fill(10**9)",
        "plan.running().fill(10**9)",
    ],
)
@pytest.mark.parametrize("platform", [Platform.single(4), NODES], ids=["cores", "nodes"])
def test_changes_of_a_plan_are_checked_before_they_enter_a_compiled_loop(change: str, platform: Platform) -> None:
    @dataclass
    class Changes:
        vectors = True

        def plan(self, request: int, deadline: int, plan: Any, now: int) -> Any:
            return eval(change)

    with pytest.raises(PolicyError):
        run(JOBS, platform, Planned(Changes()))


def test_holdings_without_a_place_for_each_arranged_request_are_rejected() -> None:
    @dataclass
    class Forgets:
        vectors = True

        def plan(self, request: int, deadline: int, plan: Any, now: int) -> Any:
            start, known = plan.earliest(request, now), plan.arrangement()
            rows, starts = np.append(known.rows, request), np.append(known.starts, start)
            return Offer(start, PlannedStarts(rows, starts, known.holdings))

    with pytest.raises(PolicyError, match=r"Forgets\(\) offers holdings in which an arranged request has no nodes"):
        run(JOBS, NODES, Planned(Forgets()))


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize(
    "columns",
    ["queue.rows", "queue.running.rows", "queue.requests.submit", "queue.requests.deadline", "queue.requests.minimum"],
)
def test_columns_of_the_scheduler_and_of_the_workload_are_read_only(columns: str, engine: Any) -> None:
    @dataclass
    class Writes:
        def rank(self, queue: Queue, now: float) -> Any:
            eval(columns).fill(10**9)
            return queue.submit

    jobs = dataclasses.replace(JOBS, moldable=Moldable.of(JOBS.cores, 1, 4, [Linear()]))
    with pytest.raises(PolicyError, match=r"Writes\(\) failed in rank in line .*read-only"):
        run(jobs, Platform.single(4), Backfilling(Writes()), Run(engine=engine))
    assert JOBS.submit.tolist() == [0, 0, 0]


def test_only_a_scheduler_of_gridsim_is_driven_by_the_compiled_event_loop() -> None:
    class Starts(Backfilling):
        capabilities = Capabilities(compiled=frozenset({"pool"}))

        def dispatch(self, now: int) -> Decision:
            return Decision([Start(10**9)])

    with pytest.raises(InputError, match="has no compiled scheduling cycle"):
        run(JOBS, Platform.single(4), Starts(), Run(engine="compiled"))
    with pytest.raises(PolicyError, match=r"starts 1000000000 at .* which is not a request"):
        run(JOBS, Platform.single(4), Starts())


def test_lanes_of_a_rule_inside_another_are_checked() -> None:
    class NoLanes(Easy):
        def lanes(self, queue: Queue) -> Any:
            return None

    with pytest.raises(PolicyError, match="returned NoneType from lanes"):
        run(JOBS, Platform.single(4), MoldableBackfilling(reserve=Selective(others=NoLanes()), partition=Rigid()))


def test_more_sizes_than_there_are_cores_are_all_sizes() -> None:
    jobs = dataclasses.replace(JOBS, moldable=Moldable.of(JOBS.cores, 1, 4, [Linear()]))
    starts = [
        run(jobs, Platform.single(4), MoldableBackfilling(partition=Greedy(choices=n))).start for n in (10**15, "all")
    ]
    assert np.array_equal(*starts)


def test_an_answer_of_commit_that_is_no_sequence_is_refused() -> None:
    class Commits(Backfilling):
        def commit(self, quote: Any, now: int) -> Any:
            return 5

    with pytest.raises(PolicyError, match="returned 5 from commit"):
        run(JOBS, Platform.single(4), Commits())


FAILING = """
from dataclasses import dataclass
from gridsim.policy.protocols import Decision, Quote
from gridsim.policy.reservation import Easy
from gridsim.policy.scheduler.backfilling import Backfilling
class Plain:
    def setup(self, cluster, rng): pass
    def ended(self, request, now): pass
    def settled(self, now): pass
    def quote(self, request, now): return Quote(request)
    def commit(self, quote, now): return ()
    def dispatch(self, now): return Decision([])
class Quotes(Plain):
    def quote(self, request, now): return 1 // 0
class Commits(Plain):
    def commit(self, quote, now): return 1 // 0
class Dispatches(Plain):
    def dispatch(self, now): return 1 // 0
class Derived(Backfilling):
    def dispatch(self, now): return 1 // 0
class Lanes(Easy):
    def lanes(self, queue): return 1 // 0
class Plans:
    def plan(self, request, deadline, plan, now): return 1 // 0
class Measures:
    def measure(self, record): return 1 // 0
class Charges:
    def charge(self, record): return 1 // 0
class Arguments(Plain):
    def dispatch(self): return Decision([])
"""


@pytest.mark.parametrize(
    ("policy", "method", "line"),
    [
        ("Quotes", "quote", 14),
        ("Commits", "commit", 16),
        ("Dispatches", "dispatch", 18),
        ("Derived", "dispatch", 20),
        ("easy?reserve={}:Lanes", "lanes", 22),
        ("planned?admission={}:Plans", "plan", 24),
        ("guaranteed?admission={}:Plans", "plan", 24),
        ("guaranteed?admission=feedback(inner={}:Plans)", "plan", 24),
        ("Arguments", "dispatch", 30),
    ],
)
def test_an_error_of_a_plug_in_names_its_file_and_line(tmp_path: Path, policy: str, method: str, line: int) -> None:
    file = tmp_path / "failing.py"
    file.write_text(FAILING)
    spec = policy.format(file) if "{}" in policy else f"{file}:{policy}"
    with pytest.raises(PolicyError, match=rf"failed in {method} in line {line} of .*failing\.py: "):
        run(JOBS, Platform.single(4), make_policy(spec))


@pytest.mark.parametrize(("kind", "line"), [("Measures", 26), ("Charges", 28)])
def test_an_error_of_a_metric_names_its_file_and_line(tmp_path: Path, kind: str, line: int) -> None:
    file = tmp_path / "failing.py"
    file.write_text(FAILING)
    (measure,) = measures(*(([f"{file}:{kind}"], []) if kind == "Measures" else ([], [f"{file}:{kind}"])), {})
    with pytest.raises(PolicyError, match=rf"in line {line} of .*failing\.py: ZeroDivisionError"):
        measure.number(run(JOBS, Platform.single(4), "fcfs"))


def test_defects_of_gridsim_itself_stay_as_they_are() -> None:
    with pytest.raises(AttributeError, match="no_such"):
        call(Fifo(), "no_such")
