"""Tables of verdicts."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import pytest

from gridsim_papers.ledger import Entry
from gridsim_papers.verdict_table import (
    COLUMNS,
    Judged,
    as_rows,
    markdown,
    numbers,
    overall,
    rulings,
    without_numbers,
    write,
)
from gridsim_papers.verdicts import Verdict

LEDGER = {
    name: Entry(name, "grid", "section 1", f"claim {name}", decided_by, "needs cases")
    for name, decided_by in (("A", "campaign"), ("B", "exact cases"), ("C", "other work"))
}
FOUND = [
    without_numbers("B", "not testable", "give --cases"),
    Judged(Verdict("A", "holds", 0.81234, 0.7, 0.9, 1e-6, 10, "as claimed"), 0.0019),
]
SEVERAL = [
    Judged(Verdict("A", "holds", 0.5, 0.4, 0.6, 0.01, 6, "one"), 0.03, {"base load": "0.65", "weight factor": ""}),
    Judged(Verdict("A", "not testable", 0.9, 0.7, 1.2, 0.4, 6, "two"), 0.5, {"base load": "as-logged"}),
]


def test_every_claim_of_the_ledger_has_a_ruling_in_its_order() -> None:
    found = rulings(FOUND, LEDGER)
    assert [one.entry.id for one in found] == ["A", "B", "C"]
    assert [one.answer for one in found] == ["holds", "not testable", "not testable"]
    assert found[2].judged[0].verdict.note == "needs cases"


def test_numbers_are_short_and_what_is_none_is_empty() -> None:
    lines = markdown(rulings(FOUND, LEDGER)).splitlines()
    assert lines[2] == "| A | claim A | **holds** | 0.812 (0.7 to 0.9) | < 0.0001 | 0.0019 | 10 | as claimed |"
    assert lines[3] == "| B | claim B | **not testable** |  |  |  |  | give --cases |"
    assert numbers(Verdict("A", "holds", 5480.4, -406.2, 9750.0, 0.24, 4, "")) == ("5,480 (-406 to 9,750)", "0.24")


def test_claims_with_several_circumstances_are_summed_up_first() -> None:
    text = markdown(rulings(SEVERAL, {"A": LEDGER["A"]}))
    summary, _, table = text.partition("\n\n")
    assert summary.splitlines()[2] == (
        "| A | claim A | **holds partly** | base load 0.65: holds; base load as-logged: not testable |"
    )
    assert table.splitlines()[2].startswith("| A | claim A | base load 0.65 | **holds** | 0.5 (0.4 to 0.6) |")


def test_the_weakest_circumstance_stands_for_a_claim() -> None:
    (one,) = rulings(SEVERAL, {"A": LEDGER["A"]})
    assert one.weakest.verdict.effect == 0.9
    assert one.answer == "holds partly"


@pytest.mark.parametrize(
    ("answers", "answer"),
    [
        (["holds", "holds"], "holds"),
        (["holds", "does not hold"], "holds partly"),
        (["holds partly", "does not hold"], "holds partly"),
        (["holds", "not shown"], "holds partly"),
        (["does not hold", "not shown"], "does not hold"),
        (["does not hold", "not testable"], "does not hold"),
        (["not shown", "not testable"], "not shown"),
        (["not testable", "not testable"], "not testable"),
    ],
)
def test_the_answer_of_a_claim_is_that_of_all_circumstances(answers: list[Any], answer: str) -> None:
    assert overall([_judged(one) for one in answers]) == {"A": answer}


def _judged(answer: Any, n: int = 10) -> Judged:
    return Judged(Verdict("A", answer, 0, 0, 0, 0, n, ""))


def test_circumstances_that_were_not_run_do_not_count_where_others_were() -> None:
    assert overall([_judged("holds"), _judged("not testable", 0)]) == {"A": "holds"}


def test_the_margin_of_a_claim_is_printed_and_stored() -> None:
    found = rulings(FOUND, {"A": LEDGER["A"]._replace(margin=0.05)})
    assert "| claim A (margin 5 %) |" in markdown(found)
    assert as_rows(found)[0]["margin"] == 0.05


def test_synthetic_jobs_are_marked_where_they_decide() -> None:
    found = rulings(FOUND, LEDGER, lambda entry: "CTC SP2" if entry.decided_by == "campaign" else "")
    lines = markdown(found).splitlines()
    assert "| synthetic jobs instead of CTC SP2; as claimed |" in lines[2]
    assert "synthetic" not in lines[3]
    assert [row["synthetic"] for row in as_rows(found)] == ["CTC SP2", "", ""]


def test_verdicts_are_stored_with_every_digit(tmp_path: Path) -> None:
    write(tmp_path / "found.csv", as_rows(rulings(FOUND, LEDGER)))
    with (tmp_path / "found.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [row["verdict"] for row in rows] == ["holds", "not testable", "not testable"]
    assert [row["effect"] for row in rows] == ["0.81234", "", ""]
    assert math.isclose(float(rows[0]["p"]), 1e-6)


def test_a_row_stands_for_each_circumstance() -> None:
    rows = as_rows(rulings(SEVERAL, {"A": LEDGER["A"]}))
    assert [row["circumstances"] for row in rows] == ["base load 0.65", "base load as-logged"]
    assert {row["overall"] for row in rows} == {"holds partly"}
