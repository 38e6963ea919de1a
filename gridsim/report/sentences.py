"""The answer in words. Says how sure it is, and says so when it is not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gridsim.metrics.compare import FEWEST_BLOCKS, JOBS_A_BLOCK, Difference
from gridsim.metrics.groups import LABELLED
from gridsim.metrics.preemption import LoggedRuns, logged_runs
from gridsim.metrics.saturation import keeps_up
from gridsim.metrics.utilisation import arrival_window, queue_length
from gridsim.model.dates import calendar_of
from gridsim.model.time import seconds
from gridsim.questions.evidence import Evidence, best, turned
from gridsim.report import admission, change, notices, pools, preemption, refusals, robustness, users
from gridsim.words import between, duration, listed, number, percent

if TYPE_CHECKING:
    from gridsim.metrics.fairness import FairnessOverTime
    from gridsim.questions.evidence import GroupRow
    from gridsim.record import Record

__all__ = ["answer", "caveats", "group_name", "inequality", "large_users_held"]

CONFIDENCE = 0.95

_WIDEST = 100.0
"""A ratio known less well than this factor is told as an amount."""

ENOUGH_JOBS = FEWEST_BLOCKS * JOBS_A_BLOCK
"""Jobs below which there are too few blocks for a verdict, however they come."""

_MOST = 3
"""Policies that one sentence names at most."""


class _Words(NamedTuple):
    """How a metric of times is told: its name, and what jobs do that have more of it or less."""

    metric: str
    mean: str
    least: str
    none: str
    many: str
    one: str
    each: str
    less: str
    more: str


_WAITS = _Words(
    *("wait", "mean wait", "waits least", "not at all", "wait", "waits"),
    *("waits exactly as long", "wait less", "wait longer"),
)
_RESPONSES = _Words(
    *("response", "mean response", "has the shortest responses", "at once", "take", "takes"),
    *("takes exactly as long", "end sooner", "end later"),
)
"""Of moldable jobs, which trade their waits for their runtimes."""


def _words(comparison: Evidence) -> _Words:
    return _RESPONSES if comparison.of_moldable else _WAITS


def answer(comparison: Evidence) -> list[str]:
    """Who waits least (DAG jobs: finishes soonest for its critical path) and by how much, and who loses.

    Two to four sentences, of what cannot be told too. Where jobs ask for deadlines, first who guarantees how many. Of
    moldable jobs, whose response is shortest, and last whether any category of jobs by weight pays for it. On several
    clusters, which of them ran nothing. Before all that, who turns notably more jobs away than others.
    """
    return [
        *refusals.answer(comparison),
        *admission.answer(comparison),
        *(_of_dags if comparison.of_dags else _of_times)(comparison),
        *robustness.answer(comparison),
        *pools.answer(comparison),
    ]


def _of_times(comparison: Evidence) -> list[str]:
    waits, words = comparison.means, _words(comparison)
    if all(math.isnan(value) for value in waits.values()):
        return ["No job ran under any policy, so there is nothing to compare."]
    if len(waits) == 1:
        return [_alone(comparison, *waits)]
    if not any(waits.values()):
        return ["Nobody waits under any of the policies: on this machine the choice makes no difference to these jobs."]
    winner = comparison.best
    against = [comparison.difference(words.metric, winner, other) for other in comparison.labels if other != winner]
    told = [_winner(winner, waits[winner], against, comparison.comparable, words)]
    told += _undecided(winner, against, words)
    if not comparison.of_moldable:  # slowdowns are relative to runtimes, which then differ
        told += _slowdown(comparison, winner)
    return [*told, _losers(comparison, winner, against)]


def _alone(comparison: Evidence, label: str) -> str:
    numbers = comparison.metrics[label]
    return (
        f"Under {label}, jobs wait {duration(numbers['wait_mean'])} on average and {duration(numbers['wait_median'])} "
        f"at the median; 5 % wait longer than {duration(numbers['wait_p95'])}. "
        f"The machine is {percent(numbers['utilisation'])} busy."
    )


def _winner(winner: str, wait: float, against: Sequence[Difference], comparable: bool, words: _Words) -> str:
    clear = [it for it in against if it.verdict == "better"]
    if not clear:
        what = "in this log" if comparable else "over the jobs that ran under every policy"
        return f"{winner} has the shortest {words.mean} {what}, {duration(wait)}."
    named = sorted(clear, key=lambda it: it.baseline_mean, reverse=True)
    if len(named) > _MOST:
        named = [*named[: _MOST - 1], named[-1]]
    parts = [
        f"{_change(it)} than {it.baseline} ({_sure(it)}{_family(it, against) if it is named[0] else ''})"
        for it in named
    ]
    rest = len(clear) - len(named)
    more = f"; {rest} other{f's {words.many}' if rest > 1 else f' {words.one}'} clearly longer too" if rest else ""
    whose = "" if comparable else "Over the jobs that ran under every policy, "
    mean = duration(wait) if wait else words.none
    return f"{whose}{winner} {words.least}: {mean} on average, {listed(parts)}{more}."


def _change(it: Difference, words: change.Words = change.MORE) -> str:
    """By how much the mean is less or more than that of the baseline, relative to it where that says enough."""
    return change.told(it.ratio - 1, words) if _relative(it) else change.told(it.mean, words, _amount_of(it))


def _sure(it: Difference, words: change.Words = change.MORE) -> str:
    return f"95 % interval {_interval(it, words)}; {_p(it.p_holm)}"


def _relative(it: Difference) -> bool:
    """Whether the interval of the ratio says the same as the test of the difference; if not, amounts are told."""
    if math.isnan(it.ratio_low) or it.ratio_high / it.ratio_low > _WIDEST:
        return False
    return (it.p < 1 - CONFIDENCE) == (not it.ratio_low <= 1 <= it.ratio_high)


def _interval(it: Difference, words: change.Words = change.MORE) -> str:
    """The interval of `_change`, of the same base."""
    if _relative(it):
        return change.span(it.ratio_low - 1, it.ratio_high - 1, words)
    return change.span(it.low, it.high, words, _amount_of(it))


def _amount_of(it: Difference) -> Callable[[float], str]:
    """How an amount of the metric is told."""
    return duration if it.metric in ("wait", "response") else "{:.3g}".format


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _family(it: Difference, against: Sequence[Difference]) -> str:
    """What the p value was corrected for and rests on; said once."""
    policies = len(against) + 1
    comparisons = policies * (policies - 1) // 2
    corrected = f" after Holm, {comparisons} comparisons" if comparisons > 1 else ""
    return f"{corrected}, {it.blocks} blocks of time"


def _though(it: Difference) -> str:
    """Why a difference is not clear although its own interval says so: it is one of several that were looked for."""
    return f", but {_p(it.p_holm)} after Holm" if it.p < 1 - CONFIDENCE else ""


def _same_or_unclear(winner: str, against: Sequence[Difference], each: str, evidence: str) -> Iterator[str]:
    """Under which policies every job does just the same, and from which the *evidence* cannot tell the winner."""
    same = [it.baseline for it in against if it.same == 1]
    if same:
        yield f"Under {listed(same)} every job {each}."
    unclear = [it for it in against if it.verdict == "no clear difference" and it.same < 1]
    if unclear:
        parts = [
            f"from {it.baseline} ({_change(it)} than under {it.baseline}; 95 % interval {_interval(it)}{_though(it)})"
            for it in unclear[:_MOST]
        ]
        if len(unclear) > _MOST:
            parts.append(f"from {len(unclear) - _MOST} others")
        yield f"{evidence} cannot tell {winner} {listed(parts, 'or')}."


def _undecided(winner: str, against: Sequence[Difference], words: _Words) -> Iterator[str]:
    yield from _same_or_unclear(winner, against, words.each, "This log")
    worse = [it for it in against if it.verdict == "worse"]
    if worse:  # the winner is that of the jobs that ran under every policy, and these are more
        parts = [f"under {it.baseline} {_change(turned(it))} than under {winner} ({_sure(turned(it))})" for it in worse]
        yield f"Over all jobs that ran under both, jobs {words.many} {listed(parts)}."
    few = [it for it in against if it.verdict == "too little data" and it.same < 1]
    if few:
        yield f"The {words.mean} under {winner} is {listed([_happened(it, words) for it in few])}."
        why = "Too few jobs ran" if few[0].jobs < ENOUGH_JOBS else "One congested stretch dominates this difference"
        yield f"{why}, so the log cannot say how far {'that' if few[0].jobs < ENOUGH_JOBS else 'it'} holds elsewhere."


def _happened(it: Difference, words: _Words) -> str:
    """What a difference was in this log, without how sure it is."""
    part = change.told(it.mean, shown=_amount_of(it)) if math.isnan(it.ratio) else change.told(it.ratio - 1)
    return (
        f"{part} than under {it.baseline} ({duration(it.baseline_mean)}; {percent(it.better)} of the jobs "
        f"{words.less}, {percent(it.worse)} {words.more.split()[-1]})"
    )


def _slowdown(comparison: Evidence, winner: str) -> list[str]:
    """Only where the bounded slowdown names another winner, clearly."""
    other = best(comparison.metrics, "bounded_slowdown_mean")
    if other == winner:
        return []
    it = comparison.difference("bounded_slowdown", other, winner)
    if it.verdict != "better":
        return []
    return [
        f"By mean bounded slowdown {other} is ahead: {it.policy_mean:.3g}, {_change(it)} than the "
        f"{it.baseline_mean:.3g} under {winner} ({_sure(it)})."
    ]


def _losing(comparison: Evidence, winner: str) -> list[GroupRow]:
    """Groups that lose clearly and by what matters under the winner against another policy, the worst two."""
    losing = [row for row in comparison.groups if row.policy == winner and comparison.loses(row)]
    losing = [row for row in losing if row.kind not in LABELLED] or losing
    losing.sort(key=lambda row: -row.ratio if row.ratio == row.ratio else -math.inf)
    chosen: list[GroupRow] = []
    for row in losing:
        if all((row.kind, row.group) != (other.kind, other.group) for other in chosen):
            chosen.append(row)
    return chosen[:2]


def _lost(row: GroupRow, words: change.Words) -> str:
    """By how much a class loses, and how sure that is."""
    if math.isnan(row.ratio):
        found, span = (change.told(row.policy_mean - row.baseline_mean, words, duration)), (row.low, row.high)
        return f"{found} than under {row.baseline} (95 % interval {change.span(*span, words, duration)})"
    interval = change.span(row.ratio_low - 1, row.ratio_high - 1, words)
    return f"{change.told(row.ratio - 1, words)} than under {row.baseline} (95 % interval {interval})"


def _losers(comparison: Evidence, winner: str, against: Sequence[Difference]) -> str:
    """Who waits longer under the winner than under another policy: groups, else single jobs."""
    words, chosen = _words(comparison), _losing(comparison, winner)
    if chosen:
        parts = [f"{group_name(row.kind, row.group)} {words.many} {_lost(row, change.LONGER)}" for row in chosen]
        return f"Who loses under {winner}, {change.at_least()}: {listed(parts)}."
    worst = max(against, key=lambda it: it.worse)
    if not worst.worse:
        return f"No job {words.one} longer under {winner} than under any other policy."
    return (
        f"No class of size or length loses clearly under {winner} ({change.at_least()}); single jobs do: "
        f"{percent(worst.worse)} {words.more} than under {worst.baseline}, {percent(worst.better)} {words.less}."
    )


def group_name(kind: str, group: str) -> str:
    """Group as a part of a sentence.

    Examples
    --------
    >>> group_name("size", "65-128"), group_name("length", "1-8 h"), group_name("user", "other users")
    ('jobs of 65-128 cores', 'jobs of 1-8 h', 'jobs of other users')
    """
    if kind == "work":
        return f"jobs of the {group} by work"
    if kind == "weight":
        return f"jobs of {group} core-seconds"
    if kind == "size":
        return f"jobs of {group} core{'' if group == '1' else 's'}"
    if group == "unknown" and kind in LABELLED:
        return f"jobs of no known {LABELLED[kind][0]}"
    return f"jobs {group}" if group.startswith("under") else f"jobs of {group}"


# ---- over time ----------------------------------------------------------------------------------------------------


def inequality(found: Mapping[str, FairnessOverTime]) -> str:
    """What Gini coefficients over time say: how unequal under each policy, and who is more even how often."""
    first = next(iter(found.values()))
    known = np.isfinite(first.gini)
    for it in found.values():
        known &= np.isfinite(it.gini)
    length = _period(first)
    if not known.any():
        return f"No {length} has enough users under every policy to tell how unequal they fare."
    middle = {label: float(np.median(it.gini[known])) for label, it in found.items()}
    parts = [f"{label} {value:.2f}" for label, value in middle.items()]
    told = f"Median of {number(known.sum())} {_many(length)} with enough users: {listed(parts)}."
    baseline, *others = found
    if not others:
        return told
    evener = {label: (found[label].gini[known] < found[baseline].gini[known]).sum() for label in others}
    parts = [f"{label} in {number(count)}" for label, count in evener.items()]
    return f"{told} More even than {baseline}: {listed(parts)} of them."


def large_users_held(found: Mapping[str, FairnessOverTime], users: int) -> str:
    """How much of the machine the largest users held under each policy, mean over time and most in a period."""
    parts = [
        f"{label} {percent(float(it.share.mean()))} on average and {percent(float(it.share.max()))} at most"
        for label, it in found.items()
    ]
    who = "The user" if users == 1 else f"The {users} users"
    lengths = _many(_period(next(iter(found.values()))))
    return f"{who} with the most core-seconds held of all cores, in means of {lengths}: {'; '.join(parts)}."


def _many(length: str) -> str:
    return length.replace("stretch", "stretches") if length.startswith("stretch") else f"{length}s"


def _period(found: FairnessOverTime) -> str:
    """Length of the periods as a noun."""
    length = float(found.edges_s[1] - found.edges_s[0])
    named = {7 * 86_400: "week", 86_400: "day", 3_600: "hour", 60: "minute", 1: "second"}
    return named.get(round(length), f"stretch of {duration(length)}")


# ---- DAG jobs -----------------------------------------------------------------------------------------------------


def _of_dags(comparison: Evidence) -> list[str]:
    """Whose schedule length ratio is lowest and by how much, what cannot be told, and who loses."""
    means = comparison.means
    if all(math.isnan(value) for value in means.values()):
        return ["No job ran under any policy, so there is nothing to compare."]
    counted = int(comparison.kept.sum())
    winner = comparison.best
    if len(means) == 1:
        return [_alone_of_dags(comparison, winner, counted)]
    against = [comparison.difference("slr", winner, other) for other in comparison.labels if other != winner]
    if all(it.same == 1 for it in against):
        what = "The job finishes" if counted == 1 else "Every job finishes"
        return [
            f"{what} at the same time under every policy, after {_slr(means[winner])} its critical path"
            f"{'' if counted == 1 else ' on average'}: on this machine the choice makes no difference to "
            f"{'it' if counted == 1 else 'them'}."
        ]
    if counted == 1:
        return [_one_job(comparison, winner, against), _ONE_JOB]
    told = [_lowest(winner, means[winner], against), *_unclear_of_dags(winner, against)]
    return [*told, *_worst_slr(comparison, winner), _losers_of_dags(comparison, winner, against)]


_ONE_JOB = (
    "One job is too little data for an interval: this is what happened to it here, and says nothing of how other "
    "jobs would fare."
)


def _slr(value: float) -> str:
    """An SLR in words, with its digits.

    Examples
    --------
    >>> _slr(1.234), _slr(1.0)
    ('1.23 times', 'exactly')
    """
    return "exactly" if value == 1 else f"{value:.3g} times" if abs(value) < 1000 else f"{number(value)} times"


def _alone_of_dags(comparison: Evidence, label: str, counted: int) -> str:
    numbers = comparison.metrics[label]
    if counted == 1:
        return (
            f"Under {label} the job takes {duration(numbers['response_mean'])}, {_slr(numbers['mean_slr'])} its "
            f"critical path. The machine is {percent(numbers['utilisation'])} busy."
        )
    return (
        f"Under {label}, jobs take {_slr(numbers['mean_slr'])} their critical path on average (mean SLR), "
        f"{numbers['worst_slr']:.3g} times in the worst case. The machine is {percent(numbers['utilisation'])} busy."
    )


def _one_job(comparison: Evidence, winner: str, against: Sequence[Difference]) -> str:
    """One job under several policies: when it is done, and what that is of its critical path."""
    took = {label: duration(numbers["response_mean"]) for label, numbers in comparison.metrics.items()}
    slower = sorted((it for it in against if it.same < 1), key=lambda it: it.baseline_mean)
    parts = [f"{took[it.baseline]} ({_slr(it.baseline_mean)}) under {it.baseline}" for it in slower[:_MOST]]
    if len(slower) > _MOST:
        parts.append(f"longer too under {len(slower) - _MOST} others")
    equal = [it.baseline for it in against if it.same == 1]
    also = f" (and so under {listed(equal)})" if equal else ""
    return (
        f"The job is done soonest under {winner}{also}: after {took[winner]}, "
        f"{_slr(against[0].policy_mean)} its critical path, against {listed(parts)}."
    )


def _lowest(winner: str, mean: float, against: Sequence[Difference]) -> str:
    clear = sorted((it for it in against if it.verdict == "better"), key=lambda it: it.baseline_mean, reverse=True)
    if not clear:
        return f"{winner} has the lowest mean SLR of these jobs: they take {_slr(mean)} their critical path on average."
    named = clear if len(clear) <= _MOST else [*clear[: _MOST - 1], clear[-1]]
    parts = [
        f"{_change(it, change.HIGHER)} than {it.baseline} "
        f"({_sure(it, change.HIGHER)}{_family(it, against) if it is named[0] else ''})"
        for it in named
    ]
    rest = len(clear) - len(named)
    more = f"; {rest} other{'s are' if rest > 1 else ' is'} clearly higher too" if rest else ""
    return (
        f"{winner} has the lowest mean SLR: jobs take {_slr(mean)} their critical path on average, "
        f"{listed(parts)}{more}."
    )


def _unclear_of_dags(winner: str, against: Sequence[Difference]) -> Iterator[str]:
    yield from _same_or_unclear(winner, against, f"finishes at the same time as under {winner}", "These jobs")
    few = [it for it in against if it.verdict == "too little data" and it.same < 1]
    if few:
        parts = [
            f"{change.told(it.ratio - 1, change.HIGHER)} than under {it.baseline} ({it.baseline_mean:.3g}; "
            f"{percent(it.better)} of the jobs finish sooner, {percent(it.worse)} later)"
            for it in few
        ]
        yield f"The mean SLR under {winner} is {listed(parts)}."
        if few[0].jobs < ENOUGH_JOBS:
            yield (
                f"{number(few[0].jobs)} jobs are too little data for intervals: this is what happened to them here, "
                "and says nothing of how far it holds elsewhere."
            )
        else:
            yield "One congested stretch dominates this difference, so the jobs cannot say how far it holds elsewhere."


def _worst_slr(comparison: Evidence, winner: str) -> list[str]:
    """Only where another policy treats the worst-treated job better."""
    other = best(comparison.metrics, "worst_slr")
    mine, theirs = (comparison.metrics[label]["worst_slr"] for label in (winner, other))
    if not theirs < mine:
        return []
    return [f"The worst SLR is lower under {other}: {theirs:.3g} against {mine:.3g}."]


def _losers_of_dags(comparison: Evidence, winner: str, against: Sequence[Difference]) -> str:
    chosen = _losing(comparison, winner)
    if chosen:
        parts = [f"{group_name(row.kind, row.group)} have a mean SLR {_lost(row, change.HIGHER)}" for row in chosen]
        return f"Who loses under {winner}, {change.at_least(timed=False)}: {listed(parts)}."
    worst = max(against, key=lambda it: it.worse)
    if not worst.worse:
        return f"No job finishes later under {winner} than under any other policy."
    groups = "No tenth of the jobs by work loses clearly under" if comparison.groups else "Single jobs lose under"
    link = "; single jobs do" if comparison.groups else ""
    least = f" ({change.at_least(timed=False)})" if comparison.groups else ""
    return (
        f"{groups} {winner}{least}{link}: {percent(worst.worse)} finish later than under {worst.baseline}, "
        f"{percent(worst.better)} sooner."
    )


# ---- what to know about the numbers -----------------------------------------------------------------------------


def caveats(comparison: Evidence) -> list[str]:
    """Queues that only grow, cuts, kills, rejections, and what was left out of the log or changed in it."""
    return [
        *admission.caveats(comparison),
        *notices.caveats(comparison.info),
        *_saturated(comparison),
        *users.caveats(comparison),
        *_cuts(comparison),
        *_statuses(comparison),
        *refusals.caveats(comparison),
        *preemption.as_logged(_logged_runs(comparison), comparison.metrics),
        *preemption.caveats(comparison.metrics),
        *_problems(comparison.info.get("workload", {})),
    ]


def _logged_runs(comparison: Evidence) -> LoggedRuns | None:
    return logged_runs(comparison.records[comparison.baseline].workload, comparison.kept)


def _saturated(comparison: Evidence) -> list[str]:
    """Policies that do not keep up with the load: their waits tell the length of the log."""
    labels = [label for label, record in comparison.records.items() if not keeps_up(record)]
    if not labels:
        return []
    waiting = listed([number(_waiting_at_the_end(comparison.records[label])) for label in labels])
    metric = "mean SLR" if comparison.of_dags else _words(comparison).mean
    queues, means = (
        ("its queue still grows", f"its {metric} says how long the workload is more than how good the policy is")
        if len(labels) == 1
        else ("their queues still grow", f"their {metric}s say how long the workload is more than how good they are")
    )
    verb = "does" if len(labels) == 1 else "do"
    return [
        f"{listed(labels)} {verb} not keep up with this load: {queues} at the last submit ({waiting} waiting "
        f"{'tasks' if comparison.of_dags else 'jobs'}), so {means}."
    ]


def _waiting_at_the_end(record: Record) -> float:
    return queue_length(record).at(arrival_window(record).end)


def _cuts(comparison: Evidence) -> list[str]:
    if not (comparison.warmup or comparison.cooldown):
        return []
    cut = comparison.metrics[comparison.baseline]["jobs_cut"]
    parts = [
        f"the {name} {duration(value)}"
        for name, value in (("first", comparison.warmup), ("last", comparison.cooldown))
        if value
    ]
    return [f"Not counted: {number(cut)} jobs submitted in {listed(parts)} of the log{_counted_from(comparison)}."]


def _counted_from(comparison: Evidence) -> str:
    """Of which dates the jobs are that count, where the log has dates."""
    submit, kept = comparison.records[comparison.baseline].workload_given.submit, comparison.kept
    calendar = calendar_of(comparison.info.get("workload", {}))
    if calendar is None or not kept.any():
        return ""
    first, last = (float(seconds(int(end))) for end in (submit[kept].min(), submit[kept].max()))
    return f"; counted are those of {between(first, last, calendar)}"


def _statuses(comparison: Evidence) -> list[str]:
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
            parts = listed([f"{number(count)} under {label}" for label, count in counts.items()])
            told.append(f"Jobs {text}: {parts}.")
    return told


def _jobs(count: float) -> str:
    return f"{number(count)} job was" if count == 1 else f"{number(count)} jobs were"


def _problems(provenance: Mapping[str, Any]) -> list[str]:
    """Left out and changed lines of the log, each kind with its count."""
    parts = []
    for rule, text in (("skip", "left out"), ("repair", "repaired")):
        found = [entry for entry in provenance.get("problems", ()) if entry["rule"] == rule and entry["count"]]
        if found:
            total = sum(entry["count"] for entry in found)
            names = [str(entry["kind"]).replace("-", " ") for entry in found]
            if len(found) > 1:
                names = [f"{name}: {number(entry['count'])}" for name, entry in zip(names, found, strict=True)]
            parts.append(f"{number(total)} {'was' if total == 1 else 'were'} {text} ({', '.join(names)})")
    read = provenance.get("jobs_read")
    lines = f"{number(read)} job lines" if isinstance(read, int) else "lines"
    return [f"Of the log's {lines}, {listed(parts)}."] if parts else []
