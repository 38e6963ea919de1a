"""Draw the 14 figures of the paper on moldable jobs from stored rows, by the recipes beside this file.

Figures whose rows are not there are named with the experiment to run, and the others drawn.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gridsim.campaign.moldable import read_rows
from gridsim.errors import GridsimError
from gridsim.report.deadline.figures import draw_all
from gridsim.report.deadline.lines import StoredRows
from gridsim.report.deadline.recipes import chosen, read_recipes
from gridsim.report.moldable.figures import CONDITIONS, draw

RECIPES = Path(__file__).with_name("figures.toml")


def main() -> int:
    """Command line; 2 where no figure could be drawn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", required=True, type=Path, help="folder of the stored rows")
    parser.add_argument("--out", required=True, type=Path, help="folder of the figures")
    parser.add_argument("--figure", action="append", default=[], help="number; more than once for several")
    parser.add_argument("--log", help="take rows of this log in place of the paper's own: sdsc, ctc or model")
    parser.add_argument("--format", choices=("svg", "png"), default="png")
    args = parser.parse_args()
    try:
        recipes = chosen(read_recipes(RECIPES, CONDITIONS), (), args.figure)
        stored = StoredRows(read_rows(args.rows), recipes[0].usual, CONDITIONS)
    except GridsimError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if args.log:
        recipes = [recipe.of_log(args.log) for recipe in recipes]
    drawn, missing = draw_all(recipes, lambda recipe: draw(recipe, stored), args.out, args.format)
    for message in missing:
        print(f"not drawn: {message}", file=sys.stderr)
    print(f"figures drawn: {drawn}, not drawn: {len(missing)}")
    return 0 if drawn or not missing else 2


if __name__ == "__main__":
    sys.exit(main())
