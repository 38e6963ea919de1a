"""Routers: jobs come in at the root and go down the tree to clusters in the same instant, split where they must be."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, Literal

from simpy import Environment, Event, Process

from gridsim.entities.cluster import Cluster
from gridsim.entities.piece import Piece
from gridsim.policy.balancing import pick_of

Split = Literal["task", "kind-group"]
"""How a piece that no child can hold whole is split: task by task, or kind by kind first."""


class Router:
    """An inner node of the tree: sends each piece of a job to a child that can hold it, or splits it.

    Parameters
    ----------
    children : sequence of Router or Cluster
        In the order in which ties are broken.
    balancer : Balancer
        Picks among the children that can hold a piece whole.
    split : {"task", "kind-group"}
        What happens to a piece that none can hold.
    """

    def __init__(
        self, env: Environment, children: Sequence[Router | Cluster], balancer: Any, *, split: Split = "task"
    ) -> None:
        self._env, self.children, self.balancer, self.split = env, children, balancer, split
        self._known: dict[tuple[tuple[str, int], ...], list[Router | Cluster]] = {}
        self._leaves = [leaf for child in children for leaf in child.leaves()]
        self._alike = all(leaf.asked is None for leaf in self._leaves)  # who asks for as many cores, asks for the same

    def leaves(self) -> Sequence[Cluster]:
        """Clusters below, from left to right."""
        return self._leaves

    def able(self, piece: Piece) -> bool:
        """Whether for every task some cluster below can run it."""
        if self._alike:
            return all(any(leaf.can_run(kind, cores) for leaf in self._leaves) for kind, cores in piece.widest.items())
        return all(any(leaf.able(piece.alone(task)) for leaf in self._leaves) for task in piece.requests)

    def place(self, piece: Piece) -> None:
        """Send a piece down the tree (grid spec, section 7)."""
        able = self._able(piece)
        if len(able) == 1:
            able[0].place(piece)
        elif able:
            self._picked(piece, able).place(piece)
        else:
            for part in self._parts(piece):
                self.place(part)

    def _able(self, piece: Piece) -> list[Router | Cluster]:
        """Children that can hold a piece whole, found once for each set of kinds and widths."""
        if not self._alike:
            return [child for child in self.children if child.able(piece)]
        key = tuple(piece.widest.items())
        if key not in self._known:
            self._known[key] = [child for child in self.children if child.able(piece)]
        return self._known[key]

    def _picked(self, piece: Piece, able: Sequence[Router | Cluster]) -> Router | Cluster:
        return able[pick_of(self.balancer, piece, able, int(self._env.now))]

    def _parts(self, piece: Piece) -> Iterator[Piece]:
        if self.split == "kind-group" and len(piece.kinds) > 1:
            for kind in piece.kinds:
                yield piece.of_kind(kind)
        else:
            for request in piece.requests:
                yield piece.alone(request)


class Root:
    """The process at the root: a first-in-first-out inbox of jobs, routed in the instant in which they come.

    Attributes
    ----------
    inbox : deque of int
        Rows of jobs that have come and not been routed.

    Parameters
    ----------
    clusters : sequence of Cluster
        All clusters of the tree.
    admit : callable
        Takes a job's row: places its tasks and lets the first of them be offered.

    Notes
    -----
    The process waits for the event that brings the next jobs, and is resumed by it after whoever put them into the
    inbox.
    """

    def __init__(self, env: Environment, clusters: Sequence[Cluster], admit: Callable[[int], None]) -> None:
        self.inbox: deque[int] = deque()
        self._env, self._clusters, self.admit = env, clusters, admit
        self._arrival: Event | None = None
        self.process: Process | None = None

    def expect(self, arrival: Event) -> None:
        """Wait for *arrival* next; the first one starts the process, after whoever expects it has begun to wait."""
        self._arrival = arrival
        if self.process is None:
            self.process = self._env.process(self._run())

    def take(self, jobs: Iterable[int]) -> None:
        """Route jobs that come now, for whoever expects no event that brings them."""
        self.inbox.extend(jobs)
        self._route()

    def _run(self) -> Generator[Event, None, None]:
        while self._arrival is not None:
            arrival, self._arrival = self._arrival, None
            yield arrival
            self._route()

    def _route(self) -> None:
        inbox, admit = self.inbox, self.admit
        while inbox:
            admit(inbox.popleft())
        for cluster in self._clusters:
            if cluster.dirty:
                cluster.close()
