"""A higher load from the same jobs: some of them twice, or all of them longer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from gridsim.errors import InputError, UnknownNameError
from gridsim.model.decimal_numbers import exact, rounded, whole_seconds
from gridsim.model.time import NEVER, IntArray, whole
from gridsim.model.workload import Workload, recorded

LARGEST_LOAD = 1000
"""Largest load, in multiples of the workload's own."""


@dataclass(frozen=True)
class Duplicate:
    """*load* times the work: copies of jobs drawn without replacement, a higher load containing every lower one.

    Parameters
    ----------
    load : float
        In multiples of the workload's own, 1 or more: (load - 1) times as many copies as there are jobs, rounded,
        halves up. Every job is copied once before one is copied again.
    arrival : {"random", "same"}
        When a copy is submitted: drawn uniformly, in whole ticks, between the first and the last submit, both included;
        or together with its original.

    Notes
    -----
    Which jobs are copied, and when each copy arrives, is drawn once for all loads: one permutation, and one arrival for
    each place in it. Copies are numbered from behind the largest number on, in the order of the permutation, and have
    everything of their originals; of a deadline the response that it asks for. So a copy that arrives with its original
    has the same deadline. For copies with deadlines of their own, give the deadlines after the duplication. What the
    source says of the schedule (``logged``) is not kept: no copy was part of it. Where users react, a copy that arrives
    with its original does so too, and one that arrives at random comes from nobody who waits for anything.

    References
    ----------
    Islam, Balaji, Sadayappan, Panda 2003 (``random``) and 2004 (``same``); section 8.1 of the project's specification
    of deadline admission.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 50, 90], runtime=[1, 2, 3], cores=[1, 1, 1])
    >>> Duplicate(load=2, arrival="same").apply(log, np.random.default_rng(1)).runtime // 1_000_000
    array([1, 1, 2, 2, 3, 3])
    """

    load: float = 1.0
    arrival: Literal["random", "same"] = "random"

    source: ClassVar[str] = "Islam, Balaji, Sadayappan, Panda 2003, 2004"

    def __post_init__(self) -> None:
        if not 1 <= self.load <= LARGEST_LOAD:
            raise InputError(f"a load of {self.load}; expected 1 to {LARGEST_LOAD} times the workload's", field="load")
        if self.arrival not in ("random", "same"):
            raise UnknownNameError("value of duplicate?arrival", str(self.arrival), ("random", "same"))

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """The *workload* with the copies, by submit time and number.

        Raises
        ------
        InputError
            For jobs of several tasks.
        """
        workload.require_rigid("only rigid jobs can be duplicated")
        count = rounded((exact(self.load, "load") - 1) * len(workload))
        copied, arrivals = self._drawn(workload, count, rng)
        both = workload.select(np.concatenate([np.arange(len(workload)), copied]))
        submit = np.concatenate([workload.submit, workload.submit[copied] if self.arrival == "same" else arrivals])
        last = int(workload.job.max(initial=0))
        both = replace(
            both,
            job=np.concatenate([workload.job, last + 1 + np.arange(count)]),
            submit=submit,
            deadline=np.where(both.deadline < NEVER, both.deadline - both.submit + submit, NEVER),
            logged={} if count else both.logged,
        )
        if both.reactions is not None and self.arrival == "random":
            copies = np.arange(len(both)) >= len(workload)
            both = replace(both, reactions=both.reactions.without(copies))
        return recorded(both.select(np.lexsort((both.job, both.submit))), self, copies=count, jobs=len(both))

    def _drawn(self, workload: Workload, count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Rows to copy and where their copies arrive, whole microseconds: the first *count* of an endless series."""
        order, clock = rng.spawn(2)
        rounds = -(-count // len(workload)) if count else 0
        rows = [order.permutation(len(workload)) for _ in range(rounds)]
        tick = whole(float(workload.provenance.get("tick", 1.0)))
        first, last = (int(workload.submit[place]) for place in (0, -1)) if len(workload) else (0, 0)
        ticks = clock.integers(0, (last - first) // tick, size=count, endpoint=True)
        return np.concatenate([np.zeros(0, dtype=np.int64), *rows])[:count], first + ticks * tick


@dataclass(frozen=True)
class Expand:
    """Runtimes and estimates *load* times as long, in whole seconds; submits stay.

    Parameters
    ----------
    load : float
        In multiples of the workload's own, above 0. Times are rounded, halves up, to at least 1 s, exactly for the
        number as it is written.

    Notes
    -----
    A workload with deadlines is refused: a response that was asked for says nothing of a job of another length. Expand
    first, then give deadlines. What the source says of the schedule (``logged``) is not kept.

    References
    ----------
    Islam, Balaji, Sadayappan, Panda 2003; section 8.1 of the project's specification of deadline admission.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 10, 25], runtime=[100, 33, 7], cores=[1, 2, 4])
    >>> Expand(load=1.2).apply(log).runtime // 1_000_000
    array([120,  40,   8])
    """

    load: float = 1.0

    source: ClassVar[str] = "Islam, Balaji, Sadayappan, Panda 2003"

    def __post_init__(self) -> None:
        if not 0 < self.load <= LARGEST_LOAD:
            raise InputError(
                f"a load of {self.load}; expected one above 0, up to {LARGEST_LOAD} times the workload's", field="load"
            )

    def apply(self, workload: Workload, rng: np.random.Generator | None = None) -> Workload:
        """The longer jobs; nothing is drawn from *rng*.

        Raises
        ------
        InputError
            For a workload with deadlines, jobs of several tasks, and times that grow too long.
        """
        workload.require_rigid("only rigid jobs can be expanded")
        if (workload.deadline < NEVER).any():
            raise InputError("the workload has deadlines; expand first, then give deadlines", field="deadline")
        factor = exact(self.load, "load")
        if max(int(workload.runtime.max(initial=0)), int(workload.estimate.max(initial=0))) * factor >= NEVER:
            raise InputError(f"a job lasts longer than gridsim can count, expanded to {self.load}", field="load")
        expanded = replace(
            workload,
            runtime=whole_seconds(workload.runtime, factor),
            estimate=whole_seconds(workload.estimate, factor),
            logged={},
        )
        return recorded(expanded, self)
