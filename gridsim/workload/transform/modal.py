"""Estimates as users ask for them, for logs without any: few popular values, a tail, and the limit of the queue."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import seconds, whole
from gridsim.model.workload import Workload
from gridsim.workload.provenance import recorded
from gridsim.workload.synthetic.modal import Law, Modal, customary_maximum
from gridsim.workload.transform.estimates import with_estimates

__all__ = ["ModalEstimates"]

_LONGEST = 366 * 86_400
"""Of limits, s."""


@dataclass(frozen=True)
class ModalEstimates(Law):
    """Modal estimates, after Tsafrir et al. 2005, own constants: in place of a log's own, or where it has none.

    Parameters
    ----------
    maximum : int or None
        Limit of the queue, s; where left out, the least of 18, 24, 36, 48, 72, 96 and 168 h that is not below the
        longest runtime, else whole days.
    share_max : float
        Share of jobs that ask for it; the parameter worth setting. CTC SP2: 0.238, SDSC SP2: 0.097, SDSC BLUE: 0.011.
    head, head_share, decay, spread, tail_power, tight : int, float
        Of `gridsim.workload.synthetic.modal.Law`; fitted to these three logs.

    Notes
    -----
    No estimate is below its runtime, so no job is killed at its limit, where 8 to 10 % of the logs' jobs are. Jobs of a
    user have nothing in common, where real users repeat their estimates: policies that take the shortest first
    gain more than from real estimates, though less than from exact ones. A deadline before submit + estimate moves
    there. ``repaired`` counts jobs longer than all values left; theirs is the runtime rounded up to 300 s.

    References
    ----------
    Tsafrir, Etsion, Feitelson, "Modeling user runtime estimates", JSSPP 2005; the constants are our own: section 1 of
    the project's specification of methods.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 0, 0], runtime=[100, 5000, 60], cores=[1, 1, 1])
    >>> ModalEstimates(share_max=0.3).apply(log, np.random.default_rng(1)).estimate // 60_000_000
    array([  15,  120, 1080])
    """

    maximum: int | None = None

    name: ClassVar[str] = "modal"
    source: ClassVar[str] = "after Tsafrir, Etsion, Feitelson 2005"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.maximum is not None and not 60 <= self.maximum <= _LONGEST:
            raise InputError(f"a limit of {self.maximum} s; expected 60 to {_LONGEST}", field="maximum")

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """The *workload* with these estimates in place of its own.

        Raises
        ------
        InputError
            For jobs of several tasks.
        """
        if workload.tasks is not None:
            raise InputError("the jobs have several tasks; only estimates of rigid jobs can be drawn")
        runtime = seconds(workload.runtime)
        maximum = customary_maximum(float(runtime.max(initial=0))) if self.maximum is None else self.maximum
        found = Modal.of(runtime, Law(*(getattr(self, it.name) for it in fields(Law))), rng, maximum=maximum)
        estimate = whole(found.estimate)
        modal, moved = with_estimates(workload, estimate)
        facts = {"maximum": maximum, "repaired": found.repaired, "deadlines_moved": moved}
        return recorded(modal, self, values=len(np.unique(estimate)), **facts)
