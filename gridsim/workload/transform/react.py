"""Users who react: jobs that come when what their user waited for has ended, not at the times of the log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import NEVER, IntArray, whole
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.registry import Spec
from gridsim.workload.transform.provenance import noted
from gridsim.workload.users import habits

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
    A deadline keeps the response that it asks for. Dependencies that the log itself states stay what they are.

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
            For jobs of several tasks, without users, and without ends of jobs.
        """
        if workload.tasks is not None:
            raise InputError("the jobs have several tasks; users react to jobs of one task", field="users")
        user = workload.labels.get("user")
        if user is None or not (user >= 0).any():
            raise InputError("the workload names no users; react needs to know whose each job is", field="user")
        end = _logged(workload) if reference is None else reference.end_us
        found = habits(user, workload.submit, end, think=whole(self.think), gap=whole(self.gap))
        reacting = int(np.count_nonzero(found.reactions.answers))
        return noted(
            replace(workload, reactions=found.reactions),
            self,
            reference=None if self.reference is None else str(self.reference),
            sessions=found.sessions,
            reacting=reacting,
        )


def _logged(workload: Workload) -> IntArray:
    """Ends as the source says.

    Raises
    ------
    InputError
        Where it says none.
    """
    end = workload.logged_end
    if end is None or not (end < NEVER).any():
        raise InputError(
            "the workload does not say when jobs started, so what users waited for is not known; give "
            "react?reference=easy to take the ends of a simulated schedule, or put react before what changes the load",
            field="users",
        )
    return end
