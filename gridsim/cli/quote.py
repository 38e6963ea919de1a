"""Command ``gridsim quote``: estimated start, and earliest guaranteed completion, of one more job."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from gridsim.cli import source
from gridsim.errors import InputError
from gridsim.model.dates import duration, instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gridsim.model.demand import Demand
    from gridsim.questions.quotation import Quoted


def run(args: argparse.Namespace) -> int:
    """Read, simulate, estimate and print the results."""
    from gridsim.cli.terminal import JobsProgress, tell  # rich and numpy: not needed for --help
    from gridsim.files import print_json
    from gridsim.model.cluster_state import LABELS
    from gridsim.questions.labels import policies_of
    from gridsim.questions.quote import DEFAULT_POLICIES, busiest_moment, quote, snapshot

    failing = source.failures(args)
    options = source.options_of(args, failing)
    policies = policies_of(args.policy, source.site(args), default=DEFAULT_POLICIES)
    walltime, demand = duration(args.walltime, "walltime"), demand_of(args)
    workload, platform = source.load(args, options, policies.values(), usual={"still-waiting": "repair"})
    told = sys.stderr if args.json else sys.stdout
    tell([*source.summary_lines(workload, platform), *source.failure_lines(failing, workload)], told)
    at, deadline = None, None
    if args.at == "now":
        workload, at = snapshot(workload)
    elif args.at is not None:
        at = instant(args.at, "at", workload.provenance)
    if args.deadline is not None and args.deadline.startswith("+"):
        at = busiest_moment(workload, platform, options) if at is None else at
        deadline = at + duration(args.deadline[1:], "deadline")
    elif args.deadline is not None:
        deadline = instant(args.deadline, "deadline", workload.provenance)
    with JobsProgress(what="") as progress:
        found = quote(
            workload,
            at=at,
            cores=args.width if demand is None else None,
            demand=demand,
            walltime=walltime,
            policies=policies,
            deadline=deadline,
            owner={label: name for label in LABELS if (name := getattr(args, label)) is not None},
            platform=platform,
            options=options,
            calibrate=not args.no_calibration,
            progress=progress.show,
        )
    caveats = source.notice_lines(workload, policies, platform)
    if args.json:
        print_json({**found.to_dict(), "not_followed": caveats})
    else:
        _tell(found, caveats)
    return 0


def demand_of(args: argparse.Namespace) -> Demand | None:
    """Return the requested resources other than cores; None if there are none."""
    from gridsim.model.demand import Demand
    from gridsim.model.site_file.syntax import mebibytes

    tasks = args.nodes if args.tasks is None else args.tasks
    words = (tasks, args.task_memory, args.task_gpus, args.gpu_kind, args.feature, args.pool)
    if not args.exclusive and all(word is None for word in words):
        return None
    more: dict[str, Any] = {"features": args.feature or (), "exclusive": args.exclusive}
    more["pools"] = dict(_amount(text) for text in args.pool or ())
    if all(word is None for word in words[:4]):
        return Demand(cores=args.width, **more)
    tasks = 1 if tasks is None else tasks
    if args.nodes is not None:
        if not 1 <= args.nodes <= tasks:
            raise InputError(f"{args.nodes} nodes; expected 1 to the number of tasks, {tasks}", field="nodes")
        more |= {"min_nodes": args.nodes, "max_nodes": args.nodes}
    if tasks < 1 or args.width % tasks:
        message = f"{tasks} tasks cannot share {args.width} cores evenly; expected a divisor of the cores"
        raise InputError(message, field="tasks")
    each = {"cores": args.width // tasks}
    if args.task_memory is not None:
        try:
            each["memory"] = mebibytes(args.task_memory)
        except ValueError:
            message = f"'{args.task_memory}' is not an amount of memory; expected for example 4096 (MiB), 512M or 32G"
            raise InputError(message, field="task-memory") from None
    gpu = round(1000 * (args.task_gpus or 0))
    return Demand(tasks=tasks, each=each, gpu=gpu, gpu_kinds=args.gpu_kind or (), **more)


def _amount(text: str) -> tuple[str, int]:
    name, _, amount = text.partition("=")
    if not name or not amount.isdecimal():
        raise InputError(f"'{text}' has no amount; expected for example matlab=2", field="pool")
    return name, int(amount)


def _tell(found: Quoted, caveats: Sequence[str]) -> None:
    from gridsim.cli.terminal import Terminal  # rich: only where a table is printed
    from gridsim.report import quotation as text

    console = Terminal()
    console.say(*text.state_lines(found))
    console.print()
    if text.has_answers(found):
        console.print(text.answers_table(found, width=console.width))
    if found.forecasts:
        console.say("Start time")
        console.print(text.forecasts_table(found, width=console.width))
    if any(it.shapes for it in found.forecasts.values()):
        console.say("Smaller requests")
        console.print(text.smaller_table(found, width=console.width))
    if len(found.prices) > 1:
        console.say(f"Price of a tighter deadline under {found.priced_by}")
        console.print(text.prices_table(found, width=console.width))
    console.say(*text.sentences(found), *caveats)
