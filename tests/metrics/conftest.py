"""Hand-written records of policies that make promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from gridsim.model.time import to_us
from gridsim.record import Promises, Record

INFINITY = float("inf")


def _promised(
    record: Record,
    *,
    asked: Sequence[float],
    granted: Sequence[float] | None = None,
    offers: Sequence[float] = (),
    killed: Sequence[tuple[int, float, float]] = (),
    doublings: Sequence[int] = (),
    broken: Sequence[int] = (),
) -> Record:
    n = len(record)
    workload = replace(record.workload, deadline=to_us(np.array(asked, dtype=float)))
    if granted is None:
        return replace(record, workload=workload)
    promises = Promises(
        to_us(np.array(granted, dtype=float)),
        to_us(np.array(offers or [INFINITY] * n, dtype=float)),
        np.array(doublings or [0] * n),
        np.isin(np.arange(n), broken),
        np.array([row for row, _, _ in killed], dtype=np.int64),
        to_us(np.array([start for _, start, _ in killed], dtype=float)),
        to_us(np.array([end for _, _, end in killed], dtype=float)),
    )
    return replace(record, workload=workload, promises=promises)


@pytest.fixture(scope="session")
def promised() -> Callable[..., Record]:
    """Add deadlines to a record: *asked*, *granted* and *offers* (s, infinity for none); None: no promises.

    *killed* are runs cut short (row, start and end in s), *broken* rows of jobs.
    """
    return _promised
