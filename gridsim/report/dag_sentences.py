"""The answer in words for jobs that are DAGs of tasks: schedule length ratios, and who finishes later."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from gridsim.metrics.compare import Difference
from gridsim.questions.evidence import Evidence, best
from gridsim.report import change
from gridsim.report.differences import (
    ENOUGH_JOBS,
    MOST,
    changed,
    family,
    group_name,
    losing,
    lost,
    same_or_unclear,
    sure,
)
from gridsim.words import duration, listed, number, percent

__all__ = ["answer"]


def answer(comparison: Evidence) -> list[str]:
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
    parts = [f"{took[it.baseline]} ({_slr(it.baseline_mean)}) under {it.baseline}" for it in slower[:MOST]]
    if len(slower) > MOST:
        parts.append(f"longer too under {len(slower) - MOST} others")
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
    named = clear if len(clear) <= MOST else [*clear[: MOST - 1], clear[-1]]
    parts = [
        f"{changed(it, change.HIGHER)} than {it.baseline} "
        f"({sure(it, change.HIGHER)}{family(it, against) if it is named[0] else ''})"
        for it in named
    ]
    rest = len(clear) - len(named)
    more = f"; {rest} other{'s are' if rest > 1 else ' is'} clearly higher too" if rest else ""
    return (
        f"{winner} has the lowest mean SLR: jobs take {_slr(mean)} their critical path on average, "
        f"{listed(parts)}{more}."
    )


def _unclear_of_dags(winner: str, against: Sequence[Difference]) -> Iterator[str]:
    yield from same_or_unclear(winner, against, f"finishes at the same time as under {winner}", "These jobs")
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
    chosen = losing(comparison, winner)
    if chosen:
        parts = [f"{group_name(row.kind, row.group)} have a mean SLR {lost(row, change.HIGHER)}" for row in chosen]
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
