"""Allocation and release of node resources at one instant, compiled."""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from gridsim.machine.njit import njit

FREE, SHORT, NO_PLACE = range(3)
"""All resources were free; some were not free, but are taken; the placement is invalid, and nothing is taken."""

_WHOLE = 1000


@njit
def change_allocation(left, gpus, counts, absent, node, amounts, shares, sign):  # type: ignore[no-untyped-def]
    """Take resources of nodes (-1) or release them (1).

    Parameters
    ----------
    left : (r, n) int64
        Free amounts by resource and node.
    gpus : (n, g) int64
        Free thousandths of each GPU.
    counts : (n,) int64
        Number of GPUs of each node.
    absent : (n,) uint8
        Whether each node is unavailable.
    node : (u,) int64
        Distinct node numbers.
    amounts : (r, u) int64
        Amounts of each resource.
    shares : (s, 3) int64
        Index in *node*, GPU number and thousandths of each GPU share.
    sign : int
        -1 or 1.

    Returns
    -------
    int
        `FREE`, `SHORT` or `NO_PLACE`.
    """
    if sign < 0 and not _is_place(left, counts, absent, node, amounts, shares):
        return NO_PLACE
    short = False
    for u in range(node.shape[0]):
        for r in range(left.shape[0]):
            left[r, node[u]] += sign * amounts[r, u]
            short = short or left[r, node[u]] < 0
    for s in range(shares.shape[0]):
        n, gpu = node[shares[s, 0]], shares[s, 1]
        gpus[n, gpu] += sign * shares[s, 2]
        short = short or gpus[n, gpu] < 0
    return SHORT if short else FREE


@njit
def _is_place(left, counts, absent, node, amounts, shares):  # type: ignore[no-untyped-def]
    """Return whether all nodes are available and distinct, and the amounts and shares are valid."""
    for u in range(node.shape[0]):
        if node[u] < 0 or node[u] >= left.shape[1] or absent[node[u]]:
            return False
        if u > 0 and node[u] <= node[u - 1]:  # unsorted nodes are rare and few
            for other in range(u):
                if node[other] == node[u]:
                    return False
        for r in range(left.shape[0]):
            if amounts[r, u] < 0:
                return False
    for s in range(shares.shape[0]):
        n, gpu = node[shares[s, 0]], shares[s, 1]
        if gpu < 0 or gpu >= counts[n] or not 0 < shares[s, 2] <= _WHOLE:
            return False
    return True
