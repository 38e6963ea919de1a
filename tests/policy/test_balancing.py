"""Balancers: the selected child for a piece, each in a case calculated by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim import registry
from gridsim.cli import main
from gridsim.errors import InputError, PolicyError, UnknownNameError
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.policy.balancing import Bid, DataLocal, ExpectedQueue, PowerOfTwo, RandomChild, RoundRobin, balancer
from gridsim.simulation import Run, run, simulate


@dataclass
class Leaf:
    """A cluster as seen by balancers."""

    cores: int = 10
    kind: str = "A"
    free: int = 0
    unfinished: int = 0
    queued: int = 0
    left: int = 0
    start: int = 0
    delay: int = 0
    offer: Bid | None = None

    @property
    def busy(self) -> int:
        return self.cores - self.free

    def leaves(self) -> Sequence[Leaf]:
        return (self,)

    def bid(self, piece: Any) -> Bid | None:
        return self.offer

    def remaining(self) -> int:
        return self.queued + self.left

    def earliest_start(self, cores: int) -> int:
        return self.start * cores


@dataclass
class Inner:
    """A router as seen by balancers."""

    below: tuple[Leaf, ...]

    def leaves(self) -> Sequence[Leaf]:
        return self.below


@dataclass
class Piece:
    widest: dict[str, int] = field(default_factory=lambda: {"A": 1})
    work: int = 0

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.widest)

    def delay_to(self, cluster: Any) -> int:
        delay: int = cluster.delay
        return delay


class Script:
    """Fixed numbers instead of a generator."""

    def __init__(self, *numbers: int) -> None:
        self.numbers, self.asked = list(numbers), list[int]()

    def integers(self, n: int) -> int:
        self.asked.append(n)
        return self.numbers.pop(0)


def pick(what: Any, children: Sequence[Any], piece: Piece | None = None, *draws: int) -> int:
    made = balancer(what)
    if hasattr(made, "setup"):
        made.setup(Script(*draws))
    chosen: int = made.pick(piece or Piece(), children, 0)
    return chosen


# -- expected queue ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("work", "chosen"), [("unfinished", 2), ("queued", 0), ("remaining", 1)])
def test_work_is_what_the_option_says(work: str, chosen: int) -> None:
    children = [
        Leaf(unfinished=90, queued=0, left=50),
        Leaf(unfinished=60, queued=10, left=20),
        Leaf(unfinished=50, queued=40, left=5),
    ]
    assert pick(f"expected-queue?work={work}", children) == chosen


def test_work_is_taken_over_cores_exactly_and_the_first_of_equal_ones_is_picked() -> None:
    assert pick("expected-queue", [Leaf(10, unfinished=40), Leaf(20, unfinished=60)]) == 1
    assert pick("expected-queue", [Leaf(10, unfinished=30), Leaf(20, unfinished=60)]) == 0
    large = 10**17  # (large + 1) / 10 and (3 large + 2) / 30 are equal as floats
    assert pick("expected-queue", [Leaf(10, unfinished=large + 1), Leaf(30, unfinished=3 * large + 2)]) == 1


def test_the_piece_itself_may_count_which_matters_where_clusters_differ() -> None:
    children, piece = [Leaf(10, unfinished=10), Leaf(100, unfinished=110)], Piece(work=100)
    assert pick("expected-queue", children, piece) == 0
    assert pick("expected-queue?include_candidate=true", children, piece) == 1


def test_a_router_says_how_its_best_cluster_that_could_take_the_piece_is() -> None:
    router = Inner((Leaf(4, unfinished=4), Leaf(10, unfinished=50), Leaf(10, "B", unfinished=0)))
    cluster = Leaf(10, unfinished=30)
    wide = Piece({"A": 5})
    assert pick("expected-queue", [router, cluster], wide) == 1  # 5 against 3
    assert pick("expected-queue", [router, cluster], Piece({"A": 4})) == 0  # 1 against 3
    assert pick("expected-queue?advertise=any", [router, cluster], wide) == 0  # 0 against 3


def test_the_worst_kind_of_a_mixed_piece_counts() -> None:
    one = Inner((Leaf(10, "A", unfinished=0), Leaf(10, "B", unfinished=90)))
    other = Inner((Leaf(10, "A", unfinished=40), Leaf(10, "B", unfinished=50)))
    assert pick("expected-queue", [one, other], Piece({"A": 1, "B": 1})) == 1
    assert pick("expected-queue", [one, other], Piece({"A": 1})) == 0


# -- the others --------------------------------------------------------------------------------------------------------


def test_round_robin_takes_turns_for_each_router_and_set_of_kinds() -> None:
    one, other = [Leaf(), Leaf(), Leaf()], [Leaf(), Leaf()]
    robin = RoundRobin()
    assert [robin.pick(Piece(), one, 0) for _ in range(4)] == [0, 1, 2, 0]
    assert [robin.pick(Piece(), other, 0) for _ in range(3)] == [0, 1, 0]
    assert robin.pick(Piece({"A": 1, "B": 1}), one, 0) == 0
    assert robin.pick(Piece({"B": 1, "A": 1}), one, 0) == 1  # the same set
    robin.setup(np.random.default_rng(0))
    assert robin.pick(Piece(), one, 0) == 0


def test_a_child_is_drawn() -> None:
    assert pick("random", [Leaf()] * 3, None, 2) == 2


@pytest.mark.parametrize(("drawn", "chosen"), [(0, 0), (3, 0), (4, 1), (19, 1), (20, 2), (24, 2)])
def test_a_child_is_drawn_by_its_cores(drawn: int, chosen: int) -> None:
    script = Script(drawn)
    weighted = RandomChild(weighted=True)
    weighted.setup(script)  # type: ignore[arg-type]
    assert weighted.pick(Piece(), [Leaf(4), Inner((Leaf(6), Leaf(10))), Leaf(5)], 0) == chosen
    assert script.asked == [25]


@pytest.mark.parametrize(("draws", "chosen"), [((0, 0), 1), ((2, 0), 0), ((2, 1), 1), ((1, 0), 1)])
def test_power_of_two_takes_the_less_loaded_of_two_that_are_drawn(draws: tuple[int, int], chosen: int) -> None:
    # (0, 0) draws 0 and 1; (2, 0) 2 and 0; (2, 1) 2 and 1; (1, 0) 1 and 0
    children = [Leaf(unfinished=20), Leaf(unfinished=10), Leaf(unfinished=30)]
    assert pick("power-of-two", children, None, *draws) == chosen


def test_power_of_two_draws_nothing_without_choice() -> None:
    assert pick("power-of-two", [Leaf()]) == 0


def test_the_least_utilised_child_is_that_with_the_smallest_share_of_busy_cores() -> None:
    assert (
        pick("least-utilised", [Leaf(10, free=5), Leaf(40, free=30), Inner((Leaf(10, free=9), Leaf(30, free=20)))]) == 1
    )
    assert pick("least-utilised", [Leaf(10, free=5), Leaf(40, free=20)]) == 0


def test_of_equally_busy_children_the_least_utilised_is_that_with_the_shortest_queue() -> None:
    full = [
        Leaf(10, unfinished=70),
        Leaf(20, unfinished=100),
        Inner((Leaf(10, unfinished=10), Leaf(30, unfinished=190))),
    ]
    assert pick("least-utilised", full) == 1
    assert pick("least-utilised", [Leaf(10, free=1), *full[1:]]) == 0


def test_the_earliest_start_is_that_of_the_widest_task_of_each_kind() -> None:
    router = Inner((Leaf(10, start=5), Leaf(10, start=3), Leaf(2, start=0)))
    assert pick("earliest-start", [Leaf(10, start=4), router], Piece({"A": 3})) == 1
    mixed = Inner((Leaf(10, start=1), Leaf(10, "B", start=9)))
    assert (
        pick("earliest-start", [mixed, Inner((Leaf(10, start=8), Leaf(10, "B", start=2)))], Piece({"A": 1, "B": 1}))
        == 1
    )


def test_data_stay_near_and_the_shorter_queue_decides_between_equally_near_ones() -> None:
    children = [Leaf(delay=3), Leaf(delay=2, unfinished=50), Leaf(delay=2, unfinished=40)]
    assert pick("data-local", children) == 2


def test_clusters_that_cannot_take_the_piece_are_not_near() -> None:
    assert pick("data-local", [Inner((Leaf(10, "B", delay=0), Leaf(10, delay=5))), Leaf(delay=4)]) == 1


def test_a_balancer_within_a_balancer_is_set_up_too() -> None:
    children = [Leaf(delay=2), Leaf(delay=2)]
    assert pick("data-local(balancer=random)", children, None, 1) == 1
    assert pick(PowerOfTwo(balancer=ExpectedQueue(work="queued")), [Leaf(queued=1), Leaf()], None, 0, 0) == 1
    assert balancer("power-of-two(balancer=expected-queue(work=queued))").balancer == ExpectedQueue(work="queued")


# -- by quotes ---------------------------------------------------------------------------------------------------------

_OFFER = Bid(accepted=True, granted=50, kills=0, start=20, charge=9.0)


@pytest.mark.parametrize(
    ("worse", "better", "cheapest"),
    [
        ({"accepted": False, "granted": 40, "charge": 1.0}, {}, 1),  # too late for the user, despite the low price
        ({"granted": 60}, {}, 1),
        ({"kills": 1, "start": 10}, {}, 1),  # as requested, but a job is killed for it
        ({"start": 21}, {}, 1),
        ({"granted": NEVER, "start": 0, "charge": 1.0}, {}, 1),  # no guarantee
        ({"granted": 60, "charge": 8.0}, {}, 0),  # later, and cheaper
    ],
)
def test_guarantees_are_compared_by_user_promise_kills_and_start(
    worse: dict[str, Any], better: dict[str, Any], cheapest: int
) -> None:
    children = [Leaf(offer=_OFFER._replace(**worse)), Leaf(offer=_OFFER._replace(**better))]
    assert pick("earliest-guarantee", children) == 1
    assert pick("cheapest-guarantee", children) == cheapest


@pytest.mark.parametrize("name", ["earliest-guarantee", "cheapest-guarantee"])
def test_equal_guarantees_go_to_the_first_and_no_guarantee_too(name: str) -> None:
    assert pick(name, [Leaf(), Leaf(offer=_OFFER), Leaf(offer=_OFFER)]) == 1
    assert pick(name, [Leaf(), Leaf(), Leaf()]) == 0


def test_a_router_guarantees_what_the_best_able_cluster_below_it_does() -> None:
    narrow, wide = Leaf(2, offer=_OFFER._replace(granted=30)), Leaf(8, offer=_OFFER._replace(granted=49))
    children = [Leaf(offer=_OFFER), Inner((narrow, wide, Leaf()))]
    assert pick("earliest-guarantee", children, Piece({"A": 4})) == 1
    assert pick("earliest-guarantee", [Leaf(offer=_OFFER._replace(granted=48)), children[1]], Piece({"A": 4})) == 0
    assert pick("earliest-guarantee", [Leaf(offer=_OFFER._replace(granted=48)), children[1]], Piece({"A": 2})) == 1


def test_two_children_drawn_at_random_may_be_queried_for_guarantees() -> None:
    children = [Leaf(offer=_OFFER._replace(granted=30)), Leaf(offer=_OFFER), Leaf(offer=_OFFER._replace(granted=40))]
    assert pick("power-of-two(balancer=earliest-guarantee)", children, None, 1, 1) == 2


# -- on a grid: two clusters of 4 cores --------------------------------------------------------------------------------

GRID = Platform(RouterSpec("root", (ClusterSpec("a", 4), ClusterSpec("b", 4))))


def placed(rows: list[tuple[int, int, int]], name: Any, **options: Any) -> list[int]:
    """Return clusters of rigid jobs: submit, runtime, cores."""
    submit, runtime, cores = zip(*rows, strict=True)
    workload = Workload.from_columns(submit=submit, runtime=runtime, cores=cores)
    return list(run(workload, GRID, "fcfs", Run(balancer=name, **options)).cluster)


ROWS = [(0, 10, 4), (0, 4, 4), (1, 10, 1), (5, 1, 1), (6, 1, 4)]


@pytest.mark.parametrize(
    ("name", "clusters"),
    [
        # unfinished work of a and b at each arrival: 0, 0; 40, 0; 40, 16; 40, 10 (the second ended at 4); 40, 11
        ("expected-queue", [0, 1, 1, 1, 1]),
        # at 0 only the first job is queued; all start at once but the third, which waits on b until 4
        ("expected-queue?work=queued", [0, 1, 0, 1, 1]),
        ("round-robin", [0, 1, 0, 1, 0]),
        # the load of a includes jobs sent in the same instant; both are full at 1, and b has less remaining work
        ("least-utilised", [0, 1, 1, 1, 1]),
        ("earliest-start", [0, 1, 1, 1, 0]),
    ],
)
def test_jobs_go_where_the_balancer_says(name: str, clusters: list[int]) -> None:
    assert placed(ROWS, name) == clusters


@pytest.mark.parametrize("instant", ["batched", "per-event"])
def test_least_utilised_shares_out_what_comes_in_one_instant(instant: str) -> None:
    together = [(0, 10, 1)] * 24
    clusters = placed(together, "least-utilised", instant=instant)
    assert clusters.count(0) == clusters.count(1) == 12


def test_least_utilised_shares_out_the_first_tasks_of_dag_jobs_that_arrive_together() -> None:
    # Four chains of two tasks; a second task uses no cores before the first has ended.
    tasks = Tasks.from_edges(counts=[2] * 4, runtime=[5] * 8, cores=[2] * 8, edges=[(0, 1), (2, 3), (4, 5), (6, 7)])
    record = run(Workload.from_tasks(tasks, submit=[0] * 4), GRID, "fifo-job", Run(balancer="least-utilised"))
    assert record.cluster.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("name", ["random", "random?weighted=true"])
def test_drawn_children_depend_on_the_seed_alone(name: str) -> None:
    rows = [(number, 3, 1) for number in range(30)]
    once = placed(rows, name, seed=1)
    assert set(once) == {0, 1}
    assert placed(rows, name, seed=1) == once
    assert placed(rows, name, seed=2) != once


def test_data_local_keeps_the_tasks_of_a_split_job_together() -> None:
    # Neither cluster can run the whole mixed job. b is less loaded than a, but the data of the first task are on a.
    tasks = Tasks.from_edges(
        counts=[1, 3], runtime=[9, 5, 1, 1], cores=[1, 4, 1, 1], kind=[0, 0, 1, 0], kinds=("A", "B"), edges=[(1, 3)]
    )
    root = RouterSpec("root", (ClusterSpec("a", 4, "A"), ClusterSpec("b", 2, "A"), ClusterSpec("c", 1, "B")))
    platform = Platform(root, network=Network(ccr="1"))
    workload = Workload.from_tasks(tasks, submit=[0, 1])
    for name, cluster in (("expected-queue", 1), ("data-local", 0)):
        record = run(workload, platform, "fifo-job", Run(balancer=name))
        assert record.tasks is not None
        assert record.tasks.cluster.tolist() == [0, 0, 2, cluster]


# -- plug-ins ----------------------------------------------------------------------------------------------------------

PLUG_IN = '''from dataclasses import dataclass


@dataclass
class Last:
    """The last child."""

    def pick(self, piece, children, now):
        return len(children) - 1


@dataclass
class Widest:
    """The child with most cores; *bonus* for the first kind."""

    bonus: int = 0

    def score(self, piece, child, now):
        return -sum(cluster.cores + self.bonus for cluster in child.leaves())


class Broken:
    def pick(self, piece, children, now):
        return piece.size


class Mute:
    pass
'''


@pytest.fixture
def plug_in(tmp_path: Path) -> str:
    (tmp_path / "balancers.py").write_text(PLUG_IN)
    return str(tmp_path / "balancers.py")


def test_a_balancer_in_a_plain_file_picks(plug_in: str) -> None:
    assert placed(ROWS, f"{plug_in}:Last") == [1] * 5


def test_a_plain_score_is_wrapped_and_the_lowest_wins(plug_in: str) -> None:
    children = [Leaf(4), Leaf(9), Inner((Leaf(5), Leaf(4)))]
    assert pick(f"{plug_in}:Widest", children) == 1
    assert pick(f"{plug_in}:Widest?bonus=1", children) == 2
    assert placed(ROWS, f"{plug_in}:Widest") == [0] * 5


def test_a_result_reports_the_balancer_and_its_file(plug_in: str) -> None:
    jobs = Workload.from_columns(submit=[0], runtime=[1], cores=[1])
    result = simulate(jobs, platform=GRID, balancer=f"{plug_in}:Widest")
    assert result.options["balancer"] == f"{plug_in}:Widest"
    assert [origin["file"] for origin in result.provenance()["plugins"]] == [plug_in]
    assert simulate(jobs, platform=GRID, balancer=RoundRobin()).options["balancer"] == "RoundRobin()"


def test_a_balancer_that_fails_is_named_with_its_line(plug_in: str) -> None:
    with pytest.raises(PolicyError, match=r"failed in pick in line 24 of .*balancers.py: AttributeError"):
        placed(ROWS, f"{plug_in}:Broken")


@pytest.mark.parametrize("answer", [2, -1, None, 0.5, "a"])
def test_a_pick_that_is_no_child_is_refused(answer: Any) -> None:
    class Odd:
        def pick(self, piece: Any, children: Any, now: int) -> Any:
            return answer

    for odd in (Odd(), PowerOfTwo(Odd()), DataLocal(Odd())):
        with pytest.raises(PolicyError, match=f"Odd.* picked {answer!r} of 2 children"):
            placed(ROWS, odd)


@pytest.mark.parametrize("answer", [float("nan"), None, "a", 1j, [1], np.ones(2)])
def test_a_score_that_is_no_number_is_refused(answer: Any) -> None:
    class Odd:
        def score(self, piece: Any, child: Any, now: int) -> Any:
            return answer

    with pytest.raises(PolicyError, match=r"Odd.* scores a child with .*; expected numbers"):
        placed(ROWS, Odd())


def test_an_invalid_balancer_is_refused(plug_in: str) -> None:
    with pytest.raises(InputError, match="a pick or score"):
        balancer(f"{plug_in}:Mute")
    with pytest.raises(InputError, match=r"RoundRobin is a class; give an instance: RoundRobin\(\)"):
        balancer(RoundRobin)
    with pytest.raises(UnknownNameError, match="unknown balancer 'round-robbin'; did you mean 'round-robin'"):
        simulate(Workload.from_columns(submit=[0], runtime=[1], cores=[1], cores_stated=1), balancer="round-robbin")


def test_a_balancer_object_can_be_used_again() -> None:
    robin = RoundRobin()
    assert placed(ROWS, robin) == placed(ROWS, robin) == [0, 1, 0, 1, 0]
    assert robin == RoundRobin()


def test_balancers_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "balancers"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in registry.names("balancer"))
    assert "include_candidate=False" in told


def test_parameters_of_balancers_are_checked() -> None:
    assert balancer("expected-queue?work=remaining") == ExpectedQueue(work="remaining")
    with pytest.raises(UnknownNameError, match="unknown value of expected-queue"):
        balancer("expected-queue?work=waiting")
    assert isinstance(balancer("data-local"), DataLocal)
