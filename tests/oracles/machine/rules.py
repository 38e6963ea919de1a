"""Order of nodes and GPUs: placement rules, fragmentation, typical demands (sections 3.4 to 3.6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from gridsim.testing.conformance.machine import RULES
from tests.oracles.machine.free_capacity import FreeCapacity, has_kind
from tests.oracles.machine.parts import WHOLE, Demand, Machine, Node

__all__ = ["RULES", "Rule", "Typical", "fragments", "gpus_for", "score", "typical_of"]

POPULARITY = Fraction(95, 100)
"""Smallest share of tasks that the typical demands cover [R23]."""


@dataclass(frozen=True)
class Typical:
    """A typical task and its frequency."""

    demand: Demand
    count: int


@dataclass(frozen=True)
class Rule:
    """A placement rule and its parameters.

    Attributes
    ----------
    name : str
        One of `RULES`.
    align : str
        ``high`` or ``low``, of ``dot-product`` [R12].
    resources : tuple of str, optional
        Names of the resources that count, including ``gpu``; all by default.
    typical : tuple of Typical
        Typical tasks of ``fragmentation``.
    """

    name: str = "first"
    align: str = "high"
    resources: tuple[str, ...] | None = None
    typical: tuple[Typical, ...] = field(default=())


def score(machine: Machine, rule: Rule, demand: Demand, room: FreeCapacity, number: int) -> Fraction | int:
    """Return the exact score of a node for the next task of a job; lowest first (section 3.5, [R21])."""
    if rule.name == "first":
        return 0
    if rule.name == "weight":
        return machine.nodes[number].weight
    if rule.name == "fragmentation":
        before, after = room.copy(), room.copy()
        after.take(demand, (number, gpus_for(machine, rule, demand, room, number)))
        return _fragments(machine, rule, after, number) - _fragments(machine, rule, before, number)
    free = {**room.amounts[number], "gpu": sum(room.gpus[number])}
    asked = {**demand.each, "gpu": demand.gpu}
    names = [name for name in (*machine.resources, "gpu") if machine.largest(name) > 0]
    if rule.resources is not None:
        names = [name for name in names if name in rule.resources]
    shares = [Fraction(free[name], machine.largest(name)) for name in names]
    if rule.name == "dot-product":
        wanted = [Fraction(asked.get(name, 0), machine.largest(name)) for name in names]
        product = sum((one * other for one, other in zip(shares, wanted, strict=True)), Fraction(0))
        return -product if rule.align == "high" else product
    left = sum(shares, Fraction(0))
    return left if rule.name == "pack" else -left


def gpus_for(machine: Machine, rule: Rule, demand: Demand, room: FreeCapacity, number: int) -> tuple[int, ...]:
    """Return the GPUs of a node for the next task (section 3.4, [R13])."""
    free = room.gpus[number]
    if demand.gpu == 0:
        return ()
    if demand.gpu >= WHOLE:
        idle = [gpu for gpu, left in enumerate(free) if left == WHOLE]
        return tuple(idle[: demand.gpu // WHOLE])
    able = [gpu for gpu, left in enumerate(free) if left >= demand.gpu]
    if rule.name == "spread":
        return (max(able, key=lambda gpu: (free[gpu], -gpu)),)
    if rule.name != "fragmentation":
        return (min(able, key=lambda gpu: (free[gpu], gpu)),)

    def afterwards(gpu: int) -> int:
        after = room.copy()
        after.take(demand, (number, (gpu,)))
        return _fragments(machine, rule, after, number)

    return (min(able, key=lambda gpu: (afterwards(gpu), gpu)),)


def _fragments(machine: Machine, rule: Rule, room: FreeCapacity, number: int) -> int:
    return fragments(machine.nodes[number], rule.typical, room.amounts[number], room.gpus[number])


def fragments(node: Node, typical: Iterable[Typical], amounts: Mapping[str, int], gpus: Sequence[int]) -> int:
    """Return F(n) of section 3.6: idle thousandths of GPU that typical tasks cannot use, summed over typical tasks.

    Parameters
    ----------
    amounts : mapping of str to int
        Free amount of each resource of the node.
    gpus : sequence of int
        Free thousandths of each GPU of the node.
    """
    return sum(each.count * _useless(node, each.demand, amounts, gpus) for each in typical)


def _useless(node: Node, task: Demand, amounts: Mapping[str, int], gpus: Sequence[int]) -> int:
    wanted = min(task.gpu, WHOLE)
    short = any(amounts.get(name, 0) < amount for name, amount in task.each.items())
    able = sum(free >= wanted for free in gpus)
    if task.gpu == 0 or not has_kind(node, task) or short or able < max(1, task.gpu // WHOLE):
        return sum(gpus)
    return sum(free for free in gpus if free < wanted)


def typical_of(
    machine: Machine, demands: Iterable[Demand], resources: Sequence[str] | None = None
) -> tuple[Typical, ...]:
    """Return the most frequent distinct tasks of some demands that together cover 95 % of all tasks.

    Parameters
    ----------
    demands : iterable of Demand
        The demands of the jobs, as requested.
    resources : sequence of str, optional
        Node resources that distinguish tasks; by default all but memory.
    """
    names = [name for name in machine.resources if name != "memory"] if resources is None else sorted(resources)
    tasks: Counter[tuple[tuple[int, ...], int, int, tuple[str, ...]]] = Counter()
    for demand in (each.on(machine) for each in demands):
        if demand.tasks:
            amounts = tuple(demand.each.get(name, 0) for name in names)
            kinds = () if demand.gpu == 0 or demand.gpu_kinds is None else tuple(sorted(demand.gpu_kinds))
            tasks[amounts, min(demand.gpu, WHOLE), demand.gpu, kinds] += demand.tasks
    kept, so_far = [], 0
    for (amounts, _, gpu, kinds), count in sorted(tasks.items(), key=lambda each: (each[1], each[0]), reverse=True):
        if so_far >= POPULARITY * tasks.total():
            break
        each = {name: amount for name, amount in zip(names, amounts, strict=True) if amount}
        kept.append(Typical(Demand(tasks=1, each=each, gpu=gpu, gpu_kinds=frozenset(kinds) or None), count))
        so_far += count
    return tuple(kept)
