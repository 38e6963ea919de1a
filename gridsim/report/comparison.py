"""Several policies on one workload, compared: the numbers, how sure they are, and every form in which they are told.

Nothing is simulated here. Words are in `sentences`, rows in `tables`, pictures in `figures`, the page in `page`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.files import plain, write_json, write_text
from gridsim.metrics.compare import Difference, Verdict, paired, winners_and_losers
from gridsim.metrics.groups import Groups, length_classes, size_classes, users
from gridsim.metrics.responsiveness import BOUND
from gridsim.metrics.summary import GRID_METRICS, METRICS, cut, metrics
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND
from gridsim.record import Record
from gridsim.report import sentences, tables

__all__ = ["COMPARED", "Comparison", "GroupRow"]

COMPARED = ("wait", "bounded_slowdown")
"""Metrics whose differences are tested; each is a family of tests of its own."""

COMPARED_DAGS = ("slr", "wait")
"""The same of DAG jobs; in both the first one is the headline."""

DECILES = 10
"""Parts of DAG jobs by work; with fewer jobs there are no groups."""


@dataclass(frozen=True, slots=True)
class GroupRow:
    """Wait (SLR of DAG jobs) of a group under a policy against a baseline; the columns of ``groups.csv``.

    Attributes
    ----------
    kind, group : str
        ``size``, ``length``, ``user`` or, of DAG jobs, ``work``, and the name of the group.
    policy_mean, baseline_mean : float
        Mean waits over the same jobs, s; mean SLRs of DAG jobs.
    ratio, ratio_low, ratio_high : float
        The first over the second with its interval; NaN where one of them is 0.
    p_holm : float
        Corrected for the groups of this kind.
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


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What several policies did with one workload.

    Attributes
    ----------
    records : mapping of str to Record
        By label, all on the same workload; the first is the baseline.
    info : mapping
        Title, workload, platform, policies, options, versions and command, as the page tells them.
    metrics : mapping of str to mapping
        By label, then by name (`gridsim.metrics.summary.METRICS`, `GRID_METRICS` too for DAG jobs).
    differences : list of Difference
        Wait and bounded slowdown of every pair; SLR and wait of DAG jobs.
    groups : list of GroupRow
        Waits by size, length and user: every policy against the baseline, and the best against every other. Of DAG
        jobs, SLRs by decile of work.
    bound, warmup, cooldown : float
        As `gridsim.metrics.summary.metrics` takes them, s.
    platform : Platform or None
        The machine, where known: clusters and delays of the chart of DAG jobs.
    tick : int
        To whole multiples of which delays are rounded up, microseconds.
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

    @classmethod
    def of(
        cls,
        records: Mapping[str, Record],
        *,
        info: Mapping[str, Any],
        bound: float = BOUND,
        warmup: float = 0.0,
        cooldown: float = 0.0,
        platform: Platform | None = None,
        tick: int = MICROSECOND,
    ) -> Comparison:
        """Compare *records*; a single one is described without differences.

        Raises
        ------
        InputError
            When there is no record, no job, or the records are not of the same jobs.
        """
        if not records:
            raise InputError("no policy to compare; expected at least 1")
        first = next(iter(records.values()))
        if not len(first):
            raise InputError("the workload has no jobs; there is nothing to compare")
        until = max((int(record.end_us[record.ran].max(initial=0)) for record in records.values()), default=0)
        numbers = {
            label: metrics(record, bound=bound, warmup=warmup, cooldown=cooldown, until=until)
            for label, record in records.items()
        }
        kept = cut(first, warmup, cooldown)
        rows: Any = slice(None) if kept.all() else kept
        differences: list[Difference] = []
        groups: list[GroupRow] = []
        if len(records) > 1:
            headline, *_ = compared = COMPARED if first.tasks is None else COMPARED_DAGS
            for metric in compared:
                differences += paired(records, metric=metric, bound=bound, rows=rows)
            winner = sentences.best(numbers, sentences.MEANS[headline])
            groups = list(_group_rows(records, winner, rows, headline))
        return cls(dict(records), dict(info), numbers, differences, groups, bound, warmup, cooldown, platform, tick)

    @property
    def labels(self) -> list[str]:
        """Policies in the order in which they were given."""
        return list(self.records)

    @property
    def baseline(self) -> str:
        """The policy that the others are compared with: the first one."""
        return self.labels[0]

    @property
    def of_dags(self) -> bool:
        """Whether the jobs are DAGs of tasks."""
        return self.records[self.baseline].tasks is not None

    @property
    def headline(self) -> str:
        """Metric that decides who is best: ``wait``, or ``slr`` of DAG jobs."""
        return COMPARED_DAGS[0] if self.of_dags else COMPARED[0]

    @property
    def best(self) -> str:
        """Policy with the lowest mean of the headline."""
        return sentences.best(self.metrics, sentences.MEANS[self.headline])

    @property
    def kept(self) -> npt.NDArray[np.bool_]:
        """Jobs that the cuts leave."""
        return cut(self.records[self.baseline], self.warmup, self.cooldown)

    def difference(self, metric: str, policy: str, baseline: str) -> Difference:
        """Difference of a pair, whichever way round it was computed."""
        for found in self.differences:
            if found.metric == metric and {found.policy, found.baseline} == {policy, baseline}:
                return found if found.policy == policy else sentences.turned(found)
        raise InputError(f"no difference of {metric} between '{policy}' and '{baseline}'")

    def table(self) -> list[tables.Row]:
        """Rows of the table, best values marked."""
        return tables.rows(self.metrics)

    def sentences(self) -> list[str]:
        """Who wins, who loses, by how much and how sure that is; then what to know about these numbers."""
        return [*sentences.answer(self), *sentences.caveats(self)]

    def page(self, path: str | Path) -> Path:
        """Write the self-contained HTML page, atomically; returns its path."""
        from gridsim.report.page import render  # matplotlib and Jinja2: only where a page is made

        write_text(path, render(self))
        return Path(path)

    def write(self, folder: str | Path) -> None:
        """Write ``metrics.csv``, ``differences.csv``, ``groups.csv`` (tidy, one value a cell) and ``metrics.json``."""
        folder = Path(folder)
        values = [
            (label, name, value, (METRICS | GRID_METRICS)[name].unit)
            for label, numbers in self.metrics.items()
            for name, value in numbers.items()
        ]
        write_text(folder / "metrics.csv", _csv(("policy", "metric", "value", "unit"), values))
        for name, kind, rows in (
            ("differences", Difference, [astuple(row) for row in self.differences]),
            ("groups", GroupRow, [astuple(row) for row in self.groups]),
        ):
            write_text(folder / f"{name}.csv", _csv([field.name for field in fields(kind)], rows))
        write_json(folder / "metrics.json", self.metrics)

    def to_dict(self) -> dict[str, Any]:
        """Everything in JSON's types, as ``--json`` prints it; numbers that there are not are None."""
        found: dict[str, Any] = plain(
            {
                "sentences": self.sentences(),
                "baseline": self.baseline,
                "metrics": self.metrics,
                "differences": [asdict(row) for row in self.differences],
                "groups": [asdict(row) for row in self.groups],
                "bound": self.bound,
                "warmup": self.warmup,
                "cooldown": self.cooldown,
                "info": self.info,
            }
        )
        return found


def _group_rows(records: Mapping[str, Record], best: str, rows: Any, metric: str) -> Iterator[GroupRow]:
    """Every policy against the first, and the best against every other, group by group."""
    baseline, *others = records
    pairs = [(policy, baseline) for policy in others]
    pairs += [(best, other) for other in records if other != best and (best, other) not in pairs]
    for classes in _classes(records[baseline]):
        for policy, other in pairs:
            found = winners_and_losers(
                records[policy], records[other], classes, metric=metric, names=(policy, other), rows=rows
            )
            for group, it in found.items():
                yield GroupRow(
                    classes.kind, group, policy, other, it.jobs, it.policy_mean, it.baseline_mean,
                    it.ratio, it.ratio_low, it.ratio_high, it.p_holm, it.verdict,
                )  # fmt: skip


def _classes(record: Record) -> Iterator[Groups]:
    if record.tasks is None:
        yield size_classes(record)
        yield length_classes(record)
    elif len(record) >= DECILES:
        yield _work_deciles(record)
    if "user" in record.workload.labels:
        yield users(record)


def _work_deciles(record: Record) -> Groups:
    """Groups by work, smallest first, ties in job order, cut as `gridsim.metrics.dag.slr_by_decile` does."""
    order = np.argsort(record.workload.area, kind="stable")
    index = np.empty(len(record), dtype=np.int64)
    for part, own in enumerate(np.array_split(order, DECILES)):
        index[own] = part
    ordinal = ("", "2nd ", "3rd ", *(f"{part}th " for part in range(4, DECILES)))
    names = ("smallest tenth", *(f"{text}tenth" for text in ordinal[1:]), "largest tenth")
    return Groups("work", names, index)


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """CSV text; NaN and None as empty cells."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([["" if value is None or value != value else value for value in row] for row in rows])
    return text.getvalue()
