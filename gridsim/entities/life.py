"""The life of a DAG job: a process that offers each task to its cluster when what it needs is done and here."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from simpy import Environment, Event

from gridsim.entities.cluster import Cluster
from gridsim.entities.instant import Instant, Ring
from gridsim.entities.link import Links
from gridsim.model.tasks import Tasks

__all__ = ["Life", "Lives"]


class Lives:
    """What the lives of a run share.

    Attributes
    ----------
    cluster_of : list of Cluster or None
        Where each task has been placed.
    of : list of Life or None
        The life that each task belongs to; None for tasks without predecessors or successors.
    """

    def __init__(self, env: Environment, tasks: Tasks, links: Links, instant: Instant) -> None:
        self.env, self.links, self.instant = env, links, instant
        self.first, self.to = tasks.edge_first.data, tasks.edge_to.data
        self.missing: list[int] = tasks.predecessor_counts().tolist()
        self.cluster_of: list[Cluster | None] = [None] * len(tasks)
        self.of: list[Life | None] = [None] * len(tasks)
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


class Life:
    """A process that lives from the arrival of a job to the end of its last task.

    Parameters
    ----------
    tasks : sequence of int
        Rows of the job's tasks; all have been placed.
    """

    def __init__(self, lives: Lives, tasks: Sequence[int]) -> None:
        self._lives, self._left = lives, len(tasks)
        self._news: list[int] = []
        self._wanted = Ring(lives.env, lives.instant.data)
        for task in tasks:
            lives.of[task] = self
        for task in tasks:
            if not lives.missing[task]:
                lives.placed(task).submit(task)
        self.process = lives.env.process(self._run())

    def ended(self, task: int) -> None:
        """A task of the job has ended: pass on its data when all ends of this instant are known.

        That is at once when the next event lies later; the process wakes for what shares its instant with others, and
        to end its life.
        """
        env = self._lives.env
        if self._left > 1 and not self._wanted.triggered and self._lives.instant.batched and env.peek() > env.now:
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
            self._wanted = Ring(self._lives.env, self._lives.instant.data)
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
        lives = self._lives
        source = lives.placed(task)
        for edge in range(lives.first[task], lives.first[task + 1]):
            successor = lives.to[edge]
            if lives.links.waits_for_all:
                self._count_down(successor, touched)
            elif (target := lives.placed(successor)) is source or lives.links.free:
                self.arrive(successor, touched)
            else:
                lives.links.send(task, edge, source, target, self, successor)

    def arrive(self, task: int, touched: list[Cluster]) -> None:
        """A datum is here: offer the task when it was the last, and note its cluster in *touched*."""
        lives = self._lives
        lives.missing[task] -= 1
        if not lives.missing[task]:
            cluster = lives.placed(task)
            cluster.submit(task)
            if cluster not in touched:
                touched.append(cluster)

    def _count_down(self, task: int, touched: list[Cluster]) -> None:
        """With all transfers of a task starting together: start them when its last predecessor is done."""
        lives = self._lives
        lives.missing[task] -= 1
        if lives.missing[task]:
            return
        target = lives.placed(task)
        crossing = [(before, edge) for before, edge in lives.needs(task) if lives.placed(before) is not target]
        if not crossing or lives.links.free:
            lives.missing[task] = 1
            self.arrive(task, touched)
            return
        lives.missing[task] = len(crossing)
        for before, edge in crossing:
            lives.links.send(before, edge, lives.placed(before), target, self, task)
