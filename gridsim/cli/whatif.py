"""Command ``gridsim whatif``: effects of more nodes, more load or better estimates on waits."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsim.cli import source
from gridsim.cli.compare import with_and_without
from gridsim.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gridsim.questions.changes import WhatIf


def run(args: argparse.Namespace) -> int:
    """Read, simulate each change, and print the results."""
    from gridsim.cli.terminal import JobsProgress, tell  # rich and numpy: not needed for --help
    from gridsim.files import plain
    from gridsim.metrics.summary import METRICS
    from gridsim.options import Run
    from gridsim.policy.presets import SITE, of_site, policy
    from gridsim.policy.protocols import name_of
    from gridsim.questions.calibrate import own_policy, replay_of, replays_once_more
    from gridsim.questions.changes import NOW, changes_of, site_changes
    from gridsim.questions.labels import labelled
    from gridsim.questions.replicate import families
    from gridsim.questions.whatif import Pending, cores_for
    from gridsim.report.whatif_text import as_dict
    from gridsim.result import Result

    sited = source.site(args)
    label, asked = next(iter(labelled([args.policy or ("easy" if sited is None else SITE)]).items()))
    asked = of_site(asked, sited)
    scheduler = policy(asked)
    if args.halve is not None and (args.halve not in METRICS or METRICS[args.halve].better != "lower"):
        raise UnknownNameError(
            "metric to halve", args.halve, [name for name in METRICS if METRICS[name].better == "lower"]
        )
    options = Run(
        overrun=args.overrun, seed=args.seed, partitions=args.partitions, limits=args.limits, engine=args.engine
    )
    told: dict[str, Any] = {"shake": args.shake, "shake_by": args.shake_by, "resample": args.resample}
    alike = families(**told, resample_load=args.resample_load, seed=args.seed)
    if args.flurries == "drop":
        args.transform = ["without-flurries", *(args.transform or ())]
    loads, estimates = _numbers(args.loads, "load-times"), _numbers(args.estimates, "estimates")
    workload, platform = source.load(args, options, [scheduler])
    where = sys.stderr if args.json else sys.stdout
    tell(source.summary_lines(workload, platform), where)
    sizes = [_part(text, platform.cores) for text in source.parse_list(args.add_cores, "add-cores")]
    changes = []
    asked_of_site = source.site_changes(args)
    if args.together and asked_of_site:
        asked_of_site = [reduce(type(asked_of_site[0]).and_then, asked_of_site)]
    grown = site_changes(workload, platform, asked_of_site, scheduler)
    asked_nothing = args.halve is None and not grown  # the default changes apply only without explicit ones
    if asked_nothing or sizes or loads or estimates:
        changes = changes_of(workload, platform, cores=sizes, loads=loads, estimates=estimates, policies=[scheduler])
    changes = [*grown, *changes]
    both = with_and_without(args, workload)
    runs = (len(changes) + 1) * (1 + sum(each.replicas for each in alike) + both)
    runs += replays_once_more(workload, options)
    progress = JobsProgress(len(workload), runs)
    with source.workers_for(args, workload, runs, progress) as team, progress:
        how: Any = {"platform": platform, "options": options, "progress": progress.show}
        if args.halve is not None:
            enough = cores_for(workload, policy=asked, metric=args.halve, node=args.node, workers=team, **how)
            changes = [*(one for one in changes if one.label != enough.label), enough]
        pending = Pending.of(workload, changes, team, policy=asked, name=label, **how)
        pending = pending.besides(workload, team, families=alike, both=both, cuts={}, policy=asked, **how)
        as_it_is = {label: Result(pending.records[NOW].result(), platform, name_of(scheduler))}
        site: Any = {"policies": {label: scheduler}, "options": options, "progress": progress.show}
        replay = team.submit(replay_of, as_it_is, own_policy({label: scheduler}), **site)
        found = replace(pending.whatif(label), replay=replay.result())
    caveats = source.notice_lines(workload, {label: scheduler}, platform)
    if args.json:
        print(json.dumps(plain({**as_dict(found), "not_followed": caveats}), indent=1))
    else:
        _tell(found, caveats)
    if args.out is not None:
        print(
            f"\n{_write(args, found, Path(str(workload.provenance.get('source', 'workload'))).name, caveats)}",
            file=where,
        )
    return 0


def _tell(found: WhatIf, caveats: Sequence[str]) -> None:
    from gridsim.cli.terminal import Terminal  # rich: only where a table is printed
    from gridsim.report import whatif_text
    from gridsim.report.whatif_text import sentences, table

    console = Terminal()
    console.print()
    console.print(table([found], width=console.width))
    if (parts := whatif_text.part_table(found, width=console.width)) is not None:
        console.print(parts)
    for each in found.replicated:
        console.print(whatif_text.replica_table(each, width=console.width))
    for sentence in [*sentences(found), *caveats]:
        console.print(sentence, markup=False)


def _write(args: argparse.Namespace, found: WhatIf, title: str, caveats: Sequence[str]) -> str:
    """Write the page and its data; return their paths."""
    from gridsim.files import write_json, write_text
    from gridsim.report import tables, whatif_text
    from gridsim.report.whatif_page import render

    folder = Path(args.out)
    write_text(folder / whatif_text.FILE, whatif_text.csv_text([found]))
    header, *parts = whatif_text.part_file_rows([found])
    if parts:
        write_text(folder / whatif_text.PARTS_FILE, tables.csv_text(header, parts))
    for name, columns, rows in whatif_text.replica_files(found):
        write_text(folder / name, tables.csv_text(columns, rows))
    write_json(folder / "whatif.json", whatif_text.as_dict(found))
    write_text(folder / "whatif.html", render(found, title=title, command=source.command(), caveats=caveats))
    return f"Page: {folder / 'whatif.html'}   (tables in {folder}/)"


def _numbers(given: list[str] | None, option: str) -> list[float]:
    found = []
    for text in source.parse_list(given, option):
        try:
            found.append(float(text))
        except ValueError:
            raise InputError(f"'{text}' is not a number", field=option) from None
    return found


def _part(text: str, cores: int) -> float:
    """Return the relative growth of the machine for ``25%``, ``-10%`` or ``64``."""
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text) / cores
    except ValueError:
        raise InputError(
            f"'{text}' is not a number of cores; expected for example 25%, -10% or 64", field="add-cores"
        ) from None
