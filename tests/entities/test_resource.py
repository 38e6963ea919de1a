"""A machine grants feasible requests and rejects others from any caller: cores of a pool, and nodes one by one."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from simpy import Environment, Event

from gridsim.entities.resource import Machine
from gridsim.errors import PolicyError
from gridsim.model.capacity import Capacity
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.policy.protocols import Capabilities, Decision, Placement, Quote, Start
from gridsim.record import Record
from gridsim.simulation import Run, run

SECOND = 1_000_000
TWO = Capacity(("n0", "n1"), {"cores": np.array([4, 4]), "memory": np.array([1000, 500])}, gpus=np.array([2, 0]))


def at(*node: int, gpus: Any = (), **amounts: list[int]) -> Placement:
    return Placement(node, amounts, gpus)


class Placer:
    """Starts every job at its submission on its requested cores, at listed places."""

    def __init__(self, *places: Placement | None, nodes: Capacity | None = TWO, once: bool = True) -> None:
        self.capabilities, self.places, self.waiting = Capabilities(nodes=nodes), places, list[int]()

    def setup(self, cluster: Any, rng: Any) -> None:
        pass

    def quote(self, request: int, now: int) -> Quote:
        return Quote(request)

    def commit(self, quote: Quote, now: int) -> tuple[()]:
        self.waiting.append(quote.request)
        return ()

    def ended(self, request: int, now: int) -> None:
        pass

    def overran(self, request: int, expected_end: int, now: int) -> None:
        pass

    def settled(self, now: int) -> None:
        pass

    def dispatch(self, now: int) -> Decision:
        starts = [Start(request, placement=self.places[request]) for request in self.waiting]
        self.waiting.clear()
        return Decision(starts)

    def __repr__(self) -> str:
        return "Placer()"


def ran(*places: Placement | None, cores: list[int], submit: list[float] | None = None, **options: Any) -> Record:
    jobs = Workload.from_columns(submit=submit or [0] * len(cores), runtime=[10] * len(cores), cores=cores)
    nodes = options.pop("nodes", TWO)
    return run(jobs, Platform.single(8), Placer(*places, nodes=nodes), Run(**options))


WRONG: dict[str, tuple[list[int], list[Placement | None], str]] = {
    "cores of a node": ([3, 2], [at(0, cores=[3]), at(0, cores=[2])], "only 1 cores of node n0 are free"),
    "memory of a node": (
        [1, 1],
        [at(1, cores=[1], memory=[400]), at(1, cores=[1], memory=[101])],
        "only 100 MiB of memory of node n1 are free",
    ),
    "a GPU": (
        [1, 1],
        [at(0, cores=[1], gpus=[[(1, 600)]]), at(0, cores=[1], gpus=[[(0, 500), (1, 500)]])],
        "only 400 thousandths of GPU 1 of node n0 are free",
    ),
    "all cores": ([5, 4], [at(0, 1, cores=[4, 1]), at(1, cores=[4])], "only 3 of 8 cores are free"),
}


@pytest.mark.parametrize("what", WRONG)
def test_nothing_is_granted_twice(what: str) -> None:
    cores, places, told = WRONG[what]
    with pytest.raises(PolicyError, match=r"Placer\(\) starts request 1 \(\d cores\) at 0.0 s, but " + told):
        ran(*places, cores=cores)


@pytest.mark.parametrize("what", WRONG)
def test_nothing_is_granted_twice_within_an_instant_of_events(what: str) -> None:
    cores, places, _ = WRONG[what]
    with pytest.raises(PolicyError, match=r"Placer\(\) has .* more .*in use at 0.0 s than"):
        ran(*places, cores=cores, instant="per-event")


@pytest.mark.parametrize("what", WRONG)
def test_cores_of_a_job_that_ends_now_may_be_lent_between_two_events(what: str) -> None:
    """The second arrives as the first ends; its arrival is the earlier event of that instant."""
    cores, places, _ = WRONG[what]
    record = ran(*places, cores=cores, submit=[0, 10], instant="per-event")
    assert record.start.tolist() == [0, 10]


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (at(2, cores=[2]), "it is placed on node 2; there are 2, from 0"),
        (at(-1, cores=[2]), "it is placed on node -1"),
        (at(cores=[]), "it has no nodes"),
        (at(0.5, cores=[2]), r"its node are \[0.5\]; whole numbers are needed"),  # type: ignore[arg-type]
        (at(0, cores=[float("nan")]), r"its cores are \[nan\]; whole numbers are needed"),
        (at(0, cores=[2], gpus=[[(0, 500.5)]]), r"its GPUs are \[\[\(0, 500.5\)\]\]; whole numbers are needed"),
        (at(0, 0, cores=[1, 1]), "it is placed on a node twice"),
        (at(0, cores=[1]), "it is placed on 1 of them"),
        (at(0, memory=[1]), "it is placed on 0 of them"),
        (at(0, cores=[2], licences=[1]), "nodes have no licences; they have cores, memory"),
        (at(0, cores=[2], memory=[1, 1]), r"its memory are \[1, 1\]"),
        (at(0, cores=[2], memory=[-1]), r"its memory are \[-1\]"),
        (at(0, cores=[2], gpus=[[(2, 1000)]]), "node n0 has no GPU 2; it has 2, from 0"),
        (at(1, cores=[2], gpus=[[(0, 1000)]]), "node n1 has no GPU 0"),
        (at(0, cores=[2], gpus=[[(0, 1001)]]), "1001 thousandths of a GPU cannot be held"),
        (at(0, 1, cores=[1, 1], gpus=[[(0, 1000)]]), "it has GPUs on 1 of 2 nodes"),
    ],
)
@pytest.mark.parametrize("instant", ["batched", "per-event"])
def test_an_invalid_placement_is_refused(place: Placement, told: str, instant: str) -> None:
    with pytest.raises(PolicyError, match=told):
        ran(place, cores=[2], instant=instant)


def test_a_pool_has_no_nodes() -> None:
    with pytest.raises(PolicyError, match="it is placed on nodes, but the machine has none"):
        ran(at(0, cores=[2]), cores=[2], nodes=None)


def test_a_start_without_a_placement_gets_the_first_nodes_with_free_cores() -> None:
    record = ran(None, at(1, cores=[2]), None, cores=[3, 2, 3])
    held = record.allocations
    assert held is not None
    rows = zip(held.job.tolist(), held.node.tolist(), held.amounts["cores"].tolist(), strict=True)
    assert list(rows) == [(0, 0, 3), (1, 1, 2), (2, 0, 1), (2, 1, 2)]


def test_absent_nodes_are_given_to_no_job() -> None:
    machine = Machine(Environment(), 8, TWO)
    assert machine.nodes is not None
    machine.nodes.absent[0] = 1
    with pytest.raises(PolicyError, match="node n0 is absent"):
        machine.take(0, 2, NEVER, at(0, cores=[2]))
    placement = Machine(Environment(), 8, TWO).take(0, 5, NEVER)
    assert placement is not None
    assert placement.node == [0, 1]
    machine = Machine(Environment(), 8, TWO)
    assert machine.nodes is not None
    machine.nodes.absent[0] = 1
    placement = machine.take(0, 4, NEVER)
    assert placement is not None
    assert placement.node == [1]
    with pytest.raises(PolicyError, match="too few of its nodes are free"):
        machine.take(1, 1, NEVER)


def test_all_is_free_again_when_jobs_have_gone() -> None:
    machine = Machine(Environment(), 8, TWO)
    for _ in range(3):
        machine.take(7, 3, 50, at(0, cores=[3], memory=[1000], gpus=[[(0, 1000), (1, 1)]]))
        machine.take(8, 5, 60, at(0, 1, cores=[1, 4]))
        assert machine.free == 0
        assert machine.jobs == {7: (3, 50), 8: (5, 60)}
        machine.give_back(7)
        machine.give_back(8)
    assert machine.free == 8
    assert machine.nodes is not None
    assert machine.nodes.left.tolist() == [[4, 4], [1000, 500]]
    assert machine.nodes.gpus.tolist() == [[1000, 1000], [0, 0]]
    assert not machine.jobs


def test_questions_of_what_runs() -> None:
    machine = Machine(Environment(), 8)
    machine.take(0, 5, 40)
    machine.take(1, 3, 20)
    assert machine.left(30) == 5 * 10
    assert machine.earliest([(3, 0)], 0) == 20
    assert machine.earliest([(4, 100), (4, 0)], 0) == 40
    assert machine.earliest([(4, 100), (4, 10), (3, 0)], 0) == 50


# -- as a resource ---------------------------------------------------------------------------------------------------


def crew(machine: Machine, cores: int, lasts: int, seen: list[tuple[int, str, int]]) -> Generator[Event, Any, None]:
    env = machine._env
    held = machine.request(cores)
    yield held
    seen.append((int(env.now), "has", cores))
    yield env.timeout(lasts)
    yield machine.release(held)
    seen.append((int(env.now), "gave back", cores))


@pytest.mark.parametrize("nodes", [None, TWO])
def test_processes_of_a_user_wait_for_idle_cores_one_after_another(nodes: Capacity | None) -> None:
    env = Environment()
    machine, seen = Machine(env, 8, nodes), list[tuple[int, str, int]]()
    machine.take(0, 6, NEVER)
    env.process(crew(machine, 5, 10, seen))
    env.process(crew(machine, 1, 3, seen))  # is idle, but an earlier request waits

    def job() -> Generator[Event, Any, None]:
        yield env.timeout(4)
        machine.give_back(0)

    env.process(job())
    env.run()
    assert seen == [(4, "has", 5), (4, "has", 1), (7, "gave back", 1), (14, "gave back", 5)]
    assert machine.free == 8


def test_impossible_and_unheld_resources_are_refused() -> None:
    machine = Machine(Environment(), 8)
    with pytest.raises(PolicyError, match="9 cores are requested, but the machine has 8"):
        machine.request(9)
    held = machine.request(8)
    waiting = machine.request(1)
    with pytest.raises(PolicyError, match="1 cores are released, but the request does not hold them"):
        machine.release(waiting)
    machine.release(held)
    with pytest.raises(PolicyError, match="does not hold"):
        machine.release(held)
