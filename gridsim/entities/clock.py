"""Simulation clock: a SimPy environment in whole microseconds, with a separate priority for users."""

from __future__ import annotations

from typing import Any

from simpy import Environment, Event
from simpy.events import NORMAL, EventPriority

from gridsim.entities.event_priorities import Instant, PriorityEvent
from gridsim.errors import PolicyError
from gridsim.model.time import MICROSECOND


class Clock(Environment):
    """A SimPy environment whose delays are whole microseconds.

    Events that user processes schedule happen after the simulator's own events of the instant, arrivals included, and
    before the scheduling cycle of that instant. Events of class `gridsim.entities.event_priorities.PriorityEvent` set
    their own priority.

    Parameters
    ----------
    instant : Instant
        Order of events within one instant.

    Attributes
    ----------
    ready : bool
        Whether the simulation is set up; processes started from now on belong to users.
    wakes : int
        Number of pending scheduling cycles that schedulers requested without an event.
    """

    def __init__(self, instant: Instant) -> None:
        super().__init__(0)
        self._users = instant.users
        self._running = False
        self.ready = False
        self.wakes = 0

    def schedule(self, event: Event, priority: EventPriority = NORMAL, delay: float = 0) -> None:
        """Schedule an event *delay* whole microseconds from now.

        Raises
        ------
        PolicyError
            If the delay is negative or not a whole number.
        """
        if self.ready and (delay or not self._running):  # events without delay keep their priority
            if delay != int(delay) or delay < 0:
                raise PolicyError(
                    f"an event in {delay!r} microseconds; the clock counts whole ones, and world.timeout takes seconds"
                )
            priority = EventPriority(self._users + priority)
        super().schedule(event, priority, int(delay))

    def run(self, until: Any = None) -> Any:
        """Run to the end, to an event, or to a time (whole microseconds); events at that time do not run."""
        if until is not None and not isinstance(until, Event):
            until = PriorityEvent(self, int(until) - self.instant, -1)
        was, self._running = self._running, True
        try:
            return super().run(until)
        finally:
            self._running = was

    def run_instant(self) -> int | None:
        """Run all events of the next instant; return its time in whole microseconds, or None at the end."""
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
        """True if only requested scheduling cycles remain."""
        return len(self._queue) == self.wakes

    @property
    def instant(self) -> int:
        """Current time, whole microseconds."""
        return int(self.now)

    @property
    def seconds(self) -> float:
        """Current time, s."""
        return self.instant / MICROSECOND
