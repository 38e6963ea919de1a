"""Small random shifts of submit times, to which results should not be sensitive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gridsim.errors import InputError, check_parameters
from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.model.workload import UNKNOWN, Workload, recorded

_LARGEST = 7 * 86_400


@dataclass(frozen=True)
class Shake:
    """Each job is submitted up to *by* seconds earlier or later, independently of the others; nothing else changes.

    Parameters
    ----------
    by : int
        Whole seconds; 0 changes nothing.
    replica : int or None
        Number of the replication, from 1, as set by ``gridsim compare --shake``; 0 for the unchanged jobs. By default
        drawn like other transforms.

    Notes
    -----
    A submit time becomes ``max(0, submit + U)``, where U is a whole number of seconds uniform on [-by, by], with one
    draw per job in job order. Jobs with equal submit times keep their order. A job that follows another one according
    to the source is not submitted before it. A deadline keeps its distance from the submit time; logged waits are
    durations and stay.

    References
    ----------
    Tsafrir, Ouaknine, Feitelson, "Reducing performance evaluation sensitivity and variability by input shaking",
    MASCOTS 2007; section 3 of the project's specification of methods.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[100, 110, 120], runtime=[1, 2, 3], cores=[1, 1, 1])
    >>> shaken = Shake(by=20).apply(log, np.random.default_rng(1))
    >>> shaken.job, shaken.submit // 1_000_000
    (array([1, 2, 3]), array([ 99, 110, 130]))
    """

    by: int = 60
    replica: int | None = None

    source: ClassVar[str] = "Tsafrir, Ouaknine, Feitelson 2007"

    def __post_init__(self) -> None:
        check_parameters(
            self,
            by=(0 <= self.by <= _LARGEST, f"whole seconds from 0 to {_LARGEST}"),
            replica=(self.replica is None or self.replica >= 0, "a number from 0"),
        )

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """Return the *workload* with shifted submit times."""
        if self.replica == 0:
            return workload
        moves = rng.integers(-self.by, self.by, size=len(workload), endpoint=True) * MICROSECOND
        submit = _after_others(workload, np.maximum(workload.submit + moves, 0))
        if len(submit) and int(submit.max()) >= NEVER:
            raise InputError("the last submit times exceed the largest time", field="submit")
        shaken = workload.submitted_at(submit)
        order = np.argsort(submit, kind="stable")
        return recorded(shaken if (order[1:] > order[:-1]).all() else shaken.select(order), self)


def _after_others(workload: Workload, submit: IntArray) -> IntArray:
    """Return submit times that are not earlier than those of the preceding jobs named in the source."""
    named = workload.labels.get("after", workload.logged.get("preceding"))
    if named is None:
        return submit
    row = {number: place for place, number in enumerate(workload.job.tolist())}
    moved = submit.copy()
    for place in np.flatnonzero(named != UNKNOWN).tolist():
        before = row.get(int(named[place]), place)
        if before < place:
            moved[place] = max(moved[place], moved[before])
    return moved
