"""Order within one instant: SimPy priorities, and an event with a given priority."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from simpy import Environment, Event

Mode = Literal["batched", "per-event"]


class Instant(NamedTuple):
    """Priorities within one instant: lower values first; ties in the order in which events were scheduled.

    ``batched``: all ends, all overruns and data, changes of capacity, requeued jobs, all arrivals, then one scheduling
    cycle per cluster in tree order (spec of the deadline papers, 2.4; of the grid paper, 2). ``per-event``: changes of
    capacity, each arrival, then each end in the order of the starts, with a scheduling cycle after every event. Known
    overruns precede all other events but changes of capacity: a core whose job has its estimated end now counts as
    free, unless the job is known to continue. Events of user processes (``users`` and the next priority: SimPy's urgent
    and normal) precede the scheduling cycles in both modes.
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
PER_EVENT = Instant(False, arrival=2, end=3, overrun=1, data=3, capacity=0, requeue=2, users=6, decide=8)

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
