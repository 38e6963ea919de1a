"""What may be changed, one thing at a time: a larger machine, a higher load, better estimates; and what came of it.

Differences are paired by job, as between policies (`gridsim.metrics.compare`). Nothing is simulated here: that is
`gridsim.questions.whatif`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.metrics.agreement import ModelFailures
from gridsim.metrics.compare import Difference
from gridsim.model.capacity import NodeChange, NodeGroup, node_changes
from gridsim.model.decimal_numbers import MOST_CORES
from gridsim.model.platform import ClusterSpec, Platform
from gridsim.model.site.tres import licences_asked
from gridsim.model.site_file import SetLimit
from gridsim.model.time import IntArray
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.pools import changed_platform, resized
from gridsim.policy.site_policy import SiteChange, changed, fitted, like, nodes_to
from gridsim.questions.replay import Replay
from gridsim.questions.replicas import Replicated
from gridsim.record import Record
from gridsim.words import counted, number, percent
from gridsim.workload.transform.estimates import BetterEstimates
from gridsim.workload.transform.load_factor import LoadFactor

if TYPE_CHECKING:
    from gridsim.policy.slurm.binding import BindingLimit


GPU_JOBS = "GPU jobs"
"""Name of the jobs that request GPUs of any type."""


class JobPart(NamedTuple):
    """Jobs with something in common.

    Attributes
    ----------
    kind : str
        ``partition``, ``gpu``, ``gpu type``, ``pool``, ``qos``, ``account`` or ``user``.
    value : str
        Which: the name of the partition, the type of GPU, the licence …
    name : str
        For tables: "partition gpu", "GPU jobs".
    rows : (n,) bool
        The jobs.
    """

    kind: str
    value: str
    name: str
    rows: npt.NDArray[np.bool_]

    def __str__(self) -> str:
        """For sentences: "jobs of partition gpu", "GPU jobs"."""
        if self.kind in ("gpu", "gpu type"):
            return self.name
        return f"jobs that request {self.name}" if self.kind == "pool" else f"jobs of {self.name}"


def job_parts(workload: Workload, owners: Iterable[tuple[str, str]] = ()) -> list[JobPart]:
    """Parts of the jobs by partition, where there are several, by GPUs and licences that they request, and by *owners*.

    Parts without a job are left out. A job that names several partitions is in the part of each.

    Parameters
    ----------
    owners : iterable of (str, str)
        Label (``qos``, ``account``, ``user``) and name of owners whose jobs are a part too.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 1], runtime=[1, 1], cores=1, labels={"gpus": [0, 2], "qos": [0, 1]})
    >>> [(str(each), each.rows.tolist()) for each in job_parts(log, [("qos", "1")])]
    [('GPU jobs', [False, True]), ('jobs of QOS 1', [False, True])]
    """
    if workload.tasks is not None:
        return []
    found = [*_partitions(workload), *_gpus(workload), *_requested_pools(workload)]
    for label, name in owners:
        if any((each.kind, each.value) == (label, name) for each in found):
            continue
        texts, of = _texts(workload, label)
        rows = np.array([text == name for text in texts], dtype=np.bool_)[of]
        found.append(JobPart(label, name, f"{'QOS' if label == 'qos' else label} {name}", rows))
    return [each for each in found if each.rows.any()]


def _texts(workload: Workload, label: str) -> tuple[list[str], IntArray]:
    """Texts of the different values of a label, empty for unknown ones, and which of them each job has."""
    column = workload.labels.get(label)
    if column is None:
        return [""], np.zeros(len(workload), dtype=np.int64)
    codes, of = np.unique(column, return_inverse=True)
    names = workload.names.get(label, ())
    texts = ["" if it == UNKNOWN else names[it] if 0 <= it < len(names) else str(it) for it in codes.tolist()]
    return texts, of.reshape(-1).astype(np.int64)


def _partitions(workload: Workload) -> Iterator[JobPart]:
    texts, of = _texts(workload, "partition")
    names = list(dict.fromkeys(name for text in texts for name in text.split(",") if name))
    for name in names if len(names) > 1 else ():
        rows = np.array([name in text.split(",") for text in texts], dtype=np.bool_)[of]
        yield JobPart("partition", name, f"partition {name}", rows)


def _gpus(workload: Workload) -> Iterator[JobPart]:
    """GPU jobs, and by type where jobs name several types."""
    demands = workload.demands
    if "gpus" in workload.labels:
        some = workload.labels["gpus"] > 0
        texts, of = _texts(workload, "gpu_type")
        sets: Sequence[tuple[str, ...]] = [(text,) if text else () for text in texts]
    elif demands is not None:
        some, of, sets = demands.gpu > 0, demands.gpu_kinds.of, demands.gpu_kinds.sets
    else:
        return
    yield JobPart("gpu", "", GPU_JOBS, some)
    types = list(dict.fromkeys(name for number in np.unique(of[some]).tolist() for name in sets[number]))
    for name in types if len(types) > 1 else ():
        rows = some & np.array([name in each for each in sets], dtype=np.bool_)[of]
        yield JobPart("gpu type", name, f"{GPU_JOBS} ({name})", rows)


def _requested_pools(workload: Workload) -> Iterator[JobPart]:
    """Jobs by the licences that they request, or by units of other pools."""
    texts, of = _texts(workload, "licenses")
    asked = [licences_asked(text) for text in texts]
    names = dict.fromkeys(name for each in asked for name in each)
    for name in names:
        rows = np.array([each.get(name, 0) > 0 for each in asked], dtype=np.bool_)[of]
        yield JobPart("pool", name, f"licence {name}", rows)
    pools = {} if workload.demands is None else workload.demands.pools
    for name, amounts in pools.items():
        if name not in names:
            yield JobPart("pool", name, f"pool {name}", amounts > 0)


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
    what made the jobs of those as they are, so that others can be changed in the same way. *nodes* are those added or
    removed, *pools* the names of changed pools and how many units more, *owners* kind and name of those whose limit is
    set.
    """

    label: str
    platform: Platform
    workload: Workload
    rounded: str = ""
    policy: Any = None
    transform: Any = None
    nodes: tuple[NodeChange, ...] = ()
    pools: tuple[tuple[str, int], ...] = ()
    owners: tuple[tuple[str, str], ...] = ()

    def of(self, workload: Workload, make: Callable[[Workload], Workload]) -> Change:
        """The same change of the jobs that *make* makes of *workload*, the one as it is."""
        jobs = make(self.workload if self.transform is None else workload)
        return self._replace(workload=jobs if self.transform is None else self.transform.apply(jobs))


class PartEffect(NamedTuple):
    """What a change does to the waits of a part of the jobs; *concerned*: the change is made for these jobs."""

    part: JobPart
    wait: Difference
    concerned: bool


class LimitEffect(NamedTuple):
    """A limit that holds jobs back under a change and stops below what the machine then has of a resource.

    Attributes
    ----------
    limit : BindingLimit
        The limit.
    idle : int
        Units that no job can use because all jobs that request the resource count against the limit; 0 if some do not.
    """

    limit: BindingLimit
    idle: int


class Effect(NamedTuple):
    """What a change does: numbers of the whole run, and the differences of its waits and slowdowns from those now.

    *nodes* are those added or removed, *parts* the waits of parts of the jobs, and *limits* those that bind then. It is
    *saturated* if its queue is still growing at the last submission.
    """

    label: str
    cores: int
    numbers: Mapping[str, float]
    wait: Difference | None
    slowdown: Difference | None
    nodes: tuple[NodeChange, ...] = ()
    parts: tuple[PartEffect, ...] = ()
    limits: tuple[LimitEffect, ...] = ()
    saturated: bool = False


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
    ran : mapping of str to (n,) bool
        Counted jobs that ran as it is and under each change, by label; *kept* are those that are counted.
    failures : mapping of str to ModelFailures
        Jobs that ran in the log but that the policy rejects as it is, by its label; empty where there are none.
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
    ran: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict, compare=False)
    kept: npt.NDArray[np.bool_] | None = field(default=None, compare=False)
    failures: Mapping[str, ModelFailures] = field(default_factory=dict)

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


def site_changes(workload: Workload, platform: Platform, changes: Sequence[SiteChange], policy: Any) -> list[Change]:
    """Nodes, licences and limits of the site that the policy knows, or nodes and pools of the platform; a change each.

    Raises
    ------
    InputError
        For nodes, pools and limits that are not there, and for what is no number of them.
    """
    found, knows = [], capabilities_of(policy).site
    for each in changes:
        after = changed(policy, each) if knows else None
        size = changed_platform(platform, each) if after is None else like(after, platform)
        nodes = node_changes(_nodes(policy, platform), _nodes(after or policy, size))
        limits = [SetLimit.parsed(text) for text in filter(None, each.set_limit.split(";"))]
        pools = _pools(policy, platform), _pools(after or policy, size)
        words = [*_nodes_words(each, platform.cores, size.cores), *_pools_words(*pools, licences=knows)]
        more = tuple((name, amount - pools[0].get(name, 0)) for name, amount in pools[1].items())
        owners = tuple(dict.fromkeys(owner for it in limits for owner in _owners(it, after)))
        label = " and ".join([*words, *map(str, limits)])
        more = tuple(it for it in more if it[1])
        found.append(Change(label, size, workload, policy=after, nodes=nodes, pools=more, owners=owners))
    return found


def _owners(limit: SetLimit, policy: Any) -> Iterator[tuple[str, str]]:
    """Label and name of the jobs that a limit is for; a QOS may be that of partitions too."""
    yield limit.kind, limit.name.partition("@")[0] if limit.kind == "user" else limit.name
    if limit.kind == "qos":
        yield from (("partition", each.name) for each in policy.site.partitions if each.qos == limit.name)


def _machine(policy: Any, platform: Platform) -> ClusterSpec | None:
    """The cluster that a policy decides for, with its nodes and pools where these are known; None for several."""
    known: Platform = fitted(policy, platform).on_nodes() if capabilities_of(policy).site else platform
    clusters = list(known.clusters())
    return clusters[0] if len(clusters) == 1 else None


def _nodes(policy: Any, platform: Platform) -> tuple[NodeGroup, ...]:
    cluster = _machine(policy, platform)
    return () if cluster is None else cluster.nodes


def _pools(policy: Any, platform: Platform) -> Mapping[str, int]:
    cluster = _machine(policy, platform)
    return {} if cluster is None else cluster.pools


def _nodes_words(change: SiteChange, before: int, after: int) -> Iterator[str]:
    """Words such as "2 more nodes of gpu (+12 %)", where the part is that of all cores."""
    texts = [text.strip().rpartition(":") for text in change.nodes.split(";") if text.strip()]
    for place, (partition, _, count) in enumerate(texts):
        more = counted(abs(int(count)), "more node" if int(count) >= 0 else "fewer node")
        part = f" ({percent(after / before - 1, sign=True)} cores)" if place == len(texts) - 1 else ""
        yield f"{more}{f' of {partition}' if partition else ''}{part}"


def _pools_words(before: Mapping[str, int], after: Mapping[str, int], *, licences: bool) -> Iterator[str]:
    for name, amount in after.items():
        if amount != before.get(name, 0):
            part = f" ({percent(amount / before[name] - 1, sign=True)})" if before.get(name) else ""
            yield f"{number(amount)} {name}{' licences' if licences else ''}{part}"


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
        grown = node_changes(_nodes(None, platform), _nodes(None, larger))
        return Change(f"{number(cores)} cores ({part})", larger, workload, nodes=grown)
    how = counted(abs(nodes.more), "more node" if nodes.more >= 0 else "fewer node")
    label = f"{how} of {counted(nodes.each, 'core')} ({part})"
    rounded = "" if abs(cores - size) < 0.01 else f"{number(size)} cores became {label}, {number(cores)} in all"
    knowing = next(each for each in policies if capabilities_of(each).site)
    grown = node_changes(_nodes(knowing, platform), _nodes(knowing, larger))
    return Change(label, larger, workload, rounded, nodes=grown)
