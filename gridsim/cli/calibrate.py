"""``gridsim calibrate``: how near does a replay come to what the machine did?"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from gridsim.cli import source

if TYPE_CHECKING:
    from gridsim.report.calibration import Calibration

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("log", help="log that says when its jobs started (SWF, sacct, PBS)")
    source.add_log_options(parser, "log")
    parser.add_argument(
        "--platform", metavar="FILE", help="the machine as a tree of clusters (TOML), instead of --cores"
    )
    parser.add_argument(
        "--policy",
        action="append",
        metavar="POLICY",
        help="the site's own, or those that it may have; several times (default: fcfs, easy, conservative)",
    )
    parser.add_argument(
        "--overrun",
        choices=("kill", "extend"),
        default="extend",
        help="at the walltime (default: extend, jobs run as long as they did)",
    )
    parser.add_argument(
        "--instant",
        choices=("batched", "per-event"),
        default="batched",
        help="decisions of an instant (default: batched)",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of policies that draw (default: 1)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.set_defaults(transform=None, jobs=None, load=None)


def run(args: argparse.Namespace) -> int:
    """Read, replay, compare with the log."""
    from gridsim.cli.progress import Progress  # numpy and rich: not needed for --help
    from gridsim.files import plain
    from gridsim.policy.presets import policy
    from gridsim.report.calibration import DEFAULT_POLICIES, calibrate
    from gridsim.report.compare import labelled
    from gridsim.simulation import Run

    options = Run(overrun=args.overrun, instant=args.instant, seed=args.seed)
    policies = {label: policy(what) for label, what in labelled(args.policy or DEFAULT_POLICIES).items()}
    workload, platform = source.load(args, options, policies.values())
    told = sys.stderr if args.json else sys.stdout
    print("\n".join(source.summary_lines(workload, platform)), file=told, flush=True)
    with Progress(len(workload)) as progress:
        found = calibrate(workload, policies, platform=platform, options=options, progress=progress.told)
    if args.json:
        print(json.dumps(plain(found.to_dict()), indent=1))
    else:
        _tell(found)
    return 0


def _tell(found: Calibration) -> None:
    from rich import box  # only where a table is printed
    from rich.table import Table

    from gridsim.cli.terminal import Terminal
    from gridsim.report.calibration import alone, sentences
    from gridsim.report.words import duration, number, percent

    console = Terminal()

    def table(first: str, rows: dict[str, object]) -> None:
        grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        grid.add_column(first)
        for name in ("jobs", "median error", "90 %", "in 5 s", "in 1 min", "wait", "in the log"):
            grid.add_column(name, justify="right")
        for label, one in rows.items():
            times = (duration(one.median), duration(one.percentile_90))  # type: ignore[attr-defined]
            near = (percent(one.within_5), percent(one.within_60))  # type: ignore[attr-defined]
            waits = (duration(one.wait), duration(one.logged_wait))  # type: ignore[attr-defined]
            grid.add_row(label, number(one.jobs), *times, *near, *waits)  # type: ignore[attr-defined]
        console.print(grid)

    console.print()
    table("policy", dict(found.overall))
    for kind, classes in found.by_class.items():
        console.print(f"Under {found.best}, by {kind}:", markup=False)
        table("", {alone(name, kind): one for name, one in classes.items() if one.jobs})
    for sentence in sentences(found):
        console.print(sentence, markup=False)
    if found.apart:
        console.print("\nThe largest disagreements:")
    for one, told in found.apart:
        late = "later" if one.error > 0 else "earlier"
        console.print(
            f"job {one.job} starts {duration(abs(one.error))} {late} than it did. In the replay: {' '.join(told)}",
            markup=False,
        )
