"""Print the verdict on each claim of the three papers, from stored rows, exact cases where they are, and small runs."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gridsim.campaign.deadline import read_rows
from gridsim.errors import GridsimError
from gridsim.report.deadline.claims import CASES, OFFERS, QUESTIONS
from gridsim.report.deadline.readings import READINGS, Judged, answers
from gridsim.report.deadline.study import Study
from gridsim.report.verdict_table import left_out, markdown, without_numbers, write
from gridsim.report.verdicts import Answer
from gridsim.testing.conformance import check, read_cases

SHARED = Path(os.environ.get("GRIDSIM_SHARED", Path(__file__).resolve().parents[4] / "shared"))
GOLDEN = SHARED / "spec" / "golden" / "deadline-admission"


def from_cases(folder: Path) -> Iterator[Judged]:
    """Verdicts of the exact cases of a folder; not testable where it is not there."""
    for claim, (statement, algorithm, numbers) in CASES.items():
        paths = [path for number in numbers.split() for path in sorted(folder.glob(f"{number}-*.json"))]
        if len(paths) < len(numbers.split()):
            yield _judged(claim, statement, "not testable here", f"cases {numbers} not found at {folder}")
            continue
        runs = [(path.stem, one) for path, case in read_cases(paths) for one in _runs(case, algorithm)]
        failed = [name for name, one in runs if check(one).status != "passed"]
        note = f"{len(runs)} runs of {algorithm} in cases {numbers}: "
        note += f"not as expected: {', '.join(dict.fromkeys(failed))}" if failed else "decisions and starts as expected"
        yield _judged(claim, statement, "does not hold" if failed else "holds", note, len(runs))


def _runs(case: Mapping[str, Any], algorithm: str) -> Iterator[dict[str, Any]]:
    """The case with one run alone, for each run of a policy."""
    for run in case["runs"]:
        if run["algorithm"] == algorithm:
            yield {**case, "runs": [run]}


def _judged(claim: str, statement: str, answer: Answer, note: str, n: int = 0) -> Judged:
    return Judged(without_numbers(claim, statement, answer, note, n), math.nan, {})


def in_order(found: Iterable[Judged]) -> list[Judged]:
    """By paper, figures before claims of the text."""
    papers = ("TR", "J03", "P04")

    def place(one: Judged) -> tuple[int, bool, str]:
        paper, number = one.verdict.claim.split("-")
        return papers.index(paper), number.startswith("C"), number

    return sorted(found, key=place)


def main() -> int:
    """Command line; 1 where a claim of the list has no verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, help="folder that run.py filled")
    parser.add_argument("--log", help="take rows of this log in place of those of CTC, as model")
    parser.add_argument("--golden", type=Path, default=GOLDEN, help="folder of the exact cases")
    parser.add_argument("--ledger", type=Path, help="CSV of claims with a column id: each must have a verdict")
    parser.add_argument("--out", type=Path, help="also write the verdicts here: .json, or .csv")
    args = parser.parse_args()
    try:
        study = Study.from_rows(
            [] if args.rows is None else read_rows(args.rows), {"ctc": args.log} if args.log else {}
        )
        found = in_order([*from_cases(args.golden), *answers(study, [*QUESTIONS, OFFERS])])
        missing = [] if args.ledger is None else left_out(args.ledger, found)
    except GridsimError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(markdown(found))
    print("\n" + ", ".join(f"{answer}: {count}" for answer, count in Counter(o.verdict.verdict for o in found).items()))
    if args.out is not None:
        write(args.out, found, READINGS)
    if missing:
        print(f"without a verdict: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
