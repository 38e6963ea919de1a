"""Fair-share factors of a Slurm site: decayed usage in a tree of accounts, and Fair Tree or the classic formula.

References
----------
slurm.schedmd.com: fair_tree.html (algorithm, level fair share, ties), classic_fair_share.html, and slurm.conf(5) for
``PriorityDecayHalfLife``, ``PriorityCalcPeriod`` and ``FairShareDampeningFactor``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gridsim.errors import InputError
from gridsim.model.site import PARENT, Association
from gridsim.model.time import FloatArray, IntArray

__all__ = ["FairShares"]


class FairShares:
    """Usage of every user association, and the factors that follow from it.

    Parameters
    ----------
    associations : sequence of Association
        Accounts and users; the root account may be left out.
    half_life : float
        Seconds after which usage counts half; 0 for never.
    fair_tree : bool
        Fair Tree, or the classic algorithm.
    dampening : int
        Of the classic algorithm.

    Attributes
    ----------
    users : list of (str, str)
        Account and user of each leaf.
    used : (n,) float64
        Decayed core-seconds of each leaf.

    Raises
    ------
    InputError
        For accounts that are not there, or below themselves.

    Examples
    --------
    >>> pairs = [Association("a", parent="root", shares=3), Association("b", parent="root")]
    >>> shares = FairShares([*pairs, Association("a", "ann"), Association("a", "bob"), Association("b", "cy")])
    >>> shares.used[:] = 30, 10, 20  # account a has used 40 of 60 with 3/4 of the shares, b 20 of 60 with 1/4
    >>> shares.factors() * 3
    array([2., 3., 1.])
    """

    def __init__(
        self,
        associations: Sequence[Association],
        *,
        half_life: float = 0.0,
        fair_tree: bool = True,
        dampening: int = 1,
    ) -> None:
        self.half_life, self.fair_tree, self.dampening = half_life, fair_tree, dampening
        accounts = {each.account: each for each in associations if not each.user}
        leaves = [each for each in associations if each.user]
        self.users = [(each.account, each.user) for each in leaves]
        self.used: FloatArray = np.array([each.usage for each in leaves], dtype=np.float64)
        self.paths = [_path(each.account, accounts) for each in leaves]
        self._levels(accounts, leaves)

    def _levels(self, accounts: dict[str, Association], leaves: Sequence[Association]) -> None:
        """Nodes of the tree: accounts, then users; for each leaf, the nodes from the top down, and itself."""
        names = [name for name in accounts if name != "root"]
        number = {name: index for index, name in enumerate(names)}
        shares = [max(accounts[name].shares, 0) for name in names]
        # An account whose shares are those of its parent leaves its children to the account above (fair_tree.html).
        paths = [[name for name in path if accounts[name].shares != PARENT] for path in self.paths]
        parents = [_above(name, accounts) for name in names]
        parent = [number.get(above, -1) for above in parents]
        nodes = len(names)
        ways: list[list[int]] = []
        for each, path in zip(leaves, paths, strict=True):
            way = [number[name] for name in path]
            parent.append(way[-1] if way else -1)
            shares.append(max(each.shares, 0) if each.shares != PARENT else 1)
            ways.append([*way, nodes])
            nodes += 1
        depth = max(map(len, ways), default=0)
        # Below its own level a leaf stands before whatever is tied with it: infinity fills the rest of its way.
        self._ways: IntArray = np.full((len(ways), depth), nodes, dtype=np.int64)
        for row, way in enumerate(ways):
            self._ways[row, : len(way)] = way
        self._parent: IntArray = np.array(parent, dtype=np.int64)
        self._shares: FloatArray = np.array(shares, dtype=np.float64)
        self._nodes, self._first_leaf = nodes, len(names)
        siblings = np.zeros(nodes + 1)
        counted = [True] * nodes
        for name in names:
            counted[number[name]] = accounts[name].shares != PARENT
        self._counted = np.array(counted, dtype=bool)
        np.add.at(siblings, self._parent[self._counted], self._shares[self._counted])
        with np.errstate(divide="ignore", invalid="ignore"):
            self._part = np.nan_to_num(self._shares / siblings[self._parent])

    def decay(self, elapsed: float) -> float:
        """Let usage lose weight over *elapsed* seconds; the factor."""
        kept = 2.0 ** (-elapsed / self.half_life) if self.half_life else 1.0
        self.used *= kept
        return kept

    def charge(self, leaf: IntArray, cores: FloatArray, begin: FloatArray, end: float) -> None:
        """Add cores held from *begin* to *end*, s after the instant that the usage is of, and in the weight of then."""
        if self.half_life:
            rate = np.log(2.0) / self.half_life
            weight = (np.exp(rate * end) - np.exp(rate * begin)) / rate
        else:
            weight = end - begin
        np.add.at(self.used, leaf, cores * np.maximum(weight, 0.0))

    def usage(self) -> FloatArray:
        """Usage of every node of the tree: accounts, then users."""
        total = np.zeros(self._nodes + 1)
        total[self._first_leaf : self._nodes] = self.used
        for column in range(self._ways.shape[1]):
            inner = self._ways[:, column] < self._first_leaf
            np.add.at(total, self._ways[inner, column], self.used[inner])
        return total

    def level_shares(self) -> FloatArray:
        """Level fair share of each node: its part of the shares over its part of the usage among its siblings."""
        total = self.usage()
        above = np.zeros(self._nodes + 1)
        np.add.at(above, self._parent[self._counted], total[:-1][self._counted])
        with np.errstate(divide="ignore", invalid="ignore"):
            part = total[:-1] / above[self._parent]
            level: FloatArray = np.where(total[:-1] > 0, self._part / part, np.inf)
        return np.where(self._shares > 0, level, 0.0)

    def factors(self) -> FloatArray:
        """Fair-share factor of each user, from 0 to 1.

        Notes
        -----
        Fair Tree goes down the tree by level fair share, and ranks the users as it meets them; the factor is the rank,
        the first one being the number of users, over their number. Children of tied accounts are merged, tied users
        have the same rank: that is the order of the users by their whole ways down, level by level.
        """
        if not len(self.used):
            return np.zeros(0)
        if not self.fair_tree:
            return self._classic()
        levels = np.append(self.level_shares(), np.inf)[self._ways]
        order = np.lexsort(tuple(-levels[:, column] for column in reversed(range(levels.shape[1]))))
        sorted_levels = levels[order]
        new = np.append(True, (sorted_levels[1:] != sorted_levels[:-1]).any(axis=1))
        first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
        factors = np.empty(len(order))
        factors[order] = (len(order) - first) / len(order)
        return factors

    def _classic(self) -> FloatArray:
        """2 to the power of minus effective usage over normalised shares (classic_fair_share.html)."""
        total = self.usage()
        whole = float(self.used.sum()) or 1.0
        result = np.empty(len(self.used))
        for row, way in enumerate(self._ways):
            effective, shares = -1.0, 1.0
            for node in way[way < self._nodes]:
                own, part = total[node] / whole, self._part[node]
                effective = own if effective < 0 else own + (effective - own) * part
                shares *= part
            result[row] = 2.0 ** (-effective / shares / self.dampening) if shares > 0 else 0.0
        return result


def _path(account: str, accounts: dict[str, Association]) -> list[str]:
    """Accounts from below the root down to this one."""
    path: list[str] = []
    while account not in ("", "root"):
        if account not in accounts or account in path:
            what = "is below itself" if account in path else "is not among the associations"
            raise InputError(f"account '{account}' {what}", field="account")
        path.append(account)
        account = accounts[account].parent
    return path[::-1]


def _above(account: str, accounts: dict[str, Association]) -> str:
    """Nearest account above that has shares of its own."""
    above = accounts[account].parent
    while above in accounts and above != "root" and accounts[above].shares == PARENT:
        above = accounts[above].parent
    return above
