"""Conformance cases: those included in gridsim, and small cases made for these tests."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from gridsim.testing.conformance import CASES, FAMILIES, check, family, read_cases
from gridsim.testing.conformance.running import rigid_workload
from gridsim.testing.oracle import schedule

OWN = {path.stem: case for path, case in read_cases([Path(__file__).parent / "cases"])}

FEWEST = {"availability": 30, "deadline-admission": 24, "grid-dag": 55, "machine": 22, "moldable": 20, "prediction": 17}
"""Cases of each implemented family."""

SPECIFIED = {
    "availability": "378fc5b18b1ef5128fb3e87ed1d1387221833012d05b459ca21d70ac90190eb1",
    "deadline-admission": "d46b893d64561de590029cd13a90994f46705f36b7cfa64ca300b02acefcea0c",
    "grid-dag": "13f67de07be98cb499d4913fabdc21add7323c21f55fec5dc964000a1c6f4467",
    "machine": "d0200c67c7dc2bb557321cdbd0107eea05b1b51528b92f0d6669bd8317dafb8a",
    "prediction": "5ae5bc0d8f271a488b667dfc7d6edb99ff436b4c8c1e74a9f9b2af147e9692e1",
    "moldable": "cd71ac503c28ffa56335a872f81dc49700344c592bead6a5e6138e556ac10a47",
}
"""SHA-256 of the names and the contents of the cases of each family, as specified."""


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


@pytest.mark.parametrize("name", FAMILIES)
def test_the_cases_that_come_with_gridsim_are_the_specified_ones(name: str) -> None:
    # Changes of the simulator never change a case, whose expected results were computed independently.
    told = hashlib.sha256()
    for path in sorted((CASES / name).glob("*.json")):
        told.update(path.name.encode() + b"\n" + path.read_bytes())
    assert told.hexdigest() == SPECIFIED[name]
