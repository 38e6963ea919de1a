"""Cases of kind ``metrics``: correct numbers pass, and every kind of wrong number is reported."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gridsim.errors import InputError
from gridsim.testing.grid_metrics_cases import check_metrics_case

CASE: dict[str, Any] = {
    "id": "two",
    "kind": "metrics",
    "cores": 2,
    "jobs": [
        {
            "id": "a",
            "arrival": 0,
            "tasks": [{"id": "x", "exec": 2, "cores": 1}, {"id": "y", "exec": 3, "cores": 2}],
            "edges": [["x", "y"]],
        },
        {"id": "b", "arrival": 0, "tasks": [{"id": "x", "exec": 6, "cores": 1}], "edges": []},
    ],
    "schedule": {"a/x": {"start": 0}, "a/y": {"start": 6}, "b/x": {"start": 0}},
    "expected": {
        "jobs": {"a": {"slr": "9/5", "exec": 8, "stretch": "9/8"}, "b": {"slr": "1"}},
        "workload": {"mean_slr": "7/5", "sd_slr": 0.565685424949238, "cumulative_completion": 32},
    },
}


def changed(*path: str, value: Any) -> dict[str, Any]:
    case = copy.deepcopy(CASE)
    part = case
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    return case


def test_a_right_case_passes() -> None:
    assert check_metrics_case(CASE) == []


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("expected", "jobs", "a", "slr"), "9/6", "jobs a slr: expected 9/6, got 9/5"),
        (("expected", "workload", "sd_slr"), 0.5656854249, "workload sd_slr: expected 0.5656854249"),
        (("expected", "workload", "sd_slr"), None, "workload sd_slr: expected None"),
        (("expected", "workload", "colour"), 3, "workload colour: it has no counterpart"),
        (("expected", "workload", "mean_slr"), "soon", "workload mean_slr: expected soon"),
        (("expected", "jobs", "c"), {}, "jobs c: expected, but missing"),
        (("expected", "tasks"), {}, "unknown part 'expected.tasks'"),
        (("colour",), 3, "unknown part 'colour'"),
    ],
)
def test_a_wrong_case_says_where(path: tuple[str, ...], value: Any, message: str) -> None:
    found = check_metrics_case(changed(*path, value=value))
    assert len(found) == 1
    assert found[0].startswith(message)


def test_the_base_of_cumulative_completion_is_given() -> None:
    case = changed("expected", "workload", value={"cumulative_completion": 46, "cumulative_completion_base": 10})
    assert check_metrics_case(case) == []  # one more tick for each of the 14 core-ticks


def test_a_case_that_is_none_is_an_input_error() -> None:
    incomplete = changed("schedule", value={"a/x": {"start": 0}})
    with pytest.raises(InputError, match=r"schedule.a/y"):
        check_metrics_case(incomplete)
    cyclic = copy.deepcopy(CASE)
    cyclic["jobs"][0]["edges"].append(["y", "x"])
    with pytest.raises(InputError, match="cycle"):
        check_metrics_case(cyclic)
    cyclic["jobs"][0]["edges"] = [["x", "z"]]
    with pytest.raises(InputError, match="connects two jobs"):
        check_metrics_case(cyclic)
