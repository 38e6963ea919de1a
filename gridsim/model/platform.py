"""The machine: clusters of equal cores below a tree of routers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gridsim.errors import InputError

__all__ = ["ClusterSpec", "Platform", "RouterSpec"]


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A leaf of the tree: *cores* interchangeable cores of one *kind*."""

    name: str
    cores: int
    kind: str = "any"

    def __post_init__(self) -> None:
        if self.cores < 1:
            raise InputError(f"cluster '{self.name}' has {self.cores} cores; at least 1 is needed", field="cores")


@dataclass(frozen=True, slots=True)
class RouterSpec:
    """An inner node of the tree; *children* in the order in which ties are broken."""

    name: str
    children: tuple[RouterSpec | ClusterSpec, ...]

    def __post_init__(self) -> None:
        if not self.children:
            raise InputError(f"router '{self.name}' has no children; give it a cluster", field="children")


@dataclass(frozen=True, slots=True)
class Platform:
    """A tree of routers over clusters.

    Parameters
    ----------
    root : RouterSpec
        Every job arrives here.
    origin : str
        Where the size came from: ``given``, or the name of a log's header field.

    Examples
    --------
    >>> Platform.single(128).cores
    128
    """

    root: RouterSpec
    origin: str = "given"

    @classmethod
    def single(cls, cores: int, *, name: str = "cluster", origin: str = "given") -> Platform:
        """One cluster of *cores* cores below one router."""
        return cls(RouterSpec("root", (ClusterSpec(name, int(cores)),)), origin)

    def clusters(self) -> Iterator[ClusterSpec]:
        """Leaves from left to right: the order in which clusters decide inside one instant."""
        pending: list[RouterSpec | ClusterSpec] = [self.root]
        while pending:
            node = pending.pop()
            if isinstance(node, ClusterSpec):
                yield node
            else:
                pending.extend(reversed(node.children))

    @property
    def cores(self) -> int:
        """Cores of all clusters together."""
        return sum(cluster.cores for cluster in self.clusters())

    @property
    def widest(self) -> int:
        """Cores of the largest cluster: no rigid job can be wider."""
        return max(cluster.cores for cluster in self.clusters())
