"""Options of a run, shared by all policies."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from gridsim.engine.setup import Engine
from gridsim.entities.clock import Mode
from gridsim.entities.router import Split
from gridsim.entities.walltime_limit import Limits
from gridsim.errors import name_of
from gridsim.model.failures import Failures
from gridsim.model.partitions import Partitions
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import Workload
from gridsim.schema import Number, check_fields

Overrun = Literal["kill", "extend"]

_SECONDS = Number(1 / MICROSECOND, (NEVER - 1) / MICROSECOND)
_FIELDS = {
    "overrun": Overrun,
    "instant": Mode,
    "seed": Number(0, whole=True),
    "tick": (_SECONDS, None),
    "split": Split,
    "partitions": (Partitions, None),
    "limits": Limits,
    "until": (_SECONDS, None),
    "engine": Engine,
}


@dataclass(frozen=True, slots=True)
class Run:
    """Options of a run, shared by all policies.

    Parameters
    ----------
    overrun : {"kill", "extend"}
        Treatment of a job that reaches its requested walltime.
    instant : {"batched", "per-event"}
        Whether the scheduler decides once after all events of an instant, or after each event.
    seed : int
        Seed of the random streams of policies and of the synthetic workload of a scenario file.
    tick : float
        Unit for rounding up delays, and first assumed overrun of a job that exceeds its estimate, s; by default that
        of the workload's source, or 1 s.
    balancer : str or object
        Rule by which a router assigns pieces of a job to its children, as for `gridsim.policy.balancing.balancer`.
    split : {"task", "kind-group"}
        How to split a piece that no single child can hold.
    partitions : {"apart", "pooled"} or None
        Whether the partitions of jobs are separate pools; None: yes if their sizes are known and no two share a node.
        A policy with a site configuration handles partitions itself.
    limits : {"refuse", "clip", "split"}
        Treatment of jobs above a time limit of the policy's site: reject the job, clip its request to the limit (the
        job is killed there), or split it into a chain of jobs no longer than the limit.
    engine : {"auto", "simpy", "compiled"}
        Simulation engine; results are identical. ``simpy`` uses SimPy events; ``compiled`` runs one compiled loop and
        requires that nothing in the run needs Python (`gridsim.engine`); ``auto`` uses the loop if possible, but a
        small run does not wait for compilation.
    until : float or None
        Instant before which the run stops, s; remaining jobs are ``waiting`` or ``running``. None: simulate to the
        last job end.
    failures : Failures or None
        Failures of nodes and GPUs, and what follows for jobs; only with nodes, and not with the compiled engine.
    """

    overrun: Overrun = "kill"
    instant: Mode = "batched"
    seed: int = 1
    tick: float | None = None
    balancer: Any = "expected-queue"
    split: Split = "task"
    partitions: Partitions | None = None
    limits: Limits = "refuse"
    engine: Engine = "auto"
    until: float | None = None
    failures: Failures | None = None

    def __post_init__(self) -> None:
        check_fields(self, _FIELDS)

    def tick_of(self, workload: Workload) -> float:
        """Return the unit for rounding up for a workload, s.

        Parameters
        ----------
        workload : Workload
            The workload, whose source may define the unit.

        Returns
        -------
        float
            Seconds.
        """
        return float(workload.provenance.get("tick", 1.0)) if self.tick is None else self.tick

    def written(self, workload: Workload) -> dict[str, Any]:
        """Return the options as written to files and pages; ``partitions`` only if it was set.

        Parameters
        ----------
        workload : Workload
            The jobs.

        Returns
        -------
        dict of str to object
            JSON types only.
        """
        values = {option.name: getattr(self, option.name) for option in fields(self)}
        for name in ("partitions", "until", "failures"):
            if values[name] is None:
                del values[name]
        if self.failures is not None:
            values["failures"] = self.failures.dated(workload.provenance).written()
        values["tick"] = self.tick_of(workload)
        if not isinstance(self.balancer, str):
            values["balancer"] = name_of(self.balancer)
        return values
