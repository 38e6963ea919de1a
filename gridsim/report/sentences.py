"""The answer in sentences: which policy is best, by how much, how certain that is, and for which jobs it is worse."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gridsim.metrics.compare import Difference
from gridsim.questions.evidence import Evidence, best
from gridsim.report import admission, change, dag_sentences, pools, refusals, robustness
from gridsim.report.differences import Terms, changed, findings, intervals_are_of, no_common_job, saturated, sure
from gridsim.report.group_sentences import GroupTerms, in_general, next_to_the_headline
from gridsim.report.texts import texts
from gridsim.words import duration

__all__ = ["answer"]

_text = texts("comparison")

_WAITS = Terms(
    mean="mean wait",
    least="Jobs wait least under {policy}: {mean} on average",
    plain="Under {policy} jobs wait {mean} on average",
    longer="jobs wait longer",
    equal="Every job waits exactly as long",
)

_RESPONSES = Terms(
    mean="mean response",
    least="Jobs have the shortest responses under {policy}: {mean} on average",
    plain="Under {policy} jobs have responses of {mean} on average",
    longer="jobs have longer responses",
    equal="Every job takes exactly as long",
)
"""Of moldable jobs, where a policy also decides how long they run."""

_GROUPS_WAIT = GroupTerms("wait", "waited", change.LONGER)
_GROUPS_TAKE = GroupTerms("take", "took", change.LONGER)


def answer(comparison: Evidence) -> list[str]:
    """Which policy has the lowest mean wait (of DAG jobs: SLR; of moldable jobs: response), and for which jobs not.

    Before that, which policies reject notably more jobs and how many deadlines each guarantees; after it, which
    categories of moldable jobs lose, and which clusters ran nothing.
    """
    return [
        *refusals.answer(comparison),
        *admission.answer(comparison),
        *(dag_sentences.answer if comparison.of_dags else _of_times)(comparison),
        *robustness.answer(comparison),
        *pools.answer(comparison),
    ]


def _of_times(comparison: Evidence) -> list[str]:
    if none := no_common_job(comparison):
        return none
    waits = comparison.means
    if len(waits) == 1:
        return [_alone(comparison, *waits), *saturated(comparison)]
    if not any(waits.values()):
        if not comparison.comparable:
            return ["The jobs that ran under every policy wait under none of them."]
        return ["No job waits under any of the policies: on this machine the choice makes no difference to these jobs."]
    winner = comparison.best
    terms, groups = (_RESPONSES, _GROUPS_TAKE) if comparison.of_moldable else (_WAITS, _GROUPS_WAIT)
    found = findings(comparison, winner, terms, duration(waits[winner]))
    return [
        *(found.shown or found.others),
        *next_to_the_headline(comparison, winner, groups),
        *saturated(comparison),
        *intervals_are_of(comparison.differences, comparison.replicated, comparison.records[comparison.baseline]),
        *(found.others if found.shown else ()),
        *([] if comparison.of_moldable else _slowdown(comparison, winner)),  # moldable jobs differ in run time
        *in_general(comparison, winner, groups),
        *_individual_jobs(comparison, winner, terms),
    ]


def _alone(comparison: Evidence, label: str) -> str:
    numbers = comparison.metrics[label]
    return _text("single_policy", label=label, numbers=numbers)


def _slowdown(comparison: Evidence, winner: str) -> list[str]:
    """Only if another policy has a significantly lower bounded slowdown."""
    other = best(comparison.metrics, "bounded_slowdown_mean")
    if other == winner:
        return []
    it = comparison.difference("bounded_slowdown", other, winner)
    if it.verdict != "better":
        return []
    return [
        f"The mean bounded slowdown is lower under {other}: {it.policy_mean:.3g}, {changed(it, change.HIGHER)} than "
        f"the {it.baseline_mean:.3g} under {winner} ({sure(it, change.HIGHER)})."
    ]


def _individual_jobs(comparison: Evidence, winner: str, terms: Terms) -> list[str]:
    """How many single jobs wait longer than under the policy where most of them do."""
    others = [label for label in comparison.labels if label != winner]
    against: Sequence[Difference] = [comparison.difference(comparison.headline, winner, other) for other in others]
    worst = max(against, key=lambda it: it.worse)
    if math.isnan(worst.worse):
        return []
    verb = "take" if terms is _RESPONSES else "wait"
    if not worst.worse:
        return [f"No job {verb}s longer under {winner} than under any other policy."]
    return [_text("individual_jobs", worst=worst, verb=verb)]
