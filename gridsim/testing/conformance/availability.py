"""Cases of failures and windows: every run of every job, its nodes and GPUs, and what was useful or lost.

Jobs that wait for others (``after``) are the tasks of one job. Power caps and delays are not supported, and
energies are not compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from gridsim.metrics.availability import (
    lost_core_seconds,
    overhead_core_seconds,
    runs_of,
    spent_in_runs,
    useful_core_seconds,
)
from gridsim.model.capacity import NodeGroup
from gridsim.model.checkpoints import Checkpoints
from gridsim.model.demand import Demand
from gridsim.model.failures import Failures
from gridsim.model.platform import Platform
from gridsim.model.tasks import Tasks
from gridsim.model.time import NEVER
from gridsim.model.windows import Window
from gridsim.model.workload import USUAL, Workload
from gridsim.record import Record, Status
from gridsim.testing.conformance import machine
from gridsim.testing.conformance.outcome import Comparison, Outcome, Run, Unsupported
from gridsim.testing.conformance.running import PROSE, known_only

_CASE = ("family", "platform", "jobs", "runs", "mtbf", "power")
_FAILURES = ("repair", "requeue", "requeue_delay", "on_failure")
_PARAMETERS = (
    *_FAILURES,
    "requeue_estimate",
    "final_checkpoint",
    "spares",
    "placement",
    "depth",
    "no_energy",
    "preemption",
)
_LABELS = ("user", "account", "reservation")
_CHECKPOINT = {"interval": "checkpoint_interval", "cost": "checkpoint_cost", "restart": "restart_cost"}
_ROW = ("work", "interval", "cost", "restart", "mtbf", "nodes", "final_checkpoint", "after", "expected")
_ALGORITHMS = ("fcfs", "first-fit", "easy", "depth", "conservative", "guaranteed")
_INTERRUPTED = ("on_failure", "max_restarts", "checkpoint", "save_before")
_OWN = ("nodes", "node_cores", "after", "deadline", *_INTERRUPTED, *USUAL, *_LABELS)


def check_schedule(case: Mapping[str, Any]) -> Outcome:
    """Every run of a case of kind ``schedule``."""
    known_only(case, (*PROSE, *_CASE), "the case holds")
    platform = _platform(case["platform"])
    try:
        workload = _workload(case["jobs"])
    except Unsupported as reason:
        return Outcome.cannot(str(reason))
    common = (
        {"interval": _by_formula(case["jobs"]), "mtbf": case.get("mtbf")}
        if "checkpoint_cost" in workload.labels
        else None
    )
    return Outcome.of([_run(spec, workload, platform, common) for spec in case["runs"]])


def check_checkpoint(case: Mapping[str, Any]) -> Outcome:
    """Every row of a case of kind ``checkpoint``: the interval, the duration of a run, and what it keeps."""
    known_only(case, (*PROSE, "family", "rows"), "the case holds")
    return Outcome.of([_checkpoint_row(f"row {at}", row) for at, row in enumerate(case["rows"])])


def _checkpoint_row(label: str, row: Mapping[str, Any]) -> Run:
    known_only(row, _ROW, "the row has")
    saving = Checkpoints(row["interval"], final_checkpoint=row.get("final_checkpoint", False))
    work, cost, restart = (1_000_000 * row.get(name, 0) for name in ("work", "cost", "restart"))
    mtbf = math.inf if row.get("mtbf") is None else row["mtbf"] * 1e6
    interval = saving.interval_us(cost, mtbf / row.get("nodes", 1))
    run, after = saving.stretch(work, interval, cost, restart), row.get("after")
    found = {
        "interval": None if interval >= NEVER else interval / 1e6,
        "checkpoints": run.checkpoints,
        "wall": run.length / 1e6,
    }
    if after is not None:
        kept = run.after(1_000_000 * after)
        lost = after - (kept.restart + kept.work + kept.writing) / 1e6
        found |= {"restart": kept.restart / 1e6, "complete": kept.checkpoints, "kept": kept.work / 1e6}
        found |= {"work_done": run.worked(1_000_000 * after) / 1e6, "lost": lost}
    comparison = Comparison()
    _compare(
        comparison, "row", {(label,): {**found, "label": label}}, [{"label": label, **row["expected"]}], ("label",)
    )
    return comparison.verdict(label)


def _workload(jobs: Sequence[Mapping[str, Any]]) -> Workload:
    """Return the jobs; those of a graph (``after``) are the tasks of one job."""
    rigid = replace(machine.workload_of(jobs, _demand, _labels), names=_names(jobs))
    if not any("after" in job for job in jobs):
        return rigid
    if any(len(np.unique(column)) > 1 for column in (rigid.submit, *rigid.labels.values())):
        raise Unsupported("jobs of a graph with several submit times, or several rules for interruptions")
    row = {number: at for at, number in enumerate(rigid.job.tolist())}
    tasks = Tasks.from_edges(
        counts=[len(rigid)],
        runtime=rigid.runtime / 1e6,
        estimate=rigid.estimate / 1e6,
        cores=rigid.cores,
        edges=[(row[before], row[job["id"]]) for job in jobs for before in job.get("after", ())],
        names=[str(number) for number in row],
    )
    labels = {name: column[:1] for name, column in rigid.labels.items()}
    return Workload.from_tasks(tasks, submit=rigid.submit[:1] / 1e6, labels=labels, demands=rigid.demands)


def _platform(words: Mapping[str, Any]) -> Platform:
    if not all(isinstance(cores, int) for cores in words["nodes"]):
        return machine.platform_of(words)
    return Platform.of_nodes(
        [
            NodeGroup(group=str(at), count=1, capacity={"cores": cores}, names=(str(at),))
            for at, cores in enumerate(words["nodes"])
        ]
    )


def _names(jobs: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Names of users, accounts and reservations."""
    found = {label: tuple(sorted({job[label] for job in jobs if label in job})) for label in _LABELS}
    return {label: known for label, known in found.items() if known}


def _labels(jobs: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """Labels of what happens to interrupted jobs, and of their checkpoints."""
    return {
        "on_failure": [{"requeue": 0, "cancel": 1}.get(job.get("on_failure", ""), -1) for job in jobs],
        "max_restarts": [-1 if job.get("max_restarts") is None else job["max_restarts"] for job in jobs],
        **{name: [int(job.get(name, usual)) for job in jobs] for name, usual in USUAL.items()},
        **{
            label: [known.index(job[label]) if label in job else -1 for job in jobs]
            for label, known in _names(jobs).items()
        },
        **_saving(jobs),
    }


def _saving(jobs: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """Labels of checkpoints, if any job has them; an interval of 0 is none, and -1 that of the run (`_by_formula`)."""
    if not any("checkpoint" in job or "save_before" in job for job in jobs):
        return {}
    own = [job.get("checkpoint", {}) for job in jobs]
    for each in own:
        known_only(each, tuple(_CHECKPOINT), "a checkpoint has")
    found = {label: [each.get(word) or 0 for each in own] for word, label in _CHECKPOINT.items()}
    found["checkpoint_interval"] = [-1 if isinstance(value, str) else value for value in found["checkpoint_interval"]]
    return {**found, "save_before": [job.get("save_before", -1) for job in jobs]}


def _by_formula(jobs: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the only formula for intervals that jobs name."""
    found = {interval for job in jobs if isinstance(interval := job.get("checkpoint", {}).get("interval"), str)}
    if len(found) > 1:
        raise Unsupported("intervals by several formulas")
    return next(iter(found), None)


def _demand(job: Mapping[str, Any]) -> Demand:
    plain = {name: value for name, value in job.items() if name not in _OWN}
    if "nodes" not in job:
        known_only(plain, machine.JOB, "a job has")
        return machine.demand_of(plain)
    known_only(plain, ("id", "submit", "estimate", "runtime"), "a job has")
    count = job["nodes"]
    return Demand(tasks=count, min_nodes=count, tasks_per_node=1, each={"cores": job["node_cores"]})


def _run(spec: Mapping[str, Any], workload: Workload, platform: Platform, common: Mapping[str, Any] | None) -> Run:
    name, parameters, expected = spec["algorithm"], dict(spec["parameters"]), spec["expected"]
    label = "-".join([name, *(str(parameters[word]) for word in ("requeue", "repair") if word in parameters)])
    try:
        if name not in _ALGORITHMS:
            raise Unsupported("this version has no such algorithm")
        known_only(spec, ("algorithm", "parameters", "failures", "windows", "expected", "until"), "the run holds")
        known_only(parameters, _PARAMETERS, "parameter")
        known_only(expected, ("jobs", "runs", "energy"), "nothing compares expected")
        windows = [_window(words) for words in spec.get("windows", ())]
        own = {word: parameters[word] for word in ("requeue_estimate", "final_checkpoint") if word in parameters}
        saving = None if common is None and not own else Checkpoints(**(common or {}), **own)
        record = _simulated(workload, platform, name, parameters, spec.get("failures", ()), windows, saving)
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
    known_only(words, [it.name for it in fields(Window)], "a window has")
    end = math.inf if words.get("end") is None else words["end"]
    nodes = words["nodes"] if isinstance(words["nodes"], int) else [str(node) for node in words["nodes"]]
    return Window(**{**words, "nodes": nodes, "end": end})


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
    saving: Checkpoints | None,
) -> Record:
    """Return gridsim's record."""
    from gridsim import registry
    from gridsim.policy.presets import policy as make_policy  # compiled kernels: only when something runs
    from gridsim.simulation import Run as Options
    from gridsim.simulation import run

    own = {name: parameters[name] for name in _FAILURES if name in parameters}
    spares = [str(node) for node in parameters.get("spares", ())]
    policy = {name: parameters[name] for name in ("depth",) if name in parameters}
    policy["placement"] = parameters.get("placement", "first")
    if algorithm == "guaranteed":
        policy["admission"] = "conservative"
    if "preemption" in parameters:
        words = dict(parameters["preemption"])
        policy["preempt"] = registry.make("preemption", registry.Spec(words.pop("mode"), words))
    trace = [
        (
            [str(node) for node in failure.get("nodes", ())]
            + [f"{node}:{gpu}" for node, gpus in failure.get("gpus", {}).items() for gpu in gpus],
            failure["down"],
            math.inf if failure.get("up") is None else failure["up"],
        )
        for failure in failures
    ]
    given = Failures(trace, windows=windows, spares=spares, checkpoints=saving, **own)
    made = machine.policy_of(make_policy, algorithm, policy)
    return run(workload, platform, made, Options(failures=given))


def _jobs(record: Record) -> Iterator[dict[str, Any]]:
    """Jobs as a case words them."""
    found = record.interruptions
    assert found is not None
    useful, lost = useful_core_seconds(record), lost_core_seconds(record)
    of, began = (column.tolist() for column in runs_of(record)[:2])
    first = dict(zip(reversed(of), reversed(began), strict=True))
    checkpoint, restart = overhead_core_seconds(record)
    ids, ran = _numbers(record), record if record.tasks is None else record.tasks
    promises, none = record.promises, np.full(len(ids), NEVER)
    at = none if promises is None or promises.broken_at_us is None else promises.broken_at_us
    granted = none if promises is None else promises.granted_us
    preemptions = record.preemptions.tolist()
    reasons = [""] * len(ids) if record.reason is None or record.tasks is not None else record.reason.tolist()
    columns = (ran.end_us.tolist(), ran.status.tolist())
    for row, (number, end, status) in enumerate(zip(ids, *columns, strict=True)):
        yield {
            "id": number,
            "status": Status(status).name,
            "start": first[row] / 1e6 if row in first else None,
            "end": end / 1e6 if end < NEVER else None,
            "granted": None if granted[row] >= NEVER else int(granted[row]) / 1e6,
            "broken_at": None if at[row] >= NEVER else int(at[row]) / 1e6,
            "runs": of.count(row),
            "restarts": int(found.restarts[row]) + (status == Status.failed),
            "preemptions": preemptions[row],
            "useful_core_seconds": float(useful[row]),
            "lost_core_seconds": float(lost[row]),
            "checkpoint_core_seconds": float(checkpoint[row]),
            "restart_core_seconds": float(restart[row]),
            **({"reason": str(reasons[row])} if reasons[row] else {}),
        }


def _numbers(record: Record) -> list[int]:
    """Numbers of the jobs of a case, which can be tasks of one job."""
    tasks = record.workload.tasks
    return record.workload.job.tolist() if tasks is None or tasks.names is None else [int(name) for name in tasks.names]


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
    ids = _numbers(record)
    row, start, end, reasons, _ = runs_of(record)
    spent = [column.tolist() for column in spent_in_runs(record)]
    for job, began, ended, reason, restart, kept, checkpoints, writing, suspended, lost in zip(
        row.tolist(), start.tolist(), end.tolist(), reasons, *spent, strict=True
    ):
        number = count[job] = count.get(job, -1) + 1
        yield {
            "job": ids[job],
            "run": number,
            "start": began / 1e6,
            "end": ended / 1e6,
            "nodes": nodes.get((job, number + 1), {}),
            "gpus": gpus.get((job, number + 1), {}),
            "reason": reason,
            "restart": restart / 1e6,
            "kept": kept / 1e6,
            "checkpoints": checkpoints,
            "checkpoint_seconds": writing / 1e6,
            "lost": lost / 1e6,
            "suspended": suspended / 1e6,
        }
