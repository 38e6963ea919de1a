"""``gridsim compare``: several policies on one workload, ending in sentences, a table and a page."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gridsim.cli import source
from gridsim.cli.clock import duration
from gridsim.errors import InputError

if TYPE_CHECKING:
    from gridsim.report.comparison import Comparison
    from gridsim.result import Result

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    source.add_arguments(parser)
    source.add_users(parser)
    parser.add_argument(
        "--policy",
        action="append",
        metavar="POLICY",
        help="a preset (easy), a composition (easy?ordering=sjf), an ordering, or file.py:Class; give it several "
        "times, the first is the baseline (default: fcfs, easy, conservative; see gridsim list)",
    )
    run = parser.add_argument_group("simulation")
    run.add_argument("--overrun", choices=("kill", "extend"), default="kill", help="at the walltime (default: kill)")
    run.add_argument(
        "--instant",
        choices=("batched", "per-event"),
        default="batched",
        help="one decision after all events of an instant, or one after each (default: batched)",
    )
    run.add_argument(
        "--balancer", default="expected-queue", metavar="NAME", help="of routers, on a grid (see gridsim list)"
    )
    run.add_argument(
        "--split", choices=("task", "kind-group"), default="task", help="of jobs that no child can hold whole"
    )
    told = parser.add_argument_group("what is told")
    told.add_argument(
        "--what-if",
        action="store_true",
        help="ask too what 10 and 20 %% more cores, 20 %% more load and estimates twice as good would do, under the "
        "first and the best policy: up to eight runs more",
    )
    told.add_argument("--bound", type=_bound, default=10.0, metavar="S", help="of bounded slowdown, s (default: 10)")
    told.add_argument("--warmup", type=_duration, default=0.0, metavar="T", help="leave out jobs of the first T")
    told.add_argument("--cooldown", type=_duration, default=0.0, metavar="T", help="and of the last (90, 12h, 2d)")
    told.add_argument("--out", default="gridsim-results", metavar="DIR", help="folder to write (default: %(default)s)")
    told.add_argument("--table", choices=("csv", "parquet"), default="csv", help="format of the per-job tables")
    told.add_argument("--no-page", action="store_true", help="do not make the HTML page")
    told.add_argument("--json", action="store_true", help="print everything as JSON")


def _duration(text: str) -> float:
    """Seconds of ``90``, ``15m``, ``12h``, ``2d`` or ``1w``, as an option's type."""
    try:
        return duration(text, "duration")
    except InputError as error:
        raise argparse.ArgumentTypeError(error.message) from error


def _bound(text: str) -> float:
    """Seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is no bound; expected seconds above 0, such as 10")
    return value


def run(args: argparse.Namespace) -> int:
    """Read, simulate, compare, tell, write."""
    from gridsim.cli.progress import Progress  # rich and numpy: not needed for --help
    from gridsim.model.machine import machine_of
    from gridsim.policy.presets import policy
    from gridsim.report.calibration import trust_of
    from gridsim.report.compare import DEFAULT_POLICIES, comparison_of, labelled, with_changes
    from gridsim.result import require_table
    from gridsim.scenario import simulate_all
    from gridsim.simulation import Run

    require_table(args.table)
    options = Run(overrun=args.overrun, instant=args.instant, seed=args.seed, balancer=args.balancer, split=args.split)
    policies = {label: policy(what) for label, what in labelled(args.policy or DEFAULT_POLICIES).items()}
    workload, platform = source.load(args, options, policies.values())
    told = sys.stderr if args.json else sys.stdout
    used = f"simulation: --instant {options.instant}, --overrun {options.overrun}"
    print("\n".join([*source.summary_lines(workload, platform), used]), file=told, flush=True)
    with Progress(len(workload)) as progress:
        results = simulate_all(workload, policies, platform=platform, options=options, progress=progress.told)
        own = [label for label, made in policies.items() if machine_of([made])]
        trust = trust_of(results, own, policies=policies, options=options, progress=progress.told)
    comparison = comparison_of(
        results,
        options=options,
        bound=args.bound,
        warmup=args.warmup,
        cooldown=args.cooldown,
        command=shlex.join(["gridsim", *sys.argv[1:]]),
        trust=trust,
    )
    if args.what_if:
        with Progress(len(workload)) as progress:
            comparison = with_changes(comparison, policies, platform=platform, options=options, progress=progress.told)
    written = _write(args, comparison, results)
    if args.json:
        print(json.dumps(comparison.to_dict(), indent=1))
    else:
        _tell(comparison)
    print(f"\n{written}", file=told)
    return 0


def _tell(comparison: Comparison) -> None:
    from gridsim.cli.terminal import Terminal  # rich: only where a table is printed
    from gridsim.report import whatif_text
    from gridsim.report.tables import changes, terminal

    console = Terminal()
    console.print()
    console.print(terminal(comparison.table()))
    if found := comparison.by_weight():
        console.print(
            f"Change of the mean response against {comparison.baseline}, by weight of the jobs:", markup=False
        )
        console.print(changes(found))
    for sentence in comparison.sentences():
        console.print(sentence, markup=False)
    if comparison.trust is not None:
        console.print(comparison.trust.sentences[0], markup=False)
    if comparison.whatifs:
        console.print()
        console.print(whatif_text.table(comparison.whatifs))
        for sentence in whatif_text.lead(comparison.whatifs):
            console.print(sentence, markup=False)


def _write(args: argparse.Namespace, comparison: Comparison, results: dict[str, Result]) -> str:
    """Write the result directory; returns where the answer is."""
    from gridsim.cli.folder import Earlier
    from gridsim.files import write_json

    folder = Path(args.out)
    earlier = Earlier.of(folder)
    numbers = comparison.write(folder)
    folders = {label: _folder(label, number) for number, label in enumerate(results, start=1)}
    for label, result in results.items():
        place = folder / folders[label]
        result.write(place, table=args.table, bound=args.bound, warmup=args.warmup, cooldown=args.cooldown)
    page = None if args.no_page else comparison.page(folder / "report.html")
    earlier.remove(kept={*folders.values(), *numbers, *(() if page is None else (page.name,))})
    write_json(folder / "run.json", {**comparison.info, "folders": folders})
    return f"Written: {folder}/" if page is None else f"Page: {page}   (numbers beside it in {folder}/)"


def _folder(label: str, number: int) -> str:
    """Folder of a policy: its label where that is a plain name, ``policy-2`` for the second one and so on otherwise."""
    return label if label.replace("-", "").isalnum() else f"policy-{number}"
