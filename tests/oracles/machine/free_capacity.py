"""Free capacity, number of tasks a node can take, and feasibility of a demand with the reason if it never fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.oracles.machine.parts import WHOLE, Demand, Hold, Machine, Node, Place

__all__ = ["FreeCapacity", "can_be_placed", "fit", "free_at", "free_over", "reason"]


@dataclass
class FreeCapacity:
    """Free amounts of each node, each of its GPUs and the pools, and the nodes in use by a hold."""

    amounts: list[dict[str, int]]
    gpus: list[list[int]]
    pools: dict[str, int]
    touched: set[int]

    @classmethod
    def empty(cls, machine: Machine) -> FreeCapacity:
        """Return the capacity of the empty machine."""
        return cls(
            [{name: node.capacity.get(name, 0) for name in machine.resources} for node in machine.nodes],
            [[WHOLE] * node.gpus for node in machine.nodes],
            dict(machine.pools),
            set(),
        )

    def copy(self) -> FreeCapacity:
        """Return a copy to subtract from."""
        return FreeCapacity(
            [dict(each) for each in self.amounts], [list(g) for g in self.gpus], dict(self.pools), set(self.touched)
        )

    def take(self, demand: Demand, place: Place) -> None:
        """Subtract the request of one task."""
        node, gpus = place
        for name, amount in demand.each.items():
            self.amounts[node][name] = self.amounts[node].get(name, 0) - amount
        for gpu in gpus:
            self.gpus[node][gpu] -= min(demand.gpu, WHOLE)

    def hold(self, hold: Hold) -> None:
        """Subtract a hold; an exclusive hold takes all of its nodes [R6]."""
        for name, amount in hold.demand.pools.items():
            self.pools[name] -= amount
        for place in hold.places:
            self.take(hold.demand, place)
        self.touched |= hold.nodes()
        if hold.demand.exclusive:
            for node in hold.nodes():
                self.amounts[node] = dict.fromkeys(self.amounts[node], 0)
                self.gpus[node] = [0] * len(self.gpus[node])


def free_at(machine: Machine, holds: Iterable[Hold], instant: int) -> FreeCapacity:
    """Return the free capacity at an instant."""
    room = FreeCapacity.empty(machine)
    for hold in holds:
        if hold.start <= instant < hold.end:
            room.hold(hold)
    return room


def free_over(machine: Machine, holds: Sequence[Hold], begin: int, end: int) -> FreeCapacity:
    """Return the least free capacity in ``[begin, end)``; it decreases only where a hold starts (section 3.1)."""
    instants = [begin, *sorted({hold.start for hold in holds if begin < hold.start < end})]
    least, *others = [free_at(machine, holds, instant) for instant in instants]
    for room in others:
        for node in range(len(machine.nodes)):
            for name, amount in room.amounts[node].items():
                least.amounts[node][name] = min(least.amounts[node][name], amount)
            least.gpus[node] = [min(pair) for pair in zip(least.gpus[node], room.gpus[node], strict=True)]
        least.pools = {name: min(amount, room.pools[name]) for name, amount in least.pools.items()}
        least.touched |= room.touched
    return least


def has_features(node: Node, demand: Demand) -> bool:
    """Return whether a node has all requested features and is in one of the named partitions."""
    return demand.features <= node.features and (not demand.partitions or bool(demand.partitions & node.partitions))


def has_kind(node: Node, demand: Demand) -> bool:
    """Return whether a node has GPUs of an accepted kind, if GPUs are requested."""
    if demand.gpu == 0:
        return True
    return node.gpus > 0 and (demand.gpu_kinds is None or node.gpu_kind in demand.gpu_kinds)


def room_for_tasks(demand: Demand, amounts: dict[str, int], gpus: list[int]) -> int:
    """Return how many tasks fit in the free capacity of a node without limits; at most the tasks of the job."""
    limits = [demand.tasks]
    limits += [amounts.get(name, 0) // amount for name, amount in demand.each.items() if amount > 0]
    if 0 < demand.gpu < WHOLE:
        limits.append(sum(free // demand.gpu for free in gpus))
    if demand.gpu >= WHOLE:
        limits.append(gpus.count(WHOLE) // (demand.gpu // WHOLE))
    return max(0, min(limits))


def fit(machine: Machine, demand: Demand, room: FreeCapacity, number: int) -> int:
    """Return f(n) of section 3.1: the number of tasks of the job that a node can take."""
    node = machine.nodes[number]
    if not has_features(node, demand) or not has_kind(node, demand):
        return 0
    if demand.exclusive and number in room.touched:
        return 0
    return min(demand.most_on_a_node, room_for_tasks(demand, room.amounts[number], room.gpus[number]))


def can_be_placed(machine: Machine, demand: Demand, room: FreeCapacity) -> bool:
    """Return whether a demand fits (section 3.2); placement rules do not matter [R8]."""
    if any(room.pools.get(name, 0) < amount for name, amount in demand.pools.items()):
        return False
    if demand.tasks == 0:
        return True
    fits = sorted((fit(machine, demand, room, number) for number in range(len(machine.nodes))), reverse=True)
    above = [count for count in fits if count > 0]
    return sum(above[: demand.most_nodes]) >= demand.tasks and len(above) >= demand.min_nodes


def reason(machine: Machine, demand: Demand) -> str | None:
    """Return the first reason of section 4.5 why the empty machine cannot hold a demand; None if it can."""
    for name in sorted(demand.pools):
        if demand.pools[name] > machine.pools.get(name, 0):
            return f"pool:{name}"
    if demand.tasks == 0:
        return None
    featured = [node for node in machine.nodes if has_features(node, demand)]
    if not featured:
        return "features"
    hosts = [node for node in featured if has_kind(node, demand)]
    if not hosts:
        return "gpu-kind"
    room = [room_for_tasks(demand, dict(node.capacity), [WHOLE] * node.gpus) for node in hosts]
    if max(room) == 0:
        return "task"
    if sum(room) < demand.tasks:
        return "tasks"
    return None if can_be_placed(machine, demand, FreeCapacity.empty(machine)) else "nodes"
