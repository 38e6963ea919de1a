"""Checks for authors of policies: one function per kind, which raises `CheckFailed` with a description.

The argument is a class, an object, or a spec such as ``widest.py:WidestFirst?tie=0.5``.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.random import Generator

from gridsim import registry
from gridsim.errors import CheckFailed, GridsimError, PolicyError
from gridsim.model.capacity import NodeGroup
from gridsim.model.demand import Demand, Demands
from gridsim.model.platform import Platform
from gridsim.model.random_streams import stream
from gridsim.model.time import seconds
from gridsim.model.workload import Workload
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.copies import per_cluster_copy
from gridsim.policy.protocols import lanes_of
from gridsim.policy.queue import ClusterView, Queue, Requests
from gridsim.record import Record
from gridsim.testing.invariants import violations

CORES = 16
"""Size of the machine of the checks."""

WORKLOADS = 12
"""Number of random workloads for each policy."""

NODES = (
    NodeGroup(group="thin", count=2, capacity={"cores": 6, "memory": 12}),
    NodeGroup(group="fat", capacity={"cores": 4, "memory": 24}, gpus=2),
)
"""Machine with the same number of cores, for policies that support nodes."""

_LATER = (
    1.0,
    1000.0,
    *(3600.0 * hour for hour in range(1, 24)),
    *(86_400.0 * day for day in (1, 2, 3, 4, 5, 6, 30, 200)),
)
"""Seconds after which a static ordering is evaluated again: hours of a day, days of a week, seasons of a year."""

_CHANGES_IT = "changes the queue that it receives; change copies only"
_CHANGES = ("static", "linear", "pass", "start")
_SCHEDULER = ("setup", "ended", "overran", "settled", "quote", "commit", "dispatch")


def check_ordering(what: Any, *, seed: int = 0, workloads: int = WORKLOADS) -> None:
    """Check an ordering: its ranks, the absence of side effects, and its schedules.

    Parameters
    ----------
    what : type, object or str
        The ordering.
    seed : int
        Seed of the random queues and workloads.
    workloads : int
        Number of simulated workloads.

    Raises
    ------
    CheckFailed
        With a description of the failure.

    Examples
    --------
    >>> from gridsim.policy.ordering import Wfp3
    >>> check_ordering(Wfp3, workloads=2)
    """
    ordering = _object("ordering", what)
    _check_dataclass(ordering)
    changes = getattr(ordering, "changes", "pass")
    _require(changes in _CHANGES, ordering, f"changes is {changes!r}; expected one of {', '.join(_CHANGES)}")
    _require(
        hasattr(ordering, "rank") or hasattr(ordering, "pick"),
        ordering,
        "has neither rank(queue, now) nor pick(queue, now)",
    )
    rng = stream(seed, "testing", "ordering")
    for size in (1, 2, 5, 40):
        queue, now = _queue(rng, size)
        if hasattr(ordering, "rank"):
            _check_ranks(ordering, queue, now, seed)
        if hasattr(ordering, "pick"):
            _check_pick(ordering, queue, now, seed)
        if changes == "linear":
            _check_lines(ordering, queue)
    from gridsim.policy.reservation import Easy, Strict
    from gridsim.policy.scheduler.backfilling import Backfilling

    for rule in (Strict(), Easy()):
        _check_runs(Backfilling(ordering=ordering, reserve=rule), seed, workloads)


def check_reservation(what: Any, *, seed: int = 0, workloads: int = WORKLOADS) -> None:
    """Check a reservation rule: its lanes and its schedules; parameters as in `check_ordering`."""
    rule = _object("reservation", what)
    _check_dataclass(rule)
    _require(isinstance(getattr(rule, "blocking", None), bool), rule, "needs an attribute blocking, True or False")
    rng = stream(seed, "testing", "reservation")
    for size in (1, 5, 40):
        queue, _ = _queue(rng, size)
        _unchanged(rule, queue, lambda queue=queue: rule.lanes(queue))
        try:
            lanes_of(rule, queue)
        except PolicyError as error:
            raise CheckFailed(f"{type(rule).__name__}: {error}") from error
    from gridsim.policy.ordering import Fifo, ShortestEstimate
    from gridsim.policy.partition import Rigid
    from gridsim.policy.scheduler.backfilling import Backfilling
    from gridsim.policy.scheduler.moldable_scheduler import MoldableBackfilling

    keeps = getattr(rule, "holders", "fresh") == "acquired"
    for ordering in (Fifo(), ShortestEstimate()):
        scheduler = MoldableBackfilling(ordering, rule, Rigid()) if keeps else Backfilling(ordering, rule)
        _check_runs(scheduler, seed, workloads)


def check_scheduler(what: Any, *, seed: int = 0, workloads: int = WORKLOADS) -> None:
    """Check the schedules of a scheduler, and that quotes have no side effects.

    Repeated quotes must be equal, and the schedule must not depend on the number of quotes. Schedulers that support
    nodes are also checked on a small machine of nodes. Parameters as in `check_ordering`.
    """
    from gridsim.policy.presets import policy

    scheduler = policy(what() if isinstance(what, type) else what)
    _check_dataclass(scheduler)
    missing = [name for name in _SCHEDULER if not callable(getattr(scheduler, name, None))]
    _require(not missing, scheduler, f"has no {', '.join(missing)}")
    _check_runs(scheduler, seed, workloads)
    _check_quotes(scheduler, seed, workloads)


def small_workload(rng: Generator, *, jobs: int = 25, cores: int = CORES, exact: bool = False) -> Workload:
    """Return a random workload with many corner cases.

    These are ties in submit times and estimates, whole-machine and one-core jobs, jobs that are not delayed, estimates
    far above and (unless *exact*) below run times, and deadlines for some jobs.
    """
    submit = np.cumsum(rng.choice([0, 0, 1, 5, 30], jobs))
    runtime = rng.choice([1, 2, 5, 10, 40], jobs)
    factor = np.ones(jobs) if exact else rng.choice([0.5, 1, 1, 2, 8], jobs)
    width = np.minimum(rng.choice([1, 1, 2, 3, cores // 2, cores], jobs), cores)
    estimate = np.maximum(1, runtime * factor)
    deadline = np.where(rng.random(jobs) < 0.5, submit + 3 * estimate, np.nan)
    users = rng.integers(1, 5, jobs)
    workload = Workload.from_columns(
        submit=submit,
        runtime=runtime,
        cores=width,
        estimate=estimate,
        deadline=deadline,
        labels={"user": users, "share": users - 1},
    )
    return dataclasses.replace(workload, names={"share": ("/a/one", "/a/two", "/b", "/c")})


# -- parts -----------------------------------------------------------------------------------------------------------


def _require(condition: bool, policy: Any, message: str) -> None:
    if not condition:
        raise CheckFailed(f"{type(policy).__name__}: {message}")


def _object(kind: str, what: Any) -> Any:
    if isinstance(what, type):
        try:
            return what()
        except TypeError as error:
            raise CheckFailed(f"{what.__name__}: cannot be created without parameters: {error}") from error
    return registry.make(kind, what)


def _check_dataclass(policy: Any) -> None:
    """Check that fields are parameters, ``repr`` is provenance, and equality is the campaign key."""
    _require(dataclasses.is_dataclass(policy), policy, "is not a dataclass; decorate the class with @dataclass")
    _require(per_cluster_copy(policy) == policy, policy, "is not equal to its copy; create the state of a run in setup")
    names = dict(_classes(policy))
    try:
        again = eval(repr(policy), {"__builtins__": {}}, names)  # the stored text must create the same policy
    except Exception as error:
        raise CheckFailed(f"{type(policy).__name__}: repr {policy!r} does not define a policy: {error}") from error
    _require(again == policy, policy, f"repr {policy!r} defines a different policy: {again!r}")


def _classes(policy: Any) -> Iterator[tuple[str, type]]:
    yield type(policy).__name__, type(policy)
    for field in dataclasses.fields(policy):
        value = getattr(policy, field.name, None)
        if dataclasses.is_dataclass(value):
            yield from _classes(value)


def _queue(rng: Generator, size: int) -> tuple[Queue, float]:
    """Return some waiting requests of a random workload, and an instant after their arrivals."""
    workload = small_workload(rng, jobs=3 * size)
    rows = np.sort(rng.choice(3 * size, size, replace=False))
    requests, free = Requests(workload), int(rng.integers(CORES + 1))
    others = Queue(requests, np.setdiff1d(np.arange(3 * size), rows)[: CORES - free])
    state = {"free": free, "total": CORES, "totals": {"cores": CORES}, "running": others}
    return Queue(requests, rows, state), seconds(int(workload.submit[-1])) + 1.0


def _unchanged(policy: Any, queue: Queue, call: Any) -> Any:
    """Return the result of *call*, after a check that it did not change the queue."""
    requests = queue.requests

    def columns() -> list[Any]:
        names = ("cores", "estimate", "submit", "deadline", "cores_float", "estimate_seconds", "submit_seconds")
        return [queue.rows, *(getattr(requests, name) for name in names)]

    before = [column.copy() for column in columns()]
    try:
        answer = call()
    except GridsimError:
        raise
    except Exception as error:
        _require("read-only" not in str(error), policy, _CHANGES_IT)
        raise CheckFailed(f"{type(policy).__name__}: raises {type(error).__name__}: {error}") from error
    same = all(np.array_equal(one, other) for one, other in zip(before, columns(), strict=True))
    _require(same, policy, _CHANGES_IT)
    return answer


def _set_up(ordering: Any, queue: Queue, seed: int) -> Any:
    ordering = per_cluster_copy(ordering)
    if hasattr(ordering, "setup"):
        ordering.setup(stream(seed, "cluster", 0))
    if hasattr(ordering, "keep"):
        ordering.keep(ClusterView(CORES, queue.requests))
    return ordering


def _ranks(ordering: Any, queue: Queue, now: float, seed: int) -> Any:
    fresh = _set_up(ordering, queue, seed)
    answer = _unchanged(ordering, queue, lambda: fresh.rank(queue, now))
    ranks = np.asarray(answer)
    _require(ranks.dtype.kind in "fiub", ordering, f"ranks are {ranks.dtype}; expected numbers")
    _require(
        ranks.shape == (len(queue),), ordering, f"ranks {len(queue)} requests with shape {ranks.shape}; one number each"
    )
    ranks = ranks.astype(np.float64)
    _require(
        not np.isnan(ranks).any(), ordering, f"ranks request {int(np.isnan(ranks).argmax())} of the queue with NaN"
    )
    return ranks


def _check_ranks(ordering: Any, queue: Queue, now: float, seed: int) -> None:
    ranks = _ranks(ordering, queue, now, seed)
    again = _ranks(ordering, queue, now, seed)
    _require(np.array_equal(ranks, again), ordering, "ranks the same queue differently in a second call")
    if getattr(ordering, "changes", "pass") != "static":
        return
    for instant in (0.0, *(now + later for later in _LATER)):
        _require(
            np.array_equal(ranks, _ranks(ordering, queue, instant, seed)),
            ordering,
            f'has changes = "static", but its ranks at {instant} s are not those at {now} s; use changes = "pass"',
        )
    half = Queue(queue.requests, queue.rows[::2].copy(), queue.state)
    other = _ranks(ordering, half, now, seed)
    same = np.array_equal(np.argsort(other, kind="stable"), np.argsort(ranks[::2], kind="stable"))
    _require(
        same,
        ordering,
        'has changes = "static", but its order depends on the other waiting requests; use changes = "pass"',
    )


def _check_pick(ordering: Any, queue: Queue, now: float, seed: int) -> None:
    fresh = _set_up(ordering, queue, seed)
    if hasattr(fresh, "reset"):
        fresh.reset()
    index = _unchanged(ordering, queue, lambda: fresh.pick(queue, now))
    inside = isinstance(index, int | np.integer) and 0 <= int(index) < len(queue)
    _require(inside, ordering, f"picks {index!r} of {len(queue)} requests")


def _check_lines(ordering: Any, queue: Queue) -> None:
    """Check the integers (a, b) of each request, b from 1: at an instant t the largest (t + a) / b comes first."""
    _require(hasattr(ordering, "lines"), ordering, 'has changes = "linear", but no lines(queue, tick)')
    ahead, slope = (np.asarray(part) for part in _unchanged(ordering, queue, lambda: ordering.lines(queue, 1_000_000)))
    for part in (ahead, slope):
        right = part.dtype.kind in "iu" and part.shape == (len(queue),)
        _require(right, ordering, f"lines of {len(queue)} requests are {part.dtype} of shape {part.shape}")
    _require(
        bool((slope >= 1).all()), ordering, f"has a line of slope 1 / {slope.min()}; expected whole numbers from 1"
    )


def _check_runs(scheduler: Any, seed: int, workloads: int) -> None:
    """Check schedules of random workloads: possible, complete, and identical for a second run with the same object."""
    rng = stream(seed, "testing", "workloads")
    for number in range(workloads):
        workload = small_workload(rng, exact=number % 3 == 0)
        _check_schedules(scheduler, workload, Platform.single(CORES), seed)
        if capabilities_of(scheduler).vectors:
            _check_schedules(scheduler, _asking_nodes(rng, workload), Platform.of_nodes(NODES), seed)


def _check_schedules(scheduler: Any, workload: Workload, platform: Platform, seed: int) -> None:
    for overrun in ("kill", "extend"):
        record = _run(scheduler, workload, overrun, seed, platform)
        found = violations(record, overrun=overrun, platform=platform)
        if found:
            raise CheckFailed(f"{scheduler!r}: {'; '.join(map(str, found))}")
        again = _run(scheduler, workload, overrun, seed, platform)
        _require(
            np.array_equal(record.start_us, again.start_us),
            scheduler,
            "produces another schedule in a second run: it keeps state between runs, or uses other random numbers",
        )


class Wrapper:
    """Wrapper of a scheduler; its copies share *state*."""

    def __init__(self, scheduler: Any, **state: Any) -> None:
        self._scheduler, self._state = scheduler, state
        vars(self).update(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(copy.deepcopy(self._scheduler, memo), **self._state)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)

    def __repr__(self) -> str:
        return repr(self._scheduler)


class _RepeatedQuotes(Wrapper):
    """Scheduler that computes each quote three times."""

    def quote(self, request: int, now: int) -> Any:
        quotes = [self._scheduler.quote(request, now) for _ in range(3)]
        answers = {_answer(quote) for quote in quotes}
        _require(len(answers) == 1, self._scheduler, f"returns different quotes for one request: {sorted(answers)}")
        return quotes[-1]


def _answer(quote: Any) -> str:
    """Return the content of a quote."""
    if quote is None:
        return "no"
    offer = quote.offer
    return f"{quote.cores} cores" + (
        "" if offer is None else f" at {offer.start} by {offer.granted}, kills {offer.kills}"
    )


def _check_quotes(scheduler: Any, seed: int, workloads: int) -> None:
    """Check that repeated quotes are equal and have no side effects."""
    rng = stream(seed, "testing", "quotes")
    for _ in range(workloads):
        workload = small_workload(rng)
        _check_repeated_quotes(scheduler, workload, Platform.single(CORES), seed)
        if capabilities_of(scheduler).vectors:
            _check_repeated_quotes(scheduler, _asking_nodes(rng, workload), Platform.of_nodes(NODES), seed)


def _check_repeated_quotes(scheduler: Any, workload: Workload, platform: Platform, seed: int) -> None:
    once = _run(scheduler, workload, "extend", seed, platform)
    often = _run(_RepeatedQuotes(scheduler), workload, "extend", seed, platform)
    _require(
        np.array_equal(once.start_us, often.start_us) and np.array_equal(once.status, often.status),
        scheduler,
        "produces another schedule if quote is called more than once: only commit may change the state",
    )


def _asking_nodes(rng: Generator, workload: Workload) -> Workload:
    """Return the jobs as tasks of one core with memory, some with half a GPU, some without placement limits."""
    kind, memory = rng.integers(4, size=len(workload)).tolist(), rng.integers(4, size=len(workload)).tolist()
    demands = [
        Demand(cores=cores)
        if kind == 0
        else Demand(tasks=cores, each={"cores": 1, "memory": each}, gpu=500 if kind == 1 and cores < 3 else 0)
        for cores, kind, each in zip(workload.cores.tolist(), kind, memory, strict=True)
    ]
    return dataclasses.replace(workload, demands=Demands.of(demands))


def _run(scheduler: Any, workload: Workload, overrun: Any, seed: int, platform: Platform | None = None) -> Record:
    from gridsim.simulation import simulate  # SimPy and kernels: only if something runs

    platform = platform or Platform.single(CORES)
    try:
        return simulate(workload, platform=platform, policy=scheduler, overrun=overrun, seed=seed).record
    except GridsimError:
        raise
    except Exception as error:
        raise CheckFailed(f"{scheduler!r}: raises {type(error).__name__}: {error}") from error
