"""Preemption: which jobs a job may preempt, in which order, the search for the jobs to preempt, and endless loops.

Sources: slurm.schedmd.com/preempt.html ("the select plugin will simulate the preemption of each job in the priority
ordered list and test if the job can be started after each preemption … the preemption candidates are re-ordered with
the final job requiring preemption placed first in the list and all of the other jobs to be preempted ordered by the
number of nodes in their allocation which overlap the resources selected for the pending job"); slurm.conf(5),
``PreemptType``, ``PreemptMode``, ``PreemptExemptTime``, ``SchedulerParameters`` (``preempt_reorder_count``,
``preempt_strict_order``, ``preempt_youngest_first``); sacctmgr(1), ``Preempt``, ``GraceTime``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.machine.njit import njit_noalloc, records
from gridsim.machine.running_set import RUNNING
from gridsim.model.site import Preemption, Site
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.slurm.entry_columns import SECOND
from gridsim.policy.slurm.nodes import FREE, Bytes, Demands, copy_state, move, select
from gridsim.policy.slurm.queue_entries import Owner

OFF, REQUEUE, CANCEL, SUSPEND = range(4)
"""Consequences of preemption for a job."""


class Rules(NamedTuple):
    """Preemption rules.

    Attributes
    ----------
    may : (k, k) uint8
        Whether an entry of one class may preempt one of another; classes are partitions or QOS.
    running : (k,) int64
        Running entries of each class.
    how : (4,) int64
        Youngest first, strict order, number of reorderings of candidates, and whether any preemption is possible.
    own : record array
        One row per entry.

        kind
            Its class.
        rank
            Lower ones are preempted first.
        mode, grace, exempt
            What happens when it is preempted, its grace time, and the run time before which it is exempt;
            microseconds.
        began, leaves
            Its start; when a preempted entry ends at the latest, `NEVER` if it is not preempted.
        taker
            Request that preempted it last.
        priority
            Last computed priority; used only within one QOS.
    """

    may: Bytes
    running: IntArray
    how: IntArray
    own: Any


def rules_of(site: Site, owners: Sequence[Owner], demands: Demands, requeue: IntArray) -> Rules:
    """Return the rules of a site; *requeue* is 1 for requests that may be requeued, 0 for others, else unknown."""
    preemption, n = site.preemption, len(owners)
    names = [each.name for each in (site.qos if preemption.kind == "qos" else site.partitions)]
    number = {name: row for row, name in enumerate(names)}
    kind = demands["part"].copy()
    if preemption.kind == "qos":
        kind = np.array([number.get(owner.qos, len(names)) for owner in owners], dtype=np.int64)
    may = np.zeros((len(names) + 1, len(names) + 1), dtype=np.uint8)
    modes, graces, exempts, ranks = (np.zeros(len(names) + 1, dtype=np.int64) for _ in range(4))
    exempts[:] = preemption.exempt
    if preemption.kind == "partition":
        for row, each in enumerate(site.partitions):
            modes[row], ranks[row] = _mode(each.preempt, preemption), each.tier
            graces[row] = each.grace if modes[row] == CANCEL else 0  # preempt.html: "only honored if … CANCEL"
            may[:-1, row] = [modes[row] != OFF and other.tier > each.tier for other in site.partitions]
    elif preemption.kind == "qos":
        modes[-1] = _mode("", preemption)
        for row, level in enumerate(site.qos):
            modes[row], ranks[row] = _mode(level.mode, preemption), level.priority
            graces[row] = level.grace if modes[row] != SUSPEND else 0
            may[:-1, row] = [modes[row] != OFF and level.name in other.preempts for other in site.qos]
            may[row, row] |= modes[row] != OFF and (preemption.within or level.within)
    exempt = _exempt_times(site, owners)
    mode = modes[kind]
    keep = may_requeue(requeue, preemption)
    mode = np.where((mode == REQUEUE) & ~keep, CANCEL, mode)  # "requeuing them (if possible) or canceling them"
    never: IntArray = np.full(n, NEVER, dtype=np.int64)
    how = np.array([preemption.youngest_first, preemption.strict_order, preemption.reorder, may.any()], dtype=np.int64)
    own = records(
        kind=kind,
        rank=ranks[kind],
        mode=mode,
        grace=graces[kind],
        exempt=exempt,
        began=never,
        leaves=never,
        taker=np.full(n, -1, dtype=np.int64),
        priority=np.zeros_like(kind),
    )
    return Rules(may, np.zeros(len(may), dtype=np.int64), how, own)


def may_requeue(requeue: IntArray, preemption: Preemption) -> Any:
    """Return whether requests may be requeued; *requeue* is their label."""
    return np.where(requeue < 0, preemption.requeue, requeue > 0)


def _mode(own: str, preemption: Preemption) -> int:
    return {"REQUEUE": REQUEUE, "CANCEL": CANCEL, "SUSPEND": SUSPEND}.get(own or preemption.mode, OFF)


def _exempt_times(site: Site, owners: Sequence[Owner]) -> IntArray:
    """Return ``PreemptExemptTime`` of each entry.

    It is that of its partition's QOS (first, see resource_limits.html), of the entry's QOS, or of the site.
    """
    levels = {each.name: each.exempt for each in site.qos}
    found = [(levels.get(owner.partition_qos), levels.get(owner.qos)) for owner in owners]
    default = site.preemption.exempt
    return np.array(
        [one if one is not None else other if other is not None else default for one, other in found], dtype=np.int64
    )


@njit_noalloc
def may_preempt(entry, rules):  # type: ignore[no-untyped-def]
    """Return whether an entry may preempt any running one."""
    if rules.how[3] == 0:
        return False
    row = rules.own.kind[entry]
    for kind in range(len(rules.running)):  # noqa: SIM110 (compiled)
        if rules.running[kind] > 0 and rules.may[row, kind]:
            return True
    return False


@njit_noalloc
def preemptable(entry, other, now, demands, rules):  # type: ignore[no-untyped-def]
    """Return whether preempting a running entry is permitted and useful: cores of other reservations stay reserved."""
    booked = demands.reservation[other]
    if booked >= 0 and booked != demands.reservation[entry]:
        return False
    row, kind = rules.own.kind[entry], rules.own.kind[other]
    if not rules.may[row, kind] or (row == kind and rules.own.priority[other] >= rules.own.priority[entry]):
        return False
    return rules.own.began[other] < now and now - rules.own.began[other] >= rules.own.exempt[other]


@njit_noalloc
def leave(entry, sign, nodes, cores, demands, machine, rules, state):  # type: ignore[no-untyped-def]
    """Release what a preempted entry gives up (*sign* 1), or allocate it again (-1): a suspended one only its cores."""
    if rules.own.mode[entry] != SUSPEND:
        move(entry, sign, nodes, cores, demands, machine, state)
        return
    for place in range(len(nodes)):
        state[FREE, nodes[place]] += sign * cores[place]
        if demands.cap[entry] > 0:
            state[demands.cap[entry], nodes[place]] += sign * cores[place]


VICTIMS, CANDIDATES, _ORDER, _SPARE, _KEYS = range(5)
"""Rows of *picked* in `find_victims`: preempted entries; candidates; workspace for sorting, the last for keys."""

PICKED = _KEYS + 4
"""Number of these rows."""


@njit_noalloc
def find_victims(entry, now, trial, picked, state, parts):  # type: ignore[no-untyped-def]
    """Find running entries to preempt for another one; return its number of nodes, and the number of `VICTIMS`.

    Entries that are already preempted are the first candidates. The trial is filled as by `select`. *picked*,
    (`PICKED`, running entries), and *state*, as `NodeColumns.now`, are workspace.
    """
    demands, _, _, held, _, rules = parts
    chosen, victims, candidates = trial.chosen, picked[VICTIMS], picked[CANDIDATES]
    many = _find_candidates(entry, now, trial.mask, picked, demands, held, rules)
    if many == 0 or _try_without(many, entry, candidates, trial, state, parts) == 0:
        return 0, 0
    needed = _fewest(many, entry, candidates, trial, state, parts)
    turns = 0 if rules.how[1] else rules.how[2]
    for _ in range(turns):
        if needed <= 1:
            break
        used = _try_without(needed, entry, candidates, trial, state, parts)
        for place in range(needed):
            picked[_KEYS, place] = -_overlap(candidates[place], used, chosen, held)
        picked[_KEYS, needed - 1] = -len(trial.mask) - 1  # the last one first
        _sort_candidates(needed, 1, picked)
        needed = _fewest(needed, entry, candidates, trial, state, parts)
    used = _try_without(needed, entry, candidates, trial, state, parts)
    found = 0
    for place in range(needed):
        if _overlap(candidates[place], used, chosen, held) > 0:
            victims[found] = candidates[place]
            found += 1
    return used, found


@njit_noalloc
def _find_candidates(entry, now, mask, picked, demands, held, rules):  # type: ignore[no-untyped-def]
    """Find running entries that may be preempted on usable nodes, in preemption order; return their number."""
    found, keys, many = picked[CANDIDATES], picked[_KEYS:], 0
    for place in range(held.counts[RUNNING]):
        other = held.running[1, place]
        if not preemptable(entry, other, now, demands, rules):
            continue
        first = held.first[other]
        for piece in range(first, first + held.pieces[other]):
            node = held.node[piece]
            if demands.low[entry] <= node < demands.high[entry] and mask[node] > 0:
                found[many] = other
                many += 1
                break
    for place in range(many):
        other = found[place]
        keys[0, place], keys[1, place], keys[2, place] = 1 if rules.own.leaves[other] >= NEVER else 0, 0, 0
        if not rules.how[0]:
            keys[1, place], keys[2, place] = rules.own.rank[other], held.pieces[other]
        keys[3, place] = -rules.own.began[other]
    _sort_candidates(many, 4, picked)
    return many


@njit_noalloc
def _sort_candidates(many, rows, picked):  # type: ignore[no-untyped-def]
    """Sort candidates by the first row of keys, then the second, and so on; stable."""
    candidates, order, spare, keys = picked[CANDIDATES], picked[_ORDER], picked[_SPARE], picked[_KEYS:]
    for place in range(many):
        order[place], spare[place] = place, candidates[place]
    gap = many // 2
    while gap > 0:  # Shell sort: short to compile
        for place in range(gap, many):
            one, at = order[place], place
            while at >= gap and _before(one, order[at - gap], rows, keys):
                order[at] = order[at - gap]
                at -= gap
            order[at] = one
        gap //= 2
    for place in range(many):
        candidates[place] = spare[order[place]]


@njit_noalloc
def _before(one, other, rows, keys):  # type: ignore[no-untyped-def]
    for row in range(rows):
        if keys[row, one] != keys[row, other]:
            return keys[row, one] < keys[row, other]
    return one < other


@njit_noalloc
def _try_without(many, entry, candidates, trial, state, parts):  # type: ignore[no-untyped-def]
    """Return the number of nodes that an entry would get without the first *many* candidates, as `select` does."""
    demands, machine, _, held, _, _ = parts
    copy_state(machine.now, state)
    for place in range(many):
        other = candidates[place]
        first, last = held.first[other], held.first[other] + held.pieces[other]
        leave(other, 1, held.node[first:last], held.cores[first:last], demands, machine, parts[5], state)
    return select(entry, trial, demands, machine, state)


@njit_noalloc
def _fewest(many, entry, candidates, trial, state, parts):  # type: ignore[no-untyped-def]
    """Return how many of the first candidates must be preempted, by bisection, since more free cores never hurt.

    With several kinds of nodes this is false, since nodes selected for one kind are missing for another.
    """
    demands, machine = parts[0], parts[1]
    low, high, group = 1, many, demands.group[entry]
    if machine.first[group] < machine.first[group + 1]:
        while low < many:
            if _try_without(low, entry, candidates, trial, state, parts) > 0:
                return low
            low += 1
    while low < high:
        middle = (low + high) // 2
        if _try_without(middle, entry, candidates, trial, state, parts) > 0:
            high = middle
        else:
            low = middle + 1
    return low


@njit_noalloc
def _overlap(other, used, chosen, held):  # type: ignore[no-untyped-def]
    """Return the number of nodes that a running entry holds among the selected ones."""
    found = 0
    for piece in range(held.first[other], held.first[other] + held.pieces[other]):
        for place in range(used):
            if held.node[piece] == chosen[place]:
                found += 1
                break
    return found


ENDLESS = 1000
"""Number of preemptions of one job, without submissions and ends of jobs, that counts as an endless loop."""


class PreemptionCounter:
    """Preemptions of requests since the last submission or end; *number* are their jobs' numbers."""

    def __init__(self, number: IntArray) -> None:
        self._number = number
        self._times: Counter[int] = Counter()

    def clear(self) -> None:
        """Reset the counts after a submission or an end."""
        self._times.clear()

    def preempted(self, request: int, now: int) -> None:
        """Count a preemption.

        Raises
        ------
        InputError
            If the number of preemptions indicates an endless loop.
        """
        self._times[request] += 1
        if self._times[request] <= ENDLESS:
            return
        jobs = sorted(int(self._number[each]) for each, times in self._times.items() if 2 * times > ENDLESS)
        named = ", ".join(str(job) for job in jobs[:5]) + (" and others" if len(jobs) > 5 else "")
        what = f"preempts jobs {named} in an endless loop: {ENDLESS} times by {now / SECOND:.0f} s, without a new event"
        why = "the rules of the site give the freed resources to other jobs than the preempting ones"
        where = "PreemptExemptTime, GraceTime, requeue_delay, bf_min_prio_reserve"
        raise InputError(f"{what}; {why}: look at {where}", field="policy")
