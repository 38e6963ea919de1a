"""Users who react: jobs that come when what their user waited for has ended, not at the times of the log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gridsim.errors import InputError
from gridsim.model.reactions import NOBODY
from gridsim.model.time import NEVER, IntArray, whole
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.record import Record
from gridsim.registry import Spec
from gridsim.workload.provenance import recorded
from gridsim.workload.users import Stated, habits

__all__ = ["React"]


@dataclass(frozen=True)
class React:
    """Users submit again a think time after what they waited for has ended: a faster system gets the next job sooner.

    Parameters
    ----------
    think : float
        Longest think time, s: a submit within it after the last end of a job of the same user is a reaction to that
        end, and comes so long after it. A later one opens a session, which comes at the time of the log, or when
        everything has ended that had ended by then in the log.
    gap : float
        Longest time between two submits of a batch while nothing of the user's ends, s; later ones open a session.
    reference : str, Spec or None
        Policy of a schedule that stands in for the log's own where the log does not say when jobs started. The scenario
        simulates it.

    Notes
    -----
    What users waited for is found here, in the workload as it stands; transforms behind this one keep it, so that a
    load raised later is met by the same users. Under the schedule that it was found in, jobs come exactly when they
    did; under any other, a user never comes with a job before all those have ended that had ended by then. Jobs of
    unknown users come at the times of the log.
    Where an SWF log itself names the job that one comes after (its preceding job), this one comes the think time that
    stands there after the end of that one, whatever the log's times say, and waits for nothing else; where no think
    time stands there, as long after it as in the log. One that names a job which is not there, or does not come before
    it, is a job like any other. A deadline keeps the response that it asks for. Dependencies of a log of Slurm stay
    what they are.

    References
    ----------
    Zakay, Feitelson, MASCOTS 2014: batches, and think times between the end of one and the next. Shmueli, Feitelson,
    IEEE TPDS 20(7), 2009: users who interact with the simulated system. Zakay, Feitelson, JSSPP 2012: the usual bound
    of 20 minutes, and sessions by what users submit.

    Examples
    --------
    >>> log = Workload.from_columns(
    ...     submit=[0, 15], runtime=[10, 10], cores=[1, 1], labels={"user": [7, 7]}, logged={"wait": [2, 0]})
    >>> React().apply(log).reactions.delay / 1e6
    array([0., 3.])
    """

    think: float = 1200.0
    gap: float = 3600.0
    reference: str | Spec | None = None

    source: ClassVar[str] = "Zakay, Feitelson 2014; Shmueli, Feitelson 2009"

    def __post_init__(self) -> None:
        for name in ("think", "gap"):
            value = getattr(self, name)
            if not 0 <= value < NEVER / 1e6:
                raise InputError(f"{value} is no longest time; expected seconds from 0", field=name)

    def apply(
        self, workload: Workload, rng: np.random.Generator | None = None, reference: Record | None = None
    ) -> Workload:
        """The *workload*, knowing what each job came after; nothing is drawn from *rng*.

        Raises
        ------
        InputError
            For jobs of several tasks; where the log does not say what jobs come after: without users, and without ends
            of jobs.
        """
        workload.require_rigid("users react to jobs of one task", field="users")
        end = workload.logged_end if reference is None else reference.end_us
        if end is None:
            end = np.full(len(workload), NEVER, dtype=np.int64)
        stated, lost = _stated(workload, end)
        user = workload.labels.get("user", np.full(len(workload), UNKNOWN))
        if stated is None:
            _check(user, end)
        found = habits(user, workload.submit, end, think=whole(self.think), gap=whole(self.gap), stated=stated)
        facts: dict[str, int] = {"sessions": found.sessions}
        facts["reacting"] = int(np.count_nonzero(found.reactions.answers))
        if stated is not None:
            facts["stated"] = int(np.count_nonzero(stated.after != NOBODY))
        if lost:
            facts["preceding_unknown"] = lost
        reference_named = None if self.reference is None else str(self.reference)
        return recorded(replace(workload, reactions=found.reactions), self, reference=reference_named, **facts)


def _check(user: IntArray, end: IntArray) -> None:
    """Refuse a log that says too little to find what users waited for."""
    if not (user != UNKNOWN).any():
        raise InputError("the workload names no users; react needs to know whose each job is", field="user")
    if not (end < NEVER).any():
        raise InputError(
            "the workload does not say when jobs started, so what users waited for is not known; give "
            "react?reference=easy to take the ends of a simulated schedule, or put react before what changes the load",
            field="users",
        )


def _stated(workload: Workload, end: IntArray) -> tuple[Stated | None, int]:
    """What the log itself says that jobs come after, None where nothing; how many name a job that none can come after.

    That is one which is not there, or does not come before.
    """
    preceding = workload.logged.get("preceding")
    if preceding is None:
        return None, 0
    order = np.argsort(workload.job)
    place = order[np.minimum(np.searchsorted(workload.job, preceding, sorter=order), len(order) - 1)]
    named = preceding != UNKNOWN
    known = named & (workload.job[place] == preceding) & (place < np.arange(len(workload)))
    after = np.where(known, place, NOBODY)
    apart = np.where(known & (end[place] <= workload.submit), workload.submit - end[place], 0)
    think = whole(np.asarray(workload.logged["think"], dtype=np.float64))
    lost = int(np.count_nonzero(named & ~known))
    return (Stated(after, np.where((think >= 0) & (think < NEVER), think, apart)) if known.any() else None), lost
