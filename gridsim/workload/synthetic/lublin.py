"""The default synthetic workload: the model of Lublin and Feitelson for rigid jobs, at once or block by block.

Random draws are here; parameters, the daily cycle and exact values are in `lublin_parameters`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from gridsim.errors import InputError, UnknownNameError, check_parameters
from gridsim.model.streams import stream
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

__all__ = [
    "FACTOR",
    "SIZE_KINDS",
    "Lublin",
    "default_workload",
    "log_runtimes",
    "overestimated",
    "size_exponents",
    "size_kinds",
    "sizes",
    "zipf_users",
]

SIZE_KINDS = ("serial", "power-of-two", "other")
"""Kinds of sizes, in the order of the uniform numbers that pick them."""

Streams = Callable[..., np.random.Generator]

Estimates = Literal["modal", "multiples"]

FACTOR = 5.0
"""Largest overestimate of multiples, in runtimes."""


def size_kinds(job_class: JobClass, u_kind: Any) -> IntArray:
    """Place in `SIZE_KINDS` of the kind that each uniform number *u_kind* picks."""
    bounds = np.array([job_class.serial, job_class.serial + job_class.pow2])
    return np.asarray(np.searchsorted(bounds, u_kind, side="left"), dtype=np.int64)


def size_exponents(job_class: JobClass, u_stage: Any, u_place: Any) -> FloatArray:
    """log2 of the size of a parallel job before rounding: *u_stage* picks the stage, *u_place* the place in it."""
    lower, place = np.asarray(u_stage) <= job_class.u_prob, np.asarray(u_place)
    bottom = np.where(lower, job_class.u_low, job_class.u_med)
    top = np.where(lower, job_class.u_med, job_class.u_hi)
    return np.asarray(bottom + (top - bottom) * place)


def sizes(job_class: JobClass, cores: int, u_kind: Any, u_stage: Any, u_place: Any) -> IntArray:
    """Sizes that three uniform numbers a job make on a machine of *cores* cores, which caps them."""
    kind = size_kinds(job_class, u_kind)
    exponent = size_exponents(job_class, u_stage, u_place)
    top = cores.bit_length() - 1
    exponent = np.where(kind == 1, np.minimum(np.floor(exponent + 0.5), top), exponent)
    parallel = np.minimum(np.floor(2.0**exponent + 0.5), cores)
    return np.where(kind == 0, 1, parallel).astype(np.int64)


def log_runtimes(job_class: JobClass, size: IntArray, streams: Streams) -> FloatArray:
    """Natural logarithm of the runtime of each job, before the cut to whole seconds.

    Notes
    -----
    The model draws component and value until the value is below its limit. The same law in one pass: the
    component with the share that it keeps, then its value.
    """
    short = streams("component").random(len(size)) < short_share(job_class, size)
    count = int(np.count_nonzero(short))
    value = np.empty(len(size))
    value[short] = job_class.short.draw(count, streams("short"))
    value[~short] = job_class.long.draw(len(size) - count, streams("long"))
    return value


class _Arrivals(NamedTuple):
    """Arrivals of the jobs of one class as points of its clock, before they are stretched to a load."""

    points: FloatArray
    clock: DailyClock

    def at(self, factor: float) -> FloatArray:
        """Submit times under *factor*, s."""
        return self.clock.time(self.points * factor)


@dataclass(frozen=True, slots=True)
class Lublin:
    """A workload of rigid jobs with a daily cycle, as Lublin and Feitelson fitted it to parallel machines.

    Attributes
    ----------
    jobs : int
        Jobs to make.
    cores : int
        Cores of the machine; largest size.
    load : float or None
        Offered load to reach by making all gaps longer or shorter, a fraction of the machine; None for the
        model's own (0.72 on 128 cores).
    realised : bool
        Reach the load in the finished sample between its first and last submit (`Workload.offered_load`)
        instead of in expectation: gaps are so irregular that 5,000 jobs can be far from theirs.
    kind : str
        One class of jobs, ``all``, or batch and interactive jobs together, ``two-class`` (queue 0 is
        interactive, 1 batch), or one of them, ``batch`` or ``interactive``.
    rescale : bool
        Fit the tie between size and runtime to the machine's size; otherwise jobs above 144 cores are always
        long.
    f : float or None
        Of multiples: estimates are ``runtime * (1 + f U)``, U uniform on [0, 1); 0 for exact ones, 5 where left out.
    estimate_step : float or None
        Of multiples: estimates are rounded up to a multiple of this many seconds; None leaves them.
    users : int or None
        Users among whom the jobs are dealt by Zipf's law; None for no users.
    start_bucket : int
        Half hour of the day at time 0: 0 is midnight.
    estimates : {"modal", "multiples"} or None
        ``modal``: few popular values, a tail and the limit of the queue (the transform ``modal`` has its parameters);
        ``multiples``: as *f* and *estimate_step* say, which research is asked to stop using. Modal where left out,
        multiples where *f* or *estimate_step* is given.

    Notes
    -----
    Every role (arrivals, sizes, runtimes, estimates, users) has its own random streams, and more jobs begin with
    the same ones (but for modal estimates, of which so many are dealt as there are jobs): changing one parameter moves
    nothing that it does not mean. Unlike the authors' program the
    clock keeps its fractions of a second, else the daily cycle drifts.

    References
    ----------
    Lublin and Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid jobs",
    JPDC 63(11), 2003. Tsafrir, Etsion and Feitelson, "Modeling user runtime estimates", JSSPP 2005 (modal estimates,
    with constants of our own). Tsafrir, "Using inaccurate estimates accurately", JSSPP 2010 (against multiples).

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
        if self.kind not in KINDS:
            raise UnknownNameError("kind of Lublin workload", self.kind, KINDS)
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
                raise InputError("shapes multiples of runtimes; say estimates=multiples, or leave it out", field=name)

    @property
    def estimates_drawn(self) -> Estimates:
        """Which kind of estimates the jobs have.

        Returns
        -------
        {"modal", "multiples"}
            As `estimates` says; where it does not, multiples where `f` or `estimate_step` is given, else modal.
        """
        if self.estimates is None:
            return "modal" if self.f is None and self.estimate_step is None else "multiples"
        return self.estimates

    @property
    def _factor(self) -> float | None:
        """Largest overestimate of multiples, in runtimes; None where estimates are modal."""
        if self.estimates_drawn == "modal":
            return None
        return FACTOR if self.f is None else self.f

    def classes(self) -> tuple[JobClass, ...]:
        """Classes of jobs, fitted to the machine.

        Returns
        -------
        tuple of JobClass
            One, or batch and interactive jobs.
        """
        return tuple(job_class.on(self.cores, rescale=self.rescale) for job_class in KINDS[self.kind])

    def natural_load(self) -> float:
        """Expected load of the model's own gaps, a fraction: the exact integral.

        Returns
        -------
        float
            Offered work over capacity.
        """
        return expected_load(self.classes(), self.cores)

    def generate(self, seed: int = 1) -> Workload:
        """The workload of a *seed*, in job order; times count from the start of the bucket `start_bucket`.

        Parameters
        ----------
        seed : int
            Seed of the random streams.

        Returns
        -------
        Workload
            The jobs; it says how it was drawn (`Workload.provenance`).
        """
        if seed < 0:
            raise InputError(f"is {seed}; expected a whole number from 0", field="seed")
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
        """The first arrivals of all classes together, by class, and the class of each in the same order."""
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
        """Sizes and runtimes (whole seconds) of so many jobs of each class, class after class."""
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
    """Factor of the points under which first and last submit lie *span* seconds apart; by bisection."""
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
    """The workload of `gridsim compare` without arguments.

    Parameters
    ----------
    jobs : int, optional
        10,000 where left out: five months.
    load : float, optional
        Offered load, hit exactly; a fraction, 0.5 where left out.
    seed : int, optional
        1 where left out.
    cores : int, optional
        128 where left out.
    estimates : {"modal", "multiples"}
        Few popular values, a tail and the limit of the queue; or up to six times the runtime in whole minutes.

    Returns
    -------
    Workload
        The jobs.

    Notes
    -----
    Why a load of 0.5: half a machine's worth of work is where policies can be told apart honestly. First come,
    first served cannot use more than 0.60 of these 128 cores (the widest jobs wait for an empty machine), so
    from there on its queue only grows and its mean wait says how long the workload is, not how good the policy
    is. At 0.5 its queue still empties between bursts, and backfilling answers about ten times sooner (8 to 18 over
    seeds); the mean waits of EASY and conservative backfilling differ by less than a tenth, in both directions.
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
    """User of each of *n* jobs, numbered from 1: user k has a share in proportion to ``1 / k``.

    Parameters
    ----------
    n : int
        Jobs; each is drawn independently of the others.
    users : int
        Users there are; the last ones may stay without a job.
    rng : Generator
        One uniform number a job is taken from it.

    Raises
    ------
    InputError
        When there is no user.

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
    """Estimate of each job, s: ``runtime * (1 + f U)`` with U uniform on [0, 1), never below the runtime.

    Parameters
    ----------
    runtime : (n,) float
        True runtimes, s.
    rng : Generator
        One uniform number a job is taken from it, whatever *f* is.
    f : float
        Largest overestimate in runtimes; 0 for exact estimates.
    step : float, optional
        Estimates are rounded up to a multiple of this many seconds, as users ask for whole minutes.

    Raises
    ------
    InputError
        When *f* is negative or *step* not above 0.

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
    """Jobs of a model that are drawn as they are asked for, any number of them, in the memory of a block.

    Parameters
    ----------
    model : Lublin
        With estimates that are multiples of the runtimes (modal ones are dealt to all jobs at once), a load in
        expectation, and one class of jobs.
    seed : int
        Of the random streams.
    block : int
        Jobs that are drawn at once, which changes none of them.

    Raises
    ------
    InputError
        When the model has to see all jobs at once.
    """

    def __init__(self, model: Lublin, seed: int = 1, *, block: int = _BLOCK) -> None:
        for field, bad, cure in (
            ("estimates", model.estimates_drawn == "modal", "modal estimates are dealt to all; say multiples"),
            ("realised", model.realised, "a load is reached in the sample when all are drawn; leave it out"),
            ("kind", len(model.classes()) > 1, "the jobs of two classes are sorted into each other; say all"),
        ):
            if bad:
                raise InputError(f"needs all jobs at once, and they are drawn block by block: {cure}", field=field)
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
