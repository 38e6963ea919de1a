"""Compiled passes in which nobody passes and the next request is named anew after each start: drawn, or by shares."""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from gridsim.policy.scheduler.draws import draw_below
from gridsim.policy.scheduler.list_cycle import CORES, QUEUE, begin_at, first_of_groups, take_in
from gridsim.profile.compiled import lean
from gridsim.profile.running import available_now
from gridsim.profile.waiting import HEAD, TAIL, index_of

__all__ = ["by_shares", "drawn"]

NOBODY = -1
HELD, HOLDS = range(2)
USED, WEIGHT, PLACE = range(3)


@lean
def drawn(now, ended, tail, table, running, moves, meta, draws, held):  # type: ignore[no-untyped-def]
    """A pass that draws the next request until one does not fit; returns how many ``moves[0]`` names.

    *held* has the request that is the next one of the coming pass too, or `NOBODY`, and whether one that does not fit
    is that. The queue stays in job order.
    """
    take_in(table, running, moves, meta, ended, tail)
    count = 0
    while meta[TAIL] > meta[HEAD] and available_now(now, running, meta, table[CORES]) != 0:
        if held[HELD] == NOBODY:
            index = draw_below(draws, meta[TAIL] - meta[HEAD])
        else:
            index = index_of(table[QUEUE], meta, held[HELD])
        row = table[QUEUE, meta[HEAD] + index]
        if not begin_at(now, index, table, running, meta):
            if held[HOLDS]:
                held[HELD] = row
            break
        held[HELD] = NOBODY
        moves[0, count] = row
        count += 1
    return count


@lean
def by_shares(now, ended, tail, table, running, moves, meta, group, shares, again):  # type: ignore[no-untyped-def]
    """A pass in the order of the uses of shares, times a weight each: least first, by job order within a share.

    *group* is the share of each request, *shares* (3, leaves) cores in use, weights and a scratch. The order is made
    *again* after each start, else once.
    """
    take_in(table, running, moves, meta, ended, tail)
    count = 0
    while meta[TAIL] > meta[HEAD] and available_now(now, running, meta, table[CORES]) != 0:
        if again or count == 0:
            for leaf in range(shares.shape[1]):
                shares[PLACE, leaf] = shares[USED, leaf] * shares[WEIGHT, leaf]
        index = first_of_groups(table, meta, group, shares[PLACE])
        row = table[QUEUE, meta[HEAD] + index]
        if not begin_at(now, index, table, running, meta):
            break
        shares[USED, group[row]] += table[CORES, row]
        moves[0, count] = row
        count += 1
    return count
