"""Queues of a real Slurm without an order consistent with every two jobs are sorted in the recorded order."""

from __future__ import annotations

import csv
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from gridsim.policy.slurm.queue_sort import in_order, levels_of, sort_columns_of

FOLDER = Path(__file__).parent / "slurm-queues"
QOS = ("top", "mid", "side", "other", "low")
PREEMPT = {("top", "mid"), ("top", "low"), ("mid", "low"), ("side", "low")}
WITHIN = {("mid", "mid"), ("other", "other")}
TIERS = {"lo": 1, "md": 3, "hi": 5}


def _queues() -> dict[str, list[dict[str, str]]]:
    with (FOLDER / "queues.csv").open() as lines:
        return {name: list(rows) for name, rows in groupby(csv.DictReader(lines), lambda row: row["queue"])}


@pytest.mark.parametrize("queue", "1234567")
def test_a_queue_is_in_the_order_of_a_real_slurm(queue: str) -> None:
    rows = _queues()[queue]
    found = PREEMPT | (WITHIN if queue in "67" else set())
    may = np.array([[(one, other) in found for other in QOS] for one in QOS], dtype=np.uint8)
    entries = [(row, part) for row in range(len(rows)) for part in rows[row]["partitions"].split(",")]
    request = np.array([row for row, _ in entries])
    kind = np.array([QOS.index(rows[row]["qos"]) for row in request])
    tier = np.array([TIERS[part] for _, part in entries])
    ones = np.ones(len(entries), dtype=np.int64)
    precedence = sort_columns_of(may, kind, request, ones, tier, np.arange(len(rows)))
    precedence.own["priority"][:] = [int(rows[row]["priority"]) for row in request]
    assert (levels_of(may, kind) is None) == (queue != "5")
    ordered = request[in_order(np.random.default_rng(1).permutation(len(entries)), precedence)].tolist()
    assert [ordered.index(row) for row in range(len(rows))] == [int(row["place"]) for row in rows]
