"""Command ``gridsim sweep``: all combinations of the factors of a scenario file; finished runs are not repeated."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsim.errors import InputError

if TYPE_CHECKING:
    from gridsim.campaign.run import Progress
    from gridsim.campaign.store import Store
    from gridsim.campaign.sweep import Combination, Sweep


_SHOWN = 10
"""Number of failures that are reported individually."""


def run(args: argparse.Namespace) -> int:
    """Run missing units and write tables; return 1 if a run failed."""
    if args.campaign == "merge":
        return _merge(args)
    from gridsim.campaign.comparisons import Alike
    from gridsim.campaign.run import check, progress_of, run_campaign  # numpy: not needed for --help
    from gridsim.campaign.store import Shard, Store
    from gridsim.campaign.sweep import Sweep
    from gridsim.cli.terminal import RunsProgress
    from gridsim.words import counted
    from gridsim.workers import usable_cores

    if args.stores:
        raise InputError(f"'{args.stores[0]}' is one argument too many; give one campaign")
    if args.dask is not None and args.workers is not None:
        raise InputError("--workers applies to this machine, but --dask has other workers; leave out one of them")
    asked = {name: getattr(args, name) for name in ("shake", "shake_by", "resample", "resample_load", "flurries")}
    sweep = Sweep.from_toml(args.campaign, alike=Alike(**asked))
    store = Store(args.out or f"{Path(args.campaign).stem}-results")
    shard = Shard() if args.shard is None else Shard.of(args.shard)
    sweep.belongs(store)
    if args.status:
        check(sweep, store)
        damaged: list[str] = []
        at = progress_of(sweep, store, shard, damaged=damaged)
        if damaged:
            print(f"{counted(len(damaged), 'damaged result')}; the next call runs them again", file=sys.stderr)
        return _tell(args, sweep, store, at)
    for name in sweep.changed_plugins(store):
        print(f"{name} has changed: all its runs are repeated", file=sys.stderr)
    with RunsProgress() as progress:
        summary = run_campaign(
            sweep,
            store.folder,
            workers=usable_cores() if args.workers is None else args.workers,
            executor=args.dask,
            shard=shard,
            retry_failed=args.retry_failed,
            listener=progress.show,
        )
    at = summary.at
    if shard.whole:
        _tables(args, sweep, store, at)
    return _tell(args, sweep, store, at) or (1 if at.failed else 0)


def _merge(args: argparse.Namespace) -> int:
    """Merge the results of shards."""
    from gridsim.campaign.run import discard_damaged  # numpy: not needed for --help
    from gridsim.campaign.store import Shard, Store
    from gridsim.campaign.sweep import Sweep

    if not args.stores or args.out is None:
        raise InputError("expected gridsim sweep merge STORE [STORE ...] --out DIR")
    store = Store(args.out)
    with store.held(Shard()):
        store.adopt(Shard())
        for place in args.stores:
            other = Store(place)
            Sweep.from_store(other)
            if other.folder.resolve() != store.folder.resolve():
                store.claim(other.identity())
                copied = store.take_over(other)
                print(f"{place}: {copied:,} results copied", file=sys.stderr)
        sweep = Sweep.from_store(store)
        at = discard_damaged(sweep, store)
        store.sort_checksums()
    _tables(args, sweep, store, at)
    return _tell(args, sweep, store, at) or (1 if at.failed or at.left else 0)


def _tables(args: argparse.Namespace, sweep: Sweep, store: Store, at: Progress) -> None:
    """Write the tables and print the comparison; do nothing if they are up to date."""
    from gridsim.campaign.sweep import write_runs  # numpy: not needed for --help
    from gridsim.files import checksum, plain, write_json

    runs, made = store.folder / "runs.csv", store.folder / "tables.json"
    told = {"of": plain(sweep.identity()), "runs": store.digest(), **at._asdict()}
    if args.figures is None and _are_made(made, json.loads(json.dumps(told))):
        return
    made.unlink(missing_ok=True)
    write_runs(sweep, store, runs)
    written = [runs, *(_compare(args, sweep, store) if at.finished else ())]
    write_json(made, {**told, "tables": {path.name: checksum(path) for path in written}})


def _are_made(made: Path, of: dict[str, Any]) -> bool:
    """Return whether all tables in *made* exist, are unchanged, and were made from the runs in *of*."""
    from gridsim.files import checksum

    try:
        told = json.loads(made.read_text(encoding="utf-8"))
        tables = told.pop("tables")
        return bool(told == of and all(checksum(made.parent / name) == found for name, found in tables.items()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def _compare(args: argparse.Namespace, sweep: Sweep, store: Store) -> list[Path]:
    """Run the comparison of the scenario file and write its tables; return their paths."""
    from gridsim.cli.terminal import Terminal  # numpy and rich: not needed for --help
    from gridsim.report.campaign import figures, sentences, terminal, write_tables
    from gridsim.report.gallery import FOLDER
    from gridsim.report.replicas_text import few

    found = sweep.compared(store)
    if found is None or not found.runs:
        return []
    written = write_tables(store.folder, found, name=sweep.name)
    if args.figures is not None:
        figures(found).save(store.folder / FOLDER, args.figures)
    if args.json:
        return written
    console = Terminal()
    console.print(terminal(found, width=console.width))
    for sentence in (*sentences(found), *few(sweep.resampled(store))):
        console.print(sentence, markup=False)
    console.print()
    return written


def _failed(sweep: Sweep, store: Store) -> list[Combination]:
    """Return the failed runs of the sweep; the store may contain others, such as of an earlier version of a policy."""
    return [one for one in sweep.scenarios() if not store.has(one.file) and store.has_failed(one.file)]


def _tell(args: argparse.Namespace, sweep: Sweep, store: Store, at: Progress) -> int:
    """Print the progress."""
    cpu = sum(entry.get("cpu", 0.0) for entry in store.journal())
    failed = _failed(sweep, store) if at.failed else []
    if args.json:
        told = {"folder": str(store.folder), **at._asdict(), "total": at.total, "cpu": cpu, "driver": store.driver()}
        print(json.dumps({**told, "failures": [store.failure(one.file)._asdict() for one in failed]}, indent=1))
        return 0
    print(f"{at.finished:,} of {at.total:,} runs finished, {at.failed:,} failed, {at.left:,} to do")
    if args.status:
        print(f"{cpu:,.0f} s of CPU so far" + (f"; worked on by {driver}" if (driver := store.driver()) else ""))
    for one in failed[:_SHOWN]:
        print(f"failed: {one}: {store.failure(one.file).error}   ({store.failure_path(one.file)})")
    if len(failed) > _SHOWN:
        print(f"… and {len(failed) - _SHOWN} more in {store.folder / 'failed'}")
    if at.failed:
        print("gridsim sweep --retry-failed runs them again")
    if not args.status:
        print(f"Written: {store.folder}/")
    return 0
