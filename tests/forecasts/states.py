"""States of clusters from the JSON of golden cases, the JSON of states, and runs from states of a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gridsim.forecasts.state import State
from gridsim.model.cluster_state import ClusterState, RunningJob, StateNode, StateReservation, WaitingJob
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.options import Engine, Run
from gridsim.record import Record
from gridsim.world import World


def state_of(content: Mapping[str, Any]) -> ClusterState:
    kinds = {"running": RunningJob, "waiting": WaitingJob, "nodes": StateNode, "reservations": StateReservation}
    records = {name: tuple(kind(**frozen(each)) for each in content[name]) for name, kind in kinds.items()}
    others = {name: content[name] for name in ("at", "licences", "left_out") if name in content}
    return ClusterState(**others, **records)  # type: ignore[arg-type]


def frozen(value: Any) -> Any:
    """A value of JSON with tuples instead of lists."""
    if isinstance(value, Mapping):
        return {name: frozen(each) for name, each in value.items()}
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def json_of(state: ClusterState) -> dict[str, Any]:
    """The fields of golden cases."""
    content = state.to_json()
    content.pop("notes", None)
    for job in content["waiting"]:
        job.pop("slurm_start", None)
    return content


def starts_from(
    at: int, whole: Record, platform: Platform, policy: str, engine: Engine
) -> tuple[list[int], list[int], int]:
    """Starts from the state of a run with the true future, those of the run itself, and the number of waiting jobs."""
    log, now = whole.workload, at * MICROSECOND
    state = State.of(at, log.submit, whole.start_us, whole.end_us, whole.allocations)
    state = state.with_past(log, whole.start_us, whole.end_us)
    later = np.flatnonzero(log.submit > now)
    jobs = state.workload(log, later, log.submit[later] - now)
    world = World(jobs, platform, policy, Run(engine=engine), max_jobs=0, beginning=state.beginning)
    world.complete()
    found = world.record().start_us
    rows = np.concatenate([state.rows, later])
    return (found + np.where(found < NEVER, now, 0)).tolist(), whole.start_us[rows].tolist(), len(state.waiting)
