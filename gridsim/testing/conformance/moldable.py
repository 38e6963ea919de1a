"""Cases of moldable jobs: of their strategies, gridsim has the rigid baseline so far."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from gridsim.model.workload import Workload
from gridsim.testing.conformance.outcome import Comparison, Outcome, Run, Unsupported
from gridsim.testing.conformance.running import entry, known_only, rigid_workload, rows_of, run

__all__ = ["WORDS", "check_lublin", "check_schedule"]

WORDS = {"id": "job", "processors": "cores", "start": "start", "end": "end"}
"""The family's words for columns that gridsim produces."""

PROSE = ("schema", "kind", "name", "title", "why", "spec_sections", "tolerance")


def check_schedule(case: Mapping[str, Any]) -> Outcome:
    """Every run of a case of kind ``schedule``."""
    machine = entry(entry(case, "platform", dict, ""), "processors", int, "platform")
    tolerance = float(entry(case, "tolerance", (int, float), "", 0.0))
    workload = rigid_workload(entry(case, "jobs", list, ""), cores="processors", machine=machine)
    runs = [
        _run(spec, f"runs[{index}]", workload, machine, tolerance)
        for index, spec in enumerate(entry(case, "runs", list, ""))
    ]
    outcome = Outcome.of(runs)
    others = [name for name in case if name not in (*PROSE, "platform", "jobs", "runs")]
    if outcome.status == "passed" and others:
        return Outcome("unsupported", (f"nothing compares '{others[0]}'",), passed=outcome.passed, unsupported=1)
    return outcome


def _run(spec: Mapping[str, Any], where: str, workload: Workload, machine: int, tolerance: float) -> Run:
    name = entry(spec, "algorithm", str, where)
    try:
        if name != "conservative":
            raise Unsupported("this version has no such strategy")
        known_only(spec, ("algorithm", "parameters", "expected"), "the run holds")
        known_only(entry(spec, "parameters", dict, where), (), "parameter")
        expected = entry(spec, "expected", dict, where)
        known_only(expected, ("jobs",), "nothing compares expected")
        record, _ = run(workload, machine, "conservative?compress=planned")
    except Unsupported as reason:
        return Run(name, "unsupported", (str(reason),))
    comparison, rows = Comparison(), rows_of(record)
    allowed = float(Fraction(str(tolerance)) * (1 + len(workload)))
    for index, job in enumerate(entry(expected, "jobs", list, f"{where}.expected")):
        number = entry(job, "id", int, f"{where}.expected.jobs[{index}]")
        if number not in rows:
            comparison.equal(f"job {number}", "not among the jobs", "there")
            continue
        for word, value in job.items():
            if word in ("start", "end"):
                comparison.near(f"job {number}: {word}", rows[number][word], value, allowed)
            elif word in WORDS:
                comparison.equal(f"job {number}: {word}", rows[number][WORDS[word]], value)
            else:
                comparison.cannot(word)
    return comparison.verdict(name)


def check_lublin(case: Mapping[str, Any]) -> Outcome:
    """The parts of the Lublin-Feitelson model that are not random draws."""
    from gridsim.testing.lublin_cases import check_case  # scipy.stats: a second, for this kind only

    messages = tuple(check_case(case))
    unknown = tuple(message for message in messages if message.startswith("unknown part"))
    if len(unknown) < len(messages):
        return Outcome("failed", tuple(message for message in messages if message not in unknown), failed=1)
    return Outcome("unsupported", unknown, unsupported=1) if unknown else Outcome("passed", passed=1)
