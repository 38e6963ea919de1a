"""Command ``gridsim sweep``: all combinations of the factors of a scenario file; finished runs are not repeated."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from gridsim.errors import InputError

if TYPE_CHECKING:
    from gridsim.campaign.comparisons import Comparisons
    from gridsim.campaign.run import Progress
    from gridsim.campaign.store import Store
    from gridsim.campaign.sweep import Combination, Sweep


_SHOWN = 10
"""Number of failures that are reported individually."""


def run(args: argparse.Namespace) -> int:
    """Run missing units and write tables; return 1 if a run failed."""
    if args.campaign == "merge":
        return _merge(args)
    from gridsim.ask import sweep as run_sweep  # numpy: not needed for --help
    from gridsim.campaign.comparisons import Replications
    from gridsim.campaign.run import check, progress_of
    from gridsim.campaign.sweep import Sweep
    from gridsim.cli.terminal import RunsProgress
    from gridsim.number_formatting import counted
    from gridsim.workers import usable_cores

    if args.stores:
        raise InputError(f"'{args.stores[0]}' is one argument too many; give one campaign")
    if args.dask is not None and args.workers is not None:
        raise InputError("--workers applies to this machine, but --dask has other workers; leave out one of them")
    asked = {name: getattr(args, name) for name in ("shake", "shake_by", "resample", "resample_load", "flurries")}
    sweep = Sweep.from_toml(args.campaign, replications=Replications(**asked))
    store, shard = sweep.opened(args.out, args.shard)
    if args.status:
        check(sweep, store)
        damaged: list[str] = []
        at = progress_of(sweep, store, shard, damaged=damaged)
        if damaged:
            print(f"{counted(len(damaged), 'damaged result')}; the next call runs them again", file=sys.stderr)
        return _tell(args, sweep, store, at)
    for name in sweep.changed_plugins(store):
        print(f"{name} has changed: all its runs are repeated", file=sys.stderr)
    workers = usable_cores() if args.workers is None else args.workers
    how: Any = {"workers": workers, "executor": args.dask, "shard": args.shard, "retry_failed": args.retry_failed}
    with RunsProgress() as progress:
        summary = run_sweep(sweep, store.folder, figures=args.figures, listener=progress.show, **how)
    _show(args, sweep, store, summary.comparisons)
    return _tell(args, sweep, store, summary.at) or (1 if summary.at.failed else 0)


def _merge(args: argparse.Namespace) -> int:
    """Merge the results of shards."""
    from gridsim.ask import write_campaign
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
    _show(args, sweep, store, write_campaign(sweep, store, at, args.figures))
    return _tell(args, sweep, store, at) or (1 if at.failed or at.left else 0)


def _show(args: argparse.Namespace, sweep: Sweep, store: Store, found: Comparisons | None) -> None:
    """Print the comparison of the campaign, if it has one."""
    from gridsim.cli.terminal import Terminal  # numpy and rich: not needed for --help
    from gridsim.report.campaign import sentences, terminal
    from gridsim.report.replications_text import few

    if found is None or args.json:
        return
    console = Terminal()
    console.print(terminal(found, width=console.width))
    console.say(*sentences(found), *few(sweep.resampled(store)))
    console.print()


def _failed(sweep: Sweep, store: Store) -> list[Combination]:
    """Return the failed runs of the sweep; the store may contain others, such as of an earlier version of a policy."""
    return [one for one in sweep.scenarios() if not store.has(one.file) and store.has_failed(one.file)]


def _tell(args: argparse.Namespace, sweep: Sweep, store: Store, at: Progress) -> int:
    """Print the progress."""
    from gridsim.files import print_json

    cpu = sum(entry.get("cpu", 0.0) for entry in store.journal())
    failed = _failed(sweep, store) if at.failed else []
    if args.json:
        told = {"folder": str(store.folder), **at._asdict(), "total": at.total, "cpu": cpu, "driver": store.driver()}
        print_json({**told, "failures": [store.failure(one.file)._asdict() for one in failed]})
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
