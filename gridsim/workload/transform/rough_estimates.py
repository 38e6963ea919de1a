"""Estimates that are rough in the ways that people's are: by a share of the runtime, or rounded up to a few values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import FloatArray, IntArray, whole
from gridsim.model.workload import Workload
from gridsim.workload.provenance import recorded
from gridsim.workload.transform.estimates import with_estimates

__all__ = ["RoughEstimates"]

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
