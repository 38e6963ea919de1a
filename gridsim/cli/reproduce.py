"""Command ``gridsim reproduce``: figures, tables and verdicts on the claims of a published study."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsim.campaign.paper import Claim, Order, Paper, Reproduced, paper_named, papers, reproduce
from gridsim.errors import InputError
from gridsim.workers import check_count

if TYPE_CHECKING:
    from gridsim.campaign.run import Finished, Progress
    from gridsim.cli.terminal import RunsProgress


_HEADS = ("id", "verdict", "effect", "p", "n", "claim")
_STYLES = {
    "holds": "green",
    "holds partly": "yellow",
    "not shown": "cyan",
    "does not hold": "red",
    "not testable": "dim",
}


def describe(parser: argparse.ArgumentParser) -> None:
    """List the papers below the options."""
    parser.epilog = "papers:\n" + "\n".join(_cited(papers()))


def _cited(known: Mapping[str, Paper]) -> Iterator[str]:
    for name, paper in known.items():
        yield textwrap.fill(f"{name:13}{paper.citation}", 78, initial_indent="  ", subsequent_indent=" " * 15)


def run(args: argparse.Namespace) -> int:
    """Run, draw and print the results; return 1 if a figure could not be made."""
    check_count(args.workers)
    known = papers()
    if args.list:
        _list(known)
        return 0
    if not known:
        raise InputError("no installed package contains papers; install gridsim again", field="paper")
    if args.figure is not None and args.paper is None:
        raise InputError(f"figure {args.figure} needs a paper; known: {', '.join(known)}", field="--figure")
    wanted = known if args.paper is None else [args.paper]
    for paper in wanted:  # reports errors before anything runs
        paper_named(paper).check(Order(args.scale, args.data, args.variant), args.figure)
    more: dict[str, Any] = {name: getattr(args, name) for name in ("figure", "scale", "data", "variant", "cases")}
    more |= {"workers": args.workers, "kind": args.figures}
    missing, page = 0, None
    for paper in wanted:
        with _Bars() as bars:
            found = reproduce(paper, args.out, listener=bars.show, **more)
        _tell(found, args.out)
        missing, page = missing + len(found.not_made), found.page
    if page is not None:
        print(f"\nPage: {page}   (verdicts in {args.out}/verdicts.csv, figures in {args.out}/figures/)")
    return 1 if missing else 0


def _list(known: Mapping[str, Paper]) -> None:
    for paper, line in zip(known.values(), _cited(known), strict=True):
        print(line.removeprefix("  "))
        if paper.variants:
            print(f"{'':15}variants: {', '.join(paper.variants)}")


class _Bars:
    """Progress bars of several stores, one after the other."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._store = ""
        self._bar: RunsProgress | None = None

    def __enter__(self) -> _Bars:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def show(self, store: str, done: Finished, at: Progress) -> None:
        """Show a finished unit."""
        if store != self._store or self._bar is None:
            from gridsim.cli.terminal import RunsProgress

            self._open.close()
            self._store, self._bar = store, self._open.enter_context(RunsProgress())
        self._bar.show(done, at)


def _tell(found: Reproduced, out: Path) -> None:
    """Print missing results, figures and verdicts."""
    if found.synthetic:
        print(f"{found.name}: synthetic jobs replace {found.synthetic}")
    for absent in found.absent:
        how = f"; get it with: gridsim workload fetch {absent.fetch}" if absent.fetch else ""
        print(f"  missing: {absent.name} ({absent.file} in the folder of --data){how}")
    if found.failed:
        print(f"{found.name}: {found.failed} runs failed; the next call repeats them", file=sys.stderr)
    for one in found.drawn:
        if not one.made:
            print(f"{found.name}: figure {one.number} was not drawn: {one.note}", file=sys.stderr)
        elif not found.claims:
            print(out / one.file if one.file else f"{one.caption}: {one.note}")
    if found.claims:
        made = sum(bool(one.file) for one in found.drawn)
        print(f"\n{found.name}: {made} figures in {out}/figures/\n")
        _table(found.claims)
        counts = Counter[str](one.answer for one in found.claims)
        print("\n" + ", ".join(f"{answer}: {counts[answer]}" for answer in _STYLES if counts[answer]))


def _table(claims: Sequence[Claim]) -> None:
    from gridsim.cli.terminal import Terminal  # rich: only where a table is printed

    console = Terminal()
    if not console.is_terminal:
        widths = [max(len(line[at]) for line in (_HEADS, *claims)) for at in range(len(_HEADS) - 1)]
        for line in (_HEADS, *claims):
            print("  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in _HEADS:
        table.add_column(head, overflow="fold", no_wrap=head != _HEADS[-1])
    for line in claims:
        table.add_row(*(Text(cell, _STYLES[line[1]] if at == 1 else "") for at, cell in enumerate(line)))
    console.print(table)
