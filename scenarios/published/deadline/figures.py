"""Draw the figures of the three papers from stored rows, by the recipes beside this file.

Figures whose rows are not there are named with the experiment to run, and the others drawn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from gridsim.campaign.deadline import read_rows
from gridsim.errors import GridsimError, InputError
from gridsim.report.deadline_figures import draw, save
from gridsim.report.deadline_lines import StoredRows
from gridsim.report.deadline_recipes import Recipe, figure_name, read_recipes

RECIPES = Path(__file__).with_name("figures.toml")


def chosen(recipes: Mapping[str, Recipe], papers: Iterable[str], numbers: Iterable[str]) -> list[Recipe]:
    """Figures of these papers with these numbers; of all where none are named.

    Raises
    ------
    InputError
        When there are none.
    """
    papers, numbers = tuple(papers), tuple(numbers)
    found = [
        recipe
        for name, recipe in recipes.items()
        if (not papers or recipe.paper in papers)
        and (not numbers or name in {figure_name(recipe.paper, number) for number in numbers})
    ]
    if not found:
        asked = " ".join(("figure", *numbers, "of", ", ".join(papers) or "any paper"))
        raise InputError(f"there is no {asked}; see {RECIPES.name}")
    return found


def draw_all(recipes: Iterable[Recipe], stored: StoredRows, out: Path, kind: str) -> tuple[int, list[str]]:
    """Draw what can be, and tell where; how many these are, and what is missing for the others."""
    drawn, missing = 0, []
    for recipe in recipes:
        if recipe.golden:
            print(f"{recipe.name}: {recipe.title}; golden cases {' '.join(recipe.golden)} of the kind schedule")
            continue
        try:
            figure = draw(recipe, stored)
        except InputError as error:
            missing.append(str(error))
            continue
        path = out / f"{recipe.name}.{kind}"
        save(figure, path)
        drawn += 1
        print(path)
    return drawn, missing


def main() -> int:
    """Command line; 2 where no figure could be drawn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", required=True, type=Path, help="folder of the stored rows")
    parser.add_argument("--out", required=True, type=Path, help="folder of the figures")
    parser.add_argument("--paper", action="append", default=[], help="TR, J03 or P04; more than once for several")
    parser.add_argument("--figure", action="append", default=[], help="number; more than once for several")
    parser.add_argument("--log", help="take rows of this log in place of the papers' own, as model")
    parser.add_argument("--format", choices=("svg", "png"), default="png")
    args = parser.parse_args()
    try:
        recipes = chosen(read_recipes(RECIPES), args.paper, args.figure)
        stored = StoredRows(read_rows(args.rows), recipes[0].usual)
    except GridsimError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if args.log:
        recipes = [recipe.of_log(args.log) for recipe in recipes]
    drawn, missing = draw_all(recipes, stored, args.out, args.format)
    for message in missing:
        print(f"not drawn: {message}", file=sys.stderr)
    print(f"figures drawn: {drawn}, not drawn: {len(missing)}")
    return 0 if drawn or not missing else 2


if __name__ == "__main__":
    sys.exit(main())
