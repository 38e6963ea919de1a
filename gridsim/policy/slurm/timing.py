"""When the passes over the queue are due.

Sources: slurm.schedmd.com/sched_config.html; slurm.conf(5), ``SchedulerParameters`` (``batch_sched_delay``,
``bf_interval``, ``defer``, ``sched_interval``, ``sched_min_interval``).
"""

from __future__ import annotations

from gridsim.model.site import Scheduling
from gridsim.model.time import NEVER
from gridsim.policy.slurm.needs import SECOND


class Timing:
    """The clock of a scheduler, and what happened since each pass.

    Parameters
    ----------
    scheduling : Scheduling
        Periods and delays.
    boot : int
        Instant from which periods are counted, whole microseconds.

    Attributes
    ----------
    opened : int
        When anything last changed in favour of a request that waits; whole microseconds.
    """

    def __init__(self, scheduling: Scheduling, boot: int) -> None:
        self._scheduling, self._boot = scheduling, boot
        self._quick, self._last = NEVER, -NEVER  # when the quick pass is due, and when it was last
        self.opened = -NEVER
        self._full = self._backfill = False  # whether anything has changed for them to look at

    def submitted(self, now: int) -> None:
        """A job came that could start."""
        self._catch_up(now)
        if not self._scheduling.defer:
            # "How long … the scheduling of batch jobs can be delayed": since the last pass, in whole seconds of Slurm's
            # own clock.
            tick = now + (self._boot - now) % SECOND
            self._quick = min(self._quick, max(tick, self._last + self._scheduling.batch_delay))

    def wake(self, now: int) -> None:
        """The quick pass is due at once."""
        self._catch_up(now)
        self._quick = min(self._quick, now)

    def _catch_up(self, now: int) -> None:
        """A pass that was due before *now* has been, though nobody was woken for it: the queue was empty."""
        due = max(self._quick, self._last + self._scheduling.least_interval)
        if due < now:
            self._quick, self._last = NEVER, due

    def changed(self, opened: int = -NEVER) -> None:
        """The passes by the clock have something new to look at; it may let others start, from *opened* on."""
        self._full = self._backfill = True
        self.opened = max(self.opened, opened)

    def freed(self, now: int) -> None:
        """Something has become free: all passes have something to look at."""
        self.wake(now)
        self.changed(now)

    def depth(self, now: int) -> int | None:
        """How far down the queue the quick pass looks now, 0 for all of it; None where it is not due."""
        if self._full and self._on_the_clock(now, self._scheduling.full_interval):
            return 0
        due = self._quick <= now and now >= self._last + self._scheduling.least_interval
        return self._scheduling.queue_depth if due else None

    def looked(self, now: int, *, at_all: bool) -> None:
        """The quick pass has been, over all of the queue or its first jobs."""
        self._quick, self._last = NEVER, now
        self._full &= not at_all

    def backfills(self, now: int) -> bool:
        """Whether backfill is due now; it counts as done."""
        due = self._scheduling.backfill and self._backfill and self._on_the_clock(now, self._scheduling.interval)
        self._backfill &= not due
        return due

    def next(self, now: int) -> int:
        """When the next pass is due that could start anything, if nothing happens."""
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
        """First instant after now that is a whole number of periods after the boot."""
        return self._boot + ((now - self._boot) // max(period, 1) + 1) * max(period, 1)
