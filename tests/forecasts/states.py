"""States of clusters from the JSON of golden cases, and the JSON of states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gridsim.model.cluster_state import ClusterState, RunningJob, StateNode, StateReservation, WaitingJob


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
