"""The rule of verdicts, and verdicts of the papers with and without rows and exact cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsim.campaign.paper import Order
from gridsim.errors import InputError
from gridsim.testing.conformance import CASES, check
from gridsim_papers.cases import Cases
from gridsim_papers.paper import Plan
from gridsim_papers.papers import PAPERS
from gridsim_papers.reproduce import rule
from gridsim_papers.verdicts import Part, decided

WITHOUT_ROWS = ("the code",)
"""Evidence for claims that need neither rows nor cases."""


SURE = (0.01, 0.99)


@pytest.mark.parametrize(
    ("tests", "answer", "shown"),
    [
        ([SURE, SURE, SURE], "holds", "3 of 3 shown"),
        ([SURE, (0.2, 0.8), (0.3, 0.7)], "not shown", "1 of 3 shown, 2 open"),
        ([SURE, (0.2, 0.8)], "holds partly", "1 of 2 shown, 1 open"),
        ([(0.9, 0.012), SURE, (0.3, 0.7)], "does not hold", "1 of 3 shown, 1 refuted, 1 open"),
        ([(0.9, 0.04), (0.6, 0.4)], "not shown", "0 of 2 shown, 2 open"),
        ([(0.04, 0.96), (0.04, 0.96)], "holds", "2 of 2 shown"),
    ],
)
def test_a_claim_is_decided_by_the_tests_of_its_parts(
    tests: list[tuple[float, float]], answer: str, shown: str
) -> None:
    found = decided([Part(str(at), a, b, 10) for at, (a, b) in enumerate(tests)])
    assert (found.answer, found.note.partition(";")[0]) == (answer, shown)


def test_holms_correction_is_over_all_parts_of_a_claim() -> None:
    """The reported p is that of the least supported part: corrected, unless all parts must be true and are."""
    assert decided([Part("", 0.9, 0.04, 10), Part("", 0.6, 0.4, 10)]).p == pytest.approx(1.0)
    assert decided([Part("", 0.9, 0.012, 10), Part("", *SURE, 10), Part("", 0.3, 0.7, 10)]).p == pytest.approx(0.036)
    assert decided([Part("", 0.04, 0.96, 10), Part("", 0.01, 0.99, 10)]).p == pytest.approx(0.04)


def test_two_units_are_not_testable() -> None:
    assert decided([Part("", *SURE, 2)]).answer == "not testable"
    assert decided([Part("", *SURE, 3), Part("", *SURE, 2)]).answer == "not testable"


def test_one_refuted_part_refutes_a_universal_claim_alone() -> None:
    parts = [Part("", *SURE, 10), Part("", *SURE, 10), Part("", 0.99, 0.01, 10)]
    assert decided(parts).answer == "holds partly"
    assert decided(parts, universal=True).answer == "does not hold"


def test_a_claim_without_parts_is_not_decided() -> None:
    with pytest.raises(InputError, match="no row decides"):
        decided([])


def passes(case: object) -> bool:
    return check(case).status == "passed"  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [name for name in PAPERS if name != "moldable"])
def test_without_rows_and_cases_every_claim_says_what_it_lacks(name: str) -> None:
    paper = PAPERS[name]
    results = paper.family.results(paper, {}, Plan([]))
    found = {one.entry.id: one for one in rule(paper, results, Plan([]), Cases())}
    assert list(found) == list(paper.ledger)
    for one in found.values():
        if one.entry.decided_by not in WITHOUT_ROWS:
            assert one.answer == "not testable"
            assert one.weakest.verdict.note
        if one.entry.decided_by == "exact cases":
            assert one.weakest.verdict.note == "give --cases"


def test_a_log_does_not_agree_with_itself() -> None:
    paper = PAPERS["qops-report"]
    plan = Plan([], {"ctc": "CTC SP2", "sdsc": "SDSC SP2"})
    found = {one.verdict.claim: one.verdict for one in paper.family.results(paper, {}, plan).judged()}
    assert found["TR-C12"].note == "the same synthetic jobs stand in for both logs"


@pytest.mark.parametrize(("name", "failing"), [("grid", {"G-80"}), ("qops", set()), ("service", set())])
def test_exact_cases_decide_their_claims(name: str, failing: set[str]) -> None:
    paper = PAPERS[name]
    cases = Cases(CASES, passes)
    found = {one.verdict.claim: one.verdict.verdict for one in paper.family.by_cases(paper.ledger, cases)}
    assert set(found) == {entry.id for entry in paper.ledger.values() if entry.decided_by == "exact cases"}
    assert {claim for claim, answer in found.items() if answer == "does not hold"} == failing
    assert set(found.values()) <= {"holds", "does not hold"}


def test_a_case_that_fails_refutes_the_procedure() -> None:
    paper = PAPERS["qops"]
    cases = Cases(CASES / "deadline-admission", lambda case: case["runs"][0]["algorithm"] != "msb")
    found = {one.verdict.claim: one.verdict for one in paper.family.by_cases(paper.ledger, cases)}
    assert [found[f"J03-F0{number}"].verdict for number in (1, 2, 3)] == ["does not hold", "holds", "holds"]
    assert "not as expected: 05" in found["J03-F01"].note


def test_a_folder_without_the_cases_is_named(tmp_path: Path) -> None:
    paper = PAPERS["grid"]
    found = next(iter(paper.family.by_cases(paper.ledger, Cases(tmp_path, passes))))
    assert found.verdict.verdict == "not testable"
    assert str(tmp_path) in found.verdict.note
    with pytest.raises(InputError, match="is not a folder"):
        Cases(tmp_path / "none", passes)
    (tmp_path / "m5-figure5.json").write_text("{")
    with pytest.raises(InputError, match="is not valid JSON"):
        list(Cases(tmp_path, passes).of("grid-dag", "m5-figure5"))


@pytest.mark.long
def test_claims_decided_by_the_code_are_reported_with_their_case() -> None:
    paper = PAPERS["moldable"]
    for cases, told in ((Cases(), "give --cases"), (Cases(CASES, passes), "as expected")):
        for one in paper.family.by_cases(paper.ledger, cases):
            assert one.verdict.verdict == "holds"
            assert told in one.verdict.note


@pytest.mark.parametrize(("name", "number"), [("grid", "6"), ("qops-report", "4"), ("moldable", "1")])
def test_a_figure_without_rows_says_so(name: str, number: str) -> None:
    paper = PAPERS[name]
    results = paper.family.results(paper, {}, paper.family.plan(paper, Order("tiny")))
    with pytest.raises(InputError, match="no rows"):
        results.draw(number)
