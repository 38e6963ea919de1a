"""What a campaign found, in words: who is better than the baseline and how sure that is; what is not clear."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gridsim.campaign.alike import REPLICAS
from gridsim.campaign.comparisons import KNOWN, Agreement, Compared, Comparisons
from gridsim.metrics.campaign import PolicyComparison
from gridsim.report import change
from gridsim.report.markup import p_shown, ratio_shown
from gridsim.report.tables import SHOWN, SHOWN_DAGS
from gridsim.report.texts import texts
from gridsim.words import counted, listed, number, percent, times

__all__ = ["condition_name", "label", "sentences", "title", "unit"]

_text = texts("campaign")

_TITLES = {
    **SHOWN_DAGS,
    **SHOWN,
    "deadline_guaranteed_share": "share of deadlines guaranteed",
    "deadline_met_share": "share of deadlines met",
}

_MOST = 3
"""Values, or metrics, that one sentence names at most."""

_AGREED = {
    "shake": ("shaking does not change it", "within the noise of the input"),
    "resample": ("it holds in workloads like this one", "it depends on the workload"),
}

_FEW = 6
"""Workloads below which Wilcoxon's test cannot be clear at 95 %."""

_VERDICTS = ("better", "worse", "equivalent", "no clear difference", "too little data")


def title(metric: str) -> str:
    """Name of a metric within a sentence.

    Examples
    --------
    >>> title("wait_mean"), title("utilisation"), title("flow")
    ('mean wait', 'utilisation', 'flow')
    """
    return " ".join(reversed(_TITLES.get(metric, metric.replace("_", " ")).split(", ")))


def label(found: Comparisons, value: Any) -> str:
    """A value of the factor: a policy's own name, else with that of the factor."""
    factor = found.comparing.factor
    return str(value) if factor == "policy" else f"{factor} {value}"


def unit(found: Comparisons) -> str:
    """What the tests are over: a log, a window of the only one, else a workload."""
    how = found.comparing
    if found.nested:
        return " and ".join(how.sources or ())
    return "window" if found.of_one and "window" in (how.replicates or ()) else "workload"


def condition_name(condition: Mapping[str, Any]) -> str:
    """Values of the factors that make a condition."""
    return ", ".join(f"{name} {value}" for name, value in condition.items()) or "all runs"


def sentences(found: Comparisons) -> list[str]:
    """Who is better than the baseline, by how much and how sure that is; who is not; what is missing or not clear.

    The first metric is told with its numbers, the others in passing.
    """
    base = label(found, found.values[0])
    if len(found.values) < 2:
        return [f"Only {base} was run, so there is nothing to compare it with."]
    if not found.metrics:
        return ["No run has a number of any metric that is compared."]
    if found.replicates == 1:
        return [_one_workload(found), *_missing(found)]
    headline, *others = found.metrics
    told = [*_headline(found, headline), *_agreement(found, headline), *_in_passing(found, others), *_missing(found)]
    return [*told, *_few(found), *_independence(found)]


def _agreement(found: Comparisons, metric: str) -> Iterator[str]:
    """In how many replicas the values have less than the baseline, where replicas were made of workloads."""
    there = [it for it in found.agreements if it.metric == metric and it.pairs]
    if not there:
        return
    lead = "Shaken" if there[0].role == "shake" else "With users drawn anew"
    parts = [
        f"under {label(found, it.value)} in {number(it.lower)} of {number(it.pairs)} ({_verdict(it)})"
        for it in there[:_MOST]
    ]
    rest = len(there) - _MOST
    more = [f"under {counted(rest, 'other')} as agreement.csv says"] if rest > 0 else []
    base = label(found, found.values[0])
    yield f"{lead}, {title(metric)} is lower {listed([*parts, *more])} than under {base}."


def _verdict(it: Agreement) -> str:
    """Of how many workloads the replicas agree."""
    if it.workloads == 1:
        sure, unsure = _AGREED[it.role]
        return sure if it.certain else unsure
    return f"replicas of {number(it.certain)} of {number(it.workloads)} workloads agree"


def _independence(found: Comparisons) -> Iterator[str]:
    """What is one observation, where workloads are parts of something."""
    noun = unit(found)
    if found.nested:
        yield _text("averaged_by_source", found=found, noun=noun)
    if found.of_one and found.agreements and not found.nested and found.sources == found.replicates:
        what = "shaken" if found.agreements[0].role == "shake" else "with its users drawn anew"
        yield f"All workloads are one, {what}: this is what holds of it, and says nothing of others."
    elif found.of_one:
        parts = "windows" if "window" in (found.comparing.replicates or ()) else "workloads"
        yield _text("parts_of_one_log", parts=parts)


def _one_workload(found: Comparisons) -> str:
    base, metric = label(found, found.values[0]), found.metrics[0]
    told = [it for it in found.overall(metric) if not math.isnan(it.test.ratio)]
    parts = [f"{_times_of(it.test.ratio)} under {label(found, it.value)}" for it in told[:_MOST]]
    what = f"; against {base}, {title(metric)} is {listed(parts)}" if parts else ""
    return (
        f"There is one workload, so no test is possible{what}. This is what happened to it, and says nothing of others."
    )


def _times_of(ratio: float) -> str:
    return times(ratio) if ratio >= 2 else percent(ratio)


def _headline(found: Comparisons, metric: str) -> Iterator[str]:
    overall = sorted(found.overall(metric), key=_distance, reverse=True)
    by = {name: [it for it in overall if it.test.verdict == name] for name in _VERDICTS}
    base, over = label(found, found.values[0]), _over(found, overall)
    lower, higher = ("lower", "higher") if KNOWN[metric].better != "higher" else ("higher", "lower")
    corrected = f" after Holm, {len(overall)} comparisons" if len(overall) > 1 else ""
    if by["better"]:
        parts = _parts(found, by["better"], corrected)
        yield f"Against {base}, {title(metric)} is {lower} {listed(parts)}, over {over}."
        yield from _reversed(found, metric, by["better"], higher)
    elif any(by[name] for name in ("worse", "equivalent", "no clear difference")):
        none = f"Under no other {found.comparing.factor} is {title(metric)}"
        yield f"{none} clearly {lower} than under {base}, over {over}."
    if by["worse"]:
        parts = _parts(found, by["worse"], "" if by["better"] else corrected)
        yield f"It is {higher} {listed(parts)}."
    if by["equivalent"]:
        names = listed([label(found, it.value) for it in by["equivalent"]])
        yield f"Within {percent(found.comparing.margin)} of {base}, and so as good as equal: {names}."
    unclear = by["no clear difference"]
    if unclear:
        parts = [f"{label(found, it.value)} ({_unclear(it, found.comparing.confidence)})" for it in unclear[:_MOST]]
        more = [f"{len(unclear) - _MOST} others"] if len(unclear) > _MOST else []
        yield f"Not clear against {base}: {listed([*parts, *more])}."


def _distance(it: Compared) -> float:
    """How far a ratio is from 1; nothing where there is none."""
    return abs(math.log(it.test.ratio)) if it.test.ratio > 0 else -1.0


def _over(found: Comparisons, overall: Sequence[Compared]) -> str:
    """How many workloads, of how many parts and conditions each."""
    noun = unit(found)
    there = sorted({it.test.workloads - it.test.left_out for it in overall if it.test.workloads})
    most = there[-1] if there else 0
    text = counted(most, noun) if len(there) < 2 else f"{number(there[0])} to {number(most)} {noun}s"
    conditions = max((it.conditions for it in overall), default=1)
    each = [_parts_each(found)] if found.nested else []
    each += [f"{conditions} conditions each"] if conditions > 1 else []
    return f"{text} ({'; '.join(each)})" if each else text


def _parts_each(found: Comparisons) -> str:
    """How many parts a source has."""
    how = found.comparing
    names = (name for name in how.replicates or () if name not in (how.sources or ()))
    parts = " and ".join("replica" if name in REPLICAS else name for name in names)
    mean, rest = divmod(found.replicates, found.sources)
    return f"{found.replicates} {parts}s in all" if rest else f"{mean} {parts}s each"


def _parts(found: Comparisons, clear: Sequence[Compared], corrected: str) -> list[str]:
    """Each by how much and how sure; the correction of p is said once."""
    parts = []
    for place, it in enumerate(clear[:_MOST]):
        sure = f"{_sure(it, found.comparing.confidence)}{'' if place else corrected}"
        parts.append(f"under {label(found, it.value)} {_by(it.test)} ({sure}{_unconfirmed(it, found)})")
    rest = len(clear) - _MOST
    return [*parts, f"under {counted(rest, 'other')}"] if rest > 0 else parts


def _by(test: PolicyComparison) -> str:
    return f"at {times(test.ratio)}" if test.ratio >= 2 else f"by {percent(abs(test.ratio - 1))}"


def _sure(it: Compared, confidence: float) -> str:
    test = it.test
    if test.ratio >= 2:
        span = f"{ratio_shown(test.ratio_low)} to {ratio_shown(test.ratio_high)} times"
    else:
        span = change.span(test.ratio_low - 1, test.ratio_high - 1, change.HIGHER)
    return f"{100 * confidence:g} % interval {span}; {_probability(test.p_log_holm)}"


def _probability(p: float) -> str:
    return f"p {p_shown(p)}" if p < 0.001 else f"p = {p_shown(p)}"


def _unconfirmed(it: Compared, found: Comparisons) -> str:
    """Whether the test that is less easily misled by a few workloads says otherwise."""
    doubts = it.test.workloads >= _FEW and it.test.p_wilcoxon_holm >= 1 - found.comparing.confidence
    return "; not confirmed by Wilcoxon's test" if doubts else ""


def _unclear(it: Compared, confidence: float) -> str:
    test = it.test
    by = change.told(test.ratio - 1, change.HIGHER)
    span = change.span(test.ratio_low - 1, test.ratio_high - 1, change.HIGHER)
    return f"{by}, {100 * confidence:g} % interval {span}; {_probability(test.p_log_holm)}"


def _reversed(found: Comparisons, metric: str, winners: Sequence[Compared], worse: str) -> Iterator[str]:
    """Conditions in which a winner clearly loses."""
    parts = []
    for it in winners:
        lost = [
            row.condition
            for row in found.found
            if row.metric == metric and row.value == it.value and row.condition and row.test.verdict == "worse"
        ]
        if lost and it.condition is None:
            which = f"{len(lost)} of {it.conditions} conditions, such as {condition_name(lost[0])}"
            parts.append(f"under {label(found, it.value)} in {which}")
    if parts:
        yield f"But it is clearly {worse} {listed(parts[:_MOST])}."


def _in_passing(found: Comparisons, metrics: Sequence[str]) -> Iterator[str]:
    """One sentence on further metrics."""
    parts = []
    for metric in metrics[:_MOST]:
        overall = found.overall(metric)
        names = {
            verdict: listed([label(found, it.value) for it in overall if it.test.verdict == verdict][: _MOST + 1])
            for verdict in ("better", "worse")
            if any(it.test.verdict == verdict for it in overall)
        }
        told = ", ".join(f"{verdict} under {who}" for verdict, who in names.items())
        if all(it.test.verdict == "equivalent" for it in overall):
            told = "as good as equal under all"
        parts.append(f"{title(metric)} is {told or 'clearly different under none'}")
    if parts:
        rest = len(metrics) - len(parts)
        more = f"; the table has {rest} more" if rest else ""
        yield f"Of the other metrics, {'; '.join(parts)}{more}."


def _missing(found: Comparisons) -> Iterator[str]:
    """Workloads that are in no pair, by the first metric, and pairs without a ratio."""
    overall = found.overall(found.metrics[0])
    short = [it for it in overall if it.missing]
    if short:
        parts = [f"{number(it.missing)} for {label(found, it.value)}" for it in short[:_MOST]]
        more = [f"some for {counted(len(short) - _MOST, 'other')}"] if len(short) > _MOST else []
        yield _text("left_out", found=found, parts=[*parts, *more], title=title(found.metrics[0]))
    part = [it for it in overall if it.condition is None and it.conditions < found.conditions]
    if part:
        parts = [f"{found.conditions - it.conditions} for {label(found, it.value)}" for it in part[:_MOST]]
        yield f"Conditions without any pair, of {number(found.conditions)}: {listed(parts)}."
    zeros = [it for it in overall if it.test.left_out]
    if zeros:
        parts = [f"{number(it.test.left_out)} for {label(found, it.value)}" for it in zeros[:_MOST]]
        yield f"Workloads without a ratio, as one value is not above 0: {listed(parts)}."


def _few(found: Comparisons) -> Iterator[str]:
    overall = found.overall(found.metrics[0])
    none = [label(found, it.value) for it in overall if it.test.verdict == "too little data"]
    if none:
        yield f"Too few pairs for a test: {listed(none)}."
    most = max((it.test.workloads for it in overall), default=0)
    if 1 < most < _FEW:
        yield _text("few_units", most=most, unit=unit(found))
