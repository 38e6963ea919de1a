"""Own conformance cases: small ones made by hand, so that a clone without the specifications tests what matters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gridsim.testing.conformance import check, read_cases
from gridsim.testing.conformance.running import rigid_workload
from gridsim.testing.oracle import schedule

OWN = {path.stem: case for path, case in read_cases([Path(__file__).parent / "cases"])}

NEEDED = {
    "01-fcfs-easy-conservative",
    "02-easy-shadow-and-extra",
    "03-easy-early-completion",
    "04-conservative-compression",
    "17-deadlines-from-easy",
    "m04-conservative-exact",
    "m05-conservative-early-ends",
    "m20-lublin-parts",
}
"""Specified cases that need nothing but FCFS, EASY, conservative and the built-in workload model."""

PARTLY = {
    "14-walltime": 2,
    "15-simultaneous": 2,
    "16-packed-zero-slack": 2,
    "m07-submit-fair-share": 1,
    "m17-mixed-jobs": 1,
}
"""Cases some of whose runs need no more than that, and how many."""


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


@pytest.fixture(scope="module")
def specified(shared: Path) -> dict[str, Any]:
    return {path.stem: check(case) for path, case in read_cases([shared / "spec" / "golden"])}


def test_no_specified_case_fails(specified: dict[str, Any]) -> None:
    assert {name: outcome.messages for name, outcome in specified.items() if outcome.status == "failed"} == {}


def test_all_specified_cases_of_fcfs_easy_and_conservative_pass(specified: dict[str, Any]) -> None:
    assert {name for name, outcome in specified.items() if outcome.status == "passed"} >= NEEDED
    for name, runs in PARTLY.items():
        assert specified[name].passed >= runs


def test_all_specified_cases_of_grids_and_dag_jobs_pass(shared: Path, specified: dict[str, Any]) -> None:
    cases = [path.stem for path in (shared / "spec" / "golden" / "grid-dag").glob("*.json")]
    assert len(cases) >= 55
    assert {name: specified[name].status for name in cases if specified[name].status != "passed"} == {}
