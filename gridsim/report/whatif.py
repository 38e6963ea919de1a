"""What if the machine were larger, the load higher, the estimates better, and how much more would halve the waits?

One policy, the same jobs, one thing changed at a time. Differences are paired by job, as between policies
(`gridsim.metrics.compare`). The same in words, tables and files: `gridsim.report.whatif_text`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

from gridsim.errors import InputError
from gridsim.metrics.compare import Difference, paired
from gridsim.metrics.responsiveness import BOUND
from gridsim.metrics.summary import cut, metrics
from gridsim.model.machine import fitted, machine, nodes_to
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.policy.presets import policy as make_policy
from gridsim.record import Record
from gridsim.report.words import counted, number, percent
from gridsim.simulation import Run, run
from gridsim.workload.transform.estimates import BetterEstimates
from gridsim.workload.transform.load_factor import LoadFactor

__all__ = ["NOW", "Change", "Outcome", "WhatIf", "changes_beside", "changes_of", "cores_for", "whatif"]

NOW = "as it is"
"""Label of what everything is compared with."""

USUAL_CORES = (0.1, 0.25, 0.5)
USUAL_LOADS = (1.2,)
USUAL_ESTIMATES = (2.0,)

CORES_BESIDE = (0.1, 0.2)
"""By how much the machine grows in the table beside a comparison; loads and estimates are the usual ones."""

_FINEST = 0.01
"""Part of the machine in whose steps its size is searched where nobody says how large a node is."""

MOST_CORES = 2**31 - 1
"""Cores of the largest machine that is asked about, as of the widest job that a log may have."""

_LARGEST = 64
"""Times the machine up to which a size is searched."""


class Change(NamedTuple):
    """One thing that is changed: its label, the machine and jobs after it, and what was done to fit it to nodes."""

    label: str
    platform: Platform
    workload: Workload
    rounded: str = ""


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
    """

    policy: str
    outcomes: tuple[Outcome, ...]
    refused: tuple[tuple[str, str], ...] = ()
    reacting: bool = False
    rounded: tuple[str, ...] = ()

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
        Parts by which the machine, one cluster, grows: 0.25 for a quarter more; below 0 it shrinks.
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
    found = [_sized(workload, platform, platform.cores * (1 + part), policies) for part in cores]
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


def changes_beside(workload: Workload, platform: Platform, policies: Sequence[Any] = ()) -> list[Change]:
    """What is asked beside a comparison: a tenth and a fifth more cores of a single cluster, a higher load, estimates.

    Sizes that are no other after rounding are left out.
    """
    one = len(list(platform.clusters())) == 1
    found = changes_of(workload, platform, cores=CORES_BESIDE, policies=policies) if one else []
    sized = {each.platform.cores: each for each in reversed(found) if each.platform.cores != platform.cores}
    others = changes_of(workload, platform, loads=USUAL_LOADS, estimates=USUAL_ESTIMATES)
    return [*reversed(sized.values()), *others]


def _sized(workload: Workload, platform: Platform, size: float, policies: Sequence[Any] = ()) -> Change:
    if len(list(platform.clusters())) > 1:
        raise InputError("only a machine of one cluster can be made larger here; give another --platform")
    if not 0.5 < size < MOST_CORES:
        raise InputError(f"{size:g} cores are no machine; expected 1 to {MOST_CORES:,}", field="cores")
    nodes = nodes_to(policies, size)
    cores = round(size) if nodes is None else nodes.cores
    part = percent(cores / platform.cores - 1, sign=True)
    larger = Platform.single(cores, origin=platform.origin)
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
        What the policy is called.
    bound, warmup, cooldown : float
        As `gridsim.metrics.summary.metrics` takes them, s.
    lenient : bool
        Whether a change that the policy does not take is left out and told, instead of an error.
    progress : callable, optional
        Told the label and the number of jobs released so far.

    Examples
    --------
    >>> from gridsim.workload.synthetic.lublin import default_workload
    >>> log = default_workload(jobs=200, load=0.9, cores=64, seed=1)
    >>> [one.label for one in whatif(log).outcomes]  # doctest: +NORMALIZE_WHITESPACE
    ['as it is', '70 cores (+9.4 %)', '80 cores (+25 %)', '96 cores (+50 %)', 'load times 1.2',
     'estimates 2 times better']
    """
    platform, options = platform or machine(workload), options or Run()
    changes = changes_of(workload, platform) if changes is None else list(changes)
    labels = [each.label for each in changes]
    for each in labels:
        if labels.count(each) > 1:
            raise InputError(f"'{each}' is asked twice; a difference to itself says nothing")
    as_it_is = Change(NOW, platform, workload)
    records = {NOW: _record(as_it_is, policy, options, progress) if now is None else now}
    refused = []
    for change in changes:
        try:
            records[change.label] = _record(change, policy, options, progress)
        except InputError as error:
            if not lenient:
                raise
            refused.append((change.label, str(error)))
    rows = cut(records[NOW], warmup, cooldown)
    waits, slowdowns = (
        {one.policy: one for one in _against(records, metric, bound, rows)} for metric in ("wait", "bounded_slowdown")
    )
    outcomes = [
        Outcome(
            each.label,
            each.platform.cores,
            metrics(records[each.label], bound=bound, warmup=warmup, cooldown=cooldown),
            waits.get(each.label),
            slowdowns.get(each.label),
        )
        for each in (as_it_is, *changes)
        if each.label in records
    ]
    rounded = tuple(change.rounded for change in changes if change.rounded)
    called = label or (policy if isinstance(policy, str) else repr(make_policy(policy)))
    return WhatIf(called, tuple(outcomes), tuple(refused), workload.reactions is not None, rounded)


def _against(records: Mapping[str, Record], metric: str, bound: float, rows: Any) -> list[Difference]:
    if len(records) < 2:
        return []
    return paired(records, metric=metric, baseline=NOW, bound=bound, rows=rows, moved=True)


def _record(change: Change, policy: Any, options: Run, progress: Callable[[str, int], None] | None) -> Record:
    told = None if progress is None else partial(progress, change.label)
    made = fitted(make_policy(policy), change.platform)
    return run(change.workload, change.platform, made, options, progress=told)


def cores_for(
    workload: Workload,
    platform: Platform,
    *,
    part: float = 0.5,
    metric: str = "wait_mean",
    node: int | None = None,
    policy: Any = "easy",
    options: Run | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Change:
    """The smallest machine, in steps of a node, on which a number is at most a part of what it is now.

    Parameters
    ----------
    part : float
        Above 0 and below 1: 0.5 halves it.
    metric : str
        Of `gridsim.metrics.summary.METRICS`, one of which less is better.
    node : int, optional
        Cores that are added at a time; where left out, those of a node of a policy that knows its nodes, else a
        hundredth of the machine.

    Raises
    ------
    InputError
        When the number is 0 already or not known, when no machine up to 64 times as large is enough, and when *node*
        is no whole number of the nodes of the policy.

    Notes
    -----
    The size is found by doubling what is added and then halving the gap: on most logs waits fall as the machine grows,
    though not always from one step to the next.
    """
    options = options or Run()
    if not 0 < part < 1:
        raise InputError(f"a part of {part:g}; expected one above 0 and below 1", field="part")
    if node is not None and node < 1:
        raise InputError(f"{node} cores; expected 1 or more to add at a time", field="node")
    asked = [make_policy(policy)]
    known = nodes_to(asked, platform.cores)
    if known is not None and node is not None and node % known.each:
        raise InputError(f"{node} cores at a time; the nodes of the site have {known.each}", field="node")
    step = node or (max(1, round(platform.cores * _FINEST)) if known is None else known.each)

    def value(cores: int) -> float:
        change = _sized(workload, platform, cores, asked)
        return metrics(_record(change, policy, options, progress))[metric]

    wanted = value(platform.cores) * part
    if not wanted > 0:
        why = "is 0 on the machine as it is; nothing is left to gain" if wanted == 0 else "is not known on this machine"
        raise InputError(f"{metric} {why}", field="metric")
    low, more = 0, 1
    while value(platform.cores + more * step) > wanted:
        low, more = more, 2 * more
        if more * step > _LARGEST * platform.cores:
            raise InputError(
                f"{metric} does not fall to {part:g} of what it is on any machine up to {_LARGEST} times as large"
            )
    while more - low > 1:
        middle = (low + more) // 2
        low, more = (middle, more) if value(platform.cores + middle * step) > wanted else (low, middle)
    return _sized(workload, platform, platform.cores + more * step, asked)
