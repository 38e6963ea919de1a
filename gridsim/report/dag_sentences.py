"""The answer in words for jobs that are DAGs of tasks: schedule length ratios, and who finishes later."""

from __future__ import annotations

from collections.abc import Sequence

from gridsim.metrics.compare import Difference
from gridsim.questions.evidence import Evidence, best
from gridsim.report import change
from gridsim.report.differences import MOST, Terms, findings, intervals_are_of, no_common_job, saturated
from gridsim.report.group_sentences import GroupTerms, in_general, next_to_the_headline
from gridsim.report.texts import texts
from gridsim.words import duration, listed, number

__all__ = ["answer"]

_text = texts("comparison")


def answer(comparison: Evidence) -> list[str]:
    """Whose schedule length ratio is lowest and by how much, what cannot be told, and who loses."""
    if none := no_common_job(comparison):
        return none
    means = comparison.means
    counted = int(comparison.kept.sum())
    winner = comparison.best
    if len(means) == 1:
        return [_alone_of_dags(comparison, winner, counted), *saturated(comparison)]
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
    found = findings(comparison, winner, _TERMS, _slr(means[winner]))
    return [
        *(found.shown or found.others),
        *next_to_the_headline(comparison, winner, _GROUPS),
        *saturated(comparison),
        *intervals_are_of(comparison.differences, comparison.replicated, comparison.records[comparison.baseline]),
        *(found.others if found.shown else ()),
        *_worst_slr(comparison, winner),
        *in_general(comparison, winner, _GROUPS),
        _individual_jobs(winner, against),
    ]


_TERMS = Terms(
    mean="mean SLR",
    least="The mean SLR is lowest under {policy}: jobs take {mean} their critical path on average",
    plain="Under {policy} jobs take {mean} their critical path on average",
    longer="the mean SLR is higher",
    equal="Every job finishes at the same time",
    words=change.HIGHER,
)
_GROUPS = GroupTerms("take", "took", change.LONGER)

_ONE_JOB = _text("one_job")


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
        return _text("single_policy_one_dag", label=label, numbers=numbers, slr=_slr(numbers["mean_slr"]))
    return _text("single_policy_dags", label=label, slr=_slr(numbers["mean_slr"]), numbers=numbers)


def _one_job(comparison: Evidence, winner: str, against: Sequence[Difference]) -> str:
    """One job under several policies: when it is done, and what that is of its critical path."""
    took = {label: duration(numbers["response_mean"]) for label, numbers in comparison.metrics.items()}
    slower = sorted((it for it in against if it.same < 1), key=lambda it: it.baseline_mean)
    parts = [f"{took[it.baseline]} ({_slr(it.baseline_mean)}) under {it.baseline}" for it in slower[:MOST]]
    if len(slower) > MOST:
        parts.append(f"longer too under {len(slower) - MOST} others")
    equal = [it.baseline for it in against if it.same == 1]
    also = f" (and so under {listed(equal)})" if equal else ""
    return _text(
        "earliest_completion",
        winner=winner,
        also=also,
        took=took[winner],
        slr=_slr(against[0].policy_mean),
        parts=parts,
    )


def _worst_slr(comparison: Evidence, winner: str) -> list[str]:
    """Only where another policy treats the worst-treated job better."""
    other = best(comparison.metrics, "worst_slr")
    mine, theirs = (comparison.metrics[label]["worst_slr"] for label in (winner, other))
    if not theirs < mine:
        return []
    return [f"The worst SLR is lower under {other}: {theirs:.3g} against {mine:.3g}."]


def _individual_jobs(winner: str, against: Sequence[Difference]) -> str:
    worst = max(against, key=lambda it: it.worse)
    if not worst.worse:
        return f"No job finishes later under {winner} than under any other policy."
    return _text("individual_dags", worst=worst)
