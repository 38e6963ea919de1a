"""What if the machine were larger, the load higher, the estimates better, and how much more would halve the waits?

One policy, the same jobs, one thing changed at a time. Differences are paired by job, as between policies
(`gridsim.metrics.compare`). The same in words, tables and files: `gridsim.report.whatif_text`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from gridsim.errors import InputError
from gridsim.metrics.compare import Difference, paired
from gridsim.metrics.responsiveness import BOUND
from gridsim.metrics.summary import cut, metrics
from gridsim.model.exact import MOST_CORES
from gridsim.model.machine import fitted, machine, nodes_to, with_nodes
from gridsim.model.platform import Platform
from gridsim.model.pools import resized
from gridsim.model.workload import Workload
from gridsim.policy.presets import policy as make_policy
from gridsim.questions.labels import labelled
from gridsim.record import Record
from gridsim.report.trust import Trust
from gridsim.simulation import Run, run
from gridsim.words import counted, number, percent
from gridsim.workers import Answer, Known, Workers, crew
from gridsim.workload.transform.estimates import BetterEstimates
from gridsim.workload.transform.load_factor import LoadFactor

if TYPE_CHECKING:
    from gridsim.report.gallery import Gallery

__all__ = ["NOW", "Asked", "Change", "Outcome", "WhatIf", "changes_beside", "changes_of", "whatif"]

NOW = "as it is"
"""Label of what everything is compared with."""

USUAL_CORES = (0.1, 0.25, 0.5)
USUAL_LOADS = (1.2,)
USUAL_ESTIMATES = (2.0,)

CORES_BESIDE = (0.1, 0.2)
"""By how much the machine grows in the table beside a comparison; loads and estimates are the usual ones."""


class Change(NamedTuple):
    """One thing that is changed: its label, the machine and jobs after it, and what was done to fit it to nodes.

    *policy* is what runs them where that is changed itself: one with nodes in a partition of its site.
    """

    label: str
    platform: Platform
    workload: Workload
    rounded: str = ""
    policy: Any = None


class Outcome(NamedTuple):
    """What a change does: numbers of the whole run, and the differences of its waits and slowdowns from those now."""

    label: str
    cores: int
    numbers: Mapping[str, float]
    wait: Difference | None
    slowdown: Difference | None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Answers, what is now first.

    Attributes
    ----------
    policy : str
        Under which all are.
    outcomes : tuple of Outcome
        In the order of the changes.
    refused : tuple of (str, str)
        Labels of changes that the policy does not take, and why.
    reacting : bool
        Whether users submit again when what they waited for has ended.
    rounded : tuple of str
        Sizes that were no whole number of nodes, and what was made of them.
    now : Record or None
        What the policy does with the jobs as they are.
    trust : Trust or None
        How far a replay as it is is from the log, where known.
    """

    policy: str
    outcomes: tuple[Outcome, ...]
    refused: tuple[tuple[str, str], ...] = ()
    reacting: bool = False
    rounded: tuple[str, ...] = ()
    now: Record | None = field(default=None, compare=False)
    trust: Trust | None = None

    @property
    def figures(self) -> Gallery:
        """Figures of the answers by name, each a matplotlib ``Figure``; ``save`` writes them as files for a paper."""
        from gridsim.report.whatif_figures import figures  # matplotlib: only where a figure is made

        return figures(self)

    def __repr__(self) -> str:
        return f"<WhatIf under {self.policy}: {', '.join(one.label for one in self.outcomes)}>"

    def __str__(self) -> str:
        """The answers in words."""
        from gridsim.report.whatif_text import sentences  # which knows of this class

        return "\n".join([repr(self), *sentences(self)])

    def __getitem__(self, label: str) -> Outcome:
        return next(one for one in self.outcomes if one.label == label)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "policy": self.policy,
            "changes": [
                {
                    "change": one.label,
                    "cores": one.cores,
                    "metrics": dict(one.numbers),
                    "wait": None if one.wait is None else asdict(one.wait),
                    "bounded_slowdown": None if one.slowdown is None else asdict(one.slowdown),
                }
                for one in self.outcomes
            ],
            "refused": [{"change": label, "why": why} for label, why in self.refused],
            "rounded": list(self.rounded),
            "trust": None if self.trust is None else asdict(self.trust),
        }


def changes_of(
    workload: Workload,
    platform: Platform,
    *,
    cores: Sequence[float] = (),
    loads: Sequence[float] = (),
    estimates: Sequence[float] = (),
    policies: Sequence[Any] = (),
) -> list[Change]:
    """Changes by their sizes; the usual ones where none is given.

    Parameters
    ----------
    cores : sequence of float
        Parts by which the machine, one cluster or pools that jobs name, grows: 0.25 for a quarter more; below 0 it
        shrinks.
    loads : sequence of float
        How many times as fast the same jobs come.
    estimates : sequence of float
        How many times less is asked for too much.
    policies : sequence of object
        Who is asked. Where one knows its nodes, the machine grows by whole nodes, at least by one; sizes that come to
        the same are one change.

    Raises
    ------
    InputError
        For sizes that are no machine, and for more cores of a machine of several clusters.
    """
    if not (cores or loads or estimates):
        cores, loads, estimates = USUAL_CORES, USUAL_LOADS, USUAL_ESTIMATES
    found = [sized(workload, platform, platform.cores * (1 + part), policies) for part in cores]
    if nodes_to(policies, platform.cores) is not None:
        found = list({each.label: each for each in reversed(found)}.values())[::-1]
    found += [
        Change(f"load times {load:g}", platform, LoadFactor(percent=100 * load).apply(workload)) for load in loads
    ]
    found += [
        Change(f"estimates {factor:g} times better", platform, BetterEstimates(factor=factor).apply(workload))
        for factor in estimates
    ]
    return found


def nodes_changes(workload: Workload, platform: Platform, nodes: Sequence[str], policy: Any) -> list[Change]:
    """Nodes added to a partition or taken away, a change each: ``+10``, ``gpu:+10``.

    Raises
    ------
    InputError
        Where the policy does not know its nodes, and for what is no number of nodes of a partition.
    """
    found = []
    for text in nodes:
        changed = with_nodes(policy, text)
        size = changed.machine()
        partition, _, count = text.rpartition(":")
        more = counted(abs(int(count)), "more node" if int(count) >= 0 else "fewer node")
        part = percent(size.cores / platform.cores - 1, sign=True)
        label = f"{more}{f' of {partition}' if partition else ''} ({part})"
        found.append(Change(label, size, workload, policy=changed))
    return found


def changes_beside(workload: Workload, platform: Platform, policies: Sequence[Any] = ()) -> list[Change]:
    """What is asked beside a comparison: a tenth and a fifth more cores of a single cluster, a higher load, estimates.

    Sizes that are no other after rounding are left out.
    """
    one = platform.by is not None or len(list(platform.clusters())) == 1
    found = changes_of(workload, platform, cores=CORES_BESIDE, policies=policies) if one else []
    sized = {each.platform.cores: each for each in reversed(found) if each.platform.cores != platform.cores}
    others = changes_of(workload, platform, loads=USUAL_LOADS, estimates=USUAL_ESTIMATES)
    return [*reversed(sized.values()), *others]


def sized(workload: Workload, platform: Platform, size: float, policies: Sequence[Any] = ()) -> Change:
    if not 0.5 < size < MOST_CORES:
        raise InputError(f"{size:g} cores are no machine; expected 1 to {MOST_CORES:,}", field="cores")
    nodes = nodes_to(policies, size)
    cores = round(size) if nodes is None else nodes.cores
    part = percent(cores / platform.cores - 1, sign=True)
    larger = resized(platform, cores, policies)
    if nodes is None:
        return Change(f"{number(cores)} cores ({part})", larger, workload)
    how = counted(abs(nodes.more), "more node" if nodes.more >= 0 else "fewer node")
    label = f"{how} of {counted(nodes.each, 'core')} ({part})"
    fits = abs(cores - size) < 0.01
    return Change(
        label, larger, workload, "" if fits else f"{number(size)} cores became {label}, {number(cores)} in all"
    )


def whatif(
    workload: Workload,
    changes: Sequence[Change] | None = None,
    *,
    policy: Any = "easy",
    platform: Platform | None = None,
    options: Run | None = None,
    now: Record | None = None,
    label: str | None = None,
    bound: float = BOUND,
    warmup: float = 0.0,
    cooldown: float = 0.0,
    lenient: bool = False,
    progress: Callable[[str, int], None] | None = None,
    workers: int | Workers = 1,
) -> WhatIf:
    """Simulate the workload as it is and under each change.

    Parameters
    ----------
    workload : Workload
        The jobs.
    changes : sequence of Change, optional
        As `changes_of` makes them; the usual ones where left out.
    policy : str or object
        Under which all run.
    platform : Platform, optional
        The machine as it is; of the size that the workload's source states where left out.
    now : Record, optional
        What the policy does with the jobs as they are, where that is known already.
    label : str, optional
        What the policy is called; where left out, as `gridsim.questions.labels.labelled` does.
    bound, warmup, cooldown : float
        As `gridsim.metrics.summary.metrics` takes them, s.
    lenient : bool
        Whether a change that the policy does not take is left out and told, instead of an error.
    progress : callable, optional
        Told the label and the number of jobs released so far.
    workers : int or Workers
        Processes that simulate, a change each; 1 for none but this one. Answers are the same with any number.

    Examples
    --------
    >>> from gridsim.workload.synthetic.lublin import default_workload
    >>> log = default_workload(jobs=200, load=0.9, cores=64, seed=1)
    >>> [one.label for one in whatif(log).outcomes]  # doctest: +NORMALIZE_WHITESPACE
    ['as it is', '70 cores (+9.4 %)', '80 cores (+25 %)', '96 cores (+50 %)', 'load times 1.2',
     'estimates 2 times better']
    """
    with crew(workers, share=[workload]) as team:
        asked = Asked.of(
            workload, changes, team, policy=policy, platform=platform, options=options, now=now, progress=progress
        )
        called = label or next(iter(labelled([policy if isinstance(policy, str) else make_policy(policy)])))
        return asked.answer(called, bound=bound, warmup=warmup, cooldown=cooldown, lenient=lenient)


@dataclass(frozen=True, slots=True)
class Asked:
    """What `whatif` was asked: the runs are given to workers at once, and waited for in `answer`.

    Attributes
    ----------
    changes : tuple of Change
        What is now first.
    records : mapping of str to Answer
        What comes of each, by label.
    """

    changes: tuple[Change, ...]
    records: Mapping[str, Answer[Record]]

    @classmethod
    def of(
        cls,
        workload: Workload,
        changes: Sequence[Change] | None,
        workers: Workers,
        *,
        policy: Any,
        platform: Platform | None = None,
        options: Run | None = None,
        now: Record | None = None,
        name: str = "the policy",
        progress: Callable[[str, int], None] | None = None,
    ) -> Asked:
        """Parameters as those of `whatif`; *name* is that of the policy, for the user."""
        platform, options = platform or machine(workload), options or Run()
        changes = changes_of(workload, platform) if changes is None else list(changes)
        labels = [each.label for each in changes]
        for each in labels:
            if labels.count(each) > 1:
                raise InputError(f"'{each}' is asked twice; a difference to itself says nothing")

        def record(change: Change) -> Answer[Record]:
            told = None if progress is None else partial(progress, change.label)
            asked = policy if change.policy is None else change.policy
            what = (change.workload, change.platform, asked, options)
            return workers.submit(record_under, *what, name=name, progress=told)

        as_it_is = Change(NOW, platform, workload)
        given = {NOW: Known(now)} if now is not None else {}
        return cls(
            (as_it_is, *changes),
            given | {each.label: record(each) for each in (as_it_is, *changes) if each.label not in given},
        )

    def answer(
        self,
        policy: str,
        *,
        bound: float = BOUND,
        warmup: float = 0.0,
        cooldown: float = 0.0,
        lenient: bool = False,
    ) -> WhatIf:
        """The answers, as `whatif` gives them; *policy* is what it is called."""
        as_it_is, *changes = self.changes
        records, refused = {NOW: self.records[NOW].result()}, []
        for change in changes:
            try:
                records[change.label] = self.records[change.label].result()
            except InputError as error:
                if not lenient:
                    raise
                refused.append((change.label, str(error)))
        rows = cut(records[NOW], warmup, cooldown)
        waits, slowdowns = (
            {one.policy: one for one in _against(records, metric, bound, rows)}
            for metric in ("wait", "bounded_slowdown")
        )
        outcomes = [
            Outcome(
                each.label,
                each.platform.cores,
                metrics(records[each.label], bound=bound, warmup=warmup, cooldown=cooldown),
                waits.get(each.label),
                slowdowns.get(each.label),
            )
            for each in self.changes
            if each.label in records
        ]
        rounded = tuple(change.rounded for change in changes if change.rounded)
        reacting = as_it_is.workload.reactions is not None
        return WhatIf(policy, tuple(outcomes), tuple(refused), reacting, rounded, records[NOW])


def _against(records: Mapping[str, Record], metric: str, bound: float, rows: Any) -> list[Difference]:
    if len(records) < 2:
        return []
    return paired(records, metric=metric, baseline=NOW, bound=bound, rows=rows, moved=True)


def record_under(
    workload: Workload,
    platform: Platform,
    policy: Any,
    options: Run,
    progress: Callable[[int], None] | None = None,
) -> Record:
    return run(workload, platform, fitted(make_policy(policy), platform), options, progress=progress)
