"""Cases of machines of nodes and pools: every start, every node and GPU, every reason, and what was held in all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from gridsim.metrics.resources import share_held
from gridsim.metrics.utilisation import utilisation
from gridsim.model.capacity import NodeGroup
from gridsim.model.demand import Demand, Demands
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.testing.conformance.outcome import Comparison, Outcome, Run, Unsupported
from gridsim.testing.conformance.running import PROSE, known_only, rows_of

RULES = ("first", "pack", "spread", "weight", "dot-product", "fragmentation")
"""Names of the placement rules."""


_GROUP = ("group", "count", "capacity", "gpus", "gpu_kind", "features", "partitions", "weight")
_WORDS = ("gpu_kinds", "features", "partitions")
_COUNTS = ("cores", "tasks", "gpu", "min_nodes", "max_nodes", "tasks_per_node")
_TIMES = ("submit", "estimate", "runtime")
JOB = ("id", *_TIMES, *_COUNTS, *_WORDS, "each", "exclusive", "pools")
"""Fields of a job."""

_PARAMETERS = ("placement", "align", "typical", "resources", "depth", "compress")
_ALGORITHMS = ("fcfs", "first-fit", "easy", "depth", "conservative")
_ROUNDING = 1e-12
"""Of shares; everything else is compared exactly."""

_ROW = ("status", "start", "end", "nodes", "gpus", "reason")

Found = tuple[Mapping[int, Mapping[str, Any]], Mapping[str, Fraction | float]]
"""Rows of jobs by number, worded as a case does, and utilisation by resource."""

Scheduler = Callable[[Workload, Platform, str, Mapping[str, Any]], Found]
"""Makes the schedule of an algorithm with the parameters of a run, ``typical`` as demands with their counts."""


Fragments = Callable[[Platform, Sequence[tuple[Demand, int]], Mapping[str, int], Sequence[int]], int]
"""Useless thousandths of the one node of a platform: typical demands with their counts, what is free of each resource,
thousandths free of each GPU."""


def check_schedule(case: Mapping[str, Any], scheduler: Scheduler | None = None) -> Outcome:
    """Every run of a case of kind ``schedule``.

    Parameters
    ----------
    case : mapping
        The parsed JSON.
    scheduler : callable, optional
        What makes the schedules; gridsim where left out.
    """
    known_only(case, (*PROSE, "platform", "jobs", "runs"), "the case holds")
    platform = platform_of(case["platform"])
    for job in case["jobs"]:
        known_only(job, JOB, "a job has")
    workload = workload_of(case["jobs"], demand_of)
    return Outcome.of([_run(spec, workload, platform, scheduler or _simulated) for spec in case["runs"]])


def platform_of(words: Mapping[str, Any]) -> Platform:
    """Return the machine of a case."""
    known_only(words, ("pools", "nodes"), "the platform has")
    groups: list[NodeGroup] = []
    for group in words.get("nodes", ()):
        known_only(group, _GROUP, "a group has")
        given = {name: group[name] for name in ("gpus", "gpu_kind", "weight") if name in group}
        given |= {name: tuple(group[name]) for name in ("features", "partitions") if name in group}
        count = group["count"]
        first = sum(each.count for each in groups)
        names = tuple(str(first + number) for number in range(count))  # groups of one name are several here
        groups.append(NodeGroup(group=names[0], count=count, capacity=group["capacity"], names=names, **given))
    return Platform.of_nodes(groups, words.get("pools", {}))


def workload_of(
    jobs: Sequence[Mapping[str, Any]],
    demand: Callable[[Mapping[str, Any]], Demand],
    labels: Callable[[Sequence[Mapping[str, Any]]], Mapping[str, Sequence[int]]] = lambda _: {},
) -> Workload:
    """Return the jobs of a case in order of submission, with their demands and labels."""
    ordered = sorted(jobs, key=lambda job: (job["submit"], job["id"]))
    return Workload.from_columns(
        job=[job["id"] for job in ordered],
        submit=[job["submit"] for job in ordered],
        estimate=[max(1, job["estimate"]) for job in ordered],
        runtime=[max(1, job["runtime"]) for job in ordered],
        demands=Demands.of([demand(job) for job in ordered]),
        deadline=[job.get("deadline") for job in ordered],
        labels=labels(ordered),
    )


def demand_of(job: Mapping[str, Any]) -> Demand:
    """Return the demand of a job."""
    given: dict[str, Any] = {name: job[name] for name in (*_COUNTS, "each", "exclusive", "pools") if name in job}
    return Demand(**given | {name: tuple(job[name]) for name in _WORDS if name in job})


def _typical(tasks: Sequence[Mapping[str, Any]]) -> list[tuple[Demand, int]]:
    for task in tasks:
        known_only(task, ("each", "gpu", "gpu_kinds", "count"), "a typical task has")
    return [(demand_of({"tasks": 1, **task}), task["count"]) for task in tasks]


def _run(spec: Mapping[str, Any], workload: Workload, platform: Platform, scheduler: Scheduler) -> Run:
    name, parameters, expected = spec["algorithm"], dict(spec["parameters"]), spec["expected"]
    label = "-".join(
        [name, *(str(parameters[word]) for word in ("placement", "align", "depth", "compress") if word in parameters)]
    )
    try:
        if name not in _ALGORITHMS or parameters.get("placement") not in RULES:
            raise Unsupported("this version has no such algorithm")
        known_only(spec, ("algorithm", "parameters", "expected"), "the run holds")
        known_only(parameters, _PARAMETERS, "parameter")
        known_only(expected, ("jobs", "utilisation"), "nothing compares expected")
        if "typical" in parameters:
            parameters["typical"] = _typical(parameters["typical"])
        rows, shares = scheduler(workload, platform, name, parameters)
    except Unsupported as reason:
        return Run(label, "unsupported", (str(reason),))
    comparison = Comparison()
    _compare_jobs(comparison, rows, expected["jobs"])
    for resource, share in expected.get("utilisation", {}).items():
        comparison.near(f"utilisation of {resource}", shares.get(resource), Fraction(share), _ROUNDING)
    return comparison.verdict(label)


def _compare_jobs(
    comparison: Comparison, rows: Mapping[int, Mapping[str, Any]], jobs: Sequence[Mapping[str, Any]]
) -> None:
    """Compare rows with the case: no nodes for rejected jobs, no GPUs for jobs that request none."""
    for job in jobs:
        number = job["id"]
        if number not in rows:
            comparison.equal(f"job {number}", "not in the jobs", "there")
            continue
        for word in _ROW:
            comparison.equal(f"job {number}: {word}", rows[number].get(word), job.get(word))
        for word in job:
            if word not in ("id", *_ROW):
                comparison.cannot(word)


def check_fragmentation(case: Mapping[str, Any], fragments: Fragments | None = None) -> Outcome:
    """Useless thousandths of nodes in given states; *fragments* as for schedules."""
    known_only(case, (*PROSE, "typical", "points"), "the case holds")
    typical = _typical(case["typical"])
    runs = []
    for index, point in enumerate(case["points"]):
        known_only(point, ("node", "free", "gpus_free", "fragments"), "the point holds")
        platform = platform_of({"nodes": [{**point["node"], "count": 1}]})
        found = (fragments or _fragments)(platform, typical, point["free"], point["gpus_free"])
        comparison = Comparison()
        comparison.equal("fragments", found, point["fragments"])
        runs.append(comparison.verdict(f"points[{index}]"))
    return Outcome.of(runs)


def _simulated(workload: Workload, platform: Platform, algorithm: str, parameters: Mapping[str, Any]) -> Found:
    """Return gridsim's results."""
    from gridsim.policy.presets import policy as make_policy  # compiled kernels: only when something runs
    from gridsim.simulation import simulate

    record = simulate(workload, platform=platform, policy=policy_of(make_policy, algorithm, parameters)).record
    return {row["job"]: row for row in _rows(record, platform)}, _shares(record)


def policy_of(make_policy: Callable[[Any], Any], algorithm: str, parameters: Mapping[str, Any]) -> Any:
    """A policy of gridsim with the parameters of a run."""
    from gridsim import registry

    given = dict(parameters)
    rule = registry.Spec(given.pop("placement"), {})
    for name in ("align", "resources"):
        if name in given:
            rule.parameters[name] = given.pop(name)
    if "typical" in given:
        rule.parameters["typical"] = _as_parameters(given.pop("typical"))
    spec = registry.Spec(algorithm, {"k" if name == "depth" else name: value for name, value in given.items()})
    found = make_policy(spec)
    found.placement = registry.make("placement", rule)
    return found


def _as_parameters(typical: Sequence[tuple[Demand, int]]) -> list[dict[str, Any]]:
    """Typical tasks as a placement rule takes them."""
    return [
        {"each": task.each, "gpu": task.gpu, "gpu_kinds": task.gpu_kinds, "count": count} for task, count in typical
    ]


def _rows(record: Record, platform: Platform) -> Iterator[dict[str, Any]]:
    """Jobs as a case words them."""
    on_nodes = any(cluster.nodes for cluster in platform.clusters())
    held, reasons = record.allocations, record.reason if record.reason is not None else [""] * len(record)
    nodes: list[dict[str, int]] = [{} for _ in range(len(record))]
    gpus: list[dict[str, dict[str, int]]] = [{} for _ in range(len(record))]
    if held is not None:
        for row, node, tasks in zip(held.job.tolist(), held.node.tolist(), held.tasks.tolist(), strict=True):
            nodes[row][held.nodes[node]] = tasks
        for piece, gpu, share in zip(held.gpu_row.tolist(), held.gpu.tolist(), held.gpu_share.tolist(), strict=True):
            gpus[held.job[piece]].setdefault(held.nodes[held.node[piece]], {})[str(gpu)] = share
    for row, told in enumerate(rows_of(record).values()):
        found = {"job": told["job"], "status": told["status"]}
        if told["status"] == "rejected":
            yield found | {"reason": str(reasons[row])}
            continue
        found |= {"start": told["start"], "end": told["end"]}
        yield found | ({"nodes": nodes[row]} if on_nodes else {}) | ({"gpus": gpus[row]} if gpus[row] else {})


def _shares(record: Record) -> dict[str, float]:
    """Utilisation by resource, exclusive jobs charged with their whole nodes."""
    if record.capacity is None:
        return {"cores": utilisation(record)}
    return {name: share_held(record, name) for name in record.capacity.resources}


def _fragments(
    platform: Platform, typical: Sequence[tuple[Demand, int]], free: Mapping[str, int], gpus: Sequence[int]
) -> int:
    """Return gridsim's result for a node in a state."""
    from gridsim.policy.placement import fragments_of

    (cluster,) = platform.clusters()
    assert cluster.capacity is not None
    return fragments_of(cluster.capacity, _as_parameters(typical), free, gpus)
