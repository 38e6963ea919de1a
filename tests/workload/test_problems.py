"""The table of damaged lines, and the counts of problems."""

from __future__ import annotations

import json

import pytest

from gridsim.errors import InputError, UnknownNameError
from gridsim.workload.problems import KINDS, RULES, Problem, Problems


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_kind_is_explained_and_its_rules_are_known(kind):
    assert kind.default in kind.rules
    assert set(kind.rules) <= set(RULES)
    assert "error" in kind.rules
    assert kind.meaning.endswith(".")
    assert kind.expected
    assert bool(kind.repair) == ("repair" in kind.rules)
    assert all(kind.done(rule) for rule in kind.rules)


def test_counts_add_up_over_calls_and_only_the_first_lines_stay():
    problems = Problems()
    problems.found("never-ran", [3, 4, 9])
    problems.found("never-ran", [12, 13, 14], count=10)
    assert problems["never-ran"] == Problem("never-ran", 13, (3, 4, 9, 12, 13), "skip")


def test_problems_are_in_the_order_of_the_table_whatever_was_found_first():
    problems = Problems()
    problems.found("over-estimate", [1])
    problems.found("too-few-fields", [2])
    assert [problem.kind for problem in problems] == ["too-few-fields", "over-estimate"]
    assert len(problems) == 2


def test_missing_values_count_nothing():
    assert Problems()["too-wide"] == Problem("too-wide", 0, (), "skip")


def test_problems_survive_json():
    problems = Problems({"too-wide": "repair"})
    problems.found("too-wide", [5])
    assert list(map(Problem.from_json, json.loads(json.dumps(problems.to_json())))) == list(problems)


def test_the_rule_error_names_file_line_field_value_and_cure():
    problems = Problems({"zero-runtime": "error"}, source="log.swf")
    with pytest.raises(InputError) as caught:
        problems.found("zero-runtime", [7], value=0, field="run time")
    assert (caught.value.path, caught.value.line, caught.value.field) == ("log.swf", 7, "run time")
    for part in ("log.swf line 7", "run time", "found 0", "above 0 s", "--on zero-runtime=skip", "repair"):
        assert part in str(caught.value)


def test_an_unknown_kind_answers_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'zero-runtime'"):
        Problems({"zero-runtimes": "skip"})


def test_a_rule_that_a_kind_does_not_have_is_refused_with_those_it_has():
    with pytest.raises(
        InputError, match=r"unknown rule for never-ran 'repair'; did you mean 'keep'.* error, keep, skip"
    ):
        Problems({"never-ran": "repair"})


@pytest.mark.parametrize("rule", [1, ["repair"], {"zero-runtime": "repair"}])
def test_a_rule_of_a_recipe_that_is_not_text_is_an_error(rule):
    with pytest.raises(UnknownNameError, match="unknown rule for zero-runtime"):
        Problems({"zero-runtime": rule})
