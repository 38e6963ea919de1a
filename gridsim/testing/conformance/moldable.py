"""Cases of moldable jobs: schedules of the strategies, limits, sizes tried and chosen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import MICROSECOND, to_us
from gridsim.registry import Spec
from gridsim.testing.conformance.outcome import Comparison, Outcome, Run, Unsupported
from gridsim.testing.conformance.ranges import PROSE, moldable_workload
from gridsim.testing.conformance.running import expected_of, known_only, rows_of, run

WORDS = {"id": "job", "processors": "cores", "start": "start", "end": "end"}
"""The family's words for columns that gridsim produces."""


_SHARE = ("wf", "gap", "weight", "scope", "choices", "grid")
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "conservative": (),
    "submit-greedy": ("choices", "grid"),
    "submit-fair-share": _SHARE,
    "aggressive-fair-share": (*_SHARE, "head", "category", "xfactor", "backfill", "promise_order"),
}
"""Strategies of the family, and the parameters that matter for each."""


def check_schedule(case: Mapping[str, Any]) -> Outcome:
    """Every run of a case of kind ``schedule``, how often its runs differ, and what another submit would change."""
    machine = case["platform"]["processors"]
    tolerance = float(case.get("tolerance", 0.0))
    jobs, specs = case["jobs"], case["runs"]
    known_only(case, (*PROSE, "platform", "jobs", "runs", "differences", "alternative"), "the case holds")
    found: list[dict[int, Any]] = []
    runs = [_run(spec, jobs, machine, tolerance, found) for spec in specs]
    if "differences" in case and len(found) == len(specs):
        runs.append(_differences(case["differences"], found, tolerance * (1 + len(jobs))))
    if "alternative" in case:
        other = case["alternative"]
        changed = _changed(jobs, other["change"])
        spec = {**specs[0], "expected": other["expected"]}
        runs.append(_run(spec, changed, machine, tolerance, found))
    return Outcome.of(runs)


def _changed(jobs: Sequence[Mapping[str, Any]], change: str) -> list[Mapping[str, Any]]:
    """Jobs of which one submits at another time, as a case words it."""
    words = re.fullmatch(r"job (\d+) submits at (\d+)", change)
    if words is None:
        raise Unsupported(f"the change '{change}'")
    number, submit = map(int, words.groups())
    return [{**job, "submit": submit} if job["id"] == number else job for job in jobs]


def _run(
    spec: Mapping[str, Any],
    jobs: Sequence[Mapping[str, Any]],
    machine: int,
    tolerance: float,
    found: list[dict[int, Any]],
) -> Run:
    name = spec["algorithm"]
    try:
        if name not in _PARAMETERS:
            raise Unsupported("this version has no such strategy")
        known_only(spec, ("algorithm", "parameters", "expected"), "the run holds")
        parameters = spec["parameters"]
        known_only(parameters, _PARAMETERS["aggressive-fair-share"], "parameter")
        expected = spec["expected"]
        known_only(expected, ("jobs",), "nothing compares expected")
        workload = moldable_workload(jobs, machine)
        record, _ = run(workload, machine, _policy(name, parameters))
    except Unsupported as reason:
        return Run(name, "unsupported", (str(reason),))
    comparison, rows = Comparison(), rows_of(record)
    found.append(rows)
    allowed = float(Fraction(str(tolerance)) * (1 + len(workload)))
    for where, word, value, row in expected_of(comparison, rows, expected["jobs"]):
        if word in ("start", "end"):
            comparison.near(where, row[word], value, allowed)
        elif word in WORDS:
            comparison.equal(where, row[WORDS[word]], value)
        else:
            comparison.cannot(word)
    return comparison.verdict(name)


def _differences(expected: Sequence[Sequence[int]], found: Sequence[Mapping[int, Any]], tolerance: float) -> Run:
    """In how many jobs each two runs differ."""
    comparison = Comparison()
    for one, row in enumerate(expected):
        for other, count in enumerate(row):
            pairs = [(found[one][number], found[other][number]) for number in found[one]]
            differ = sum(
                a["cores"] != b["cores"] or any(abs(a[time] - b[time]) > tolerance for time in ("start", "end"))
                for a, b in pairs
            )
            comparison.equal(f"jobs in which runs {one} and {other} differ", differ, count)
    return comparison.verdict("differences")


def _policy(name: str, parameters: Mapping[str, Any]) -> Spec:
    """The policy of a run, every parameter that it gives and that matters set."""
    if name == "conservative":
        return Spec("conservative", {"compress": "planned"})
    if name == "submit-greedy":
        return Spec("moldable-greedy", {key: parameters[key] for key in _PARAMETERS[name] if key in parameters})
    share = Spec("fair-share", {key: parameters[key] for key in _SHARE if key in parameters})
    if name == "submit-fair-share":
        return Spec("planned", {"partition": share})
    others = {key: parameters[key] for key in ("backfill", "promise_order") if key in parameters}
    return Spec("moldable", {"partition": share, "reserve": _rule(parameters), **others})


def _rule(parameters: Mapping[str, Any]) -> Spec:
    """Return the reservation rule: lanes of categories or of the first job, and lanes of expansion factors."""
    category, xfactor = parameters.get("category"), parameters.get("xfactor")
    rule = Spec("easy" if parameters.get("head", True) else "first-fit", {})
    if category is not None:
        rule = Spec("category", dict(category))
    return rule if xfactor is None else Spec("xfactor", {"k": xfactor, "others": rule})


def check_choices(case: Mapping[str, Any]) -> Outcome:
    """The sizes tried of ranges, on both grids."""
    from gridsim.policy.scheduler.core_count_choice import spread  # compiled kernels: only when something runs

    known_only(case, (*PROSE, "points"), "the case holds")
    comparison = Comparison()
    for index, point in enumerate(case["points"]):
        known_only(point, ("min", "max", "count", "geometric", "linear"), "the point holds")
        low, high, choices = (point[name] for name in ("min", "max", "count"))
        for grid in ("geometric", "linear"):
            sizes = np.zeros(max(choices, high - low + 1), dtype=np.int64)
            count = spread(low, high, choices, grid == "geometric", sizes)
            if grid in point:
                comparison.equal(f"points[{index}].{grid}", sizes[:count].tolist(), point[grid])
    return Outcome.of([comparison.verdict("choices")])


def check_partition(case: Mapping[str, Any]) -> Outcome:
    """Choices of a size over free-time blocks: what is evaluated, in order, and what is chosen."""
    known_only(case, (*PROSE, "cases"), "the case holds")
    tolerance = float(case.get("tolerance", 0.0))
    return Outcome.of([_partition(part, f"cases[{i}]", tolerance) for i, part in enumerate(case["cases"])])


def _partition(part: Mapping[str, Any], where: str, tolerance: float) -> Run:
    from gridsim.machine.blocks import earliest
    from gridsim.policy.partition import Greedy
    from gridsim.policy.queue import Requests
    from gridsim.policy.scheduler.core_count_choice import LEAST, MOST, by_blocks
    from gridsim.policy.scheduler.moldable_state import Shapes

    fields = ("title", "now", "free_blocks", "afterwards", "job", "limit", "evaluated", "chosen")
    known_only(part, (*fields, "brute_force_evaluations"), "the part holds")
    cores = part["afterwards"]
    job = {"id": 1, "submit": 0, "estimate": part["job"]["runtime"], **part["job"]}
    shapes = Shapes(Requests(moldable_workload([job], cores)), Greedy(choices="all"), cores)
    blocks = part["free_blocks"]
    times = np.array([to_us(float(start)) for start, _, _ in blocks] + [to_us(float(blocks[-1][1]))])
    free = np.array([count for _, _, count in blocks] + [cores])
    size, high = len(times), min(part["limit"], int(shapes.table[MOST, 0]))
    high = max(high, int(shapes.table[LEAST, 0]))
    widths = np.zeros(64, dtype=np.int64)
    start, chosen, count = by_blocks(times, free, size, shapes.table, shapes.relative, 0, high, widths)
    comparison = Comparison()

    def compare(name: str, at: int, width: int, expected: Mapping[str, Any]) -> None:
        known_only(expected, ("processors", "start", "end"), name)
        comparison.equal(f"{name}: processors", width, expected["processors"])
        comparison.near(f"{name}: start", at / MICROSECOND, expected["start"], tolerance)
        comparison.near(f"{name}: end", (at + shapes.on(0, width)) / MICROSECOND, expected["end"], tolerance)

    evaluated = part["evaluated"]
    comparison.equal("sizes evaluated", widths[:count].tolist(), [size["processors"] for size in evaluated])
    for width, expected in zip(widths[:count].tolist(), evaluated, strict=False):
        at = int(earliest(times, free, size, width, shapes.on(0, width)))
        compare(f"evaluated {width}", at, width, expected)
    compare("chosen", int(start), int(chosen), part["chosen"])
    everything = np.arange(shapes.table[LEAST, 0], high + 1)
    ends = [earliest(times, free, size, n, shapes.on(0, int(n))) + shapes.on(0, int(n)) for n in everything]
    comparison.near("end when every size is tried", min(ends) / MICROSECOND, part["chosen"]["end"], tolerance)
    return comparison.verdict(str(part.get("title", where)))


def check_limits(case: Mapping[str, Any]) -> Outcome:
    """Check fair-share limits of jobs while other jobs run."""
    known_only(case, (*PROSE, "platform", "jobs", "running", "runs", "alone"), "the case holds")
    machine = case["platform"]["processors"]
    jobs, running = case["jobs"], case["running"]
    runs = [_limits(spec, machine, jobs, running) for spec in case["runs"]]
    if "alone" in case:  # without other jobs in the system, every rule reduces to the gap factor
        alone = case["alone"]
        known_only(alone, ("jobs", "expected"), "alone holds")
        runs += [_limits({**spec, "expected": alone["expected"]}, machine, alone["jobs"], ()) for spec in case["runs"]]
    return Outcome.of(runs)


def _limits(
    spec: Mapping[str, Any], machine: int, jobs: Sequence[Mapping[str, Any]], running: Sequence[Mapping[str, Any]]
) -> Run:
    from gridsim.policy.partition import ShareOfWork, largest
    from gridsim.policy.queue import Queue, Requests

    known_only(spec, ("weight", "scope", "wf", "gap", "expected"), "the run holds")
    left = {job["id"]: job for job in running}
    rows = [
        {"id": job["id"], "submit": 0, "processors": 1, "runtime": job["weight"], "estimate": job["weight"]}
        | {"min": job["min"], "max": job["max"], "A": job["max"], "sigma": 0}
        for job in jobs
    ]
    requests = Requests(moldable_workload(rows, machine))
    number = [job["id"] for job in jobs]
    runs = np.array([row for row, name in enumerate(number) if name in left], dtype=np.int64)
    waits = np.array([row for row, name in enumerate(number) if name not in left], dtype=np.int64)
    length = requests.estimate_seconds[runs]
    part = np.array([_left(left[number[row]]) for row in runs])
    state = {"began": (part - 1) * length, "expected": part * length}
    queue = Queue(requests, waits, {"total": machine, "running": Queue(requests, runs, state)})
    try:
        share = ShareOfWork(wf=spec["wf"], gap=spec["gap"], weight=spec["weight"], scope=spec["scope"])
    except ValueError as error:
        raise InputError(str(error), field="runs") from error
    limits = share.limits(queue, 0.0)
    sizes = largest(limits, requests.minimum[waits], requests.maximum[waits])
    comparison = Comparison()
    found = {
        number[row]: (limit, size) for row, limit, size in zip(waits, limits.tolist(), sizes.tolist(), strict=True)
    }
    for job in spec["expected"]:
        known_only(job, ("id", "limit", "largest"), "the job holds")
        if job["id"] not in found:
            comparison.equal(f"job {job['id']}", "not in the queue", "there")
            continue
        limit, size = found[job["id"]]
        fixed = next(one["min"] == one["max"] for one in jobs if one["id"] == job["id"])
        # Jobs of one size need no limit: a case gives their size.
        comparison.equal(f"job {job['id']}: limit", size if fixed else limit, job["limit"])
        comparison.equal(f"job {job['id']}: largest", size, job["largest"])
    return comparison.verdict("-".join(str(spec[name]) for name in ("weight", "scope", "wf")))


def _left(job: Mapping[str, Any]) -> float:
    known_only(job, ("id", "remaining"), "the running job holds")
    return float(job["remaining"])


def check_lublin(case: Mapping[str, Any]) -> Outcome:
    """The parts of the Lublin-Feitelson model that are not random draws."""
    from gridsim.testing.lublin_cases import check_case  # scipy.stats: a second, for this kind only

    messages = tuple(check_case(case))
    unknown = tuple(message for message in messages if message.startswith("unknown part"))
    if len(unknown) < len(messages):
        return Outcome("failed", tuple(message for message in messages if message not in unknown), failed=1)
    return Outcome("unsupported", unknown, unsupported=1) if unknown else Outcome("passed", passed=1)
