"""Parts of a Slurm site: resources (TRES), nodes, partitions, reservations, accounts, QOS, scheduling parameters.

Names and defaults are those of slurm.conf(5), scontrol(1), sacctmgr(1) and slurm.schedmd.com/tres.html, version 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal

from gridsim.model.capacity import GPU
from gridsim.model.time import NEVER

CPU, MEMORY, NODE, BILLING = "cpu", "mem", "node", "billing"
JOBS = "jobs"
"""Name for limits on the number of jobs, which is not a TRES."""
GPUS = f"gres/{GPU}"
"""GPUs of any type; those of one type are ``gres/gpu:a100``."""
LICENCE = "license/"
"""Prefix of the name of a licence."""

Weights = tuple[tuple[str, float], ...]
"""Names and the weight per unit: a core, a MiB, a node, a GPU, a licence."""

Amounts = tuple[tuple[str, int], ...]
"""Names and the number of units."""


@dataclass(frozen=True, slots=True)
class TresLimits:
    """Limits of resources for an association or a QOS, in addition to limits of cores with separate fields.

    Attributes
    ----------
    group, user, account : tuple of (str, int)
        ``GrpTRES``, ``MaxTRESPU`` and ``MaxTRESPA``: allocated at one time in total, per user, and per account.
    job, node, least : tuple of (str, int)
        ``MaxTRES``, ``MaxTRESPerNode`` and ``MinTRES`` of one job.
    group_minutes, group_run_minutes, job_minutes : tuple of (str, int)
        ``GrpTRESMins``, ``GrpTRESRunMins`` and ``MaxTRESMins``, unit-minutes.

    Examples
    --------
    >>> sorted(TresLimits(group=(("mem", 100),), least=(("cpu", 2),)).names())
    ['cpu', 'mem']
    """

    group: Amounts = ()
    user: Amounts = ()
    account: Amounts = ()
    job: Amounts = ()
    node: Amounts = ()
    least: Amounts = ()
    group_minutes: Amounts = ()
    group_run_minutes: Amounts = ()
    job_minutes: Amounts = ()

    def names(self) -> Iterator[str]:
        """Return the resources that any of them limits."""
        return (name for each in fields(self) for name, _ in getattr(self, each.name))


NO_LIMITS = TresLimits()


def gpu_type(name: str) -> str:
    """Return the type of the GPUs with this name; empty for GPUs of any type, and for other resources.

    Examples
    --------
    >>> gpu_type("gres/gpu:a100"), gpu_type("gres/gpu"), gpu_type("cpu")
    ('a100', '', '')
    """
    return name.removeprefix(f"{GPUS}:") if name.startswith(f"{GPUS}:") else ""


def licence(name: str) -> str:
    """Return the licence with this name; empty for other resources.

    Examples
    --------
    >>> licence("license/matlab"), licence("mem")
    ('matlab', '')
    """
    return name.removeprefix(LICENCE) if name.startswith(LICENCE) else ""


def licences_requested(text: str) -> dict[str, int]:
    """Return the number of requested licences by name.

    "The license name can be followed by a colon or an equals sign and a count; the default is one" (sbatch(1),
    ``--licenses``). Of alternatives (``a|b``), the first is used.

    Examples
    --------
    >>> licences_requested("matlab:2,ansys@server=4,idl")
    {'matlab': 2, 'ansys@server': 4, 'idl': 1}
    """
    found: dict[str, int] = {}
    for word in filter(None, (part.strip() for part in re.split("[,;]", text.partition("|")[0]))):
        name, _, count = re.sub("[=:](?=[0-9]+$)", " ", word).partition(" ")
        found[name] = found.get(name, 0) + int(count or 1)
    return found


@dataclass(frozen=True, slots=True)
class Node:
    """Node: cores, memory in MiB, weight (low weights are used first), features, GPUs and their type, other resources.

    Cores and memory are those available to jobs, without the amounts reserved for the system.
    """

    name: str
    cores: int
    memory: int = 1
    weight: int = 1
    features: tuple[str, ...] = ()
    gpus: int = 0
    gpu_kind: str = GPU
    other: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Allowed:
    """Set of allowed names: those in `only` if it is not empty, else all except those in `never`."""

    only: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.only if self.only else name not in self.never


@dataclass(frozen=True, slots=True)
class SitePartition:
    """Partition of the nodes; partitions can share nodes.

    Attributes
    ----------
    nodes : tuple of str
        Names of its nodes.
    longest, default_time : int
        ``MaxTime`` and ``DefaultTime``, whole microseconds; `NEVER` for none.
    job_factor, tier : int
        ``PriorityJobFactor`` and ``PriorityTier``.
    exclusive : bool
        Whether every job is allocated whole nodes (``OverSubscribe=EXCLUSIVE``).
    least_nodes, most_nodes : int
        ``MinNodes`` and ``MaxNodes``; 0 for no limit.
    qos : str
        Partition QOS, whose limits also apply.
    preempt : str
        ``PreemptMode`` of its jobs, empty for that of the site.
    grace : int
        ``GraceTime``, whole microseconds.
    state : str
        ``State``: jobs are accepted and started if it is ``UP``.
    accounts, levels : Allowed
        ``AllowAccounts`` or ``DenyAccounts``, ``AllowQos`` or ``DenyQos``.
    groups : tuple of str
        ``AllowGroups``; empty for all.
    needs_reservation : bool
        ``ReqResv``.
    default_memory, default_core_memory : int or None
        ``DefMemPerNode`` and ``DefMemPerCPU``, MiB; None for those of the site.
    most_memory : int or None
        ``MaxMemPerNode``, MiB; None for that of the site.
    node_cores : int
        ``MaxCPUsPerNode``: cores of each node that all its jobs together can use; 0 for all.
    least_loaded : bool
        Whether jobs use the nodes with most idle cores first (``LLN``).
    billing : tuple of (str, float)
        ``TRESBillingWeights``: names of resources and the weight of each unit; empty if jobs are billed for cores.
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
    billing: Weights = ()
    groups: tuple[str, ...] = ()
    node_cores: int = 0
    least_loaded: bool = False


@dataclass(frozen=True, slots=True)
class Reservation:
    """Reserved nodes with permitted users and a period; instants in whole microseconds of the simulation.

    Attributes
    ----------
    users, accounts : Allowed or None
        Users and accounts with access; a job must match both if both are given. With neither, no job has access.
    cores : tuple of (str, int)
        Number of reserved cores of nodes that are not fully reserved.
    flags : frozenset of str
        ``MAINT``, ``OVERLAP``, ``FLEX``, ``MAGNETIC``, ``NO_HOLD_JOBS_AFTER``: see scontrol(1).
    period : int
        Interval of repetition (``DAILY`` …); 0 for none.
    idle : int or None
        ``PURGE_COMP``: it is deleted when no job has requested it for this time.
    known : int
        Time of its creation; before it, jobs do not avoid the reserved nodes.
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
        """Return whether it takes nodes from other reservations."""
        return not self.flags.isdisjoint(("MAINT", "OVERLAP"))

    def admits(self, user: str, account: str) -> bool:
        """Return whether jobs of a user in an account can use it."""
        if self.users is None and self.accounts is None:
            return False
        return (self.users is None or user in self.users) and (self.accounts is None or account in self.accounts)


@dataclass(frozen=True, slots=True)
class Priority:
    """Priority calculation: ``PriorityType`` and its parameters; times in whole microseconds.

    Attributes
    ----------
    kind : {"multifactor", "basic"}
        Weighted factors, or first come, first served.
    age, fair_share, size, partition, qos : int
        Weights.
    tres : tuple of (str, float)
        ``PriorityWeightTRES``: names of resources and their weights.
    billed : {"sum", "max", "max gres"}
        Combination of billing weights: ``PriorityFlags`` without, with ``MAX_TRES`` or with ``MAX_TRES_GRES``.
    oldest : int
        ``PriorityMaxAge``: waiting time at which the age factor reaches 1.
    half_life : int
        ``PriorityDecayHalfLife``; 0: usage does not decay.
    period : int
        ``PriorityCalcPeriod``.
    reset : {"", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY"}
        ``PriorityUsageResetPeriod``: interval at which usage is reset; empty for never.
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
    tres: Weights = ()
    billed: Literal["sum", "max", "max gres"] = "sum"
    oldest: int = 7 * 86_400_000_000
    half_life: int = 7 * 86_400_000_000
    period: int = 300_000_000
    reset: Literal["", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY"] = ""
    favor_small: bool = False
    relative_size: bool = False
    fair_tree: bool = True
    always_accrue: bool = False
    dampening: int = 1


@dataclass(frozen=True, slots=True)
class Scheduling:
    """``SchedulerParameters``: times and depths of scheduling cycles; whole microseconds, 0 for no limit.

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
        ``default_queue_depth`` and ``partition_job_depth`` of the main scheduler cycle.
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
    """Preemption rules: ``PreemptType`` and related parameters; times in whole microseconds.

    Attributes
    ----------
    kind : {"none", "partition", "qos"}
        ``PreemptType``: by ``PriorityTier`` of partitions, or by ``Preempt`` of QOS.
    mode : str
        ``PreemptMode``: ``REQUEUE``, ``CANCEL``, ``SUSPEND``, or ``OFF``.
    within : bool
        ``PreemptMode`` with ``WITHIN``: jobs of one QOS can preempt each other.
    exempt : int
        ``PreemptExemptTime``: run time before which a job is not preempted.
    requeue : bool
        ``JobRequeue``: whether jobs without a requeue option can be requeued.
    most_requeues : int
        ``MaxBatchRequeue``: number of requeues after node failures after which the next one ends a job.
    reorder : int
        ``preempt_reorder_count``.
    strict_order, youngest_first : bool
        ``preempt_strict_order`` and ``preempt_youngest_first``.
    delay : int
        Time after a requeue at which a job can start again. It is undocumented; on a real Slurm 22.05 it was 121 s.
    """

    kind: Literal["none", "partition", "qos"] = "none"
    mode: str = "OFF"
    within: bool = False
    exempt: int = 0
    requeue: bool = True
    most_requeues: int = 5
    reorder: int = 1
    strict_order: bool = False
    youngest_first: bool = False
    delay: int = 121_000_000


PARENT = -1
"""``Fairshare=parent``."""


@dataclass(frozen=True, slots=True)
class Association:
    """A node of the share tree: an account (no user), or a user of an account. None and 0 mean no limit.

    Attributes
    ----------
    parent : str
        Account above an account; empty for the root and for users, whose parent is their account.
    shares : int
        ``Fairshare``; `PARENT` if the children count as children of the account above.
    most_jobs, most_submitted : int or None
        ``MaxJobs`` and ``MaxSubmitJobs`` of each user below.
    group_jobs, group_submitted, group_cores : int or None
        ``GrpJobs``, ``GrpSubmitJobs`` and ``GrpTRES=cpu=`` of the whole subtree.
    most_cores, most_nodes : int or None
        ``MaxTRES=cpu=`` and ``node=`` of one job.
    longest : int
        ``MaxWall``, whole microseconds.
    usage : float
        Decayed core-seconds at the start, if the source has them.
    tres : TresLimits
        Limits of other resources, and usage limits.
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
    tres: TresLimits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class Qos:
    """Quality of service: priority, limits, and the QOS that it can preempt.

    Attributes
    ----------
    user_jobs, user_submitted, user_cores : int or None
        ``MaxJobsPU``, ``MaxSubmitPU`` and ``MaxTRESPU=cpu=``: per user.
    account_jobs, account_cores : int or None
        ``MaxJobsPA`` and ``MaxTRESPA=cpu=``: per account.
    group_jobs, group_submitted, group_cores : int or None
        ``GrpJobs``, ``GrpSubmit`` and ``GrpTRES=cpu=``: in total.
    most_cores : int or None
        ``MaxTRES=cpu=`` of one job.
    longest : int
        ``MaxWall``, whole microseconds.
    preempts : tuple of str
        QOS whose jobs it can preempt.
    mode : str
        Treatment of preempted jobs of this QOS: ``REQUEUE``, ``CANCEL``, or empty for that of the site.
    grace : int
        ``GraceTime``, whole microseconds.
    exempt : int or None
        ``PreemptExemptTime``, whole microseconds; None for that of the site.
    within : bool
        Whether its jobs can preempt each other (``PreemptMode=WITHIN``).
    usage_factor : float
        Factor for its usage in fair share and in usage limits.
    tres : TresLimits
        Limits of other resources, and usage limits.
    decays : bool
        Whether the usage for its usage limits decays (not with the flag ``NoDecay``).
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
    tres: TresLimits = NO_LIMITS
    decays: bool = True
