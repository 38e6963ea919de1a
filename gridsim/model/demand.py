"""Demands of jobs beyond a number of cores: tasks with several resources, GPUs, nodes, pools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.capacity import GPU, WHOLE_GPU
from gridsim.model.time import IntArray
from gridsim.tables import with_rows

NO_LIMIT = 0
"""Value of the limits on nodes and on tasks per node: the number of tasks of the job."""

ANY: tuple[str, ...] = ()
"""No requirement: any GPU type, any partition, nodes with any features."""


@dataclass(frozen=True, kw_only=True)
class Demand:
    """Demand of one job.

    Parameters
    ----------
    cores : int
        Plain cores: cores of a machine without nodes, or one-core tasks on nodes. Excludes *tasks*.
    tasks : int
        Number of tasks, which start and end together; each task is on one node.
    each : mapping of str to int
        Amounts of node resources per task: ``cores``; ``memory`` in MiB; others in their units.
    gpu : int
        Thousandths of GPU per task: 1 to 999 of one GPU, or whole GPUs: 1000, 2000 …
    gpu_kinds : tuple of str
        Accepted GPU types; empty for any.
    min_nodes, max_nodes : int
        Minimum and maximum number of different nodes; `NO_LIMIT` for the number of tasks.
    tasks_per_node : int
        Largest number of tasks on one node; `NO_LIMIT` for all.
    exclusive : bool
        Whether the nodes are exclusive to the job.
    features : tuple of str
        Features that a node must have; all are required.
    partitions : tuple of str
        Partitions, one of which a node must belong to; empty for any.
    pools : mapping of str to int
        Amounts of pools, for the job as a whole.

    Raises
    ------
    InputError
        For negative amounts, fractions of several GPUs, contradictory limits, and an empty demand.

    Examples
    --------
    >>> Demand(tasks=2, each={"cores": 4, "memory": 8192}, gpu=1000).total("cores")
    8
    >>> Demand(tasks=1, each={"cores": 1}, gpu=1500)
    Traceback (most recent call last):
        ...
    gridsim.errors.InputError: field 'gpu': has 1500 thousandths of GPU; expected less than 1000, or 1000, 2000 …
    """

    cores: int = 0
    tasks: int = 0
    each: Mapping[str, int] = field(default_factory=dict)
    gpu: int = 0
    gpu_kinds: tuple[str, ...] = ANY
    min_nodes: int = 1
    max_nodes: int = NO_LIMIT
    tasks_per_node: int = NO_LIMIT
    exclusive: bool = False
    features: tuple[str, ...] = ANY
    partitions: tuple[str, ...] = ANY
    pools: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("gpu_kinds", "features", "partitions"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        Demands.of([self]).check()

    def total(self, resource: str) -> int:
        """Return the total demand for a resource over tasks and pools; thousandths for ``gpu``.

        Parameters
        ----------
        resource : str
            Name of a resource or pool, or ``gpu``.

        Returns
        -------
        int
            Units of the resource.
        """
        return int(Demands.of([self]).total(resource)[0])


@dataclass(frozen=True, slots=True, eq=False)
class WordSets:
    """A set of words for each job: *of* is the index in *sets*, whose first set is empty.

    Attributes
    ----------
    of : (n,) int64
        Index of the set of each job.
    sets : tuple of tuple of str
        Distinct sets; number 0 is empty.
    """

    of: IntArray
    sets: tuple[tuple[str, ...], ...]

    @classmethod
    def made(cls, given: Iterable[Sequence[str]]) -> Self:
        """Return sets of words, one per job; the order of the words is ignored."""
        places: dict[tuple[str, ...], int] = {ANY: 0}
        texts = list(map(tuple, given))
        written = dict.fromkeys(texts)  # usually few distinct ones
        place = {words: places.setdefault(tuple(sorted(set(words))), len(places)) for words in written}
        return cls(np.array([place[words] for words in texts], dtype=np.int64), tuple(places))

    @classmethod
    def none(cls, jobs: int) -> Self:
        """Return empty sets for *jobs* jobs."""
        return cls(np.zeros(jobs, dtype=np.int64), (ANY,))

    def __len__(self) -> int:
        return len(self.of)

    def __getitem__(self, row: int) -> tuple[str, ...]:
        """Return the words of a row."""
        return self.sets[int(self.of[row])]

    def select(self, rows: Any) -> WordSets:
        """Return the sets of some jobs (mask, slice or indices)."""
        return WordSets(self.of[rows], self.sets)

    def joined(self, other: WordSets) -> WordSets:
        """Return these sets followed by the others."""
        places = {words: place for place, words in enumerate(self.sets)}
        of = np.array([places.setdefault(words, len(places)) for words in other.sets], dtype=np.int64)
        return WordSets(np.concatenate((self.of, of[other.of])), tuple(places))


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """Demands as columns with one entry per job, or per task for DAG jobs.

    Attributes
    ----------
    plain : (n,) int64
        Plain cores of jobs without tasks.
    tasks : (n,) int64
        Number of tasks; 0 for jobs of plain cores, or of pools only.
    each : mapping of str to (n,) int64
        Amounts of node resources per task.
    gpu : (n,) int64
        Thousandths of GPU per task.
    gpu_kinds, features, partitions : WordSets
        Words that nodes must match.
    min_nodes, max_nodes, tasks_per_node : (n,) int64
        Limits; `NO_LIMIT` for none.
    exclusive : (n,) bool
        Whether nodes are exclusive to the job.
    pools : mapping of str to (n,) int64
        Amounts of pools.
    """

    plain: IntArray
    tasks: IntArray
    each: Mapping[str, IntArray]
    gpu: IntArray
    gpu_kinds: WordSets
    features: WordSets
    partitions: WordSets
    min_nodes: IntArray
    max_nodes: IntArray
    tasks_per_node: IntArray
    exclusive: npt.NDArray[np.bool_]
    pools: Mapping[str, IntArray]

    @classmethod
    def of(cls, demands: Sequence[Demand]) -> Demands:
        """Return the columns for a sequence of demands.

        Parameters
        ----------
        demands : sequence of Demand
            One demand per job.

        Returns
        -------
        Demands
            Columns in the same order.
        """

        def column(name: str) -> IntArray:
            return np.array([getattr(it, name) for it in demands], dtype=np.int64)

        def amounts(name: str) -> dict[str, IntArray]:
            names = sorted({each for it in demands for each in getattr(it, name)})
            return {
                each: np.array([getattr(it, name).get(each, 0) for it in demands], dtype=np.int64) for each in names
            }

        words = {
            name: WordSets.made(getattr(it, name) for it in demands) for name in ("gpu_kinds", "features", "partitions")
        }
        return cls(
            plain=column("cores"),
            tasks=column("tasks"),
            each=amounts("each"),
            gpu=column("gpu"),
            **words,
            min_nodes=column("min_nodes"),
            max_nodes=column("max_nodes"),
            tasks_per_node=column("tasks_per_node"),
            exclusive=np.array([it.exclusive for it in demands], dtype=np.bool_),
            pools=amounts("pools"),
        )

    @classmethod
    def plain_cores(cls, cores: IntArray) -> Demands:
        """Return the demands of jobs that request only plain cores.

        Parameters
        ----------
        cores : (n,) int64
            Number of cores per job.

        Returns
        -------
        Demands
            One entry per job.
        """
        n = len(cores)
        none, one = np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)
        words = WordSets(none, (ANY,))
        return cls(cores, none, {}, none, words, words, words, one, none, none, np.zeros(n, dtype=np.bool_), {})

    def __len__(self) -> int:
        return len(self.tasks)

    def __repr__(self) -> str:
        names = [*sorted({*self.each, *self.pools}), *([GPU] if self.gpu.any() else [])]
        return f"<Demands: {len(self):,} jobs, {', '.join(names) or 'plain cores'}>"

    def __getitem__(self, row: int) -> Demand:
        """Return the demand of one job."""
        return Demand(
            cores=int(self.plain[row]),
            tasks=int(self.tasks[row]),
            each={name: int(column[row]) for name, column in self.each.items() if column[row]},
            gpu=int(self.gpu[row]),
            gpu_kinds=self.gpu_kinds[row],
            min_nodes=int(self.min_nodes[row]),
            max_nodes=int(self.max_nodes[row]),
            tasks_per_node=int(self.tasks_per_node[row]),
            exclusive=bool(self.exclusive[row]),
            features=self.features[row],
            partitions=self.partitions[row],
            pools={name: int(column[row]) for name, column in self.pools.items() if column[row]},
        )

    def select(self, rows: Any) -> Demands:
        """Return the demands of some jobs.

        Parameters
        ----------
        rows : mask, slice or (k,) indices
            Selected rows.

        Returns
        -------
        Demands
            Demands in that order.
        """
        return with_rows(self, rows, *(it.name for it in fields(self)))

    def joined(self, other: Demands) -> Demands:
        """Return these demands followed by others.

        Parameters
        ----------
        other : Demands
            Demands of jobs that follow in row order.

        Returns
        -------
        Demands
            Demands of both.

        Examples
        --------
        >>> jobs = Demands.of([Demand(tasks=1, each={"memory": 5})]).joined(Demands.plain_cores(np.array([3])))
        >>> jobs.cores.tolist(), jobs.total("memory").tolist()
        ([0, 3], [5, 0])
        """
        values: dict[str, Any] = {}
        for name in (it.name for it in fields(self)):
            one: Any = getattr(self, name)
            more: Any = getattr(other, name)
            if isinstance(one, Mapping):
                here, there = (np.zeros(len(it), dtype=np.int64) for it in (self, other))
                names = dict.fromkeys((*one, *more))
                values[name] = {it: np.concatenate((one.get(it, here), more.get(it, there))) for it in names}
            else:
                values[name] = one.joined(more) if isinstance(one, WordSets) else np.concatenate((one, more))
        return Demands(**values)

    @property
    def cores(self) -> IntArray:
        """Total cores of each job: plain ones, those of its tasks and of the pool ``cores``; (n,)."""
        return self.total("cores")

    def total(self, resource: str) -> IntArray:
        """Return the total demand of each job for a resource; thousandths for ``gpu``.

        Parameters
        ----------
        resource : str
            Name of a resource or pool, or ``gpu``.

        Returns
        -------
        (n,) int64
            Totals in the units of the resource.
        """
        if resource == GPU:
            return self.tasks * self.gpu
        none = np.zeros(len(self), dtype=np.int64)
        found: IntArray = self.tasks * self.each.get(resource, none) + self.pools.get(resource, none)
        return found + self.plain if resource == "cores" else found

    def check(self, job: IntArray | None = None) -> None:
        """Raise `InputError` for the first invalid demand (2.4 of the specification: R4, R19).

        Parameters
        ----------
        job : (n,) int64, optional
            Job numbers, for the error.

        Raises
        ------
        InputError
            With the job, the field, the value and the allowed range.
        """
        for name, amounts in (("each", self.each), ("pools", self.pools)):
            for resource, column in amounts.items():
                if resource == GPU:
                    raise InputError("lists GPUs, which have a separate field: gpu", field=f"{name}.{resource}")
                self._refuse(f"{name}.{resource}", column < 0, column, "an amount from 0", job)
        counts = {it: getattr(self, it) for it in ("tasks", "gpu", "max_nodes", "tasks_per_node")} | {
            "cores": self.plain
        }
        for name, column in counts.items():
            self._refuse(name, column < 0, column, "a number from 0", job)
        self._refuse("min_nodes", self.min_nodes < 1, self.min_nodes, "a number from 1", job)
        parts = (self.gpu > WHOLE_GPU) & (self.gpu % WHOLE_GPU != 0)
        whole = "less than 1000, or 1000, 2000 …"
        self._refuse("gpu", parts, self.gpu, whole, job, unit="thousandths of GPU")
        both = (self.plain > 0) & (self.tasks > 0)
        self._refuse("tasks", both, self.tasks, "only plain cores", job, unit="tasks")
        for name, asked in (("gpu", self.gpu > 0), *((f"each.{it}", each > 0) for it, each in self.each.items())):
            alone = (self.tasks == 0) & asked
            self._refuse("tasks", alone, self.tasks, f"at least 1, because of {name} per task", job, unit="tasks")
        empty = (self.tasks > 0) & (self.gpu == 0) & ~_any(self.each, len(self))
        self._refuse("each", empty, self.tasks, "tasks with a request", job, unit="tasks without a request")
        nothing = (self.plain == 0) & (self.tasks == 0) & ~_any(self.pools, len(self))
        self._refuse("cores", nothing, self.plain, "a job with a request", job, unit="cores and nothing else")
        tasks = np.where(self.tasks > 0, self.tasks, self.plain)
        least = np.where(self.max_nodes == NO_LIMIT, tasks, np.minimum(self.max_nodes, tasks))
        contradict = (self.min_nodes > least) & (tasks > 0)
        most = "no more than the most nodes and the number of tasks"
        self._refuse("min_nodes", contradict, self.min_nodes, most, job, unit="least nodes")

    def _refuse(
        self,
        field_name: str,
        bad: npt.NDArray[np.bool_],
        values: IntArray,
        rule: str,
        job: IntArray | None,
        unit: str = "",
    ) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            who = "" if job is None else f"job {job[row]} "
            raise InputError(f"{who}has {values[row]}{' ' * bool(unit)}{unit}; expected {rule}", field=field_name)


def _any(amounts: Mapping[str, IntArray], n: int) -> npt.NDArray[np.bool_]:
    """Return whether jobs request any of these amounts."""
    asked = np.zeros(n, dtype=np.bool_)
    for column in amounts.values():
        asked |= column > 0
    return asked


_EACH, _POOL = "each_", "pool_"
_WORDS = ("gpu_kinds", "features", "partitions")
_COUNTS = {"gpu": 0, "min_nodes": 1, "max_nodes": NO_LIMIT, "tasks_per_node": NO_LIMIT, "exclusive": 0}
"""Columns that a table contains if any job has a value other than this default."""


def columns_of(demands: Demands) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of a table, one row per job, that any job uses; words are separated by ``|``.

    Examples
    --------
    >>> asked = Demands.of([Demand(tasks=2, each={"cores": 4}, features=("fast", "big")), Demand(cores=3)])
    >>> {name: column.tolist() for name, column in columns_of(asked).items()}
    {'tasks': [2, 0], 'each_cores': [4, 0], 'features': ['big|fast', '']}
    """
    columns: dict[str, npt.NDArray[Any]] = {"tasks": demands.tasks}
    columns |= {f"{_EACH}{name}": column for name, column in demands.each.items()}
    for name, usual in _COUNTS.items():
        column = np.asarray(getattr(demands, name)).astype(np.int64)
        if (column != usual).any():
            columns[name] = column
    for name in _WORDS:
        words = getattr(demands, name)
        if words.of.any():
            columns[name] = np.array(["|".join(each) for each in words.sets])[words.of]
    return columns | {f"{_POOL}{name}": column for name, column in demands.pools.items()}


def demands_of(columns: Mapping[str, Sequence[str]], cores: Sequence[int]) -> Demands | None:
    """Return demands from the texts of such columns; None without a column ``tasks``.

    Parameters
    ----------
    cores : sequence of int
        Total cores of each job; without tasks, cores that are in no pool are plain ones.

    Raises
    ------
    InputError
        For an invalid demand, with the column.
    """
    if "tasks" not in columns:
        return None
    each = {name.removeprefix(_EACH): _numbers(columns, name) for name in columns if name.startswith(_EACH)}
    pools = {name.removeprefix(_POOL): _numbers(columns, name) for name in columns if name.startswith(_POOL)}
    tasks = _numbers(columns, "tasks")
    counts = {name: _numbers(columns, name) for name in _COUNTS if name in columns}
    words = {name: [_split_bars(text) for text in columns[name]] for name in _WORDS if name in columns}
    found = []
    for row, count in enumerate(tasks):
        of_pools = {name: column[row] for name, column in pools.items() if column[row]}
        given: dict[str, Any] = {name: column[row] for name, column in counts.items()}
        given |= {name: column[row] for name, column in words.items()}
        given["exclusive"] = bool(given.get("exclusive", 0))
        plain = 0 if count else cores[row] - of_pools.get("cores", 0)
        asked = {name: column[row] for name, column in each.items() if column[row]}
        found.append(Demand(cores=plain, tasks=count, each=asked, pools=of_pools, **given))
    return Demands.of(found)


def _numbers(columns: Mapping[str, Sequence[str]], name: str) -> list[int]:
    try:
        return [int(text or 0) for text in columns[name]]
    except ValueError as error:
        raise InputError(f"has a value that is not a whole number ({error})", field=name) from error


def _split_bars(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split("|")))


POPULARITY = 0.95
"""Smallest share of all tasks that the typical ones include (Weng et al., USENIX ATC 2023)."""


class TypicalTasks(NamedTuple):
    """Most frequent tasks of a workload, in order of decreasing number.

    Attributes
    ----------
    resources : tuple of str
        Names of the columns of *each*.
    each : (m, r) int64
        Amounts of node resources.
    gpu : (m,) int64
        Thousandths of GPU.
    gpu_kinds : tuple of tuple of str
        Accepted GPU types; empty for any.
    counts : (m,) int64
        Number of tasks of each kind.
    """

    resources: tuple[str, ...]
    each: IntArray
    gpu: IntArray
    gpu_kinds: tuple[tuple[str, ...], ...]
    counts: IntArray


def typical_tasks(
    demands: Demands, resources: Sequence[str] | None = None, popularity: float = POPULARITY
) -> TypicalTasks:
    """Return the smallest set of distinct tasks that makes up a given share of all tasks of jobs on nodes.

    Parameters
    ----------
    demands : Demands
        Demands of all jobs; plain cores are tasks of one core.
    resources : sequence of str, optional
        Resources that distinguish tasks; by default all but ``memory``.
    popularity : float
        The share.

    Returns
    -------
    TypicalTasks
        Sorted by decreasing number of tasks; ties by the larger amounts, in alphabetical order of their names, then
        GPUs.

    Examples
    --------
    >>> from gridsim.model.demand import Demand
    >>> jobs = [Demand(tasks=1, each={"cores": 4}, gpu=500), Demand(cores=3)]
    >>> found = typical_tasks(Demands.of(jobs))
    >>> found.each.tolist(), found.gpu.tolist(), found.counts.tolist()
    ([[1], [4]], [0, 500], [3, 1])
    """
    kept = {*demands.each, *(("cores",) if (demands.plain > 0).any() else ())}
    names = tuple(sorted(kept - {"memory"} if resources is None else set(resources)))
    none = np.zeros(len(demands), dtype=np.int64)
    plain = demands.plain > 0
    tasks = np.where(plain, demands.plain, demands.tasks)
    amounts = [np.where(plain & (name == "cores"), 1, demands.each.get(name, none)) for name in names]
    kinds = np.where(demands.gpu > 0, demands.gpu_kinds.of, demands.gpu_kinds.sets.index(ANY))
    columns = np.stack([*amounts, np.minimum(demands.gpu, WHOLE_GPU), demands.gpu, kinds, tasks], axis=1)[tasks > 0]
    shapes, same = np.unique(columns[:, :-1], axis=0, return_inverse=True)
    count = np.zeros(len(shapes), dtype=np.int64)
    np.add.at(count, same.reshape(-1), columns[:, -1])
    words = [demands.gpu_kinds.sets[place] for place in shapes[:, -1].tolist()]
    order = sorted(
        range(len(shapes)), key=lambda row: (count[row], shapes[row, :-1].tolist(), words[row]), reverse=True
    )
    part = Fraction(str(popularity))
    enough = np.cumsum(count[order]) * part.denominator >= count.sum() * part.numerator
    chosen = order[: int(np.argmax(enough)) + 1] if len(order) else []
    return TypicalTasks(
        names, shapes[chosen, : len(names)], shapes[chosen, -2], tuple(words[row] for row in chosen), count[chosen]
    )
