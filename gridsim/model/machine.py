"""The machine of a workload: what the caller gives, else what its source states. Said in one place for everybody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from gridsim.errors import InputError
from gridsim.model.exact import MOST_CORES, shown
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload

__all__ = ["Nodes", "check_cores", "fitted", "machine", "machine_cores", "machine_of", "nodes_to", "with_nodes"]


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
    """The machine of the first policy that knows it (it has a method ``machine``); None where none does."""
    found: Platform | None = next((policy.machine() for policy in policies if hasattr(policy, "machine")), None)
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
    if not hasattr(policy, "with_nodes"):
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


def machine_cores(workload: Workload, cores: int | None = None) -> tuple[int, str]:
    """Cores of the machine and where the number comes from: ``given``, or the source's own word for it.

    Raises
    ------
    InputError
        When neither the caller nor the source says how large the machine is.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0], runtime=[1], cores=[1], provenance={"cores_from": "MaxProcs"})
    >>> machine_cores(log, 4)
    (4, 'given')
    """
    check_cores(cores)
    if cores is not None:
        return cores, "given"
    provenance = workload.provenance
    if workload.cores_stated is None:
        header = ": no MaxProcs and no MaxNodes in the header" if provenance.get("format") == "swf" else ""
        raise InputError(
            f"does not state the size of its machine{header}; give --cores, or a platform",
            path=provenance.get("source", "the workload"),
            field="MaxProcs" if header else "cores",
        )
    return workload.cores_stated, provenance.get("cores_from") or "the workload"


def check_cores(cores: int | None) -> None:
    """Refuse a machine without cores; None is a size that nobody gave.

    Raises
    ------
    InputError
        When there are fewer than one, or more than can be.
    """
    if cores is not None and cores < 1:
        raise InputError(f"the machine has {cores} cores; expected at least 1 (--cores)", field="cores")
    if cores is not None and cores > MOST_CORES:
        message = f"the machine has {shown(cores)} cores; expected at most {MOST_CORES:,} (--cores)"
        raise InputError(message, field="cores")
