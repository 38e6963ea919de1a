"""``gridsim reproduce``: a published study done again, to figures, tables and a verdict on each of its claims."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsim.errors import InputError
from gridsim.report.reproduction.citations import CITATIONS

if TYPE_CHECKING:
    from gridsim.campaign.run import Finished, Progress
    from gridsim.cli.progress import RunsProgress
    from gridsim.report.reproduction.reproduce import Reproduced
    from gridsim.report.verdict_table import Ruling

__all__ = ["add_arguments", "run"]

_HEADS = ("id", "verdict", "effect", "p", "n", "claim")
_STYLES = {"holds": "green", "holds partly": "yellow", "does not hold": "red", "not testable here": "dim"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "papers:\n" + "\n".join(_cited())
    parser.add_argument("paper", nargs="?", metavar="PAPER", help="one of those below (default: all of them)")
    parser.add_argument("--figure", metavar="N", help="draw this figure alone, and run only what it needs")
    parser.add_argument(
        "--scale",
        default="small",
        help="tiny (seconds), small (an hour or two for all), full (as published) (default: %(default)s)",
    )
    parser.add_argument(
        "--variant",
        default="",
        metavar="NAME",
        help="run otherwise: loguniform, redraw (grid), ctc-338 (the others)",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the archive's logs")
    parser.add_argument(
        "--cases",
        type=Path,
        metavar="DIR",
        help="folder of exact cases, which decide some claims (default: those that come with gridsim)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("gridsim-reproduction"), metavar="DIR", help="folder (default: %(default)s)"
    )
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument("--format", choices=("png", "svg"), default="png", help="of figures (default: %(default)s)")


def _cited() -> Iterator[str]:
    for name, citation in CITATIONS.items():
        yield textwrap.fill(f"{name:13}{citation}", 100, initial_indent="  ", subsequent_indent=" " * 15)


def run(args: argparse.Namespace) -> int:
    """Run, draw, tell; 1 where a figure could not be made."""
    from gridsim.report.reproduction.cases import Cases  # numpy, kernels: not needed for --help
    from gridsim.report.reproduction.paper import Order, chosen
    from gridsim.report.reproduction.papers import PAPERS
    from gridsim.report.reproduction.reproduce import draw_alone, reproduce, write_page
    from gridsim.testing.conformance import CASES

    if args.workers < 1:
        raise InputError(f"{args.workers} workers; expected at least 1", field="--workers")
    if args.data is not None and not args.data.is_dir():
        raise InputError("is no folder; expected one with the archive's logs", path=args.data, field="--data")
    papers = chosen(PAPERS, args.paper)
    order = Order(args.scale, args.data, args.variant)
    if args.figure is not None and args.paper is None:
        raise InputError(f"figure {args.figure} of which paper? known: {', '.join(PAPERS)}", field="--figure")
    more: dict[str, Any] = {"workers": args.workers, "kind": args.format}
    for paper in papers:  # what is wrong is told before anything runs
        paper.family.plan(paper, order, None if args.figure is None else paper.asked(args.figure))
    missing = 0
    for paper in papers:
        with _Bars() as bars:
            if args.figure is not None:
                found = draw_alone(paper, order, args.figure, args.out, told=bars.told, **more)
            else:
                cases = Cases(args.cases or CASES, _passes)
                found = reproduce(paper, order, args.out, cases=cases, told=bars.told, **more)
        _tell(found, args.out)
        missing += len(found.not_made)
    if args.figure is None:
        print(f"\nPage: {write_page(args.out)}   (verdicts in {args.out}/verdicts.csv, figures in {args.out}/figures/)")
    return 1 if missing else 0


def _passes(case: Mapping[str, Any]) -> bool:
    from gridsim.testing.conformance import check

    return check(case).status == "passed"


class _Bars:
    """A bar for each store that is filled, one after the other."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._store = ""
        self._bar: RunsProgress | None = None

    def __enter__(self) -> _Bars:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def told(self, store: str, done: Finished, at: Progress) -> None:
        """Show that a unit came back."""
        if store != self._store or self._bar is None:
            from gridsim.cli.progress import RunsProgress

            self._open.close()
            self._store, self._bar = store, self._open.enter_context(RunsProgress())
        self._bar.told(done, at)


def _tell(found: Reproduced, out: Path) -> None:
    """What is not there, which figures were made, and the verdicts."""
    if found.plan.synthetic:
        print(f"{found.name}: synthetic jobs stand in for {found.plan.synthetic}")
    for absent in found.plan.absent:
        how = f"; get it with: gridsim workload fetch {absent.fetch}" if absent.fetch else ""
        print(f"  not there: {absent.name} ({absent.file} in the folder of --data){how}")
    if found.failed:
        print(f"{found.name}: {found.failed} runs failed; the next call tries them again", file=sys.stderr)
    for one in found.drawn:
        if not one.made:
            print(f"{found.name}: figure {one.number} was not made: {one.note}", file=sys.stderr)
        elif not found.rulings:
            print(out / one.file if one.file else f"{one.caption}: {one.note}")
    if found.rulings:
        made = sum(bool(one.file) for one in found.drawn)
        print(f"\n{found.name}: {made} figures in {out}/figures/\n")
        _table(found.rulings)
        counts = Counter[str](one.answer for one in found.rulings)
        print("\n" + ", ".join(f"{answer}: {counts[answer]}" for answer in _STYLES if counts[answer]))


def _table(rulings: Sequence[Ruling]) -> None:
    from gridsim.cli.terminal import Terminal  # rich: only where a table is printed

    console = Terminal()
    lines = [_line(one) for one in rulings]
    if not console.is_terminal:
        widths = [max(len(line[at]) for line in (_HEADS, *lines)) for at in range(len(_HEADS) - 1)]
        for line in (_HEADS, *lines):
            print("  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in _HEADS:
        table.add_column(head, overflow="fold", no_wrap=head != _HEADS[-1])
    for line in lines:
        table.add_row(*(Text(cell, _STYLES[line[1]] if at == 1 else "") for at, cell in enumerate(line)))
    console.print(table)


def _line(one: Ruling) -> tuple[str, ...]:
    """A claim: its answer, and the numbers of the circumstance that supports it least."""
    from gridsim.report.verdict_table import numbers

    weakest = one.weakest.verdict
    statement = one.entry.statement + (" [synthetic jobs]" if one.synthetic and weakest.n else "")
    effect, p = numbers(weakest)
    return one.entry.id, one.answer, effect, p, str(weakest.n or ""), statement
