"""Stranded resources on a machine of nodes, and missing resources of waiting jobs (specification, 3.6 and 5.3).

`stood` replays the schedule of a record once: held resources and waiting jobs. `resource_metrics` returns the metrics
of a record by resource of the machine, as a flat mapping.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.metrics.resources import allocated, concerns_resources, held, node_demands, only_arrivals, runs, share_held
from gridsim.metrics.utilisation import Interval, arrival_window, interval_us, makespan_window, waits
from gridsim.model.capacity import GPU, WHOLE_GPU, Capacity
from gridsim.model.demand import NO_LIMIT, Demands, TypicalTasks, WordSets, typical_tasks
from gridsim.model.time import NEVER, IntArray, to_us
from gridsim.record import Record, Requested, Status

ORDER = "order"
"""Text for jobs that could start and waited for their turn."""

SEVERAL = "several"
"""Text for jobs that could not start even with any single constraint removed."""

_HOSTS, _LIMITS = "features", "nodes"


class Stood(NamedTuple):
    """Stranded and fragmented resources of a machine of nodes.

    Attributes
    ----------
    stranded : mapping of str to float
        Share of each resource of nodes, and of ``gpu``, that was free on nodes where no task of a waiting job fits.
    fragmentation : float
        Idle GPUs that typical tasks cannot use, as a share of all GPUs.
    fragmentation_of_idle : float
        The same as a share of idle GPUs.
    """

    stranded: dict[str, float]
    fragmentation: float
    fragmentation_of_idle: float


def stood(
    record: Record,
    start: float | None = None,
    end: float | None = None,
    *,
    at_last_arrival: bool = False,
    typical: TypicalTasks | None = None,
) -> Stood:
    """Return means over time of stranded and fragmented resources.

    Parameters
    ----------
    start, end : float, optional
        The interval, s; by default from the first submission to the last end.
    at_last_arrival : bool
        Return the values at the last arrival instead of means.
    typical : TypicalTasks, optional
        Typical tasks; by default those of the workload.

    Notes
    -----
    A job that requests only pools needs no node and is ignored. Nothing is stranded while no job waits.
    """
    found = _Replayed(record, typical)
    low, high = interval_us(record, start, end)
    levels = found.play(low, high, to_us(arrival_window(record).end))
    names, width = found.names, len(found.names)
    length = high - low
    numbers = levels[2] if at_last_arrival else levels[0] / length if length > 0 else levels[0] * np.nan
    totals = [found.capacity.total(name) for name in (*names, GPU)]
    stranded = {
        name: float(number / total)
        for name, number, total in zip((*names, GPU), numbers, totals, strict=False)
        if total > 0
    }
    counts = max(1, int(found.typical.counts.sum()))
    gpus = totals[-1]
    return Stood(
        stranded,
        float(numbers[width + 1] / counts / gpus) if gpus else float("nan"),
        float(numbers[width + 2] / counts) if gpus else float("nan"),
    )


def short_of(record: Record, rows: IntArray, instants: IntArray) -> npt.NDArray[np.str_]:
    """Return the constraint that kept each job from starting at an instant, without which it could have started.

    Parameters
    ----------
    rows : (k,) int64
        Jobs (tasks of DAG jobs).
    instants : (k,) int64
        Whole microseconds; the state is evaluated after all events of the instant.

    Returns
    -------
    (k,) str
        The name of a resource, ``gpu``, or of a pool; ``features`` if only nodes with other features, partitions or
        GPU types have free capacity; ``nodes`` if limits on nodes or exclusive use prevent the start; ``several`` if
        removing no single constraint is sufficient; ``order`` if the job could have started and waited for its turn.
    """
    found = _Replayed(record, None)
    order = np.argsort(instants, kind="stable")
    answers = np.zeros(len(rows), dtype=np.int64)
    asked = np.stack([instants[order], found.of[rows[order]]]).astype(np.int64)
    found.play(0, 0, 0, asked, answers)
    words = np.array([*found.names, GPU, _HOSTS, _LIMITS, *found.pools, SEVERAL, ORDER])
    told = np.empty(len(rows), dtype=words.dtype)
    told[order] = words[answers]  # `SEVERAL` and `ORDER` are negative indices
    return told


def lacking(record: Record) -> npt.NDArray[np.str_] | None:
    """Return the missing resource of each job when it began to wait (`short_of`); empty for jobs that did not wait.

    Returns
    -------
    (n,) str or None
        None for DAG jobs, if the machine is one pool of cores, and if the policy reports reasons.
    """
    if record.capacity is None or record.tasks is not None or record.requested is not None:
        return None
    begin, until, row = waits(record)
    waited = until > begin
    row, first = np.unique(row[waited], return_index=True)  # waits of a job are in order of time
    found = np.full(len(record), "", dtype=object)
    found[row] = short_of(record, row, begin[waited][first])
    return found.astype(np.str_)


class _Replayed:
    """Record in the form of the compiled replay."""

    def __init__(self, record: Record, typical: TypicalTasks | None) -> None:
        assert record.capacity is not None
        self.record, self.capacity, self.demands = record, record.capacity, node_demands(record)
        self.names = sorted(self.capacity.amounts)
        numbered = [name for name in self.names if name != "memory"]
        self.typical = typical_tasks(self.demands, numbered) if typical is None else typical
        self.pools = sorted(self.capacity.pools)
        self.of, self.first = self._classes()

    def _classes(self) -> tuple[IntArray, IntArray]:
        """Return the class of each row, and one row of each class."""
        asked = self.demands
        kinds = np.where(asked.gpu > 0, asked.gpu_kinds.of, 0)
        shape = (asked.plain, asked.tasks, asked.gpu, asked.min_nodes, asked.max_nodes, asked.tasks_per_node)
        words = (asked.features.of, asked.partitions.of, kinds, asked.exclusive)
        columns = np.stack([*shape, *words, *asked.each.values(), *asked.pools.values()], axis=1)
        _, first, of = np.unique(columns, axis=0, return_index=True, return_inverse=True)
        return of.reshape(-1), first

    def play(
        self, low: int, high: int, last: int, asked: IntArray | None = None, answers: IntArray | None = None
    ) -> npt.NDArray[np.float64]:
        """Return integrals over ``[low, high)``, final state, state at the *last* arrival, and answers for *asked*."""
        from gridsim.metrics.node_timeline import replay  # compiled: only if a machine has nodes

        capacity, n = self.capacity, len(self.capacity.nodes)
        events, pieces = self._held()
        asked = np.zeros((2, 0), dtype=np.int64) if asked is None else asked
        answers = np.zeros(asked.shape[1], dtype=np.int64) if answers is None else answers
        amounts = [capacity.amounts[name] for name in self.names]
        most = int(capacity.gpus.max(initial=0))
        snapshot = (
            np.stack(amounts, axis=1).copy() if amounts and n else np.zeros((n, len(amounts)), dtype=np.int64),
            np.where(np.arange(most) < capacity.gpus[:, None], WHOLE_GPU, 0).astype(np.int64),
            np.array([capacity.pools[name] for name in self.pools], dtype=np.int64),
            *(np.zeros(n, dtype=np.int64) for _ in range(3)),
            np.zeros(len(self.first), dtype=np.int64),
            np.zeros(len(self.first) + 1, dtype=np.int64),
        )
        levels = (np.zeros((3, len(amounts) + 3)), np.array([low, high, last], dtype=np.int64))
        replay(events, pieces, self._waiting(), self._tasks(), self._typical(), snapshot, levels, asked, answers)
        return levels[0]

    def _held(self) -> tuple[tuple[IntArray, ...], tuple[IntArray, ...]]:
        """Return pieces of nodes, then runs with their amounts of pools, and their allocation and release times."""
        record, held_there = self.record, self.record.allocations
        columns = [held(record, name) for name in self.names]
        pool = [held(record, name) for name in self.pools]
        count = 0 if held_there is None else len(held_there)
        start, end, row = runs(record) if pool else (np.zeros(0, dtype=np.int64),) * 3
        width = max(len(columns), len(pool))
        amounts = np.zeros((count + len(row), width), dtype=np.int64)
        for at, (_, _, amount) in enumerate(columns):
            amounts[:count, at] = amount
        for at, (_, _, amount) in enumerate(pool):
            amounts[count:, at] = amount
        node = np.full(count + len(row), -1, dtype=np.int64)
        first: IntArray = np.zeros(len(node) + 1, dtype=np.int64)
        gpu, share = first[:0], first[:0]
        if held_there is not None:
            node[:count] = held_there.node
            start, end = np.append(held_there.start_us, start), np.append(held_there.end_us, end)
            piece, gpu, share = self._gpus()
            first[1:] = np.cumsum(np.bincount(piece, minlength=len(node)))
        time = np.concatenate([start, end])
        what, sign = np.tile(np.arange(len(node)), 2), np.repeat([1, -1], len(node))
        # Releases of an instant precede its allocations, so free amounts are never negative.
        order = np.lexsort((sign, time))
        order = order[time[order] < NEVER]
        return (time[order], what[order], sign[order]), (node, amounts, first, gpu, share)

    def _gpus(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return piece, number and thousandths of held GPUs, in order of pieces.

        Exclusive jobs hold all GPUs of their nodes.
        """
        pieces, capacity = self.record.allocations, self.capacity
        assert pieces is not None
        whole_nodes = self.demands.exclusive[pieces.job]
        kept = ~whole_nodes[pieces.gpu_row]
        all_of = np.where(whole_nodes & (pieces.node >= 0), capacity.gpus[pieces.node], 0)
        more = np.repeat(np.arange(len(pieces)), all_of)
        number = np.arange(len(more)) - np.repeat(np.cumsum(all_of) - all_of, all_of)
        at = np.append(pieces.gpu_row[kept], more)
        order = np.argsort(at, kind="stable")
        gpu, share = (
            np.append(pieces.gpu[kept], number),
            np.append(pieces.gpu_share[kept], np.full(len(more), WHOLE_GPU)),
        )
        return at[order], gpu[order].astype(np.int64), share[order].astype(np.int64)

    def _waiting(self) -> tuple[IntArray, ...]:
        """Return the instants at which waiting jobs of a class are added and removed; some wait to the end."""
        record = self.record
        begin, until, row = waits(record)
        if record.tasks is None:
            still = np.flatnonzero(record.status == Status.waiting)
            begin = np.append(begin, record.workload.submit[still])
            until, row = np.append(until, np.full(len(still), NEVER)), np.append(row, still)
        kept = until > begin
        begin, until, of = begin[kept], until[kept], self.of[row[kept]]
        time, what = np.concatenate([begin, until]), np.tile(of, 2)
        sign = np.repeat([1, -1], len(of))
        order = np.lexsort((-sign, time))
        order = order[time[order] < NEVER]
        return time[order], what[order], sign[order]

    def _tasks(self) -> tuple[IntArray, IntArray, IntArray, npt.NDArray[np.bool_]]:
        """Return the requests of classes, with the eligible nodes of each."""
        asked, capacity = self.demands.select(self.first), self.capacity
        on_nodes = bool(capacity.nodes)
        plain = asked.plain > 0
        tasks = np.where(plain & on_nodes, asked.plain, asked.tasks)
        none = np.zeros(len(tasks), dtype=np.int64)

        def limit(column: IntArray) -> IntArray:
            return np.where(column == NO_LIMIT, tasks, np.minimum(column, tasks))

        each = [np.where(plain & (name == "cores"), 1, asked.each.get(name, none)) for name in self.names]
        # A request for a resource that no node has never fits; it counts as a node constraint.
        unknown = [column > 0 for name, column in asked.each.items() if name not in capacity.amounts]
        pools = [asked.pools.get(name, none) + (asked.plain if name == "cores" else 0) for name in self.pools]
        table, hosts = self._hosts(asked, unknown)
        shape = [tasks, asked.gpu, asked.exclusive, table, asked.min_nodes]
        shape += [limit(asked.max_nodes), limit(asked.tasks_per_node)]
        return _stacked(shape, len(tasks)), _stacked(each, len(tasks)), _stacked(pools, len(tasks)), hosts

    def _hosts(self, asked: Demands, unknown: list[npt.NDArray[np.bool_]]) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Return the row of each class in the table of hosts, and that table."""
        capacity = self.capacity
        nowhere = np.any(unknown, axis=0) if unknown else np.zeros(len(asked), dtype=np.bool_)
        kinds = np.where(asked.gpu > 0, asked.gpu_kinds.of, 0)
        columns = np.stack([asked.features.of, asked.partitions.of, kinds, asked.gpu > 0, nowhere], axis=1)
        different, of = np.unique(columns, axis=0, return_inverse=True)
        features, partitions = (
            _agree(words, nodes, len(capacity.nodes), all_of)
            for words, nodes, all_of in (
                (asked.features, capacity.features, True),
                (asked.partitions, capacity.partitions, False),
            )
        )
        accepted = _accepted(asked.gpu_kinds.sets, capacity)
        hosts = [
            features[one] & partitions[two] & (accepted[three] | (not gpu)) & (not lost)
            for one, two, three, gpu, lost in different.tolist()
        ]
        return of.reshape(-1), np.array(hosts, dtype=np.bool_).reshape(len(different), len(capacity.nodes))

    def _typical(self) -> tuple[IntArray, ...]:
        typical, m = self.typical, len(self.typical.gpu)
        none = np.zeros(m, dtype=np.int64)
        columns = dict(zip(typical.resources, typical.each.T, strict=True))
        each = _stacked([columns.get(name, none) for name in self.names], m)
        accepted = _accepted(typical.gpu_kinds, self.capacity).astype(np.int64)
        return each, typical.gpu.astype(np.int64), accepted, typical.counts.astype(np.int64)


def _stacked(columns: list[npt.NDArray[np.generic]] | list[IntArray], rows: int) -> IntArray:
    found: IntArray = np.zeros((rows, len(columns)), dtype=np.int64)
    for place, column in enumerate(columns):
        found[:, place] = column
    return found


def _agree(words: WordSets, nodes: tuple[tuple[str, ...], ...], n: int, all_of: bool) -> npt.NDArray[np.bool_]:
    """Return whether nodes have all of (or one of) each set of words; always true if the nodes have no such data."""
    found = np.ones((len(words.sets), n), dtype=np.bool_)
    if not nodes:
        return found
    for row, asked in enumerate(words.sets):
        if asked:
            wanted = set(asked)
            found[row] = [wanted <= set(has) if all_of else bool(wanted & set(has)) for has in nodes]
    return found


def _accepted(kinds: tuple[tuple[str, ...], ...], capacity: Capacity) -> npt.NDArray[np.bool_]:
    """Return whether the GPUs of nodes are of one of each set of types, and exist."""
    has = capacity.gpus > 0
    of = capacity.gpu_kind or (GPU,) * len(has)
    rows = [has & np.array([not asked or kind in asked for kind in of], dtype=np.bool_) for asked in kinds]
    return np.array(rows, dtype=np.bool_).reshape(len(kinds), len(has))


def resource_metrics(
    record: Record, kept: npt.NDArray[np.bool_] | None = None, interval: Interval | None = None
) -> dict[str, float]:
    """Return `gridsim.metrics.summary.RESOURCE_METRICS`; empty if the machine is one pool of cores.

    Parameters
    ----------
    kept : (n,) bool, optional
        Jobs whose waits count; by default all.
    interval : Interval, optional
        Interval of means over time, s; by default from the first submission to the last end. For a run that stops
        before any job has ended, the values are those at the last arrival.
    """
    capacity = record.capacity
    if capacity is None or not concerns_resources(record) or not len(record):
        return {}
    window, last = interval or makespan_window(record), arrival_window(record).end
    arrivals = only_arrivals(record)
    names = [name for name in capacity.resources if capacity.total(name) > 0]
    shares = {
        name: float(allocated(record, name).at(last)) / capacity.total(name)
        if arrivals
        else share_held(record, name, *window)
        for name in names
    }
    found = {f"resource_utilisation[{name}]": share for name, share in shares.items()}
    asked: Requested | Demands | None = record.requested or record.workload.demands
    if asked is not None and asked.exclusive.any():
        found |= {f"resource_used[{name}]": share_held(record, name, *window, used=True) for name in names}
    if record.requested is not None:  # node constraints of its jobs are unknown, and so are stranded resources
        shares = waits_by_reason(record, kept)
        return found | {f"waits_by_reason[{word}]": share for word, share in shares.items()}
    if capacity.nodes:
        told = stood(record, *window, at_last_arrival=arrivals)
        found |= {f"stranded[{name}]": share for name, share in told.stranded.items()}
        if GPU in names:
            found["fragmentation"], found["fragmentation_of_idle"] = told.fragmentation, told.fragmentation_of_idle
    waited = waits_short_of(record, kept)
    return found | {f"waits_short_of[{word}]": share for word, share in waited.items()}


def waits_short_of(record: Record, kept: npt.NDArray[np.bool_] | None = None) -> dict[str, float]:
    """Return the share of total waiting time by missing resource at the begin of each wait, largest first.

    For the keys see `gridsim.metrics.stranding.short_of`.
    """
    begin, until, row = waits(record)
    waited = until > begin
    if kept is not None:
        owner = row if record.workload.tasks is None else record.workload.tasks.job_rows()[row]
        waited &= kept[owner]
    begin, until, row = begin[waited], until[waited], row[waited]
    if not len(row):
        return {}
    return _shares(short_of(record, row, begin), until - begin)


def waits_by_reason(record: Record, kept: npt.NDArray[np.bool_] | None = None) -> dict[str, float]:
    """Return the share of total waiting time by reason of the scheduler, largest first.

    Jobs that never ran are excluded.
    """
    reasons = record.reasons
    if reasons is None:
        return {}
    counted = record.ran if kept is None else record.ran & kept
    rows = counted[reasons.job]
    return _shares(np.array(reasons.words)[reasons.word[rows]], reasons.until_us[rows] - reasons.since_us[rows])


def _shares(words: npt.NDArray[np.str_], length: IntArray) -> dict[str, float]:
    total = float(length.sum(dtype=np.float64))
    found = {word: float(length[words == word].sum(dtype=np.float64)) for word in dict.fromkeys(words.tolist())}
    return {word: part / total for word, part in sorted(found.items(), key=lambda each: (-each[1], each[0])) if part}
