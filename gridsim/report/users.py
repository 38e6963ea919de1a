"""Sentences on users: their reactions, the lack of reactions under a higher load, and fairness over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gridsim.metrics.utilisation import keeps_up
from gridsim.model.time import seconds
from gridsim.number_formatting import duration, listed, number, percent
from gridsim.report.markup import texts

if TYPE_CHECKING:
    from gridsim.metrics.fairness import FairnessOverTime
    from gridsim.questions.evidence import Evidence
    from gridsim.record import Record


_text = texts("caveats")

REACTING_TO_CHANGES = _text("reacting_to_changes")
"""Note on changes for users who react."""

_MORE = 1.005
"""Load factor from which on the load counts as raised."""


def caveats(comparison: Evidence) -> list[str]:
    """Return notes on the effect of users who react, and on fixed submit times under a higher load."""
    if comparison.of_dags:
        return []
    if any(record.logged_submit_us is not None for record in comparison.records.values()):
        return list(_reacting(comparison))
    return list(_fixed(comparison))


# ---- users who react ----------------------------------------------------------------------------------------------


def _reacting(comparison: Evidence) -> Iterator[str]:
    records = comparison.records
    reactions = records[comparison.baseline].workload.reactions
    count = 0 if reactions is None else int(np.count_nonzero(reactions.answers))
    jobs = len(records[comparison.baseline])
    moves = [_moved(label, record) for label, record in records.items()]
    yield _text("reacting_users", count=count, jobs=jobs, moves="; ".join(moves))
    yield _text("judge_by_completions", done=_done(comparison))


def _moved(label: str, record: Record) -> str:
    assert record.logged_submit_us is not None
    later = seconds(record.workload.submit - record.logged_submit_us)
    moved = later != 0
    if not moved.any():
        return f"{label}: no submit time differs from the log"
    mean = float(later[moved].mean())
    way = "later" if mean > 0 else "sooner"
    apart = duration(float(np.median(np.abs(later[moved]))))
    return _text("moved_jobs", label=label, share=float(moved.mean()), by=abs(mean), way=way, apart=apart)


def _done(comparison: Evidence) -> str:
    """Return responses and makespans of the policies, and how much earlier the same jobs end than under the first."""
    parts = []
    first = comparison.records[comparison.baseline]
    common = comparison.common
    for label, record in comparison.records.items():
        numbers = comparison.metrics[label]
        sooner = ""
        if record is not first and common.any():
            mean = float(seconds(record.end_us[common] - first.end_us[common]).mean())
            way = "later" if mean > 0 else "sooner"
            sooner = f", jobs end {duration(abs(mean))} {way} on average than under {comparison.baseline}"
        parts.append(_text("mean_response", label=label, numbers=numbers, sooner=sooner))
    return f"{'; '.join(parts)}."


# ---- a fixed log --------------------------------------------------------------------------------------------------


def _fixed(comparison: Evidence) -> Iterator[str]:
    reasons = list(_reasons(comparison))
    if reasons:
        record = comparison.records[comparison.baseline]
        yield _text("fixed_arrivals", reasons=reasons, extreme=_extreme(record))


def _reasons(comparison: Evidence) -> Iterator[str]:
    """Return why jobs arrive faster than in the log, or faster than the machine can run them."""
    raised = [text for entry in _transforms(comparison.info) if (text := _raised(entry))]
    if raised:
        yield f"the load was raised ({', '.join(raised)})"
    record = comparison.records[comparison.baseline]
    stated = record.workload.cores_stated
    if stated is not None and record.cores < stated:
        yield f"the machine was made smaller ({number(record.cores)} of {number(stated)} cores)"
    # Policies that reject jobs have short queues at any load.
    open_to_all = [label for label, numbers in comparison.metrics.items() if not numbers["unadmitted"]]
    behind = [label for label in open_to_all if not keeps_up(comparison.records[label])]
    if behind:
        yield f"{listed(behind)} {'is' if len(behind) == 1 else 'are'} saturated"


def _transforms(info: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = info.get("workload", {}).get("transforms", ())
    return found


def _raised(entry: Mapping[str, Any]) -> str:
    """Return a transform as written by the user if it raised the load; else empty."""
    name = str(entry.get("transform"))
    if name in ("duplicate", "expand"):
        return f"{name}?load={entry['load']:g}" if entry["load"] > _MORE else ""
    if name == "load-factor":
        return f"{name}?percent={entry['percent']:g}" if entry["percent"] > 100 * _MORE else ""
    if name == "offered-load":
        return f"{name}?load={entry['load']:g}" if entry["load"] > entry["load_before"] * _MORE else ""
    return ""


def _extreme(record: Record) -> str:
    """Return how to simulate users who react; empty if the jobs have no users."""
    user = record.workload.labels.get("user")
    return "" if user is None or not (user >= 0).any() else " --users react simulates the other extreme."


def inequality(found: Mapping[str, FairnessOverTime]) -> str:
    """Return sentences on Gini coefficients: inequality under each policy, and periods with less inequality."""
    first = next(iter(found.values()))
    known = np.isfinite(first.gini)
    for it in found.values():
        known &= np.isfinite(it.gini)
    length = _period(first)
    if not known.any():
        return f"No {length} has enough users under every policy to compare their slowdowns."
    middle = {label: float(np.median(it.gini[known])) for label, it in found.items()}
    parts = [f"{label} {value:.2f}" for label, value in middle.items()]
    medians = f"Median of {number(known.sum())} {_many(length)} with enough users: {listed(parts)}."
    baseline, *others = found
    if not others:
        return medians
    equal = {label: (found[label].gini[known] < found[baseline].gini[known]).sum() for label in others}
    parts = [f"{number(count)} under {label}" for label, count in equal.items()]
    return f"{medians} Slowdowns were more equal than under {baseline} in {listed(parts)}."


def large_users_held(found: Mapping[str, FairnessOverTime], users: int) -> str:
    """Return the share of the machine held by the largest users under each policy, mean over time and maximum."""
    parts = [
        f"{label} {percent(float(it.share.mean()))} on average and {percent(float(it.share.max()))} at most"
        for label, it in found.items()
    ]
    who = "the user" if users == 1 else f"the {users} users"
    lengths = _many(_period(next(iter(found.values()))))
    return f"Share of all cores used by {who} with the most core-seconds, as means of {lengths}: {'; '.join(parts)}."


def _many(length: str) -> str:
    return length.replace("stretch", "stretches") if length.startswith("stretch") else f"{length}s"


def _period(found: FairnessOverTime) -> str:
    """Return the length of the periods as a noun."""
    length = float(found.edges_s[1] - found.edges_s[0])
    named = {7 * 86_400: "week", 86_400: "day", 3_600: "hour", 60: "minute", 1: "second"}
    return named.get(round(length), f"stretch of {duration(length)}")
