"""Advance reservations: reserved nodes and times, and the nodes left for jobs inside and outside a reservation.

Sources: slurm.schedmd.com/reservations.html ("when cores or nodes are reserved, then jobs using that reservation can
use only those resources … and no other jobs can use those resources"; "the job must be contained completely within the
named reservation"; "as the reservation time approaches, only jobs that can complete by the reservation time will be
initiated"; overlapping and FLEX reservations); scontrol(1), flags of reservations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gridsim.machine.njit import njit_noalloc, records
from gridsim.model.site import Site
from gridsim.model.time import NEVER
from gridsim.policy.protocols import Absence
from gridsim.policy.slurm.nodes import ANY, Bytes
from gridsim.policy.slurm.queue_entries import reservation_names


class Reservations(NamedTuple):
    """Reserved nodes, one row per node of a reservation.

    Attributes
    ----------
    rows : record array
        node, reservation
            Numbers of both.
        start, end, period
            Interval, whole microseconds, and the period of its repetition; 0 for once.
        known
            Instant from which the scheduler considers it.
        cores, inside
            Reserved cores of the node, -1 for all; number of them that jobs of the reservation hold.
    bound : (r + 1, r) uint8
        Whether an entry of a reservation (row 0: of none) must avoid another reservation.
    flexible : (r + 1,) uint8
        Whether an entry of a reservation may also use resources outside of it.
    """

    rows: Any
    bound: Bytes
    flexible: Bytes


def reservations_of(site: Site) -> Reservations:
    """Return the rows of a site's reservations."""
    number = {node.name: row for row, node in enumerate(site.nodes)}
    rows = []
    names = reservation_names(site)
    for each in site.reservations:
        cores = dict(each.cores)
        for name in each.nodes:
            rows.append(
                (
                    number[name],
                    names.index(each.name),
                    each.start,
                    each.end,
                    each.period,
                    each.known,
                    cores.get(name, -1),
                    0,
                )
            )
    found = records(**_columns(rows))
    count, first = len(names), {each.name: each for each in reversed(site.reservations)}
    bound, flexible = np.ones((count + 1, count), dtype=np.uint8), np.zeros(count + 1, dtype=np.uint8)
    for own, mine in enumerate(first[name] for name in names):
        flexible[own + 1] = "FLEX" in mine.flags
        for other, theirs in enumerate(first[name] for name in names):
            # A reservation that may overlap others takes nodes from those that may not; of two such ones, the earlier
            # has precedence (section "Overlapping Reservations").
            wins = mine.overlaps and (not theirs.overlaps or own < other)
            bound[own + 1, other] = own != other and not wins
    return Reservations(found, bound, flexible)


_FIELDS = ("node", "reservation", "start", "end", "period", "known", "cores", "inside")


def _columns(rows: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    columns = np.array(rows, dtype=np.int64).reshape(-1, len(_FIELDS)).T.copy()
    return dict(zip(_FIELDS, columns, strict=True))


def with_absences(reservations: Reservations, absences: Sequence[Absence]) -> Reservations:
    """Return reservations with a further row for each absence of a node, whose capacity no entry may use.

    The first rows are copies of those given.
    """
    rows, count = reservations.rows, reservations.bound.shape[1]
    further = [(it.node, count, it.begin, it.end, 0, -NEVER, -1, 0) for it in absences if it.gpu < 0]
    found = {name: np.concatenate([rows[name], column]) for name, column in _columns(further).items()}
    bound = np.hstack([reservations.bound, np.ones((count + 1, 1), dtype=np.uint8)])
    return Reservations(records(**found), bound, reservations.flexible)


def seen_all(now: int, reservations: Reservations) -> int:
    """Return the instant after which reservations only repeat the pattern since *now*, or have ended.

    It is the least common multiple of the periods after all have begun, at most a hundred of the longest period.
    """
    rows = reservations.rows
    once, longest = np.concatenate([rows["start"], rows["end"]]), int(rows["period"].max(initial=0))
    again = math.lcm(*(each for each in set(rows["period"].tolist()) if each > 0)) if longest else 0
    return max(now, int(once[once < NEVER].max(initial=now))) + min(again, 100 * longest)


@njit_noalloc
def open_nodes(entry, now, start, until, demands, machine, reservations, mask, kept):  # type: ignore[no-untyped-def]
    """Set the cores that each node has for an entry from *start* to *until*, given all reservations.

    *mask* is the maximum that the entry may hold, *kept* the cores that are reserved for others.

    Only nodes from the first to the last node of its group are set.
    """
    member = machine.member[demands.group[entry]]
    own = demands.reservation[entry]
    narrow = own >= 0 and not reservations.flexible[own + 1]
    for node in range(demands.low[entry], demands.high[entry]):
        mask[node] = ANY if member[node] and not narrow else 0
        kept[node] = 0
    if narrow:
        for row in range(len(reservations.rows.node)):
            if reservations.rows.reservation[row] == own and _contains(row, start, until, reservations):
                node = reservations.rows.node[row]
                if member[node]:
                    mask[node] = (
                        ANY
                        if reservations.rows.cores[row] < 0
                        else reservations.rows.cores[row] - reservations.rows.inside[row]
                    )
    for row in range(len(reservations.rows.node)):
        if now < reservations.rows.known[row] or not reservations.bound[own + 1, reservations.rows.reservation[row]]:
            continue
        if _overlaps(row, start, until, reservations):
            node = reservations.rows.node[row]
            if reservations.rows.cores[row] < 0:
                mask[node] = 0
            else:
                # Jobs of a FLEX reservation may hold more of a node than is reserved for them.
                kept[node] += max(reservations.rows.cores[row] - reservations.rows.inside[row], 0)


@njit_noalloc
def in_time(entry, now, demands, reservations):  # type: ignore[no-untyped-def]
    """Return whether the reservation that an entry requests, if any, has begun."""
    own = demands.reservation[entry]
    if own < 0 or reservations.flexible[own + 1]:
        return True
    for row in range(len(reservations.rows.node)):
        if reservations.rows.reservation[row] == own and _contains(row, now, now, reservations):
            return True
    return False


@njit_noalloc
def _repeat(row, at, reservations):  # type: ignore[no-untyped-def]
    """Return how many repetitions of a reservation are over at an instant."""
    if reservations.rows.period[row] <= 0 or at < reservations.rows.end[row]:
        return 0
    return (at - reservations.rows.end[row]) // reservations.rows.period[row] + 1


@njit_noalloc
def _overlaps(row, start, until, reservations):  # type: ignore[no-untyped-def]
    again = _repeat(row, start, reservations) * reservations.rows.period[row]
    return reservations.rows.start[row] + again < until and reservations.rows.end[row] + again > start


@njit_noalloc
def _contains(row, start, until, reservations):  # type: ignore[no-untyped-def]
    again = _repeat(row, start, reservations) * reservations.rows.period[row]
    return reservations.rows.start[row] + again <= start and until <= reservations.rows.end[row] + again


@njit_noalloc
def next_change(at, reservations):  # type: ignore[no-untyped-def]
    """Return the first instant after *at* at which a reservation begins or ends, or becomes known."""
    first = NEVER
    for row in range(len(reservations.rows.node)):
        again = _repeat(row, at, reservations) * reservations.rows.period[row]
        begin, end = reservations.rows.start[row] + again, reservations.rows.end[row] + again
        if begin > at:
            first = min(first, begin)
        if end > at:
            first = min(first, end)
        if reservations.rows.known[row] > at:
            first = min(first, reservations.rows.known[row])
    return first


@njit_noalloc
def count_inside(entry, sign, nodes, cores, demands, reservations):  # type: ignore[no-untyped-def]
    """Allocate or release cores of an entry in its reservation."""
    own = demands.reservation[entry]
    if own < 0:
        return
    for place in range(len(nodes)):
        for row in range(len(reservations.rows.node)):
            if (
                reservations.rows.reservation[row] == own
                and reservations.rows.node[row] == nodes[place]
                and reservations.rows.cores[row] >= 0
            ):
                reservations.rows.inside[row] += sign * cores[place]
