"""The ledgers of claims: every claim is stated once, and has a judge or a reason for having none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gridsim_papers.citations import CITATIONS
from gridsim_papers.deadline import claims as deadline
from gridsim_papers.deadline.recipes import read_recipes
from gridsim_papers.grid.claims import CLAIMS, INDUSTRIAL_CLAIMS
from gridsim_papers.ledger import read_ledger
from gridsim_papers.moldable import claims as moldable
from gridsim_papers.moldable.figures import CONDITIONS
from gridsim_papers.paper import RECIPES

FAMILIES = ("grid", "deadline", "moldable")


def ids(family: str, *decided_by: str) -> set[str]:
    return {entry.id for entry in read_ledger(family).values() if entry.decided_by in decided_by}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_claim_is_stated_placed_and_of_a_known_paper(family: str) -> None:
    ledger = read_ledger(family)
    assert len(ledger) > 50
    for entry in ledger.values():
        assert entry.paper in CITATIONS
        assert entry.where
        assert entry.statement
        assert entry.decided_by in ("campaign", "industrial log", "exact cases", "the code", "other work")
        assert entry.what or entry.decided_by not in ("exact cases", "other work")


@pytest.mark.parametrize("family", FAMILIES)
def test_no_claim_of_the_list_is_left_out(family: str, claims: Callable[[str], list[dict[str, str]]]) -> None:
    assert list(read_ledger(family)) == [row["id"] for row in claims(family)]


def test_a_ledger_can_be_read_for_one_paper() -> None:
    papers = {name: read_ledger("deadline", name) for name in ("qops-report", "qops", "service")}
    assert [len(ledger) for ledger in papers.values()] == [81, 17, 22]
    assert read_ledger("deadline", "grid") == {}


def test_grid_judges_are_those_of_the_ledger() -> None:
    assert {claim.id for claim in CLAIMS} == ids("grid", "campaign", "the code")
    assert {claim.id for claim in INDUSTRIAL_CLAIMS} == ids("grid", "industrial log")


def test_deadline_judges_are_those_of_the_ledger() -> None:
    assert {question.id for question in deadline.QUESTIONS} == ids("deadline", "campaign")
    assert {deadline.OFFERS.id} == ids("deadline", "the code")


def test_moldable_judges_are_those_of_the_ledger() -> None:
    recipes = read_recipes(RECIPES / "moldable-figures.toml", CONDITIONS)
    asked = [*moldable.figures(recipes), *moldable.QUESTIONS]
    assert {question.id for question in asked} == ids("moldable", "campaign")
    assert set(moldable.EXACT) == ids("moldable", "the code")
