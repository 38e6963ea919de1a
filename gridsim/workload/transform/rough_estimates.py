"""Estimates similar to those of users: wrong by a share of the run time, rounded up, or a few popular values."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal, get_args

import numpy as np

from gridsim.errors import check_parameters
from gridsim.model.time import FloatArray, IntArray, seconds, to_us
from gridsim.model.workload import Workload, recorded
from gridsim.workload.synthetic.modal import Law, Modal, customary_maximum
from gridsim.workload.transform.estimates import with_estimates

Error = Literal["normal", "power", "multiple", "add", "multiply"]

_LARGEST = 1e12
"""Largest estimate, ticks."""


@dataclass(frozen=True)
class RoughEstimates:
    """Inaccurate estimates, per task for workflows, which policies use; run times do not change.

    Parameters
    ----------
    error : {"normal", "power", "multiple", "add", "multiply"}
        ``normal``: the run time plus a normal error with a standard deviation of *size* times the run time. ``power``:
        the next power of *size* ticks (with 10, users name a decade). ``multiple``: the next multiple of *size* ticks.
        ``add``: *size* ticks more. ``multiply``: *size* times the run time.
    size : float
        A share, a base, or ticks, depending on *error*.

    Notes
    -----
    Estimates are whole ticks, rounded up, from 1 to 1e12. One normal error per job or task is drawn, in their order,
    so errors do not change with the load of a synthetic workload or with *size*. Jobs that exceed their estimates
    continue under ``--overrun extend``. A deadline before submit + estimate moves to submit + estimate.

    References
    ----------
    Burkimsher, Bate and Indrusiak 2013, section 5 (future work); section 19 of the project's specification of grids.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 0], runtime=[70, 130], cores=[1, 1])
    >>> rng = np.random.default_rng(1)
    >>> RoughEstimates(error="power", size=10).apply(log, rng).estimate // 1_000_000
    array([ 100, 1000])
    >>> RoughEstimates(error="normal", size=0.5).apply(log, rng).estimate // 1_000_000
    array([ 83, 184])
    """

    error: Error = "normal"
    size: float = 1.0
    source: ClassVar[str] = "Burkimsher, Bate, Indrusiak 2013"

    def __post_init__(self) -> None:
        least = 1.0 if self.error == "power" else 0.0
        above = self.error in ("power", "multiple", "multiply")
        size = (self.size > least if above else self.size >= least) and self.size < _LARGEST
        check_parameters(
            self,
            error=(self.error in get_args(Error), f"one of {', '.join(get_args(Error))}"),
            size=(size, f"a number {'above' if above else 'from'} {least:g} for {self.error}"),
        )

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """Return the *workload* with these estimates; the estimate of a DAG job is its longest chain."""
        tick = to_us(float(workload.provenance.get("tick", 1.0)))
        tasks = workload.tasks
        if tasks is None:
            estimate = self._estimates(workload.runtime, tick, rng)
            short = int(np.count_nonzero(estimate < workload.runtime))
        else:
            tasks = replace(tasks, estimate=self._estimates(tasks.runtime, tick, rng))
            estimate = np.maximum.reduceat(tasks.chains(tasks.estimate), tasks.first[:-1])
            short = int(np.count_nonzero(tasks.estimate < tasks.runtime))
        rough, moved = with_estimates(workload, estimate, tasks)
        return recorded(rough, self, too_short=short, deadlines_moved=moved)

    def _estimates(self, runtime: IntArray, tick: int, rng: np.random.Generator) -> IntArray:
        ticks = np.clip(np.ceil(self._ticks(runtime / tick, rng)), 1, _LARGEST)
        estimates: IntArray = ticks.astype(np.int64) * tick
        return estimates

    def _ticks(self, runtime: FloatArray, rng: np.random.Generator) -> FloatArray:
        if self.error == "normal":
            return runtime * (1 + self.size * rng.standard_normal(len(runtime)))
        if self.error == "power":
            powers: FloatArray = self.size ** np.arange(np.ceil(np.log(_LARGEST) / np.log(self.size)) + 1)
            return powers[np.minimum(np.searchsorted(powers, runtime), len(powers) - 1)]
        if self.error == "multiple":
            return np.ceil(runtime / self.size) * self.size
        return runtime + self.size if self.error == "add" else runtime * self.size


_LONGEST = 366 * 86_400
"""Longest limit, s."""


@dataclass(frozen=True)
class ModalEstimates(Law):
    """Modal estimates after Tsafrir et al. 2005, with gridsim's constants, for logs with or without estimates.

    Parameters
    ----------
    maximum : int or None
        Limit of the queue, s. By default the smallest of 18, 24, 36, 48, 72, 96 and 168 h that is not below the
        longest run time, or else whole days.
    share_max : float
        Share of jobs that request the maximum; the most important parameter. CTC SP2: 0.238, SDSC SP2: 0.097, SDSC
        BLUE: 0.011.
    head, head_share, decay, spread, tail_power, tight : int, float
        See `gridsim.workload.synthetic.modal.Law`; fitted to these three logs.

    Notes
    -----
    No estimate is below its run time, so no job is killed at its limit; in the logs, 8 to 10 % of the jobs are. Jobs
    of a user are independent, but real users repeat their estimates. Policies that sort by estimate therefore gain
    more than from real estimates, but less than from exact ones. A deadline before submit + estimate moves to submit +
    estimate. ``repaired`` counts jobs longer than all remaining values; their estimate is the run time rounded up to
    300 s.

    References
    ----------
    Tsafrir, Etsion, Feitelson, "Modeling user runtime estimates", JSSPP 2005; the constants are gridsim's, see section
    1 of the project's specification of methods.

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
        check_parameters(self, maximum=(self.maximum is None or 60 <= self.maximum <= _LONGEST, f"60 to {_LONGEST} s"))

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """Return the *workload* with these estimates, which replace the existing ones.

        Raises
        ------
        InputError
            For workflows.
        """
        workload.require_rigid("only estimates of rigid jobs can be generated")
        runtime = seconds(workload.runtime)
        maximum = customary_maximum(float(runtime.max(initial=0))) if self.maximum is None else self.maximum
        found = Modal.of(runtime, Law(*(getattr(self, it.name) for it in fields(Law))), rng, maximum=maximum)
        estimate = to_us(found.estimate)
        modal, moved = with_estimates(workload, estimate)
        facts = {"maximum": maximum, "repaired": found.repaired, "deadlines_moved": moved}
        return recorded(modal, self, values=len(np.unique(estimate)), **facts)
