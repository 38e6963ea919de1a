"""Conformance cases: those that come with gridsim, and small ones made by hand for these tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gridsim.testing.conformance import CASES, FAMILIES, NOT_BUILT, check, family, read_cases
from gridsim.testing.conformance.running import rigid_workload
from gridsim.testing.oracle import schedule

OWN = {path.stem: case for path, case in read_cases([Path(__file__).parent / "cases"])}

FEWEST = {"deadline-admission": 24, "grid-dag": 55, "moldable": 20}
"""Cases of each family that is built."""


@pytest.mark.parametrize("name", OWN)
def test_own_cases_pass(name: str) -> None:
    outcome = check(OWN[name])
    assert (outcome.status, outcome.messages) == ("passed", ())


@pytest.mark.parametrize("name", [name for name, case in OWN.items() if "cores" in case["platform"] and "runs" in case])
def test_the_oracle_passes_own_cases(name: str) -> None:
    case = OWN[name]
    cores = case["platform"]["cores"]
    workload = rigid_workload(case["jobs"], cores="cores", machine=cores)
    for run in case["runs"]:
        plans: dict[int, dict[str, int]] = {}

        def watch(now: int, plan: Any, plans: dict[int, dict[str, int]] = plans) -> None:
            plans[now // 10**6] = {str(job): start // 10**6 for job, start in plan.items()}

        record = schedule(workload, cores, run["algorithm"], watch=watch, **run["parameters"])
        found = {int(job): (start, end) for job, start, end in zip(workload.job, record.start, record.end, strict=True)}
        assert found == {job["id"]: (job["start"], job["end"]) for job in run["expected"]["jobs"]}
        for moment in run["expected"].get("timeline", ()):
            assert plans[moment["time"]] == moment["plan"]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_case_that_comes_with_gridsim_passes(name: str) -> None:
    found = list(read_cases([CASES / name]))
    assert len(found) >= FEWEST[name]
    assert {family(case) for _, case in found} == {name}
    outcomes = {path.stem: check(case) for path, case in found}
    assert {case: it.messages for case, it in outcomes.items() if it.status != "passed"} == {}


def test_the_cases_that_come_with_gridsim_are_the_specified_ones(shared: Path) -> None:
    for name in FAMILIES:
        specified = {path.name: path.read_bytes() for path in (shared / "spec" / "golden" / name).glob("*.json")}
        assert {path.name: path.read_bytes() for path in (CASES / name).glob("*.json")} == specified


@pytest.mark.parametrize("name", NOT_BUILT)
def test_specified_families_that_are_not_built_are_known_by_name(name: str, shared: Path) -> None:
    for path, case in read_cases([shared / "spec" / "golden" / name]):
        assert (path.name, family(case), check(case).status) == (path.name, name, "unsupported")
