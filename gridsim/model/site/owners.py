"""Whom a Slurm site knows: accounts and users with their shares and limits, and qualities of service.

Names and defaults are those of sacctmgr(1), version 22.05.
"""

from __future__ import annotations

from dataclasses import dataclass

from gridsim.model.site.tres import NO_LIMITS, TresLimits
from gridsim.model.time import NEVER

__all__ = ["PARENT", "Association", "Qos"]


PARENT = -1
"""``Fairshare=parent``."""


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
    tres : TresLimits
        Limits of other resources, and over time.
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
        How much of the use counts for fair share, and for limits over time.
    tres : TresLimits
        Limits of other resources, and over time.
    decays : bool
        Whether what counts for its limits over time is forgotten as usage is (not with the flag ``NoDecay``).
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
