"""Preemption: which jobs may preempt which, and which running jobs end for a job.

Sources: preempt.html, sacctmgr(1), slurm.conf(5) (``PreemptType``, ``PreemptMode``, ``PreemptExemptTime``,
``preempt_…``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gridsim.model.site import Qos, Site, SitePartition
from gridsim.model.time import NEVER
from tests.oracles.slurm.entries import Entry
from tests.oracles.slurm.nodes import Held, Pieces, left_by, select

__all__ = ["Fate", "anybody_may", "could_preempt", "fate_of", "goes_before", "may_preempt", "victims_of"]


class Fate(NamedTuple):
    """Effect on a preempted entry (REQUEUE, CANCEL, or OFF for none), grace period, and end of its exemption."""

    mode: str
    grace: int
    exempt: int


def _level(site: Site, name: str) -> Qos | None:
    return next((each for each in site.qos if each.name == name), None)


def _mode(own: str, site: Site) -> str:
    """Return ``PreemptMode`` of a partition or a QOS, with the mode of the site as default."""
    mode = own or site.preemption.mode
    return mode if mode in ("REQUEUE", "CANCEL") else "OFF"


def fate_of(entry: Entry, site: Site) -> Fate:
    """Return the effect of preemption on an entry."""
    rules, qos = site.preemption, _level(site, entry.qos)
    mode, grace = _mode("", site), 0
    if rules.kind == "partition":
        mode = _mode(entry.partition.preempt, site)
        grace = entry.partition.grace if mode == "CANCEL" else 0  # preempt.html: only applied with CANCEL
    elif rules.kind == "qos" and qos is not None:
        mode, grace = _mode(qos.mode, site), qos.grace
    asked = entry.job.numbers.get("requeue", -1)
    if mode == "REQUEUE" and not (rules.requeue if asked < 0 else asked):
        mode = "CANCEL"
    levels = (_level(site, entry.partition.qos), qos)
    exempt = next((each.exempt for each in levels if each is not None and each.exempt is not None), rules.exempt)
    return Fate(mode, grace, exempt)


def _over_partition(high: SitePartition, low: SitePartition, site: Site) -> bool:
    return _mode(low.preempt, site) != "OFF" and high.tier > low.tier


def _over_level(high: Qos, low: Qos, site: Site) -> bool:
    within = high.name == low.name and (site.preemption.within or low.within)
    return _mode(low.mode, site) != "OFF" and (low.name in high.preempts or within)


def anybody_may(site: Site) -> bool:
    """Return whether any class of jobs may preempt another."""
    if site.preemption.kind == "partition":
        return any(_over_partition(one, other, site) for one in site.partitions for other in site.partitions)
    return site.preemption.kind == "qos" and any(
        _over_level(one, other, site) for one in site.qos for other in site.qos
    )


def may_preempt(one: Entry, other: Entry, site: Site) -> bool:
    """Return whether an entry's class may preempt another's: ``PriorityTier`` of partitions, or ``Preempt`` of QOS."""
    if site.preemption.kind == "partition":
        return _over_partition(one.partition, other.partition, site)
    high, low = _level(site, one.qos), _level(site, other.qos)
    return site.preemption.kind == "qos" and high is not None and low is not None and _over_level(high, low, site)


def goes_before(one: Entry, other: Entry, site: Site) -> bool:
    """Return whether an entry could preempt another one if that ran; within one QOS the higher priority counts."""
    alike = site.preemption.kind == "qos" and one.qos == other.qos
    return may_preempt(one, other, site) and (not alike or one.priority > other.priority)


def could_preempt(entry: Entry, held: Held, now: int, site: Site) -> bool:
    """Return whether an entry may preempt a running one and gains by it; nodes of other reservations stay reserved."""
    other = held.entry
    if other.reservation and other.reservation != entry.reservation:
        return False
    return goes_before(entry, other, site) and held.began < now and now - held.began >= fate_of(other, site).exempt


def victims_of(
    entry: Entry, now: int, site: Site, running: list[Held], most: list[int], kept: list[int]
) -> tuple[Pieces, list[Held]] | None:
    """Return the allocation of an entry and the entries to preempt for it; None if preemption would not help.

    Entries that already have to end count first. "The select plugin will simulate the preemption of each job in
    the priority ordered list and test if the job can be started after each preemption"; then "the candidates are
    re-ordered with the final job requiring preemption placed first … and all of the other jobs … ordered by the number
    of nodes in their allocation which overlap the resources selected".
    """
    candidates = [
        held for held in running if could_preempt(entry, held, now, site) and any(most[node] for node in held.pieces)
    ]
    candidates.sort(key=_order(site))

    def without(gone: list[Held]) -> Pieces | None:
        return select(entry, site, left_by(site, [held for held in running if held not in gone]), most, kept)

    def fewest(those: list[Held]) -> int:
        return next(count for count in range(1, len(those) + 1) if without(those[:count]) is not None)

    if not candidates or without(candidates) is None:
        return None
    needed = candidates[: fewest(candidates)]
    for _ in range(0 if site.preemption.strict_order else site.preemption.reorder):
        pieces = without(needed) or {}
        if len(needed) > 1:
            needed = [needed[-1], *sorted(needed[:-1], key=lambda held: -len(held.nodes & set(pieces)))]
            needed = needed[: fewest(needed)]
    pieces = without(needed) or {}
    return pieces, [held for held in needed if held.nodes & set(pieces)]


def _order(site: Site) -> Callable[[Held], tuple[int, ...]]:
    """Sort by lowest tier or QOS priority, then fewest nodes, then the youngest; or only by the youngest."""
    rules = site.preemption

    def key(held: Held) -> tuple[int, ...]:
        entry, staying = held.entry, int(held.leaves >= NEVER)
        if rules.youngest_first:
            return staying, -held.began
        qos = _level(site, entry.qos)
        rank = entry.partition.tier if rules.kind == "partition" else qos.priority if qos else 0
        return staying, rank, len(held.pieces), -held.began

    return key
