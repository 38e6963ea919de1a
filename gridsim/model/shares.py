"""Share trees: the part of the machine to which each user or group is entitled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from gridsim.errors import InputError


@dataclass(frozen=True)
class ShareTree:
    """Integer shares of the nodes of a tree, by path such as ``/eng/ann``; the root is the empty path.

    Parameters
    ----------
    shares : mapping of str to int
        Shares of every node below the root, including every ancestor; leaves can have different depths.

    Raises
    ------
    InputError
        For a path without a leading slash, a missing ancestor, or shares below 1.

    Examples
    --------
    >>> tree = ShareTree({"/eng": 1, "/sci": 1, "/eng/ann": 1, "/eng/bob": 3})
    >>> tree.leaves, tree.entitlement("/eng/bob")
    (('/eng/ann', '/eng/bob', '/sci'), Fraction(3, 8))
    """

    shares: Mapping[str, int]
    leaves: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        if not self.shares:
            raise InputError("is empty; expected at least one path with its shares", field="share tree")
        for path, share in self.shares.items():
            if not path.startswith("/") or path.endswith("/") or "//" in path:
                raise InputError(f"'{path}' is not a path; expected a path such as /eng/ann", field="share tree")
            if not isinstance(share, int) or share < 1:
                raise InputError(f"'{path}' has {share} shares; expected a whole number from 1", field="share tree")
            parent = path.rpartition("/")[0]
            if parent and parent not in self.shares:
                raise InputError(f"'{path}' is listed, but its parent '{parent}' is not", field="share tree")
        inner = {path.rpartition("/")[0] for path in self.shares}
        object.__setattr__(self, "leaves", tuple(sorted(path for path in self.shares if path not in inner)))

    @classmethod
    def equal(cls, paths: tuple[str, ...]) -> ShareTree:
        """Return a tree with one share for every node in *paths* and for their ancestors."""
        nodes = dict.fromkeys(ancestor for path in paths for ancestor in _path(path))
        return cls(dict.fromkeys(nodes, 1))

    def path(self, leaf: str) -> tuple[str, ...]:
        """Return the nodes from below the root down to *leaf*.

        Raises
        ------
        InputError
            If it is not a leaf of the tree.
        """
        if leaf not in self.leaves:
            raise InputError(f"'{leaf}' is not a leaf of the shares; known: {', '.join(self.leaves)}", field="share")
        return _path(leaf)

    def siblings(self, node: str) -> int:
        """Return the sum of the shares of a node and its siblings."""
        parent = node.rpartition("/")[0]
        return sum(share for path, share in self.shares.items() if path.rpartition("/")[0] == parent)

    def fraction(self, node: str) -> Fraction:
        """Return the shares of a node divided by those of it and its siblings."""
        return Fraction(self.shares[node], self.siblings(node))

    def entitlement(self, node: str) -> Fraction:
        """Return a node's part of the machine: the product of `fraction` along its path (grid spec, section 10)."""
        part = Fraction(1)
        for ancestor in _path(node):
            part *= self.fraction(ancestor)
        return part


def _path(node: str) -> tuple[str, ...]:
    names = node.split("/")[1:]
    return tuple("/" + "/".join(names[: depth + 1]) for depth in range(len(names)))
