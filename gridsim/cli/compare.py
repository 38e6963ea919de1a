"""Command ``gridsim compare``: several policies on one workload, with sentences, tables and an HTML page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsim.cli import source

if TYPE_CHECKING:
    from gridsim.model.workload import Workload
    from gridsim.options import Run
    from gridsim.report.comparison import Comparison
    from gridsim.report.gallery import Kind
    from gridsim.report.page import PageParts
    from gridsim.result import Result
    from gridsim.workers import Awaited, Workers


_CHANGES = 4
"""Usual number of changes of ``--what-if`` for a policy."""


def with_and_without(args: argparse.Namespace, workload: Workload) -> bool:
    """Return whether to run also without flurries: if requested, or by default if there are any."""
    from gridsim.workload.transform.flurries import flurries  # numpy: not needed for --help

    if args.flurries is not None:
        return bool(args.flurries == "both")
    return bool(flurries(workload))


def run(args: argparse.Namespace) -> int:
    """Read, simulate, compare, print and write the results."""
    from gridsim.cli.terminal import JobsProgress, tell  # rich and numpy: not needed for --help
    from gridsim.files import print_json
    from gridsim.metrics.summary import requested_measures
    from gridsim.questions.calibrate import own_policy, replay_of, replays_once_more
    from gridsim.questions.compare import DEFAULT_POLICIES, evidence_of, evidence_without_flurries, pending_changes
    from gridsim.questions.labels import policies_of
    from gridsim.questions.run_replications import Arm, PendingReplicas, default_shakes, families, with_replicas
    from gridsim.report.comparison import Comparison
    from gridsim.result import people, without_names
    from gridsim.scenario import under_way
    from gridsim.tables import require_table

    require_table(args.table)
    failing = source.failures(args)
    options = source.options_of(args, failing)
    sited = source.site(args)
    policies = policies_of(args.policy, sited, default=DEFAULT_POLICIES)
    own = own_policy(policies, args.own)
    measures = requested_measures(args.metric, args.charge)
    if changes_of_site := source.site_changes(args):
        policies = source.with_changes(policies, changes_of_site, sited)
    if args.flurries == "drop":
        args.transform = ["without-flurries", *(args.transform or ())]
    workload, platform = source.load(args, options, policies.values(), changes=changes_of_site)
    if changes_of_site:  # the log is of a different machine, so its schedule is not comparable
        workload = replace(workload, logged={})
    shake = default_shakes(workload, policies.values()) if args.shake is None else args.shake
    asked: dict[str, Any] = {"shake": shake, "shake_by": args.shake_by, "resample": args.resample}
    replications = families(**asked, resample_load=args.resample_load, seed=args.seed, default=args.shake is None)
    told = sys.stderr if args.json else sys.stdout
    several = len(policies) > 1
    about = [*source.summary_lines(workload, platform), *source.failure_lines(failing, workload)]
    tell([*about, *_settings(options, args.shake, shake, several=several)], told)
    guessed = _CHANGES * len(list(policies)[:2]) if args.what_if else 0
    both = with_and_without(args, workload)
    runs = len(policies) * (1 + sum(each.replicas for each in replications) + both)
    progress = JobsProgress(len(workload), runs + replays_once_more(workload, options) + guessed)
    with source.workers_for(args, workload, runs, progress) as team, progress:
        how: Any = {"options": options, "progress": progress.show}
        answers = under_way(workload, policies, team, platform=platform, **how)
        near = {label: answers[label].result() for label in (policies if own is None else [own])}
        replay = team.submit(replay_of, near, own, policies=policies, **how)
        results = {label: answer.result().with_measures(measures) for label, answer in answers.items()}
        named = {label: result.record for label, result in results.items()}
        command = source.command()
        if args.no_names:
            results = {label: result.without_names() for label, result in results.items()}
            command = without_names(command, people(workload))
        cuts = {"bound": args.bound, "warmup": args.warmup, "cooldown": args.cooldown}
        asked = {"options": options, "own": own, "command": command, "title": args.title}
        evidence = evidence_of(results, policies=policies, cuts=cuts, **asked)
        arms = {label: Arm(platform, scheduler) for label, scheduler in policies.items()}
        pending = [PendingReplicas.of(each, workload, arms, team, cuts=cuts, **how) for each in replications]
        same: dict[str, Any] = {"own": own, "measures": measures, "cuts": cuts, "platform": platform, **how}
        cleaned = evidence_without_flurries(workload, policies, team, **same) if both else None
        drawn = None if args.no_page else team.submit(Comparison.draw, Comparison.view(evidence))
        simulated = replace(evidence, records=named)  # sites look up users by their names
        changes = pending_changes(simulated, policies, team, platform=platform, **how) if args.what_if else {}
        progress.expect(sum(len(each.changes) - 1 for each in changes.values()) - guessed)
        whatifs = tuple(each.whatif(label, cuts, lenient=True) for label, each in changes.items())
        evidence = with_replicas(replace(evidence, replay=replay.result(), whatifs=whatifs), pending)
        comparison = Comparison.view(replace(evidence, cleaned=cleaned))
        written = _write(args, comparison, results, team, drawn)
    if args.json:
        print_json(comparison.to_dict())
    else:
        tell_of(comparison)
    print(f"\n{written}", file=told)
    return 0


def _settings(options: Run, asked: int | None, shake: int, *, several: bool) -> Iterator[str]:
    """Return lines on the simulation settings; *asked* is the number of shaken workloads, None for the default."""
    used = f"simulation: --instant {options.instant}, --overrun {options.overrun}"
    used += f", --limits {options.limits}" if options.limits != "refuse" else ""
    used += f", --engine {options.engine}" if options.engine != "auto" else ""
    yield used + (f", --shake {shake}{' (default)' if asked is None else ''}" if shake else "")
    if asked is None and not shake and several:
        from gridsim.questions.run_replications import SHAKES

        yield f"no shaking: {SHAKES} shaken workloads would take long to simulate (--shake {SHAKES})"


def tell_of(comparison: Comparison) -> None:
    """Print sentences and tables."""
    from gridsim.cli.terminal import Terminal  # rich: only where a table is printed
    from gridsim.report import replications_text, whatif_text
    from gridsim.report.tables import changes, terminal
    from gridsim.report.validation import trust_in

    console = Terminal()
    console.print()
    console.say(*comparison.warnings())
    console.print(terminal(comparison.table(), width=console.width))
    if by_weight := comparison.by_weight():
        console.say(f"Change of the mean response relative to {comparison.baseline}, by weight of the jobs:")
        console.print(changes(by_weight, width=console.width))
    for found in (it for it in comparison.replicated if not it.default):
        rows = replications_text.lines(found, replications_text.compared(comparison), comparison.labels)
        console.print(replications_text.table(rows, found, width=console.width))
    console.say(*comparison.sentences()[len(comparison.warnings()) :])
    if comparison.replay is not None:
        console.say(*trust_in(comparison.replay).rest)
    if comparison.whatifs:
        console.print()
        console.print(whatif_text.table(comparison.whatifs, width=console.width))
        console.say(*whatif_text.lead(comparison.whatifs))


def _figures(comparison: Comparison, folder: Path, kind: Kind) -> list[str]:
    """Write the figures; return their paths in *folder*."""
    from gridsim.report.gallery import FOLDER  # matplotlib: only where figures are made

    return [f"{FOLDER}/{path.name}" for path in comparison.figures.save(folder / FOLDER, kind)]


def _write(
    args: argparse.Namespace,
    comparison: Comparison,
    results: dict[str, Result],
    workers: Workers,
    drawn: Awaited[PageParts] | None,
) -> str:
    """Write the result directory; return the path of the page."""
    from gridsim.cli.folder import Earlier
    from gridsim.files import write_json
    from gridsim.questions.labels import folders
    from gridsim.report.comparison import PAGE
    from gridsim.result import Result

    folder = Path(args.out)
    earlier = Earlier.of(folder)
    numbers = comparison.write(folder)
    places = folders(results)
    how = {"table": args.table, "bound": args.bound, "warmup": args.warmup, "cooldown": args.cooldown}
    tables = [workers.submit(Result.write, result, folder / places[label], **how) for label, result in results.items()]
    asked = None if args.figures is None else workers.submit(_figures, comparison, folder, args.figures)
    for table in tables:
        table.result()
    page = None if drawn is None else comparison.page(folder / PAGE, drawn=drawn.result())
    figures = [] if asked is None else asked.result()
    earlier.remove(kept={*places.values(), *numbers, *figures, *(() if page is None else (page.name,))})
    write_json(folder / "run.json", {**comparison.info, "folders": places, **({"figures": figures} if figures else {})})
    return f"Written: {folder}/" if page is None else f"Page: {page}   (tables in {folder}/)"
