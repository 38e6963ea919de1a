"""Command ``gridsim explain``: reasons for the wait of one job."""

from __future__ import annotations

import argparse
import json


def run(args: argparse.Namespace) -> int:
    """Read a schedule, explain one job, and print the result."""
    from gridsim.errors import UnknownNameError  # numpy: not needed for --help
    from gridsim.files import plain
    from gridsim.questions.explain import explain, waits
    from gridsim.questions.replay import usual_policy
    from gridsim.questions.schedules import read_schedules
    from gridsim.report.explain_text import from_log, sentences

    schedules = read_schedules(args.result)
    label = args.policy or usual_policy(args.result, schedules)
    if label not in schedules:
        raise UnknownNameError(f"policy of {args.result}", label, schedules)
    job = schedules[label].longest() if args.job is None else args.job
    found = explain(schedules[label], job)
    under = waits(schedules, found.job)
    if args.json:
        told = {"policy": label, **found.to_dict()}
        told["policies"] = {name: {"start": start, "wait": wait} for name, (start, wait) in under.items()}
        print(json.dumps(plain(told), indent=1))
        return 0
    ran_before = any(
        each.cut is not None or (each.pieces is not None and (each.pieces > 1).any()) for each in schedules.values()
    )
    _tell("waits" if ran_before else "starts after", [*from_log(found), *sentences(found, label)], under)
    return 0


def _tell(title: str, lines: list[str], under: dict[str, tuple[float, float]]) -> None:
    from gridsim.cli.terminal import Terminal  # rich: only where a table is printed
    from gridsim.report.sheet import sheet
    from gridsim.words import duration

    console = Terminal()
    for line in lines:
        console.print(line, markup=False)
    if len(under) < 2:
        return
    waits = ["did not run" if wait != wait else duration(wait) for _, wait in under.values()]
    console.print(sheet(list(under), {title: waits}, first="policy", width=console.width))
