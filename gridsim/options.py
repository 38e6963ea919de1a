"""Options of a run that every policy shares."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np

from gridsim.engine.setup import Engine
from gridsim.entities.instant import Mode, modes
from gridsim.entities.limited import Limits
from gridsim.entities.router import Split
from gridsim.errors import InputError
from gridsim.model.pools import Partitions
from gridsim.model.time import NEVER, whole
from gridsim.model.workload import Workload
from gridsim.policy.protocols import name_of

Overrun = Literal["kill", "extend"]


@dataclass(frozen=True, slots=True)
class Run:
    """Options of a run that every policy shares.

    Parameters
    ----------
    overrun : {"kill", "extend"}
        What happens to a job that reaches its walltime estimate.
    instant : {"batched", "per-event"}
        One decision after all events of an instant, or one after each.
    seed : int
        Of the random streams: those of policies that draw, and those of the synthetic workload of a recipe.
    tick : float
        Unit of rounding up: of delays, of the first overrun assumed of a job that outlives its estimate, s; that of the
        workload's source, or 1 s, where left out.
    balancer : str or object
        Which child of a router gets a piece of a job, as `gridsim.policy.balancing.balancer` takes it.
    split : {"task", "kind-group"}
        How a piece is split that no child can hold whole.
    partitions : {"apart", "pooled"} or None
        Whether partitions that jobs name are pools of their own; None: where their sizes are known and no two share a
        node. A policy that knows its site keeps them itself.
    limits : {"refuse", "clip", "split"}
        What users do whose jobs ask for more time than a limit of the policy's site allows: they are turned away; they
        ask for the limit, and their jobs are killed there; their jobs go on in a chain of pieces no longer than it.
    engine : {"auto", "simpy", "compiled"}
        What a run goes on by, which changes no result: events of SimPy, or one compiled loop where nothing in the run
        needs Python (`gridsim.engine`); ``auto`` takes the loop where it can, but no small run waits for it to be
        compiled.
    until : float or None
        Instant before which the run stands still, s: jobs are ``waiting`` or ``running`` then. None: to the last end.
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

    def __post_init__(self) -> None:
        if self.overrun not in ("kill", "extend"):
            raise InputError(f"'{self.overrun}' is neither kill nor extend", field="overrun")
        if self.instant not in tuple(modes):  # a recipe may have a table here, which has no hash
            raise InputError(f"'{self.instant}' is neither batched nor per-event", field="instant")
        if not isinstance(self.seed, int | np.integer) or self.seed < 0:
            raise InputError(f"{self.seed!r} is no whole number from 0", field="seed")
        tick = 1.0 if self.tick is None else self.tick
        if not isinstance(tick, int | float) or not 0 < whole(tick) < NEVER:
            raise InputError(f"{self.tick!r} is no number of seconds; at least 1e-06 is needed", field="tick")
        if self.split not in get_args(Split):
            raise InputError(f"'{self.split}' is neither task nor kind-group", field="split")
        if self.partitions not in (None, *get_args(Partitions)):
            raise InputError(f"'{self.partitions}' is neither apart nor pooled", field="partitions")
        if self.limits not in get_args(Limits):
            raise InputError(f"'{self.limits}' is none of {', '.join(get_args(Limits))}", field="limits")
        if self.until is not None and not (isinstance(self.until, int | float) and 0 < whole(self.until) < NEVER):
            raise InputError(f"{self.until!r} is no instant; seconds above 0 are needed", field="until")
        if self.engine not in get_args(Engine):
            raise InputError(f"'{self.engine}' is none of {', '.join(get_args(Engine))}", field="engine")

    def tick_of(self, workload: Workload) -> float:
        """Unit of rounding up for a workload, s.

        Parameters
        ----------
        workload : Workload
            Whose source may say so.

        Returns
        -------
        float
            Seconds.
        """
        return float(workload.provenance.get("tick", 1.0)) if self.tick is None else self.tick

    def written(self, workload: Workload) -> dict[str, Any]:
        """The options of a run on a workload as files and pages tell them; of partitions only what was asked for.

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
        for name in ("partitions", "until"):
            if values[name] is None:
                del values[name]
        values["tick"] = self.tick_of(workload)
        if not isinstance(self.balancer, str):
            values["balancer"] = name_of(self.balancer)
        return values
