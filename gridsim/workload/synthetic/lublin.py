"""The default synthetic workload: the model of Lublin and Feitelson for rigid jobs, as a whole or in blocks.

This module has the random draws; parameters, the daily cycle and exact values are in `lublin_parameters`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from gridsim.errors import InputError, UnknownNameError, check_parameters, require_known
from gridsim.model.random_streams import stream
from gridsim.model.time import FloatArray, IntArray
from gridsim.model.workload import Workload
from gridsim.workload.synthetic.lublin_parameters import (
    BUCKETS,
    KINDS,
    DailyClock,
    JobClass,
    cycle,
    expected_load,
    short_share,
)
from gridsim.workload.synthetic.modal import Law, Modal

__all__ = ["Lublin"]

SIZE_KINDS = ("serial", "power-of-two", "other")
"""Kinds of sizes, in the order of the uniform numbers that select them."""

Streams = Callable[..., np.random.Generator]

Estimates = Literal["modal", "multiples"]

FACTOR = 5.0
"""Default for the largest overestimate of multiples, in run times."""


def size_kinds(job_class: JobClass, u_kind: Any) -> IntArray:
    """Return the index in `SIZE_KINDS` of the kind that each uniform number *u_kind* selects."""
    bounds = np.array([job_class.serial, job_class.serial + job_class.pow2])
    return np.asarray(np.searchsorted(bounds, u_kind, side="left"), dtype=np.int64)


def size_exponents(job_class: JobClass, u_stage: Any, u_place: Any) -> FloatArray:
    """Return log2 of the size of a parallel job, unrounded; *u_stage* selects the stage, *u_place* the place in it."""
    lower, place = np.asarray(u_stage) <= job_class.u_prob, np.asarray(u_place)
    bottom = np.where(lower, job_class.u_low, job_class.u_med)
    top = np.where(lower, job_class.u_med, job_class.u_hi)
    return np.asarray(bottom + (top - bottom) * place)


def sizes(job_class: JobClass, cores: int, u_kind: Any, u_stage: Any, u_place: Any) -> IntArray:
    """Return the sizes for three uniform numbers per job, limited to the *cores* of the machine."""
    kind = size_kinds(job_class, u_kind)
    exponent = size_exponents(job_class, u_stage, u_place)
    top = cores.bit_length() - 1
    exponent = np.where(kind == 1, np.minimum(np.floor(exponent + 0.5), top), exponent)
    parallel = np.minimum(np.floor(2.0**exponent + 0.5), cores)
    return np.where(kind == 0, 1, parallel).astype(np.int64)


def log_runtimes(job_class: JobClass, size: IntArray, streams: Streams) -> FloatArray:
    """Return the natural logarithm of the run time of each job, before rounding down to whole seconds.

    Notes
    -----
    The model draws component and value again until the value is below its limit. This function draws the same
    distribution directly: the component with its share after truncation, then its value.
    """
    short = streams("component").random(len(size)) < short_share(job_class, size)
    count = int(np.count_nonzero(short))
    value = np.empty(len(size))
    value[short] = job_class.short.draw(count, streams("short"))
    value[~short] = job_class.long.draw(len(size) - count, streams("long"))
    return value


class _Arrivals(NamedTuple):
    """Arrivals of the jobs of one class as points of its clock, before scaling to a load."""

    points: FloatArray
    clock: DailyClock

    def at(self, factor: float) -> FloatArray:
        """Return submit times under *factor*, s."""
        return self.clock.time(self.points * factor)


@dataclass(frozen=True, slots=True)
class Lublin:
    """A workload of rigid jobs with a daily cycle, as fitted to parallel machines by Lublin and Feitelson.

    Attributes
    ----------
    jobs : int
        Number of jobs.
    cores : int
        Cores of the machine, and largest size of a job.
    load : float or None
        Target offered load, a fraction of the machine, reached by scaling all gaps; None for the model's load (0.72 on
        128 cores).
    realised : bool
        Reach the load in the finished sample between its first and last submission (`Workload.offered_load`) instead
        of in expectation. Gaps are so irregular that 5,000 jobs can be far from the expectation.
    kind : str
        ``all``: one class of jobs; ``two-class``: batch and interactive jobs (queue 0 is interactive, 1 batch);
        ``batch`` or ``interactive``: only one of these classes.
    rescale : bool
        Fit the correlation of size and run time to the size of the machine; otherwise jobs above 144 cores are always
        long.
    f : float or None
        For multiples: estimates are ``runtime * (1 + f U)``, U uniform on [0, 1); 0 for exact estimates, 5 by default.
    estimate_step : float or None
        For multiples: round estimates up to a multiple of this many seconds; None does not round.
    users : int or None
        Number of users to whom jobs are assigned by Zipf's law; None for no users.
    start_bucket : int
        Half hour of the day at time 0; 0 is midnight.
    estimates : {"modal", "multiples"} or None
        ``modal``: a few popular values, a tail and the limit of the queue (the transform ``modal`` has its
        parameters). ``multiples``: as *f* and *estimate_step* define, which the literature advises against. The
        default is modal, or multiples if *f* or *estimate_step* is given.

    Notes
    -----
    Every quantity (arrivals, sizes, run times, estimates, users) has separate random streams, so a change of one
    parameter does not affect unrelated quantities. A longer workload begins with the same jobs, except for modal
    estimates, which depend on the number of jobs. Unlike the authors' program, the clock keeps fractions of a second,
    because the daily cycle would drift without them.

    References
    ----------
    Lublin and Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid jobs",
    JPDC 63(11), 2003. Tsafrir, Etsion and Feitelson, "Modeling user runtime estimates", JSSPP 2005 (modal estimates,
    with gridsim's constants). Tsafrir, "Using inaccurate estimates accurately", JSSPP 2010 (against multiples).

    Examples
    --------
    >>> round(Lublin(jobs=100, load=0.5, realised=True).generate(seed=1).offered_load(128), 6)
    0.5
    """

    jobs: int = 10_000
    cores: int = 128
    load: float | None = None
    realised: bool = False
    kind: str = "all"
    rescale: bool = True
    f: float | None = None
    estimate_step: float | None = None
    users: int | None = None
    start_bucket: int = 0
    estimates: Estimates | None = None

    def __post_init__(self) -> None:
        require_known("kind of Lublin workload", KINDS, self.kind)
        if self.estimates is not None and self.estimates not in get_args(Estimates):
            raise UnknownNameError("kind of estimates", str(self.estimates), get_args(Estimates))
        check_parameters(
            self,
            jobs=(self.jobs >= (2 if self.realised else 1), f"at least {2 if self.realised else 1}"),
            cores=(self.cores >= 1, "at least 1"),
            load=(self.load is None or 0 < self.load < np.inf, "a fraction above 0, such as 0.7"),
            f=(self.f is None or 0 <= self.f < np.inf, "0 (exact estimates) or more"),
            estimate_step=(self.estimate_step is None or 0 < self.estimate_step < np.inf, "seconds above 0"),
            start_bucket=(0 <= self.start_bucket < BUCKETS, f"a half hour of the day, 0 to {BUCKETS - 1}"),
            users=(self.users is None or self.users >= 1, "at least 1"),
        )
        for name in ("f", "estimate_step"):
            if self.estimates == "modal" and getattr(self, name) is not None:
                raise InputError("requires estimates=multiples; expected that, or no {name}", field=name)

    @property
    def estimates_drawn(self) -> Estimates:
        """Kind of estimates of the jobs.

        Returns
        -------
        {"modal", "multiples"}
            The value of `estimates`; by default multiples if `f` or `estimate_step` is given, else modal.
        """
        if self.estimates is None:
            return "modal" if self.f is None and self.estimate_step is None else "multiples"
        return self.estimates

    @property
    def _factor(self) -> float | None:
        """Largest overestimate of multiples, in run times; None if estimates are modal."""
        if self.estimates_drawn == "modal":
            return None
        return FACTOR if self.f is None else self.f

    def classes(self) -> tuple[JobClass, ...]:
        """Return the classes of jobs, fitted to the machine.

        Returns
        -------
        tuple of JobClass
            One class, or batch and interactive jobs.
        """
        return tuple(job_class.on(self.cores, rescale=self.rescale) for job_class in KINDS[self.kind])

    def natural_load(self) -> float:
        """Return the expected load with the model's gaps, a fraction: the exact integral.

        Returns
        -------
        float
            Offered work over capacity.
        """
        return expected_load(self.classes(), self.cores)

    def generate(self, seed: int = 1) -> Workload:
        """Return the workload for a *seed*, in job order; times count from the start of the bucket `start_bucket`.

        Parameters
        ----------
        seed : int
            Seed of the random streams.

        Returns
        -------
        Workload
            The jobs; `Workload.provenance` records how they were drawn.
        """
        classes = self.classes()
        natural = self.natural_load()
        wanted = natural if self.load is None else self.load
        factor = natural / wanted
        arrivals, queue = self._arrivals(classes, seed, factor)
        size, runtime = self._work(classes, [len(part.points) for part in arrivals], seed)
        if self.realised:
            factor = _factor_for_span(arrivals, float(size @ runtime) / (self.cores * wanted))
        submit = np.concatenate([part.at(factor) for part in arrivals])
        order = np.argsort(submit, kind="stable")
        runtime = runtime[order]
        workload = Workload.from_columns(
            submit=submit[order],
            runtime=runtime,
            cores=size[order],
            estimate=self._estimates(runtime, stream(seed, "workload", "estimates")),
            labels=self._labels(queue[order], seed),
            cores_stated=self.cores,
        )
        return workload.with_provenance(
            source="lublin",
            parameters={**asdict(self), "f": self._factor, "estimates": self.estimates_drawn},
            seed=seed,
            natural_load=natural,
            expected_load=wanted,
            realised_load=workload.offered_load(self.cores) if self.jobs > 1 else None,
            gap_factor=factor,
        )

    def _arrivals(self, classes: Sequence[JobClass], seed: int, factor: float) -> tuple[list[_Arrivals], IntArray]:
        """Return the first arrivals over all classes, by class, and the class of each arrival in the same order."""
        whole = []
        for job_class in classes:
            log_gaps = job_class.log_gap.draw(self.jobs, stream(seed, "workload", "arrivals", job_class.name))
            clock = DailyClock(cycle(job_class), self.start_bucket)
            whole.append(_Arrivals(np.cumsum(np.exp(log_gaps)), clock))
        if len(whole) == 1:
            return whole, np.zeros(self.jobs, dtype=np.int64)
        number = np.repeat(np.arange(len(classes)), self.jobs)
        first = np.argsort(np.concatenate([part.at(factor) for part in whole]), kind="stable")[: self.jobs]
        counts = np.bincount(number[first], minlength=len(classes))
        cut = [_Arrivals(part.points[:count], part.clock) for part, count in zip(whole, counts, strict=True)]
        return cut, np.repeat(np.arange(len(classes)), counts)

    def _work(self, classes: Sequence[JobClass], counts: Sequence[int], seed: int) -> tuple[IntArray, FloatArray]:
        """Return sizes and run times (whole seconds) of the given numbers of jobs of each class, class after class."""
        size_parts, runtime_parts = [], []
        for job_class, count in zip(classes, counts, strict=True):
            uniform = stream(seed, "workload", "sizes", job_class.name).random((count, 3))
            size = sizes(job_class, self.cores, *uniform.T)

            def streams(role: str, name: str = job_class.name) -> np.random.Generator:
                return stream(seed, "workload", "runtimes", name, role)

            size_parts.append(size)
            runtime_parts.append(np.maximum(np.floor(np.exp(log_runtimes(job_class, size, streams))), 1.0))
        return np.concatenate(size_parts), np.concatenate(runtime_parts)

    def _estimates(self, runtime: FloatArray, rng: np.random.Generator) -> FloatArray:
        if self._factor is None:
            return Modal.of(runtime, Law(), rng).estimate
        return overestimated(runtime, rng, f=self._factor, step=self.estimate_step)

    def _labels(self, queue: IntArray, seed: int) -> dict[str, IntArray]:
        labels = {}
        if self.users is not None:
            labels["user"] = zipf_users(self.jobs, self.users, stream(seed, "workload", "users"))
        if self.kind == "two-class":
            labels["queue"] = queue
        return labels


def _factor_for_span(arrivals: Sequence[_Arrivals], span: float) -> float:
    """Return the factor of the points that makes the first and last submission *span* seconds apart, by bisection."""
    ends = [_Arrivals(part.points[[0, -1]], part.clock) for part in arrivals if len(part.points)]

    def reached(factor: float) -> bool:
        times = np.concatenate([part.at(factor) for part in ends])
        return float(times.max() - times.min()) >= span

    high = 1.0
    while not reached(high):
        high *= 2.0
    low = 0.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def default_workload(
    jobs: int | None = None,
    load: float | None = None,
    seed: int | None = None,
    cores: int | None = None,
    estimates: Estimates = "modal",
) -> Workload:
    """Return the workload of `gridsim compare` without arguments.

    Parameters
    ----------
    jobs : int, optional
        Number of jobs; 10,000 (five months) by default.
    load : float, optional
        Exact offered load, a fraction; 0.5 by default.
    seed : int, optional
        Random seed; 1 by default.
    cores : int, optional
        Cores of the machine; 128 by default.
    estimates : {"modal", "multiples"}
        A few popular values, a tail and the limit of the queue; or up to six times the run time in whole minutes.

    Returns
    -------
    Workload
        The jobs.

    Notes
    -----
    The default load is 0.5, because policies can be compared meaningfully at this load. First come, first served
    cannot use more than 0.60 of these 128 cores (the widest jobs wait for an empty machine). Above that load, its
    queue only grows, and its mean wait reflects the length of the workload rather than the quality of the policy. At
    0.5 its queue still empties between bursts, and response times are about ten times shorter under backfilling (8 to
    18 over seeds). The mean waits under EASY and conservative backfilling differ by less than a tenth, in both
    directions.
    """
    model = Lublin(
        jobs=10_000 if jobs is None else jobs,
        cores=128 if cores is None else cores,
        load=0.5 if load is None else load,
        realised=True,
        estimate_step=60.0 if estimates == "multiples" else None,
        users=50,
        estimates=estimates,
    )
    return model.generate(1 if seed is None else seed)


def zipf_users(n: int, users: int, rng: np.random.Generator) -> IntArray:
    """Return the user of each of *n* jobs, numbered from 1; the share of user k is proportional to ``1 / k``.

    Parameters
    ----------
    n : int
        Number of jobs, drawn independently.
    users : int
        Number of users; the last users may have no job.
    rng : Generator
        Source of one uniform number per job.

    Raises
    ------
    InputError
        If there is no user.

    Examples
    --------
    >>> zipf_users(5, 1, np.random.default_rng(1))
    array([1, 1, 1, 1, 1])
    """
    if users < 1:
        raise InputError(f"is {users}; expected at least 1 user", field="users")
    reached = np.cumsum(np.arange(1, users + 1) ** -1.0)
    return np.searchsorted(reached[:-1] / reached[-1], rng.random(n), side="right").astype(np.int64) + 1


def overestimated(
    runtime: FloatArray, rng: np.random.Generator, *, f: float = 5.0, step: float | None = None
) -> FloatArray:
    """Return the estimate of each job, s: ``runtime * (1 + f U)``, U uniform on [0, 1), at least the run time.

    Parameters
    ----------
    runtime : (n,) float
        True runtimes, s.
    rng : Generator
        Source of one uniform number per job, whatever *f* is.
    f : float
        Largest overestimate in run times; 0 for exact estimates.
    step : float, optional
        Round estimates up to a multiple of this many seconds, because users request whole minutes.

    Raises
    ------
    InputError
        If *f* is negative or *step* is not above 0.

    Examples
    --------
    >>> overestimated(np.array([100.0, 61.0]), np.random.default_rng(1), f=0, step=60)
    array([120., 120.])
    """
    if not 0 <= f < np.inf:
        raise InputError(f"is {f}; expected a factor from 0 (exact estimates)", field="f")
    if step is not None and not 0 < step < np.inf:
        raise InputError(f"is {step}; expected seconds above 0, or none", field="step")
    estimate = runtime * (1.0 + f * rng.random(len(runtime)))
    return estimate if step is None else np.ceil(estimate / step) * step


_BLOCK = 1 << 16


class LublinBlocks:
    """Jobs of a model, drawn on demand in any number, with the memory of one block.

    Parameters
    ----------
    model : Lublin
        A model with estimates that are multiples of the run times (modal estimates depend on all jobs), a load in
        expectation, and one class of jobs.
    seed : int
        Seed of the random streams.
    block : int
        Number of jobs drawn at a time; the jobs do not depend on it.

    Raises
    ------
    InputError
        If the model needs all jobs at once.
    """

    def __init__(self, model: Lublin, seed: int = 1, *, block: int = _BLOCK) -> None:
        for field, bad, cure in (
            ("estimates", model.estimates_drawn == "modal", "modal estimates are assigned to all jobs; use multiples"),
            ("realised", model.realised, "a load can be reached only if all jobs are generated together; leave it out"),
            ("kind", len(model.classes()) > 1, "the jobs of the two classes are merged by submit time; use all"),
        ):
            if bad:
                raise InputError(f"needs all jobs at once, but they are generated block by block: {cure}", field=field)
        self._model, self._seed, self._block = model, seed, block
        natural = model.natural_load()
        wanted = natural if model.load is None else model.load
        self._gaps = natural / wanted
        self.jobs, self.cores_stated = model.jobs, model.cores
        f = FACTOR if model.f is None else model.f
        self.provenance: Mapping[str, Any] = {
            "source": "lublin",
            "parameters": {**asdict(model), "f": f, "estimates": "multiples"},
            "seed": seed,
            "natural_load": natural,
            "expected_load": wanted,
            "gap_factor": self._gaps,
        }

    def __iter__(self) -> Iterator[Workload]:
        model, (job_class,) = self._model, self._model.classes()
        clock = DailyClock(cycle(job_class), model.start_bucket)

        @functools.cache
        def drawn(*names: str) -> np.random.Generator:
            return stream(self._seed, "workload", *names)

        def of_runtimes(role: str) -> np.random.Generator:
            return drawn("runtimes", job_class.name, role)

        f, reached = self.provenance["parameters"]["f"], 0.0
        for first in range(0, self.jobs, self._block):
            count = min(self._block, self.jobs - first)
            gaps = np.exp(job_class.log_gap.draw(count, drawn("arrivals", job_class.name)))
            points = np.cumsum(np.concatenate([[reached], gaps]))[1:]
            reached = float(points[-1])
            size = sizes(job_class, model.cores, *drawn("sizes", job_class.name).random((count, 3)).T)
            runtime = np.maximum(np.floor(np.exp(log_runtimes(job_class, size, of_runtimes))), 1.0)
            users = {} if model.users is None else {"user": zipf_users(count, model.users, drawn("users"))}
            yield Workload.from_columns(
                submit=clock.time(points * self._gaps),
                runtime=runtime,
                cores=size,
                estimate=overestimated(runtime, drawn("estimates"), f=f, step=model.estimate_step),
                job=np.arange(first + 1, first + count + 1),
                labels=users,
                cores_stated=model.cores,
                provenance=self.provenance,
            )
