"""Print the verdict on each claim about moldable jobs, from stored rows, exact cases where they are, and properties.

Each is judged at both base loads, and at weight factors 1 and 2 where the combined scheme leaves that open. Effects are
ratios of mean responses, but for shares, counts and correlations, which the last column names; p is corrected by Holm's
method over the categories of a scheme at a setting.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gridsim.campaign.moldable import read_rows
from gridsim.errors import GridsimError
from gridsim.report.deadline.recipes import read_recipes
from gridsim.report.moldable.claims import COLUMNS, EXACT, QUESTIONS, Judged, answers, figures, overall
from gridsim.report.moldable.figures import CONDITIONS
from gridsim.report.moldable.study import Study
from gridsim.report.verdict_table import left_out, markdown, write
from gridsim.report.verdicts import Verdict
from gridsim.testing.conformance import check, read_cases

RECIPES = Path(__file__).with_name("figures.toml")
SHARED = Path(os.environ.get("GRIDSIM_SHARED", Path(__file__).resolve().parents[4] / "shared"))
GOLDEN = SHARED / "spec" / "golden" / "moldable"


def from_code(folder: Path) -> Iterator[Judged]:
    """Verdicts of properties of the code, and of the exact cases of a folder where it is there."""
    for claim in EXACT:
        found = claim.judge()
        cases = [(path.stem, check(case).status) for path, case in read_cases(sorted(folder.glob(f"{claim.cases}-*")))]
        failed = [name for name, status in cases if status != "passed"]
        note = f"{found.note}; case {claim.cases} "
        note += "as expected" if cases and not failed else "not as expected" if failed else f"not found at {folder}"
        answer = "does not hold" if failed else found.answer
        verdict = Verdict(claim.id, claim.statement, answer, found.effect, math.nan, math.nan, math.nan, found.n, note)
        yield Judged(verdict, math.nan, {})


def in_order(found: Sequence[Judged]) -> list[Judged]:
    """Figures, claims of the paper, ours."""
    return sorted(found, key=lambda one: ("FMX".index(one.verdict.claim[0]), one.verdict.claim))


def summary(found: Sequence[Judged]) -> str:
    """A line a claim: its answer over all circumstances, and in each."""
    whole = overall(found)
    lines = ["| id | claim | verdict | in which circumstances |", "|---|---|---|---|"]
    for claim, answer in whole.items():
        own = [one for one in found if one.verdict.claim == claim]
        answers = {one.verdict.verdict for one in own}
        told = "all" if len(answers) == 1 else "; ".join(f"{_where(one.where)}: {one.verdict.verdict}" for one in own)
        lines.append(f"| {claim} | {own[0].verdict.statement} | **{answer}** | {told} |")
    return "\n".join(lines)


def _where(where: Mapping[str, str]) -> str:
    load, factor = (where.get(name, "") for name in COLUMNS)
    return load.replace("-", " ") + (f", weight factor {factor}" if factor else "")


def main() -> int:
    """Command line; 1 where a claim of the list has no verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, help="folder that run.py filled")
    parser.add_argument("--log", help="take rows of this log in place of those of SDSC and CTC, as model")
    parser.add_argument("--golden", type=Path, default=GOLDEN, help="folder of the exact cases")
    parser.add_argument("--ledger", type=Path, help="CSV of claims with a column id: each must have a verdict")
    parser.add_argument("--out", type=Path, help="also write the verdicts here: .json, or .csv")
    args = parser.parse_args()
    try:
        stands_in = dict.fromkeys(("ctc", "sdsc"), args.log) if args.log else {}
        study = Study.from_rows([] if args.rows is None else read_rows(args.rows), stands_in)
        questions = [*figures(read_recipes(RECIPES, CONDITIONS)), *QUESTIONS]
        found = in_order([*from_code(args.golden), *answers(study, questions)])
        missing = [] if args.ledger is None else left_out(args.ledger, found)
    except GridsimError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(summary(found), markdown(found, COLUMNS), sep="\n\n")
    print("\n" + ", ".join(f"{answer}: {count}" for answer, count in Counter(overall(found).values()).items()))
    if args.out is not None:
        write(args.out, found, COLUMNS)
    if missing:
        print(f"without a verdict: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
