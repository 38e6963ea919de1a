"""Comparison of several policies on one workload as data: metrics with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.metrics.agreement import failed_jobs
from gridsim.metrics.charges import category_slowdowns
from gridsim.metrics.compare import Difference, Verdict, paired, winners_and_losers
from gridsim.metrics.deadlines import concerns_deadlines
from gridsim.metrics.groups import LABELLED, Groups, by_label, length_classes, no_value, size_classes, weight_classes
from gridsim.metrics.measures import Measure, Metric
from gridsim.metrics.prediction import concerns_predictions
from gridsim.metrics.preemption import by_owners, concerns_preemption
from gridsim.metrics.responsiveness import BOUND, CUTS, measure
from gridsim.metrics.summary import cut, metrics
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND
from gridsim.questions.changes import WhatIf
from gridsim.questions.replay import Replay
from gridsim.questions.replications import Replicated, mean_of
from gridsim.record import Record, Status

COMPARED = ("wait", "bounded_slowdown")
"""Metrics whose differences are tested; each is a separate family of tests."""

COMPARED_DAGS = ("slr", "wait")
"""Metrics tested for DAG jobs; the first one is the main metric, as above."""

COMPARED_MOLDABLE = ("response", "wait")
"""Metrics tested for moldable jobs.

Policies for moldable jobs also choose run times. Waits alone are therefore not sufficient, and slowdowns, which are
relative to run times, even less.
"""

MATTERS = 0.05
"""Relative increase of the mean, at the near end of the interval, from which on a group of jobs is worse off."""

MATTERS_SECONDS = 60.0
"""Increase of a mean wait or response in seconds that is also required."""

DECILES = 10
"""Number of parts of DAG jobs by work; with fewer jobs there are no groups."""


@dataclass(frozen=True, slots=True)
class GroupRow:
    """Wait (SLR of DAG jobs, response of moldable jobs) of a group relative to a baseline; a row of ``groups.csv``.

    Attributes
    ----------
    kind, group : str
        Kind (``size``, ``length``, a label such as ``user``, ``account``, ``partition``, ``qos``; ``weight`` for
        moldable jobs, ``work`` for DAG jobs), and name of the group.
    policy_mean, baseline_mean : float
        Mean waits over the same jobs, s; mean responses of moldable jobs, mean SLRs of DAG jobs.
    ratio, ratio_low, ratio_high : float
        Ratio of the first to the second with its interval; NaN if one of them is 0.
    p_holm : float
        p value, corrected for the groups of this kind.
    low, high : float
        Interval of the difference of the means, policy minus baseline.
    """

    kind: str
    group: str
    policy: str
    baseline: str
    jobs: int
    policy_mean: float
    baseline_mean: float
    ratio: float
    ratio_low: float
    ratio_high: float
    p_holm: float
    verdict: Verdict
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Comparison of several policies on one workload.

    Attributes
    ----------
    records : mapping of str to Record
        Records by label, all of the same workload.
    info : mapping
        Title, workload, platform, policies, options, versions and command, as shown on the page.
    metrics : mapping of str to mapping
        Metrics by label, then by name (`gridsim.metrics.summary.METRICS`, `GRID_METRICS` too for DAG jobs,
        `DEADLINE_METRICS` if jobs request deadlines or a policy gives guarantees).
    differences : list of Difference
        Wait and bounded slowdown of every pair; response and wait of moldable jobs, SLR and wait of DAG jobs.
    groups : list of GroupRow
        Waits by size, length and label: every policy against the baseline, and the best against every other. For DAG
        jobs SLRs by decile of work; for moldable jobs responses, also by weight.
    bound, warmup, cooldown : float
        As for `gridsim.metrics.summary.metrics`, s.
    platform : Platform or None
        The machine, if known: clusters and delays for the chart of DAG jobs.
    tick : int
        Unit for rounding up delays, microseconds.
    replay : Replay or None
        Agreement of the site's own policy with the log, if known.
    whatifs : sequence of WhatIf
        Effects of a larger machine, a higher load and better estimates, by policy, the best one last; if requested.
    platforms : mapping of str to Platform
        Machines of policies that differ from *platform*: those of policies that handle partitions themselves.
    measures : mapping of str to Metric
        User-selected metrics and charges, which are shown below the others.
    replicated : sequence of Replicated
        The same policies on derived workloads, if requested.
    cleaned : Evidence or None
        The same policies on the workload without flurries, if requested.
    order : sequence of str
        Labels in the order of comparisons: the baseline first; that of the records if empty.
    """

    records: Mapping[str, Record]
    info: Mapping[str, Any]
    metrics: Mapping[str, Mapping[str, float]]
    differences: Sequence[Difference]
    groups: Sequence[GroupRow]
    bound: float = BOUND
    warmup: float = 0.0
    cooldown: float = 0.0
    platform: Platform | None = None
    tick: int = MICROSECOND
    replay: Replay | None = None
    whatifs: Sequence[WhatIf] = ()
    platforms: Mapping[str, Platform] = field(default_factory=dict)
    measures: Mapping[str, Metric] = field(default_factory=dict)
    replicated: Sequence[Replicated] = ()
    cleaned: Evidence | None = None
    order: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        records: Mapping[str, Record],
        *,
        info: Mapping[str, Any],
        cuts: Mapping[str, Any] = CUTS,
        platform: Platform | None = None,
        tick: int = MICROSECOND,
        reference: str | None = None,
        replay: Replay | None = None,
        platforms: Mapping[str, Platform] | None = None,
        measures: Sequence[Measure] = (),
        known: Mapping[str, Mapping[str, float]] | None = None,
        compared: tuple[Sequence[Difference], Sequence[GroupRow]] | None = None,
        order: Sequence[str] = (),
    ) -> Self:
        """Compare *records*; a single record has no differences.

        Parameters
        ----------
        cuts : mapping
            ``bound``, ``warmup`` and ``cooldown``, s.
        reference : str, optional
            Label of the reference policy of QoS charges, EASY. By default there are no such charges.
        measures : sequence of Measure, optional
            Additional metrics and charges.
        known : mapping of str to mapping, optional
            Existing metrics of records, by label.
        compared : pair of sequences, optional
            Existing differences and groups.
        order : sequence of str
            Labels in the order of comparisons: the baseline first; that of the records if empty.

        Raises
        ------
        InputError
            If there is no record, no job, or the records are not of the same jobs.
        """
        if not records:
            raise InputError("no policy to compare; expected at least 1")
        first = next(iter(records.values()))
        if not len(first):
            raise InputError("the workload has no jobs; there is nothing to compare")
        kept = cut(first, cuts["warmup"], cuts["cooldown"])
        numbers = _numbers(records, reference, kept, known or {}, {**cuts, "measures": measures})
        rows: Any = slice(None) if kept.all() else kept
        differences: list[Difference] = []
        groups: list[GroupRow] = []
        found = cls(
            dict(records),
            dict(info),
            numbers,
            differences,
            groups,
            platform=platform,
            tick=tick,
            replay=replay,
            platforms=platforms or {},
            measures={it.name: it.metric for it in measures},
            order=tuple(order),
            **cuts,
        )
        if compared is not None:
            differences += compared[0]
            groups += compared[1]
        elif len(records) > 1:
            for metric in found.compared:
                differences += paired(records, metric=metric, bound=found.bound, rows=rows)
            groups += _group_rows(found, rows)
        _count_failures_apart(numbers, records, info.get("own"), kept)  # of the same jobs, as checked by `paired`
        return found

    def platform_of(self, label: str) -> Platform | None:
        """Return the machine of a policy, if known."""
        return self.platforms.get(label, self.platform)

    @property
    def labels(self) -> list[str]:
        """Policies in the given order."""
        return list(self.records)

    @property
    def baseline(self) -> str:
        """Baseline policy of the comparisons: the site's own, else the first one."""
        return self.order[0] if self.order else self.labels[0]

    @property
    def others(self) -> list[str]:
        """Policies other than the baseline, in the order of comparisons."""
        return list(self.order or self.labels)[1:]

    @property
    def of_dags(self) -> bool:
        """True if the jobs are DAGs of tasks."""
        return self.records[self.baseline].tasks is not None

    @property
    def of_moldable(self) -> bool:
        """True if some job or task may start on other numbers of cores than requested."""
        return self.records[self.baseline].workload.moldable is not None

    @property
    def compared(self) -> tuple[str, ...]:
        """Metrics whose differences are tested, the main metric first."""
        if self.of_dags:
            return COMPARED_DAGS
        return COMPARED_MOLDABLE if self.of_moldable else COMPARED

    @property
    def headline(self) -> str:
        """Main metric, which selects the best policy: ``wait``, ``slr`` of DAG jobs, ``response`` of moldable jobs."""
        return self.compared[0]

    @property
    def best(self) -> str:
        """Policy with the lowest mean of the main metric."""
        return best({label: {"mean": value} for label, value in self.means.items()}, "mean")

    @property
    def means(self) -> dict[str, float]:
        """Mean of the main metric under each policy, over the jobs of `common` if policies ran different jobs."""
        common = self.common
        if self.comparable or not common.any():
            return {label: numbers[mean_of(self.headline)] for label, numbers in self.metrics.items()}
        return {
            label: float(measure(record, self.headline, self.bound)[common].mean())
            for label, record in self.records.items()
        }

    @property
    def common(self) -> npt.NDArray[np.bool_]:
        """Counted jobs that ran under every policy."""
        common = self.kept
        for record in self.records.values():
            common = common & record.ran
        return common

    @property
    def comparable(self) -> bool:
        """True if every policy ran the same jobs; admission may reject some."""
        first, *others = (record.ran[self.kept] for record in self.records.values())
        return all(np.array_equal(first, other) for other in others)

    @property
    def kept(self) -> npt.NDArray[np.bool_]:
        """Jobs remaining after the cuts."""
        return cut(self.records[self.baseline], self.warmup, self.cooldown)

    def loses(self, row: GroupRow) -> bool:
        """Return whether a group is clearly worse off, by a relevant amount (`MATTERS`).

        The difference must be relevant at the near end of the interval. For SLRs only the relative threshold applies.
        """
        if row.verdict != "worse" or row.ratio_low < 1 + MATTERS:
            return False
        return self.of_dags or row.low >= MATTERS_SECONDS

    def difference(self, metric: str, policy: str, baseline: str) -> Difference:
        """Return the difference of a pair of policies, in the requested direction."""
        for found in self.differences:
            if found.metric == metric and {found.policy, found.baseline} == {policy, baseline}:
                return found if found.policy == policy else found.turned()
        raise InputError(f"no difference of {metric} between '{policy}' and '{baseline}'")


def _numbers(
    records: Mapping[str, Record],
    reference: str | None,
    kept: npt.NDArray[np.bool_],
    known: Mapping[str, Mapping[str, float]],
    asked: Mapping[str, Any],
) -> dict[str, dict[str, float]]:
    """Return the metrics of each record that are relevant for any of them, up to the last end of all."""
    deadlines = any(map(concerns_deadlines, records.values()))
    preemption = any(map(concerns_preemption, records.values()))
    common: dict[str, Any] = {
        "until": max((int(record.end_us[record.ran].max(initial=0)) for record in records.values()), default=0),
        "deadlines": deadlines,
        "preemption": preemption,
        "predictions": any(map(concerns_predictions, records.values())),
        "slowdowns": category_slowdowns(records[reference]) if deadlines and reference is not None else None,
    }
    numbers = {
        label: dict(known[label]) if label in known else metrics(record, **asked, **common)
        for label, record in records.items()
    }
    if preemption:
        for label, more in _by_preemptor(records, kept).items():
            numbers[label] |= more
    return numbers


def _count_failures_apart(
    numbers: Mapping[str, dict[str, float]],
    records: Mapping[str, Record],
    own: str | None,
    kept: npt.NDArray[np.bool_],
) -> None:
    """Exclude model failures from the rejected jobs."""
    failed = {label: each & kept for label, each in failed_jobs(records, own).items()}
    if not any(map(np.any, failed.values())):
        return
    for label, record in records.items():
        for status in (Status.rejected, Status.unadmitted):
            numbers[label][status.name] = float((kept & ~failed[label] & (record.status == status)).sum())
        numbers[label]["model_failures"] = float(failed[label].sum())


def _by_preemptor(records: Mapping[str, Record], kept: npt.NDArray[np.bool_]) -> dict[str, dict[str, float]]:
    """Return preempted runs and lost core-hours by owner of the preempting jobs, under each policy."""
    return {
        policy: {f"preempted_runs[{name}]": float(runs) for name, (runs, _) in groups.items()}
        | {f"preempted_core_hours[{name}]": hours for name, (_, hours) in groups.items()}
        for policy, groups in by_owners(records, kept).items()
    }


def best(metrics: Mapping[str, Mapping[str, float]], name: str) -> str:
    """Return the policy with the lowest value of a metric; for equal values the earlier one."""
    return min(metrics, key=lambda label: metrics[label][name] if not math.isnan(metrics[label][name]) else math.inf)


def _group_rows(evidence: Evidence, rows: Any) -> Iterator[GroupRow]:
    """Return rows for every policy against the baseline, and the best against every other, by group."""
    records, baseline, best, metric = evidence.records, evidence.baseline, evidence.best, evidence.headline
    pairs = [(policy, baseline) for policy in evidence.others]
    pairs += [(best, other) for other in records if other != best and (best, other) not in pairs]
    for classes in _classes(records[baseline]):
        for policy, other in pairs:
            found = winners_and_losers(
                records[policy], records[other], classes, metric=metric, names=(policy, other), rows=rows
            )
            for group, it in found.items():
                yield GroupRow(
                    classes.kind, group, policy, other, it.jobs, it.policy_mean, it.baseline_mean,
                    it.ratio, it.ratio_low, it.ratio_high, it.p_holm, it.verdict, it.low, it.high,
                )  # fmt: skip


def _classes(record: Record) -> Iterator[Groups]:
    if record.tasks is None:
        if record.workload.moldable is not None:
            yield weight_classes(record)
        yield size_classes(record)
        yield length_classes(record)
    elif len(record) >= DECILES:
        yield _work_deciles(record)
    for label in LABELLED:
        column = record.workload.labels.get(label)
        if column is not None and (label == "user" or len(np.unique(column[column != no_value(label)])) > 1):
            yield by_label(record, label)


def _work_deciles(record: Record) -> Groups:
    """Return groups by work, smallest first, ties in job order, split as in `gridsim.metrics.dag.slr_by_decile`."""
    order = np.argsort(record.workload.area, kind="stable")
    index = np.empty(len(record), dtype=np.int64)
    for part, own in enumerate(np.array_split(order, DECILES)):
        index[own] = part
    ordinal = ("", "2nd ", "3rd ", *(f"{part}th " for part in range(4, DECILES)))
    names = ("smallest tenth", *(f"{text}tenth" for text in ordinal[1:]), "largest tenth")
    return Groups("work", names, index)
