"""Places found by trial: every node for every task, backing out of dead ends; nothing is computed ahead.

This is what section 3.3 says of its look ahead: it finds the first complete placement in the order "best node for the
first task, then for the second, …". Exponential: for machines of a few nodes and jobs of a few tasks.
"""

from __future__ import annotations

from itertools import combinations

from tests.oracles.machine.parts import WHOLE, Demand, Machine, Place
from tests.oracles.machine.room import Room, has_features, has_kind
from tests.oracles.machine.rules import Rule, gpus_for, score

__all__ = ["first_complete", "possible"]


def first_complete(machine: Machine, rule: Rule, demand: Demand, room: Room) -> list[Place] | None:
    """The first complete placement in the order of a rule; None where there is none."""
    if not _pools(demand, room):
        return None

    def lay(places: list[Place], left: Room) -> list[Place] | None:
        if len(places) == demand.tasks:
            return places if _spread(demand, places) else None
        able = [node for node in range(len(machine.nodes)) if _takes(machine, demand, left, places, node)]
        for node in sorted(able, key=lambda node: (score(machine, rule, demand, left, node), node)):
            after = left.copy()
            task = (node, gpus_for(machine, rule, demand, left, node))
            after.take(demand, task)
            found = lay([*places, task], after)
            if found is not None:
                return found
        return None

    return lay([], room)


def possible(machine: Machine, demand: Demand, room: Room) -> bool:
    """Whether there is any placement at all: every node and every choice of GPUs is tried."""

    def lay(places: list[Place], left: Room) -> bool:
        if len(places) == demand.tasks:
            return _spread(demand, places)
        # Tasks are equal: trying them in order of their nodes loses nothing.
        begin = places[-1][0] if places else 0
        for node in range(begin, len(machine.nodes)):
            if _takes(machine, demand, left, places, node):
                for gpus in _choices(demand, left.gpus[node]):
                    after = left.copy()
                    after.take(demand, (node, gpus))
                    if lay([*places, (node, gpus)], after):
                        return True
        return False

    return _pools(demand, room) and lay([], room)


def _pools(demand: Demand, room: Room) -> bool:
    return all(room.pools.get(name, 0) >= amount for name, amount in demand.pools.items())


def _spread(demand: Demand, places: list[Place]) -> bool:
    """Whether the tasks are on enough nodes; pools are no matter of nodes."""
    return demand.tasks == 0 or len({node for node, _ in places}) >= demand.min_nodes


def _choices(demand: Demand, free: list[int]) -> list[tuple[int, ...]]:
    """Every set of GPUs that a task could take."""
    wanted, count = min(demand.gpu, WHOLE), max(1, demand.gpu // WHOLE)
    able = [gpu for gpu, left in enumerate(free) if left >= wanted]
    return [()] if demand.gpu == 0 else list(combinations(able, count))


def _takes(machine: Machine, demand: Demand, left: Room, places: list[Place], number: int) -> bool:
    """Whether a node can take one more task, after the *places* of the others."""
    node, nodes = machine.nodes[number], [node for node, _ in places]
    if not has_features(node, demand) or not has_kind(node, demand):
        return False
    if demand.exclusive and number in left.touched:
        return False
    if nodes.count(number) >= demand.most_on_a_node or len({*nodes, number}) > demand.most_nodes:
        return False
    if any(left.amounts[number].get(name, 0) < amount for name, amount in demand.each.items() if amount):
        return False
    return bool(_choices(demand, left.gpus[number]))
