"""Tasks of DAG jobs as columns, and single jobs as objects."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError, check_rows
from gridsim.model.decimal_numbers import MOST_CORES, integers
from gridsim.model.time import NEVER, FloatArray, IntArray, seconds, to_us

if TYPE_CHECKING:
    import networkx as nx


ANY_KIND = "any"
"""Architecture of tasks without a requirement."""

_EDGES_A_LEVEL = 200
"""Average number of edges per level above which processing whole levels is faster than single tasks."""


@dataclass(frozen=True, slots=True, eq=False)
class Tasks:
    """All tasks of all jobs, in the order (job order, task index).

    Attributes
    ----------
    first : (n + 1,) int64
        The tasks of the job in row ``i`` are the rows ``first[i]`` to ``first[i + 1] - 1``.
    runtime, estimate : (m,) int64
        True run time and estimate, whole microseconds.
    cores : (m,) int64
        Cores that the task holds from start to end.
    kind : (m,) int16
        Required architecture, an index into ``kinds``.
    kinds : tuple of str
        Names of the architectures.
    edge_first : (m + 1,) int64
        The successors of task ``t`` are ``edge_to[edge_first[t]:edge_first[t + 1]]``.
    edge_to : (e,) int64
        Rows of successors, ascending for each task; a repeated edge is one edge.
    names : tuple of str or None
        Names of the tasks in their source, None if it has only indices.
    volume : (e,) float64 or None
        Data volume of each edge, bytes, if the source has it.
    """

    first: IntArray
    runtime: IntArray
    estimate: IntArray
    cores: IntArray
    kind: npt.NDArray[np.int16]
    kinds: tuple[str, ...]
    edge_first: IntArray
    edge_to: IntArray
    names: tuple[str, ...] | None = None
    volume: FloatArray | None = None

    @classmethod
    def from_edges(
        cls,
        *,
        counts: Any,
        runtime: Any,
        cores: Any,
        edges: Any,
        kind: Any = None,
        kinds: Sequence[str] = (ANY_KIND,),
        estimate: Any = None,
        names: Sequence[str] | None = None,
        volume: Any = None,
        jobs: Sequence[Hashable] | None = None,
        path: object = None,
    ) -> Tasks:
        """Return tasks from columns and a list of edges between their rows.

        Parameters
        ----------
        counts : (n,) array_like of int
            Number of tasks of each job.
        runtime, estimate, cores, kind : (m,) array_like
            Times in seconds; by default estimates are the run times.
        edges : (e, 2) array_like of int
            Pairs of rows: the second task depends on the first.
        jobs : sequence, optional
            Names of the jobs, for errors.
        path : object, optional
            File of the tasks, for errors.

        Raises
        ------
        InputError
            For a job without tasks, an invalid value, an edge to an unknown task or another job, and a cycle; with
            file, job and task.

        Examples
        --------
        >>> tasks = Tasks.from_edges(counts=[3], runtime=[2, 3, 4], cores=[1, 1, 2], edges=[(0, 1), (0, 2)])
        >>> tasks.successors(0).tolist(), tasks.roots().tolist()
        ([1, 2], [0])
        """
        counts = integers(counts, "tasks", path)
        m = int(counts.sum())
        pairs = integers(edges, "edges", path).reshape(-1, 2)
        times = to_us(np.asarray(runtime))
        tasks = cls(
            first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            runtime=times,
            estimate=times.copy() if estimate is None else to_us(np.asarray(estimate)),
            cores=np.broadcast_to(integers(cores, "cores", path), (m,)).copy(),
            kind=np.zeros(m, dtype=np.int16) if kind is None else np.asarray(kind, dtype=np.int16),
            kinds=tuple(kinds),
            edge_first=np.zeros(m + 1, dtype=np.int64),
            edge_to=pairs[:, 1],
            names=None if names is None else tuple(names),
            volume=None if volume is None else np.asarray(volume, dtype=np.float64),
        )
        tasks._check(pairs, jobs, path)
        return tasks._sorted(pairs, jobs, path)

    def _place(self, row: int, jobs: Sequence[Hashable] | None) -> str:
        job = int(np.searchsorted(self.first, row, side="right")) - 1
        task = self.names[row] if self.names is not None else str(row - int(self.first[job]))
        return f"job {jobs[job] if jobs is not None else job + 1} task {task}"

    def _check(self, pairs: IntArray, jobs: Sequence[Hashable] | None, path: object) -> None:
        counts = np.diff(self.first)
        if (counts < 1).any():
            job = int(np.argmax(counts < 1))
            raise InputError(f"job {jobs[job] if jobs is not None else job + 1} has no tasks", path=path, field="tasks")

        def shown(field: str, row: int) -> str:
            value = int(self.cores[row]) if field == "cores" else seconds(int(getattr(self, field)[row]))
            return f"{self._place(row, jobs)} has {value}"

        check_rows(
            shown,
            ("runtime", self.runtime <= 0, "a runtime above 0 s"),
            ("runtime", self.runtime >= NEVER, "a finite run time"),
            ("estimate", self.estimate <= 0, "an estimate above 0 s"),
            ("estimate", self.estimate >= NEVER, "a finite estimate"),
            ("cores", self.cores < 1, "at least 1 core"),
            ("cores", self.cores > MOST_CORES, f"at most {MOST_CORES:,} cores"),
            path=path,
        )
        self._check_sums(jobs, path)
        outside = ((pairs < 0) | (pairs >= len(self))).any(axis=1)
        if not outside.any():
            owner = np.searchsorted(self.first, pairs, side="right")
            outside = owner[:, 0] != owner[:, 1]
        if outside.any():
            one, other = pairs[int(np.argmax(outside))].tolist()
            raise InputError(f"an edge from row {one} to row {other} connects two jobs", path=path, field="edges")
        loop = pairs[:, 0] == pairs[:, 1]
        if loop.any():
            row = int(pairs[int(np.argmax(loop)), 0])
            raise InputError(f"{self._place(row, jobs)} depends on itself", path=path, field="edges")

    def _check_sums(self, jobs: Sequence[Hashable] | None, path: object) -> None:
        """Raise if the lengths of chains of tasks can exceed 64 bits."""
        for field in ("runtime", "estimate") if len(self) else ():
            together = np.add.reduceat(getattr(self, field).astype(np.float64), self.first[:-1])
            if (together >= NEVER).any():
                job = int(np.argmax(together))
                message = (
                    f"tasks of job {jobs[job] if jobs is not None else job + 1} have {together[job] / 1e6:g} s together"
                )
                raise InputError(f"{message}; expected less than {seconds(NEVER - 1):.3g} s", path=path, field=field)

    def _sorted(self, pairs: IntArray, jobs: Sequence[Hashable] | None, path: object) -> Tasks:
        """Return the tasks with edges grouped by their first task, without duplicates; raise for a cycle."""
        key = pairs[:, 0] * (len(self) + 1) + pairs[:, 1]
        _, kept = np.unique(key, return_index=True)
        pairs = pairs[kept]
        starts = np.searchsorted(pairs[:, 0], np.arange(len(self) + 1))
        volume = None if self.volume is None else self.volume[kept]
        tasks = replace(self, edge_first=starts.astype(np.int64), edge_to=pairs[:, 1].copy(), volume=volume)
        if (pairs[:, 0] >= pairs[:, 1]).any() and tasks.topological() is None:
            row = tasks._in_cycle()
            raise InputError(
                f"{self._place(row, jobs)} is in a cycle; expected an acyclic graph", path=path, field="edges"
            )
        return tasks

    def topological(self) -> IntArray | None:
        """Return the rows in an order in which every task follows its predecessors; None if there is a cycle."""
        if (self.edge_to > np.repeat(np.arange(len(self)), np.diff(self.edge_first))).all():
            return np.arange(len(self))
        missing = self.predecessor_counts().tolist()
        ready = [row for row, count in enumerate(missing) if not count]
        order = []
        while ready:
            row = ready.pop()
            order.append(row)
            for successor in self.successors(row).tolist():
                missing[successor] -= 1
                if not missing[successor]:
                    ready.append(successor)
        return np.array(order, dtype=np.int64) if len(order) == len(self) else None

    def chains(self, times: IntArray, transfers: IntArray | None = None) -> IntArray:
        """Return the longest chain of *times* from the beginning of each task, itself included (its upward rank).

        Parameters
        ----------
        times : (m,) int64
            Time of each task.
        transfers : (e,) int64, optional
            Time that each edge adds, in the order of ``edge_to``; 0 by default.
        """
        if not len(self.edge_to):
            return times.copy()
        along = np.zeros(len(self.edge_to), dtype=np.int64) if transfers is None else transfers
        longest = self._chains_by_level(times, along, len(self.edge_to) // _EDGES_A_LEVEL)
        return self._chains_by_task(times, along) if longest is None else longest

    def _chains_by_task(self, times: IntArray, along: IntArray) -> IntArray:
        longest = times.tolist()
        first, to, added = self.edge_first.tolist(), self.edge_to.tolist(), along.tolist()
        order = self.topological()
        assert order is not None
        for row in reversed(order.tolist()):
            if first[row] < first[row + 1]:
                longest[row] += max(added[edge] + longest[to[edge]] for edge in range(first[row], first[row + 1]))
        return np.array(longest, dtype=np.int64)

    def _chains_by_level(self, times: IntArray, along: IntArray, levels: int) -> IntArray | None:
        """Return the same, by whole levels from the last tasks back; None if there are more than *levels*."""
        leaving = np.diff(self.edge_first)
        source = np.repeat(np.arange(len(self)), leaving)
        edges = np.argsort(self.edge_to, kind="stable")
        entering = self.predecessor_counts()
        first = np.cumsum(entering) - entering
        longest, after = times.copy(), np.zeros(len(self), dtype=np.int64)
        ready = np.flatnonzero(leaving == 0)
        for _ in range(levels):
            longest[ready] += after[ready]
            counts = entering[ready]
            begins = np.repeat(first[ready] - (np.cumsum(counts) - counts), counts)
            into = edges[begins + np.arange(len(begins))]
            before = source[into]
            np.maximum.at(after, before, along[into] + longest[self.edge_to[into]])
            np.subtract.at(leaving, before, 1)
            ready = np.unique(before[leaving[before] == 0])
            if not len(ready):
                return longest
        return None

    def _in_cycle(self) -> int:
        """Return a task of a cycle, by repeatedly removing tasks without predecessors or without successors."""
        graph = {row: set(self.successors(row).tolist()) for row in range(len(self))}
        while True:
            targets = set().union(*graph.values())
            gone = {row for row, after in graph.items() if row not in targets or not after & graph.keys()}
            if not gone:
                return min(graph)
            graph = {row: after - gone for row, after in graph.items() if row not in gone}

    def __len__(self) -> int:
        return len(self.runtime)

    def __repr__(self) -> str:
        return f"<Tasks: {len(self):,} of {self.jobs:,} jobs, {len(self.edge_to):,} edges>"

    @property
    def jobs(self) -> int:
        """Number of jobs that the tasks belong to."""
        return len(self.first) - 1

    def job_rows(self) -> IntArray:
        """Return the row of the job of each task."""
        return np.repeat(np.arange(self.jobs), np.diff(self.first))

    def jobs_of(self, rows: IntArray) -> IntArray:
        """Return the row of the job of each of these tasks; -1 for -1."""
        return np.append(self.job_rows(), -1)[rows]

    def successors(self, row: int) -> IntArray:
        """Return the rows of the tasks that depend on this one."""
        return self.edge_to[self.edge_first[row] : self.edge_first[row + 1]]

    def predecessor_counts(self) -> IntArray:
        """Return the number of predecessors of each task."""
        return np.bincount(self.edge_to, minlength=len(self)).astype(np.int64)

    def roots(self) -> IntArray:
        """Return the rows of tasks without predecessors."""
        return np.flatnonzero(self.predecessor_counts() == 0)

    def area(self) -> FloatArray:
        """Return the sum of cores times true run time over the tasks of each job, core-seconds."""
        return np.add.reduceat(self.cores * seconds(self.runtime), self.first[:-1])

    def rows_of(self, jobs: Any) -> IntArray:
        """Return the rows of the tasks of some *jobs* (mask, slice or indices), job after job in that order."""
        begins, counts = self.first[:-1][jobs], np.diff(self.first)[jobs]
        offsets = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        rows: IntArray = np.repeat(begins, counts) + offsets
        return rows

    def select(self, rows: Any) -> Tasks:
        """Return the tasks of the jobs in *rows* (mask, slice or indices), in that order."""
        counts = np.diff(self.first)[rows]
        keep = self.rows_of(rows)
        renumbered = np.full(len(self) + 1, -1, dtype=np.int64)
        renumbered[keep] = np.arange(len(keep))
        edges = np.concatenate(
            [np.arange(self.edge_first[row], self.edge_first[row + 1]) for row in keep] or [np.empty(0, int)]
        ).astype(np.int64)
        return Tasks(
            first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            runtime=self.runtime[keep],
            estimate=self.estimate[keep],
            cores=self.cores[keep],
            kind=self.kind[keep],
            kinds=self.kinds,
            edge_first=np.concatenate([[0], np.cumsum(np.diff(self.edge_first)[keep])]).astype(np.int64),
            edge_to=renumbered[self.edge_to[edges]],
            names=None if self.names is None else tuple(self.names[row] for row in keep),
            volume=None if self.volume is None else self.volume[edges],
        )

    @classmethod
    def from_graphs(cls, graphs: Mapping[Hashable, nx.DiGraph[Any]]) -> Tasks:
        """Return tasks of networkx graphs, one per job; node order is the task index.

        Node attributes are ``exec`` (s) or ``runtime`` (s), ``cores``, and optionally ``kind`` and ``estimate`` (s).

        Raises
        ------
        InputError
            For an undirected graph, a missing attribute, and as in `from_edges`.
        """
        counts: list[int] = []
        nodes: list[tuple[Hashable, Hashable, Mapping[str, Any]]] = []
        edges: list[tuple[int, int]] = []
        for job, graph in graphs.items():
            if not graph.is_directed():
                raise InputError(
                    f"job {job} is an undirected graph; expected a networkx.DiGraph, with edges from each task to the "
                    f"tasks that depend on it",
                    field="edges",
                )
            index = {node: len(nodes) + place for place, node in enumerate(graph)}
            counts.append(len(index))
            edges += [(index[one], index[other]) for one, other in graph.edges]
            nodes += [(job, node, attributes) for node, attributes in graph.nodes(data=True)]
        kinds = tuple(dict.fromkeys(str(attributes.get("kind", ANY_KIND)) for *_, attributes in nodes)) or (ANY_KIND,)
        runtime = [_attribute(job, node, attributes, "exec", "runtime") for job, node, attributes in nodes]
        return cls.from_edges(
            counts=counts,
            runtime=np.array(runtime, dtype=object),
            estimate=np.array(
                [attributes.get("estimate", known) for (*_, attributes), known in zip(nodes, runtime, strict=True)],
                dtype=object,
            ),
            cores=[_attribute(job, node, attributes, "cores") for job, node, attributes in nodes],
            kind=[kinds.index(str(attributes.get("kind", ANY_KIND))) for *_, attributes in nodes],
            kinds=kinds,
            edges=edges,
            names=[str(node) for _, node, _ in nodes],
            jobs=list(graphs),
        )

    def graph(self, job: int) -> nx.DiGraph[int]:
        """Return the job in a row as a graph: task indices with ``exec`` (s), ``cores``, ``kind`` and ``name``."""
        import networkx as nx  # 11 MB and 0.1 s that no simulation needs

        begin, end = int(self.first[job]), int(self.first[job + 1])
        graph: nx.DiGraph[int] = nx.DiGraph()
        for row in range(begin, end):
            graph.add_node(
                row - begin,
                exec=seconds(int(self.runtime[row])),
                cores=int(self.cores[row]),
                kind=self.kinds[self.kind[row]],
                name=self.names[row] if self.names is not None else str(row - begin),
            )
        for row in range(begin, end):
            graph.add_edges_from((row - begin, int(successor) - begin) for successor in self.successors(row))
        return graph


def _attribute(job: Hashable, node: Hashable, attributes: Mapping[str, Any], *names: str) -> Any:
    for name in names:
        if name in attributes:
            return attributes[name]
    raise InputError(f"job {job} task {node} has no '{names[0]}'", field=names[0])


@dataclass(frozen=True, slots=True)
class Task:
    """Rigid task: *cores* cores for *runtime* seconds, with a requested time of *estimate* seconds."""

    cores: int
    runtime: float
    estimate: float
    kind: str = "any"


@dataclass(frozen=True, slots=True)
class Job:
    """Tasks that are submitted together at *submit* (s).

    Parameters
    ----------
    id : int
        Number of the job in its source.
    submit : float
        Submit time, s.
    tasks : tuple of Task
        Tasks in the order of their task index.
    edges : tuple of (int, int)
        Pairs of task indices: the second task depends on the first.
    user : int or None
        Number of the user, if the source has it.
    deadline : float or None
        Latest requested completion, s.
    """

    id: int
    submit: float
    tasks: tuple[Task, ...]
    edges: tuple[tuple[int, int], ...] = ()
    user: int | None = None
    deadline: float | None = None

    @property
    def graph(self) -> nx.DiGraph[int]:
        """The job as a networkx graph, built on access: nodes are task indices with their `Task` as ``task``."""
        import networkx as nx  # 11 MB and 0.1 s that no rigid log needs

        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from((index, {"task": task}) for index, task in enumerate(self.tasks))
        graph.add_edges_from(self.edges)
        return graph
