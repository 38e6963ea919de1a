"""What a Slurm site says of itself: nodes, partitions, who may do what, and how jobs are ordered and backfilled.

Names and defaults are those of Slurm's own manual pages (slurm.conf, sacctmgr, version 22.05).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from gridsim.errors import InputError
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER, IntArray
from gridsim.model.workload import UNKNOWN, Workload

__all__ = [
    "LABELS",
    "Allowed",
    "Association",
    "Node",
    "Preemption",
    "Priority",
    "Qos",
    "Reservation",
    "Scheduling",
    "Site",
    "SitePartition",
    "needs_as_labels",
]

LABELS: Mapping[str, str] = {
    "user": "who submitted the job",
    "account": "account that is charged",
    "partition": "partition asked for",
    "qos": "quality of service",
    "reservation": "name of a reservation",
    "constraint": "features that the nodes must have, such as intel&gpu or rack1|rack2",
    "nodes": "number of nodes asked for, or the least; unknown or 0: as many as it takes",
    "nodes_most": "most nodes, where a range is asked for",
    "memory_mb": "memory asked for on each node, MiB; 0: all of the node's; unknown: the site's default",
    "memory_core_mb": "memory asked for on each core, MiB, in place of memory_mb",
    "gpus": "GPUs asked for on each node",
    "cores_per_task": "cores of a task, which all lie on one node; unknown: 1",
    "tasks_per_node": "most tasks on a node; unknown or 0: no limit",
    "exclusive": "1: whole nodes",
    "requeue": "whether it may be requeued when it is preempted: 1 or 0; unknown: as the site says",
    "priority_nice": "nice value, taken off the priority",
    "array": "number of the job array that the job belongs to",
    "array_limit": "how many jobs of the array may run at once",
    "after": "number of the job whose end it waits for",
    "begin": "seconds after its submission before which it is held",
    "withdrawn": "seconds after its submission at which it is cancelled if it still waits",
}
"""Labels of a workload that the Slurm policy looks at; jobs without one have `UNKNOWN` there. All but the first six
are plain numbers. Of several partitions, separated by commas, the one that starts the job first is taken."""


@dataclass(frozen=True, slots=True)
class Node:
    """A machine: cores, memory in MiB, weight (lighter ones are used first), features, GPUs.

    Cores and memory are those that jobs may use, without what is set apart for the system.
    """

    name: str
    cores: int
    memory: int = 1
    weight: int = 1
    features: tuple[str, ...] = ()
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class Allowed:
    """Names that may: those of `only`, where it is not empty, else all but those of `never`."""

    only: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.only if self.only else name not in self.never


@dataclass(frozen=True, slots=True)
class SitePartition:
    """A partition of the nodes; partitions may share nodes.

    Attributes
    ----------
    nodes : tuple of str
        Names of its nodes.
    longest, default_time : int
        ``MaxTime`` and ``DefaultTime``, whole microseconds; `NEVER` for none.
    job_factor, tier : int
        ``PriorityJobFactor`` and ``PriorityTier``.
    exclusive : bool
        Whether every job gets whole nodes (``OverSubscribe=EXCLUSIVE``).
    least_nodes, most_nodes : int
        ``MinNodes`` and ``MaxNodes``; 0 for no limit.
    qos : str
        Partition QOS, whose limits hold too.
    preempt : str
        ``PreemptMode`` of its jobs, empty for that of the site.
    grace : int
        ``GraceTime``, whole microseconds.
    state : str
        ``State``: jobs are taken in and run where it is ``UP``.
    accounts, levels : Allowed
        ``AllowAccounts`` or ``DenyAccounts``, ``AllowQos`` or ``DenyQos``.
    needs_reservation : bool
        ``ReqResv``.
    default_memory, default_core_memory : int or None
        ``DefMemPerNode`` and ``DefMemPerCPU``, MiB; None for those of the site.
    most_memory : int or None
        ``MaxMemPerNode``, MiB; None for that of the site.
    """

    name: str
    nodes: tuple[str, ...]
    longest: int = NEVER
    default_time: int = NEVER
    job_factor: int = 1
    tier: int = 1
    exclusive: bool = False
    least_nodes: int = 0
    most_nodes: int = 0
    qos: str = ""
    preempt: str = ""
    grace: int = 0
    state: str = "UP"
    accounts: Allowed = Allowed()
    levels: Allowed = Allowed()
    needs_reservation: bool = False
    default_memory: int | None = None
    default_core_memory: int | None = None
    most_memory: int | None = None


@dataclass(frozen=True, slots=True)
class Association:
    """A node of the share tree: an account (no user), or a user of an account. None and 0 stand for no limit.

    Attributes
    ----------
    parent : str
        Account above an account; empty for the root, and for users, whose account is above them.
    shares : int
        ``Fairshare``; `PARENT` where the children count as those of the account above.
    most_jobs, most_submitted : int or None
        ``MaxJobs`` and ``MaxSubmitJobs`` of each user below.
    group_jobs, group_submitted, group_cores : int or None
        ``GrpJobs``, ``GrpSubmitJobs`` and ``GrpTRES=cpu=`` of all below together.
    most_cores, most_nodes : int or None
        ``MaxTRES=cpu=`` and ``node=`` of one job.
    longest : int
        ``MaxWall``, whole microseconds.
    usage : float
        Decayed core-seconds at the beginning, where the source says it.
    """

    account: str
    user: str = ""
    parent: str = ""
    shares: int = 1
    most_jobs: int | None = None
    most_submitted: int | None = None
    group_jobs: int | None = None
    group_submitted: int | None = None
    group_cores: int | None = None
    most_cores: int | None = None
    most_nodes: int | None = None
    longest: int = NEVER
    default_qos: str = ""
    usage: float = 0.0


PARENT = -1
"""``Fairshare=parent``."""


@dataclass(frozen=True, slots=True)
class Qos:
    """A quality of service: priority, limits, and whom it may preempt.

    Attributes
    ----------
    user_jobs, user_submitted, user_cores : int or None
        ``MaxJobsPU``, ``MaxSubmitPU`` and ``MaxTRESPU=cpu=``: of each user.
    account_jobs, account_cores : int or None
        ``MaxJobsPA`` and ``MaxTRESPA=cpu=``: of each account.
    group_jobs, group_submitted, group_cores : int or None
        ``GrpJobs``, ``GrpSubmit`` and ``GrpTRES=cpu=``: of all together.
    most_cores : int or None
        ``MaxTRES=cpu=`` of one job.
    longest : int
        ``MaxWall``, whole microseconds.
    preempts : tuple of str
        QOS whose jobs it may preempt.
    mode : str
        What happens to a preempted job of this QOS: ``REQUEUE``, ``CANCEL``, or empty for that of the site.
    grace : int
        ``GraceTime``, whole microseconds.
    exempt : int or None
        ``PreemptExemptTime``, whole microseconds; None for that of the site.
    within : bool
        Whether its jobs may preempt one another (``PreemptMode=WITHIN``).
    usage_factor : float
        How much of the use counts for fair share.
    """

    name: str
    priority: int = 0
    user_jobs: int | None = None
    user_submitted: int | None = None
    user_cores: int | None = None
    account_jobs: int | None = None
    account_cores: int | None = None
    group_jobs: int | None = None
    group_submitted: int | None = None
    group_cores: int | None = None
    most_cores: int | None = None
    longest: int = NEVER
    preempts: tuple[str, ...] = ()
    mode: str = ""
    grace: int = 0
    exempt: int | None = None
    within: bool = False
    usage_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Priority:
    """How priorities are made: ``PriorityType`` and its parameters; times in whole microseconds.

    Attributes
    ----------
    kind : {"multifactor", "basic"}
        Weighted factors, or first come, first served.
    age, fair_share, size, partition, qos, association : int
        Weights.
    oldest : int
        ``PriorityMaxAge``: waiting time from which the age factor is 1.
    half_life : int
        ``PriorityDecayHalfLife``; 0: usage does not decay.
    period : int
        ``PriorityCalcPeriod``.
    favor_small, relative_size, fair_tree, always_accrue : bool
        ``PriorityFavorSmall``, and the flags ``SMALL_RELATIVE_TO_TIME``, not ``NO_FAIR_TREE``, ``ACCRUE_ALWAYS``.
    dampening : int
        ``FairShareDampeningFactor`` of the classic algorithm.
    """

    kind: Literal["multifactor", "basic"] = "multifactor"
    age: int = 0
    fair_share: int = 0
    size: int = 0
    partition: int = 0
    qos: int = 0
    oldest: int = 7 * 86_400_000_000
    half_life: int = 7 * 86_400_000_000
    period: int = 300_000_000
    favor_small: bool = False
    relative_size: bool = False
    fair_tree: bool = True
    always_accrue: bool = False
    dampening: int = 1


@dataclass(frozen=True, slots=True)
class Scheduling:
    """``SchedulerParameters``: when passes run and how far they look; times in whole microseconds, 0 for no limit.

    Attributes
    ----------
    backfill : bool
        ``SchedulerType=sched/backfill``.
    interval, resolution, window : int
        ``bf_interval``, ``bf_resolution`` and ``bf_window``.
    tests, user_tests, partition_tests, association_tests, starts : int
        ``bf_max_job_test``, ``bf_max_job_user``, ``bf_max_job_part``, ``bf_max_job_assoc`` and ``bf_max_job_start``.
    linear : int
        ``bf_window_linear``.
    queue_depth, partition_depth : int
        ``default_queue_depth`` and ``partition_job_depth`` of the main pass.
    full_interval, least_interval : int
        ``sched_interval`` and ``sched_min_interval``.
    batch_delay : int
        ``batch_sched_delay``.
    defer, stop_at_limit : bool
        ``defer`` and ``assoc_limit_stop``.
    both_tests, array_reserves, partition_reserves : int
        ``bf_max_job_user_part``, ``bf_max_job_array_resv`` and ``bf_job_part_count_reserve``.
    least_age, least_priority : int
        ``bf_min_age_reserve``, whole microseconds, and ``bf_min_prio_reserve``.
    once : bool
        ``bf_one_resv_per_job``.
    """

    backfill: bool = True
    interval: int = 30_000_000
    resolution: int = 60_000_000
    window: int = 86_400_000_000
    tests: int = 500
    user_tests: int = 0
    partition_tests: int = 0
    association_tests: int = 0
    starts: int = 0
    linear: int = 0
    queue_depth: int = 100
    partition_depth: int = 0
    full_interval: int = 60_000_000
    least_interval: int = 2
    batch_delay: int = 3_000_000
    defer: bool = False
    stop_at_limit: bool = False
    both_tests: int = 0
    array_reserves: int = 20
    partition_reserves: int = 0
    least_age: int = 0
    least_priority: int = 0
    once: bool = False


@dataclass(frozen=True, slots=True)
class Preemption:
    """Who may preempt whom, and how: ``PreemptType`` and what belongs to it; times in whole microseconds.

    Attributes
    ----------
    kind : {"none", "partition", "qos"}
        ``PreemptType``: by ``PriorityTier`` of partitions, or by ``Preempt`` of QOS.
    mode : str
        ``PreemptMode``: ``REQUEUE``, ``CANCEL``, or ``OFF``.
    within : bool
        ``PreemptMode`` with ``WITHIN``: jobs of one QOS may preempt one another.
    exempt : int
        ``PreemptExemptTime``: how long a job has to have run before it is preempted.
    requeue : bool
        ``JobRequeue``: whether jobs that do not say may be requeued.
    reorder : int
        ``preempt_reorder_count``.
    strict_order, youngest_first : bool
        ``preempt_strict_order`` and ``preempt_youngest_first``.
    delay : int
        How long after it was requeued a job can run again. No documentation says; on a real Slurm 22.05 it was 121 s.
    """

    kind: Literal["none", "partition", "qos"] = "none"
    mode: str = "OFF"
    within: bool = False
    exempt: int = 0
    requeue: bool = True
    reorder: int = 1
    strict_order: bool = False
    youngest_first: bool = False
    delay: int = 121_000_000


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes that only some may use for a while; instants in whole microseconds of the simulation.

    Attributes
    ----------
    users, accounts : Allowed or None
        Who may use it; a job must be allowed by both where both are given. With neither, nobody may.
    cores : tuple of (str, int)
        Reserved cores of nodes of which not all are.
    flags : frozenset of str
        ``MAINT``, ``OVERLAP``, ``FLEX``, ``MAGNETIC``, ``NO_HOLD_JOBS_AFTER``: see scontrol(1).
    period : int
        After how long it comes again (``DAILY`` …); 0 for once.
    idle : int or None
        ``PURGE_COMP``: it is deleted when no job asks for it for so long.
    known : int
        Instant at which it was made; before, no job keeps clear of it.
    """

    name: str
    nodes: tuple[str, ...]
    start: int
    end: int
    users: Allowed | None = None
    accounts: Allowed | None = None
    cores: tuple[tuple[str, int], ...] = ()
    flags: frozenset[str] = frozenset()
    period: int = 0
    idle: int | None = None
    known: int = -NEVER

    @property
    def overlaps(self) -> bool:
        """Whether it takes nodes from other reservations."""
        return not self.flags.isdisjoint(("MAINT", "OVERLAP"))

    def admits(self, user: str, account: str) -> bool:
        """Whether jobs of a user under an account may use it."""
        if self.users is None and self.accounts is None:
            return False
        return (self.users is None or user in self.users) and (self.accounts is None or account in self.accounts)


@dataclass(frozen=True)
class Site:
    """A Slurm cluster as its configuration and its accounting database describe it.

    Attributes
    ----------
    nodes, partitions : tuple
        In the order of the configuration; the default partition first among those that are called for by no name.
    default_partition : str
        Partition of jobs that name none.
    associations, qos, reservations : tuple
        Empty where nothing is known: everybody then has equal shares and no limits.
    memory : bool
        Whether memory is a resource of its own (``CR_..._Memory``).
    whole_nodes : bool
        Whether every job gets whole nodes (``select/linear``).
    default_memory, default_core_memory : int
        ``DefMemPerNode`` and ``DefMemPerCPU``, MiB; 0 for neither, which means all memory of a node.
    most_memory : int
        ``MaxMemPerNode``, MiB; 0 for no limit.
    preemption : Preemption
        Who may preempt whom.
    enforce : bool
        Whether limits hold (``AccountingStorageEnforce`` with ``limits``).
    ignored : mapping of str to int
        Keys that are not modelled, and how often they occur.

    Examples
    --------
    >>> site = Site.of(nodes=4, cores=8)
    >>> site.cores, site.partitions[0].nodes
    (32, ('n1', 'n2', 'n3', 'n4'))
    """

    nodes: tuple[Node, ...]
    partitions: tuple[SitePartition, ...]
    default_partition: str
    scheduling: Scheduling = field(default_factory=Scheduling)
    priority: Priority = field(default_factory=Priority)
    associations: tuple[Association, ...] = ()
    qos: tuple[Qos, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    memory: bool = False
    whole_nodes: bool = False
    default_memory: int = 0
    default_core_memory: int = 0
    most_memory: int = 0
    preemption: Preemption = field(default_factory=Preemption)
    enforce: bool = True
    ignored: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.nodes:
            raise InputError("names no node; expected at least one NodeName", field="nodes")
        known = {node.name for node in self.nodes}
        if len(known) < len(self.nodes):
            raise InputError("names a node twice", field="nodes")
        names = [partition.name for partition in self.partitions]
        if self.default_partition not in names:
            raise InputError(
                f"'{self.default_partition}' is no partition; known: {', '.join(names)}", field="partition"
            )
        groups = [(each.name, each.nodes) for each in self.partitions]
        for name, members in [*groups, *((each.name, each.nodes) for each in self.reservations)]:
            missing = next((node for node in members if node not in known), None)
            if missing is not None:
                raise InputError(f"'{name}' has a node '{missing}' that is not there", field="nodes")

    @classmethod
    def of(cls, *, nodes: int, cores: int, memory: int = 1, **parts: object) -> Site:
        """A site of *nodes* equal nodes ``n1`` … in one partition ``batch``; *parts* as the class takes them."""
        made = tuple(Node(f"n{number}", cores, memory) for number in range(1, nodes + 1))
        given: dict[str, object] = {
            "partitions": (SitePartition("batch", tuple(node.name for node in made)),),
            "default_partition": "batch",
        }
        return cls(nodes=made, **(given | parts))  # type: ignore[arg-type]

    @property
    def cores(self) -> int:
        """Cores of all nodes together."""
        return sum(node.cores for node in self.nodes)

    def platform(self) -> Platform:
        """The machine as one cluster; which node a core belongs to is known to the Slurm policy alone."""
        return Platform.single(self.cores, origin="slurm.conf")

    def partition(self, name: str) -> SitePartition:
        """Partition of that name.

        Raises
        ------
        InputError
            When there is none.
        """
        for partition in self.partitions:
            if partition.name == name:
                return partition
        known = ", ".join(partition.name for partition in self.partitions)
        raise InputError(f"'{name}' is no partition; known: {known}", field="partition")

    def accounts(self) -> Iterator[Association]:
        """Associations that are accounts."""
        return (association for association in self.associations if not association.user)


def needs_as_labels(workload: Workload) -> Workload:
    """The workload with what its log says of its jobs' needs as labels, where it has no such labels yet.

    Logged columns are taken: ``nodes``; ``memory``, MiB of a job over its nodes; ``after``; ``array_job``.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0], runtime=[9], cores=[8], logged={"nodes": [2], "memory": [3000]})
    >>> labels = needs_as_labels(log).labels
    >>> labels["nodes"], labels["memory_mb"]
    (array([2]), array([1500]))
    """
    found = dict(workload.labels)
    for label, column in (("nodes", "nodes"), ("after", "after"), ("array", "array_job")):
        if label not in found and column in workload.logged:
            found[label] = _whole_numbers(workload.logged[column])
    if "memory_mb" not in found and "memory" in workload.logged:
        memory, nodes = _whole_numbers(workload.logged["memory"]), np.maximum(found.get("nodes", 1), 1)
        found["memory_mb"] = np.where(memory > 0, -(-memory // nodes), UNKNOWN)
    return replace(workload, labels=found)


def _whole_numbers(column: Any) -> IntArray:
    values = np.asarray(column, dtype=np.float64)
    known = np.isfinite(values)
    return np.where(known, np.where(known, values, 0.0), UNKNOWN).astype(np.int64)
