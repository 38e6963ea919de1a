"""Process that removes failed nodes and GPUs of the clusters, stops their requests, and restores them."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from simpy import Event

from gridsim.entities.clock import Clock
from gridsim.entities.cluster import Cluster
from gridsim.entities.instant import At, Instant
from gridsim.model.failures import Failure, Failures, Machines, Part
from gridsim.model.time import NEVER, IntArray, whole
from gridsim.policy.protocols import Absence, CapacityChange
from gridsim.policy.queue import Requests


class Breakdowns:
    """Apply failures in order of time; failures of one node that overlap or touch are one absence.

    Parameters
    ----------
    clusters : sequence of Cluster
        Clusters with nodes, whose schedulers have ``capacity_changed``.
    options : Failures
        Knowledge of repairs, and what happens to stopped requests.
    machines : Machines
        Nodes of the clusters.
    seed : int
        Seed of the scenario.
    """

    def __init__(
        self,
        env: Clock,
        clusters: Sequence[Cluster],
        requests: Requests,
        options: Failures,
        machines: Machines,
        seed: int,
        instant: Instant,
    ) -> None:
        self._env, self._clusters, self._requests = env, clusters, requests
        self._options, self._machines, self._priority = options, machines, instant.capacity
        self._failures = options.failures(machines, seed)
        self._announced, self._delay = options.repair == "announced", whole(options.requeue_delay)
        self._next = next(self._failures, None)
        self._ups: list[tuple[int, int, Failure]] = []  # by end
        self._until: dict[tuple[int, Part], list[int]] = defaultdict(list)  # ends of the failures of each absent part
        self._known: dict[tuple[int, Part], Absence] = {}
        self._since: dict[tuple[int, Part], int] = {}
        self._past: list[tuple[int, int, int, Part]] = []  # begin and end of absences that are over
        self._restarts: dict[int, int] = defaultdict(int)
        self._limits = requests.labels.get("max_restarts")
        self._then = requests.labels.get("on_failure")
        self._count, self._expected = 0, NEVER
        self._expect()

    def absences(self) -> tuple[tuple[str, ...], int, IntArray]:
        """Return the names of all nodes, the number of GPUs, and all absences so far in order of time.

        Returns
        -------
        names : tuple of str
            As in `gridsim.record.Interruptions`.
        gpus : int
            Number of GPUs.
        absences : (4, f) int64
            Index of the node, number of the GPU, begin and end.
        """
        first = np.cumsum([0, *(len(each.nodes) for each in self._machines.capacities)]).tolist()
        several = len(self._machines.names) > 1
        pairs = list(zip(self._machines.names, self._machines.capacities, strict=True))
        names = tuple(f"{name}/{node}" if several else node for name, each in pairs for node in each.nodes)
        present = [
            (self._since[cluster, part], max(ends), cluster, part)
            for (cluster, part), ends in self._until.items()
            if ends
        ]
        rows = sorted((*self._past, *present))
        table = [(first[cluster] + part[0], part[1], down, up) for down, up, cluster, part in rows]
        return names, sum(int(each.gpus.sum()) for _, each in pairs), np.array(table, dtype=np.int64).reshape(-1, 4).T

    @property
    def lost_part(self) -> bool:
        """True if a node or GPU is absent and will not return."""
        return any(NEVER in ends for ends in self._until.values())

    def _expect(self) -> None:
        """Schedule the next instant of a failure or a return."""
        at = min(NEVER if self._next is None else self._next.down, self._ups[0][0] if self._ups else NEVER)
        if at < min(self._expected, NEVER):
            self._expected = at
            At(self._env, at - self._env.instant, self._priority, self._happen)

    def _happen(self, _: Event) -> None:
        now = self._env.instant
        if now != self._expected or (not self._ups and self._env.quiet):
            return  # superseded by an earlier event; or nothing runs, arrives or returns: the run is over
        self._expected = NEVER
        self._change(now)
        self._expect()

    def fail(self, nodes: Sequence[str], now: int, until: int) -> None:
        """Let nodes and GPUs fail in the present instant, in addition; whole microseconds."""
        before: dict[tuple[int, Part], bool] = {}
        for cluster, parts in self._machines.parts(nodes).items():
            before |= {(cluster, part): bool(self._until[cluster, part]) for part in parts}
            self._begin(Failure(now, until, cluster, tuple(parts)))
        self._apply(now, before)
        self._expect()

    def _change(self, now: int) -> None:
        """Apply all returns and failures of an instant."""
        before: dict[tuple[int, Part], bool] = {}
        while self._ups and self._ups[0][0] == now:
            _, _, failure = heapq.heappop(self._ups)
            for part in failure.parts:
                key = failure.cluster, part
                before[key] = True
                self._until[key].remove(failure.up)
        while self._next is not None and self._next.down == now:
            for part in self._next.parts:
                before.setdefault((self._next.cluster, part), bool(self._until[self._next.cluster, part]))
            self._begin(self._next)
            self._next = next(self._failures, None)
        self._apply(now, before)

    def _begin(self, failure: Failure) -> None:
        self._count += 1
        for part in failure.parts:
            self._until[failure.cluster, part].append(failure.up)
        if failure.up < NEVER:
            heapq.heappush(self._ups, (failure.up, self._count, failure))

    def _apply(self, now: int, before: dict[tuple[int, Part], bool]) -> None:
        """Notify the clusters of the difference to the previous state of some parts."""
        lost: dict[int, list[Absence]] = defaultdict(list)
        restored: dict[int, list[Absence]] = defaultdict(list)
        failed: dict[int, list[Absence]] = defaultdict(list)
        for (cluster, part), was_absent in before.items():
            until = self._until[cluster, part]
            if until and not was_absent:
                self._since[cluster, part] = now
            elif not until and was_absent:
                self._past.append((self._since[cluster, part], now, cluster, part))
            absence = Absence(*part, now, max(until) if self._announced else NEVER) if until else None
            known = self._known.get((cluster, part))
            if absence is not None and known is not None and absence.end == known.end:
                continue
            if known is not None:
                restored[cluster].append(self._known.pop((cluster, part)))
            if absence is not None:
                self._known[cluster, part] = absence
                lost[cluster].append(absence)
                if not was_absent:
                    failed[cluster].append(absence)
        for cluster in sorted({*lost, *restored}):
            change = CapacityChange(tuple(lost[cluster]), tuple(restored[cluster]))
            machine = self._clusters[cluster]
            machine.change_capacity(change, self._hit(machine, failed[cluster], now), self._again)

    def _hit(self, cluster: Cluster, failed: Iterable[Absence], now: int) -> list[int]:
        """Return the requests on failed nodes and GPUs, in order of submission, without those that end now."""
        found = {request for it in failed for request in cluster.machine.on(it.node, it.gpu)}
        submit = self._requests.submit
        return sorted(
            (request for request in found if not cluster.ends(request, now)),
            key=lambda request: (int(submit[request]), request),
        )

    def _again(self, request: int) -> tuple[int, bool] | None:
        """Return the delay of a stopped request and whether it keeps its place in the queue; None if it failed."""
        options, most = self._options, self._options.max_restarts
        if self._limits is not None and (own := _of(self._limits, request)) is not None:
            most = own
        then = options.on_failure
        if self._then is not None and (how := _of(self._then, request)) is not None:
            then = "cancel" if how else "requeue"
        if then == "cancel" or (most is not None and self._restarts[request] >= most):
            return None
        self._restarts[request] += 1
        return self._delay, options.requeue == "original"


def _of(column: IntArray, request: int) -> int | None:
    value = int(column[request])
    return None if value < 0 else value
