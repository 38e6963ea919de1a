"""Flags of a plan in the compiled event loop: how it is compressed, and what has happened since that was done."""

# The decorators hide types from a type checker: they are in the docstrings.
from __future__ import annotations

from gridsim.profile.compiled import lean
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["arrange", "note_free"]

COMPRESS, EVERY, FRONTIER, OVERRAN, UNSETTLED, HOLES, RANKS = range(7)
NONE, IN_ORDER, BY_RANK = range(3)
"""Flags of a plan: how it is compressed and whether after every end; the end of what was given back since; whether
somebody goes on who should have ended; whether ends have not been looked at; where ends are promised, whether somebody
may wait who could start earlier; and from here on the rank of each request by which it moves up, 0 by arrival."""


@lean
def note_free(now, until, flags):  # type: ignore[no-untyped-def]
    """Note until when a request that ended would have held something."""
    if flags[EVERY]:
        until = max(until, now + 1)
    if until > now:
        flags[FRONTIER] = max(flags[FRONTIER], until)


@lean
def arrange(waiting, meta, order, flags):  # type: ignore[no-untyped-def]
    """Write the places of the waiting requests to *order*: as planned, or by rank, ties by arrival."""
    count, ranks = meta[TAIL] - meta[HEAD], flags[RANKS:]
    for k in range(count):
        order[k] = meta[HEAD] + k
    if flags[COMPRESS] != BY_RANK:
        return
    stride = 1
    while stride * 3 + 1 < count:
        stride = stride * 3 + 1
    while stride > 0:
        for k in range(stride, count):
            place = order[k]
            i = k
            row = waiting[place]
            while i >= stride:
                other = waiting[order[i - stride]]
                if ranks[other] < ranks[row] or (ranks[other] == ranks[row] and other < row):
                    break
                order[i] = order[i - stride]
                i -= stride
            order[i] = place
        stride //= 3
