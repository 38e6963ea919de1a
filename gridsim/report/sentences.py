"""The answer in words. Says how sure it is, and says so when it is not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gridsim.metrics.compare import Difference
from gridsim.report.words import duration, number, percent, times

if TYPE_CHECKING:
    from gridsim.report.comparison import Comparison, GroupRow

__all__ = ["answer", "best", "caveats", "group_name"]

_MOST = 3
"""Policies that one sentence names at most."""


def best(metrics: Mapping[str, Mapping[str, float]], name: str) -> str:
    """Policy with the lowest value of a metric; the earlier one of equals."""
    return min(metrics, key=lambda label: metrics[label][name] if not math.isnan(metrics[label][name]) else math.inf)


def answer(comparison: Comparison) -> list[str]:
    """Who waits least and by how much, what cannot be told, and who loses: two to four sentences."""
    waits = {label: numbers["wait_mean"] for label, numbers in comparison.metrics.items()}
    if all(math.isnan(value) for value in waits.values()):
        return ["No job ran under any policy, so there is nothing to compare."]
    if len(waits) == 1:
        return [_alone(comparison, *waits)]
    if not any(waits.values()):
        return ["Nobody waits under any of the policies: on this machine the choice makes no difference to these jobs."]
    winner = best(comparison.metrics, "wait_mean")
    against = [comparison.difference("wait", winner, other) for other in comparison.labels if other != winner]
    told = [_winner(winner, waits[winner], against), *_undecided(winner, against), *_slowdown(comparison, winner)]
    return [*told, _losers(comparison, winner, against)]


def _alone(comparison: Comparison, label: str) -> str:
    numbers = comparison.metrics[label]
    return (
        f"Under {label}, jobs wait {duration(numbers['wait_mean'])} on average and {duration(numbers['wait_median'])} "
        f"at the median; 5 % wait longer than {duration(numbers['wait_p95'])}. "
        f"The machine is {percent(numbers['utilisation'])} busy."
    )


def _winner(winner: str, wait: float, against: Sequence[Difference]) -> str:
    clear = [it for it in against if it.verdict == "better"]
    head = f"{winner} waits least: {duration(wait) if wait else 'not at all'} on average"
    if not clear:
        return f"{winner} has the shortest mean wait, {duration(wait)}, but not clearly so."
    named = sorted(clear, key=lambda it: it.baseline_mean, reverse=True)
    if len(named) > _MOST:
        named = [*named[: _MOST - 1], named[-1]]
    parts = [f"{_less(it)} than {it.baseline} ({_sure(it)}{_family(it, against, first=not k)})" for k, it in enumerate(named)]
    rest = len(clear) - len(named)
    more = f", and clearly less than {rest} other{'s' if rest > 1 else ''}" if rest else ""
    return f"{head}, {_listed(parts)}{more}."


def _less(it: Difference) -> str:
    return f"{duration(-it.mean)} less" if math.isnan(it.ratio) else f"{percent(1 - it.ratio)} less"


def _sure(it: Difference) -> str:
    return f"95 % interval {_interval(it)}; {_p(it.p_holm)}"


def _interval(it: Difference, *, less: bool = True) -> str:
    """Interval of the relative difference; of the absolute one where there is no ratio."""
    if math.isnan(it.ratio_low):
        return "unknown" if math.isnan(it.low) else f"{duration(-it.high)} to {duration(-it.low)}"
    low, high = (1 - it.ratio_high, 1 - it.ratio_low) if less else (it.ratio_low - 1, it.ratio_high - 1)
    if high > 10 or low < -10:
        return f"{times(it.ratio_low)} to {times(it.ratio_high)} as long"
    mixed = low < 0 < high
    first, second = percent(low, sign=mixed), percent(high, sign=mixed)
    return f"{first.removesuffix(' %')} to {second}"


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _family(it: Difference, against: Sequence[Difference], *, first: bool) -> str:
    """What the p value was corrected for and rests on; said once."""
    if not first:
        return ""
    policies = len(against) + 1
    comparisons = policies * (policies - 1) // 2
    corrected = f" after Holm, {comparisons} comparisons" if comparisons > 1 else ""
    return f"{corrected}, {it.blocks} blocks of time"


def _undecided(winner: str, against: Sequence[Difference]) -> list[str]:
    told = []
    unclear = [it for it in against if it.verdict == "no clear difference"]
    if unclear:
        parts = [f"from {it.baseline} (difference {_signed(it)}, 95 % interval {_interval(it, less=False)})" for it in unclear]
        told.append(f"This log cannot tell {winner} {_listed(parts[:_MOST], 'or')}.")
    few = [it.baseline for it in against if it.verdict == "too little data"]
    if few:
        told.append(
            f"There is too little independent data to judge {winner} against {_listed(few)}: waits change too slowly "
            "for a log of this length, so take the difference as what happened here, not as a rule."
        )
    return told


def _signed(it: Difference) -> str:
    return duration(it.mean) if math.isnan(it.ratio) else percent(it.ratio - 1, sign=True)


def _slowdown(comparison: Comparison, winner: str) -> list[str]:
    """Only where the bounded slowdown names another winner, clearly."""
    other = best(comparison.metrics, "bounded_slowdown_mean")
    if other == winner:
        return []
    it = comparison.difference("bounded_slowdown", other, winner)
    if it.verdict != "better":
        return []
    return [
        f"By mean bounded slowdown {other} is ahead: {it.policy_mean:.3g} against {it.baseline_mean:.3g}, "
        f"{percent(1 - it.ratio)} less ({_sure(it)})."
    ]


def _losers(comparison: Comparison, winner: str, against: Sequence[Difference]) -> str:
    """Groups that wait clearly longer under the winner than under another policy, the worst two."""
    losing = [row for row in comparison.groups if row.policy == winner and row.verdict == "worse"]
    losing = [row for row in losing if row.kind != "user"] or losing
    losing.sort(key=lambda row: -row.ratio)
    chosen: list[GroupRow] = []
    for row in losing:
        if all((row.kind, row.group) != (other.kind, other.group) for other in chosen):
            chosen.append(row)
    if chosen:
        parts = [
            f"{group_name(row.kind, row.group)} wait {times(row.ratio)} as long as under {row.baseline} "
            f"(95 % interval {row.ratio_low:.2g} to {row.ratio_high:.2g})"
            for row in chosen[:2]
        ]
        return f"Who loses under {winner}: {_listed(parts)}."
    worst = max(against, key=lambda it: it.worse)
    return (
        f"No class of size or length clearly loses under {winner}; single jobs do: "
        f"{percent(worst.worse)} wait longer than under {worst.baseline}, {percent(worst.better)} wait less."
    )


def group_name(kind: str, group: str) -> str:
    """Group as a part of a sentence.

    Examples
    --------
    >>> group_name("size", "65-128"), group_name("length", "1-8 h"), group_name("user", "other users")
    ('jobs of 65-128 cores', 'jobs of 1-8 h', 'jobs of other users')
    """
    if kind == "size":
        return f"jobs of {group} core{'' if group == '1' else 's'}"
    return f"jobs {group}" if group.startswith("under") else f"jobs of {group}"


def _listed(parts: Sequence[str], word: str = "and") -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


# ---- what to know about the numbers -----------------------------------------------------------------------------


def caveats(comparison: Comparison) -> list[str]:
    """Cuts, kills, rejections, and what was left out of the log or changed in it."""
    return [
        *_cuts(comparison),
        *_statuses(comparison),
        *_problems(comparison.info.get("workload", {})),
    ]


def _cuts(comparison: Comparison) -> list[str]:
    if not (comparison.warmup or comparison.cooldown):
        return []
    cut = comparison.metrics[comparison.baseline]["jobs_cut"]
    parts = [
        f"the {name} {duration(value)}"
        for name, value in (("first", comparison.warmup), ("last", comparison.cooldown))
        if value
    ]
    return [f"Not counted: {number(cut)} jobs submitted in {_listed(parts)} of the log."]


def _statuses(comparison: Comparison) -> list[str]:
    told = []
    for name, text in (
        ("killed_walltime", "killed at the walltime they had asked for"),
        ("rejected", "rejected: the machine can never run them"),
        ("unadmitted", "turned away by admission"),
    ):
        counts = {label: numbers[name] for label, numbers in comparison.metrics.items()}
        if len(set(counts.values())) == 1:
            count = next(iter(counts.values()))
            if count:
                each = " under every policy" if len(counts) > 1 else ""
                told.append(f"{_jobs(count)} {text}{each}.")
        else:
            parts = _listed([f"{number(count)} under {label}" for label, count in counts.items()])
            told.append(f"Jobs {text}: {parts}.")
    return told


def _jobs(count: float) -> str:
    return f"{number(count)} job was" if count == 1 else f"{number(count)} jobs were"


def _problems(provenance: Mapping[str, Any]) -> list[str]:
    """Left out and changed lines of the log, each kind with its count."""
    told = []
    for rules, text in ((("skip",), "left out"), (("repair",), "repaired")):
        found = [entry for entry in provenance.get("problems", ()) if entry["rule"] in rules and entry["count"]]
        if found:
            total = sum(entry["count"] for entry in found)
            kinds = _listed([f"{number(entry['count'])} {entry['kind'].replace('-', ' ')}" for entry in found])
            told.append(f"Of the log, {number(total)} line{'s were' if total != 1 else ' was'} {text} ({kinds}).")
    return told
