"""From rows of numbers to jobs: which lines are runs of one job, what is wrong with it, and what is made of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.workload.formats.columns import Screen
from gridsim.workload.formats.sacct.clock import Zone
from gridsim.workload.formats.sacct.dependencies import Edges, chained
from gridsim.workload.formats.sacct.fields import refusal
from gridsim.workload.formats.sacct.intake import Intake
from gridsim.workload.formats.sacct.needs import needs
from gridsim.workload.formats.sacct.rows import NAMED
from gridsim.workload.formats.sacct.values import ABSENT, PARTITION, STATES, UNLIMITED, BoolArray
from gridsim.workload.formats.swf_header import CANCELLED
from gridsim.workload.problems import Problems

__all__ = ["Jobs"]

_GRACE = 600
"""Seconds beyond its limit after which a running job is taken for a runaway: Slurm looks about every 30 s."""

_NO_LIMIT = 365 * 86400
"""Limit that stands for none, s: the year that Slurm's backfill plans with (``YEAR_MINUTES`` in its source)."""

_MOST_TASKS = 100_000
"""Tasks that one line may stand for are told apart up to about as many as there are lines, and so many."""

_HOUR = 3600
_ENOUGH = 20
"""Jobs from which on it is strange that none completed, or that all are one user's."""

_COMPLETED, _CANCELLED, _RUNNING = (STATES.index(name) for name in ("COMPLETED", "CANCELLED", "RUNNING"))
_BY_SYSTEM = [STATES.index(name) for name in ("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REVOKED")]
_GIVEN_UP = [STATES.index(name) for name in ("CANCELLED", "DEADLINE", "REVOKED")]
_FAILED = [
    STATES.index(name)
    for name in (
        "FAILED",
        "TIMEOUT",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
        "DEADLINE",
        "OUT_OF_MEMORY",
        "LAUNCH_FAILED",
    )
]


_KEPT = (
    ("requested", "requested", np.int32),
    ("nodes", "nodes", np.int32),
    ("memory", "memory", np.int64),
    ("gpus", "gpus", np.int32),
    ("priority", "priority", np.int64),
    ("array_task", "task", np.int64),
    ("het_part", "part", np.int32),
)
"""Logged columns, the columns that they come from, and their types."""


@dataclass(slots=True)
class Facts:
    """Columns of all rows, in seconds; repairs change them.

    Attributes
    ----------
    submit : (n,) int64
        Submit time of the run; in the end the time from which the job can start.
    first_submit : (n,) int64
        Submit time of the first run of the job.
    start, end : (n,) int64
        `ABSENT` where there is none.
    elapsed : (n,) int64
        Time that the job ran.
    held : (n,) int64
        Time between start and end.
    running : (n,) bool
        Whether it had not ended.
    state : (n,) int64
        Position in `STATES`.
    limit, cores : (n,) int64
        Time limit; cores that the job had.
    """

    submit: IntArray
    first_submit: IntArray
    start: IntArray
    end: IntArray
    elapsed: IntArray
    held: IntArray
    running: BoolArray
    state: IntArray
    limit: IntArray
    cores: IntArray


class Jobs:
    """The rows of a log, one a job in the end.

    Parameters
    ----------
    intake : Intake
        What was read; its columns are taken away.
    cores : int or None
        Size of the machine that jobs must fit.
    zone : Zone or None
        Where the clock of local times stood; None takes them as they are.
    """

    def __init__(self, intake: Intake, cores: int | None, zone: Zone | None) -> None:
        self._intake, self._machine, self._zone = intake, cores, zone
        self._problems: Problems = intake.problems
        self._columns = {name: intake.columns.pop(name).close() for name in list(intake.columns)}
        self.rows = len(self._columns.get("number", ()))
        if not self.rows:
            raise InputError(self._nothing(), path=intake.path, line=intake.lines)
        self.clock = "epoch"
        self._missing: list[str] = []

    def _column(self, name: str, default: int = ABSENT) -> IntArray:
        """A column, or one of the default where the log has none."""
        if name not in self._columns:
            return np.full(self.rows, default, dtype=np.int64)
        return self._columns[name]

    def _nothing(self) -> str:
        found = ", ".join(f"{problem.count} {problem.kind}" for problem in self._problems) or "none was found"
        return f"no usable job in {self._intake.lines} lines ({found}); expected at least one"

    # The clock

    def _instants(self) -> None:
        """Put all times on one clock."""
        names = [name for name in ("submit", "eligible", "start", "end") if name in self._columns]
        absolute = self._column("absolute").astype(bool)
        known = np.logical_or.reduce([self._column(name) != ABSENT for name in names])
        local = known & ~absolute
        if not local.any():
            return
        self.clock = "local"
        if self._zone is None:
            if (known & absolute).any():
                raise InputError(
                    "some times are local, others seconds since 1970; give the zone of the local ones (--timezone)",
                    path=self._intake.path,
                    line=int(self._column("number")[np.argmax(local)]),
                )
            self._missing.append("time zone (local times are taken as they are; give --timezone)")
            return
        self.clock = self._zone.name
        rows = np.flatnonzero(local)
        times = {name: self._column(name)[rows] for name in names}
        order = np.lexsort((self._column("number")[rows], self._identity()[rows]))
        found = {"submit": self._zone.resolved(times["submit"], order)}
        for name in names[1:]:
            found[name] = self._zone.instants(times[name])
        self._second_pass(times, found, rows)
        for name in names:
            column = self._columns[name].astype(np.int64)
            column[rows] = found[name]
            self._columns[name] = column

    def _second_pass(self, times: Mapping[Any, IntArray], found: dict[Any, IntArray], rows: IntArray) -> None:
        """Choose between the two instants of a time that comes twice: what fits the elapsed time and the order."""
        assert self._zone is not None
        if "eligible" in times:
            early = self._zone.twice(times["eligible"]) & (found["eligible"] < found["submit"])
            found["eligible"] = self._zone.instants(times["eligible"], early)
        end = times.get("end", np.full(len(rows), ABSENT))
        either = self._zone.twice(times["start"]) | self._zone.twice(end)
        at = np.flatnonzero(either)
        if not len(at):
            return
        elapsed = self._column("elapsed")[rows][at]
        suspended = np.maximum(self._column("suspended")[rows][at], 0)
        earliest = np.maximum(found["submit"], found.get("eligible", found["submit"]))[at]
        best = np.full(len(at), np.iinfo(np.int64).max)
        start, stop = found["start"][at].copy(), found.get("end", end)[at].copy()
        for later_start in (False, True):
            for later_end in (False, True):
                first = self._zone.instants(times["start"][at], np.full(len(at), later_start))
                last = self._zone.instants(end[at], np.full(len(at), later_end))
                ended = last != ABSENT
                cost = np.where(ended & (elapsed != ABSENT), np.abs(last - first - suspended - elapsed), 0)
                cost += np.where(ended & (last < first), 10 * _HOUR, 0)
                cost += np.where((first != ABSENT) & (first < earliest), 10 * _HOUR, 0)
                better = cost < best
                best, start, stop = (
                    np.where(better, new, old) for new, old in ((cost, best), (first, start), (last, stop))
                )
        found["start"][at] = start
        if "end" in found:
            found["end"][at] = stop

    # Runs of one job

    def _identity(self) -> IntArray:
        """The number that orders jobs: that of the array where the job is a task."""
        return self._column("base" if "base" in self._columns else "raw")

    def _grouped(self, screen: Screen) -> tuple[IntArray, BoolArray]:
        """First submit time of the job of each row, and which rows are runs before the last one."""
        number, submit = self._column("number"), self._column("submit")
        keys = [self._identity()]
        if "base" in self._columns:
            keys += [self._column("task"), self._column("part"), self._column("tasks")]
        ended = self._column("end") != ABSENT
        order = np.lexsort((number, ended, submit, *keys[::-1]))
        same = np.ones(self.rows - 1, dtype=bool)
        for key in keys:
            ordered = key[order]
            same &= ordered[1:] == ordered[:-1]
        begins = np.concatenate(([True], ~same))
        first = np.maximum.accumulate(np.where(begins, np.arange(self.rows), 0))
        ordered = submit[order]
        again = same & (ordered[1:] == ordered[:-1])
        followed, repeated = np.zeros(self.rows, dtype=bool), np.zeros(self.rows, dtype=bool)
        followed[order[:-1]] = same
        repeated[order[:-1]] = again
        screen.find("repeated-line", repeated, None, self._shown)
        earlier = followed & screen.keep
        first_submit = np.empty(self.rows, dtype=np.int64)
        first_submit[order] = ordered[first]
        return np.where(earlier, submit, first_submit), earlier

    def _shown(self, row: int) -> str:
        """A job as a person would name it."""
        base = self._column("base")[row] if "base" in self._columns else self._column("raw")[row]
        task, part = self._column("task")[row], self._column("part")[row]
        return f"job {base}" + (f"_{task}" if task >= 0 else "") + (f"+{part}" if part >= 0 else "")

    def workload(self, sha256: str) -> Workload:
        """All jobs that are kept."""
        self._instants()
        screen = Screen(self._problems, self._column("number"), ())
        first_submit, earlier = self._grouped(screen)
        facts = self._facts(first_submit)
        self._one_a_job = screen.keep & ~earlier
        states = np.bincount(facts.state[self._one_a_job])
        self._states = {STATES[code]: int(count) for code, count in enumerate(states) if count}
        self._screened(facts, screen, earlier)
        edges = self._awaited(screen)
        merged = self._parts(screen, facts)
        rows = np.flatnonzero(screen.keep & ~merged)
        if not len(rows):
            raise InputError(self._nothing(), path=self._intake.path, line=self._intake.lines)
        keys = (self._column("part"), self._column("task"), self._identity(), facts.submit)
        rows = self._told_apart(rows[np.lexsort([key[rows] for key in keys])])
        return self._made(rows, facts, earlier, edges, sha256)

    def _told_apart(self, rows: IntArray) -> IntArray:
        """The rows, those of several tasks that were cancelled together, or wait still, once for each."""
        tasks = np.where(self._gave_up | self._waits, self._column("tasks", 1), 1)[rows]
        if int(tasks.sum()) > 2 * self.rows + _MOST_TASKS:
            self._missing.append("tasks that stand on one line, one by one: there are too many")
            return rows
        return np.repeat(rows, tasks)

    def _patience(self, rows: IntArray, facts: Facts) -> IntArray:
        """Seconds that jobs waited until they were cancelled; 0 for those that never could start."""
        eligible = self._column("eligible")[rows] if "eligible" in self._columns else facts.submit[rows]
        waited = np.where(eligible == ABSENT, 0, np.maximum(facts.end[rows] - facts.submit[rows], 0))
        return np.where(self._gave_up[rows], waited, UNKNOWN)

    def _facts(self, first_submit: IntArray) -> Facts:
        """What the lines say of jobs, before anything is repaired."""
        submit, start, end = (self._column(name).astype(np.int64) for name in ("submit", "start", "end"))
        latest = max(int(column.max(initial=0)) for column in (submit, start, end))
        running = (start != ABSENT) & (end == ABSENT)
        elapsed = self._elapsed(start, end, running, latest)
        return Facts(
            submit=submit,
            first_submit=np.where(first_submit == ABSENT, submit, first_submit),
            start=start,
            end=end,
            elapsed=elapsed,
            held=np.where(running, elapsed, end - start),
            running=running,
            state=self._column("state", 0).astype(np.int64),
            limit=self._column("limit").astype(np.int64),
            cores=self._cores(),
        )

    def _screened(self, facts: Facts, screen: Screen, earlier: BoolArray) -> None:
        """Find each kind of line, and repair what is to be repaired."""
        start, end, elapsed, state = facts.start, facts.end, facts.elapsed, facts.state

        def shown(row: int) -> str:
            return f"{self._shown(row)}, {elapsed[row]} s"

        ran = start != ABSENT
        runaway = facts.running & (facts.limit > 0) & (elapsed > facts.limit + _GRACE)
        busy = screen.keep & ran & ~runaway & (facts.held >= 0) & (facts.cores > 0)
        self._peak = _peak(start[busy], (start + facts.held)[busy], facts.cores[busy])
        screen.find("earlier-run", earlier, None, shown)
        given_up = np.isin(state, _GIVEN_UP) | (~ran & (end != ABSENT))
        self._waits = self._still_waiting(screen, ~ran & ~given_up)
        never = (~ran & ~self._waits) | (given_up & (elapsed == 0) & (facts.held == 0))
        screen.find("never-ran", never, None, self._shown)
        self._gave_up = never & screen.keep
        unstarted = self._gave_up | self._waits
        start[unstarted], elapsed[unstarted], facts.held[unstarted] = ABSENT, 1, 1
        ran &= ~self._gave_up
        screen.find("bad-submit", facts.submit == ABSENT, None, self._shown)
        over = screen.find("runaway", runaway, None, shown)
        elapsed[over] = facts.limit[over]
        screen.find("still-running", facts.running & ~runaway, None, shown)
        reversed_ = ran & ~facts.running & (end < start)
        self._refuse_cut(screen, reversed_ & (end == end.max(initial=0)) & (elapsed <= 0))
        screen.find("negative-runtime", elapsed < 0, None, shown)
        self._spans(screen, facts, shown)
        elapsed[screen.find("zero-runtime", elapsed == 0, None, shown)] = 1
        screen.find("missing-cores", facts.cores < 1, None, self._shown)
        if self._machine is not None:
            cores, machine = facts.cores, self._machine
            wide = screen.find("too-wide", cores > machine, None, lambda row: f"{cores[row]} of {machine} cores")
            cores[wide] = machine
        usual = elapsed[ran & screen.keep]
        elapsed[self._waits & (facts.limit == ABSENT)] = max(int(np.median(usual)), 1) if len(usual) else 1
        self._estimates(screen, facts, shown)
        elapsed[self._waits] = facts.limit[self._waits]
        self._eligible(screen, facts)

    def _still_waiting(self, screen: Screen, waits: BoolArray) -> BoolArray:
        """Of jobs that wait still those that are kept: they stand in the queue."""
        kept = np.zeros(self.rows, dtype=bool)
        kept[screen.find("still-waiting", waits, None, self._shown)] = True
        if "eligible" in self._columns:
            held = kept & (self._column("eligible") == ABSENT)
            screen.find("not-eligible", held, None, self._shown)
            kept &= ~held
        return kept

    def _refuse_cut(self, screen: Screen, cut: BoolArray) -> None:
        """Refuse a log whose times were cut to a window, unless a rule says otherwise."""
        rows = np.flatnonzero(cut & screen.keep)
        if len(rows) and self._problems.rule("cut-to-window") == "error":
            raise refusal(
                f"cut-to-window: {self._shown(int(rows[0]))} ends before it starts, where the log ends: sacct -T cut "
                "times to a window, those of other jobs too (to read on: --on-cut-to-window skip)",
                self._intake.path,
                int(self._column("number")[rows[0]]),
            )
        screen.find("cut-to-window", cut, None, self._shown)

    def _elapsed(self, start: IntArray, end: IntArray, running: BoolArray, latest: int) -> IntArray:
        """Seconds that each job ran, without the time in which it was suspended."""
        between = np.where(running, latest - start, end - start)
        if "elapsed" not in self._columns:
            suspended = np.maximum(self._column("suspended"), 0)
            if "suspended" not in self._columns:
                self._missing.append("time that jobs were suspended (ElapsedRaw): it counts as runtime")
            return np.where(start == ABSENT, 0, between - np.where(running, 0, suspended))
        elapsed = self._column("elapsed").astype(np.int64)
        reversed_ = (end != ABSENT) & (start != ABSENT) & (end < start) & (elapsed != 0)
        return np.where(elapsed == ABSENT, np.where(start == ABSENT, 0, between), np.where(reversed_, -1, elapsed))

    def _spans(self, screen: Screen, facts: Facts, shown: Callable[[int], str]) -> None:
        """Jobs that ran for another time than the one between start and end."""
        gap = facts.held - facts.elapsed - np.maximum(self._column("suspended"), 0)
        ended = ~facts.running & (facts.elapsed >= 0)
        jumped = ended & (np.abs(gap) == _HOUR)
        screen.find("clock-change", jumped, None, shown)
        screen.find("suspended", ended & ~jumped & (facts.held > facts.elapsed), None, shown)
        by_system = np.isin(facts.state, _BY_SYSTEM)
        screen.find("ended-by-system", by_system, None, lambda row: f"{self._shown(row)}, {STATES[facts.state[row]]}")

    def _cores(self) -> IntArray:
        """Cores that each job had; those it asked for where the log does not say."""
        allocated, requested = self._column("allocated"), self._column("requested")
        took = allocated > 0
        self._cores_field = {
            "requested": int(np.count_nonzero(~took & (requested > 0))),
            "allocated": int(np.count_nonzero(took)),
        }
        return np.where(took, allocated, requested).astype(np.int64)

    def _estimates(self, screen: Screen, facts: Facts, shown: Callable[[int], str]) -> None:
        """Time limits, and what stands for one where there is none."""
        limit, elapsed = facts.limit, facts.elapsed
        endless = screen.find("unlimited", limit == UNLIMITED, None, self._shown)
        own = screen.find("partition-limit", limit == PARTITION, None, self._shown)
        if len(own):
            partition = self._column("partition")
            longest = np.zeros(int(partition.max()) + 2, dtype=np.int64)
            np.maximum.at(longest, partition, limit)
            limit[own] = np.maximum(longest[partition[own]], elapsed[own])
        limit[endless] = np.maximum(_NO_LIMIT, elapsed[endless])
        lacking = screen.find("missing-estimate", limit <= 0, None, shown)
        limit[lacking] = elapsed[lacking]
        over = screen.find("over-estimate", elapsed > limit, None, lambda row: f"{shown(row)} of {limit[row]} s")
        limit[over] = elapsed[over]

    def _eligible(self, screen: Screen, facts: Facts) -> None:
        """Times from which jobs can start."""
        eligible, submit, start = self._column("eligible"), facts.submit, facts.start
        if "eligible" not in self._columns:
            self._missing.append("times from which jobs could start (Eligible): submit times stand in")
        late = screen.find(
            "late-eligible", eligible > submit, None, lambda row: f"{self._shown(row)}, {eligible[row] - submit[row]} s"
        )
        submit[late] = eligible[late]
        before = screen.find("start-before-submit", (start != ABSENT) & (start < submit), None, self._shown)
        submit[before] = start[before]

    def _awaited(self, screen: Screen) -> Edges:
        """Jobs that waited for others of the log, as pairs of rows."""
        edges = Edges.of(self._intake.edges, self._identity(), self._columns.get("raw"), screen.keep)
        waiting = np.zeros(self.rows, dtype=bool)
        waiting[edges.row] = True
        edges.joined = len(screen.find("dependent", waiting, None, self._shown)) > 0
        return edges

    def _parts(self, screen: Screen, facts: Facts) -> BoolArray:
        """Parts of heterogeneous jobs that went into another one."""
        merged = np.zeros(self.rows, dtype=bool)
        part = self._column("part")
        rows = screen.find("part-of-job", part != ABSENT, None, self._shown)
        if len(rows):
            order = rows[np.lexsort((part[rows], facts.first_submit[rows], self._identity()[rows]))]
            base, when = self._identity()[order], facts.first_submit[order]
            begins = np.flatnonzero(np.concatenate(([True], (base[1:] != base[:-1]) | (when[1:] != when[:-1]))))
            facts.cores[order[begins]] = np.add.reduceat(facts.cores[order], begins)
            merged[order] = True
            merged[order[begins]] = False
        return merged

    # The workload

    def _numbers(self, rows: IntArray, earlier: BoolArray) -> IntArray:
        """Numbers of the jobs: raw ones, those above the largest where the log has none for it."""
        if "raw" in self._columns:
            job = self._column("raw")[rows].astype(np.int64)
            new = np.zeros(len(rows), dtype=bool)
        else:
            job = self._column("base")[rows].astype(np.int64)
            new = (self._column("task")[rows] != ABSENT) | (self._column("part")[rows] > 0)
        new |= earlier[rows]
        new[1:] |= rows[1:] == rows[:-1]
        again = np.ones(len(rows), dtype=bool)
        fixed = np.flatnonzero(~new)
        again[fixed[np.unique(job[fixed], return_index=True)[1]]] = False
        repeated = np.flatnonzero(again & ~new)
        if len(repeated):
            lines = np.sort(self._column("number")[rows[repeated]])
            self._problems.found("duplicate-job", lines[:8].tolist(), count=len(repeated), value=int(job[repeated[0]]))
        fresh = np.flatnonzero(again)
        job[fresh] = max(int(job.max(initial=0)), 0) + 1 + np.arange(len(fresh))
        return job

    def _made(self, rows: IntArray, facts: Facts, earlier: BoolArray, edges: Edges, sha256: str) -> Workload:
        """The workload of these rows, in this order."""
        submit = facts.submit[rows]
        origin = int(min(submit.min(), facts.first_submit[rows].min()))
        job = self._numbers(rows, earlier)
        logged = self._logged(rows, facts)
        labels, names = self._labels(rows)
        labels |= needs(self._columns, rows, facts.start[rows], facts.end[rows])
        if len(edges):
            labels["after"] = logged["after"] = edges.last_awaited(rows, job, facts.end)
        if self._gave_up.any():
            labels["withdrawn"] = self._patience(rows, facts)
        workload = Workload(
            job=job,
            submit=(submit - origin) * MICROSECOND,
            runtime=facts.elapsed[rows] * MICROSECOND,
            estimate=facts.limit[rows] * MICROSECOND,
            cores=facts.cores[rows],
            deadline=np.full(len(rows), NEVER, dtype=np.int64),
            labels=labels,
            logged=logged,
            cores_stated=self._machine or self._peak or None,
            provenance=self._provenance(sha256, rows, origin, facts.state[rows], logged["status"]),
            names=names,
        )
        return chained(workload, edges.among(rows)) if edges.joined else workload

    def _logged(self, rows: IntArray, facts: Facts) -> dict[str, npt.NDArray[Any]]:
        """What did happen: the schedule relative to submit times, so that it moves with them; what jobs were given."""
        running, held = facts.running[rows], facts.held[rows].astype(np.float64)
        logged: dict[str, npt.NDArray[Any]] = {
            "wait": np.where(facts.start[rows] == ABSENT, np.nan, facts.start[rows] - facts.submit[rows]),
            "status": _statuses(facts.state[rows], running),
            "allocated": np.maximum(self._column("allocated")[rows], UNKNOWN).astype(np.int64),
            "state": facts.state[rows].astype(np.int8),
            "before_eligible": (facts.submit[rows] - facts.first_submit[rows]).astype(np.float64),
        }
        held[running | (facts.start[rows] == ABSENT)] = np.nan
        if not np.array_equal(held, facts.elapsed[rows]):
            logged["held"] = held
        for name, column, kind in _KEPT:
            if column in self._columns and (self._columns[column][rows] != ABSENT).any():
                logged[name] = self._columns[column][rows].astype(kind)
        if "array_task" in logged or "het_part" in logged:
            logged["array_job"] = self._identity()[rows].astype(np.int64)
        return logged

    def _labels(self, rows: IntArray) -> tuple[dict[str, IntArray], dict[str, tuple[str, ...]]]:
        labels: dict[str, IntArray] = {}
        names: dict[str, tuple[str, ...]] = {}
        for label in NAMED:
            codes = self._intake.parser.codes[label]
            if codes.overflown:
                self._missing.append(f"labels '{label}': more than {len(codes):,} different names")
            elif label in self._columns:
                column = self._columns[label][rows].astype(np.int64)
                if (column != UNKNOWN).any():
                    labels[label], names[label] = column, codes.names()
        for label, source in (("group", "account"), ("queue", "qos")):
            if label not in labels and source in labels:
                labels[label], names[label] = labels[source], names[source]
        return labels, names

    def _lacks(self, rows: IntArray, states: IntArray) -> list[str]:
        """What the log could say and does not."""
        lacking = list(self._missing)
        if "state" not in self._columns:
            lacking.append("states (State): what failed or was cancelled is not known")
        elif len(rows) >= _ENOUGH and not (states == _COMPLETED).any():
            lacking.append("jobs that completed (was sacct told states, -s?)")
        user = self._columns.get("user")
        if user is not None and len(rows) >= _ENOUGH and len(np.unique(user[rows])) == 1:
            lacking.append("jobs of other users (was -a left out?)")
        cut = sum(name.endswith(b"+") for codes in self._intake.parser.codes.values() for name in codes)
        if cut and any(header.spans for header in self._intake.headers):
            lacking.append(f"{cut} names in full (a table cuts them; give -P)")
        return lacking

    def _provenance(
        self, sha256: str, rows: IntArray, origin: int, states: IntArray, statuses: IntArray
    ) -> dict[str, Any]:
        intake = self._intake
        header: dict[str, list[str]] = {}
        if self.clock != "local":
            header["UnixStartTime"] = [str(origin)]
        if self.clock not in ("local", "epoch"):
            header["TimeZoneString"] = [self.clock]
        moment = np.datetime_as_string(np.datetime64(origin, "s"))
        words = {"local": "of a clock whose zone is not known", "epoch": "UTC"}.get(self.clock, "UTC")
        return {
            "source": os.fspath(intake.path),  # type: ignore[call-overload]
            "sha256": sha256,
            "format": "sacct",
            "lines": intake.lines,
            "comments": intake.comments,
            "steps": intake.steps,
            "jobs_read": int(np.count_nonzero(self._one_a_job)) + int(np.count_nonzero(rows[1:] == rows[:-1])),
            "jobs_kept": len(rows),
            "header": header,
            "cores_from": "most cores in use at once" if self._machine is None else "given",
            "cores_field": self._cores_field,
            "cores_rule": "allocated",
            "problems": self._problems.to_json(),
            "statuses": {
                str(code): int(count) for code, count in zip(*np.unique(statuses, return_counts=True), strict=True)
            },
            "states": self._states,
            "clock": {"origin": origin, "zone": self.clock},
            "origin_shift": f"{moment} ({words}) becomes 0 s",
            "missing": self._lacks(rows, states),
        }


def _statuses(states: IntArray, running: BoolArray) -> IntArray:
    """Status codes of SWF."""
    status = np.full(len(states), -1, dtype=np.int64)
    status[states == _COMPLETED] = 1
    status[np.isin(states, _FAILED)] = 0
    status[np.isin(states, [_CANCELLED])] = CANCELLED
    status[running] = -1
    return status


def _peak(start: IntArray, end: IntArray, cores: IntArray) -> int:
    """Most cores in use at once; what ends in a second is gone before what starts in it."""
    times = np.concatenate((end, start))
    change = np.concatenate((-cores, cores))
    order = np.argsort(times, kind="stable")
    return int(np.cumsum(change[order]).max(initial=0))
