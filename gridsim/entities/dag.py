"""A DAG job: a process that offers each task to its cluster when its predecessors and their data are complete."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from simpy import Environment, Event

from gridsim.entities.clock import Instant, Wakeup
from gridsim.entities.cluster import Cluster
from gridsim.entities.link import Links
from gridsim.model.tasks import Tasks


class DagJobs:
    """State shared by the DAG jobs of a run.

    Attributes
    ----------
    cluster_of : list of Cluster or None
        Cluster of each task, once placed.
    of : list of DagJob or None
        Job of each task; None for tasks without predecessors or successors.
    """

    def __init__(self, env: Environment, tasks: Tasks, links: Links, instant: Instant) -> None:
        self.env, self.links, self.instant = env, links, instant
        self.first, self.to = tasks.edge_first.data, tasks.edge_to.data
        self.missing: list[int] = tasks.predecessor_counts().tolist()
        self.cluster_of: list[Cluster | None] = [None] * len(tasks)
        self.of: list[DagJob | None] = [None] * len(tasks)
        self._needs: list[list[tuple[int, int]]] | None = None

    def needs(self, task: int) -> list[tuple[int, int]]:
        """Return the predecessors of a task and the edges from them."""
        if self._needs is None:
            self._needs = [[] for _ in self.of]
            for before in range(len(self.of)):
                for edge in range(self.first[before], self.first[before + 1]):
                    self._needs[self.to[edge]].append((before, edge))
        return self._needs[task]

    def delay_to(self, requests: Sequence[int], cluster: Cluster) -> int:
        """Return the delays of data from placed predecessors to a cluster, summed over tasks; whole microseconds."""
        return sum(
            self.links.delay(before, edge, source, cluster)
            for request in requests
            for before, edge in self.needs(request)
            if (source := self.cluster_of[before]) is not None
        )

    def placed(self, task: int) -> Cluster:
        """Return the cluster of a placed task."""
        cluster = self.cluster_of[task]
        assert cluster is not None
        return cluster


class DagJob:
    """A process from the arrival of a job to the end of its last task.

    Parameters
    ----------
    tasks : sequence of int
        Rows of the job's tasks; all have been placed.
    """

    def __init__(self, dags: DagJobs, tasks: Sequence[int]) -> None:
        self._dags, self._left = dags, len(tasks)
        self._news: list[int] = []
        self._wanted = Wakeup(dags.env, dags.instant.data)
        for task in tasks:
            dags.of[task] = self
        for task in tasks:
            if not dags.missing[task]:
                dags.placed(task).submit(task)
        self.process = dags.env.process(self._run())

    def ended(self, task: int) -> None:
        """Send the data of a task that has ended, when all ends of this instant are known.

        If the next event is later, the data are sent at once. Otherwise the process wakes up after the other events of
        this instant.
        """
        env = self._dags.env
        if self._left > 1 and not self._wanted.triggered and self._dags.instant.batched and env.peek() > env.now:
            self._pass_on((task,))
            return
        self._news.append(task)
        self._wanted.ring()

    def failed(self, task: int) -> None:
        """Cancel all tasks that depend on a task that ended without a result."""
        dags, front, gone = self._dags, [task], {task}
        while front:
            before = front.pop()
            for successor in dags.to[dags.first[before] : dags.first[before + 1]]:
                if successor not in gone:
                    gone.add(successor)
                    front.append(successor)
                    dags.placed(successor).give_up(successor)
        self._left -= len(gone)

    def delivered(self, task: int) -> None:
        """Accept a datum that a task needs, and notify the task's cluster if the task is ready."""
        touched: list[Cluster] = []
        self.arrive(task, touched)
        for cluster in touched:
            cluster.close()

    def _run(self) -> Generator[Event, None, None]:
        while self._left:
            yield self._wanted
            self._wanted = Wakeup(self._dags.env, self._dags.instant.data)
            news, self._news = self._news, []
            self._pass_on(news)

    def _pass_on(self, ended: Sequence[int]) -> None:
        touched: list[Cluster] = []
        for task in ended:
            self._left -= 1
            self._send(task, touched)
        for cluster in touched:
            cluster.close()

    def _send(self, task: int, touched: list[Cluster]) -> None:
        """Send the data of an ended task: without delay on the same cluster, along links to others."""
        dags = self._dags
        source = dags.placed(task)
        for edge in range(dags.first[task], dags.first[task + 1]):
            successor = dags.to[edge]
            if dags.links.waits_for_all:
                self._count_down(successor, touched)
            elif (target := dags.placed(successor)) is source or dags.links.free:
                self.arrive(successor, touched)
            else:
                dags.links.send(task, edge, source, target, self, successor)

    def arrive(self, task: int, touched: list[Cluster]) -> None:
        """Accept a datum; if it is the last one of the task, offer the task and append its cluster to *touched*."""
        dags = self._dags
        dags.missing[task] -= 1
        if not dags.missing[task]:
            cluster = dags.placed(task)
            cluster.submit(task)
            if cluster not in touched:
                touched.append(cluster)

    def _count_down(self, task: int, touched: list[Cluster]) -> None:
        """Start all transfers of a task together when its last predecessor has ended."""
        dags = self._dags
        dags.missing[task] -= 1
        if dags.missing[task]:
            return
        target = dags.placed(task)
        crossing = [(before, edge) for before, edge in dags.needs(task) if dags.placed(before) is not target]
        if not crossing or dags.links.free:
            dags.missing[task] = 1
            self.arrive(task, touched)
            return
        dags.missing[task] = len(crossing)
        for before, edge in crossing:
            dags.links.send(before, edge, dags.placed(before), target, self, task)
