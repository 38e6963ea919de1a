"""Single changes (larger machine, higher load, better estimates) and their effects.

Differences are paired by job, as between policies (`gridsim.metrics.compare`). `gridsim.questions.whatif` runs the
simulations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.metrics.agreement import ModelFailures
from gridsim.metrics.compare import Difference
from gridsim.model.capacity import NodeChange, NodeGroup, node_changes
from gridsim.model.decimal_numbers import MOST_CORES
from gridsim.model.failures import Failures
from gridsim.model.platform import ClusterSpec, Platform
from gridsim.model.site.parameters import licences_requested
from gridsim.model.site_file import SetLimit
from gridsim.model.time import IntArray
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.number_formatting import counted, number, percent
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.pools import changed_platform, resized
from gridsim.policy.site_policy import SiteChange, changed, fitted, like, nodes_to
from gridsim.questions.replay import Replay
from gridsim.questions.replications import Replicated
from gridsim.record import Record
from gridsim.workload.transform.estimates import BetterEstimates
from gridsim.workload.transform.load_factor import LoadFactor

if TYPE_CHECKING:
    from gridsim.policy.slurm.binding import BindingLimit


GPU_JOBS = "GPU jobs"
"""Name of the group of jobs that request GPUs of any type."""


class JobPart(NamedTuple):
    """Jobs with a common property.

    Attributes
    ----------
    kind : str
        ``partition``, ``gpu``, ``gpu type``, ``pool``, ``qos``, ``account`` or ``user``.
    value : str
        Value of the property: the name of the partition, the GPU type, the licence …
    name : str
        Name in tables: "partition gpu", "GPU jobs".
    rows : (n,) bool
        Mask of the jobs.
    """

    kind: str
    value: str
    name: str
    rows: npt.NDArray[np.bool_]

    def __str__(self) -> str:
        """Return the name in sentences: "jobs of partition gpu", "GPU jobs"."""
        if self.kind in ("gpu", "gpu type"):
            return self.name
        return f"jobs that request {self.name}" if self.kind == "pool" else f"jobs of {self.name}"


def job_parts(workload: Workload, owners: Iterable[tuple[str, str]] = ()) -> list[JobPart]:
    """Return parts of the jobs by partition (if there are several), by requested GPUs and licences, and by *owners*.

    Parts without jobs are omitted. A job that names several partitions is in the part of each.

    Parameters
    ----------
    owners : iterable of (str, str)
        Label (``qos``, ``account``, ``user``) and name of owners whose jobs form additional parts.

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
    """Return the distinct texts of a label, empty for unknown ones, and the index of each job's text."""
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
    """Return the GPU jobs, also by type if jobs name several types."""
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
    """Return the jobs by requested licences, or by units of other pools."""
    texts, of = _texts(workload, "licenses")
    asked = [licences_requested(text) for text in texts]
    names = dict.fromkeys(name for each in asked for name in each)
    for name in names:
        rows = np.array([each.get(name, 0) > 0 for each in asked], dtype=np.bool_)[of]
        yield JobPart("pool", name, f"licence {name}", rows)
    pools = {} if workload.demands is None else workload.demands.pools
    for name, amounts in pools.items():
        if name not in names:
            yield JobPart("pool", name, f"pool {name}", amounts > 0)


NOW = "as it is"
"""Label of the unchanged case, the baseline."""

USUAL_CORES = (0.1, 0.25, 0.5)
USUAL_LOADS = (1.2,)
USUAL_ESTIMATES = (2.0,)

CORES_BESIDE = (0.1, 0.2)
"""Growth of the machine in the additional table of a comparison; loads and estimates have their default values."""


class Change(NamedTuple):
    """Single change: label, changed machine and jobs, and adjustment to whole nodes.

    *policy* is the changed policy, if the change affects it: for example with more nodes in a partition of its site.
    *transform* creates the changed jobs, and can be applied to other jobs. *nodes* are those added or removed, *pools*
    are the names of changed pools and the added units, *owners* are kind and name of those whose limit is set.
    *failures* are failures of nodes that the unchanged case does not have.
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
    failures: Failures | None = None

    def of(self, workload: Workload, make: Callable[[Workload], Workload]) -> Change:
        """Return the same change for the jobs that *make* creates from *workload*, the unchanged one."""
        jobs = make(self.workload if self.transform is None else workload)
        return self._replace(workload=jobs if self.transform is None else self.transform.apply(jobs))


class PartEffect(NamedTuple):
    """Effect of a change on the waits of a part of the jobs; *concerned* if the change is made for these jobs."""

    part: JobPart
    wait: Difference
    concerned: bool


class LimitEffect(NamedTuple):
    """Limit that delays jobs under a change and is below the changed machine's amount of a resource.

    Attributes
    ----------
    limit : BindingLimit
        The limit.
    idle : int
        Unusable units, because all jobs that request the resource count against the limit; 0 if some jobs do not.
    """

    limit: BindingLimit
    idle: int


class Effect(NamedTuple):
    """Effect of a change: metrics of the whole run, and differences of waits and slowdowns from the baseline.

    *nodes* are those added or removed, *parts* the waits of parts of the jobs, and *limits* the binding limits. The
    run is *saturated* if its queue is still growing at the last submission.
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
    """Results of several changes, the unchanged case first.

    Attributes
    ----------
    policy : str
        Policy of all runs.
    outcomes : tuple of Effect
        Effects in the order of the changes.
    refused : tuple of (str, str)
        Labels of changes that the policy rejects, and the reasons.
    reacting : bool
        Whether users react to waiting times.
    rounded : tuple of str
        Sizes that were rounded to whole nodes, with the rounded sizes.
    now : Record or None
        Record of the unchanged case.
    replay : Replay or None
        Agreement of the unchanged case with the log, if known.
    replicated : tuple of Replicated
        Results on derived workloads: with shifted submit times, or with resampled users.
    cleaned : WhatIf or None
        Results without bursts of jobs by one user, if requested.
    ran : mapping of str to (n,) bool
        Counted jobs that ran in the unchanged case and under each change, by label; *kept* are the counted jobs.
    failures : mapping of str to ModelFailures
        Jobs that ran in the log but are rejected in the unchanged case, by label of the policy; empty if there are
        none.
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
    cores: Sequence[float | str] = (),
    site: Sequence[SiteChange] = (),
    loads: Sequence[float] = (),
    estimates: Sequence[float] = (),
    together: bool = False,
    policies: Sequence[Any] = (),
) -> list[Change]:
    """Return changes by their sizes; the default changes if none is given.

    Parameters
    ----------
    cores : sequence of float or str
        Relative growth of the machine (one cluster or pools that jobs name): 0.25 for a quarter more; negative values
        shrink it. As text, a percentage or a number of cores: ``25%``, ``-10%``, ``64``.
    site : sequence of SiteChange
        Changes of the nodes, pools and limits of the first policy's site, or of the machine; *together* as one change.
    loads : sequence of float
        Factors of the load: the same jobs are submitted this many times as fast.
    estimates : sequence of float
        Factors by which overestimation is divided.
    policies : sequence of object
        The policies. If a policy has a node configuration, the machine grows by whole nodes, at least by one; equal
        rounded sizes are one change.

    Raises
    ------
    InputError
        For invalid sizes, and for more cores on a machine of several clusters.
    """
    if not (cores or loads or estimates or site):
        cores, loads, estimates = USUAL_CORES, USUAL_LOADS, USUAL_ESTIMATES
    if together and site:
        site = [reduce(SiteChange.and_then, site)]
    grown = site_changes(workload, platform, site, policies[0]) if site else []
    parts = [_part(each, platform.cores) for each in cores]
    found = [sized(workload, platform, platform.cores * (1 + part), policies) for part in parts]
    if nodes_to(policies, platform.cores) is not None:
        found = list({each.label: each for each in reversed(found)}.values())[::-1]
    made: list[tuple[str, Any]] = [(f"load times {load:g}", LoadFactor(percent=100 * load)) for load in loads]
    made += [(f"estimates {factor:g} times better", BetterEstimates(factor=factor)) for factor in estimates]
    changed = [Change(label, platform, transform.apply(workload), transform=transform) for label, transform in made]
    return [*grown, *found, *changed]


def _part(given: float | str, cores: int) -> float:
    """Return the relative growth of the machine for ``25%``, ``-10%`` or ``64``, and for a fraction."""
    if not isinstance(given, str):
        return given
    try:
        return float(given[:-1]) / 100 if given.endswith("%") else float(given) / cores
    except ValueError:
        raise InputError(
            f"'{given}' is not a number of cores; expected for example 25%, -10% or 64", field="add-cores"
        ) from None


def site_changes_of(nodes: Iterable[str], pools: Iterable[str], limits: Iterable[str]) -> list[SiteChange]:
    """Return one change for each text of added nodes, added pool units and limits."""
    grown = [*(SiteChange(add_nodes=each) for each in nodes), *(SiteChange(add_pool=each) for each in pools)]
    return [*grown, *(SiteChange(set_limit=each) for each in limits)]


def site_changes(workload: Workload, platform: Platform, changes: Sequence[SiteChange], policy: Any) -> list[Change]:
    """Return one change for each changed number of nodes, licences, pool units or limits.

    Raises
    ------
    InputError
        For unknown nodes, pools and limits, and for invalid numbers.
    """
    found, is_registered = [], capabilities_of(policy).site
    for each in changes:
        after = changed(policy, each) if is_registered else None
        size = changed_platform(platform, each) if after is None else like(after, platform)
        nodes = node_changes(_nodes(policy, platform), _nodes(after or policy, size))
        limits = [SetLimit.parsed(text) for text in filter(None, each.set_limit.split(";"))]
        pools = _pools(policy, platform), _pools(after or policy, size)
        words = [*_nodes_texts(each, platform.cores, size.cores), *_pools_texts(*pools, licences=is_registered)]
        more = tuple((name, amount - pools[0].get(name, 0)) for name, amount in pools[1].items())
        owners = tuple(dict.fromkeys(owner for it in limits for owner in _owners(it, after)))
        label = " and ".join([*words, *map(str, limits)])
        more = tuple(it for it in more if it[1])
        found.append(Change(label, size, workload, policy=after, nodes=nodes, pools=more, owners=owners))
    return found


def _owners(limit: SetLimit, policy: Any) -> Iterator[tuple[str, str]]:
    """Return label and name of the jobs that a limit applies to; a QOS may also be that of partitions."""
    yield limit.kind, limit.name.partition("@")[0] if limit.kind == "user" else limit.name
    if limit.kind == "qos":
        yield from (("partition", each.name) for each in policy.site.partitions if each.qos == limit.name)


def _machine(policy: Any, platform: Platform) -> ClusterSpec | None:
    """Return the cluster of a policy, with nodes and pools if they are known; None for several clusters."""
    known: Platform = fitted(policy, platform).on_nodes() if capabilities_of(policy).site else platform
    clusters = list(known.clusters())
    return clusters[0] if len(clusters) == 1 else None


def _nodes(policy: Any, platform: Platform) -> tuple[NodeGroup, ...]:
    cluster = _machine(policy, platform)
    return () if cluster is None else cluster.nodes


def _pools(policy: Any, platform: Platform) -> Mapping[str, int]:
    cluster = _machine(policy, platform)
    return {} if cluster is None else cluster.pools


def _nodes_texts(change: SiteChange, before: int, after: int) -> Iterator[str]:
    """Return text such as "2 more nodes of gpu (+12 %)", with the share of all cores."""
    texts = [text.strip().rpartition(":") for text in change.add_nodes.split(";") if text.strip()]
    for place, (partition, _, count) in enumerate(texts):
        more = counted(abs(int(count)), "more node" if int(count) >= 0 else "fewer node")
        part = f" ({percent(after / before - 1, sign=True)} cores)" if place == len(texts) - 1 else ""
        yield f"{more}{f' of {partition}' if partition else ''}{part}"


def _pools_texts(before: Mapping[str, int], after: Mapping[str, int], *, licences: bool) -> Iterator[str]:
    for name, amount in after.items():
        if amount != before.get(name, 0):
            part = f" ({percent(amount / before[name] - 1, sign=True)})" if before.get(name) else ""
            yield f"{number(amount)} {name}{' licences' if licences else ''}{part}"


def changes_beside(workload: Workload, platform: Platform, policies: Sequence[Any] = ()) -> list[Change]:
    """Return the additional changes of a comparison: 10 % and 20 % more cores of a single cluster, load, estimates.

    Sizes that are unchanged after rounding are omitted.
    """
    one = platform.by is not None or len(list(platform.clusters())) == 1
    found = changes_of(workload, platform, cores=CORES_BESIDE, policies=policies) if one else []
    sized = {each.platform.cores: each for each in reversed(found) if each.platform.cores != platform.cores}
    others = changes_of(workload, platform, loads=USUAL_LOADS, estimates=USUAL_ESTIMATES)
    return [*reversed(sized.values()), *others]


def sized(workload: Workload, platform: Platform, size: float, policies: Sequence[Any] = ()) -> Change:
    """Return the machine with *size* cores; if a policy has a node configuration, rounded down to whole nodes.

    Raises
    ------
    InputError
        For an invalid size.
    """
    if not 0.5 < size < MOST_CORES:
        raise InputError(f"{size:g} cores; expected a machine of 1 to {MOST_CORES:,}", field="cores")
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
    rounded = "" if abs(cores - size) < 0.01 else f"{number(size)} cores became {label}, {number(cores)} in total"
    knowing = next(each for each in policies if capabilities_of(each).site)
    grown = node_changes(_nodes(knowing, platform), _nodes(knowing, larger))
    return Change(label, larger, workload, rounded, nodes=grown)
