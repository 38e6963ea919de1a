"""Cirne's model of moldable jobs: the core counts that a user of a rigid job could have requested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from gridsim.model.moldable import Moldable
from gridsim.model.speedup import Downey
from gridsim.model.time import FloatArray, IntArray
from gridsim.model.workload import Workload, recorded
from gridsim.workload.transform.moldable import facts, rigid_within

NATURES = {"rigid": 0.02, "powers of two": 0.10, "squares": 0.02, "even": 0.08, "multiples of four": 0.08, "any": 0.70}
"""Kinds of core counts and their shares, used where the kind does not follow from the request."""


@dataclass(frozen=True)
class Cirne:
    """Moldable jobs after Cirne and Berman: average parallelism, its variation, and the core counts that a user names.

    Parameters
    ----------
    admissible : {"request", "nature"}
        ``request``: a job that requests a power of two can use powers of two, any other job can use any number of
        cores. ``nature``: the kind of core counts is drawn for each job.
    cores : int or None
        Cores of the machine; on several clusters, the cores of the widest one.

    Notes
    -----
    A core count above the saturation point of the job is dropped, unless it is the only one. Each quantity has its own
    random stream, in job order.

    References
    ----------
    Cirne and Berman, "A model for moldable supercomputer jobs", IPDPS 2001; the constants of Cirne's simulator are in
    section 11 of the project's specification of moldable jobs.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 1], runtime=[60, 60], cores=[16, 3])
    >>> made = Cirne(cores=128).apply(log, np.random.default_rng(1)).moldable
    >>> [made.sizes[first:end].tolist() for first, end in zip(made.size_first, made.size_first[1:])]
    [[4, 16], [1, 2, 3, 4]]
    """

    admissible: Literal["request", "nature"] = "request"
    cores: int | None = None

    source: ClassVar[str] = "Cirne, Berman 2001"
    machine: ClassVar[str] = "widest"

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """Return the *workload* with ranges and with the core counts that each job names.

        Raises
        ------
        InputError
            If the workload has ranges already, or a job is wider than the machine.
        """
        machine = rigid_within(workload, self.cores)
        requested, numbers = workload.requested
        streams = rng.spawn(6)
        n = len(requested)
        smallest = smallest_sizes(streams[0].random(n))
        sigma = sigmas(streams[1].standard_normal(n))
        average = parallelisms(smallest, streams[2].random(n))
        laws = [Downey(one, other) for one, other in zip(average.tolist(), sigma.tolist(), strict=True)]
        largest = np.minimum([law.saturation for law in laws], machine)
        natures = self._natures(requested, streams[4].random(n))
        bounds = zip(np.minimum(smallest, largest).tolist(), largest.tolist(), strict=True)
        counts = named_counts(streams[3].random(n)).tolist()
        sizes = [
            _named(int(p), _able(nature, low, high), count, streams[5])
            for p, nature, (low, high), count in zip(requested, natures, bounds, counts, strict=True)
        ]
        made = Moldable.of(
            requested,
            [named[0] for named in sizes],
            [named[-1] for named in sizes],
            laws,
            np.arange(n),
            sizes=sizes,
            names=numbers,
        )
        assert made.size_first is not None
        named = float(np.diff(made.size_first).mean()) if n else None
        return recorded(replace(workload, moldable=made), self, sizes_mean=named, **facts(made, machine))

    def _natures(self, requested: IntArray, uniform: FloatArray) -> Sequence[str]:
        if self.admissible == "nature":
            bounds = np.cumsum(list(NATURES.values()))[:-1]
            return [list(NATURES)[place] for place in np.searchsorted(bounds, uniform, side="right").tolist()]
        return ["powers of two" if p & (p - 1) == 0 else "any" for p in requested.tolist()]


def unilog(uniform: FloatArray, slope: float | FloatArray, shift: float | FloatArray) -> FloatArray:
    """Return numbers with the distribution function ``slope * log2(x) + shift``, from uniform numbers."""
    return np.exp2((uniform - shift) / slope)


def smallest_sizes(uniform: FloatArray) -> IntArray:
    """Return the smallest number of cores of each job."""
    return np.maximum(1, np.ceil(unilog(uniform, 0.0692, 0.6279))).astype(np.int64)


def sigmas(normal: FloatArray) -> FloatArray:
    """Return the variation of the parallelism of each job, from standard normal numbers."""
    return np.maximum(0.0, 1.209 + 1.132 * normal)


def parallelisms(smallest: IntArray, uniform: FloatArray) -> FloatArray:
    """Return the average parallelism of each job, which depends on its smallest number of cores."""
    scale = np.log2(smallest)
    return np.maximum(1.0, unilog(uniform, 0.009548 * scale + 0.07468, -0.01877 * scale - 0.009198))


def named_counts(uniform: FloatArray) -> IntArray:
    """Return how many core counts each user names, if the job has that many."""
    return np.maximum(2, np.ceil(unilog(uniform, 0.1918, 0.1876))).astype(np.int64)


def _able(nature: str, low: int, high: int) -> IntArray:
    """Return the core counts from *low* to *high* that a job of this nature can use."""
    sizes = np.arange(low, high + 1)
    step = {"even": 2, "multiples of four": 4, "rigid": high + 1}.get(nature, 1)
    fine = sizes % step == 0
    if nature == "powers of two":
        fine = sizes & (sizes - 1) == 0
    elif nature == "squares":
        fine = np.rint(np.sqrt(sizes)).astype(np.int64) ** 2 == sizes
    able: IntArray = sizes[fine]
    return able


def _named(requested: int, able: IntArray, count: int, rng: np.random.Generator) -> list[int]:
    """Return *count* core counts in ascending order, always including the requested one."""
    others = able[able != requested]
    return sorted([requested, *rng.choice(others, size=min(count - 1, len(others)), replace=False).tolist()])
