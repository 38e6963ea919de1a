"""Print the verdict on each claim of the paper, from stored rows and, where they are there, the golden cases."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from gridsim.campaign.grid import read_rows
from gridsim.campaign.industrial import KIND
from gridsim.report.grid_claims import CLAIMS, ELSEWHERE, INDUSTRIAL_CLAIMS
from gridsim.report.verdict_table import without_numbers
from gridsim.report.verdicts import Verdict, verdicts
from gridsim.testing.conformance import check, read_cases

SHARED = Path(os.environ.get("GRIDSIM_SHARED", Path(__file__).resolve().parents[4] / "shared"))
GOLDEN = SHARED / "spec" / "golden" / "grid-dag"

BY_CASES = {
    "G-01": ("Figure 3, schedule A, digit for digit", "m1-figure3-schedule-a"),
    "G-02": ("Figure 3, schedule B, digit for digit", "m2-figure3-schedule-b"),
    "G-03": ("Better packing raises all but cumulative completion", "m1-figure3-schedule-a m2-figure3-schedule-b"),
    "G-04": ("Figure 4, schedule A, digit for digit", "m3-figure4-schedule-a"),
    "G-05": ("Figure 4, schedule B, digit for digit", "m4-figure4-schedule-b"),
    "G-06": ("FIFO Task interleaves jobs, FIFO Job does not", "s02-fig4-fifo-task s02-fig4-fifo-job"),
    "G-07": ("Both schedules of Figure 4 are equally fair in SLR", "m3-figure4-schedule-a m4-figure4-schedule-b"),
    "G-08": ("SLR alone tells unused parallelism from a chain", "m5-figure5"),
    "G-16": ("The +1 of P-SLR separates jobs that arrive together", "s08-p-slr-plus-one"),
    "G-17": ("Tasks off the critical path yield", "s08-p-slr-below-one"),
}
"""Claims that exact cases decide: they hold where the cases pass."""

STARVATION = ("P-SLR is starvation-free", "s11-p-slr-starvation")
"""The case shows the contrary under sustained overload by shorter jobs, so the claim fails where it passes."""


def from_cases(folder: Path) -> Iterator[Verdict]:
    """Verdicts of the golden cases of a folder; not testable where it is not there."""
    claims = {**BY_CASES, "G-80": STARVATION}
    for claim, (statement, names) in claims.items():
        paths = [folder / f"{name}.json" for name in names.split()]
        if not all(path.exists() for path in paths):
            note = f"golden cases not found at {folder}"
            yield without_numbers(claim, statement, "not testable here", note)
            continue
        passed = all(check(case).status == "passed" for _, case in read_cases([str(path) for path in paths]))
        refuted = passed == (claim == "G-80")
        note = f"golden {', '.join(names.split())}: {'passed' if passed else 'failed'}"
        yield without_numbers(claim, statement, "does not hold" if refuted else "holds", note)


def elsewhere() -> Iterator[Verdict]:
    """Claims that nothing stored decides."""
    for claim, (statement, note) in ELSEWHERE.items():
        yield without_numbers(claim, statement, "not testable here", note)


def markdown(found: Sequence[Verdict]) -> str:
    """The verdict table."""
    lines = ["| id | claim | verdict | effect | interval | p | n | note |", "|---|---|---|---|---|---|---|---|"]
    for one in sorted(found, key=lambda one: (one.claim.startswith("G-B"), len(one.claim), one.claim)):
        interval = "" if math.isnan(one.low) else f"{one.low:.3g} to {one.high:.3g}"
        cells = (one.claim, one.statement, one.verdict, _number(one.effect), interval, _p(one.p), one.n or "", one.note)
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"


def _p(value: float) -> str:
    return "" if math.isnan(value) else "< 0.0001" if value < 1e-4 else f"{value:.2g}"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, help="folder that run.py filled")
    parser.add_argument("--industrial", type=Path, help="folder that industrial.py filled")
    parser.add_argument("--golden", type=Path, default=GOLDEN, help="folder of the golden cases")
    args = parser.parse_args()
    rows = [] if args.rows is None else read_rows(args.rows)
    log = [] if args.industrial is None else [row for row in read_rows(args.industrial) if row["kind"] == KIND]
    found = [*from_cases(args.golden), *verdicts(rows, CLAIMS), *verdicts(log, INDUSTRIAL_CLAIMS), *elsewhere()]
    print(markdown(found))
    counts = {answer: sum(one.verdict == answer for one in found) for answer in dict.fromkeys(o.verdict for o in found)}
    print("\n" + ", ".join(f"{answer}: {count}" for answer, count in counts.items()))


if __name__ == "__main__":
    main()
