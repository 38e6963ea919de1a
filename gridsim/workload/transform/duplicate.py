"""A higher load from the same jobs: duplicate some jobs, or lengthen all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from gridsim.errors import InputError, check_parameters, require_known
from gridsim.model.decimal_numbers import exact, rounded, rounded_seconds
from gridsim.model.time import NEVER, IntArray, to_us
from gridsim.model.workload import Workload, recorded

LARGEST_LOAD = 1000
"""Largest load, in multiples of the load of the workload."""


@dataclass(frozen=True)
class Duplicate:
    """*load* times the work: copies of jobs drawn without replacement; a higher load contains every lower one.

    Parameters
    ----------
    load : float
        In multiples of the load of the workload, at least 1. The number of copies is (load - 1) times the number of
        jobs, rounded half up. Every job is copied once before any job is copied again.
    arrival : {"random", "same"}
        Submit time of a copy. ``random``: uniform in whole ticks between the first and the last submission, both
        included. ``same``: the submit time of the original.

    Notes
    -----
    The jobs to copy and the submit times of the copies are drawn once for all loads: one permutation, and one submit
    time for each position in it. Copies are numbered upwards from the largest job number, in the order of the
    permutation. They have all attributes of their originals. A deadline keeps its distance from the submit time, so a
    copy that is submitted with its original has the same deadline. For separate deadlines of copies, add deadlines
    after the duplication. The logged schedule (``logged``) is dropped, because it does not include the copies. Where
    users react, a copy with ``arrival=same`` reacts like its original; a copy with a random submit time does not
    react.

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
        check_parameters(self, load=(1 <= self.load <= LARGEST_LOAD, f"1 to {LARGEST_LOAD} times the workload's"))
        require_known("value of duplicate?arrival", ("random", "same"), self.arrival)

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """Return the *workload* with the copies, sorted by submit time and number.

        Raises
        ------
        InputError
            For workflows.
        """
        workload.require_rigid("only rigid jobs can be duplicated")
        count = rounded((exact(self.load, "load") - 1) * len(workload))
        copied, arrivals = self._drawn(workload, count, rng)
        both = workload.select(np.concatenate([np.arange(len(workload)), copied]))
        submit = np.concatenate([workload.submit, workload.submit[copied] if self.arrival == "same" else arrivals])
        last = int(workload.job.max(initial=0))
        job = np.concatenate([workload.job, last + 1 + np.arange(count)])
        both = replace(both.submitted_at(submit), job=job, logged={} if count else both.logged)
        if both.reactions is not None and self.arrival == "random":
            copies = np.arange(len(both)) >= len(workload)
            both = replace(both, reactions=both.reactions.without(copies))
        return recorded(both.select(np.lexsort((both.job, both.submit))), self, copies=count, jobs=len(both))

    def _drawn(self, workload: Workload, count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return the rows to copy and the submit times of their copies (whole microseconds), *count* of each."""
        order, clock = rng.spawn(2)
        rounds = -(-count // len(workload)) if count else 0
        rows = [order.permutation(len(workload)) for _ in range(rounds)]
        tick = to_us(float(workload.provenance.get("tick", 1.0)))
        first, last = (int(workload.submit[place]) for place in (0, -1)) if len(workload) else (0, 0)
        ticks = clock.integers(0, (last - first) // tick, size=count, endpoint=True)
        return np.concatenate([np.zeros(0, dtype=np.int64), *rows])[:count], first + ticks * tick


@dataclass(frozen=True)
class Expand:
    """Run times and estimates multiplied by *load*, in whole seconds; submit times stay.

    Parameters
    ----------
    load : float
        In multiples of the load of the workload, above 0. Times are rounded half up to at least 1 s. The factor is the
        exact decimal number as written.

    Notes
    -----
    A workload with deadlines is rejected, because a requested response time does not apply to a job of another length.
    Expand first, then add deadlines. The logged schedule (``logged``) is dropped.

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
        expected = f"more than 0, up to {LARGEST_LOAD} times the workload's"
        check_parameters(self, load=(0 < self.load <= LARGEST_LOAD, expected))

    def apply(self, workload: Workload, rng: np.random.Generator | None = None) -> Workload:
        """Return the longer jobs; *rng* is not used.

        Raises
        ------
        InputError
            For a workload with deadlines, for workflows, and for times that grow too long.
        """
        workload.require_rigid("only rigid jobs can be expanded")
        if (workload.deadline < NEVER).any():
            raise InputError("the workload has deadlines; apply expand before deadlines", field="deadline")
        factor = exact(self.load, "load")
        if max(int(workload.runtime.max(initial=0)), int(workload.estimate.max(initial=0))) * factor >= NEVER:
            raise InputError(f"a run time exceeds the largest time if multiplied by {self.load}", field="load")
        expanded = replace(
            workload,
            runtime=rounded_seconds(workload.runtime, factor),
            estimate=rounded_seconds(workload.estimate, factor),
            logged={},
        )
        return recorded(expanded, self)
