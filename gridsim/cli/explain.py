"""Command ``gridsim explain``: reasons for the wait of one job."""

from __future__ import annotations

import argparse
from collections.abc import Mapping


def run(args: argparse.Namespace) -> int:
    """Explain one job of a result folder, and print the explanation."""
    from gridsim.ask import explain  # numpy: not needed for --help
    from gridsim.files import print_json
    from gridsim.report.explain_text import from_log, sentences

    found = explain(args.result, args.job, policy=args.policy)
    if args.json:
        print_json(found.to_dict())
        return 0
    ran_before = any(wait == wait and start - found.submit != wait for start, wait in found.policies.values())
    title = "waits" if ran_before else "starts after"
    _tell(title, [*from_log(found), *sentences(found, found.policy)], found.policies)
    return 0


def _tell(title: str, lines: list[str], under: Mapping[str, tuple[float, float]]) -> None:
    from gridsim.cli.terminal import Terminal  # rich: only where a table is printed
    from gridsim.number_formatting import duration
    from gridsim.report.text_table import sheet

    console = Terminal()
    console.say(*lines)
    if len(under) < 2:
        return
    waits = ["did not run" if wait != wait else duration(wait) for _, wait in under.values()]
    console.print(sheet(list(under), {title: waits}, first="policy", width=console.width))
