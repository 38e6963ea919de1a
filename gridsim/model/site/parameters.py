"""How a Slurm site orders, backfills and preempts jobs.

Names and defaults are those of slurm.conf(5), version 22.05.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gridsim.model.site.tres import Weights

__all__ = ["Preemption", "Priority", "Scheduling"]


@dataclass(frozen=True, slots=True)
class Priority:
    """How priorities are made: ``PriorityType`` and its parameters; times in whole microseconds.

    Attributes
    ----------
    kind : {"multifactor", "basic"}
        Weighted factors, or first come, first served.
    age, fair_share, size, partition, qos : int
        Weights.
    tres : tuple of (str, float)
        ``PriorityWeightTRES``: names of resources and their weights.
    billed : {"sum", "max", "max gres"}
        How billing weights make a number: ``PriorityFlags`` without, with ``MAX_TRES`` or with ``MAX_TRES_GRES``.
    oldest : int
        ``PriorityMaxAge``: waiting time from which the age factor is 1.
    half_life : int
        ``PriorityDecayHalfLife``; 0: usage does not decay.
    period : int
        ``PriorityCalcPeriod``.
    reset : {"", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY"}
        ``PriorityUsageResetPeriod``: when usage begins anew; empty for never.
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
