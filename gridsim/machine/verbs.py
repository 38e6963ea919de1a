"""Verbs of a machine: the class of the machine, `Pool` or `Nodes`, selects the implementation, else the one here.

A scheduling cycle calls `open_cycle` or `resume_cycle`, then the others, then `close_cycle`. Plans have verbs of their
own. Requests are rows; instants and durations are whole microseconds.
"""

# The decorators hide types from a type checker: they are in the docstrings.
from __future__ import annotations

from gridsim.machine.njit import verb


@verb
def open_cycle(machine, now):  # type: ignore[no-untyped-def]
    """Begin a cycle, without reservations of its own; requests whose expected end has passed hold nothing in it."""


@verb
def resume_cycle(machine, now):  # type: ignore[no-untyped-def]
    """Continue the last cycle with its reservations: since then only time has passed."""


@verb
def close_cycle(machine, rows, count):  # type: ignore[no-untyped-def]
    """End a cycle that has reserved for the first *count* of *rows*."""


@verb
def keeps_reservations(machine):  # type: ignore[no-untyped-def]
    """Return whether a cycle can be resumed with its reservations."""
    return False


@verb
def is_full(machine):  # type: ignore[no-untyped-def]
    """Return whether no request can start in this cycle any more, as far as that is known without testing one."""
    return False


@verb
def nothing_fits(machine, now, waiting):  # type: ignore[no-untyped-def]
    """Return whether it is known before a cycle that none of the requests in the queue *waiting* fits."""
    return False


@verb
def fits_now(machine, now, row):  # type: ignore[no-untyped-def]
    """Return whether a request fits beside the running requests."""


@verb
def fits_until(machine, now, row, duration):  # type: ignore[no-untyped-def]
    """Return whether a request that fits now also fits beside the reservations for *duration*."""


@verb
def reserve(machine, now, row, duration, more):  # type: ignore[no-untyped-def]
    """Reserve the earliest start of a request for *duration*; *more*: whether other reservations may follow.

    Returns 0, or a code when the caller has to help first and to call again.
    """


@verb
def start(machine, now, row, duration, more):  # type: ignore[no-untyped-def]
    """Let a request that was just found to fit hold its resources from now on.

    Arguments and result as in `reserve`. The caller adds it to the running requests.
    """


@verb
def release(machine, now, rows, count):  # type: ignore[no-untyped-def]
    """Take back what the first *count* of *rows* hold: requests that ended, or all that wait in a plan."""


@verb
def postpone(machine, now, row, until):  # type: ignore[no-untyped-def]
    """Expect a running request to hold its resources until another instant."""


# Plans: every waiting request holds its resources from its planned start on.


@verb
def earliest(machine, now, row, duration):  # type: ignore[no-untyped-def]
    """Return the earliest start of a request that has none, all others staying where they are."""


@verb
def earlier(machine, now, row, duration, planned, frontier, again):  # type: ignore[no-untyped-def]
    """Return an earlier start of a request than *planned*, or *planned* if there is none.

    *frontier* is the end of the capacity that was given back since no request could start earlier, `NEVER` if that is
    unknown. *again*: whether requests move in planned order.
    """


@verb
def move(machine, row, start, duration, planned):  # type: ignore[no-untyped-def]
    """Let a request hold its resources from the *start* that was just found on, and no more from *planned* on.

    *planned* is `NEVER` for a request without a start. Result as in `reserve`.
    """


@verb
def close_turn(machine, again):  # type: ignore[no-untyped-def]
    """Return whether requests that could not move may be able to, now that each has been tried; *again* as before."""
    return False


@verb
def start_planned(machine, now, row):  # type: ignore[no-untyped-def]
    """Let a request run that holds its resources since it was planned for *now*; result as in `reserve`."""
    return 0


@verb
def cancel(machine, now, row, until):  # type: ignore[no-untyped-def]
    """Give back what a running request would have held until its expected end."""


# Requests whose number of cores is chosen when they start.


@verb
def open_profile(machine, now):  # type: ignore[no-untyped-def]
    """Begin a cycle as `open_cycle` does, in which a request can be reserved at any instant and on any cores."""


@verb
def fits_on(machine, now, row, cores, duration):  # type: ignore[no-untyped-def]
    """Return whether a request on so many cores fits from *now* on for *duration*, beside all reservations."""


@verb
def earliest_on(machine, now, row, cores, duration):  # type: ignore[no-untyped-def]
    """Return the earliest start of a request on so many cores for *duration*, beside all reservations."""


@verb
def reserve_on(machine, now, row, cores, begin, duration):  # type: ignore[no-untyped-def]
    """Let a request hold so many cores from *begin* on, where they are free: it starts if that is *now*.

    Returns 0, or a code as `reserve` does. The caller adds a request that starts to the running ones.
    """
