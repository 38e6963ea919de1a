"""Placement by exhaustive search with backtracking: every node for every task, without precomputation.

Section 3.3 defines the look-ahead by this search: the first complete placement in the order "best node for the
first task, then for the second, …". The search is exponential; use it for few nodes and tasks.
"""

from __future__ import annotations

from itertools import combinations

from tests.oracles.machine.free_capacity import FreeCapacity, has_features, has_kind
from tests.oracles.machine.parts import WHOLE, Demand, Machine, Place
from tests.oracles.machine.rules import Rule, gpus_for, score

__all__ = ["first_complete", "possible"]


def first_complete(machine: Machine, rule: Rule, demand: Demand, room: FreeCapacity) -> list[Place] | None:
    """Return the first complete placement in the order of a rule, or None."""
    if not _pools(demand, room):
        return None

    def lay(places: list[Place], left: FreeCapacity) -> list[Place] | None:
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


def possible(machine: Machine, demand: Demand, room: FreeCapacity) -> bool:
    """Return whether any placement exists, trying every node and every choice of GPUs."""

    def lay(places: list[Place], left: FreeCapacity) -> bool:
        if len(places) == demand.tasks:
            return _spread(demand, places)
        # Tasks are equal, so it suffices to try them in node order.
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


def _pools(demand: Demand, room: FreeCapacity) -> bool:
    return all(room.pools.get(name, 0) >= amount for name, amount in demand.pools.items())


def _spread(demand: Demand, places: list[Place]) -> bool:
    """Return whether the tasks use enough nodes; pools do not count."""
    return demand.tasks == 0 or len({node for node, _ in places}) >= demand.min_nodes


def _choices(demand: Demand, free: list[int]) -> list[tuple[int, ...]]:
    """Return every set of GPUs that a task could take."""
    wanted, count = min(demand.gpu, WHOLE), max(1, demand.gpu // WHOLE)
    able = [gpu for gpu, left in enumerate(free) if left >= wanted]
    return [()] if demand.gpu == 0 else list(combinations(able, count))


def _takes(machine: Machine, demand: Demand, left: FreeCapacity, places: list[Place], number: int) -> bool:
    """Return whether a node can take another task, given the *places* of the others."""
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
