"""Cases of failures and windows: every run of every job, its nodes and GPUs, and what was useful or lost.

Reservations, checkpoints, preemption, power caps and delays are not supported. Energies are not compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, get_args

from gridsim.metrics.availability import lost_core_seconds, runs_of, useful_core_seconds
from gridsim.model.capacity import NodeGroup
from gridsim.model.demand import Demand, Demands
from gridsim.model.failures import Failures
from gridsim.model.platform import Platform
from gridsim.model.windows import Window, WindowKind
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.testing.conformance import machine
from gridsim.testing.conformance.outcome import Comparison, Outcome, Run, Unsupported
from gridsim.testing.conformance.running import PROSE, known_only, rows_of

_CASE = ("family", "platform", "jobs", "runs", "mtbf", "power")
_FAILURES = ("repair", "requeue", "requeue_delay", "on_failure")
_PARAMETERS = (*_FAILURES, "spares", "placement", "depth", "no_energy")
_OWN = ("nodes", "node_cores", "on_failure", "max_restarts")
_ALGORITHMS = ("fcfs", "first-fit", "easy", "depth", "conservative")
_ZEROS = ("preemptions", "checkpoint_core_seconds", "restart_core_seconds")
_RUN_ZEROS = ("restart", "checkpoints", "checkpoint_seconds", "suspended")


def check_schedule(case: Mapping[str, Any]) -> Outcome:
    """Every run of a case of kind ``schedule``."""
    known_only(case, (*PROSE, *_CASE), "the case holds")
    platform, workload = _platform(case["platform"]), _workload(case["jobs"])
    return Outcome.of([_run(spec, workload, platform) for spec in case["runs"]])


def _platform(words: Mapping[str, Any]) -> Platform:
    if not all(isinstance(cores, int) for cores in words["nodes"]):
        return machine.platform_of(words)
    return Platform.of_nodes(
        [
            NodeGroup(group=str(at), count=1, capacity={"cores": cores}, names=(str(at),))
            for at, cores in enumerate(words["nodes"])
        ]
    )


def _workload(jobs: Sequence[Mapping[str, Any]]) -> Workload:
    ordered = sorted(jobs, key=lambda job: (job["submit"], job["id"]))
    return Workload.from_columns(
        job=[job["id"] for job in ordered],
        submit=[job["submit"] for job in ordered],
        estimate=[max(1, job["estimate"]) for job in ordered],
        runtime=[max(1, job["runtime"]) for job in ordered],
        demands=Demands.of([_demand(job) for job in ordered]),
        labels={
            "on_failure": [{"requeue": 0, "cancel": 1}.get(job.get("on_failure", ""), -1) for job in ordered],
            "max_restarts": [-1 if job.get("max_restarts") is None else job["max_restarts"] for job in ordered],
        },
    )


def _demand(job: Mapping[str, Any]) -> Demand:
    plain = {name: value for name, value in job.items() if name not in _OWN}
    if "nodes" not in job:
        known_only(plain, machine.JOB, "a job has")
        return machine.demand_of(plain)
    known_only(plain, ("id", "submit", "estimate", "runtime"), "a job has")
    count = job["nodes"]
    return Demand(tasks=count, min_nodes=count, tasks_per_node=1, each={"cores": job["node_cores"]})


def _run(spec: Mapping[str, Any], workload: Workload, platform: Platform) -> Run:
    name, parameters, expected = spec["algorithm"], dict(spec["parameters"]), spec["expected"]
    label = "-".join([name, *(str(parameters[word]) for word in ("requeue", "repair") if word in parameters)])
    try:
        if name not in _ALGORITHMS:
            raise Unsupported("this version has no such algorithm")
        known_only(spec, ("algorithm", "parameters", "failures", "windows", "expected", "until"), "the run holds")
        known_only(parameters, _PARAMETERS, "parameter")
        known_only(expected, ("jobs", "runs", "energy"), "nothing compares expected")
        windows = [_window(words) for words in spec.get("windows", ())]
        record = _simulated(workload, platform, name, parameters, spec.get("failures", ()), windows)
    except Unsupported as reason:
        return Run(label, "unsupported", (str(reason),))
    comparison = Comparison()
    _compare(comparison, "job", {(row["id"],): row for row in _jobs(record)}, expected["jobs"], ("id",))
    runs = {(row["job"], row["run"]): row for row in _runs(record)}
    _compare(comparison, "run", runs, expected["runs"], ("job", "run"))
    for key in runs.keys() - {(row["job"], row["run"]) for row in expected["runs"]}:
        comparison.equal(f"run {key}", "there", "not in the runs")
    return comparison.verdict(label)


def _window(words: Mapping[str, Any]) -> Window:
    if words["kind"] not in get_args(WindowKind):
        raise Unsupported(f"windows of the kind {words['kind']}")
    known_only(words, [it.name for it in fields(Window)], "a window has")
    end = math.inf if words.get("end") is None else words["end"]
    return Window(**{**words, "nodes": [str(node) for node in words["nodes"]], "end": end})


def _compare(
    comparison: Comparison,
    what: str,
    found: Mapping[tuple[Any, ...], Mapping[str, Any]],
    expected: Sequence[Mapping[str, Any]],
    key: Sequence[str],
) -> None:
    for row in expected:
        at = tuple(row[name] for name in key)
        if at not in found:
            comparison.equal(f"{what} {at}", "missing", "there")
            continue
        for word, value in row.items():
            if word in found[at]:
                mine = found[at][word]
                if word == "nodes" and isinstance(value, list):
                    mine = sorted(int(node) for node in mine)
                comparison.equal(f"{what} {at}: {word}", mine, value)
            else:
                comparison.cannot(word)


def _simulated(
    workload: Workload,
    platform: Platform,
    algorithm: str,
    parameters: Mapping[str, Any],
    failures: Sequence[Mapping[str, Any]],
    windows: Sequence[Window],
) -> Record:
    """Return gridsim's record."""
    from gridsim.policy.presets import policy as make_policy  # compiled kernels: only when something runs
    from gridsim.simulation import Run as Options
    from gridsim.simulation import run

    own = {
        name: parameters[name] for name in ("repair", "requeue", "requeue_delay", "on_failure") if name in parameters
    }
    policy = {name: parameters[name] for name in ("depth",) if name in parameters}
    policy["placement"] = parameters.get("placement", "first")
    trace = [
        (
            [str(node) for node in failure.get("nodes", ())]
            + [f"{node}:{gpu}" for node, gpus in failure.get("gpus", {}).items() for gpu in gpus],
            failure["down"],
            math.inf if failure.get("up") is None else failure["up"],
        )
        for failure in failures
    ]
    given = Failures(trace, windows=windows, spares=[str(node) for node in parameters.get("spares", ())], **own)
    made = machine.policy_of(make_policy, algorithm, policy)
    return run(workload, platform, made, Options(failures=given))


def _jobs(record: Record) -> Iterator[dict[str, Any]]:
    """Jobs as a case words them."""
    found = record.interruptions
    assert found is not None
    useful, lost, first = useful_core_seconds(record), lost_core_seconds(record), record.first_start_us
    reasons = [""] * len(record) if record.reason is None else record.reason.tolist()
    for row, told in enumerate(rows_of(record).values()):
        failed = told["status"] == "failed"
        ran = told["start"] is not None
        restarts = int(found.restarts[row])
        yield {
            "id": told["job"],
            "status": told["status"],
            "start": int(first[row]) / 1e6 if ran or restarts else None,
            "end": told["end"],
            "runs": restarts + ran,
            "restarts": restarts + failed,
            **dict.fromkeys(_ZEROS, 0),
            "useful_core_seconds": useful[row],
            "lost_core_seconds": lost[row],
            **({"reason": str(reasons[row])} if reasons[row] else {}),
        }


def _runs(record: Record) -> Iterator[dict[str, Any]]:
    """Runs as a case words them, numbered from 0 within a job."""
    held = record.allocations
    assert held is not None
    nodes: dict[tuple[int, int], dict[str, int]] = {}
    gpus: dict[tuple[int, int], dict[str, dict[str, int]]] = {}
    pairs = list(zip(held.job.tolist(), held.run.tolist(), strict=True))
    for pair, node, tasks in zip(pairs, held.node.tolist(), held.tasks.tolist(), strict=True):
        nodes.setdefault(pair, {})[held.nodes[node]] = tasks
    for piece, gpu, share in zip(held.gpu_row.tolist(), held.gpu.tolist(), held.gpu_share.tolist(), strict=True):
        gpus.setdefault(pairs[piece], {}).setdefault(held.nodes[held.node[piece]], {})[str(gpu)] = share
    count: dict[int, int] = {}
    for row, start, end, reason in zip(
        *(column.tolist() for column in runs_of(record)[:3]), runs_of(record)[3], strict=True
    ):
        number = count[row] = count.get(row, -1) + 1
        length, done = (end - start) / 1e6, reason == "completed"
        yield {
            "job": int(record.workload.job[row]),
            "run": number,
            "start": start / 1e6,
            "end": end / 1e6,
            "nodes": nodes.get((row, number + 1), {}),
            "gpus": gpus.get((row, number + 1), {}),
            "reason": reason,
            "kept": length if done else 0,
            "lost": 0 if done else length,
            **dict.fromkeys(_RUN_ZEROS, 0),
        }
