"""Command ``gridsim whatif``: effects of more nodes, more load or better estimates on waits."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsim.cli import source
from gridsim.cli.compare import with_and_without
from gridsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gridsim.questions.changes import WhatIf


_FACTORS = {"loads": "load-times", "estimates": "estimates"}


def run(args: argparse.Namespace) -> int:
    """Read, simulate each change, and print the results."""
    from gridsim.cli.terminal import JobsProgress, tell  # rich and numpy: not needed for --help
    from gridsim.files import print_json
    from gridsim.policy.presets import SITE, of_site, policy
    from gridsim.questions.calibrate import replays_once_more
    from gridsim.questions.changes import Change, changes_of
    from gridsim.questions.labels import labelled
    from gridsim.questions.run_replications import families
    from gridsim.questions.whatif import check_halved, whatif
    from gridsim.report.whatif_text import as_dict

    sited = source.site(args)
    label, asked = next(iter(labelled([args.policy or ("easy" if sited is None else SITE)]).items()))
    asked = of_site(asked, sited)
    scheduler = policy(asked)
    check_halved(args.halve)
    options = source.options_of(args)
    derived: dict[str, Any] = {name: getattr(args, name) for name in ("shake", "shake_by", "resample", "resample_load")}
    replicas = sum(each.replicas for each in families(**derived, seed=args.seed))
    if args.flurries == "drop":
        args.transform = ["without-flurries", *(args.transform or ())]
    sizes: dict[str, Any] = {name: _numbers(getattr(args, name), option) for name, option in _FACTORS.items()}
    sizes |= {"cores": source.parse_list(args.add_cores, "add-cores"), "site": source.site_changes(args)}
    workload, platform = source.load(args, options, [scheduler])
    where = sys.stderr if args.json else sys.stdout
    failing = source.failures(args)
    tell([*source.summary_lines(workload, platform), *source.failure_lines(failing, workload)], where)
    changes = []
    for each in source.with_and_without_checkpoints(failing):
        changes.append(Change(str(each), platform, workload, failures=each))
    if any(sizes.values()) or (args.halve is None and not changes):  # the default changes only without explicit ones
        changes += changes_of(workload, platform, **sizes, together=args.together, policies=[scheduler])
    both = with_and_without(args, workload)
    runs = (len(changes) + 1) * (1 + replicas + both) + replays_once_more(workload, options)
    progress = JobsProgress(len(workload), runs)
    with source.workers_for(args, workload, runs, progress) as team, progress:
        how: Any = {"platform": platform, "options": options, "progress": progress.show, "workers": team, **derived}
        how |= {"halve": args.halve, "node": args.node, "flurries": "both" if both else "keep"}
        found = whatif(workload, changes, policy=asked, label=label, **how)
    caveats = source.notice_lines(workload, {label: scheduler}, platform)
    if args.json:
        print_json({**as_dict(found), "not_followed": caveats})
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
    from gridsim.report import replications_text, whatif_text
    from gridsim.report.whatif_text import sentences, table

    console = Terminal()
    console.print()
    console.print(table([found], width=console.width))
    if (parts := whatif_text.part_table(found, width=console.width)) is not None:
        console.print(parts)
    for each in found.replicated:
        console.print(replications_text.table(whatif_text.replica_lines(each), each, width=console.width))
    console.say(*sentences(found), *caveats)


def _write(args: argparse.Namespace, found: WhatIf, title: str, caveats: Sequence[str]) -> str:
    """Write the page and its data; return their paths."""
    from gridsim.files import write_json, write_text
    from gridsim.report import tables, whatif_text
    from gridsim.report.whatif_page import render

    folder = Path(args.out)
    write_text(folder / whatif_text.FILE, whatif_text.csv_text([found]))
    header, *parts = whatif_text.part_file_rows([found])
    if parts:
        write_text(folder / whatif_text.PARTS_FILE, tables.csv_text(header, *parts))
    for name, columns, rows in whatif_text.replica_files(found):
        write_text(folder / name, tables.csv_text(columns, *rows))
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
