"""Nodes of a Slurm site, and who may use which of them when: partitions and reservations.

Names and defaults are those of slurm.conf(5) and scontrol(1), version 22.05.
"""

from __future__ import annotations

from dataclasses import dataclass

from gridsim.model.capacity import GPU
from gridsim.model.site.tres import Weights
from gridsim.model.time import NEVER

__all__ = ["Allowed", "Node", "Reservation", "SitePartition"]


@dataclass(frozen=True, slots=True)
class Node:
    """A machine: cores, memory in MiB, weight (lighter ones are used first), features, GPUs of a kind, other resources.

    Cores and memory are those that jobs may use, without what is set apart for the system.
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
    groups : tuple of str
        ``AllowGroups``; empty for all.
    needs_reservation : bool
        ``ReqResv``.
    default_memory, default_core_memory : int or None
        ``DefMemPerNode`` and ``DefMemPerCPU``, MiB; None for those of the site.
    most_memory : int or None
        ``MaxMemPerNode``, MiB; None for that of the site.
    node_cores : int
        ``MaxCPUsPerNode``: cores of each node that all its jobs together may use; 0 for all.
    least_loaded : bool
        Whether jobs go on the nodes with most idle cores (``LLN``).
    billing : tuple of (str, float)
        ``TRESBillingWeights``: names of resources and the weight of each unit; empty where jobs are billed for cores.
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
