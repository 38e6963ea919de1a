"""Headline of a page: the best policy against the site's own one, with its certainty, and a recommendation."""

from __future__ import annotations

import math
from typing import NamedTuple

from gridsim.metrics.compare import FEWEST_JOBS, Difference
from gridsim.questions.changes import NOW, Effect
from gridsim.questions.evidence import Evidence
from gridsim.report import change, sentences
from gridsim.report.differences import amount_of, changed, no_common_job, shortage, sure
from gridsim.report.markup import text_table, texts
from gridsim.report.validation import trust

_text = texts("page")

BADGES = text_table("page", "badges")
"""Text of the badge by verdict."""


class Headline(NamedTuple):
    """Main result: one sentence, its badge (empty for none), the interval below it, and a recommendation or none.

    *other* is the policy that the best one is compared with, None if there is no comparison.
    """

    sentence: str
    badge: str = ""
    interval: str = ""
    recommendation: str = ""
    other: str | None = None


def headline(comparison: Evidence) -> Headline | None:
    """Return the headline; None if there is nothing to compare, so that the first sentence of the answer is it."""
    base, best = comparison.baseline, comparison.best
    if len(comparison.labels) < 2 or no_common_job(comparison) or int(comparison.kept.sum()) == 1:
        return None
    means = comparison.means
    if not any(means.values()):
        return None
    next_best = min((label for label in comparison.labels if label != best), key=lambda label: means[label])
    it = comparison.difference(comparison.headline, best, next_best if best == base else base)
    named = {label: _named(comparison, label) for label in (it.policy, it.baseline)}
    mean = sentences.terms_of(comparison).mean
    seen = it.turned() if best == base else it  # the change that the sentence is about
    if it.same == 1:
        sentence = _text("same", mean=mean, policy=named[it.policy], other=named[it.baseline])
    elif best == base:
        more = changed(seen, change.HIGHER)
        sentence = _text("own_is_best", mean=mean, policy=named[best], other=it.baseline, more=more)
    else:
        sentence = _text("other_is_best", mean=mean, policy=best, other=named[it.baseline], less=_higher(it))
    interval = _interval(comparison, seen, mean)
    return Headline(sentence, BADGES[it.verdict], interval, _recommendation(comparison, it), it.baseline)


def _named(comparison: Evidence, label: str) -> str:
    return _text("own_policy", label=label) if comparison.info.get("own") == label else label


def _higher(it: Difference) -> str:
    """Return "38 % lower than", "16 times as high as"."""
    text = changed(it, change.HIGHER)
    return f"{text} {'as' if text.endswith(change.HIGHER.many) else 'than'}"


def _interval(comparison: Evidence, it: Difference, mean: str) -> str:
    """Return the interval of the change, or why there is none, and the means with their number of jobs."""
    shown = amount_of(it)
    one, other = shown(it.policy_mean), shown(it.baseline_mean)
    means = _text("means", mean=f"{mean[0].upper()}{mean[1:]}", it=it, one=one, other=other)
    if it.same == 1:
        return means
    if math.isnan(it.p) or it.jobs < FEWEST_JOBS:
        certain = shortage(it)
    else:
        pairs = len(comparison.labels) * (len(comparison.labels) - 1) // 2
        certain = sure(it, change.HIGHER) + (f", Holm-corrected for {pairs} comparisons" if pairs > 1 else "")
    return f"{certain[0].upper()}{certain[1:]}. {means}"


def _recommendation(comparison: Evidence, it: Difference) -> str:
    """Return what the results support; empty if nothing."""
    known = trust(comparison)
    if (known is not None and known.far) or not _same_jobs(comparison) or it.verdict == "too little data":
        return ""
    base, best = comparison.baseline, comparison.best
    own = comparison.info.get("own") == base
    if best == base or it.verdict != "better":
        against = [comparison.difference(comparison.headline, base, other) for other in comparison.others]
        if best == base and all(one.verdict == "better" for one in against):
            return _text("keep", base=base, mean=sentences.terms_of(comparison).mean)
        return _text("keep_for_now", base=base) if own else ""
    losing = sentences.losing_groups(comparison, best)
    advice = _text("use_but", best=best, base=base) if losing else _text("use", best=best, base=base)
    equivalent = _equivalent(comparison)
    return f"{advice} {equivalent}" if equivalent else advice


SAME_JOBS = 0.95
"""Share of the jobs that have to run under every policy for a recommendation, if some are cancelled while they wait."""


def _same_jobs(comparison: Evidence) -> bool:
    """Return whether the policies run nearly the same jobs: none rejected by admission, few cancelled."""
    if any(numbers["unadmitted"] for numbers in comparison.metrics.values()):
        return comparison.comparable
    return bool(comparison.common.sum() >= SAME_JOBS * comparison.kept.sum())


def _equivalent(comparison: Evidence) -> str:
    """Return the smallest larger machine of the table on which waits under the baseline are as short."""
    base, best = comparison.baseline, comparison.best
    found = {each.policy: each for each in comparison.whatifs}
    if base not in found or best not in found or comparison.headline != "wait":
        return ""
    now, wait = found[base][NOW], found[best][NOW].numbers["wait_mean"]
    sizes = sorted((one for one in found[base].outcomes if one.cores > now.cores), key=lambda one: one.cores)
    if not sizes or found[best][NOW].cores != now.cores:
        return ""
    enough = next((one for one in sizes if one.numbers["wait_mean"] <= wait), None)
    if enough is not None:
        return _text("as_much", size=_size(enough), base=base)
    return _text("even_less", size=_size(sizes[-1]), base=base)


def _size(one: Effect) -> str:
    return one.label[0].upper() + one.label[1:]
