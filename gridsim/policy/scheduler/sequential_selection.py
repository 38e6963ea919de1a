"""A scheduling cycle without backfilling that selects the next request after each start, at random or by shares."""

# The decorators hide types from a type checker: they are in the docstrings.
from __future__ import annotations

from typing import Any, NamedTuple

from gridsim.machine.njit import njit_noalloc
from gridsim.machine.queue_order import HEAD, TAIL, index_of
from gridsim.machine.running_set import available_now
from gridsim.model.time import IntArray
from gridsim.policy.scheduler.list_cycle import CORES, QUEUE, begin_at, first_of_groups, take_in
from gridsim.policy.scheduler.random_selection import draw_below

NONE = -1
NEXT, HOLDS, AGAIN = range(3)
_USED, _WEIGHT, _PLACE = range(3)


class Selection(NamedTuple):
    """Selection of the next request: at random among all waiting requests, or from the share with the least use.

    Attributes
    ----------
    draws : (6,) uint64
        State for `gridsim.policy.scheduler.random_selection.draw_below`.
    group : (n,) int64
        Share of each request.
    shares : (3, leaves) int64
        Cores in use, weights and workspace; no leaves if requests are drawn.
    how : (3,) int64
        The next request of the following cycle, or `NONE`; whether a request that does not fit becomes that; whether
        shares are ordered again after each start, else once per cycle.
    """

    draws: Any
    group: IntArray
    shares: IntArray
    how: IntArray


@njit_noalloc
def take_ended(ended, tail, queue, selection):  # type: ignore[no-untyped-def]
    """Take in ended requests and arrivals (`gridsim.policy.scheduler.list_cycle.take_in`), and update the shares."""
    table, running, moves, _, meta = queue
    if selection.shares.shape[1]:
        for k in range(ended):
            row = moves[1, k]
            selection.shares[_USED, selection.group[row]] -= table[CORES, row]
    take_in(table, running, moves, meta, ended, tail)


@njit_noalloc
def run_selection(now, ended, tail, queue, selection):  # type: ignore[no-untyped-def]
    """Start the selected requests until one does not fit; return their number; ``moves[0]`` contains them.

    Shares are ordered by use times weight, least first; job order is kept within a share. The queue stays in job
    order.
    """
    table, running, moves, _, meta = queue
    draws, group, shares, how = selection
    take_ended(ended, tail, queue, selection)
    count, leaves = 0, shares.shape[1]
    while meta[TAIL] > meta[HEAD] and available_now(now, running, meta, table[CORES]) != 0:
        if leaves:
            if how[AGAIN] or count == 0:
                for leaf in range(leaves):
                    shares[_PLACE, leaf] = shares[_USED, leaf] * shares[_WEIGHT, leaf]
            index = first_of_groups(table, meta, group, shares[_PLACE])
        elif how[NEXT] == NONE:
            index = draw_below(draws, meta[TAIL] - meta[HEAD])
        else:
            index = index_of(table[QUEUE], meta, how[NEXT])
        row = table[QUEUE, meta[HEAD] + index]
        if not begin_at(now, index, table, running, meta):
            how[NEXT] = row if how[HOLDS] else NONE
            break
        how[NEXT] = NONE
        if leaves:
            shares[_USED, group[row]] += table[CORES, row]
        moves[0, count] = row
        count += 1
    return count
