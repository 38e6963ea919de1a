"""Compiled taking and giving back of what nodes have left, at one instant: what a machine grants."""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from gridsim.machine.njit import njit

FREE, SHORT, NO_PLACE = range(3)
"""All was free; some was not, and is taken all the same; that is no place on these nodes, and nothing is taken."""

_WHOLE = 1000


@njit
def carry(left, gpus, counts, absent, node, amounts, shares, sign):  # type: ignore[no-untyped-def]
    """Take amounts (-1) of nodes, or give them back (1).

    Parameters
    ----------
    left : (r, n) int64
        What nodes have left of each resource.
    gpus : (n, g) int64
        Thousandths of each GPU.
    counts : (n,) int64
        GPUs of each node.
    absent : (n,) uint8
        Nodes that are not there.
    node : (u,) int64
        Which nodes, each once.
    amounts : (r, u) int64
        How much of each resource.
    shares : (s, 3) int64
        Place in *node*, number of the GPU and thousandths of each share of a GPU.
    sign : int
        Which of the two.

    Returns
    -------
    int
        How it went.
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
    """Whether nodes are there, each once, and amounts and shares are such."""
    for u in range(node.shape[0]):
        if node[u] < 0 or node[u] >= left.shape[1] or absent[node[u]]:
            return False
        if u > 0 and node[u] <= node[u - 1]:  # not ascending: seldom, and few
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
