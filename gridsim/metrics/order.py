"""Who went before whom: jobs that started ahead of earlier ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.record import Record

__all__ = ["backfilled_share", "overtook"]


def overtook(record: Record) -> npt.NDArray[np.bool_]:
    """Which jobs started while a job before them in job order was still waiting for the same cluster.

    Notes
    -----
    Each cluster, and each partition that is simulated apart, has a queue of its own: nobody overtakes who stands in
    another one.
    "Before" is job order: submit time, equal ones as they stood in their source. A job that starts in the same
    instant as an earlier one has not overtaken it, and jobs that never ran are neither overtaken nor overtaking.
    Under strict FCFS no job overtakes; under EASY and conservative these are the backfilled jobs. Under an ordering
    other than FIFO it also counts jobs that the order itself put first.

    Examples
    --------
    >>> rows = [dict(submit=0, start=5, end=9), dict(submit=1, start=1, end=2), dict(submit=2, start=9, end=10)]
    >>> overtook(Record.from_rows(rows)).tolist()
    [False, True, False]
    """
    if not len(record):
        return np.zeros(0, dtype=np.bool_)
    order = np.argsort(record.workload.submit, kind="stable")  # rows are in this order but where users reacted
    order = order[record.ran[order]]
    result = np.zeros(len(record), dtype=np.bool_)
    for cluster in np.unique(record.cluster[order]):
        queue = order[record.cluster[order] == cluster]
        start = record.start_us[queue]
        result[queue[1:]] = np.maximum.accumulate(start)[:-1] > start[1:]
    return result


def backfilled_share(record: Record, rows: Any = None, *, by_area: bool = False) -> float:
    """Share of the jobs that ran, or of the core-seconds they held, that overtook an earlier job; a fraction.

    Parameters
    ----------
    rows : mask, slice or indices, optional
        Jobs to count; who overtook whom is decided on the whole record all the same.
    by_area : bool
        Count core-seconds instead of jobs.
    """
    weights = np.nan_to_num(record.area) if by_area else record.ran.astype(np.float64)
    ahead = overtook(record)
    if rows is not None:
        weights, ahead = weights[rows], ahead[rows]
    total = float(weights.sum())
    return float(weights[ahead].sum()) / total if total else float("nan")
