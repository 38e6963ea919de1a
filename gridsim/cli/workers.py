"""``--workers``: how many processes do the runs of a question, and who hears of them."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gridsim.cli.progress import JobsProgress
    from gridsim.model.workload import Workload
    from gridsim.workers import Workers

__all__ = ["command", "workers_for"]

_WORTH = 10_000
"""Jobs in all runs below which processes take longer to send and fetch than they save: about half a second of EASY."""


def workers_for(args: argparse.Namespace, workload: Workload, runs: int, progress: JobsProgress) -> Workers:
    """Who does *runs* runs of a workload; to be entered before the display, whose thread a copy would not have."""
    from gridsim.cli.progress import hear_compiling  # numpy: not needed for --help
    from gridsim.workers import Workers, usable_cores

    requests = len(workload) if workload.tasks is None else len(workload.tasks)
    count = args.workers
    if count is None:
        count = min(usable_cores(), runs) if requests * runs >= _WORTH else 1
    return Workers(count, share=[workload], say=progress.say, prepare=hear_compiling)


def command(words: Sequence[str] | None = None) -> str:
    """The command line as it is kept beside results, without the number of workers: it changes nothing in them."""
    kept = iter(sys.argv[1:] if words is None else words)
    told = []
    for word in kept:
        name, equals, _ = word.partition("=")
        if not (name.startswith("--wo") and "--workers".startswith(name)):  # it may be shortened
            told.append(word)
        elif not equals:
            next(kept, None)
    return shlex.join(["gridsim", *told])
