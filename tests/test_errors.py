"""Error classes."""

from __future__ import annotations

import pytest

from gridsim.errors import CheckFailed, GridsimError, InputError, PolicyError, UnknownNameError


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ({}, "bad"),
        ({"path": "log.swf"}, "log.swf: bad"),
        ({"path": "log.swf", "line": 7}, "log.swf line 7: bad"),
        ({"path": "log.swf", "line": 7, "field": "cores"}, "log.swf line 7, field 'cores': bad"),
        ({"field": "cores"}, "field 'cores': bad"),
    ],
)
def test_an_input_error_reports_its_place_first(place: dict[str, object], told: str) -> None:
    error = InputError("bad", **place)  # type: ignore[arg-type]
    assert str(error) == told
    assert (error.message, error.path, error.line, error.field) == (
        "bad",
        place.get("path"),
        place.get("line"),
        place.get("field"),
    )


def test_an_unknown_name_answers_with_the_nearest_and_the_list() -> None:
    error = UnknownNameError("policy", "eazy", ["fcfs", "easy"])
    assert str(error) == "unknown policy 'eazy'; did you mean 'easy'? known: easy, fcfs"
    assert (error.kind, error.name, error.nearest) == ("policy", "eazy", "easy")


def test_a_name_that_is_like_no_other_answers_with_the_list_alone() -> None:
    error = UnknownNameError("policy", "qqqq", ["fcfs", "easy"])
    assert str(error) == "unknown policy 'qqqq'; known: easy, fcfs"
    assert error.nearest is None
    assert str(UnknownNameError("policy", "x", [])).endswith("known: none")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("sfj", "sjf"), ("esay", "easy"), ("fcsf", "fcfs"), ("SJF", "sjf"), ("conservativ", "conservative")],
)
def test_two_letters_exchanged_are_one_slip(typed: str, meant: str) -> None:
    names = ["spf", "sjf", "saf", "fcfs", "easy", "lsf", "depth", "conservative"]
    assert UnknownNameError("policy", typed, names).nearest == meant


def test_an_abbreviation_is_taken_for_the_word_that_begins_so() -> None:
    assert UnknownNameError("policy", "cons", ["fcfs", "conservative"]).nearest == "conservative"


def test_a_letter_that_is_in_no_name_is_a_slip_of_none() -> None:
    assert UnknownNameError("choice", "c", ["a", "b"]).nearest is None


def test_bad_input_exits_with_two_and_a_failed_check_with_one() -> None:
    assert {kind.exit_code for kind in (GridsimError, InputError, PolicyError, UnknownNameError)} == {2}
    assert CheckFailed.exit_code == 1


def test_a_name_in_the_users_data_is_not_taken_for_a_feature():
    assert "not modelled" in str(UnknownNameError("policy", "power-cap", ["easy"]))
    assert "not modelled" not in str(UnknownNameError("partition", "storage", ["batch"]))
    assert "not modelled" not in str(UnknownNameError("policy of results", "energy", ["easy"]))
