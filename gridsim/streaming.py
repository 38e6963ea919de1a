"""A run over blocks of jobs: only what waits and runs is held, and jobs are told of as they end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gridsim.calendar.engine import Earlier
from gridsim.errors import InputError
from gridsim.model.platform import Platform
from gridsim.model.time import IntArray
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.protocols import name_of
from gridsim.record import Record
from gridsim.workload.blocks import joined, whole_instants
from gridsim.world import World

__all__ = ["Ended", "ended_jobs", "why_not_streamed"]


class Ended(NamedTuple):
    """Jobs that are over.

    Attributes
    ----------
    rows : (n,) int64
        Their rows in the workload as a whole, ascending.
    record : Record
        What became of them.
    """

    rows: IntArray
    record: Record


def why_not_streamed(policy: Any, options: Run) -> str:
    """Why a policy cannot be simulated block by block; empty where it can."""
    can = capabilities_of(make_policy(policy))
    name = name_of(make_policy(policy))
    if not can.passes:
        return can.in_python or f"the passes of {name} are not compiled as a whole"
    if not can.goes_on:
        return f"{name} orders or predicts by more than what each job asks for, which has to be known as a whole"
    if options.engine == "simpy":
        return "simpy is asked for, which holds all jobs"
    if options.limits != "refuse":
        return f"jobs above a limit of time are changed (limits is '{options.limits}')"
    return "" if options.until is None else "it stands still before its end (until)"


def ended_jobs(
    blocks: Iterable[Workload],
    platform: Platform,
    policy: Any,
    options: Run | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Ended]:
    """Simulate to the last completion; what became of jobs, some time after they have ended.

    The jobs of a block are simulated beside those of blocks before it that still wait or run: rows of a window, which
    is made anew for each block. It holds nothing of jobs that are over. The same passes start the same jobs as in a run
    that has all of them.

    Parameters
    ----------
    blocks : iterable of Workload
        Rigid jobs on plain cores, in order of their submit times.
    policy : str or object
        As `gridsim.policy.presets.policy` takes it.
    progress : callable, optional
        Told the number of jobs released so far, now and then.

    Yields
    ------
    Ended
        Of all jobs in the end, in no order but that of blocks.

    Raises
    ------
    InputError
        When the policy or an option needs all jobs at once, and for jobs that are not in order.
    PolicyError
        When the policy decides something impossible.
    """
    options = options or Run()
    why = why_not_streamed(policy, options)
    if why:
        raise InputError(f"cannot be simulated block by block: {why}; leave out --stream", field="policy")
    options = replace(options, engine="compiled")
    earlier: Earlier | None = None
    left: tuple[IntArray, Workload] | None = None
    released = 0
    for block, more in whole_instants(blocks):
        rows, window = np.arange(released, released + len(block)), block
        if left is not None:
            rows, window = np.concatenate([left[0], rows]), joined(left[1], block)
        told = _told(progress, released - len(window) + len(block))
        world = World(window, platform, policy, options, progress=told, room=0)
        calendar = world.complete_window(earlier, more=more)
        staying = calendar.left()
        over = np.ones(len(window), dtype=np.bool_)
        over[staying] = False
        yield Ended(rows[over], world.record().select(over))
        places = np.full(len(window), -1, dtype=np.int64)
        places[staying] = np.arange(len(staying))
        earlier, left = Earlier(calendar, places), (rows[staying], window.select(staying))
        released += len(block)


def _told(progress: Callable[[int], None] | None, before: int) -> Callable[[int], None] | None:
    """Told the rows of a window that have come, tell those of all, of which so many came before its first row."""
    return None if progress is None else lambda jobs: progress(max(0, before + jobs))
