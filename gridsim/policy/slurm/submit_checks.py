"""Submission checks: entries of a request that could ever start, and reasons for rejection.

Slurm leaves some of the rejected jobs pending until its configuration changes (slurm.conf(5),
``EnforcePartLimits=NO``); in a simulation it never changes. Sources: slurm.conf(5), ``AllowAccounts``,
``AllowGroups``, ``AllowQos``, ``DenyAccounts``, ``DenyQos``, ``MaxCPUsPerNode``, ``MaxNodes``, ``MaxTime``,
``MaxMemPerNode``, ``ReqResv`` and ``State`` of partitions, ``AccountingStorageEnforce``; resource_limits.html;
sbatch(1), ``--constraint`` and ``--nodelist``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gridsim.model.site import Site, SitePartition
from gridsim.model.site.parameters import licence
from gridsim.model.time import MICROSECOND, IntArray
from gridsim.policy.slurm.entry_columns import empty_nodes
from gridsim.policy.slurm.limits import Limits, Submissions
from gridsim.policy.slurm.node_requests import NodeRequests
from gridsim.policy.slurm.nodes import ANY, CAPS, Demands, NodeColumns, select, trial_on
from gridsim.policy.slurm.queue_entries import UNKNOWN_PARTITION, Entries, Owner
from gridsim.policy.slurm.reservations import Reservations, next_change, seen_all
from gridsim.record import Refusal


class SubmitChecks:
    """Submission checks of a site, and counters of waiting and running requests by owner.

    Attributes
    ----------
    placeable_kinds : dict of int to bool
        Results of `placeable` by kind of demand, until a reservation or an absence changes.
    """

    def __init__(
        self,
        site: Site,
        owners: Sequence[Owner],
        entries: Entries,
        demands: Demands,
        machine: NodeColumns,
        limits: Limits,
        names: Sequence[str],
        reservations: Reservations,
        node_requests: NodeRequests,
    ) -> None:
        self._site, self._owners, self._entries, self._demands = site, owners, entries, demands
        self._machine, self._limits, self._reservations = machine, limits, reservations
        self._node_requests, self._empty = node_requests, empty_nodes(site)
        self._part, self._limit = demands["part"].tolist(), demands["limit"].tolist()
        self._reservation, self._counted_by = entries.reservation.tolist(), bool(len(limits.counter))
        self._submissions, self._names = Submissions(site), names
        self._counted: dict[int, Owner] = {}
        self._fitting: dict[int, bool] = {}
        self._seen = reservations
        self.placeable_kinds: dict[int, bool] = {}

    def see(self, booked: Reservations, seen: Reservations) -> None:
        """Use reservations without and with absent nodes from now on."""
        self._reservations, self._seen = booked, seen
        self.placeable_kinds.clear()

    def resume(self, before: SubmitChecks) -> None:
        """Take over the counters from earlier checks."""
        self._submissions, self._counted = before._submissions, before._counted

    def choices(self, request: int, now: int, over: set[int]) -> list[int]:
        """Return the entries in which a request could start; empty if it is rejected. Changes no counters."""
        rows = (request, *self._entries.further.get(request, ()))
        welcome = [entry for entry in rows if self._welcome(entry, over)]
        found = [entry for entry in welcome if self.could(entry, now)]
        if self._entries.waits[found].all():  # they wait for the end of a reservation, which must be usable
            asking = [entry for entry in welcome if not self._entries.waits[entry]]
            found = [*asking, *found] if asking and found else []
        if not found:
            return []
        first = found[0]
        return found if self._submissions.refusal(self._owners[first], *self._wants(first)) is None else []

    def take(self, request: int, entries: Sequence[int]) -> None:
        """Count an admitted request, as its owner in the first of its entries."""
        owner = self._counted[request] = self._owners[entries[0]]
        self._submissions.take(owner)

    def _wants(self, entry: int) -> tuple[int, int, int, dict[str, int]]:
        demands = self._demands
        return (
            int(demands["cores"][entry]),
            int(demands["nodes"][entry]),
            int(demands["limit"][entry]),
            self._tres(entry),
        )

    def _tres(self, entry: int) -> dict[str, int]:
        """Return the demand of an entry for each resource with limits."""
        amounts = self._limits.tres.tracked.asked[entry].tolist() if self._names else ()
        return dict(zip(self._names, amounts, strict=True))

    def refusal(self, request: int, now: int, over: set[int]) -> Refusal:
        """Return why a request that could start in no entry is rejected: the reason of the first of them."""
        entries = (request, *self._entries.further.get(request, ()))
        found = [self._why(entry, now, over) for entry in entries]
        if None in found:
            entry = entries[found.index(None)]
            if (why := self._submissions.refusal(self._owners[entry], *self._wants(entry))) is not None:
                return why
        return next((why for why in found if why is not None), self.never_started(request))

    def never_started(self, request: int) -> Refusal:
        """Return the reason for a request that no cycle would ever start, though its nodes could hold it."""
        where = f"nodes of partition {self._site.partitions[self._part[request]].name}"
        return Refusal("ReqNodeNotAvail", "it in any scheduling cycle", None, "", where)

    def _why(self, entry: int, now: int, over: set[int]) -> Refusal | None:
        """Return why an entry could never start; None if it could."""
        owner, partition = self._owners[entry], self._site.partitions[self._part[entry]]
        reservation, where = self._reservation[entry], f"partition {self._site.partitions[self._part[entry]].name}"

        def not_in(word: str, what: str, rule: str) -> Refusal:
            return Refusal(word, what, None, "", f"{rule} of {where}")

        if reservation == UNKNOWN_PARTITION or reservation in over:
            word = "ReservationInvalid" if reservation == UNKNOWN_PARTITION else "ReservationDeleted"
            return Refusal(word, "its reservation", None, "", "reservations of the site")
        if partition.state != "UP":
            word = "PartitionInactive" if partition.state == "INACTIVE" else "PartitionDown"
            return not_in(word, f"a job while {where} is {partition.state}", "State")
        if partition.needs_reservation and reservation < 0:
            return not_in("PartitionConfig", "a job without a reservation", "ReqResv")
        if not self._site.is_associated(owner.account, owner.user):
            what = f"user {owner.user} in account {owner.account}"
            return Refusal("InvalidAccount", what, None, "", "associations of the site")
        if owner.account not in partition.accounts:
            return not_in("AccountNotAllowed", f"account {owner.account}", "AllowAccounts")
        if not self._site.lets_in(owner.user, partition):
            return not_in("PartitionConfig", f"user {owner.user or 'unknown'}, by its groups", "AllowGroups")
        if owner.qos not in partition.levels:
            return not_in("QOSNotAllowed", f"QOS {owner.qos or 'none'}", "AllowQos")
        if self._limit[entry] > partition.longest:
            asked, most = self._limit[entry] / MICROSECOND, partition.longest / MICROSECOND
            return Refusal("PartitionTimeLimit", asked, most, "s", f"MaxTime of {where}")
        if not self._memory_allowed(entry, partition):
            own = partition.most_memory is not None
            most = partition.most_memory if own else self._site.most_memory
            rule = f"MaxMemPerNode of {where if own else 'the site'}"
            return Refusal("MaxMemPerLimit", int(self._demands["memory"][entry]), most, "MiB", rule)
        time = int(self._limits.tres.time[entry])
        for name, asked in self._tres(entry).items():
            most = self._site.licences.get(licence(name))
            if most is not None and asked > most:
                return Refusal("Licenses", asked, most, f"of licence {licence(name)}", "Licenses of the site")
        never = self._submissions.never(owner, int(self._demands["cores"][entry]), self._tres(entry), time)
        return never or self._too_large(entry, now)

    def _too_large(self, entry: int, now: int) -> Refusal | None:
        if self.could(entry, now):
            return None
        demands, partition = self._demands, self._site.partitions[self._part[entry]]
        cores, nodes, where = int(demands["cores"][entry]), int(demands["nodes"][entry]), f"partition {partition.name}"
        if partition.most_nodes and nodes > partition.most_nodes:
            return Refusal("PartitionNodeLimit", nodes, partition.most_nodes, "nodes", f"MaxNodes of {where}")
        if (never := self._node_requests.all[int(demands["group"][entry])].never) is not None:
            return Refusal(*never, None, "", f"nodes of {where}")
        member = self._member(entry) > 0
        inside = np.isin([node.name for node in self._site.nodes], partition.nodes)
        if self._fits(entry, self._member(entry)):
            return Refusal("ReqNodeNotAvail", "it outside of reservations", None, "", f"nodes of {where}")
        whole = int(self._machine.cores[member].sum())
        rule = f"nodes of {where}" + (" with the requested features" if (member != inside).any() else "")
        if cores > whole:
            return Refusal("PartitionConfig", cores, whole, "cores", rule)
        uncapped = self._empty.copy()
        uncapped[CAPS:] = ANY
        if partition.node_cores and self._fits(entry, self._member(entry), empty=uncapped):
            return Refusal("PartitionConfig", cores, None, "cores", f"MaxCPUsPerNode of {where}")
        asked = f"{cores} cores{f' on {nodes} nodes' if nodes else ''} with the requested memory and GPUs"
        return Refusal("PartitionConfig", asked, None, "", rule)

    def give(self, request: int) -> None:
        """Uncount an admitted request that has ended or was cancelled."""
        self._submissions.give(self._counted.pop(request))

    def _welcome(self, entry: int, over: set[int]) -> bool:
        """Return whether a partition accepts an entry, and its reservation is not over."""
        owner = self._owners[entry]
        partition, reservation = self._site.partitions[self._part[entry]], self._reservation[entry]
        if reservation == UNKNOWN_PARTITION or reservation in over:
            return False
        if partition.state != "UP" or (partition.needs_reservation and reservation < 0):
            return False
        if owner.account not in partition.accounts or owner.qos not in partition.levels:
            return False
        if not self._site.lets_in(owner.user, partition) or not self._site.is_associated(owner.account, owner.user):
            return False
        if self._limit[entry] > partition.longest or not self._memory_allowed(entry, partition):
            return False
        return not self._counted_by or self._within_limits(entry)

    def _within_limits(self, entry: int) -> bool:
        """Return whether limits of running jobs would ever let an entry start."""
        limits, cores = self._limits, self._demands["cores"][entry]
        counters = limits.counter[limits.first[entry] : limits.first[entry + 1]]
        tres = (limits.tres.most[counters] < limits.tres.asked[entry]).any()
        return not (((limits.jobs[counters] < 1) | (limits.cores[counters] < cores)).any() or tres)

    def _memory_allowed(self, entry: int, partition: SitePartition) -> bool:
        most = self._site.most_memory if partition.most_memory is None else partition.most_memory
        return not self._site.memory or not most or int(self._demands["memory"][entry]) <= most

    def could(self, entry: int, now: int) -> bool:
        """Return whether an entry could start on empty nodes at any instant from now on, given all reservations."""
        if len(self._reservations.rows["node"]):
            booked = self._reservations
            return any(self._fits(entry, *self._open_at(entry, at, booked)) for at in _openings(now, booked))
        size = int(self._demands["kind"][entry])
        if size not in self._fitting:
            self._fitting[size] = self._fits(entry, self._member(entry))
        return self._fitting[size]

    def placeable(self, entry: int, now: int) -> bool:
        """Return whether an entry could start at any instant from now on, as far as the end of each absence is known.

        Where it fits after the last known change, it does so until another change is known.
        """
        kind, known = int(self._demands["same"][entry]), self.placeable_kinds
        if kind not in known:
            openings = reversed(list(_openings(now, self._seen)))
            found = (self._fits(entry, *self._open_at(entry, at, self._seen), self._machine.empty) for at in openings)
            always = next(found)
            if not always and any(found):
                return True
            known[kind] = always
        return known[kind]

    def _member(self, entry: int) -> IntArray:
        mask: IntArray = self._machine.member[self._demands["group"][entry]].astype(np.int64) * ANY
        return mask

    def _fits(self, entry: int, mask: IntArray, kept: IntArray | None = None, empty: IntArray | None = None) -> bool:
        machine, demands = self._machine, self._demands
        allowed = self._site.partitions[demands["part"][entry]].most_nodes
        if allowed and demands["nodes"][entry] > allowed:
            return False
        trial = trial_on(machine.cores)._replace(mask=mask, kept=np.zeros_like(mask) if kept is None else kept)
        return bool(select(entry, trial, demands, machine, self._empty if empty is None else empty))

    def _open_at(self, entry: int, at: int, reservations: Reservations) -> tuple[IntArray, IntArray]:
        """Return mask and kept cores as `open_nodes` at an instant, without running jobs."""
        rows, bound, flexible = reservations
        until, own = at + int(self._demands["limit"][entry]), int(self._demands["reservation"][entry])
        member, node, cores, period = self._member(entry), rows["node"], rows["cores"], rows["period"]
        again = np.where(at >= rows["end"], (at - rows["end"]) // np.maximum(period, 1) + 1, 0) * period
        start, end, whole = rows["start"] + again, rows["end"] + again, cores < 0
        mask, kept = member, np.zeros_like(member)
        if own >= 0 and not flexible[own + 1]:
            mask, inside = np.zeros_like(member), (rows["reservation"] == own) & (start <= at) & (until <= end)
            mask[node[inside]] = np.minimum(np.where(whole, ANY, cores)[inside], member[node[inside]])
        others = (at >= rows["known"]) & (bound[own + 1, rows["reservation"]] > 0) & (start < until) & (end > at)
        mask[node[others & whole]] = 0
        np.add.at(kept, node[others & ~whole], cores[others & ~whole])
        return mask, kept


def _openings(now: int, reservations: Reservations) -> Iterator[int]:
    """Yield instants at which an entry could newly fit: now, and where reservations begin and end."""
    at, until = now, seen_all(now, reservations)
    while at <= until:
        yield at
        at = int(next_change(at, reservations))
