"""Routers: jobs enter at the root and are routed down the tree to clusters in the same instant, split if necessary."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, Literal

from simpy import Environment, Event, Process

from gridsim.entities.cluster import Cluster, Piece
from gridsim.policy.balancing import pick_of

Split = Literal["task", "kind-group"]
"""Splitting of a piece that fits on no child: by task, or first by kind."""


class Router:
    """Inner node of the tree: sends each piece of a job to a child that can hold it, or splits the piece.

    Parameters
    ----------
    children : sequence of Router or Cluster
        Children in the order that breaks ties.
    balancer : Balancer
        Selects one of the children that can hold a whole piece.
    split : {"task", "kind-group"}
        How to split a piece that fits on no child.
    """

    def __init__(
        self, env: Environment, children: Sequence[Router | Cluster], balancer: Any, *, split: Split = "task"
    ) -> None:
        self._env, self.children, self.balancer, self.split = env, children, balancer, split
        self._known: dict[tuple[tuple[str, int], ...], list[Router | Cluster]] = {}
        self._leaves = [leaf for child in children for leaf in child.leaves()]
        self._cores_only = all(leaf.demands is None for leaf in self._leaves)  # requests differ in cores only

    def leaves(self) -> Sequence[Cluster]:
        """Return the clusters below, from left to right."""
        return self._leaves

    def able(self, piece: Piece, *, present: bool = False) -> bool:
        """Return whether each task of a piece can run on some cluster below; *present*: with any node not lost."""
        leaves = [leaf for leaf in self._leaves if not leaf.all_absent] if present else self._leaves
        if self._cores_only:
            return all(any(leaf.can_run(kind, cores) for leaf in leaves) for kind, cores in piece.widest.items())
        return all(any(leaf.able(piece.alone(task)) for leaf in leaves) for task in piece.requests)

    def place(self, piece: Piece) -> None:
        """Send a piece down the tree (grid spec, section 7)."""
        able = self._able(piece)
        if len(able) > 1 and any(leaf.all_absent for leaf in self._leaves):
            able = [child for child in able if child.able(piece, present=True)] or able
        if len(able) == 1:
            able[0].place(piece)
        elif able:
            able[pick_of(self.balancer, piece, able, int(self._env.now))].place(piece)
        else:
            for part in self._parts(piece):
                self.place(part)

    def _able(self, piece: Piece) -> list[Router | Cluster]:
        """Return the children that can hold a whole piece; computed once for each set of kinds and widths."""
        if not self._cores_only:
            return [child for child in self.children if child.able(piece)]
        key = tuple(piece.widest.items())
        if key not in self._known:
            self._known[key] = [child for child in self.children if child.able(piece)]
        return self._known[key]

    def _parts(self, piece: Piece) -> Iterator[Piece]:
        if self.split == "kind-group" and len(piece.kinds) > 1:
            for kind in piece.kinds:
                yield piece.of_kind(kind)
        else:
            for request in piece.requests:
                yield piece.alone(request)


class Root:
    """Process at the root: a first-in-first-out inbox of jobs, which are routed in the instant of their submission.

    Attributes
    ----------
    inbox : deque of int
        Rows of jobs that are submitted but not routed.

    Parameters
    ----------
    clusters : sequence of Cluster
        All clusters of the tree.
    admit : callable
        Function of the row of a job that places its tasks and offers the first ones to their clusters.

    Notes
    -----
    The process waits for the event that releases the next jobs. It resumes after the callback that fills the inbox.
    """

    def __init__(self, env: Environment, clusters: Sequence[Cluster], admit: Callable[[int], None]) -> None:
        self.inbox: deque[int] = deque()
        self._env, self._clusters, self.admit = env, clusters, admit
        self._arrival: Event | None = None
        self.process: Process | None = None

    def expect(self, arrival: Event) -> None:
        """Wait for *arrival* next; the first call starts the process, after the caller itself waits for the event."""
        self._arrival = arrival
        if self.process is None:
            self.process = self._env.process(self._run())

    def take(self, jobs: Iterable[int]) -> None:
        """Route jobs that are submitted now without an event that the root expects."""
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
