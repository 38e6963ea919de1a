"""Carry a campaign out: what is missing in a store goes to workers, and what comes back is kept at once.

Workers get recipes and read inputs themselves; the driver alone writes. It holds a few units at a time, however many
there are. A unit that raises is noted and stops nobody; one whose worker dies is tried again, alone.

Units go to workers a few together, those of one workload, so that it is read once. A worker sends back what it has
after `_ENOUGH` seconds, so that whatever is killed, little is run twice.
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

from gridsim.campaign.executors import Pool, pool_of
from gridsim.campaign.store import Failure, Shard, Store
from gridsim.errors import InputError
from gridsim.result import versions
from gridsim.words import counted

_ENOUGH = 5.0
"""Seconds after which a worker sends back what it has; the rest of its units is given out again."""

_LOOK = 5.0
"""Seconds between two looks at whether the workers are still there."""

_SHOWN = 3
"""Damaged results that a warning names."""

_DEATHS = 2
"""Of workers that ran a unit alone, after which it counts as failed."""


class Unit(Protocol):
    """What is run, kept and missing as a whole."""

    @property
    def file(self) -> str:
        """Name of its result; slashes make folders."""
        ...

    def __str__(self) -> str:
        """In words."""
        ...


class Made(NamedTuple):
    """Result of a unit.

    Attributes
    ----------
    content : bytes
        Of its file: what depends on recipe and inputs alone.
    beside : mapping of str to bytes
        Further files by name in the store, such as records.
    schedules, jobs : int
        How many it took.
    """

    content: bytes
    beside: Mapping[str, bytes] = {}
    schedules: int = 1
    jobs: int = 0


class Campaign(Protocol):
    """Many units, told apart by the names of their files. It is sent to workers, so it holds recipes, not data."""

    may_change: ClassVar[Sequence[str]]
    """Entries of `identity` that no result depends on."""

    def identity(self, data: Path | None) -> Mapping[str, Any]:
        """What its results are of."""
        ...

    def groups(self) -> Iterable[Sequence[Any]]:
        """Its units, those that share inputs together; again and again the same."""
        ...

    def made(self, unit: Any, data: Path | None) -> Made:
        """Run one unit; *data* is the folder of the archive's logs."""
        ...


class Finished(NamedTuple):
    """A unit that was run: CPU seconds with everything, schedules and jobs in them; why not, where it failed."""

    unit: Any
    cpu: float
    schedules: int
    jobs: int
    failure: Failure | None = None


class Progress(NamedTuple):
    """Units of a campaign, or of a part of it: finished, failed, still to do."""

    finished: int
    failed: int
    left: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.finished + self.failed + self.left


@dataclass(slots=True)
class Summary:
    """What one call of `run_campaign` did: units, schedules, CPU seconds of the workers, units that failed now.

    Attributes
    ----------
    at : Progress
        Where the campaign, or the part of it, stands now.
    """

    units: int = 0
    schedules: int = 0
    jobs: int = 0
    cpu: float = 0.0
    failed: int = 0
    at: Progress = field(default_factory=lambda: Progress(0, 0, 0))

    def add(self, done: Finished) -> None:
        """Count a unit in."""
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
    """Run every unit of a campaign that a store does not have, and keep it there.

    Parameters
    ----------
    folder : path
        Of the store (`gridsim.campaign.store`).
    data : path, optional
        Folder of the archive's logs.
    workers : int
        Processes; 1 works in this one.
    executor : Executor or str, optional
        What runs the units instead: any `concurrent.futures.Executor`, or the address of a Dask scheduler.
    shard : Shard, optional
        The part to run; all where left out.
    retry_failed : bool
        Run also what failed before.
    listener : callable, optional
        Called with each unit that comes back, and where the campaign stands then.

    Raises
    ------
    InputError
        When the store is of something else, or another driver works on it, or the workers are gone.
    OSError
        When a result cannot be written, as on a full disk. What was written is whole and stays.

    Warns
    -----
    UserWarning
        For results that are damaged and are run again, and for those of a store without checksums.
    """
    if workers < 1:
        raise InputError(f"{workers} workers; expected at least 1", field="workers")
    shard, store = shard or Shard(), Store(folder)
    place = None if data is None else Path(data).resolve()
    with store.held(shard):
        store.claim(_identity(campaign, place), may_change=campaign.may_change)
        if adopted := store.adopt(shard):
            told = f"{counted(adopted, 'result')} of an earlier version without checksums, used unverified"
            warnings.warn(f"{store.folder}: {told}", stacklevel=2)
        at = discard_damaged(campaign, store, shard)
        if retry_failed:
            at = Progress(at.finished, 0, at.left + at.failed)
        summary = Summary(at=at)
        if not at.left:
            if shard.whole:
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
        if shard.whole:
            store.sort_checksums()
    return summary


def discard_damaged(campaign: Campaign, store: Store, shard: Shard | None = None) -> Progress:
    """Remove the results of a campaign that are damaged, and say so; how far the campaign is without them.

    Warns
    -----
    UserWarning
        Naming the first of them.
    """
    damaged: list[str] = []
    at = progress_of(campaign, store, shard, damaged=damaged)
    for file in damaged:
        store.discard(file)
    if damaged:
        shown = ", ".join(str(store.path(file)) for file in damaged[:_SHOWN]) + ", …" * (len(damaged) > _SHOWN)
        warnings.warn(f"{counted(len(damaged), 'damaged result')} discarded, to be run again: {shown}", stacklevel=3)
    return at


def check(campaign: Campaign, store: Store, data: str | Path | None = None) -> None:
    """Look whether a store may hold results of a campaign, and change nothing.

    Raises
    ------
    InputError
        When its results are of something else, of another version of gridsim or from other inputs.
    """
    store.check(_identity(campaign, None if data is None else Path(data).resolve()), may_change=campaign.may_change)


def _identity(campaign: Campaign, data: Path | None) -> dict[str, Any]:
    return {"version": versions()["gridsim"], **campaign.identity(data)}


def progress_of(
    campaign: Campaign, store: Store, shard: Shard | None = None, *, damaged: list[str] | None = None
) -> Progress:
    """How far a campaign is; where *damaged* is given, each result is verified, and damaged ones are added to it."""
    finished = failed = left = 0
    for group in _groups(campaign, shard or Shard()):
        for unit in group:
            if store.has(unit.file):
                if damaged is not None and not store.is_whole(unit.file):
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
    """Groups of a part of a campaign. Groups are dealt out whole where there are enough of them, else their units."""
    if shard.whole:
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
    """Units that go to a worker at once: few enough that no worker idles at the end for long."""
    return min(pool.together, math.ceil(left / (4 * pool.workers)))


def _batches(groups: Iterable[list[Any]], together: int) -> Iterator[list[Any]]:
    """Units that go to a worker together, all of one group, about as many each time."""
    for group in groups:
        size = math.ceil(len(group) / math.ceil(len(group) / together))
        for first in range(0, len(group), size):
            yield group[first : first + size]


class _Outcome(NamedTuple):
    """What a worker sends back of one unit."""

    unit: Any
    made: Made | None
    failure: Failure | None
    cpu: float
    wall: float


def _work(campaign: Campaign, data: Path | None, version: str, units: Sequence[Any]) -> list[_Outcome]:
    """In a worker: run units one after the other, the first at least, and no more when it has taken long enough."""
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
    except (Exception, SystemExit) as error:  # also what a policy of somebody's own does: it stops nobody
        failure = Failure(str(unit), *_told(error))
    return _Outcome(unit, made, failure, time.process_time() - cpu, time.perf_counter() - wall)


def _told(error: BaseException) -> tuple[str, str]:
    """An error in one line, and where it happened."""
    try:
        said = " ".join(str(error).split())
    except Exception:  # of somebody's own, and broken too
        said = "it cannot say what"
    return f"{type(error).__name__}: {said}", "".join(traceback.format_exception(error))


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
    store.put(unit.file, made.content, made.beside, shard)
    store.note_down({**told, "schedules": made.schedules, "jobs": made.jobs}, shard)
    return Finished(unit, outcome.cpu, made.schedules, made.jobs)


Work = Callable[[Sequence[Any]], list[_Outcome]]


def _outcomes(pool: Pool, work: Work, batches: Iterator[list[Any]]) -> Iterator[_Outcome]:
    """What comes back, in whatever order.

    When a worker dies, a pool of processes tells so of everything that was under way, guilty or not; and what fails
    as a whole does not say which of its units it was. These units then run one at a time, so that only the one that is
    to blame fails.
    """
    under_way: dict[Future[list[_Outcome]], list[Any]] = {}
    again: deque[list[Any]] = deque()
    suspects: deque[Any] = deque()
    deaths: Counter[str] = Counter()
    while True:
        for batch in _next(pool.ahead - len(under_way), suspects, itertools.chain(_taken(again), batches), under_way):
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
                    yield _failed(units[0], *_told(error))
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
    room: int, suspects: deque[Any], batches: Iterator[list[Any]], under_way: Mapping[Any, Any]
) -> Iterator[list[Any]]:
    """What is submitted now: a suspect where nothing else runs, or as many batches as there is room for."""
    if not suspects:
        yield from itertools.islice(batches, max(room, 0))
    elif not under_way:
        yield [suspects.popleft()]


def _taken(batches: deque[list[Any]]) -> Iterator[list[Any]]:
    while batches:
        yield batches.popleft()


def _submitted(pool: Pool, work: Work, units: Sequence[Any]) -> Future[list[_Outcome]]:
    """Answer to come of workers; also where they are found to be gone only now."""
    try:
        return pool.submit(work, units)
    except Exception as error:
        future: Future[list[_Outcome]] = Future()
        future.set_exception(error)
        return future


def _done(pool: Pool, under_way: Mapping[Future[list[_Outcome]], Any]) -> Iterable[Future[list[_Outcome]]]:
    """Wait for something to be done."""
    while True:
        done = wait(under_way, timeout=_LOOK, return_when=FIRST_COMPLETED).done
        if done:
            return done
        _still_there(pool, "no answer")


def _succeeded(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _still_there(pool: Pool, error: object) -> None:
    if pool.gone():
        told = f"the workers are gone ({error}); start again: what is done is kept"
        raise InputError(told) from (error if isinstance(error, Exception) else None)


def _after_death(units: Sequence[Any], suspects: deque[Any], deaths: Counter[str]) -> Iterator[_Outcome]:
    """Suspect what was under way when a worker died; give up what was alone too often."""
    if len(units) > 1:
        suspects.extend(units)
        return
    (unit,) = units
    deaths[unit.file] += 1
    if deaths[unit.file] < _DEATHS:
        suspects.appendleft(unit)
    else:
        yield _failed(unit, f"its worker died {_DEATHS} times while it ran: killed, or out of memory", "")
