"""Other walltime estimates for the same jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gridsim.model.workload import Workload
from gridsim.workload.transform.provenance import noted

__all__ = ["ExactEstimates"]


@dataclass(frozen=True)
class ExactEstimates:
    """Estimates that are the true runtimes, of each task where jobs have several.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0], runtime=[100], estimate=[3600], cores=[1])
    >>> ExactEstimates().apply(log).estimate // 1_000_000
    array([100])
    """

    def apply(self, workload: Workload, rng: np.random.Generator | None = None) -> Workload:
        """The *workload* with exact estimates; nothing is drawn from *rng*.

        Raises
        ------
        InputError
            When a job that outlived its estimate cannot meet its deadline with an exact one.
        """
        tasks = None if workload.tasks is None else replace(workload.tasks, estimate=workload.tasks.runtime)
        changed = int(np.count_nonzero(workload.estimate != workload.runtime))
        exact = replace(workload, estimate=workload.runtime.copy(), tasks=tasks)
        exact.check()
        return noted(exact, self, changed=changed)
