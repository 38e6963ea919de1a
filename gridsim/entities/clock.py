"""The clock of a world: SimPy's environment in whole microseconds, with a place of its own for what users add."""

from __future__ import annotations

from typing import Any

from simpy import Environment, Event
from simpy.events import NORMAL, EventPriority

from gridsim.entities.instant import At, Instant
from gridsim.errors import PolicyError
from gridsim.model.time import MICROSECOND


class Clock(Environment):
    """A SimPy environment whose delays are whole microseconds.

    What processes of a user's own wait for happens after all that comes by itself in its instant, arrivals included,
    and before the pass of that instant; `gridsim.entities.instant.At` says otherwise for gridsim's own events.

    Parameters
    ----------
    instant : Instant
        Order inside one instant.

    Attributes
    ----------
    ready : bool
        Whether the world is made: what is begun from now on is a user's.
    wakes : int
        Passes to come that schedulers want though nothing happens.
    """

    def __init__(self, instant: Instant) -> None:
        super().__init__(0)
        self._users = instant.users
        self._running = False
        self.ready = False
        self.wakes = 0

    def schedule(self, event: Event, priority: EventPriority = NORMAL, delay: float = 0) -> None:
        """Schedule an event, *delay* whole microseconds from now.

        Raises
        ------
        PolicyError
            When the delay is no whole number, or negative.
        """
        if self.ready and (delay or not self._running):  # what happens at once belongs where it is made
            if delay != int(delay) or delay < 0:
                raise PolicyError(
                    f"an event in {delay!r} microseconds; the clock counts whole ones, and world.timeout takes seconds"
                )
            priority = EventPriority(self._users + priority)
        super().schedule(event, priority, int(delay))

    def run(self, until: Any = None) -> Any:
        """Run to the end, to an event, or to an instant (whole microseconds): what happens at it is left."""
        if until is not None and not isinstance(until, Event):
            until = At(self, int(until) - self.instant, -1)
        was, self._running = self._running, True
        try:
            return super().run(until)
        finally:
            self._running = was

    def run_instant(self) -> int | None:
        """Run all that happens in the next instant; which that was, whole microseconds, or None at the end."""
        instant = self.peek()
        if instant == float("inf"):
            return None
        self._running = True
        try:
            while self.peek() == instant:
                self.step()
        finally:
            self._running = False
        return int(instant)

    @property
    def quiet(self) -> bool:
        """Whether nothing is to happen any more but such passes."""
        return len(self._queue) == self.wakes

    @property
    def instant(self) -> int:
        """Now, whole microseconds."""
        return int(self.now)

    @property
    def seconds(self) -> float:
        """Now, s."""
        return self.instant / MICROSECOND
