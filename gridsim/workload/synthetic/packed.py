"""Jobs that fit a machine without gaps: a rectangle of cores and time, cut into pieces."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from gridsim.errors import check_parameters, require_known
from gridsim.model.decimal_numbers import exact, rounded
from gridsim.model.random_streams import stream
from gridsim.model.time import IntArray
from gridsim.model.workload import Workload

__all__ = ["KINDS_OF_PACKING", "Packed", "cut"]

KINDS_OF_PACKING = ("static", "dynamic", "early")
"""Arrival patterns of a packed workload."""


class Pieces(NamedTuple):
    """Pieces of a rectangle, one per row: first core, number of cores, first second, number of seconds."""

    core: IntArray
    cores: IntArray
    start: IntArray
    seconds: IntArray


def cut(cores: int, seconds: int, jobs: int, rng: np.random.Generator) -> Pieces:
    """Cut a rectangle into *jobs* pieces by straight cuts from side to side; the pieces cover it exactly once.

    Parameters
    ----------
    cores, seconds : int
        Sides of the rectangle.
    jobs : int
        Number of pieces, at most the number of core-seconds.

    Notes
    -----
    A cut divides the cores or the time with equal probability, where both can be cut, at a uniform position. The
    numbers of pieces of both sides are proportional to their areas, as far as the areas allow it.

    Examples
    --------
    >>> pieces = cut(4, 10, 5, np.random.default_rng(1))
    >>> len(pieces.core), int(pieces.cores @ pieces.seconds)
    (5, 40)
    """
    done: list[tuple[int, int, int, int]] = []
    waiting = [(0, cores, 0, seconds, jobs)]
    while waiting:
        core, width, start, length, count = waiting.pop()
        if count == 1:
            done.append((core, width, start, length))
        elif width == 1 or (length > 1 and rng.integers(2)):
            at = int(rng.integers(1, length))
            first = _share(count, at * width, (length - at) * width)
            waiting.append((core, width, start + at, length - at, count - first))
            waiting.append((core, width, start, at, first))
        else:
            at = int(rng.integers(1, width))
            first = _share(count, at * length, (width - at) * length)
            waiting.append((core + at, width - at, start, length, count - first))
            waiting.append((core, at, start, length, first))
    return Pieces(*np.array(done, dtype=np.int64).T)


def _share(count: int, area: int, rest: int) -> int:
    """Return the share of *area* in *count* pieces, next to *rest*: in proportion, each side from 1 to its area."""
    fair = rounded(Fraction(count * area, area + rest))
    return min(max(fair, 1, count - rest), area, count - 1)


@dataclass(frozen=True, slots=True)
class Packed:
    """Jobs with deadlines that an optimal schedule packs into *span* seconds on all cores, without gaps.

    Attributes
    ----------
    kind : {"static", "dynamic", "early"}
        ``static``: all jobs arrive at 0 with the deadline (1 + r) * span. ``dynamic``: each job arrives at its packed
        start, and its deadline is (1 + r) times its run time later. ``early``: the same deadlines, but each job
        arrives some time before its packed start.
    cores : int
        Cores of the machine.
    span : int
        Length of the packed schedule, s.
    jobs : int
        Number of jobs.
    r : float
        Extra time that jobs may take relative to the packed schedule, a fraction; 0 leaves no slack.
    lead : float
        With ``early``, the largest time between arrival and packed start, s; uniform in whole seconds, but no arrival
        is before 0.

    Notes
    -----
    Where jobs arrive together their order is random, so that it contains no information on the packing. The packed
    schedule is recorded as the logged one: ``logged["wait"]`` is packed start minus submit time. Estimates are exact.

    With ``dynamic``, every job finds its packed cores free when it arrives. Under every policy that starts jobs as
    soon as they fit, all jobs therefore start at arrival, for every *r*.

    References
    ----------
    Ramamritham, Stankovic, Shiah, "Efficient scheduling algorithms for real-time multiprocessor systems", IEEE TPDS
    1(2), 1990 (``static``); Islam, Balaji, Sadayappan, Panda 2003, section 4.1 (``dynamic``); section 8.6 of the
    project's specification of deadline admission.

    Examples
    --------
    >>> workload = Packed(cores=8, span=3600, jobs=20).generate(seed=1)
    >>> float(workload.area.sum()) == 8 * 3600
    True
    """

    kind: Literal["static", "dynamic", "early"] = "static"
    cores: int = 128
    span: int = 86_400
    jobs: int = 200
    r: float = 0.0
    lead: float = 3600.0

    source: ClassVar[str] = "Ramamritham, Stankovic, Shiah 1990; Islam, Balaji, Sadayappan, Panda 2003"

    def __post_init__(self) -> None:
        require_known("value of packed?kind", KINDS_OF_PACKING, self.kind)
        check_parameters(
            self,
            cores=(self.cores >= 1, "at least 1"),
            span=(1 <= self.span <= 10**9, "1 to 10 ** 9 seconds"),
            jobs=(1 <= self.jobs <= self.cores * self.span, "1 to the number of core-seconds"),
            r=(0 <= self.r <= 1000, "0 (no slack) to 1000"),
            lead=(0 <= self.lead <= 10**9, "0 to 10 ** 9 seconds"),
        )

    def generate(self, seed: int = 1) -> Workload:
        """Return the workload for a *seed*, in job order."""
        pieces = cut(self.cores, self.span, self.jobs, stream(seed, "packed", "cuts"))
        submit = self._submits(pieces, stream(seed, "packed", "leads"))
        shuffled = stream(seed, "packed", "order").permutation(self.jobs)
        order = shuffled[np.argsort(submit[shuffled], kind="stable")]
        return Workload.from_columns(
            submit=submit[order],
            runtime=pieces.seconds[order],
            cores=pieces.cores[order],
            deadline=self._deadlines(pieces)[order],
            logged={"wait": (pieces.start - submit)[order].astype(float)},
            cores_stated=self.cores,
            provenance={"source": "packed", "parameters": asdict(self), "seed": seed},
        )

    def _submits(self, pieces: Pieces, rng: np.random.Generator) -> IntArray:
        if self.kind == "static":
            return np.zeros(self.jobs, dtype=np.int64)
        if self.kind == "dynamic":
            return pieces.start
        leads = rng.integers(0, int(self.lead), size=self.jobs, endpoint=True)
        return np.asarray(np.maximum(pieces.start - leads, 0), dtype=np.int64)

    def _deadlines(self, pieces: Pieces) -> IntArray:
        """Return deadlines in whole seconds, rounded up, exact for the decimal *r* as written."""
        factor = 1 + exact(self.r, "r")
        if self.kind == "static":
            return np.full(self.jobs, -(-self.span * factor.numerator // factor.denominator))
        responses = -(-pieces.seconds * factor.numerator // factor.denominator)
        return np.asarray(pieces.start + responses, dtype=np.int64)
