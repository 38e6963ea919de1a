"""Begin and end of advance reservations, and the number of requests for them.

Source: slurm.schedmd.com/reservations.html ("when a reservation ends the reservation request will be removed from any
pending jobs submitted to the reservation and will be put into a held state"; "Reservation Purging After Last Job").
"""

from __future__ import annotations

from gridsim.model.site import Site
from gridsim.model.time import NEVER
from gridsim.policy.slurm.queue_entries import reservation_names
from gridsim.policy.slurm.reservations import Reservations, next_change


class ReservationTimes:
    """Reservations of a run.

    Parameters
    ----------
    site : Site
        The reservations.
    reservations : Reservations
        Their nodes; rows of ended reservations have no effect.

    Attributes
    ----------
    over : set of int
        Reservations that have ended for good.
    reservations : Reservations
        Their nodes.
    change : int
        Next instant at which one begins, ends, or is deleted, whole microseconds.
    """

    def __init__(self, site: Site, reservations: Reservations) -> None:
        self.reservations = reservations
        names = reservation_names(site)
        count = len(names)
        self.over: set[int] = set()
        self._first, self._last, self._idle = [NEVER] * count, [0] * count, [NEVER] * count
        self._wanted = [0] * count
        for each in site.reservations:
            row = names.index(each.name)
            self._first[row] = min(self._first[row], each.start)
            self._last[row] = max(self._last[row], NEVER if each.period else each.end)
            if each.idle is not None:
                self._idle[row] = each.idle
        self._since = list(self._first)
        self.change = -NEVER if count else NEVER

    @property
    def wanted(self) -> bool:
        """True if any request needs one of them."""
        return any(self._wanted)

    def begins(self, reservation: int) -> int:
        """Return the first begin of a reservation; 0 for no reservation (-1)."""
        return self._first[reservation] if reservation >= 0 else 0

    def ask(self, reservation: int, now: int) -> None:
        """Count a submitted request for a reservation."""
        self._wanted[reservation] += 1

    def leave(self, reservation: int, now: int) -> None:
        """Uncount a request for a reservation that has ended."""
        self._wanted[reservation] -= 1
        if not self._wanted[reservation]:
            self._since[reservation] = max(self._first[reservation], now)
            self._look_again(now)

    def _due(self, reservation: int) -> int:
        """Return when a reservation is over: at its end, or when it has been unused for long enough."""
        idle = NEVER
        if self._idle[reservation] < NEVER and not self._wanted[reservation]:
            idle = self._since[reservation] + self._idle[reservation]
        return min(self._last[reservation], idle)

    def turn(self, now: int) -> list[int]:
        """Return the reservations that end now, and update `change`."""
        ended = [row for row in range(len(self._last)) if row not in self.over and self._due(row) <= now]
        self.over.update(ended)
        for row in ended:
            rows = self.reservations.rows
            mine = rows["reservation"] == row
            rows["end"][mine], rows["period"][mine] = now, 0
            rows["start"][mine] = rows["start"][mine].clip(max=now)
        self._look_again(now)
        return ended

    def _look_again(self, now: int) -> None:
        due = min((self._due(row) for row in range(len(self._last)) if row not in self.over), default=NEVER)
        self.change = min(int(next_change(now, self.reservations)), max(due, now + 1) if due < NEVER else NEVER)
