"""Cases of load by expansion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gridsim.model.time import MICROSECOND
from gridsim.model.workload import Workload
from gridsim.testing.conformance.outcome import Comparison, Outcome, Run
from gridsim.testing.conformance.running import known_only
from gridsim.workload.transform.expand import Expand

__all__ = ["check_load_expansion"]

PROSE = ("schema", "kind", "name", "title", "why", "spec_sections")
_WORDS = ("id", "submit", "cores", "runtime")


def check_load_expansion(case: Mapping[str, Any]) -> Outcome:
    """Runtimes at each load of a case; estimates, which are exact before, must be the same."""
    known_only(case, (*PROSE, "jobs", "expected"), "the case holds")
    workload = _jobs(case)
    return Outcome.of([_expanded(part, workload) for part in case["expected"]])


def _jobs(case: Mapping[str, Any]) -> Workload:
    jobs = case["jobs"]
    for job in jobs:
        known_only(job, _WORDS, "a job has")
    number, submit, cores, runtime = ([job[word] for job in jobs] for word in _WORDS)
    return Workload.from_columns(job=number, submit=submit, cores=cores, runtime=runtime)


def _expanded(part: Mapping[str, Any], workload: Workload) -> Run:
    load = float(part["load"])
    comparison = Comparison()
    for name in part:
        if name not in ("load", "runtimes"):
            comparison.cannot(name)
    longer = Expand(load).apply(workload)
    expected = [runtime * MICROSECOND for runtime in part["runtimes"]]
    comparison.equal("runtimes (microseconds)", longer.runtime.tolist(), expected)
    comparison.equal("estimates (microseconds)", longer.estimate.tolist(), expected)
    changed = [
        name
        for name in ("job", "submit", "cores")
        if getattr(longer, name).tolist() != getattr(workload, name).tolist()
    ]
    comparison.equal("other columns that change", changed, [])
    return comparison.verdict(f"load {load:g}")
