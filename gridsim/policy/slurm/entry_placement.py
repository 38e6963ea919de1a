"""Placements of entries for the cluster: nodes, cores, memory, tasks, and GPUs.

Slurm's selection counts the GPUs of a node. Here an entry gets the free GPUs with the lowest numbers (gres.html: "jobs
… are allocated specific generic resources").
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from gridsim.model.capacity import WHOLE_GPU
from gridsim.model.site import Site
from gridsim.policy.protocols import Placement
from gridsim.policy.slurm.entry_allocation import Held
from gridsim.policy.slurm.nodes import GPUS, Demands, NodeColumns


class Placing:
    """Placements of starting entries, and numbers of the free GPUs.

    Parameters
    ----------
    site : Site
        Defines whether memory is a resource.
    demands, machine, held
        Demands of entries, nodes, and allocations.
    """

    def __init__(self, site: Site, demands: Demands, machine: NodeColumns, held: Held) -> None:
        self._memory = site.memory
        self._node, self._cores = held.node, held.cores
        self._first, self._pieces = held.first.data, held.pieces.data
        names = ("cores", "memory", "core_memory", "gpus", "unit", "most", "exclusive")
        self._demands = {name: memoryview(demands[name]) for name in names}
        self._all_memory = machine.memory
        self._gpus, self._counted = [node.gpus for node in site.nodes], len(machine.now) > GPUS
        self._idle: dict[int, list[int]] = {}  # heaps, for nodes with any GPU taken so far
        self._mine: dict[int, list[tuple[int, list[int]]]] = {}
        self._absent: set[tuple[int, int]] = set()

    def resume(self, before: Placing) -> None:
        """Take over the GPUs of running entries."""
        self._idle, self._mine, self._absent = before._idle, before._mine, before._absent

    def start(self, entry: int) -> Placement:
        """Return the placement of an entry that has just started."""
        first = self._first[entry]
        last = first + self._pieces[entry]
        node, cores = self._node[first:last].tolist(), self._cores[first:last].tolist()
        amounts = {"cores": cores}
        if self._memory:
            amounts["memory"] = self._memory_of(entry, first, last)
        gpus = self._take_gpus(entry, node) if self._counted else ()
        return Placement(node, amounts, gpus, self._tasks(entry, cores))

    def end(self, entry: int) -> None:
        """Release the GPUs of an entry that has ended."""
        for node, numbers in self._mine.pop(entry, ()):
            for number in numbers:
                if (node, number) not in self._absent:
                    heapq.heappush(self._idle[node], number)

    def _memory_of(self, entry: int, first: int, last: int) -> list[int]:
        """Return the MiB of each of the pieces from *first* to *last*."""
        asked, core = self._demands["memory"][entry], self._demands["core_memory"][entry]
        if asked >= 0 and not core:
            return [asked] * (last - first)
        whole = self._all_memory[self._node[first:last]]
        found: list[int] = (whole if asked < 0 else asked + core * self._cores[first:last]).tolist()
        return found

    def _take_gpus(self, entry: int, node: list[int]) -> Sequence[Sequence[tuple[int, int]]]:
        whole, asked = self._demands["exclusive"][entry], self._demands["gpus"][entry]
        if not asked and not whole:
            return ()
        taken = []
        for each in node:
            idle = self._idle_on(each)
            taken.append((each, [heapq.heappop(idle) for _ in range(len(idle) if whole else asked)]))
        self._mine[entry] = taken
        return [[(number, WHOLE_GPU) for number in numbers] for _, numbers in taken]

    def _idle_on(self, node: int) -> list[int]:
        return self._idle.setdefault(node, list(range(self._gpus[node])))

    def change(self, node: int, gpu: int, *, present: bool) -> None:
        """Add a GPU that has returned, or remove one; an entry that ends at this instant may still hold it."""
        (self._absent.discard if present else self._absent.add)((node, gpu))
        self._idle[node] = sorted({*self._idle_on(node), gpu} if present else {*self._idle_on(node)} - {gpu})

    def _tasks(self, entry: int, cores: list[int]) -> list[int]:
        """Return the tasks on each node: the number that fits; on whole nodes the remaining ones, at least one."""
        unit = self._demands["unit"][entry]
        if not self._demands["exclusive"][entry]:
            return cores if unit == 1 else [each // unit for each in cores]
        left, most, tasks = self._demands["cores"][entry] // unit, self._demands["most"][entry], []
        for others, each in zip(range(len(cores) - 1, -1, -1), cores, strict=True):
            tasks.append(min((min(each, most) if most else each) // unit, left - others))
            left -= tasks[-1]
        return tasks
