"""Grouping of lines into jobs, detection of invalid lines, and their repair."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import IntArray
from gridsim.model.workload import Workload
from gridsim.workload.formats.columns import Screen, most_in_use
from gridsim.workload.formats.sacct.arrays import tasks_left
from gridsim.workload.formats.sacct.assembly import Assembly, Kept
from gridsim.workload.formats.sacct.clock import Zone, on_one_clock
from gridsim.workload.formats.sacct.clusters import Clusters
from gridsim.workload.formats.sacct.dependencies import Edges
from gridsim.workload.formats.sacct.fields import refusal
from gridsim.workload.formats.sacct.rows import NAMED
from gridsim.workload.formats.sacct.runs import JOINED, Runs, late_numbers
from gridsim.workload.formats.sacct.screening import SacctIntake
from gridsim.workload.formats.sacct.values import (
    ABSENT,
    PARTITION,
    STATES,
    UNLIMITED,
    BoolArray,
    Facts,
    SacctColumns,
    codes,
)
from gridsim.workload.problems import Problems

_GRACE = 600
"""Time beyond its limit after which a running job counts as a runaway, s: Slurm checks about every 30 s."""

_NO_LIMIT = 365 * 86400
"""Estimate of jobs without a limit, s: a year."""

_MOST_TASKS = 100_000
"""Number of tasks on shared lines that are separated, in addition to twice the number of lines."""

_HOUR = 3600
_BY_SYSTEM = codes("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REVOKED")
_GIVEN_UP = codes("CANCELLED", "DEADLINE", "REVOKED")


class Jobs:
    """Rows of a log, reduced to one per job.

    Parameters
    ----------
    intake : SacctIntake
        Parsed log; its columns are removed.
    cores : int or None
        Size of the machine, which limits the width of jobs.
    zone : Zone or None
        Time zone of local times; None uses them unchanged.
    cluster : str or sequence of str, optional
        Clusters to read from a log of several.
    """

    def __init__(
        self, intake: SacctIntake, cores: int | None, zone: Zone | None, cluster: str | Sequence[str] | None = None
    ) -> None:
        self._intake, self._machine, self._zone = intake, cores, zone
        self._problems: Problems = intake.problems
        self._lines = SacctColumns({name: intake.columns.pop(name).close() for name in list(intake.columns)})
        if not self._lines.rows:
            raise InputError(self._nothing(), path=intake.path, line=intake.lines)
        self._clusters = Clusters.of(self._lines, intake.edges, intake.parser.codes["cluster"].names(), cluster)
        self._missing: list[str] = []

    def _nothing(self) -> str:
        found = ", ".join(f"{problem.count} {problem.kind}" for problem in self._problems) or "none was found"
        return f"no usable job in {self._intake.lines} lines ({found}); expected at least one"

    def _grouped(self, screen: Screen) -> Runs:
        """Group the rows by job, and exclude duplicate rows."""
        number, submit = self._lines.column("number"), self._lines.column("submit")
        keys = [self._lines.identity()]
        if "base" in self._lines:
            keys += [self._lines.column("task"), self._lines.column("part"), self._lines.column("list")]
        ended = self._lines.column("end") != ABSENT
        order = np.lexsort((number, ended, submit, *keys[::-1]))
        before, after = order[:-1], order[1:]
        repeated = np.zeros(self._lines.rows, dtype=bool)
        repeated[before] = np.logical_and.reduce([key[before] == key[after] for key in (*keys, submit)])
        self._tasks = tasks_left(self._lines, tuple(self._intake.parser.lists))
        repeated |= self._tasks == 0
        screen.find("repeated-line", repeated, None, self._lines.shown)
        return Runs.of(self._lines, keys, order[screen.keep[order]])

    def workload(self, sha256: str, files: int = 1) -> Workload:
        """Return the workload of all jobs that are kept."""
        clock = on_one_clock(self._lines, self._zone, self._intake.path)
        if clock == "local":
            self._missing.append("time zone (local times are used unchanged; give --timezone)")
        screen = Screen(self._problems, self._lines.column("number"), ())
        runs = self._grouped(screen)
        earlier = runs.earlier
        rule = self._problems.rule("earlier-run")
        one_a_job = screen.keep & ~earlier if rule != "keep" else screen.keep.copy()
        self._without_first_submit(runs, np.flatnonzero(screen.keep & ~earlier))
        facts = self._facts(runs)
        states = np.bincount(facts.state[one_a_job])
        self._screened(facts, screen, runs)
        edges = self._awaited(screen)
        merged = self._parts(screen, facts)
        rows = np.flatnonzero(screen.keep & ~merged)
        if not len(rows):
            raise InputError(self._nothing(), path=self._intake.path, line=self._intake.lines)
        keys = (self._lines.column("part"), self._lines.column("task"), self._lines.identity(), facts.submit)
        rows = self._expanded(rows[np.lexsort([key[rows] for key in keys])])
        kept = Kept(
            rows=rows,
            earlier=earlier,
            runs=self._runs,
            gave_up=self._gave_up,
            edges=edges,
            jobs=int(np.count_nonzero(one_a_job)),
            states={STATES[code]: int(count) for code, count in enumerate(states) if count},
            cores_field=self._cores_field,
            machine=self._machine,
            peaks=self._peaks,
            clusters=self._clusters,
            clock=clock,
            missing=self._missing,
        )
        return Assembly(self._intake, self._lines, facts, kept).workload(sha256, files)

    def _without_first_submit(self, runs: Runs, jobs: IntArray) -> None:
        """Report jobs that were requeued and whose first runs are not in the log."""
        begun = self._lines.column("restarts")[runs.first[jobs]] > 0
        begun |= (runs.first[jobs] == jobs) & np.isin(jobs, late_numbers(self._lines, jobs))
        if count := int(np.count_nonzero(begun)):
            self._missing.append(
                f"first submit times of {count:,} requeued job{'' if count == 1 else 's'} (preempted, or their "
                f"node failed): the log contains only later runs, each submitted at the end of the previous one; "
                f"sacct -D prints all runs"
            )

    def _expanded(self, rows: IntArray) -> IntArray:
        """Return the rows, repeated for each of several tasks that were cancelled together or still wait."""
        tasks = np.where(self._gave_up | self._waits, self._tasks, 1)[rows]
        if int(tasks.sum()) > 2 * self._lines.rows + _MOST_TASKS:
            self._missing.append("single tasks of an array on one line: there are too many")
            return rows
        return np.repeat(rows, tasks)

    def _facts(self, runs: Runs) -> Facts:
        """Return the values of the lines before repairs."""
        submit, start, end = (self._lines.column(name).astype(np.int64) for name in ("submit", "start", "end"))
        latest = max(int(column.max(initial=0)) for column in (submit, start, end))
        running = (start != ABSENT) & (end == ABSENT)
        elapsed = self._elapsed(start, end, running, latest)
        first_submit = np.where(runs.earlier, submit, submit[runs.first])
        return Facts(
            submit=submit,
            first_submit=np.where(first_submit == ABSENT, submit, first_submit),
            start=start,
            last_start=start.copy(),
            end=end,
            elapsed=elapsed,
            held=np.where(running, elapsed, end - start),
            running=running,
            state=self._lines.column("state", 0).astype(np.int64),
            limit=self._lines.column("limit").astype(np.int64),
            cores=self._cores(),
        )

    def _screened(self, facts: Facts, screen: Screen, runs: Runs) -> None:
        """Find each kind of problem, and apply repairs."""
        start, end, elapsed, state = facts.start, facts.end, facts.elapsed, facts.state

        def shown(row: int) -> str:
            return f"{self._lines.shown(row)}, {elapsed[row]} s"

        runaway = facts.running & (facts.limit > 0) & (elapsed > facts.limit + _GRACE)
        busy = screen.keep & (start != ABSENT) & ~runaway & (facts.held >= 0) & (facts.cores > 0)
        self._peaks = [
            most_in_use(start[part], (start + facts.held)[part], facts.cores[part])
            for part in self._clusters.parts(busy)
        ]
        self._joined(screen, facts, runs, shown)
        ran = start != ABSENT
        given_up = np.isin(state, _GIVEN_UP) | (~ran & (end != ABSENT))
        self._waits = self._still_waiting(screen, ~ran & ~given_up)
        never = (~ran & ~self._waits) | (given_up & (elapsed == 0) & (facts.held == 0))
        screen.find("never-ran", never, None, self._lines.shown)
        self._gave_up = never & screen.keep
        unstarted = self._gave_up | self._waits
        start[unstarted], elapsed[unstarted], facts.held[unstarted] = ABSENT, 1, 1
        ran &= ~self._gave_up
        screen.find("bad-submit", facts.submit == ABSENT, None, self._lines.shown)
        over = screen.find("runaway", runaway, None, shown)
        elapsed[over] = facts.limit[over]
        screen.find("still-running", facts.running & ~runaway, None, shown)
        reversed_ = ran & ~facts.running & (end < start)
        self._refuse_cut(screen, reversed_ & (end == end.max(initial=0)) & (elapsed <= 0))
        screen.find("negative-runtime", elapsed < 0, None, shown)
        self._spans(screen, facts, shown)
        elapsed[screen.find("zero-runtime", elapsed == 0, None, shown)] = 1
        screen.find("missing-cores", facts.cores < 1, None, self._lines.shown)
        if self._machine is not None:
            cores, machine = facts.cores, self._machine
            wide = screen.find("too-wide", cores > machine, None, lambda row: f"{cores[row]} of {machine} cores")
            cores[wide] = machine
        usual = elapsed[ran & screen.keep]
        elapsed[self._waits & (facts.limit == ABSENT)] = max(int(np.median(usual)), 1) if len(usual) else 1
        self._estimates(screen, facts, shown)
        elapsed[self._waits] = facts.limit[self._waits]
        self._eligible(screen, facts)
        self._named(screen)

    def _joined(self, screen: Screen, facts: Facts, runs: Runs, shown: Callable[[int], str]) -> None:
        """Combine the runs of jobs according to the rule."""
        rule = self._problems.rule("earlier-run")
        self._runs = (Runs.alone(self._lines.rows) if rule == "keep" else runs).of_jobs(facts, screen.keep)
        found = screen.keep & runs.earlier
        screen.find("earlier-run", found, None, shown)
        if rule in JOINED and found.any():
            runs.join(facts, self._lines, screen.keep, added=rule == "sum")
            screen.keep[found] = False

    def _still_waiting(self, screen: Screen, waits: BoolArray) -> BoolArray:
        """Return the waiting jobs that are kept, as jobs in the queue."""
        kept = np.zeros(self._lines.rows, dtype=bool)
        kept[screen.find("still-waiting", waits, None, self._lines.shown)] = True
        if "eligible" in self._lines:
            held = kept & (self._lines.column("eligible") == ABSENT)
            screen.find("not-eligible", held, None, self._lines.shown)
            kept &= ~held
        return kept

    def _refuse_cut(self, screen: Screen, cut: BoolArray) -> None:
        """Raise for a log with times truncated to a window, unless a rule allows it."""
        rows = np.flatnonzero(cut & screen.keep)
        if len(rows) and self._problems.rule("cut-to-window") == "error":
            raise refusal(
                f"cut-to-window: {self._lines.shown(int(rows[0]))} ends before it starts, at the end of the log: "
                f"sacct -T truncated its times, and those of other jobs (to read on: --on cut-to-window=skip)",
                self._intake.path,
                int(self._lines.column("number")[rows[0]]),
            )
        screen.find("cut-to-window", cut, None, self._lines.shown)

    def _elapsed(self, start: IntArray, end: IntArray, running: BoolArray, latest: int) -> IntArray:
        """Return the run time of each job without suspensions, s."""
        between = np.where(running, latest - start, end - start)
        if "elapsed" not in self._lines:
            suspended = np.maximum(self._lines.column("suspended"), 0)
            if "suspended" not in self._lines:
                self._missing.append("suspension times (ElapsedRaw): they count as run time")
            return np.where(start == ABSENT, 0, between - np.where(running, 0, suspended))
        elapsed = self._lines.column("elapsed").astype(np.int64)
        reversed_ = (end != ABSENT) & (start != ABSENT) & (end < start) & (elapsed != 0)
        return np.where(elapsed == ABSENT, np.where(start == ABSENT, 0, between), np.where(reversed_, -1, elapsed))

    def _spans(self, screen: Screen, facts: Facts, shown: Callable[[int], str]) -> None:
        """Repair jobs whose run time differs from the time between start and end."""
        gap = facts.held - facts.elapsed - np.maximum(self._lines.column("suspended"), 0)
        ended = ~facts.running & (facts.elapsed >= 0) & (facts.start == facts.last_start)
        jumped = ended & (np.abs(gap) == _HOUR)
        screen.find("clock-change", jumped, None, shown)
        screen.find("suspended", ended & ~jumped & (facts.held > facts.elapsed), None, shown)
        by_system = np.isin(facts.state, _BY_SYSTEM)
        screen.find(
            "ended-by-system", by_system, None, lambda row: f"{self._lines.shown(row)}, {STATES[facts.state[row]]}"
        )

    def _cores(self) -> IntArray:
        """Return the allocated cores of each job, or the requested ones if the log has no allocation."""
        allocated, requested = self._lines.column("allocated"), self._lines.column("requested")
        took = allocated > 0
        self._cores_field = {
            "requested": int(np.count_nonzero(~took & (requested > 0))),
            "allocated": int(np.count_nonzero(took)),
        }
        return np.where(took, allocated, requested).astype(np.int64)

    def _estimates(self, screen: Screen, facts: Facts, shown: Callable[[int], str]) -> None:
        """Set time limits, and the estimate of jobs without one."""
        limit, elapsed = facts.limit, facts.elapsed
        endless = screen.find("unlimited", limit == UNLIMITED, None, self._lines.shown)
        own = screen.find("partition-limit", limit == PARTITION, None, self._lines.shown)
        if len(own):
            partition = self._lines.column("partition")
            longest = np.zeros(int(partition.max()) + 2, dtype=np.int64)
            np.maximum.at(longest, partition, limit)
            limit[own] = np.maximum(longest[partition[own]], elapsed[own])
        limit[endless] = np.maximum(_NO_LIMIT, elapsed[endless])
        lacking = screen.find("missing-estimate", limit <= 0, None, shown)
        limit[lacking] = elapsed[lacking]
        over = screen.find("over-estimate", elapsed > limit, None, lambda row: f"{shown(row)} of {limit[row]} s")
        limit[over] = elapsed[over]

    def _eligible(self, screen: Screen, facts: Facts) -> None:
        """Set the times from which jobs can start."""
        eligible, submit, start = self._lines.column("eligible"), facts.submit, facts.start
        if "eligible" not in self._lines:
            self._missing.append("times from which jobs could start (Eligible): submit times are used instead")
        late = screen.find(
            "late-eligible",
            eligible > submit,
            None,
            lambda row: f"{self._lines.shown(row)}, {eligible[row] - submit[row]} s",
        )
        submit[late] = eligible[late]
        before = screen.find("start-before-submit", (start != ABSENT) & (start < submit), None, self._lines.shown)
        submit[before] = start[before]

    def _awaited(self, screen: Screen) -> Edges:
        """Return the dependencies between jobs of the log, as pairs of rows."""
        edges = Edges.of(self._intake.edges, self._lines.identity(), self._lines.columns.get("raw"), screen.keep)
        waiting = np.zeros(self._lines.rows, dtype=bool)
        waiting[edges.row] = True
        edges.joined = len(screen.find("dependent", waiting, None, self._lines.shown)) > 0
        return edges

    def _named(self, screen: Screen) -> None:
        """Find jobs with a name that is not UTF-8."""
        wrong, where = np.zeros(self._lines.rows, dtype=bool), np.zeros(self._lines.rows, dtype=np.int64)
        for place, (label, names) in enumerate(self._intake.parser.codes.items()):
            if label in self._lines and (numbers := names.not_utf_8()):
                found = np.isin(self._lines.column(label), numbers)
                where[found & ~wrong] = place
                wrong |= found
        fields = list(NAMED.values())
        screen.find("not-utf-8", wrong, None, lambda row: f"{self._lines.shown(row)}, {fields[where[row]]}")

    def _parts(self, screen: Screen, facts: Facts) -> BoolArray:
        """Find components of heterogeneous jobs that are merged into another one."""
        merged = np.zeros(self._lines.rows, dtype=bool)
        part = self._lines.column("part")
        rows = screen.find("part-of-job", part != ABSENT, None, self._lines.shown)
        if len(rows):
            order = rows[np.lexsort((part[rows], facts.first_submit[rows], self._lines.identity()[rows]))]
            base, when = self._lines.identity()[order], facts.first_submit[order]
            begins = np.flatnonzero(np.concatenate(([True], (base[1:] != base[:-1]) | (when[1:] != when[:-1]))))
            facts.cores[order[begins]] = np.add.reduceat(facts.cores[order], begins)
            merged[order] = True
            merged[order[begins]] = False
        return merged
