"""Execution of a campaign: workers run the missing units of a store, and results are stored immediately.

Workers receive scenarios and read the inputs; only the driver writes. The driver holds a few units at a time,
regardless of their total number. A unit that raises an error is recorded as failed and the others continue. A unit
whose worker dies is repeated alone.

Workers receive units in batches of one workload, so that it is read once. A worker returns its finished units after
`_ENOUGH` seconds, so that little work is lost if it is killed.
"""

from __future__ import annotations

import itertools
import math
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from gridsim.campaign.comparisons import Comparisons
from gridsim.campaign.executors import Pool, pool_of
from gridsim.campaign.store import Failure, Shard, Store
from gridsim.errors import InputError
from gridsim.number_formatting import counted
from gridsim.result import versions
from gridsim.workers import check_count

_ENOUGH = 5.0
"""Seconds after which a worker returns its finished units; the remaining ones are submitted again."""

_LOOK = 5.0
"""Seconds between two checks of the workers."""

_SHOWN = 3
"""Number of damaged results listed in a warning."""

_DEATHS = 2
"""Number of deaths of workers running a unit alone, after which the unit counts as failed."""


class Unit(Protocol):
    """Smallest unit of execution and storage."""

    @property
    def file(self) -> str:
        """Name of its result; slashes separate folders."""
        ...

    def __str__(self) -> str:
        """Return a text for messages."""
        ...


class Made(NamedTuple):
    """Result of a unit.

    Attributes
    ----------
    content : bytes
        Content of the result file, which depends only on scenario and inputs.
    attached : mapping of str to bytes
        Additional files by name in the store, such as records.
    schedules, jobs : int
        Number of simulated schedules and jobs.
    """

    content: bytes
    attached: Mapping[str, bytes] = {}
    schedules: int = 1
    jobs: int = 0


class Campaign(Protocol):
    """Set of units, identified by file names; it is sent to workers, so it contains scenarios instead of data."""

    may_change: ClassVar[Sequence[str]]
    """Entries of `identity` that do not affect results."""

    def identity(self, data: Path | None) -> Mapping[str, Any]:
        """Return the identity of the results."""
        ...

    def groups(self) -> Iterable[Sequence[Any]]:
        """Yield groups of units that share inputs; may be called repeatedly."""
        ...

    def made(self, unit: Any, data: Path | None) -> Made:
        """Run one unit; *data* is the folder of the archive's logs."""
        ...


class Finished(NamedTuple):
    """Finished unit: total CPU seconds, number of schedules and jobs, and the failure, if any."""

    unit: Any
    cpu: float
    schedules: int
    jobs: int
    failure: Failure | None = None


class Progress(NamedTuple):
    """Progress of a campaign or a part of it: finished, failed and remaining units."""

    finished: int
    failed: int
    left: int

    @property
    def total(self) -> int:
        """Total number of units."""
        return self.finished + self.failed + self.left


@dataclass(slots=True)
class Summary:
    """Summary of one call of `run_campaign`: units, schedules, CPU seconds of the workers, new failures.

    Attributes
    ----------
    at : Progress
        Progress of the campaign, or of the part of it.
    comparisons : Comparisons or None
        Comparison of the finished runs, if the scenario file requests one (`gridsim.sweep`).
    """

    units: int = 0
    schedules: int = 0
    jobs: int = 0
    cpu: float = 0.0
    failed: int = 0
    at: Progress = field(default_factory=lambda: Progress(0, 0, 0))
    comparisons: Comparisons | None = None

    def add(self, done: Finished) -> None:
        """Add a unit."""
        self.cpu += done.cpu
        if done.failure is not None:
            self.failed += 1
            return
        self.units += 1
        self.schedules += done.schedules
        self.jobs += done.jobs


def run_campaign(
    campaign: Campaign,
    folder: str | Path,
    *,
    data: str | Path | None = None,
    workers: int = 1,
    executor: Executor | str | None = None,
    shard: Shard | None = None,
    retry_failed: bool = False,
    listener: Callable[[Finished, Progress], None] | None = None,
) -> Summary:
    """Run all missing units of a campaign and store their results.

    Parameters
    ----------
    folder : path
        Folder of the store (`gridsim.campaign.store`).
    data : path, optional
        Folder of the archive's logs.
    workers : int
        Number of processes; 1 uses only this process.
    executor : Executor or str, optional
        Executor to use instead: any `concurrent.futures.Executor`, or the address of a Dask scheduler.
    shard : Shard, optional
        The part to run; by default all units.
    retry_failed : bool
        Repeat units that failed before.
    listener : callable, optional
        Called with each finished unit, and the progress of the campaign.

    Raises
    ------
    InputError
        If the store belongs to another campaign, another driver is using it, or no workers are left.
    OSError
        If a result cannot be written, for example on a full disk. Results written before are complete and kept.

    Warns
    -----
    UserWarning
        For damaged results, which are repeated, and for a store without checksums.
    """
    check_count(workers)
    shard, store = shard or Shard(), Store(folder)
    place = None if data is None else Path(data).resolve()
    with store.held(shard):
        store.claim(_identity(campaign, place), may_change=campaign.may_change)
        if adopted := store.adopt(shard):
            notice = f"{counted(adopted, 'result')} of an earlier version without checksums, used unverified"
            warnings.warn(f"{store.folder}: {notice}", stacklevel=2)
        at = discard_damaged(campaign, store, shard)
        if retry_failed:
            at = Progress(at.finished, 0, at.left + at.failed)
        summary = Summary(at=at)
        if not at.left:
            if shard.is_complete:
                store.sort_checksums()
            return summary
        with pool_of(workers, executor) as pool:
            units = _missing(campaign, store, shard, retry_failed=retry_failed)
            work = partial(_work, campaign, place, versions()["gridsim"])
            for outcome in _outcomes(pool, work, _batches(units, _together(pool, at.left))):
                done = _keep(store, shard, outcome)
                summary.add(done)
                failed = done.failure is not None
                at = Progress(at.finished + (not failed), at.failed + failed, at.left - 1)
                summary.at = at
                if listener is not None:
                    listener(done, at)
        if shard.is_complete:
            store.sort_checksums()
    return summary


def discard_damaged(campaign: Campaign, store: Store, shard: Shard | None = None) -> Progress:
    """Remove damaged results of a campaign with a warning; return the remaining progress.

    Warns
    -----
    UserWarning
        With the names of the first ones.
    """
    damaged: list[str] = []
    at = progress_of(campaign, store, shard, damaged=damaged)
    for file in damaged:
        store.discard(file)
    if damaged:
        shown = ", ".join(str(store.path(file)) for file in damaged[:_SHOWN]) + ", …" * (len(damaged) > _SHOWN)
        warnings.warn(f"{counted(len(damaged), 'damaged result')} discarded, which run again: {shown}", stacklevel=3)
    return at


def check(campaign: Campaign, store: Store, data: str | Path | None = None) -> None:
    """Check whether a store may contain results of a campaign, without changing it.

    Raises
    ------
    InputError
        If its results are of another campaign, another version of gridsim, or other inputs.
    """
    store.check(_identity(campaign, None if data is None else Path(data).resolve()), may_change=campaign.may_change)


def _identity(campaign: Campaign, data: Path | None) -> dict[str, Any]:
    return {"version": versions()["gridsim"], **campaign.identity(data)}


def progress_of(
    campaign: Campaign, store: Store, shard: Shard | None = None, *, damaged: list[str] | None = None
) -> Progress:
    """Return the progress of a campaign; with *damaged*, verify each result and add damaged ones to it."""
    finished = failed = left = 0
    for group in _groups(campaign, shard or Shard()):
        for unit in group:
            if store.has(unit.file):
                if damaged is not None and not store.is_intact(unit.file):
                    damaged.append(unit.file)
                    left += 1
                    continue
                finished += 1
            elif store.has_failed(unit.file):
                failed += 1
            else:
                left += 1
    return Progress(finished, failed, left)


def _groups(campaign: Campaign, shard: Shard) -> Iterator[Sequence[Any]]:
    """Yield groups of a part of a campaign: whole groups if there are enough of them, else their units."""
    if shard.is_complete:
        yield from campaign.groups()
        return
    many = sum(1 for _ in itertools.islice(campaign.groups(), shard.parts)) == shard.parts
    if many:
        yield from itertools.islice(campaign.groups(), shard.number - 1, None, shard.parts)
        return
    met = 0
    for group in campaign.groups():
        yield group[(shard.number - 1 - met) % shard.parts :: shard.parts]
        met += len(group)


def _missing(campaign: Campaign, store: Store, shard: Shard, *, retry_failed: bool) -> Iterator[list[Any]]:
    for group in _groups(campaign, shard):
        units = [unit for unit in group if not store.has(unit.file)]
        if not retry_failed:
            units = [unit for unit in units if not store.has_failed(unit.file)]
        if units:
            yield units


def _together(pool: Pool, left: int) -> int:
    """Return the batch size for workers, small enough that none is idle for long at the end."""
    return min(pool.together, math.ceil(left / (4 * pool.workers)))


def _batches(groups: Iterable[list[Any]], together: int) -> Iterator[list[Any]]:
    """Yield batches of units of one group, of similar size."""
    for group in groups:
        size = math.ceil(len(group) / math.ceil(len(group) / together))
        for first in range(0, len(group), size):
            yield group[first : first + size]


class _Outcome(NamedTuple):
    """Result of one unit, as returned by a worker."""

    unit: Any
    made: Made | None
    failure: Failure | None
    cpu: float
    wall: float


def _work(campaign: Campaign, data: Path | None, version: str, units: Sequence[Any]) -> list[_Outcome]:
    """Run units in a worker, one after the other; stop when the time limit is exceeded, but run at least one."""
    own = versions()["gridsim"]
    if own != version:
        told = f"this worker has gridsim {own}, the driver {version}; install the same on both"
        return [_failed(unit, told, "") for unit in units]
    outcomes: list[_Outcome] = []
    begun = time.monotonic()
    while len(outcomes) < len(units) and (not outcomes or time.monotonic() < begun + _ENOUGH):
        outcomes.append(_ran(campaign, data, units[len(outcomes)]))
    return outcomes


def _ran(campaign: Campaign, data: Path | None, unit: Any) -> _Outcome:
    cpu, wall = time.process_time(), time.perf_counter()
    made, failure = None, None
    try:
        made = campaign.made(unit, data)
    except (Exception, SystemExit) as error:  # also errors of user-defined policies: the campaign continues
        failure = Failure(str(unit), *_error_line(error))
    return _Outcome(unit, made, failure, time.process_time() - cpu, time.perf_counter() - wall)


def _error_line(error: BaseException) -> tuple[str, str]:
    """Return an error in one line, and its location."""
    try:
        message = " ".join(str(error).split())
    except Exception:  # a user-defined error with a broken text
        message = "without a message"
    return f"{type(error).__name__}: {message}", "".join(traceback.format_exception(error))


def _failed(unit: Any, error: str, trace: str) -> _Outcome:
    return _Outcome(unit, None, Failure(str(unit), error, trace), 0.0, 0.0)


def _keep(store: Store, shard: Shard, outcome: _Outcome) -> Finished:
    unit, made = outcome.unit, outcome.made
    told = {"unit": unit.file, "cpu": round(outcome.cpu, 4), "wall": round(outcome.wall, 4)}
    if made is None:
        assert outcome.failure is not None
        store.put_failure(unit.file, outcome.failure)
        store.note_down({**told, "error": outcome.failure.error}, shard)
        return Finished(unit, outcome.cpu, 0, 0, outcome.failure)
    store.put(unit.file, made.content, made.attached, shard)
    store.note_down({**told, "schedules": made.schedules, "jobs": made.jobs}, shard)
    return Finished(unit, outcome.cpu, made.schedules, made.jobs)


Work = Callable[[Sequence[Any]], list[_Outcome]]


def _outcomes(pool: Pool, work: Work, batches: Iterator[list[Any]]) -> Iterator[_Outcome]:
    """Yield outcomes in any order.

    When a worker dies, a process pool raises an error for all running batches, and a failed batch does not identify
    the faulty unit. These units are then run one at a time, so that only the faulty one fails.
    """
    under_way: dict[Future[list[_Outcome]], list[Any]] = {}
    again: deque[list[Any]] = deque()
    suspects: deque[Any] = deque()
    deaths: Counter[str] = Counter()
    while True:
        for batch in _next(pool.lead - len(under_way), suspects, itertools.chain(_taken(again), batches), under_way):
            under_way[_submitted(pool, work, batch)] = batch
        if not under_way:
            return
        dead: list[Any] = []
        for future in _done(pool, under_way):
            units = under_way.pop(future)
            try:
                outcomes = future.result()
            except BrokenExecutor:
                dead += units
            except Exception as error:
                _still_there(pool, error)
                if len(units) > 1:
                    suspects.extend(units)
                else:
                    yield _failed(units[0], *_error_line(error))
            else:
                yield from outcomes
                if len(outcomes) < len(units):
                    again.append(units[len(outcomes) :])
        if dead:
            pool.renew()
            for future, units in under_way.items():
                kept = future.result() if _succeeded(future) else []
                yield from kept
                dead += units[len(kept) :]
            under_way.clear()
            yield from _after_death(dead, suspects, deaths)


def _next(
    free: int, suspects: deque[Any], batches: Iterator[list[Any]], under_way: Mapping[Any, Any]
) -> Iterator[list[Any]]:
    """Return the batches to submit now: a suspect unit if nothing else runs, or as many batches as allowed."""
    if not suspects:
        yield from itertools.islice(batches, max(free, 0))
    elif not under_way:
        yield [suspects.popleft()]


def _taken(batches: deque[list[Any]]) -> Iterator[list[Any]]:
    while batches:
        yield batches.popleft()


def _submitted(pool: Pool, work: Work, units: Sequence[Any]) -> Future[list[_Outcome]]:
    """Submit units; raise an error if the workers are found to be gone."""
    try:
        return pool.submit(work, units)
    except Exception as error:
        future: Future[list[_Outcome]] = Future()
        future.set_exception(error)
        return future


def _done(pool: Pool, under_way: Mapping[Future[list[_Outcome]], Any]) -> Iterable[Future[list[_Outcome]]]:
    """Wait for a batch to finish."""
    while True:
        done = wait(under_way, timeout=_LOOK, return_when=FIRST_COMPLETED).done
        if done:
            return done
        _still_there(pool, "no answer")


def _succeeded(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _still_there(pool: Pool, error: object) -> None:
    if pool.is_lost():
        told = f"the workers have stopped ({error}); start again: finished runs are kept"
        raise InputError(told) from (error if isinstance(error, Exception) else None)


def _after_death(units: Sequence[Any], suspects: deque[Any], deaths: Counter[str]) -> Iterator[_Outcome]:
    """Mark units that were running when a worker died as suspects; give up those that failed alone too often."""
    if len(units) > 1:
        suspects.extend(units)
        return
    (unit,) = units
    deaths[unit.file] += 1
    if deaths[unit.file] < _DEATHS:
        suspects.appendleft(unit)
    else:
        yield _failed(unit, f"its worker died {_DEATHS} times while it ran: killed, or out of memory", "")
