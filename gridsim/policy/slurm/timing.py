"""Times of the scheduling cycles.

Sources: slurm.schedmd.com/sched_config.html; slurm.conf(5), ``SchedulerParameters`` (``batch_sched_delay``,
``bf_interval``, ``defer``, ``sched_interval``, ``sched_min_interval``).
"""

from __future__ import annotations

from gridsim.model.site import Scheduling
from gridsim.model.time import NEVER
from gridsim.policy.slurm.entry_columns import SECOND


class Timing:
    """Schedule of main and backfill cycles, and changes since the last ones.

    Parameters
    ----------
    scheduling : Scheduling
        Periods and delays.
    boot : int
        Instant from which periods are counted, whole microseconds.

    Attributes
    ----------
    opened : int
        Last change in favour of waiting requests, whole microseconds.
    """

    def __init__(self, scheduling: Scheduling, boot: int) -> None:
        self._scheduling, self._boot = scheduling, boot
        self._quick, self._last = NEVER, -NEVER  # next and last short main cycle
        self.opened = -NEVER
        self._full = self._backfill = False  # whether anything has changed since the last one

    def submitted(self, now: int) -> None:
        """Schedule a cycle after the submission of an eligible job."""
        self._catch_up(now)
        if not self._scheduling.defer:
            # "How long … the scheduling of batch jobs can be delayed": since the last cycle, in whole seconds of
            # Slurm's clock.
            tick = now + (self._boot - now) % SECOND
            self._quick = min(self._quick, max(tick, self._last + self._scheduling.batch_delay))

    def wake(self, now: int) -> None:
        """Schedule a main cycle now."""
        self._catch_up(now)
        self._quick = min(self._quick, now)

    def _catch_up(self, now: int) -> None:
        """Count a cycle that was due before *now* as done: it was not simulated because the queue was empty."""
        due = max(self._quick, self._last + self._scheduling.least_interval)
        if due < now:
            self._quick, self._last = NEVER, due

    def changed(self, opened: int = -NEVER) -> None:
        """Record a change for the periodic cycles; it may let requests start, from *opened* on."""
        self._full = self._backfill = True
        self.opened = max(self.opened, opened)

    def freed(self, now: int) -> None:
        """Record that resources were released, which concerns all cycles."""
        self.wake(now)
        self.changed(now)

    def depth(self, now: int) -> int | None:
        """Return the depth of a main cycle now, 0 for the complete queue; None if no cycle is due."""
        if self._full and self._on_the_clock(now, self._scheduling.full_interval):
            return 0
        due = self._quick <= now and now >= self._last + self._scheduling.least_interval
        return self._scheduling.queue_depth if due else None

    def looked(self, now: int, *, at_all: bool) -> None:
        """Record a main cycle over the complete queue or its first jobs."""
        self._quick, self._last = NEVER, now
        self._full &= not at_all

    def backfills(self, now: int) -> bool:
        """Return whether a backfill cycle is due now, and count it as done."""
        due = self._scheduling.backfill and self._backfill and self._on_the_clock(now, self._scheduling.interval)
        self._backfill &= not due
        return due

    def next(self, now: int) -> int:
        """Return when the next useful cycle is due without other events."""
        times = [NEVER]
        if self._quick < NEVER:
            times.append(max(self._quick, self._last + self._scheduling.least_interval))
        if self._backfill and self._scheduling.backfill:
            times.append(self._next(now, self._scheduling.interval))
        if self._full:
            times.append(self._next(now, self._scheduling.full_interval))
        return min(times)

    def _on_the_clock(self, now: int, period: int) -> bool:
        return (now - self._boot) % max(period, 1) == 0

    def _next(self, now: int, period: int) -> int:
        """Return the first instant after now that is a whole number of periods after the boot."""
        return self._boot + ((now - self._boot) // max(period, 1) + 1) * max(period, 1)
