"""Workspace of scheduling cycles: the same arrays while they suffice, then larger ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from gridsim.policy.slurm.cycle_workspace import buffers_for

NODES = 6


def room_for(waiting: int, running: int, before: Any = None, cores: int = 100) -> Any:
    held = SimpleNamespace(
        counts=np.array([running, 0, 0, 0]),
        running=np.array([np.zeros(60), np.arange(60)], dtype=np.int64),
        pieces=np.full(60, NODES),
        busy=np.zeros(60, dtype=np.uint8),
    )
    machine: Any = SimpleNamespace(
        cores=np.full(NODES, cores), now=np.zeros((4, NODES), dtype=np.int64), counts=np.array([3, 2, 5, 4, 7])
    )
    demands = {"cores": np.tile([1, 20], 50), "unit": np.ones(100, np.int64), "nodes": np.zeros(100, np.int64)}
    return buffers_for(np.arange(waiting), held, demands, machine, before)  # type: ignore[arg-type]


def test_there_is_capacity_for_all_that_run_and_all_that_could_start() -> None:
    for waiting, running in [(1, 0), (10, 3), (100, 50)]:
        workspace, pieces = room_for(waiting, running), NODES * running + (waiting // 2) * (1 + NODES)
        assert workspace.picked.shape[1] > waiting + running
        assert len(workspace.ends.node) == len(workspace.others.node) >= pieces
        assert len(workspace.ends.first) > waiting + running
        assert len(workspace.plan.begin) > 2 * waiting  # each may begin and end an interval


def test_no_more_pieces_start_than_there_are_cores() -> None:
    assert len(room_for(100, 0, cores=8).ends.node) == 2 * 8 * NODES


def test_capacity_is_kept_as_long_as_it_suffices_and_then_doubled() -> None:
    workspace = room_for(10, 3)
    assert room_for(10, 3, workspace) is workspace
    assert room_for(12, 6, workspace) is workspace
    for waiting, running in [(40, 3), (10, 40)]:
        wider = room_for(waiting, running, workspace)
        assert wider is not workspace
        assert wider.trial is workspace.trial
        assert wider.picked.shape[1] > 2 * (waiting + running)
