"""What requests of several sizes ask of a machine on each of them: a size has its number of tasks, all else by task.

The cores of a task, and what it wants beside them, stay as they are; pools are asked for by the job as a whole. So a
request of tasks of 4 cores has sizes that are multiples of 4 (specification of machines, 4.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from gridsim.model.demand import Demands
from gridsim.model.time import IntArray

__all__ = ["SizedDemands"]


class SizedDemands:
    """Sizes of requests, and the class of the demand of each.

    Parameters
    ----------
    demands : Demands
        Of the sizes as asked for, one a request.
    least, most : (n,) int64
        Ranges of cores.
    named : ((n + 1,) int64, (k,) int64), optional
        Sizes of requests that may have some of their range only: those of request *i* are ``named[1][named[0][i]:…]``.

    Attributes
    ----------
    expanded : Demands
        The demands of all other sizes: of each different task, and number of tasks that some request may have.
    """

    def __init__(
        self, demands: Demands, least: IntArray, most: IntArray, named: tuple[IntArray, IntArray] | None = None
    ) -> None:
        self._least, self._most, self._named = least, most, named
        none = np.zeros(len(demands), dtype=np.int64)
        plain = demands.plain > 0
        self._each: IntArray = np.where(plain, 1, demands.each.get("cores", none) * (demands.tasks > 0))
        # Cores that are a pool's belong to no task: such a request has the size that it asks for.
        self._each[demands.pools.get("cores", none) > 0] = 0
        self._asked = demands.cores
        alike, first = self._alike(demands, plain)
        each = np.maximum(self._each, 1)
        low, high = -(-least // each), most // each
        begin = np.full(len(first), np.iinfo(np.int64).max)
        end: IntArray = np.zeros(len(first), dtype=np.int64)
        np.minimum.at(begin, alike, low)
        np.maximum.at(end, alike, high)
        count = np.where(self._each[first] > 0, np.maximum(0, end - begin + 1), 0)
        # Of request i on so many tasks: class number _place[i] + tasks.
        self._place: IntArray = (np.cumsum(count) - count - begin)[alike]
        tasks = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count - begin, count)
        rows = np.repeat(first, count)
        chosen = demands.select(rows)
        self.expanded = replace(chosen, plain=np.where(plain[rows], tasks, 0), tasks=np.where(plain[rows], 0, tasks))
        self._enough = tasks >= self.expanded.min_nodes
        self._own, self._own_able = none, plain
        self._classes: IntArray = tasks
        self._able = self._enough

    @staticmethod
    def _alike(demands: Demands, plain: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
        """Which requests differ in nothing but the number of tasks, and the first of each kind."""
        words = (demands.gpu_kinds.of, demands.features.of, demands.partitions.of)
        shape = (plain, demands.gpu, demands.min_nodes, demands.max_nodes, demands.tasks_per_node, demands.exclusive)
        columns = [*shape, *words, *demands.each.values(), *demands.pools.values()]
        table = np.stack([np.asarray(column).astype(np.int64) for column in columns], axis=1)
        _, first, alike = np.unique(table, axis=0, return_index=True, return_inverse=True)
        return alike.reshape(-1).astype(np.int64), first.astype(np.int64)

    def known(self, own: IntArray, classes: IntArray, reasons: Sequence[str]) -> None:
        """Take down the classes of the requests as they ask, and of `expanded`, and why any cannot be held."""
        able = np.array([not reason for reason in reasons], dtype=np.bool_)
        self._own, self._own_able, self._classes = own, able[own], classes
        self._able = able[classes] & self._enough

    def class_on(self, request: int, cores: int) -> int:
        """Class of the demand of a request on so many cores, one of its sizes."""
        if cores == self._asked[request]:
            return int(self._own[request])
        return int(self._classes[self._place[request] + cores // self._each[request]])

    def of(self, request: int) -> IntArray:
        """Sizes of a request that the empty machine can hold, ascending; where none is of its range, that asked for."""
        each = int(self._each[request])
        if not each:
            return self._asked[request : request + 1] if self._own_able[request] else self._asked[:0]
        tasks = np.arange(-(-int(self._least[request]) // each), int(self._most[request]) // each + 1)
        found: IntArray = tasks[self._able[self._place[request] + tasks]] * each
        if self._named is not None:
            begin, end = self._named[0][request : request + 2].tolist()
            found = found[np.isin(found, self._named[1][begin:end])] if begin < end else found
        if not len(found) and self._least[request] <= self._most[request] and self._own_able[request]:
            return self._asked[request : request + 1]  # no whole tasks within its range
        return found

    def holds_asked(self, request: int) -> bool:
        """Whether the empty machine can hold a request of the size that it asks for."""
        return bool(self._own_able[request])

    def able(self) -> npt.NDArray[np.bool_]:
        """Whether each request has any such size; (n,)."""
        return np.array([len(self.of(request)) > 0 for request in range(len(self._asked))], dtype=np.bool_)
