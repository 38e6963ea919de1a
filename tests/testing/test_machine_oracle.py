"""The second implementation of machines of nodes: specified cases, and its formulas against step-by-step trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from gridsim.model.demand import Demand as Asked
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import Workload
from gridsim.testing.conformance import CASES as BUILT_IN
from gridsim.testing.conformance import read_cases
from gridsim.testing.conformance.machine import Found, check_fragmentation, check_schedule
from tests.oracles.machine.free_capacity import FreeCapacity, can_be_placed, fit, free_at, free_over
from tests.oracles.machine.parts import Demand, Hold, Machine, Node
from tests.oracles.machine.placing import place
from tests.oracles.machine.random_machines import draw_demand, draw_jobs, draw_machine, draw_rule, smallest
from tests.oracles.machine.rules import Rule, Typical, fragments, gpus_for, typical_of
from tests.oracles.machine.schedule import Job, schedule
from tests.oracles.machine.shares import used, utilisation
from tests.oracles.machine.translated import asked_of, demand_of, jobs_of, machine_of, platform_of, workload_of
from tests.oracles.machine.trial import first_complete, possible

CASES = {path.stem: case for path, case in read_cases([BUILT_IN / "machine"])}


def by_reference(workload: Workload, platform: Platform, algorithm: str, parameters: Mapping[str, Any]) -> Found:
    """Run a case with the second implementation."""
    typical = tuple(Typical(demand_of(asked), count) for asked, count in parameters.get("typical", ()))
    resources = tuple(parameters["resources"]) if "resources" in parameters else None
    rule = Rule(parameters["placement"], parameters.get("align", "high"), resources, typical)
    options = {"k": parameters.get("depth", 1), "compress": parameters.get("compress", "planned")}
    machine = machine_of(platform)
    jobs = schedule(machine, jobs_of(workload), algorithm, rule, **options)
    numbers = workload.job.tolist()
    return {numbers[job.number]: row_of(machine, job) for job in jobs}, utilisation(machine, jobs)


def row_of(machine: Machine, job: Job) -> dict[str, Any]:
    if job.status == "rejected":
        return {"status": job.status, "reason": job.reason}
    row: dict[str, Any] = {"status": job.status, "start": job.start // MICROSECOND, "end": job.end // MICROSECOND}
    if machine.nodes:
        row["nodes"] = {str(node): tasks for node, tasks in job.nodes().items()}
    if job.gpus():
        row["gpus"] = {str(node): {str(gpu): held for gpu, held in of.items()} for node, of in job.gpus().items()}
    return row


def fragments_by_reference(
    platform: Platform, typical: Sequence[tuple[Asked, int]], free: Mapping[str, int], gpus: Sequence[int]
) -> int:
    (node,) = machine_of(platform).nodes
    return fragments(node, [Typical(demand_of(asked), count) for asked, count in typical], free, gpus)


@pytest.mark.parametrize("name", CASES)
def test_the_second_implementation_passes_the_specified_cases(name: str) -> None:
    case = CASES[name]
    if case["kind"] == "fragmentation":
        outcome = check_fragmentation(case, fragments_by_reference)
    else:
        outcome = check_schedule(case, by_reference)
    assert (outcome.status, outcome.messages) == ("passed", ())


@pytest.mark.parametrize("word", ["status", "start", "end", "nodes", "gpus", "utilisation"])
def test_a_case_of_nodes_fails_for_any_difference(word: str) -> None:
    def changed(*of: Any) -> Found:
        rows, shares = by_reference(*of)
        number = next(number for number, row in rows.items() if "gpus" in row)
        other = {number: {**rows[number], word: "another"}} if word != "utilisation" else {}
        return {**rows, **other}, {} if word == "utilisation" else shares

    case = CASES["08-gpu-shares"]
    outcome = check_schedule({**case, "runs": case["runs"][:1]}, changed)
    assert (outcome.status, outcome.failed) == ("failed", 1)


# -- by trial --------------------------------------------------------------------------------------------------------


def rooms(seed: int, count: int) -> Iterator[tuple[Machine, Rule, FreeCapacity, Demand]]:
    """Machines with existing allocations, and small demands."""
    rng = np.random.default_rng(seed)
    while count:
        machine, room = draw_machine(rng), None
        rule = draw_rule(rng, machine)
        room = FreeCapacity.empty(machine)
        for _ in range(int(rng.integers(0, 4))):
            other = draw_demand(rng, machine).on(machine)
            if can_be_placed(machine, other, room):
                room.hold(Hold(other, place(machine, rule, other, room), 0, 9))
        demand = draw_demand(rng, machine).on(machine)
        if demand.tasks <= 5:
            count -= 1
            yield machine, rule, room, demand


def test_a_demand_can_be_placed_if_some_trial_places_it() -> None:
    found = [0, 0]
    for machine, _, room, demand in rooms(1, 400):
        able = can_be_placed(machine, demand, room)
        assert able == possible(machine, demand, room), (machine, demand, room)
        found[able] += 1
    assert min(found) > 50


def test_the_look_ahead_finds_the_first_complete_placement_of_a_search_that_backs_out() -> None:
    passed_by = 0
    for machine, rule, room, demand in rooms(2, 500):
        expected = first_complete(machine, rule, demand, room)
        assert (expected is not None) == can_be_placed(machine, demand, room)
        if expected is not None:
            assert place(machine, rule, demand, room) == expected, (machine, rule, demand, room)
            unlimited = Demand(tasks=demand.tasks, each=demand.each, gpu=demand.gpu)
            passed_by += place(machine, rule, unlimited, room) != expected if not demand.gpu else 0
    assert passed_by > 10, "limits on nodes made no difference"


def test_one_more_task_lowers_the_fit_of_a_node_by_one_whichever_gpu_it_takes() -> None:
    checked = 0
    for machine, rule, room, demand in rooms(3, 400):
        endless = Demand(tasks=99, each=demand.each, gpu=demand.gpu, gpu_kinds=demand.gpu_kinds)
        for number in range(len(machine.nodes)):
            before = fit(machine, endless, room, number)
            if demand.tasks and 0 < before < 99:
                after = room.copy()
                after.take(endless, (number, gpus_for(machine, rule, endless, room, number)))
                assert fit(machine, endless, after, number) == before - 1
                checked += 1
    assert checked > 200


def test_nothing_is_free_over_an_interval_that_is_not_free_at_each_of_its_instants() -> None:
    rng = np.random.default_rng(4)
    for _ in range(60):
        machine = draw_machine(rng)
        jobs = schedule(machine, draw_jobs(rng, machine), "first-fit", draw_rule(rng, machine))
        holds = [Hold(job.demand, job.places, job.start, job.end) for job in jobs if job.start < NEVER]
        begin = int(rng.integers(0, 10))
        over, instants = free_over(machine, holds, begin, begin + 6), range(begin, begin + 6)
        each = [free_at(machine, holds, instant) for instant in instants]
        for node in range(len(machine.nodes)):
            for name, amount in over.amounts[node].items():
                assert amount == min(room.amounts[node][name] for room in each)
            for gpu, left in enumerate(over.gpus[node]):
                assert left == min(room.gpus[node][gpu] for room in each)
        assert over.touched == set().union(*(room.touched for room in each))


# -- parts -----------------------------------------------------------------------------------------------------------


def test_typical_demands_are_the_most_frequent_that_hold_19_of_20_tasks() -> None:
    machine = Machine([Node({"cores": 8, "memory": 64}, gpus=2)])
    demands = [
        *[Demand(tasks=1, each={"cores": 2, "memory": memory}) for memory in (1, 2, 3)],  # memory is omitted: one task
        Demand(tasks=15, each={"cores": 4}, gpu=500),
        Demand(tasks=1, each={"cores": 1}),
        Demand(cores=1),
        Demand(pools={"licence": 1}),
    ]
    typical = typical_of(machine, demands)
    assert [(each.demand.each, each.demand.gpu, each.count) for each in typical] == [
        ({"cores": 4}, 500, 15),
        ({"cores": 2}, 0, 3),
        ({"cores": 1}, 0, 2),  # 18 of 20 tasks are not yet 95 %
    ]


def test_exclusive_use_loses_what_it_holds_and_does_not_request() -> None:
    machine = Machine([Node({"cores": 4}), Node({"cores": 4})])
    alone = Job(1, 0, 10, 10, Demand(tasks=1, each={"cores": 1}, exclusive=True))
    jobs = schedule(machine, [alone, Job(2, 0, 5, 5, Demand(cores=4))])
    assert {name: str(share) for name, share in utilisation(machine, jobs).items()} == {"cores": "3/4"}
    assert {name: str(share) for name, share in used(machine, jobs).items()} == {"cores": "3/8"}


def test_a_failing_case_is_made_small() -> None:
    rng = np.random.default_rng(5)
    machine = draw_machine(rng)
    jobs = [*draw_jobs(rng, machine), Job(98, 3, 1, 1, Demand(cores=1)), Job(99, 3, 1, 1, Demand(cores=1))]
    kept = smallest(jobs, lambda some: sum(job.number > 90 for job in some) == 2)
    assert [job.number for job in kept] == [98, 99]


def test_machines_and_jobs_are_the_same_after_a_translation_there_and_back() -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        machine = draw_machine(rng)
        jobs = sorted(draw_jobs(rng, machine), key=lambda job: (job.submit, job.number))
        assert machine_of(platform_of(machine)) == machine
        assert all(clean(demand_of(asked_of(job.demand))) == clean(job.demand) for job in jobs)
        back = jobs_of(workload_of(jobs))
        assert [clean(job.demand) for job in jobs] == [clean(job.demand) for job in back]
        assert [job.submit * MICROSECOND for job in jobs] == [job.submit for job in back]


def clean(demand: Demand) -> Demand:
    """Without zero amounts."""
    each = {name: amount for name, amount in sorted(demand.each.items()) if amount}
    return Demand(**{**vars(demand), "each": each})
