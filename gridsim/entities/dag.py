"""A DAG job: a process that offers each task to its cluster when what it needs is done and here."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from simpy import Environment, Event

from gridsim.entities.cluster import Cluster
from gridsim.entities.instant import Instant, Ring
from gridsim.entities.link import Links
from gridsim.model.tasks import Tasks


class DagJobs:
    """What the DAG jobs of a run share.

    Attributes
    ----------
    cluster_of : list of Cluster or None
        Where each task has been placed.
    of : list of DagJob or None
        The job of each task; None for tasks without predecessors or successors.
    """

    def __init__(self, env: Environment, tasks: Tasks, links: Links, instant: Instant) -> None:
        self.env, self.links, self.instant = env, links, instant
        self.first, self.to = tasks.edge_first.data, tasks.edge_to.data
        self.missing: list[int] = tasks.predecessor_counts().tolist()
        self.cluster_of: list[Cluster | None] = [None] * len(tasks)
        self.of: list[DagJob | None] = [None] * len(tasks)
        self._needs: list[list[tuple[int, int]]] | None = None

    def needs(self, task: int) -> list[tuple[int, int]]:
        """Which tasks a task needs, and along which edges."""
        if self._needs is None:
            self._needs = [[] for _ in self.of]
            for before in range(len(self.of)):
                for edge in range(self.first[before], self.first[before + 1]):
                    self._needs[self.to[edge]].append((before, edge))
        return self._needs[task]

    def delay_to(self, requests: Sequence[int], cluster: Cluster) -> int:
        """Delays to a cluster of the data of predecessors that are placed, summed over tasks; whole microseconds."""
        return sum(
            self.links.delay(before, edge, source, cluster)
            for request in requests
            for before, edge in self.needs(request)
            if (source := self.cluster_of[before]) is not None
        )

    def placed(self, task: int) -> Cluster:
        """Cluster of a task that has been placed."""
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
        self._wanted = Ring(dags.env, dags.instant.data)
        for task in tasks:
            dags.of[task] = self
        for task in tasks:
            if not dags.missing[task]:
                dags.placed(task).submit(task)
        self.process = dags.env.process(self._run())

    def ended(self, task: int) -> None:
        """A task of the job has ended: pass on its data when all ends of this instant are known.

        That is at once when the next event lies later; the process wakes for what shares its instant with others, and
        to end.
        """
        env = self._dags.env
        if self._left > 1 and not self._wanted.triggered and self._dags.instant.batched and env.peek() > env.now:
            self._pass_on((task,))
            return
        self._news.append(task)
        self._wanted.ring()

    def delivered(self, task: int) -> None:
        """A datum that a task needs has come."""
        touched: list[Cluster] = []
        self.arrive(task, touched)
        for cluster in touched:
            cluster.close()

    def _run(self) -> Generator[Event, None, None]:
        while self._left:
            yield self._wanted
            self._wanted = Ring(self._dags.env, self._dags.instant.data)
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
        """Pass on the data of a task that has ended: here at once, elsewhere along the links."""
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
        """A datum is here: offer the task when it was the last, and note its cluster in *touched*."""
        dags = self._dags
        dags.missing[task] -= 1
        if not dags.missing[task]:
            cluster = dags.placed(task)
            cluster.submit(task)
            if cluster not in touched:
                touched.append(cluster)

    def _count_down(self, task: int, touched: list[Cluster]) -> None:
        """With all transfers of a task starting together: start them when its last predecessor is done."""
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
