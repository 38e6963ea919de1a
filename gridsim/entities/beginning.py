"""Start of a run from a state: jobs that run, wait, or wait for other jobs at time 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gridsim.entities.clock import Clock, Instant, PriorityEvent
from gridsim.entities.cluster import Cluster
from gridsim.entities.outcome import DONE, Outcome
from gridsim.entities.router import Root
from gridsim.model.time import NEVER, IntArray
from gridsim.model.workload import Workload
from gridsim.policy.capabilities import attribute_of, capabilities_of, takes_running
from gridsim.policy.protocols import Placement
from gridsim.policy.slurm.pending import RECORDED_WAIT
from gridsim.record import Status

Condition = tuple[str, tuple[int, ...]]
"""A dependency: its type as in Slurm, and the rows of the jobs."""


@dataclass(frozen=True)
class Beginning:
    """State at time 0, before which nothing is simulated. The running jobs are the first rows of the workload.

    Attributes
    ----------
    running : sequence of (int, Placement or None)
        Elapsed time of each running job, whole microseconds, and its place; the policy places those without one.
    after : mapping of int to sequence of Condition
        Dependencies of jobs, by row; a job without a run of its predecessor never enters the queue.
    any_one : frozenset of int
        Rows of jobs for which one of their dependencies is enough.
    past : sequence of (int, int, int)
        Jobs that have ended, by end: user, run time, and end (not above 0), whole microseconds. Predictors learn them.
    throttles : mapping of int to (int, int)
        Array of a job, by row, and the greatest number of its tasks that are in the queue or run.
    """

    running: Sequence[tuple[int, Placement | None]] = ()
    after: Mapping[int, Sequence[Condition]] = field(default_factory=dict)
    any_one: frozenset[int] = frozenset()
    throttles: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    past: Sequence[tuple[int, int, int]] = ()

    def adapted(self, workload: Workload, policy: Any) -> tuple[Workload, Beginning]:
        """Return workload and state for a policy that cannot begin with jobs that have run before.

        Such a policy starts the running jobs at time 0 with what remains of their limits and run times. That of a site
        starts them as recorded, whatever its limits and cycles.
        """
        many = len(self.running)
        if not many or takes_running(policy):
            return workload, self
        elapsed = np.zeros(len(workload), dtype=np.int64)
        elapsed[:many] = [passed for passed, _ in self.running]
        columns: dict[str, Any] = {it: getattr(workload, it) - elapsed for it in ("runtime", "estimate")}
        if capabilities_of(policy).site:
            recorded = np.where(np.arange(len(workload)) < many, 0, -1)
            columns["labels"] = {**workload.labels, RECORDED_WAIT: recorded}
        return replace(workload, **columns), replace(self, running=[(0, place) for _, place in self.running])

    def arrivals(self, submit: IntArray) -> IntArray:
        """Return the rows that enter the queue at known times, from 0 on, in this order."""
        rows = np.setdiff1d(np.arange(len(self.running), len(submit)), [*self.after, *self.throttles])
        return rows[np.argsort(np.maximum(submit[rows], 0), kind="stable")]


class Begun:
    """The running jobs of a state in place, and jobs that enter the queue when others have started or ended.

    Parameters
    ----------
    cluster : Cluster
        The cluster, before anything is decided; it reports starts and ends of requests.
    """

    def __init__(
        self, beginning: Beginning, env: Clock, instant: Instant, root: Root, cluster: Cluster, outcome: Outcome
    ) -> None:
        self._of, self._env, self._instant, self._root, self._outcome = beginning, env, instant, root, outcome
        running = range(len(beginning.running))
        self._left = dict.fromkeys(sorted({*beginning.after, *beginning.throttles}.difference(running)))
        self._expected = False
        recall = attribute_of(cluster.scheduler, "recall") if cluster.can.predicts else None
        if recall is not None:
            recall(beginning.past)
        for row, (elapsed, placement) in enumerate(beginning.running):
            cluster.install(row, elapsed, placement)
        if self._left:
            cluster.users = self
            self.over(0)

    def over(self, request: int) -> None:
        """Consider the jobs that wait for the start or the end of a request, after all events of this instant."""
        if self._left and not self._expected:
            self._expected = True
            PriorityEvent(self._env, 0, self._instant.arrival, self._release)

    began = over

    def _release(self, event: object) -> None:
        self._expected = False
        throttles, state = self._of.throttles, self._outcome.state
        active = Counter(of for row, (of, _) in throttles.items() if row not in self._left and state[row] != DONE)
        for row in list(self._left):
            array, most = throttles.get(row, (-1, NEVER))
            met = [self._met(*condition) for condition in self._of.after.get(row, ())]
            if active[array] < most and (any(met) if met and row in self._of.any_one else all(met)):
                active[array] += 1
                del self._left[row]
                self._root.take([row])

    def _met(self, kind: str, rows: tuple[int, ...]) -> bool:
        outcome = self._outcome
        if kind == "after":
            return bool(rows) and all(outcome.start[row] < NEVER for row in rows)
        completed = [outcome.status[row] == Status.completed for row in rows if outcome.state[row] == DONE]
        if len(completed) < len(rows) or not (rows or kind == "singleton"):
            return False
        return {"afternotok": not any(completed), "afterany": True, "singleton": True}.get(kind, all(completed))
