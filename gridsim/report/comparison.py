"""Several policies on one workload, compared, in every form in which that is told.

The numbers are in `evidence`, words in `sentences`, rows in `tables`, pictures in `figures`, the page in `page`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

from gridsim.files import plain, write_json, write_text
from gridsim.metrics.compare import Difference
from gridsim.metrics.summary import DEADLINE_METRICS, GRID_METRICS, METRICS
from gridsim.report import curves, robustness, sentences, tables, whatif_text
from gridsim.report.evidence import Evidence, GroupRow
from gridsim.report.trust import trust

__all__ = ["Comparison"]

_KNOWN = METRICS | GRID_METRICS | DEADLINE_METRICS


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Evidence):
    """What several policies did with one workload, and the ways to tell it; attributes as `Evidence` has them."""

    def table(self) -> list[tables.Row]:
        """Rows of the table, best values marked."""
        return tables.rows(self.metrics, moldable=self.of_moldable)

    def by_weight(self) -> list[robustness.Category]:
        """Of moldable jobs, changes of the mean response by weight category; nothing of others."""
        return robustness.categories(self)

    def sentences(self) -> list[str]:
        """Who wins, who loses, by how much and how sure that is; then what to know about these numbers."""
        return [*sentences.answer(self), *sentences.caveats(self)]

    def page(self, path: str | Path) -> Path:
        """Write the self-contained HTML page, atomically; returns its path.

        Below a picture it names the file with its numbers, and links to it if `write` put it in the same folder before.
        """
        from gridsim.report.page import render  # matplotlib and Jinja2: only where a page is made

        write_text(path, render(self, beside={file.name for file in Path(path).parent.glob("*.csv")}))
        return Path(path)

    def write(self, folder: str | Path) -> set[str]:
        """Write ``metrics.json`` and the numbers as tidy CSV files, one value a cell; returns their names.

        ``metrics.csv``, ``differences.csv``, ``groups.csv``, those of `gridsim.report.curves.FILES` that there are
        numbers for, and ``whatif.csv`` where changes were asked.
        """
        folder = Path(folder)
        written = {"metrics.json", "metrics.csv", "differences.csv", "groups.csv"}
        values = [
            (label, name, value, _KNOWN[name].unit)
            for label, numbers in self.metrics.items()
            for name, value in numbers.items()
        ]
        write_text(folder / "metrics.csv", _csv(("policy", "metric", "value", "unit"), values))
        for name, kind, rows in (
            ("differences", Difference, [astuple(row) for row in self.differences]),
            ("groups", GroupRow, [astuple(row) for row in self.groups]),
        ):
            write_text(folder / f"{name}.csv", _csv([field.name for field in fields(kind)], rows))
        for file, columns, numbers in curves.tables(self):
            write_text(folder / file, _csv(columns, numbers))
            written.add(file)
        if self.whatifs:
            write_text(folder / whatif_text.FILE, whatif_text.csv_text(self.whatifs))
            written.add(whatif_text.FILE)
        write_json(folder / "metrics.json", self.metrics)
        return written

    def to_dict(self) -> dict[str, Any]:
        """Everything in JSON's types, as ``--json`` prints it; numbers that there are not are None."""
        found: dict[str, Any] = plain(
            {
                "sentences": self.sentences(),
                "baseline": self.baseline,
                "metrics": self.metrics,
                "differences": [asdict(row) for row in self.differences],
                "groups": [asdict(row) for row in self.groups],
                "trust": None if (known := trust(self)) is None else asdict(known),
                "what_if": [found.to_dict() for found in self.whatifs],
                "bound": self.bound,
                "warmup": self.warmup,
                "cooldown": self.cooldown,
                "info": self.info,
            }
        )
        return found


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """CSV text; NaN and None as empty cells."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([["" if value is None or value != value else value for value in row] for row in rows])
    return text.getvalue()
