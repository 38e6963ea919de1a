"""Synthetic grid workloads with five kinds of jobs, from independent tasks to chains of forks and joins.

This module has random draws, shapes of graphs, and arrivals; `shares_of_total` divides a total into parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError, check_parameters, require_known
from gridsim.model.random_streams import stream
from gridsim.model.tasks import Tasks
from gridsim.model.time import MICROSECOND, FloatArray, IntArray
from gridsim.model.workload import Workload
from gridsim.workload.synthetic.shares_of_total import loguniform, simplexes, uniform, uunifast

__all__ = ["CORE_COUNTS", "KINDS_OF_JOBS", "KINDS_OF_TASKS", "LOADS", "Grid"]


class DagShapes(NamedTuple):
    """Graphs of all jobs: tasks of each job, and edges between rows of tasks, from a lower to a higher row."""

    counts: IntArray
    edge_first: IntArray
    edge_to: IntArray


class BlockRanges(NamedTuple):
    """Inclusive ranges for jobs that consist of blocks: number of blocks, chains per block, length of a chain."""

    blocks: tuple[int, int]
    width: tuple[int, int]
    length: tuple[int, int]
    ends: int = 0
    """Number of end tasks (fork, join) that the length includes."""

    @property
    def most_tasks(self) -> int:
        """Number of tasks of the largest job."""
        return self.blocks[1] * (self.width[1] * (self.length[1] - self.ends) + 2)


def single(jobs: int) -> DagShapes:
    """Return one task per job."""
    return DagShapes(np.ones(jobs, dtype=np.int64), np.zeros(jobs + 1, dtype=np.int64), np.empty(0, dtype=np.int64))


def erdos_renyi(jobs: int, most: int, probability: float, rng: np.random.Generator) -> DagShapes:
    """Return jobs of 1 to *most* tasks, uniformly; each pair of tasks has an edge (low to high) with *probability*."""
    counts = rng.integers(1, most + 1, jobs)
    one, other = np.triu_indices(most, 1)
    taken = rng.random((jobs, len(one))) < probability
    job, pair = np.nonzero(taken & (other < counts[:, None]))
    first = np.cumsum(counts) - counts
    return _shapes(counts, first[job] + one[pair], first[job] + other[pair])


def blocks(jobs: int, block: BlockRanges, rng: np.random.Generator) -> DagShapes:
    """Return jobs of successive blocks; each block has a random width and length, and is a fork, chains and a join.

    Tasks of a block are in the order fork, first chain from its beginning, second chain, …, join.
    """
    number = rng.integers(block.blocks[0], block.blocks[1] + 1, jobs)
    total = int(number.sum())
    width = rng.integers(block.width[0], block.width[1] + 1, total)
    length = rng.integers(block.length[0], block.length[1] + 1, total) - block.ends
    size = width * length + 2
    fork = np.cumsum(size) - size
    join = fork + size - 1
    last_block = np.cumsum(number) - 1
    counts = np.add.reduceat(size, last_block + 1 - number)

    leaving = np.ones(int(size.sum()), dtype=np.int64)
    leaving[fork] = width
    leaving[join[last_block]] = 0
    edge_first = np.concatenate([[0], np.cumsum(leaving)])
    edge_to = np.repeat(np.arange(1, len(leaving) + 1), leaving)  # the next task of a chain, or fork
    chain = np.arange(int(width.sum())) - np.repeat(np.cumsum(width) - width, width)
    begin = np.repeat(fork, width) + 1 + chain * np.repeat(length, width)
    edge_to[np.repeat(edge_first[fork], width) + chain] = begin
    edge_to[edge_first[begin + np.repeat(length, width) - 1]] = np.repeat(join, width)
    return DagShapes(counts, edge_first, edge_to)


def _shapes(counts: IntArray, one: IntArray, other: IntArray) -> DagShapes:
    """Return shapes from edges sorted by their first task, then by their second."""
    leaving = np.bincount(one, minlength=int(counts.sum()))
    return DagShapes(counts, np.concatenate([[0], np.cumsum(leaving)]).astype(np.int64), other)


CORE_COUNTS = (1, 5, 10, 15, 20)
"""Cores of a task, with equal probability. (The 100 in the printed table is a misprint for 10.)"""

KINDS_OF_TASKS = ("Kind1", "Kind2")
"""Architectures that tasks need."""

SECOND_KIND = 0.2
"""Share of the tasks that need the second architecture."""

LOADS = (0.8, 0.9, 1.0, 1.1, 1.2)
"""Load ratios of the published evaluation."""


class KindOfJobs(NamedTuple):
    """A column of the table of workloads: number of jobs, distribution of their sizes, and shape of their graphs."""

    jobs: int
    sizes: str
    most_tasks: int = 1
    edge_probability: float = 0.0
    block: BlockRanges | None = None


KINDS_OF_JOBS: Mapping[str, KindOfJobs] = MappingProxyType(
    {
        "uni-ind": KindOfJobs(10_000, "uniform"),
        "log-ind": KindOfJobs(10_000, "log"),
        "prob": KindOfJobs(1_000, "log", most_tasks=20, edge_probability=0.3),
        "fan": KindOfJobs(1_000, "log", block=BlockRanges(blocks=(1, 1), width=(1, 10), length=(3, 15))),
        "chain": KindOfJobs(1_000, "log", block=BlockRanges(blocks=(1, 3), width=(1, 5), length=(3, 15))),
    }
)
"""The kinds of workload."""

_ENDS = {"chain": 0, "inner": 0, "total": 2}
"""Number of end tasks of a block (fork, join) that each way to count its length includes."""

Streams = Callable[[str], np.random.Generator]


DAYS = (0.170, 0.191, 0.193, 0.198, 0.187, 0.042, 0.019)
"""Share of the work of a week submitted on each day, Monday first."""

# fmt: off
HOURS = (
    .0087, .0097, .0079, .0097, .0120, .0138, .0218, .0394, .0601, .0733, .0748, .0697,
    .0680, .0747, .0859, .0913, .0835, .0644, .0433, .0289, .0217, .0168, .0120, .0086,
)
"""Share of the work of a day submitted in each hour."""
# fmt: on

WEEKS = 52
"""Number of weeks in a year."""


def proportional(work: IntArray, cores: int, load: float) -> IntArray:
    """Return the arrival of each job, ticks: the time that *cores* cores need at *load* for all earlier jobs.

    Parameters
    ----------
    work : (n,) int64
        Core-ticks of each job.

    Notes
    -----
    The floor of the exact running sum; the load is the exact decimal number as written.

    Examples
    --------
    >>> proportional(np.array([10, 5, 1]), cores=2, load=0.8)
    array([0, 6, 9])
    """
    ratio = Fraction(str(load))
    before = _before(work)
    divisor = cores * ratio.numerator
    if int(before[-1]) * ratio.denominator < 1 << 62 and divisor < 1 << 62:
        return before * ratio.denominator // divisor
    return np.array([int(sum_) * ratio.denominator // divisor for sum_ in before], dtype=np.int64)


def poisson(work: IntArray, cores: int, load: float, rng: np.random.Generator) -> IntArray:
    """Return arrivals of a Poisson process with the same mean gap as `proportional`, ticks; the first at 0."""
    mean = float(work.sum()) / (len(work) * cores * float(Fraction(str(load))))
    gaps = rng.standard_exponential(len(work))[:-1]
    return np.floor(np.concatenate([[0.0], np.cumsum(gaps)]) * mean).astype(np.int64)


def day_week(work: IntArray, cores: int, load: float, hour: int, weeks: Sequence[float] = ()) -> IntArray:
    """Return arrivals as `proportional`, ticks, with a daily and weekly cycle; time 0 is Monday, 0:00.

    Parameters
    ----------
    hour : int
        Ticks in an hour.
    weeks : sequence of float
        Factor, at least 0, for the work of each week of the year, starting at time 0; vacations are below 1. By
        default all are 1.

    Notes
    -----
    The running sum is the operational time. It advances in proportion to the hour's share of the work of the week, or
    of the year if *weeks* differ. Over whole weeks or years, the load is therefore the nominal one.
    """
    reached = _profile(weeks if len(set(weeks)) > 1 else (1.0,))
    hours = len(reached) - 1
    operational = _before(work) / (cores * float(Fraction(str(load)))) / (hours * hour)
    periods = np.floor(operational)
    into = np.interp(operational - periods, reached, np.arange(len(reached)))
    return np.floor((periods * hours + into) * hour).astype(np.int64)


def _profile(weeks: Sequence[float]) -> FloatArray:
    """Return the share of the work of some weeks submitted by the start of each hour, and by their end."""
    share = np.outer(weeks, np.outer(DAYS, HOURS).ravel()).ravel()
    return np.concatenate([[0.0], np.cumsum(share) / share.sum()])


def _before(work: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(work)[:-1]]).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Grid:
    """Jobs of multi-core tasks with dependencies and widely different execution times, at a given load of a grid.

    Attributes
    ----------
    kind : str
        ``uni-ind`` and ``log-ind``: independent tasks; ``prob``: Erdős-Rényi graphs; ``fan``: chains between a fork and
        a join; ``chain``: up to three such blocks one after the other.
    number : int
        Number of the workload within its kind; the published evaluation has 30 of each.
    load : float
        Work that arrives relative to the capacity of the grid over the same time.
    cores : int
        Cores of the grid.
    sizes : str or None
        Distribution of execution times of jobs: ``log`` (parts of the total, uniform over all divisions), ``uniform``
        (in proportion to uniform numbers) or ``loguniform`` (over five decades, as in industrial logs); None for that
        of the kind.
    volume : str
        Quantity that adds up to *total*: execution times of tasks, ``ticks``, or those times their cores,
        ``core-ticks``.
    length_counts : str
        Whether the length of a block counts its chains only (``chain``, or ``inner``) or fork and join too (``total``).
    kinds : str
        Architectures: drawn independently for each task (``independent``) or in the exact proportion (``exact``).
    shares : int
        Number of equal shares to which jobs are assigned, ``/share1`` and so on.
    arrivals : str
        ``proportional``: after each job, a gap as long as the grid needs for it; ``poisson``: exponential gaps of the
        same mean; ``day-week``: like ``proportional``, with a daily and weekly cycle.
    hour : int
        Ticks in an hour of the daily and weekly cycle; in the publication a tick is a minute.
    weeks : sequence of float or str
        Under ``day-week``, a factor of at least 0 for the work of each of the 52 weeks of the year, as numbers or as a
        text with ``+`` between them; by default all 1.
    jobs : int or None
        Number of jobs, None for that of the kind. Fewer jobs share the same total.
    total : int
        Volume of the workload.
    largest : int or None
        Largest size of a job under ``log``, in the unit of *total*; None for no limit.

    Notes
    -----
    Times are whole ticks of one second. Each quantity has a separate random stream, and the load only changes
    arrivals. The workload is therefore the same at every load and under every policy.

    References
    ----------
    Burkimsher, Bate and Indrusiak, "A survey of scheduling metrics and an improved ordering policy for list schedulers
    operating on workloads with dependencies and a wide variation in execution times", FGCS 29(8), 2013, Table 2.

    Examples
    --------
    >>> workload = Grid(kind="fan", jobs=10, load=0.8).generate(seed=1)
    >>> len(workload), int(workload.tasks.runtime.sum()) == 10**10 * 1_000_000
    (10, True)
    """

    kind: Literal["uni-ind", "log-ind", "prob", "fan", "chain"] = "chain"
    number: int = 1
    load: float = 1.0
    cores: int = 4_000
    sizes: Literal["log", "uniform", "loguniform"] | None = None
    volume: Literal["ticks", "core-ticks"] = "ticks"
    length_counts: Literal["chain", "inner", "total"] = "chain"
    kinds: Literal["independent", "exact"] = "independent"
    shares: int = 5
    arrivals: Literal["proportional", "poisson", "day-week"] = "proportional"
    hour: int = 60
    jobs: int | None = None
    total: int = 10**10
    largest: int | None = None
    weeks: Sequence[float] | str = ()

    def __post_init__(self) -> None:
        for name, known in (
            ("kind", KINDS_OF_JOBS),
            ("sizes", (None, "log", "uniform", "loguniform")),
            ("volume", ("ticks", "core-ticks")),
            ("length_counts", _ENDS),
            ("kinds", ("independent", "exact")),
            ("arrivals", ("proportional", "poisson", "day-week")),
        ):
            require_known(f"value of grid?{name}", known, getattr(self, name))
        object.__setattr__(self, "weeks", _factors(self.weeks))
        if self.weeks and self.arrivals != "day-week":
            raise InputError(f"have no effect with arrivals={self.arrivals}; expected arrivals=day-week", field="weeks")
        check_parameters(
            self,
            number=(self.number >= 0, "a whole number from 0"),
            load=(0 < self.load < np.inf, "a ratio above 0, such as 0.8"),
            cores=(self.cores >= 1, "at least 1"),
            shares=(self.shares >= 1, "at least 1"),
            hour=(self.hour >= 1, "at least 1 tick"),
            jobs=(self.jobs is None or self.jobs >= 1, "at least 1"),
            total=(1 <= self.total <= 10**12, "1 to 10 ** 12"),
            largest=(self.largest is None or self.sizes_drawn == "log", "no limit if sizes is not 'log'"),
        )

    @property
    def sizes_drawn(self) -> str:
        """Distribution of execution times of jobs."""
        return self.sizes or KINDS_OF_JOBS[self.kind].sizes

    @property
    def block(self) -> BlockRanges | None:
        """Ranges of the blocks of a job, or None for kinds without blocks."""
        block = KINDS_OF_JOBS[self.kind].block
        return None if block is None else block._replace(ends=_ENDS[self.length_counts])

    @property
    def least(self) -> int:
        """Smallest size of a job: ten for each task it can have, or one for single-task jobs."""
        most = self.block.most_tasks if self.block else KINDS_OF_JOBS[self.kind].most_tasks
        return 10 * most if most > 1 else 1

    def generate(self, seed: int = 1) -> Workload:
        """Return the workload for a *seed*, in job order.

        Raises
        ------
        InputError
            If the total is too small for the number of jobs, or sizes within the limits cannot be found.
        """

        def streams(role: str) -> np.random.Generator:
            return stream(seed, "grid", self.kind, self.number, role)

        jobs = KINDS_OF_JOBS[self.kind].jobs if self.jobs is None else self.jobs
        shapes = self._shapes(jobs, streams("shapes"))
        tasks = self._tasks(shapes, self._job_sizes(jobs, streams("job sizes")), streams)
        work = _work(tasks)
        workload = Workload.from_tasks(
            tasks,
            submit=self._arrivals(work, streams("arrivals")),
            labels={"share": streams("shares").integers(0, self.shares, jobs)},
            names={"share": tuple(f"/share{place}" for place in range(1, self.shares + 1))},
            provenance={
                "source": "grid",
                "parameters": self._parameters(),
                "seed": seed,
                "tick": 1.0,
                "tasks": len(tasks),
                "edges": len(tasks.edge_to),
                "work": int(work.sum()),
            },
        )
        return replace(workload, cores_stated=self.cores)

    def at_load(self, workload: Workload, load: float, seed: int = 1) -> Workload:
        """Return the workload of the same *seed* at another *load*: the same jobs with other submit times.

        Examples
        --------
        >>> grid, other = Grid(kind="fan", jobs=9, load=0.8), Grid(kind="fan", jobs=9, load=1.2)
        >>> bool((grid.at_load(grid.generate(), 1.2).submit == other.generate().submit).all())
        True
        """
        other, tasks = replace(self, load=load), workload.tasks
        assert tasks is not None
        submit = other._arrivals(_work(tasks), stream(seed, "grid", self.kind, self.number, "arrivals"))
        parameters = {**workload.provenance, "parameters": other._parameters()}
        return replace(workload, submit=submit * MICROSECOND, provenance=parameters)

    def _parameters(self) -> dict[str, object]:
        """Return the parameters recorded in the workload; factors of weeks only if given."""
        return {name: value for name, value in asdict(self).items() if name != "weeks" or value}

    def _job_sizes(self, jobs: int, rng: np.random.Generator) -> IntArray:
        if self.sizes_drawn == "log":
            return uunifast(jobs, self.total, rng, least=self.least, most=self.largest)
        return (uniform if self.sizes_drawn == "uniform" else loguniform)(jobs, self.total, rng, least=self.least)

    def _shapes(self, jobs: int, rng: np.random.Generator) -> DagShapes:
        kind = KINDS_OF_JOBS[self.kind]
        if self.block is not None:
            return blocks(jobs, self.block, rng)
        if kind.most_tasks > 1:
            return erdos_renyi(jobs, kind.most_tasks, kind.edge_probability, rng)
        return single(jobs)

    def _tasks(self, shapes: DagShapes, sizes: IntArray, streams: Streams) -> Tasks:
        count = int(shapes.counts.sum())
        cores = streams("cores").choice(np.array(CORE_COUNTS), count)
        parts = simplexes(sizes, shapes.counts, streams("task sizes")) if count > len(sizes) else sizes
        ticks = parts if self.volume == "ticks" else _per_core(parts, cores, self.total)
        return Tasks(  # correct by construction; checking the edges of a campaign would take longer than drawing them
            first=np.concatenate([[0], np.cumsum(shapes.counts)]).astype(np.int64),
            runtime=ticks * MICROSECOND,
            estimate=ticks * MICROSECOND,
            cores=cores,
            kind=self._kinds(count, streams("kinds")),
            kinds=KINDS_OF_TASKS,
            edge_first=shapes.edge_first,
            edge_to=shapes.edge_to,
        )

    def _kinds(self, count: int, rng: np.random.Generator) -> npt.NDArray[np.int16]:
        if self.kinds == "independent":
            return (rng.random(count) < SECOND_KIND).astype(np.int16)
        return rng.permutation(np.arange(count) < round(SECOND_KIND * count)).astype(np.int16)

    def _arrivals(self, work: IntArray, rng: np.random.Generator) -> IntArray:
        if self.arrivals == "poisson":
            return poisson(work, self.cores, self.load, rng)
        if self.arrivals == "day-week":
            return day_week(work, self.cores, self.load, self.hour, tuple(map(float, self.weeks)))
        return proportional(work, self.cores, self.load)


def _factors(weeks: Sequence[float] | str) -> tuple[float, ...]:
    """Return the factors of the weeks of a year as numbers.

    Raises
    ------
    InputError
        Unless there is a number of at least 0 for each week, and one of them is above 0.
    """
    given = weeks.split("+") if isinstance(weeks, str) else weeks
    try:
        found = tuple(float(each) for each in given)
    except (TypeError, ValueError):
        found = (-1.0,)
    if found and (len(found) != WEEKS or not all(0 <= each < np.inf for each in found) or not any(found)):
        message = f"are {weeks!r}; expected {WEEKS} numbers from 0, one of them above 0"
        raise InputError(message, field="weeks")
    return found


def _work(tasks: Tasks) -> IntArray:
    """Return the core-ticks of each job."""
    return np.add.reduceat(tasks.runtime // MICROSECOND * tasks.cores, tasks.first[:-1])


def _per_core(parts: IntArray, cores: IntArray, total: int) -> IntArray:
    """Return ticks of tasks that have *parts* of the core-ticks; multiplied by their cores they add up to *total*.

    The rounding remainder goes to the largest fractions, and its last part to the longest task of one core.
    """
    exact = parts / cores
    ticks = np.maximum(np.floor(exact).astype(np.int64), 1)
    rest = total - int(ticks @ cores)
    order = np.argsort(ticks - exact, kind="stable")
    longer = order[np.cumsum(cores[order]) <= rest]
    ticks[longer] += 1
    rest -= int(cores[longer].sum())
    lone = np.flatnonzero(cores == 1)
    if len(lone):
        longest = lone[np.argmax(ticks[lone])]
        ticks[longest] = max(int(ticks[longest]) + rest, 1)
    return ticks
