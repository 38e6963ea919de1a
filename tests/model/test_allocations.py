"""Columns of allocations: rows of some jobs, of chains, and GPUs as text."""

from __future__ import annotations

import numpy as np

from gridsim.model.allocations import POOLS, Allocations
from gridsim.model.time import IntArray


def column(*values: int) -> IntArray:
    return np.array(values, dtype=np.int64)


HELD = Allocations(
    nodes=("a", "b"),
    job=column(0, 0, 1, 2, 2),
    run=column(1, 1, 1, 1, 2),
    node=column(0, 1, POOLS, 0, 1),
    tasks=column(1, 2, 3, 4, 5),
    amounts={"cores": column(4, 5, 6, 7, 8)},
    start_us=column(0, 0, 1, 2, 9),
    end_us=column(5, 5, 6, 4, 12),
    gpu_row=column(0, 3, 4, 4),
    gpu=column(0, 0, 1, 3),
    gpu_share=column(1000, 500, 250, 1000),
)


def test_rows_of_some_jobs_keep_their_gpus() -> None:
    last = HELD.select(slice(2, 3), 3)
    assert last.job.tolist() == [0, 0]
    assert (last.run.tolist(), last.tasks.tolist(), last.amounts["cores"].tolist()) == ([1, 2], [4, 5], [7, 8])
    assert last.gpu_texts() == ["0:500", "1:250 3:1000"]
    swapped = HELD.select([2, 0], 3)
    assert swapped.job.tolist() == [0, 0, 1, 1]
    assert swapped.gpu_texts() == ["0:500", "1:250 3:1000", "0:1000", ""]
    assert not len(HELD.select(np.zeros(3, dtype=bool), 3))


def test_runs_of_the_pieces_of_a_chain_are_numbered_in_order_of_time() -> None:
    chains = HELD.of_jobs(column(0, 1, 1))
    assert chains.job.tolist() == [0, 0, 1, 1, 1]
    assert chains.run.tolist() == [1, 1, 1, 2, 3]
    assert chains.start_us.tolist() == [0, 0, 1, 2, 9]
    assert chains.gpu_texts() == HELD.gpu_texts()


def test_it_reports_its_size() -> None:
    assert repr(HELD) == "<Allocations: 5 pieces on 2 nodes>"
