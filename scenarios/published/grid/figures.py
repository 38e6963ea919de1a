"""Draw Figures 3 to 14 of the paper and print its Tables 3 to 5, from stored rows and one function each."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gridsim.campaign.grid import read_rows
from gridsim.campaign.industrial import KIND
from gridsim.files import write_atomically
from gridsim.report import campaign_figures, schedule_figures

INDUSTRIAL = ("figure-13a", "figure-13b", "figure-13c", "figure-14", "table-5")


def draw(figures: Mapping[str, Callable[[], Any]], folder: Path) -> None:
    """Write each figure as PNG, and tell where."""
    for name, make in figures.items():
        path = folder / f"{name}.png"
        figure = make()
        write_atomically(path, lambda place, figure=figure: figure.savefig(place, format="png", dpi=110, facecolor="w"))
        print(path)


def from_rows(rows: Sequence[Mapping[str, Any]], *, industrial: bool) -> dict[str, Callable[[], Any]]:
    """Figures of the campaign, or of the industrial log."""
    return {
        name: lambda make=make: make(rows)
        for name, make in campaign_figures.FIGURES.items()
        if (name in INDUSTRIAL) == industrial
    }


def text_of(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A table as text."""
    table = campaign_figures.TABLES[name](rows)
    lines = campaign_figures.dominance_text(table) if name != "table-5" else _lines(table)
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def _lines(table: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    return [list(table[0]), *([_cell(value) for value in row.values()] for row in table)]


def _cell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:.5g}"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, help="folder that run.py filled")
    parser.add_argument("--industrial", type=Path, help="folder that industrial.py filled")
    parser.add_argument("--out", required=True, type=Path, help="folder of the figures")
    args = parser.parse_args()
    draw(schedule_figures.FIGURES, args.out)
    tables: dict[str, Sequence[Mapping[str, Any]]] = {}
    if args.rows is not None:
        rows = read_rows(args.rows)
        draw(from_rows(rows, industrial=False), args.out)
        tables |= {"table-3": rows, "table-4": rows}
    if args.industrial is not None:
        rows = [row for row in read_rows(args.industrial) if row["kind"] == KIND]
        draw(from_rows(rows, industrial=True), args.out)
        tables["table-5"] = rows
    for name, rows in tables.items():
        print(f"\n{name}\n{text_of(name, rows)}")


if __name__ == "__main__":
    main()
