"""The verdict on a case: every field counts, and a case without any comparison does not pass."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from gridsim.errors import InputError
from gridsim.testing.conformance import CASES, FAMILIES, WORDS, check, family, read_cases
from gridsim.testing.conformance.outcome import Comparison

CASE: dict[str, Any] = {
    "schema": 1,
    "kind": "schedule",
    "name": "two-jobs",
    "platform": {"cores": 2},
    "jobs": [
        {"id": 2, "submit": 0, "cores": 2, "estimate": 5, "runtime": 5},
        {"id": 1, "submit": 0, "cores": 1, "estimate": 9, "runtime": 3},
    ],
    "runs": [
        {
            "algorithm": "conservative",
            "parameters": {"overrun": "kill", "compress": "planned"},
            "expected": {
                "jobs": [
                    {"id": 1, "status": "completed", "start": 0, "end": 3},
                    {"id": 2, "status": "completed", "start": 3, "end": 8},
                ],
                "timeline": [
                    {"time": 0, "events": ["anything"], "plan": {"2": 9}},
                    {"time": 3, "events": [], "plan": {}},
                ],
            },
        },
        {
            "algorithm": "fcfs",
            "parameters": {"overrun": "kill"},
            "expected": {"jobs": [{"id": 2, "start": 3}], "timeline": [{"time": 0, "events": []}]},
        },
    ],
}


def case(*path: Any, value: Any = None) -> dict[str, Any]:
    """The case with a new value at *path*."""
    changed = copy.deepcopy(CASE)
    if path:
        place: Any = changed
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
    return changed


def test_a_case_passes_when_everything_that_it_expects_agrees() -> None:
    outcome = check(case())
    assert (outcome.status, outcome.passed, outcome.failed, outcome.unsupported) == ("passed", 2, 0, 0)
    assert outcome.messages == ()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("runs", 0, "expected", "jobs", 0, "end"), 4, "job 1: end is 3, expected 4"),
        (("runs", 0, "expected", "jobs", 1, "start"), None, "job 2: start is 3, expected None"),
        (("runs", 0, "expected", "jobs", 1, "status"), "killed_walltime", "status is completed"),
        (("runs", 0, "expected", "jobs", 1, "id"), 7, "job 7 is not in the jobs"),
        (("runs", 0, "expected", "timeline", 0, "plan"), {"2": 8}, "plan after 0 s"),
        (("runs", 0, "expected", "timeline", 1, "time"), 4, "plan after 4 s .microseconds. is None"),
        (("runs", 1, "expected", "jobs", 0, "start"), 0, "fcfs: job 2: start is 3, expected 0"),
    ],
)
def test_any_difference_fails_the_case(path: tuple[Any, ...], value: Any, message: str) -> None:
    outcome = check(case(*path, value=value))
    assert (outcome.status, outcome.failed) == ("failed", 1)
    assert message.replace(".microseconds.", "(microseconds)") in " ".join(outcome.messages)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("runs", 0, "algorithm"), "vqops", "no such algorithm"),
        (("runs", 0, "parameters", "k_factor"), 5, "parameter 'k_factor'"),
        (("runs", 0, "expected", "jobs", 0, "fortune"), 10, "3 values agree|not produced: fortune"),
        (("runs", 0, "expected", "charges"), [], "nothing compares expected 'charges'"),
        (("runs", 1, "expected", "timeline", 0, "plan"), {}, "not produced: plan"),
        (("differences",), [[0]], "the case holds 'differences'"),
        (("kind",), "horoscope", "unknown kind 'horoscope'"),
        (("runs",), [], "nothing to run"),
    ],
)
def test_input_that_cannot_be_done_or_compared_is_unsupported_never_passed(
    path: tuple[Any, ...], value: Any, message: str
) -> None:
    outcome = check(case(*path, value=value))
    assert outcome.status == "unsupported"
    assert any(part in " ".join(outcome.messages) for part in message.split("|"))


def test_one_failed_run_fails_a_case_with_unsupported_ones() -> None:
    changed = case("runs", 0, "algorithm", value="vqops")
    changed["runs"][1]["expected"]["jobs"][0]["start"] = 0
    outcome = check(changed)
    assert (outcome.status, outcome.failed, outcome.unsupported) == ("failed", 1, 1)


def test_runtimes_below_a_second_count_as_one() -> None:
    changed = case("jobs", 1, "runtime", value=0)
    changed["runs"] = [{"algorithm": "fcfs", "parameters": {}, "expected": {"jobs": [{"id": 1, "end": 1}]}}]
    assert check(changed).status == "passed"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("platform",), {}, "field 'platform.cores': is missing"),
        (("jobs", 0, "runtime"), "long", r"field 'jobs\[0\].runtime': is 'long'; expected a number"),
        (("jobs", 0, "cores"), 3, r"field 'jobs\[0\].cores': job 2 is wider than the machine"),
        (("runs", 0, "expected"), None, r"field 'runs\[0\].expected'"),
        (("jobs",), {}, "field 'jobs'"),
    ],
)
def test_a_malformed_case_is_an_input_error_with_its_field(path: tuple[Any, ...], value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check(case(*path, value=value))


def test_families_are_distinguished_by_kind_and_platform() -> None:
    assert family(CASE) == "deadline-admission"
    assert family({"kind": "schedule", "platform": {"processors": 4}}) == "moldable"
    assert family({"kind": "schedule", "platform": {"router": "R", "children": []}}) == "grid-dag"
    assert family({"kind": "lublin"}) == "moldable"
    assert family({"kind": "horoscope"}) == "unknown"
    assert family({"kind": "fragmentation"}) == "machine"
    nodes = [{"count": 2, "capacity": {"cores": 4}}]
    for platform in ({"pools": {"cores": 4}}, {"nodes": nodes}, {"nodes": nodes, "pools": {"licences": 1}}):
        assert family({"kind": "schedule", "platform": platform}) == "machine"
    predicts = {"runs": [{"algorithm": "easy", "parameters": {"predict": "recent"}, "expected": {}}]}
    assert family({**CASE, **predicts}) == "prediction"
    assert set(WORDS) < set(FAMILIES) == {path.name for path in CASES.iterdir() if path.is_dir()}


@pytest.mark.parametrize("kind", ["energy", "delay"])
def test_a_kind_that_is_not_built_is_unsupported_whatever_it_holds(kind: str) -> None:
    other = {**case(), "kind": kind, "platform": {"nodes": [4, 4]}}
    outcome = check(other)
    assert (family(other), outcome.status) == ("availability", "unsupported")
    assert outcome.messages == (f"the kind '{kind}' of the family 'availability' is not supported",)


def test_cases_of_nodes_of_cores_alone_are_of_failures() -> None:
    for platform in ({"nodes": [4, 4]}, {"nodes": 2}):
        assert family({"kind": "schedule", "platform": platform}) == "availability"
    groups = {"nodes": [{"count": 2, "capacity": {"cores": 4}}]}
    assert family({"family": "availability", "kind": "schedule", "platform": groups}) == "availability"


def test_moldable_times_agree_within_the_tolerance_of_the_case() -> None:
    job = {"id": 1, "submit": 0, "processors": 2, "runtime": 1.5, "estimate": 2}
    rigid: dict[str, Any] = {
        "kind": "schedule",
        "tolerance": 1e-6,
        "platform": {"processors": 4},
        "jobs": [job],
        "runs": [
            {
                "algorithm": "conservative",
                "parameters": {},
                "expected": {"jobs": [{"id": 1, "processors": 2, "start": 0, "end": 1.500002}]},
            }
        ],
    }
    assert check(rigid).status == "passed"
    rigid["runs"][0]["expected"]["jobs"][0]["end"] = 1.500003
    assert check(rigid).status == "failed"
    rigid["runs"][0]["expected"]["jobs"][0]["end"] = 1.5
    rigid["differences"] = [[1]]
    assert "jobs in which runs 0 and 0 differ is 0, expected 1" in " ".join(check(rigid).messages)
    rigid["differences"] = [[0]]
    assert check(rigid).status == "passed"
    rigid["alternative"] = {"change": "job 1 is larger", "expected": {"jobs": []}}
    assert check(rigid).status == "unsupported"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kind": "schedule",\n "jobs": [1,,]}', "case.json line 2: is not valid JSON"),
        ('["kind"]', "case.json line 1: is .*; expected an object"),
        ('{"name": "x"}', "line 1, field 'kind': is missing"),
        ('{"kind": 3}', "line 1, field 'kind': is 3; expected a text"),
    ],
)
def test_a_file_that_is_no_case_is_reported_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text(text)
    with pytest.raises(InputError, match=message):
        list(read_cases([tmp_path]))


def test_folders_are_searched_to_the_bottom_and_must_hold_something(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(InputError, match=r"contains no .*json"):
        list(read_cases([tmp_path]))
    (tmp_path / "a" / "b" / "one.json").write_text('{"kind": "schedule"}')
    (tmp_path / "a" / "README.md").write_text("no case")
    assert [path.name for path, _ in read_cases([tmp_path])] == ["one.json"]
    with pytest.raises(InputError, match="no such file"):
        list(read_cases([tmp_path / "nowhere"]))


MACHINES = [
    path
    for path, case in read_cases([CASES / "machine"])
    if "platform" in case and not any("cores" in job for job in case["jobs"])  # plain cores have a separate name
]


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
def test_no_schedule_of_nodes_depends_on_the_names_of_their_resources(path: Path) -> None:
    renamed = json.loads(path.read_text().replace('"cores"', '"slots"'))
    assert check(renamed).status == "passed"


def test_a_number_that_is_not_finite_differs_and_ends_nothing() -> None:
    comparison = Comparison()
    for found in (float("nan"), float("inf")):
        comparison.near("wait", found, 3.0, 0.1)
    assert len(comparison.differences) == 2
