"""Damaged or impossible lines: their kinds, the rules for each, and the tally of what was found.

One table (`KINDS`) is the only place that knows a kind: readers look rules up in it, the command line makes its
``--on-KIND`` options of it, ``run.json`` records what it says and the page on damaged logs is generated from it.
Nothing here reads a file, and nothing imports numpy, so that building the command line stays quick.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gridsim.errors import InputError, UnknownNameError

__all__ = ["KINDS", "RULES", "SHOWN_LINES", "Kind", "Problem", "Problems", "option"]

SHOWN_LINES = 5
"""Line numbers kept of each kind: enough to go and look."""

RULES: Mapping[str, str] = {
    "keep": "Leave the line as it is; it is counted and simulated.",
    "repair": "Change the one value that is wrong, as the kind says, and keep the job.",
    "sum": "As `repair`, and add up what the kind says.",
    "skip": "Leave the job out of the workload; it is counted.",
    "error": "Stop at the first such line, with exit code 2.",
}
"""What each rule does."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A named kind of damaged or impossible line.

    Attributes
    ----------
    name : str
        In kebab case; the option is ``--on-`` and this.
    meaning : str
        What such a line is, and why it is not simply simulated.
    expected : str
        What stands there in a sound line; ends the error message.
    rules : tuple of str
        Names of `RULES` that make sense for it.
    default : str
        The rule that holds unless another one is asked for.
    repair : str
        What ``repair`` does to the job, empty where there is no such rule.
    total : str
        What ``sum`` does to it.
    """

    name: str
    meaning: str
    expected: str
    rules: tuple[str, ...]
    default: str
    repair: str = ""
    total: str = ""

    def done(self, rule: str) -> str:
        """What became of the lines under *rule*, in a few words."""
        done = {"skip": "left out", "keep": "kept as they are", "sum": f"repaired: {self.total}"}
        return done.get(rule, f"repaired: {self.repair}" if rule == "repair" else rule)


_KINDS = (
    Kind(
        "unreadable-line",
        "The line does not fit the columns of the header, whichever way it is divided: cut short, damaged, or no line "
        "of this log. What it says cannot be known.",
        "a value in each column of the header",
        ("skip", "error"),
        "skip",
    ),
    Kind(
        "delimiter-in-name",
        "The name of the job, or another free text, holds the delimiter or a line break, so that the columns after it "
        "do not stand where the header says. The text is found from what the other columns can hold.",
        "no delimiter and no line break in a job's name",
        ("repair", "skip", "error"),
        "repair",
        "columns are counted from both ends, what is between them is the name",
    ),
    Kind(
        "repeated-line",
        "The same run of the same job stands on several lines: a file was given twice, or logs of overlapping windows "
        "were put together. One line counts, of those that know the end.",
        "one line a run",
        ("skip", "error"),
        "skip",
    ),
    Kind(
        "earlier-run",
        "The job was preempted, requeued or lost its node, and this is a run before its last one. It is one job, that "
        "came when it was first submitted; Slurm gives each further run a submit time of its own, at the end of the "
        "one before. A job that is requeued begins anew, so that it has as much to run as its last run had, or as its "
        "longest one where the last was ended too. Where jobs go on where they were left (checkpoints), `sum` adds "
        "their runs up. What the earlier runs held is kept beside the job (`logged`: runs, preempted, lost). "
        "Where only later runs are in the log (`sacct` without `-D`), first submits are not known.",
        "one run a job",
        ("repair", "sum", "skip", "keep", "error"),
        "repair",
        "the runs are one job: as early as the first, as long as the last",
        "the runs are one job: as early as the first, as long as all of them",
    ),
    Kind(
        "too-few-fields",
        "The line has fewer than 18 fields: usually the last line of a file that was cut, or a line broken in two. "
        "Which of its numbers means what cannot be known.",
        "18 fields",
        ("skip", "error"),
        "skip",
    ),
    Kind(
        "too-many-fields",
        "The line has more than 18 fields. Some sites append columns of their own; the format allows none, but "
        "the first 18 are where they belong.",
        "18 fields",
        ("repair", "skip", "error"),
        "repair",
        "the first 18 fields count, the rest is not read",
    ),
    Kind(
        "not-a-number",
        "A field is no number, is NaN or infinite, is larger than any real log can mean (times beyond 285 years, "
        "more than 2,147,483,647 cores), or is a fraction where only whole numbers make sense. "
        "Such a line was damaged on its way, so its other fields are not trusted either.",
        "a number, -1 where it is not known",
        ("skip", "error"),
        "skip",
    ),
    Kind(
        "not-a-record",
        "The line of an accounting log is no record: it is not made of date, type, job and text between semicolons, or "
        "names no job where its type needs one. Usually it was cut, or broken in two.",
        "date;type;job;text",
        ("skip", "error"),
        "skip",
    ),
    Kind(
        "damaged-row",
        "A cell of a table is not what its mapping says (no number, no time …), or the row has more or fewer cells "
        "than the header. Where that is more than one row in twenty, the mapping is wrong and the table refused.",
        "cells as the mapping says",
        ("skip", "error"),
        "skip",
    ),
    Kind(
        "runtime-not-span",
        "The row of a table has a start, an end and a runtime, and the runtime is another one than the time between "
        "them by more than a second. From start to end the job held the machine.",
        "a runtime as long as the time from start to end",
        ("repair", "keep", "skip", "error"),
        "repair",
        "the runtime becomes the time from start to end",
    ),
    Kind(
        "array-parent",
        "The records are of a job array as a whole. Its elements have records of their own, and they held the cores; "
        "counting both would count the work twice.",
        "a job, or an element of an array",
        ("skip", "error"),
        "skip",
    ),
    Kind(
        "still-waiting",
        "The job had not started when the log was written. How long it will run is not known. For a forecast it is the "
        "queue: `gridsim quote` repairs such lines of logs of Slurm unless this option says otherwise. Other readers "
        "leave them out all the same.",
        "a job that started",
        ("skip", "repair", "error"),
        "skip",
        "the job runs for as long as it asked for",
    ),
    Kind(
        "not-eligible",
        "The job had not started when the log was written, and could not have: it was held, or waited for another job. "
        "When it will be part of the queue is not known.",
        "a job that could start",
        ("skip", "error"),
        "skip",
    ),
    Kind(
        "start-before-submit",
        "The job started before it was submitted, or before it might run: clocks that differ, or a hold that was set "
        "after the start.",
        "a start not before the submit time",
        ("repair", "skip", "error"),
        "repair",
        "the submit time becomes the start",
    ),
    Kind(
        "bad-submit",
        "The submit time is negative or unknown (-1), so the job has no place in the order of arrivals. Some "
        "conversions give the first job a small negative time.",
        "a submit time from 0 s",
        ("skip", "error"),
        "skip",
    ),
    Kind(
        "partial",
        "The status is 2, 3 or 4: the line is one part of a job that was swapped out or checkpointed. Where the log "
        "also holds the job's summary line, counting both would count the work twice. Where the status field "
        "holds raw exit codes instead (a conversion that ignored the format), keep such lines.",
        "status -1, 0, 1 or 5",
        ("skip", "keep", "error"),
        "skip",
    ),
    Kind(
        "never-ran",
        "The job was cancelled before it started: status 5 and no runtime. It has a size and a requested time, so it "
        "looks like a job, but it never held a core; when its user would have given up under another schedule "
        "is not known. Logs of Slurm say when it was cancelled: kept, it waits until then under a policy that knows of "
        "users who cancel what waits, such as `slurm`, and is so unless this option says otherwise. Other readers "
        "and policies leave it out all the same.",
        "a runtime above 0 s, or a status other than 5 (cancelled)",
        ("skip", "keep", "error"),
        "skip",
    ),
    Kind(
        "runaway",
        "The job is said to run still, more than 10 minutes beyond its limit: its end got lost, and the time it has "
        "run grows for ever.",
        "an end, or a job within its limit",
        ("skip", "repair", "error"),
        "skip",
        "the job ends at its limit",
    ),
    Kind(
        "still-running",
        "The job was running when the log was written. It held its cores until then, but when it ends is not known.",
        "an end",
        ("repair", "skip", "error"),
        "repair",
        "the job ends when the log was written",
    ),
    Kind(
        "cut-to-window",
        "The job ends before it starts, at the end of the log: times were cut to a window (`sacct -T`). Others are cut "
        "too and do not show it, so that no runtime of the log can be trusted; write it anew without -T.",
        "times as they were, not cut to a window (sacct without -T)",
        ("error", "skip"),
        "error",
    ),
    Kind(
        "clock-change",
        "The time from start to end is an hour more or less than the job ran: the clocks changed meanwhile. The "
        "runtime is right, but later times of the log are an hour off against earlier ones; `--timezone` corrects "
        "them.",
        "a start and an end as far apart as the job ran",
        ("keep", "skip", "error"),
        "keep",
    ),
    Kind(
        "suspended",
        "The job was suspended and resumed. Its runtime is the time that it ran, without the time in between, in which "
        "others may have had its cores.",
        "a job that ran from its start to its end",
        ("keep", "skip", "error"),
        "keep",
    ),
    Kind(
        "ended-by-system",
        "The job was ended by the loss of a node or by a job of a higher rank (NODE_FAIL, PREEMPTED, BOOT_FAIL): left "
        "alone, it would have run longer than the log says.",
        "a job that ended by itself, at its limit or by its user",
        ("keep", "skip", "error"),
        "keep",
    ),
    Kind(
        "negative-runtime",
        "The runtime is negative, mostly the -1 of an unknown one, and the status is not that of a cancelled job. "
        "Without a runtime there is nothing to simulate.",
        "a runtime above 0 s",
        ("skip", "error"),
        "skip",
    ),
    Kind(
        "zero-runtime",
        "The runtime is 0: either the job ran for less than half a second and was rounded, or it failed at once. "
        "A job of no length would start and end in one instant and make slowdowns infinite.",
        "a runtime above 0 s",
        ("skip", "repair", "error"),
        "skip",
        "the runtime becomes 1 s",
    ),
    Kind(
        "zero-length-task",
        "A task of a workflow has a runtime of 0, or one that rounds to 0 ticks. Other tasks wait for it, so it cannot "
        "be left out, and a task that starts and ends in one instant would have no place in the order of events.",
        "a runtime of at least half a tick",
        ("repair", "error"),
        "repair",
        "the runtime becomes one tick",
    ),
    Kind(
        "missing-cores",
        "Neither the requested nor the allocated number of processors is above 0, so the size of the job is unknown. "
        "Where only one of the two is there it is taken, which is no problem and is reported apart.",
        "requested or allocated processors above 0",
        ("skip", "error"),
        "skip",
    ),
    Kind(
        "too-wide",
        "The job needs more cores than the machine has, so it could never start: the machine is smaller than the one "
        "of the log (`--cores`), or the header states a part of it only.",
        "at most the cores of the machine",
        ("skip", "repair", "error"),
        "skip",
        "the job gets the whole machine, with its runtime unchanged",
    ),
    Kind(
        "unlimited",
        "The job has no time limit. Backfilling plans with limits; Slurm's takes a year for none, so that such a job "
        "is never thought to end in time for another one.",
        "a limit",
        ("repair", "skip", "error"),
        "repair",
        "the estimate becomes 365 days",
    ),
    Kind(
        "partition-limit",
        "The limit of the job is that of its partition, which the log does not tell.",
        "a limit",
        ("repair", "skip", "error"),
        "repair",
        "the estimate becomes the longest limit in its partition, the runtime where that is longer or there is none",
    ),
    Kind(
        "missing-estimate",
        "The log has no requested time for the job. Backfilling plans with requested times, so it needs some number; "
        "with the runtime in its place this job is predicted perfectly, which flatters the schedule.",
        "a requested time above 0 s",
        ("repair", "skip", "error"),
        "repair",
        "the estimate becomes the runtime, a perfect one",
    ),
    Kind(
        "over-estimate",
        "The job ran longer than it had asked for. Real systems grant some grace or do not enforce the limit at once. "
        "Kept as it is, the job meets its limit in the simulation, which kills it there or extends it "
        "(`--overrun`).",
        "a runtime up to the requested time",
        ("keep", "repair", "skip", "error"),
        "keep",
        "the estimate is lifted to the runtime",
    ),
    Kind(
        "late-eligible",
        "The job could start only some time after it was submitted: it waited for another job or a begin time, was "
        "held, or its array lets only so many tasks run at once. No scheduler could have started it before.",
        "a job that could start when it was submitted",
        ("repair", "keep", "skip", "error"),
        "repair",
        "the submit time becomes the time from which it could start",
    ),
    Kind(
        "dependent",
        "The job was submitted to start after the end of another one of the log. It could start when it did become "
        "eligible, which under another schedule would be another time.",
        "a job that waits for no other one",
        ("keep", "repair", "skip", "error"),
        "keep",
        "jobs that wait for one another become one job of several tasks",
    ),
    Kind(
        "not-utf-8",
        "A name (of the user, account, partition, QOS, job …) is not UTF-8: usually it is in an older encoding, or was "
        "cut inside a character. Its wrong bytes are shown as U+FFFD. Names that differ in these bytes alone stay "
        "apart, but no name in another file, such as an association, equals it.",
        "names in UTF-8",
        ("keep", "skip", "error"),
        "keep",
    ),
    Kind(
        "part-of-job",
        "The line is one part of a heterogeneous job, whose parts start together. As a job of its own it may start at "
        "another time than the others.",
        "a job of one part",
        ("keep", "repair", "skip", "error"),
        "keep",
        "the parts become one job with the cores of all",
    ),
    Kind(
        "out-of-order",
        "The job was submitted before a job on an earlier line. The format wants lines sorted by submit time, but "
        "some logs are sorted by job number or by end.",
        "a submit time not before that of the lines above",
        ("repair", "skip", "error"),
        "repair",
        "jobs are put in order of submit time, equal ones stay in the order of the file",
    ),
    Kind(
        "duplicate-job",
        "The job number was met before, or there is none. Numbers are no index, but each names one job: that is how "
        "the same job is found again in two schedules, so they must differ.",
        "a job number of its own",
        ("repair", "skip", "error"),
        "repair",
        "the job gets the next number above the largest of the log",
    ),
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _KINDS}
"""Every kind by name, in the order in which a line is tested; the first kind that leaves a line out is the last
one that it is tested for."""


def option(kind: str) -> str:
    """Option of the command line that sets the rule of a kind.

    Examples
    --------
    >>> option("zero-runtime")
    '--on-zero-runtime'
    """
    return f"--on-{kind}"


@dataclass(frozen=True, slots=True)
class Problem:
    """Lines of one kind that were found in a log: how many, the first of them, and the rule that they met.

    Of a log of several files, lines are numbered on from file to file, and `places` says where they are: ``file:line``.
    """

    kind: str
    count: int
    first_lines: tuple[int, ...]
    rule: str
    places: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """What became of the lines, in a few words."""
        return KINDS[self.kind].done(self.rule)

    @property
    def shown(self) -> str:
        """Where the first lines are, with a sign that there are more."""
        places = self.places or tuple(map(str, self.first_lines))
        return ", ".join(places) + (", …" if self.count > len(places) else "")

    def to_json(self) -> dict[str, Any]:
        """Entry of `run.json`."""
        entry = {"kind": self.kind, "count": self.count, "first_lines": list(self.first_lines), "rule": self.rule}
        return {**entry, "first_places": list(self.places)} if self.places else entry

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Problem:
        """The problem that `to_json` wrote."""
        places = tuple(entry.get("first_places", ()))
        return cls(entry["kind"], entry["count"], tuple(entry["first_lines"]), entry["rule"], places)


class Problems:
    """Tally of the damaged or impossible lines of one file, and the rules that hold for it.

    Parameters
    ----------
    rules : mapping of str to str, optional
        Rule by kind, for kinds that shall not have their default.
    source : object, optional
        File that errors name.

    Raises
    ------
    UnknownNameError
        For a kind that there is not.
    InputError
        For a rule that the kind does not have.

    Examples
    --------
    >>> problems = Problems({"zero-runtime": "repair"})
    >>> problems.found("zero-runtime", [7, 9], value=0)
    'repair'
    >>> list(problems)
    [Problem(kind='zero-runtime', count=2, first_lines=(7, 9), rule='repair', places=())]
    """

    def __init__(self, rules: Mapping[str, str] | None = None, *, source: object = None) -> None:
        self.source = source
        self._files: list[tuple[int, object]] = []
        self._rules = {kind.name: kind.default for kind in KINDS.values()}
        self._found: dict[str, Problem] = {}
        for name, rule in (rules or {}).items():
            if name not in KINDS:
                raise UnknownNameError("kind of damaged line", name, KINDS)
            if rule not in KINDS[name].rules:
                allowed = ", ".join(KINDS[name].rules)
                raise InputError(f"{option(name)} has no rule '{rule}'; it takes one of: {allowed}")
            self._rules[name] = rule

    def begin(self, file: object, before: int) -> None:
        """Another file of the log begins, behind so many lines of those before it."""
        self._files.append((before, file))

    def place(self, line: int) -> tuple[object, int]:
        """File in which a line is, and its number there."""
        before, file = next((each for each in reversed(self._files) if each[0] < line), (0, self.source))
        return file, line - before

    def located(self, error: InputError) -> InputError:
        """An error about a line of the whole log, with the file that the line is in."""
        if error.line is None or error.path not in (None, self.source) or len(self._files) < 2:
            path = self.source if error.path is None else error.path
            return InputError(error.message, path=path, line=error.line, field=error.field)
        path, line = self.place(error.line)
        return InputError(error.message, path=path, line=line, field=error.field)

    def _placed(self, problem: Problem) -> Problem:
        if len(self._files) < 2:
            return problem
        places = (f"{file}:{number}" for file, number in map(self.place, problem.first_lines))
        return replace(problem, places=tuple(places))

    def rule(self, kind: str) -> str:
        """Rule that holds for *kind*."""
        return self._rules[kind]

    def found(
        self,
        kind: str,
        lines: Sequence[int],
        *,
        count: int | None = None,
        value: object = None,
        field: str | None = None,
    ) -> str:
        """Count lines of *kind* and return the rule for them.

        Parameters
        ----------
        lines : sequence of int
            Their numbers from 1, ascending; the first `SHOWN_LINES` are enough.
        count : int, optional
            How many there are, where *lines* are only the first.
        value : object, optional
            What stands on the first of them.
        field : str, optional
            Where it stands there.

        Raises
        ------
        InputError
            Under the rule ``error``, for the first line.
        """
        rule = self._rules[kind]
        if rule == "error":
            others = [f"{option(kind)} {other}" for other in KINDS[kind].rules if other != "error"]
            path, line = self.place(int(lines[0]))
            raise InputError(
                f"{kind}: found {value}; expected {KINDS[kind].expected}; give {' or '.join(others)} to read on",
                path=path,
                line=line,
                field=field,
            )
        before = self._found.get(kind) or Problem(kind, 0, (), rule)
        first = (*before.first_lines, *(int(line) for line in lines[:SHOWN_LINES]))[:SHOWN_LINES]
        self._found[kind] = Problem(kind, before.count + (len(lines) if count is None else count), first, rule)
        return rule

    def __iter__(self) -> Iterator[Problem]:
        return (self._placed(self._found[name]) for name in KINDS if name in self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, kind: str) -> Problem:
        """What was found of *kind*; a count of 0 if nothing was."""
        return self._placed(self._found.get(kind) or Problem(kind, 0, (), self._rules[kind]))

    def to_json(self) -> list[dict[str, Any]]:
        """Entries of `run.json`, in the order of the table."""
        return [problem.to_json() for problem in self]
