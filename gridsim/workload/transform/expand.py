"""A higher load from the same jobs, all of them longer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gridsim.errors import InputError
from gridsim.model.exact import exact, whole_seconds
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.workload.provenance import recorded
from gridsim.workload.transform.duplicate import LARGEST_LOAD

__all__ = ["Expand"]


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
        if workload.tasks is not None:
            raise InputError("the jobs have several tasks; only rigid jobs can be expanded")
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
