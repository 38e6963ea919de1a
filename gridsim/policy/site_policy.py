"""Policies that follow a site: its machine, and the same policy on a larger or smaller one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from gridsim.errors import InputError
from gridsim.model.platform import Platform, machine_cores
from gridsim.model.site import ORIGIN
from gridsim.model.workload import Workload
from gridsim.policy.capabilities import capabilities_of


class SiteChange(NamedTuple):
    """Changes of a machine as texts, several of a kind with semicolons; empty for none.

    Attributes
    ----------
    nodes : str
        Nodes added or taken away: ``+10``, ``gpu:+10``.
    add_pool : str
        Licences, or units of other pools: ``matlab:4``.
    set_limit : str
        Limits of a Slurm site: ``qos.gpu.GrpTRES=gres/gpu=14``.
    """

    nodes: str = ""
    add_pool: str = ""
    set_limit: str = ""

    def and_then(self, other: SiteChange) -> SiteChange:
        """This change and another one behind it.

        Examples
        --------
        >>> SiteChange(nodes="+1").and_then(SiteChange(nodes="gpu:+2", add_pool="matlab:4"))
        SiteChange(nodes='+1;gpu:+2', add_pool='matlab:4', set_limit='')
        """
        return SiteChange(*(";".join(filter(None, pair)) for pair in zip(self, other, strict=True)))


def machine(workload: Workload, cores: int | None = None, policies: Iterable[Any] = ()) -> Platform:
    """One cluster of the size that is *given*, else that of a site that a policy knows, else what the source states.

    Raises
    ------
    InputError
        When neither says how large the machine is.

    Examples
    --------
    >>> machine(Workload.from_columns(submit=[0], runtime=[1], cores=[1], cores_stated=8)).cores
    8
    """
    known = machine_of(policies) if cores is None else None
    if known is not None:
        return known
    size, origin = machine_cores(workload, cores)
    return Platform.single(size, origin=origin)


def machine_of(policies: Iterable[Any]) -> Platform | None:
    """The machine of the first policy that knows it; None where none does."""
    found: Platform | None = next((policy.machine() for policy in policies if capabilities_of(policy).site), None)
    return found


def fitted(policy: Any, platform: Platform) -> Any:
    """The policy on a machine of another size: one that knows its nodes gets more or fewer of them (``sized``)."""
    known = machine_of([policy])
    return policy if known is None or known.cores == platform.cores else policy.sized(platform.cores)


def changed(policy: Any, change: SiteChange) -> Any:
    """The policy on its site with other nodes, licences or limits.

    Raises
    ------
    InputError
        Where it does not know its site, and for a change that is none of it.
    """
    if not capabilities_of(policy).site:
        option = next((name.replace("_", "-") for name, text in change._asdict().items() if text), "nodes")
        raise InputError("needs a policy that knows its site; give slurm?conf=…, or --cores", field=option)
    found = policy.changed(change)
    found.machine()  # refuses what is wrong
    return found


def own_machine(policy: Any, platform: Platform) -> Platform:
    """The machine that a policy decides for: its own site, where the platform is that of another site.

    A size that the user gives stays; whether the site has it is checked when the run begins.
    """
    known = machine_of([policy])
    if known is None or not platform.origin.startswith(ORIGIN):
        return platform
    return like(policy, platform) if not _is_same(policy, platform) else platform


def _is_same(policy: Any, platform: Platform) -> bool:
    """Whether a platform is the site of a policy: the same nodes, or of a platform without nodes as many cores."""
    clusters = list(platform.clusters())
    if len(clusters) == 1 and clusters[0].nodes:
        return clusters == list(policy.on_nodes().clusters())
    return bool(policy.machine().cores == platform.cores)


def like(policy: Any, platform: Platform) -> Platform:
    """The site of a policy as a platform, in nodes where the given platform has nodes."""
    found: Platform = policy.on_nodes() if any(each.nodes for each in platform.clusters()) else policy.machine()
    return found


class Nodes(NamedTuple):
    """Whole nodes by which a machine grows: how many, below 0 fewer; cores of each, and cores of the machine then."""

    more: int
    each: int
    cores: int


def nodes_to(policies: Iterable[Any], cores: float) -> Nodes | None:
    """Nodes that it takes for about so many cores, where one of the policies knows its nodes; None where none does.

    It is at least one, unless there are so many cores already.
    """
    for policy in policies:
        now = machine_of([policy])
        if now is not None:
            cores_then, each = policy.sized(cores).machine().cores, policy.node_cores
            return Nodes((cores_then - now.cores) // each, each, cores_then)
    return None
