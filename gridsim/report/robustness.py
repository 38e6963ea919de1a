"""Text on moldable jobs by weight: gains and losses of each category."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from gridsim.number_formatting import listed, percent
from gridsim.report import change
from gridsim.report.markup import texts

if TYPE_CHECKING:
    from gridsim.questions.evidence import Evidence, GroupRow


_text = texts("comparison")

FEWEST = 10
"""Number of jobs below which a category is omitted."""

_MOST = 3
"""Largest number of categories named in a sentence."""


@dataclass(frozen=True, slots=True)
class WeightCategory:
    """Category of jobs by weight, or all jobs: change of the mean response under each policy except the first.

    Attributes
    ----------
    name : str
        Range of core-seconds of its jobs; ``all`` for all jobs.
    jobs : int
        Number of jobs that ran under both of the first two policies.
    changes : mapping of str to float
        Mean response under the policy over that under the first one, minus 1; negative is better.
    verdicts : mapping of str to str
        ``better``, ``worse``, ``no clear difference``, ``too little data``.
    """

    name: str
    jobs: int
    changes: Mapping[str, float]
    verdicts: Mapping[str, str]


def categories(comparison: Evidence) -> list[WeightCategory]:
    """Return categories with at least `FEWEST` jobs, lightest first, then all jobs; empty if jobs are not moldable.

    References
    ----------
    Section 8.4 of the project's specification of moldable jobs.
    """
    rows = _rows(comparison)
    if not rows:
        return []
    found = [
        _category(name, [row for row in rows if row.group == name]) for name in dict.fromkeys(r.group for r in rows)
    ]
    whole = [comparison.difference("response", label, comparison.baseline) for label in comparison.others]
    changes = {it.policy: it.ratio - 1 for it in whole}
    return [*found, WeightCategory("all", whole[0].jobs, changes, {it.policy: it.verdict for it in whole})]


def _rows(comparison: Evidence) -> list[GroupRow]:
    """Return the rows of weight categories against the first policy, without small ones.

    Worse only above the threshold.
    """
    return [
        row if row.verdict != "worse" or comparison.loses(row) else replace(row, verdict="no clear difference")
        for row in comparison.groups
        if row.kind == "weight"
        and row.baseline == comparison.baseline
        and row.jobs >= FEWEST
        and row.ratio == row.ratio
    ]


def _category(name: str, rows: Sequence[GroupRow]) -> WeightCategory:
    return WeightCategory(
        name, rows[0].jobs, {row.policy: row.ratio - 1 for row in rows}, {row.policy: row.verdict for row in rows}
    )


def answer(comparison: Evidence) -> Iterator[str]:
    """Return one sentence on whether a weight category takes longer than under the first policy."""
    rows = _rows(comparison)
    verdicts = [_Verdict(label, [row for row in rows if row.policy == label]) for label in comparison.others]
    verdicts = [it for it in verdicts if it.rows]
    if len(verdicts) == 1:
        yield verdicts[0].alone(comparison.baseline)
    elif verdicts:
        yield _together(verdicts, comparison.baseline)


class _Verdict(NamedTuple):
    """Weight categories under a policy against the first one."""

    policy: str
    rows: Sequence[GroupRow]

    @property
    def worse(self) -> list[GroupRow]:
        return [row for row in self.rows if row.verdict == "worse"]

    @property
    def unknown(self) -> int:
        """Categories with too little data."""
        return sum(row.verdict == "too little data" for row in self.rows)

    @property
    def undecided(self) -> bool:
        """True if no category is significantly worse, and most categories are inconclusive."""
        return not self.worse and 2 * self.unknown > len(self.rows)

    def alone(self, baseline: str) -> str:
        """Return the verdict with its changes."""
        longer = [row for row in self.rows if row.ratio > 1]
        of = f"{len(self.rows)} weight categor{'y' if len(self.rows) == 1 else 'ies'} of jobs"
        few = f"; {self.unknown} of them {'has' if self.unknown == 1 else 'have'} too little data"
        few = few if self.unknown else ""
        happened = f"longer in {len(longer)} ({_named(longer)})" if longer else f"longer in none ({_span(self.rows)})"
        if self.worse:
            lost = f"{len(self.worse)} of {of} ({_named(self.worse)})"
            least = change.threshold()
            return f"Not robust: {self.policy} is significantly worse than {baseline} ({least}) for {lost}{few}."
        if self.undecided:
            return _text("short_log", policy=self.policy, of=of, happened=happened, baseline=baseline)
        worse = f"{self.policy} is significantly worse than {baseline} ({change.threshold()}) for none of {of}"
        return f"Robust in this log: {worse}; the mean is {happened}{few}."


def _together(verdicts: Sequence[_Verdict], baseline: str) -> str:
    """Return which policies are robust, which are not, and for which the log is too short."""
    lost = [f"{it.policy} (significantly worse in {len(it.worse)} of {len(it.rows)})" for it in verdicts if it.worse]
    unknown = [it.policy for it in verdicts if it.undecided]
    kept = [
        f"{it.policy}{f' ({it.unknown} of {len(it.rows)} undecided)' if it.unknown else ''}"
        for it in verdicts
        if not it.worse and not it.undecided
    ]
    parts = [
        *([f"robust in this log: {listed(kept)}"] if kept else []),
        *([f"not robust: {listed(lost)}"] if lost else []),
        *([f"inconclusive, as the log is too short: {listed(unknown)}"] if unknown else []),
    ]
    return f"By weight categories of jobs against {baseline}: {'; '.join(parts)}."


def _span(rows: Sequence[GroupRow]) -> str:
    """Return the smallest and the largest change."""
    changes = sorted(row.ratio - 1 for row in rows)
    return change.span(changes[0], changes[-1], change.LONGER)


def _named(rows: Sequence[GroupRow]) -> str:
    """Return the categories with the largest losses, with their changes."""
    most = sorted(rows, key=lambda row: -row.ratio)[:_MOST]
    parts = [f"{row.group} core-seconds by {percent(row.ratio - 1)}" for row in most]
    return ", ".join(parts if len(rows) <= _MOST else [*parts, f"{len(rows) - _MOST} more"])
