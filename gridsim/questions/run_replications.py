"""Runs on replicas of a workload, with shifted submit times or resampled users: one run per replica and arm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.metrics.summary import metrics
from gridsim.model.platform import Platform
from gridsim.model.random_streams import of_replica
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.pools import in_pools
from gridsim.policy.presets import policy as make_policy
from gridsim.questions.evidence import Evidence
from gridsim.questions.replications import Replicated, Role, settled
from gridsim.registry import name_of
from gridsim.simulation import run
from gridsim.workers import Awaited, Workers
from gridsim.workload.transform.resample import Resample
from gridsim.workload.transform.shake import Shake

_MOST = 10_000
"""Largest number of replicas."""

SHAKES = 8
"""Default number of shaken workloads of a comparison."""

CHEAP = 5e6
"""Number of EASY runs times jobs below which these are simulated by default: about 10 s on one core."""

_IN_PYTHON = 30.0
"""Run time without a compiled loop relative to that of EASY with it."""


class Arm(NamedTuple):
    """Configuration to run on every replica: machine, policy, and changes of the replica's jobs."""

    platform: Platform
    policy: Any
    change: Any = None


@dataclass(frozen=True)
class Family:
    """Replicas of a workload: replica k is the same for every policy.

    Parameters
    ----------
    role : {"shake", "resample"}
        Kind of replicas.
    transform : object
        Transform that creates a replica from the workload and a random stream.
    replicas : int
        Number of replicas.
    seed : int
        Seed of the scenario; the random stream of replica k depends on the role and k.
    default : bool
        Whether the family was not requested explicitly; the report then has one sentence on it.
    """

    role: Role
    transform: Any
    replicas: int
    seed: int = 1
    default: bool = False

    def __post_init__(self) -> None:
        if not 2 <= self.replicas <= _MOST:
            raise InputError(f"{self.replicas} replicas; expected 2 to {_MOST:,}", field=self.role)

    def member(self, workload: Workload, replica: int) -> Workload:
        """Return replica number *replica*, from 0."""
        made: Workload = self.transform.apply(workload, of_replica(self.seed, self.role, replica + 1))
        return made

    def written(self) -> dict[str, Any]:
        """Return the description for files; JSON types only."""
        told = {"transform": name_of(type(self.transform)), **asdict(self.transform)}
        told.pop("replica", None)
        found = {"role": self.role, "seed": self.seed, "replicas": self.replicas, **told}
        return {**found, "default": True} if self.default else found


def default_shakes(workload: Workload, policies: Iterable[Any]) -> int:
    """Return how many shaken workloads a comparison simulates by default: `SHAKES` if that is cheap, else none.

    This depends on the number of jobs (or tasks) and the policies' ``effort``, not on measured time.
    """
    size = len(workload) if workload.tasks is None else len(workload.tasks)
    able = [capabilities_of(each) for each in policies]
    compiled = workload.tasks is None and workload.reactions is None
    effort = sum(can.effort if can.compiled and compiled else max(can.effort, _IN_PYTHON) for can in able)
    return SHAKES if len(able) > 1 and SHAKES * size * effort <= CHEAP else 0


def families(
    *,
    shake: int = 0,
    shake_by: int | None = None,
    resample: int = 0,
    resample_load: float | None = None,
    seed: int = 1,
    default: bool = False,
) -> list[Family]:
    """Return the families by number of replicas; *default* if shaken ones were not requested explicitly.

    Raises
    ------
    InputError
        For *shake_by* without *shake*, and *resample_load* without *resample*.
    """
    if shake_by is not None and not shake:
        raise InputError("needs the number of replicas; give --shake 20 too", field="shake-by")
    if resample_load is not None and not resample:
        raise InputError("needs the number of replicas; give --resample 20 too", field="resample-load")
    found: list[Family] = []
    if shake:
        found.append(Family("shake", Shake() if shake_by is None else Shake(shake_by), shake, seed, default))
    if resample:
        drawn = Resample() if resample_load is None else Resample(load=resample_load)
        found.append(Family("resample", drawn, resample, seed))
    return found


@dataclass(frozen=True, slots=True)
class PendingReplicas:
    """Runs of a family, submitted to workers immediately; `found` waits for the results."""

    family: Family
    answers: Mapping[str, Sequence[Awaited[dict[str, float]]]]
    facts: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        family: Family,
        workload: Workload,
        arms: Mapping[str, Arm],
        workers: Workers,
        *,
        options: Run,
        cuts: Mapping[str, Any],
        progress: Callable[[str, int], None] | None = None,
    ) -> PendingReplicas:
        """Submit the runs.

        Parameters
        ----------
        arms : mapping of str to Arm
            Arms by label.
        cuts : mapping of str to float
            ``bound``, ``warmup`` and ``cooldown`` as for `gridsim.metrics.summary.metrics`.
        progress : callable, optional
            Called with the label and the replica, and the number of jobs released so far.
        """

        def begun(label: str, replica: int) -> Awaited[dict[str, float]]:
            told = None if progress is None else partial(progress, f"{label}, {family.role} {replica + 1}")
            what = (workload, family, replica, arms[label], options, dict(cuts))
            return workers.submit(_numbers, *what, name=label, progress=told)

        told = family.member(workload, 0).provenance["transforms"][-1]  # raises errors of the transform here
        facts = {name: told[name] for name in ("weeks", "users_of_log") if name in told}
        made: dict[str, list[Awaited[dict[str, float]]]] = {label: [] for label in arms}
        for replica in range(family.replicas):
            for label in arms:
                made[label].append(begun(label, replica))
        return cls(family, made, facts)

    def found(self, original: Mapping[str, Mapping[str, float]]) -> Replicated:
        """Return the metrics; *original* are those of the original workload."""
        numbers = {}
        for label, answers in self.answers.items():
            if label not in original:  # rejected for the original workload
                continue
            rows = [answer.result() for answer in answers]
            names = [name for name in original[label] if all(name in row for row in rows)]
            numbers[label] = {name: np.array([row[name] for row in rows]) for name in names}
        return Replicated(self.family.role, {**self.family.written(), **self.facts}, original, numbers)


def _numbers(
    workload: Workload,
    family: Family,
    replica: int,
    arm: Arm,
    options: Run,
    cuts: Mapping[str, Any],
    progress: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Return the metrics of an arm on one replica."""
    made, scheduler = family.member(workload, replica), make_policy(arm.policy)
    if arm.change is not None:
        made = arm.change.apply(made)
    whole = in_pools(made, arm.platform, [scheduler], options.partitions)
    return metrics(run(made, whole, scheduler, options, progress=progress), **cuts)


def with_replicas(evidence: Evidence, pending: Sequence[PendingReplicas]) -> Evidence:
    """Return the comparison with the results of the families, also for ``run.json``."""
    if not pending:
        return evidence
    found = tuple(each.found(evidence.metrics) for each in pending)
    info = {**evidence.info, "replicas": [dict(each.info) for each in found]}
    return replace(evidence, replicated=found, info=info, differences=settled(evidence.differences, found))
