"""Simulation in blocks of jobs: only waiting and running jobs are in memory, and outcomes are written as jobs end.

A result directory is identified by its record: if it exists for the same input, nothing is simulated.
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
from gridsim.errors import InputError, name_of
from gridsim.files import plain, write_json
from gridsim.metrics.measures import Measure
from gridsim.metrics.responsiveness import CUTS
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER, IntArray
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.presets import policy as make_policy
from gridsim.record import Record, Status
from gridsim.result import Result
from gridsim.run_folder import find_run, read_numbers
from gridsim.stored import Columns, StoredRecord, StoredWorkload
from gridsim.tables import PartedTable, Standing, column_of
from gridsim.workload.blocks import Blocks, joined, split_between_instants
from gridsim.world import World, result_of

_TABLE = "jobs.parquet"


class Ended(NamedTuple):
    """Jobs that have ended.

    Attributes
    ----------
    rows : (n,) int64
        Their rows in the workload as a whole, ascending.
    record : Record
        Their outcomes.
    """

    rows: IntArray
    record: Record


def why_not_streamed(policy: Any, options: Run) -> str:
    """Return why a policy cannot be simulated in blocks; empty if it can."""
    can = capabilities_of(make_policy(policy))
    name = name_of(make_policy(policy))
    if "pool" not in can.compiled:
        return can.in_python or f"{name} has no compiled scheduling cycle"
    if "windows" not in can.compiled:
        return f"{name} sorts or predicts by more than the request of each job, so it needs the whole workload"
    if options.engine == "simpy":
        return "simpy is requested, which keeps all jobs in memory"
    if options.limits != "refuse":
        return f"jobs above a time limit are changed (limits is '{options.limits}')"
    return "" if options.until is None else "it pauses before its end (until)"


def why_no_machine(platform: Platform) -> str:
    """Return why jobs on a machine cannot be simulated in blocks; empty if they can."""
    clusters = list(platform.clusters())
    if len(clusters) > 1:
        return f"the platform has {len(clusters)} clusters"
    return "" if clusters[0].capacity is None else "the machine has nodes or pools"


class Frontier(NamedTuple):
    """State after a block, from which the run continues: waiting and running jobs.

    Attributes
    ----------
    released : int
        Number of jobs of earlier blocks.
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
    """Simulate to the last job end; yield the outcomes of jobs some time after they ended.

    The jobs of a block are simulated together with waiting and running jobs of earlier blocks. They form the rows of a
    window, which is rebuilt for each block and does not contain ended jobs. The scheduling cycles and starts are the
    same as in a run of all jobs at once.

    Parameters
    ----------
    blocks : iterable of Workload
        Rigid jobs on plain cores, in order of their submit times.
    policy : str or object
        A policy as for `gridsim.policy.presets.policy`.
    progress : callable, optional
        Called from time to time with the number of jobs released so far.
    frontier : Frontier
        State after an earlier block, to continue from.

    Yields
    ------
    Ended
        Outcomes, in total of all jobs; unordered within a block.
    Frontier
        State after the block, from which the run can continue.

    Raises
    ------
    InputError
        If the policy or an option needs all jobs at once, and for jobs that are not in order.
    PolicyError
        If the policy makes an impossible decision.
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
    for whole, more in split_between_instants(blocks):
        block = whole.select(slice(max(0, released - passed), None))
        passed += len(whole)
        if not len(block):
            continue
        rows, window = np.arange(released, released + len(block)), block
        if left is not None:
            rows, window = np.concatenate([left[0], rows]), joined(left[1], block)
        shifted = _shifted_progress(progress, released - len(window) + len(block))
        world = World(window, platform, policy, options, progress=shifted, max_jobs=0)
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
    """Return the state that the next window needs, without SimPy's environment, so that it can be saved to a file."""
    return SimpleNamespace(_events=calendar._events, _cluster=SimpleNamespace(scheduler=calendar._cluster.scheduler))


@contextmanager
def _collecting() -> Iterator[Callable[[], object]]:
    """Free windows that are no longer used; they contain reference cycles, which only the garbage collector frees.

    Older objects are excluded from the collection, which then takes 2 ms instead of about 100 ms.
    """
    gc.collect()
    gc.freeze()
    try:
        yield gc.collect
    finally:
        gc.unfreeze()


def _shifted_progress(progress: Callable[[int], None] | None, before: int) -> Callable[[int], None] | None:
    """Convert progress in rows of the window to rows of the whole run, *before* rows further."""
    return None if progress is None else lambda jobs: progress(max(0, before + jobs))


class Streamed(NamedTuple):
    """A result directory.

    Attributes
    ----------
    metrics : mapping of str to float
        Metrics of the whole run by name, as in `gridsim.Result.metrics`.
    simulated : bool
        Whether the run was simulated; else its record existed.
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
    """Simulate in blocks and write a result directory: ``jobs.parquet``, ``run.json`` and ``metrics.json``.

    The table has the rows of the input, in its order, and the columns of `gridsim.Result.write`. It is created when
    the simulation is complete, followed by ``run.json``, which identifies the run. If both exist for the same input,
    policy, machine, options and versions, nothing is simulated. The same call continues a run that was interrupted or
    whose disk was full.

    Parameters
    ----------
    blocks : Blocks
        The jobs.
    folder : path
        The result directory; created if missing.
    policy : str or object
        A policy as for `gridsim.policy.presets.policy`.
    label : str, optional
        Label of the policy.
    measures : sequence of Measure
        Additional metrics.
    progress : callable, optional
        Called from time to time with the number of jobs released so far.

    Returns
    -------
    Streamed
        The result directory with its metrics.

    Raises
    ------
    InputError
        As `ended_jobs`, and for charges, which are columns of a whole record.
    PolicyError
        If the policy makes an impossible decision.
    """
    options, folder = options or Run(), Path(folder)
    if charges := [it.name for it in measures if it.kind == "charge"]:
        raise InputError(f"{charges[0]} needs a whole record; leave it out, or --stream", field="charge")
    nothing = _record(Workload.from_columns(submit=[], runtime=[], cores=[], provenance=blocks.provenance), platform)
    empty = replace(result_of(nothing, platform, make_policy(policy), options), label=label)
    of_what = hashlib.sha256(json.dumps(plain(empty.provenance()), sort_keys=True).encode()).hexdigest()
    known, result = _known(folder, of_what, blocks.jobs), empty.with_measures(measures)
    told = {**result.provenance(), "metrics": CUTS, "streamed": of_what}
    if known is not None and known == json.loads(json.dumps(plain(told))) and (folder / "metrics.json").is_file():
        return Streamed(read_numbers(folder), simulated=False)
    if known is None:
        _write_jobs(blocks, folder, empty, policy, options, of_what, progress)
    write_json(folder / "run.json", told)
    numbers = replace(result, record=record_of(folder, empty.record)).metrics()
    write_json(folder / "metrics.json", numbers)
    return Streamed(numbers, simulated=known is None)


def _known(folder: Path, of_what: str, jobs: int) -> Any:
    """Return the content of ``run.json`` if the table belongs to the same run; else None."""
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
    """Simulate, and write jobs as they end; continue an interrupted run of the same input."""
    with PartedTable(folder / _TABLE) as table:
        kept: _Kept | None = read_checkpoint(table.state, of_what)
        if kept is None or not isinstance(kept, _Kept) or not table.has_parts(kept.table):
            kept = None
        frontier = Frontier() if kept is None else kept.frontier
        ended = ended_jobs(blocks, empty.platform, policy, options, progress=progress, frontier=frontier)
        first = next(ended, None)  # raises for invalid input before anything is written or removed
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
    """State from which a stopped run continues."""

    frontier: Frontier
    table: Standing


def _record(workload: Workload, platform: Platform) -> Record:
    """Return a record without outcomes."""
    n = len(workload)
    nowhere: IntArray = np.full(n, NEVER, dtype=np.int64)
    status, cluster = np.full(n, Status.rejected, dtype=np.int8), np.zeros(n, dtype=np.int16)
    return Record(workload, nowhere, nowhere, status, cluster, platform.cores)


def record_of(folder: Path, empty: Record) -> Record:
    """Return the record in a table written by `stream`; columns are read on access.

    Parameters
    ----------
    empty : Record
        Record of the same workload and machine, without jobs.

    Raises
    ------
    InputError
        If the table cannot be read.
    """
    table = Columns(folder / _TABLE)
    return StoredRecord(table, StoredWorkload(table, empty.workload), empty.cores)
