"""Simulation clock: a SimPy environment in whole microseconds, and the order of events within one instant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from simpy import Environment, Event
from simpy.events import NORMAL, EventPriority

from gridsim.errors import PolicyError
from gridsim.model.time import MICROSECOND

Mode = Literal["batched", "per-event"]


class Instant(NamedTuple):
    """Priorities within one instant: lower values first; ties in the order in which events were scheduled.

    ``batched``: all ends, all overruns and data, changes of capacity, requeued jobs, all arrivals, then one scheduling
    cycle per cluster in tree order (spec of the deadline papers, 2.4; of the grid paper, 2). ``per-event``: changes of
    capacity, each arrival, then each end in the order of the starts, with a scheduling cycle after every event. Known
    overruns precede all other events: a core whose job has its estimated end now counts as free, unless the job is
    known to continue. Events of user processes (``users`` and the next priority: SimPy's urgent and normal) precede the
    scheduling cycles in both modes.
    """

    batched: bool
    arrival: int
    end: int
    overrun: int
    data: int
    capacity: int
    requeue: int
    users: int
    decide: int


BATCHED = Instant(True, arrival=5, end=1, overrun=2, data=2, capacity=3, requeue=4, users=6, decide=8)
PER_EVENT = Instant(False, arrival=2, end=3, overrun=0, data=3, capacity=1, requeue=2, users=6, decide=8)

modes: dict[str, Instant] = {"batched": BATCHED, "per-event": PER_EVENT}


class PriorityEvent(Event):
    """An event after *delay* whole microseconds (0 for later in this instant) with a given priority.

    It is like `simpy.Timeout`, except that the priority is a parameter and the only callback is set at creation.
    """

    def __init__(
        self,
        env: Environment,
        delay: int,
        priority: int,
        callback: Callable[[Any], None] | None = None,
        value: Any = None,
    ) -> None:
        self.env = env
        self.callbacks = [] if callback is None else [callback]
        self._value = value
        self._ok = True
        Environment.schedule(env, self, priority, delay)  # type: ignore[arg-type]  # keeps the priority


class Wakeup(Event):
    """Wake the waiting process once, after all events with a lower priority value in the instant of the call.

    Several calls of `ring` trigger it once. Unlike `simpy.Event.succeed`, it uses a given priority.
    """

    def __init__(self, env: Environment, priority: int) -> None:
        super().__init__(env)
        self._priority = priority

    def ring(self, value: Any = None) -> None:
        """Trigger the event later in this instant."""
        if not self.triggered:
            self._ok, self._value = True, value
            Environment.schedule(self.env, self, self._priority)  # type: ignore[arg-type]


class Clock(Environment):
    """A SimPy environment whose delays are whole microseconds.

    Events that user processes schedule happen after the simulator's own events of the instant, arrivals included, and
    before the scheduling cycle of that instant. Events of class `PriorityEvent` set their own priority.

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
