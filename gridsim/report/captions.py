"""What figures of a page say in words, before how they are to be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gridsim.report.differences import group_name
from gridsim.words import listed, number

if TYPE_CHECKING:
    from gridsim.questions.evidence import Evidence, GroupRow

__all__ = ["by_policy", "of_groups"]

MOST = 4
"""Policies that are told one by one; of more only the first and the best."""

NAMED = 3
"""Groups that are named; more are counted."""


def by_policy(comparison: Evidence, metric: str, text: str, shown: Callable[[float], str]) -> str:
    """A number of each policy in a sentence; nothing where it is not known.

    Parameters
    ----------
    text : str
        The sentence, with ``{}`` where the numbers go.
    shown : callable
        How a number is written.
    """
    labels = comparison.labels
    if len(labels) > MOST:
        labels = list(dict.fromkeys((comparison.baseline, comparison.best)))
    values = {label: comparison.metrics[label].get(metric, float("nan")) for label in labels}
    if any(value != value for value in values.values()):
        return ""
    texts = {label: shown(value) for label, value in values.items()}
    if len(texts) > 1 and len(set(texts.values())) == 1 and len(labels) == len(comparison.labels):
        return text.format(f"{texts[labels[0]]} under every policy") + " "
    return text.format(listed([f"{told} under {label}" for label, told in texts.items()])) + " "


def of_groups(rows: Sequence[GroupRow], *, less: str, more: str) -> str:
    """Which groups clearly gain and lose under each policy.

    Parameters
    ----------
    less, more : str
        What jobs that gain and jobs that lose do: ``wait less``, ``wait longer``.
    """
    told, neither = [], []
    for policy in dict.fromkeys(row.policy for row in rows):
        own = [row for row in rows if row.policy == policy]
        better, worse = ([row for row in own if row.verdict == verdict] for verdict in ("better", "worse"))
        if not better and not worse:
            neither.append(policy)
            continue
        gains = f"{_names(better, len(own))} clearly {less}" if better else f"none clearly {less}"
        loses = f"{_names(worse, len(own))} clearly {more}" if worse else f"none clearly {more}"
        told.append(f"Under {policy}, {gains}; {loses}.")
    if neither:
        few = {(row.policy, row.group) for row in rows if row.policy in neither and row.verdict == "too little data"}
        groups = len({(row.policy, row.group) for row in rows if row.policy in neither})
        what = "groups have" if len(neither) == 1 else "comparisons of a group have"
        unknown = f"; {len(few)} of {groups} {what} too little data" if few else ""
        told.append(f"Under {listed(neither, 'or')} no group differs significantly from {rows[0].baseline}{unknown}.")
    return " ".join(told)


def _names(groups: Sequence[GroupRow], among: int) -> str:
    """Few groups by name, each for itself; of more, how many."""
    if len(groups) > NAMED:
        return f"{number(len(groups))} of {number(among)} groups"
    return listed([group_name(row.kind, row.group) for row in groups])
