"""Cases of deadline admission: FCFS, EASY, conservative, deadlines from an EASY run, and load by longer jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gridsim.model.time import MICROSECOND, to_us
from gridsim.model.workload import Workload
from gridsim.registry import Spec
from gridsim.testing.conformance.outcome import Comparison, Outcome, Run, Unsupported
from gridsim.testing.conformance.running import PROSE, expected_of, known_only, rigid_workload, rows_of, run
from gridsim.workload.transform.deadlines import requested_deadlines
from gridsim.workload.transform.duplicate import Expand

_SAME = ("status", "start", "end", "cores", "granted", "offer", "kills", "lost_core_seconds", "artificial_doublings")
WORDS = {"id": "job", "guarantee_broken": "guarantee_broken", **{word: word for word in _SAME}}
"""The family's words for columns that gridsim produces."""

_RUN = ("overrun", "instant", "tick")
_PROMISES = ("compress", "relaxation", "artificial_floor", "artificial_fallback", "unadmitted")
_QOPS = ("k_factor", "heuristic", "slots", "insertion", "append_slot", "price")
_POLICIES: dict[str, tuple[str, ...]] = {
    "fcfs": (),
    "easy": (),
    "conservative": ("compress",),
    "msb": (*_PROMISES, "price", "order"),
    "mrt": (*_PROMISES, "heuristic", "backtracks", "window", "hole_filling", "weight"),
    "qops": (*_PROMISES, *_QOPS),
    "fqops": (*_PROMISES, *_QOPS, "retry_count", "slack_factor", "kill_restart", "max_kills"),
}
"""Algorithms of gridsim, with the parameters that a run may have in addition to `_RUN`."""


def _jobs(case: Mapping[str, Any]) -> tuple[Workload, int]:
    cores = case["platform"]["cores"]
    # Run times and estimates below 1 s count as 1 s (decision D1 of the family).
    return rigid_workload(case["jobs"], cores="cores", machine=cores, least=1), cores


def check_schedule(case: Mapping[str, Any]) -> Outcome:
    """Every run of a case of kind ``schedule``."""
    known_only(case, (*PROSE, "platform", "jobs", "runs"), "the case holds")
    workload, cores = _jobs(case)
    return Outcome.of([_run(spec, workload, cores) for spec in case["runs"]])


def _run(spec: Mapping[str, Any], workload: Workload, cores: int) -> Run:
    name, parameters, expected = spec["algorithm"], spec["parameters"], spec["expected"]
    try:
        if name not in _POLICIES:
            raise Unsupported("this version has no such algorithm")
        known_only(spec, ("algorithm", "parameters", "expected"), "the run holds")
        known_only(parameters, (*_RUN, *_POLICIES[name]), "parameter")
        known_only(expected, ("jobs", "timeline"), "nothing compares expected")
        options = {key: value for key, value in parameters.items() if key in _RUN}
        record, plans = run(workload, cores, _policy(name, parameters), **options)
    except Unsupported as reason:
        return Run(name, "unsupported", (str(reason),))
    comparison = Comparison()
    _compare_jobs(comparison, rows_of(record), expected.get("jobs", ()))
    _compare_plans(comparison, plans, expected.get("timeline", ()))
    label = "-".join([name, *(str(value) for key, value in parameters.items() if key != "overrun" or value != "kill")])
    return comparison.verdict(label)


def _policy(name: str, parameters: Mapping[str, Any]) -> Spec:
    """The policy of a run, every parameter that it gives set."""
    values = {key: value for key, value in parameters.items() if key in _POLICIES[name]}
    weight = values.pop("weight", None)  # of the heuristic, not of the search
    if weight is not None and values.get("heuristic") == "edf+est":
        values["heuristic"] = Spec("edf+est", {"weight": weight})
    return Spec(name, values)


def _compare_jobs(
    comparison: Comparison, rows: Mapping[int, Mapping[str, Any]], jobs: Sequence[Mapping[str, Any]]
) -> None:
    for where, word, value, row in expected_of(comparison, rows, jobs):
        if word in WORDS:
            comparison.equal(where, row[WORDS[word]], value)
        else:
            comparison.cannot(word)


def _compare_plans(
    comparison: Comparison, plans: Mapping[int, Mapping[int, int]], timeline: Sequence[Mapping[str, Any]]
) -> None:
    """Plans after each instant; the texts of events are informative and not compared."""
    for moment in timeline:
        if "plan" not in moment:
            continue
        if not plans:
            comparison.cannot("plan")
            continue
        now, plan = moment["time"], plans.get(to_us(moment["time"]))
        expected = {job: to_us(start) for job, start in moment["plan"].items()}
        found = None if plan is None else {str(job): start for job, start in plan.items()}
        comparison.equal(f"plan after {now} s (microseconds)", found, expected)


def check_deadline_assignment(case: Mapping[str, Any]) -> Outcome:
    """The EASY schedule of a case, the deadlines made from it, and artificial responses."""
    known_only(case, (*PROSE, "platform", "jobs", "easy", "expected", "relaxation"), "the case holds")
    workload, cores = _jobs(case)
    record, _ = run(workload, cores, "easy")
    runs = [_easy(record, case["easy"])] if "easy" in case else []
    response = record.end_us - workload.submit
    for part in case.get("expected", ()):
        stringency = part["stringency"]
        deadlines = requested_deadlines(workload.submit, workload.runtime, response, stringency)
        runs.append(_deadlines(part, dict(zip(workload.job.tolist(), deadlines.tolist(), strict=True)), stringency))
    if "relaxation" in case:
        runs.append(_relaxation(case["relaxation"]))
    return Outcome.of(runs)


def _easy(record: Any, jobs: Sequence[Mapping[str, Any]]) -> Run:
    comparison = Comparison()
    rows = rows_of(record)
    submits = dict(zip(record.workload.job.tolist(), record.workload.submit.tolist(), strict=True))
    for where, word, value, row in expected_of(comparison, rows, jobs):
        if word == "response":
            comparison.equal(f"{where} (microseconds)", to_us(row["end"]) - submits[row["job"]], to_us(value))
        elif word in WORDS:
            comparison.equal(where, row[WORDS[word]], value)
        else:
            comparison.cannot(word)
    return comparison.verdict("easy")


def _deadlines(part: Mapping[str, Any], deadlines: Mapping[int, int], stringency: float) -> Run:
    comparison = Comparison()
    comparison.compares(part, ("stringency", "deadlines"))
    for job in part.get("deadlines", ()):
        found = deadlines[job["id"]] / MICROSECOND if job["id"] in deadlines else None
        comparison.equal(f"job {job['id']}: deadline", found, job["deadline"])
    return comparison.verdict(f"stringency {stringency}")


def _relaxation(rows: Sequence[Mapping[str, Any]]) -> Run:
    from gridsim.policy.scheduler.deadline_guarantee import Guaranteed  # compiled kernels: only when something runs

    comparison = Comparison()
    for index, row in enumerate(rows):
        comparison.compares(row, ("R", "floor", "estimate", "artificial_response"))
        policy = Guaranteed(relaxation=row["R"], artificial_floor=row["floor"])
        found = policy.artificial_response(to_us(float(row["estimate"]))) / MICROSECOND
        comparison.equal(f"relaxation[{index}]: artificial_response", found, row["artificial_response"])
    return comparison.verdict("relaxation")


_EXPANDED_WORDS = ("id", "submit", "cores", "runtime")


def check_load_expansion(case: Mapping[str, Any]) -> Outcome:
    """Runtimes at each load of a case; estimates, which are exact before, must be the same."""
    known_only(case, (*PROSE, "jobs", "expected"), "the case holds")
    workload = _jobs_to_expand(case)
    return Outcome.of([_expanded(part, workload) for part in case["expected"]])


def _jobs_to_expand(case: Mapping[str, Any]) -> Workload:
    jobs = case["jobs"]
    for job in jobs:
        known_only(job, _EXPANDED_WORDS, "a job has")
    number, submit, cores, runtime = ([job[word] for job in jobs] for word in _EXPANDED_WORDS)
    return Workload.from_columns(job=number, submit=submit, cores=cores, runtime=runtime)


def _expanded(part: Mapping[str, Any], workload: Workload) -> Run:
    load = float(part["load"])
    comparison = Comparison()
    comparison.compares(part, ("load", "runtimes"))
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
