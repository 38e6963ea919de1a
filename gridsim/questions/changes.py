"""What may be changed, one thing at a time: a larger machine, a higher load, better estimates; and what came of it.

Differences are paired by job, as between policies (`gridsim.metrics.compare`). Nothing is simulated here: that is
`gridsim.questions.whatif`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gridsim.errors import InputError
from gridsim.metrics.compare import Difference
from gridsim.model.exact import MOST_CORES
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.machine import nodes_to, with_nodes
from gridsim.policy.pools import resized, with_nodes_of
from gridsim.questions.replay import Replay
from gridsim.questions.replicas import Replicated
from gridsim.record import Record
from gridsim.words import counted, number, percent
from gridsim.workload.transform.estimates import BetterEstimates
from gridsim.workload.transform.load_factor import LoadFactor

__all__ = ["NOW", "Change", "Effect", "WhatIf", "changes_beside", "changes_of", "nodes_changes", "sized"]

NOW = "as it is"
"""Label of what everything is compared with."""

USUAL_CORES = (0.1, 0.25, 0.5)
USUAL_LOADS = (1.2,)
USUAL_ESTIMATES = (2.0,)

CORES_BESIDE = (0.1, 0.2)
"""By how much the machine grows in the table beside a comparison; loads and estimates are the usual ones."""


class Change(NamedTuple):
    """One thing that is changed: its label, the machine and jobs after it, and what was done to fit it to nodes.

    *policy* is what runs them where that is changed itself: one with nodes in a partition of its site. *transform* is
    what made the jobs of those as they are, so that others can be changed in the same way.
    """

    label: str
    platform: Platform
    workload: Workload
    rounded: str = ""
    policy: Any = None
    transform: Any = None

    def of(self, workload: Workload, make: Callable[[Workload], Workload]) -> Change:
        """The same change of the jobs that *make* makes of *workload*, the one as it is."""
        jobs = make(self.workload if self.transform is None else workload)
        return self._replace(workload=jobs if self.transform is None else self.transform.apply(jobs))


class Effect(NamedTuple):
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
    outcomes : tuple of Effect
        In the order of the changes.
    refused : tuple of (str, str)
        Labels of changes that the policy does not take, and why.
    reacting : bool
        Whether users submit again when what they waited for has ended.
    rounded : tuple of str
        Sizes that were no whole number of nodes, and what was made of them.
    now : Record or None
        What the policy does with the jobs as they are.
    replay : Replay or None
        How near a replay as it is comes to the log, where known.
    replicated : tuple of Replicated
        The same on workloads made of this one: shaken, or with its users drawn anew.
    cleaned : WhatIf or None
        The same without floods of jobs by one user, where it was asked for.
    """

    policy: str
    outcomes: tuple[Effect, ...]
    refused: tuple[tuple[str, str], ...] = ()
    reacting: bool = False
    rounded: tuple[str, ...] = ()
    now: Record | None = field(default=None, compare=False)
    replay: Replay | None = None
    replicated: tuple[Replicated, ...] = ()
    cleaned: WhatIf | None = None

    def __repr__(self) -> str:
        return f"<WhatIf under {self.policy}: {', '.join(one.label for one in self.outcomes)}>"

    def __getitem__(self, label: str) -> Effect:
        return next(one for one in self.outcomes if one.label == label)


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
    made: list[tuple[str, Any]] = [(f"load times {load:g}", LoadFactor(percent=100 * load)) for load in loads]
    made += [(f"estimates {factor:g} times better", BetterEstimates(factor=factor)) for factor in estimates]
    return found + [
        Change(label, platform, transform.apply(workload), transform=transform) for label, transform in made
    ]


def nodes_changes(workload: Workload, platform: Platform, nodes: Sequence[str], policy: Any) -> list[Change]:
    """Nodes added or taken away, a change each: ``+10``, ``gpu:+10`` of a partition of the site that the policy knows.

    Where it knows none, of a group of nodes of the platform.

    Raises
    ------
    InputError
        Where neither has nodes, and for what is no number of nodes of a partition, or of a group.
    """
    found, knows = [], capabilities_of(policy).machine
    for text in nodes:
        changed = with_nodes(policy, text) if knows else None
        size = with_nodes_of(platform, text) if changed is None else changed.machine()
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
    """The machine with *size* cores; with whole nodes, up to that many, where a policy knows its nodes.

    Raises
    ------
    InputError
        For a size that is no machine.
    """
    if not 0.5 < size < MOST_CORES:
        raise InputError(f"{size:g} cores are no machine; expected 1 to {MOST_CORES:,}", field="cores")
    nodes = nodes_to(policies, size)
    cores = round(size) if nodes is None else nodes.cores
    larger = resized(platform, cores, policies)
    part = percent(larger.cores / platform.cores - 1, sign=True)
    if nodes is None:
        cores = larger.cores
        return Change(f"{number(cores)} cores ({part})", larger, workload)
    how = counted(abs(nodes.more), "more node" if nodes.more >= 0 else "fewer node")
    label = f"{how} of {counted(nodes.each, 'core')} ({part})"
    fits = abs(cores - size) < 0.01
    return Change(
        label, larger, workload, "" if fits else f"{number(size)} cores became {label}, {number(cores)} in all"
    )
