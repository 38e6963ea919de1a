"""``gridsim explain``: why did this job wait?"""

from __future__ import annotations

import argparse
import json

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("result", metavar="RESULT", help="folder that gridsim compare or gridsim run wrote")
    parser.add_argument("job", metavar="JOB", nargs="?", type=int, help="its number (default: the longest wait)")
    parser.add_argument("--policy", metavar="LABEL", help="under this one (default: the first of the folder)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(args: argparse.Namespace) -> int:
    """Read, look, tell."""
    from gridsim.errors import UnknownNameError  # numpy: not needed for --help
    from gridsim.files import plain
    from gridsim.report.explain import explain, read_schedules, waits
    from gridsim.report.explain_text import sentences

    schedules = read_schedules(args.result)
    label = args.policy or next(iter(schedules))
    if label not in schedules:
        raise UnknownNameError(f"policy of {args.result}", label, schedules)
    job = schedules[label].longest() if args.job is None else args.job
    found, under = explain(schedules[label], job), waits(schedules, job)
    if args.json:
        told = {"policy": label, **found.to_dict()}
        told["policies"] = {name: {"start": start, "wait": wait} for name, (start, wait) in under.items()}
        print(json.dumps(plain(told), indent=1))
        return 0
    _tell(sentences(found, label), under, found.submit)
    return 0


def _tell(lines: list[str], under: dict[str, tuple[float, float]], submit: float) -> None:
    from rich.table import Table  # only where a table is printed

    from gridsim.cli.terminal import Terminal
    from gridsim.report.words import duration

    console = Terminal()
    for line in lines:
        console.print(line, markup=False)
    if len(under) < 2:
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("policy")
    table.add_column("starts after", justify="right")
    for name, (_, wait) in under.items():
        table.add_row(name, "did not run" if wait != wait else duration(wait))
    console.print()
    console.print(table)
