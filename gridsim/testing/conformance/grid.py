"""Cases of the grid and DAG family: so far one-task jobs on one cluster, first come, first served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from gridsim.errors import InputError
from gridsim.model.time import MICROSECOND, whole
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.testing.conformance.outcome import Comparison, Outcome, Unsupported
from gridsim.testing.conformance.running import entry, known_only, run

__all__ = ["WORDS", "check_schedule"]

WORDS = {
    "arrival": "submit",
    "ready": "ready",
    "start": "start",
    "finish": "end",
    "wait": "wait",
    "response": "response",
    "exec": "area",
    "cluster": "cluster",
    "makespan": "makespan",
    "fit": "reserve",
    "fifo-job": "fifo",
}
"""The family's words for what gridsim calls otherwise, or the same."""

PROSE = ("id", "kind", "title", "note")
_ORDERINGS = {"fifo-job": "fifo", "fifo-task": "fifo"}
"""Policies by the ordering that they are for jobs of one task: ready at their arrival, so both are first come first."""

_RULES = {"strict": "strict", "first-fit": "first-fit", "easy": "easy"}
_OPTIONS = (
    "fit",
    "ccr",
    "delay_levels_power",
    "transfer_start",
    "work",
    "include_candidate",
    "split",
    "advertise",
    "rank",
    "fairshare_scope",
    "fairshare_combine",
    "fairshare_reeval",
    "random_hold",
)
"""Options of which none but ``fit`` matters to one-task jobs in first-come order on one cluster."""


def check_schedule(case: Mapping[str, Any]) -> Outcome:
    """A case of kind ``schedule``."""
    policy = entry(case, "policy", str, "")
    options = entry(case, "options", dict, "", {})
    if policy not in _ORDERINGS:
        raise Unsupported(f"policy {policy}")
    known_only(case, (*PROSE, "platform", "jobs", "policy", "options", "share_tree", "expected"), "the case holds")
    known_only(options, _OPTIONS, "option")
    fit = options.get("fit", "strict")
    if fit not in _RULES:
        raise Unsupported(f"fit {fit}")
    name, cores = _cluster(entry(case, "platform", dict, ""))
    names, workload = _jobs(entry(case, "jobs", list, ""), cores)
    record, _ = run(workload, cores, f"backfilling?ordering={_ORDERINGS[policy]}&reserve={_RULES[fit]}")
    comparison = Comparison()
    expected = entry(case, "expected", dict, "")
    for part, value in expected.items():
        if part == "tasks":
            tasks = {f"{job}/{task}": row for (job, task), row in _tasks(record, names, name)}
            _compare(comparison, "tasks", tasks, value)
        elif part == "jobs":
            _compare(comparison, "jobs", {job: row for (job, _), row in _job_rows(record, names)}, value)
        elif part == "workload":
            _compare(comparison, "workload", {"": _workload(record)}, {"": value})
        else:
            comparison.cannot(part)
    return Outcome.of([comparison.verdict(f"{policy} {fit}")])


def _cluster(tree: Mapping[str, Any]) -> tuple[str, int]:
    """Name and cores of the only cluster."""
    while "cluster" not in tree:
        children = entry(tree, "children", list, "platform")
        if len(children) != 1:
            raise Unsupported("a platform of several clusters")
        tree = children[0]
    return entry(tree, "cluster", str, "platform"), entry(tree, "cores", int, "platform")


def _jobs(jobs: Sequence[Mapping[str, Any]], cores: int) -> tuple[list[tuple[str, str]], Workload]:
    """Names of job and task in job order, and the workload."""
    ordered = sorted(jobs, key=lambda job: job["arrival"])
    tasks = []
    for job in ordered:
        if len(job["tasks"]) != 1 or job.get("edges"):
            raise Unsupported("jobs of several tasks")
        tasks.append(job["tasks"][0])
        if tasks[-1]["cores"] > cores:
            raise InputError(f"task {job['id']}/{tasks[-1]['id']} is wider than the cluster ({cores})", field="jobs")
    if len({task.get("kind") for task in tasks}) > 1:
        raise Unsupported("several kinds of cores")
    workload = Workload.from_columns(
        submit=[job["arrival"] for job in ordered],
        runtime=[task["exec"] for task in tasks],
        cores=[task["cores"] for task in tasks],
    )
    return [(job["id"], task["id"]) for job, task in zip(ordered, tasks, strict=True)], workload


def _exact(value: Any) -> Fraction:
    return Fraction(int(value), MICROSECOND)


def _tasks(record: Record, names: Sequence[tuple[str, str]], cluster: str) -> Any:
    submit, start, end = record.workload.submit, record.start_us, record.end_us
    for row, name in enumerate(names):
        times = {"ready": submit[row], "start": start[row], "finish": end[row]}
        yield name, {"cluster": cluster, **{word: _exact(value) for word, value in times.items()}}


def _job_rows(record: Record, names: Sequence[tuple[str, str]]) -> Any:
    submit, start, end = record.workload.submit, record.start_us, record.end_us
    for row, name in enumerate(names):
        times = {"arrival": submit[row], "start": start[row], "finish": end[row]}
        times |= {"wait": start[row] - submit[row], "response": end[row] - submit[row]}
        area = record.workload.cores[row] * (end[row] - start[row])
        yield name, {word: _exact(value) for word, value in {**times, "exec": area}.items()}


def _workload(record: Record) -> dict[str, Fraction]:
    """Metrics of the whole run that gridsim has exactly, as the family's rationals want them."""
    from gridsim.metrics.utilisation import makespan  # where jobs are compared only, it is not needed

    return {"makespan": Fraction(whole(makespan(record)), MICROSECOND)}


def _compare(comparison: Comparison, part: str, found: Mapping[str, Mapping[str, Any]], expected: Any) -> None:
    for name, fields in expected.items():
        if name not in found:
            comparison.equal(f"{part} {name}", "not there", "there")
            continue
        for word, value in fields.items():
            if word not in found[name]:
                comparison.cannot(f"{part}.{word}")
                continue
            exact = Fraction(value) if isinstance(value, str) and word != "cluster" else value
            comparison.equal(f"{part} {name} {word}".replace("  ", " "), found[name][word], exact)
