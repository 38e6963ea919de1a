"""What the grid paper claims, and what stored rows say of it: a verdict a claim, with effect, interval, p and n.

Rules, the same for all claims:

* The headline of a comparison is the geometric-mean ratio with the t-test of log ratios, a workload's averaged over its
  loads, Holm's correction within the family; the paper's own t-test of the values is told beside it.
* Of several comparisons that a claim makes: all as claimed, it *holds*; at least half, it *holds partly*; fewer, and at
  least one that is surely otherwise, it *does not hold*.
* "Indistinguishable" holds where equivalence is shown, does not where a difference is; both at once is a difference
  too small to matter, and holds partly.
* An order of averages is sure where it is the same in 95 % of resamples of the workloads.
* What is neither shown nor refuted with fewer than `DECISIVE` workloads is *not testable here*: the scale does not
  decide. With more it holds partly.

The effect shown is that of the comparison that supports the claim least.

References
----------
Burkimsher, Bate and Indrusiak, FGCS 29(8), 2013, sections 3 and 4; numbers of the claims are the project's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.metrics.campaign import (
    Comparison,
    Paired,
    Rows,
    compare_policies,
    tidy,
)
from gridsim.metrics.dag import DAG_METRICS
from gridsim.model.streams import stream
from gridsim.model.time import FloatArray
from gridsim.report.campaign_figures import POLICIES

__all__ = ["CLAIMS", "DECISIVE", "ELSEWHERE", "INDUSTRIAL_CLAIMS", "Claim", "Finding", "Stored", "Verdict", "verdicts"]

Answer = Literal["holds", "holds partly", "does not hold", "not testable here"]

DECISIVE = 100
"""Workloads from which on an undecided claim counts as partly held instead of left open."""

NAN = float("nan")
LEVEL = 0.05
FIVE = ("lrtf", "fair-share", "random", "fifo-task", "fifo-job")
"""Those that P-SLR and SRTF are claimed to beat."""

Wanted = Literal["better", "worse"]


class Finding(NamedTuple):
    """What rows say of a claim: the verdict, its least favourable effect with interval and p, n, and words."""

    answer: Answer
    effect: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    n: int = 0
    note: str = ""


class Verdict(NamedTuple):
    """A row of the verdict table."""

    claim: str
    statement: str
    verdict: Answer
    effect: float
    low: float
    high: float
    p: float
    n: int
    note: str


@dataclass(slots=True)
class Stored:
    """Rows by metric, and what has been compared of them; a claim asks only for what it needs.

    Raises `InputError` for what is not there, and `verdicts` makes *not testable here* of it.
    """

    rows: Rows
    by_metric: dict[str, list[Mapping[str, Any]]] = field(init=False, default_factory=dict)
    compared: dict[tuple[str, str], list[Comparison]] = field(init=False, default_factory=dict)
    found: dict[str, Finding] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for row in tidy(self.rows):
            self.by_metric.setdefault(row["metric"], []).append(row)

    def of(self, metric: str) -> list[Mapping[str, Any]]:
        """Rows of one metric."""
        if metric not in self.by_metric:
            raise InputError(f"no row has the metric '{metric}'", field="metric")
        return self.by_metric[metric]

    def paired(self, metric: str) -> Paired:
        """One metric of whole schedules."""
        return Paired.from_rows(self.of(metric), metric)

    def comparisons(self, metric: str, policy: str, *, at_loads: bool = False) -> dict[str, list[Comparison]]:
        """By other policy: the comparison over all loads, or one at each."""
        key = (metric, policy)
        if key not in self.compared:
            self.compared[key] = compare_policies(self.paired(metric), policy)
        found: dict[str, list[Comparison]] = {}
        for one in self.compared[key]:
            if (one.load is not None) == at_loads:
                found.setdefault(one.other, []).append(one)
        return found

    def profile(self, metric: str, load: float) -> tuple[tuple[str, ...], FloatArray]:
        """Policies, and workloads by policies by deciles at one load."""
        rows = [row for row in self.of(metric) if row["load"] == load]
        deciles = [Paired.from_rows(rows, metric, decile=decile) for decile in range(1, 11)]
        return deciles[0].policies, np.stack([one.values[:, 0, :] for one in deciles], axis=-1)

    def column(self, metric: str, policy: str, *, load: float | None = None) -> FloatArray:
        """Values of whole schedules under one policy."""
        rows = tidy(self.of(metric), policy=policy, decile=None)
        return np.array([row["value"] for row in rows if load is None or row["load"] == load], dtype=float)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper in our words, and what decides it."""

    id: str
    statement: str
    judge: Callable[[Stored], Finding]


def verdicts(rows: Rows, claims: Sequence[Claim] | None = None) -> list[Verdict]:
    """Verdicts on the claims of a campaign; *not testable here* where rows are missing.

    Parameters
    ----------
    rows : rows
        Stored values of `gridsim.campaign.grid`, or of `gridsim.campaign.industrial` for `INDUSTRIAL_CLAIMS`.
    claims : sequence of Claim, optional
        Those to judge; `CLAIMS` where left out.
    """
    stored = Stored(rows)
    return [_judged(claim, stored) for claim in (CLAIMS if claims is None else claims)]


def _judged(claim: Claim, stored: Stored) -> Verdict:
    try:
        finding = claim.judge(stored)
    except InputError as error:
        finding = Finding("not testable here", note=str(error))
    stored.found[claim.id] = finding
    return Verdict(claim.id, claim.statement, *finding)


def _title(policy: str) -> str:
    return POLICIES.get(policy, policy)


def _names(policies: Iterable[str]) -> str:
    return ", ".join(map(_title, policies))


def _opened(n: int) -> Answer:
    """Answer where nothing is decided."""
    return "not testable here" if n < DECISIVE else "holds partly"


def _counted(right: int, wrong: int, total: int, n: int) -> Answer:
    """Answer from how many parts of a claim are as claimed, and how many surely otherwise."""
    if right == total:
        return "holds"
    if 2 * right >= total:
        return "holds partly"
    return "does not hold" if wrong else _opened(n)


Judge = Callable[[Stored], Finding]


def _less(metric: str, wanted: Wanted) -> bool:
    """Whether *wanted* is a ratio below 1."""
    return (wanted == "better") == (DAG_METRICS[metric].better != "higher")


def differs(metric: str, wanted: Mapping[str, Wanted], policies: Sequence[str] = ("p-slr",)) -> Judge:
    """Each of the *policies* against each other one, over all loads, comes out as wanted."""

    def judge(stored: Stored) -> Finding:
        found = [(one, wanted[one.other]) for policy in policies for one in _against(stored, metric, policy, wanted)]
        right = [one for one, way in found if one.verdict == way]
        unclear = [one for one, _ in found if one.verdict in ("no clear difference", "too little data")]
        weakest, _ = min(found, key=lambda pair: pair[0].t_log * (-1 if _less(metric, pair[1]) else 1))
        theirs = sum(one.p < LEVEL and (one.difference < 0) == _less(metric, way) for one, way in found)
        note = f"{len(right)} of {len(found)} as claimed; least {_pair(weakest)}; the paper's t-test: {theirs}"
        if unclear:
            note += f"; unclear: {', '.join(map(_pair, unclear))}"
        wrong = len(found) - len(right) - len(unclear)
        return _compared(_counted(len(right), wrong, len(found), weakest.workloads), weakest, note)

    return judge


def alike(metric: str, policy: str = "p-slr", other: str = "srtf") -> Judge:
    """Two policies are indistinguishable over all loads."""

    def judge(stored: Stored) -> Finding:
        (one,) = _against(stored, metric, policy, [other])
        apart = one.verdict in ("better", "worse")
        note = f"equivalence p = {one.p_equivalence:.2g}; the paper's t-test: p = {one.p:.2g}"
        if apart:
            return _compared("holds partly" if one.equivalent else "does not hold", one, note)
        return _compared("holds" if one.equivalent else _opened(one.workloads), one, note)

    return judge


def _against(stored: Stored, metric: str, policy: str, others: Iterable[str]) -> list[Comparison]:
    """One comparison over all loads for each other policy."""
    found = stored.comparisons(metric, policy)
    for other in others:
        if other not in found:
            raise InputError(f"no row has the policy '{other}'", field="policy")
    return [found[other][-1] for other in others]


def _pair(one: Comparison) -> str:
    return f"{_title(one.policy)}/{_title(one.other)}"


def _compared(answer: Answer, one: Comparison, note: str) -> Finding:
    return Finding(answer, one.ratio, one.ratio_low, one.ratio_high, one.p_log_holm, one.workloads, note)


def both(*judges: Judge) -> Judge:
    """A claim of several parts."""

    def judge(stored: Stored) -> Finding:
        findings = [each(stored) for each in judges]
        answers = [finding.answer for finding in findings]
        worst = min(findings, key=lambda finding: _RANKS[finding.answer])
        note = "; ".join(f"{finding.answer}: {finding.note}" for finding in findings)
        answer: Answer = worst.answer if len(set(answers)) == 1 else "holds partly"
        if "holds" not in answers and "holds partly" not in answers:
            answer = "does not hold"
        return worst._replace(answer=answer, note=note) if set(answers) != {"not testable here"} else worst

    return judge


_RANKS: Mapping[Answer, int] = {"does not hold": 0, "not testable here": 1, "holds partly": 2, "holds": 3}


@dataclass(frozen=True, slots=True)
class Averages:
    """Averages over workloads, (…, policies, places); places are deciles, loads, or one."""

    policies: tuple[str, ...]
    values: FloatArray

    def of(self, policy: str) -> FloatArray:
        """Of one policy, (…, places)."""
        if policy not in self.policies:
            raise InputError(f"no row has the policy '{policy}'", field="policy")
        return self.values[..., self.policies.index(policy), :]

    def others(self, *but: str) -> FloatArray:
        """Of all policies but these, (…, policies, places)."""
        return self.values[..., [at for at, name in enumerate(self.policies) if name not in but], :]


Margin = Callable[[Averages], FloatArray]
"""By which factor a part of a claim holds: from 1 up it does."""

Source = Callable[[Stored], tuple[tuple[str, ...], FloatArray]]
"""Policies, and values as (workloads, policies, places)."""


def ordered(source: Source, parts: Mapping[str, Margin], *, geometric: bool = False) -> Judge:
    """Averages over workloads stand in an order, or within a factor: every margin is at least 1."""

    def judge(stored: Stored) -> Finding:
        policies, values = source(stored)
        n = len(values)
        kept, back = (np.log(values), np.exp) if geometric else (values, np.asarray)
        point, drawn = Averages(policies, back(kept.mean(axis=0))), Averages(policies, back(bootstrap_means(kept)))
        right = wrong = 0
        told = []
        for name, margin in parts.items():
            value, resampled = float(margin(point)), margin(drawn)
            share = float(np.mean(resampled >= 1))
            right += value >= 1 and share >= 1 - LEVEL
            wrong += value < 1 and share <= LEVEL
            low, high = np.quantile(resampled, [LEVEL / 2, 1 - LEVEL / 2]).tolist()
            told.append((value, low, high, 1 - share, f"{name} by a factor of {value:.3g}"))
        effect, low, high, p, _ = min(told)
        note = "; ".join(text for *_, text in told)
        return Finding(_counted(right, wrong, len(parts), n), effect, low, high, p, n, note)

    return judge


def at_deciles(metric: str = "mean_slr", load: float = 1.2) -> Source:
    """Places are deciles at one load."""
    return lambda stored: stored.profile(metric, load)


def at_loads(metric: str) -> Source:
    """Places are loads."""

    def source(stored: Stored) -> tuple[tuple[str, ...], FloatArray]:
        paired = stored.paired(metric)
        return paired.policies, paired.values.transpose(0, 2, 1)

    return source


def over_loads(metric: str) -> Source:
    """One place: the mean over loads."""

    def source(stored: Stored) -> tuple[tuple[str, ...], FloatArray]:
        paired = stored.paired(metric)
        return paired.policies, paired.values.mean(axis=1)[:, :, np.newaxis]

    return source


def _most_of(margins: FloatArray, part: float) -> FloatArray:
    """Margin that at least *part* of the places reach."""
    places = margins.shape[-1]
    needed = int(np.ceil(part * places - 1e-9))
    return np.sort(margins, axis=-1)[..., places - needed]


def lowest(at: int, *policies: str) -> Margin:
    """The policies are the lowest at one place."""
    return lambda of: (of.others(*policies).min(axis=-2) / _highest_of(of, policies))[..., at]


def highest(at: int, policy: str) -> Margin:
    """The policy is the highest at one place."""
    return lambda of: (of.of(policy) / of.others(policy).max(axis=-2))[..., at]


def lowest_in(part: float, *policies: str) -> Margin:
    """The policies are the lowest at this part of the places."""
    return lambda of: _most_of(of.others(*policies).min(axis=-2) / _highest_of(of, policies), part)


def highest_in(part: float, policy: str) -> Margin:
    """The policy is the highest at this part of the places."""
    return lambda of: _most_of(of.of(policy) / of.others(policy).max(axis=-2), part)


def _highest_of(of: Averages, policies: Sequence[str]) -> FloatArray:
    return np.max([of.of(policy) for policy in policies], axis=0)


def falling(policies: Sequence[str]) -> Margin:
    """None of the policies rises from a place to the next."""
    return lambda of: np.min([(of.of(name)[..., :-1] / of.of(name)[..., 1:]).min(axis=-1) for name in policies], axis=0)


def together(policies: Sequence[str], factor: float) -> Margin:
    """From the second place on the policies are within a factor of one another."""

    def margin(of: Averages) -> FloatArray:
        values = np.stack([of.of(policy)[..., 1:] for policy in policies])
        return factor / (values.max(axis=0) / values.min(axis=0)).max(axis=-1)

    return margin


def flat(policy: str, factor: float) -> Margin:
    """From the second place on the highest value is within a factor of the lowest."""
    return lambda of: factor / (of.of(policy)[..., 1:].max(axis=-1) / of.of(policy)[..., 1:].min(axis=-1))


def uptick(policy: str) -> Margin:
    """The first place is above the mean of the others."""
    return lambda of: of.of(policy)[..., 0] / of.of(policy)[..., 1:].mean(axis=-1)


def no_worse(policy: str, other: str, slack: float, part: float) -> Margin:
    """The policy is at most *slack* times the other at this part of the places."""
    return lambda of: _most_of(slack * of.of(other) / of.of(policy), part)


def close(policy: str, other: str, factor: float) -> Margin:
    """Two policies are within a factor of one another, at every place."""

    def margin(of: Averages) -> FloatArray:
        ratio = of.of(policy) / of.of(other)
        return factor / np.maximum(ratio, 1 / ratio).max(axis=-1)

    return margin


def as_printed(metric: str, other: str, points: float = 0.10) -> Judge:
    """Dominance of P-SLR at each load is within 10 points of the printed table."""

    def judge(stored: Stored) -> Finding:
        printed = PRINTED_DOMINANCE[metric][other]
        cells = [one for one in _at_each_load(stored, metric, other) if round(100 * _load(one)) in printed]
        away = {id(one): abs(one.dominance - printed[round(100 * _load(one))] / 100) for one in cells}
        right = [one for one in cells if away[id(one)] <= points + 1e-9]
        wrong = sum(_far(one, printed[round(100 * _load(one))] / 100, points) for one in cells)
        most = max(cells, key=lambda one: away[id(one)])
        shares = "; ".join(f"{100 * one.dominance:.0f}" for one in cells)
        note = f"{shares} %, printed {'; '.join(f'{printed[round(100 * _load(one))]:g}' for one in cells)}"
        answer = _counted(len(right), wrong, len(cells), most.workloads)
        effect = (most.dominance, most.dominance_low, most.dominance_high)
        return Finding(answer, *effect, most.p_log_holm, most.workloads, note)

    return judge


def _far(one: Comparison, printed: float, points: float) -> bool:
    return one.dominance_high < printed - points or one.dominance_low > printed + points


def _load(one: Comparison) -> float:
    return float(one.load or 0)


def _at_each_load(stored: Stored, metric: str, other: str) -> list[Comparison]:
    found = stored.comparisons(metric, "p-slr", at_loads=True).get(other, [])
    if not found:
        raise InputError(f"no comparison by load of '{metric}' with '{other}'")
    return found


def _srtf_level_in_worst(stored: Stored) -> Finding:
    """No load shows a difference from SRTF in the worst SLR."""
    cells = _at_each_load(stored, "worst_slr", "srtf")
    apart = [one for one in cells if one.verdict in ("better", "worse")]
    equal = [one for one in cells if one not in apart and (one.equivalent or one.workloads >= DECISIVE)]
    most = min(cells, key=lambda one: one.p_log_holm)
    note = f"dominance {'; '.join(f'{100 * one.dominance:.0f}' for one in cells)} %; a difference at {len(apart)} loads"
    if not apart and not equal:
        return _compared("not testable here", most, note)
    return _compared(_counted(len(equal), len(apart), len(cells), most.workloads), most, note)


def _srtf_gains_with_load(stored: Stored) -> Finding:
    """Dominance over SRTF in mean SLR falls with load, and P-SLR is worse at the highest."""
    cells = _at_each_load(stored, "mean_slr", "srtf")
    shares = [one.dominance for one in cells]
    falls = all(later <= earlier for earlier, later in zip(shares, shares[1:], strict=False))
    last = cells[-1]
    note = f"dominance {'; '.join(f'{100 * share:.0f}' for share in shares)} %; at the highest load {last.verdict}"
    right = falls + (last.verdict == "worse")
    wrong = (not falls and shares[-1] >= shares[0]) + (last.verdict in ("better", "equivalent"))
    return _compared(_counted(right, wrong, 2, last.workloads), last, note)


def _srtf_better_at_high_loads(stored: Stored) -> Finding:
    """SRTF's mean SLR is better at 110 % and above, and no different at 80 %."""
    cells = {round(100 * _load(one)): one for one in _at_each_load(stored, "mean_slr", "srtf")}
    high = [one for load, one in cells.items() if load >= 110]
    first = cells.get(80)
    if not high or first is None:
        raise InputError("loads of 80 % and of 110 % or more are needed", field="load")
    right = sum(one.verdict == "worse" for one in high) + (first.verdict not in ("better", "worse"))
    wrong = sum(one.verdict in ("better", "equivalent") for one in high) + (first.verdict in ("better", "worse"))
    last = high[-1]
    note = "; ".join(f"{load} %: ratio {one.ratio:.3g}, {one.verdict}" for load, one in cells.items())
    return _compared(_counted(right, wrong, len(high) + 1, last.workloads), last, note)


def drawn(metric: str, figure: str, *, by_decile: bool = False) -> Judge:
    """The figure can be drawn: its rows are there."""

    def judge(stored: Stored) -> Finding:
        rows = [row for row in stored.of(metric) if (row["decile"] is not None) == by_decile]
        if not rows:
            raise InputError(f"no row has the metric '{metric}' by decile")
        return Finding("holds", n=len(rows), note=f"drawn as {figure}")

    return judge


def _complete(stored: Stored) -> Finding:
    """5,250 schedules."""
    there = {(row["kind"], row["workload"], row["load"], row["policy"]) for row in stored.of("makespan")}
    stored.paired("makespan")
    answer: Answer = "holds" if len(there) == 5_250 else "not testable here"
    return Finding(
        answer, len(there), n=len(there), note=f"{len(there):,} of 5,250 schedules, none of a workload missing"
    )


def _least_slr(stored: Stored) -> Finding:
    least = [row["value"] for row in stored.of("least_slr")]
    return Finding(
        "holds" if min(least) >= 1 else "does not hold", min(least), n=len(least), note="least SLR of all jobs"
    )


def _completions(stored: Stored) -> Finding:
    """The 95 % quantile of gaps between completions in a cluster is below a tenth of the median task."""
    kinds: dict[str, list[float]] = {}
    for row in stored.of("completion_gap"):
        kinds.setdefault(row["kind"], []).append(row["value"])
    medians = {kind: float(np.median(values)) for kind, values in kinds.items()}
    note = "95 % quantile of gaps over median task: " + ", ".join(f"{kind} {m:.2g}" for kind, m in medians.items())
    right = sum(value <= 0.1 for value in medians.values())
    answer = _counted(right, len(medians) - right, len(medians), len(medians))
    return Finding(answer, max(medians.values()), n=sum(map(len, kinds.values())), note=note)


def _mean_cores(stored: Stored) -> Finding:
    cores, tasks = (stored.column(metric, "") for metric in ("mean_cores", "tasks"))
    mean, error = float(cores @ tasks / tasks.sum()), 6.794 / float(np.sqrt(tasks.sum() / _loads(stored)))
    answer: Answer = "holds" if abs(mean - 10.2) <= 3 * error else "does not hold"
    return Finding(answer, mean, mean - 1.96 * error, mean + 1.96 * error, n=len(cores) // _loads(stored))


def _loads(stored: Stored) -> int:
    return len({row["load"] for row in stored.of("mean_cores")})


def _lighter_side(stored: Stored) -> Finding:
    """Load of each kind of cluster over the nominal one, mean over workloads: 1.067 and 0.80."""
    nominal = np.array([row["load"] for row in stored.of("offered_load_kind1")])
    parts = [stored.column(f"offered_load_kind{kind}", "") / nominal for kind in (1, 2)]
    first, second = (float(part.mean()) for part in parts)
    error = 1.96 * float(parts[0].std(ddof=1) / np.sqrt(len(nominal) / _loads(stored)))
    note = f"{first:.3f} and {second:.3f} of the nominal load, expected 1.067 and 0.80"
    answer: Answer = "holds" if first > second else "does not hold"
    return Finding(answer, first, first - error, first + error, n=len(nominal) // _loads(stored), note=note)


def _nominal_load(stored: Stored) -> Finding:
    rows = [row for row in stored.of("offered_load") if row["kind"].endswith("ind")]
    if not rows:
        raise InputError("no workload of independent jobs", field="kind")
    error = max(abs(row["value"] / row["load"] - 1) for row in rows)
    return Finding("holds" if error <= 0.01 else "does not hold", error, n=len(rows), note="largest relative error")


def _late_long_job(stored: Stored) -> Finding:
    """Utilisation up to the makespan is low, that up to the last arrival far higher (by a fifth) from 100 % load on."""
    rows = stored.of("utilisation")
    loads = sorted({row["load"] for row in rows if row["load"] >= 1})
    low = float(np.median([row["value"] for row in rows]))
    medians = [
        [float(np.median([row["value"] for row in stored.of(name) if row["load"] == load])) for load in loads]
        for name in ("utilisation_arrivals", "utilisation")
    ]
    ratio = min(there / to_end for there, to_end in zip(*medians, strict=True))
    right = (low < 0.6) + (ratio > 1.2)
    note = f"median {low:.3f}; up to the last arrival at least {ratio:.2f} times that from 100 % load on"
    return Finding(_counted(right, 2 - right, 2, len(rows)), low, n=len(rows), note=note)


def _peak_of_lrtf(stored: Stored) -> Finding:
    """Median peak in-flight of LRTF over all schedules, its interval over resampled workloads."""
    values = stored.paired("peak_in_flight").of("lrtf")
    median = float(np.median(values))
    rows = stream(0, "campaign", "median").integers(len(values), size=(2_000, len(values)))
    low, high = np.quantile(np.median(values[rows].reshape(2_000, -1), axis=1), [0.025, 0.975]).tolist()
    if 392 <= median <= 450:
        return Finding("holds", median, low, high, n=len(values))
    return Finding(
        "does not hold" if high < 392 or low > 450 else _opened(len(values)), median, low, high, n=len(values)
    )


def _together(*ids: str) -> Judge:
    """Several claims at once."""

    def judge(stored: Stored) -> Finding:
        answers = {name: stored.found[name].answer for name in ids if name in stored.found}
        note = ", ".join(f"{name} {answer}" for name, answer in answers.items())
        worst = min(answers.values(), key=lambda answer: _RANKS[answer], default="not testable here")
        answer: Answer = "holds partly" if worst == "does not hold" and "holds" in answers.values() else worst
        return Finding(answer, note=note)

    return judge


FIFO_LIKE = ("random", "fair-share", "fifo-task", "fifo-job")
_BETTER: Mapping[str, Wanted] = dict.fromkeys(FIVE, "better")
_UTILISATION: Mapping[str, Wanted] = {**dict.fromkeys(FIVE, "worse"), "srtf": "better"}


def _cells(metric: str, first: int) -> list[Claim]:
    """Rows of Tables 3 and 4 but SRTF's."""
    order = ("lrtf", "srtf", "random", "fifo-task", "fifo-job", "fair-share")
    words = f"Dominance of P-SLR in {'worst' if metric == 'worst_slr' else 'mean'} SLR is as printed, over"
    return [
        Claim(f"G-{first + at}", f"{words} {_title(other)}", as_printed(metric, other))
        for at, other in enumerate(order)
        if other != "srtf"
    ]


CLAIMS: tuple[Claim, ...] = (
    Claim("G-11", "Mean cores of a task are just over 10", _mean_cores),
    Claim("G-12", "The second kind is the lighter side of the grid", _lighter_side),
    Claim("G-13", "Gaps between arrivals set the load ratio", _nominal_load),
    Claim("G-14", "5,250 schedules", _complete),
    Claim("G-15", "SLR is never below 1", _least_slr),
    Claim("G-18", "Something is always about to finish", _completions),
    Claim("G-20", "Figure 6: deviation of SLR by policy", drawn("sd_slr", "figure-6")),
    Claim("G-21", "P-SLR has a lower deviation of SLR than five policies", differs("sd_slr", _BETTER)),
    Claim("G-22", "P-SLR and SRTF are alike in deviation of SLR", alike("sd_slr")),
    Claim("G-23", "Figure 7: mean SLR by decile at 120 %", drawn("mean_slr", "figure-7", by_decile=True)),
    Claim(
        "G-24",
        "LRTF is worst of all for the smallest jobs, best of all for the largest",
        ordered(at_deciles(), {"highest in decile 1": highest(0, "lrtf"), "lowest in decile 10": lowest(9, "lrtf")}),
    ),
    Claim(
        "G-25",
        "Random, Fair Share and both FIFOs share one falling profile",
        ordered(at_deciles(), {"falling": falling(FIFO_LIKE), "within 2 of one another": together(FIFO_LIKE, 2.0)}),
    ),
    Claim(
        "G-26",
        "SRTF is lowest in most deciles, highest of all in the last",
        ordered(
            at_deciles(),
            {"lowest in 6 deciles": lowest_in(0.6, "srtf"), "highest in decile 10": highest(9, "srtf")},
        ),
    ),
    Claim(
        "G-27",
        "P-SLR shows no trend over deciles 2 to 10",
        ordered(at_deciles(), {"within 1.2 of one another": flat("p-slr", 1.2)}),
    ),
    Claim(
        "G-28",
        "P-SLR has an uptick in the first decile (that it is smaller on a larger cluster needs runs of other sizes)",
        ordered(at_deciles(), {"decile 1 over the rest": uptick("p-slr")}),
    ),
    Claim("G-29", "Worst SLR by decile at 120 %", drawn("worst_slr", "figure-7-worst", by_decile=True)),
    Claim("G-30", "Figure 8: worst SLR by policy", drawn("worst_slr", "figure-8")),
    Claim(
        "G-31",
        "P-SLR, and SRTF, have a lower worst SLR than five policies each",
        differs("worst_slr", _BETTER, ("p-slr", "srtf")),
    ),
    Claim("G-32", "P-SLR and SRTF are alike in worst SLR", alike("worst_slr")),
    Claim("G-33", "Figure 9: worst SLR against load", drawn("worst_slr", "figure-9")),
    Claim(
        "G-34",
        "LRTF has the worst mean worst SLR at most loads",
        ordered(at_loads("worst_slr"), {"highest at 4 of 5 loads": highest_in(0.8, "lrtf")}),
    ),
    Claim(
        "G-35",
        "SRTF and P-SLR have the lowest mean worst SLR at every load",
        ordered(at_loads("worst_slr"), {"lowest at every load": lowest_in(1.0, "srtf", "p-slr")}),
    ),
    Claim(
        "G-36",
        "Random's mean worst SLR is at most 1.1 of Fair Share's and the FIFOs'",
        both(
            *(
                ordered(
                    at_loads("worst_slr"),
                    {f"{words} against {_title(name)}": no_worse("random", name, 1.1, 0.8) for name in FIFO_LIKE[1:]},
                    geometric=geometric,
                )
                for words, geometric in (("means", False), ("geometric means", True))
            )
        ),
    ),
    *_cells("worst_slr", 40),
    Claim("G-41", "P-SLR and SRTF are alike in worst SLR at every load", _srtf_level_in_worst),
    *_cells("mean_slr", 50),
    Claim("G-51", "SRTF overtakes P-SLR in mean SLR as load grows", _srtf_gains_with_load),
    Claim("G-56", "SRTF is better in mean SLR at the higher loads only", _srtf_better_at_high_loads),
    Claim("G-60", "Figure 10: average utilisation by policy", drawn("utilisation", "figure-10")),
    Claim(
        "G-61",
        "Utilisation of P-SLR is above SRTF's and below the five others'",
        differs("utilisation", _UTILISATION),
    ),
    Claim(
        "G-62",
        "Differences of utilisation are too small to matter (5 %)",
        ordered(
            over_loads("utilisation"),
            {f"against {_title(name)}": close("p-slr", name, 1.05) for name in ("srtf", *FIVE)},
        ),
    ),
    Claim("G-63", "One late long job keeps utilisation low", _late_long_job),
    Claim("G-64", "Figure 11: cumulative completion by policy", drawn("cumulative_completion", "figure-11")),
    Claim(
        "G-65",
        "P-SLR has a higher cumulative completion than five policies",
        differs("cumulative_completion", _BETTER),
    ),
    Claim("G-66", "P-SLR and SRTF are alike in cumulative completion", alike("cumulative_completion")),
    Claim("G-67", "Figure 12: peak in-flight by policy", drawn("peak_in_flight", "figure-12")),
    Claim(
        "G-68",
        "P-SLR has a lower peak in-flight than five policies, and SRTF's",
        both(differs("peak_in_flight", _BETTER), alike("peak_in_flight")),
    ),
    Claim("G-69", "Median peak in-flight of LRTF is just over 400", _peak_of_lrtf),
    Claim(
        "G-70",
        "P-SLR is fairer and more responsive than five policies, level with SRTF, at equal utilisation",
        _together("G-21", "G-31", "G-32", "G-62"),
    ),
)
"""Claims that rows of the campaign decide."""


def _of_log(metric: str, stored: Stored) -> dict[str, float]:
    """Value of each policy on the industrial log, mean over draws."""
    policies = dict.fromkeys(row["policy"] for row in stored.of(metric) if row["decile"] is None)
    return {policy: float(stored.column(metric, policy).mean()) for policy in policies}


def _told(values: Mapping[str, float]) -> str:
    return ", ".join(f"{_title(name)} {value:.4g}" for name, value in sorted(values.items(), key=lambda pair: pair[1]))


def spread(metric: str, most: float) -> Judge:
    """Values of all policies differ by at most a part of their mean."""

    def judge(stored: Stored) -> Finding:
        values = _of_log(metric, stored)
        part = (max(values.values()) - min(values.values())) / float(np.mean(list(values.values())))
        return Finding("holds" if part <= most else "does not hold", part, n=len(values), note=_told(values))

    return judge


def on_log(metric: str, parts: Callable[[Mapping[str, float]], Sequence[bool]]) -> Judge:
    """Parts of a claim about the values of the policies on one log; nothing to test, as there is one log."""

    def judge(stored: Stored) -> Finding:
        values = _of_log(metric, stored)
        found = parts(values)
        answer = _counted(sum(found), len(found) - sum(found), len(found), 1)
        ratio = values["p-slr"] / values["srtf"]
        return Finding(answer, ratio, n=1, note=f"{sum(found)} of {len(found)} parts; {_told(values)}")

    return judge


def _far_below(of: Mapping[str, float]) -> list[bool]:
    next_one = min(value for name, value in of.items() if name not in ("p-slr", "srtf"))
    return [next_one / max(of["p-slr"], of["srtf"]) > 5, 1 <= of["p-slr"] / of["srtf"] <= 1.5]


def _order(*names: str) -> Callable[[Mapping[str, float]], list[bool]]:
    """Each value is below the next."""
    return lambda of: [of[one] < of[other] for one, other in zip(names, names[1:], strict=False)]


def _deciles_of_log(stored: Stored) -> Finding:
    rows = [row for row in stored.of("mean_slr") if row["decile"] is not None]
    of = {
        policy: np.array(
            [np.mean([r["value"] for r in rows if r["policy"] == policy and r["decile"] == d]) for d in range(1, 11)]
        )
        for policy in dict.fromkeys(row["policy"] for row in rows)
    }
    others = np.array([column for policy, column in of.items() if policy != "lrtf"])
    parts = {
        "SRTF at most P-SLR in most deciles": int((of["srtf"] <= of["p-slr"]).sum()) >= 6,
        "SRTF within 5 % of P-SLR in deciles 9 and 10": bool((abs(of["srtf"] / of["p-slr"] - 1)[8:] <= 0.05).all()),
        "LRTF highest in most deciles": int((of["lrtf"] > others.max(axis=0)).sum()) >= 6,
        "Fair Share below Random in most deciles from the second on": int((of["fair-share"] < of["random"])[1:].sum())
        >= 5,
    }
    answer = _counted(sum(parts.values()), len(parts) - sum(parts.values()), len(parts), 1)
    note = "; ".join(f"{name}: {'yes' if true else 'no'}" for name, true in parts.items())
    return Finding(answer, float((of["p-slr"] / of["srtf"]).max()), n=1, note=note)


def _starts_equal(stored: Stored) -> Finding:
    (value,) = stored.column("starts_equal", "fifo-job").tolist()
    note = "share of the jobs that start when the published FIFO schedule says"
    return Finding("holds" if value == 1 else "does not hold", value, n=1, note=note)


INDUSTRIAL_CLAIMS: tuple[Claim, ...] = (
    Claim("G-90", "Average utilisation is the same under all policies", spread("utilisation", 0.0)),
    Claim("G-91", "Cumulative completion differs little", spread("cumulative_completion", 0.01)),
    Claim("G-92", "Peak in-flight differs moderately", spread("peak_in_flight", 0.5)),
    Claim("G-93", "Deviation of SLR: P-SLR and SRTF far below the rest", on_log("sd_slr", _far_below)),
    Claim(
        "G-94",
        "Deviation of SLR: SRTF, P-SLR, Random, Fair Share, FIFO, LRTF",
        on_log("sd_slr", _order("srtf", "p-slr", "random", "fair-share", "fifo-job", "lrtf")),
    ),
    Claim(
        "G-95",
        "Mean SLR: SRTF best, P-SLR close behind",
        on_log("mean_slr", lambda of: [min(of, key=lambda name: of[name]) == "srtf", of["p-slr"] / of["srtf"] < 1.2]),
    ),
    Claim(
        "G-96",
        "Worst SLR: SRTF slightly ahead of P-SLR, LRTF poorest",
        on_log(
            "worst_slr",
            lambda of: [max(of, key=lambda name: of[name]) == "lrtf", 1 <= of["p-slr"] / of["srtf"] <= 1.5],
        ),
    ),
    Claim(
        "G-97",
        "FIFO Job has a poorer worst case than Random and FIFO Task",
        on_log("worst_slr", lambda of: [of["fifo-job"] > of["random"], of["fifo-job"] > of["fifo-task"]]),
    ),
    Claim("G-98", "Mean SLR by decile: SRTF at most P-SLR, LRTF poorest, Fair Share below Random", _deciles_of_log),
    Claim("G-B8", "The published FIFO schedule of an industrial log is reproduced", _starts_equal),
)
"""Claims that rows of the industrial log decide."""

ELSEWHERE: Mapping[str, str] = {
    "G-09": "classes of metrics are gridsim.metrics.dag.DAG_METRICS",
    "G-10": "tests of the generator",
    "G-81": "needs the study of starvation",
    "G-82": "needs the study of starvation",
    "G-83": "needs the study of starvation",
    "G-84": "needs the study of starvation",
    "G-B1": "needs runs with inaccurate estimates",
    "G-B2": "needs runs with other delays",
    "G-B3": "needs the study of starvation, and p-slr-sf in the campaign",
    "G-B4": "needs runs with other fits",
    "G-B5": "needs the campaign with another split",
    "G-B6": "run the campaign with --sizes loguniform and compare the tables",
    "G-B7": "needs runs with contended links",
    "G-B9": "needs day-week arrivals",
    "G-B10": "needs runs with other balancers",
}
"""Claims that no stored row decides, and what would."""
