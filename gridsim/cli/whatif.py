"""``gridsim whatif``: more nodes, more load, better estimates: what each would do to the waits."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gridsim.cli import source
from gridsim.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from gridsim.report.whatif import WhatIf

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    source.add_arguments(parser, machine="--machine")
    source.add_users(parser)
    parser.set_defaults(cores=None)
    ask = parser.add_argument_group(
        "what is changed, one thing at a time", "Each several times or with commas; a usual set where none is given."
    )
    ask.add_argument(
        "--cores",
        dest="more",
        metavar="+P%|N",
        action="append",
        help="a machine larger by P %%, or of N cores, in whole nodes where the policy knows its nodes; smaller: -10%%",
    )
    ask.add_argument(
        "--load-times", dest="loads", metavar="X", action="append", help="the same jobs X times as fast: 1.2"
    )
    ask.add_argument("--estimates", metavar="X", action="append", help="X times less is asked for too much: 2")
    ask.add_argument(
        "--halve",
        nargs="?",
        const="wait_mean",
        metavar="METRIC",
        help="find the machine that halves it (default: wait_mean)",
    )
    ask.add_argument(
        "--node",
        type=int,
        metavar="N",
        help="cores that are added at a time to find it (default: a node where the policy knows its nodes, else 1 %% "
        "of the machine)",
    )
    parser.add_argument("--policy", default="easy", metavar="POLICY", help="under which all run (default: easy)")
    parser.add_argument("--overrun", choices=("kill", "extend"), default="kill", help="at the walltime (default: kill)")
    parser.add_argument("--out", metavar="DIR", help="write a page and its numbers (whatif.html, .csv, .json) there")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(args: argparse.Namespace) -> int:
    """Read, simulate each, tell."""
    from gridsim.cli.progress import Progress  # numpy and rich: not needed for --help
    from gridsim.files import plain
    from gridsim.metrics.summary import METRICS
    from gridsim.policy.presets import policy
    from gridsim.report.whatif import changes_of, cores_for, whatif
    from gridsim.simulation import Run

    scheduler = policy(args.policy)
    if args.halve is not None and (args.halve not in METRICS or METRICS[args.halve].better != "lower"):
        raise UnknownNameError(
            "metric to halve", args.halve, [name for name in METRICS if METRICS[name].better == "lower"]
        )
    options = Run(overrun=args.overrun, seed=args.seed)
    loads, estimates = _numbers(args.loads, "load-times"), _numbers(args.estimates, "estimates")
    workload, platform = source.load(args, options, [scheduler])
    told = sys.stderr if args.json else sys.stdout
    print("\n".join(source.summary_lines(workload, platform)), file=told, flush=True)
    sizes = [_part(text, platform.cores) for text in _texts(args.more, "cores")]
    changes = []
    if args.halve is None or sizes or loads or estimates:  # the usual ones are for those who ask for nothing
        changes = changes_of(workload, platform, cores=sizes, loads=loads, estimates=estimates, policies=[scheduler])
    with Progress(len(workload)) as progress:
        how = {"policy": args.policy, "options": options, "progress": progress.told}
        if args.halve is not None:
            enough = cores_for(workload, platform, metric=args.halve, node=args.node, **how)
            changes = [*(one for one in changes if one.label != enough.label), enough]
        found = whatif(workload, changes, platform=platform, **how)
    if args.json:
        print(json.dumps(plain(found.to_dict()), indent=1))
    else:
        _tell(found)
    if args.out is not None:
        print(f"\n{_write(args, found, Path(str(workload.provenance.get('source', 'workload'))).name)}", file=told)
    return 0


def _tell(found: WhatIf) -> None:
    from gridsim.cli.terminal import Terminal  # rich: only where a table is printed
    from gridsim.report.whatif_text import sentences, table

    console = Terminal()
    console.print()
    console.print(table([found]))
    for sentence in sentences(found):
        console.print(sentence, markup=False)


def _write(args: argparse.Namespace, found: WhatIf, title: str) -> str:
    """Write the page and its numbers; returns where they are."""
    from gridsim.files import write_json, write_text
    from gridsim.report import whatif_text
    from gridsim.report.whatif_page import render

    folder = Path(args.out)
    write_text(folder / whatif_text.FILE, whatif_text.csv_text([found]))
    write_json(folder / "whatif.json", found.to_dict())
    write_text(folder / "whatif.html", render(found, title=title, command=shlex.join(["gridsim", *sys.argv[1:]])))
    return f"Page: {folder / 'whatif.html'}   (numbers beside it in {folder}/)"


def _texts(given: list[str] | None, option: str) -> list[str]:
    """Values between commas; an option that is given has at least one."""
    found = [text.strip() for entry in given or () for text in entry.split(",") if text.strip()]
    if given and not found:
        raise InputError("is empty; expected at least one value", field=option)
    return found


def _numbers(given: list[str] | None, option: str) -> list[float]:
    found = []
    for text in _texts(given, option):
        try:
            found.append(float(text))
        except ValueError:
            raise InputError(f"'{text}' is no number", field=option) from None
    return found


def _part(text: str, cores: int) -> float:
    """Part by which the machine grows, of ``+25%``, ``-10%``, ``+64`` or ``512``."""
    try:
        if text.endswith("%"):
            return float(text[:-1]) / 100
        return float(text) / cores if text[0] in "+-" else float(text) / cores - 1
    except ValueError:
        raise InputError(f"'{text}' is no size; expected such as +25%, +64 or 512", field="cores") from None
