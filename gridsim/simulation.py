"""One run: a workload, a platform and a policy in, what happened out."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from simpy import Environment

from gridsim import registry
from gridsim.entities.cluster import Cluster, Outcome
from gridsim.entities.instant import Mode, modes
from gridsim.entities.router import Router
from gridsim.entities.source import Source
from gridsim.errors import GridsimError, InputError, PolicyError
from gridsim.model.machine import machine
from gridsim.model.platform import Platform
from gridsim.model.streams import stream
from gridsim.model.time import NEVER, whole
from gridsim.model.workload import Workload
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.protocols import failed, told
from gridsim.policy.queue import ClusterView, Requests
from gridsim.record import Record
from gridsim.result import Result

__all__ = ["Overrun", "Run", "run", "simulate"]

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
        First overrun assumed of a job that outlives its estimate, s.
    """

    overrun: Overrun = "kill"
    instant: Mode = "batched"
    seed: int = 1
    tick: float = 1.0

    def __post_init__(self) -> None:
        if self.overrun not in ("kill", "extend"):
            raise InputError(f"'{self.overrun}' is neither kill nor extend", field="overrun")
        if self.instant not in modes:
            raise InputError(f"'{self.instant}' is neither batched nor per-event", field="instant")
        if not isinstance(self.seed, int | np.integer) or self.seed < 0:
            raise InputError(f"{self.seed!r} is no whole number from 0", field="seed")
        if not isinstance(self.tick, int | float) or not 0 < whole(float(self.tick)) < NEVER:
            raise InputError(f"{self.tick!r} is no number of seconds; at least 1e-06 is needed", field="tick")


def run(
    workload: Workload,
    platform: Platform,
    policy: Any,
    options: Run | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> Record:
    """Simulate to the last completion.

    Parameters
    ----------
    policy : str or object
        As `gridsim.policy.presets.policy` takes it; an object is copied, so it can be used again.
    progress : callable, optional
        Told the number of jobs released so far, now and then.

    Raises
    ------
    PolicyError
        When the policy decides something impossible, or leaves jobs waiting on an idle machine.
    """
    options = options or Run()
    instant, tick = modes[options.instant], whole(options.tick)
    requests = Requests(workload)
    outcome = Outcome(requests, workload.runtime)
    env = Environment()
    scheduler = make_policy(policy)
    clusters = []
    for index, spec in enumerate(platform.clusters()):
        own = copy.deepcopy(scheduler)
        _set_up(own, ClusterView(spec.cores, requests, tick, index), stream(options.seed, "cluster", index))
        extend = options.overrun == "extend"
        clusters.append(Cluster(env, index, spec.cores, own, requests, outcome, instant, extend=extend, tick=tick))
    if len(clusters) != 1:
        raise InputError(f"the platform has {len(clusters)} clusters; this version runs one", field="platform")
    Source(env, requests.submit, Router(env, clusters), instant, progress)
    env.run()
    record = Record(workload, outcome.start, outcome.end, outcome.status, outcome.cluster, platform.cores)
    _check_complete(record, outcome, scheduler)
    return record


def _set_up(scheduler: Any, view: ClusterView, rng: np.random.Generator) -> None:
    try:
        scheduler.setup(view, rng)
    except GridsimError:
        raise
    except Exception as error:
        raise failed(scheduler, "setup", error) from error


def _check_complete(record: Record, outcome: Outcome, scheduler: Any) -> None:
    """Every request has ended or was refused: nothing may be left waiting on a machine without events."""
    left = outcome.unfinished()
    if len(left):
        job = int(record.workload.job[left[0]])
        raise PolicyError(f"{told(scheduler)} left {len(left)} jobs waiting for ever, job {job} first")


def simulate(
    workload: Workload,
    *,
    platform: Platform | None = None,
    policy: Any = "easy",
    options: Run | None = None,
    overrun: Overrun | None = None,
    instant: Mode | None = None,
    seed: int | None = None,
    tick: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Run one policy on one workload.

    Parameters
    ----------
    workload : Workload
        Jobs, as `gridsim.read_workload` returns them or `Workload.from_columns` makes them.
    platform : Platform, optional
        The machine; one cluster of the size that the workload's source states where left out.
    policy : str or object
        A preset such as ``easy``, a composition such as ``backfilling?ordering=sjf&reserve=easy``, a bare ordering,
        ``file.py:Class``, or a policy object.
    options : Run, optional
        Overrun, instant, seed and tick together.
    overrun, instant, seed, tick : optional
        Each on its own, in place of that of the *options*.

    Raises
    ------
    InputError
        When the size of the machine is not known, or an option is none.
    PolicyError
        When the policy decides something impossible.

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2])
    >>> simulate(jobs, platform=Platform.single(4)).record.start
    array([ 0., 10.,  2.])
    """
    platform = platform or machine(workload)
    given: dict[str, Any] = {"overrun": overrun, "instant": instant, "seed": seed, "tick": tick}
    options = replace(options or Run(), **{name: value for name, value in given.items() if value is not None})
    scheduler = make_policy(policy)
    record = run(workload, platform, scheduler, options, progress=progress)
    return Result(record, platform, told(scheduler), asdict(options), registry.plugins(scheduler))
