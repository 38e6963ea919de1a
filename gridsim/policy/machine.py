"""The machine that a policy knows, as one that reads its site does, and that policy on a larger or smaller one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from gridsim.errors import InputError
from gridsim.model.machine import machine_cores
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.policy.capabilities import capabilities_of

__all__ = ["Nodes", "fitted", "machine", "machine_of", "nodes_to", "with_nodes"]


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
    found: Platform | None = next((policy.machine() for policy in policies if capabilities_of(policy).machine), None)
    return found


def fitted(policy: Any, platform: Platform) -> Any:
    """The policy on a machine of another size: one that knows its nodes gets more or fewer of them (``sized``)."""
    known = machine_of([policy])
    return policy if known is None or known.cores == platform.cores else policy.sized(platform.cores)


def with_nodes(policy: Any, nodes: str) -> Any:
    """The policy with nodes added to its site or taken away: ``+10``, ``gpu:+10``, several with semicolons.

    Raises
    ------
    InputError
        Where it does not know its nodes, and for what is no number of nodes of a partition that is there.
    """
    if not capabilities_of(policy).machine:
        raise InputError("are asked of a policy that does not know its nodes; give slurm?conf=…", field="nodes")
    changed = policy.with_nodes(nodes)
    changed.machine()  # says what is wrong with them
    return changed


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
