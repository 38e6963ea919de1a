"""Sentences on differences of means: size, significance, and pairs without a significant difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from gridsim.metrics.compare import FEWEST_JOBS, FEWEST_REPLICAS, Difference
from gridsim.metrics.groups import LABELLED
from gridsim.metrics.utilisation import arrival_window, keeps_up, queue_length
from gridsim.model.time import seconds
from gridsim.model.workload import UNKNOWN
from gridsim.number_formatting import counted, duration, listed, number, percent, times
from gridsim.questions.evidence import Evidence
from gridsim.questions.replications import Replicated, mean_of
from gridsim.record import Record
from gridsim.report import change
from gridsim.report.markup import texts
from gridsim.workload.transform.resample import FEW_USERS, FEW_WEEKS

_text = texts("comparison")

CONFIDENCE = 0.95

MOST = 3
"""Largest number of policies named in a sentence."""

_MANY = 2.0
"""Ratio to the base from which on a mean is given as a multiple."""

WEEK = 7 * 86_400


class Terms(NamedTuple):
    """Texts of a metric: verbs for jobs, and templates with ``{policy}``, ``{mean}``, ``{other}``."""

    mean: str
    least: str
    plain: str
    longer: str
    equal: str
    words: change.Wording = change.MORE


class Findings(NamedTuple):
    """Sentences on one policy against the others: significant results, then the others."""

    shown: list[str]
    others: list[str]


def no_common_job(comparison: Evidence) -> list[str]:
    """Return the only sentence of a comparison in which no job ran under every policy; empty otherwise."""
    if comparison.common.any():
        return []
    if not any((record.ran & comparison.kept).any() for record in comparison.records.values()):
        return ["No job ran under any policy, so there is nothing to compare."]
    every = f"both {listed(comparison.labels)}" if len(comparison.labels) == 2 else "every policy"
    return [f"No job ran under {every}, so there is nothing to compare."]


def findings(comparison: Evidence, winner: str, terms: Terms, mean: str, *, but: str | None = None) -> Findings:
    """Compare the policy with the lowest mean with each other one, in the order of comparisons.

    The policy is called the best only if it is significantly better than every other policy with different results.
    The comparison with the policy *but* is left out, if it is given elsewhere.
    """
    order = [comparison.baseline, *comparison.others]
    against = [comparison.difference(comparison.headline, winner, other) for other in order if other != winner]
    clear = [it for it in against if it.verdict == "better"]
    rest = [it for it in against if it.verdict not in ("better", "equal")]
    shown, others = [], []
    form = terms.plain if rest else terms.least
    clear, rest = ([it for it in found if it.baseline != but] for found in (clear, rest))
    if rest and rest[0] is against[0]:
        shown.append(_not_shown(comparison, rest.pop(0), terms))
    if clear:
        lead = form.format(policy=winner, mean=mean)
        shown.append(_claim(comparison, clear, terms, [] if shown else [lead]))
    elif rest and not shown:
        shown.append(_not_shown(comparison, rest.pop(0), terms))
    if equal := [it.baseline for it in against if it.verdict == "equal" and it.baseline != but]:
        others.append(f"{terms.equal} under {listed(equal)} as under {winner}.")
    others += [_not_shown(comparison, it, terms) for it in rest[:MOST]]
    if len(rest) > MOST:
        others.append(f"{counted(len(rest) - MOST, 'more difference')} not shown: differences.csv.")
    return Findings(shown, others)


def _claim(comparison: Evidence, clear: Sequence[Difference], terms: Terms, parts: list[str]) -> str:
    """Return significant differences as a sentence that begins with *parts*: from the baseline, then the others.

    The others are also compared with the baseline if that difference is significant. The first p value is followed by
    its correction.
    """
    winner, base, policies = clear[0].policy, comparison.baseline, len(comparison.labels)
    over_common = bool(parts) and not comparison.comparable
    comparisons = policies * (policies - 1) // 2
    family = f", Holm-corrected for {comparisons} comparisons" if comparisons > 1 else ""
    for it in clear[:MOST]:
        other = it
        if it.baseline == base:
            parts[-1] += f", {changed(it, terms.words)} than under {base}"
        else:
            against_base = comparison.difference(comparison.headline, it.baseline, base)
            if winner == base or against_base.verdict in ("better", "worse"):
                other = against_base
            parts.append(f"the {terms.mean} under {other.policy} is {_higher(other)} under {other.baseline}")
        words = terms.words if it.baseline == base else change.HIGHER
        same_jobs = comparison.comparable or other.jobs == comparison.common.sum()
        over = "" if same_jobs else f"; over the {number(other.jobs)} jobs that ran under both"
        parts[-1] += f" ({sure(other, words)}{family}{over})"
        family = ""
    text = "; ".join(parts)
    if (more := len(clear) - MOST) > 0:
        text += f"; {counted(more, 'more significant difference')}: differences.csv"
    if over_common:
        return f"Over the jobs that ran under every policy, {text[0].lower()}{text[1:]}."
    return f"{text[0].upper()}{text[1:]}."


def _higher(it: Difference) -> str:
    """Return how much higher or lower the mean of a policy is than the baseline's, with a conjunction."""
    if math.isnan(it.ratio):
        return f"{changed(it, change.HIGHER)} than"
    text = change.text(it.ratio - 1, change.HIGHER, many_from=_MANY)
    return f"{text} {'as' if text.endswith(change.HIGHER.many) else 'than'}"


def _not_shown(comparison: Evidence, it: Difference, terms: Terms) -> str:
    """Return the text of a difference that is not significant, has too little data, or has the opposite sign."""
    if it.verdict == "worse":  # over the jobs of these two policies; the lowest mean is over the jobs of all policies
        turned = it.turned()
        return (
            f"Over all jobs that ran under both, the {terms.mean} under {it.baseline} is "
            f"{changed(turned, terms.words)} than under {it.policy} ({sure(turned, terms.words)})."
        )
    shown = amount_of(it)
    means = f"({shown(it.policy_mean)} against {shown(it.baseline_mean)})"
    here = f"{changed(it, terms.words)} under {it.policy} in this log {means}"
    if it.verdict == "too little data":
        return _text("too_little_data", it=it, shortage=shortage(it), terms=terms, here=here)
    return (
        f"The log does not show whether {terms.longer} under {it.policy} or under {it.baseline}: {here}, "
        f"95 % interval {_interval(it, terms.words)}{_although(comparison, it)}."
    )


def _although(comparison: Evidence, it: Difference) -> str:
    """Return why a difference is not significant although its own interval excludes equality."""
    if not it.p < 1 - CONFIDENCE:
        return ""
    if it.p_holm >= 1 - CONFIDENCE:
        pairs = sum(other.metric == it.metric for other in comparison.differences)
        return f"; not significant after correction for {pairs} comparisons"
    shaken = next(each for each in comparison.replicated if each.role == "shake")
    pair = shaken.pair(mean_of(it.metric), it.policy, it.baseline)
    by = duration(float(shaken.info["by"]))
    return f"; with submit times shaken by up to {by} only {pair.agree} of {pair.replicas} runs have this sign"


def shortage(it: Difference) -> str:
    """Return why there is too little data, as a clause."""
    if it.jobs < FEWEST_JOBS:
        return f"too few jobs ({it.jobs}, at least {FEWEST_JOBS} are needed)"
    if math.isnan(it.p):
        return "all waiting falls in one eighth of the log"
    if change.is_undetermined(it.ratio_low, it.ratio_high):
        return f"the 95 % interval is {change.UNDETERMINED}"
    return f"the 95 % interval reaches from {_factor(it.ratio_low)} to {_factor(it.ratio_high)}"


def _factor(ratio: float) -> str:
    """Return an end of an interval of a ratio, limited to a hundredth or a hundred times."""
    if ratio < 1 / change.EXTREME:
        return change.BELOW
    if ratio > change.EXTREME:
        return change.ABOVE
    return percent(ratio) if ratio < 1 else times(ratio)


def changed(it: Difference, words: change.Wording = change.MORE) -> str:
    """Return the change of the mean relative to the baseline; an amount if the ratio is undefined."""
    if math.isnan(it.ratio):
        return change.text(it.mean, words, amount_of(it))
    return change.text(it.ratio - 1, words)


def sure(it: Difference, words: change.Wording = change.MORE) -> str:
    """Return interval and p value for `changed`, or for `_higher` if *words* are those of it."""
    many = words is change.HIGHER and it.ratio >= _MANY
    interval = change.times_span(it.ratio_low, it.ratio_high) if many else _interval(it, words)
    return f"95 % interval {interval}; {_p(it.p_holm)}"


def _interval(it: Difference, words: change.Wording) -> str:
    if math.isnan(it.ratio):
        return change.span(it.low, it.high, words, amount_of(it))
    return change.span(it.ratio_low - 1, it.ratio_high - 1, words)


def amount_of(it: Difference) -> Callable[[float], str]:
    """Return the format of an amount of the metric."""
    return duration if it.metric in ("wait", "response") else "{:.3g}".format


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def saturated(comparison: Evidence) -> Iterator[str]:
    """Return text on saturated policies, whose queue is still growing at the last submission."""
    labels = [label for label, record in comparison.records.items() if not keeps_up(record)]
    if not labels:
        return
    waiting = listed([number(_waiting_at_the_end(comparison.records[label])) for label in labels])
    unit = "tasks" if comparison.of_dags else "jobs"
    one, mean = len(labels) == 1, "SLR" if comparison.of_dags else comparison.headline
    so = f"its mean {mean} depends" if one else f"their mean {mean}s depend"
    yield (
        f"{listed(labels)} {'is' if one else 'are'} saturated: {'its queue is' if one else 'their queues are'} still "
        f"growing at the last submission, so {so} on the length of the log ({waiting} {unit} waiting at its end)."
    )


def _waiting_at_the_end(record: Record) -> float:
    return queue_length(record).at(arrival_window(record).end)


def intervals_are_of(found: Iterable[Difference], replicated: Sequence[Replicated], record: Record) -> Iterator[str]:
    """Return the periods that the intervals refer to, if there are intervals; once per answer, after the first one."""
    if all(it.verdict == "equal" or math.isnan(it.p) for it in found):
        return
    resampled = next((it for it in replicated if it.role == "resample"), None)
    if resampled is not None and resampled.replicas >= FEWEST_REPLICAS:
        yield "Intervals are for other periods of this length with similar users on this machine."
        return
    yield "Intervals are for other periods of this length with the same users on this machine."
    if resampled is not None:
        yield _text("few_replicas", resampled=resampled, fewest_replicas=FEWEST_REPLICAS)
    elif _has_few_users_or_weeks(record):
        yield (
            f"With few users or weeks, single users decide the result; --resample {FEWEST_REPLICAS} shows by how much."
        )


def _has_few_users_or_weeks(record: Record) -> bool:
    """Return whether users are known but too few, or the log is too short, to separate users from policies."""
    workload = record.workload_given
    user = workload.labels.get("user")
    if user is None or not (user != UNKNOWN).any():
        return False
    users = len(set(user[user != UNKNOWN].tolist()))
    length = seconds(int(workload.submit.max() - workload.submit.min()))
    return users < FEW_USERS or length < FEW_WEEKS * WEEK


def group_name(kind: str, group: str) -> str:
    """Return the name of a group for use in a sentence.

    Examples
    --------
    >>> group_name("size", "65-128"), group_name("length", "1-8 h"), group_name("user", "other users")
    ('jobs of 65 to 128 cores', 'jobs of 1 to 8 h', 'jobs of other users')
    """
    if kind == "work":
        return f"jobs of the {group} by work"
    if kind == "weight":
        return f"jobs of {group} core-seconds"
    if kind in ("size", "length"):
        group = group.replace("-", " to ")
    if kind == "size":
        return f"jobs of {group} core{'' if group == '1' else 's'}"
    if group == "unknown" and kind in LABELLED:
        return f"jobs of no known {LABELLED[kind][0]}"
    return f"jobs {group}" if group.startswith("under") else f"jobs of {group}"
