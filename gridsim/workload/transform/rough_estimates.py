"""Estimates like those of users: wrong by a share of the runtime, rounded up, or a few popular values."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal, get_args

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import FloatArray, IntArray, seconds, whole
from gridsim.model.workload import Workload, recorded
from gridsim.workload.synthetic.modal import Law, Modal, customary_maximum
from gridsim.workload.transform.estimates import with_estimates

Error = Literal["normal", "power", "multiple", "add", "multiply"]

_LARGEST = 1e12
"""Ticks; nobody estimates longer."""


@dataclass(frozen=True)
class RoughEstimates:
    """Estimates made rough, of each task where jobs have several; policies see them, jobs run as long as they do.

    Parameters
    ----------
    error : {"normal", "power", "multiple", "add", "multiply"}
        ``normal``: the runtime plus a normal error whose standard deviation is *size* times the runtime. ``power``: the
        next power of *size* ticks (10: people name a decade). ``multiple``: the next multiple of *size* ticks. ``add``:
        *size* ticks more. ``multiply``: *size* times the runtime.
    size : float
        See above; a share, a base, or ticks.

    Notes
    -----
    Estimates are whole ticks, rounded up, at least one and at most 1e12. The normal errors are drawn in the order of
    jobs and tasks, one each, so they stay the same at any load of a synthetic workload and for any *size*. Jobs that
    outlive their estimates go on under ``--overrun extend``. A deadline before submit + estimate moves there.

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
        if self.error not in get_args(Error):
            raise InputError(f"'{self.error}'; expected one of {', '.join(get_args(Error))}", field="error")
        least = 1.0 if self.error == "power" else 0.0
        above = self.error in ("power", "multiple", "multiply")
        if not (self.size > least if above else self.size >= least) or not self.size < _LARGEST:
            bound = "above" if above else "from"
            raise InputError(f"a size of {self.size} for {self.error}; expected {bound} {least:g}", field="size")

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """The *workload* with these estimates in place of its own; that of a DAG job is its longest chain."""
        tick = whole(float(workload.provenance.get("tick", 1.0)))
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
        workload.require_rigid("only estimates of rigid jobs can be drawn")
        runtime = seconds(workload.runtime)
        maximum = customary_maximum(float(runtime.max(initial=0))) if self.maximum is None else self.maximum
        found = Modal.of(runtime, Law(*(getattr(self, it.name) for it in fields(Law))), rng, maximum=maximum)
        estimate = whole(found.estimate)
        modal, moved = with_estimates(workload, estimate)
        facts = {"maximum": maximum, "repaired": found.repaired, "deadlines_moved": moved}
        return recorded(modal, self, values=len(np.unique(estimate)), **facts)
