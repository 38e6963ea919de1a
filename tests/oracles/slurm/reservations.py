"""Reservations: nodes, times and permitted users.

Sources: reservations.html ("the job must be contained completely within the named reservation"; "as the reservation
time approaches, only jobs that can complete by the reservation time will be initiated"), scontrol(1), flags.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gridsim.model.site import Reservation, Site
from gridsim.model.time import NEVER
from tests.oracles.slurm.entries import Entry, Job
from tests.oracles.slurm.nodes import Held

__all__ = ["ANY", "Books", "Window"]

ANY = 1 << 40
"""Cores of a node that an entry may use; this value means all of them."""


@dataclass(eq=False)
class Window:
    """One row of a site's reservations; its times change if it is over early. Whole microseconds."""

    rule: Reservation
    start: int
    end: int
    period: int

    def at(self, instant: int) -> tuple[int, int]:
        """Return its first repetition that ends after an instant, or the last repetition."""
        again = 0
        if self.period > 0 and instant >= self.end:
            again = ((instant - self.end) // self.period + 1) * self.period
        return self.start + again, self.end + again

    def touches(self, start: int, until: int) -> bool:
        """Return whether the reservation overlaps the time between two instants."""
        begin, end = self.at(start)
        return begin < until and end > start

    def contains(self, start: int, until: int) -> bool:
        begin, end = self.at(start)
        return begin <= start and until <= end


class Books:
    """Reservations of a run and the jobs that still request them."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.windows = [Window(each, each.start, each.end, each.period) for each in site.reservations]
        self.names = list(dict.fromkeys(each.name for each in site.reservations))
        self.over: set[str] = set()
        self.asking: dict[str, set[Job]] = {name: set() for name in self.names}
        self.idle_since = {name: self.begins(name) for name in self.names}
        self.change = -NEVER if self.windows else NEVER

    def rows(self, name: str) -> list[Window]:
        return [window for window in self.windows if window.rule.name == name]

    def begins(self, name: str) -> int:
        """Return the first start of a reservation; before all jobs if there is no reservation."""
        return min((each.start for each in self.site.reservations if each.name == name), default=0)

    def _flags(self, name: str) -> Reservation:
        return self.rows(name)[0].rule

    def flexible(self, name: str) -> bool:
        """Return whether jobs of the reservation may also use nodes outside of it."""
        return bool(name) and "FLEX" in self._flags(name).flags

    def binds(self, own: str, other: str) -> bool:
        """Return whether an entry of one reservation, or of none, must avoid another one.

        A reservation that may overlap others takes nodes from those that may not. Of two such reservations, the earlier
        in the list takes the nodes.
        """
        if not own or own == other:
            return own != other
        mine, theirs = self._flags(own).overlaps, self._flags(other).overlaps
        return not (mine and (not theirs or self.names.index(own) < self.names.index(other)))

    def open(
        self, entry: Entry, now: int, start: int, until: int, running: Iterable[Held]
    ) -> tuple[list[int], list[int]]:
        """Return most cores of each node for an entry from *start* to *until*, and cores reserved for others."""
        own, held = entry.reservation, list(running)
        narrow = bool(own) and not self.flexible(own)
        most = [ANY if member and not narrow else 0 for member in entry.members]
        kept = [0] * len(most)
        for window, node, reserved in self._nodes():
            if narrow and window.rule.name == own and entry.members[node] and window.contains(start, until):
                most[node] = ANY if reserved is None else reserved - self._inside(own, node, held)
        for window, node, reserved in self._nodes():
            name = window.rule.name
            if now < window.rule.known or not self.binds(own, name) or not window.touches(start, until):
                continue
            if reserved is None:
                most[node] = 0
            else:
                kept[node] += max(reserved - self._inside(name, node, held), 0)
        return most, kept

    def _nodes(self) -> Iterator[tuple[Window, int, int | None]]:
        """Return each node of each window and the number of its reserved cores; None for all."""
        for window in self.windows:
            partly = dict(window.rule.cores)
            for node, each in enumerate(self.site.nodes):
                if each.name in window.rule.nodes:
                    yield window, node, partly.get(each.name)

    def _inside(self, name: str, node: int, running: Iterable[Held]) -> int:
        """Return the cores of a node that jobs of a reservation hold."""
        return sum(held.pieces.get(node, 0) for held in running if held.entry.reservation == name)

    def in_time(self, entry: Entry, now: int) -> bool:
        """Return whether the reservation that an entry requests, if any, has begun."""
        own = entry.reservation
        return not own or self.flexible(own) or any(window.contains(now, now) for window in self.rows(own))

    def next_change(self, at: int) -> int:
        """Return the first instant after *at* at which a reservation begins, ends, or becomes known."""
        instants = [instant for window in self.windows for instant in (*window.at(at), window.rule.known)]
        return min((instant for instant in instants if instant > at), default=NEVER)

    def seen_all(self, now: int) -> int:
        """Return the instant from which the pattern repeats: all reservations have begun, with one common period."""
        instants = [at for window in self.windows for at in (window.start, window.end) if at < NEVER]
        periods = [window.period for window in self.windows if window.period > 0]
        again = min(math.lcm(*periods), 100 * max(periods)) if periods else 0
        return max([now, *instants]) + again

    def openings(self, now: int) -> Iterator[int]:
        """Yield the current instant and each later start and end, until no new state appears."""
        until = self.seen_all(now)
        while now <= until:
            yield now
            now = self.next_change(now)

    # -- requests of jobs ----------------------------------------------------------------------------------------------

    def ask(self, name: str, job: Job) -> None:
        self.asking[name].add(job)

    def leave(self, name: str, job: Job, now: int) -> None:
        """Remove the request of a job."""
        self.asking[name].discard(job)
        if not self.asking[name]:
            self.idle_since[name] = max(self.begins(name), now)
            self._look_ahead(now)

    def _due(self, name: str) -> int:
        """Return the end of a reservation: its last end, or the end of ``PURGE_COMP`` without requests."""
        rules = [window.rule for window in self.rows(name)]
        last = max(NEVER if rule.period else rule.end for rule in rules)
        idle = next((rule.idle for rule in reversed(rules) if rule.idle is not None), None)
        return last if idle is None or self.asking[name] else min(last, self.idle_since[name] + idle)

    def turn(self, now: int) -> list[str]:
        """Return the reservations that are over from now on."""
        ended = [name for name in self.names if name not in self.over and self._due(name) <= now]
        self.over.update(ended)
        for window in [window for name in ended for window in self.rows(name)]:
            window.start, window.end, window.period = min(window.start, now), now, 0
        self._look_ahead(now)
        return ended

    def _look_ahead(self, now: int) -> None:
        due = min((self._due(name) for name in self.names if name not in self.over), default=NEVER)
        self.change = min(self.next_change(now), max(due, now + 1) if due < NEVER else NEVER)
