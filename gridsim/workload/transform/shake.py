"""The same jobs a little earlier or later: what no answer should hang on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.model.workload import UNKNOWN, Workload, recorded

_LARGEST = 7 * 86_400


@dataclass(frozen=True)
class Shake:
    """Each job comes up to *by* seconds earlier or later, independently of the others; all else stays.

    Parameters
    ----------
    by : int
        Whole seconds; 0 changes nothing.
    replica : int or None
        Which of many, from 1: what ``gridsim compare --shake`` makes; 0 for the jobs as they are. Where left out, drawn
        as other transforms are.

    Notes
    -----
    A submit time becomes ``max(0, submit + U)``, U a whole number of seconds uniform on [-by, by], one draw a job in
    job order; equal ones stay in their order. A job that the source says comes after another one comes no sooner.
    A deadline keeps the response that it asks for; logged waits are durations and stay.

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
        if not 0 <= self.by <= _LARGEST:
            raise InputError(f"by {self.by} s; expected whole seconds from 0 to {_LARGEST}", field="by")
        if self.replica is not None and self.replica < 0:
            raise InputError(f"is {self.replica}; expected a number from 0", field="replica")

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """The *workload*, shaken."""
        if self.replica == 0:
            return workload
        moves = rng.integers(-self.by, self.by, size=len(workload), endpoint=True) * MICROSECOND
        submit = _after_others(workload, np.maximum(workload.submit + moves, 0))
        if len(submit) and int(submit.max()) >= NEVER:
            raise InputError("the last jobs come too late to be shaken", field="submit")
        deadline = np.where(workload.deadline < NEVER, workload.deadline - workload.submit + submit, NEVER)
        shaken = replace(workload, submit=submit, deadline=deadline)
        order = np.argsort(submit, kind="stable")
        return recorded(shaken if (order[1:] > order[:-1]).all() else shaken.select(order), self)


def _after_others(workload: Workload, submit: IntArray) -> IntArray:
    """Submit times no sooner than those of the earlier jobs that the source says they come after."""
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
