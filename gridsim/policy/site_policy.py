"""Policies with a site: its machine, and the same policy on a larger or smaller machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from gridsim.errors import InputError
from gridsim.model.platform import Platform, machine_cores
from gridsim.model.site import ORIGIN
from gridsim.model.workload import Workload
from gridsim.policy.capabilities import capabilities_of


class SiteChange(NamedTuple):
    """Changes of a machine as texts, several of a kind separated by semicolons; empty for none.

    Attributes
    ----------
    add_nodes : str
        Nodes added or removed: ``+10``, ``gpu:+10``.
    add_pool : str
        Licences, or units of other pools: ``matlab:4``.
    set_limit : str
        Limits of a Slurm site: ``qos.gpu.GrpTRES=gres/gpu=14``.
    """

    add_nodes: str = ""
    add_pool: str = ""
    set_limit: str = ""

    def and_then(self, other: SiteChange) -> SiteChange:
        """Return this change followed by another one.

        Examples
        --------
        >>> SiteChange(add_nodes="+1").and_then(SiteChange(add_nodes="gpu:+2", add_pool="matlab:4"))
        SiteChange(add_nodes='+1;gpu:+2', add_pool='matlab:4', set_limit='')
        """
        return SiteChange(*(";".join(filter(None, pair)) for pair in zip(self, other, strict=True)))


def machine(workload: Workload, cores: int | None = None, policies: Iterable[Any] = ()) -> Platform:
    """Return one cluster: of the *given* size, else that of a policy's site, else of the size stated by the source.

    Raises
    ------
    InputError
        If none of them defines the size of the machine.

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
    """Return the machine of the first policy that has a site, else None."""
    found: Platform | None = next((policy.machine() for policy in policies if capabilities_of(policy).site), None)
    return found


def fitted(policy: Any, platform: Platform) -> Any:
    """Return the policy for a machine of another size: a site policy gets more or fewer nodes (``sized``)."""
    known = machine_of([policy])
    return policy if known is None or known.cores == platform.cores else policy.sized(platform.cores)


def changed(policy: Any, change: SiteChange) -> Any:
    """Return the policy on its site with other nodes, licences or limits.

    Raises
    ------
    InputError
        If the policy has no site, and for an invalid change.
    """
    if not capabilities_of(policy).site:
        name = next((name for name, text in change._asdict().items() if text), "add_nodes")
        raise InputError(
            "needs a policy that describes its site: --site FILE, or slurm?conf=…", field=name.replace("_", "-")
        )
    found = policy.changed(change)
    found.machine()  # refuses what is wrong
    return found


def own_machine(policy: Any, platform: Platform) -> Platform:
    """Return the machine of a policy: its own site, if the platform is that of another site.

    A size that the user gives stays; the run checks at its start whether the site has it.
    """
    known = machine_of([policy])
    if known is None or not platform.origin.startswith(ORIGIN):
        return platform
    return like(policy, platform) if not _is_same(policy, platform) else platform


def _is_same(policy: Any, platform: Platform) -> bool:
    """Return whether a platform is the site of a policy: the same nodes, or without nodes the same number of cores."""
    clusters = list(platform.clusters())
    if len(clusters) == 1 and clusters[0].nodes:
        return clusters == list(policy.on_nodes().clusters())
    return bool(policy.machine().cores == platform.cores)


def like(policy: Any, platform: Platform) -> Platform:
    """Return the site of a policy as a platform, with nodes if the given platform has nodes."""
    found: Platform = policy.on_nodes() if any(each.nodes for each in platform.clusters()) else policy.machine()
    return found


class Nodes(NamedTuple):
    """Whole nodes by which a machine grows: their number (negative: fewer), cores per node, and total cores then."""

    more: int
    each: int
    cores: int


def nodes_to(policies: Iterable[Any], cores: float) -> Nodes | None:
    """Return the nodes to add for about *cores* cores, if one of the policies has a site, else None.

    The number is at least one, unless the machine has that many cores already.
    """
    for policy in policies:
        now = machine_of([policy])
        if now is not None:
            cores_then, each = policy.sized(cores).machine().cores, policy.node_cores
            return Nodes((cores_then - now.cores) // each, each, cores_then)
    return None
