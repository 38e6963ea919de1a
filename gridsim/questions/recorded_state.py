"""The state of a machine at a moment of its log, and a workload that a simulation brings into that state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.policy.slurm.pending import RECORDED_WAIT
from gridsim.questions.quotation import State

__all__ = ["as_recorded", "last_event", "recorded_state"]


def last_event(workload: Workload) -> int:
    """The last submission, start or end in the log, whole microseconds; without starts, jobs start at once."""
    start, end = workload.logged_last_start, workload.logged_end
    if start is None or end is None:
        return int((workload.submit + workload.runtime).max(initial=0))
    known = [column[column < NEVER] for column in (start, end, _running_until(workload, start, end))]
    return int(np.concatenate([workload.submit, *known]).max(initial=0))


def _running_until(workload: Workload, start: IntArray, end: IntArray) -> IntArray:
    """Until when jobs are known to run that have not ended in the log; `NEVER` for all others."""
    return np.where((start < NEVER) & (end >= NEVER), start + workload.runtime, NEVER)


def recorded_state(workload: Workload, at: int) -> State:
    """Jobs that run and wait in the log at an instant, whole microseconds: after its ends and its starts.

    A job of several runs waits until the last one, since the log does not contain the ends of the others.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 0, 5], runtime=[9, 9, 9], cores=[4, 2, 2], logged={"wait": [0, 7, 9]})
    >>> recorded_state(log, 6_000_000)
    State(running=1, busy=4, waiting=2)
    """
    start, end = _schedule(workload)
    running = (start <= at) & (end > at)
    waiting = (workload.submit <= at) & (start > at) & (_withdrawn(workload) > at)
    return State(int(running.sum()), int(workload.cores[running].sum()), int(waiting.sum()))


def as_recorded(workload: Workload, at: int) -> Workload:
    """The workload with jobs that start and end as in the log up to an instant.

    A policy that reads `RECORDED_WAIT` starts them as recorded. Jobs that exceeded their walltime in the log are not
    killed at it; one that still runs is expected to end next.
    """
    start, end = _schedule(workload)
    started = start <= at
    held = np.where(end < NEVER, end - start, np.maximum(workload.runtime, at - start + MICROSECOND))
    ran = np.where(started, np.minimum(held, at - start + MICROSECOND), 0)
    return replace(
        workload,
        runtime=np.where(started, held, workload.runtime),
        estimate=np.maximum(workload.estimate, ran),
        labels={**workload.labels, RECORDED_WAIT: start - workload.submit},
    )


def _schedule(workload: Workload) -> tuple[IntArray, IntArray]:
    """Starts and ends in the log, which has them."""
    start, end = workload.logged_last_start, workload.logged_end
    assert start is not None
    assert end is not None
    return start, end


def _withdrawn(workload: Workload) -> IntArray:
    """When jobs were cancelled that did not start; `NEVER` where they were not."""
    after = workload.labels.get("withdrawn", np.full(len(workload), UNKNOWN))
    return np.where(after >= 0, workload.submit + after * MICROSECOND, NEVER)
