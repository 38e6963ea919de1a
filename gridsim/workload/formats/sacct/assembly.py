"""Build the workload from accepted rows, and collect statistics for the report."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.workload.formats.columns import MOST_IN_USE
from gridsim.workload.formats.sacct.clusters import Clusters
from gridsim.workload.formats.sacct.dependencies import Edges, chained
from gridsim.workload.formats.sacct.job_labels import needs
from gridsim.workload.formats.sacct.rows import NAMED
from gridsim.workload.formats.sacct.screening import SacctIntake
from gridsim.workload.formats.sacct.tres_demands import demands, named
from gridsim.workload.formats.sacct.values import ABSENT, BoolArray, Facts, SacctColumns, codes
from gridsim.workload.formats.swf_header import CANCELLED
from gridsim.workload.formats.task_demands import GPU_TYPES

_ENOUGH = 20
"""Number of jobs above which a log without completed jobs, or with one user, is suspicious."""

_PREEMPTED = codes("PREEMPTED")
_COMPLETED, _CANCELLED = codes("COMPLETED", "CANCELLED")
_FAILED = codes(
    "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "LAUNCH_FAILED"
)

_KEPT = (
    ("requested", "requested", np.int32),
    ("nodes", "nodes", np.int32),
    ("memory", "memory", np.int64),
    ("gpus", "gpus", np.int32),
    (GPU_TYPES, "gpu_types", np.int32),
    ("priority", "priority", np.int64),
    ("reason", "reason", np.int32),
    ("array_task", "task", np.int64),
    ("het_part", "part", np.int32),
)
"""Logged columns, the columns they are derived from, and their types."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Accepted rows of a log and their statistics.

    Attributes
    ----------
    rows : (m,) int64
        Rows of the lines, one per job in job order; a row of several tasks occurs several times.
    earlier, gave_up : (n,) bool
        Lines of runs before the last one of a job; lines of jobs that were cancelled before their start.
    runs : mapping of str to (n,) array
        Data on all runs of the job of each line (`Runs.of_jobs`).
    edges : Edges
        Dependencies between rows.
    jobs : int
        Number of lines that are the only or last run of a job, kept or not.
    states, cores_field : mapping
        Number of these by final state; number of lines with allocated cores, and with requested cores only.
    machine : int or None
        Cores of the machine, if given.
    peaks : list of int
        Peak number of cores in use, per cluster.
    clusters : Clusters
        Clusters of the log that are read.
    clock : str
        ``epoch``, a time zone, or ``local``.
    missing : list of str
        Missing data that the log could contain.
    """

    rows: IntArray
    earlier: BoolArray
    runs: Mapping[str, npt.NDArray[Any]]
    gave_up: BoolArray
    edges: Edges
    jobs: int
    states: dict[str, int]
    cores_field: dict[str, int]
    machine: int | None
    peaks: list[int]
    clusters: Clusters
    clock: str
    missing: list[str]


class Assembly:
    """Builder of a workload from parsed lines and accepted rows."""

    def __init__(self, intake: SacctIntake, lines: SacctColumns, facts: Facts, kept: Kept) -> None:
        self._intake, self._lines, self._facts, self._kept = intake, lines, facts, kept

    def workload(self, sha256: str, files: int = 1) -> Workload:
        """Return the workload of the accepted rows, in their order."""
        facts, rows, edges = self._facts, self._kept.rows, self._kept.edges
        submit = facts.submit[rows]
        origin = int(min(submit.min(), facts.first_submit[rows].min()))
        job = self._numbers()
        logged = self._logged()
        labels, names = self._labels()
        labels |= needs(self._lines.columns, rows, facts.last_start[rows], facts.end[rows])
        labels |= self._requeue()
        said = {label: texts.names() for label, texts in self._intake.parser.said.items()}
        more, words = named(self._lines.columns, rows, self._intake.parser.more.names(), said)
        labels, names = labels | more, names | words
        if "reason" in logged:
            names["logged_reason"] = self._intake.parser.reasons.names()
        if GPU_TYPES in logged:
            names[GPU_TYPES] = self._intake.parser.gpu_types.names()
        if len(edges):
            labels["after"] = logged["after"] = edges.last_awaited(rows, job, facts.end)
        if self._kept.gave_up.any():
            labels["withdrawn"] = self._patience()
        told = demands(self._lines.columns, rows, facts.cores[rows], labels, names, self._intake.parser.more.names())
        workload = Workload(
            job=job,
            submit=(submit - origin) * MICROSECOND,
            runtime=facts.elapsed[rows] * MICROSECOND,
            estimate=facts.limit[rows] * MICROSECOND,
            cores=facts.cores[rows],
            deadline=np.full(len(rows), NEVER, dtype=np.int64),
            labels=labels,
            logged=logged,
            cores_stated=self._kept.machine or sum(self._kept.peaks) or None,
            provenance={
                **self._provenance(sha256, files, origin, logged["status"]),
                **({} if told is None else {"demands": told[1]}),
            },
            names=names,
            demands=None if told is None else told[0],
        )
        return chained(workload, edges.among(rows)) if edges.joined else workload

    def _numbers(self) -> IntArray:
        """Return the job numbers: raw ones, or numbers above the largest for jobs without one."""
        rows = self._kept.rows
        if "raw" in self._lines:
            job = self._lines.column("raw")[rows].astype(np.int64)
            new = np.zeros(len(rows), dtype=bool)
        else:
            job = self._lines.column("base")[rows].astype(np.int64)
            new = (self._lines.column("task")[rows] != ABSENT) | (self._lines.column("part")[rows] > 0)
        new |= self._kept.earlier[rows]
        new[1:] |= rows[1:] == rows[:-1]
        again = np.ones(len(rows), dtype=bool)
        fixed = np.flatnonzero(~new)
        again[fixed[np.unique(job[fixed], return_index=True)[1]]] = False
        repeated = np.flatnonzero(again & ~new)
        if len(repeated):
            lines = np.sort(self._lines.column("number")[rows[repeated]])
            self._intake.problems.found(
                "duplicate-job", lines[:8].tolist(), count=len(repeated), value=int(job[repeated[0]])
            )
        fresh = np.flatnonzero(again)
        job[fresh] = max(int(job.max(initial=0)), 0) + 1 + np.arange(len(fresh))
        return job

    def _logged(self) -> dict[str, npt.NDArray[Any]]:
        """Return the logged schedule, relative to submit times so that it shifts with them, and the allocations."""
        facts, rows = self._facts, self._kept.rows
        running, held = facts.running[rows], facts.held[rows].astype(np.float64)
        logged: dict[str, npt.NDArray[Any]] = {
            "wait": np.where(facts.start[rows] == ABSENT, np.nan, facts.start[rows] - facts.submit[rows]),
            "status": _statuses(facts.state[rows], running),
            "allocated": np.maximum(self._lines.column("allocated")[rows], UNKNOWN).astype(np.int64),
            "state": facts.state[rows].astype(np.int8),
            "before_eligible": (facts.submit[rows] - facts.first_submit[rows]).astype(np.float64),
        }
        held[running | (facts.start[rows] == ABSENT)] = np.nan
        if not np.array_equal(held, facts.elapsed[rows]):
            logged["held"] = held
        for name, column, kind in _KEPT:
            if column in self._lines and (self._lines.columns[column][rows] != ABSENT).any():
                logged[name] = self._lines.columns[column][rows].astype(kind)
        logged |= self._runs()
        if "array_task" in logged or "het_part" in logged:
            logged["array_job"] = self._lines.identity()[rows].astype(np.int64)
        return logged

    def _runs(self) -> dict[str, npt.NDArray[Any]]:
        """Return data on runs, for logs with requeued or preempted jobs."""
        facts, rows = self._facts, self._kept.rows
        runs = {name: column[rows] for name, column in self._kept.runs.items()}
        found: dict[str, npt.NDArray[Any]] = {}
        if (runs["runs"] > 1).any():
            found = {"runs": runs["runs"], "lost": runs["lost"]}
        if runs["preempted"].any():
            found["preempted"] = runs["preempted"]
        last = facts.last_start[rows]
        if (last != facts.start[rows])[facts.start[rows] != ABSENT].any():
            found["last_wait"] = np.where(facts.start[rows] == ABSENT, np.nan, last - facts.submit[rows])
        return found

    def _requeue(self) -> dict[str, IntArray]:
        """Return which jobs are requeueable: by their submit lines, else by the outcome of preempted jobs."""
        rows, runs = self._kept.rows, self._kept.runs
        said = self._lines.column("requeue")[rows].astype(np.int64)
        ended = np.isin(self._facts.state[rows], _PREEMPTED) & ~self._kept.earlier[rows]
        again = (runs["preempted"][rows] > ended) | (self._kept.earlier & (runs["preempted"] > 0))[rows]
        found = np.where(said != ABSENT, said, np.where(again, 1, np.where(ended, 0, UNKNOWN)))
        return {"requeue": found} if (found != UNKNOWN).any() else {}

    def _all_runs(self) -> dict[str, Any]:
        """Return the requeued and preempted runs in the log, excluded jobs included."""
        runs = self._kept.runs
        again, preempted = runs["runs"] > 1, int(runs["preempted"].sum())
        if not again.any() and not preempted:
            return {}
        numbers = {"requeued_jobs": int(np.count_nonzero(again)), "preempted": preempted}
        return {"runs": {**numbers, "lost_core_seconds": float(runs["lost"].sum())}}

    def _labels(self) -> tuple[dict[str, IntArray], dict[str, tuple[str, ...]]]:
        labels: dict[str, IntArray] = {}
        names: dict[str, tuple[str, ...]] = {}
        for label in NAMED if self._kept.clusters.several else [name for name in NAMED if name != "cluster"]:
            codes = self._intake.parser.codes[label]
            if codes.overflown:
                self._kept.missing.append(f"labels '{label}': more than {len(codes):,} different names")
            elif label in self._lines or f"said_{label}" in self._lines:
                column = self._lines.column(label, UNKNOWN)[self._kept.rows].astype(np.int64)
                if f"said_{label}" in self._lines:  # from submit lines, if the log has no column or no value
                    column = np.where(column == UNKNOWN, self._lines.column(f"said_{label}")[self._kept.rows], column)
                if (column != UNKNOWN).any():
                    labels[label], names[label] = column, codes.names()
        for label, source in (("group", "account"), ("queue", "qos")):
            if label not in labels and source in labels:
                labels[label], names[label] = labels[source], names[source]
        return labels, names

    def _lacks(self) -> list[str]:
        """Return the missing data that the log could contain."""
        rows, states = self._kept.rows, self._facts.state[self._kept.rows]
        lacking = list(self._kept.missing)
        if "state" not in self._lines:
            lacking.append("states (State): failed and cancelled jobs cannot be distinguished")
        elif len(rows) >= _ENOUGH and not (states == _COMPLETED).any():
            lacking.append("jobs that completed (was sacct called with -s?)")
        user = self._lines.columns.get("user")
        if user is not None and len(rows) >= _ENOUGH and len(np.unique(user[rows])) == 1:
            lacking.append("jobs of other users (was sacct called without -a?)")
        cut = sum(name.endswith(b"+") for codes in self._intake.parser.codes.values() for name in codes)
        if cut and any(header.spans for header in self._intake.headers):
            lacking.append(f"{cut} full names (tables truncate them; use sacct -P)")
        return lacking

    def _provenance(self, sha256: str, files: int, origin: int, statuses: IntArray) -> dict[str, Any]:
        intake, kept = self._intake, self._kept
        header: dict[str, list[str]] = {}
        if kept.clock != "local":
            header["UnixStartTime"] = [str(origin)]
        if kept.clock not in ("local", "epoch"):
            header["TimeZoneString"] = [kept.clock]
        moment = np.datetime_as_string(np.datetime64(origin, "s"))
        words = {"local": "of a clock in an unknown time zone", "epoch": "UTC"}.get(kept.clock, "UTC")
        return {
            "source": os.fspath(intake.path),  # type: ignore[call-overload]
            "sha256": sha256,
            "format": "sacct",
            **({"files": files} if files > 1 else {}),
            "lines": intake.lines,
            "comments": intake.comments,
            "steps": intake.steps,
            "jobs_read": kept.jobs + int(np.count_nonzero(kept.rows[1:] == kept.rows[:-1])),
            "jobs_kept": len(kept.rows),
            "header": header,
            "cores_from": MOST_IN_USE if kept.machine is None else "given",
            "cores_field": kept.cores_field,
            "cores_rule": "allocated",
            "problems": intake.problems.to_json(),
            "statuses": {
                str(code): int(count) for code, count in zip(*np.unique(statuses, return_counts=True), strict=True)
            },
            "states": kept.states,
            **self._all_runs(),
            "clock": {"origin": origin, "zone": kept.clock},
            "origin_shift": f"{moment} ({words}) becomes 0 s",
            "missing": self._lacks(),
            **kept.clusters.provenance(kept.rows, kept.peaks),
        }

    def _patience(self) -> IntArray:
        """Return the seconds that jobs waited until they were cancelled; 0 for jobs that never became eligible."""
        facts, rows = self._facts, self._kept.rows
        eligible = self._lines.column("eligible")[rows] if "eligible" in self._lines else facts.submit[rows]
        waited = np.where(eligible == ABSENT, 0, np.maximum(facts.end[rows] - facts.submit[rows], 0))
        return np.where(self._kept.gave_up[rows], waited, UNKNOWN)


def _statuses(states: IntArray, running: BoolArray) -> IntArray:
    """Return the status codes of SWF."""
    status = np.full(len(states), -1, dtype=np.int64)
    status[states == _COMPLETED] = 1
    status[np.isin(states, _FAILED)] = 0
    status[np.isin(states, [_CANCELLED])] = CANCELLED
    status[running] = -1
    return status
