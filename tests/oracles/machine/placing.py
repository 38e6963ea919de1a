"""Placement of a job: task by task with look-ahead (section 3.3), and the earliest place (section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracles.machine.free_capacity import FreeCapacity, can_be_placed, fit, free_over
from tests.oracles.machine.parts import Demand, Hold, Machine, Place
from tests.oracles.machine.rules import Rule, gpus_for, score

__all__ = ["earliest", "place"]


def place(machine: Machine, rule: Rule, demand: Demand, room: FreeCapacity) -> list[Place]:
    """Return places of the tasks of a demand in placement order, or None if it does not fit."""
    numbers = range(len(machine.nodes))
    fits = {number: fit(machine, demand, room, number) for number in numbers}
    counts = dict.fromkeys(numbers, 0)
    left, places = room.copy(), list[Place]()
    for task in range(demand.tasks):
        after = demand.tasks - task - 1
        able = [number for number in numbers if _may_take(demand, fits, counts, number, after)]
        best = min(able, key=lambda number: (score(machine, rule, demand, left, number), number))
        places.append((best, gpus_for(machine, rule, demand, left, best)))
        left.take(demand, places[-1])
        counts[best] += 1
    return places


def _may_take(demand: Demand, fits: dict[int, int], counts: dict[int, int], number: int, after: int) -> bool:
    """Return whether a node may take the next task, so that the tasks *after* it still fit."""
    if counts[number] >= fits[number]:
        return False
    counts = {**counts, number: counts[number] + 1}
    used = [node for node, count in counts.items() if count]
    unused = sorted((fits[node] for node in counts if not counts[node] and fits[node] > 0), reverse=True)
    more = demand.most_nodes - len(used)
    must = max(0, demand.min_nodes - len(used))
    if more < 0:
        return False
    reach = sum(fits[node] - counts[node] for node in used) + sum(unused[:more])
    return reach >= after and must <= after and must <= len(unused)


def earliest(
    machine: Machine, rule: Rule, demand: Demand, length: int, holds: Sequence[Hold], begin: int
) -> tuple[int, list[Place]]:
    """Return the first instant from *begin* at which a demand fits for *length*, and its places.

    The result is *begin* or the end of a hold. The demand must fit on the empty machine.
    """
    for start in sorted({begin, *(hold.end for hold in holds if hold.end > begin)}):
        room = free_over(machine, holds, start, start + length)
        if can_be_placed(machine, demand, room):
            return start, place(machine, rule, demand, room)
    raise AssertionError("after all holds the machine is empty")
