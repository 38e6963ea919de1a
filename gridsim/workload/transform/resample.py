"""Many workloads from one log: users are resampled with all their jobs and shifted by whole weeks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from gridsim.errors import InputError, check_parameters
from gridsim.model.dates import calendar_of
from gridsim.model.reactions import NONE, Reactions
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray
from gridsim.model.workload import UNKNOWN, Workload, recorded

_WEEK = 7 * 86_400 * MICROSECOND
_TRIES = 1_000
"""Largest number of draws of users until their work is within the tolerance; after that, the nearest draw is used."""

FEW_USERS, FEW_WEEKS = 30, 8
"""Logs with fewer users or weeks give replications that differ little, or that depend on a few users."""

_MOST_WEEKS = 5_200


class _Users(NamedTuple):
    """Users of the jobs, and their activity in weeks of the log.

    Attributes
    ----------
    of : (n,) int64
        User of each job, from 0; each job of an unknown user has a separate user.
    span : (users,) int64
        Weeks from the first to the last week with a job.
    work : (users,) float64
        Core-seconds.
    """

    of: IntArray
    span: IntArray
    work: FloatArray


class _Chosen(NamedTuple):
    """Jobs of the copies: row in the log, copy, number of wraps around the end, and new submit time."""

    rows: IntArray
    copy: IntArray
    round_the_end: IntArray
    submit: IntArray


@dataclass(frozen=True)
class Resample:
    """A similar workload: users are drawn from those of the log with replacement, each with all jobs, in other weeks.

    Parameters
    ----------
    load : float
        Number of users relative to the log, and so the load: 1.2 means a fifth more users.
    weeks : int or None
        Length in weeks; by default that of the log.
    long_term : int
        Users whose jobs span at least this many weeks are drawn separately.
    within : float or None
        Draw users until their work differs from the one for *load* by at most this fraction. None uses the first draw,
        in which a few heavy users can dominate.
    replica : int or None
        Number of the replication, from 1, as set by ``gridsim compare --resample``; 0 for the unchanged jobs. By
        default drawn like other transforms.

    Notes
    -----
    Weeks begin on Monday at midnight of the log's clock, or with the first submission if the log has no dates. From
    each of the two classes of users, round(load * users * weeks / weeks of the log) users are drawn with replacement.
    The first week of each copy is drawn from all weeks; copies of one user start in different weeks. All jobs of a
    copy move by the same whole number of weeks, and wrap around the end. Hour and weekday of each job therefore stay,
    and so do the distances between a user's jobs, except for one wrap. Copies are new users, and jobs have new
    numbers. A predecessor named in the log is kept within a copy, and dropped where wrapping reversed the order
    (``turned_round``).

    Real users submit less when the machine is full, but independent copies do not. The load therefore varies more from
    week to week than in the log, and for longer.

    References
    ----------
    In the spirit of Zakay, Feitelson, "Workload resampling for performance evaluation of parallel job schedulers",
    ICPE 2013; the rules are gridsim's, see section 2 of the project's specification of methods.

    Examples
    --------
    >>> weeks = np.arange(20) * 7 * 86_400
    >>> log = Workload.from_columns(
    ...     submit=weeks, runtime=np.full(20, 60), cores=np.ones(20), labels={"user": np.arange(20) % 4})
    >>> len(Resample(load=0.5, within=None).apply(log, np.random.default_rng(1)))
    10
    """

    load: float = 1.0
    weeks: int | None = None
    long_term: int = 12
    within: float | None = 0.05
    replica: int | None = None

    source: ClassVar[str] = "after Zakay, Feitelson 2013"

    def __post_init__(self) -> None:
        check_parameters(
            self,
            load=(0.01 <= self.load <= 100, "0.01 to 100"),
            weeks=(self.weeks is None or 1 <= self.weeks <= _MOST_WEEKS, f"1 to {_MOST_WEEKS}"),
            long_term=(self.long_term >= 1, "1 or more"),
            within=(self.within is None or 0 < self.within <= 1, "above 0, at most 1, or none"),
            replica=(self.replica is None or self.replica >= 0, "a number from 0, or none"),
        )

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """Return a resampled workload.

        Raises
        ------
        InputError
            For workflows, for a workload without jobs, and if no user is drawn.
        """
        if self.replica == 0:
            return workload
        workload.require_rigid("only users of rigid jobs can be resampled")
        if not len(workload):
            raise InputError("the workload has no jobs, so there are no users to resample")
        start = _first_week(workload)
        week = (workload.submit - start) // _WEEK
        length = int(week.max()) + 1
        target = self.weeks or length
        if workload.reactions is not None and target < length:
            raise InputError(f"is {target}; with react, expected at least the {length} of the log", field="weeks")
        users = _users(workload, week)
        drawn, off = self._drawn(users, target / length, rng)
        if not len(drawn):
            raise InputError(f"no user was selected for a load of {self.load:g} in {target} weeks", field="load")
        begins = _begins(drawn, target, rng)
        rows, copy = _rows_of(users.of, drawn)
        first = np.full(len(users.span), length)
        np.minimum.at(first, users.of, week)
        round_the_end, moved = np.divmod(begins[copy] + week[rows] - first[users.of[rows]], target)
        submit = start + moved * _WEEK + (workload.submit[rows] - start) % _WEEK
        later = _WEEK if int(submit.min()) < 0 else 0  # the first week can begin before the log's clock
        chosen = _Chosen(rows, copy, round_the_end, submit + later)
        made, turned = _made(workload, chosen, len(drawn))
        facts = {"weeks": target, "users": len(drawn), "users_of_log": len(users.span), "work": off}
        return recorded(made, self, **facts, turned_round=turned, shift=-later / MICROSECOND)

    def _drawn(self, users: _Users, part: float, rng: np.random.Generator) -> tuple[IntArray, float]:
        """Return the drawn users, long-term users first, and their work relative to the target."""
        lasting = users.span >= self.long_term
        classes = [np.flatnonzero(lasting), np.flatnonzero(~lasting)]
        counts = [round(self.load * len(members) * part) for members in classes]
        if not any(counts):
            return np.empty(0, dtype=np.int64), 0.0
        wanted = self.load * float(users.work.sum()) * part
        best, off = np.empty(0, dtype=np.int64), np.inf
        for _ in range(_TRIES):
            drawn = np.concatenate(
                [rng.choice(them, count) for them, count in zip(classes, counts, strict=True) if count]
            )
            work = float(users.work[drawn].sum()) / wanted
            if abs(work - 1) < abs(off - 1):
                best, off = drawn, work
            if self.within is None or abs(work - 1) <= self.within:
                break
        return best, off


def _first_week(workload: Workload) -> int:
    """Return the Monday, midnight, at or before the first submission, on the log's clock; can be negative."""
    first = int(workload.submit.min())
    calendar = calendar_of(workload.provenance)
    if calendar is None:
        return first
    date = calendar.date(first // MICROSECOND)
    midnight = first // MICROSECOND - (date.hour * 3600 + date.minute * 60 + date.second)
    return (midnight - date.weekday() * 86_400) * MICROSECOND


def _users(workload: Workload, week: IntArray) -> _Users:
    label = workload.labels.get("user", np.full(len(workload), UNKNOWN))
    lowest = min(int(label.min()), 0)
    own = np.where(label == UNKNOWN, lowest - 1 - np.arange(len(label)), label)  # unknown users are separate
    _, of = np.unique(own, return_inverse=True)
    count = int(of.max()) + 1
    first, last = np.full(count, np.iinfo(np.int64).max), np.zeros(count, dtype=np.int64)
    np.minimum.at(first, of, week)
    np.maximum.at(last, of, week)
    return _Users(of, last - first + 1, np.bincount(of, weights=workload.area).astype(np.float64))


def _begins(drawn: IntArray, target: int, rng: np.random.Generator) -> IntArray:
    """Return the first week of each copy; copies of one user differ as long as weeks are left."""
    begins = rng.integers(target, size=len(drawn))
    taken: dict[int, set[int]] = {}
    for place, person in enumerate(drawn.tolist()):
        weeks = taken.setdefault(person, set())
        if len(weeks) == target:
            weeks.clear()
        while int(begins[place]) in weeks:
            begins[place] = rng.integers(target)
        weeks.add(int(begins[place]))
    return begins


def _rows_of(of: IntArray, drawn: IntArray) -> tuple[IntArray, IntArray]:
    """Return the rows of the jobs of each drawn user, copy after copy, and the copy of each row."""
    order = np.argsort(of, kind="stable")
    counts = np.bincount(of)
    begin = np.concatenate([[0], np.cumsum(counts)])
    size = counts[drawn]
    copy = np.repeat(np.arange(len(drawn)), size)
    within = np.arange(len(copy)) - np.repeat(np.cumsum(size) - size, size)
    return order[begin[drawn][copy] + within], copy


def _made(workload: Workload, chosen: _Chosen, copies: int) -> tuple[Workload, int]:
    """Return the jobs of the copies as new jobs, and the number of predecessors that were dropped."""
    if int(chosen.submit.max()) + int(workload.estimate.max()) >= NEVER:
        raise InputError("the last submit times exceed the largest time", field="weeks")
    order = np.lexsort((chosen.rows, chosen.copy, chosen.submit))
    chosen = _Chosen(*(column[order] for column in chosen))
    jobs, submit = workload.select(chosen.rows), chosen.submit
    labels, logged = {**jobs.labels, "user": chosen.copy + 1}, dict(jobs.logged)
    turned = 0
    for columns, name in ((labels, "after"), (logged, "preceding")):
        if name in columns:
            columns[name], count = _renumbered(columns[name], jobs.job, chosen.copy)
            turned += count
    made = replace(
        jobs.submitted_at(submit),
        job=np.arange(1, len(submit) + 1),
        labels=labels,
        logged=logged,
        names={label: known for label, known in workload.names.items() if label != "user"},
        reactions=None if jobs.reactions is None else _reactions(jobs.reactions, chosen, copies),
    )
    return made, turned


def _renumbered(named: IntArray, job: IntArray, copy: IntArray) -> tuple[IntArray, int]:
    """Return new numbers of preceding jobs in the same copy, and the number of pairs whose order is reversed."""
    place = {key: row for row, key in enumerate(zip(copy.tolist(), job.tolist(), strict=True))}
    found, turned = np.full(len(named), UNKNOWN), 0
    for row in np.flatnonzero(named != UNKNOWN).tolist():
        before = place.get((int(copy[row]), int(named[row])))
        if before is not None and before < row:
            found[row] = before + 1
        else:
            turned += before is not None
    return found, turned


def _reactions(reactions: Reactions, chosen: _Chosen, copies: int) -> Reactions:
    """Return reactions with separate batches per copy; wrapped jobs are first and are no reaction to the others."""
    known = [column for column in (reactions.batch, reactions.before, reactions.then) if column is not None]
    count = max(int(column.max(initial=NONE)) for column in known) + 1
    stated = min(reactions.stated_from, count)
    part = 2 * chosen.copy + (chosen.round_the_end == 0)  # each job of a copy wraps at most once

    def numbered(column: IntArray) -> IntArray:
        own = part * stated + column
        said = 2 * copies * stated + part * (count - stated) + (column - stated)
        found: IntArray = np.where(column == NONE, NONE, np.where(column < stated, own, said))
        return found

    then = None if reactions.then is None else numbered(reactions.then)
    made = replace(reactions, batch=numbered(reactions.batch), before=numbered(reactions.before), then=then)
    return made if reactions.stated_from == NEVER else replace(made, stated_from=2 * copies * stated)
