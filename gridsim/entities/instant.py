"""Order inside one instant: SimPy priorities, and an event that falls on an instant with one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from simpy import Environment, Event

Mode = Literal["batched", "per-event"]


class Instant(NamedTuple):
    """Priorities of one instant: lower comes first; ties in the order in which events were scheduled.

    ``batched``: all ends, all overruns and data, all arrivals, then one pass a cluster in tree order (spec of the
    deadline papers, 2.4; of the grid paper, 2). ``per-event``: each arrival, then each end in the order of starting, a
    pass after every single one. What is known of overruns comes before them all: a core whose job's estimated end is
    now counts as free, unless that job is seen to go on. What processes of a user's own do (``users`` and the next
    priority: SimPy's urgent and normal) comes before the passes in both.
    """

    batched: bool
    arrival: int
    end: int
    overrun: int
    data: int
    users: int
    decide: int


BATCHED = Instant(True, arrival=3, end=1, overrun=2, data=2, users=4, decide=6)
PER_EVENT = Instant(False, arrival=2, end=3, overrun=1, data=3, users=4, decide=6)

modes: dict[str, Instant] = {"batched": BATCHED, "per-event": PER_EVENT}


class At(Event):
    """An event that happens after *delay* (whole microseconds, 0 for later in this instant) with a given priority.

    What `simpy.Timeout` is, with the priority that it fixes left open, and its one callback given at once.
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
        Environment.schedule(env, self, priority, delay)  # type: ignore[arg-type]  # the plain one: these have a place of their own


class Ring(Event):
    """Wakes the process that waits for it, once, when what has a lower priority in the instant of ringing is over.

    However often it is rung until then, it happens once. `simpy.Event.succeed` has SimPy's own priority instead.
    """

    def __init__(self, env: Environment, priority: int) -> None:
        super().__init__(env)
        self._priority = priority

    def ring(self, value: Any = None) -> None:
        """Happen later in this instant."""
        if not self.triggered:
            self._ok, self._value = True, value
            Environment.schedule(self.env, self, self._priority)  # type: ignore[arg-type]
