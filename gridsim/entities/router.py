"""Routers: jobs come in at the root and go down the tree to a cluster in the same instant."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence

from simpy import Environment, Event, Process

from gridsim.entities.cluster import Cluster

__all__ = ["Router"]


class Router:
    """A process with a first-in-first-out inbox over clusters (routers below routers come with the balancers).

    Attributes
    ----------
    inbox : deque of int
        Requests that have come and not been passed on.

    Notes
    -----
    The router waits for the event that brings the next requests, and is resumed by it after whoever put them into the
    inbox. Requests are passed on in that instant, so the order of releases is the order of routing.
    """

    def __init__(self, env: Environment, children: Sequence[Cluster]) -> None:
        self.inbox: deque[int] = deque()
        self._env, self._children = env, children
        self._arrival: Event | None = None
        self.process: Process | None = None

    def expect(self, arrival: Event) -> None:
        """Wait for *arrival* next; the first one starts the process, after whoever expects it has begun to wait."""
        self._arrival = arrival
        if self.process is None:
            self.process = self._env.process(self._run())

    def _run(self) -> Generator[Event, None, None]:
        inbox, child = self.inbox, self._children[0]
        while self._arrival is not None:
            arrival, self._arrival = self._arrival, None
            yield arrival
            while inbox:
                child.submit(inbox.popleft())
            child.close()
