"""Tables of verdicts, printed and stored, and which claims of a list have none."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gridsim.files import write_atomically, write_json
from gridsim.report.verdicts import NAN, Answer, Verdict

__all__ = ["Entry", "left_out", "markdown", "without_numbers", "write"]

Entry = tuple[Verdict, float, Mapping[str, str]]
"""A verdict, the p of Wilcoxon's test of the same changes (NaN for none), and further columns by their names."""

_HEADS = ("id", "claim", "verdict", "effect (95 % interval)", "p", "Wilcoxon p", "n", "what was found")


def without_numbers(claim: str, statement: str, answer: Answer, note: str, n: int = 0) -> Verdict:
    """A verdict that no test of changes decides."""
    return Verdict(claim, statement, answer, NAN, NAN, NAN, NAN, n, note)


def markdown(found: Iterable[Entry], shown: Sequence[str] = ()) -> str:
    """The table as text; the further columns that are *shown* come after the claim."""
    heads = (*_HEADS[:2], *shown, *_HEADS[2:])
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for one, p_wilcoxon, further in found:
        interval = "" if math.isnan(one.low) else f" ({one.low:.3g} to {one.high:.3g})"
        numbers = (_number(one.effect) + interval, _p(one.p), _p(p_wilcoxon), str(one.n or ""))
        more = tuple(further.get(name, "") for name in shown)
        cells = (one.claim, one.statement, *more, f"**{one.verdict}**", *numbers, one.note)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"


def _p(value: float) -> str:
    return "" if math.isnan(value) else "< 0.0001" if value < 1e-4 else f"{value:.2g}"


def write(path: Path, found: Sequence[Entry], columns: Iterable[str]) -> None:
    """The verdicts with these further *columns*, as JSON, or as CSV where the name ends so."""
    names = tuple(columns)
    rows = [_row(one, names) for one in found]
    if path.suffix != ".csv":
        write_json(path, rows)
        return

    def as_csv(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [*Verdict._fields, "p_wilcoxon", *names], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    write_atomically(path, as_csv)


def _row(entry: Entry, names: Sequence[str]) -> dict[str, Any]:
    """A flat mapping; None for what is no number."""
    verdict, p_wilcoxon, further = entry
    numbers = {**verdict._asdict(), "p_wilcoxon": p_wilcoxon}
    return {name: _known(value) for name, value in numbers.items()} | {name: further.get(name) for name in names}


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def left_out(ledger: Path, found: Iterable[Entry]) -> list[str]:
    """Identifiers of a list of claims (column ``id``) that have no verdict."""
    with ledger.open(encoding="utf-8", newline="") as file:
        wanted = [row["id"] for row in csv.DictReader(file)]
    there = {verdict.claim for verdict, *_ in found}
    return [name for name in wanted if name not in there]
