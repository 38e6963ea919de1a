"""A run over blocks of jobs: only what waits and runs is held, and jobs are told of as they end.

Its result directory is made from the record alone: a command that finds the record of its input simulates nothing.
"""

from __future__ import annotations

import gc
import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from gridsim.checkpoint import read_checkpoint, write_checkpoint
from gridsim.engine.setup import CompiledRun, Earlier
from gridsim.errors import InputError
from gridsim.files import plain, write_json
from gridsim.metrics.measures import Measure
from gridsim.metrics.responsiveness import BOUND
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER, IntArray
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.protocols import name_of
from gridsim.record import Record, Status
from gridsim.result import Result
from gridsim.run_folder import find_run, read_numbers
from gridsim.stored import Columns, StoredRecord, StoredWorkload
from gridsim.tables import PartedTable, Standing, column_of
from gridsim.workload.blocks import Blocks, joined, whole_instants
from gridsim.world import World, result_of

_TABLE = "jobs.parquet"


class Ended(NamedTuple):
    """Jobs that are over.

    Attributes
    ----------
    rows : (n,) int64
        Their rows in the workload as a whole, ascending.
    record : Record
        What became of them.
    """

    rows: IntArray
    record: Record


def why_not_streamed(policy: Any, options: Run) -> str:
    """Why a policy cannot be simulated block by block; empty where it can."""
    can = capabilities_of(make_policy(policy))
    name = name_of(make_policy(policy))
    if "pool" not in can.compiled:
        return can.in_python or f"{name} has no compiled scheduling cycle"
    if "windows" not in can.compiled:
        return f"{name} sorts or predicts by more than the request of each job, and needs the whole workload"
    if options.engine == "simpy":
        return "simpy is requested, which keeps all jobs in memory"
    if options.limits != "refuse":
        return f"jobs above a limit of time are changed (limits is '{options.limits}')"
    return "" if options.until is None else "it pauses before its end (until)"


def why_no_machine(platform: Platform) -> str:
    """Why jobs cannot be simulated block by block on a machine; empty where they can."""
    clusters = list(platform.clusters())
    if len(clusters) > 1:
        return f"the platform has {len(clusters)} clusters"
    return "" if clusters[0].capacity is None else "the machine has nodes or pools"


class Frontier(NamedTuple):
    """What a run block by block continues from: jobs that wait or run after a block.

    Attributes
    ----------
    released : int
        Jobs of the blocks before.
    earlier : Earlier or None
        State of the last window.
    left : tuple of (n,) int64 and Workload, or None
        Rows and jobs that have not ended.
    """

    released: int = 0
    earlier: Earlier | None = None
    left: tuple[IntArray, Workload] | None = None


def ended_jobs(
    blocks: Iterable[Workload],
    platform: Platform,
    policy: Any,
    options: Run,
    *,
    progress: Callable[[int], None] | None = None,
    frontier: Frontier = Frontier(),  # noqa: B008 (it is immutable)
) -> Iterator[tuple[Ended, Frontier]]:
    """Simulate to the last completion; what became of jobs, some time after they have ended.

    The jobs of a block are simulated beside those of blocks before it that still wait or run: rows of a window, which
    is made anew for each block. It holds nothing of jobs that are over. The same passes start the same jobs as in a run
    that has all of them.

    Parameters
    ----------
    blocks : iterable of Workload
        Rigid jobs on plain cores, in order of their submit times.
    policy : str or object
        As `gridsim.policy.presets.policy` takes it.
    progress : callable, optional
        Told the number of jobs released so far, now and then.
    frontier : Frontier
        State after an earlier block, to continue from.

    Yields
    ------
    Ended
        Of all jobs in the end, in no order but that of blocks.
    Frontier
        State after the block, from which the run can continue.

    Raises
    ------
    InputError
        When the policy or an option needs all jobs at once, and for jobs that are not in order.
    PolicyError
        When the policy decides something impossible.
    """
    for field, why in (("policy", why_not_streamed(policy, options)), ("platform", why_no_machine(platform))):
        if why:
            raise InputError(f"cannot be simulated block by block: {why}; leave out --stream", field=field)
    with _collecting() as collect:
        for found in _windows(blocks, platform, policy, replace(options, engine="compiled"), progress, frontier):
            yield found
            collect()


def _windows(
    blocks: Iterable[Workload],
    platform: Platform,
    policy: Any,
    options: Run,
    progress: Callable[[int], None] | None,
    frontier: Frontier,
) -> Iterator[tuple[Ended, Frontier]]:
    released, earlier, left = frontier
    passed = 0
    for whole, more in whole_instants(blocks):
        block = whole.select(slice(max(0, released - passed), None))
        passed += len(whole)
        if not len(block):
            continue
        rows, window = np.arange(released, released + len(block)), block
        if left is not None:
            rows, window = np.concatenate([left[0], rows]), joined(left[1], block)
        told = _told(progress, released - len(window) + len(block))
        world = World(window, platform, policy, options, progress=told, room=0)
        calendar = world.complete_window(earlier, more=more)
        staying = calendar.left()
        over = np.ones(len(window), dtype=np.bool_)
        over[staying] = False
        ended = Ended(rows[over], world.record().select(over))
        places = np.full(len(window), -1, dtype=np.int64)
        places[staying] = np.arange(len(staying))
        earlier, left = Earlier(_standstill(calendar), places), (rows[staying], window.select(staying))
        released += len(block)
        del world, calendar
        yield ended, Frontier(released, earlier, left)


def _standstill(calendar: CompiledRun) -> Any:
    """What the next window reads of a calendar (`Earlier`): without SimPy's environment, it can be kept in a file."""
    return SimpleNamespace(_events=calendar._events, _cluster=SimpleNamespace(scheduler=calendar._cluster.scheduler))


@contextmanager
def _collecting() -> Iterator[Callable[[], object]]:
    """What frees windows that are over: rings of references, which nothing but the collector finds.

    What was there before is none of its business: it takes 2 ms in place of some 100.
    """
    gc.collect()
    gc.freeze()
    try:
        yield gc.collect
    finally:
        gc.unfreeze()


def _told(progress: Callable[[int], None] | None, before: int) -> Callable[[int], None] | None:
    """Told the rows of a window that have come, tell those of all, of which so many came before its first row."""
    return None if progress is None else lambda jobs: progress(max(0, before + jobs))


class Streamed(NamedTuple):
    """A result directory.

    Attributes
    ----------
    metrics : mapping of str to float
        Numbers of the whole run by name, as `gridsim.Result.metrics` has them.
    simulated : bool
        Whether the run was simulated for it; else its record was there.
    """

    metrics: Mapping[str, float]
    simulated: bool


def stream(
    blocks: Blocks,
    folder: str | Path,
    *,
    platform: Platform,
    policy: Any,
    options: Run | None = None,
    label: str | None = None,
    measures: Sequence[Measure] = (),
    progress: Callable[[int], None] | None = None,
) -> Streamed:
    """Simulate block by block into a result directory: ``jobs.parquet``, ``run.json`` and ``metrics.json``.

    The table has the rows of the input, in its order, and what `gridsim.Result.write` would write. It is there when the
    simulation is over, or not at all, and then ``run.json``, which says of what it is. Where both are there and of the
    same input, policy, machine, options and versions, nothing is simulated. A run that was interrupted, or whose disk
    was full, continues where it stood when the same call is made again.

    Parameters
    ----------
    blocks : Blocks
        The jobs.
    folder : path
        Where to; made where it is not there.
    policy : str or object
        As `gridsim.policy.presets.policy` takes it.
    label : str, optional
        What the policy is called.
    measures : sequence of Measure
        Metrics beside the usual ones.
    progress : callable, optional
        Told the number of jobs released so far, now and then.

    Returns
    -------
    Streamed
        Its numbers.

    Raises
    ------
    InputError
        As `ended_jobs` does, and for charges, which are columns of a whole record.
    PolicyError
        When the policy decides something impossible.
    """
    options, folder = options or Run(), Path(folder)
    if charges := [it.name for it in measures if it.kind == "charge"]:
        raise InputError(f"{charges[0]} needs a whole record; leave it out, or --stream", field="charge")
    nothing = _record(Workload.from_columns(submit=[], runtime=[], cores=[], provenance=blocks.provenance), platform)
    empty = replace(result_of(nothing, platform, make_policy(policy), options), label=label)
    of_what = hashlib.sha256(json.dumps(plain(empty.provenance()), sort_keys=True).encode()).hexdigest()
    known, result = _known(folder, of_what, blocks.jobs), empty.with_measures(measures)
    told = {**result.provenance(), "metrics": {"bound": BOUND, "warmup": 0.0, "cooldown": 0.0}, "streamed": of_what}
    if known is not None and known == json.loads(json.dumps(plain(told))) and (folder / "metrics.json").is_file():
        return Streamed(read_numbers(folder), simulated=False)
    if known is None:
        _write_jobs(blocks, folder, empty, policy, options, of_what, progress)
    write_json(folder / "run.json", told)
    numbers = replace(result, record=record_of(folder, empty.record)).metrics()
    write_json(folder / "metrics.json", numbers)
    return Streamed(numbers, simulated=known is None)


def _known(folder: Path, of_what: str, jobs: int) -> Any:
    """What ``run.json`` says, where the table beside it is the record of the same run; else None."""
    told = find_run(folder)
    if told is None or told.get("streamed") != of_what or not (folder / _TABLE).is_file():
        return None
    return told if int(column_of(folder / _TABLE, "count(*)")[0]) == jobs else None


def _write_jobs(
    blocks: Blocks,
    folder: Path,
    empty: Result,
    policy: Any,
    options: Run,
    of_what: str,
    progress: Callable[[int], None] | None,
) -> None:
    """Simulate, and write the jobs as they end; from where an interrupted run of the same input stood."""
    with PartedTable(folder / _TABLE) as table:
        kept: _Kept | None = read_checkpoint(table.state, of_what)
        if kept is None or not isinstance(kept, _Kept) or not table.has_parts(kept.table):
            kept = None
        frontier = Frontier() if kept is None else kept.frontier
        ended = ended_jobs(blocks, empty.platform, policy, options, progress=progress, frontier=frontier)
        first = next(ended, None)  # refuses what cannot be, before anything is written or removed
        for name in ("run.json", "metrics.json"):
            (folder / name).unlink(missing_ok=True)
        table.begin(None if kept is None else kept.table)
        try:
            for found, after in itertools.chain(() if first is None else (first,), ended):
                parts = table.standing.parts
                table.add(found.rows, replace(empty, record=found.record).jobs)
                kept = _Kept(after, table.standing)
                if table.standing.parts > parts:
                    write_checkpoint(table.state, of_what, kept)
            table.finish()
        except (KeyboardInterrupt, OSError) as stop:
            if kept is not None:
                with suppress(OSError):
                    write_checkpoint(table.state, of_what, kept)
            if isinstance(stop, KeyboardInterrupt) and table.state.is_file():
                raise KeyboardInterrupt("the same command continues from here") from stop
            raise


class _Kept(NamedTuple):
    """What a run that was stopped continues from."""

    frontier: Frontier
    table: Standing


def _record(workload: Workload, platform: Platform) -> Record:
    """Of jobs of which nothing is known."""
    n = len(workload)
    nowhere: IntArray = np.full(n, NEVER, dtype=np.int64)
    status, cluster = np.full(n, Status.rejected, dtype=np.int8), np.zeros(n, dtype=np.int16)
    return Record(workload, nowhere, nowhere, status, cluster, platform.cores)


def record_of(folder: Path, empty: Record) -> Record:
    """The record in the table of a folder that `stream` wrote; its columns stay there until they are asked for.

    Parameters
    ----------
    empty : Record
        Of the same workload and machine without its jobs.

    Raises
    ------
    InputError
        When the table cannot be read.
    """
    table = Columns(folder / _TABLE)
    return StoredRecord(table, StoredWorkload(table, empty.workload), empty.cores)
