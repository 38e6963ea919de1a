"""Fair-share factors of a Slurm site: decayed usage in a tree of accounts, with Fair Tree or the classic algorithm.

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
from gridsim.policy.usage import UsageTree, kept, weighted


class FairShares:
    """Usage of every user association, and the resulting factors.

    Parameters
    ----------
    associations : sequence of Association
        Accounts and users; the root account is optional.
    half_life : float
        Half-life of usage, s; 0 for no decay.
    fair_tree : bool
        Whether to use Fair Tree instead of the classic algorithm.
    dampening : int
        Dampening factor of the classic algorithm.

    Attributes
    ----------
    users : list of (str, str)
        Account and user of each leaf.
    used : (n,) float64
        Decayed core-seconds of each leaf.

    Raises
    ------
    InputError
        For unknown accounts, and accounts below themselves.

    Examples
    --------
    >>> pairs = [Association("a", parent="root", shares=3), Association("b", parent="root")]
    >>> shares = FairShares([*pairs, Association("a", "ann"), Association("a", "bob"), Association("b", "cy")])
    >>> shares.used[:] = 30, 10, 20  # account a used 40 of 60 with 3/4 of the shares, b 20 of 60 with 1/4
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
        self.tree = self._tree(accounts, leaves)

    def _tree(self, accounts: dict[str, Association], leaves: Sequence[Association]) -> UsageTree:
        """Return the tree of accounts and users."""
        names = [name for name in accounts if name != "root"]
        number = {name: index for index, name in enumerate(names)}
        shares = [max(accounts[name].shares, 0) for name in names]
        # An account with the shares of its parent passes its children to the account above (fair_tree.html).
        paths = [[name for name in path if accounts[name].shares != PARENT] for path in self.paths]
        parent = [number.get(_above(name, accounts), -1) for name in names]
        ways: list[list[int]] = []
        for each, path in zip(leaves, paths, strict=True):
            way = [number[name] for name in path]
            ways.append([*way, len(parent)])
            parent.append(way[-1] if way else -1)
            shares.append(max(each.shares, 0) if each.shares != PARENT else 1)
        counted = np.array([accounts[name].shares != PARENT for name in names] + [True] * len(leaves), dtype=np.bool_)
        own: FloatArray = np.array(shares, dtype=np.float64)
        siblings = np.zeros(len(parent) + 1)
        np.add.at(siblings, np.array(parent, dtype=np.int64)[counted], own[counted])
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.nan_to_num(own / siblings[parent])
        return UsageTree(ways, parent, part, counted)

    def decay(self, elapsed: float) -> None:
        """Decay usage over *elapsed* seconds."""
        self.used *= kept(elapsed, self.half_life)

    def charge(self, leaf: IntArray, cores: FloatArray, begin: FloatArray, end: float) -> None:
        """Add cores held from *begin* to *end*, s relative to the instant of the usage, weighted relative to it."""
        np.add.at(self.used, leaf, cores * np.maximum(weighted(begin, end, self.half_life), 0.0))

    def charge_one(self, leaf: int, cores: float, begin: float, end: float) -> None:
        """Do the same for a single user."""
        self.used[leaf] += cores * max(weighted(begin, end, self.half_life), 0.0)

    def factors(self) -> FloatArray:
        """Return the fair-share factor of each user, from 0 to 1.

        With Fair Tree it is the rank over the number of users, where the first user has the highest rank.
        """
        if not len(self.used):
            return np.zeros(0)
        if not self.fair_tree:
            return self._classic()
        return (len(self.used) - self.tree.places(self.used)) / len(self.used)

    def _classic(self) -> FloatArray:
        """Return 2 to the power of minus effective usage over normalised shares (classic_fair_share.html)."""
        total, ways = self.tree.usage(self.used), self.tree.ways
        whole = float(self.used.sum()) or 1.0
        result = np.empty(len(self.used))
        for row, way in enumerate(ways):
            effective, shares = -1.0, 1.0
            for node in way[way < self.tree.nodes]:
                own, part = total[node] / whole, self.tree.part[node]
                effective = own if effective < 0 else own + (effective - own) * part
                shares *= part
            result[row] = 2.0 ** (-effective / shares / self.dampening) if shares > 0 else 0.0
        return result


def _path(account: str, accounts: dict[str, Association]) -> list[str]:
    """Return the accounts from below the root down to this one."""
    path: list[str] = []
    while account not in ("", "root"):
        if account not in accounts or account in path:
            what = "is its own ancestor" if account in path else "is not in the associations"
            raise InputError(f"account '{account}' {what}", field="account")
        path.append(account)
        account = accounts[account].parent
    return path[::-1]


def _above(account: str, accounts: dict[str, Association]) -> str:
    """Return the nearest account above with its own shares."""
    above = accounts[account].parent
    while above in accounts and above != "root" and accounts[above].shares == PARENT:
        above = accounts[above].parent
    return above
