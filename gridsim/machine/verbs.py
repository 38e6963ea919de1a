"""Verbs of a machine: the class of the machine, `Pool` or `Nodes`, selects the implementation, else the one here.

A scheduling cycle calls `open_cycle` or `resume_cycle`, then the others, then `close_cycle`. Plans have separate verbs.
Requests are rows; instants and durations are whole microseconds.
"""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from gridsim.machine.njit import verb

NEVER_FITS, FITS, FITS_BEFORE = range(3)
"""Answers of `ever_fits`: at no time; after all reservations; only before a known absence, with the reservations that
were made."""


@verb
def open_cycle(machine, now):  # type: ignore[no-untyped-def]
    """Begin a cycle without reservations; requests past their expected end hold nothing in it."""


@verb
def resume_cycle(machine, now):  # type: ignore[no-untyped-def]
    """Continue the last cycle with its reservations, if only time has passed since then."""


@verb
def close_cycle(machine, rows, count):  # type: ignore[no-untyped-def]
    """End a cycle that has reserved for the first *count* of *rows*."""


@verb
def keeps_reservations(machine):  # type: ignore[no-untyped-def]
    """Return whether a cycle can be resumed with its reservations."""
    return False


@verb
def is_full(machine):  # type: ignore[no-untyped-def]
    """Return whether no more requests can start in this cycle, if this is known without testing one."""
    return False


@verb
def nothing_fits(machine, now, waiting):  # type: ignore[no-untyped-def]
    """Return whether it is known before a cycle that none of the requests in the queue *waiting* fits."""
    return False


@verb
def fits_now(machine, now, row):  # type: ignore[no-untyped-def]
    """Return whether a request fits with the running requests."""


@verb
def fits_until(machine, now, row, duration):  # type: ignore[no-untyped-def]
    """Return whether a request that fits now also fits with the reservations for *duration*."""


@verb
def ever_fits(machine, now, row, duration):  # type: ignore[no-untyped-def]
    """Return whether a request fits for *duration* at some time, as far as is known of absent nodes."""
    return FITS


@verb
def reserve(machine, now, row, duration, more):  # type: ignore[no-untyped-def]
    """Reserve the earliest start of a request for *duration*; *more*: whether other reservations may follow.

    Returns 0, or a code when the caller has to help first and to call again.
    """


@verb
def start(machine, now, row, duration, more):  # type: ignore[no-untyped-def]
    """Allocate resources from now on to a request that was just found to fit.

    Arguments and result are those of `reserve`. The caller adds it to the running requests.
    """


@verb
def release(machine, now, rows, count):  # type: ignore[no-untyped-def]
    """Release the resources of the first *count* of *rows*: requests that ended, or all waiting requests of a plan."""


@verb
def postpone(machine, now, row, until):  # type: ignore[no-untyped-def]
    """Set a later expected end of a running request."""


# Plans: every waiting request holds its resources from its planned start on.


@verb
def earliest(machine, now, row, duration):  # type: ignore[no-untyped-def]
    """Return the earliest start of an unplanned request, with all other starts unchanged."""


@verb
def earlier(machine, now, row, duration, planned, frontier, again):  # type: ignore[no-untyped-def]
    """Return an earlier start of a request than *planned*, or *planned* if there is none.

    *frontier* is the end of the capacity released since no request could start earlier; `NEVER` if it is unknown.
    *again*: whether requests move in planned order.
    """


@verb
def move(machine, row, start, duration, planned):  # type: ignore[no-untyped-def]
    """Move the resources of a request from *planned* to the *start* that was just found.

    *planned* is `NEVER` for a request without a start. The result is that of `reserve`.
    """


@verb
def close_turn(machine, again):  # type: ignore[no-untyped-def]
    """Return whether requests that could not move may now be able to, after all were tried; *again* as before."""
    return False


@verb
def start_planned(machine, now, row):  # type: ignore[no-untyped-def]
    """Start a request at its planned start, *now*, with the resources it holds; the result is that of `reserve`."""
    return 0


@verb
def cancel(machine, now, row, until):  # type: ignore[no-untyped-def]
    """Release the resources of a running request until its expected end."""


# Nodes and GPUs that fail or are in maintenance: they hold no capacity while they are absent.


@verb
def remove(machine, now, node, gpu, begin, end, announced):  # type: ignore[no-untyped-def]
    """Remove the capacity of a node, or of one of its GPUs (-1: of the node), in ``[begin, end)``.

    *end* is `NEVER` if the return is unknown; *announced* (0 or 1): whether the absence was known before it began. The
    result is that of `reserve`.
    """


@verb
def restore(machine, now, node, gpu, begin, end, announced):  # type: ignore[no-untyped-def]
    """Restore from *now* on what `remove` removed with the same arguments."""


# Requests whose number of cores is chosen when they start.


@verb
def open_profile(machine, now):  # type: ignore[no-untyped-def]
    """Begin a cycle like `open_cycle`, in which a request can be reserved at any time on any number of cores."""


@verb
def fits_on(machine, now, row, cores, duration):  # type: ignore[no-untyped-def]
    """Return whether a request on a number of cores fits from *now* on for *duration*, with all reservations."""


@verb
def earliest_on(machine, now, row, cores, duration):  # type: ignore[no-untyped-def]
    """Return the earliest start of a request on a number of cores for *duration*, with all reservations."""


@verb
def reserve_on(machine, now, row, cores, begin, duration):  # type: ignore[no-untyped-def]
    """Allocate cores to a request from *begin* on, where they are free; the request starts if that is *now*.

    Returns 0, or a code like `reserve`. The caller adds a request that starts to the running ones.
    """
